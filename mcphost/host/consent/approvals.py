"""The user's approvals, bound to the tool as its server defined it and the command that was shown.

A tool is found by its server's *configured* name; what a server calls itself counts for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcphost.host.consent.argument_rules import fits, in_words
from mcphost.host.consent.definition_diff import Difference, differences
from mcphost.json_values import canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Tool

ANY: Final[Mapping[str, str]] = MappingProxyType({})
"""Patterns for no argument: an answer that is not bound to what the arguments are."""


class Lifetime(Enum):
    """The time for which an answer holds."""

    ONCE = "once"
    SESSION = "session"
    """Until mcphost exits."""
    ALWAYS = "always"
    """Until it is revoked, the tool changes, or `mcphost.config.Policy.remember_days` went by."""

    @property
    def words(self) -> str:
        return "until mcphost exits" if self is Lifetime.SESSION else self.value

    def lapsed(self, since: datetime, oldest: datetime | None) -> bool:
        """True if an answer of ``since`` is older than ``oldest``, and lapses at all (``oldest`` None: none does)."""
        return self is Lifetime.ALWAYS and oldest is not None and since.astimezone() < oldest


class Gate(NamedTuple):
    """Where calls come through a gate: approvals of one folder, or of one agent, leave those of others as they are."""

    folder: str = ""
    """The folder that the server runs in; empty for an address."""
    agent: str = ""
    """The agent's name of ``--as``. An approval without one holds for every agent."""

    @property
    def words(self) -> str:
        """Which calls those are, safe to show and on one line; empty for all."""
        agent = f"for {show_line(self.agent, 60)}" if self.agent else ""
        folder = f"in {show_line(self.folder, 120)}" if self.folder else ""
        return " ".join(filter(None, (agent, folder)))


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """Patterns by argument (see `mcphost.host.consent.argument_rules`), and how long they allow calls."""

    when: Mapping[str, str]
    since: datetime
    lifetime: Lifetime


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that runs without asking: any of the tool, or ``when`` its arguments match; or a skill that loads so."""

    server: str
    tool: str
    """The tool's name; empty for the read-only ``tools`` of the server."""
    when: Mapping[str, str]
    since: datetime
    lifetime: Lifetime
    tools: Sequence[str] = ()
    """The names of the tools that were allowed together."""
    gate: Gate | None = None
    """The gate whose calls are allowed; None: mcphost's own."""
    skill: str = ""
    """The URI of the skill that is loaded; empty for tools."""
    files: int = 0
    """The number of the skill's files."""

    @property
    def label(self) -> str:
        """The tool or the tools, or the skill, safe to show and on one line."""
        if self.skill:
            return f"skill {show_line(self.skill.split('/')[-2], 200)}"
        return show_line(self.tool, 200) if self.tool else f"{len(self.tools)} read-only tools"

    @property
    def arguments(self) -> str:
        """The arguments of calls that run, or the files of the skill, safe to show and on one line."""
        if self.skill:
            return f"{self.files} {'file' if self.files == 1 else 'files'} as listed then"
        return f"where {in_words(self.when)}" if self.when else "any arguments"

    @property
    def words(self) -> str:
        """Which calls that are, safe to show and on one line."""
        if self.skill:
            same = "its file is" if self.files == 1 else f"its {self.files} files are"
            return f"{show_line(self.skill, 200)}, as long as {same} the same"
        if self.tools:
            return f"read-only, as the server says: {', '.join(show_line(name, 60) for name in self.tools)}"
        return " ".join(filter(None, (self.arguments, self.gate and self.gate.words)))


@dataclass(frozen=True, slots=True)
class ReadOnlyApproval:
    """The read-only tools of a server that the user allowed together, until mcphost exits.

    Each is allowed as it was defined then, and as long as the same program runs it.
    """

    identity: str
    tools: Mapping[str, Tool]
    """By name."""
    since: datetime

    def covers(self, identity: str, tool: Tool) -> bool:
        known = self.tools.get(tool.name)
        return known is not None and self.identity == identity and (known is tool or known.canonical == tool.canonical)


