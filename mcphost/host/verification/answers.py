"""Compares two answers as JSON, with the path of each difference. Pure.

JSON inside a ``text`` is compared as JSON, media by their bytes, numbers by value. A masked value that is expected
matches anything.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from mcphost.host.verification.normalizers import Normalizer, named_normalizers
from mcphost.json_values import KeyPath, canonical, is_number
from mcphost.protocol.display import show_line, show_name, size_text
from mcphost.protocol.json_paths import JsonPath
from mcphost.protocol.limits import JSON_DEPTH
from mcphost.protocol.models.base import ENVELOPE
from mcphost.protocol.wire.strict_json import Refused, parse
from mcphost.redaction import MASK, Mask, fits_masked, masked_value

MOST_DIFFERENCES: Final = 100
"""Differences of one answer that are kept: a reader needs no more."""

MOST_HIDDEN: Final = 200
"""Hidden differences that are kept for the reader who asks for them; the others are only counted."""

NORMALIZED: Final = 200_000
"""Characters of the longest text that normalizers see: for longer ones their patterns would hold the event loop."""

VALUE: Final = 160
"""Characters of a value in a sentence."""

_BEFORE: Final = 40
"""Characters of a long text before its first difference."""

_TOO_DEEP: Final = "is nested too deeply to be compared"

_MEDIA: Final = ("image", "audio")


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""In place of a value that is not there."""


class AnswerDifference(NamedTuple):
    """A place at which an answer is not as expected; ``why`` replaces the two values in the sentence."""

    path: KeyPath
    expected: Any
    got: Any
    why: str = ""

    @property
    def words(self) -> str:
        """``structuredContent.rows[2].name: expected "a", got "b"``; safe to show."""
        place = path_words(self.path) or "the answer"
        if self.why:
            return f"{place}: {self.why}"
        if self.got is ABSENT:
            return f"{place}: expected {_value(self.expected)}, and it is missing"
        if self.expected is ABSENT:
            return f"{place}: not expected, got {_value(self.got)}"
        expected, got = _pair(self.expected, self.got)
        return f"{place}: expected {expected}, got {got}"


class HiddenDifference(NamedTuple):
    """A difference that does not count. ``by`` is a normalizer, ``masked``, or the path that ignores it."""

    by: str
    path: KeyPath
    expected: Any
    got: Any

    @property
    def words(self) -> str:
        expected, got = _pair(self.expected, self.got)
        return f"{self.by}: {path_words(self.path)}: {expected}, now {got}"


class AnswerRules(NamedTuple):
    """The differences that do not count."""

    ignored: tuple[JsonPath, ...] = ()
    normalizers: tuple[Normalizer, ...] = ()
    partial: bool = False
    """True if objects may have members that are not expected."""

    @classmethod
    def parse(cls, ignored: Iterable[str], names: Sequence[str]) -> AnswerRules:
        """The rules of JSON paths and of normalizers by name. Raises ValueError with a sentence."""
        return cls(tuple(map(JsonPath.parse, ignored)), named_normalizers(names))


class AnswerDifferences(NamedTuple):
    """The comparison of two answers; ``more`` counts the differences that were not kept."""

    differences: tuple[AnswerDifference, ...] = ()
    hidden: tuple[HiddenDifference, ...] = ()
    counts: Mapping[str, int] = {}
    """The hidden differences by what hides them."""
    more: int = 0

    def masked(self, mask: Mask) -> AnswerDifferences:
        """The same without secrets."""

        def hidden(value: Any) -> Any:
            return value if value is ABSENT else masked_value(value, mask)

        def path(keys: KeyPath) -> KeyPath:
            return tuple(mask(key) if isinstance(key, str) else key for key in keys)

        return self._replace(
            differences=tuple(
                each._replace(path=path(each.path), expected=hidden(each.expected), got=hidden(each.got))
                for each in self.differences
            ),
            hidden=tuple(
                each._replace(path=path(each.path), expected=hidden(each.expected), got=hidden(each.got))
                for each in self.hidden
            ),
        )


