"""The memory that one more ready server costs mcphost's own process with the screen on."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.process_works import MCPHOST
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal, lonely_environment
from tests.benchmarks.wire_works import ECHO

ALLOWED = 1.0
"""MB for each server beyond the first."""

READY_SECONDS = 60.0


async def idle_servers(sizes: Sizes, runs: int) -> list[Row]:
    return [await asyncio.to_thread(_measure, sizes, max(1, runs // 2))]


def _measure(sizes: Sizes, runs: int) -> Row:
    many = sizes.idle_servers
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(_resident(Path(folder), 1, sizes), _resident(Path(folder), many, sizes)) for _ in range(runs)]
    grown = tuple(Sample((large - small) / (many - 1)) for small, large in pairs)
    note = f"with one server {min(small for small, _ in pairs):.0f} MB"
    name = f"memory of one more ready server, of {many}, {sizes.idle_tools} tools each"
    return Row(name, grown, (Sample(ALLOWED),) * runs, 1.0, unit="MB", note=note)


def _resident(home: Path, servers: int, sizes: Sizes) -> float:
    """MB of the program once all of its servers are ready and it has nothing left to do."""
    words = ", ".join(f'"{word}"' for word in ("-S", "-E", ECHO, "--tools", sizes.idle_tools))
    entry = f'command = "{sys.executable}"\nargs = [{words}]\nstartup_timeout_sec = {READY_SECONDS:g}\n'
    config = home / "idle.toml"
    config.write_text("".join(f"[servers.s{number}]\n{entry}" for number in range(servers)))
    with Terminal((*MCPHOST, "--config", str(config)), lonely_environment(home)) as terminal:
        tools = f"{servers * sizes.idle_tools:,}".replace(",", ",?")
        terminal.wait_for(
            lambda text: re.search(rf"● {servers} ready", text) and re.search(rf"· {tools}\b", text), READY_SECONDS
        )
        terminal.idle(sizes.idle_seconds)
        return terminal.resident()
