"""A conversation as one text that scrolls at once whatever its length, and grows at its end without flicker.

Knows which parts are in view, and lays out no others: the height of what nobody looked at yet is a guess. Refuses to
act: it says what the user points at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from mcphost.host.chat.turns import Turn
from mcphost.tui.widgets.chat_card import UseItem
from mcphost.tui.widgets.chat_items import AnswerItem, Key, NoteItem, SaidItem, ThoughtItem, TranscriptItem, note_of
from mcphost.tui.widgets.chat_layout import legible
from mcphost.tui.widgets.chat_scroll import PartsView
from mcphost.tui.widgets.text_view import MATCHES, matches_in

Place = tuple[TranscriptItem, int, int]
"""A part, a line of it and a column."""


def _key(keys: str, action: str, words: str, tooltip: str, *, show: bool = False) -> Binding:
    return Binding(keys, action, words, show=show, tooltip=tooltip, id=f"chat.{action.partition('(')[0]}.{words}")


class Transcript(PartsView):
    """`show_turns` says what there is; the cursor is on one part of it. At its end it follows what comes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        _key("up,k", "step(-1)", "up", "To the part before, or up in a long one"),
        _key("down,j", "step(1)", "down", "To the next part, or down in a long one"),
        _key("pageup", "page(-1)", "page up", "One page up"),
        _key("pagedown", "page(1)", "page down", "One page down"),
        _key("home", "first", "first", "To the beginning"),
        _key("end", "last", "last", "To the end, and follow what comes"),
        _key("enter,space", "fold", "unfold", "Open or fold a call or thoughts", show=True),
        _key("z", "fold_all", "unfold all", "Open or fold all calls of the conversation"),
    ]
    HELP = (
        "The conversation: ▌ is you, │ a model, ┆ a tool. ↑ ↓ or j k go from part to part, enter opens a call or\n"
        "thoughts, / searches. The row under the cursor has ▸ before it."
    )

    class Moved(Message):
        """The cursor is on another part."""

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        """The first item of each turn."""
        self._ended = 0
        """Turns that were shown when they had ended already."""
        self._open: bool | None = None
        self._matches: dict[TranscriptItem, list[tuple[int, int, int]]] = {}
        self._match: Place | None = None

    # What there is.

    @property
    def turn(self) -> int | None:
        """The number of the turn under the cursor."""
        return None if self.item is None else self.item.key[0]

    def forget(self) -> None:
        """Another conversation comes."""
        self._items, self._starts, self._ended, self._tops, self._sure = [], [], 0, [0], 0
        self._cursor, self._anchor, self.following = None, (0, 0), True
        self._matches, self._match = {}, None

    def show_turns(self, turns: Sequence[Turn]) -> None:
        """Show them; those that had ended when they were shown last are taken to be as they were, but the last."""
        first = min(self._ended, max(0, len(turns) - 1), len(self._starts))
        start = self._starts[first] if first < len(self._starts) else len(self._items)
        old = self._items[start:]
        known: Mapping[Key, TranscriptItem] = {item.key: item for item in old}
        del self._starts[first:], self._items[start:]
        for turn in turns[first:]:
            self._starts.append(len(self._items))
            self._items.extend(items_of(turn, known))
        self._ended = next((number for number in range(first, len(turns)) if not turns[number].state.ended), len(turns))
        changed = old != self._items[start:]
        for number in range(start, len(self._items)):
            changed = self._look_at(number, new=self._items[number].key not in known) or changed
        if changed:
            if self._cursor is not None and self._cursor not in self._items[start:] and self._cursor in old:
                self._cursor = None
            self._sure = min(self._sure, start)
            self._settle()

    def _look_at(self, number: int, *, new: bool) -> bool:
        item = self._items[number]
        beside = number > 0 and isinstance(item, UseItem) and isinstance(self._items[number - 1], UseItem)
        item.gap = 0 if number == 0 or beside else 1
        if new and item.folds and self._open is not None:
            item.folded = not self._open
        return item.refresh()

    # Keys and mouse.

    def action_step(self, direction: int) -> None:
        """Go to another part; in one that is taller than the view, go on in it."""
        if not self._items:
            return
        height, number = self.scrollable_content_region.height, self._number(self.item)
        self._measure(self._room)
        top, bottom = self._tops[number], self._tops[number + 1]
        view = round(self.scroll_y)
        if direction > 0 and bottom > view + height:
            self._go(view + max(1, min(height // 2, bottom - view - height)))
        elif direction < 0 and top < view and self._cursor is not None:
            self._go(view - max(1, min(height // 2, view - top)))
        else:
            self._point(number if self._cursor is None and direction < 0 else number + direction)

    def action_page(self, direction: int) -> None:
        """A page on."""
        height = self.scrollable_content_region.height
        self._go(round(self.scroll_y) + direction * max(1, height - 1))
        if self._items:
            self._measure(self._room)
            row = round(self.scroll_y) + (height - 1 if direction > 0 else 0)
            self._cursor = self._items[self._at(row)]
            self._told()

    def action_first(self) -> None:
        """To the beginning."""
        self._go(0)
        self._point(0)

    def action_last(self) -> None:
        """To the end, and follow it."""
        self._cursor, self.following = None, True
        self._settle()
        self._told()

    def action_fold(self) -> None:
        """Open or fold the part under the cursor."""
        item = self.item
        if item is not None and item.folds:
            self._fold([item], not item.folded)

    def action_fold_all(self) -> None:
        """Open all that folds, or fold it."""
        folding = [item for item in self._items if item.folds]
        self._open = any(item.folded for item in folding)
        self._fold(folding, not self._open)

    def _fold(self, items: Sequence[TranscriptItem], folded: bool) -> None:
        """The part under the cursor stays where it is on the screen."""
        if not items:
            return
        self._measure(self._room)
        number = self._number(self.item)
        self._cursor, self.following = self.item, False
        self._anchor = number, min(round(self.scroll_y) - self._tops[number], 0)
        for item in items:
            item.folded = folded
            item.refresh()
        self._sure = 0
        self._settle()
        self.following = self.scroll_y >= self.max_scroll_y

    def on_click(self, event: events.Click) -> None:
        """One click points, two open or fold."""
        offset = event.get_content_offset(self)
        if offset is None or not self._items or offset.y + round(self.scroll_y) >= self._tops[-1]:
            return
        self._cursor = self._items[self._at(offset.y + round(self.scroll_y))]
        self._told()
        if event.chain == 2:
            self.action_fold()

    def _point(self, number: int) -> None:
        """Put the cursor on a part, and it into view."""
        number = max(0, min(number, len(self._items) - 1))
        if not self._items:
            return
        self._cursor = self._items[number]
        self._lay_out(number, self._room)
        self._measure(self._room)
        height, view = self.scrollable_content_region.height, round(self.scroll_y)
        top, bottom = self._tops[number], self._tops[number + 1]
        if top < view:
            self._go(max(top, bottom - height) if bottom - height < top else bottom - height)
        elif bottom > view + height:
            self._go(min(top, bottom - height) if bottom - top <= height else top)
        self._told()

    def _told(self) -> None:
        self.refresh()
        self.post_message(self.Moved())

    # Searching; see `mcphost.tui.widgets.search.SearchArea`.

    def find(self, query: str) -> list[Place]:
        """Mark every match, at most ``MATCHES``; an empty query marks nothing."""
        for item in self._matches:
            item.laid.strips.clear()
        self._matches, self._match = {}, None
        found = list(islice(self._find(query), MATCHES)) if query else []
        self._sure = 0
        for item, line, start, end in found:
            self._matches.setdefault(item, []).append((line, start, end))
            item.laid.strips.clear()
        self.refresh()
        return [(item, line, start) for item, line, start, _ in found]

    def go_to(self, place: Place | None) -> None:
        """Show one match as the current one, in the middle."""
        for each in (self._match, place):
            if each is not None:
                each[0].laid.strips.clear()
        self._match = place
        if place is not None:
            item, line, column = place
            number = self._number(item)
            self._lay_out(number, self._room)
            self._measure(self._room)
            row = self._tops[number] + item.gap + item.laid.row_of(line, column)
            self._cursor = item
            self._go(row - self.scrollable_content_region.height // 2)
            self._told()
        self.refresh()

    def _find(self, query: str) -> Iterator[tuple[TranscriptItem, int, int, int]]:
        for item in self._items:
            if next(matches_in([legible(item.source)], query), None) is None:
                continue
            if item.folded and item.folds:
                item.folded = False
                item.refresh()
            item.write_lines()
            for place in matches_in((line.text for line in item.laid.lines), query):
                yield item, *place

    def marks_of(self, item: TranscriptItem, line: int) -> Iterator[tuple[int, int, str]]:
        """The matches."""
        for number, start, end in self._matches.get(item, ()):
            if number == line:
                yield start, end, "current" if self._match == (item, line, start) else "match"


def items_of(turn: Turn, known: Mapping[Key, TranscriptItem]) -> Iterator[TranscriptItem]:
    """The parts of a turn, in order; those ``known`` are used again."""
    yield known.get((turn.number, 0, "said")) or SaidItem((turn.number, 0, "said"), turn)
    for number, answer in enumerate(turn.rounds):
        if answer.thought:
            key = turn.number, number, "thought"
            yield known.get(key) or ThoughtItem(key, answer)
        if answer.size:
            key = turn.number, number, "answer"
            yield known.get(key) or AnswerItem(key, answer)
        for place, use in enumerate(answer.uses):
            key = turn.number, number, f"use {place}"
            yield known.get(key) or UseItem(key, use)
    if note_of(turn)[1]:
        key = turn.number, 0, "note"
        yield known.get(key) or NoteItem(key, turn)
