"""Searching the texts on screen: the line for the query, and the marks of the matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from mcphost.tui.kit.text_view import MATCHES, TextView


class SearchBar(Horizontal):
    """The line for the query, and the number of the current match."""

    DEFAULT_CSS = """
    SearchBar { dock: bottom; height: 1; background: $boost; display: none; }
    SearchBar.-open { display: block; }
    SearchBar > .mark { width: 2; color: $text-accent; }
    SearchBar > Input { width: 1fr; height: 1; border: none; padding: 0; background: $boost; }
    SearchBar > Input:focus { border: none; }
    SearchBar > .found { width: auto; padding: 0 1; color: $foreground-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.input = Input(placeholder="words to find, then enter", compact=True)
        self._found = Static("", classes="found", markup=False)

    def open(self) -> None:
        """Show and focus it."""
        if not self.children:  # most texts are never searched
            self.mount(Static("/", classes="mark", markup=False), self.input, self._found)
        self.add_class("-open")
        self.input.focus()

    def show_status(self, words: str) -> None:
        """Show the number of the match, or that nothing matched."""
        self._found.update(words)


class Searchable(Protocol):
    """A text that can be searched."""

    def find(self, query: str) -> Sequence[Any]:
        """Mark every match and return them; an empty query removes the marks."""

    def go_to(self, match: Any) -> None:
        """Make this match the current one, or with None no match."""


class SearchArea(Vertical):
    """Holds one or more `TextView`. ``/`` searches those on screen in order; ``n`` and ``N`` go to other matches."""

    DEFAULT_CSS = """
    SearchArea { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", id="search.open", tooltip="Find words in this pane"),
        Binding("n", "go(1)", "next match", show=False, id="search.next", tooltip="Go to the next match"),
        Binding("N", "go(-1)", "previous match", show=False, id="search.previous", tooltip="Go to the previous match"),
        Binding("escape", "close_search", "end search", id="search.close", tooltip="Close the search"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.bar = SearchBar()
        self._matches: list[tuple[Searchable, Any]] = []
        self._at = 0
        self._query = ""
        self._return_focus_to: Widget | None = None

    def compose(self) -> ComposeResult:
        yield self.bar

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "go":
            return bool(self._matches)
        return self.bar.has_class("-open") if action == "close_search" else True

    def forget_search(self) -> None:
        """Forget the matches, whose text is gone, and close the search."""
        self._matches, self._at, self._query = [], 0, ""
        self.bar.remove_class("-open")

    def forget_matches(self) -> None:
        """Forget the matches, whose text is gone, until `search_again`."""
        self._matches = []

    def search_again(self) -> None:
        """Find the words of an open search in the present texts. Nothing moves, and what is typed stays."""
        if self._query:
            self.make_searchable()
            self.call_after_refresh(self._find_again)

    def make_searchable(self) -> None:
        """Called before a search: a subclass shows other views as text views."""

    def searched(self) -> Sequence[Searchable]:
        """The texts to search, in order."""
        return [view for view in self.query(TextView) if _on_screen(view)]

    def action_search(self) -> None:
        self._return_focus_to = self.screen.focused
        self.bar.open()

    def action_close_search(self) -> None:
        self._find_all("")
        self._query = ""
        self._restore_focus()
        self.bar.remove_class("-open")
        self.refresh_bindings()

    def action_go(self, step: int) -> None:
        """Go to another match, and from the last one to the first."""
        if self._matches:
            self._go_to((self._at + step) % len(self._matches))

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.make_searchable()
        self.call_after_refresh(self._start, event.value)

    def _start(self, query: str) -> None:
        self._query = query
        self._find_all(query)
        self._restore_focus()
        if self._matches:
            self._go_to(0)
        self._show_place()
        self.refresh_bindings()

    def _find_again(self) -> None:
        at = self._at
        self._find_all(self._query)
        self._at = max(0, min(at, len(self._matches) - 1))
        self._show_place()
        self.refresh_bindings()

    def _restore_focus(self) -> None:
        before = self._return_focus_to
        if self.bar.input.has_focus and before is not None and not before.is_attached:  # replaced meanwhile
            before = next((each for each in self.query() if each.focusable), None)
        if self.bar.input.has_focus:
            self.screen.set_focus(before)

    def _find_all(self, query: str) -> None:
        self._matches = [(view, match) for view in self.searched() for match in view.find(query)]
        self._at = 0
        self.bar.show_status("")

    def _go_to(self, number: int) -> None:
        self._matches[self._at][0].go_to(None)
        self._at = number
        view, match = self._matches[number]
        view.go_to(match)
        self._show_place()

    def _show_place(self) -> None:
        """Show the number of the current match."""
        if not self._matches:
            self.bar.show_status("no match")
            return
        more = " or more" if len(self._matches) >= MATCHES else ""
        self.bar.show_status(f"{self._at + 1} of {len(self._matches)}{more} · n next · esc end")


def _on_screen(view: TextView) -> bool:
    return all(node.display for node in view.ancestors_with_self if isinstance(node, Widget))