@dataclass(frozen=True)
class ApprovedTool:
    """A tool as it was when the user allowed it: what to compare with, and how long the answer holds."""

    server: str
    tool: str
    identity: str
    """Identity of the program, as shown: command line or URL, folder, names of variables and headers."""
    definition: Mapping[str, Any]
    since: datetime
    lifetime: Lifetime = Lifetime.ONCE
    rules: tuple[ApprovalRule, ...] = ()
    """The rules by argument, oldest first; no two have the same patterns."""
    gate: Gate | None = None
    """The gate that it was allowed for; None: for mcphost's own calls."""

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.identity, self.definition)

    def was_given_to(self, identity: str, definition: Mapping[str, Any]) -> bool:
        """True if this tool was the one allowed."""
        return self.fingerprint == fingerprint(identity, definition) or self.fingerprint == fingerprint(
            identity, as_kept_before(definition)
        )

    @property
    def grants(self) -> Iterator[Approval]:
        """The calls that run without asking."""
        if self.lifetime is not Lifetime.ONCE:
            yield Approval(self.server, self.tool, ANY, self.since, self.lifetime, gate=self.gate)
        for rule in self.rules:
            yield Approval(self.server, self.tool, rule.when, rule.since, rule.lifetime, gate=self.gate)

    @property
    def saved_part(self) -> ApprovedTool:
        """The part that is saved. An approval for this run is saved as a tool that was seen."""
        rules = tuple(rule for rule in self.rules if rule.lifetime is Lifetime.ALWAYS)
        lifetime = Lifetime.ONCE if self.lifetime is Lifetime.SESSION else self.lifetime
        return replace(self, lifetime=lifetime, rules=rules)

    @property
    def session_part(self) -> ApprovedTool:
        """The part that ends with this run."""
        rules = tuple(rule for rule in self.rules if rule.lifetime is Lifetime.SESSION)
        lifetime = Lifetime.SESSION if self.lifetime is Lifetime.SESSION else Lifetime.ONCE
        return replace(self, lifetime=lifetime, rules=rules)

    def merged(self, session: ApprovedTool) -> ApprovedTool:
        """Return this saved part with the `session_part` of the same tool."""
        known = [rule.when for rule in self.rules]
        rules = (*self.rules, *(rule for rule in session.rules if rule.when not in known))
        if self.lifetime is Lifetime.ONCE and session.lifetime is Lifetime.SESSION:
            return replace(self, lifetime=session.lifetime, since=session.since, rules=rules)
        return replace(self, rules=rules)

    def allowed(self, lifetime: Lifetime, now: datetime, when: Mapping[str, str]) -> ApprovedTool:
        """Add an approval of the same tool; a longer-lived earlier one outlives the approval of one call."""
        known = next((rule.lifetime for rule in self.rules if rule.when == when), None) if when else self.lifetime
        if lifetime is Lifetime.ONCE or lifetime is known is Lifetime.SESSION:
            return self
        if not when:
            return replace(self, lifetime=lifetime, since=now)
        return replace(self, rules=(*self._rules_but(when), ApprovalRule(dict(when), now, lifetime)))

    def revoked(self, when: Mapping[str, str]) -> ApprovedTool | None:
        """Take back one approval; None if none is left."""
        left = replace(self, rules=self._rules_but(when)) if when else replace(self, lifetime=Lifetime.ONCE)
        return left if any(left.grants) else None

    def _rules_but(self, when: Mapping[str, str]) -> tuple[ApprovalRule, ...]:
        return tuple(rule for rule in self.rules if rule.when != when)


class ApprovalStatus(Enum):
    """The result of comparing a tool with its last approval."""

    NEW = "new"
    UNCHANGED = "unchanged"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class ToolApproval:
    """Compares a tool with what the user allowed earlier."""

    kind: ApprovalStatus
    since: datetime | None = None
    differences: Sequence[Difference] = ()
    lifetime: Lifetime = Lifetime.ONCE
    moved: bool = False
    """True if the server's command or address changed since the approval."""
    rules: Sequence[ApprovalRule] = ()
    lapsed: bool = False
    """True if an approval for good is too old to hold."""
    together: datetime | None = None
    """When it was allowed together with the other read-only tools of its server; None: it was not."""

    @property
    def may_lapse(self) -> bool:
        """True if an approval may be too old to hold."""
        return self.lifetime is Lifetime.ALWAYS or bool(self.rules)

    def not_before(self, oldest: datetime | None) -> ToolApproval:
        """Without the answers that are older than that. See `Lifetime.lapsed`."""
        gone = self.since is not None and self.lifetime.lapsed(self.since, oldest)
        rules = tuple(rule for rule in self.rules if not rule.lifetime.lapsed(rule.since, oldest))
        lifetime = Lifetime.ONCE if gone else self.lifetime
        return replace(self, lifetime=lifetime, rules=rules, lapsed=gone or len(rules) < len(self.rules))

    def remembered(self, arguments: Mapping[str, Any]) -> str | None:
        """The answer by which it may run with these without asking, in words; None when it may not."""
        return self._remembered_alone(arguments) or self._remembered_together

    def _remembered_alone(self, arguments: Mapping[str, Any]) -> str | None:
        if self.kind is not ApprovalStatus.UNCHANGED or self.since is None:
            return None
        if self.lifetime is not Lifetime.ONCE:
            return f"allowed by you, {self.lifetime.words}, on {self.since:%d %b %Y %H:%M}"
        rule = next((rule for rule in self.rules if fits(rule.when, arguments)), None)
        if rule is None:
            return None
        return f"allowed by you where {in_words(rule.when)}, {rule.lifetime.words}, on {rule.since:%d %b %Y %H:%M}"

    @property
    def _remembered_together(self) -> str | None:
        if self.together is None:
            return None
        until = f"{Lifetime.SESSION.words}, on {self.together:%d %b %Y %H:%M}"
        return f"allowed by you with the server's read-only tools, {until}; it is read-only as the server says"


