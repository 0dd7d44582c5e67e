"""The content of a recording: sessions of exchanges, without a trace of the era that they were recorded in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from mcphost.json_values import dicts_in

FORMAT: Final = 1
"""The version of the format, in the first line of a file."""

SUFFIX: Final = ".mcp.jsonl"

LISTED: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "skills/list": "skills",
}
"""The methods that list, and the member that holds the items of a page."""


class RecordingFacts(NamedTuple):
    """The first line of a file. ``seen`` is ``agent`` where an agent was the client, else empty.

    ``servers`` has the identity of each server in words, with names of variables and without their values.
    """

    version: int = FORMAT
    mcphost: str = ""
    recorded_by: str = ""
    seen: str = ""
    servers: Mapping[str, str] = {}
    masked: bool = True


class RecordedEvent(NamedTuple):
    """A message that came between a request and its answer, ``after`` seconds of the request.

    A question has the ``answer`` that the client gave, as ``{"result": …}`` or ``{"error": …}``, or None, and the
    ``seconds`` that it took; ``key`` is its name in ``inputRequests``, empty in the legacy era.
    """

    kind: Literal["progress", "log", "question", "notification"]
    method: str
    params: Mapping[str, Any]
    after: float = 0.0
    key: str = ""
    answer: Mapping[str, Any] | None = None
    seconds: float = 0.0


class RecordedExchange(NamedTuple):
    """A request with its answer, and all that came between; several rounds of one request count as one.

    ``params`` are as sent, with ``_meta``. ``at`` is in seconds from the start of the session, and ``seconds`` is the
    time to the answer, None without one. ``masked``: something in it was hidden. ``line`` and ``answer_line`` are lines
    of the file, from 1; 0 where the format has no line for each message.
    """

    method: str
    params: Mapping[str, Any] = {}
    at: float = 0.0
    seconds: float | None = None
    events: tuple[RecordedEvent, ...] = ()
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    masked: bool = False
    id: str | int | None = None
    line: int = 0
    answer_line: int = 0

    @property
    def questions(self) -> tuple[RecordedEvent, ...]:
        return tuple(event for event in self.events if event.kind == "question")


class RecordedNotice(NamedTuple):
    """A notification of the server that belongs to no request; ``after`` is the place of the exchange before, or -1."""

    method: str
    params: Mapping[str, Any] = {}
    at: float = 0.0
    after: int = -1


class RecordedWalk(NamedTuple):
    """All pages of a list: the place of the exchange that ended it, the items of each page, and the last result."""

    place: int
    pages: tuple[list[dict[str, Any]], ...]
    last: Mapping[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        return [item for page in self.pages for item in page]


class RecordedSession(NamedTuple):
    """One connection to one server, from its start to its end.

    ``introduction`` is the result of ``initialize`` or ``server/discover``, and ``client`` has the client's
    ``clientInfo`` and ``capabilities``. The exchanges are in the order of their requests, with the handshake.
    ``started`` is in seconds since the epoch.
    """

    server: str
    connection: int = 1
    modern: bool = False
    revision: str = ""
    introduction: Mapping[str, Any] = {}
    client: Mapping[str, Any] = {}
    exchanges: tuple[RecordedExchange, ...] = ()
    notices: tuple[RecordedNotice, ...] = ()
    stderr: tuple[str, ...] = ()
    agent: str = ""
    started: float = 0.0

    def listing(self, method: str) -> list[dict[str, Any]] | None:
        """The items on all pages of the last walk through a list that reached its end; None without one."""
        walks = walks_in(self.exchanges, method)
        return walks[-1].items if walks else None


def walks_in(exchanges: Iterable[RecordedExchange], method: str) -> list[RecordedWalk]:
    """The walks through a list that reached its end, in order; a page of a walk whose start is not here is left out."""
    found: list[RecordedWalk] = []
    pages: list[Mapping[str, Any]] = []
    awaited: object = None
    for place, exchange in enumerate(exchanges):
        if exchange.method != method or exchange.result is None:
            continue
        cursor = exchange.params.get("cursor")
        if cursor is None:
            pages = []
        elif cursor != awaited:
            continue
        pages.append(exchange.result)
        awaited = exchange.result.get("nextCursor")
        if awaited is None:
            items = tuple(dicts_in(page.get(LISTED[method])) for page in pages)
            found.append(RecordedWalk(place, items, exchange.result))
    return found


class Recording(NamedTuple):
    """A file that was read. ``problems`` are sentences: a message that was cut, a line left out."""

    name: str
    facts: RecordingFacts | None = None
    sessions: tuple[RecordedSession, ...] = ()
    problems: tuple[str, ...] = ()
