"""Questions of servers in an agent's call: which the agent gets, and the answers that reach the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from mcphost.client.server_requests import InputRefused, InputRequest
from mcphost.config import ProfileConfig
from mcphost.host.catalog import CatalogKind
from mcphost.host.consent.questions import Answer, FormQuestion, Question
from mcphost.host.endpoint.questions import MOST_OPEN, AgentQuestions, AnsweringSides
from mcphost.host.endpoint.translation import Translation
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.protocol.lifecycle.revisions import (
    NEWEST_HANDSHAKE,
    NEWEST_MODERN,
    V2025_06_18,
    Revision,
)
from mcphost.serving.negotiation import ClientDeclaration
from mcphost.serving.served_request import ClientAnswer, ClientAsk, ServedRequest
from tests.host.endpoint.rig import ALL, ERAS, Agent, EndpointRig, ServerContent, asks, rig, says

FORM = {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
PAGE = {"mode": "url", "message": "Pay.", "url": "https://example.com/pay", "elicitationId": "e1"}
PROMPT = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}
ANN = {"action": "accept", "content": {"name": "Ann"}}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "elicitation/create": ANN,
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Ho"}, "model": "m"},
    "roots/list": {"roots": [{"uri": "file:///agent"}]},
}

MODEL = {"m": {"provider": "manual"}}


def screen(contents: Mapping[str, ServerContent], **more: Any) -> AbstractAsyncContextManager[EndpointRig]:
    """A host whose user answers everything that servers ask."""
    audit_path = more.pop("audit_path", None)
    return rig(contents, dependencies={"answers": SCREEN_KINDS, "audit_path": audit_path}, **more)


class Owner:
    """Takes what a request has to say."""

    def __init__(self) -> None:
        self.asked_keys: list[str] = []
        self.settled_keys: list[str] = []

    def asked(self, request: ServedRequest, keys: Any) -> None:
        self.asked_keys += keys

    def settled(self, request: ServedRequest, key: str) -> None:
        self.settled_keys.append(key)

    def new_key(self) -> str:
        return f"k{len(self.asked_keys)}"

    def __getattr__(self, name: str) -> Any:
        return lambda *more: None


def call_of(revision: Revision, capabilities: Mapping[str, Any], method: str = "tools/call") -> ServedRequest:
    return ServedRequest(Owner(), 1, method, {}, ClientDeclaration(revision, capabilities, {}))


def questions(
    revision: Revision = NEWEST_HANDSHAKE,
    capabilities: Mapping[str, Any] = ALL,
    sides: AnsweringSides | None = None,
    method: str = "tools/call",
    server: str = "",
) -> AgentQuestions:
    made = AgentQuestions(sides or AnsweringSides.of("agent", None), Translation(NEWEST_HANDSHAKE, revision), server)
    made.request = call_of(revision, capabilities, method)
    return made


def test_the_profile_names_sides_before_the_command_line() -> None:
    assert AnsweringSides.of("agent", None) == ("agent", "agent", "mcphost")
    assert AnsweringSides.of("here", None) == ("mcphost", "mcphost", "mcphost")
    profile = ProfileConfig(sampling="deny", roots="both")
    assert AnsweringSides.of("here", profile) == ("mcphost", "deny", "both")


@pytest.mark.server_requirement("SELIC-01", "SELIC-02", "SSAMP-02", "SSAMP-06", "SMRTR-07")
@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize(
    ("capabilities", "method", "params", "taken"),
    [
        ({"elicitation": {}}, "elicitation/create", FORM, True),
        ({"elicitation": {}}, "elicitation/create", PAGE, False),
        ({"elicitation": {"url": {}}}, "elicitation/create", PAGE, True),
        ({"elicitation": {"url": {}}}, "elicitation/create", FORM, False),
        ({"sampling": {}}, "elicitation/create", FORM, False),
        ({"sampling": {}}, "sampling/createMessage", PROMPT, True),
        ({"sampling": {}}, "sampling/createMessage", PROMPT | {"tools": [{"name": "t"}]}, False),
        ({"sampling": {}}, "sampling/createMessage", PROMPT | {"toolChoice": {"mode": "auto"}}, False),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", PROMPT | {"tools": [{"name": "t"}]}, True),
        ({"elicitation": {}}, "sampling/createMessage", PROMPT, False),
        ({"sampling": {}}, "ping", {}, False),
    ],
)
async def test_only_an_agent_that_declares_it_is_asked(
    revision: Revision, capabilities: Mapping[str, Any], method: str, params: Mapping[str, Any], *, taken: bool
) -> None:
    assert questions(revision, capabilities).takes(InputRequest(method, params)) is taken


@pytest.mark.server_requirement("SMRTR-02")
async def test_a_modern_agent_is_asked_in_some_requests_only() -> None:
    assert not questions(NEWEST_MODERN, method="completion/complete").takes(InputRequest("elicitation/create", FORM))


async def test_what_the_revision_of_an_agent_lacks_is_not_for_it() -> None:
    schema = {"type": "object", "properties": {"sizes": {"type": "array"}}}
    request = InputRequest("elicitation/create", {"message": "?", "requestedSchema": schema})
    assert not questions(V2025_06_18).takes(request)


async def test_nobody_is_asked_once_the_call_has_ended() -> None:
    made = questions()
    assert made.request is not None
    made.request.cancel()
    assert not made.takes(InputRequest("elicitation/create", FORM))


@pytest.mark.server_requirement("SSAMP-08")
async def test_context_is_asked_for_only_if_declared() -> None:
    made = questions(capabilities={"sampling": {}})
    assert made.request is not None
    asking = asyncio.ensure_future(
        made.answer(InputRequest("sampling/createMessage", PROMPT | {"includeContext": "thisServer"}))
    )
    await asyncio.sleep(0)
    (ask,) = made.request.asks.values()
    assert "includeContext" not in ask.params
    asking.cancel()


async def test_a_question_names_its_server_if_there_are_several() -> None:
    made = questions(server="git")
    assert made.request is not None
    asking = asyncio.ensure_future(made.answer(InputRequest("elicitation/create", FORM)))
    await asyncio.sleep(0)
    (ask,) = made.request.asks.values()
    assert ask.params["message"] == "git: Your name?"
    asking.cancel()


async def test_the_private_metadata_of_an_answer_stays_here() -> None:
    made = questions()
    assert made.request is not None
    asking = asyncio.ensure_future(made.answer(InputRequest("elicitation/create", FORM)))
    await asyncio.sleep(0)
    made.request.answer(next(iter(made.request.asks)), ClientAnswer({**ANN, "_meta": {"secret": 1}}))
    assert await asking == ANN


@pytest.mark.server_requirement("SELIC-23", "SELIC-25")
async def test_an_agent_that_gives_no_answer_cancels() -> None:
    made = questions()
    assert made.request is not None
    asking = asyncio.ensure_future(made.answer(InputRequest("elicitation/create", FORM)))
    await asyncio.sleep(0)
    made.request.finish({})
    assert await asking == {"action": "cancel"}


async def test_a_question_that_the_server_takes_back_is_withdrawn() -> None:
    made = questions()
    assert made.request is not None
    asking = asyncio.ensure_future(made.answer(InputRequest("elicitation/create", FORM)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert made.request.asks == {}
    assert made.request._owner.settled_keys == ["k0"]  # type: ignore[attr-defined]


@pytest.mark.hostile("P12")
async def test_a_call_asks_its_agent_only_so_much_at_once() -> None:
    made = questions()
    asking = [asyncio.ensure_future(made.answer(InputRequest("elicitation/create", FORM))) for _ in range(MOST_OPEN)]
    await asyncio.sleep(0)
    with pytest.raises(InputRefused, match="more in this call"):
        await made.answer(InputRequest("elicitation/create", FORM))
    for each in asking:
        each.cancel()


async def test_a_denied_model_is_not_asked_for_here_either() -> None:
    made = questions(sides=AnsweringSides.of("agent", ProfileConfig(sampling="deny")))
    request = InputRequest("sampling/createMessage", PROMPT)
    assert made.takes(request)
    with pytest.raises(InputRefused, match="lends no model"):
        await made.answer(request)


# Whole calls, in all four cells.


async def asked(agent: Agent, key: int) -> Mapping[str, tuple[str, Any]]:
    """The methods and params of what the agent is asked for this call, by key."""
    if agent.revision.modern:
        result = (await agent.answer(key))["result"]
        assert result["resultType"] == "input_required"
        return {name: (each["method"], each["params"]) for name, each in result["inputRequests"].items()}
    message = await agent.until(lambda each: "id" in each and "method" in each)
    return {message["id"]: (message["method"], message["params"])}


async def answered(agent: Agent, key: int, answers: Mapping[str, Mapping[str, Any]]) -> Any:
    """The result of the call once the agent has given these answers."""
    if not agent.revision.modern:
        for name, answer in answers.items():
            agent.reply(name, answer)
        return (await agent.answer(key))["result"]
    state = (await agent.answer(key))["result"]["requestState"]
    params = {"name": "tool", "arguments": {}, "inputResponses": answers, "requestState": state}
    return await agent.result("tools/call", params)


class Inbox:
    """Fills in the forms of servers, and shares no folders."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(isinstance(question, FormQuestion), content={"name": "Ben"}, by="user")


