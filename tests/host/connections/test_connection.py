from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.errors import ConnectionLost, InvalidResult, ServerError, ServerNotReady
from mcphost.host.connections import reconnection as retry
from mcphost.host.connections.connection import ServerState
from mcphost.host.events import ServerChanged, ToolsChanged
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.models.logging import LogLevel
from mcphost.transports.base import Transport
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, echo, hostile, open_stdio, received

pytestmark = pytest.mark.slow

ALLOW = {"default": "allow"}
READY, FAILED, STOPPED = ServerState.READY, ServerState.FAILED, ServerState.STOPPED
RECONNECTING, STARTING, DISABLED = ServerState.RECONNECTING, ServerState.STARTING, ServerState.DISABLED


async def seen(running: RecordingHost, server: str = "a") -> dict[str, int]:
    """The number of requests to a hostile server by method."""
    call = await running.run(server, "report")
    assert call.outcome is not None
    counts: dict[str, int] = call.outcome.structured["seen"]
    return counts


def starts(record: Path) -> int:
    return received(record).count("initialize") if record.exists() else 0


@pytest.mark.requirement("LIFE-01", "LIFE-08", "LIFE-20", "HOST-01", "TOOLS-01")
async def test_a_server_that_starts_is_ready_with_session_process_and_tools(host: HostOf, tmp_path: Path) -> None:
    entry = echo("--page", 2, "--record", tmp_path / "wire", protocol="legacy")
    async with host(a=entry, policy=ALLOW) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert (connection.state, connection.reason, connection.retry_at) == (READY, "", None)
        assert connection.session is not None
        assert connection.session.revision.version == "2025-11-25"
        assert len(connection.tools) == len(running.catalog.tools("a")) == 11
        assert connection.process.pid is not None
        assert connection.started_at is not None
        assert connection.ready_at is not None
        assert connection.ready_at >= connection.started_at
    assert connection.state is STOPPED
    assert connection.tools == []
    assert received(tmp_path / "wire")[:3] == ["initialize", "notifications/initialized", "tools/list"]
    assert ToolsChanged("a") in running.events


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "/no/such/program"}, "does not exist"),
        ({"command": "missing"}, "${TOKEN} is not set"),
        (hostile("version-unknown"), "2199-01-01"),
        (echo("--protocol", "2024-11-05", minimum_version="2025-03-26"), "2024-11-05"),
        (
            echo("--protocol", "2025-03-26", minimum_version="2025-04-01"),
            "below this server's minimum_version 2025-06-18",
        ),
        (echo(minimum_version="2026-07-29"), "newer than all that is spoken here, up to 2026-07-28"),
        (echo(minimum_version="2026-07-28"), "minimum_version 2026-07-28 forbids the handshake of older versions"),
        (echo(protocol="modern"), 'protocol = "modern" forbids the handshake of older versions'),
        (
            echo(required_capabilities=["prompts"]),
            "the server does not offer prompts, which required_capabilities needs",
        ),
        (echo("--no-tools", required_capabilities=["tools"]), "does not offer tools"),
    ],
)
@pytest.mark.requirement("LIFE-06", "LIFE-14", "LIFE-20")
async def test_what_trying_again_cannot_mend_fails_with_words(host: HostOf, entry: dict[str, Any], words: str) -> None:
    async with host(a=entry, b=echo()) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert (connection.state, connection.restarts) == (FAILED, 1)
        assert words in connection.reason
        assert running.servers["b"].ready
        call = await running.run("a", "echo")
    assert isinstance(call.error, ServerNotReady)
    assert words in str(call.error)


@pytest.mark.parametrize(
    ("protocol", "begins"), [("auto", ["server/discover", "initialize"]), ("legacy", ["initialize"])]
)
async def test_a_server_is_probed_unless_its_protocol_is_configured(
    host: HostOf, tmp_path: Path, protocol: str, begins: list[str]
) -> None:
    async with host(a=echo("--record", tmp_path / "wire", protocol=protocol)) as running:
        await running.servers.ready()
        assert running.servers["a"].ready
    assert received(tmp_path / "wire")[: len(begins)] == begins


