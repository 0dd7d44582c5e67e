"""Everything seen of a server in one era: every probe with its answer, and every message, as they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from mcphost.json_values import as_dict, as_list
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import Revision, has_extension, offers
from mcphost.protocol.limits import JSON_DEPTH
from mcphost.protocol.wire.jsonrpc import Malformed, Request, RequestId, Response, decode
from mcphost.protocol.wire.strict_json import Refused, parse

LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
    "skills/list": "skills",
}
"""The member of each list's result that holds its items."""

NO_ANSWERS: Final = (401, 403, 407, 408, 425, 429, 502, 503, 504)
"""HTTP statuses of gateways, limits and missing rights, which say nothing about the probe."""


class Unjudged(Exception):
    """A rule lacks what it needs; ``str()`` is the reason."""


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One text of the server in the place of a message."""

    data: bytes
    value: Any = None
    """The JSON value; None if it is not JSON, or over a limit of this host."""
    problem: str = ""
    """Why it is not a valid message."""
    is_json: bool = True
    answers: RequestId | None = None
    """The id of the request that it answers, even badly."""

    @property
    def object(self) -> Mapping[str, Any]:
        return as_dict(self.value)

    @property
    def is_response(self) -> bool:
        return "method" not in self.object and bool({"result", "error"} & self.object.keys())

    @property
    def is_request(self) -> bool:
        return "method" in self.object and "id" in self.object

    @property
    def is_notification(self) -> bool:
        return "method" in self.object and "id" not in self.object


def read_message(data: bytes) -> ReceivedMessage:
    """Judge one text. A text over a limit of this host has neither value nor problem."""
    try:
        value = parse(data, JSON_DEPTH)
    except Refused as refused:
        invalid = not refused.is_json or str(refused).endswith("is not JSON")
        (found, *_) = decode(data)
        answers = found.answers if isinstance(found, Malformed) else None
        return ReceivedMessage(data, None, str(refused) if invalid else "", not invalid, answers)
    if isinstance(value, list):
        return ReceivedMessage(data, value)
    (found, *_) = decode(data)
    if isinstance(found, Malformed):
        return ReceivedMessage(data, value, found.reason, answers=found.answers)
    problem = found.remark
    if isinstance(found, Request) and found.method.startswith("notifications/"):
        problem = f"{found.method} is a notification, and has an id"
    return ReceivedMessage(data, value, problem, answers=found.id if isinstance(found, Response) else None)


@dataclass(slots=True)
class ProbeExchange:
    """One probe, and what came back until its answer."""

    probe: str
    sent: Mapping[str, Any] = field(default_factory=dict)
    messages: list[ReceivedMessage] = field(default_factory=list)
    response: ReceivedMessage | None = None
    lost: str = ""
    """Why no answer can come any more; empty if the connection lived."""
    unusable: str = ""
    """Why this host could not read the answer, such as a limit of its own; empty if it could."""
    seconds: float = 0.0
    """The deadline, if it passed without an answer."""
    status: int = 0
    """Of HTTP; 0 elsewhere."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the HTTP answer, names in lower case."""
    body: bytes = b""
    """Of the HTTP answer, or its start."""
    event_ids: tuple[str, ...] = ()
    ended: bool = True
    """False if the stream went on when the answer had been read."""

    @property
    def method(self) -> str:
        return str(self.sent.get("method", ""))

    @property
    def media(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def answer(self) -> Mapping[str, Any]:
        return self.response.object if self.response else {}

    @property
    def result(self) -> Mapping[str, Any] | None:
        found = self.answer.get("result")
        return found if isinstance(found, dict) else None

    @property
    def code(self) -> int | None:
        """The code of the JSON-RPC error."""
        found = as_dict(self.answer.get("error")).get("code")
        return found if type(found) is int else None

    @property
    def complete(self) -> Mapping[str, Any] | None:
        """The result if it is final."""
        result = self.result
        return result if result is not None and result.get("resultType", "complete") == "complete" else None

    def outcome(self) -> str:
        """The answer as a clause. Raises Unjudged where it says nothing about the probe."""
        if self.status in NO_ANSWERS and self.code is None:
            raise Unjudged(f"the probe {self.probe} got HTTP {self.status}")
        if self.unusable:
            raise Unjudged(f"the answer to {self.probe} could not be read: {self.unusable}")
        if self.response is not None and self.response.value is None and not self.response.problem:
            raise Unjudged(f"the answer to {self.probe} is over a limit of mcphost")
        where = f"HTTP {self.status} with " if self.status >= 300 else ""
        if self.response is not None and self.response.problem:
            return f"{where}an invalid answer: {self.response.problem}"
        if self.code is not None:
            return f"{where}error {self.code}"
        if self.result is not None:
            return f"{where}a result"
        if self.lost:
            return f"the end of the connection: {self.lost}"
        if self.status:
            return f"HTTP {self.status} without a JSON-RPC answer"
        return f"no answer within {self.seconds:g} s"


@dataclass(slots=True)
class Sighting:
    """Everything seen of one server in one era."""

    transport: str
    """``stdio``, ``http`` or ``sse``."""
    revision: Revision
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    both_eras: bool = False
    loopback: bool = False
    exchanges: dict[str, ProbeExchange] = field(default_factory=dict)
    """By the name of the probe."""
    pages: dict[str, list[ProbeExchange]] = field(default_factory=dict)
    """By the list's method, of its first walk."""
    received: list[tuple[int, ReceivedMessage]] = field(default_factory=list)
    """Every message in order, with the number of its session."""
    sent_ids: set[tuple[type, RequestId]] = field(default_factory=set)
    session_ids: list[str] = field(default_factory=list)
    exit_seconds: float | None = None
    """From the end of stdin to that of the process; None: not seen."""
    hung: list[str] = field(default_factory=list)
    """Probes after which a fresh session was needed."""
    calls: list[ProbeExchange] = field(default_factory=list)
    """Tool calls, made with consent."""

    def exchange(self, probe: str) -> ProbeExchange:
        """Raises Unjudged."""
        if probe not in self.exchanges:
            after = f"; the server hung on {', '.join(self.hung)}" if self.hung else ""
            raise Unjudged(f"the probe {probe} was not sent{after}")
        return self.exchanges[probe]

    def offers(self, capability: str) -> bool:
        """True if the server declares this capability or extension."""
        if "/" in capability:
            return has_extension(capability, self.capabilities)
        return offers(capability, self.capabilities, self.revision)

    def declares(self, capability: str) -> bool:
        """As `offers`, for what the declaration says alone, also where an older revision cannot declare it."""
        return capability in self.capabilities

    def items(self, method: str) -> list[Mapping[str, Any]]:
        """The items of a list that are objects. Raises Unjudged without a list."""
        return [item for item in self.raw_items(method) if isinstance(item, dict)]

    def raw_items(self, method: str) -> list[Any]:
        """All items of a list. Raises Unjudged without a list."""
        results = [page.complete for page in self.pages.get(method, [])]
        if not results or results[0] is None:
            raise Unjudged(f"no answer to {method} was seen")
        found = [as_list(result.get(LISTS[method])) for result in results if result is not None]
        return [item for page in found for item in page]

    def all_exchanges(self) -> Iterable[ProbeExchange]:
        yield from self.exchanges.values()
        yield from (page for pages in self.pages.values() for page in pages)
        yield from self.calls

    def results(self) -> Iterator[tuple[ProbeExchange, Mapping[str, Any]]]:
        """Each answer that is a result object."""
        for exchange in self.all_exchanges():
            if exchange.result is not None:
                yield exchange, exchange.result

    def messages(self) -> Iterator[ReceivedMessage]:
        return (message for _, message in self.received)
