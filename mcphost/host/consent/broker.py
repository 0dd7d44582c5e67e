"""Decides whether a call may be sent: by policy, then by asking the user. Every decision is in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcphost.cancellation import is_cancelled
from mcphost.config import Config, entry_of
from mcphost.errors import Declined, ServerNotReady
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.approvals import (
    ANY,
    Approval,
    Approvals,
    ApprovalStatus,
    Gate,
    Lifetime,
    ToolApproval,
    oldest_for,
)
from mcphost.host.consent.argument_rules import problem
from mcphost.host.consent.locked_tools import unlocked
from mcphost.host.consent.policy import GatedBy, PolicyDecision, PolicyResult, decide
from mcphost.host.consent.provenance import NOTHING, Provenance
from mcphost.host.consent.questions import Answer, Approver, ReadOnlyTools, ToolCallQuestion
from mcphost.host.events import CallChanged
from mcphost.host.reporting import Reporting
from mcphost.host.tool_calls.call import NOTHING_SENT, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import hidden_in
from mcphost.protocol.models.tools import Tool
from mcphost.time_slices import TimeSlice

if TYPE_CHECKING:
    from mcphost.host.consent.repetition import Repetition
    from mcphost.host.consent.skill_consent import SkillConsent

CHANGES_NAMED: Final = 5
"""Changed fields that a warning names: the dialog shows all of them."""

_FOR_AN_AGENT: Final = "it is for calls of mcphost alone, and an agent makes this one"

_TOGETHER: Final = "allowed together"
"""Stands for an approval of all read-only tools while the policy is tried."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call for which consent is needed."""

    call: int
    server: str
    """The configured name: the entry's, by which rules and approvals go."""
    tool: Tool
    arguments: Mapping[str, Any]
    origin: str
    identity: str
    note: str | None = None
    """The checks that could not be made beforehand."""
    outside: str = ""
    """The outside source that the asking model has read; empty: none, or the user asks."""
    provenance: Provenance = NOTHING
    """Parts of the arguments copied from text that the receiving server never saw."""
    composed: bool = False
    """True if the user has just written the arguments."""
    unconfirmed: str = ""
    """Why the tools could not be listed again; empty if they were, or need not be."""
    repetition: Repetition | None = None
    """The consent to further runs of the call; None: it runs once."""
    values: Mapping[str, Any] | None = None
    """The arguments with the values of references, which no question and no file shows; None: they hold none."""
    agent: AgentFacts | None = None
    """The agent whose call it is; None: the call is mcphost's own."""
    served: bool = False
    """True if mcphost carries out the agent's call; else a gate holds it."""
    folder: str = ""
    """The folder of a gate's server."""
    same_program: bool = True
    """False if a gate's server is another program than the configuration's entry of that name."""
    refusal: str = ""
    """Why the call is refused, whatever the rules say; empty: they decide."""
    instance: str = ""
    """The instance of the server that gets the call; empty: the entry's own connection does."""
    own_tool: bool = False
    """True if the agent runs the tool itself."""
    skill: str = ""
    """The skills that the asking model acts on, in words; empty: none."""

    @property
    def gated(self) -> GatedBy | None:
        """The gate as the policy sees it; None for a call that no gate holds."""
        return None if self.agent is None else GatedBy(self.agent.given, self.same_program)

    @property
    def gate(self) -> Gate | None:
        """The gate for which approvals count; None for a call that no gate holds."""
        return None if self.agent is None else Gate(self.folder, self.agent.given)

    @property
    def sent(self) -> Mapping[str, Any]:
        """The arguments as the server gets them, by which rules decide."""
        return self.arguments if self.values is None else self.values


