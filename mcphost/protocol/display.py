"""Makes untrusted text safe to show: the one place that all such text passes before a widget or the terminal.

Control characters, and characters that hide or reorder text, become visible marks. Nothing is dropped: a dropped
character would still reach the model while the user saw nothing. The result is plain text; never pass it to a markup
parser.
"""

from __future__ import annotations

import json
import re
import textwrap
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable

MARKS_PER_BASE = 4
"""Combining marks kept after one base character; real writing needs three, more overprint other lines."""

_LINE_BUDGET = 100_000
"""Characters of a text that ``show_line`` processes; more could not fit on a line."""

TAB = 8
"""Cells from one tab stop to the next, as terminals have them and programs expect them."""

_ZWJ, _EMOJI_SELECTORS = "\u200d", "\ufe0e\ufe0f"
_INVISIBLE = (  # bidi controls, zero-width, fillers, tags, selectors and the other format controls, as ranges
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
_EMPTY_BRAILLE = "\u2800++"
_LONE_EMPTY_BRAILLE = "(?<![\u2800-\u28ff])\u2800++(?![\u2801-\u28ff])"  # not part of a picture made of dots
_HIDDEN = f"[{_INVISIBLE}\u2800]"
_HIDDEN_IN_RESULTS = f"[{_INVISIBLE}]|{_LONE_EMPTY_BRAILLE}"
_MARKED = re.compile(f"[{_CONTROLS}{_INVISIBLE}]|{_EMPTY_BRAILLE}")
_MARKED_IN_RESULTS = f"[{_CONTROLS}{_INVISIBLE}]|{_LONE_EMPTY_BRAILLE}"
_EMOJI = (  # the blocks of the symbols that have an emoji shape
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_KEYCAP = "\u20e3"
# Letters, blanks and the blocks of plain symbols: ranges without a character of the categories Mn and Me, in which most
# text is, so that `_thin_out` seldom runs. A test compares them with unicodedata; split a range that it reports.
_NEVER_COMBINING = r"\w\s\x00-\u02ff\u2000-\u200c\u200e-\u20cf\u2100-\u2cee\u2e00-\u3029\U0001f000-\U0001faff"
_MAYBE_COMBINING = rf"[^{_NEVER_COMBINING}]{{{MARKS_PER_BASE + 1},}}"
_UNSAFE_ASCII = bytes(code for code in range(128) if (code < 32 and code not in b"\t\n") or code == 127)
_BLANKS = " \u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_BLANK_RUN = re.compile(rf"\n{{4,}}|\t{{4,}}|[{_BLANKS}]{{4,}}")
_UNITS = (("kB", 1e3), ("MB", 1e6), ("GB", 1e9))
_LARGEST = 10**18  # bytes; larger claims are clamped, since they may exceed any arithmetic
_LINE_MARKS = {"\n": "⏎", "\t": "→"}


def show(text: str, *, limit: int | None = None, joiners: bool = False) -> str:
    r"""Return ``text`` with every control, reordering and invisible character as a visible mark.

    Newlines, tabs and printable characters stay; ``\r\n`` becomes ``\n``. The result has at most ``limit`` characters,
    then " … 193 kB more"; a text that is no longer than that is not cut. ``joiners`` keeps what emoji and pictures made
    of Braille dots need: for results only, never for names, arguments or URLs.
    """
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _mark(text, joiners) if limit is None else _cut(text, limit, joiners, beyond=0)


def show_line(text: str, limit: int = 200) -> str:
    """``show`` on one line: newlines as ``⏎``, tabs as ``→``, four or more blanks in a row as ``␣×5000``.

    A digit that follows such a count is set apart by a blank.
    """
    beyond = _utf8_size(text[_LINE_BUDGET:])
    line = _BLANK_RUN.sub(_count_blanks, text[:_LINE_BUDGET].replace("\r\n", "\n"))
    return _cut(line.replace("\n", "⏎").replace("\t", "→"), limit, False, beyond)


def unindented(description: str) -> str:
    """A description without the indentation that its lines have from the source code of its server."""
    first, newline, rest = description.partition("\n")
    return f"{first.lstrip()}{newline}{textwrap.dedent(rest)}"


def show_name(name: object, limit: int = 200) -> str:
    """An untrusted name, or another JSON value, as JSON on one line: the quotes set it apart from mcphost's words."""
    return show_line(json.dumps(name, ensure_ascii=False), limit)


def enumerated(names: Iterable[str]) -> str:
    """``a, b and c``; empty for nothing."""
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def readable_label(label: str) -> str:
    """Decode the ``xn--`` form of a host name label; other labels are unchanged. The result is not safe to show."""
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except (ValueError, OverflowError):
        return label


def hidden_count(text: str) -> int:
    """The number of invisible and reordering characters in ``text``."""
    return 0 if text.isascii() else len(re.findall(_HIDDEN, text))


def hidden_in(value: object) -> int:
    """The number of hidden characters in a JSON value, without those that emoji need."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isascii():
        return 0
    hidden = (found for found in re.finditer(_HIDDEN_IN_RESULTS, text) if _mark_unless_joining(found) != found[0])
    return sum(len(found[0]) for found in hidden)


def size_text(bytes: int) -> str:
    """``412 B``, ``14 kB``, ``1.4 MB``: a size for people; 1 kB is 1000 bytes."""
    bytes = max(0, min(bytes, _LARGEST))
    if bytes < 1000:
        return f"{bytes} B"
    unit, factor = next((unit for unit in _UNITS if bytes < 999.5 * unit[1]), _UNITS[-1])
    size = bytes / factor
    return f"{size:.1f} {unit}" if size < 9.95 else f"{size:.0f} {unit}"


def duration_text(seconds: float) -> str:
    """``31 ms``, ``1.2 s``, ``3 min 5 s``, ``2 h 10 min``: a duration for people."""
    if not seconds >= 0.0005:  # also negative, from a clock that was set back, and NaN
        return "0 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = round(min(seconds, 1e12))
    if whole < 3600:
        return _two_units(whole, 60, "min", "s")
    return _two_units(whole // 60, 60, "h", "min") if whole < 86400 else _two_units(whole // 3600, 24, "d", "h")


def age_text(seconds: float) -> str:
    """``just now``, ``3 min ago``, ``5 h ago``, ``2 d ago``."""
    if not seconds >= 60:
        return "just now"
    for step, unit in ((86400, "d"), (3600, "h")):
        if seconds >= step:
            return f"{min(seconds, 1e12) // step:.0f} {unit} ago"
    return f"{seconds // 60:.0f} min ago"


def _two_units(amount: int, ratio: int, big: str, small: str) -> str:
    count, rest = divmod(amount, ratio)
    return f"{count} {big} {rest} {small}" if rest else f"{count} {big}"


def _mark(text: str, joiners: bool) -> str:
    if text.isascii() and len(text.encode("ascii").translate(None, _UNSAFE_ASCII)) == len(text):
        return text
    text = re.sub(_MARKED_IN_RESULTS, _mark_unless_joining, text) if joiners else _MARKED.sub(_mark_one, text)
    return text if text.isascii() else re.sub(_MAYBE_COMBINING, _thin_out, text)


def _mark_one(match: re.Match[str]) -> str:
    code = ord(match[0][0])
    if len(match[0]) > 1:
        return f"⟨U+{code:04X}×{len(match[0])}⟩"
    if code < 32:
        return chr(0x2400 + code)
    if code == 127:
        return "␡"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"


def _mark_unless_joining(match: re.Match[str]) -> str:
    """Keep one selector after an emoji or in a keycap, and one ZWJ after a non-ASCII base; mark all others."""
    character, start = match[0], match.start()
    before, after = match.string[max(start - 1, 0) : start].strip(), match.string[match.end() : match.end() + 1]
    keycap = before != "" and before in "0123456789#*" and after == _KEYCAP
    selects = character in _EMOJI_SELECTORS and (keycap or re.match(_EMOJI, before) is not None)
    joins = character == _ZWJ and not before.isascii() and before != _ZWJ
    return character if selects or joins else _mark_one(match)


def _thin_out(match: re.Match[str]) -> str:
    """Keep a few combining marks after each base, and count the others."""
    kept: list[str] = []
    run = 0
    for character in match[0]:
        if unicodedata.category(character) in ("Mn", "Me"):
            run += 1
        elif character != _ZWJ:
            _count_marks(kept, run)
            run = 0
        if run <= MARKS_PER_BASE:
            kept.append(character)
    _count_marks(kept, run)
    return "".join(kept)


def _count_marks(kept: list[str], run: int) -> None:
    if run > MARKS_PER_BASE:
        kept.append(f"⟨{run - MARKS_PER_BASE} more marks⟩")


def _count_blanks(match: re.Match[str]) -> str:
    apart = " " if match.string[match.end() : match.end() + 1].isdigit() else ""
    return f"{_LINE_MARKS.get(match[0][0], '␣')}×{len(match[0])}{apart}"


def _cut(text: str, limit: int, joiners: bool, beyond: int) -> str:
    """Show as much of ``text`` as fits in ``limit`` characters; ``beyond`` bytes were left out before."""
    shown = _mark(text[:limit], joiners)
    fits = min(limit, len(text))
    if len(shown) > limit:  # marks are longer than what they stand for, and must not be cut in two
        fits = bisect_right(range(limit), limit, key=lambda count: len(_mark(text[:count], joiners))) - 1
        shown = _mark(text[:fits], joiners)
    rest = _utf8_size(text[fits:]) + beyond
    if not rest:
        return shown
    cut = f"{shown} … {size_text(rest)} more"
    if not beyond and len(text) <= len(cut) and len(whole := _mark(text, joiners)) <= len(cut):
        return whole
    return cut


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
