"""The approvals file: what the user allowed, kept between runs and shared by several of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.host.consent.approvals import ApprovalRule, Approvals, ApprovedTool, Lifetime, by_tool
from mcphost.host.internal_error import internal_error
from mcphost.json_values import dicts_in
from mcphost.protocol.models.base import canonical


def to_toml(approved: Iterable[ApprovedTool]) -> dict[str, Any]:
    """The content of the approvals file."""
    return {"approval": [_as_table(each) for each in approved]}


def from_toml(data: Mapping[str, Any]) -> list[ApprovedTool]:
    """Read the approvals file."""
    read = (_from_table(entry) for entry in dicts_in(data.get("approval")))
    return [tool for tool in read if tool is not None]


def merged(data: Mapping[str, Any], before: Sequence[ApprovedTool], after: Sequence[ApprovedTool]) -> dict[str, Any]:
    """The content of the approvals file ``data`` with only that changed which differs between ``before`` and ``after``.

    Two mcphosts may run: neither takes back what the other was told, nor keeps what was revoked there.
    """
    return to_toml(_merged_all(from_toml(data), before, after))


def _merged_all(
    there: Sequence[ApprovedTool], before: Sequence[ApprovedTool], after: Sequence[ApprovedTool]
) -> list[ApprovedTool]:
    kept, old, new = (by_tool(approved) for approved in (there, before, after))
    for key in old.keys() | new.keys():
        if old.get(key) == new.get(key):
            continue
        if key in new:
            kept[key] = _merged(kept.get(key), old.get(key), new[key])
        else:
            kept.pop(key, None)
    return list(kept.values())


def _merged(theirs: ApprovedTool | None, old: ApprovedTool | None, new: ApprovedTool) -> ApprovedTool:
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


def _as_table(tool: ApprovedTool) -> dict[str, Any]:
    table = {
        "server": tool.server,
        "tool": tool.tool,
        "lifetime": tool.lifetime.value,
        "since": tool.since,
        "identity": tool.identity,
        "definition": canonical(tool.definition),
    }
    rules = [{"when": dict(r.when), "since": r.since, "lifetime": r.lifetime.value} for r in tool.rules]
    return table | ({"rules": rules} if rules else {})


def _from_table(entry: Mapping[str, Any]) -> ApprovedTool | None:
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
            rules = tuple(rule for table in dicts_in(entry.get("rules")) if (rule := _rule(table)) is not None)
            known = isinstance(definition, dict)
            return ApprovedTool(server, tool, identity, definition, since, Lifetime(lifetime), rules) if known else None
    return None


def _rule(table: Mapping[str, Any]) -> ApprovalRule | None:
    match table:
        case {"when": dict(when), "since": datetime() as since, "lifetime": "session" | "always" as lifetime} if when:
            texts = all(isinstance(pattern, str) for pattern in when.values())
            return ApprovalRule(when, since, Lifetime(lifetime)) if texts else None
    return None


APPROVALS: Final = "approvals"

_UNKNOWN: Final = object()
"""The version of a file that must be read again."""


class ApprovalStore:
    """Reads and writes approvals through ``store`` (None: there is none); ``alarm`` takes a sentence for the user."""

    def __init__(self, store: StateStore | None, alarm: Callable[[str], None]) -> None:
        self._store, self._alarm = store, alarm
        self._writing = asyncio.Lock()
        self._stale = False
        self._saved: Sequence[ApprovedTool] = ()
        self._version: object = _UNKNOWN
        """Of the file as it was read last."""

    async def approvals(self) -> Approvals:
        """What was allowed in earlier runs. Raises ConfigError."""
        if self._store is None:
            return Approvals()
        self._version = self._store.version(APPROVALS)
        self._saved = from_toml(await asyncio.to_thread(self._store.read, APPROVALS))
        return Approvals(self._saved)

    async def refresh(self, approvals: Approvals) -> bool:
        """Take over what another mcphost allowed or revoked since; True if anything. Never raises.

        Costs a look at the file's entry in its folder, and more only after somebody wrote it.
        """
        if self._store is None or self._version == self._store.version(APPROVALS):
            return False
        async with self._writing:
            self._version = self._store.version(APPROVALS)
            try:
                there = await asyncio.to_thread(self._read, self._store)
            except ConfigError as error:
                self._alarm(f"what you allowed could not be read again: {error}")
                return False
            before, ours = self._saved, tuple(approvals.lasting())
            self._saved = there
            now = _merged_all(there, before, ours)
            if by_tool(now) == by_tool(ours):
                return False
            approvals.replace_lasting(now)
            return True

    @staticmethod
    def _read(store: StateStore) -> Sequence[ApprovedTool]:
        return from_toml(store.read(APPROVALS))

    def mark_stale(self) -> None:
        """The approvals are others than were written last."""
        self._stale = True

    async def save(self, approvals: Approvals) -> None:
        """Write what changed, if anything did. Never raises: what cannot be saved is an alarm."""
        async with self._writing:
            if self._store is None or not self._stale:
                return
            self._stale = False
            # Another mcphost may write right after this one, even before the thread below has come back: to look the
            # same as before this write would then mean nothing.
            self._version = _UNKNOWN
            before, after = self._saved, tuple(approvals.lasting())
            try:
                await asyncio.to_thread(self._store.update, APPROVALS, lambda data: merged(data, before, after))
                self._saved = after
            except ConfigError as error:
                self._alarm(f"what you allowed could not be saved: {error}")
            except Exception as error:
                self._alarm(f"what you allowed could not be saved: {internal_error(error)}")
