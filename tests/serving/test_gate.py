"""Messages that pass a gate, that wait, and that the gate writes itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.serving.gate import (
    HELD_CALLS,
    AgentIntroduced,
    AskInbox,
    Doubt,
    DropInbox,
    Finished,
    GateOptions,
    Overdue,
    Sent,
    Withdraw,
)
from mcphost.serving.ports import GateDecision
from tests.conftest import SERVERS
from tests.serving.gate_rig import (
    ECHO,
    META,
    NO,
    YES,
    Rig,
    call,
    line,
    modern_meta,
    notification,
    opened,
    request,
    result,
    text_result,
)

sys.path.insert(0, str(SERVERS))  # the scripts there import each other by bare names

from skills import SkillServer

OTHER = {"name": "other", "inputSchema": {"type": "object"}}
CHANGED = notification("notifications/tools/list_changed")


def cancelled(request_id: object) -> dict[str, Any]:
    return notification("notifications/cancelled", requestId=request_id)


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


# What passes.


@pytest.mark.parametrize(
    "passing",
    [
        b'{"jsonrpc": "2.0",  "id": 1, "method": "ping"}\n',
        b'{"id":1.0,"method":"x/unknown","params":[1,2]}\r\n',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
        '{"jsonrpc":"2.0","id":"ä\u2028","method":"resources/read","params":{"uri":"tools/call"}}\n'.encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/x"}]\n',
        b'{"unknown": true}\n',
    ],
)
def test_a_message_of_the_agent_passes_as_it_was_written(passing: bytes) -> None:
    rig = Rig()
    rig.agent(passing)
    assert (b"".join(rig.to_server), rig.to_agent, rig.facts) == (passing, [], [])


@pytest.mark.parametrize(
    "passing",
    [
        b'{"jsonrpc": "2.0","id":1,"result":{ "content":[] }}\n',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}\r\n',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2,"b":1e999}}\n',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}\n',
        b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":0}}\n',
        b'[{"jsonrpc":"2.0","id":1,"result":{}}, {"jsonrpc":"2.0","method":"notifications/message"}]\n',
    ],
)
def test_a_message_of_the_server_passes_as_it_was_written(passing: bytes) -> None:
    rig = Rig()
    rig.agent(request(1, "resources/read"))
    rig.server(passing)
    assert (b"".join(rig.to_agent), rig.facts) == (passing, [])


@pytest.mark.parametrize("meta", [{}, {"_meta": modern_meta()}], ids=["legacy", "modern"])
def test_skills_pass_as_they_were_written(meta: dict[str, Any]) -> None:
    rig, server = Rig(), SkillServer()
    uri = {"uri": "skill://tides/SKILL.md"}
    wanted = {"skills/list": {}, "skills/get": uri, "resources/directory/read": uri, "resources/read": uri}
    for number, (method, params) in enumerate(wanted.items()):
        asked = request(number, method, **params, **meta)
        answer = json.dumps(server.answer(asked), separators=(" , ", " : ")).encode() + b"\n"
        rig.agent(asked)
        rig.server(answer)
        assert (rig.server_got[-1], rig.to_agent[-1]) == (asked, answer)
    assert not rig.asked


def test_an_answer_of_the_agent_passes_to_the_server() -> None:
    rig = Rig()
    rig.server(request("q", "elicitation/create"))
    rig.agent(result("q", action="decline"))
    assert rig.server_got == [result("q", action="decline")]


def test_all_else_flows_while_a_call_waits() -> None:
    rig = opened()
    rig.agent(call(1), request(2, "ping"), notification("notifications/x"))
    rig.server(result(2), request("q", "ping"))
    rig.agent(result("q"))
    assert rig.server_got == [request(2, "ping"), notification("notifications/x"), result("q")]
    assert rig.agent_got == [result(2), request("q", "ping")]
    assert [asked.request_id for asked in rig.asked] == [1]


def test_an_allowed_call_goes_out_as_it_was_written() -> None:
    rig = opened()
    written = b'{"jsonrpc":"2.0", "id":"a", "method":"tools\\/call", "params":{"name":"echo","arguments":{"x":1.0}}}\n'
    rig.agent(written)
    asked = rig.asked[0]
    assert (asked.tool, asked.definition, asked.arguments, asked.progress) == ("echo", ECHO, {"x": 1.0}, False)
    rig.decide(YES)
    rig.now += 2
    rig.server(answer := b'{"jsonrpc":"2.0","id":"a" ,"result":{"content":[]}}\n')
    assert (rig.to_server, rig.to_agent) == ([written], [answer])
    assert rig.facts[1:] == [Sent(asked.number), Finished(asked.number, "done", 2.0)]


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (text_result(1), "done"),
        (text_result(1, isError=True), "failed"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}, "failed"),
    ],
)
def test_the_end_of_a_call_says_how_it_went(answer: Any, state: str) -> None:
    rig = opened()
    rig.agent(call(1))
    rig.decide(YES)
    rig.server(answer)
    assert [ended.state for ended in rig.all(Finished)] == [state]


def test_a_refused_call_is_answered_by_a_result_for_the_model() -> None:
    rig = opened()
    rig.agent(call("a"))
    rig.decide(NO)
    assert rig.to_server == []
    assert rig.agent_got == [text_result("a", "Not this one.", isError=True)]


@pytest.mark.parametrize("request_id", [0, -1, 1.5, "1", "", "mcphost:1", 2**70, 'a"\\\u2028é'])
def test_the_answer_to_a_call_has_its_id(request_id: object) -> None:
    rig = opened()
    rig.agent(call(request_id), call(1), call("x"))
    rig.decide(NO, rig.asked[0].number)
    (answer,) = rig.agent_got
    assert (answer["id"], type(answer["id"])) == (request_id, type(request_id))


def test_what_was_read_is_sent_where_the_line_says_something_else() -> None:
    rig = opened()
    rig.agent(
        rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":"\ud800"}}}' + b"\n"
    )
    assert rig.asked[0].arguments == {"a": "\ufffd"}
    rig.decide(YES)
    assert rig.to_server == [line(call(1, a="\ufffd")).replace(b": ", b":").replace(b", ", b",")]


def test_a_batch_is_split_where_a_call_waits() -> None:
    rig = opened()
    rig.agent([request(1, "ping"), call(2), notification("notifications/x")])
    assert rig.server_got == [[request(1, "ping"), notification("notifications/x")]]
    rig.decide(YES)
    assert rig.server_got[1:] == [call(2)]
    rig.server([result(1), text_result(2)])
    assert rig.agent_got == [[result(1), text_result(2)]]


# What cannot hide.

CALL = b'"method":"tools/call","params":{"name":"echo"}'


@pytest.mark.parametrize(
    "hidden",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping",' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","id":1,"Method":"tools/call","method":"ping"}\n',
        '{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}\n'.encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","method":"x","params":{"a":\r{"jsonrpc":"2.0","id":2,' + CALL + b"}\r}}\n",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\xe2\x80\xa8{"jsonrpc":"2.0","id":2,' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","id":1,' + CALL + b',"x":"\xff"}\n',
        b'[[{"jsonrpc":"2.0","id":1,' + CALL + b"}]]\n",
        b'[1,{"jsonrpc":"2.0","id":1,' + CALL + b"}]\n",
        b"[" + b",".join([b'{"jsonrpc":"2.0","method":"x"}'] * 101) + b"]\n",
        b'{"jsonrpc":"2.0",' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","id":null,' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","id":true,' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","id":1,"result":{},' + CALL + b"}\n",
        b'{"jsonrpc":"2.0","id":1,"method":["tools/call"]}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["echo"]}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"rm"}}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[1]}}\n',
        b'{"jsonrpc":"2.0","id":1,' + CALL + b"\n",
        b"Content-Length: 20\n",
        b"[" * 200 + b"]" * 200 + b"\n",
    ],
)
def test_a_line_that_may_hide_a_call_does_not_pass(hidden: bytes) -> None:
    rig = opened()
    rig.agent(hidden)
    assert (rig.to_server, rig.asked) == ([], [])
    assert rig.to_agent or rig.notes


@pytest.mark.parametrize(
    ("refused", "request_id", "code"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"x"}\n', None, -32600),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1,"a":2}}\n', 7, -32600),
        (b'{"jsonrpc":"2.0","id":7,"METHOD":"ping"}\n', 7, -32600),
        (b'{"jsonrpc":"2.0","id":7\n', None, -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}\n', 7, -32602),
    ],
)
def test_a_refused_request_is_answered_by_an_error(refused: bytes, request_id: object, code: int) -> None:
    rig = opened()
    rig.agent(refused)
    (answer,) = rig.agent_got
    assert (answer["id"], answer["error"]["code"]) == (request_id, code)


def test_an_answer_of_the_agent_that_does_not_pass_gets_no_answer() -> None:
    rig = opened()
    rig.server(request(7, "elicitation/create"))
    rig.clear()
    rig.agent(b'{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}\n')
    assert (rig.to_server, rig.to_agent, len(rig.notes)) == ([], [], 1)


def test_lines_that_do_not_pass_are_noted_once() -> None:
    rig = Rig()
    rig.agent(b"no json\n", b"no json either\n", b"\n")
    rig.server(b"Listening ...\n", b"Ready.\n")
    assert (rig.to_server, rig.to_agent and rig.agent_got[0]["id"], len(rig.notes)) == ([], None, 2)


def test_an_answer_that_cannot_be_read_becomes_an_error() -> None:
    rig = Rig()
    rig.agent(request(4, "ping"))
    rig.server(b'{"jsonrpc":"2.0","id":4,"result":{}} {}\n')
    (answer,) = rig.agent_got
    assert (answer["id"], answer["error"]["code"]) == (4, -32603)


def test_pieces_of_a_line_that_is_too_long_do_not_pass() -> None:
    rig = Rig()
    assert [type(each).__name__ for each in rig.gate.agent_line(b'{"id":1,', 0.0, whole=False)] == ["Note"]
    assert rig.gate.agent_line(b'"x":1}\n', 0.0, whole=False) == []


def test_half_a_line_before_the_end_is_the_last() -> None:
    rig = opened()
    rig.agent(call(1), json.dumps(request(2, "ping")).encode())
    assert rig.to_server == [json.dumps(request(2, "ping")).encode()]
    rig.decide(YES)
    assert len(rig.to_server) == 1
    assert rig.all(Withdraw)


# Ids.


def test_the_id_of_an_open_request_cannot_be_used_again() -> None:
    rig = opened()
    rig.agent(call(1, n=1), call(1.0, n=2), request(1, "ping"))
    assert [asked.arguments for asked in rig.asked] == [{"n": 1}]
    rig.decide(YES)
    rig.server(text_result(1))
    rig.agent(call(1, n=3))
    assert (rig.server_got, rig.agent_got) == ([call(1, n=1)], [text_result(1)])
    assert rig.asked[1].arguments == {"n": 3}


@pytest.mark.parametrize("answer", [text_result(1), text_result("1"), text_result(9), text_result(True)])
def test_an_answer_to_what_the_server_did_not_get_does_not_pass(answer: Any) -> None:
    rig = opened()
    rig.agent(call(1))
    rig.server(answer)
    assert rig.to_agent == []
    rig.decide(NO)
    rig.server(text_result(1))
    assert rig.agent_got == [text_result(1, "Not this one.", isError=True)]


def test_an_agent_that_uses_an_id_of_mcphost_is_refused() -> None:
    rig = opened(tools=None)
    rig.agent(call(1))
    own_id = rig.server_got[0]["id"]
    rig.agent(call(own_id), request(own_id, "ping"), cancelled(own_id))
    assert [(each["id"], each["error"]["code"]) for each in rig.agent_got] == [(own_id, -32600)] * 2
    rig.server(result(own_id, tools=[ECHO]))
    assert [asked.request_id for asked in rig.asked] == [1]


# The listing.


def test_the_gate_lists_by_itself_what_the_agent_did_not_list() -> None:
    rig = opened(tools=None)
    rig.agent(call(1, "other"))
    listing = rig.server_got[0]
    assert (listing["method"], listing["params"]) == ("tools/list", {})
    rig.server(result(listing["id"], tools=[ECHO], nextCursor="2"))
    following = rig.server_got[1]
    assert following["params"] == {"cursor": "2"}
    rig.server(result(following["id"], tools=[OTHER]))
    assert (rig.asked[0].definition, rig.to_agent) == (OTHER, [])
    rig.agent(call(2))
    assert (rig.asked[1].definition, len(rig.to_server)) == (ECHO, 2)


def test_a_call_before_the_session_is_open_waits_for_it() -> None:
    rig = Rig()
    rig.agent(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}), call(1))
    assert [each["method"] for each in rig.server_got] == ["initialize"]
    rig.server(result(0, protocolVersion="2025-11-25"))
    assert [each["method"] for each in rig.server_got] == ["initialize", "tools/list"]


def test_a_call_without_a_session_is_asked_about_without_a_definition() -> None:
    rig = Rig()
    rig.agent(call(1))
    assert (rig.asked[0].tool, rig.asked[0].definition, rig.to_server) == ("echo", None, [])


def test_the_gate_lists_in_the_modern_era_with_no_capabilities() -> None:
    rig = Rig()
    meta = modern_meta(elicitation={})
    rig.agent(call(1, meta={**meta, "progressToken": 3}))
    (listing,) = rig.server_got
    assert listing["params"] == {"_meta": {**meta, f"{META}clientCapabilities": {}}}
    rig.server(result(listing["id"], resultType="complete", tools=[ECHO]))
    assert rig.asked[0].definition == ECHO
    rig.decide(NO)
    assert rig.agent_got[0]["result"]["resultType"] == "complete"


def test_a_refused_probe_leads_to_the_legacy_era() -> None:
    rig = Rig()
    rig.agent(request("probe", "server/discover", _meta=modern_meta()))
    rig.server({"jsonrpc": "2.0", "id": "probe", "error": {"code": -32601, "message": "?"}})
    info = {"name": "claude-code", "version": "2"}
    rig.agent(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info))
    rig.server(result(0, protocolVersion="2025-06-18"))
    rig.agent(call(1))
    assert rig.server_got[-1]["params"] == {}
    assert rig.all(AgentIntroduced) == [
        AgentIntroduced("claude-code", "2", "legacy", "2025-11-25"),
        AgentIntroduced("claude-code", "2", "legacy", "2025-06-18"),
    ]


def test_an_answered_probe_opens_the_modern_era() -> None:
    rig = Rig()
    rig.agent(request("probe", "server/discover", _meta=modern_meta()))
    assert rig.facts == []
    rig.server(result("probe", supportedVersions=["2026-07-28"]))
    assert rig.facts == [AgentIntroduced("agent", "1", "modern", "2026-07-28")]


def test_an_announced_change_is_listed_before_the_next_decision() -> None:
    rig = opened()
    rig.server(CHANGED)
    assert rig.to_server == []
    rig.agent(call(1))
    newer = {**ECHO, "description": "newer"}
    rig.server(result(rig.server_got[0]["id"], tools=[newer]))
    assert rig.asked[0].definition == newer


@pytest.mark.hostile("P04")
def test_a_definition_that_changes_during_the_wait_asks_again() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.server(CHANGED)
    rig.decide(YES)
    assert [each["method"] for each in rig.server_got] == ["tools/list"]
    newer = {**ECHO, "description": "newer"}
    rig.server(result(rig.server_got[0]["id"], tools=[newer]))
    assert [asked.definition for asked in rig.asked] == [ECHO, newer]
    assert rig.asked[0].number != rig.asked[1].number
    rig.decide(YES)
    assert rig.server_got[1:] == [call(1)]


def test_a_decision_waits_for_the_listing_after_a_change() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.server(CHANGED)
    rig.decide(YES)
    rig.server(result(rig.server_got[0]["id"], tools=[ECHO]))
    assert rig.server_got[1:] == [call(1)]
    assert len(rig.asked) == 1


@pytest.mark.hostile("P04")
def test_an_old_listing_is_renewed_before_an_approval_counts() -> None:
    rig = opened()
    rig.now += 61
    rig.agent(call(1))
    rig.decide(GateDecision(True, listed_within=60))
    (listing,) = rig.server_got
    assert listing["method"] == "tools/list"
    rig.server(result(listing["id"], tools=[ECHO]))
    assert rig.server_got[1:] == [call(1)]
    rig.agent(call(2))
    rig.decide(GateDecision(True, listed_within=60))
    assert rig.server_got[2:] == [call(2)]


def test_an_approval_does_not_count_for_a_tool_that_changed_since() -> None:
    rig = opened()
    rig.now += 1
    rig.agent(call(1))
    rig.decide(GateDecision(True, listed_within=0))
    newer = {**ECHO, "description": "newer"}
    rig.server(result(rig.server_got[0]["id"], tools=[newer]))
    assert ([each["method"] for each in rig.server_got], rig.asked[-1].definition) == (["tools/list"], newer)
    rig.decide(GateDecision(True, listed_within=60))
    assert rig.server_got[1:] == [call(1)]


def test_a_server_that_changes_its_tools_all_the_time_gets_no_call() -> None:
    rig = opened()
    rig.agent(call(1))
    for turn in range(40):
        listings = [each for each in rig.server_got if each["method"] == "tools/list"]
        rig.server(CHANGED)
        if listings:
            rig.server(CHANGED, result(listings[-1]["id"], tools=[{**ECHO, "description": str(turn)}]))
    assert {each["method"] for each in rig.server_got} == {"tools/list"}
    assert len(rig.asked) == 3
    assert ["again and again" in text_of(each) for each in rig.agent_got if "id" in each] == [True]


def test_a_list_changed_after_each_listing_does_not_stop_a_call() -> None:
    rig = opened()
    rig.server(CHANGED)
    rig.agent(call(1))
    for _ in range(3):
        rig.server(CHANGED, result(rig.server_got[-1]["id"], tools=[ECHO]))
    assert rig.asked[0].definition == ECHO


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32601, "message": "no"}},
        {"result": {"tools": "none"}},
        {"result": {"tools": [], "nextCursor": 5}},
        {"result": {"tools": [OTHER]}},
    ],
)
def test_a_tool_that_is_not_listed_has_no_definition(answer: dict[str, Any]) -> None:
    rig = opened(tools=None)
    rig.agent(call(1))
    rig.server({"jsonrpc": "2.0", "id": rig.server_got[0]["id"], **answer})
    assert [(asked.tool, asked.definition) for asked in rig.asked] == [("echo", None)]
    assert len(rig.to_server) == 1


def test_a_list_that_never_ends_is_given_up() -> None:
    rig = opened(tools=None)
    rig.agent(call(1))
    while not rig.asked:
        last = rig.server_got[-1]
        rig.server(result(last["id"], tools=[OTHER], nextCursor=last["id"]))
    assert (rig.asked[0].definition, len(rig.to_server)) == (None, 64)


def test_a_server_that_does_not_list_in_time_delays_a_call_only() -> None:
    rig = opened(tools=None)
    rig.agent(call(1))
    rig.pass_time(31)
    assert rig.asked[0].definition is None
    rig.server(result(rig.server_got[0]["id"], tools=[ECHO]))
    assert rig.to_agent == []


def test_pages_that_an_agent_lists_are_learned() -> None:
    rig = opened(tools=None)
    rig.agent(request("a", "tools/list"), request("b", "tools/list"))
    rig.server(result("a", tools=[ECHO], nextCursor="2"), result("b", tools=[ECHO], nextCursor="2"))
    rig.agent(request("c", "tools/list", cursor="2"))
    rig.server(result("c", tools=[OTHER]))
    rig.agent(call(1, "other"), call(2, "third"))
    assert [asked.definition for asked in rig.asked] == [OTHER, None]


# Ends.


def test_a_cancelled_call_is_withdrawn_without_an_answer() -> None:
    rig = opened()
    rig.agent(call(1), cancelled(1), cancelled(1))
    assert rig.all(Withdraw) == [Withdraw(rig.asked[0].number, "the agent cancelled the call")]
    rig.decide(YES)
    assert (rig.server_got, rig.to_agent) == ([], [])


@pytest.mark.parametrize(
    "end", [lambda rig: rig.decide(NO), lambda rig: rig.pass_time(50)], ids=["declined", "overdue"]
)
def test_the_server_hears_nothing_of_a_call_that_it_never_got(end: Callable[[Rig], None]) -> None:
    rig = opened(client="opencode")
    rig.agent(call(1))
    end(rig)
    rig.agent(cancelled(1))  # opencode cancels what was answered
    assert rig.to_server == []
    rig.agent(request(1, "ping"), cancelled(1))
    assert rig.server_got == [request(1, "ping"), cancelled(1)]


def test_a_cancelled_call_in_flight_may_still_be_answered() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.decide(YES)
    rig.agent(cancelled(1))
    rig.server(text_result(1), text_result(1))
    assert (rig.server_got, rig.agent_got) == ([call(1), cancelled(1)], [text_result(1)])
    assert [ended.state for ended in rig.all(Finished)] == ["cancelled"]


def test_a_call_is_cancelled_while_its_tool_is_listed() -> None:
    rig = opened(tools=None)
    rig.agent(call(1), cancelled(1))
    rig.server(result(rig.server_got[0]["id"], tools=[ECHO]))
    assert (rig.facts, rig.to_agent, len(rig.to_server)) == ([], [], 1)


def test_a_decided_call_is_cancelled_before_its_listing_ends() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.server(CHANGED)
    rig.decide(YES)
    rig.agent(cancelled(1))
    rig.server(result(rig.server_got[0]["id"], tools=[ECHO]))
    assert [each["method"] for each in rig.server_got] == ["tools/list"]
    assert [ended.state for ended in rig.all(Finished)] == ["cancelled"]


@pytest.mark.parametrize("ends", [Rig.close_agent, Rig.close_server])
def test_the_end_of_a_side_withdraws_all_questions(ends: Any) -> None:
    rig = opened()
    rig.agent(call(1), call(2))
    ends(rig)
    for asked in rig.asked:
        rig.decide(YES, asked.number)
    assert [each.call for each in rig.all(Withdraw)] == [asked.number for asked in rig.asked]
    assert (rig.to_server, rig.to_agent, rig.gate.waiting, rig.gate.wake_at) == ([], [], [], None)


def test_a_call_in_flight_is_lost_with_its_server() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.decide(YES)
    rig.close_server()
    assert [ended.state for ended in rig.all(Finished)] == ["lost"]


def test_another_approver_can_be_asked_about_what_waits() -> None:
    rig = opened()
    rig.agent(call(1), call(2))
    rig.decide(NO, rig.asked[0].number)
    assert rig.gate.waiting == rig.asked[1:]


def test_a_second_decision_has_no_effect() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.decide(NO)
    rig.decide(YES)
    assert (rig.to_server, len(rig.to_agent)) == ([], 1)


# Heartbeats.


def beats(rig: Rig) -> list[dict[str, Any]]:
    return [each["params"] for each in rig.agent_got if each.get("method") == "notifications/progress"]


def progress(token: object, value: object) -> dict[str, Any]:
    return notification("notifications/progress", progressToken=token, progress=value)


@pytest.mark.parametrize("token", [5, "5", "a-b"])
def test_a_call_that_waits_reports_progress(token: object) -> None:
    rig = opened(client="claude-code")
    rig.agent(call(1, meta={"progressToken": token}))
    assert rig.asked[0].progress
    rig.pass_time(600)
    values = [each["progress"] for each in beats(rig)]
    assert len(values) == 60
    assert all(0 < value < 0.001 for value in values)
    assert values == sorted({*values})
    assert {(each["progressToken"], each["message"]) for each in beats(rig)} == {(token, "waiting for you in mcphost")}


def test_progress_that_does_not_grow_is_dropped_after_a_beat() -> None:
    rig = opened(client="claude-code")
    rig.agent(call(1, meta={"progressToken": 5}))
    rig.pass_time(25)
    rig.decide(YES)
    rig.clear()
    rig.server(*(progress(5, value) for value in (0, 0.0001, 1, 1, "x", 2, True)), progress("5", 0))
    assert rig.agent_got == [progress(5, 1), progress(5, 2), progress("5", 0)]


def test_progress_passes_as_it_is_where_there_was_no_beat() -> None:
    rig = opened()
    rig.agent(call(1, meta={"progressToken": 5}))
    rig.decide(YES)
    rig.server(*(progress(5, value) for value in (3, 3, 2, "x")))
    assert rig.agent_got == [progress(5, value) for value in (3, 3, 2, "x")]


def test_progress_for_a_call_that_waits_does_not_pass() -> None:
    rig = opened(client="claude-code")
    rig.agent(call(1, meta={"progressToken": 5}))
    rig.server(progress(5, 100))
    rig.pass_time(11)
    assert [each["progress"] < 0.001 for each in beats(rig)] == [True]


def test_a_call_without_a_token_has_no_heartbeat() -> None:
    rig = opened(client="claude-code")
    rig.agent(call(1))
    rig.pass_time(60)
    assert rig.to_agent == []


def test_a_heartbeat_ends_with_the_wait() -> None:
    rig = opened(client="claude-code")
    rig.agent(call(1, meta={"progressToken": 5}))
    rig.decide(YES)
    rig.pass_time(60)
    assert (rig.to_agent, rig.gate.wake_at) == ([], None)


# Limits of the agents.


@pytest.mark.parametrize(
    ("agent", "token", "seconds"),
    [
        ("opencode", None, 50),
        ("opencode", 1, 1500),
        ("copilot-cli", 1, 1500),
        ("codex-mcp-client", None, 270),
        ("codex", 1, 270),
        ("gemini-cli-mcp-client", "u", 540),
        ("Claude Code", None, 1500),
        ("claude-code", 1, 1500),
        ("anything", 1, 50),
        ("", None, 50),
    ],
)
def test_a_call_is_answered_before_its_agent_gives_up(agent: str, token: object, seconds: float) -> None:
    rig = opened(GateOptions(agent=agent))
    rig.agent(call(1, meta=None if token is None else {"progressToken": token}))
    assert rig.asked[0].answer_within == seconds
    rig.pass_time(seconds - 1)
    assert not [each for each in rig.agent_got if "id" in each]
    rig.pass_time(1)
    answer = rig.agent_got[-1]
    assert (answer["id"], answer["result"]["isError"]) == (1, True)
    assert "Call again with the same arguments" in text_of(answer)
    assert rig.all(Overdue) == [Overdue(rig.asked[0].number)]


def test_the_name_that_the_agent_claims_sets_its_limit() -> None:
    rig = opened(client="codex-mcp-client")
    rig.agent(call(1))
    assert rig.asked[0].answer_within == 270


def late(decision: GateDecision = YES) -> Rig:
    """A rig whose call was answered before its decision."""
    rig = opened(GateOptions(answer_within=5))
    rig.agent(call(1, a=1, b=2))
    rig.pass_time(5)
    rig.decide(decision)
    rig.clear()
    return rig


def test_a_late_approval_lets_the_repeat_run_once() -> None:
    rig = late()
    rig.agent(call(2, b=2, a=1), call(3, a=1, b=2))
    assert rig.server_got == [call(2, b=2, a=1)]
    assert (rig.all(Sent), [asked.request_id for asked in rig.asked]) == ([Sent(1)], [3])
    rig.server(text_result(2))
    assert [ended.call for ended in rig.all(Finished)] == [1]


@pytest.mark.parametrize("other", [call(2, a=1, b=3), call(2, a=1), call(2, "other", a=1, b=2), call(2, a=1, b="2")])
def test_a_late_approval_does_not_hold_for_another_call(other: Any) -> None:
    rig = late()
    rig.agent(other)
    assert (rig.to_server, len(rig.asked)) == ([], 1)


def test_a_late_approval_lapses() -> None:
    rig = late()
    rig.pass_time(601)
    rig.agent(call(2, a=1, b=2))
    assert (rig.to_server, len(rig.asked)) == ([], 1)
    assert rig.all(Finished) == [Finished(1, "cancelled", 0.0)]


def test_a_late_approval_does_not_hold_for_a_changed_definition() -> None:
    rig = late()
    rig.server(CHANGED)
    rig.agent(call(2, a=1, b=2))
    rig.server(result(rig.server_got[0]["id"], tools=[{**ECHO, "description": "newer"}]))
    assert ([each["method"] for each in rig.server_got], len(rig.asked)) == (["tools/list"], 1)


def test_a_late_refusal_answers_the_repeat() -> None:
    rig = late(NO)
    rig.agent(call(2, a=1, b=2))
    assert (rig.to_server, rig.agent_got) == ([], [text_result(2, "Not this one.", isError=True)])


def test_a_repeat_joins_the_question_that_is_still_open() -> None:
    rig = opened(GateOptions(answer_within=5))
    rig.agent(call(1))
    rig.pass_time(5)
    rig.agent(call(2), cancelled(1))
    assert [(asked.number, asked.request_id, asked.answer_within) for asked in rig.asked] == [(1, 1, 5), (1, 2, 5)]
    rig.decide(YES)
    assert rig.server_got == [call(2)]
    assert len(rig.agent_got) == 1


def test_an_answer_of_the_server_to_an_overdue_call_does_not_pass() -> None:
    rig = late()
    rig.server(text_result(1))
    assert rig.to_agent == []


def test_a_wait_without_a_limit_ends_in_doubt() -> None:
    rig = opened(GateOptions(agent="claude-code", answer_within=float("inf")))
    rig.agent(call(1))
    assert rig.asked[0].answer_within is None
    rig.pass_time(7200)
    assert (rig.all(Doubt), rig.to_agent) == ([Doubt(1)], [])
    rig.decide(YES)
    assert rig.server_got == [call(1)]


# Multiple rounds.


def needs(request_id: object, state: str | None = "S1", **inputs: Any) -> dict[str, Any]:
    asked = inputs or {"k": {"method": "elicitation/create", "params": {"message": "?"}}}
    members = {"resultType": "input_required", "inputRequests": asked}
    return result(request_id, **members, **({} if state is None else {"requestState": state}))


def retry(request_id: object, state: str | None = "S1", tool: str = "echo", **arguments: Any) -> dict[str, Any]:
    message: dict[str, Any] = call(request_id, tool, meta=modern_meta(elicitation={}), **arguments)
    params = {**message["params"], "inputResponses": {"k": {"action": "accept"}}}
    return {**message, "params": params if state is None else {**params, "requestState": state}}


def in_round(decision: GateDecision = YES, state: str | None = "S1") -> Rig:
    """A rig whose agent is to answer the server's need for input."""
    rig = Rig()
    rig.agent(request("list", "tools/list", _meta=modern_meta()))
    rig.server(result("list", tools=[ECHO, OTHER]))
    rig.agent(call(1, meta=modern_meta(elicitation={}), x=1))
    rig.decide(decision)
    rig.server(needs(1, state))
    rig.clear()
    return rig


