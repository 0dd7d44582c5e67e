"""Detection and memory of each server's era, and hostile servers of the modern era."""

from __future__ import annotations

import json
import re
import threading
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import ServerConfig
from mcphost.errors import ConnectionLost, InputNotGiven, InvalidResult
from mcphost.host.connections.connection import PROBE_FAILED, ServerState
from mcphost.host.connections.eras import EraMemory, era_to_open
from mcphost.host.consent.questions import Answer, Question
from mcphost.host.desktop import no_browser
from mcphost.host.tool_calls.call import CallState
from mcphost.transports.stdio.process import live_groups
from tests.conftest import Until
from tests.host.conftest import FileStore, HostOf, RecordingHost, ScriptedApprover, echo, hostile, received, settings
from tests.memory_store import BrokenStore, MemoryStore
from tests.secret_search import secrets_in

ALLOW = {"default": "allow"}
STATE = "canary-state-20260728"


async def test_leaving_while_a_failed_probe_is_saved_closes_the_connection(
    host: HostOf, tmp_path: Path, until: Until
) -> None:
    class SlowDisk(FileStore):
        asked, goes_on = threading.Event(), threading.Event()

        def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
            self.asked.set()
            self.goes_on.wait(20)

    disk = SlowDisk(tmp_path)
    async with host(a=hostile("probe-dies"), dependencies={"store": disk}):
        await until(disk.asked.is_set)
    disk.goes_on.set()
    assert not live_groups


@pytest.mark.requirement("MOD-28", "MOD-31")
async def test_a_server_that_dies_of_the_probe_is_not_probed_again(host: HostOf, tmp_path: Path) -> None:
    kept = {"store": FileStore(tmp_path)}
    entry = hostile("probe-dies", "--record", tmp_path / "wire")
    async with host(a=entry, dependencies=kept) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert (connection.state, connection.restarts, connection.last_failure) == (ServerState.READY, 0, None)
        assert connection.remembered_era is not None
        assert connection.remembered_era.evidence == PROBE_FAILED
    assert received(tmp_path / "wire")[:2] == ["server/discover", "initialize"]
    (tmp_path / "wire").unlink()
    async with host(a=entry, dependencies=kept) as running:
        await running.servers.ready()
        assert running.servers["a"].ready
    assert received(tmp_path / "wire")[0] == "initialize"


@pytest.mark.requirement("MOD-28")
async def test_a_server_that_the_probe_broke_is_restarted_without_it(host: HostOf, tmp_path: Path) -> None:
    kept = {"store": FileStore(tmp_path)}
    entry = hostile("probe-refuses", "--record", tmp_path / "wire")
    for methods in (["server/discover", "initialize", "initialize"], ["initialize"]):
        async with host(a=entry, dependencies=kept) as running:
            await running.servers.ready()
            assert (running.servers["a"].state, running.servers["a"].restarts) == (ServerState.READY, 0)
        assert received(tmp_path / "wire")[: len(methods)] == methods
        (tmp_path / "wire").unlink()


@pytest.mark.requirement("MOD-27", "MOD-31")
@pytest.mark.parametrize(
    ("kind", "evidence", "starts"),
    [("refuses", "asked in 2026-07-28, answered late", 1), ("answers", "asked in 2026-07-28, answered", 2)],
)
async def test_a_slow_start_does_not_keep_a_modern_server_in_the_old_era(
    host: HostOf, tmp_path: Path, kind: str, evidence: str, starts: int
) -> None:
    kept = {"store": FileStore(tmp_path)}
    longer_than_a_probe = ("--bytes", 2300)
    options = ("--kind", kind, "--record", tmp_path / "wire", *longer_than_a_probe)
    entry = hostile("probe-overtaken", *options, startup_timeout_sec=6)
    async with host(a=entry, policy=ALLOW, dependencies=kept) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert connection.session is not None
        assert (connection.session.revision.version, connection.session.evidence) == ("2026-07-28", evidence)
        assert connection.restarts == 0
        assert (await running.run("a", "act")).state is CallState.DONE
        assert running.alarms == []
    assert received(tmp_path / "wire").count("server/discover") == starts
    assert not (tmp_path / "eras.toml").exists()


@pytest.mark.requirement("MOD-28", "MOD-32")
async def test_dying_of_the_probe_is_final_if_only_modern_is_wanted(host: HostOf) -> None:
    async with host(a=hostile("probe-dies", protocol="modern")) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert connection.state is ServerState.RECONNECTING
        assert connection.restarts == 1
        assert "exited when it was asked for its protocol versions" in connection.reason


