"""``mcphost allow``: allow a tool or a skill beforehand, list what is allowed, and take it back."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.approver import NO_CUT, confirmed, readable_json
from mcphost.cli.failures import BrokenServers, failure
from mcphost.cli.margin import framed, labelled
from mcphost.cli.output import Exit, Outcome, json_text, remark, table
from mcphost.cli.preparation import run_without_calls, select_server
from mcphost.cli.run import finish, run
from mcphost.cli.settings import find, settings_for_screen
from mcphost.cli.terminal import has_terminal, say, terminal_size
from mcphost.config import Config, state_folder
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, InvalidResult, UnknownName, UsageError
from mcphost.host.agents.declined import DeclinedCall, DeclinedCalls
from mcphost.host.audit import AuditLog, AuditWriter
from mcphost.host.background import BackgroundTasks
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.approvals import Approval, Approvals, Gate, Lifetime, ToolApproval, oldest_for
from mcphost.host.consent.argument_rules import in_words, left_open, problem
from mcphost.host.consent.policy import GatedBy, PolicyDecision, decide
from mcphost.host.consent.questions import why_not_always
from mcphost.host.events import Alarmed, EventBus
from mcphost.host.traffic.spool import mask_of
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line, show_name, size_text
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.skill_uris import SKILL_FILE
from mcphost.redaction import safe_command

if TYPE_CHECKING:
    from mcphost.host.consent.skill_approvals import SkillApproval
    from mcphost.host.host import Host
    from mcphost.protocol.models.skills import Skill

HEADING: Final = ("SERVER:NAME", "AGENT", "CALLS", "SINCE", "RUNS")


@dataclass(frozen=True, slots=True)
class AllowedTool:
    """A tool that the user may allow, with all that the approval is bound to."""

    server: str
    tool: Tool
    identity: str
    gate: Gate | None
    """The gate whose calls are allowed; None: mcphost's own."""
    declined: datetime | None = None
    """When a call of it was declined."""


def run_allow(options: Namespace) -> int:
    """List approvals, take some back, or allow a tool."""
    if options.list:
        oldest = oldest_for(_config(options).policy.remember_days)
        return finish(run(list_approvals((options.tool or "").partition(":")[0], oldest, as_json=options.json)))
    when = _patterns(options.when)
    server, tool = _named(options.tool, removes=options.remove)
    if options.remove:
        return finish(run(take_back(server, tool, options.agent, when, _config(options))))
    if not has_terminal():
        raise UsageError("allow asks you first, and there is no terminal to ask on; run it in a terminal")
    config = _config(options)
    if found := _declined(server, tool, options.agent):
        return finish(run(allow(found, when, config)))
    if options.agent is not None or server not in config.servers:
        raise _unknown(server, tool, options.agent)
    options.server = server
    chosen, _ = select_server(options)
    return run_without_calls(
        options, chosen, lambda host: _allow_configured(host, server, tool, when, config, chosen.broken)
    )


async def allow(found: Sequence[AllowedTool], when: Mapping[str, str], config: Config) -> Outcome:
    """Show each tool with what runs it, ask, and write the approval. Raises ConfigError, and Declined."""
    saved = _SavedApprovals(config)
    approvals = await saved.load()
    lines, remarks = list[str](), list[str]()
    for each in found:
        name = f"{each.server}:{each.tool.name}"
        status = approvals.status_of(each.server, each.identity, each.tool, each.gate)
        if why := each.tool.refusal or why_not_always(each.tool, status, gated=each.gate is not None):
            raise ConfigError(f"{show_line(name)} cannot be allowed beforehand: {why}")
        say(*_shown(each, status, when, config))
        if not await confirmed(
            f"Allow {show_name(each.tool.name)} of {show_line(each.server)}{_while(config)}? [y/N] "
        ):
            remarks.append(f"{show_line(name)} was not allowed")
            continue
        now = datetime.now().astimezone()
        await saved.record(each.server, {"tool": each.tool.name}, each.identity, when, each.gate, allowed=True)
        approvals.allow(each.server, each.identity, each.tool, Lifetime.ALWAYS, now, when, each.gate)
        await saved.save()
        lines.append(f"{show_line(name)} is allowed{_which(each.gate, when)}")
    text = "".join(f"{line}\n" for line in lines)
    return Outcome(text, Exit.DECLINED if remarks else Exit.DONE, tuple(remarks))


