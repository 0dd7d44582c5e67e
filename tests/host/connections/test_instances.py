from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config, entry_of
from mcphost.errors import ServerNotReady, UnknownName
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.connections import instances
from mcphost.host.connections.instances import Holder, SharingReport
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, ToolCallQuestion
from mcphost.host.endpoint.service import EndpointOptions
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE
from mcphost.protocol.models.content import TextContent
from mcphost.serving.served_request import ClientAnswer, ClientAsk, ServedRequest
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, ScriptedApprover, alive, script
from tests.host.endpoint.rig import Agent, ServerContent, ServerInProcess

ONE, TWO = Holder(1, "claude-code"), Holder(2, "claude-code")


class CountingServer(ServerContent):
    """Counts the calls of its own session, as a stateful server would."""

    def __init__(self) -> None:
        super().__init__(count=self._count, hold=lambda request: None)
        self._calls = 0

    def _count(self, request: ServedRequest) -> None:
        self._calls += 1
        request.finish({"content": [{"type": "text", "text": str(self._calls)}]})


class InstanceHost(RecordingHost):
    """A host whose server of every connection is a new one."""

    def __init__(self, entry: Mapping[str, Any], approver: ScriptedApprover | None = None, **more: Any) -> None:
        self.contents: dict[str, CountingServer] = {}
        self.opened: list[str] = []
        self.content: type[CountingServer] = CountingServer
        values = {"servers": {"git": {"command": "in-process", "start": "lazy", **entry}}, **more.pop("values", {})}
        super().__init__(Config.model_validate(values, strict=False), approver, open_transport=self._opened, **more)

    async def _opened(self, config: Config, name: str) -> ServerInProcess:
        content = self.contents[name] = self.content()
        self.opened.append(name)
        return ServerInProcess(content)

    async def count(self, holder: Holder) -> str:
        """Call the tool for an agent's session; the server's answer."""
        call = await self.run(await self.instances.lease("git", holder), "count")
        assert call.outcome is not None, call.error
        (block,) = call.outcome.content
        assert isinstance(block, TextContent)
        return block.text


@asynccontextmanager
async def hosting(approver: ScriptedApprover | None = None, **entry: Any) -> AsyncIterator[InstanceHost]:
    values = {"policy": entry.pop("policy", {"default": "allow"})}
    dependencies = entry.pop("dependencies", {})
    async with InstanceHost(entry, approver, values=values, **dependencies) as running:
        yield running


@pytest.mark.parametrize(
    ("entry", "counted", "opened"),
    [
        ({"protocol": "legacy"}, ["1", "2", "1"], ["git@claude-code", "git@claude-code-2"]),
        ({"protocol": "modern"}, ["1", "2", "3"], ["git"]),
        ({"protocol": "legacy", "share": "all"}, ["1", "2", "3"], ["git"]),
        ({"protocol": "modern", "share": "session"}, ["1", "2", "1"], ["git@claude-code", "git@claude-code-2"]),
        ({}, ["1", "2", "3"], ["git"]),
    ],
    ids=["a legacy server", "a modern one", "shared by all", "private by the file", "of an unknown era"],
)
async def test_a_session_sees_what_others_did_only_if_shared(
    entry: dict[str, Any], counted: list[str], opened: list[str]
) -> None:
    async with hosting(**entry) as running:
        assert [await running.count(ONE), await running.count(ONE), await running.count(TWO)] == counted
        assert running.opened == opened


@pytest.mark.parametrize(
    ("holders", "counted"),
    [
        ((Holder(1, "a", given="a"), Holder(2, "a", given="a"), Holder(3, "b", given="b")), ["1", "2", "1"]),
        ((Holder(1, "a"), Holder(2, "a")), ["1", "1"]),
    ],
    ids=["by the name of --as", "a claimed name joins nothing"],
)
async def test_an_agent_shares_one_among_its_sessions(holders: tuple[Holder, ...], counted: list[str]) -> None:
    async with hosting(share="agent") as running:
        assert [await running.count(holder) for holder in holders] == counted


async def test_a_host_for_one_session_uses_the_entrys_own() -> None:
    async with hosting(protocol="legacy") as running:
        assert await running.count(ONE._replace(alone=True)) == "1"
        assert running.opened == ["git"]


