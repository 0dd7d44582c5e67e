"""The dialog that allows all read-only tools of a server until mcphost exits, after it has listed them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.host.consent.questions import ReadOnlyTools, ToolCallQuestion
from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Tool
from mcphost.tui.kit.answers import SCROLL_FIRST, AnswerOption, AnswerOptions
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.modal_screen import HELP_BINDING, Dialog
from mcphost.tui.kit.rows import Cell, RowList, columns

INTRODUCTION: Final = (
    "Until mcphost exits these tools run without asking, with any arguments. That they are read-only is the server's "
    "claim: the server says so; mcphost cannot check it. A new tool asks, and so does one whose definition changes."
)

LONGEST_NAME: Final = 40
"""Cells of the column of names, beside which descriptions are shown."""


class _Row(NamedTuple):
    tool: Tool
    why_not: str
    """Why it goes on asking; empty if it is covered."""


class ReadOnlyToolsScreen(Dialog[Sequence[Tool] | None], inherit_bindings=False):
    """Dismissed with the tools that the user allowed, as they were listed, or with None.

    ``find`` sorts out the server's tools.
    """

    HELP = (
        "The tools of this server that claim to be read-only. ✓ runs without asking until mcphost exits if you agree;\n"
        "· goes on asking, for the reason that is given. tab goes to the list, where enter shows a definition.\n"
        "You can agree once the end of the list was on screen. g lists what you allowed, and takes it back."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow", "allow all", id="read-only.allow", tooltip="Allow this call and these tools"),
        Binding("n,escape", "back", "back", id="read-only.back", tooltip="Back to the question"),
        Binding("space,pagedown", "page(1)", "scroll", id="read-only.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="read-only.up", show=False),
        Binding("tab,shift+tab", "app.focus_next", "list", id="read-only.tab", show=False),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ReadOnlyToolsScreen {
        .about { height: auto; color: $text-warning; }
        .between { min-height: 4; border-top: solid $border-blurred; }
        .hint { height: auto; color: $text-warning; }
        AnswerOptions { border-top: solid $border-blurred; }
        &.-wide > .dialog { max-width: 100%; }
    }
    """

    def __init__(self, question: ToolCallQuestion, find: Callable[[], Awaitable[ReadOnlyTools]]) -> None:
        super().__init__()
        self._question, self._find = question, find
        self._found: ReadOnlyTools | None = None
        self._end_seen = False
        self.tools = RowList[_Row](self._row, empty="looking for read-only tools…", classes="between")
        self._name_width = LONGEST_NAME
        self._hint, self.answers = Static(SCROLL_FIRST, classes="hint", markup=False), AnswerOptions()

    def compose(self) -> ComposeResult:
        self.set_class(self.app.screen_stack[-2].has_class("-docked"), "-wide")
        server = show_line(self._question.server, 60)
        title = Content.assemble("Run all read-only tools of ", (f"“{server}”", "bold"), " without asking?")
        with self.framed(title, Content("tab list · esc back")):
            with Vertical(classes="above"):
                yield Static(INTRODUCTION, classes="about", markup=False)
            yield self.tools
            with Vertical(classes="below"):
                yield self._hint
                yield self.answers

    def on_mount(self) -> None:
        self._hint.display = False
        self.answers.offer(self._options(), at="n")
        self.answers.focus()
        self.watch(self.tools, "scroll_y", self._check_end, init=False)
        self.run_worker(self._list())

    def on_descendant_focus(self) -> None:
        self.tools.shows_cursor = self.tools.has_focus

    def on_resize(self) -> None:
        self.call_after_refresh(self._check_end)

    @on(RowList.Selected)
    async def _selected(self, event: RowList.Selected[AnswerOption | _Row]) -> None:
        event.stop()
        if isinstance(event.item, AnswerOption):
            await self.run_action(event.item.action)
        else:
            self._open_definition(event.item.tool)

    def action_allow(self) -> None:
        if self._found is None or not self._end_seen:
            self.refuse_locked()
        elif self._found.covered:
            self.dismiss(self._found.covered)

    def action_back(self) -> None:
        self.dismiss(None)

    def action_page(self, direction: int) -> None:
        self.tools.scroll_relative(y=direction * max(1, self.tools.size.height - 1), animate=False)

    async def _list(self) -> None:
        found = self._found = await self._find()
        self._name_width = min(max((cell_len(show_line(tool.name, 80)) for tool in found.covered), default=0), 40)
        self.tools.empty = "No tool of this server can be allowed so."
        self.tools.set_items(
            [
                *(_Row(tool, "") for tool in found.covered),
                *(_Row(tool, why) for tool, why in found.left_out),
            ]
        )
        self._offer()
        self.call_after_refresh(self._check_end)

    def _check_end(self) -> None:
        """Unlock the answer once the last row was on screen."""
        rows = self.tools
        if self._found is None or self._end_seen or not rows.size.height:
            return
        self._end_seen = rows.scroll_offset.y + rows.size.height >= len(rows.items)
        self._hint.display = not self._end_seen
        self._offer()

    def _offer(self) -> None:
        self.answers.offer(self._options())

    def _options(self) -> Iterator[AnswerOption]:
        count = len(self._found.covered) if self._found else 0
        words = f"allow this call, and these {count} tools until mcphost exits" if count != 1 else "allow this one tool"
        yield AnswerOption("y", words, "allow", locked=not (count and self._end_seen))
        yield AnswerOption("n", "back to the question", "back")

    def _row(self, row: _Row, width: int) -> Content:
        name = show_line(row.tool.name, 80)
        about = f"asks: {row.why_not}" if row.why_not else row.tool.description or row.tool.label
        return columns(
            width,
            [
                Cell("·" if row.why_not else "✓", "$foreground-muted" if row.why_not else "bold $text-success", 1, 1),
                Cell(name, "" if row.why_not else "bold", min(10, self._name_width), self._name_width),
                Cell(show_line(about, 200), "$text-warning" if row.why_not else "$foreground-muted", 10),
            ],
        )

    def _open_definition(self, tool: Tool) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        title = f"{self._question.server} › {show_line(tool.name, 60)}"
        self.app.push_screen(ReaderScreen(title, json_text(tool.definition()), is_json=True))