async def list_approvals(server: str, oldest: datetime | None, *, as_json: bool) -> Outcome:
    """List what is allowed for good, of one server or of all, without what lapsed since it is older than ``oldest``."""
    saved = _SavedApprovals(Config.model_construct())
    await saved.load()
    listed = [(each, identity) for each, identity in saved.grants(oldest) if server in ("", each.server)]
    if as_json:
        return Outcome("".join(json_text(_as_object(each, identity)) for each, identity in listed))
    if not listed:
        return Outcome(remarks=("nothing is allowed; to allow the tool of a declined call: mcphost allow NAME:TOOL",))
    return Outcome(table([HEADING, *(_row(each, identity) for each, identity in listed)]))


async def take_back(server: str, tool: str, agent: str | None, when: Mapping[str, str], config: Config) -> Outcome:
    """Take back what was allowed of a tool: all, or for one agent, or by the rule with these patterns.

    Raises UnknownName where nothing was, and Declined.
    """
    saved = _SavedApprovals(config)
    await saved.load()
    fitting = [
        (each, identity)
        for each, identity in saved.grants()
        if each.server == server
        and (tool in (each.tool, each.skill) or each.skill.endswith(f"/{tool}/{SKILL_FILE}"))
        and (agent is None or (each.gate is not None and each.gate.agent == agent))
        and (not when or each.when == when)
    ]
    if not fitting:
        raise UnknownName(f"nothing of {show_line(f'{server}:{tool}')} is allowed; see mcphost allow --list")
    for each, identity in fitting:
        subject = {"skill": each.skill} if each.skill else {"tool": each.tool}
        await saved.record(each.server, subject, identity, each.when, each.gate, allowed=False)
        saved.revoke(each)
    await saved.save()
    lines = (f"{show_line(server)}:{each.label} is asked again: {each.words}\n" for each, _ in fitting)
    return Outcome("".join(lines))


async def _allow_configured(
    host: Host, server: str, tool: str, when: Mapping[str, str], config: Config, broken: BrokenServers
) -> Outcome:
    await host.servers.ready([server])
    connection = host.servers[server]
    if not connection.ready:
        raise failure(host, server, broken)
    try:
        listed = host.catalog.tool(server, tool)
    except UnknownName as unknown:
        if not connection.has_skills:
            raise
        try:
            skill = await host.skills.find(server, tool)
        except UnknownName as error:
            raise (error if "://" in tool else unknown) from None
        if when:
            raise UsageError("--when is for the arguments of a tool; a skill has none") from None
        return await allow_skill(server, skill, connection.config.identity, config)
    return await allow([AllowedTool(server, listed, connection.config.identity, None)], when, config)


async def allow_skill(server: str, skill: Skill, identity: str, config: Config) -> Outcome:
    """Show a skill as its server lists it, ask, and write the approval; no file is read.

    Raises ConfigError, and Declined.
    """
    name = f"{show_line(server)}:{show_name(skill.label, 80)}"
    from mcphost.host.consent.skill_approvals import why_not_always as why_not_kept  # late: most approve tools

    if why := skill.refusal or why_not_kept(skill):
        raise ConfigError(f"{name} cannot be allowed beforehand: {show_line(why)}")
    saved = _SavedApprovals(config)
    await saved.load()
    status = saved.store.skills.status_of(server, identity, skill)
    width, _ = terminal_size()
    say(*_skill_facts(server, skill, identity, status, width))
    say(*framed("Frontmatter", readable_json(skill.frontmatter), width))
    if not await confirmed(
        f"Allow the skill {show_name(skill.label, 80)} of {show_line(server)}{_while(config)}? [y/N] "
    ):
        return Outcome("", Exit.DECLINED, (f"{name} was not allowed",))
    await saved.record(server, {"skill": skill.uri}, identity, {}, None, allowed=True)
    saved.store.skills.allow(server, identity, skill, Lifetime.ALWAYS, datetime.now().astimezone())
    await saved.save()
    return Outcome(f"{name} is allowed, as long as its files are the same\n")