@pytest.mark.parametrize("state", ["S1", None])
def test_a_retry_with_the_servers_state_is_not_asked_about(state: str | None) -> None:
    rig = in_round(state=state)
    rig.agent(retry(2, state, x=1))
    assert (rig.server_got, rig.asked, rig.all(Sent)) == ([retry(2, state, x=1)], [], [Sent(1)])
    rig.server(needs(2, "S2"))
    rig.agent(retry(3, "S2", x=1))
    rig.server(text_result(3))
    assert rig.asked == []
    assert rig.all(Finished) == [Finished(1, "done", 0.0)]


@pytest.mark.parametrize(
    "other",
    [
        retry(2, "S1", x=2),
        retry(2, "S0", x=1),
        retry(2, None, x=1),
        retry(2, "S1", "other", x=1),
        call(2, meta=modern_meta(), x=1),
    ],
)
def test_a_retry_that_differs_is_asked_about(other: Any) -> None:
    rig = in_round()
    rig.agent(other)
    assert (rig.to_server, len(rig.asked)) == ([], 1)


def test_a_state_counts_once() -> None:
    rig = in_round()
    rig.agent(retry(2, x=1), retry(3, x=1))
    assert (rig.server_got, [asked.request_id for asked in rig.asked]) == ([retry(2, x=1)], [3])


