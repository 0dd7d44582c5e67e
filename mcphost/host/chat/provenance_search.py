r"""Which stretches of a call's arguments the model read somewhere that the receiving server does not see.

Compared is what is left when blanks, punctuation, capitals, JSON's escapes (``\n``, ``\u00e9``) and URLs' (``%20``) are
taken away. Marked is each stretch of at least `STRETCH` letters and digits that a passage of another server contains,
of a file or of the instructions; and each whole word of such a passage, from `SECRET` characters on, that looks like a
key, a number or an address. Names of values count as values do, numbers by their digits. A run of base64 or hex that
decodes to such text is marked whole. What the receiving server said itself is not marked.

Not seen: what was translated, put in other words, spelled backwards, cut into pieces shorter than this, encoded in any
other way or twice, and what was in pictures. So a mark is a fact, and its absence no proof.

The work is bounded: passages are indexed once, a piece at a time (`ReadTexts.take`), then each position of the
arguments is looked up once. What goes beyond the bounds is said in `Provenance.note`.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from mcphost.host.chat.turns import Turn
from mcphost.host.consent.provenance import Provenance, UntrustedSpan
from mcphost.host.tool_calls.call import CallState
from mcphost.json_values import KeyPath, is_number
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.content import TextContent

STRETCH: Final = 24
"""Letters and digits, four or five words: shorter stretches are often equal by chance."""

SECRET: Final = 12
"""Characters of a word that is marked by itself: keys, cards and most addresses have them, dates do not."""

BLOCK: Final = 10
"""Letters and digits that are looked up at a time; what has fewer is not found."""

_DROPPED: Final = re.compile(
    r"(?>(?:[^\w\\%]++|_++|\\(?>(?:u[0-9a-fA-F]{4}|[bfnrt])?)|%(?>(?:[0-9a-fA-F]{2})?)){1,1000})"
)  # atomic: nothing is tried twice; bounded: each repetition of a group is remembered while it goes on
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[bfnrt])|%[0-9a-fA-F]{2}")
WORD: Final = re.compile(rf"[\w.+@~-]{{{SECRET},200}}+")
NUMBER: Final = re.compile(rf"\d(?:[ -]?\d){{{SECRET - 1},40}}")


class NormalizedText:
    """A text as it is compared, and where in it each of its characters stood."""

    def __init__(self, text: str) -> None:
        self._before, self._at, kept, size, end = list[int](), list[int](), list[str](), 0, 0
        for dropped in (*(found.span() for found in _DROPPED.finditer(text)), (len(text), len(text))):
            if dropped[0] > end:
                self._before.append(size)
                self._at.append(end)
                kept.append(text[end : dropped[0]])
                size += dropped[0] - end
            end = dropped[1]
        self.text = _small("".join(kept))

    def place(self, at: int) -> int:
        run = bisect_right(self._before, at) - 1
        return self._at[run] + at - self._before[run]


def unescaped(text: str) -> str:
    """A passage with its letters out of JSON's escapes; the other escapes are blanks, which end words."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)


def normalized(text: str) -> str:
    """Normalize a text that is only searched, so that no positions are needed."""
    return _small(_DROPPED.sub("", text))


def _small(text: str) -> str:
    """In small letters, each still one character: one capital's small form is two."""
    return text.replace("\u0130", "i").lower()


def secrets(text: str, kind: re.Pattern[str]) -> Iterator[str]:
    """The words of a text that are marked by themselves, folded; longer ones are stretches in any case."""
    for found in kind.finditer(text):
        word, address = normalized(found[0]), "@" in found[0][1:-1]
        if (BLOCK if address else SECRET) <= len(word) < STRETCH and (address or _random(word, kind)):
            yield word


def _random(word: str, kind: re.Pattern[str]) -> bool:
    return kind is NUMBER or 0 < sum(map(str.isalpha, word)) < len(word)


def _base64(run: str) -> str:
    """The text that a run of base64 may stand for; of anything else, nonsense."""
    whole = run[: len(run) - (len(run) % 4 == 1)]
    standard = whole.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (-len(whole) % 4)
    return base64.b64decode(standard).decode("utf-8", "ignore")


def _hex(run: str) -> str:
    return bytes.fromhex(run).decode("utf-8", "ignore")


CODES: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...]] = (
    ("hex", re.compile(r"(?:[0-9a-fA-F]{2}){24,}"), _hex),
    ("base64", re.compile(r"[A-Za-z0-9+/_-]{32,}"), _base64),
)


STRIDE: Final = STRETCH - BLOCK + 1
"""Any stretch holds a whole block that begins at a multiple of this."""

PIECE: Final = 50_000
"""Characters that are indexed at a time: some ten milliseconds."""

OVERLAP: Final = 200
"""Characters that two neighbouring pieces share, so that a border hides nothing."""

MOST_READ: Final = 1_000_000
"""Characters of a conversation that are indexed: about what large models hold, and some 20 MB of index."""

MOST_COMPARED: Final = 100_000
"""Characters of one call's arguments: more than models write at a time, and some 40 milliseconds."""

