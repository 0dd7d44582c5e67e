from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from mcphost.errors import ConnectionLost, InvalidResult, MessageTooLarge
from mcphost.protocol.lifecycle.revisions import V2025_03_26
from mcphost.time_slices import ROUNDS, SLICE, SlicedQueue
from mcphost.transports.pipe import Pipe
from mcphost.transports.stdio.process import STDERR_LINE, STDERR_TAIL, ServerProcess
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.conftest import Until
from tests.loop_watchdog import LoopWatchdog
from tests.transports.conftest import Start
from tests.transports.processes import AT_ONCE, FAST, Inbox, Line

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


@pytest.mark.hostile("J05")
@pytest.mark.requirement("TRANS-STDIO-04")
async def test_long_answers_and_byte_by_byte_answers_arrive_whole(start: Start, loop_watchdog: LoopWatchdog) -> None:
    line = await start("hostile.py", "long-line", "--bytes", 5_000_000)
    assert len((await line.call())["content"][0]["text"]) == 5_000_000
    line = await start("hostile.py", "trickle", "--interval", 0)
    assert (await line.call())["content"][0]["text"] == "right \u2028\u2029\x85 ünï €"
    assert loop_watchdog.longest < 0.25


@pytest.mark.hostile("J03")
@pytest.mark.requirement("TRANS-STDIO-05", "MSG-14")
async def test_stray_lines_are_reported_and_skipped(start: Start) -> None:
    line = await start("hostile.py", "garbage-first")
    response = await line.ask("initialize", {"protocolVersion": "2025-11-25"})
    assert response.result is not None
    assert len(line.inbox.problems) == 10  # of eleven lines one is empty
    assert await line.says_right()


@pytest.mark.hostile("J03")
@pytest.mark.slow
async def test_a_flood_of_tiny_lines_is_read_to_its_end(until: Until) -> None:
    """Both outputs at once, a line a byte, and then the program ends."""
    flood = "import os; from threading import Thread as T;\n"
    flood += "write = lambda fd: [os.write(fd, b'y\\n' * 8000) for _ in range(12)] and os.write(fd, b'end\\n')\n"
    flood += "for fd in (1, 2): T(target=write, args=(fd,)).start()"
    line = Line(StdioTransport(Command(sys.executable, ("-S", "-E", "-c", flood)), FAST, dict(os.environ)))
    await line.transport.open(line.inbox)
    await until(lambda: line.inbox.ends)
    await line.transport.aclose()
    assert len(line.inbox.problems) == len(line.inbox.lines) == 12 * 8000 + 1
    assert (line.inbox.problems[-1].data, line.inbox.lines[-1]) == (b"end", "end")


@pytest.mark.hostile("J03")
async def test_a_flood_waits_in_its_pipe_and_leaves_time_for_others(until: Until) -> None:
    """Work longer than a slice is done in several, in order, and the pipe is not read meanwhile."""
    done: list[object] = []

    class Pipe:
        def pause_reading(self) -> None:
            done.append("pause")

        def resume_reading(self) -> None:
            done.append("resume")

    def take(item: int) -> None:
        done.append(item)
        end = time.monotonic() + SLICE / 2
        while time.monotonic() < end:
            pass

    turns = SlicedQueue(take)
    turns.read_from(cast("asyncio.ReadTransport", Pipe()))
    turns.add(range(3))
    turns.add(range(3, 6))
    asyncio.get_running_loop().call_soon(done.append, "others")
    await turns.idle.wait()
    assert [item for item in done if isinstance(item, int)] == [0, 1, 2, 3, 4, 5]
    assert done.index("pause") < done.index("others") < done.index(5)
    assert done[-1] == "resume"


async def test_output_from_before_open_waits_for_it(until: Until) -> None:
    """Even if the program has exited by then."""
    words = 'import sys; print(\'{"jsonrpc":"2.0","method":"n"}\'); print(\'early\', file=sys.stderr)'
    line = Line(StdioTransport(Command(sys.executable, ("-S", "-E", "-c", words)), FAST, dict(os.environ)))
    await line.transport.start()
    await until(lambda: line.transport.report().exit_code == 0)
    assert line.transport.report().stderr_tail == ()
    await line.transport.open(line.inbox)
    await until(lambda: line.inbox.ends)
    await line.transport.aclose()
    assert [message.method for message in line.inbox.messages] == ["n"]
    assert line.inbox.lines == ["early"]


async def test_a_backlog_leaves_many_loop_rounds_between_its_slices() -> None:
    """A key takes several rounds of the event loop until it is painted, and would wait for a turn in each."""
    done: list[object] = []

    def take(item: int) -> None:
        done.append(item)
        end = time.monotonic() + SLICE
        while time.monotonic() < end:
            pass

    def step() -> None:
        done.append("step")
        if len(done) < 100:
            asyncio.get_running_loop().call_soon(step)

    turns = SlicedQueue(take)
    turns.add(range(3))
    step()
    await turns.idle.wait()
    assert [item for item in done if item != "step"] == [0, 1, 2]
    assert done.index(2) - done.index(1) > ROUNDS