def _skill_facts(server: str, skill: Skill, identity: str, status: SkillApproval, width: int) -> Iterator[str]:
    yield from labelled("server", show_line(server), width)
    yield from labelled("runs", show_line(identity, NO_CUT), width)
    yield from labelled("skill", show_name(skill.label), width)
    yield from labelled("uri", show_line(skill.uri, NO_CUT), width)
    if status.differences:
        yield from labelled("history", f"CHANGED since you allowed it: {status.differences.words}", width)
    for change in status.differences.files:
        yield from labelled("changed", f"{show_name(change.path)}: {change.words}", width)
    for file in skill.files:
        yield from labelled(
            "file", f"{show_name(skill.path_of(file.uri))}, {size_text(file.size)}, {file.digest}", width
        )
    shows = f"mcphost skill read {shlex.quote(server)} {shlex.quote(skill.uri)}"
    yield from labelled("its text", f"not read for this; to read it: {show_line(shows, NO_CUT)}", width)


def _config(options: Namespace) -> Config:
    return settings_for_screen(find(options.config, os.environ), os.environ).loaded.config


def _declined(server: str, tool: str, agent: str | None) -> list[AllowedTool]:
    """The declined calls of a tool, the newest of each program, folder and agent. An unreadable definition is left out.

    Without an agent's name, one approval for every agent replaces those of each.
    """
    found = dict[tuple[str, Gate], AllowedTool]()
    for each in _all_declined():
        if (each.server, each.tool) != (server, tool) or agent not in (None, each.gate.agent):
            continue
        try:
            read = Tool.read(dict(each.definition))
        except InvalidResult:
            continue
        gate = each.gate if agent is not None else each.gate._replace(agent="")
        found[each.identity, gate] = AllowedTool(server, read, each.identity, gate, each.time)
    return list(found.values())


def _all_declined() -> list[DeclinedCall]:
    return DeclinedCalls(StateStore(state_folder(os.environ), remark)).all()


def _unknown(server: str, tool: str, agent: str | None) -> UnknownName:
    by = f" by {show_line(agent)}" if agent is not None else ""
    names = dict.fromkeys(show_line(f"{each.server}:{each.tool}") for each in _all_declined())
    known = f"; declined were {', '.join(names)}" if names else ""
    return UnknownName(
        f"no call of {show_line(f'{server}:{tool}')}{by} was declined, so its definition is not known{known}; "
        "let the agent call it once, or name a server of the configuration"
    )


def _shown(each: AllowedTool, status: ToolApproval, when: Mapping[str, str], config: Config) -> Iterator[str]:
    """All that the approval is bound to, safe for a terminal; the facts twice where the definition hides them."""
    width, rows = terminal_size()
    facts = list(_facts(each, status, when, config, width))
    frame = framed("Definition", readable_json(each.tool.definition()), width)
    yield from facts
    yield from frame
    if len(facts) + len(frame) >= rows:
        yield from facts


def _facts(
    each: AllowedTool, status: ToolApproval, when: Mapping[str, str], config: Config, width: int
) -> Iterator[str]:
    yield from labelled("server", show_line(each.server), width)
    yield from labelled("runs", show_line(each.identity, NO_CUT), width)
    yield from labelled("tool", show_name(each.tool.name), width)
    yield from labelled("calls", _whose(each.gate), width)
    yield from labelled("server says", ", ".join(each.tool.claims) or "nothing", width)
    if each.declined is not None:
        yield from labelled("declined", f"{each.declined.astimezone():%d %b %Y %H:%M}", width)
    if status.differences:
        yield from labelled("history", "CHANGED since you allowed it:", width)
    for change in status.differences:
        yield from labelled("changed", show_line(str(change.field)), width)
    if each.tool.may_destroy:
        yield from labelled("beware", "it may be destructive: it does not say that it is not", width)
    for name, pattern in when.items():
        yield from labelled("where", in_words({name: pattern}), width)
        if rest := left_open(pattern):
            yield from labelled("beware", f"any text may be {rest} the match in {show_line(name, 60)}", width)
    gated = None if each.gate is None else GatedBy(each.gate.agent, same_program=False)
    result = decide(config, each.server, each.tool.name, remembered="allowed", claims_read_only=False, gated=gated)
    if result.decision is not PolicyDecision.ALLOW:
        does = "declined" if result.decision is PolicyDecision.DENY else "asked"
        yield from labelled("beware", f"calls are {does} all the same, since {result.rule}", width)


def _whose(gate: Gate | None) -> str:
    if gate is None:
        return "of mcphost itself"
    way = "a gate" if gate.folder else "mcphost serve"
    return f"of {show_line(gate.agent, 60) if gate.agent else 'every agent'}, through {way}"


def _which(gate: Gate | None, when: Mapping[str, str]) -> str:
    where = f" where {in_words(when)}" if when else ""
    return where + (f" {gate.words}" if gate is not None and gate.words else "")


