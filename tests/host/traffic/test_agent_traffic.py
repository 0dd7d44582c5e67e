"""The traffic between agents and their servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mcphost.host.traffic.book import AgentTap, TrafficBook, read_traffic
from mcphost.host.traffic.filter import parse_traffic_filter
from mcphost.host.traffic.message import TrafficMessage
from mcphost.host.traffic.spool import Spool

NOW = 1e9


class Waits(NamedTuple):
    waited_for_you: float | None = 40.0
    waited_for_server: float | None = 1.5


def encoded(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


CALL, RESULT = encoded(id=5, method="tools/call", params={"name": "git_push"}), encoded(id=5, result={})


@pytest.fixture
def book() -> TrafficBook:
    return TrafficBook(clock=lambda: NOW, monotonic=lambda: 100.0)


@pytest.fixture
def tap(book: TrafficBook) -> AgentTap:
    return book.agent_tap("claude-code>git", "claude-code")


def latency_of(messages: list[TrafficMessage]) -> float:
    assert messages[0].latency is not None
    return messages[0].latency


def test_a_held_call_is_one_message_with_its_waits(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("agent", CALL, NOW - 42)
    tap.held(5, Waits())
    tap.copied("server", RESULT, NOW)
    call, result = book.since(0)
    assert (call.sent, result.sent, call.partner) == (True, False, result.number)
    assert (latency_of([call, result]), call.waits) == (42.0, Waits())


def test_waits_are_found_after_the_call_was_shown(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("agent", CALL, NOW)
    (call,) = book.since(0)
    tap.held(5, Waits())
    assert call.waits == Waits()


def test_an_edited_call_is_answered_where_the_agent_asked(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("agent", CALL, NOW - 42)
    tap.copied("gate", encoded(id=5, method="tools/call", params={"name": "other"}), NOW - 2, to_server=True)
    tap.copied("server", RESULT, NOW)
    asked, edited, result = book.since(0)
    assert (asked.partner, edited.partner, edited.injected) == (result.number, None, True)
    assert latency_of([asked]) == 42.0


def test_a_declined_call_is_answered_by_the_gate(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("agent", CALL, NOW)
    tap.copied("gate", RESULT, NOW)
    call, result = book.since(0)
    assert (call.partner, result.injected, result.direction) == (result.number, True, "in")


def test_one_session_ends_without_the_other(book: TrafficBook, tap: AgentTap) -> None:
    other = book.agent_tap("claude-code>git", "claude-code")
    tap.copied("agent", CALL, NOW)
    other.copied("agent", CALL, NOW)
    tap.ended()
    assert [each.status for each in book.since(0)] == [("lost",), ("waiting",)]


@pytest.mark.parametrize("claimed", [0.0, 1e10])
def test_the_time_of_a_copy_is_believed_within_limits(book: TrafficBook, tap: AgentTap, claimed: float) -> None:
    tap.copied("agent", CALL, claimed)
    assert NOW - 600 <= book.since(0)[0].time <= NOW


def test_an_agent_that_names_itself_is_found_by_that_name(book: TrafficBook, tap: AgentTap) -> None:
    other = book.agent_tap("claude-code>git", "claude-code")
    for each in (tap, other):
        each.copied("agent", CALL, NOW)
    tap.named("codex")
    tap.copied("server", RESULT, NOW)
    assert [each.agent for each in book.since(0)] == ["codex", "claude-code", "codex"]


def test_missing_copies_have_a_row(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("agent", CALL, NOW, left_out=1_200)
    assert "1,200 copies are missing here" in book.since(0)[0].raw()


def test_copies_missing_at_the_end_add_no_message(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("server", b"", NOW, left_out=3)
    assert [each.note for each in book.since(0)] == ["malformed"]


def test_the_start_of_a_long_line_is_marked_as_cut(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("server", RESULT[:-2], NOW, whole=100_000_000)
    (message,) = book.since(0)
    assert (message.cut, message.size, message.id) == (True, 100_000_000, 5)


def test_messages_show_the_present_name_of_the_agent(book: TrafficBook, tap: AgentTap) -> None:
    tap.copied("agent", CALL, NOW)
    tap.named("codex")
    assert book.since(0)[0].place == "codex>git"


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("agent:claude", [1, 2]),
        ("agent:*", [1, 2, 3]),
        ("-agent:*", [4]),
        ("server:git", [1, 2, 4]),
        ("server:claude-code>*", [1, 2]),
    ],
)
def test_agents_and_their_servers_are_filtered(book: TrafficBook, tap: AgentTap, text: str, passing: list[int]) -> None:
    tap.copied("agent", CALL, NOW)
    tap.copied("server", RESULT, NOW)
    book.agent_tap("codex>files", "codex").copied("agent", CALL, NOW)
    book.tap("git").sent(CALL)
    chosen = parse_traffic_filter(text)
    assert [each.number for each in book.since(0) if chosen.passes(each)] == passing


def test_an_export_keeps_agent_waits_and_injection(book: TrafficBook, tap: AgentTap, tmp_path: Path) -> None:
    tap.copied("agent", CALL, NOW)
    tap.held(5, Waits())
    tap.copied("gate", RESULT, NOW)
    (tmp_path / "traffic.jsonl").write_bytes(book.export(book.since(0)))
    call, result = read_traffic(tmp_path / "traffic.jsonl").since(0)
    assert (call.agent, call.injected, result.injected) == ("claude-code", False, True)
    assert call.waits is not None
    assert (call.waits.waited_for_you, call.waits.waited_for_server) == Waits()


def test_a_spool_writes_what_waits_in_one_go(tmp_path: Path) -> None:
    file = tmp_path / "tap.jsonl"
    spool = Spool(file, "git", str)
    spool.add("agent", 1.0, b'{"id":1}', 8, 0)
    spool.add("server", 2.0, b'{"id":2}', 8, 3)
    assert not file.exists()
    spool.flush()
    texts = [json.loads(line)["text"] for line in file.read_text().splitlines()]
    assert texts == ['{"id":1}', "mcphost left out 3 pieces here: they came too fast", '{"id":2}']