@pytest.mark.hostile("S06")
@pytest.mark.parametrize("mode", ["crash-at-start", "crash-in-initialize"])
@pytest.mark.requirement("LIFE-27")
async def test_a_crash_loop_ends_in_words_until_somebody_tries_again(
    host: HostOf, impatient: None, until: Until, mode: str
) -> None:
    """Five crashes, with exit code and last words, and then no more by itself."""
    async with host(a=hostile(mode)) as running:
        connection = running.servers["a"]
        await until(lambda: connection.state is FAILED)
        assert "exited with code 3" in connection.reason
        assert "not trying again by itself" in connection.reason
        assert connection.restarts == retry.CRASHES
        assert connection.process.exit_code == 3
        assert connection.process.stderr_tail[-1] == "last words 30 of 30"
        connection.start()
        await until(lambda: connection.restarts == 2 * retry.CRASHES)
    assert running.servers["a"].state is STOPPED


@pytest.mark.requirement("LIFE-15", "CANC-02")
async def test_a_server_that_hangs_in_initialize_is_tried_again_later(host: HostOf, tmp_path: Path) -> None:
    server = hostile("initialize-silent", "--record", tmp_path / "wire", startup_timeout_sec=1.5, protocol="legacy")
    async with host(a=server) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert connection.state is RECONNECTING
        assert re.search(r"initialize timed out after 1(\.\d)? s", connection.reason)  # of 1.5 s, the start took some
        assert connection.retry_at is not None
        assert 0 < connection.retry_at - time.monotonic() < 1
    assert received(tmp_path / "wire") == ["initialize"]


@pytest.mark.hostile("L03")
async def test_a_missing_list_leaves_a_ready_server_with_a_notice(host: HostOf) -> None:
    """Connected, and the tools could not be listed: never zero tools silently."""
    async with host(a=hostile("initialize-silent", "--at", "tools/list", startup_timeout_sec=1.5)) as running:
        await running.servers.ready()
        assert running.servers["a"].state is READY
        assert "startup_timeout_sec = 1.5" in (running.servers["a"].notice or "")
        failure = running.servers["a"].listings.tools.failure
        assert failure is not None
        assert failure.timed_out


@pytest.mark.hostile("L01", "L03", "L04", "P05")
@pytest.mark.parametrize(
    ("args", "tools", "rejected", "notice"),
    [
        (("same-cursor",), 2, 2, "same cursor twice"),
        (("abca-cursor",), 4, 0, "same cursor twice"),
        (("endless-pages",), 64, 0, "after 64 pages"),
        (("one-bad-tool", "--kind", "all"), 10, 11, None),
        (("page-3-fails",), 2, 0, "page 3 failed: page 3 is on fire (-32603)"),
        (("page-3-fails", "--kind", "garbage"), 2, 0, "page 3 failed"),
        (("big-tool", "--bytes", 100_000), 2, 3, None),
        (("odd-names",), 18, 1, None),
    ],
)
@pytest.mark.requirement("SEC-07", "TOOLS-27", "TOOLS-28")
async def test_of_an_odd_list_what_is_good_is_used(
    host: HostOf, args: tuple[Any, ...], tools: int, rejected: int, notice: str | None
) -> None:
    """Cut off, salvaged, and said."""
    async with host(a=hostile(*args)) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert (connection.state, len(connection.tools)) == (READY, tools)
        assert len(connection.rejected) == rejected
        assert (notice or "") in (connection.notice or "")
        assert bool(notice) is bool(connection.notice)


@pytest.mark.hostile("F02")
@pytest.mark.requirement("TOOLS-18")
async def test_a_flood_of_changes_is_a_listing_or_two(host: HostOf, until: Until) -> None:
    """Ten thousand announcements cause one listing without a wait, and one more where they come slowly."""
    async with host(a=hostile("list-changed-flood"), policy=ALLOW) as running:
        await running.servers.ready()
        call = await running.run("a", "act")
        assert call.state is CallState.DONE
        lists = running.events.count(ToolsChanged("a"))
        await until(lambda: running.events.count(ToolsChanged("a")) > lists)
        assert (await seen(running))["tools/list"] in (2, 3)


