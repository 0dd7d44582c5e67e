"""Whether something may happen: policy first, then the one who is asked, and always the audit log.

Knows questions and answers. Refuses to know how a question is shown: an `Approver` asks it, on a screen, on a
terminal, by command-line flags or from a test's script.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from mcphost.config import Config
from mcphost.errors import Declined
from mcphost.host.approvals import Approvals, Lifetime, Standing
from mcphost.host.audit import AuditLog
from mcphost.host.policy import Verdict, decide
from mcphost.protocol.types import Tool


@dataclass(frozen=True, slots=True)
class ToolCallQuestion:
    """May this tool run with these arguments?"""

    call: int
    server: str
    """The configured name."""
    tool: Tool
    arguments: Mapping[str, Any]
    origin: str
    """Who wants it: ``you``, or a model's name."""
    sent_to: str
    """The command line or URL that gets the arguments."""
    standing: Standing
    rule: str
    """Why it is asked."""
    note: str | None = None
    """What could not be checked beforehand."""

    @property
    def careful(self) -> bool:
        """Should refusing be the easy answer? The definition changed, or the tool claims to be destructive."""
        return self.standing.kind.value == "changed" or "destructive" in self.tool.claims


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered. ``arguments`` replaces those of the question; ``reason`` is for whoever asked."""

    allow: bool
    lifetime: Lifetime = Lifetime.ONCE
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    by: str = "user"


class Approver(Protocol):
    """Asks a person, or whoever stands in for one."""

    async def ask(self, question: ToolCallQuestion) -> Answer:
        """Exactly one answer. Cancelled when the question no longer matters."""


class DeclineAll:
    """The approver where nobody can be asked: no, with a sentence that says what would have allowed it."""

    def __init__(self, hint: str) -> None:
        self._hint = hint

    async def ask(self, question: ToolCallQuestion) -> Answer:
        """No."""
        return Answer(allow=False, reason=self._hint, by="policy")


class ConsentBroker:
    """Settles whether a call may be sent.

    ``changed`` is called when what is remembered changed and wants to be saved; ``alarm`` takes a sentence the user
    must see.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        approvals: Approvals,
        approver: Approver,
        audit: AuditLog,
        now: Callable[[], datetime],
        changed: Callable[[], None],
        alarm: Callable[[str], None],
    ) -> None:
        self._config, self.approvals, self._approver, self._audit = config, approvals, approver, audit
        self._now, self._changed, self._alarm = now, changed, alarm

    async def settle(
        self,
        call: int,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        origin: str,
        sent_to: str,
        note: str | None,
    ) -> Answer:
        """The yes to this call, recorded before anything is sent. Raises Declined.

        An answer may carry other arguments: the caller checks them as it checked the first.
        """
        standing = self.approvals.standing(server, sent_to, tool)
        read_only = "read-only" in tool.claims
        decision = decide(self._config(), server, tool.name, remembered=standing.remembered, claims_read_only=read_only)
        if decision.verdict is Verdict.ASK:
            question = ToolCallQuestion(call, server, tool, arguments, origin, sent_to, standing, decision.rule, note)
            answer = await self._approver.ask(question)
        else:
            answer = Answer(decision.verdict is Verdict.ALLOW, reason=decision.rule, by="policy")
        used = arguments if answer.arguments is None else answer.arguments
        await self._write_down(call, server, tool, used, origin, sent_to, answer, decision.rule)
        if not answer.allow:
            raise Declined(_words(answer, tool), by=answer.by, rule=answer.reason or decision.rule)
        if answer.by == "user":
            self.approvals.allow(server, sent_to, tool, answer.lifetime, self._now())
            self._changed()
        return answer

    def revoke(self, server: str, tool: str) -> None:
        """Take back what was allowed."""
        self.approvals.revoke(server, tool)
        self._changed()

    async def finished(self, call: int, server: str, tool: str, outcome: str, seconds: float) -> None:
        """Write down how a call that was sent ended."""
        record = {"event": "outcome", "call": call, "server": server, "tool": tool}
        await self._keep({**record, "outcome": outcome, "seconds": round(seconds, 3)})

    async def _write_down(
        self,
        call: int,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        origin: str,
        sent_to: str,
        answer: Answer,
        rule: str,
    ) -> None:
        await self._keep(
            {
                "event": "decision",
                "call": call,
                "server": server,
                "sent_to": sent_to,
                "tool": tool.name,
                "asked_by": origin,
                "arguments": arguments,
                "allowed": answer.allow,
                "by": answer.by,
                "lifetime": answer.lifetime.value,
                "rule": rule,
                "reason": answer.reason,
            }
        )

    async def _keep(self, fields: Mapping[str, Any]) -> None:
        mode = self._config().policy.audit
        if mode == "off":
            return
        written = self._audit.record({"time": self._now().isoformat(timespec="milliseconds"), **fields})
        if mode == "required":
            try:
                await written
            except OSError as error:
                raise Declined(f"the audit log cannot be written: {error}", by="policy", rule="audit") from None
        else:
            written.add_done_callback(self._check_written)

    def _check_written(self, written: object) -> None:
        error = written.exception() if hasattr(written, "exception") else None
        if error is not None:
            self._alarm(f"the audit log cannot be written: {error}")


def _words(answer: Answer, tool: Tool) -> str:
    who = "policy" if answer.by == "policy" else "you"
    return f"{tool.name} was declined by {who}" + (f": {answer.reason}" if answer.reason else "")
