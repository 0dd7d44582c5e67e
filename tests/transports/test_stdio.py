from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ConnectionLost, InvalidResult, SpawnFailed
from mcphost.protocol.jsonrpc import Malformed, Notification, Request, Response
from mcphost.transports.base import Limits
from mcphost.transports.stdio import STDERR_LINE, STDERR_TAIL, Command, StdioTransport, child_environment, exit_text
from tests.conftest import LoopWatchdog, PythonServer, Until

FAST = Limits(exit_grace=1.0)
AT_ONCE = 0.45
"""Seconds in which the end of a server must be told: less than any limit that could tell it instead."""


class Inbox:
    """Keeps what arrives unasked."""

    def __init__(self) -> None:
        self.messages: list[Request | Notification] = []
        self.problems: list[Malformed] = []
        self.strays: list[Response] = []
        self.lines: list[str] = []
        self.ends: list[Exception] = []
        self.message = self.messages.append
        self.malformed = self.problems.append
        self.unmatched = self.strays.append
        self.stderr = self.lines.append
        self.closed = self.ends.append


@dataclass
class Line:
    """A started server, and what it said."""

    transport: StdioTransport
    inbox: Inbox = field(default_factory=Inbox)
    asked: int = 0

    @property
    def pid(self) -> int:
        pid = self.transport.report().pid
        assert pid
        return pid

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Response:
        self.asked += 1
        return await self.transport.request(Request(self.asked, method, params), {})

    async def call(self, tool: str = "act", **arguments: Any) -> dict[str, Any]:
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert response.result is not None
        return dict(response.result)

    async def says_right(self, tool: str = "act") -> bool:
        content: list[dict[str, str]] = (await self.call(tool))["content"]
        return content[0]["text"].startswith("right")


Start = Callable[..., Awaitable[Line]]


@pytest.fixture
async def start(python_server: PythonServer, until: Until) -> AsyncIterator[Start]:
    """`await start("hostile.py", "nan", ...)`: a running server; when the test ends nothing of its group is left."""
    lines: list[Line] = []

    async def run(script: str, *args: object, limits: Limits = FAST, environ: Any = None, **more: Any) -> Line:
        line = Line(StdioTransport(python_server(script, *args, **more), limits, environ or dict(os.environ)))
        await line.transport.open(line.inbox)
        lines.append(line)
        return line

    yield run
    await asyncio.gather(*(line.transport.aclose() for line in lines))
    await until(lambda: not any(members(line.pid) for line in lines), seconds=1)