def test_a_retry_after_a_changed_definition_is_asked_about() -> None:
    rig = in_round()
    rig.server(CHANGED)
    rig.agent(retry(2, x=1))
    rig.server(result(rig.server_got[0]["id"], tools=[{**ECHO, "description": "newer"}]))
    assert (len(rig.to_server), len(rig.asked)) == (1, 1)


def test_a_retry_of_edited_arguments_keeps_the_edit() -> None:
    rig = in_round(GateDecision(True, {"x": 5}))
    rig.agent(retry(2, x=1))
    assert rig.server_got == [retry(2, x=5)]
    rig.server(text_result(2))
    assert "changed the arguments" in text_of(rig.agent_got[0])


# Edited arguments.

EDITED = GateDecision(True, {"x": 2})


@pytest.mark.parametrize("members", [{}, {"structuredContent": {"a": 1}}, {"isError": True}, {"_meta": {"k": 1}}])
def test_the_answer_to_edited_arguments_says_so(members: dict[str, Any]) -> None:
    rig = opened()
    rig.agent(call(1, x=1))
    rig.decide(EDITED)
    rig.server(text_result(1, **members))
    assert rig.server_got == [call(1, x=2)]
    (answer,) = rig.agent_got
    assert text_of(answer) == '(The user changed the arguments of this call: {"x": 2})'
    del answer["result"]["content"][0]
    assert answer == text_result(1, **members)