@pytest.mark.requirement("CAP-07")
async def test_a_change_of_what_was_never_offered_is_ignored(host: HostOf) -> None:
    async with host(a=hostile("bare-greeting", "--at", "tools/list"), policy=ALLOW) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        connection.listings.mark_stale("tools")
        assert connection.ready
        assert connection.notice is None
        assert connection.tools == []


@pytest.mark.requirement("LOG-01", "LOG-02")
async def test_the_log_level_is_remembered_unless_it_is_refused(host: HostOf, tmp_path: Path, until: Until) -> None:
    async with host(a=echo("--record", tmp_path / "wire", log_level="error"), policy=ALLOW) as running:
        connection = running.servers["a"]
        await running.servers.ready()
        assert "logging/setLevel" in received(tmp_path / "wire")
        await running.run("a", "log", {"count": 1, "text": "quiet"})
        await connection.set_level(LogLevel.DEBUG)
        connection.restart()
        await running.servers.ready()
        assert connection.level is LogLevel.DEBUG
        await running.run("a", "log", {"count": 1, "text": "loud", "level": "debug", "logger": "x"})
        await until(lambda: "loud" in running.said("a"))
    assert "quiet" not in running.said("a")
    (line,) = [record for record in running.logs.of_server("a") if record.text == "loud"]
    assert (line.level, line.logger, line.call) == (LogLevel.DEBUG, "x", 2)


async def test_a_level_the_server_refuses_stops_nothing(host: HostOf) -> None:
    refusing = hostile("initialize-error", "--at", "logging/setLevel")
    async with host(a=refusing | {"log_level": "debug"}) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        assert (connection.state, connection.level) == (READY, None)
        assert any("the log level debug was not taken" in text for text in running.said("a"))
        with pytest.raises(ServerError):
            await connection.set_level(LogLevel.ERROR)
        assert connection.level is None


@pytest.mark.hostile("C10", "F01")
@pytest.mark.requirement("LOG-02", "LOG-04", "SEC-07", "SEC-09", "MSG-14")
async def test_everything_a_server_says_is_in_its_log_within_its_budget(host: HostOf, until: Until) -> None:
    """All levels, unknown ones too, stray lines, stderr; secrets masked."""
    limits = {"log_lines_per_second": 200, "log_lines": 100}
    async with host(
        a=hostile("notification-flood", "--count", 5000, limits=limits),
        b=hostile("garbage-first"),
        c=echo(),
        policy=ALLOW,
        dependencies={"mask": lambda text: text.replace("hunter2!", "•••")},
    ) as running:
        await running.servers.ready()
        await running.run("a", "act")
        await running.run("c", "stderr", {"bytes": 30, "text": "the key is hunter2!"})
        assert len(running.said("a")) <= 100
        assert running.logs.dropped("a") > 4000
        odd = running.servers["b"].violations
        assert (odd.malformed, odd.stray) == (5, 5)
        dropped = [record for record in running.logs.of_server("b") if record.text.startswith("dropped a message (")]
        assert [record.level for record in dropped] == [LogLevel.WARNING] * 5
        assert (await running.run("b", "act")).state is CallState.DONE
        assert odd.first_stray == "Hostile Server v1.0 -- listening on stdio"
        assert "Traceback (most recent call last):" in running.said("b")
        await until(lambda: "the key is •••" in running.said("c"))


