"""Finds the recorded exchange for a request: one with the same request, or the nearest one, to name the difference."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from mcphost.json_values import KeyPath, as_dict, as_text, canonical, is_number
from mcphost.protocol.display import enumerated, show_line
from mcphost.protocol.json_paths import JsonPath
from mcphost.redaction import MASK, fits_masked

Matching = Literal["exact", "arguments", "order"]

VOLATILE: Final = frozenset({
    "_meta", "capabilities", "clientInfo", "cursor", "inputResponses", "progressToken", "protocolVersion",
    "requestState", "task",
})  # fmt: skip
"""Params that differ from client to client, or from session to session."""

_SUBJECTS: Final = {
    "tools/call": "name", "prompts/get": "name", "resources/read": "uri", "completion/complete": "ref",
    "skills/get": "uri", "resources/directory/read": "uri",
}  # fmt: skip
"""By method, the member of the params that names the tool, prompt or resource."""

_PAGED: Final = frozenset({"resources/directory/read"})
"""Requests with pages that are matched one by one, so that the cursor of each counts."""

_ARGUMENTS: Final = frozenset({"arguments", "argument", "context"})
_NOUNS: Final = {
    "tools/call": "call", "prompts/get": "prompt", "resources/read": "read", "completion/complete": "completion",
    "skills/get": "skill", "resources/directory/read": "folder",
}  # fmt: skip

COMPARED: Final = 500
"""Exchanges of one method among which the nearest is searched for."""

COMPARED_CHARACTERS: Final = 20_000
"""Characters of the params of such an exchange: longer ones take time, and no person compares them."""

SHOWN_CHARACTERS: Final = 160
SHOWN_NAMES: Final = 5

_MASKED_TEXT: Final = canonical(MASK)[1:-1]


class FoundExchange(NamedTuple):
    place: int
    repeated: bool
    """True if the recording has no further exchange like it, so that this one is repeated."""


class ExchangeIndex:
    """Recorded requests, as pairs of method and params, by what they ask for.

    ``ignored`` are paths in the params, such as ``$.arguments.date``. The places that are ``unanswered`` are taken only
    for requests that none of the others fits.
    """

    def __init__(
        self,
        requests: Sequence[tuple[str, Mapping[str, Any]]],
        matching: Matching = "exact",
        ignored: Sequence[JsonPath] = (),
        unanswered: Container[int] = (),
    ) -> None:
        self._matching, self._ignored, self._unanswered = matching, ignored, unanswered
        self._requests = [(method, self._compared(method, params)) for method, params in requests]
        self._same: dict[str, list[int]] = {}
        self._masked: dict[str, list[int]] = {}
        """By method, the places of the requests in which something is masked."""
        self._of_method: dict[str, list[int]] = {}
        self._short: dict[str, list[int]] = {}
        """By method, the places of the requests that are searched for the nearest one."""
        for place, (method, params) in enumerate(self._requests):
            self._of_method.setdefault(method, []).append(place)
            key = _key(method, params)
            if len(key) <= COMPARED_CHARACTERS:
                self._short.setdefault(method, []).append(place)
            if _MASKED_TEXT in key:
                self._masked.setdefault(method, []).append(place)
            else:
                self._same.setdefault(key, []).append(place)

    def candidates(self, method: str, params: Mapping[str, Any]) -> list[int]:
        """The places of the exchanges that fit this request, in order."""
        fitting = self._fitting(method, params)
        return [place for place in fitting if place not in self._unanswered] or fitting

    def _fitting(self, method: str, params: Mapping[str, Any]) -> list[int]:
        if self._matching == "order":
            return self._of_method.get(method, [])
        compared = self._compared(method, params)
        same = self._same.get(_key(method, compared), [])
        masked = [place for place in self._masked.get(method, ()) if fits(self._requests[place][1], compared)]
        return sorted([*same, *masked]) if masked else same

    def miss(self, method: str, params: Mapping[str, Any], *, nearest: bool = True) -> str:
        """The sentences for a request that was not recorded; with the nearest one, and how it differs."""
        if method not in self._of_method:
            return f"The recording holds no {show_line(method, SHOWN_CHARACTERS)}."
        words = f"The recording holds no such {_NOUNS.get(method, 'request')}."
        places = self._short.get(method, [])[:COMPARED]
        if not nearest or not places:
            return words
        compared = self._compared(method, params)
        differing = [(list(_differences(self._requests[place][1], compared)), place) for place in places]
        names, place = min(differing, key=lambda each: (_SUBJECTS.get(method) in each[0], len(each[0])))
        if not names:
            return f"The recording holds no whole {method}."
        if _SUBJECTS.get(method) in names:
            named = dict.fromkeys(_subject(method, self._requests[each][1]) for each in places)
            return f"{words} It holds {listed(named)}."
        return f"{words} Nearest: {described(method, self._requests[place][1])}; it differs in {listed(names)}."

    def _compared(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params that are compared."""
        volatile = VOLATILE - {"cursor"} if method in _PAGED else VOLATILE
        kept = {name: value for name, value in params.items() if name not in volatile}
        if self._matching == "arguments":
            own = {_SUBJECTS.get(method, ""), *_ARGUMENTS, *(() if method not in _PAGED else ("cursor",))}
            kept = {name: value for name, value in kept.items() if name in own}
        if not kept.get("arguments", True):  # absent, null and empty mean the same
            del kept["arguments"]
        ignored = {place for path in self._ignored for place in path.places(kept)}
        return as_dict(_without(kept, ignored)) if ignored else kept


