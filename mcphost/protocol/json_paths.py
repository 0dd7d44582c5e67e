"""JSON paths that name places in a JSON value: ``$.a.b[0]``, ``$.rows[*].id``, ``$['a b']`` and ``$..name``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mcphost.json_values import KeyPath

_SEGMENT: Final = (
    r"""(?P<deep>\.\.)?(?:(?<=\.\.)(?P<below>[^.\[\]\s'"*]+|\*)|\.(?P<name>[^.\[\]\s'"*]+|\*)|\[(?P<index>\d{1,9}|\*)\]"""
    r"""|\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\])"""
)


class _Segment(NamedTuple):
    key: str | int | None
    """None: any."""
    deep: bool
    """Any number of keys may come before it."""

    def matches(self, key: str | int) -> bool:
        return self.key is None or (type(self.key) is type(key) and self.key == key)


class JsonPath(NamedTuple):
    """A path with its text; ``[*]`` and ``.*`` match any key, ``..`` any depth."""

    text: str
    segments: tuple[_Segment, ...]

    @classmethod
    def parse(cls, text: str) -> JsonPath:
        """Raise ValueError, with a sentence, for what is not such a path."""
        if not text.startswith("$"):
            raise ValueError(f"{text!r} is not a JSON path: begin with $, as in $.result.content[*].text")
        place, segments = 1, list[_Segment]()
        while place < len(text):
            found = re.compile(_SEGMENT).match(text, place)
            if found is None:
                raise ValueError(
                    f"{text!r} is not a JSON path: {text[place:]!r} is neither .name, [0], [*], ['name'] nor ..name"
                )
            segments.append(_segment(found))
            place = found.end()
        return cls(text, tuple(segments))

    def matches(self, path: KeyPath) -> bool:
        """True if the path names exactly this place."""
        reached = {0}
        for key in path:
            reached = self._step(reached, key)
        return len(self.segments) in reached

    def places(self, value: Any) -> Iterator[KeyPath]:
        """The places in ``value`` that the path names, in order."""
        waiting: list[tuple[KeyPath, Any, set[int]]] = [((), value, {0})]
        while waiting:
            path, found, reached = waiting.pop()
            if len(self.segments) in reached:
                yield path
            below = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
            steps = [((*path, key), each, self._step(reached, key)) for key, each in below]
            waiting += reversed([step for step in steps if step[2]])

    def _step(self, reached: set[int], key: str | int) -> set[int]:
        """The numbers of segments that may be behind after ``key``, each of which is a place to go on from."""
        after = set[int]()
        for number in reached:
            if number < len(self.segments):
                segment = self.segments[number]
                after |= ({number} if segment.deep else set()) | ({number + 1} if segment.matches(key) else set())
        return after


def _segment(found: re.Match[str]) -> _Segment:
    name = found["below"] or found["name"]
    if found["quoted"]:
        return _Segment(_unquoted(found["quoted"]), bool(found["deep"]))
    if name:
        return _Segment(None if name == "*" else name, bool(found["deep"]))
    return _Segment(None if found["index"] == "*" else int(found["index"]), bool(found["deep"]))


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    if text[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        raise ValueError(f"{text} is not a name in quotes") from None