async def test_an_idle_instance_ends_and_starts_again_at_the_next_use(until: Until) -> None:
    async with hosting(protocol="legacy", idle_stop=0.05) as running:
        await running.count(ONE)
        await until(lambda: running.servers["git@claude-code"].state is ServerState.STOPPED)
        assert await running.count(ONE) == "1"
        assert running.opened == ["git@claude-code"] * 2


async def test_an_instance_does_not_end_under_a_call(until: Until) -> None:
    async with hosting(protocol="legacy", idle_stop=0.05) as running:
        name = await running.instances.lease("git", ONE)
        call = running.tool_calls.call(name, "hold", {})
        await until(lambda: name in running.contents and bool(running.contents[name].all("tools/call")))
        running.instances.stop_idle(asyncio.get_running_loop().time() + 1)
        assert running.servers[name].ready
        running.contents[name].all("tools/call")[0].finish({"content": []})
        await running.end_of(call)
        await until(lambda: running.servers[name].state is ServerState.STOPPED)


async def test_instances_end_with_their_session() -> None:
    async with hosting(protocol="legacy") as running:
        await running.count(ONE)
        await running.count(TWO)
        running.instances.release(ONE)
        assert list(running.instances.of("git")) == ["git@claude-code-2"]
        with pytest.raises(UnknownName):
            _ = running.servers["git@claude-code"]
        assert await running.count(TWO) == "2"
        assert await running.count(ONE) == "1"
        assert list(running.instances.of("git")) == ["git@claude-code-2", "git@claude-code-3"]


async def test_logs_of_the_last_ended_instances_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "KEPT_LOGS", 1)
    async with hosting(protocol="legacy") as running:
        for holder in (ONE, TWO):
            await running.count(holder)
            running.instances.release(holder)
        assert running.said("git@claude-code-2")
        assert running.said("git@claude-code") == []


async def test_the_users_repeat_of_an_agents_call_runs_on_the_entrys_own() -> None:
    async with hosting(protocol="legacy") as running:
        call = await running.run(await running.instances.lease("git", ONE), "count")
        again = running.tool_calls.repeat(call)
        await running.end_of(again)
        assert (again.request.server, again.state) == ("git", CallState.DONE)


async def test_no_place_lists_instances_beside_the_entries() -> None:
    async with hosting(protocol="legacy") as running:
        await running.count(ONE)
        assert list(running.servers) == ["git"] == list(running.config.servers)
        assert running.catalog.tools() == ()
        assert [each.tool.name for each in running.catalog.tools("git@claude-code")] == ["count", "hold"]


async def test_consent_and_audit_go_by_the_entry(tmp_path: Path) -> None:
    audit, approver = tmp_path / "audit.jsonl", ScriptedApprover(Answer(True, Lifetime.SESSION))
    async with hosting(approver, protocol="legacy", policy={}, dependencies={"audit_path": audit}) as running:
        await running.count(ONE)
        await running.count(TWO)
        (question,) = approver.questions
        assert (question.server, question.instance) == ("git", "git@claude-code")
        assert [grant.server for grant in running.consent.grants()] == ["git"]
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(each["server"], each["instance"]) for each in records if each["event"] == "decision"] == [
        ("git", "git@claude-code"),
        ("git", "git@claude-code-2"),
    ]


async def test_rules_of_the_entry_hold_for_its_instances() -> None:
    async with hosting(protocol="legacy", policy={"default": "allow", "deny": ["git:count"]}) as running:
        call = await running.run(await running.instances.lease("git", ONE), "count")
        assert str(call.error) == "count was declined by policy: policy.deny has 'git:count'"


async def test_a_question_ends_with_its_own_instance_only(until: Until) -> None:
    async def never(question: ToolCallQuestion) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async with hosting(ScriptedApprover(never, never), protocol="legacy", policy={}) as running:
        first, second = [
            running.tool_calls.call(await running.instances.lease("git", holder), "count", {}) for holder in (ONE, TWO)
        ]
        await until(lambda: len(running.approver.questions) == 2)
        running.instances.release(ONE)
        await running.end_of(first)
        assert "went away" in str(first.error)
        assert not second.state.ended
        second.cancel()