def test_an_error_for_edited_arguments_says_so() -> None:
    rig = opened()
    rig.agent(call(1, x=1))
    rig.decide(EDITED)
    rig.server({"jsonrpc": "2.0", "id": 1, "error": {"code": 5, "message": "no", "data": 1}})
    error = rig.agent_got[0]["error"]
    assert (error["code"], error["data"]) == (5, 1)
    assert error["message"] == '(The user changed the arguments of this call: {"x": 2}) no'


@pytest.mark.parametrize(
    ("started", "method", "ended"),
    [
        ({"task": {"taskId": "t"}}, "tasks/result", {"content": []}),
        ({"resultType": "task", "taskId": "t"}, "tasks/get", {"taskId": "t", "result": {"content": []}}),
    ],
)
def test_the_result_of_a_task_says_that_arguments_were_edited(started: Any, method: str, ended: Any) -> None:
    rig = opened()
    rig.agent(call(1, x=1))
    rig.decide(EDITED)
    rig.server(result(1, **started))
    for number in (2, 3):
        rig.agent(request(number, method, taskId="t"))
        rig.server(result(number, **ended))
    rig.agent(request(4, method, taskId="other"))
    rig.server(result(4, **ended))
    first, *noted, other = [each["result"] for each in rig.agent_got]
    assert (first, other) == (started, ended)
    assert ["changed the arguments" in text_of({"result": each.get("result", each)}) for each in noted] == [True, True]


