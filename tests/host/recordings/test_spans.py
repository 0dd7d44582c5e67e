"""Recordings as OpenTelemetry traces."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mcphost.host.recordings.reading import recording_of
from mcphost.host.recordings.recording import (
    RecordedEvent,
    RecordedExchange,
    RecordedSession,
    Recording,
    RecordingFacts,
)
from mcphost.host.recordings.spans import EVENTS, otlp_of
from tests.host.recordings.recorded_lines import STARTED, written

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CALL = RecordedExchange("tools/call", {"name": "git_log"}, 1.0, 0.25, result={"content": []}, id=7)
CLIENT = {"clientInfo": {"name": "claude-code", "version": "2.1"}}


def spans_of(*exchanges: RecordedExchange, **more: Any) -> list[dict[str, Any]]:
    session = RecordedSession("git", revision="2025-11-25", client=CLIENT, started=100.0, exchanges=exchanges)
    recording = Recording("x", **{"sessions": (session,), **more})
    spans: list[dict[str, Any]] = otlp_of(recording)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return spans


def facts(span: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_a_request_is_a_span_with_the_attributes_of_the_conventions() -> None:
    (span,) = spans_of(CALL)
    assert (span["name"], span["kind"], span["status"]) == ("tools/call git_log", 3, {})
    assert (span["startTimeUnixNano"], span["endTimeUnixNano"]) == ("101000000000", "101250000000")
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
    assert "parentSpanId" not in span
    found = facts(span)
    assert re.fullmatch("[0-9a-f]{32}", found.pop("mcp.session.id"))
    assert found == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-11-25",
        "mcphost.server": "git",
        "gen_ai.tool.name": "git_log",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": "7",
    }


def test_the_client_is_the_service_of_its_spans() -> None:
    session = RecordedSession("git", client=CLIENT, exchanges=(CALL,))
    (resource,) = otlp_of(Recording("x", None, (session,)))["resourceSpans"]
    assert facts(resource["resource"]) == {"service.name": "claude-code", "service.version": "2.1"}


@pytest.mark.parametrize(
    ("outcome", "error", "status"),
    [
        ({"error": {"code": -32602, "message": "no such path"}}, "-32602", {"code": 2, "message": "no such path"}),
        ({"result": {"isError": True}}, "tool_error", {"code": 2}),
        ({"seconds": None}, "_OTHER", {"code": 2, "message": "the recording has no answer"}),
    ],
)
def test_a_failure_has_a_type_and_the_status_of_an_error(
    outcome: dict[str, Any], error: str, status: dict[str, Any]
) -> None:
    (span,) = spans_of(CALL._replace(**{"result": None, **outcome}))
    assert (facts(span)["error.type"], span["status"]) == (error, status)
    assert facts(span).get("rpc.response.status_code") == ("-32602" if "error" in outcome else None)


def test_a_request_with_a_traceparent_joins_that_trace() -> None:
    meta = {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7"}
    (span,) = spans_of(CALL._replace(params={"name": "git_log", "_meta": meta}))
    assert (span["traceId"], span["parentSpanId"]) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    assert (span["traceState"], span["flags"]) == ("rojo=00f067aa0ba902b7", 0x301)


@pytest.mark.parametrize(
    "given", [5, "", "00-" + "0" * 32 + PARENT[35:], "ff" + PARENT[2:], PARENT.upper(), PARENT + "x", PARENT + "\n"]
)
def test_a_traceparent_that_is_none_is_not_joined(given: object) -> None:
    (span,) = spans_of(CALL._replace(params={"_meta": {"traceparent": given, "tracestate": "a=b\n"}}))
    assert "parentSpanId" not in span
    assert "traceState" not in span


def test_a_question_is_a_span_below_its_request() -> None:
    asked = RecordedEvent("question", "elicitation/create", {}, 0.1, answer={"result": {}}, seconds=0.05)
    request, question, other = spans_of(CALL._replace(events=(asked, asked._replace(answer=None))))
    assert question["parentSpanId"] == other["parentSpanId"] == request["spanId"]
    assert question["traceId"] == request["traceId"]
    assert (question["startTimeUnixNano"], question["endTimeUnixNano"]) == ("101100000000", "101150000000")
    assert (question["status"], other["status"]["code"]) == ({}, 2)
    assert len({request["spanId"], question["spanId"], other["spanId"]}) == 3


def test_the_time_of_a_question_is_read_from_the_file() -> None:
    asked = RecordedEvent("question", "elicitation/create", {}, 0.1, answer={"result": {}})
    content = written(RecordedSession("git", exchanges=(CALL._replace(events=(asked,)),)))
    later = [json.loads(line) for line in content.splitlines()]
    later[2]["time"] = "2023-11-14T22:13:21.500000+00:00"
    read = recording_of(b"".join(json.dumps(each).encode() + b"\n" for each in later), "x")
    assert STARTED == 1_700_000_000
    assert read.sessions[0].exchanges[0].questions[0].seconds == 0.4


def test_progress_and_logs_are_events_up_to_a_limit() -> None:
    log = RecordedEvent("log", "notifications/message", {"level": "error", "data": "s3cret"}, 0.1)
    (span,) = spans_of(CALL._replace(events=(log,) * (EVENTS + 2)))
    assert (len(span["events"]), span["droppedEventsCount"]) == (EVENTS, 2)
    assert span["events"][0]["timeUnixNano"] == "101100000000"
    assert "s3cret" not in json.dumps(span)


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ("uvx mcp-server-git", {"network.transport": "pipe"}),
        (
            "https://docs.example.com/mcp",
            {"network.transport": "tcp", "network.protocol.name": "http", "server.address": "docs.example.com",
             "server.port": "443"},
        ),
        ("http://[broken", {"network.transport": "tcp", "network.protocol.name": "http"}),
    ],
)  # fmt: skip
def test_the_way_to_the_server_is_that_of_the_first_line(identity: str, expected: dict[str, str]) -> None:
    (span,) = spans_of(CALL, facts=RecordingFacts(servers={"git": identity}))
    found = {key: value for key, value in facts(span).items() if key.startswith(("network", "server"))}
    assert found == expected


def test_the_same_recording_gives_the_same_ids() -> None:
    assert spans_of(CALL, CALL) == spans_of(CALL, CALL)
    first, second = spans_of(CALL, CALL)
    assert first["traceId"] == second["traceId"]
    assert first["spanId"] != second["spanId"]


@pytest.mark.hostile("T01")
def test_secrets_and_controls_of_a_recording_are_in_no_span() -> None:
    token = "ghp_" + "a1B2" * 9
    exchanges = [
        RecordedExchange("resources/read", {"uri": f"https://u:hunter22@x.example/?api_key={token}"}, id="a\x1b[2J"),
        RecordedExchange("tools/call", {"name": f"x\ud800{token}"}, error={"message": f"Bearer {token}"}),
        RecordedExchange("a\x00b" * 500, at=float("inf"), seconds=float("nan"), result={}),
    ]
    text = json.dumps(spans_of(*exchanges), ensure_ascii=False)
    assert token not in text
    assert "hunter22" not in text
    assert text.isprintable()
    assert len(text) < 6000