MOST_PARTS: Final = 2_000
"""Values of one call."""

MOST_MARKS: Final = 100

MOST_PLACES: Final = 16
"""Places that are looked at of a block that repeats itself, as in tables and rulers."""

MOST_TRIES: Final = 10_000
"""Places that are looked at for one call."""

YOURS: Final = "your instructions"
OURS: Final = "mcphost's instructions"
FOLDERS: Final = "the list of your folders"

_SAID: Final = {state.value for state in (CallState.DONE, CallState.FAILED, CallState.ERROR)}
"""Of a call that ended so, the server has spoken; what else a result says is ours or the user's."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that the model has read."""

    source: str
    """See `UntrustedSpan.source`."""
    server: str
    """The server that said it; empty: none."""
    text: str


def passages(turns: Iterable[Turn]) -> Iterator[Passage]:
    """The texts that servers and files brought into these turns, without those that the user typed."""
    for turn in turns:
        for prompt in turn.message.prompts:
            for message in prompt.messages:
                yield from _texts(prompt.server, prompt.server, message.blocks)
        for given in turn.message.attachments:
            yield from _texts(given.server or given.title or given.name, given.server, given.blocks)
        for use in turn.uses:
            if use.server and use.result is not None and use.outcome in _SAID:
                yield from _texts(use.server, use.server, use.result.blocks)


def _texts(source: str, server: str, blocks: Iterable[object]) -> Iterator[Passage]:
    return (Passage(source, server, block.text) for block in blocks if isinstance(block, TextContent))


class ReadTexts:
    """All that one conversation has read, indexed as it grows."""

    def __init__(self) -> None:
        self._known: dict[Passage, int] = {}
        """The number of characters of each that were searched."""
        self._pieces: list[tuple[Passage, str]] = []
        self._places: dict[str, list[int]] = {}
        """Of each block: the piece and where in it, as one number; a list of tuples would take three times the room."""
        self._secrets: dict[int, int] = {}
        """The length of the secret that begins at a position."""
        self._size = self._left_out = 0

    def take(self, passages: Iterable[Passage]) -> Iterator[None]:
        """Index what is new, a piece at a time: whoever iterates can do something else between."""
        for passage in passages:
            for start in range(self._known.get(passage, 0), len(passage.text), PIECE):
                self._known[passage] = start + PIECE
                self._take(passage, start)
                yield

    def compare(self, server: str, arguments: Mapping[str, Any]) -> Provenance:
        """Find the parts of these arguments for this server that passages of others contain."""
        search, marks, size, note = _Search(self, server), list[UntrustedSpan](), 0, ""
        for number, part in enumerate(_parts(arguments), 1):
            marks.extend(search.marks(replace(part, text=part.text[: MOST_COMPARED - size])))
            size += len(part.text)
            if note := _too_much(number, size, len(marks), search.tries):
                break
        return Provenance(tuple(marks[:MOST_MARKS]), "; ".join(filter(None, [note, self._note()])))

    def blocks(self) -> Mapping[str, list[int]]:
        """The places of each block, as `candidate` reads them."""
        return self._places

    def candidate(self, place: int) -> tuple[Passage, str, int, int]:
        """Of a place: the passage, its piece, where in that, and how much of it must be equal."""
        passage, piece = self._pieces[place >> 32]
        return passage, piece, place & 0xFFFFFFFF, self._secrets.get(place, STRETCH)

    def said_by(self, server: str, normalized: str) -> bool:
        """True if the server said so itself."""
        return any(normalized in piece for passage, piece in self._pieces if passage.server == server)

    def effort(self, server: str) -> int:
        """The cost of `said_by`, which searches all that the server said, in tries."""
        # Searching 16 KiB takes about as long as one try.
        return sum(len(piece) for passage, piece in self._pieces if passage.server == server) >> 14

    def _note(self) -> str:
        left = self._left_out
        return f"the model read too much to compare with all of it: {left:,} characters were left out" if left else ""

    def _take(self, passage: Passage, start: int) -> None:
        text = passage.text[max(0, start - OVERLAP) : start + PIECE]
        if self._size + len(text) > MOST_READ:
            self._left_out += len(text)
            return
        self._size += len(text)
        self._index(passage, unescaped(text))

    def _index(self, passage: Passage, text: str) -> None:
        piece = normalized(text)
        base = len(self._pieces) << 32  # the piece's number and a position in it, packed into one int to save memory
        self._pieces.append((passage, piece))
        for place in range(0, len(piece) - BLOCK + 1, STRIDE):
            self._note_place(piece[place : place + BLOCK], base + place)
        for kind in (WORD, NUMBER):
            after = 0
            for secret in secrets(text, kind):
                if (place := piece.find(secret, after)) >= 0:
                    self._secrets[base + place] = len(secret)
                    self._note_place(secret[:BLOCK], base + place)
                    after = place

    def _note_place(self, block: str, place: int) -> None:
        there = self._places.setdefault(block, [])
        full = len(there) >= MOST_PLACES and there[-MOST_PLACES] >> 32 == place >> 32  # of one piece
        if not full and place not in there[-MOST_PLACES:]:
            there.append(place)


