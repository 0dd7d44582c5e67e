"""For information: how soon a model's words are on screen, whether keys are heard while it writes, and how soon a long
conversation is looked through.

The model is a local server with a script; time is from when its bytes were written to its socket, or the
key to the terminal, until the frame that shows it was read.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue

from mcphost.host.bench.statistics import percentile
from mcphost.host.chat.preferences import ChatSettings
from mcphost.host.chat.transcript_store import all_records
from mcphost.host.chat.turns import ModelRound, Turn, TurnState, UserMessage
from tests.benchmarks.measure import Row, Sample
from tests.benchmarks.process_works import MCPHOST
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.terminal import Terminal, lonely_environment

FIRST_TOKEN = 0.03
KEY = 0.1
"""Seconds promised, p95."""

WORDS = 40
WRITTEN = 0.06
"""Megabytes promised for so many words of an answer. A repaint of the conversation for each would write 0.35."""

CHAT, CHATS = b"\x1b[15~", b"\x1b[19~"  # f5, f8
PAGE_UP, END = b"\x1b[5~", b"\x1b[F"


class Model:
    """Sends each given text as one event; None ends an answer."""

    def __init__(self) -> None:
        self.texts: SimpleQueue[str | None] = SimpleQueue()
        self.said = 0.0
        """When the last one was written."""

    def say_at(self, rate: int, seconds: float) -> None:
        """Say words at this rate from now on, for so long, in a thread."""

        def say() -> None:
            began = time.monotonic()
            for number in range(int(rate * seconds)):
                self.texts.put(f"word{number} " if number % 20 else "\n\n")
                time.sleep(max(0.0, began + number / rate - time.monotonic()))

        threading.Thread(target=say, daemon=True).start()


async def words_of_a_model(sizes: Sizes, runs: int) -> list[Row]:
    return await asyncio.to_thread(_measure, sizes)


def _measure(sizes: Sizes) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, served() as (model, port), chatting(Path(folder), port) as terminal:
        terminal.wait_for(lambda text: "ready" in text)
        terminal.press(CHAT)
        terminal.wait_for(lambda text: "enter sends" in text)
        terminal.idle(1.0)
        firsts = [_first_token(terminal, model, number) for number in range(sizes.tokens)]
        keys = _keys_while_it_writes(terminal, model, sizes)
        taken, written = _cost_of_words(terminal, model)
    pages = _pages(sizes)
    return [
        *_rows("first token to paint", firsts, FIRST_TOKEN),
        *_rows(f"key to paint, {sizes.deltas:,} deltas", keys, KEY),
        Row(f"processor time, {WORDS} words", (taken,)),
        Row(f"written, {WORDS} words", (Sample(written / 1e6),), (Sample(WRITTEN),), 1.0, unit="MB"),
        *_rows(f"page back, {sizes.turns:,} turns", pages, KEY),
    ]


def _first_token(terminal: Terminal, model: Model, number: int) -> float:
    terminal.press(f"q{number}\r".encode())
    terminal.wait_for(lambda text: f"▌ q{number}" in text)
    terminal.idle(0.3)
    word = f"token{number:04}"
    model.texts.put(word)
    seen = terminal.wait_for(lambda text: word in text)
    taken = seen - model.said
    model.texts.put(None)
    terminal.idle(0.2)
    return taken


def _keys_while_it_writes(terminal: Terminal, model: Model, sizes: Sizes) -> list[float]:
    terminal.press(b"flood\r")
    terminal.idle(0.3)
    for number in range(sizes.deltas):
        model.texts.put(f"**w{number}** and " if number % 20 else "\n\n")
    times = []
    for number in range(min(sizes.keys, 40)):
        letter = "zvjx"[number % 4]
        pressed = terminal.press(letter.encode())
        times.append(terminal.wait_for(partial(re.search, letter), 5) - pressed)
        terminal.idle(0.03)
    model.texts.put(None)
    return times


def _cost_of_words(terminal: Terminal, model: Model) -> tuple[Sample, float]:
    """Return the processor time, and the bytes written, for words that come one by one."""
    terminal.idle(0.5)
    terminal.press(b"words\r")
    terminal.idle(0.5)
    model.say_at(20, WORDS / 20)
    cost = terminal.cost(WORDS / 20 + 0.5)
    model.texts.put(None)
    return cost


def _pages(sizes: Sizes) -> list[float]:
    """A kept conversation is taken up, and looked through from its end."""
    with tempfile.TemporaryDirectory() as folder:
        _keep(Path(folder), sizes.turns)
        with chatting(Path(folder), 9) as terminal:
            terminal.wait_for(lambda text: "ready" in text)
            terminal.press(CHAT)
            terminal.wait_for(lambda text: "enter sends" in text)
            terminal.press(CHATS)
            terminal.wait_for(lambda text: "question 1 " in text)
            terminal.press(END + b"\r")
            terminal.wait_for(lambda text: f"question {sizes.turns} " in text)
            terminal.idle(0.5)
            terminal.press(b"\x1b")
            terminal.idle(0.5)
            return [_page_back(terminal) for _ in range(sizes.pages)]


def _page_back(terminal: Terminal) -> float:
    pressed = terminal.press(PAGE_UP)
    taken = terminal.wait_for(lambda text: re.search(r"question \d", text), 5) - pressed
    terminal.idle(0.05)
    return taken


def _keep(home: Path, turns: int) -> None:
    """Return the records of an earlier run."""
    chats = home / "state" / "mcphost" / "chats"
    chats.mkdir(parents=True)
    answer = "**Some** words, `code` and a list:\n\n" + "\n".join(f"- item {number}" for number in range(8))
    said = [
        Turn(number, UserMessage(f"question {number} of many"), [ModelRound("big")]) for number in range(1, turns + 1)
    ]
    for turn in said:
        turn.rounds[0].say(answer)
        turn.rounds[0].stop_reason, turn.state = "endTurn", TurnState.DONE
    records = all_records("20260101-000000-abcdef", None, ChatSettings(), said)
    (chats / "20260101-000000-abcdef.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))


def _rows(work: str, times: list[float], promised: float) -> list[Row]:
    limit = (Sample(promised),)
    return [
        Row(f"{work}, p{share}", (Sample(percentile(times, share)),), limit, note=f"{len(times)} times")
        for share in (50, 95)
    ]


def chatting(home: Path, port: int) -> Terminal:
    config = home / "benchmark.toml"
    config.write_text(
        f'[models.big]\nprovider = "openai"\nmodel = "said"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
        '[servers.none]\ncommand = "true"\nenabled = false\n'
    )
    return Terminal((*MCPHOST, "--config", str(config)), lonely_environment(home))


@contextmanager
def served() -> Iterator[tuple[Model, int]]:
    model = Model()

    class Speaks(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            while (text := model.texts.get()) is not None:
                self._say({"content": text}, None)
            self._say({}, "stop")
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True

        def _say(self, delta: dict[str, str], reason: str | None) -> None:
            chunk = {"id": "1", "object": "chat.completion.chunk", "model": "said",
                     "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}  # fmt: skip
            data = f"data: {json.dumps(chunk)}\n\n".encode()
            model.said = time.perf_counter()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Speaks)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield model, server.server_address[1]
    finally:
        model.texts.put(None)
        server.shutdown()
        server.server_close()