def fingerprint(identity: str, definition: Mapping[str, Any]) -> str:
    """Equal exactly when command and definition are; the order of members does not count."""
    return hashlib.sha256(canonical([identity, definition]).encode()).hexdigest()


_RENAMED: Final = {"input_schema": "inputSchema", "output_schema": "outputSchema"}
_RENAMED_HINTS: Final = {
    "read_only_hint": "readOnlyHint",
    "destructive_hint": "destructiveHint",
    "idempotent_hint": "idempotentHint",
    "open_world_hint": "openWorldHint",
}
_FLAGS: Final = dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True) | dict.fromkeys(
    ("0", "off", "f", "false", "n", "no"), False
)


def as_kept_before(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The definition as version 0.1.0 kept it, so that what was allowed then still holds.

    Hints written as texts or numbers are true or false in it, and a few members have other names.
    """
    kept = _renamed(definition, _RENAMED)
    if isinstance(hints := kept.get("annotations"), dict):
        known = _RENAMED_HINTS.values()
        renamed = _renamed(hints, _RENAMED_HINTS).items()
        kept["annotations"] = {name: _flag(value) if name in known else value for name, value in renamed}
    return kept


def _renamed(members: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {name if (new := names.get(name, name)) in members else new: value for name, value in members.items()}


def _flag(value: Any) -> Any:
    if isinstance(value, str):
        return _FLAGS.get(value.lower(), value)
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else value


_Key = tuple[str, str, Gate | None]


class Approvals:
    """All approvals, by server and tool name, and by gate."""

    def __init__(self, approved: Iterable[ApprovedTool] = ()) -> None:
        self._approved = by_tool(approved)
        self._unchanged: dict[_Key, tuple[ApprovedTool, str, Tool, ToolApproval]] = {}
        """The last comparisons that found no change: a tool is the same object until its server lists it again."""
        self._read_only: dict[str, ReadOnlyApproval] = {}
        """By server; never saved."""

    def status_of(self, server: str, identity: str, tool: Tool, gate: Gate | None = None) -> ToolApproval:
        """Compare a tool with what the user allowed earlier, for calls of mcphost or those through a gate."""
        if gate is not None:
            everyone = self._compared(server, identity, tool, gate._replace(agent=""))
            return _either(self._compared(server, identity, tool, gate), everyone) if gate.agent else everyone
        alone, together = self._compared(server, identity, tool, None), self._read_only.get(server)
        if together is None or tool.name not in together.tools or alone.kind is ApprovalStatus.CHANGED:
            return alone
        if together.covers(identity, tool):
            return replace(alone, together=together.since)
        if alone.kind is ApprovalStatus.UNCHANGED:
            return alone
        known = ApprovedTool(
            server, tool.name, together.identity, together.tools[tool.name].definition(), together.since
        )
        return _changed(known, identity, tool.definition())

    def _compared(self, server: str, identity: str, tool: Tool, gate: Gate | None) -> ToolApproval:
        key = server, tool.name, gate
        known = self._approved.get(key)
        if known is None:
            return ToolApproval(ApprovalStatus.NEW)
        before = self._unchanged.get(key)
        if before is not None and before[0] is known and before[1] == identity and before[2] is tool:
            return before[3]
        definition = tool.definition()
        if known.was_given_to(identity, definition):
            same = ToolApproval(ApprovalStatus.UNCHANGED, known.since, lifetime=known.lifetime, rules=known.rules)
            self._unchanged[key] = known, identity, tool, same
            return same
        return _changed(known, identity, definition)

    def allow(
        self,
        server: str,
        identity: str,
        tool: Tool,
        lifetime: Lifetime,
        now: datetime,
        when: Mapping[str, str] = ANY,
        gate: Gate | None = None,
    ) -> bool:
        """Remember that the user allowed this tool as it is, for good only ``when`` these arguments match.

        What was allowed of another definition is dropped. True when that is something new.
        """
        fresh = ApprovedTool(server, tool.name, identity, tool.definition(), now, gate=gate)
        known = self._approved.get((server, tool.name, gate))
        same = known is not None and known.was_given_to(identity, fresh.definition)
        after = (known if known is not None and same else fresh).allowed(lifetime, now, when)
        self._approved[server, tool.name, gate] = after
        return after is not known

    def gate_of(self, server: str, tool: Tool, gate: Gate) -> Gate:
        """The gate for which an answer is kept: for the agent alone where something was allowed for it alone."""
        return gate if (server, tool.name, gate) in self._approved else gate._replace(agent="")

    def allow_read_only(self, server: str, identity: str, tools: Iterable[Tool], now: datetime) -> None:
        """Remember for this run that the user allowed these tools together, as they are, in place of earlier ones."""
        self._read_only[server] = ReadOnlyApproval(identity, {tool.name: tool for tool in tools}, now)

    def revoke(self, server: str, tool: str, when: Mapping[str, str] = ANY, gate: Gate | None = None) -> None:
        """Take back one approval; with the last one, the approved definition is forgotten.

        Without a ``tool``, take back that of the server's read-only tools.
        """
        if not tool:
            self._read_only.pop(server, None)
            return
        known = self._approved.pop((server, tool, gate), None)
        left = None if known is None else known.revoked(when)
        if left is not None:
            self._approved[server, tool, gate] = left

    def forget(self, server: str) -> int:
        """Forget every tool of this server; how many there were."""
        keys = [key for key in self._approved if key[0] == server]
        names = {tool for _, tool, _ in keys}
        for key in keys:
            del self._approved[key]
        together = self._read_only.pop(server, None)
        return len(names.union(together.tools if together else ()))

    def grants(self, oldest: datetime | None = None) -> list[Approval]:
        """The approved calls, without approvals for good that are older than ``oldest``."""
        given = (grant for each in self._approved.values() for grant in each.grants)
        together = (
            Approval(server, "", ANY, each.since, Lifetime.SESSION, tuple(each.tools))
            for server, each in self._read_only.items()
        )
        return [*(grant for grant in given if not grant.lifetime.lapsed(grant.since, oldest)), *together]

    def replace_saved_part(self, saved: Iterable[ApprovedTool]) -> None:
        """Replace the saved approvals. Approvals for this run are kept."""
        before = self._approved
        session_parts = {key: each.session_part for key, each in before.items()}
        kept = {key: each for key, each in session_parts.items() if any(each.grants)}
        for key, tool in by_tool(saved).items():
            session = kept.get(key)
            same = session is not None and session.fingerprint == tool.fingerprint
            kept[key] = tool.merged(session) if session is not None and same else tool
        # The same object where nothing changed, so that it need not be compared with the tool again.
        self._approved = {key: before[key] if before.get(key) == each else each for key, each in kept.items()}

    def saved_part(self) -> Iterator[ApprovedTool]:
        """Return what is saved: everything but the approvals for this run."""
        return (each.saved_part for each in self._approved.values())


def oldest_for(days: float) -> datetime | None:
    """When an approval for good must have been given to hold now, with ``policy.remember_days``; None: whenever."""
    return datetime.now().astimezone() - timedelta(days=days) if days else None


def by_tool(approved: Iterable[ApprovedTool]) -> dict[_Key, ApprovedTool]:
    """By server and tool name, and by gate."""
    return {(each.server, each.tool, each.gate): each for each in approved}


def _either(own: ToolApproval, everyone: ToolApproval) -> ToolApproval:
    """Join the approvals for one agent with those for every agent; a change of its own comes first."""
    if ApprovalStatus.NEW in (own.kind, everyone.kind):
        return everyone if own.kind is ApprovalStatus.NEW else own
    if ApprovalStatus.CHANGED in (own.kind, everyone.kind):
        return own
    whole = everyone if own.lifetime is Lifetime.ONCE else own
    return replace(whole, rules=(*own.rules, *everyone.rules))


def _changed(known: ApprovedTool, identity: str, definition: Mapping[str, Any]) -> ToolApproval:
    changes = (*_changed_command(known.identity, identity), *differences(known.definition, definition))
    return ToolApproval(ApprovalStatus.CHANGED, known.since, changes, known.lifetime, moved=identity != known.identity)


def _changed_command(before: str, after: str) -> list[Difference]:
    return [] if before == after else [Difference("command", before, after)]
