"""The help screen: the keys that work now, and what each pane is for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Resize
from textual.geometry import Size
from textual.keys import key_to_character
from textual.screen import Screen
from textual.widgets import Static

from mcphost.manual import page, topics
from mcphost.tui.kit.bindings import bindings_of, is_hidden, keys_of
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.framed import FramedScreen, PickScreen
from mcphost.tui.kit.markdown import render_markdown
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import ScrolledColumn

MARKS = (
    "● ready   ◐ starting or running   ↻ trying again\n"
    "✖ failed   ◌ off   ▲ timed out\n"
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

TWO_COLUMNS: Final = 100
"""Columns of the screen from which the keys are in two columns."""

LABELS: Final = 14
"""Cells for keys; most entries have one or two."""

_BROKEN: Final = re.compile(r"(?<=[\w,;)]) *\n(?=[a-z])")
"""Where a sentence was broken in the source; the screen wraps it again."""


class HelpScreen(FramedScreen[None]):
    """Lists the keys from the focused widget outwards, in two columns where there is room."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "back", "back", id="help.back", tooltip="Close the help"),
        Binding("m", "manual", "manual", id="help.manual", tooltip="Read the manual, a page for each topic"),
    ]

    DEFAULT_CSS = """
    HelpScreen {
        & > .frame { width: 96%; max-width: 150; height: auto; max-height: 92%; padding: 0 1; }
        Horizontal { height: auto; }
        FactsTable { width: 1fr; padding: 0 1; }
    }
    """

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self._sections = [*_help_of(screen), _marks()]
        self._columns = FactsTable(labels=LABELS), FactsTable(labels=LABELS)

    def compose(self) -> ComposeResult:
        with self.framed("Keys", "m manual · esc back", ScrolledColumn()), Horizontal():
            yield from self._columns

    def on_resize(self, event: Resize) -> None:
        left, right = self._columns
        columns = self._split(event.size.width)
        right.display = len(columns) > 1
        for table, facts in zip((left, right), columns, strict=False):
            table.show_facts(facts)

    def _split(self, width: int) -> list[list[Fact]]:
        """The sections in one column, or in two of much the same height."""
        if width < TWO_COLUMNS:
            return [list(chain.from_iterable(self._sections))]
        room = Size(min(width * 96 // 100, 150) // 2 - 4, 0)
        rows = [FactsTable(facts, labels=LABELS).get_content_height(room, room, room.width) for facts in self._sections]
        cut = min(range(1, len(rows) + 1), key=lambda at: max(sum(rows[:at]), sum(rows[at:])))
        return [list(chain.from_iterable(part)) for part in (self._sections[:cut], self._sections[cut:])]

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


def _help_of(screen: Screen[object]) -> Iterator[list[Fact]]:
    chain: list[DOMNode] = list(screen.focused.ancestors_with_self) if screen.focused else [screen, screen.app]
    lists = [node for node in chain if isinstance(node, RowList)]
    found = screen.active_bindings
    active = {key: _action(each.binding) for key, each in found.items() if not each.binding.system}
    seen = {key for node in chain for each in bindings_of(node) for key in keys_of(each) if _is_typed(screen, key)}
    for node in [*(node for node in chain if node not in lists), *lists]:
        if section := list(_section(node, seen, active)):
            yield section


def _marks() -> list[Fact]:
    return [Fact("", Content.styled("Marks", "bold $text-accent"), wide=True), Fact("", Content(MARKS), wide=True)]


def _section(node: DOMNode, seen: set[str], active: Mapping[str, str]) -> Iterator[Fact]:
    """The purpose of ``node`` and its keys, without those that do something else nearer to the focus (``active``), or
    are listed already (``seen``).
    """
    text = getattr(type(node), "HELP", "")
    ours = bindings_of(node)
    keys = {}
    for each in ours:
        free = [key for key in keys_of(each) if key not in seen and active.get(key, _action(each)) == _action(each)]
        if free and not is_hidden(node, each, ours):
            keys[each] = free
            seen.update(free)
    if not keys and not text:
        return
    yield Fact("", Content.styled(_title(node), "bold $text-accent"), wide=True)
    if text:
        yield Fact("", Content.styled(_BROKEN.sub(" ", text.strip()), "$foreground-muted"), wide=True)
    for binding, found in keys.items():
        shown = ", ".join(node.app.get_key_display(Binding(key, binding.action, "")) for key in found)
        yield fact(shown, binding.tooltip or binding.description)
    yield Fact("", Content(""), wide=True)


def _is_typed(screen: Screen[object], key: str) -> bool:
    """True if the focused widget takes the key as a letter."""
    return screen.focused is not None and screen.focused.check_consume_key(key, key_to_character(key))


def _action(binding: Binding) -> str:
    return binding.action.removeprefix("screen.")  # the same action, bound by a part of the screen


def _title(node: DOMNode) -> str:
    if type(node).__name__ in TITLES:
        return TITLES[type(node).__name__]
    words = type(node).__name__.removesuffix("Screen").removesuffix("Pane")
    return "".join(f" {c.lower()}" if c.isupper() and i else c for i, c in enumerate(words))