@pytest.mark.slow
async def test_a_large_message_is_read_in_slices_and_not_overtaken(until: Until, loop_watchdog: LoopWatchdog) -> None:
    """The last line is cut off by the end of the server."""
    members = "','.join(f'\"{n:x}\":0' for n in range(1_000_000))"
    script = f"import sys; members = {members}\n"
    script += 'for n in (members, \'\', members): print(\'{"jsonrpc":"2.0","method":"n","params":{\' + n + \'}}\')\n'
    script += 'sys.stdout.write(\'{"jsonrpc":"2.0","method":"n","params":{\' + members)'
    line = Line(StdioTransport(Command(sys.executable, ("-S", "-E", "-c", script)), FAST, dict(os.environ)))
    await line.transport.open(line.inbox)
    await until(lambda: line.inbox.ends)
    await line.transport.aclose()
    assert [len(message.params or {}) for message in line.inbox.messages] == [1_000_000, 0, 1_000_000]
    (problem,) = line.inbox.problems
    assert problem.reason.startswith("not JSON")
    assert loop_watchdog.longest < 0.25


@pytest.mark.hostile("J08", "J09")
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
    line = await start("hostile.py", mode)
    for turn in (1, 2):
        assert await line.says_right()
        await until(lambda turn=turn: len(line.inbox.strays) == strays * turn)
        assert len(line.inbox.problems) == problems * turn


@pytest.mark.hostile("J08")
@pytest.mark.requirement("MSG-15")
async def test_equal_ids_of_two_servers_are_kept_apart(start: Start) -> None:
    a, b = await start("echo.py"), await start("echo.py")
    waiting = asyncio.create_task(b.call("sleep", seconds=0.3))
    await asyncio.sleep(0)
    assert (await a.call("echo", text="mine"))["content"][0]["text"] == "mine"
    assert (a.asked, b.asked, waiting.done()) == (1, 1, False)
    assert (await waiting)["content"][0]["text"] == "done"


# One of each kind; the table of all of them is in tests/protocol/wire/test_jsonrpc.py.
INVALID = ("both", "error-string", "result-null", "answer-with-method", "deep-json", "duplicate-keys", "invalid-utf8")


@pytest.mark.hostile("J04", "J06", "J10")
@pytest.mark.requirement("MSG-13", "MSG-14", "MSG-19")
@pytest.mark.parametrize("mode", INVALID)
async def test_an_invalid_answer_fails_its_call_alone(start: Start, mode: str) -> None:
    line = await start("hostile.py", mode)
    with pytest.raises(InvalidResult, match="the server's answer is invalid"):
        await asyncio.wait_for(line.call(), 5)
    assert len(line.inbox.problems) == 1
    assert (await line.call("report"))["content"]
    assert line.transport.pending == 0
    assert not line.inbox.messages


@pytest.mark.hostile("J04", "J07")
@pytest.mark.parametrize("mode", ["bom", "utf-16", "surrogates"])
async def test_odd_encodings_do_not_hide_the_right_answer(start: Start, mode: str) -> None:
    assert await (await start("hostile.py", mode)).says_right()


@pytest.mark.hostile("J01")
@pytest.mark.requirement("LIFE-21")
@pytest.mark.parametrize(("size", "fits"), [(9_900, True), (10_100, False)])
async def test_a_message_over_the_limit_fails_only_its_call(start: Start, until: Until, size: int, fits: bool) -> None:
    line = await start("echo.py", limits=replace(FAST, message_bytes=10_000))
    slow = asyncio.create_task(line.call("sleep", seconds=0.2))
    await asyncio.sleep(0)
    if fits:
        await line.call("big", bytes=size)
    else:
        with pytest.raises(MessageTooLarge, match="over the limit of 10 kB"):
            await line.call("big", bytes=size)
    assert (await slow)["content"][0]["text"] == "done"
    assert len(line.inbox.problems) == (not fits)


@pytest.mark.hostile("J01", "J12")
@pytest.mark.requirement("LIFE-21")
async def test_a_greeting_over_the_limit_is_none(start: Start) -> None:
    small = replace(FAST, message_bytes=10_000)
    line = await start("hostile.py", "long-line", "--at", "initialize", "--bytes", 50_000_000, limits=small)
    with pytest.raises(MessageTooLarge, match="over the limit of 10 kB"):
        await line.ask("initialize", {"protocolVersion": "2025-11-25"})
    assert len(line.inbox.problems[0].data) < 1000


@pytest.mark.hostile("J01", "J02")
async def test_an_endless_line_fails_pending_calls_and_is_not_kept(start: Start, loop_watchdog: LoopWatchdog) -> None:
    line = await start("hostile.py", "no-newline", "--bytes", 30_000_000, limits=replace(FAST, message_bytes=1_000_000))
    outcomes = await asyncio.gather(line.call(), line.ask("ping"), return_exceptions=True)
    assert [(type(outcome), str(outcome)) for outcome in outcomes] == [
        (MessageTooLarge, "the server sent a message over the limit of 1.0 MB, perhaps this answer")
    ] * 2
    assert len(line.inbox.problems[0].data) == 200
    assert loop_watchdog.longest < 0.25


