"""HTTP for the scripted servers of this folder: sockets, heads and bodies, a record, and events; no method, no tool.

Each connection is a thread; what came is kept in `visits`, and who is connected in `open`. Standard library only.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True)
class Visit:
    """One request as it came; ``at`` is its connection."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: tuple[str, int]

    @property
    def message(self) -> Any:
        return json.loads(self.body) if self.body else None


class Talk(BaseHTTPRequestHandler):
    """One request and the means to answer it, well or badly."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is written in parts, which would wait for each other
    web: Web

    def setup(self) -> None:
        super().setup()
        self.web.open.add(self.client_address)

    def finish(self) -> None:
        """Ends a connection: with `linger` and keep-alive that is when the client closed it."""
        try:
            super().finish()
        finally:
            self.web.open.discard(self.client_address)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.visit = Visit(
            self.command,
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            body,
            self.client_address,
        )
        self.web.visits.append(self.visit)
        try:
            self.web.answer(self)
        except OSError:  # the client went away, which may be the test
            self.close_connection = True

    do_GET = do_DELETE = do_PUT = do_POST  # noqa: N815 - the names are http.server's

    def log_message(self, format: str, *args: Any) -> None: ...

    def head(self, status: int, **headers: object) -> None:
        """Sends the status line and the headers, `content_type=` for Content-Type."""
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def whole(self, status: int, body: bytes = b"", kind: str = "", **headers: object) -> None:
        """Sends an answer with its length."""
        typed = {"content_type": kind} if kind else {}
        self.head(status, content_length=len(body), **typed, **headers)
        self.raw(body)

    def json(self, value: Any, status: int = 200, **headers: object) -> None:
        self.whole(status, json.dumps(value).encode(), "application/json; charset=utf-8", **headers)

    def result(self, result: Any, **headers: Any) -> None:
        """Answers the request that came in one JSON body."""
        self.json({"jsonrpc": "2.0", "id": self.visit.message["id"], "result": result}, **headers)

    def begin_events(self, **headers: object) -> None:
        self.head(200, content_type="text/event-stream", transfer_encoding="chunked", **headers)

    def events(self, *events: bytes | Message) -> None:
        """Sends events: bytes as they are, messages as data."""
        for event in events:
            data = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\r\n\r\n"
            self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def end_events(self) -> None:
        self.raw(b"0\r\n\r\n")

    def raw(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def linger(self, seconds: float = 30.0) -> bool:
        """Waits until the server stops or the client hangs up; True where the client did."""
        self.connection.settimeout(0.02)
        for _ in range(int(seconds / 0.02)):
            if self.web.stopped.is_set():
                break
            try:
                if not self.connection.recv(1):
                    self.web.hung_up.append(self.path)
                    return True
            except TimeoutError:
                continue
            except OSError:
                self.web.hung_up.append(self.path)
                return True
        self.close_connection = True
        return False


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # the usual 5 make a client that comes with more wait for a second

    def handle_error(self, request: Any, client_address: Any) -> None: ...


@dataclass
class Web:
    """A server on the loopback, at a free port or this one, that answers as `answer` does; over TLS with a context."""

    answer: Callable[[Talk], None]
    tls: ssl.SSLContext | None = None
    visits: list[Visit] = field(default_factory=list)
    hung_up: list[str] = field(default_factory=list)
    open: set[tuple[str, int]] = field(default_factory=set)
    stopped: threading.Event = field(default_factory=threading.Event)
    at: int = 0

    def __enter__(self) -> Web:
        handler = type("Handler", (Talk,), {"web": self})
        self._server = Listener(("127.0.0.1", self.at), handler)
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        scheme, host = ("https", "localhost") if self.tls else ("http", "127.0.0.1")
        return f"{scheme}://{host}:{self.port}/mcp"

    def seen(self, method: str) -> list[Visit]:
        return [visit for visit in self.visits if visit.method == method]
