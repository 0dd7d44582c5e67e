"""The arguments of a call that is asked about, row by row: nothing of them folded away, and what hides counted.

Knows values. Refuses to know the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from mcphost.protocol.display import hidden_count, show, show_line, size_text
from mcphost.tui.widgets.json_text import json_text

SHOWN_CHARACTERS: Final = 20_000
"""Of one argument. More is said in numbers; then all of it must have been read (`v`) before it can be allowed."""

PADDING: Final = re.compile(r"(?:[^\S\n]*\n){4,}|[^\S\n]{24,}")
"""Blanks that could push something out of sight; shorter ones are somebody's indentation."""


def row(label: str, value: str | Content, style: str = "") -> Horizontal:
    """A label and its value; foreign text in either has been made safe."""
    text = value if isinstance(value, Content) else Content.styled(value, style)
    return Horizontal(
        Static(label, classes="label", markup=False), Static(text, classes="value", markup=False), classes="row"
    )


def argument_rows(arguments: Mapping[str, Any], *, edited: bool) -> Iterator[Widget]:
    """How many there are, then each."""
    yield row("arguments", _count(arguments, edited=edited))
    for name, value in arguments.items():
        yield row(show_line(name, 60), _value(value))


def _count(arguments: Mapping[str, Any], *, edited: bool) -> Content:
    words = "none" if not arguments else str(len(arguments))
    return Content.assemble(words, (" · edited by you" if edited else "", "bold $text-warning"))


def _value(value: object) -> Content:
    text = text_of(value)
    shown = Content(show(PADDING.sub(_counted, text), limit=SHOWN_CHARACTERS))
    notes = []
    if len(text) > 80 or "\n" in text:
        size = size_text(len(text.encode("utf-8", "replace")))
        notes.append(f"{len(text):,} characters, {text.count(chr(10)) + 1} lines, {size}")
    if hidden := hidden_count(text):
        notes.append(f"{hidden} invisible characters")
    if not notes:
        return shown
    return Content.assemble(shown, "\n", (f"({'; '.join(notes)})", "$foreground-muted"))


def text_of(value: object) -> str:
    """A value as it is read."""
    return value if isinstance(value, str) else json_text(value)


def _counted(padding: re.Match[str]) -> str:
    lines = padding[0].count("\n")
    return f"\n⏎×{lines:,}\n" if lines else f" {show_line(padding[0], 10_000)} "
