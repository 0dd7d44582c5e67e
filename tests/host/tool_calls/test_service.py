from __future__ import annotations

import asyncio
import gc
import math
import weakref
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from mcphost.errors import ConnectionLost, InvalidArguments, InvalidResult, RequestTimeout, ServerError
from mcphost.host.events import CallChanged, CallFinished, CallStarted
from mcphost.host.tool_calls import registry
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.content import TextContent, UnreadableContent
from tests.conftest import Until
from tests.host.conftest import NO, HostOf, echo, hostile, wire
from tests.loop_watchdog import LoopWatchdog

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}


@pytest.mark.parametrize(
    ("tool", "arguments", "state", "text"),
    [
        ("add", {"a": 1, "b": 2}, CallState.DONE, "3"),
        ("fail", {"text": "oh no"}, CallState.FAILED, "oh no"),
    ],
)
@pytest.mark.requirement("TOOLS-02", "TOOLS-09", "TOOLS-21")
async def test_a_call_ends_with_what_the_tool_said(
    host: HostOf, tool: str, arguments: dict[str, Any], state: CallState, text: str
) -> None:
    async with host(a=echo(), policy=ALLOW) as running:
        call = await running.run("a", tool, arguments)
        assert (call.state, (await call.result()).raw["content"][0]["text"]) == (state, text)
        assert running.tool_calls.running() == []
        about = [event for event in running.events if isinstance(event, CallStarted | CallChanged | CallFinished)]
    assert about == [CallStarted(1), CallChanged(1), CallFinished(1)]
    assert call.sent_at is not None
    assert call.elapsed < 5


@pytest.mark.requirement("TOOLS-10")
async def test_a_protocol_error_is_no_result(host: HostOf) -> None:
    async with host(a=hostile("both"), policy=ALLOW) as running:
        call = await running.run("a", "act")
        assert (await running.run("a", "report")).state is CallState.DONE
    assert (call.state, type(call.error), call.outcome) == (CallState.ERROR, InvalidResult, None)


async def test_the_errors_words_and_code_are_kept(host: HostOf) -> None:
    async with host(a=hostile("escapes", "--kind", "csi"), policy=ALLOW) as running:
        call = await running.run("a", "fail")
    assert call.state is CallState.ERROR
    assert isinstance(call.error, ServerError)
    assert call.error.code == -32000


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "words"),
    [
        ("a", "add", {"a": "one", "b": 2}, "a: "),
        ("a", "add", {"a": 1}, "b: is required"),
        ("a", "add", {"a": math.nan, "b": 1}, "cannot be written as JSON"),
        ("a", "echo", {"text": {1, 2}}, "cannot be written as JSON"),
        ("a", "add", {"a": 10**5000, "b": 1}, "cannot be written as JSON"),
        ("a", "echo", {("text",): "x"}, "cannot be written as JSON"),
        ("a", "echo", MappingProxyType({"text": "x"}), "cannot be written as JSON"),
        ("a", "gone", {}, "a has no tool 'gone'; it has: echo, add"),
        ("z", "echo", {}, "no server is called 'z'; configured: a"),
    ],
)
@pytest.mark.requirement("TOOLS-03")
async def test_what_cannot_be_right_is_neither_asked_nor_sent(
    host: HostOf, tmp_path: Path, server: str, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async with host(a=echo("--record", tmp_path / "wire")) as running:
        call = await running.run(server, tool, arguments)
    assert call.state is CallState.ERROR
    assert words in str(call.error)
    assert running.approver.questions == []
    assert wire(tmp_path / "wire", "tools/call") == []


@pytest.mark.hostile("L07")
@pytest.mark.parametrize(
    ("tool", "valid", "note"),
    [
        ("right", True, None),
        ("wrong", False, None),
        ("incomplete", False, None),
        ("missing", False, "the tool declares an output schema but answered without structured content"),
        ("failed", None, None),
        ("failed-wrong", None, None),
        ("list", False, None),
        ("act", None, None),
    ],
)
@pytest.mark.requirement("TOOLS-22", "TOOLS-23")
async def test_structured_content_is_checked_and_the_result_kept(
    host: HostOf, tool: str, valid: bool | None, note: str | None
) -> None:
    """A violation is reported beside the result, and the session lives."""
    async with host(a=hostile("wrong-structured"), policy=ALLOW) as running:
        call = await running.run("a", tool)
        assert (await running.run("a", "act")).state is CallState.DONE
    assert call.outcome is not None
    assert (call.validity and call.validity.valid, call.validity and call.validity.note) == (valid, note)
    if valid is False and note is None:
        assert call.validity is not None
        assert call.validity.problems


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("result-list", "result"),
        ("odd-content --kind number", "content of the tool result is not an array"),
    ],
)
@pytest.mark.requirement("TOOLS-15")
async def test_what_is_no_result_is_rejected_with_the_reason(host: HostOf, mode: str, words: str) -> None:
    """Whoever asked, a model among them, gets none of it."""
    async with host(a=hostile(*mode.split()), policy=ALLOW) as running:
        call = await running.run("a", "act", origin="model x")
    assert (call.state, call.outcome) == (CallState.ERROR, None)
    assert words in str(call.error)


