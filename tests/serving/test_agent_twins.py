"""A gate before each agent, as recorded from the real ones: what is decided, how long it takes, and what follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcphost.serving.gate import (
    AgentIntroduced,
    AskInbox,
    Doubt,
    Overdue,
    Questions,
    Sent,
    Withdraw,
)
from mcphost.serving.ports import GateDecision
from tests.serving.agent_twins import (
    AGENTS,
    CLAUDE_CODE,
    AgentTwin,
    TwinSession,
)
from tests.serving.gate_rig import ECHO, NO, YES, request

MODERN = [twin for twin in AGENTS if twin.probe is not None]
NEWER = {**ECHO, "description": "newer"}
OTHER = {"name": "other", "inputSchema": {"type": "object"}}
FORM = {"message": "May I?", "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}

each_agent = pytest.mark.parametrize("twin", AGENTS, ids=str)
each_modern_agent = pytest.mark.parametrize("twin", MODERN, ids=str)
each_agent_and_era = pytest.mark.parametrize(
    ("twin", "modern"),
    [
        *(pytest.param(twin, False, id=f"{twin}-legacy") for twin in AGENTS),
        *(pytest.param(twin, True, id=f"{twin}-modern") for twin in MODERN),
    ],
)


@each_agent_and_era
def test_an_agent_opens_and_lists_as_without_a_gate(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    assert session.agent.modern is modern
    assert session.agent.listed == [ECHO]
    opening = session.rig.server_got[1 if twin.probe is not None else 0]
    assert opening["method"] == ("subscriptions/listen" if modern else "initialize")
    named = session.rig.all(AgentIntroduced)[-1]
    assert (named.name, named.version) == (twin.client["name"], twin.client["version"])
    assert (named.era, named.revision) == (("modern", "2026-07-28") if modern else ("legacy", twin.revision))


@each_agent_and_era
def test_an_allowed_call_of_an_agent_runs(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call(x=1)
    session.agent.wait(45)
    assert session.rig.asked[0].definition == ECHO
    session.decide(YES)
    session.finish()
    assert (session.text(asked), session.ends) == ("done", ["done"])
    (sent,) = session.server.calls
    assert sent["params"]["_meta"].items() >= twin.call_meta.items()
    assert sent["id"] == asked
    assert session.agent.given_up == []
    assert session.cancelled == ([asked] if twin.cancels_answered else [])


@each_agent_and_era
def test_a_refused_call_of_an_agent_never_reaches_its_server(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call(x=1)
    session.decide(NO)
    session.agent.wait(20)
    assert (session.server.calls, session.cancelled, session.ends) == ([], [], [])
    answer = session.agent.answers[asked]["result"]
    assert (answer["isError"], session.text(asked), "resultType" in answer) == (True, "Not this one.", modern)


@each_agent_and_era
def test_an_agent_hears_that_its_arguments_were_changed(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call(x=1)
    session.decide(GateDecision(True, {"x": 2}))
    session.finish()
    assert [each["params"]["arguments"] for each in session.server.calls] == [{"x": 2}]
    assert "changed the arguments" in session.text(asked)


@each_agent_and_era
def test_an_agent_is_answered_before_it_gives_up(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call(x=1)
    session.agent.wait(45 * 60)
    assert session.agent.given_up == []
    assert "Call again with the same arguments" in session.text(asked)
    assert (session.server.calls, len(session.rig.all(Overdue))) == ([], 1)
    session.decide(YES)
    again, third = session.agent.call(x=1), session.agent.call(x=1)
    session.finish()
    assert session.text(again) == "done"
    assert [each["id"] for each in session.server.calls] == [again]
    assert session.rig.asked[-1].request_id == third


@each_agent
def test_a_limit_that_the_user_gave_an_agent_withdraws_the_call(twin: AgentTwin) -> None:
    session = TwinSession(replace(twin, limit=30))
    asked = session.agent.call()
    session.agent.wait(60)
    assert (session.agent.given_up, session.agent.answers.get(asked)) == ([asked], None)
    session.decide(YES)
    assert (session.server.calls, len(session.rig.all(Withdraw))) == ([], 1)


def test_an_agent_that_may_give_up_in_silence_is_doubted() -> None:
    session = TwinSession(CLAUDE_CODE, answer_within=float("inf"))
    session.agent.request("tools/call", name="echo", arguments={})  # without a token there is no heartbeat
    session.agent.run()
    session.agent.wait(31 * 60)
    assert [each.call for each in session.rig.all(Doubt)] == [1]
    assert not session.rig.all(Withdraw)


@each_agent_and_era
@pytest.mark.parametrize("times", [1, 2])
def test_a_call_that_an_agent_cancels_is_withdrawn(twin: AgentTwin, modern: bool, times: int) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call()
    session.agent.wait(25)
    session.agent.cancel(asked, times)
    session.decide(YES)
    session.agent.wait(60)
    assert (session.server.calls, len(session.rig.all(Withdraw)), asked in session.agent.answers) == ([], 1, False)


@each_agent_and_era
def test_a_call_in_flight_that_an_agent_cancels_is_cancelled(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call()
    session.decide(YES)
    session.agent.cancel(asked)
    assert (session.cancelled, session.ends) == ([asked], ["cancelled"])


@each_agent_and_era
def test_the_end_of_an_agent_withdraws_its_call(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call()
    session.agent.end()
    session.decide(YES)
    assert (session.server.calls, len(session.rig.all(Withdraw)), session.rig.gate.wake_at) == ([], 1, None)
    assert asked not in session.agent.answers
    assert len(session.cancelled) == (modern and twin.cancels_listening)


@each_agent_and_era
def test_a_tool_that_changes_while_its_call_waits_asks_again(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    asked = session.agent.call()
    session.server.change(NEWER)
    session.agent.run()
    session.rig.decide(YES, session.rig.asked[0].number)
    session.agent.run()
    assert ([each.definition for each in session.rig.asked], session.server.calls) == ([ECHO, NEWER], [])
    session.decide(YES)
    session.finish()
    assert (session.text(asked), session.agent.noticed[-1]) == ("done", "notifications/tools/list_changed")
    assert session.agent.listed == ([ECHO] if twin.lists == "never" else [NEWER])


@each_agent_and_era
def test_a_tool_that_is_added_while_a_call_waits_can_be_called(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern)
    first = session.agent.call()
    session.server.change(ECHO, OTHER)
    session.decide(YES)
    session.finish()
    second = session.agent.call("other")
    session.decide(YES)
    session.finish()
    assert [session.text(each) for each in (first, second)] == ["done", "done"]
    assert [each.definition for each in session.rig.asked] == [ECHO, OTHER]


@each_agent_and_era
def test_a_tool_that_an_agent_knows_from_another_session_is_listed(twin: AgentTwin, modern: bool) -> None:
    session = TwinSession(twin, modern=modern, lists=False)
    asked = session.agent.call()
    assert (session.agent.listed, session.rig.asked[0].definition) == (None, ECHO)
    session.decide(YES)
    session.finish()
    assert session.text(asked) == "done"


# Questions of the server.


@each_agent
@pytest.mark.parametrize("questions", ["agent", "both", "here"])
def test_a_form_goes_to_the_side_that_answers_it(twin: AgentTwin, questions: Questions) -> None:
    session = TwinSession(twin, questions=questions)
    asked = session.agent.call()
    session.decide(YES)
    session.rig.server(request("q1", "elicitation/create", **FORM))
    session.agent.run()
    here = questions == "here" or (questions == "both" and "elicitation" not in twin.capabilities)
    assert [each.call for each in session.rig.all(AskInbox)] == ([session.rig.asked[0].number] if here else [])
    assert len(session.agent.asked) == (0 if here else 1)
    if here:
        session.rig.reply({"action": "accept", "content": {"ok": True}})
        session.agent.run()
    expected = {"result": {"action": "accept", "content": {"ok": True}}} if here else twin.refusal
    assert session.server.others[-1] == {"jsonrpc": "2.0", "id": "q1", **expected}
    session.finish()
    assert session.text(asked) == "done"


@each_agent
def test_an_agent_stays_alive_while_the_user_reads_a_form(twin: AgentTwin) -> None:
    session = TwinSession(twin, questions="here")
    asked = session.agent.call()
    session.decide(YES)
    session.rig.server(request("q1", "elicitation/create", **FORM))
    session.agent.wait(240)
    assert session.agent.given_up == []
    session.rig.reply({"action": "decline"})
    session.finish()
    assert session.text(asked) == "done"


def test_agents_that_declare_nothing_are_not_asked_for_a_model() -> None:
    asked = {}
    for twin in AGENTS:
        session = TwinSession(twin, questions="both")
        session.rig.server(request("s", "sampling/createMessage"), request("r", "roots/list"))
        session.agent.run()
        asked[twin.name] = [each["method"] for each in session.agent.asked]
    sampling, roots = "sampling/createMessage", "roots/list"
    assert asked == {
        "claude-code": [roots],
        "codex": [],
        "copilot-cli": [sampling],
        "opencode": [roots],
        "gemini-cli": [roots],
    }


# Rounds of input.


def needs_input(session: TwinSession, state: str) -> None:
    """Let the server want a form filled in before it answers its last call."""
    inputs = {"k1": {"method": "elicitation/create", "params": {"mode": "form", **FORM}}}
    members = {"resultType": "input_required", "inputRequests": inputs, "requestState": state}
    session.rig.server({"jsonrpc": "2.0", "id": session.server.calls[-1]["id"], "result": members})
    session.agent.run()


@each_modern_agent
def test_a_retry_of_an_agent_is_not_asked_about(twin: AgentTwin) -> None:
    session = TwinSession(twin, modern=True)
    session.agent.call(x=1)
    session.decide(YES)
    needs_input(session, "S1")
    needs_input(session, "S2")
    session.finish()
    first, second, third = session.server.calls
    for each, state in ((second, "S1"), (third, "S2")):
        assert each["params"]["requestState"] == state
        assert each["params"]["inputResponses"] == {"k1": twin.refusal["result"]}
    assert len({each["params"]["_meta"]["progressToken"] for each in (first, second, third)}) == 3
    assert session.text(third["id"]) == "done"
    assert (len(session.rig.asked), [each.call for each in session.rig.all(Sent)]) == (1, [1, 1, 1])
    assert session.ends == ["done"]


@each_modern_agent
def test_a_retry_after_a_refusal_is_asked_about(twin: AgentTwin) -> None:
    session = TwinSession(twin, modern=True)
    session.agent.call(x=1)
    session.decide(YES)
    needs_input(session, "S1")
    session.agent.call(x=1, again={"inputResponses": {}, "requestState": "S1"})
    assert (len(session.server.calls), len(session.rig.asked)) == (2, 2)


@each_modern_agent
def test_input_that_mcphost_gives_is_hidden_from_an_agent(twin: AgentTwin) -> None:
    session = TwinSession(twin, modern=True, questions="here")
    asked = session.agent.call(x=1)
    session.decide(YES)
    needs_input(session, "S1")
    session.agent.wait(240)
    session.rig.reply({"action": "accept", "content": {"ok": True}})
    session.finish()
    assert session.text(asked) == "done"
    assert [each["params"].get("inputResponses") for each in session.server.calls] == [
        None,
        {"k1": {"action": "accept", "content": {"ok": True}}},
    ]
