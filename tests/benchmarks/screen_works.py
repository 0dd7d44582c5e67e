"""For information: how the real screen answers keys under a flood, and over a long list. Time is from writing the key
to the terminal until the frame that shows its effect was read."""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.benchmarks import flood
from tests.benchmarks.measure import Row, Sample, percentile
from tests.benchmarks.process_works import FIRST_FRAME, MCPHOST
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal, lonely_environment
from tests.benchmarks.wire_works import ECHO

A_FRAME = 0.016
FLOODED = 0.05
FILTERED = 0.05
OPENED = 0.1
"""Seconds from key press to paint, p95: while nothing else happens, in a flood of logs, in a filter, of a pane that was
not open before.
"""

PANES = {
    b"e": "handbook",
    b"p": "Report of a watch",
    b"h": "No calls yet",
    b"\x1b[15~": "enter sends",
    b"\x1bOS": "tools/list",
    b"\x1bOR": "kettle",
}
"""The key that opens a pane of the demo, and what it shows."""

UP, DOWN, ERASE = b"\x1b[A", b"\x1b[B", b"\x7f"
FIND, ESCAPE = b"\x10", b"\x1b"
DIGITS = "7531"


async def keys_in_a_flood(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _press_in_flood, sizes)


async def filtering(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _filter, sizes)


async def finding(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _find, sizes)


async def typing(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _type_and_open, sizes)


def _in_folder(work: Callable[[Path, Sizes], list[Row]], sizes: Sizes) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder), sizes)


def _app(home: Path, server: str, *args: object) -> Terminal:
    words = ", ".join(f'"{word}"' for word in args)
    config = home / "benchmark.toml"
    config.write_text(f'[servers.{server}]\ncommand = "{sys.executable}"\nargs = [{words}]\n')
    return Terminal((*MCPHOST, "--config", str(config)), lonely_environment(home))


def _press_in_flood(home: Path, sizes: Sizes) -> list[Row]:
    gate, waits = home / "gate", random.Random(7)
    with _app(home, "flood", flood.__file__, gate, sizes.flood_rate) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and "tool-0020" in text)
        terminal.idle(0.5)
        calm = [_move(terminal, n, waits) for n in range(sizes.keys)]
        before = terminal.resident()
        gate.touch()
        terminal.idle(0.5)
        times = [_move(terminal, n, waits) for n in range(sizes.keys)]
        grown = terminal.resident() - before
        gate.unlink()
    rate = f"{sizes.flood_rate:,} logs/s"
    return [
        *_key_rows("key to paint in a list", calm, A_FRAME),
        *_key_rows(f"key to paint, {rate}", times, FLOODED),
        Row(f"memory growth, {rate}", (Sample(grown),), unit="MB"),
    ]


def _move(terminal: Terminal, number: int, waits: random.Random) -> float:
    """Go down and up between the first two tools, and see the mark before the other one."""
    key, name = (UP, "tool-0001") if number % 2 else (DOWN, "tool-0002")
    mark = re.compile(f"▸[^▸]{{1,20}}?{name}")
    pressed = terminal.press(key)
    taken = terminal.wait_for(mark.search, 5) - pressed
    terminal.idle(waits.uniform(0.03, 0.12))
    return taken


def _filter(home: Path, sizes: Sizes) -> list[Row]:
    total = sizes.tools
    with _app(home, "many", "-S", "-E", ECHO, "--tools", total) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and re.search(rf"· {_number(total)}\b", text))
        terminal.press(b"/")
        terminal.idle(0.5)
        times = [taken for _ in range(sizes.rounds) for taken in _type_and_erase(terminal, total)]
    return _key_rows(f"key to paint, filtering {total:,} tools", times, FILTERED)


