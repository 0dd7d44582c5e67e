"""Servers of the official SDKs that speak revision 2026-07-28, over both transports, with all that is new in it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import tomli_w

from mcphost.host.tool_calls.call import CallState
from tests.conftest import SERVERS, Until
from tests.host.conftest import RecordingHost
from tests.warm_start import run
from tests.whole.peers import PEERS, meeting, running, sdk_runs

MODERN = "2026-07-28"
DEMO_MODEL = {"models": {"m": {"provider": "demo", "model": "demo-script"}}}


def modern(transport: str, port: int) -> list[str]:
    word = "streamable-http" if transport == "http" else transport
    return sdk_runs(SERVERS / "sdk_modern.py", word, str(port))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["stdio", "http"])
async def met(request: pytest.FixtureRequest) -> AsyncIterator[RecordingHost]:
    """A host whose server `e` speaks without a handshake, over each transport; these tests share it."""
    with running(modern, request.param, protocol="auto") as entry:
        async with meeting(entry) as host:
            yield host


in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""For tests that share a host."""


def sent(host: RecordingHost) -> list[str]:
    return [frame.method for frame in host.traffic.since(0) if frame.sent and frame.method]


@in_one_loop
@pytest.mark.requirement("MOD-01", "MOD-03", "MOD-04", "MOD-05", "MOD-07", "MOD-08", "MOD-22", "HDR-01", "HDR-02")
async def test_a_session_without_a_handshake_answers_calls(met: RecordingHost) -> None:
    session = met.servers["e"].session
    assert session is not None
    assert session.revision.version == MODERN
    call = await met.run("e", "wait_a_while")
    assert call.state is CallState.DONE
    first, second = call.needs()
    assert first.startswith("nothing but another attempt · state of ")
    assert second.startswith("nothing but another attempt · state of ")
    methods = sent(met)
    assert methods[0] == "server/discover"
    assert not {"initialize", "notifications/initialized", "ping"} & set(methods)


@in_one_loop
@pytest.mark.requirement("HDR-04", "HDR-03")
@pytest.mark.parametrize("place", ["Rome", "Zürich", " edge", "=?base64?x?=", "a\r\nX: y", ""])
async def test_the_server_accepts_an_argument_mirrored_in_a_header(met: RecordingHost, place: str) -> None:
    call = await met.run("e", "locate", {"place": place})
    assert call.outcome is not None, call.error
    assert call.outcome.raw["content"][0]["text"] == f"{place} is there"


@in_one_loop
@pytest.mark.requirement("SUB-01", "SUB-03", "SUB-08")
async def test_what_changes_is_announced_and_fetched(met: RecordingHost, until: Until) -> None:
    watch = await met.resources.subscribe("e", "memo://board")
    await met.run("e", "write", {"text": "news"})
    await until(lambda: watch.result and watch.result.raw["contents"][0]["text"] == "news")
    await met.run("e", "learn")
    await until(lambda: "learned" in {offered.tool.name for offered in met.catalog.tools("e")})
    listening = met.servers["e"].listening
    assert listening is not None
    assert "memo://board" in listening.words


ANSWERS = """
[[answer]]
kind = "form"
content = { city = "Rome" }
[[answer]]
kind = "sampling"
text = "The Forum"
"""


@pytest.mark.requirement("MRTR-01", "MRTR-02", "MRTR-03", "MRTR-10", "ELIC-25", "ROOT-12", "SAMP-20")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_form_folders_and_a_models_answer_are_given_within_one_call(tmp_path: Path, transport: str) -> None:
    config, answers = tmp_path / "c.toml", tmp_path / "answers.toml"
    answers.write_text(ANSWERS)

    def call(*flags: str) -> subprocess.CompletedProcess[str]:
        words = ("--config", str(config), "call", "e", "plan_trip", "days:=3", "--yes", "--root", str(tmp_path), *flags)
        return run(*words)

    with running(modern, transport, protocol="modern") as entry:
        config.write_text(tomli_w.dumps({"servers": {"e": entry}, **DEMO_MODEL}))
        given = call("--answers", str(answers))
        assert (given.returncode, given.stdout) == (0, "3 days in Rome and 1 folders: The Forum\n"), given.stderr
        answers.write_text(ANSWERS.replace('text = "The Forum"', 'action = "decline"'))
        refused = call("--answers", str(answers))
        assert refused.returncode == 4
        assert "sampling/createMessage" in refused.stderr


@pytest.mark.requirement("MOD-08", "MOD-24")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("name", ["sdk", "fastmcp"])
async def test_servers_of_both_eras_are_opened_in_the_newer_one(name: str, transport: str) -> None:
    with running(PEERS[name], transport, protocol="auto") as entry:
        async with meeting(entry) as host:
            session = host.servers["e"].session
            assert session is not None
            assert session.revision.version == MODERN
            assert host.catalog.tools("e")
