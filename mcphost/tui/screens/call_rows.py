"""The arguments of a call that is asked about, row by row: nothing of them folded away, and what hides counted.

Knows values. Refuses to know the question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from mcphost.host.borrowing import NOTHING, Borrowed, Borrowing
from mcphost.protocol.display import hidden_count, show, show_line, size_text
from mcphost.tui.widgets.json_text import json_text

SHOWN_CHARACTERS: Final = 20_000
"""Of one argument. More is said in numbers; then all of it must have been read (``v``) before it can be allowed."""

SHOWN_ARGUMENTS: Final = 300
"""Rows: a model may want a call with tens of thousands, which no screen lays out in time."""

LABEL: Final = 60
"""Characters of an argument's name before it: a longer one is shown in full above."""

LOOKED_THROUGH: Final = 5 * SHOWN_CHARACTERS
"""Characters of JSON in which borrowed words are looked for: blanks that are counted are not shown."""

PADDING: Final = re.compile(r"(?:[^\S\n]*\n){4,}|[^\S\n]{24,}")
"""Blanks that could push something out of sight; shorter ones are somebody's indentation."""


BORROWED: Final = "underline"
"""What stood elsewhere before; a line below says so in words."""


def row(label: str, value: str | Content, style: str = "") -> Horizontal:
    """A label and its value; foreign text in either has been made safe."""
    text = value if isinstance(value, Content) else Content.styled(value, style)
    return Horizontal(
        Static(label, classes="label", markup=False), Static(text, classes="value", markup=False), classes="row"
    )


def argument_rows(arguments: Mapping[str, Any], *, edited: bool, borrowed: Borrowing = NOTHING) -> Iterator[Widget]:
    """How many there are, then each; what is ``borrowed`` from elsewhere is underlined and said below."""
    yield row("arguments", _count(arguments, edited=edited))
    for name, value in islice(arguments.items(), SHOWN_ARGUMENTS):
        if len(name) > LABEL:
            yield row("name", _shown(name, ()))
        yield row(show_line(name, LABEL), _value(value, borrowed, name))
    if (more := len(arguments) - SHOWN_ARGUMENTS) > 0:
        yield row("beware", f"{more:,} more arguments are not shown here", "bold $text-error")
    if borrowed.note:
        yield row("beware", show_line(borrowed.note, 400), "$text-warning")


def is_cut(arguments: Mapping[str, Any]) -> bool:
    """Is there more of them than `argument_rows` shows?"""
    texts = (text for name, value in arguments.items() for text in (name, text_of(value)))
    return len(arguments) > SHOWN_ARGUMENTS or any(len(text) > SHOWN_CHARACTERS for text in texts)


def _count(arguments: Mapping[str, Any], *, edited: bool) -> Content:
    words = "none" if not arguments else str(len(arguments))
    return Content.assemble(words, (" · edited by you" if edited else "", "bold $text-warning"))


def _value(value: object, borrowed: Borrowing, name: str) -> Content:
    text = text_of(value)
    lines = [_shown(text, _stretches(value, text, borrowed.of(name)))]
    lines.extend(Content.styled(f"▲ {words}", "$text-warning") for words in borrowed.words(name))
    if notes := "; ".join(_notes(text)):
        lines.append(Content.styled(f"({notes})", "$foreground-muted"))
    return Content("\n").join(lines)


def _notes(text: str) -> Iterator[str]:
    if len(text) > 80 or "\n" in text:
        size = size_text(len(text.encode("utf-8", "replace")))
        yield f"{len(text):,} characters, {text.count(chr(10)) + 1} lines, {size}"
    if hidden := hidden_count(text):
        yield f"{hidden} invisible characters"


def _shown(text: str, stretches: Iterable[tuple[int, int]]) -> Content:
    """The text, made safe piece by piece: what is marked in it grows where its characters do."""
    parts: list[Content] = []
    at, room = 0, SHOWN_CHARACTERS
    for start, end in stretches:
        for piece, style in ((text[at:start], ""), (text[start:end], BORROWED)):
            shown = show(PADDING.sub(_counted, piece))
            if len(shown) > room:
                return Content("").join([*parts, Content(show(PADDING.sub(_counted, text[at:]), limit=room))])
            parts.append(Content.styled(shown, style))
            at, room = at + len(piece), room - len(shown)
    return Content("").join([*parts, Content(show(PADDING.sub(_counted, text[at:]), limit=room))])


def _stretches(value: object, text: str, marks: Iterable[Borrowed]) -> Iterator[tuple[int, int]]:
    """Where in ``text``, which is how ``value`` is read, something is borrowed: in order, none in another."""
    here = [mark for mark in marks if len(mark.path) > 1 or not mark.is_name]  # else it is in the row's label
    if isinstance(value, str):
        places = {(mark.start, mark.end) for mark in here}
    else:
        places = {place for words in {mark.text for mark in here} for place in _written(words, text)}
    done = 0
    for start, end in sorted(places):
        if end > done:
            yield max(start, done), end
            done = end


def _written(words: str, text: str) -> Iterator[tuple[int, int]]:
    """Wherever these words stand in JSON: the same words are borrowed there as well."""
    written = json.dumps(words, ensure_ascii=False)[1:-1]
    start = text.find(written, 0, LOOKED_THROUGH)
    while start >= 0:
        yield start, start + len(written)
        start = text.find(written, start + len(written), LOOKED_THROUGH)


def text_of(value: object) -> str:
    """A value as it is read."""
    return value if isinstance(value, str) else json_text(value)


def _counted(padding: re.Match[str]) -> str:
    lines = padding[0].count("\n")
    return f"\n⏎×{lines:,}\n" if lines else f" {show_line(padding[0], 10_000)} "
