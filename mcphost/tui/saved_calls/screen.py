"""The list of saved calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, Literal, NamedTuple

from rich.cells import cell_len
from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.config.calls import LoadedCalls, SavedCall
from mcphost.protocol.display import show_line
from mcphost.tui.kit.framed import ListScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.saved_calls.name import argument_lines, value_text

EMPTY: Final = "No saved calls.\nctrl+s in a form or on a result saves the call under a name."

AROUND: Final = 11
"""Rows for the details of a call and the filter."""

PROBLEMS: Final = 3
"""Mistakes in the file that are shown."""


class SavedCallChoice(NamedTuple):
    call: SavedCall
    action: Literal["open", "run"]


class SavedCallsScreen(ListScreen[SavedCall, SavedCallChoice | None]):
    """Dismissed with a call and what to do with it. ``remove`` deletes a call and returns those that are left, or None
    if it did not.
    """

    HELP = (
        "Named calls of calls.toml, grouped by server. Opening one fills in its form; running one asks you first, like "
        "any call. On the command line: mcphost run NAME."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,ctrl+enter", "run", "run", id="saved.run", tooltip="Run the call; you are asked first"),
        Binding("x,delete", "remove", "delete", id="saved.remove", tooltip="Delete the call from the file"),
        Binding("escape,A,alt+s", "back", "back", id="saved.back", tooltip="Close"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    SavedCallsScreen {
        & > .frame { width: 94%; max-width: 140; max-height: 80%; }
        .details { max-height: 9; }
    }
    """

    def __init__(
        self, loaded: LoadedCalls, remove: Callable[[SavedCall], Awaitable[LoadedCalls | None]], *, at: str = ""
    ) -> None:
        super().__init__("Saved calls", "", EMPTY)
        self._loaded, self._remove, self._at = loaded, remove, at
        self._first = set[str]()
        """The names of the first call of each server."""
        self._widths = (0, 0)

    def row(self, item: SavedCall, width: int) -> Content:
        server, name = self._widths
        shown = item.server if item.name in self._first or self.list.filtered else ""
        called = f"{'' if item.tool is not None else f'{item.kind} '}{show_line(item.target, 80)}"
        cells = [
            Cell(self.list.search.mark(shown), "bold $text-accent", min(server, 5), min(server, width // 4)),
            Cell(self.list.search.mark(item.name), "bold", min(name, 8), min(name, width // 3)),
            Cell(self.list.search.mark(called), "", 8, min(32, width // 3)),
        ]
        cells += [Cell(_arguments(item), "$foreground-muted")] if width >= 60 else []
        return columns(width, cells, gap=2)

    def search_text(self, item: SavedCall) -> SearchText:
        return SearchText(item.name, item.target, item.server, more=_arguments(item))

    def on_mount(self) -> None:
        super().on_mount()
        names = [each.name for each in self.list.all]
        if self._at in names:
            self.rows.highlighted = names.index(self._at)

    def refresh_rows(self) -> None:
        servers = list(dict.fromkeys(each.server for each in self._loaded.calls))
        calls = sorted(self._loaded.calls, key=lambda each: servers.index(each.server))
        self._first = {*{each.server: each.name for each in reversed(calls)}.values()}
        self._widths = max(map(len, servers), default=0), max((cell_len(each.name) for each in calls), default=0)
        self.list.show_items(calls, keep=lambda each: each.name)
        self.fit_height(len(calls) + AROUND)
        self.frame.border_title = Content(f"Saved calls · {len(calls)}" if calls else "Saved calls")
        self.show_details()

    def show_details(self) -> None:
        item, problems = self.rows.item, self._loaded.problems
        lines = [] if item is None else [_title(item), *([argument_lines(item.shown)] if item.arguments else [])]
        # First, or they might be below the end of what is in view.
        lines[:0] = [Content.styled(f"▲ {show_line(str(each), 200)}", "$text-warning") for each in problems[:PROBLEMS]]
        self.details.display = bool(lines)
        self.details.update(Content("\n").join(lines))
        keys = "enter open · ctrl+r run · x delete · / filter · esc back"
        self.frame.border_subtitle = Content("esc back" if item is None else keys)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.rows.item is not None if action in ("run", "remove") else True

    @on(RowList.Selected)
    def _open(self, event: RowList.Selected[SavedCall]) -> None:
        event.stop()
        self.dismiss(SavedCallChoice(event.item, "open"))

    def action_run(self) -> None:
        if self.rows.item is not None:
            self.dismiss(SavedCallChoice(self.rows.item, "run"))

    def action_remove(self) -> None:
        if self.rows.item is not None:
            self.run_worker(self._take_out(self.rows.item), exclusive=True)

    async def _take_out(self, call: SavedCall) -> None:
        left = await self._remove(call)
        if left is not None:
            self._loaded = left
            self.refresh_rows()


def _title(call: SavedCall) -> Content:
    return Content.assemble((call.name, "bold"), f"  {call.kind} {call.server} › {show_line(call.target, 200)}")


def _arguments(call: SavedCall) -> str:
    return " ".join(f"{show_line(name, 40)}={value_text(value)}" for name, value in call.shown.items())