def _while(config: Config) -> str:
    days = config.policy.remember_days
    return f" for {days} days" if days else " for good"


class _SavedApprovals:
    """The approvals file, written at once, and the audit log. Raises ConfigError where that fails."""

    def __init__(self, config: Config) -> None:
        bus, self._failures, state = EventBus(), list[str](), state_folder(os.environ)
        self.store = ApprovalStore(StateStore(state, remark), BackgroundTasks(), bus)
        log = AuditLog(state / "audit.jsonl", mask_of(os.environ, ()))
        self._audit = AuditWriter(lambda: config, log, remark)
        bus.observe(lambda event: self._failures.append(event.text), Alarmed)

    async def load(self) -> Approvals:
        await self.store.load()
        return self.store.approvals

    def grants(self, oldest: datetime | None = None) -> Iterator[tuple[Approval, str]]:
        """The approvals for good of tools and skills, each with the program that it holds for."""
        tools = self.store.approvals
        programs = {(each.server, each.tool, each.gate): each.identity for each in tools.saved_part()}
        yield from ((each, programs.get((each.server, each.tool, each.gate), "")) for each in tools.grants(oldest))
        if self.store.has_skills:
            skills = {each.key: each.identity for each in self.store.skills.saved_part()}
            yield from ((each, skills[each.server, each.skill]) for each in self.store.skills.grants(oldest))

    def revoke(self, grant: Approval) -> None:
        if grant.skill:
            self.store.skills.revoke(grant.server, grant.skill)
        else:
            self.store.approvals.revoke(grant.server, grant.tool, grant.when, grant.gate)

    async def record(
        self,
        server: str,
        subject: Mapping[str, str],
        identity: str,
        when: Mapping[str, str],
        gate: Gate | None,
        *,
        allowed: bool,
    ) -> None:
        """Write down what the user allows or takes back. Raises Declined where the policy wants that and it fails."""
        whose = {} if gate is None else {"agent": gate.agent, "folder": gate.folder}
        approval = {"server": server, **subject, "sent_to": safe_command(identity), "when": dict(when), **whose}
        await self._audit.before({"event": "approval", **approval, "allowed": allowed, "by": "user"})

    async def save(self) -> None:
        self.store.changed()
        await self.store.save()
        if self._failures:
            raise ConfigError(self._failures[0])


def _named(text: str | None, *, removes: bool) -> tuple[str, str]:
    """``NAME:TOOL`` as two names; a tool's name may hold colons. Raises UsageError."""
    server, colon, tool = (text or "").partition(":")
    if not (server and colon and tool):
        if removes:
            raise UsageError("name what to take back as NAME:TOOL; mcphost allow --list has what is allowed")
        declined = dict.fromkeys(show_line(f"{each.server}:{each.tool}") for each in reversed(_all_declined()))
        known = f"; declined were {', '.join(declined)}" if declined else ""
        raise UsageError(f"name what to allow as NAME:TOOL, or add --list{known}")
    return server, tool


def _patterns(given: Sequence[str]) -> dict[str, str]:
    """``ARGUMENT=PATTERN`` by argument. Raises UsageError."""
    when = dict[str, str]()
    for each in given:
        name, equals, pattern = each.partition("=")
        if not (name and equals):
            raise UsageError(f"--when {show_line(each)}: write ARGUMENT=PATTERN")
        when[name] = pattern
    if wrong := problem(when):
        raise UsageError(f"--when: {wrong}")
    return when


def _row(grant: Approval, identity: str) -> tuple[str, ...]:
    agent = "(mcphost)" if grant.gate is None else grant.gate.agent or "(any)"
    return (
        f"{grant.server}:{show_line(grant.skill) if grant.skill else grant.label}",
        agent,
        grant.arguments,
        f"{grant.since.astimezone():%Y-%m-%d}",
        safe_command(identity),
    )


def _as_object(grant: Approval, identity: str) -> dict[str, Any]:
    if grant.skill:
        since = grant.since.isoformat(timespec="seconds")
        known = {"server": grant.server, "skill": grant.skill, "files": grant.files, "since": since}
        return {**known, "runs": safe_command(identity)}
    return {
        "server": grant.server,
        "tool": grant.tool,
        "when": dict(grant.when),
        "gate": None if grant.gate is None else grant.gate._asdict(),
        "since": grant.since.isoformat(timespec="seconds"),
        "runs": safe_command(identity),
    }
