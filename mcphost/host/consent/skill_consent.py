"""Decides whether a skill may be loaded: by a remembered approval of exactly its files, or by asking the user.

Specification: ext-skills skills (security considerations).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from mcphost.cancellation import is_cancelled
from mcphost.config import Config, entry_of, rule_matches
from mcphost.errors import Declined, ServerNotReady
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.approvals import Lifetime, oldest_for
from mcphost.host.consent.locked_tools import unlocked_skill
from mcphost.host.consent.questions import Answer, Approver, SkillQuestion
from mcphost.host.consent.skill_approvals import ApprovedSkill, SkillApproval, SkillState
from mcphost.host.reporting import Reporting
from mcphost.protocol.display import show_name

if TYPE_CHECKING:
    from mcphost.protocol.models.skills import Skill

TextOf = Callable[[str, str], str | None]
"""Returns the text of a SKILL.md that was read and verified in this run, by server and digest."""


class SkillConsent:
    """The consent to load skills. Rules that allow tools never cover a skill; rules that refuse or ask do."""

    def __init__(
        self, config: Callable[[], Config], store: ApprovalStore, approver: Approver, reporting: Reporting
    ) -> None:
        self._config, self._store, self._approver = config, store, approver
        self._audit, self._bus = reporting.audit, reporting.bus
        self._asking: dict[asyncio.Future[Answer], str] = {}

    def status_of(self, server: str, identity: str, skill: Skill) -> SkillApproval:
        """Compare a skill with what the user allowed."""
        oldest = oldest_for(self._config().policy.remember_days)
        return self._store.skills.status_of(entry_of(server), identity, skill, oldest)

    async def decide(self, server: str, identity: str, skill: Skill, origin: str, text_of: TextOf) -> Answer:
        """Return the answer that lets the skill be loaded. It is in the audit log before this returns.

        Pass it to `remember` once the skill is verified. Raises Declined, or ServerNotReady where the server went away.
        """
        await self.refresh()
        approval = self._with_text(server, identity, skill, self.status_of(server, identity, skill), text_of)
        answer, rule = self._by_policy(server, identity, skill, approval)
        if answer is None:
            answer = await self._ask(SkillQuestion(server, skill, identity, approval, origin, rule))
        record = {"event": "decision", "server": server, "sent_to": identity, "skill": skill.uri, "asked_by": origin}
        outcome = {"allowed": answer.allow, "by": answer.by, "lifetime": answer.lifetime.value, "rule": rule}
        await self._audit.before({**record, **outcome, "files": skill.manifest, "reason": answer.reason})
        if not answer.allow:
            who = "policy" if answer.by == "policy" else "you"
            words = f"the skill {show_name(skill.label, 80)} was declined by {who}"
            reason = answer.reason or rule
            raise Declined(f"{words}{f': {answer.reason}' if answer.reason else ''}", by=answer.by, rule=reason)
        return answer

    async def refresh(self) -> None:
        """Take over what another mcphost allowed or took back."""
        await self._store.refresh()

    def unasked(self, server: str, identity: str, skill: Skill) -> Answer | None:
        """The answer that holds without asking the user; None where the user is asked."""
        return self._by_policy(server, identity, skill, self.status_of(server, identity, skill))[0]

    def remember(self, server: str, identity: str, skill: Skill, answer: Answer) -> None:
        """Keep the user's answer, now that the skill is verified."""
        if answer.by != "user":
            return
        now = datetime.now().astimezone()
        if self._store.skills.allow(entry_of(server), identity, skill, answer.lifetime, now):
            self._store.changed()

    def noticed(self, server: str, identity: str, skills: Iterable[Skill]) -> list[Skill]:
        """Revoke the approvals of skills whose server now lists other files; return those skills."""
        if not self._store.has_skills:
            return []
        known = {each.uri for each in self._store.skills.of_server(entry_of(server))}
        changed = [
            each
            for each in skills
            if each.key in known and self._store.skills.noticed(entry_of(server), identity, each)
        ]
        for each in changed:
            record = {"event": "approval", "server": server, "sent_to": identity, "skill": each.uri}
            self._audit.note({**record, "allowed": False, "by": "policy", "reason": "its files changed"})
        if changed:
            self._store.changed()
        return changed

    def withdraw(self, server: str) -> None:
        """Withdraw the questions about a server that is gone."""
        for asking, name in self._asking.items():
            if name == server:
                asking.cancel()

    def _by_policy(
        self, server: str, identity: str, skill: Skill, approval: SkillApproval
    ) -> tuple[Answer | None, str]:
        """The answer without asking, else None; and the rule."""
        policy, entry = self._config().policy, entry_of(server)
        if why := unlocked_skill(self._config(), server, identity, skill):
            return Answer(allow=False, reason=why, by="policy"), why
        names = skill.name, skill.uri, skill.key
        for rule in policy.deny:
            if any(rule_matches(rule, entry, name) for name in names):
                words = f"policy.deny has {rule!r}"
                return Answer(allow=False, reason=words, by="policy"), words
        for rule in policy.ask:
            if any(rule_matches(rule, entry, name) for name in names):
                return None, f"policy.ask has {rule!r}"
        if remembered := approval.remembered:
            return Answer(allow=True, reason=remembered, by="policy"), remembered
        if policy.default == "deny":
            words = "policy.default = 'deny'"
            return Answer(allow=False, reason=words, by="policy"), words
        return None, _WHY[approval.state]

    def _with_text(
        self, server: str, identity: str, skill: Skill, approval: SkillApproval, text_of: TextOf
    ) -> SkillApproval:
        """The comparison with both texts of SKILL.md, where they were read in this run."""
        if approval.state is not SkillState.CHANGED:
            return approval
        known = next((each for each in self._store.skills.of_server(entry_of(server)) if each.uri == skill.key), None)
        if known is None:
            return approval
        old, new = (each.get(skill.key) for each in (_digests(known), skill.manifest))
        before, after = text_of(server, old or ""), text_of(server, new or "")
        if before is None or after is None or before == after:
            return approval
        return replace(approval, differences=replace(approval.differences, text=(before, after)))

    async def _ask(self, question: SkillQuestion) -> Answer:
        """Ask, and return the answer. Raises ServerNotReady if the server went away meanwhile."""
        asking = asyncio.ensure_future(self._approver.ask(question))
        self._asking[asking] = question.server
        try:
            answer = await asking
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            gone = f"{question.server} went away while the question about the skill was open"
            raise ServerNotReady(f"{gone}; nothing was loaded") from None
        finally:
            del self._asking[asking]
        if question.why_not_always and answer.lifetime is not Lifetime.ONCE:
            kept = Lifetime.ONCE if question.skill.dynamic else Lifetime.SESSION
            return replace(answer, lifetime=kept)
        return answer


def _digests(known: ApprovedSkill) -> Mapping[str, str]:
    return {each.uri: each.digest for each in known.files}


_WHY = {
    SkillState.NEW: "a skill is loaded when you allow it",
    SkillState.APPROVED: "a skill is loaded when you allow it",
    SkillState.CHANGED: "it changed since you allowed it",
    SkillState.DYNAMIC: "its server vouches for no file, so that it is asked about each time",
    SkillState.REFUSED: "it must not be loaded",
}