def test_a_task_that_works_has_no_place_for_a_note() -> None:
    rig = opened()
    rig.agent(call(1, x=1))
    rig.decide(EDITED)
    rig.server(result(1, resultType="task", taskId="t"))
    rig.agent(request(2, "tasks/get", taskId="t"))
    rig.server(result(2, taskId="t", status="working"))
    assert rig.agent_got[1] == result(2, taskId="t", status="working")


def test_arguments_that_are_not_really_edited_pass_as_they_came() -> None:
    rig = opened()
    rig.agent(call(1, x=1, y=2))
    rig.decide(GateDecision(True, {"y": 2, "x": 1}))
    rig.server(text_result(1))
    assert (rig.to_server, rig.agent_got) == ([line(call(1, x=1, y=2))], [text_result(1)])


def test_an_answer_that_cannot_be_marked_becomes_an_error() -> None:
    rig = opened()
    rig.agent(call(1, x=1))
    rig.decide(EDITED)
    rig.server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"a":1,"a":2}}\n')
    assert rig.agent_got[0]["error"]["code"] == -32603


# The server's questions.

ANSWERS = ClientCapabilities(elicitation=frozenset({"form", "url"}), sampling={}, roots=True)
HERE = GateOptions(questions="here", answers=ANSWERS)
BOTH = GateOptions(questions="both", answers=ANSWERS)
ELICIT = request("q", "elicitation/create", message="?")


