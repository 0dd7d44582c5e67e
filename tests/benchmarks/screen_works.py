"""For information: how the real screen answers keys under a flood, and over a long list. Time is from writing the key
to the terminal until the frame that shows its effect was read; the note has the program's processor time until then, by
which runs on a busy machine can be compared, too."""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mcphost.host.bench.statistics import percentile
from tests.benchmarks import bare_app, bare_palette, flood, large
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.process_works import FIRST_FRAME, MCPHOST
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal, lonely_environment
from tests.benchmarks.wire_works import ECHO

A_FRAME = 0.016
FLOODED = 0.05
FILTERED = 0.05
OPENED = 0.1
SORTED = 0.1
"""Seconds from key press to paint, p95: while nothing else happens, in a flood of logs, in a filter, of a pane that was
not open before, of a large table in another order.
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

MARKED = "▸[^▸]{{1,20}}?tool-000{}"
"""A tool with the mark of the cursor before it."""

UP, DOWN, ERASE = b"\x1b[A", b"\x1b[B", b"\x7f"
FIND = b"\x10"
DIGITS = "7531"


async def keys_in_a_flood(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _press_in_flood, sizes)


async def filtering(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _filter, sizes)


async def finding(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _find, sizes)


async def typing(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _type_and_open, sizes)


async def sorting(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_in_folder, _sort, sizes)


def _in_folder(work: Callable[[Path, Sizes], list[Row]], sizes: Sizes) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder), sizes)


def app_of(home: Path, server: str, *args: object, ui: str = "") -> Terminal:
    words = ", ".join(f'"{word}"' for word in args)
    config = home / "benchmark.toml"
    config.write_text(f'[servers.{server}]\ncommand = "{sys.executable}"\nargs = [{words}]\n[ui]\n{ui}\n')
    return Terminal((*MCPHOST, "--config", str(config)), lonely_environment(home))


def _press_in_flood(home: Path, sizes: Sizes) -> list[Row]:
    gate, waits = home / "gate", random.Random(7)
    with Terminal((sys.executable, bare_app.__file__), lonely_environment(home)) as terminal:
        terminal.wait_for(lambda text: "tool 3" in text)
        terminal.idle(0.5)
        bare = [_move(terminal, n, waits, "tool {}") for n in range(sizes.keys)]
    with app_of(home, "flood", flood.__file__, gate, sizes.flood_rate) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and "tool-0020" in text)
        terminal.idle(0.5)
        calm = [_move(terminal, n, waits, MARKED) for n in range(sizes.keys)]
        before = terminal.resident()
        gate.touch()
        terminal.idle(0.5)
        times = [_move(terminal, n, waits, MARKED) for n in range(sizes.keys)]
        grown = terminal.resident() - before
        gate.unlink()
    rate = f"{sizes.flood_rate:,} logs/s"
    return [
        *_key_rows("key to paint in a list of a bare app", bare),
        *_key_rows("key to paint in a list", calm, A_FRAME),
        *_key_rows(f"key to paint, {rate}", times, FLOODED),
        Row(f"memory growth, {rate}", (Sample(grown),), unit="MB"),
    ]


def _move(terminal: Terminal, number: int, waits: random.Random, pattern: str) -> Sample:
    """Go down and up between the first two tools, and see the other one painted as ``pattern`` says."""
    key, tool = (UP, 1) if number % 2 else (DOWN, 2)
    taken = terminal.answered(key, re.compile(pattern.format(tool)).search)
    terminal.idle(waits.uniform(0.03, 0.12))
    return taken


def _filter(home: Path, sizes: Sizes) -> list[Row]:
    total = sizes.tools
    with app_of(home, "many", "-S", "-E", ECHO, "--tools", total) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and re.search(rf"· {_number(total)}\b", text))
        terminal.press(b"/")
        terminal.idle(0.5)
        times = [taken for _ in range(sizes.rounds) for taken in _type_and_erase(terminal, total)]
    return _key_rows(f"key to paint, filtering {total:,} tools", times, FILTERED)


def _type_and_erase(terminal: Terminal, total: int) -> list[Sample]:
    words = [DIGITS[: n + 1] for n in range(len(DIGITS))]
    times = [_narrow(terminal, word[-1].encode(), word, total) for word in words]
    times += [_narrow(terminal, ERASE, word, total) for word in reversed(words[:-1])]
    terminal.press(ERASE)
    terminal.idle(0.3)
    return times


def _narrow(terminal: Terminal, key: bytes, word: str, total: int) -> Sample:
    left = sum(word in f"{n:04}" for n in range(1, total + 1))
    shown = re.compile(rf"(?<!\d){_number(left)} of {_number(total)}(?!\d)")
    taken = terminal.answered(key, shown.search)
    terminal.idle(0.1)
    return taken


def _find(home: Path, sizes: Sizes) -> list[Row]:
    """Type in the command palette, and see the best hit of each word."""
    total = sizes.tools
    with Terminal((sys.executable, bare_palette.__file__, str(total)), lonely_environment(home)) as terminal:
        terminal.wait_for(lambda text: "Search" in text)
        bare = _hits(terminal, sizes)
    with app_of(home, "many", "-S", "-E", ECHO, "--tools", total) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and re.search(rf"· {_number(total)}\b", text))
        terminal.idle(0.5)
        terminal.press(FIND)
        times = _hits(terminal, sizes)
    return [
        *_key_rows(f"key to hits among {total:,} names of a bare palette", bare),
        *_key_rows(f"key to hits among {total:,} tools", times, A_FRAME),
    ]


def _hits(terminal: Terminal, sizes: Sizes) -> list[Sample]:
    """Type in a palette that has just been opened."""
    digits, times = f"{sizes.tools * 3 // 4:04}", list[Sample]()
    words = [digits[: n + 1] for n in range(len(digits))]
    for _ in range(sizes.rounds):
        terminal.idle(0.7)
        times += [_best(terminal, word[-1].encode(), word, sizes.tools) for word in words]
        times += [_best(terminal, ERASE, word, sizes.tools) for word in reversed(words[:-1])]
        terminal.press(ERASE)
    return times


def _best(terminal: Terminal, key: bytes, word: str, total: int) -> Sample:
    name = next(f"tool-{n:04}" for n in range(1, total + 1) if f"{n:04}".startswith(word))
    taken = terminal.answered(key, lambda text: name in text)
    terminal.idle(0.1)
    return taken


def _number(value: int) -> str:
    return f"(?:{value}|{value:,})"


def _type_and_open(home: Path, sizes: Sizes) -> list[Row]:
    form, chat, opened = list[Sample](), list[Sample](), list[Sample]()
    for number in range(sizes.starts):
        with Terminal((*MCPHOST, "demo"), lonely_environment(home)) as terminal:
            terminal.wait_for(lambda text: FIRST_FRAME(text) and "Brew" in text)
            terminal.idle(1.0)
            opened += [_open(terminal, key, words) for key, words in PANES.items()]
            if number:
                continue
            terminal.press(b"t/keep_logbook\r")
            terminal.wait_for(lambda text: "raw JSON" in text)
            terminal.idle(0.5)  # or the first letter waits until the form is open
            form = _typed(terminal, sizes.keys)
            terminal.press(b"\x1b[15~")
            terminal.wait_for(lambda text: "enter sends" in text)
            terminal.idle(0.5)
            chat = _typed(terminal, sizes.keys)
    return [
        *_key_rows("key to paint in a form", form, A_FRAME),
        *_key_rows("key to paint in the chat", chat, A_FRAME),
        *_key_rows("key to paint, a pane opens", opened, OPENED),
    ]


def _sort(home: Path, sizes: Sizes) -> list[Row]:
    """Turn the order of a table round."""
    allowed = '[servers.large.tools.answer]\napproval = "allow"'
    with app_of(home, "large", large.__file__, sizes.rows, ui=allowed) as terminal:
        terminal.wait_for(lambda text: FIRST_FRAME(text) and "answer" in text)
        terminal.idle(1.0)
        terminal.press(b"\r")
        terminal.wait_for(lambda text: "raw JSON" in text)
        terminal.idle(0.5)  # or the first letter waits until the form is open
        terminal.press(b"rows\x12")
        terminal.wait_for(lambda text: "ship 00000" in text)
        terminal.idle(0.5)
        terminal.answered(b"o", lambda text: "↑name" in text)
        terminal.idle(0.2)
        times = [_turn(terminal, arrow) for _ in range(sizes.rounds) for arrow in "↓↑"]
    return _key_rows(f"key to paint, sorting a table of {sizes.rows // 50:,} rows", times, SORTED)


def _turn(terminal: Terminal, arrow: str) -> Sample:
    taken = terminal.answered(b"O", lambda text: f"{arrow}name" in text)
    terminal.idle(0.1)
    return taken


def _open(terminal: Terminal, key: bytes, words: str) -> Sample:
    taken = terminal.answered(key, lambda text: words in text)
    terminal.idle(0.2)
    return taken


def _typed(terminal: Terminal, keys: int) -> list[Sample]:
    """Type letters that occur nowhere else on the screen."""
    times = list[Sample]()
    for number in range(keys):
        letter = "qzxjkv"[number % 6]
        times.append(terminal.answered(letter.encode(), partial(re.search, letter)))
        terminal.idle(0.05)
    return times


def _key_rows(work: str, times: list[Sample], bound: float | None = None) -> list[Row]:
    limit = () if bound is None else (Sample(bound),)
    rows = list[Row]()
    for share in (50, 95):
        wall = percentile([each.wall for each in times], share)
        cpu = percentile([each.cpu for each in times], share)
        note = f"{len(times)} keys; processor time {cpu * 1e3:.1f} ms"
        rows.append(Row(f"{work}, p{share}", (Sample(wall, cpu),), limit, note=note))
    return rows
