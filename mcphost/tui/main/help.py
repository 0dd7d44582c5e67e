"""The help screen: the keys that work now, and what each pane is for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from textual import on, work
from textual.actions import parse
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Static

from mcphost.manual import page, topics
from mcphost.tui.kit.facts_table import Fact, FactsTable
from mcphost.tui.kit.framed import FramedScreen, PickScreen
from mcphost.tui.kit.markdown import render_markdown
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import ScrolledColumn

MARKS = (
    "● ready   ◐ starting or running   ↻ trying again   ✖ failed   ◌ off   ▲ timed out\n"
    "⟨U+202E⟩ and ␛ stand for characters that would hide or reorder text, or command the terminal."
)


TITLES = {
    "McphostApp": "Everywhere",
    "MainScreen": "Navigation",
    "BlockList": "Blocks",
    "PartList": "Blocks",
    "SearchArea": "Search",
    "_ResultArea": "Search",
    "RowList": "In a list",
    "SuggestingBox": "Field",
    "ArgumentForm": "Form",
    "FrameText": "Text",
    "FormElicitationScreen": "Form question",
    "UrlElicitationScreen": "Page question",
    "RootsScreen": "Folders",
}
"""Headings of sections whose class names would not explain themselves."""

_BROKEN: Final = re.compile(r"(?<=[\w,;)]) *\n(?=[a-z])")
"""Where a sentence was broken in the source; the screen wraps it again."""


class HelpScreen(FramedScreen[None]):
    """Lists the bindings from the focused widget outwards."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "back", "back", id="help.back", tooltip="Close the help"),
        Binding("m", "manual", "manual", id="help.manual", tooltip="Read the manual, a page for each topic"),
    ]

    DEFAULT_CSS = """
    HelpScreen {
        & > .frame { width: 90%; max-width: 100; height: 88%; padding: 0 2; }
    }
    """

    def __init__(self, screen: Screen[object], more: str = "") -> None:
        super().__init__()
        self._help, self._more = list(_help_of(screen)), more

    def compose(self) -> ComposeResult:
        with self.framed("Keys", "m manual · esc back", ScrolledColumn()):
            yield FactsTable([*self._help, *_marks(), Fact("", Content(self._more), wide=True)], labels=16)

    @work(exclusive=True)
    async def action_manual(self) -> None:
        """Show the topics of the manual, and each page that is chosen, until the user goes back."""
        known = await asyncio.to_thread(topics)
        name: str | None = None
        while (name := await self.app.push_screen_wait(TopicScreen(known, name))) is not None:
            text = await asyncio.to_thread(page, name)
            lines = await asyncio.to_thread(render_markdown, text)
            await self.app.push_screen_wait(ReaderScreen(f"Manual › {name}", text, markdown=lines))


class TopicScreen(PickScreen[str, str]):
    """Lists the topics of the manual, each with a sentence about it, and that of the cursor in full below."""

    DEFAULT_CSS = """
    TopicScreen {
        .sentence { height: 3; padding: 0 1; border-top: solid $border-blurred; color: $foreground-muted; }
    }
    """

    def __init__(self, about: Mapping[str, str], at: str | None) -> None:
        names = list(about)
        super().__init__("Manual", "read", names, at=0 if at is None else names.index(at))
        self._about, self._width = about, max(map(len, names), default=0)
        self._sentence = Static(markup=False, classes="sentence")

    def row(self, item: str, width: int) -> Content:
        cells = [Cell(item, "bold", self._width, self._width), Cell(self._about[item], "$foreground-muted")]
        return columns(width, cells, gap=2)

    def below(self) -> ComposeResult:
        yield self._sentence

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[str]) -> None:
        event.stop()
        self._sentence.update("" if event.item is None else f"{self._about[event.item]}.")

    def value(self, item: str) -> str:
        return item


def _help_of(screen: Screen[object]) -> Iterator[Fact]:
    chain: list[DOMNode] = list(screen.focused.ancestors_with_self) if screen.focused else [screen, screen.app]
    lists = [node for node in chain if isinstance(node, RowList)]
    seen: set[str] = set()
    active = {key: found.binding.action for key, found in screen.active_bindings.items()}
    for node in [*(node for node in chain if node not in lists), *lists]:
        yield from _section(node, seen, active if isinstance(node, Screen | App) else {})


def _marks() -> Iterator[Fact]:
    yield Fact("", Content.styled("Marks", "bold $text-accent"), wide=True)
    yield Fact("", Content(MARKS), wide=True)


def _section(node: DOMNode, seen: set[str], active: Mapping[str, str]) -> Iterator[Fact]:
    """The purpose of ``node`` and its keys, except those that do something else (``active``) nearer to the focus."""
    text = getattr(type(node), "HELP", None)
    classes = list(_classes_with_bindings(type(node)))
    own = [each for found in classes for each in found.__dict__.get("BINDINGS", ())]
    ours = [each for each in own if isinstance(each, Binding) and not each.system]
    known = [each for each in ours if _action(each) not in seen and not _is_hidden(node, each, ours)]
    bindings = [each for each in known if any(active.get(key, each.action) == each.action for key in _keys(each))]
    if any(each not in bindings for each in known if each in _bindings_beside_help(classes)):
        text = None  # it mentions keys that do something else here
    if not bindings and not isinstance(text, str):
        return
    yield Fact("", Content.styled(_title(node), "bold $text-accent"), wide=True)
    if isinstance(text, str):
        yield Fact("", Content.styled(_BROKEN.sub(" ", text.strip()), "$foreground-muted"), wide=True)
    for binding in bindings:
        seen.add(_action(binding))
        keys = ", ".join(node.app.get_key_display(part) for part in _each_key(binding))
        about = f"  {binding.tooltip}" if binding.tooltip else ""
        yield Fact(f"  {keys}", Content.assemble(binding.description, (about, "$foreground-muted")))
    yield Fact("", Content(""), wide=True)


def _classes_with_bindings(node: type[DOMNode]) -> Iterator[type]:
    """Our classes whose bindings the node has."""
    for each in node.__mro__:
        if each.__module__.startswith("mcphost."):
            yield each
        if not each.__dict__.get("_inherit_bindings", True):
            break


def _bindings_beside_help(classes: Sequence[type]) -> Sequence[object]:
    """The bindings of the class whose help text is shown: those that it mentions."""
    return next((each.__dict__.get("BINDINGS", ()) for each in classes if "HELP" in each.__dict__), ())


def _is_hidden(node: DOMNode, binding: Binding, others: Sequence[Binding]) -> bool:
    """True if it is disabled now while another binding has its key, as with sign-in and sign-out."""
    rivals = [each for each in others if each is not binding and not set(_keys(each)).isdisjoint(_keys(binding))]
    return bool(rivals) and not _is_active(node, binding)


def _action(binding: Binding) -> str:
    return binding.action.removeprefix("screen.")  # the same action, bound by a part of the screen


def _is_active(node: DOMNode, binding: Binding) -> bool:
    _, name, parameters = parse(binding.action)
    return node.check_action(name, parameters) is True


def _keys(binding: Binding) -> list[str]:
    return [key.strip() for key in binding.key.split(",")]


def _each_key(binding: Binding) -> Iterator[Binding]:
    for key in _keys(binding):
        yield Binding(key, binding.action, binding.description)


def _title(node: DOMNode) -> str:
    if type(node).__name__ in TITLES:
        return TITLES[type(node).__name__]
    words = type(node).__name__.removesuffix("Screen").removesuffix("Pane")
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(words))
