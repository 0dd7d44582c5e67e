"""The cost of mcphost between an agent and its servers: what a tap or gate adds to the program that it runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from tests.benchmarks.measure import Row, Sample, compare
from tests.benchmarks.process_works import FIRST_FRAME, MCPHOST
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal, lonely_environment
from tests.benchmarks.wire_works import ECHO_COMMAND, HELLO

ADDED_BY_TAP, ADDED_BY_GATE = 0.0003, 0.001
"""Seconds for a message, and for a call with its answer."""

ALLOWED_MEMORY = 4 * 1.048576
"""MB of a tap beyond an interpreter with the same standard modules."""

IDLE = 0.001
"""The part of one processor that still shows as 0 %, for all taps and the screen together."""

AGENT = "benchmark"
MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
SCRIPT = Path(sys.executable).with_name("mcphost")
OURS = (str(SCRIPT),) if SCRIPT.exists() else MCPHOST
"""As `wrap` writes it."""

ECHO_LINES = (sys.executable, "-S", "-E", "-c", "import sys\nfor l in sys.stdin.buffer: sys.stdout.buffer.raw.write(l)")
FLOOD = """
import os
data = (b"x" * 9_999 + b"\\n") * 6
os.write(1, b"\\n")
os.read(0, 1)
for _ in range({}): os.write(1, data)
"""
START = "import subprocess, sys\nsubprocess.call(sys.argv[1:])"
WAIT = "import sys, {}\nprint(flush=True)\nsys.stdin.read()"
STANDARD = """
import mcphost.cli, mcphost.cli.commands.tap, mcphost.places, mcphost.host.traffic.spool, threading, sys
print(*[name for name in sys.modules if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"])
"""
"""Prints the standard modules that a tap loads once something passes without a screen."""


@contextlib.contextmanager
def running(command: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(env), cwd=env["HOME"]
    ) as process:
        yield process


def tap(command: Sequence[str]) -> tuple[str, ...]:
    return (*OURS, "tap", "--", *command)


def gate(command: Sequence[str]) -> tuple[str, ...]:
    return (*OURS, "gate", "--name", "echo", "--as", AGENT, "--", *command)


def answered(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    """Send a line and return the next one that comes."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    return process.stdout.readline()


async def between(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_between, sizes, runs)


def _between(sizes: Sizes, runs: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        env = lonely_environment(Path(folder))
        return [_messages(env, sizes, runs), _calls(env, sizes, runs)]


def _messages(env: Mapping[str, str], sizes: Sizes, runs: int) -> Row:
    line = MESSAGE.replace(b"ping", b"x" * 160)

    def each(process: subprocess.Popen[bytes]) -> float:
        return _mean(sizes.calls, lambda: answered(process, line)) / 2  # there and back

    with running(ECHO_LINES, env) as bare, running(tap(ECHO_LINES), env) as tapped:
        return _added("a message through a tap, added", lambda: each(tapped), lambda: each(bare), ADDED_BY_TAP, runs)


def _calls(env: Mapping[str, str], sizes: Sizes, runs: int) -> Row:
    config = Path(env["HOME"]) / "gate.toml"
    config.write_text(f'[policy]\nallow = ["{AGENT}>echo:echo"]\n')
    env = {**env, "MCPHOST_CONFIG": str(config)}
    client = {"name": AGENT, "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}

    def each(process: subprocess.Popen[bytes]) -> float:
        return _mean(sizes.calls, lambda: _call(process))

    with running(ECHO_COMMAND, env) as bare, running(gate(ECHO_COMMAND), env) as gated:
        for process in (bare, gated):
            answered(process, _encoded("initialize", hello))
            answered(process, _encoded("notifications/initialized", None) + _encoded("tools/list", {}))
        return _added("a gated call, added", lambda: each(gated), lambda: each(bare), ADDED_BY_GATE, runs)


def _call(process: subprocess.Popen[bytes]) -> None:
    answer = answered(process, _encoded("tools/call", {"name": "echo", "arguments": HELLO}))
    if b"hello" not in answer:
        raise RuntimeError(f"the call was not answered: {answer.decode()[:300]}")


def _encoded(method: str, params: Mapping[str, Any] | None) -> bytes:
    members = {"id": 1, "params": params} if params is not None else {}
    return json.dumps({"jsonrpc": "2.0", "method": method, **members}).encode() + b"\n"


def _mean(count: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count


def _added(name: str, ours: Callable[[], float], theirs: Callable[[], float], allowed: float, runs: int) -> Row:
    """The seconds that ours takes longer, beside those that it may."""
    ours()
    theirs()
    pairs = [(ours(), theirs()) for _ in range(runs)]
    note = f"without mcphost {mean(bare for _, bare in pairs) * 1e3:.3f} ms"
    added = tuple(Sample(max(longer - bare, 0.0)) for longer, bare in pairs)
    return Row(name, added, (Sample(allowed),) * runs, 1.0, note=note)


async def tapped_flood(sizes: Sizes, runs: int) -> list[Row]:
    pieces = max(1, sizes.tapped // 60_000)
    command = (sys.executable, "-S", "-E", "-c", FLOOD.format(pieces))
    with tempfile.TemporaryDirectory() as folder:
        env = lonely_environment(Path(folder))

        async def take(command: Sequence[str]) -> Sample:
            return await asyncio.to_thread(_carried, command, env, pieces * 60_000)

        name = f"{sizes.tapped / 1e6:g} MB through a tap"
        return [await compare(name, lambda: take(tap(command)), lambda: take(command), runs, 2.0)]


def _carried(command: Sequence[str], env: Mapping[str, str], size: int) -> Sample:
    with running(command, env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)  # until what a tap loads beside the server is there
        began, left, output = time.perf_counter(), size, process.stdout.fileno()
        process.stdin.write(b"\n")
        process.stdin.flush()
        while left > 0 and (data := os.read(output, 1 << 16)):
            left -= len(data)
        taken = time.perf_counter() - began
    if left:
        raise RuntimeError(f"{left} bytes are missing")
    return Sample(taken)


async def program_starts(sizes: Sizes, runs: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        env, sign = lonely_environment(Path(folder)), Path(folder) / "sign"
        os.mkfifo(sign)
        program = ("sh", "-c", 'echo > "$0"', str(sign))

        async def take(*command: str) -> Sample:
            return await asyncio.to_thread(_until_started, command, env, sign)

        bare = partial(take, sys.executable, "-c", START, *program)
        return [
            await compare("start of a program through a tap", partial(take, *tap(program)), bare, runs * 3, 1.5),
            await compare("start of a program through a gate", partial(take, *gate(program)), bare, runs * 3, 1.5),
        ]


def _until_started(command: Sequence[str], env: Mapping[str, str], sign: Path) -> Sample:
    """Until the program that ``command`` starts writes its sign."""
    reading = os.open(sign, os.O_RDWR)
    try:
        began = time.perf_counter()
        with running(command, env):
            os.read(reading, 1)
            return Sample(time.perf_counter() - began)
    finally:
        os.close(reading)


async def idle_taps(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_idle_taps, sizes, runs)


def _idle_taps(sizes: Sizes, runs: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        env = lonely_environment(Path(folder))
        return [_memory(env, sizes, runs), _idle(env, sizes, runs)]


def _memory(env: Mapping[str, str], sizes: Sizes, runs: int) -> Row:
    """Both at once, since they share pages: a tap that recorded a message, and an interpreter."""
    found = subprocess.run([sys.executable, "-c", STANDARD], capture_output=True, text=True, check=True, env=dict(env))
    plain = (sys.executable, "-c", WAIT.format(", ".join(found.stdout.split())))
    pairs = []
    for _ in range(max(1, runs // 2)):
        with running(tap(ECHO_LINES), env) as tapped, running(plain, env) as bare:
            answered(tapped, b"{}\n")
            answered(bare, b"")
            time.sleep(sizes.idle_seconds)
            pairs.append((_private(tapped.pid), _private(bare.pid)))
    grown = tuple(Sample(ours - theirs) for ours, theirs in pairs)
    note = f"the interpreter has {mean(theirs for _, theirs in pairs):.1f} MB"
    return Row("memory of a tap without a screen", grown, (Sample(ALLOWED_MEMORY),) * len(pairs), 1.0, "MB", note)


def _private(pid: int) -> float:
    """MB of memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024 / 1e6


def _idle(env: Mapping[str, str], sizes: Sizes, runs: int) -> Row:
    count, samples = sizes.idle_taps, []
    with Terminal(MCPHOST, env) as terminal, contextlib.ExitStack() as stack:
        terminal.wait_for(lambda text: "Agents" in text or FIRST_FRAME(text))
        socket = Path(env["XDG_STATE_HOME"]) / "mcphost" / "agents.sock"
        while not socket.exists():
            terminal.idle(0.05)
        taps = [stack.enter_context(running(tap(ECHO_LINES), env)) for _ in range(count)]
        for each in taps:
            answered(each, b"{}\n")
        terminal.idle(1.0)
        terminal.settle()
        for _ in range(runs):
            before = sum(_processor_time(each.pid) for each in taps)
            screen, _ = terminal.cost(sizes.idle_seconds)
            taken = sum(_processor_time(each.pid) for each in taps) - before + screen.cpu
            samples.append(Sample(taken))
    allowed = (Sample(IDLE * sizes.idle_seconds),) * runs
    return Row(f"processor time, {count} idle taps and a screen", tuple(samples), allowed, 1.0)


def _processor_time(pid: int) -> float:
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) names the clock of a process
