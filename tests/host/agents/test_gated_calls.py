from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config, Values
from mcphost.config.gated import GatedProgram
from mcphost.host.agents.declined import AbsentApprover, DeclinedCalls
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import UNLISTED, GatedCalls, GatedServer
from mcphost.host.audit import AuditLog, AuditWriter
from mcphost.host.background import BackgroundTasks
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.approvals import Gate, Lifetime
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.questions import Answer, Approver
from mcphost.host.events import EventBus
from mcphost.host.logs import LogBook
from mcphost.host.reporting import Reporting
from mcphost.serving.ports import GateDecision
from tests.host.conftest import NO, FileStore, ScriptedApprover, settings

LOG = {"name": "log", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
GIT = GatedServer("git", GatedProgram(("git-server",), folder="/work"))
EVIL = GatedServer("git", GatedProgram(("evil",), folder="/work"))
CLAUDE = AgentFacts("claude", claimed="claude-code", pid=7, program="/usr/bin/claude", folder="/work", given="claude")
ALWAYS = Answer(allow=True, lifetime=Lifetime.ALWAYS)


class Desk:
    """Gated calls over a state folder."""

    def __init__(self, folder: Path, config: Config, approver: Approver) -> None:
        self.folder, self.bus = folder, EventBus()
        self._log = AuditLog(folder / "audit.jsonl", str)
        audit = AuditWriter(lambda: config, self._log, self.bus.alarm)
        logs = LogBook(lambda: 0.0, str, lambda: None, lambda server: None)
        self.store = ApprovalStore(FileStore(folder), BackgroundTasks(), self.bus)
        self.consent = ConsentBroker(lambda: config, self.store, approver, Reporting(logs, audit, self.bus, str))
        self.calls = GatedCalls(self.consent, lambda: config, Values({}))

    async def decide(
        self,
        server: GatedServer = GIT,
        agent: AgentFacts = CLAUDE,
        definition: Mapping[str, Any] | None = LOG,
        arguments: Mapping[str, Any] = {"n": 1},
        **more: Any,
    ) -> GateDecision:
        return await self.calls.decide(1, server, agent, "log", definition, arguments, **more)

    @property
    def audit(self) -> Iterator[dict[str, Any]]:
        for line in (self.folder / "audit.jsonl").read_text().splitlines():
            yield json.loads(line)


DeskOf = Callable[..., Desk]


@pytest.fixture
def desk(tmp_path: Path) -> DeskOf:
    def made(*answers: Answer, approver: Approver | None = None, **config: Any) -> Desk:
        servers = {"git": {"command": "git-server"}} | config.pop("servers", {})
        return Desk(tmp_path, settings(policy=config, **servers), approver or ScriptedApprover(*answers))

    return made


async def test_a_decision_is_written_down_with_the_agent(desk: DeskOf) -> None:
    here = desk(allow=["claude>git:*"])
    assert await here.decide() == GateDecision(True)
    here.calls.ended(1, GIT, CLAUDE, "log", "done", 0.25)
    decision, outcome = here.audit
    agent = {"agent": "claude", "agent_pid": 7, "agent_program": "/usr/bin/claude", "agent_folder": "/work"}
    assert agent.items() <= decision.items()
    assert agent.items() <= outcome.items()
    assert (decision["asked_by"], decision["sent_to"]) == ("agent:claude", "git-server (in /work)")
    assert (decision["allowed"], decision["rule"]) == (True, "policy.allow has 'claude>git:*'")
    assert (outcome["outcome"], outcome["sent"], outcome["seconds"]) == ("done", True, 0.25)


@pytest.mark.hostile("P07")
@pytest.mark.parametrize(
    ("server", "agent", "allowed"),
    [
        (GIT, CLAUDE, True),
        (EVIL, CLAUDE, False),
        (EVIL, AgentFacts("trusted", claimed="trusted"), False),
        (EVIL, AgentFacts("trusted", given="trusted"), True),
    ],
)
async def test_a_name_that_an_agent_chose_brings_no_rule(
    desk: DeskOf, server: GatedServer, agent: AgentFacts, allowed: bool
) -> None:
    """An entry of a trusted name runs another program; and an agent claims the name of another."""
    here = desk(NO, allow=["git:*", "trusted>git:*"])
    assert (await here.decide(server, agent)).allow is allowed


async def test_an_approval_on_screen_holds_for_the_program_in_its_folder(desk: DeskOf) -> None:
    here = desk(ALWAYS, NO, NO)
    assert [(await here.decide()).allow for _ in range(2)] == [True, True]
    elsewhere = GatedServer("git", GatedProgram(("git-server",), folder="/other"))
    assert not (await here.decide(elsewhere)).allow
    assert not (await here.decide(EVIL)).allow


async def test_only_an_approval_needs_a_fresh_listing(desk: DeskOf) -> None:
    here = desk(ALWAYS, relist_sec=7)
    assert await here.decide() == GateDecision(True, by="user")
    assert await here.decide() == GateDecision(True, listed_within=7)


async def test_a_refusal_says_who_refused_and_why(desk: DeskOf) -> None:
    words = "the user declined this call of log in mcphost: not today; do not repeat it unless the user asks for it"
    assert await desk(NO).decide() == GateDecision(False, words=words, by="user")


@pytest.mark.parametrize(
    ("definition", "words"),
    [(None, UNLISTED), ({**LOG, "name": "other"}, UNLISTED), ({"name": "log", "inputSchema": 1}, "cannot be read")],
)
async def test_a_call_of_a_tool_that_is_not_listed_is_declined(
    desk: DeskOf, definition: Mapping[str, Any] | None, words: str
) -> None:
    here = desk(default="allow")
    decision = await here.decide(definition=definition)
    assert not decision.allow
    assert words in decision.words
    assert [each["allowed"] for each in here.audit] == [False]


async def test_arguments_that_the_user_changed_are_checked(desk: DeskOf) -> None:
    good, bad = (Answer(allow=True, arguments={"n": value}) for value in (2, "two"))
    here = desk(good, bad)
    assert (await here.decide()).arguments == {"n": 2}
    decision = await here.decide()
    assert not decision.allow
    assert "the user changed the arguments" in decision.words
    assert [each.get("outcome") for each in here.audit] == [None, None, "error"]


async def test_arguments_that_do_not_fit_are_noted_in_the_question(desk: DeskOf) -> None:
    approver = ScriptedApprover(NO)
    await desk(approver=approver).decide(arguments={"n": "x"})
    (question,) = approver.questions
    assert question.agent == CLAUDE
    assert "do not fit" in (question.note or "")
    assert question.why_not_together


async def test_a_declined_call_names_the_command_that_allows_it(desk: DeskOf, tmp_path: Path) -> None:
    declined = DeclinedCalls(FileStore(tmp_path))
    here = desk(approver=AbsentApprover(declined, ["mcphost", "allow"], print))
    for _ in range(2):
        decision = await here.decide()
    assert (decision.allow, decision.by) == (False, "policy")
    assert "mcphost allow git:log" in decision.words
    (kept,) = declined.all()
    assert (kept.server, kept.tool, kept.definition) == ("git", "log", LOG)
    assert (kept.identity, kept.gate) == ("git-server (in /work)", Gate("/work", "claude"))


async def test_a_failure_declines(desk: DeskOf) -> None:
    class Failing(ScriptedApprover):
        async def ask(self, question: object) -> Answer:
            raise ZeroDivisionError

    decision = await desk(approver=Failing()).decide()
    assert not decision.allow
    assert "bug in mcphost" in decision.words


async def test_a_withdrawn_question_is_answered_by_no_one(desk: DeskOf) -> None:
    class Patient(ScriptedApprover):
        async def ask(self, question: object) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

    here = desk(approver=Patient())
    deciding = asyncio.ensure_future(here.decide())
    await asyncio.sleep(0)
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    here.consent.withdraw("git")


def test_secrets_in_the_command_of_a_program_are_masked(tmp_path: Path) -> None:
    desk, values = Desk(tmp_path, Config(), ScriptedApprover()), Values({})
    program = GatedProgram(("git-server", "--token", "ghp_0123456789"))
    GatedCalls(desk.consent, Config, values).keep_secrets(program, ["Bearer c4nary-t0ken"])
    assert values.mask("git-server --token ghp_0123456789 c4nary-t0ken") == "git-server --token ••• •••"
