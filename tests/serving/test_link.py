"""The messages of the socket, read from any bytes that a program of the same user may write."""

from __future__ import annotations

import json

import pytest

from mcphost.errors import InvalidLink
from mcphost.serving import link

ASK = link.CallAsked(
    call=3, request="r1", definition={"name": "push"}, arguments={"a": [1, None]}, answer_within=50.0, progress=True
)
FROM_GATE = [
    link.Hello(role="gate", name="git", given="codex", pid=9, command=["git-mcp", "-v"], cwd="/w", questions="here"),
    link.MessageCopy(source="server", time=1.5, size=12, dropped=2),
    link.AgentNamed(name="codex-mcp-client", version="1", era="legacy", revision="2025-06-18"),
    ASK,
    link.CallWithdrawn(call=3, reason="cancelled"),
    link.CallOverdue(call=3),
    link.CallDoubted(call=3),
    link.CallForwarded(call=3),
    link.CallEnded(call=3, state="done", seconds=0.2),
    link.InboxRequest(number=1, method="roots/list", call=None),
    link.InboxRequestGone(number=1),
]
FROM_SCREEN = [
    link.Welcome(),
    link.HelloRefused(reason="too many"),
    link.CallDecided(call=3, allow=True, arguments={"b": 1}, words="", by="user"),
    link.InboxReply(number=1, error=link.ReplyError(code=-1, message="no")),
    link.EndSession(),
    link.AgentList(agents=[{"name": "git"}]),
]


@pytest.mark.parametrize("message", FROM_GATE, ids=lambda each: each.type)
def test_a_message_of_a_gate_is_read_as_it_was_written(message: link.FromGate) -> None:
    assert link.read_from_gate(message.line()) == message


@pytest.mark.parametrize("message", FROM_SCREEN, ids=lambda each: each.type)
def test_a_message_of_the_screen_is_read_as_it_was_written(message: link.FromScreen) -> None:
    assert link.read_from_screen(message.line()) == message


def test_reserved_words_are_written_as_the_link_names_them() -> None:
    assert json.loads(FROM_GATE[0].line())["as"] == "codex"
    assert json.loads(FROM_GATE[1].line())["from"] == "server"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"[]", "message"),
        (b"null", "message"),
        (b'{"type":"welcome"}', "union_tag_invalid"),  # of the other side
        (b'{"type":["ask"]}', "union_tag"),
        (b'{"type":"sent","call":"3"}', "sent.call: int_type"),
        (b'{"type":"sent","call":true}', "sent.call: int_type"),
        (b'{"type":"sent","call":-1}', "greater_than_equal"),
        (b'{"type":"sent","call":1,"call":2}', "not JSON"),
        (b'{"type":"sent","call":' + b"9" * 5000 + b"}", "not JSON|less_than"),
        (b'{"type":"copy","from":"agent","time":NaN,"size":1}', "not JSON"),
        (b'{"type":"copy","from":"agent","time":1,"size":99999999999}', "less_than_equal"),
        (b'{"type":"hello","role":"root"}', "literal_error"),
        (b'{"type":"hello","role":"gate","name":"' + b"x" * 300 + b'"}', "too_long"),
        (b'{"type":"ask","call":1,"request":{},"definition":null,"arguments":{}}', "ask.request"),
        (b'{"type":"ask","call":1,"request":1,"definition":null,"arguments":[]}', "dict_type"),
        (b'{"type":"request","number":1,"method":"tools/call"}', "literal_error"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"type":"sent","call":1} {}', "not JSON"),
        (b" " * (link.LINE_BYTES + 1), "longer than"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_hostile_line_is_refused_with_a_reason(line: bytes, why: str) -> None:
    with pytest.raises(InvalidLink, match=why) as refused:
        link.read_from_gate(line)
    assert len(str(refused.value)) < 300


def test_a_refusal_does_not_quote_what_came() -> None:
    with pytest.raises(InvalidLink) as refused:
        link.read_from_gate(b'{"type":"sent","call":"\\u001b[31msecret"}')
    assert "secret" not in str(refused.value)


def test_a_member_that_is_not_known_is_ignored() -> None:
    assert link.read_from_gate(b'{"type":"sent","call":1,"later":{}}') == link.CallForwarded(call=1)
