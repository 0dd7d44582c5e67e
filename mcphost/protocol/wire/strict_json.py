"""A strict JSON parser (RFC 8259): no duplicate keys, no lone surrogates, limits of depth and number of items.

A large text is parsed in steps of a few milliseconds: any parser needs seconds for 16 MB of small members, and building
the values cannot be moved off the event loop's thread. Plain runs of values are still parsed by the standard library.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Generator, Iterator
from typing import Any, Final

BIG_TEXT: Final = 1_000_000
"""Bytes above which the number of objects and arrays is limited."""

IN_STEPS: Final = 1 << 16
"""Bytes below which a text is parsed at once, which takes at most 20 ms."""

RUN: Final = 250
"""Values that are parsed at once within a text that is parsed in steps."""

Steps = Generator[None, None, Any]
"""Yields after each step; returns the value. Raises Refused."""


class Refused(Exception):
    """Says what is wrong with a text. ``limit`` is the limit it exceeds, if that is its only fault."""

    def __init__(self, reason: str, *, is_json: bool = True, limit: int | None = None) -> None:
        super().__init__(reason)
        self.is_json, self.limit = is_json, limit


def parse(data: bytes, max_depth: int) -> Any:
    """Parse at once. Raises Refused."""
    has_halves = _may_hold_halves(data)
    try:
        decoder, text = (_halves_decoder if has_halves else _decoder), _text(data)
        value = _scan(decoder, text) if text[:1] == "{" else decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(error, max_depth) from None
    if len(data) > 2 * max_depth and data.count(b"{") + data.count(b"[") > max_depth and _deeper_than(value, max_depth):
        raise _too_deep(max_depth)
    return _without_halves(value) if has_halves else value


def parse_in_steps(data: bytes, max_items: int, max_depth: int) -> Steps:
    """Parse in steps. ``max_items`` limits objects and arrays in a text over 1 MB, ``max_depth`` their nesting."""
    if len(data) > BIG_TEXT:
        opened = 0
        for start in range(0, len(data), BIG_TEXT):
            end = start + BIG_TEXT
            opened += data.count(b"{", start, end) + data.count(b"[", start, end)
            yield
        if opened > max_items:
            reason = f"{opened} objects and arrays in one message, over the limit of {max_items}"
            raise Refused(reason, limit=max_items)
    has_halves = _may_hold_halves(data)
    yield
    try:
        walk = _Walk(_text(data), max_depth, has_halves=has_halves)
        yield
        return (yield from walk.steps())
    except (ValueError, RecursionError) as error:
        raise _refusal(error, max_depth) from None


def _scan(decoder: json.JSONDecoder, text: str) -> Any:
    # As `decode`, which reads white space with a pattern before and after every text.
    value, end = decoder.raw_decode(text)
    return value if end == len(text) else decoder.decode(text)


def _text(data: bytes) -> str:
    return data.decode("utf-8").removeprefix("\ufeff")


def _refusal(error: ValueError | RecursionError, max_depth: int) -> Refused:
    if isinstance(error, UnicodeDecodeError):
        return Refused(f"not UTF-8 at byte {error.start}", is_json=False)
    if isinstance(error, json.JSONDecodeError):
        return Refused(f"not JSON: {error}", is_json=False)
    if isinstance(error, RecursionError):
        return _too_deep(max_depth)
    return Refused("a number too long to read")  # Python reads no integer of thousands of digits


def _too_deep(max_depth: int) -> Refused:
    return Refused(f"nested deeper than {max_depth}")


def _may_hold_halves(data: bytes) -> bool:
    return b"\\u" in data and (b"\\ud" in data or b"\\uD" in data)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _twice()
    return members


def _twice() -> Refused:
    return Refused("a key is twice in one object")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Refused(f"the number {text[:20]} is too large")
    return number


def _no_constant(text: str) -> float:
    raise Refused(f"{text} is not JSON")


def _unique_whole_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return _unique_keys([(_without_halves(key), value) for key, value in pairs])


_decoder: Final = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_no_constant)
_halves_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_unique_whole_keys, parse_float=_finite, parse_constant=_no_constant
)
"""For a text that may hold halves of surrogate pairs: two keys may become equal once these are replaced."""


def _deeper_than(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterator[Any]:
    inside = value.values() if type(value) is dict else value if type(value) is list else ()
    return (child for child in inside if type(child) in (dict, list))


_HALF: Final = r"[\ud800-\udfff]"


def _without_halves(value: Any) -> Any:
    # JSON can express a lone surrogate; nothing downstream (files, models, terminals) can hold it.
    if type(value) is str:
        return value if value.isascii() else re.sub(_HALF, "\ufffd", value)
    if type(value) is list:
        return [_without_halves(item) for item in value]
    if type(value) is dict:
        return {key: _without_halves(item) for key, item in value.items()}
    return value


# Patterns that recognize runs of values without nesting worth walking; what is really JSON, the parser says. Everything
# is possessive or atomic, and bounded, so that they are linear, and long strings are not read twice.
# The bounds are generous for ordinary values: 200 characters between two escapes and 50 escapes, so strings up to some
# 10,000 characters; 40 strings in a flat object. A value beyond them is parsed alone, which only takes longer.
_SPACE: Final = r"[ \t\n\r]*+"
_STRING: Final = r'"[^"\\]{0,200}+(?>(?:\\.[^"\\]{0,200}+){0,50})"'
_FLAT: Final = rf'[\[{{][^{{}}\[\]"]{{0,200}}+(?>(?:{_STRING}[^{{}}\[\]"]{{0,200}}+){{0,40}})[\]}}]'
_VALUE: Final = rf"(?:{_STRING}|[-+.\w]{{1,200}}+|{_FLAT})"
_ITEMS: Final = rf"(?s)(?>(?:{_SPACE}{_VALUE}{_SPACE},){{1,{RUN}}})"
_MEMBERS: Final = rf"(?s)(?>(?:{_SPACE}{_STRING}{_SPACE}:{_SPACE}{_VALUE}{_SPACE},){{1,{RUN}}})"


class _Walk:
    """Walks through a text from one container to the next."""

    def __init__(self, text: str, max_depth: int, *, has_halves: bool) -> None:
        self._text, self._max_depth, self._has_halves = text, max_depth, has_halves
        self._decoder = _halves_decoder if has_halves else _decoder
        self._open: list[Any] = []
        """The open containers, the innermost last."""
        self._at = 0
        # Compiled here: most runs of mcphost see no large message.
        self._white, self._items, self._members = map(re.compile, (_SPACE, _ITEMS, _MEMBERS))

    def steps(self) -> Steps:
        self._skip_white()
        if self._peek() not in ("[", "{"):
            return self._cleaned(self._decoder.decode(self._text))
        root = self._enter()
        fresh = True  # directly after an opening bracket the closing one may come
        while self._open:
            yield
            if self._take_run():
                fresh = False
                continue
            self._skip_white()
            if not (fresh and self._peek() == self._closing()):
                place = self._place()
                if self._peek() in ("[", "{"):
                    inner = self._enter()
                    self._put(place, inner)
                    fresh = True
                    continue
                self._put(place, self._parsed())
            fresh = False
            self._leave()
        self._skip_white()
        if self._at != len(self._text):
            raise self._error("Extra data")
        return root

    def _skip_white(self) -> None:
        found = self._white.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _closing(self) -> str:
        return "]" if type(self._open[-1]) is list else "}"

    def _error(self, what: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self._text, self._at)

    def _enter(self) -> Any:
        if len(self._open) >= self._max_depth:
            raise _too_deep(self._max_depth)
        inner: Any = [] if self._peek() == "[" else {}
        self._open.append(inner)
        self._at += 1
        return inner

    def _leave(self) -> None:
        """After a value: skip its comma, or the ends of all containers that close here."""
        while self._open:
            self._skip_white()
            if self._peek() == ",":
                self._at += 1
                return
            if self._peek() != self._closing():
                raise self._error("Expecting ',' delimiter")
            self._open.pop()
            self._at += 1

    def _take_run(self) -> bool:
        """Parse a run of plain values up to a comma, if there is one."""
        inside = self._open[-1]
        run = (self._items if type(inside) is list else self._members).match(self._text, self._at)
        if run is None:
            return False
        brackets = "[]" if type(inside) is list else "{}"
        try:
            found = self._cleaned(self._decoder.decode(f"{brackets[0]}{run[0][:-1]}{brackets[1]}"))
        except json.JSONDecodeError as error:
            self._at += error.pos - 1
            raise self._error(error.msg) from None
        if len(self._open) >= self._max_depth and _deeper_than(found, 1):
            raise _too_deep(self._max_depth)
        if type(inside) is list:
            inside.extend(found)
        else:
            members = len(inside) + len(found)
            inside.update(found)
            if len(inside) != members:
                raise _twice()
        self._at = run.end()
        return True

    def _place(self) -> str | None:
        """The key of the next value; None in an array."""
        if type(self._open[-1]) is list:
            return None
        if self._peek() != '"':
            raise self._error("Expecting property name enclosed in double quotes")
        key: str = self._parsed()
        self._skip_white()
        if self._peek() != ":":
            raise self._error("Expecting ':' delimiter")
        self._at += 1
        self._skip_white()
        return key

    def _parsed(self) -> Any:
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        return self._cleaned(value)

    def _put(self, place: str | None, value: Any) -> None:
        inside = self._open[-1] if self._open and self._open[-1] is not value else self._open[-2]
        if place is None:
            inside.append(value)
        elif place in inside:
            raise _twice()
        else:
            inside[place] = value

    def _cleaned(self, value: Any) -> Any:
        return _without_halves(value) if self._has_halves else value