def declared(options: GateOptions, capabilities: dict[str, Any]) -> Any:
    rig = Rig(options)
    rig.agent(request(0, "initialize", protocolVersion="2025-11-25", capabilities=capabilities))
    return rig.server_got[0]["params"]["capabilities"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (GateOptions(answers=ANSWERS), {"elicitation": {}, "experimental": {"x": 1}}),
        (HERE, {"elicitation": {"form": {}, "url": {}}, "experimental": {"x": 1}, "sampling": {},
                "roots": {"listChanged": True}}),
        (BOTH, {"elicitation": {}, "experimental": {"x": 1}, "sampling": {}, "roots": {"listChanged": True}}),
    ],
)  # fmt: skip
def test_initialize_declares_what_mcphost_answers(options: GateOptions, expected: Any) -> None:
    assert declared(options, {"elicitation": {}, "experimental": {"x": 1}}) == expected


def test_a_question_of_the_server_goes_to_the_inbox() -> None:
    rig = opened(HERE)
    rig.agent(call(1))
    rig.decide(YES)
    rig.clear()
    rig.server(ELICIT)
    (asked,) = rig.all(AskInbox)
    assert (asked.method, asked.params, asked.call, rig.to_agent) == ("elicitation/create", {"message": "?"}, 1, [])
    rig.agent(result("q", action="accept"))
    assert (rig.to_server, rig.gate.inbox) == ([], [asked])
    rig.reply({"action": "decline"})
    rig.reply({"action": "accept"})
    rig.agent(result("q", action="accept"))
    assert rig.server_got == [result("q", action="decline")]


