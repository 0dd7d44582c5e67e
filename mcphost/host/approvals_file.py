"""The file of approvals: what stands in it, and how two mcphosts change it without taking back what the other was told.

Knows tables and their shapes. Refuses to know where the file lies, and believes nothing of a wrong shape: what is left
out only means asking again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mcphost.host.approvals import ApprovalRule, Lifetime, SeenDefinition, by_tool
from mcphost.protocol.wire import canonical


def to_toml(sightings: Iterable[SeenDefinition]) -> dict[str, Any]:
    """The content of the approvals file."""
    return {"approval": [_as_table(each) for each in sightings]}


def from_toml(data: Mapping[str, Any]) -> list[SeenDefinition]:
    """Read the approvals file."""
    read = (_from_table(entry) for entry in _tables(data.get("approval")))
    return [sighting for sighting in read if sighting is not None]


def merged(
    data: Mapping[str, Any], before: Sequence[SeenDefinition], after: Sequence[SeenDefinition]
) -> dict[str, Any]:
    """The content of the approvals file ``data`` with only that changed which differs between ``before`` and ``after``.

    Two mcphosts may run: neither takes back what the other was told, nor keeps what was revoked there.
    """
    kept, old, new = (by_tool(sightings) for sightings in (from_toml(data), before, after))
    for key in old.keys() | new.keys():
        if old.get(key) == new.get(key):
            continue
        if key in new:
            kept[key] = _merged(kept.get(key), old.get(key), new[key])
        else:
            kept.pop(key, None)
    return to_toml(kept.values())


def _merged(theirs: SeenDefinition | None, old: SeenDefinition | None, new: SeenDefinition) -> SeenDefinition:
    """The tool as we know it now, with what was allowed or taken back elsewhere since it was ``old``."""
    if theirs is not None and theirs.fingerprint != new.fingerprint:
        return new
    nothing = replace(new, lifetime=Lifetime.ONCE, rules=())
    there = theirs or nothing
    before = old if old is not None and old.fingerprint == new.fingerprint else nothing
    ours = [rule for rule in new.rules if rule in there.rules or rule not in before.rules]
    rules = (*(rule for rule in there.rules if rule not in (*before.rules, *ours)), *ours)
    whole_before, whole = (each.since if each.lifetime is Lifetime.ALWAYS else None for each in (before, new))
    return replace(there if whole == whole_before else new, rules=rules)


def _as_table(sighting: SeenDefinition) -> dict[str, Any]:
    table = {
        "server": sighting.server,
        "tool": sighting.tool,
        "lifetime": sighting.lifetime.value,
        "since": sighting.since,
        "identity": sighting.identity,
        "definition": canonical(sighting.definition),
    }
    rules = [{"when": dict(r.when), "since": r.since, "lifetime": r.lifetime.value} for r in sighting.rules]
    return table | ({"rules": rules} if rules else {})


def _from_table(entry: Mapping[str, Any]) -> SeenDefinition | None:
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
            rules = tuple(rule for table in _tables(entry.get("rules")) if (rule := _rule(table)) is not None)
            known = isinstance(definition, dict)
            return (
                SeenDefinition(server, tool, identity, definition, since, Lifetime(lifetime), rules) if known else None
            )
    return None


def _rule(table: Mapping[str, Any]) -> ApprovalRule | None:
    match table:
        case {"when": dict(when), "since": datetime() as since, "lifetime": "session" | "always" as lifetime} if when:
            texts = all(isinstance(pattern, str) for pattern in when.values())
            return ApprovalRule(when, since, Lifetime(lifetime)) if texts else None
    return None


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