class ConsentBroker:
    """Decides whether a call may be sent."""

    def __init__(
        self, config: Callable[[], Config], store: ApprovalStore, approver: Approver, reporting: Reporting
    ) -> None:
        self._config, self._store, self._approver = config, store, approver
        self._audit, self._bus = reporting.audit, reporting.bus
        self._asking: dict[int, tuple[str, asyncio.Future[Answer]]] = {}
        self._reporting = reporting

    async def decide(
        self, proposal: Proposal, list_again: Callable[[], Awaitable[Proposal]]
    ) -> tuple[Proposal, Answer]:
        """Decide on the call by policy or by asking; return the proposal that was allowed, and the answer.

        The decision is in the audit log before this returns. Raises Declined, or ServerNotReady where the server went
        away while the user was asked.

        An answer may carry other arguments: the caller checks them as it checked the first. If a remembered yes would
        decide, ``list_again`` first returns the proposal with the tool's current definition.
        """
        await self._store.refresh()
        approval = self._approval(proposal.server, proposal.identity, proposal.tool, proposal.gate)
        if self._relies_on(approval, proposal):
            proposal = await list_again()
            await self._store.refresh()  # again: listing may take seconds, in which another mcphost may revoke it
            approval = self._approval(proposal.server, proposal.identity, proposal.tool, proposal.gate)
        result = self._by_policy(proposal, approval)
        answer = await self._answer(proposal, approval, result)
        await self._audit.before(_decision_record(proposal, answer, result.rule))
        if not answer.allow:
            rule = answer.reason or result.rule
            raise Declined(_words(answer, proposal.tool), by=answer.by, rule=rule, reason=answer.reason)
        if answer.by == "user":
            self._remember(proposal, answer)
        else:
            self._warn_if_changed(proposal, approval, answer)
        return proposal, answer

    def asks(self, call: int) -> bool:
        """True if the user is asked about this call now; `CallChanged` says when that changes."""
        return call in self._asking

    def decide_at_once(self, proposal: Proposal) -> Answer | None:
        """As `decide`, for a call that a rule allows and that nothing waits for; None for another, with no trace.

        It needs no event loop; one thread at a time may use the broker.
        """
        if not self._store.is_current:
            return None
        approval = self._approval(proposal.server, proposal.identity, proposal.tool, proposal.gate)
        result = self._by_policy(proposal, approval)
        if result.decision is not PolicyDecision.ALLOW or result.rule in _earlier_answers(approval, proposal):
            return None
        if self._is_remembered(proposal, approval):
            return None
        answer = Answer(True, reason=result.rule, by="policy")
        return answer if self._audit.note_at_once(_decision_record(proposal, answer, result.rule)) else None

    @cached_property
    def skills(self) -> SkillConsent:
        """The consent to load skills."""
        from mcphost.host.consent.skill_consent import SkillConsent  # late: few servers have skills

        return SkillConsent(self._config, self._store, self._approver, self._reporting)

    def withdraw(self, server: str) -> None:
        """Withdraw the questions about a server that is gone."""
        for name, asking in self._asking.values():
            if name == server:
                asking.cancel()
        if "skills" in self.__dict__:  # else none was ever asked about
            self.skills.withdraw(server)

    def foresee(
        self,
        server: str,
        identity: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        outside: str = "",
        skill: str = "",
    ) -> PolicyDecision:
        """Predict the decision about a call; nothing is asked, remembered or recorded."""
        server = entry_of(server)
        approval = self._approval(server, identity, tool)
        proposal = Proposal(0, server, tool, arguments, "", identity, outside=outside, skill=skill)
        return self._by_policy(proposal, approval).decision

    @property
    def approvals(self) -> Approvals:
        """The approvals of this run and of earlier ones."""
        return self._store.approvals

    @property
    def relist_sec(self) -> float:
        """``policy.relist_sec``: how old a listing may be on which a remembered yes relies."""
        return self._config().policy.relist_sec

    def grants(self) -> list[Approval]:
        """The calls that run, and the skills that load, by an approval of the user that is not too old."""
        skills = self._store.skills.grants(self._oldest) if self._store.has_skills else ()
        return [*self.approvals.grants(self._oldest), *skills]

    async def read_only_tools(self, server: str, identity: str, tools: Iterable[Tool]) -> ReadOnlyTools:
        """Sort out which of a server's ``tools`` the user can allow together, since they claim to be read-only."""
        covered, left_out, time_slice = list[Tool](), list[tuple[Tool, str]](), TimeSlice()
        for tool in tools:
            await time_slice.pause_if_over()
            if "read-only" not in tool.claims:
                continue
            if why := self._why_not_together(server, identity, tool):
                left_out.append((tool, why))
            else:
                covered.append(tool)
        return ReadOnlyTools(covered, left_out)

    def _why_not_together(self, server: str, identity: str, tool: Tool) -> str:
        """Why the tool cannot be allowed with its server's other read-only tools; empty where it can."""
        if "read-only" not in tool.claims:
            return "it does not claim to be read-only"
        if tool.refusal:
            return tool.refusal
        if self._approval(server, identity, tool).kind is ApprovalStatus.CHANGED:
            return "it changed since you allowed it"
        if hidden_in(tool.definition()):
            return "its definition holds invisible characters"
        if why := unlocked(self._config(), server, identity, tool):
            return why
        result = decide(self._config(), server, tool.name, remembered=_TOGETHER, claims_read_only=False)
        return "" if result.rule == _TOGETHER else result.rule

    def revoke(self, server: str, tool: str, when: Mapping[str, str] = ANY, gate: Gate | None = None) -> None:
        """Take back what was allowed: whatever the arguments are, or by the rule with these patterns.

        An empty ``tool`` stands for the server's read-only tools.
        """
        self.approvals.revoke(server, tool, when, gate)
        self._store.changed()

    def revoke_grant(self, grant: Approval) -> None:
        """Take back an approval of `grants`."""
        if grant.skill:
            self._store.skills.revoke(grant.server, grant.skill)
            self._store.changed()
        else:
            self.revoke(grant.server, grant.tool, grant.when, grant.gate)

    def forget(self, server: str) -> tuple[int, int]:
        """Forget what was allowed and seen of this server; of how many tools, and how many skills."""
        tools = self.approvals.forget(server)
        skills = self._store.skills.forget(server) if self._store.has_skills else 0
        if tools or skills:
            self._store.changed()
        return tools, skills

    def finished(self, call: ToolCall) -> None:
        """Write down how a call that was allowed ended, and whether it was sent at all."""
        sent, seconds = call.sent_at is not None, call.elapsed
        self.note_outcome(
            call.number, call.request.server, call.request.tool, call.state.value, sent, seconds, call.request.agent
        )

    def note_outcome(
        self,
        call: int,
        server: str,
        tool: str,
        outcome: str,
        sent: bool,
        seconds: float,
        agent: AgentFacts | None = None,
        *,
        at_once: bool = False,
    ) -> bool:
        """Write down the end of a call that was allowed.

        With ``at_once`` it needs no event loop, and returns False where that is not possible.
        """
        record = {
            "event": "outcome",
            "call": call,
            "server": server,
            "tool": tool,
            **_agent_record(agent),
            "sent": sent,
            "outcome": outcome,
            "seconds": round(seconds, 3),
        }
        if at_once:
            return self._audit.note_at_once(record)
        self._audit.note(record)
        return True

    @property
    def _oldest(self) -> datetime | None:
        """When what was allowed for good must have been allowed to hold still; None: whenever."""
        return oldest_for(self._config().policy.remember_days)

    def _approval(self, server: str, identity: str, tool: Tool, gate: Gate | None = None) -> ToolApproval:
        approval = self.approvals.status_of(server, identity, tool, gate)
        return approval.not_before(self._oldest) if approval.may_lapse else approval

    def _relies_on(self, approval: ToolApproval, proposal: Proposal) -> bool:
        """True if an earlier answer of the user would let the call run."""
        answers = _earlier_answers(approval, proposal)
        return any(answers) and self._by_policy(proposal, approval).rule in answers

    def _by_policy(self, proposal: Proposal, approval: ToolApproval) -> PolicyResult:
        result = self._by_rules(proposal, approval)
        if not proposal.skill or result.decision is not PolicyDecision.ALLOW or self._reads_only(proposal, approval):
            return result
        # Rules and earlier answers were given without knowing what a server's instructions have the model do.
        rule = f"the model acts on {proposal.skill}, so that it is asked; {result.rule}"
        return PolicyResult(PolicyDecision.ASK, rule)

    def _reads_only(self, proposal: Proposal, approval: ToolApproval) -> bool:
        """True if the user trusts the claim that the call changes nothing, and no program of this machine runs it."""
        settings = self._config().servers.get(proposal.server)
        remote = settings is not None and settings.url is not None and settings.trust_hints
        return remote and _believable(proposal, approval)

    def _by_rules(self, proposal: Proposal, approval: ToolApproval) -> PolicyResult:
        # A schema that refers outside may change after the approval.
        if refusal := proposal.refusal or proposal.tool.refusal:
            return PolicyResult(PolicyDecision.DENY, refusal)
        repetition, repeated = proposal.repetition, ""
        if repetition is not None:
            if changed := repetition.change(proposal.identity, proposal.tool, proposal.sent):
                return PolicyResult(PolicyDecision.DENY, f"{changed} changed since the repetition began")
            repeated = repetition.allowed
        doubt = _doubt(proposal)
        remembered = approval.remembered(proposal.sent)
        result = decide(
            self._config(),
            proposal.server,
            proposal.tool.name,
            remembered=None if doubt else remembered,
            claims_read_only=_believable(proposal, approval),
            arguments=proposal.sent,
            gated=proposal.gated,
        )
        if result.decision is not PolicyDecision.DENY and (why := self._unlocked(proposal)):
            result = PolicyResult(PolicyDecision.ASK, f"{why}, so that each call of it is asked about")
        answer = repeated or remembered
        if result.decision is not PolicyDecision.ASK or not answer:
            return result
        if doubt:
            return PolicyResult(PolicyDecision.ASK, f"{doubt}, so that it is asked again; {answer}")
        return PolicyResult(PolicyDecision.ALLOW, repeated) if repeated else result

    def _unlocked(self, proposal: Proposal) -> str:
        """Why the tool is not as in the lock of the policy; a gate's server counts if it is the configured program."""
        if proposal.own_tool or not proposal.same_program:
            return ""
        gated = proposal.agent is not None and not proposal.served  # it is shown in another form
        return unlocked(self._config(), proposal.server, "" if gated else proposal.identity, proposal.tool)

    async def _answer(self, proposal: Proposal, approval: ToolApproval, result: PolicyResult) -> Answer:
        if result.decision is not PolicyDecision.ASK:
            return Answer(result.decision is PolicyDecision.ALLOW, reason=result.rule, by="policy")
        question = ToolCallQuestion(
            call=proposal.call,
            server=proposal.server,
            tool=proposal.tool,
            arguments=proposal.arguments,
            origin=proposal.origin,
            identity=proposal.identity,
            approval=approval,
            rule=result.rule,
            note=proposal.note,
            provenance=proposal.provenance,
            composed=proposal.composed,
            repeats=proposal.repetition.words if proposal.repetition else "",
            agent=proposal.agent,
            folder=proposal.folder,
            instance=proposal.instance,
            own_tool=proposal.own_tool,
            skill=proposal.skill,
            why_not_together=_FOR_AN_AGENT
            if proposal.agent
            else self._why_not_together(proposal.server, proposal.identity, proposal.tool),
        )
        gated = proposal.agent is not None and not proposal.served  # its server is not the configured one of that name
        answer = await self._ask(question, "" if gated else proposal.server)
        if not answer.allow and answer.by == "policy" and (why := self._unlocked(proposal)):
            # The user could not be asked, and no rule would help.
            return replace(answer, reason=f"{why}; to see what changed: mcphost lock --check")
        return answer

    async def _ask(self, question: ToolCallQuestion, server: str) -> Answer:
        """Ask, and return the answer. Raises ServerNotReady if this server went away meanwhile."""
        asking = asyncio.ensure_future(self._approver.ask(question))
        self._asking[question.call] = question.instance or server, asking
        self._bus.publish(CallChanged(question.call))
        try:
            return await asking
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            gone = f"{question.server} went away while the question about {question.tool.name} was open"
            raise ServerNotReady(f"{gone}; {NOTHING_SENT}") from None
        finally:
            del self._asking[question.call]

    def _remember(self, proposal: Proposal, answer: Answer) -> None:
        lifetime, now, when = answer.lifetime, datetime.now().astimezone(), dict(answer.when)
        if wrong := problem(when):
            self._bus.alarm(f"this call of {proposal.tool.name} runs, but no rule was made of it: {wrong}")
            lifetime, when = Lifetime.ONCE, {}
        if answer.together:
            self.approvals.allow_read_only(proposal.server, proposal.identity, answer.together, now)
        gate = proposal.gate and self.approvals.gate_of(proposal.server, proposal.tool, proposal.gate)
        if self.approvals.allow(proposal.server, proposal.identity, proposal.tool, lifetime, now, when, gate) or (
            answer.together
        ):
            self._store.changed()

    def _warn_if_changed(self, proposal: Proposal, approval: ToolApproval, answer: Answer) -> None:
        """Warn if a tool that a rule allows changed since it last ran.

        No warning where the user configured another program: its tools differ for that reason.
        """
        if approval.kind is ApprovalStatus.CHANGED and not approval.moved:
            fields = ", ".join(each.field for each in approval.differences[:CHANGES_NAMED])
            name = f"{proposal.server}:{proposal.tool.name}"
            self._bus.alarm(f"{name} is not what it was when it ran before ({fields}); it runs by {answer.reason}")
        # What a flag on one command line allowed may still be asked about on screen.
        if answer.by == "policy" and self._is_remembered(proposal, approval):
            self._remember(proposal, Answer(allow=True))

    @staticmethod
    def _is_remembered(proposal: Proposal, approval: ToolApproval) -> bool:
        """True if the tool is kept as seen after a rule allowed the call.

        Unseen tools of agents are not: agents run in any number of folders.
        """
        unseen = ApprovalStatus.UNCHANGED, *((ApprovalStatus.NEW,) if proposal.agent else ())
        return approval.kind not in unseen