def test_an_error_from_the_inbox_goes_to_the_server() -> None:
    rig = opened(HERE)
    rig.server(request("q", "sampling/createMessage"))
    rig.reply(None, error={"code": -1, "message": "User rejected sampling request"})
    assert rig.server_got[0]["error"] == {"code": -1, "message": "User rejected sampling request"}


@pytest.mark.parametrize(
    ("options", "capabilities", "here"),
    [
        (GateOptions(answers=ANSWERS), {}, False),
        (BOTH, {"elicitation": {}}, False),
        (BOTH, {"roots": {}}, True),
        (HERE, {"elicitation": {}}, True),
        (GateOptions(questions="here"), {"elicitation": {}}, False),
    ],
)
def test_the_side_that_answers_follows_the_option(options: GateOptions, capabilities: Any, here: bool) -> None:
    rig = opened(options, capabilities=capabilities)
    rig.server(ELICIT)
    assert (bool(rig.all(AskInbox)), rig.agent_got == [ELICIT]) == (here, not here)


def test_a_question_that_the_server_cancels_leaves_the_inbox() -> None:
    rig = opened(HERE)
    rig.server(ELICIT, cancelled("q"))
    assert (rig.all(DropInbox), rig.to_agent) == ([DropInbox(1)], [])


@pytest.mark.parametrize("ends", [lambda rig: rig.server(text_result(1)), lambda rig: rig.agent(cancelled(1))])
def test_the_end_of_a_call_answers_the_questions_for_it(ends: Any) -> None:
    rig = opened(HERE)
    rig.agent(call(1))
    rig.decide(YES)
    rig.server(ELICIT, request("s", "sampling/createMessage"))
    ends(rig)
    assert rig.gate.inbox == []
    assert rig.all(DropInbox) == [DropInbox(1), DropInbox(2)]
    form, sampling = (each for each in rig.server_got if each.get("id") in ("q", "s"))
    assert form == result("q", action="cancel")
    assert "has ended" in sampling["error"]["message"]


def test_a_question_for_one_of_several_calls_outlives_them() -> None:
    rig = opened(HERE)
    rig.agent(call(1), call(2))
    for asked in rig.asked:
        rig.decide(YES, asked.number)
    rig.server(ELICIT, text_result(1))
    assert (len(rig.gate.inbox), rig.all(AskInbox)[0].call) == (1, None)