@pytest.mark.hostile("C10")
@pytest.mark.requirement("SEC-09")
async def test_what_a_server_is_quoted_with_holds_no_secret(host: HostOf) -> None:
    """Card, reason, notice, command line, and the errors of calls, besides the log."""

    def mask(text: str) -> str:
        return re.sub("last words|is on fire|Hostile Server|hostile.py|code 3", "•••", text)

    servers = {"dies": hostile("crash-on-call"), "lists": hostile("page-3-fails"), "speaks": hostile("garbage-first")}
    async with host(**servers, policy=ALLOW, dependencies={"mask": mask}) as running:
        await running.servers.ready()
        call = await running.run("dies", "act")
        assert isinstance(call.error, ConnectionLost)
        dies, lists, speaks = running.servers.values()
        await dies.settled()
        assert str(call.error) == "the server exited with •••"
        assert call.error.stderr_tail[-1] == "••• 30 of 30"
        assert dies.process.command[-2].endswith("/•••")
        assert dies.reason == "the server exited with •••"
        assert lists.notice == "page 3 failed: page 3 ••• (-32603)"
        assert speaks.violations.first_stray.startswith("••• v1.0")


@pytest.mark.requirement("PING-02", "PING-03")
async def test_missed_pings_end_in_a_new_connection(
    host: HostOf, tmp_path: Path, until: Until, impatient: None
) -> None:
    deaf = hostile("initialize-silent", "--at", "ping", "--record", tmp_path / "wire", ping_interval_sec=0.05)
    async with host(a=deaf) as running:
        await until(lambda: starts(tmp_path / "wire") == 2)
        assert any("the server answered none of 2 pings" in text for text in running.said("a"))


@pytest.mark.parametrize("mode", [(), ("both", "--at", "ping")])
@pytest.mark.requirement("PING-03")
async def test_an_answered_ping_is_a_sign_of_life_even_if_it_is_an_error(
    host: HostOf, tmp_path: Path, until: Until, mode: tuple[str, ...]
) -> None:
    extra = {"ping_interval_sec": 0.3}
    record = ("--record", tmp_path / "wire")
    async with host(a=(hostile(*mode, *record) if mode else echo(*record)) | extra) as running:
        await running.servers.ready()
        await until(lambda: received(tmp_path / "wire").count("ping") > 4)
        assert running.servers["a"].ready
    assert starts(tmp_path / "wire") == 1


@pytest.mark.parametrize("mode", [(), ("both", "--at", "ping")])
async def test_the_first_round_trip_is_that_of_the_handshake(host: HostOf, until: Until, mode: tuple[str, ...]) -> None:
    async with host(a=hostile(*mode) if mode else echo("--delay", 0.02)) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        first = connection.keepalive.last
        assert first is not None
        assert (first.request, first.seconds >= (0 if mode else 0.02)) == ("opening", True)
        running.events.clear()
        if mode:
            with pytest.raises(InvalidResult):
                await connection.ping()
            assert connection.keepalive.last is first
        else:
            assert await connection.ping() == connection.keepalive.last
            assert (connection.keepalive.last or first).request == "ping"
            assert ServerChanged("a") in running.events
        connection.stop()
        await until(lambda: not connection.ready)
        with pytest.raises(ServerNotReady):
            await connection.ping()


async def test_a_server_busy_with_a_call_is_not_pinged_to_death(host: HostOf, tmp_path: Path) -> None:
    """A program that does one thing at a time cannot answer: the call has its own limits."""
    single = hostile(
        "progress-forever", "--record", tmp_path / "wire", ping_interval_sec=0.03, tool_timeout_max_sec=0.4
    )
    single["tool_timeout_sec"] = 0.4
    async with host(a=single, policy=ALLOW) as running:
        await running.servers.ready()
        before = received(tmp_path / "wire").count("ping")
        assert (await running.run("a", "act")).state is CallState.TIMED_OUT
    assert received(tmp_path / "wire").count("ping") <= before + 2


# What is asked for while something else is under way.


Step = Callable[[Any], None]


def restart(connection: Any) -> None:
    connection.restart()


def stop(connection: Any) -> None:
    connection.stop()


def start(connection: Any) -> None:
    connection.start()