@pytest.mark.requirement("TOOLS-07", "TOOLS-15")
async def test_each_bad_item_of_a_result_is_replaced_by_the_reason(host: HostOf) -> None:
    async with host(a=hostile("odd-content"), policy=ALLOW) as running:
        call = await running.run("a", "act", origin="model x")
    assert call.outcome is not None
    blocks = call.outcome.content
    bad = {number: block.reason for number, block in enumerate(blocks) if isinstance(block, UnreadableContent)}
    assert [*bad] == [1, 2, 6, 8, 13, 14, 16, 19, 22]
    assert all(bad.values())
    assert [block.text for block in (blocks[0], blocks[18], blocks[23]) if isinstance(block, TextContent)] == [
        "first", "annotated", "last",
    ]  # fmt: skip


async def test_a_tool_whose_schema_is_null_takes_anything_with_a_remark(host: HostOf) -> None:
    async with host(a=hostile("one-bad-tool", "--kind", "null-schema")) as running:
        await running.servers.ready()
        assert (await running.run("a", "bad")).state is CallState.DONE
        assert "tools/list: bad: inputSchema is null, and counts as absent" in running.said("a")
    assert [question.note for question in running.approver.questions if question.tool.name == "bad"] == [None]


@pytest.mark.hostile("L03")
@pytest.mark.parametrize(
    ("kind", "left_out", "note", "state"),
    [
        ("list-schema", "inputSchema", None, CallState.ERROR),
        ("string-schema", None, None, CallState.ERROR),
        ("invalid-schema", None, "the schema is malformed: properties.a.type", CallState.DONE),
    ],
)
@pytest.mark.requirement("TOOLS-28", "SCHEMA-02")
async def test_a_bad_schema_is_flagged_and_leaves_nine_good_tools(
    host: HostOf, kind: str, left_out: str | None, note: str | None, state: CallState
) -> None:
    """The tool is left out with a warning if it is not a schema; else the question says what was not checked."""
    async with host(a=hostile("one-bad-tool", "--kind", kind)) as running:
        await running.servers.ready()
        call = await running.run("a", "bad")
        good = [await running.run("a", f"good-{number}") for number in range(1, 10)]
        assert [each.name for each in running.servers["a"].rejected] == ["bad"] * (left_out is not None)
        assert any("left out the tool bad: inputSchema" in text for text in running.said("a")) is bool(left_out)
    assert {each.state for each in good} == {CallState.DONE}
    assert call.state is state
    notes = [question.note or "" for question in running.approver.questions if question.tool.name == "bad"]
    assert [(note or "?") in each for each in notes] == [True] * (note is not None)


