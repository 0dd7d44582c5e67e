"""What the user allowed, bound to what was seen: a tool as its server defined it, run by the command that was shown.

Knows fingerprints, differences and the records of earlier answers. Refuses to know policy and screens. A tool is
found by its server's *configured* name; what a server calls itself counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from mcphost.protocol.types import Tool


class Lifetime(Enum):
    """How long an answer holds."""

    ONCE = "once"
    SESSION = "session"
    """Until mcphost exits."""
    ALWAYS = "always"
    """Until it is revoked, or the tool changes."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tool as it was when the user allowed it: what to compare with, and how long the answer holds."""

    server: str
    tool: str
    identity: str
    """What runs the server, as shown: command line or URL, folder, names of variables and headers."""
    definition: Mapping[str, Any]
    since: datetime
    lifetime: Lifetime = Lifetime.ONCE

    @property
    def fingerprint(self) -> str:
        """See `fingerprint`."""
        return fingerprint(self.identity, self.definition)


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not what it was; None where it was or is absent."""

    field: str
    before: str | None
    after: str | None


class Kind(Enum):
    """What is known of a tool from before."""

    NEW = "new"
    UNCHANGED = "unchanged"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tool stands to what the user allowed before."""

    kind: Kind
    since: datetime | None = None
    differences: Sequence[Difference] = ()
    lifetime: Lifetime = Lifetime.ONCE
    moved: bool = False
    """Is its server run by something else than then?"""

    @property
    def remembered(self) -> str | None:
        """The rule by which it may run without asking; None when it may not."""
        if self.kind is not Kind.UNCHANGED or self.lifetime is Lifetime.ONCE or self.since is None:
            return None
        how_long = "until mcphost exits" if self.lifetime is Lifetime.SESSION else "always"
        return f"allowed by you, {how_long}, on {self.since:%d %b %Y %H:%M}"


def fingerprint(identity: str, definition: Mapping[str, Any]) -> str:
    """Equal exactly when command and definition are; the order of members does not count."""
    return hashlib.sha256(_canonical([identity, definition]).encode()).hexdigest()


class Approvals:
    """What the user allowed so far, by configured server and tool name."""

    def __init__(self, sightings: Iterator[Sighting] | Sequence[Sighting] = ()) -> None:
        self._sightings = _by_tool(sightings)

    def standing(self, server: str, identity: str, tool: Tool) -> Standing:
        """How this tool stands to what was allowed before."""
        known = self._sightings.get((server, tool.name))
        if known is None:
            return Standing(Kind.NEW)
        definition = tool.definition()
        if fingerprint(identity, definition) == known.fingerprint:
            return Standing(Kind.UNCHANGED, known.since, lifetime=known.lifetime)
        changes = (*_changed_command(known.identity, identity), *differences(known.definition, definition))
        return Standing(Kind.CHANGED, known.since, changes, known.lifetime, moved=identity != known.identity)

    def allow(self, server: str, identity: str, tool: Tool, lifetime: Lifetime, now: datetime) -> bool:
        """Remember that the user allowed this tool as it is; a longer-lived earlier yes to the same is kept.

        True when that is something new.
        """
        fresh = Sighting(server, tool.name, identity, tool.definition(), now, lifetime)
        known = self._sightings.get((server, tool.name))
        if known is not None and known.fingerprint == fresh.fingerprint and lifetime in (Lifetime.ONCE, known.lifetime):
            return False
        self._sightings[server, tool.name] = fresh
        return True

    def revoke(self, server: str, tool: str) -> None:
        """Forget the yes and the definition it was given to."""
        self._sightings.pop((server, tool), None)

    def forget(self, server: str) -> int:
        """Forget every tool of this server; how many there were."""
        tools = [key for key in self._sightings if key[0] == server]
        for key in tools:
            del self._sightings[key]
        return len(tools)

    def grants(self) -> list[Sighting]:
        """What runs without asking because the user said so."""
        return [each for each in self._sightings.values() if each.lifetime is not Lifetime.ONCE]

    def lasting(self) -> Iterator[Sighting]:
        """What is worth keeping beyond this run; an answer that ends with it is kept as what was seen."""
        for each in self._sightings.values():
            yield replace(each, lifetime=Lifetime.ONCE) if each.lifetime is Lifetime.SESSION else each


def to_toml(sightings: Iterator[Sighting]) -> dict[str, Any]:
    """The content of the approvals file."""
    return {"approval": [_as_table(each) for each in sightings]}


def from_toml(data: Mapping[str, Any]) -> list[Sighting]:
    """Read the approvals file; an entry of the wrong shape is left out, which only means asking again."""
    entries = data.get("approval", [])
    read = (_from_table(entry) for entry in entries if isinstance(entry, dict))
    return [sighting for sighting in read if sighting is not None]


def merged(data: Mapping[str, Any], before: Sequence[Sighting], after: Sequence[Sighting]) -> dict[str, Any]:
    """The content of the approvals file ``data`` with only that changed which differs between ``before`` and ``after``.

    Two mcphosts may run: neither takes back what the other was told, nor keeps what was revoked there.
    """
    kept, old, new = (_by_tool(sightings) for sightings in (from_toml(data), before, after))
    for key in old.keys() | new.keys():
        if old.get(key) == new.get(key):
            continue
        if key in new:
            kept[key] = new[key]
        else:
            kept.pop(key, None)
    return to_toml(iter(kept.values()))


def _by_tool(sightings: Iterable[Sighting]) -> dict[tuple[str, str], Sighting]:
    return {(each.server, each.tool): each for each in sightings}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Field by field what changed, in the order of the new definition, removed fields last."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    fields = [*new, *(field for field in old if field not in new)]
    return [_difference(f, old.get(f), new.get(f)) for f in fields if old.get(f) != new.get(f)]


def _difference(field: str, before: str | None, after: str | None) -> Difference:
    shown = Difference(field, _plain(before), _plain(after))
    return Difference(field, before, after) if shown.before == shown.after else shown


def _plain(leaf: str | None) -> str | None:
    """A string without its quotes; other values as they are."""
    if leaf is None or not leaf.startswith('"'):
        return leaf
    text: str = json.loads(leaf)
    return text


def _changed_command(before: str, after: str) -> list[Difference]:
    return [] if before == after else [Difference("command", before, after)]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value that holds no other, as JSON, by its place. No two have the same place."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            step = json.dumps(key, ensure_ascii=False) if not key or set(key) & set('."[') else key
            yield from _leaves(item, f"{path}.{step}" if path else step)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _as_table(sighting: Sighting) -> dict[str, Any]:
    return {
        "server": sighting.server,
        "tool": sighting.tool,
        "lifetime": sighting.lifetime.value,
        "since": sighting.since,
        "identity": sighting.identity,
        "definition": _canonical(sighting.definition),
    }


def _from_table(entry: Mapping[str, Any]) -> Sighting | None:
    match entry:
        case {
            "server": str(server),
            "tool": str(tool),
            "lifetime": str(lifetime),
            "since": datetime() as since,
            "identity": str(identity),
            "definition": str(text),
        } if lifetime in Lifetime._value2member_map_:
            try:
                definition = json.loads(text)
            except (ValueError, RecursionError):
                return None
            known = isinstance(definition, dict)
            return Sighting(server, tool, identity, definition, since, Lifetime(lifetime)) if known else None
    return None