@pytest.mark.parametrize(
    ("steps", "state", "lives"),
    [
        ((stop,), STOPPED, 1),
        ((stop, start), READY, 2),
        ((restart,), READY, 2),
        ((restart, restart, restart), READY, 2),
        ((restart, stop), STOPPED, 1),
        ((start,), READY, 1),
        ((stop, stop, restart, start), READY, 2),
    ],
)
@pytest.mark.parametrize("when", [READY, STARTING])
@pytest.mark.requirement("HOST-03", "LIFE-23")
async def test_commands_at_any_time_end_in_what_was_asked_last(
    host: HostOf,
    tmp_path: Path,
    until: Until,
    steps: tuple[Step, ...],
    state: ServerState,
    lives: int,
    when: ServerState,
) -> None:
    slow = 0.1 if when is STARTING else 0
    async with host(a=echo("--delay", slow, "--record", tmp_path / "wire")) as running:
        connection = running.servers["a"]
        await until(lambda: starts(tmp_path / "wire") == 1 if when is STARTING else connection.ready)
        assert connection.state is when
        for step in steps:
            step(connection)
        await connection.settled()
        assert connection.state is state
        assert starts(tmp_path / "wire") == lives
        assert connection.restarts == 0


@pytest.mark.parametrize(("step", "state"), [(stop, STOPPED), (restart, RECONNECTING), (start, RECONNECTING)])
async def test_a_pending_retry_obeys_at_once(
    host: HostOf, until: Until, step: Step, state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST", 60)
    async with host(a=hostile("crash-at-start")) as running:
        connection = running.servers["a"]
        await until(lambda: connection.state is RECONNECTING)
        failures = connection.restarts
        step(connection)
        await connection.settled()
        assert connection.state is state
        assert connection.restarts == failures + (state is RECONNECTING)


async def test_a_server_that_will_not_leave_is_not_called_ready_meanwhile(host: HostOf, until: Until) -> None:
    async with host(a=echo("--ignore-eof", "--ignore-sigterm")) as running:
        await running.servers.ready()
        connection = running.servers["a"]
        connection.stop()
        await until(lambda: connection.state is STOPPED)
        assert connection.reason == "closing the connection"
        assert (await running.run("a", "echo", {"text": "x"})).state is CallState.ERROR
        assert connection.reason == ""


async def test_a_call_that_failed_with_its_server_never_finds_it_ready(host: HostOf) -> None:
    async with host(a=hostile("crash-on-call"), policy=ALLOW) as running:
        await running.run("a", "act")
        assert running.servers["a"].state is RECONNECTING
        assert "exited with code 3" in running.servers["a"].reason
        assert running.catalog.tools() == ()


@pytest.mark.hostile("C11")
@pytest.mark.parametrize("fault", [ValueError("secret"), AssertionError("secret")])
async def test_a_fault_in_a_supervisor_stays_there_with_words(host: HostOf, fault: Exception) -> None:
    """And says where it is, but not what was in it."""

    async def open_transport(config: Config, name: str) -> Transport:
        if name == "a":
            raise fault
        return await open_stdio(config, name)

    async with host(a=echo(), b=echo(), policy=ALLOW, dependencies={"open_transport": open_transport}) as running:
        await running.servers.ready()
        assert running.servers["a"].state is FAILED
        assert f"{type(fault).__name__} at test_connection.py" in running.servers["a"].reason
        assert "secret" not in running.servers["a"].reason
        assert (await running.run("b", "echo", {"text": "x"})).state is CallState.DONE


async def test_every_change_of_state_is_an_event(host: HostOf) -> None:
    states: list[ServerState] = []
    running = host(a=echo())
    running.bus.observe(
        lambda event: states.append(running.servers["a"].state) if isinstance(event, ServerChanged) else None
    )
    async with running:
        await running.servers.ready()
    assert list(dict.fromkeys(states)) == [STARTING, READY, STOPPED]


async def test_waiters_are_released_if_supervision_never_began(host: HostOf) -> None:
    async with host(a=echo()) as running:
        call = running.tool_calls.call("a", "echo", {"text": "x"})
        await running.apply(running.config.model_copy(update={"servers": {}}))
        await asyncio.wait_for(running.end_of(call), 20)
    assert call.state is CallState.ERROR
