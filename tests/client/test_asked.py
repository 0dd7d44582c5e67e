"""What a server may ask, as far as the client decides it: what was declared, whose time it is, and who is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcphost.client.client import RequestTimeouts
from mcphost.client.deadlines import Deadline, Deadlines
from mcphost.errors import RequestTimeout
from mcphost.protocol.declared import ClientCapabilities
from mcphost.protocol.jsonrpc import ErrorObject, Notification
from mcphost.protocol.revisions import V2025_06_18, V2025_11_25
from tests.client.conftest import Connect, Draw, hello
from tests.client.scripted import NEVER
from tests.client.test_inputs import ScriptedHandler
from tests.conftest import Until

BOTH = ClientCapabilities(roots=True, elicitation=frozenset({"form", "url"}))
CHANGED = Notification("notifications/roots/list_changed")


@pytest.mark.requirement("ELIC-01", "ELIC-11", "ELIC-13")
async def test_what_was_declared_last_is_what_holds(draw: Draw, until: Until) -> None:
    refusal = ErrorObject(-32602, "Unsupported protocol version", {"supported": ["2025-06-18"]})
    line = draw(
        {"initialize": [refusal, hello(V2025_06_18)]},
        capabilities=BOTH.under,
        handler=ScriptedHandler(elicitation={"action": "cancel"}),
    )
    await line.client.connect(5)
    said = [(request.params or {})["capabilities"]["elicitation"] for request in line.server.requests("initialize")]
    assert said == [{"form": {}, "url": {}}, {}]
    modes: list[dict[str, Any]] = [{}, {"mode": "form"}, {"mode": "url"}, {"mode": ["form"]}]
    for number, mode in enumerate(modes):
        line.server.asks(number, "elicitation/create", mode)
    await until(lambda: len(line.server.replies()) == len(modes))
    replies = sorted(line.server.replies(), key=lambda reply: int(reply["id"]))
    assert ["error" in reply for reply in replies] == [False, False, True, True]
    assert {reply["error"]["code"] for reply in replies[2:]} == {-32602}


@pytest.mark.requirement("ROOT-04")
@pytest.mark.parametrize("declared", [True, False])
async def test_a_change_of_the_roots_is_told_where_that_was_said(connect: Connect, declared: bool) -> None:
    line = await connect(capabilities=ClientCapabilities(roots=declared).under)
    await line.client.tell_roots_changed()
    assert (CHANGED in line.server.sent) is declared
    await line.client.aclose()
    await line.client.tell_roots_changed()
    assert line.server.sent.count(CHANGED) == int(declared)


@pytest.mark.requirement("ROOT-04", "CAP-01")
@pytest.mark.parametrize("roots", [{}, {"listChanged": False}, {"listChanged": None}])
async def test_a_change_of_the_roots_is_not_told_where_only_the_roots_were_declared(
    connect: Connect, roots: dict[str, Any]
) -> None:
    line = await connect(capabilities={"roots": roots})
    await line.client.tell_roots_changed()
    assert CHANGED not in line.server.sent


@pytest.mark.requirement("ELIC-22")
async def test_the_end_of_a_page_is_passed_on(connect: Connect) -> None:
    line = await connect()
    for elicitation in ("e1", 7, None, "e2"):
        line.server.says("notifications/elicitation/complete", {"elicitationId": elicitation})
    assert line.notes.all("completed") == ["e1", "e2"]


@pytest.mark.requirement("ELIC-09")
@pytest.mark.parametrize("as_task", [False, True])
async def test_a_call_does_not_run_out_of_time_while_its_server_waits_for_us(
    draw: Draw, until: Until, as_task: bool
) -> None:
    asked = ScriptedHandler(sampling=NEVER)
    greeting = hello(V2025_11_25, capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}})
    script: dict[str, Any] = {"initialize": greeting, "tools/call": NEVER, "ping": NEVER}
    line = draw(script, capabilities={"sampling": {}}, handler=asked)
    await line.client.connect(5)
    line.server.asks("q", "sampling/createMessage", {})
    await until(lambda: asked.asked)
    verb = line.client.tasks.call_tool if as_task else line.client.call_tool
    call = asyncio.create_task(verb("x", patience=RequestTimeouts(0.05, 0.06)))
    with pytest.raises(RequestTimeout):  # nobody has to be asked for a ping
        await line.client.ping(0.1)
    assert not call.done()
    line.server.says("notifications/cancelled", {"requestId": "q"})
    with pytest.raises(RequestTimeout):
        await call


@pytest.mark.requirement("ELIC-09")
async def test_what_was_left_of_the_time_is_left_afterwards() -> None:
    deadlines, now = Deadlines(), asyncio.get_running_loop().time
    with Deadline(deadlines, 5, 8, holds=True) as early, Deadline(deadlines, 5, 8) as other:
        before, unheld = early.at, other.at
        with deadlines.held(), deadlines.held():
            await asyncio.sleep(0.03)
            with Deadline(deadlines, 5, 8, holds=True) as late:
                began = now()
        assert 0.03 <= early.at - before < 4
        assert late.at - began == pytest.approx(5, abs=1)
        assert other.at == unheld
        early.extend()
        assert early.at == pytest.approx(now() + 5, abs=1)
    deadlines.close()


@pytest.mark.requirement("MSG-08")
async def test_who_leaves_answers_what_is_open_first(connect: Connect) -> None:
    class Leaving(ScriptedHandler):
        def __init__(self) -> None:
            super().__init__()
            self.gone = asyncio.Event()

        async def answer(self, request: Any) -> Any:
            await self.gone.wait()
            return {"action": "cancel"}

        def leave(self) -> None:
            self.gone.set()

    line = await connect(capabilities={"elicitation": {}}, handler=Leaving())
    line.server.asks(1, "elicitation/create", {})
    await asyncio.sleep(0)
    await line.client.aclose()
    assert [reply["result"] for reply in line.server.replies()] == [{"action": "cancel"}]


def test_only_the_newest_of_these_revisions_has_pages() -> None:
    assert (V2025_06_18.elicitation, V2025_11_25.elicitation) == (("form",), ("form", "url"))