def without_envelope(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without the members that say how it was sent."""
    return {name: value for name, value in result.items() if name not in ENVELOPE}


EXACT: Final = AnswerRules()


def compare_answers(expected: Any, got: Any, rules: AnswerRules = EXACT, base: KeyPath = ()) -> AnswerDifferences:
    """Compare two JSON values; ``base`` begins the paths."""
    comparing = _Comparing(rules)
    try:
        comparing.compare(base, expected, got)
    except RecursionError:
        return AnswerDifferences((AnswerDifference(base, None, None, _TOO_DEEP),))
    kept, hidden = comparing.differences, comparing.hidden
    return AnswerDifferences(
        tuple(kept[:MOST_DIFFERENCES]), tuple(hidden), comparing.counts, max(0, len(kept) - MOST_DIFFERENCES)
    )


def path_words(path: KeyPath) -> str:
    """``content[0].text.rows[2]["a b"]``; safe to show."""
    words = "".join(map(_step, path))
    return words.removeprefix(".")


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if key.replace("-", "_").isidentifier() and key.isascii() else f"[{show_name(key, 80)}]"


class _Comparing:
    def __init__(self, rules: AnswerRules) -> None:
        self._rules = rules
        self.differences: list[AnswerDifference] = []
        self.hidden: list[HiddenDifference] = []
        self.counts: dict[str, int] = {}

    def compare(self, path: KeyPath, expected: Any, got: Any) -> None:
        if self._rules.ignored and any(each.matches(path) for each in self._rules.ignored):
            if not equal(expected, got):
                by = next(each.text for each in self._rules.ignored if each.matches(path))
                self._hide(f"--ignore {by}", path, expected, got)
        elif isinstance(expected, Mapping) and isinstance(got, Mapping):
            self._objects(path, expected, got)
        elif isinstance(expected, list) and isinstance(got, list):
            self._lists(path, expected, got)
        elif isinstance(expected, str) and isinstance(got, str):
            self._texts(path, expected, got)
        elif expected is not got and not equal(expected, got):
            self._differ(path, expected, got)

    def _objects(self, path: KeyPath, expected: Mapping[str, Any], got: Mapping[str, Any]) -> None:
        binary = _binary_member(expected, got)
        for name, value in expected.items():
            if name == binary and not masks(value):
                self._media((*path, name), value, got[name])
            else:
                self.compare((*path, name), value, got.get(name, ABSENT))
        if not self._rules.partial:
            for name in got:
                if name not in expected:
                    self.compare((*path, name), ABSENT, got[name])

    def _media(self, path: KeyPath, expected: str, got: str) -> None:
        before, after = _bytes(expected), _bytes(got)
        if before != after:
            self._differ(path, expected, got, f"expected {_file_words(before)}, got {_file_words(after)}")

    def _lists(self, path: KeyPath, expected: list[Any], got: list[Any]) -> None:
        for place, (before, after) in aligned(expected, got, self._rules.normalizers):
            self.compare((*path, place), before, after)

    def _texts(self, path: KeyPath, expected: str, got: str) -> None:
        if expected == got:
            return
        if path[-1:] == ("text",) and (both := containers(expected, got)) is not None:
            self.compare(path, *both)
            return
        before, after, found = expected, got, list[tuple[str, str, str]]()
        for each in self._rules.normalizers if max(len(before), len(after)) <= NORMALIZED else ():
            # Matches of the two texts belong together in order, since the rest of the texts must be the same.
            pairs = zip(each.values(before), each.values(after), strict=False)
            found += [(each.name, one, other) for one, other in pairs if one != other]
            before, after = each.applied(before), each.applied(after)
        if before != after and fits_masked(before, after):
            found.append(("masked", expected, got))
        elif before != after:
            self._differ(path, expected, got)
            return
        for name, one, other in found:
            self._hide(name, path, one, other)

    def _differ(self, path: KeyPath, expected: Any, got: Any, why: str = "") -> None:
        if isinstance(expected, str) and masks(expected) and got is not ABSENT and fits_masked(expected, _as_text(got)):
            self._hide("masked", path, expected, got)
        else:
            self.differences.append(AnswerDifference(path, expected, got, why))

    def _hide(self, by: str, path: KeyPath, expected: Any, got: Any) -> None:
        self.counts[by] = self.counts.get(by, 0) + 1
        if len(self.hidden) < MOST_HIDDEN:
            self.hidden.append(HiddenDifference(by, path, expected, got))


def aligned(
    expected: Sequence[Any], got: Sequence[Any], normalizers: Sequence[Normalizer] = ()
) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """The pairs of two lists with their places: by number, but what is equal at the end belongs together.

    So one more item in the middle is one difference. A missing partner is `ABSENT`.
    """
    tail = 0
    if len(expected) != len(got):
        one, other = ([_key(each, normalizers) for each in items] for items in (expected, got))
        shorter = min(len(one), len(other))
        start = next((n for n in range(shorter) if one[n] != other[n]), shorter)
        while tail < shorter - start and one[-1 - tail] == other[-1 - tail]:
            tail += 1
    ends = len(expected) - tail, len(got) - tail
    yield from enumerate(zip_longest(expected[: ends[0]], got[: ends[1]], fillvalue=ABSENT))
    yield from enumerate(zip(expected[ends[0] :], got[ends[1] :], strict=True), max(ends))


def _key(value: Any, normalizers: Sequence[Normalizer]) -> str:
    """Equal for items that belong together."""
    text = canonical(value)
    for each in normalizers if len(text) <= NORMALIZED else ():
        text = each.applied(text)
    return text


def equal(one: Any, other: Any) -> bool:
    """True for the same JSON value; numbers are equal by value, and true is not 1."""
    if is_number(one) and is_number(other):
        return one == other or (one != one and other != other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and bool(one == other)


def masks(value: object) -> bool:
    return isinstance(value, str) and MASK in value


def containers(expected: str, got: str) -> tuple[Any, Any] | None:
    """Both texts as JSON objects or arrays; None if one is something else."""
    if any(text.lstrip()[:1] not in ("{", "[") for text in (expected, got)):
        return None
    try:
        return parse(expected.encode(), JSON_DEPTH), parse(got.encode(), JSON_DEPTH)
    except (Refused, UnicodeEncodeError):
        return None


def _binary_member(expected: Mapping[str, Any], got: Mapping[str, Any]) -> str | None:
    """The member that holds a file in Base64 on both sides."""
    name = "data" if expected.get("type") in _MEDIA else "blob"
    return name if isinstance(expected.get(name), str) and isinstance(got.get(name), str) else None


def _bytes(text: str) -> bytes:
    try:
        return b64decode("".join(text.split()), validate=True)
    except ValueError:
        return text.encode("utf-8", "replace")


def _file_words(data: bytes) -> str:
    return f"{size_text(len(data))} with SHA-256 {hashlib.sha256(data).hexdigest()[:12]}…"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pair(expected: Any, got: Any) -> tuple[str, str]:
    """Two values for a sentence; of long texts the part around their first difference."""
    if isinstance(expected, str) and isinstance(got, str) and max(len(expected), len(got)) > VALUE:
        place = next((n for n, (one, other) in enumerate(zip(expected, got, strict=False)) if one != other), None)
        start = max(0, (min(len(expected), len(got)) if place is None else place) - _BEFORE)
        return _part(expected, start), _part(got, start)
    return _value(expected), _value(got)


def _part(text: str, start: int) -> str:
    end = start + VALUE
    return f"{'…' if start else ''}{show_name(text[start:end], 2 * VALUE)}{'…' if end < len(text) else ''}"


def _value(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    if isinstance(value, str):
        return show_name(value, VALUE)
    try:
        return show_line(json.dumps(value, ensure_ascii=False), VALUE)
    except RecursionError:
        return "a value that is nested too deeply to be shown"
