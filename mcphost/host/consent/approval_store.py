"""The approvals file: what the user allowed, kept between runs and shared by several of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.host.background import BackgroundTasks
from mcphost.host.consent.approvals import ApprovalRule, Approvals, ApprovedTool, Gate, Lifetime, by_tool
from mcphost.host.events import EventBus, GrantsChanged
from mcphost.host.internal_error import describe_failure
from mcphost.json_values import canonical, dicts_in

if TYPE_CHECKING:  # imported when a skill is approved or was: most runs have none
    from mcphost.host.consent.skill_approvals import ApprovedSkill, SkillApprovals


def to_toml(approved: Iterable[ApprovedTool]) -> dict[str, Any]:
    """The content of the approvals file."""
    return {"approval": [_as_table(each) for each in approved]}


def from_toml(data: Mapping[str, Any]) -> list[ApprovedTool]:
    """Read the approvals file."""
    read = (_from_table(entry) for entry in dicts_in(data.get("approval")))
    return [tool for tool in read if tool is not None]


def merged(data: Mapping[str, Any], before: Sequence[ApprovedTool], after: Sequence[ApprovedTool]) -> dict[str, Any]:
    """The content of the approvals file ``data`` with only that changed which differs between ``before`` and ``after``.

    Two mcphosts may run: neither takes back what was allowed in the other, nor keeps what was revoked there.
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
    gate = {} if tool.gate is None else {"gate": tool.gate._asdict()}
    return table | gate | ({"rules": rules} if rules else {})


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
            gate = _gate(entry["gate"]) if "gate" in entry else None
            if not isinstance(definition, dict) or ("gate" in entry and gate is None):
                return None
            return ApprovedTool(server, tool, identity, definition, since, Lifetime(lifetime), rules, gate)
    return None


def _gate(table: Any) -> Gate | None:
    match table:
        case {"folder": str(folder), "agent": str(agent)}:
            return Gate(folder, agent)
    return None


def _rule(table: Mapping[str, Any]) -> ApprovalRule | None:
    match table:
        case {"when": dict(when), "since": datetime() as since, "lifetime": "session" | "always" as lifetime} if when:
            texts = all(isinstance(pattern, str) for pattern in when.values())
            return ApprovalRule(when, since, Lifetime(lifetime)) if texts else None
    return None


def _merged_tables(tables: object, before: Sequence[ApprovedSkill], after: Sequence[ApprovedSkill] | None) -> object:
    """The tables of skills in the file, with what changed here; unread where nothing did."""
    if after is None:
        return tables
    from mcphost.host.consent.saved_skills import merged_skills, skill_tables, skills_from_tables

    return skill_tables(merged_skills(skills_from_tables(tables), before, after))


APPROVALS: Final = "approvals"

_UNKNOWN: Final = object()
"""The version of a file that must be read again."""


class ApprovalStore:
    """The approvals, read from and written to ``store`` (None: kept for this run only)."""

    def __init__(self, store: StateStore | None, background: BackgroundTasks, bus: EventBus) -> None:
        self._store, self._background, self._bus = store, background, bus
        self.approvals = Approvals()
        self._writing = asyncio.Lock()
        self._stale = False
        self._saved: Sequence[ApprovedTool] = ()
        self._skills: SkillApprovals | None = None
        self._saved_skills: Sequence[ApprovedSkill] = ()
        self._skill_tables: object = ()
        """The saved approvals of skills, as long as nothing reads them."""
        self._version: object = _UNKNOWN
        """Of the file as it was read last."""

    async def load(self) -> None:
        """Read what was allowed in earlier runs. Raises ConfigError."""
        if self._store is not None:
            self._version = self._store.version(APPROVALS)
            data = await asyncio.to_thread(self._store.read, APPROVALS)
            self._saved, self._skill_tables = from_toml(data), data.get("skill")
            self.approvals = Approvals(self._saved)

    @property
    def has_skills(self) -> bool:
        """True if a skill is approved or was seen; False spares reading them."""
        return self._skills is not None or bool(self._skill_tables)

    @property
    def skills(self) -> SkillApprovals:
        """The approvals of skills."""
        if self._skills is None:
            from mcphost.host.consent.saved_skills import skills_from_tables
            from mcphost.host.consent.skill_approvals import SkillApprovals

            self._saved_skills = skills_from_tables(self._skill_tables)
            self._skills = SkillApprovals(self._saved_skills)
        return self._skills

    async def refresh(self) -> None:
        """Adopt what another mcphost allowed or revoked meanwhile. Never raises: a failure is an alarm.

        Reads the folder's entry of the file, and the file only after it was written.
        """
        if self._store is None or self.is_current:
            return
        async with self._writing:
            self._version = self._store.version(APPROVALS)
            try:
                data = await asyncio.to_thread(self._store.read, APPROVALS)
            except ConfigError as error:
                self._bus.alarm(f"what you allowed could not be read again: {error}")
                return
            there, before, ours = from_toml(data), self._saved, tuple(self.approvals.saved_part())
            self._saved = there
            now = _merged_all(there, before, ours)
            changed = self._refresh_skills(data.get("skill"))
            if by_tool(now) != by_tool(ours):
                self.approvals.replace_saved_part(now)
                changed = True
            if changed:
                self._bus.publish(GrantsChanged())

    def _refresh_skills(self, tables: object) -> bool:
        """Adopt the approvals of skills in the file. True when they are others."""
        self._skill_tables = tables
        if self._skills is None:
            return False
        from mcphost.host.consent.saved_skills import merged_skills, skills_from_tables

        there, before, ours = skills_from_tables(tables), self._saved_skills, tuple(self._skills.saved_part())
        self._saved_skills = there
        now = merged_skills(there, before, ours)
        if {each.key: each for each in now} == {each.key: each for each in ours}:
            return False
        self._skills.replace_saved_part(now)
        return True

    @property
    def is_current(self) -> bool:
        """True if the file is as it was read or written last."""
        return self._store is None or self._version == self._store.version(APPROVALS)

    def changed(self) -> None:
        """Publish that the approvals changed, and start to save them."""
        self._stale = True
        self._bus.publish(GrantsChanged())
        self._background.start_if_open(self.save(), "save approvals")

    async def save(self) -> None:
        """Write what changed. Never raises: a failure is an alarm."""
        async with self._writing:
            if self._store is None or not self._stale:
                return
            self._stale = False
            # Another mcphost may write right after this one, even before the thread below has come back: to look the
            # same as before this write would then mean nothing.
            self._version = _UNKNOWN
            before, after = self._saved, tuple(self.approvals.saved_part())
            skills_before = self._saved_skills
            skills_after = None if self._skills is None else tuple(self._skills.saved_part())

            def change(data: Mapping[str, Any]) -> Mapping[str, Any]:
                kept = _merged_tables(data.get("skill"), skills_before, skills_after)
                return merged(data, before, after) | ({"skill": kept} if kept else {})

            try:
                await asyncio.to_thread(self._store.update, APPROVALS, change)
                self._saved = after
                self._saved_skills = skills_before if skills_after is None else skills_after
            except Exception as error:
                self._bus.alarm(f"what you allowed could not be saved: {describe_failure(error)}")