def pair(request: ServedRequest) -> None:
    """A tool that needs two answers at once."""
    answers: dict[str, Any] = {}

    def take(name: str, answer: ClientAnswer) -> None:
        answers[name] = dict(answer.result or {})
        if len(answers) == 2:
            request.finish({"content": [], "structuredContent": answers})

    request.ask(
        ClientAsk("elicitation/create", FORM, lambda answer: take("one", answer), "one"),
        ClientAsk("sampling/createMessage", PROMPT, lambda answer: take("two", answer), "two"),
    )


@pytest.mark.server_requirement("SMSG-34", "SMRTR-01", "SELIC-06", "SELIC-08")
@pytest.mark.parametrize("revision", ERAS.values(), ids=[f"{each} agent" for each in ERAS])
@pytest.mark.parametrize("era", ERAS)
async def test_the_agent_answers_its_servers_form(era: str, revision: Revision) -> None:
    content = ServerContent(tool=asks("elicitation/create", FORM))
    async with screen({"s": content}, era=era) as running:
        agent = await running.agent(revision)
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        ((name, (method, params)),) = (await asked(agent, key)).items()
        assert (method, params["message"]) == ("elicitation/create", "Your name?")
        result = await answered(agent, key, {name: ANN})
        assert result["structuredContent"] == ANN


