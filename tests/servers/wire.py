"""JSON-RPC over stdin and stdout, one message a line, for the scripted servers of this folder.

Knows bytes, lines, the record a test may read and the order in which a process is told to end. Knows no
method and no tool. Standard library only: a script here starts in a few hundredths of a second.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from script_options import TYPE_CHECKING, Options, OptionsParser

if TYPE_CHECKING:
    from typing import Any

Message = dict[str, "Any"]

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LINGER_SECONDS = 60.0  # a server told to ignore its end still ends: a failed test leaves nothing behind

decode = json.JSONDecoder().decode
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
encode_ascii = json.JSONEncoder(separators=(",", ":")).encode


def options_parser(description: str | None) -> OptionsParser:
    """A parser that knows the options every script here understands."""
    parser = OptionsParser(description)
    parser.add_argument("--record", metavar="FILE", help="append each received line, EOF and SIGTERM to FILE")
    parser.add_argument("--ignore-eof", action="store_true", help=f"after EOF live for {LINGER_SECONDS:g} s")
    parser.add_argument("--exit-delay", type=float, default=0.0, metavar="S", help="after EOF live for S seconds")
    parser.add_argument("--ignore-sigterm", action="store_true", help="live on after SIGTERM")
    return parser


def text(words: str, **more: Any) -> Message:
    """The result of a tool call that says `words`."""
    return {"content": [{"type": "text", "text": words}], **more}


class Wire:
    """The two pipes of one server. Sending is safe from any thread."""

    def __init__(self, options: Options) -> None:
        self._stdin, self._stdout = sys.stdin.buffer, sys.stdout.buffer
        self._lock = threading.Lock()
        self._exit_delay: float = LINGER_SECONDS if options.ignore_eof else options.exit_delay
        self._ignore_sigterm: bool = options.ignore_sigterm
        self._record: int | None = None
        if options.record:
            self._record = os.open(options.record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if options.record or options.ignore_sigterm:
            signal.signal(signal.SIGTERM, self._on_sigterm)

    def lines(self) -> Iterator[bytes]:
        """Each line received, its newline included, until the end of input."""
        for line in self._stdin:
            if self._record is not None:
                os.write(self._record, line)
            yield line
        self.note("EOF")

    def note(self, word: str) -> None:
        """Adds a line of our own to the record, if there is one."""
        if self._record is not None:
            os.write(self._record, word.encode() + b"\n")

    def raw(self, data: bytes) -> None:
        """Writes bytes as they are and flushes them."""
        try:
            with self._lock:
                self._stdout.write(data)
                self._stdout.flush()
        except BrokenPipeError:  # the client is gone
            os._exit(1)

    def send(self, message: Any) -> None:
        """Writes any JSON value as one line, in UTF-8 where that is possible."""
        try:
            data = encode(message).encode()
        except UnicodeEncodeError:  # a lone surrogate can only travel as an escape
            data = encode_ascii(message).encode()
        self.raw(data + b"\n")

    def reply(self, request_id: Any, result: Any) -> None:
        """Answers a request."""
        self.send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuse(self, request_id: Any, code: int, words: str, **more: Any) -> None:
        """Answers a request with an error; `data=` goes along if given."""
        self.send({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": words, **more}})

    def notify(self, method: str, params: Message | None = None) -> None:
        """Sends a notification."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    def end(self, code: int = 0) -> None:
        """Ends the process after the end of input: at once, unless it was told to take its time."""
        time.sleep(self._exit_delay)
        os._exit(code)  # threads may still sleep, and are not waited for

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        self.note("SIGTERM")
        if not self._ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