@pytest.mark.hostile("J11")
@pytest.mark.requirement("BATCH-01", "BATCH-04", "BATCH-05", "BATCH-06", "BATCH-07")
@pytest.mark.parametrize(
    ("kind", "messages", "problems"),
    [("good", 2, 0), ("bad-element", 1, 5), ("empty", 0, 1), ("nested", 0, 1), ("huge", 0, 1)],
)
async def test_a_batch_is_unpacked_where_the_revision_has_batches(
    start: Start, loop_watchdog: LoopWatchdog, kind: str, messages: int, problems: int
) -> None:
    line = await start("hostile.py", "batch", "--kind", kind)
    line.transport.agreed(V2025_03_26)
    assert await line.says_right()
    assert (len(line.inbox.messages), len(line.inbox.problems)) == (messages, problems)
    assert loop_watchdog.longest < 0.5


@pytest.mark.hostile("J11")
@pytest.mark.requirement("BATCH-04")
async def test_a_disallowed_batch_fails_only_the_call_it_answers(start: Start) -> None:
    line = await start("hostile.py", "batch")
    with pytest.raises(InvalidResult, match="a batch, which only revision 2025-03-26 has"):
        await line.call()
    assert "only revision 2025-03-26" in line.inbox.problems[0].reason
    assert (await line.call("report"))["content"]
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


class FedPipe(Pipe):
    """A pipe that is fed by hand."""

    def __init__(self, inbox: Inbox) -> None:
        super().__init__(FAST)
        self._inbound = inbox

    async def write(self, line: bytes) -> None:
        raise ConnectionLost("nothing is written to it")


async def test_a_cut_off_line_is_dispatched_before_draining_ends() -> None:
    inbox = Inbox()
    process = ServerProcess(FedPipe(inbox), FAST)
    process.dispatch_to(inbox)
    members = ",".join(f'"{n:x}":0' for n in range(200_000))
    process.pipe_data_received(1, f'{{"jsonrpc":"2.0","method":"n","params":{{{members}'.encode())
    draining = asyncio.create_task(process.drain())
    await asyncio.sleep(0)  # it waits for the pipes, of which nothing is left to be read
    process.pipe_connection_lost(1, None)
    process.pipe_connection_lost(2, None)
    await draining
    assert len(inbox.problems) == 1


@pytest.mark.hostile("S06")
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
async def test_a_crash_fails_pending_calls_with_code_and_stderr(start: Start, kind: str, code: int, says: str) -> None:
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


@pytest.mark.hostile("S06")
@pytest.mark.requirement("TRANS-STDIO-16")
async def test_writing_to_a_closed_stdin_reports_how_the_server_ended(start: Start, until: Until) -> None:
    line = await start("hostile.py", "crash-at-start")
    await until(lambda: len(line.inbox.lines) == 30)
    with pytest.raises(ConnectionLost) as caught:
        await line.call()
    assert caught.value.exit_code == 3
    assert len(caught.value.stderr_tail) == 30


@pytest.mark.hostile("S07")
@pytest.mark.requirement("TRANS-STDIO-10", "TRANS-STDIO-16")
@pytest.mark.parametrize(("mode", "closed"), [("close-stdout", "stdout"), ("close-stdin", "stdin")])
async def test_a_server_that_closes_a_pipe_and_lives_is_lost(
    start: Start, until: Until, mode: str, closed: str
) -> None:
    line = await start("hostile.py", mode, limits=replace(FAST, exit_grace=0.1))
    with suppress(ConnectionLost):  # the one that closes its stdin answers first
        await line.call()
    with pytest.raises(ConnectionLost, match=f"closed its {closed} but its process still runs"):
        await line.call()
    await until(lambda: line.inbox.ends)
    assert line.transport.report().exit_code is None


@pytest.mark.hostile("S07")
@pytest.mark.requirement("TRANS-STDIO-16", "MSG-19")
async def test_a_server_that_stops_reading_is_lost_after_a_while(start: Start, loop_watchdog: LoopWatchdog) -> None:
    line = await start("hostile.py", "stop-reading", limits=replace(FAST, exit_grace=0.1, write_seconds=0.2))
    assert await line.says_right()
    began = time.monotonic()
    outcomes = await asyncio.gather(*(line.call(text="x" * 1_000_000) for _ in range(10)), return_exceptions=True)
    assert {str(outcome) for outcome in outcomes} == {"the server took nothing from its stdin for 0.2 s"}
    await line.transport.aclose()
    assert time.monotonic() - began < 20
    assert loop_watchdog.longest < 0.25


async def test_an_answer_written_before_the_end_still_counts() -> None:
    script = 'print(\'{"jsonrpc":"2.0","id":1,"result":{}}\', end=\'\')'
    transport = StdioTransport(Command(sys.executable, ("-S", "-c", f"input(); {script}")), FAST, os.environ)
    line = Line(transport)
    await transport.open(line.inbox)
    assert (await line.ask("ping")).result == {}
    await transport.aclose()