@dataclass(frozen=True, slots=True)
class _Part:
    """A text in the arguments."""

    path: KeyPath
    text: str
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of a text, and whose it is."""

    start: int
    end: int
    source: str


class _Search:
    """Looks for stretches in one call's arguments."""

    def __init__(self, readings: ReadTexts, server: str) -> None:
        self._readings, self._server, self.tries = readings, server, 0
        self._effort = readings.effort(server)

    def marks(self, part: _Part) -> Iterator[UntrustedSpan]:
        if len(part.text) < BLOCK:
            return
        for span in self._plain(part.text):
            yield _mark(part, span, "")
        for form, pattern, decoded in CODES:
            for run in pattern.finditer(part.text):
                for source in dict.fromkeys(span.source for span in self._plain(decoded(run[0]))):
                    yield _mark(part, _Span(*run.span(), source), form)

    def _plain(self, text: str) -> list[_Span]:
        compared, found = NormalizedText(text), list[_Span]()
        for span in self._stretches(compared.text):
            start, end = compared.place(span.start), compared.place(span.end - 1) + 1
            last = found[-1] if found else None
            if last is not None and last.source == span.source and start <= last.end:
                found[-1] = replace(last, end=max(end, last.end))
            else:
                found.append(_Span(start, end, span.source))
        return found

    def _stretches(self, text: str) -> Iterator[_Span]:
        blocks, go_on = self._readings.blocks(), 0
        hits = [at for at in range(len(text) - BLOCK + 1) if text[at : at + BLOCK] in blocks]
        for at in hits:
            if at < go_on or self.tries > MOST_TRIES:
                continue
            spans = (self._at(text, at, place) for place in blocks[text[at : at + BLOCK]])
            best = max(filter(None, spans), key=lambda span: span.end - span.start, default=None)
            if best is not None:
                go_on = best.end
                self.tries += self._effort
                if not self._readings.said_by(self._server, text[best.start : best.end]):
                    yield best

    def _at(self, text: str, at: int, place: int) -> _Span | None:
        """The stretch that is equal around here, where it is long enough and another's."""
        passage, piece, there, need = self._readings.candidate(place)
        if passage.server == self._server:
            return None
        self.tries += 1
        if self.tries > MOST_TRIES or (need == STRETCH and not _promising(text, at, piece, there)):
            return None
        ahead, back = _equal(text, at, piece, there, 1), _equal(text, at, piece, there, -1)
        if ahead + back >= STRETCH:
            return _Span(at - back, at + ahead, passage.source)
        return _Span(at, at + need, passage.source) if ahead >= need else None


def _mark(part: _Part, span: _Span, form: str) -> UntrustedSpan:
    text = part.text[span.start : span.end]
    return UntrustedSpan(part.path, span.start, span.end, text, span.source, form, part.is_name)


def _too_much(parts: int, size: int, marks: int, tries: int) -> str:
    """Why no more is compared; empty where it is."""
    if size > MOST_COMPARED:
        return f"the arguments are too large to compare: only the first {MOST_COMPARED:,} characters were"
    if parts >= MOST_PARTS:
        return f"the arguments are too many to compare: only the first {MOST_PARTS:,} values were"
    if marks > MOST_MARKS or tries > MOST_TRIES:
        return "the arguments repeat so much of what the model read that not all of it is marked"
    return ""


def _promising(one: str, at: int, other: str, there: int) -> bool:
    """Around an equal block, is half of what a stretch needs besides equal on one side? Else it is none."""
    after, half = BLOCK, (STRETCH - BLOCK) // 2
    ahead = one[at + after : at + after + half] == other[there + after : there + after + half]
    return ahead or one[max(0, at - half) : at] == other[max(0, there - half) : there]


def _equal(one: str, at: int, other: str, there: int, way: int) -> int:
    """Count equal characters from here on (``way`` 1) or before it (-1), by doubling and halving."""
    most = min(len(one) - at, len(other) - there) if way > 0 else min(at, there)
    size, step = 0, 32
    while step:
        near, far = (size, size + step) if way > 0 else (-size - step, -size)
        if size + step <= most and one[at + near : at + far] == other[there + near : there + far]:
            size, step = size + step, step * 2
        else:
            step //= 2
    return size


def _parts(arguments: Mapping[str, Any]) -> Iterator[_Part]:
    """The texts in the arguments, in their order: values, names and numbers."""
    left: list[tuple[KeyPath, Any]] = [((), arguments)]
    while left:
        path, value = left.pop()
        if path and isinstance(path[-1], str):
            yield _Part(path, path[-1], is_name=True)
        if isinstance(value, Mapping | list):
            pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
            left.extend(reversed([((*path, key), each) for key, each in islice(pairs, MOST_PARTS)]))
        elif text := _text(value):
            yield _Part(path, text)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return str(value) if is_number(value) and abs(value) < 1e100 else ""
