"""The cost of servers and models whose output is not on screen: processor time, and bytes written."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.benchmarks import flood
from tests.benchmarks.chat_works import CHAT, chatting, served
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.process_works import FIRST_FRAME
from tests.benchmarks.screen_works import app_of
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal

TOOLS = 100
"""More than the screen has rows, so that their list has a scrollbar."""

CUSTOM = "notifications/x-benchmark"
"""A method of no revision."""

LINE = 50e-6
WORD = 200e-6
FRAME = 2e-3
"""Seconds of processor time allowed for a message, a model's word, and an update of what is hidden."""

UPDATES = 30
"""Of hidden panes in a second."""

WRITTEN = 0.005
"""MB that may be written in all: the top bar changes now and then."""

TRAFFIC = b"\x1bOS"  # f4


async def hidden_panes(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_measure, sizes)


def _measure(sizes: Sizes) -> list[Row]:
    return [*_messages(sizes, "log lines", flood.LOG), *_messages(sizes, "messages", CUSTOM), *_words(sizes)]


def _messages(sizes: Sizes, name: str, method: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        gate = Path(folder) / "gate"
        words = flood.__file__, gate, sizes.hidden_rate, TOOLS, method
        with app_of(Path(folder), "flood", *words, ui='log_panel = "closed"') as terminal:
            terminal.wait_for(lambda text: FIRST_FRAME(text) and "tool-0020" in text)
            terminal.settle()
            gate.touch()
            terminal.idle(1.0)
            rows = _rows(terminal, sizes, f"hidden {name}", LINE)
            gate.unlink()
    return rows


def _words(sizes: Sizes) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, served() as (model, port), chatting(Path(folder), port) as terminal:
        terminal.wait_for(lambda text: "ready" in text)
        terminal.press(CHAT)
        terminal.wait_for(lambda text: "enter sends" in text)
        terminal.press(b"question\r")
        terminal.wait_for(lambda text: "question" in text)
        terminal.press(TRAFFIC)
        terminal.settle()
        model.say_at(sizes.hidden_rate, sizes.hidden_seconds)
        rows = _rows(terminal, sizes, "hidden words of a model", WORD)
        model.texts.put(None)
    return rows


def _rows(terminal: Terminal, sizes: Sizes, work: str, each: float) -> list[Row]:
    count = int(sizes.hidden_rate * sizes.hidden_seconds)
    taken, written = terminal.cost(sizes.hidden_seconds)
    allowed = Sample(count * each + sizes.hidden_seconds * UPDATES * FRAME)
    return [
        Row(f"processor time, {count:,} {work}", (taken,), (allowed,), 1.0),
        Row(f"written, {count:,} {work}", (Sample(written / 1e6),), (Sample(WRITTEN),), 1.0, unit="MB"),
    ]
