"""The keys that work here and now, and what each pane is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

MARKS = (
    "● ready   ◐ starting or running   ↻ trying again   ✖ failed   ◌ off   ▲ timed out\n"
    "⟨U+202E⟩ and ␛ stand for characters that would hide or reorder text, or command the terminal."
)


class HelpScreen(ModalScreen[None]):
    """Lists the bindings from the focused part outwards."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "back", "back", id="help.back", tooltip="Close the help"),
    ]

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: $background 40%;
        & > VerticalScroll {
            width: 90%; max-width: 100; height: 88%; border: round $accent; background: $surface; padding: 0 2;
        }
    }
    """

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self._lines = list(_help_of(screen))

    def compose(self) -> ComposeResult:
        """A scrolling text."""
        with VerticalScroll() as frame:
            frame.border_title = "Keys"
            frame.border_subtitle = "esc back"
            yield Static(Content("\n").join(self._lines), markup=False)

    def action_back(self) -> None:
        """Close."""
        self.dismiss(None)


def _help_of(screen: Screen[object]) -> Iterator[Content]:
    chain: list[DOMNode] = list(screen.focused.ancestors_with_self) if screen.focused else [screen, screen.app]
    seen: set[str] = set()
    for node in chain:
        yield from _section(node, seen)
    yield Content.styled("Marks", "bold $text-accent")
    yield from (Content(line) for line in MARKS.split("\n"))


def _section(node: DOMNode, seen: set[str]) -> Iterator[Content]:
    text = getattr(type(node), "HELP", None)
    own = type(node).__dict__.get("BINDINGS", ())
    bindings = [each for each in own if isinstance(each, Binding) and not each.system and each.action not in seen]
    if not bindings and not isinstance(text, str):
        return
    yield Content.styled(_title(node), "bold $text-accent")
    if isinstance(text, str):
        yield from (Content.styled(line, "$foreground-muted") for line in text.strip().split("\n"))
    for binding in bindings:
        seen.add(binding.action)
        keys = ", ".join(node.app.get_key_display(part) for part in _each_key(binding))
        about = (binding.tooltip, "$foreground-muted")
        yield Content.assemble("  ", (f"{keys:<18}", "bold"), f" {binding.description:<22}", about)
    yield Content("")


def _each_key(binding: Binding) -> Iterator[Binding]:
    for key in binding.key.split(","):
        yield Binding(key.strip(), binding.action, binding.description)


def _title(node: DOMNode) -> str:
    words = type(node).__name__.removesuffix("Screen").removesuffix("Pane")
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(words))
