"""Files of traffic, and of other programs, read as sessions of exchanges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.errors import NotDone
from mcphost.host.recordings.first_line import first_line
from mcphost.host.recordings.reading import read_recording, recording_of
from mcphost.host.recordings.recording import (
    RecordedEvent,
    RecordedExchange,
    RecordedNotice,
    RecordedSession,
    RecordingFacts,
)
from mcphost.host.traffic.file import read_lines
from mcphost.protocol.lifecycle.revisions import META_PREFIX
from tests.host.recordings.recorded_lines import line, messages_of, written

SESSION = RecordedSession("git")
MODERN = {f"{META_PREFIX}protocolVersion": "2026-07-28"}
INITIALIZE = RecordedExchange(
    "initialize",
    {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c"}, "capabilities": {"roots": {}}},
    seconds=0.001,
    result={"protocolVersion": "2025-11-25", "serverInfo": {"name": "git"}, "capabilities": {"tools": {}}},
)
CALL = RecordedExchange("tools/call", {"name": "log"}, 1.0, 0.5, result={"content": []})


def test_a_session_has_its_introduction_and_client() -> None:
    (session,) = recording_of(written(SESSION._replace(exchanges=(INITIALIZE, CALL))), "x").sessions
    assert (session.modern, session.revision) == (False, "2025-11-25")
    assert session.introduction["serverInfo"] == {"name": "git"}
    assert session.client == {"clientInfo": {"name": "c"}, "capabilities": {"roots": {}}}
    assert [(each.method, each.line, each.answer_line) for each in session.exchanges] == [
        ("initialize", 1, 2),
        ("tools/call", 3, 4),
    ]


def test_a_modern_session_has_the_revision_of_its_requests() -> None:
    discover = RecordedExchange(
        "server/discover",
        {"_meta": {**MODERN, f"{META_PREFIX}clientInfo": {"name": "c"}}},
        seconds=0.1,
        result={"supportedVersions": ["2026-07-28"], "_meta": {f"{META_PREFIX}serverInfo": {"name": "git"}}},
    )
    (session,) = recording_of(written(SESSION._replace(exchanges=(discover,))), "x").sessions
    assert (session.modern, session.revision) == (True, "2026-07-28")
    assert session.introduction["serverInfo"] == {"name": "git"}
    assert session.client == {"clientInfo": {"name": "c"}}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(st.text("abc", min_size=1, max_size=3), values, max_size=3)


@st.composite
def exchanges(draw: st.DrawFn, modern: bool, number: int) -> RecordedExchange:
    token = f"t{number}"
    steps = draw(st.lists(st.sampled_from(["progress", "log", "notification", "question"]), max_size=4))
    events: list[RecordedEvent] = []
    for place, kind in enumerate(steps):
        after = (place + 1) / 100
        params = draw(objects)
        if kind == "question":
            keys = draw(st.lists(st.text(max_size=3), min_size=1, max_size=2, unique=True)) if modern else [""]
            for key in keys:
                answer: Mapping[str, Any] = {"result": draw(objects)}
                if not modern and draw(st.booleans()):
                    answer = {"error": {"code": -1, "message": draw(st.text(max_size=3))}}
                events.append(RecordedEvent("question", "elicitation/create", params, after, key, answer))
        elif kind == "progress":
            events.append(
                RecordedEvent("progress", "notifications/progress", {**params, "progressToken": token}, after)
            )
        else:
            method = {"log": "notifications/message", "notification": "notifications/tools/list_changed"}[kind]
            events.append(RecordedEvent(kind, method, params, after))  # type: ignore[arg-type]
    meta = {"progressToken": token, **(MODERN if modern else {})}
    outcome: dict[str, Any] = {"result": draw(objects)}
    if draw(st.booleans()):
        outcome = {"error": {"code": draw(st.integers(-40000, -1)), "message": draw(st.text(max_size=4))}}
    method = draw(st.sampled_from(["tools/call", "prompts/get", "resources/read"]))
    return RecordedExchange(method, {**draw(objects), "_meta": meta}, float(number), 0.5, tuple(events), **outcome)


@st.composite
def sessions(draw: st.DrawFn) -> RecordedSession:
    modern = draw(st.booleans())
    passed = [draw(exchanges(modern, number)) for number in range(1, 1 + draw(st.integers(1, 4)))]
    if draw(st.booleans()):  # the last one has no answer
        passed[-1] = passed[-1]._replace(seconds=None, result=None, error=None)
    notices = [
        RecordedNotice("notifications/resources/updated", draw(objects), place + 1.75, place)
        for place in range(len(passed) - 1)
        if draw(st.booleans())
    ]
    return SESSION._replace(modern=modern, exchanges=tuple(passed), notices=tuple(notices))


@settings(max_examples=25)
@given(sessions())
def test_exchanges_are_read_as_they_were_written(session: RecordedSession) -> None:
    (found,) = recording_of(written(session), "x").sessions
    start = session.exchanges[0].at
    assert [each._replace(line=0, answer_line=0, id=None) for each in found.exchanges] == [
        each._replace(at=round(each.at - start, 6)) for each in session.exchanges
    ]
    assert [each._replace(at=0) for each in found.notices] == [each._replace(at=0) for each in session.notices]


def test_a_batch_counts_as_its_messages() -> None:
    first = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    second = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    answers = [{"jsonrpc": "2.0", "id": own, "result": {"n": own}} for own in (2, 1)]
    content = line(SESSION, 0, True, [first, second]) + line(SESSION, 1, False, answers)
    (session,) = recording_of(content, "x").sessions
    assert [(each.method, each.result) for each in session.exchanges] == [("tools/list", {"n": 1}), ("ping", {"n": 2})]


def test_servers_and_connections_are_sessions_of_their_own() -> None:
    others = [SESSION._replace(connection=2), SESSION._replace(server="time")]
    lines = [b"".join(line(each, *message) for message in messages_of(each._replace(exchanges=(CALL,))))
             for each in [SESSION, *others]]  # fmt: skip
    halves = [each.splitlines(keepends=True) for each in lines]
    mixed = b"".join(b"".join(pair) for pair in zip(*halves, strict=True))
    found = recording_of(mixed, "x").sessions
    assert [(each.server, each.connection, len(each.exchanges)) for each in found] == [
        ("git", 1, 1),
        ("git", 2, 1),
        ("time", 1, 1),
    ]


def test_a_second_handshake_begins_a_session() -> None:
    session = SESSION._replace(exchanges=(INITIALIZE, CALL))
    found = recording_of(written(session, session), "x").sessions
    assert [len(each.exchanges) for each in found] == [2, 2]


def test_the_last_complete_walk_through_a_list_counts() -> None:
    def page(cursor: str | None, names: str, after: str | None) -> RecordedExchange:
        items = {"tools": [{"name": name} for name in names]}
        sent, told = {} if cursor is None else {"cursor": cursor}, {} if after is None else {"nextCursor": after}
        return RecordedExchange("tools/list", sent, result={**items, **told}, seconds=0.0)

    pages = (page(None, "ab", "1"), page("1", "c", None), page(None, "x", "1"), page("9", "y", None))
    assert SESSION._replace(exchanges=pages).listing("tools/list") == [{"name": name} for name in "abc"]
    assert SESSION.listing("tools/list") is None


def test_an_exchange_whose_answer_was_cut_is_left_out_and_named() -> None:
    call = line(SESSION, 0, True, {"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    cut = line(SESSION, 1, False, '{"jsonrpc": "2.0", "id": 1, "result": {"content": [', size=70_000)
    notice = line(SESSION, 2, False, {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    found = recording_of(call + cut + notice, "x")
    assert found.sessions[0].exchanges == ()
    assert found.sessions[0].notices[0].after == -1
    assert found.problems == ("line 2: only 51 B of 70 kB are here; this tools/call is left out",)


def test_a_call_that_a_gate_passes_on_counts_once() -> None:
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "log"}}
    agent = json.loads(line(SESSION, 0, True, call))
    gate = json.dumps({**json.loads(line(SESSION, 1, True, call)), "injected": True}).encode()
    answer = line(SESSION, 2, False, {"jsonrpc": "2.0", "id": 1, "result": {}})
    (session,) = recording_of(b"\n".join([json.dumps(agent).encode(), gate, answer]), "x").sessions
    assert [(each.at, each.seconds) for each in session.exchanges] == [(0.0, 2.0)]


def test_an_answer_of_a_gate_is_not_one_of_the_server() -> None:
    call = line(SESSION, 0, True, {"jsonrpc": "2.0", "id": 1, "method": "tools/call"})
    answer = json.loads(line(SESSION, 1, False, {"jsonrpc": "2.0", "id": 1, "result": {}}))
    found = recording_of(call + json.dumps({**answer, "injected": True}).encode(), "x")
    assert found.sessions[0].exchanges == ()
    assert "mcphost answered this tools/call" in found.problems[0]


def test_what_is_not_a_message_is_a_problem_and_stderr_is_kept() -> None:
    content = (
        line(SESSION, 0, False, "starting", note="stderr")
        + line(SESSION, 0, False, "GET /", note="http")
        + line(SESSION, 1, False, "hello\x1b[2J", note="stray")
        + line(SESSION, 2, False, '{"jsonrpc": "1.0"}')
    )
    found = recording_of(content, "x")
    assert found.sessions[0].stderr == ("starting",)
    assert [each.partition(":")[0] for each in found.problems] == ["line 3", "line 4"]
    assert "\x1b" not in "".join(found.problems)


def facts(**more: Any) -> bytes:
    told = json.dumps({"version": 1, "mcphost": "0.1.0", "recorded_by": "tap", **more})
    fields = {"time": "2026-01-01T00:00:00+00:00", "server": "", "connection": 0, "direction": "in", "kind": "meta"}
    return json.dumps({**fields, "note": "meta", "text": told, "size": len(told)}).encode() + b"\n"


def test_the_first_line_has_the_facts_and_a_later_one_begins_a_run() -> None:
    session = SESSION._replace(exchanges=(CALL,))
    run = written(session)
    git, time = (facts(servers={name: f"uvx {name}"}) for name in ("git", "time"))
    found = recording_of(git + run + time + run + git + run, "x")
    assert found.facts is not None
    assert (found.facts.recorded_by, found.facts.masked) == ("tap", True)
    assert found.facts.servers == {"git": "uvx git", "time": "uvx time"}
    assert [len(each.exchanges) for each in found.sessions] == [2, 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (facts(version=99), "x, line 1: this recording is of format 99"),
        (facts(version="1"), "x, line 1: the facts of the recording name no version"),
        (b"hello", "x, line 1: this is not a line of exported traffic"),
        (b'{"version": "2.0", "interactions": []}', "not of version 1"),
        (b'{"jsonrpc": "2.0", "_meta": {"dir": "send"}}\n[]', "x, line 2"),
    ],
)
def test_what_cannot_be_read_is_named(content: bytes, says: str) -> None:
    with pytest.raises(NotDone, match=says):
        recording_of(content, "x")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotDone, match="there is no such file"):
        read_recording(tmp_path / "absent")


# Other programs.

MESSAGES = [
    (True, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "log"}}),
    (False, {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}),
]


def test_a_cassette_of_mcp_recorder_is_read() -> None:
    cassette = {
        "version": "1.0",
        "metadata": {"recorded_at": "2026-02-17T20:25:23+00:00", "server_info": {"name": "Calculator"}},
        "interactions": [
            {"type": "lifecycle", "request": None, "response": None, "http_method": "GET"},
            {"type": "jsonrpc_request", "request": MESSAGES[0][1], "response": MESSAGES[1][1], "latency_ms": 20},
        ],
    }
    (session,) = recording_of(json.dumps(cassette, indent=2).encode(), "x.json").sessions
    assert session.server == "Calculator"
    assert [(each.method, each.seconds, each.result) for each in session.exchanges] == [
        ("tools/call", 0.02, {"content": []})
    ]


def test_a_record_of_mcporter_is_read() -> None:
    lines = [{"_meta": {"dir": "lifecycle", "server": "linear", "ts": ""}}]
    for second, (sent, message) in enumerate(MESSAGES):
        meta = {"dir": "send" if sent else "recv", "server": "linear", "ts": f"2026-05-16T12:00:0{second}.000Z"}
        lines.append({**message, "_meta": meta})  # type: ignore[dict-item]
    (session,) = recording_of("\n".join(map(json.dumps, lines)).encode(), "x.ndjson").sessions
    assert session.server == "linear"
    assert [(each.params, each.seconds, each.line) for each in session.exchanges] == [({"name": "log"}, 1.0, 2)]


def test_the_lines_of_traffic_have_their_numbers() -> None:
    assert [each.line for each in read_lines(b"\n" + written(SESSION._replace(exchanges=(CALL,))), "x")] == [2, 3]


def test_a_last_line_that_was_cut_is_left_out() -> None:
    content = written(SESSION._replace(exchanges=(INITIALIZE, CALL)))
    recording = recording_of(content[:-20], "x")
    assert [each.result is None for each in recording.sessions[0].exchanges] == [False, True]
    assert recording.problems == ("line 4: not a message: this line was not written to its end",)


def test_two_runs_at_a_time_are_two_sessions() -> None:
    runs = [written(SESSION._replace(connection=number, exchanges=(INITIALIZE, CALL))) for number in (7, 8)]
    first, second = ([first_line(RecordingFacts(servers={"git": "x"}), number)] for number in (7, 8))
    lines = [run.splitlines(keepends=True) for run in runs]
    mixed = [*first, *lines[0][:3], *second, *lines[1][:3], lines[0][3], lines[1][3]]
    recording = recording_of(b"".join(mixed), "x")
    assert [(each.connection, each.exchanges[-1].result) for each in recording.sessions] == [
        (7, CALL.result),
        (8, CALL.result),
    ]
    assert recording.problems == ()