def _earlier_answers(approval: ToolApproval, proposal: Proposal) -> tuple[str | None, str | None]:
    repetition = proposal.repetition
    return approval.remembered(proposal.sent), repetition.allowed if repetition else None


def _decision_record(proposal: Proposal, answer: Answer, rule: str) -> dict[str, object]:
    together = {"together": [tool.name for tool in answer.together]} if answer.together else {}
    repeats = {"repeats": proposal.repetition.words} if proposal.repetition else {}
    return {
        "event": "decision",
        "call": proposal.call,
        "server": proposal.instance or proposal.server,
        "sent_to": proposal.identity,
        "tool": proposal.tool.name,
        "asked_by": proposal.origin,
        **_agent_record(proposal.agent),
        **({"skill": proposal.skill} if proposal.skill else {}),
        "arguments": proposal.arguments if answer.arguments is None else answer.arguments,
        "allowed": answer.allow,
        "by": answer.by,
        "lifetime": answer.lifetime.value,
        "when": dict(answer.when),
        "rule": rule,
        "reason": answer.reason,
        **together,
        **repeats,
    }


def _believable(proposal: Proposal, approval: ToolApproval) -> bool:
    """True if the tool may get by on its claim to be read-only.

    One that is not what it was when the user allowed it, or whose text is partly invisible, does not.
    """
    claimed = "read-only" in proposal.tool.claims and approval.kind is not ApprovalStatus.CHANGED
    return claimed and not hidden_in(proposal.tool.definition())


def _doubt(proposal: Proposal) -> str:
    """Why a remembered approval does not hold for this call; empty if it does."""
    if proposal.outside and proposal.tool.reaches_out:
        return f"the model has read {proposal.outside}"
    return proposal.unconfirmed and f"it may have changed ({proposal.unconfirmed})"


def _agent_record(agent: AgentFacts | None) -> Mapping[str, object]:
    return {} if agent is None else agent.record


def _words(answer: Answer, tool: Tool) -> str:
    who = "policy" if answer.by == "policy" else "you"
    return f"{tool.name} was declined by {who}" + (f": {answer.reason}" if answer.reason else "")
