"""Looking for words in what is on screen: a line to type them in, and a mark on every place."""

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
    """Where what to look for is typed, and which of how many places is shown."""

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
        self.input = Input(placeholder="what to look for, then enter", compact=True)
        self._found = Static("", classes="found", markup=False)

    def compose(self) -> ComposeResult:
        """A slash, the words, the count."""
        yield Static("/", classes="mark", markup=False)
        yield self.input
        yield self._found

    def say(self, words: str) -> None:
        """Which match this is, or that there is none."""
        self._found.update(words)


class Searchable(Protocol):
    """A text in which words can be found."""

    def find(self, query: str) -> Sequence[Any]:
        """Mark every match and return where they are; an empty query marks nothing."""

    def go_to(self, match: Any) -> None:
        """Show one match as the current one; None: none is."""


class SearchArea(Vertical):
    """Holds one or more `TextView`; ``/`` searches those on screen, in order, ``n`` and ``N`` go on."""

    DEFAULT_CSS = """
    SearchArea { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", id="search.open", tooltip="Look for words in what is shown"),
        Binding("n", "go(1)", "next match", show=False, id="search.next", tooltip="Go to the next match"),
        Binding("N", "go(-1)", "match before", show=False, id="search.previous", tooltip="Go to the match before"),
        Binding("escape", "close_search", "end search", id="search.close", tooltip="Take the marks of the search away"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.bar = SearchBar()
        self._matches: list[tuple[Searchable, Any]] = []
        self._at = 0
        self._asked_from: Widget | None = None

    def compose(self) -> ComposeResult:
        yield self.bar

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Going on needs a match, closing an open bar."""
        if action == "go":
            return bool(self._matches)
        return self.bar.has_class("-open") if action == "close_search" else True

    def forget_search(self) -> None:
        """What was searched is gone."""
        self._matches, self._at = [], 0
        self.bar.remove_class("-open")

    def make_searchable(self) -> None:
        """For an area that shows some text in another way: turn it into text views now."""

    def searched(self) -> Sequence[Searchable]:
        """What is searched, in order."""
        return [view for view in self.query(TextView) if _on_screen(view)]

    def action_search(self) -> None:
        self._asked_from = self.screen.focused
        self.bar.add_class("-open")
        self.bar.input.focus()

    def action_close_search(self) -> None:
        """Take the marks away and give the focus back."""
        self._look_for("")
        self._give_focus_back()
        self.bar.remove_class("-open")
        self.refresh_bindings()

    def action_go(self, step: int) -> None:
        """Go to another match; after the last comes the first."""
        if self._matches:
            self._go_to((self._at + step) % len(self._matches))

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search, and go to the first match."""
        event.stop()
        self.make_searchable()
        self.call_after_refresh(self._start, event.value)

    def _start(self, query: str) -> None:
        self._look_for(query)
        self._give_focus_back()
        if self._matches:
            self._go_to(0)
        else:
            self.bar.say("nothing found")
        self.refresh_bindings()

    def _give_focus_back(self) -> None:
        if self.bar.input.has_focus:
            self.screen.set_focus(self._asked_from)

    def _look_for(self, query: str) -> None:
        self._matches = [(view, match) for view in self.searched() for match in view.find(query)]
        self._at = 0
        self.bar.say("")

    def _go_to(self, number: int) -> None:
        self._matches[self._at][0].go_to(None)
        self._at = number
        view, match = self._matches[number]
        view.go_to(match)
        more = " or more" if len(self._matches) >= MATCHES else ""
        self.bar.say(f"{number + 1} of {len(self._matches)}{more} · n next · esc end")


def _on_screen(view: TextView) -> bool:
    return all(node.display for node in view.ancestors_with_self if isinstance(node, Widget))