@pytest.mark.hostile("P05")
@pytest.mark.requirement("TOOLS-27")
async def test_a_tool_with_an_odd_name_is_called_by_exactly_that_name(host: HostOf, tmp_path: Path) -> None:
    """Case, spaces, 300 characters, tabs, other scripts."""
    async with host(a=hostile("odd-names", "--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        names = [offered.tool.name for offered in running.catalog.tools()]
        assert {"Get", "get", "a b", "n" * 300} < {*names}
        calls = [await running.run("a", name) for name in names]
    assert {call.state for call in calls} == {CallState.DONE}
    assert [request["params"]["name"] for request in wire(tmp_path / "wire", "tools/call")] == names


@pytest.mark.hostile("L06")
async def test_schemas_that_bite_do_not_hold_up_anybody(host: HostOf, loop_watchdog: LoopWatchdog) -> None:
    """Slow patterns, circles and explosions, as input and output; nothing hangs."""
    names = ("redos", "loop", "missing", "deep", "explosion", "huge-limits")
    async with host(a=hostile("evil-schema"), b=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        loop_watchdog.restart()
        bites = {"redos": "a" * 40 + "!", "explosion": "not an integer"}
        calls = [running.tool_calls.call("a", f"in-{name}", {"value": bites.get(name, 1)}) for name in names]
        calls += [running.tool_calls.call("a", f"out-{name}", {}) for name in names]
        calls.append(running.tool_calls.call("b", "echo", {"text": "x"}))
        await asyncio.gather(*map(running.end_of, calls))
    assert loop_watchdog.longest < 0.25
    assert calls[-1].state is CallState.DONE
    assert {call.state for call in calls} <= {CallState.DONE, CallState.ERROR}


@pytest.mark.parametrize(
    ("server", "arguments", "entry", "timeout", "hard"),
    [
        (echo, ("sleep", {"seconds": 30}), {"tool_timeout_sec": 0.2}, None, False),
        (echo, ("sleep", {"seconds": 30}), {}, 0.2, False),
        (echo, ("sleep", {"seconds": 30}), {"tools": {"sleep": {"timeout_sec": 0.2}}}, None, False),
        (
            lambda **entry: hostile("progress-forever", **entry),
            ("act", {}),
            {"tool_timeout_sec": 1.5, "tool_timeout_max_sec": 2},
            None,
            True,
        ),
    ],
    ids=["server", "call", "tool", "maximum"],
)
@pytest.mark.requirement("TIME-01", "TIME-02", "TIME-03", "TIME-05", "TOOLS-16")
async def test_a_call_times_out_and_the_server_is_told(
    host: HostOf, tmp_path: Path, until: Until, server: Any, arguments: Any, entry: Any, timeout: Any, hard: bool
) -> None:
    configured = server(**entry)
    configured["args"] += ["--record", str(tmp_path / "wire")]
    async with host(a=configured, policy=ALLOW) as running:
        call = await running.run("a", *arguments, timeout=timeout)
        assert call.state is CallState.TIMED_OUT
        assert isinstance(call.error, RequestTimeout)
        assert call.error.hard is hard
        await until(lambda: wire(tmp_path / "wire", "notifications/cancelled"))
    (sent,), (told,) = (wire(tmp_path / "wire", f"{m}") for m in ("tools/call", "notifications/cancelled"))
    assert told["params"] == {"requestId": sent["id"], "reason": "timed out"}


@pytest.mark.requirement("TIME-04", "PROG-02", "PROG-05")
async def test_progress_keeps_a_call_alive_and_is_shown(host: HostOf) -> None:
    async with host(a=echo(tool_timeout_sec=1.5), policy=ALLOW) as running:
        call = await running.run("a", "progress", {"steps": 6, "interval": 0.3})
    assert call.state is CallState.DONE
    assert call.progress is not None
    assert (call.progress.fraction, call.progress.message) == (1.0, "step 6")
    assert running.events.count(CallChanged(1)) == 7


@pytest.mark.hostile("F02")
@pytest.mark.parametrize(
    "mode", ["progress-odd", "progress-flood", "cancels-ours", "unknown-notification", "answer-twice"]
)
@pytest.mark.requirement("PROG-03", "PROG-04", "CANC-08", "CAP-07")
async def test_odd_traffic_during_a_call_is_tolerated(host: HostOf, mode: str) -> None:
    """Progress that falls, floods or belongs to no request, and cancellations of unknown requests."""
    async with host(a=hostile(mode), policy=ALLOW) as running:
        call = await running.run("a", "act")
        assert (await running.run("a", "report")).state is CallState.DONE
    assert call.state is CallState.DONE
    assert call.progress is None or call.progress.fraction is None or call.progress.fraction <= 1


@pytest.mark.requirement("CANC-01", "CANC-03", "CANC-06", "CANC-07", "TIME-02")
async def test_a_cancelled_call_says_so_at_once_and_reaches_the_wire(
    host: HostOf, tmp_path: Path, until: Until
) -> None:
    async with host(a=echo("--record", tmp_path / "wire"), policy=ALLOW) as running:
        call = running.tool_calls.call("a", "sleep", {"seconds": 30})
        await until(lambda: wire(tmp_path / "wire", "tools/call"))
        call.cancel()
        assert call.state.value == "cancelling"
        call.cancel()
        await running.end_of(call)
        assert call.state is CallState.CANCELLED
        await until(lambda: wire(tmp_path / "wire", "notifications/cancelled"))
        assert any("cancelled by the user" in text for text in running.said("a"))
        assert (await running.run("a", "echo", {"text": "still here"})).state is CallState.DONE
        call.cancel()
        assert call.state is CallState.CANCELLED
    assert len(wire(tmp_path / "wire", "notifications/cancelled")) == 1
    assert running.events.count(CallFinished(1)) == 1


@pytest.mark.requirement("CANC-05")
async def test_an_answer_after_the_cancel_is_ignored(host: HostOf, until: Until) -> None:
    async with host(a=hostile("late-answer"), policy=ALLOW) as running:
        call = running.tool_calls.call("a", "act", {})
        await until(lambda: call.state is CallState.RUNNING)
        call.cancel()
        await running.end_of(call)
        await until(lambda: any("to a request that is over" in text for text in running.said("a")))
        assert (await running.run("a", "report")).state is CallState.DONE
    assert call.outcome is None


async def test_a_call_cancelled_before_it_began_ends_too(host: HostOf) -> None:
    async with host(a=echo(), policy=ALLOW) as running:
        call = running.tool_calls.call("a", "echo", {"text": "x"})
        call.cancel()
        await running.end_of(call)
        with pytest.raises(asyncio.CancelledError):
            await call.result()
    assert call.state is CallState.CANCELLED
    assert running.events.count(CallFinished(1)) == 1


@pytest.mark.hostile("S06")
@pytest.mark.parametrize(("kind", "code"), [("exit", 3), ("half", 3), ("kill", -9)])
@pytest.mark.requirement("LIFE-27")
async def test_a_call_on_a_dying_server_ends_with_its_last_words(
    host: HostOf, tmp_path: Path, until: Until, impatient: None, kind: str, code: int
) -> None:
    """The exit code, the last lines of stderr, and one tools/call whatever reconnects."""
    server = hostile("crash-on-call", "--kind", kind, "--record", tmp_path / "wire")
    async with host(a=server, policy=ALLOW) as running:
        call = await running.run("a", "act")
        assert isinstance(call.error, ConnectionLost)
        assert call.error.exit_code == code
        assert call.elapsed < 10  # its limit is a minute
        if kind != "kill":
            assert call.error.stderr_tail[-1] == "last words 30 of 30"
        await until(lambda: running.servers["a"].ready)
        assert (await running.run("a", "report")).state is CallState.DONE
    assert [request["params"]["name"] for request in wire(tmp_path / "wire", "tools/call")] == ["act", "report"]


@pytest.mark.requirement("HOST-05")
async def test_others_answer_while_one_hangs_floods_and_dies(
    host: HostOf, until: Until, loop_watchdog: LoopWatchdog
) -> None:
    servers = {
        "hangs": hostile("initialize-silent"),
        "floods": hostile("notification-flood", "--count", 20_000),
        "dies": hostile("crash-at-start"),
    }
    async with host(**servers, good=echo(), policy=ALLOW) as running:
        await until(lambda: running.servers["good"].ready)
        flooded = running.tool_calls.call("floods", "act", {})
        await until(lambda: any("fff" in text for text in running.said("floods")))
        assert (await running.run("good", "echo", {"text": "x"})).state is CallState.DONE
        assert flooded.state.value == "running"
        for number in range(20):
            assert (await running.run("good", "echo", {"text": str(number)})).state is CallState.DONE
        await running.end_of(flooded)
        assert running.servers["hangs"].state.value == "starting"
    assert flooded.state is CallState.DONE
    assert loop_watchdog.longest < 0.5


async def test_ended_calls_are_kept_up_to_a_number(host: HostOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KEPT_CALLS", 3)
    async with host(a=echo(), policy=ALLOW) as running:
        for number in range(6):
            await running.run("a", "echo", {"text": str(number)})
    assert list(running.tool_calls.calls) == [4, 5, 6]


async def test_ended_calls_are_kept_up_to_a_size_and_the_last_one_always(
    host: HostOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "KEPT_BYTES", 100_000)
    async with host(a=echo(), policy=ALLOW) as running:
        kept = []
        for size in (40_000, 40_000, 40_000, 200_000):
            await running.run("a", "big", {"bytes": size})
            kept.append(list(running.tool_calls.calls))
    assert kept == [[1], [1, 2], [2, 3], [4]]


async def test_calls_that_were_never_sent_are_forgotten_though_nobody_looks(
    host: HostOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "KEPT_CALLS", 3)
    async with host(a=echo(), policy=ALLOW) as running:
        calls = [weakref.ref(await running.run("a", "gone", {})) for _ in range(12)]
        gc.collect()
        assert sum(call() is not None for call in calls) <= 3 + registry.MOST_UNCOUNTED


@pytest.mark.hostile("C11")
async def test_a_fault_of_ours_ends_its_call_alone(host: HostOf) -> None:
    """Said in words that tell the place and nothing of the data."""
    async with host(a=echo(), answers=(ZeroDivisionError("secret"), NO)) as running:
        call = await running.run("a", "echo", {"text": "x"})
        assert (await running.run("a", "echo", {"text": "x"})).state is CallState.DECLINED
    assert call.state is CallState.ERROR
    assert "ZeroDivisionError at conftest.py" in str(call.error)
    assert "secret" not in str(call.error)


async def test_arguments_that_are_wrong_raise_from_the_handle(host: HostOf) -> None:
    async with host(a=echo()) as running:
        with pytest.raises(InvalidArguments):
            await running.tool_calls.call("a", "add", {}).result()