@pytest.mark.requirement("MOD-09", "MOD-29")
@pytest.mark.parametrize("mode", ["probe-silent", "probe-late"])
async def test_an_unanswered_probe_is_followed_by_initialize(host: HostOf, tmp_path: Path, mode: str) -> None:
    entry = hostile(mode, "--record", tmp_path / "wire", startup_timeout_sec=7)
    async with host(a=entry, policy=ALLOW, dependencies={"store": FileStore(tmp_path)}) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert connection.session is not None
        assert connection.session.revision.version == "2025-11-25"
        assert connection.session.evidence == "asked in 2026-07-28, did not answer"
        call = await running.run("a", "act")
        assert call.state is CallState.DONE
        (alarm,) = running.alarms
        assert re.fullmatch(
            r"a: asked in 2026-07-28, did not answer, and was opened with initialize; this took 2\.\d s; "
            r'if that is always so, protocol = "legacy" in \[servers\.a\] saves it',
            alarm,
        )
    assert not (tmp_path / "eras.toml").exists()
    assert (tmp_path / "wire").read_text().splitlines().count("EOF") == 1


@pytest.mark.requirement("MOD-09", "MOD-28")
async def test_a_server_that_falls_silent_at_the_probe_is_started_again(host: HostOf, tmp_path: Path) -> None:
    entry = hostile("probe-mute", "--record", tmp_path / "wire", startup_timeout_sec=2)
    async with host(a=entry, dependencies={"store": FileStore(tmp_path)}) as running:
        await running.servers.ready()
        assert running.servers["a"].ready
        (alarm,) = running.alarms
        assert "answered nothing after it was asked for its protocol versions" in alarm
        assert 'protocol = "legacy" in [servers.a]' in alarm
        assert not (tmp_path / "eras.toml").exists()
        assert running.servers["a"].restarts == 0
    assert received(tmp_path / "wire")[:3] == ["server/discover", "initialize", "initialize"]


@pytest.mark.requirement("MOD-01", "MOD-04", "MOD-05", "MOD-22", "PING-04", "SUB-01")
async def test_in_a_modern_session_no_message_of_an_older_one_is_sent(
    host: HostOf, tmp_path: Path, until: Until
) -> None:
    entry = hostile("speaks-modern", "--record", tmp_path / "wire", log_level="info", roots=[str(tmp_path)])
    async with host(a=entry, policy=ALLOW) as running:
        await running.servers.ready()
        await running.run("a", "act")
        await running.servers["a"].ping()
        await running.roots.share("a", tmp_path)
        await running.resources.subscribe("a", "memo://x")
    methods = set(received(tmp_path / "wire"))
    assert methods <= {
        "server/discover", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
        "subscriptions/listen", "notifications/cancelled",
    }  # fmt: skip