class ExchangeSequence:
    """One client's way through the exchanges: each is used once, then the last one of its kind is repeated.

    With ``loop``, the first one follows the last.
    """

    def __init__(self, index: ExchangeIndex, *, loop: bool = False) -> None:
        self._index, self._loop = index, loop
        self._used: set[int] = set()

    def take(self, method: str, params: Mapping[str, Any]) -> FoundExchange | None:
        """The exchange that answers this request; None if nothing like it was recorded."""
        candidates = self._index.candidates(method, params)
        if not candidates:
            return None
        place = next((each for each in candidates if each not in self._used), None)
        if place is not None:
            self._used.add(place)
            return FoundExchange(place, repeated=False)
        if self._loop:
            self._used.difference_update(candidates[1:])
            return FoundExchange(candidates[0], repeated=True)
        return FoundExchange(candidates[-1], repeated=True)

    def use(self, place: int) -> None:
        """Count an exchange as used."""
        self._used.add(place)


def fits(recorded: Any, live: Any) -> bool:
    """True if the values are equal; numbers count by value, and what is masked in the recorded one may be anything."""
    if isinstance(recorded, str) and MASK in recorded:
        return recorded == MASK or (isinstance(live, str) and fits_masked(recorded, live))
    if isinstance(recorded, Mapping) and isinstance(live, Mapping):
        open_ended = any(MASK in name for name in recorded)
        named = {name for name in recorded if MASK not in name}
        known = named <= live.keys() if open_ended else recorded.keys() == live.keys()
        return known and all(fits(recorded[name], live[name]) for name in named)
    if isinstance(recorded, list) and isinstance(live, list):
        return len(recorded) == len(live) and all(map(fits, recorded, live))
    if is_number(recorded) and is_number(live):
        return recorded == live
    return type(recorded) is type(live) and bool(recorded == live)


def _differences(recorded: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    """The names of the arguments, and of the other params, in which two requests differ."""
    for name in dict.fromkeys((*recorded, *live)):
        before, after = recorded.get(name), live.get(name)
        if name == "arguments" and isinstance(before or {}, Mapping) and isinstance(after or {}, Mapping):
            yield from differing_names(as_dict(before), as_dict(after))
        elif (name in recorded) is not (name in live) or not fits(before, after):
            yield name


def differing_names(recorded: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    """The names of the members that do not fit."""
    for name in dict.fromkeys((*recorded, *live)):
        if (name in recorded) is not (name in live) or not fits(recorded[name], live[name]):
            yield name


def described(method: str, params: Mapping[str, Any]) -> str:
    """A request in a few words, such as ``git_log {max_count: 10}``."""
    arguments = as_dict(params.get("arguments") or params.get("argument"))
    members = ", ".join(f"{name}: {canonical(value)}" for name, value in arguments.items())
    return show_line(_subject(method, params) + (f" {{{members}}}" if members else ""), SHOWN_CHARACTERS)


def titled(method: str, params: Mapping[str, Any]) -> str:
    """The method, and the request in a few words where those say more."""
    words = described(method, params)
    return words if words == method else f"{method} {words}"


def _subject(method: str, params: Mapping[str, Any]) -> str:
    subject = params.get(_SUBJECTS.get(method, ""))
    ref = as_dict(subject)
    return as_text(subject) or as_text(ref.get("name")) or as_text(ref.get("uri")) or method


def listed(names: Iterable[str]) -> str:
    """Some names as a list in words."""
    shown = [show_line(name, SHOWN_CHARACTERS) for name in names]
    if len(shown) > SHOWN_NAMES:
        shown = [*shown[:SHOWN_NAMES], f"{len(shown) - SHOWN_NAMES} more"]
    return enumerated(shown)


def _key(method: str, params: Mapping[str, Any]) -> str:
    return f"{method} {canonical(_by_value(params))}"


def _by_value(value: Any) -> Any:
    """The value with whole numbers as integers, however they are written."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _by_value(each) for name, each in value.items()}
    return [_by_value(each) for each in value] if isinstance(value, list) else value


def _without(value: Any, ignored: set[KeyPath], path: KeyPath = ()) -> Any:
    """The value without these places; what a list holds there becomes null, so that the others keep theirs."""
    if isinstance(value, Mapping):
        kept = {name: each for name, each in value.items() if (*path, name) not in ignored}
        return {name: _without(each, ignored, (*path, name)) for name, each in kept.items()}
    if isinstance(value, list):
        places = [(*path, number) for number in range(len(value))]
        return [
            None if place in ignored else _without(each, ignored, place)
            for place, each in zip(places, value, strict=True)
        ]
    return value