def members(group: int) -> list[int]:
    """The processes of a group that still run; one that waits to be reaped does not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp, *_ = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(pgrp) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


# Messages


@pytest.mark.requirement("TRANS-STDIO-01", "TRANS-STDIO-02", "TRANS-STDIO-03", "MSG-12", "TRANS-02")
async def test_many_senders_at_once_write_whole_lines_of_utf8(start: Start, tmp_path: Path) -> None:
    record = tmp_path / "record"
    line = await start("echo.py", "--record", record)
    words = "héllo\n世界 🚀 \u2028\r\n" * 1000
    results = await asyncio.gather(*(line.call("echo", text=f"{number} {words}") for number in range(100)))
    assert [result["content"][0]["text"] for result in results] == [f"{number} {words}" for number in range(100)]
    written = record.read_bytes().split(b"\n")[:-1]
    assert [json.loads(message.decode("utf-8"))["method"] for message in written] == ["tools/call"] * 100


@pytest.mark.requirement("TRANS-STDIO-04")
async def test_long_answers_and_byte_by_byte_answers_arrive_whole(start: Start, loop_watchdog: LoopWatchdog) -> None:
    """J05"""
    line = await start("hostile.py", "long-line", "--bytes", 5_000_000)
    assert len((await line.call())["content"][0]["text"]) == 5_000_000
    line = await start("hostile.py", "trickle", "--interval", 0)
    assert (await line.call())["content"][0]["text"] == "right \u2028\u2029\x85 ünï €"
    assert loop_watchdog.longest < 0.25


@pytest.mark.requirement("TRANS-STDIO-05", "MSG-14")
async def test_stray_lines_are_reported_and_skipped(start: Start) -> None:
    """J03"""
    line = await start("hostile.py", "garbage-first")
    response = await line.ask("initialize", {"protocolVersion": "2025-11-25"})
    assert response.result is not None
    assert len(line.inbox.problems) == 10  # of eleven lines one is empty
    assert await line.says_right()


@pytest.mark.requirement("MSG-15", "MSG-13")
@pytest.mark.parametrize(
    ("mode", "strays", "problems"),
    [
        ("wrong-id", 1, 0),
        ("next-id", 1, 0),
        ("string-id", 1, 0),
        ("float-id", 0, 1),
        ("bool-id", 0, 1),
        ("null-id", 0, 1),
        ("list-id", 0, 1),
        ("answer-twice", 1, 0),
    ],
)
async def test_an_answer_completes_the_one_call_whose_id_it_bears(
    start: Start, until: Until, mode: str, strays: int, problems: int
) -> None:
    """J08, J09"""
    line = await start("hostile.py", mode)
    for turn in (1, 2):
        assert await line.says_right()
        await until(lambda turn=turn: len(line.inbox.strays) == strays * turn)
        assert len(line.inbox.problems) == problems * turn


# One of each kind; the table of all of them is in tests/protocol/test_jsonrpc.py.
INVALID = ("both", "error-string", "result-null", "answer-with-method", "deep-json", "duplicate-keys", "invalid-utf8")


@pytest.mark.requirement("MSG-13", "MSG-14", "MSG-19")
@pytest.mark.parametrize("mode", INVALID)
async def test_an_invalid_answer_fails_its_call_at_once_and_the_next_one_works(start: Start, mode: str) -> None:
    """J04, J06, J10"""
    line = await start("hostile.py", mode)
    with pytest.raises(InvalidResult, match="the server's answer is invalid"):
        await asyncio.wait_for(line.call(), 5)
    assert len(line.inbox.problems) == 1
    assert (await line.call("report"))["content"]
    assert line.transport.pending == 0
    assert not line.inbox.messages


@pytest.mark.parametrize("mode", ["bom", "utf-16", "surrogates"])
async def test_odd_encodings_do_not_hide_the_right_answer(start: Start, mode: str) -> None:
    """J04, J07"""
    assert await (await start("hostile.py", mode)).says_right()


@pytest.mark.requirement("LIFE-21")
@pytest.mark.parametrize(("size", "fits"), [(9_900, True), (10_100, False)])
async def test_a_message_over_the_limit_fails_the_call_it_answers_and_no_other(
    start: Start, until: Until, size: int, fits: bool
) -> None:
    """J01"""
    line = await start("echo.py", limits=replace(FAST, message_bytes=10_000))
    slow = asyncio.create_task(line.call("sleep", seconds=0.2))
    await asyncio.sleep(0)
    if fits:
        await line.call("big", bytes=size)
    else:
        with pytest.raises(InvalidResult, match="over the limit of 10000 bytes"):
            await line.call("big", bytes=size)
    assert (await slow)["content"][0]["text"] == "done"
    assert len(line.inbox.problems) == (not fits)


async def test_bytes_without_end_fail_whoever_waits_and_are_not_kept(start: Start, loop_watchdog: LoopWatchdog) -> None:
    """J01, J02"""
    line = await start("hostile.py", "no-newline", "--bytes", 30_000_000, limits=replace(FAST, message_bytes=1 << 20))
    outcomes = await asyncio.gather(line.call(), line.ask("ping"), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == [
        "the server sent a message over the limit of 1 MiB, perhaps this answer"
    ] * 2
    assert len(line.inbox.problems[0].data) == 200
    assert loop_watchdog.longest < 0.25


@pytest.mark.requirement("BATCH-01", "BATCH-04", "BATCH-05", "BATCH-06", "BATCH-07")
@pytest.mark.parametrize(
    ("kind", "messages", "problems"),
    [("good", 2, 0), ("bad-element", 1, 5), ("empty", 0, 1), ("nested", 0, 1), ("huge", 0, 1)],
)
async def test_a_batch_is_unpacked_where_the_revision_has_batches(
    start: Start, loop_watchdog: LoopWatchdog, kind: str, messages: int, problems: int
) -> None:
    """J11"""
    line = await start("hostile.py", "batch", "--kind", kind)
    line.transport.batches = True
    assert await line.says_right()
    assert (len(line.inbox.messages), len(line.inbox.problems)) == (messages, problems)
    assert loop_watchdog.longest < 0.5


@pytest.mark.requirement("BATCH-04")
async def test_a_batch_where_there_are_none_is_a_problem_and_no_more(start: Start, until: Until) -> None:
    """J11"""
    line = await start("hostile.py", "batch")
    call = asyncio.create_task(line.call())
    await until(lambda: line.inbox.problems)
    assert "only revision 2025-03-26" in line.inbox.problems[0].reason
    assert (await line.call("report"))["content"]
    call.cancel()
    await asyncio.wait([call])
    assert line.transport.pending == 0


# Standard error


@pytest.mark.requirement("TRANS-STDIO-06", "TRANS-STDIO-07", "TRANS-STDIO-08")
async def test_stderr_is_drained_kept_in_lines_and_is_no_failure(start: Start) -> None:
    line = await start("echo.py")
    result = await line.call("stderr", bytes=4_000_000, text="something to read")
    assert result["content"][0]["text"] == "wrote 4000000 bytes"
    await line.call("stderr", bytes=100_001, text="x" * 100_000)
    await line.call("stderr", bytes=8, text="caf\udce9 \x1b")
    assert line.inbox.lines[0] == "something to read"
    assert max(map(len, line.inbox.lines)) < STDERR_LINE + 9
    assert len(line.transport.report().stderr_tail) == STDERR_TAIL
    assert line.inbox.ends == []
    assert await line.call("echo", text="alive")


# The end of a server


@pytest.mark.requirement("TRANS-STDIO-10", "LIFE-27", "MSG-19")
@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("exit", 3, "exited with code 3"),
        ("half", 3, "exited with code 3"),
        ("segv", -signal.SIGSEGV, "was ended by SIGSEGV"),
        ("kill", -signal.SIGKILL, "was ended by SIGKILL"),
    ],
)
async def test_a_crash_fails_all_that_wait_with_exit_code_and_last_words(
    start: Start, kind: str, code: int, says: str
) -> None:
    """S06"""
    line = await start("hostile.py", "crash-on-call", "--kind", kind, "--count", 2)
    assert await line.says_right()
    began = time.monotonic()
    outcomes = await asyncio.gather(*(line.call() for _ in range(3)), return_exceptions=True)
    assert time.monotonic() - began < AT_ONCE
    for lost in outcomes:
        assert isinstance(lost, ConnectionLost)
        assert (str(lost), lost.exit_code) == (f"the server {says}", code)
        if code > 0:
            assert lost.stderr_tail[-1] == "last words 30 of 30"
    with pytest.raises(ConnectionLost, match=says):
        await line.call()
    assert [str(end) for end in line.inbox.ends] == [f"the server {says}"]
    assert line.transport.report().exit_code == code
    assert line.transport.pending == 0


@pytest.mark.requirement("TRANS-STDIO-16")
async def test_a_writer_that_finds_stdin_closed_hears_how_the_server_ended(start: Start, until: Until) -> None:
    """S06"""
    line = await start("hostile.py", "crash-at-start")
    await until(lambda: len(line.inbox.lines) == 30)
    with pytest.raises(ConnectionLost) as caught:
        await line.call()
    assert caught.value.exit_code == 3
    assert len(caught.value.stderr_tail) == 30


@pytest.mark.requirement("TRANS-STDIO-10", "TRANS-STDIO-16")
@pytest.mark.parametrize(("mode", "closed"), [("close-stdout", "stdout"), ("close-stdin", "stdin")])
async def test_a_server_that_closes_a_pipe_and_lives_is_lost(
    start: Start, until: Until, mode: str, closed: str
) -> None:
    """S07"""
    line = await start("hostile.py", mode, limits=replace(FAST, exit_grace=0.1))
    with suppress(ConnectionLost):  # the one that closes its stdin answers first
        await line.call()
    with pytest.raises(ConnectionLost, match=f"closed its {closed} but its process still runs"):
        await line.call()
    await until(lambda: line.inbox.ends)
    assert line.transport.report().exit_code is None


@pytest.mark.requirement("TRANS-STDIO-16", "MSG-19")
async def test_a_server_that_stops_reading_is_lost_after_a_while_and_blocks_nobody(
    start: Start, loop_watchdog: LoopWatchdog
) -> None:
    """S07"""
    line = await start("hostile.py", "stop-reading", limits=replace(FAST, exit_grace=0.1, write_seconds=0.2))
    assert await line.says_right()
    began = time.monotonic()
    outcomes = await asyncio.gather(*(line.call(text="x" * 1_000_000) for _ in range(10)), return_exceptions=True)
    assert {str(outcome) for outcome in outcomes} == {"the server took nothing from its stdin for 0.2 s"}
    await line.transport.aclose()
    assert time.monotonic() - began < 2
    assert loop_watchdog.longest < 0.25


async def test_an_answer_written_before_the_end_still_counts() -> None:
    script = 'print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', end=\'\')'
    transport = StdioTransport(Command(sys.executable, ("-S", "-c", f"input(); {script}")), FAST, os.environ)
    line = Line(transport)
    await transport.open(line.inbox)
    assert (await line.ask("ping")).result == {}
    await transport.aclose()


# Stopping a server


@pytest.mark.requirement("TRANS-STDIO-09", "LIFE-15")
@pytest.mark.parametrize(
    ("options", "grace", "seen", "code"),
    [
        ((), 5, "EOF", 0),
        (("--exit-delay", 0.2), 5, "EOF", 0),
        (("--ignore-eof",), 0.1, "EOF SIGTERM", -signal.SIGTERM),
        (("--ignore-eof", "--ignore-sigterm"), 0.1, "EOF SIGTERM", -signal.SIGKILL),
    ],
    ids=["at once", "slow", "ignores its end", "ignores all"],
)
async def test_stopping_closes_stdin_then_terminates_then_kills(
    start: Start, tmp_path: Path, options: tuple[object, ...], grace: float, seen: str, code: int
) -> None:
    """S01, S02"""
    record = tmp_path / "record"
    line = await start("echo.py", "--record", record, *options, limits=Limits(exit_grace=grace))
    await line.call("echo", text="started")
    began = time.monotonic()
    await line.transport.aclose()
    assert time.monotonic() - began < 1.5
    assert record.read_text().split("\n")[1:-1] == seen.split()
    assert line.transport.report().exit_code == code
    assert line.inbox.ends == []


async def test_stubborn_servers_are_stopped_side_by_side(start: Start, loop_watchdog: LoopWatchdog) -> None:
    """S01"""
    stubborn = ("echo.py", "--ignore-eof", "--ignore-sigterm")
    lines = [await start(*stubborn, limits=Limits(exit_grace=0.2)) for _ in range(6)]
    for line in lines:
        await line.call("echo", text="started")
    os.kill(lines[0].pid, signal.SIGSTOP)
    began = time.monotonic()
    await asyncio.gather(*(line.transport.aclose() for line in lines))
    assert time.monotonic() - began < 1.2
    assert {line.transport.report().exit_code for line in lines} == {-signal.SIGKILL}
    assert loop_watchdog.longest < 0.25


@pytest.mark.requirement("TRANS-STDIO-15", "LIFE-23")
@pytest.mark.parametrize("ignore_sigterm", [False, True])
@pytest.mark.parametrize("leader_dies", [False, True])
async def test_what_a_server_started_ends_with_it(
    start: Start, until: Until, ignore_sigterm: bool, leader_dies: bool
) -> None:
    """S03"""
    line = await start("echo.py")
    child: int = (await line.call("children", ignore_sigterm=ignore_sigterm))["structuredContent"]["pid"]
    assert child in members(line.pid)
    if leader_dies:
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match="exited with code 7"):  # although the child holds its stdout
            await line.call("exit", code=7)
        assert time.monotonic() - began < AT_ONCE
        assert members(line.pid) == [child]
    await line.transport.aclose()
    await until(lambda: not members(line.pid), seconds=1)


async def test_closing_is_once_for_all_and_nothing_is_sent_or_heard_after_it(start: Start) -> None:
    line = await start("echo.py", "--exit-delay", 0.1)
    slow = asyncio.create_task(line.call("sleep", seconds=5))
    await line.call("echo", text="started")
    first = asyncio.create_task(line.transport.aclose())
    await asyncio.sleep(0)
    with pytest.raises(ConnectionLost, match="closed by mcphost"):
        await slow
    first.cancel()
    await line.transport.aclose()
    assert line.transport.report().exit_code == 0
    for late in (line.call("echo", text="late"), line.transport.send(Notification("late"))):
        with pytest.raises(ConnectionLost, match="closed by mcphost"):
            await late
    assert line.inbox.ends == []


@pytest.mark.requirement("LIFE-23")
@pytest.mark.parametrize("turns", range(5))
async def test_a_start_that_is_given_up_leaves_no_process(
    python_server: PythonServer, until: Until, turns: int
) -> None:
    transport = StdioTransport(python_server("echo.py"), FAST, os.environ)
    opening = asyncio.create_task(transport.open(Inbox()))
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    await transport.aclose()
    await until(lambda: not Path(f"/proc/self/task/{os.getpid()}/children").read_text(), seconds=1)


@pytest.mark.requirement("LIFE-23")
def test_a_host_that_forgets_to_close_leaves_no_server(python_server: PythonServer, tmp_path: Path) -> None:
    """S05"""
    server = python_server("echo.py", "--ignore-eof", "--ignore-sigterm")
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from mcphost.transports.base import Limits
from mcphost.transports.stdio import Command, StdioTransport
from tests.transports.test_stdio import Inbox
async def main():
    transport = StdioTransport(Command({server.program!r}, {list(server.args)!r}), Limits(), {{}})
    await transport.open(Inbox())
    print(transport.report().pid, flush=True)
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    group = int(ran.stdout)
    end = time.monotonic() + 1
    while members(group) and time.monotonic() < end:
        os.sched_yield()
    assert not members(group)


# Starting a server


@pytest.mark.requirement("TRANS-STDIO-14", "TRANS-STDIO-12")
async def test_a_server_gets_the_harmless_variables_and_the_configured_ones(start: Start) -> None:
    """S08"""
    host = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "AWS_SECRET_ACCESS_KEY": "a",
        "OPENAI_API_KEY": "b",
        "SSH_AUTH_SOCK": "c",
        "PYTHONPATH": "d",
        "LD_PRELOAD": "/e",
    }
    line = await start("echo.py", environ=host, env={"TOKEN": "s3cret", "HOME": "/elsewhere"})
    found = (await line.call("environment", names=["TOKEN", "HOME"]))["structuredContent"]
    assert set(found["keys"]) - {"LC_CTYPE"} == {"PATH", "HOME", "LC_ALL", "TOKEN"}
    assert found["values"] == {"TOKEN": "s3cret", "HOME": "/elsewhere"}
    assert "s3cret" not in repr(line.transport.report())
    assert child_environment(Command("x"), {"USER": "u", "LC_TIME": "t", "XDG_SESSION_ID": "1"}) == {
        "USER": "u",
        "LC_TIME": "t",
    }


async def test_a_server_has_no_terminal_and_no_descriptor_but_its_pipes(start: Start) -> None:
    """T13, S08"""
    inherited = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    line = await start("hostile.py", "tty")
    os.close(inherited)
    found = (await line.call())["structuredContent"]
    assert found["tty"].startswith("refused")
    assert found["session"] == found["group"] == found["pid"] == line.pid
    assert (found["descriptors"], found["isatty"]) == ([0, 1, 2], [])


async def test_a_server_runs_in_its_folder_and_by_its_absolute_name(tmp_path: Path, until: Until) -> None:
    """S09"""
    program = tmp_path / "bin dir" / "serve; touch harm"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport os, sys\nprint(os.getcwd(), sys.argv[1:], file=sys.stderr)\n")
    program.chmod(0o755)
    (tmp_path / "work").mkdir()
    command = Command(program.name, ("$HOME", "a b", "`id`"), cwd=tmp_path / "work")
    transport = StdioTransport(command, FAST, {"PATH": str(program.parent)})
    inbox = Inbox()
    await transport.open(inbox)
    await until(lambda: inbox.lines and inbox.ends)
    assert inbox.lines == [f"{tmp_path / 'work'} ['$HOME', 'a b', '`id`']"]
    assert transport.report().command == (str(program), "$HOME", "a b", "`id`")
    await transport.aclose()
    assert os.listdir(tmp_path / "work") == []


@pytest.mark.requirement("TRANS-STDIO-16")
@pytest.mark.parametrize(
    ("program", "more", "says"),
    [
        ("no-such-program-here", {}, "no-such-program-here is not installed, or in none of the folders of PATH"),
        ("./missing", {}, "./missing does not exist or may not be run"),
        ("./plain.txt", {}, "does not exist or may not be run"),
        ("./no-interpreter", {}, "could not be started: "),
        ("planted", {}, "planted is not installed"),
        ("sh", {"cwd": Path("nowhere")}, "the folder nowhere does not exist; correct cwd"),
        ("sh", {"args": ("a\0b",)}, "could not be started: embedded null byte"),
        ("sh", {"env": {"A=B": "c"}}, "could not be started: illegal environment variable name"),
    ],
)
async def test_a_server_that_cannot_start_says_why(
    tmp_path: Path, program: str, more: dict[str, Any], says: str
) -> None:
    """S09 (a program planted in the working directory is not found through an empty or relative PATH entry)"""
    (tmp_path / "plain.txt").write_text("")
    for name, first in (("no-interpreter", "#!/no/such/thing"), ("planted", "#!/bin/sh")):
        (tmp_path / name).write_text(f"{first}\n")
        (tmp_path / name).chmod(0o755)
    transport = StdioTransport(Command(program, **more), FAST, {"PATH": ":.:/usr/bin:/bin:"})
    with pytest.raises(SpawnFailed) as caught:
        await transport.open(Inbox())
    assert says in str(caught.value)
    await transport.aclose()
    with pytest.raises(ConnectionLost):
        await transport.send(Notification("x"))


def test_an_exit_is_told_in_words() -> None:
    assert [exit_text(code) for code in (0, 127, -9, -99)] == [
        "exited with code 0",
        "exited with code 127",
        "was ended by SIGKILL",
        "was ended by signal 99",
    ]