@pytest.mark.server_requirement("SMRTR-19")
@pytest.mark.parametrize("revision", ERAS.values(), ids=[f"{each} agent" for each in ERAS])
async def test_what_a_modern_server_needs_at_once_is_asked_at_once(revision: Revision) -> None:
    async with screen({"s": ServerContent(tool=pair)}, era="modern", models=MODEL) as running:
        agent = await running.agent(revision)
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        wanted: dict[str, Any] = dict(await asked(agent, key))
        if not revision.modern:
            await agent.until(lambda each: each.get("method") == "sampling/createMessage")
            wanted = {each["id"]: (each["method"], each["params"]) for each in agent.sent if "method" in each}
        assert [method for method, _ in wanted.values()] == ["elicitation/create", "sampling/createMessage"]
        result = await answered(agent, key, {name: ANSWERS[method] for name, (method, _) in wanted.items()})
        assert result["structuredContent"] == {"one": ANN, "two": ANSWERS["sampling/createMessage"]}


async def test_an_agent_without_forms_leaves_them_to_the_user() -> None:
    content, inbox = ServerContent(tool=asks("elicitation/create", FORM)), Inbox()
    async with screen({"s": content}, era="modern", approver=inbox) as running:
        agent = await running.agent(capabilities={"sampling": {}})
        result = await agent.call("tool")
        assert result["structuredContent"] == {"action": "accept", "content": {"name": "Ben"}}
        assert len(inbox.questions) == 1


async def test_the_user_answers_if_the_command_line_says_so() -> None:
    content, inbox = ServerContent(tool=asks("elicitation/create", FORM)), Inbox()
    async with screen({"s": content}, approver=inbox) as running:
        agent = await running.agent(questions="here")
        assert (await agent.call("tool"))["structuredContent"]["content"] == {"name": "Ben"}