def _type_and_erase(terminal: Terminal, total: int) -> list[float]:
    words = [DIGITS[: n + 1] for n in range(len(DIGITS))]
    times = [_narrow(terminal, word[-1].encode(), word, total) for word in words]
    times += [_narrow(terminal, ERASE, word, total) for word in reversed(words[:-1])]
    terminal.press(ERASE)
    terminal.idle(0.3)
    return times


def _narrow(terminal: Terminal, key: bytes, word: str, total: int) -> float:
    left = sum(word in f"{n:04}" for n in range(1, total + 1))
    shown = re.compile(rf"(?<!\d){_number(left)} of {_number(total)}(?!\d)")
    pressed = terminal.press(key)
    taken = terminal.wait_for(shown.search, 5) - pressed
    terminal.idle(0.1)
    return taken


def _find(home: Path, sizes: Sizes) -> list[Row]:
    """Type in the command palette, and see the best hit of each word."""
    total, times = sizes.tools, list[float]()
    digits = f"{total * 3 // 4:04}"
    words = [digits[: n + 1] for n in range(len(digits))]
    with _app(home, "many", "-S", "-E", ECHO, "--tools", total) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and re.search(rf"· {_number(total)}\b", text))
        terminal.idle(0.5)
        for _ in range(sizes.rounds):
            terminal.press(FIND)
            terminal.idle(0.7)
            times += [_best(terminal, word[-1].encode(), word, total) for word in words]
            times += [_best(terminal, ERASE, word, total) for word in reversed(words[:-1])]
            terminal.press(ESCAPE)
            terminal.idle(0.3)
    return _key_rows(f"key to hits among {total:,} tools", times, A_FRAME)


def _best(terminal: Terminal, key: bytes, word: str, total: int) -> float:
    name = next(f"tool-{n:04}" for n in range(1, total + 1) if f"{n:04}".startswith(word))
    pressed = terminal.press(key)
    taken = terminal.wait_for(lambda text: name in text, 5) - pressed
    terminal.idle(0.1)
    return taken


def _number(value: int) -> str:
    return f"(?:{value}|{value:,})"


def _type_and_open(home: Path, sizes: Sizes) -> list[Row]:
    form, chat, opened = list[float](), list[float](), list[float]()
    for number in range(sizes.starts):
        with Terminal((*MCPHOST, "demo"), lonely_environment(home)) as terminal:
            terminal.wait_for(lambda text: FIRST_FRAME(text) and "Brew" in text)
            terminal.idle(1.0)
            opened += [_open(terminal, key, words) for key, words in PANES.items()]
            if number:
                continue
            terminal.press(b"t/keep_logbook\r")
            terminal.wait_for(lambda text: "raw JSON" in text)
            form = _typed(terminal, sizes.keys)
            terminal.press(b"\x1b[15~")
            terminal.wait_for(lambda text: "enter sends" in text)
            chat = _typed(terminal, sizes.keys)
    return [
        *_key_rows("key to paint in a form", form, A_FRAME),
        *_key_rows("key to paint in the chat", chat, A_FRAME),
        *_key_rows("key to paint, a pane opens", opened, OPENED),
    ]


def _open(terminal: Terminal, key: bytes, words: str) -> float:
    pressed = terminal.press(key)
    taken = terminal.wait_for(lambda text: words in text, 5) - pressed
    terminal.idle(0.2)
    return taken


def _typed(terminal: Terminal, keys: int) -> list[float]:
    """Type letters that stand nowhere in what is painted around them."""
    times = list[float]()
    for number in range(keys):
        letter = "qzxjkv"[number % 6]
        pressed = terminal.press(letter.encode())
        times.append(terminal.wait_for(partial(re.search, letter), 5) - pressed)
        terminal.idle(0.05)
    return times


def _key_rows(work: str, times: list[float], bound: float) -> list[Row]:
    limit = (Sample(bound),)
    return [
        Row(f"{work}, p{share}", (Sample(percentile(times, share / 100)),), limit, note=f"{len(times)} keys")
        for share in (50, 95)
    ]
