"""A server on version 2 of the official TypeScript SDK, over stdio and HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcphost.host.catalog import CatalogKind
from mcphost.host.consent.questions import Answer
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.traffic.message import MessageKind
from tests.conftest import SERVERS, Until
from tests.host.conftest import RecordingHost
from tests.host.server_requests.pending import Person
from tests.npm import node_runs, programs
from tests.whole.peers import meeting, read, running

pytestmark = pytest.mark.timeout(400)  # a first run installs

MODERN = "2026-07-28"
CALLS = "count://calls"


def typescript(transport: str, port: int) -> list[str]:
    return node_runs(SERVERS / "typescript.mjs", str(programs()), transport, str(port))


@pytest.fixture(params=["stdio", "http"])
async def met(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RecordingHost]:
    with running(typescript, request.param, protocol="auto") as entry:
        async with meeting({**entry, "roots": [str(tmp_path)]}, Person(), answers=DIALOG_KINDS) as host:
            yield host


def requests(host: RecordingHost, method: str) -> int:
    messages = host.traffic.since(0)
    return sum(each.sent and each.kind is MessageKind.REQUEST and each.method == method for each in messages)


@pytest.mark.requirement("MOD-01", "MOD-08", "MRTR-01", "MRTR-02", "MRTR-03", "MRTR-10", "ELIC-25", "ROOT-12")
async def test_a_call_is_answered_after_a_form_and_folders(met: RecordingHost) -> None:
    person, session = met.approver, met.servers["e"].session
    assert isinstance(person, Person)
    assert session is not None
    assert session.revision.version == MODERN
    person.steps.append(Answer(True, content={"city": "Rome"}))
    call = await met.run("e", "plan", {"by": "train"})
    assert call.outcome is not None, call.error
    assert call.outcome.raw["content"][0]["text"] == "to Rome by train, with 1 folders"
    assert list(call.needs()) == ["elicitation/create", "roots/list · state of 4 B"]


@pytest.mark.requirement("CACHE-01", "CACHE-05", "SUB-01", "SUB-03")
async def test_what_is_kept_is_fetched_again_once_a_change_was_announced(met: RecordingHost, until: Until) -> None:
    await met.resources.current("e", CatalogKind.TOOLS)
    assert requests(met, "tools/list") == 1
    watch = await met.resources.subscribe("e", CALLS)
    assert (await read(met, CALLS)).text == (await read(met, CALLS)).text == "0"
    assert requests(met, "resources/read") == 1
    await met.run("e", "count")
    await until(lambda: watch.result and watch.result.raw["contents"][0]["text"] == "1")
    await met.run("e", "grow")
    await until(lambda: "new" in {offered.tool.name for offered in met.catalog.tools("e")})
    assert requests(met, "tools/list") == 2