async def test_the_audit_log_says_who_answered(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    content = ServerContent(tool=asks("elicitation/create", FORM))
    async with screen({"s": content}, audit_path=audit) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        await answered(agent, key, {name: {"action": "decline"} for name in await asked(agent, key)})
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    (record,) = [each for each in records if each["event"] == "question"]
    record.pop("time")
    assert record == {
        "event": "question",
        "kind": "form",
        "server": "s",
        "call": 1,
        "verdict": "decline",
        "by": "agent:claude-code",
    }


@pytest.mark.server_requirement("SELIC-16", "SELIC-18")
async def test_the_agent_hears_that_a_page_is_done_with() -> None:
    content = ServerContent(tool=asks("elicitation/create", PAGE))
    async with screen({"s": content}) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        ((name, (_, params)),) = (await asked(agent, key)).items()
        assert params == PAGE
        (await content.until("tools/call")).complete_elicitation("e1")
        assert await agent.notice("elicitation/complete") == {"elicitationId": "e1"}
        await answered(agent, key, {name: {"action": "accept"}})


async def test_no_other_agent_hears_that_a_page_is_done_with() -> None:
    content = ServerContent(tool=asks("elicitation/create", PAGE), other=lambda request: None)
    async with screen({"s": content}) as running:
        agent, other = await running.agent(), await running.agent()
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        (name,) = await asked(agent, key)
        other.start("tools/call", {"name": "other", "arguments": {}})
        await running.until(lambda: len(content.all("tools/call")) == 2)
        content.all("tools/call")[0].complete_elicitation("e1")
        await agent.notice("elicitation/complete")
        assert other.notices("elicitation/complete") == []
        await answered(agent, key, {name: {"action": "accept"}})


async def test_an_agent_is_asked_for_its_folders_between_calls() -> None:
    async with screen(
        {"s": ServerContent(tool=says("x"))}, share="session", profiles={"p": {"roots": "agent"}}
    ) as running:
        agent = await running.agent(profile="p")
        await agent.call("tool")
        holder = running.host.instances.holder_of("s@claude-code")
        assert holder is not None
        assert holder.roots is not None
        folders = asyncio.ensure_future(holder.roots())
        request = await agent.until(lambda message: message.get("method") == "roots/list")
        agent.reply(request["id"], ANSWERS["roots/list"])
        assert await folders == ANSWERS["roots/list"]["roots"]


async def test_a_cancelled_call_withdraws_its_questions() -> None:
    content = ServerContent(tool=asks("elicitation/create", FORM))
    async with screen({"s": content}) as running:
        agent = await running.agent()
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        (name,) = await asked(agent, key)
        (call,) = running.host.tool_calls.calls.values()
        call.cancel()
        await agent.answer(key)
        assert [each["requestId"] for each in agent.notices("cancelled")] == [name]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("roots", "uris"), [("agent", ["file:///agent"]), ("mcphost", []), ("both", ["file:///agent"])]
)
async def test_the_profile_says_whose_folders_a_server_sees(era: str, roots: str, uris: list[str]) -> None:
    content = ServerContent(tool=asks("roots/list", {}))
    async with screen({"s": content}, era=era, profiles={"p": {"roots": roots}}, approver=Inbox()) as running:
        agent = await running.agent(profile="p")
        key = agent.start("tools/call", {"name": "tool", "arguments": {}})
        if roots != "mcphost":
            (name,) = await asked(agent, key)
            agent.reply(name, ANSWERS["roots/list"])
        result = (await agent.answer(key))["result"]
        assert [root["uri"] for root in result["structuredContent"]["roots"]] == uris


class AskingPrompts(ServerContent):
    """A server that needs a form to give a prompt."""

    def begin(self, request: ServedRequest) -> None:
        if request.method != "prompts/get":
            super().begin(request)
            return
        self.begun.append(request)
        prompt = self.results["prompts/get"]
        request.ask(ClientAsk("elicitation/create", FORM, lambda answer: request.finish({**prompt, "own": 1})))


@pytest.mark.server_requirement("SMRTR-02")
@pytest.mark.parametrize("revision", ERAS.values(), ids=[f"{each} agent" for each in ERAS])
async def test_a_prompt_asks_its_own_agent_alone(revision: Revision) -> None:
    content, inbox = AskingPrompts(slow=lambda request: None), Inbox()
    async with screen({"s": content}, era="modern", approver=inbox) as running:
        caller, agent = await running.agent(), await running.agent(revision)
        caller.start("tools/call", {"name": "slow", "arguments": {}})
        await content.until("tools/call")
        key = agent.start("prompts/get", {"name": "greet"})
        ((name, (method, _)),) = (await asked(agent, key)).items()
        assert method == "elicitation/create"
        assert not any(each.get("method") == "elicitation/create" for each in caller.sent)
        if revision.modern:
            state = (await agent.answer(key))["result"]["requestState"]
            result = await agent.result(
                "prompts/get", {"name": "greet", "inputResponses": {name: ANN}, "requestState": state}
            )
        else:
            agent.reply(name, ANN)
            result = (await agent.answer(key))["result"]
        assert result["own"] == 1
        assert inbox.questions == []


async def test_a_shared_modern_server_hears_what_the_agents_answer() -> None:
    server = ServerContent(ask=asks("elicitation/create", {**FORM, "mode": "form"}))
    async with rig({"a": server}, era="modern", dependencies={"answers": frozenset()}) as running:
        agent = await running.agent(NEWEST_MODERN)
        key = agent.start("tools/call", {"name": "ask", "arguments": {}})
        needed = (await agent.answer(key))["result"]["inputRequests"]
        assert [each["method"] for each in needed.values()] == ["elicitation/create"]
        agent.close()
        await running.host.servers["a"].current(CatalogKind.TOOLS)
        quiet = await running.agent(NEWEST_MODERN, {})
        assert "error" in await quiet.ask("tools/call", {"name": "ask", "arguments": {}})
