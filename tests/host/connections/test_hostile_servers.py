"""Servers that list, ask and talk without end or reason, from the pipe to what the host keeps and answers."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mcphost.errors import Declined
from mcphost.host.connections.connection import ServerState
from mcphost.host.tool_calls.call import CallState
from tests.conftest import Until
from tests.host.conftest import SCRIPTS, HostOf, echo, hostile
from tests.loop_watchdog import LoopWatchdog

sys.path.insert(0, str(SCRIPTS))

from web import Web

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}
OWN = ["act", "report"]
NO_CURSOR = "list cut off: the next cursor is not a string"


@pytest.mark.hostile("L01", "L02", "L04")
@pytest.mark.requirement("PAGE-02", "SEC-07")
@pytest.mark.parametrize(
    ("args", "names", "notice"),
    [
        (("empty-page",), ["tool-1", "tool-3"], None),
        (("empty-page", "--kind", "only"), [], "list cut off after 64 pages"),
        (("bad-cursor", "--kind", "number"), OWN, NO_CURSOR),
        (("bad-cursor", "--kind", "object"), OWN, NO_CURSOR),
        (("bad-cursor", "--kind", "list"), OWN, NO_CURSOR),
        (("bad-cursor", "--kind", "bool"), OWN, NO_CURSOR),
        (("bad-cursor", "--kind", "null"), OWN, None),
        (("bad-cursor", "--kind", "empty"), [*OWN, "tool-2"], None),
        (("bad-cursor", "--kind", "opaque"), [*OWN, "tool-2"], None),
        (("bad-cursor", "--kind", "escapes"), [*OWN, "tool-2"], None),
        (("bad-cursor", "--kind", "long"), [*OWN, "tool-2"], None),
        (("many-tools", "--count", 10_400), 10_000, "list cut off after 10000 items"),
        (("many-tools",), 0, "listing the tools failed: the server's answer is invalid: 200003 objects and arrays"),
        (("big-tool", "--bytes", 3_000_000), OWN, None),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
async def test_a_list_is_read_to_a_bound_and_what_is_missing_is_said(
    host: HostOf, args: tuple[Any, ...], names: list[str] | int, notice: str | None, loop_watchdog: LoopWatchdog
) -> None:
    """Cursors are sent back as they came, and never shown; giants are named, not kept."""
    for _ in range(3):  # what shares the processor's caches can triple the time of a turn, but not of each
        loop_watchdog.restart()
        async with host(a=hostile(*args)) as running:
            await running.servers.ready()
            connection = running.servers["a"]
            assert connection.state is ServerState.READY
            listed = [tool.name for tool in connection.tools]
            assert len(listed) == names if isinstance(names, int) else listed == names
            assert (connection.notice or "").startswith(notice or "")
            assert (connection.notice is None) is (notice is None)
            assert len(connection.rejected) == (3 if args[0] == "big-tool" else 0)
            assert not any("X-Header" in text or "ccc" in text for text in running.said("a"))
            assert max(map(len, running.said("a"))) < 1000
        if loop_watchdog.longest < 0.1:
            break
    assert loop_watchdog.longest < 0.1


@pytest.mark.hostile("L05")
@pytest.mark.requirement("SCHEMA-03", "SCHEMA-04")
async def test_a_tool_with_an_external_schema_is_refused(host: HostOf) -> None:
    """A canary at the address that the schemas point to, of arguments and of results, has no visitor; whatever the
    policy says, the tool stays listed and is not run, and why is said and written down.
    """
    away = {
        "remote": "external $ref 'http://",
        "dynamic": "external $dynamicRef 'http://",
        "identified": "external $ref 'other",
        "dialect": "external $schema 'http://",
        "file": "external $ref 'file:///etc/passwd'",
    }
    with Web(lambda talk: talk.json({"type": "integer"})) as canary:
        url = f"http://127.0.0.1:{canary.port}"
        async with host(a=hostile("evil-schema", "--kind", url), policy=ALLOW) as running:
            for name, why in ((f"{way}-{name}", why) for name, why in away.items() for way in ("in", "out")):
                call = await running.run("a", name, {"value": 1})
                assert isinstance(call.error, Declined), name
                assert str(call.error).startswith(f"{name} was declined by policy: {why}")
                assert not running.approver.questions
                assert running.catalog.tool("a", name).refusal.startswith(why)
        assert canary.visits == []


UNDECLARED = {"code": -32601, "message": "mcphost did not offer this to the server"}
NO_PARAMS = {"code": -32602, "message": "params is not an object"}
ANSWERS: dict[Any, Any] = {
    **dict.fromkeys(
        (
            "sampling",
            "roots",
            "elicitation",
            "unknown",
            "escapes",
            "no-params",
            "null-params",
            "bad-params",
            "bad-schema",
        ),
        UNDECLARED,
    ),
    "list-params": NO_PARAMS,
    **{key: {} for key in ("ping", "1", "i" * 100_000)},
}


@pytest.mark.hostile("F11", "J13")
@pytest.mark.requirement("MSG-07", "MSG-10")
async def test_each_valid_request_is_answered_once_by_its_own_id(host: HostOf, until: Until) -> None:
    """Ids of other types than a string or a whole number have no answer, and are counted on the card."""
    async with host(a=hostile("server-requests"), policy=ALLOW) as running:
        assert (await running.run("a", "act")).state is CallState.DONE
        report = (await running.run("a", "report")).outcome
        assert report is not None
        replies = report.structured["replies"]
        told = {(type(reply["id"]), reply["id"]): reply.get("result", reply.get("error")) for reply in replies}
        assert told == {(type(key), key): answer for key, answer in ANSWERS.items()} | {(int, 1): {}}
        assert len(replies) == len(told) + 1  # the id 1 was used twice, one after the other
        assert running.servers["a"].violations.malformed == 5
        assert running.servers["a"].ready


@pytest.mark.hostile("F03", "F09")
@pytest.mark.requirement("SEC-07", "PING-01")
@pytest.mark.parametrize("kind", ["sampling", "roots", "elicitation", "ping", "unknown"])
async def test_a_thousand_requests_at_once_are_all_answered(
    host: HostOf, kind: str, loop_watchdog: LoopWatchdog
) -> None:
    """While nothing of this is offered: refused at once, without a question to anybody."""
    async with host(a=hostile("request-flood", "--kind", kind), b=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        flood = running.tool_calls.call("a", "act", {})
        beside = await running.run("b", "echo", {"text": "x"})
        assert (beside.state, beside.elapsed < 10) == (CallState.DONE, True)
        await running.end_of(flood)
        report = (await running.run("a", "report")).outcome
        assert report is not None
        assert [reply["id"] for reply in report.structured["replies"]] == [f"flood-{n}" for n in range(1000)]
        assert running.approver.questions == []
    assert loop_watchdog.longest < 0.3


@pytest.mark.hostile("F01")
@pytest.mark.slow
@pytest.mark.requirement("LOG-04", "SEC-07")
async def test_log_messages_of_a_megabyte_fill_no_memory_and_hold_up_nobody(
    host: HostOf, loop_watchdog: LoopWatchdog
) -> None:
    """At all levels and two unknown ones."""
    flooding = hostile("notification-flood", "--count", 40, "--bytes", 1_000_000)
    async with host(a=flooding, b=echo(), policy=ALLOW) as running:
        await running.servers.ready()
        flood = running.tool_calls.call("a", "act", {})
        for _ in range(10):
            assert (await running.run("b", "echo", {"text": "x"})).elapsed < 10
        await running.end_of(flood)
        assert flood.state is CallState.DONE
        texts = running.said("a")
        assert sum(map(len, texts)) < 5 << 20
        assert any(text.startswith('["catastrophe"] fff') for text in texts)
    assert loop_watchdog.longest < 0.3