@pytest.mark.parametrize(
    ("answered", "declared"),
    [
        ({"elicitation": {"form": {}}, "sampling": None}, {"elicitation": {"form": {}}}),
        ({"elicitation": {}, "sampling": {"tools": {}}}, {"elicitation": {"form": {}}, "sampling": {"tools": {}}}),
        ({"elicitation": None}, {}),
        ({}, {"elicitation": {"form": {}, "url": {}}}),
    ],
    ids=["forms alone", "sampling with tools", "an agent that answers nothing", "mcphost answers"],
)
async def test_an_instance_may_ask_what_its_agent_answers(answered: dict[str, Any], declared: dict[str, Any]) -> None:
    answers = frozenset({"form", "url"})
    async with hosting(protocol="legacy", dependencies={"answers": answers}) as running:
        await running.count(ONE._replace(capabilities=answered))
        assert running.servers["git@claude-code"].declared == declared
        assert running.contents["git@claude-code"].begun[-1].declaration.capabilities == declared


async def test_a_shared_server_may_ask_what_mcphost_answers() -> None:
    async with hosting(protocol="modern", dependencies={"answers": frozenset({"form"})}) as running:
        await running.count(ONE._replace(capabilities={"elicitation": None}))
        assert running.servers["git"].declared["elicitation"] == {"form": {}}


async def test_a_server_for_one_session_declares_what_its_agent_answers() -> None:
    holder = ONE._replace(alone=True, capabilities={"elicitation": {"form": {}}})
    async with hosting(protocol="legacy", start="eager") as running:
        await running.servers.ready()
        await running.count(holder)
        await running.count(holder)
        assert running.contents["git"].begun[-1].declaration.capabilities == {"elicitation": {"form": {}}}
        assert running.opened == ["git", "git"]


async def test_an_agent_that_declares_more_later_is_declared_so() -> None:
    probe = ONE._replace(alone=True, capabilities={"elicitation": None})
    holder = probe._replace(capabilities={"elicitation": {"form": {}}})
    async with hosting(protocol="legacy") as running:
        await running.count(probe)
        for each in (holder, probe, holder):
            await running.count(each)
        assert running.contents["git"].begun[-1].declaration.capabilities == {"elicitation": {"form": {}}}
        assert running.opened == ["git", "git"]


