"""Renders Markdown that is still growing: finished paragraphs once, and only the last one again each time.

Textual's MarkdownStream does the same with a widget for each block; see `mcphost.tui.chat.transcript` for the cost.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, size_text
from mcphost.tui.kit.json_text import json_spans
from mcphost.tui.kit.markdown import AT_ONCE, Line, render_markdown
from mcphost.tui.kit.text_view import expand_tabs

MOST_CHARACTERS: Final = 400_000
MOST_LINES: Final = 20_000
"""Of one answer; a note says how much more there is."""

LONGEST: Final = 4_000
"""Characters; a longer line is split, so that no line takes more than a frame's time."""

_FENCE: Final = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")


@dataclass(slots=True)
class CodeBlock:
    language: str
    text: str = ""


class GrowingMarkdown:
    """Call `grow` with the whole text each time it has grown; ``lines`` are safe to show."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.codes: list[CodeBlock] = []
        self.behind = False
        """True if there was no time to render all: call `grow` again."""
        self._at = 0
        """The text before this position is rendered for good."""
        self._firm = 0
        """The number of lines that are rendered for good."""
        self._fence = ""
        """The fence that opened the current block of code; empty outside of one."""

    def grow(self, text: str, seconds: float = inf) -> int:
        """Render what is new for about this long; return the first line that changed."""
        changed, until = self._firm, time.monotonic() + seconds
        del self.lines[changed:]
        limit = min(len(text), MOST_CHARACTERS)
        self.behind = False
        while self._at < limit and len(self.lines) < MOST_LINES and not self.behind and self._step(text):
            self.behind = time.monotonic() >= until
        self._firm = len(self.lines)
        if not self.behind:
            self._end(text, limit)
        return changed

    def _end(self, text: str, limit: int) -> None:
        """Render the part that may still change, and note how much is not shown."""
        if limit - self._at > 0 and len(self.lines) < MOST_LINES:
            tail = text[self._at : limit]
            self.lines.extend(self._code_lines(tail) if self._fence else self._spaced(_rendered(tail)))
        left = len(text) - (limit if len(self.lines) < MOST_LINES else self._at)
        if left > 0:
            words = f"… and {size_text(left)} more: o shows all of it, w saves the conversation"
            self.lines.append(Line(words, ((0, len(words), "warn"),)))

    def _step(self, text: str) -> bool:
        """Render one more piece for good; return False at the end."""
        if self._fence:
            return self._code_step(text)
        self._skip_blank_lines(text)
        end = text.find("\n", self._at)
        line = text[self._at : end if end >= 0 else len(text)]
        opens = _FENCE.fullmatch(line)
        if opens and end >= 0:
            self._open(opens)
            self._at = end + 1
            return True
        stop = _piece_end(text, self._at)
        if stop is None:
            return False
        self.lines.extend(self._spaced(_rendered(text[self._at : stop])))
        self._at = stop
        return True

    def _skip_blank_lines(self, text: str) -> None:
        while (end := text.find("\n", self._at)) >= 0 and not text[self._at : end].strip():
            self._at = end + 1

    def _spaced(self, lines: list[Line]) -> Iterator[Line]:
        if self.lines and lines:
            yield Line("")
        yield from lines

    # Blocks of code.

    def _open(self, opens: re.Match[str]) -> None:
        self._fence = opens["fence"]
        language = show(opens["info"].strip()[:40])
        self.codes.append(CodeBlock(language))
        label = language or "code"
        self.lines.extend(self._spaced([Line(label, ((0, len(label), "mark"),))]))

    def _code_step(self, text: str) -> bool:
        end = text.find("\n", self._at, self._at + AT_ONCE)
        if end < 0:
            if len(text) - self._at < AT_ONCE:
                return False
            end = self._at + AT_ONCE
            self._add_code(text[self._at : end])
            self._at = end
            return True
        line = text[self._at : end]
        self._at = end + 1
        if _closes(line, self._fence):
            self._fence = ""
        else:
            self._add_code(line + "\n")
        return True

    def _add_code(self, text: str) -> None:
        self.codes[-1].text += text
        self.lines.extend(self._code_lines(text.removesuffix("\n")))

    def _code_lines(self, text: str) -> Iterator[Line]:
        if _closes(text, self._fence):
            return
        as_json = self.codes[-1].language == "json"
        for line in map(expand_tabs, legible(text).split("\n")):
            for piece in pieces(line):
                spans = [(start + 2, end + 2, part) for start, end, part in json_spans(piece)] if as_json else []
                yield Line(f"  {piece}", ((2, 2 + len(piece), "code"), *spans), "  ")


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]} and len(line) - len(line.lstrip(" ")) <= 3


def _piece_end(text: str, start: int) -> int | None:
    """Where the paragraph, list or table at ``start`` ends for certain; None while it may continue."""
    at, blank = start, False
    while (end := text.find("\n", at)) >= 0:
        line = text[at:end]
        if at > start and (_FENCE.fullmatch(line) or (blank and line.strip() and not line[0].isspace())):
            return at
        blank, at = not line.strip(), end + 1
        if at - start > AT_ONCE:
            return at if at - start < 2 * AT_ONCE else start + AT_ONCE
    if blank and text[at : at + 1].strip():
        return at
    return start + AT_ONCE if len(text) - start > AT_ONCE else None


def _rendered(text: str) -> list[Line]:
    shown = legible(text)
    lines = render_markdown(shown, breaks=True)
    if lines is None:
        return list(plain_lines(shown.strip("\n")))
    return [piece for line in lines for piece in _cut(line)]


def _cut(line: Line) -> Iterator[Line]:
    return iter((line,)) if len(line.text) <= 2 * AT_ONCE else iter(plain_lines(line.text))


def legible(text: str) -> str:
    """Make text from a model or a tool safe to show.

    Emoji stay whole, except for the variation selector: terminals disagree on its width, and would shift the rest of
    the row.
    """
    return show(text, joiners=True).replace("\ufe0f", "")


def plain_lines(text: str, *, indent: str = "", part: str = "") -> Iterable[Line]:
    """The lines of a safe text, all in one style."""
    for line in map(expand_tabs, text.split("\n")):
        for piece in pieces(line):
            shown = indent + piece
            yield Line(shown, ((len(indent), len(shown), part),) if part else (), indent)


def pieces(line: str) -> Iterable[str]:
    """Split a line that is longer than `LONGEST`."""
    if len(line) <= LONGEST:
        yield line
    else:
        yield from (line[start : start + LONGEST] for start in range(0, len(line), LONGEST))
