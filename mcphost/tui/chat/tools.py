"""Switches servers and tools on and off for a conversation, and shows the tokens they cost.

Specification: server/tools (user interaction: which tools are exposed to the model).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.host.catalog import Catalog
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.preferences import following
from mcphost.host.chat.tool_selection import ToolSelection
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.chat.side import REVIEW_WORDS
from mcphost.tui.kit.framed import ListScreen
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns


@dataclass(frozen=True, slots=True)
class ToolRow:
    server: str
    tool: str | None
    on: bool
    words: str
    """The description, safe to show."""
    cost: int | None
    problem: str = ""


class ChatToolsScreen(ListScreen[ToolRow, None]):
    """A switch takes effect from the model's next answer on."""

    HELP = (
        "What the model is offered in this conversation: ● it is, ◌ it is not, ✖ no vendor would take it. The "
        "numbers are about the tokens each costs in every request. Requests to the model leave out a server's "
        "instructions until you add them. What you switch here, new conversations begin with; which results wait "
        "is each conversation's own, and begins as chat.hold says."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "on or off", id="chat-tools.switch", tooltip="Let the model use it, or not"),
        Binding("d", "definition", "definition", id="chat-tools.definition", tooltip="What the model gets of it"),
        Binding("i", "instructions", "instructions", id="chat-tools.instructions", tooltip="What the server says"),
        Binding("I", "tell", "tell them", id="chat-tools.tell", tooltip="Tell the model the instructions, or not"),
        Binding("F", "folders", "folders", id="chat-tools.folders", tooltip="Tell it your shared folders, or not"),
        Binding("v,f9", "review", "review", id="chat-tools.review", tooltip="Which results wait: none, some, all"),
        Binding("escape,ctrl+t", "back", "back", id="chat-tools.back", tooltip="Back to the conversation"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ChatToolsScreen {
        & > .frame { width: 92%; max-width: 120; height: 84%; }
    }
    """

    def __init__(self, chat: Chat, catalog: Catalog, servers: Sequence[str]) -> None:
        title = "What the model may use, and about the tokens it takes"
        keys = "space on/off · / filter · d definition · i instructions · esc back"
        super().__init__(title, keys, "No server is configured.")
        self._chat, self._catalog, self._servers = chat, catalog, servers

    def row(self, item: ToolRow, width: int) -> Content:
        return _row(item, width, self.list.search)

    def search_text(self, item: ToolRow) -> SearchText:
        return SearchText(item.tool or item.server, item.server, more=item.words)

    def refresh_rows(self) -> None:
        self.list.show_items(self._read(), keep=lambda row: (row.server, row.tool))
        self.show_details()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[ToolRow]) -> None:
        event.stop()
        self.action_switch()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        row = self.rows.item if self.is_mounted else None
        if action in ("instructions", "tell"):
            return row is not None and bool(self._chat.instructions(row.server))
        return action != "definition" or (row is not None and row.tool is not None)

    def action_switch(self) -> None:
        row = self.rows.item
        if row is not None:
            self._chat.switch(row.server, row.tool, on=not self._chat.settings.on(row.server, row.tool))
            self.refresh_rows()

    def action_definition(self) -> None:
        """Show the definition as the model gets it; of a tool that is left out, as its server sends it."""
        from mcphost.tui.kit.reader import ReaderScreen

        row = self.rows.item
        if row is None or row.tool is None:
            return
        selection = self._chat.tools
        offered = (
            each.definition for each in selection.entries if (each.server, each.tool.name) == (row.server, row.tool)
        )
        tool = next(offered, None) or self._catalog.tool(row.server, row.tool)
        title = f"{row.server} › as the model gets it"
        self.app.push_screen(ReaderScreen(title, json_text(tool.definition()), is_json=True))

    def action_instructions(self) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        if (row := self.rows.item) is not None:
            text = self._chat.instructions(row.server)
            self.app.push_screen(ReaderScreen(f"{row.server} › instructions, I tells the model", text))

    def action_tell(self) -> None:
        """Tell the model a server's instructions, or no longer."""
        if (row := self.rows.item) is not None:
            self._chat.tell_instructions(row.server, on=not self._chat.told_instructions(row.server))
            self.refresh_rows()

    def action_folders(self) -> None:
        """Tell the model the shared folders, or no longer."""
        self._chat.tell_folders(on=not self._chat.settings.folders)
        self.show_details()

    def action_review(self) -> None:
        self._chat.hold_results(following(self._chat.hold))
        self.show_details()

    def _read(self) -> Iterator[ToolRow]:
        selection = self._chat.tools
        costs, choices = selection.costs(), self._chat.settings
        tokens = {(each.server, each.tool.name): each.tokens for each in selection.entries}
        dropped = {(each.server, each.tool): each.reason for each in selection.dropped}
        for server in self._servers:
            tools = self._catalog.tools(server)
            words = f"{len(tools)} tool{'' if len(tools) == 1 else 's'}{self._instructions_note(server)}"
            yield ToolRow(server, None, choices.on(server), words, costs.get(server, 0))
            for offered in sorted(tools, key=lambda each: each.tool.name):
                key, tool = offered.key, offered.tool
                about = (tool.description or tool.label).strip().split("\n", 1)[0]
                on = choices.on(*key) and key not in dropped
                yield ToolRow(server, tool.name, on, show_line(about), tokens.get(key), dropped.get(key, ""))

    def _instructions_note(self, server: str) -> str:
        if not self._chat.instructions(server):
            return ""
        return " · instructions included: i" if self._chat.told_instructions(server) else " · has instructions: i"

    def show_details(self) -> None:
        row, selection = self.rows.item, self._chat.tools
        self.details.update(Content("\n").join(_details(row, selection, self._chat)))
        self.refresh_bindings()


def _details(row: ToolRow | None, selection: ToolSelection, chat: Chat) -> Iterator[Content]:
    if row is not None and row.problem:
        yield Content.styled(f"✖ left out: {show_line(row.problem, 300)}", "$text-error")
    elif row is not None and row.tool is not None:
        yield Content.assemble((show_line(row.tool, 120), "bold"), f" {row.words}")
    shared = "shared" if chat.settings.folders else "not shared"
    acting = f"\nalso read_skill_file for {chat.acting}" if chat.acting else ""
    how = "the model searches them, they are too many" if selection.searching else "all in every request"
    yield Content.styled(
        f"{len(selection.entries)} tools, about {selection.tokens:,} tokens: {how}\n"
        f"roots {shared}: F · {REVIEW_WORDS[chat.hold]}: v{acting}",
        "$foreground-muted",
    )


def _row(row: ToolRow, width: int, search: Search) -> Content:
    mark, style = ("●", "$foreground") if row.on else ("◌", "$foreground-muted")
    if row.problem:
        mark, style = "✖", "$text-error"
    cost = "" if row.cost is None else f"{row.cost:,}"
    if row.tool is None:
        name = Cell(search.mark(f"{mark} {row.server}"), f"bold {style}", 12, width // 3)
        words = Cell(row.words, "$foreground-muted")
    else:
        about = f"left out: {show_line(row.problem, 120)}" if row.problem else row.words
        if search.words:  # the row of its server may be filtered out
            about = f"{row.server} · {about}"
        name = Cell(search.mark(f"  {mark} {show_line(row.tool, 80)}"), style, 12, width // 2)
        words = Cell(search.mark(about), "$foreground-muted")
    return columns(width, [name, words, Cell(cost, "", 6, 8, "right")])