class RootsAskingServer(CountingServer):
    """Asks for folders before it lists its tools, so outside of every call; ``roots`` are those it got."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[str] = []
        self.roots_changes = 0

    def roots_changed(self) -> None:
        self.roots_changes += 1

    def begin(self, request: ServedRequest) -> None:
        def take(answer: ClientAnswer) -> None:
            self.roots = [root["uri"] for root in (answer.result or {})["roots"]]
            super(RootsAskingServer, self).begin(request)

        if request.method == "tools/list" and not self.roots:
            request.ask(ClientAsk("roots/list", {}, take))
        else:
            super().begin(request)


async def test_a_server_for_one_session_starts_once_for_its_agent() -> None:
    async with hosting(protocol="legacy", start="lazy") as running:
        options = EndpointOptions(AgentFacts("codex"), alone=True)
        agent = Agent(running.endpoint.open(options), NEWEST_HANDSHAKE, {"elicitation": {"form": {}}})
        await agent.open()
        await agent.call("count")
        assert running.opened == ["git"]
        assert running.contents["git"].begun[-1].declaration.capabilities == {"elicitation": {"form": {}}}
        agent.close()


async def test_an_instance_gets_the_folders_of_its_agent(until: Until) -> None:
    async def folders() -> list[Any]:
        return [{"uri": "file:///work", "name": "work"}, {"uri": "https://example.com"}, "no folder"]

    async with hosting(protocol="legacy", roots=["/"]) as running:
        running.content = RootsAskingServer
        await running.count(ONE._replace(roots=folders))
        await running.count(TWO)
        one, two = [each for each in running.contents.values() if isinstance(each, RootsAskingServer)]
        assert (one.roots, two.roots) == (["file:///work"], ["file:///"])
        running.roots.agent_changed("git@claude-code")
        await until(lambda: one.roots_changes == 1)


async def test_declining_all_questions_holds_for_every_instance() -> None:
    async with hosting(protocol="legacy") as running:
        await running.count(ONE)
        running.pending_requests.mute("git@claude-code")
        assert running.pending_requests.muted_servers == ["git"]
        assert running.pending_requests.muted("git@claude-code-2")


def changed(running: InstanceHost, **entry: Any) -> Config:
    config = running.config
    servers = {"git": config.servers["git"].model_copy(update=entry)}
    return config.model_copy(update={"servers": servers})


async def test_a_changed_entry_restarts_its_instances(until: Until) -> None:
    async with hosting(protocol="legacy") as running:
        await running.count(ONE)
        await running.apply(changed(running, command="other"))
        assert running.servers["git@claude-code"].config.command == "other"
        await until(lambda: len(running.opened) == 2 and running.servers["git@claude-code"].ready)
        assert await running.count(ONE) == "1"


async def test_a_removed_entry_ends_its_instances() -> None:
    async with hosting(protocol="legacy") as running:
        await running.count(ONE)
        await running.apply(running.config.model_copy(update={"servers": {}}))
        assert running.servers.get("git@claude-code") is None
        with pytest.raises(UnknownName):
            await running.instances.lease("git", ONE)


async def test_sharing_that_was_chosen_holds_from_the_next_start_on(until: Until) -> None:
    async with hosting(protocol="legacy", idle_stop=0.05) as running:
        await running.count(ONE)
        running.instances.set_share("git", "all")
        assert await running.count(ONE) == "2"  # it keeps its own while that runs
        assert await running.count(TWO) == "1"
        await until(lambda: running.servers["git@claude-code"].state is ServerState.STOPPED)
        assert await running.count(ONE) == "2"
        assert running.opened == ["git@claude-code", "git"]
        assert list(running.instances.of("git")) == []


async def test_a_report_counts_who_uses_a_server() -> None:
    async with hosting(protocol="modern") as running:
        for session in range(3):
            await running.count(Holder(session, "a"))
        report = running.instances.report("git")
        assert (report.share, report.by_user, report.agents) == ("all", False, 3)


def test_a_report_is_said_in_words() -> None:
    assert SharingReport("session", False, 3, 4, 310_000_000).words == "3 agents, 4 processes, 310 MB"
    assert SharingReport("all", True, 1, 1, None).words == "1 agent, 1 process"


async def test_agents_do_not_start_what_only_the_user_starts() -> None:
    async with hosting(protocol="legacy", start="manual") as running:
        with pytest.raises(ServerNotReady, match="git is stopped"):
            await running.instances.lease("git", ONE)


async def test_a_foreign_name_becomes_a_short_plain_one() -> None:
    async with hosting(protocol="legacy") as running:
        name = await running.instances.lease("git", Holder(1, "Évil @ agent\n" + "x" * 500))
        assert name == f"git@vil-agent-{'x' * 21}"
        assert entry_of(name) == "git"
        assert await running.instances.lease("git", Holder(2, "∅")) == "git@agent"


@pytest.mark.parametrize("name", ["git", "git server", "a@b c", "git@", "@git", "git@x@y", "git through claude@home"])
def test_only_an_instance_has_another_entry(name: str) -> None:
    assert entry_of(name) == name


async def counted(running: RecordingHost, holder: Holder) -> tuple[str, int]:
    """The answer of a server process to a call of this session, and its process id."""
    call = await running.run(await running.instances.lease("git", holder), "count")
    assert call.outcome is not None, call.error
    (block,) = call.outcome.content
    assert isinstance(block, TextContent)
    return block.text, call.outcome.structured["pid"]


async def test_two_sessions_never_meet_in_one_process(host: HostOf) -> None:
    async with host(git=script("counts.py", start="lazy"), policy={"default": "allow"}) as running:
        (one, first), (two, second), (three, third) = [await counted(running, each) for each in (ONE, TWO, ONE)]
        assert (one, two, three) == ("1", "1", "2")
        assert first == third != second
        running.instances.set_share("git", "all")
        fresh = [await counted(running, Holder(number, "codex")) for number in (3, 4)]
        assert [count for count, _ in fresh] == ["1", "2"]
        assert len({pid for _, pid in fresh} | {first, second}) == 3
        assert running.instances.report("git").words == "4 agents, 3 processes"
    assert not any(map(alive, (first, second, fresh[0][1])))


@pytest.mark.usefixtures("impatient")
async def test_a_killed_instance_is_told_and_started_again(host: HostOf, until: Until) -> None:
    async with host(git=script("counts.py", protocol="legacy"), policy={"default": "allow"}) as running:
        _, pid = await counted(running, ONE)
        os.kill(pid, signal.SIGKILL)
        name = "git@claude-code"
        await until(lambda: running.servers[name].restarts == 1 and running.servers[name].ready)
        assert any("SIGKILL" in text for text in running.said(name))
        count, after = await counted(running, ONE)
        assert (count, after == pid) == ("1", False)
        running.instances.release(ONE)
        await until(lambda: not alive(after))