def test_a_call_whose_server_asks_the_user_reports_progress() -> None:
    rig = opened(HERE)
    rig.agent(call(1, meta={"progressToken": 5}))
    rig.decide(YES)
    rig.server(progress(5, 3), ELICIT)
    rig.pass_time(30)
    rig.server(progress(5, 3), progress(5, 4))
    values = [each["progress"] for each in beats(rig)]
    assert values == sorted({*values})
    assert (values[0], values[-1], len(values)) == (3, 4, 5)


def test_more_questions_than_a_user_answers_are_refused() -> None:
    rig = opened(HERE)
    rig.server(*(request(number, "elicitation/create") for number in range(40)))
    assert (len(rig.all(AskInbox)), len(rig.to_server)) == (32, 8)


def modern_here(token: object = None) -> Rig:
    rig = Rig(HERE)
    rig.agent(request("list", "tools/list", _meta=modern_meta()))
    rig.server(result("list", tools=[ECHO]))
    meta = modern_meta() if token is None else {**modern_meta(), "progressToken": token}
    rig.agent(call(1, meta=meta, x=1))
    rig.decide(YES)
    return rig


def test_a_modern_request_declares_what_mcphost_answers() -> None:
    rig = modern_here()
    capabilities = [each["params"]["_meta"][f"{META}clientCapabilities"] for each in rig.server_got]
    assert capabilities == [{"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}] * 2


def test_a_modern_servers_need_for_input_is_met_by_mcphost() -> None:
    rig = modern_here(token=5)
    sent = rig.server_got[-1]
    rig.clear()
    rig.server(needs(1, k={"method": "elicitation/create", "params": {"message": "?"}}, r={"method": "roots/list"}))
    first, second = rig.all(AskInbox)
    assert (first.call, second.method, rig.to_agent) == (1, "roots/list", [])
    rig.reply({"roots": []}, second.number)
    rig.reply({"action": "accept"}, first.number)
    (again,) = rig.server_got
    own_id = again["id"]
    assert again == {**sent, "id": own_id, "params": {**sent["params"], "requestState": "S1", "inputResponses": {
        "r": {"roots": []}, "k": {"action": "accept"}}}}  # fmt: skip
    assert own_id != 1
    rig.server(text_result(1), needs(own_id, None))
    rig.reply({"action": "cancel"})
    last = rig.server_got[-1]
    assert "requestState" not in last["params"]
    rig.server(text_result(last["id"], structuredContent=1))
    assert rig.agent_got == [text_result(1, structuredContent=1)]
    assert [ended.state for ended in rig.all(Finished)] == ["done"]


def test_a_round_is_cancelled_by_the_agents_id() -> None:
    rig = modern_here()
    rig.server(needs(1))
    rig.reply({"action": "accept"})
    own_id = rig.server_got[-1]["id"]
    rig.agent(cancelled(1))
    assert rig.server_got[-1] == cancelled(own_id)
    rig.server(text_result(own_id), text_result(1))
    assert len(rig.to_agent) == 1  # the tools


def test_a_call_is_cancelled_while_mcphost_asks_for_input() -> None:
    rig = modern_here()
    rig.server(needs(1))
    sent = len(rig.to_server)
    rig.agent(cancelled(1))
    rig.reply({"action": "accept"})
    assert (rig.all(DropInbox), len(rig.to_server)) == ([DropInbox(1)], sent)


def test_a_refused_input_ends_the_call() -> None:
    rig = modern_here()
    rig.server(needs(1, s={"method": "sampling/createMessage"}))
    rig.reply(None, error={"code": -1, "message": "no"})
    answer = rig.agent_got[-1]
    assert (answer["id"], answer["result"]["isError"]) == (1, True)


def test_rounds_are_limited() -> None:
    rig = modern_here()
    rig.server(needs(1))
    for _ in range(25):
        rig.reply({"action": "accept"})
        rig.server(needs(rig.server_got[-1]["id"]))
    assert len(rig.all(AskInbox)) == 25
    assert rig.agent_got[-1]["result"]["isError"]


def test_a_need_for_input_of_a_prompt_is_met_too() -> None:
    rig = Rig(HERE)
    rig.agent(request(1, "prompts/get", name="p", _meta=modern_meta()))
    rig.server(needs(1))
    rig.reply({"action": "accept"})
    rig.server(result(rig.server_got[-1]["id"], messages=[]))
    assert rig.agent_got == [result(1, messages=[])]


# Floods.


@pytest.mark.hostile("P09")
def test_more_calls_than_a_user_decides_are_declined_at_once() -> None:
    rig = opened()
    rig.agent(*(call(number) for number in range(HELD_CALLS + 5)))
    assert (len(rig.asked), rig.to_server) == (HELD_CALLS, [])
    assert [(each["id"], each["result"]["isError"]) for each in rig.agent_got] == [
        (HELD_CALLS + number, True) for number in range(5)
    ]
    rig.decide(NO)
    rig.agent(call("next"))
    assert len(rig.asked) == HELD_CALLS + 1


def test_a_flood_of_requests_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.serving.gate.OPEN_REQUESTS", 10)
    rig = Rig()
    rig.agent(*(request(number, "ping") for number in range(12)))
    assert len(rig.to_server) == 10
    assert [each["id"] for each in rig.agent_got] == [10, 11]


def test_a_flood_of_changes_is_listed_once_for_a_call() -> None:
    rig = opened()
    rig.agent(call(1))
    rig.server(*[CHANGED] * 1000)
    assert len(rig.to_server) == 1


def test_what_is_remembered_is_bounded() -> None:
    rig = Rig()
    rig.agent(request("list", "tools/list", _meta=modern_meta()))
    rig.server(result("list", tools=[ECHO]))
    for number in range(70):
        rig.agent(call(number, meta=modern_meta(), n=number))
        rig.decide(YES)
        rig.server(needs(number))
    assert [ended.state for ended in rig.all(Finished)] == ["lost"] * 6