@pytest.mark.requirement("MOD-05", "MOD-06", "MOD-34")
async def test_requests_of_a_modern_server_are_counted_and_not_answered(host: HostOf, tmp_path: Path) -> None:
    async with host(a=hostile("modern-asks", "--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        call = await running.run("a", "act")
        assert call.state is CallState.DONE
        assert running.servers["a"].violations.malformed == 5
        report = await running.run("a", "report")
        assert report.outcome is not None
        assert report.outcome.raw["structuredContent"]["replies"] == []


@pytest.mark.requirement("MRTR-07", "MRTR-08", "MRTR-09", "MRTR-13")
@pytest.mark.parametrize(
    ("kind", "error", "says"),
    [
        ("endless", InvalidResult, "still needs input after 25 rounds"),
        ("unknown", InputNotGiven, "mcphost did not offer this to the server"),
        ("huge", InvalidResult, "requestState is over the limit"),
        ("nothing", InvalidResult, "asks for nothing and has no requestState"),
    ],
)
async def test_a_modern_server_that_needs_too_much_ends_only_its_call(
    host: HostOf, tmp_path: Path, kind: str, error: type[Exception], says: str
) -> None:
    async with host(a=hostile("modern-needs", "--kind", kind, roots=[str(tmp_path)]), policy=ALLOW) as running:
        await running.servers.ready()
        call = await running.run("a", "act")
        assert isinstance(call.error, error)
        assert says in str(call.error)
        assert (await running.run("a", "report")).state is CallState.DONE


@pytest.mark.requirement("MRTR-15")
@pytest.mark.parametrize("kind", ["complete", "refused", "exits"])
async def test_a_state_is_in_no_log(host: HostOf, tmp_path: Path, kind: str) -> None:
    entry = hostile("modern-state", "--kind", kind, roots=[str(tmp_path)])
    dependencies = {"audit_path": tmp_path / "audit", "store": FileStore(tmp_path)}
    async with host(a=entry, policy=ALLOW, dependencies=dependencies) as running:
        await running.servers.ready()
        call = await running.run("a", "act")
        assert len(call.rounds) == 1
        logged = [record.text for record in running.logs.of_server("a")]
        said = [*logged, *call.needs(), str(call.error)]
    assert sum("bytes, sha256" in text for text in logged) == 4  # of text that is not a message, or answers no request
    assert not [text for text in said if STATE in text]
    assert (tmp_path / "audit").exists()
    assert secrets_in(tmp_path) == []


@pytest.mark.requirement("SUB-03", "SUB-12")
async def test_announcements_without_a_subscription_are_only_counted(host: HostOf, tmp_path: Path) -> None:
    async with host(a=hostile("modern-strays", "--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        await running.run("a", "act")
        listening = running.servers["a"].listening
        assert listening is not None
        assert "6 announcements of no subscription were dropped" in listening.words
    assert received(tmp_path / "wire").count("tools/list") == 1


@pytest.mark.requirement("SUB-09", "SUB-11")
async def test_a_server_without_announcements_stays_usable(host: HostOf) -> None:
    async with host(a=hostile("modern-refuses-to-listen"), policy=ALLOW) as running:
        await running.servers.ready()
        listening = running.servers["a"].listening
        assert listening is not None
        assert listening.troubled
        assert "no announcements here" in listening.words
        assert (await running.run("a", "act")).state is CallState.DONE


class Agrees(ScriptedApprover):
    """Says yes to everything that a server asks."""

    async def ask(self, question: Question) -> Answer:
        return Answer(True)


@pytest.mark.requirement("MRTR-12")
@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_page_to_visit_waits_for_the_word_of_the_user(tmp_path: Path, until: Until, goes_on: bool) -> None:
    entry = hostile("modern-page", "--record", tmp_path / "wire", capabilities={"elicitation": ["url"]})
    given: dict[str, Any] = {"answers": frozenset({"url"}), "open_url": no_browser}
    async with RecordingHost(settings(policy=ALLOW, a=entry), Agrees(), **given) as running:
        await running.servers.ready()
        call = running.tool_calls.call("a", "act", {})
        await until(lambda: running.elicitation.all)
        (page,) = running.elicitation.all.values()
        assert received(tmp_path / "wire").count("tools/call") == 1
        if goes_on:
            page.go_on()
        else:
            page.give_up()
        await running.end_of(call)
        assert call.state is (CallState.DONE if goes_on else CallState.DECLINED)
    assert received(tmp_path / "wire").count("tools/call") == (2 if goes_on else 1)


@pytest.mark.requirement("TRANS-STDIO-11", "TRANS-STDIO-17", "SUB-05", "MOD-17")
async def test_a_modern_server_that_exits_is_restarted_without_repeats(
    host: HostOf, tmp_path: Path, until: Until, impatient: None
) -> None:
    async with host(a=hostile("modern-exits", "--record", tmp_path / "wire"), policy=ALLOW) as running:
        await running.servers.ready()
        await running.resources.subscribe("a", "memo://x")
        call = await running.run("a", "act")
        assert isinstance(call.error, ConnectionLost)
        await until(lambda: running.servers["a"].ready and "memo://x" in listening_words(running))
        methods = received(tmp_path / "wire")
    assert methods.count("tools/call") == 1
    assert methods.count("server/discover") == 2
    messages = [json.loads(line) for line in (tmp_path / "wire").read_text().splitlines() if line[0] == "{"]
    (_, *again) = [each for each in messages if each.get("method") == "server/discover"]
    listens = [each for each in messages if each.get("method") == "subscriptions/listen"]
    assert listens[-1]["params"]["notifications"]["resourceSubscriptions"] == ["memo://x"]
    assert messages.index(listens[-1]) > messages.index(again[-1])


def listening_words(running: RecordingHost) -> str:
    listening = running.servers["a"].listening
    return "" if listening is None else listening.words


@pytest.mark.requirement("HDR-07")
@pytest.mark.parametrize("kind", ["same", "changed"])
async def test_after_a_header_mismatch_an_allowed_call_is_sent_once_more(
    host: HostOf, tmp_path: Path, kind: str
) -> None:
    entry = hostile("modern-mismatch", "--kind", kind, "--record", tmp_path / "wire")
    async with host(a=entry, policy=ALLOW) as running:
        await running.servers.ready()
        call = await running.run("a", "act")
    calls = [method for method in received(tmp_path / "wire") if method.startswith("tools/")]
    if kind == "same":
        assert call.state is CallState.DONE
        assert calls == ["tools/list", "tools/call", "tools/list", "tools/call"]
    else:
        assert "Mcp-Param-X is missing" in str(call.error)
        assert calls == ["tools/list", "tools/call", "tools/list"]


@pytest.mark.requirement("HDR-13")
async def test_a_secret_argument_that_goes_into_a_header_is_pointed_out(host: HostOf) -> None:
    async with host(a=hostile("modern-annotated")) as running:
        await running.servers.ready()
        said = [text for text in running.said("a") if "header" in text]
    assert said == ["with_api_key: its argument api_key looks secret, and is repeated in an HTTP header"]


SERVER = ServerConfig(command="x", args=("1",))
TODAY = date(2026, 11, 23)


@pytest.mark.requirement("MOD-14", "MOD-31")
async def test_a_verdict_holds_for_a_week_and_for_one_entry() -> None:
    day, store = [TODAY], MemoryStore()
    verdicts = EraMemory(store, lambda: day[0], lambda text: None)
    await verdicts.learn(SERVER, "said no")
    again = EraMemory(store, lambda: day[0], lambda text: None)
    await again.load()
    for kept in (verdicts, again):
        found = kept.get(SERVER)
        assert found is not None
        assert (found.evidence, found.day) == ("said no", TODAY)
        assert era_to_open(SERVER, found) == "legacy"
        assert kept.get(ServerConfig(command="x", args=("2",))) is None
    day[0] += timedelta(days=7)
    assert again.get(SERVER) is None
    day[0] -= timedelta(days=8)
    assert again.get(SERVER) is None  # the clock went back
    await again.forget(SERVER)
    assert store.content == {"handshake": {}}


@pytest.mark.requirement("MOD-32")
def test_a_configured_protocol_overrides_the_remembered_era() -> None:
    verdicts = EraMemory(None, lambda: TODAY, lambda text: None)
    assert verdicts.get(SERVER) is None
    for given in ({"protocol": "modern"}, {"minimum_version": "2026-07-28"}):
        server = ServerConfig.model_validate({"command": "x", **given})
        assert era_to_open(server, None) == server.protocol


NONSENSE = (
    "handshake = 5",
    '[handshake]\na = "x"',
    "[handshake.a]\nday = 5",
    '[handshake.a]\nevidence = "x"\nday = "y"',
)


@pytest.mark.parametrize("text", NONSENSE)
async def test_a_file_that_makes_no_sense_is_begun_anew(text: str) -> None:
    store = MemoryStore(tomllib.loads(text))
    verdicts = EraMemory(store, lambda: TODAY, lambda text: None)
    await verdicts.load()
    assert verdicts.get(SERVER) is None
    await verdicts.learn(SERVER, "said no")
    assert verdicts.get(SERVER) is not None


async def test_a_file_that_cannot_be_used_is_a_sentence_in_the_log() -> None:
    said: list[str] = []
    verdicts = EraMemory(BrokenStore(), lambda: TODAY, lambda text: said.append(text))
    await verdicts.load()
    await verdicts.learn(SERVER, "said no")
    assert verdicts.get(SERVER) is not None
    assert len(said) == 2


@pytest.mark.requirement("MOD-22")
async def test_after_the_probe_of_an_older_server_nothing_modern_is_sent(host: HostOf, tmp_path: Path) -> None:
    async with host(a=echo("--record", tmp_path / "wire", roots=[str(tmp_path)]), policy=ALLOW) as running:
        await running.servers.ready()
        session = running.servers["a"].session
        assert session is not None
        assert session.evidence == "asked in 2026-07-28, answered -32601"
        await running.run("a", "echo", {"text": "x"})
        await running.servers["a"].ping()
    probe, *others = (tmp_path / "wire").read_text().splitlines()
    assert "server/discover" in probe
    assert len(others) > 4
    assert not [line for line in others if "io.modelcontextprotocol/" in line]
