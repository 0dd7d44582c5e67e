"""Rows 5 and 6: whole processes, from their start until the first complete frame, or until they ended."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks import bare, bare_app
from tests.benchmarks.measure import Row, Sample, compare
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal, all_of, lonely_environment
from tests.benchmarks.wire_works import ECHO

MCPHOST = (sys.executable, "-m", "mcphost")
FIRST_FRAME = all_of("mcphost", "Calls", "quit")
"""Top line, tabs and footer: the first, a middle and the last line of the main screen, in both apps."""


def _until_first_frame(command: Sequence[str], env: Mapping[str, str]) -> Sample:
    with Terminal(command, env) as terminal:
        return Sample(terminal.wait_for(FIRST_FRAME) - terminal.began)


async def first_frame(sizes: Sizes, runs: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        env = lonely_environment(Path(folder))

        async def take(*command: str) -> Sample:
            return await asyncio.to_thread(_until_first_frame, command, env)

        row = await compare(
            "5 mcphost demo, first frame",
            lambda: take(*MCPHOST, "demo"),
            lambda: take(sys.executable, bare_app.__file__),
            runs,
            1.2,
        )
    return [row]


async def _says_hello(command: Sequence[str], env: Mapping[str, str]) -> Sample:
    began = time.perf_counter()
    child = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=env, cwd=env["HOME"]
    )
    out, err = await child.communicate()
    taken = time.perf_counter() - began
    if child.returncode or b"hello" not in out:
        raise RuntimeError(f"{' '.join(command[1:4])} … exited with {child.returncode}: {(out + err).decode()[-500:]}")
    return Sample(taken)


async def one_call(sizes: Sizes, runs: int) -> list[Row]:
    source = await asyncio.to_thread(Path(bare.__file__).read_text)
    ours = (*MCPHOST, "call", f"stdio:{shlex.join([sys.executable, ECHO])}", "echo", "text=hello", "--yes")
    theirs = (sys.executable, "-c", source, sys.executable, ECHO)
    with tempfile.TemporaryDirectory() as folder:
        env = lonely_environment(Path(folder))
        row = await compare(
            "6 mcphost call, whole process",
            lambda: _says_hello(ours, env),
            lambda: _says_hello(theirs, env),
            runs,
            2.3,
        )
    return [row]
