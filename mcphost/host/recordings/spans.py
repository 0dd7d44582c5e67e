"""A recording as OTLP/JSON traces, by OpenTelemetry's conventions for MCP: a span for each request.

The questions of a server are spans below the request in which they were asked. A request whose ``_meta`` has a
``traceparent`` joins that trace; those without one are a trace for each session.

Specification: opentelemetry.io/docs/specs/semconv/gen-ai/mcp; W3C Trace Context.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from mcphost import __version__
from mcphost.host.recordings.recording import RecordedEvent, RecordedExchange, RecordedSession, Recording
from mcphost.json_values import as_dict, as_text
from mcphost.protocol.display import show_line
from mcphost.redaction import MASK, mask_credentials, safe_url, token_spans

TEXT: Final = 400
"""Characters of a value from the recording."""

EVENTS: Final = 128
"""Events of a span that are kept, as OpenTelemetry's SDKs limit them."""

LATEST: Final = 2**63 - 1
"""The largest time that readers of nanoseconds accept."""

_CLIENT: Final = 3
_ERROR: Final = 2
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
_HAS_REMOTE: Final = 0x100
_REMOTE: Final = 0x200
_WITH_URI: Final = (
    "resources/read",
    "resources/directory/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "skills/get",
)


def otlp_of(recording: Recording) -> dict[str, Any]:
    """The body of an OTLP export request, as JSON. Arguments and results are not in it."""
    identities = {} if recording.facts is None else recording.facts.servers
    sessions = [_Session(recording.name, place, each, identities) for place, each in enumerate(recording.sessions)]
    return {"resourceSpans": [each.resource_spans() for each in sessions]}


class _TraceContext(NamedTuple):
    """The trace of a span, and the span above it, if there is one."""

    trace: str
    parent: str = ""
    state: str = ""
    flags: int = 0


class _Session:
    """Makes the spans of one session. The same recording always gives the same ids."""

    def __init__(self, name: str, place: int, session: RecordedSession, identities: Mapping[str, str]) -> None:
        self._session = session
        self._seed = f"{name}\0{place}\0{session.server}\0{session.connection}\0{session.started}"
        self._trace = self._id("trace", 32)
        identity = identities.get(session.server, "")
        self._shared = {
            "mcp.protocol.version": session.revision,
            "mcp.session.id": self._id("session", 32),
            "mcphost.server": session.server,
            **_network(identity),
        }

    def resource_spans(self) -> dict[str, Any]:
        client = as_dict(self._session.client.get("clientInfo"))
        resource = {
            "service.name": self._session.agent or as_text(client.get("name")) or "mcphost",
            "service.version": as_text(client.get("version")),
        }
        spans = [span for place, each in enumerate(self._session.exchanges) for span in self._spans(place, each)]
        scope = {"name": "mcphost", "version": __version__}
        return {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}

    def _spans(self, place: int, exchange: RecordedExchange) -> Iterator[dict[str, Any]]:
        """The span of a request, then those of the questions in it."""
        context, own = self._context(exchange.params), self._id(f"request {place}", 16)
        began = self._session.started + exchange.at
        last = max((event.after + event.seconds for event in exchange.events), default=0.0)
        ended = began + (last if exchange.seconds is None else exchange.seconds)
        facts = {**_target(exchange.method, exchange.params), "jsonrpc.request.id": _request_id(exchange.id)}
        span = self._span(own, context, exchange.method, facts, (began, ended), _failure(exchange))
        others = [event for event in exchange.events if event.kind != "question"]
        if others:
            span["events"] = [_event(began, each) for each in others[:EVENTS]]
        if len(others) > EVENTS:
            span["droppedEventsCount"] = len(others) - EVENTS
        yield span
        below = _TraceContext(context.trace, own, context.state)
        for number, question in enumerate(exchange.questions):
            asked = began + question.after
            times = asked, asked + question.seconds
            yield self._span(
                self._id(f"request {place} question {number}", 16),
                self._context(question.params, below),
                question.method,
                _target(question.method, question.params),
                times,
                _refusal(question),
            )

    def _span(
        self,
        own: str,
        context: _TraceContext,
        method: str,
        facts: Mapping[str, str],
        times: tuple[float, float],
        failure: tuple[str, str] | None,
    ) -> dict[str, Any]:
        name = " ".join(filter(None, (method, facts.get("gen_ai.tool.name") or facts.get("gen_ai.prompt.name"))))
        attributes = {"mcp.method.name": method, **self._shared, **facts}
        status: dict[str, Any] = {}
        if failure is not None:
            attributes["error.type"], message = failure
            status = {"code": _ERROR, **({"message": _text(message)} if message else {})}
            if failure[0].lstrip("-").isdecimal():
                attributes["rpc.response.status_code"] = failure[0]
        return {
            "traceId": context.trace,
            "spanId": own,
            **({"parentSpanId": context.parent} if context.parent else {}),
            **({"traceState": context.state} if context.state else {}),
            **({"flags": context.flags} if context.flags else {}),
            "name": _text(name),
            "kind": _CLIENT,
            "startTimeUnixNano": _nanoseconds(times[0]),
            "endTimeUnixNano": _nanoseconds(max(times)),
            "attributes": _attributes(attributes),
            "status": status,
        }

    def _context(self, params: Mapping[str, Any], else_: _TraceContext | None = None) -> _TraceContext:
        """The trace that a request joins; without one, ``else_``, or that of the session."""
        meta = as_dict(params.get("_meta"))
        given = _TRACEPARENT.fullmatch(as_text(meta.get("traceparent")))
        if given is None:
            return else_ or _TraceContext(self._trace)
        trace, parent, flags = given.groups()
        state = as_text(meta.get("tracestate"))
        joined = int(flags, 16) | _HAS_REMOTE | _REMOTE
        return _TraceContext(trace, parent, state if _is_trace_state(state) else "", joined)

    def _id(self, purpose: str, digits: int) -> str:
        return sha256(f"{self._seed}\0{purpose}".encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _is_trace_state(text: str) -> bool:
    return len(text) <= 512 and text.isascii() and text.isprintable() and "=" in text


def _target(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The attributes that say what a request is about."""
    if method == "tools/call":
        return {"gen_ai.tool.name": as_text(params.get("name")), "gen_ai.operation.name": "execute_tool"}
    if method == "prompts/get":
        return {"gen_ai.prompt.name": as_text(params.get("name"))}
    if method in _WITH_URI:
        return {"mcp.resource.uri": safe_url(as_text(params.get("uri")))}
    return {}


def _request_id(own: str | int | None) -> str:
    return "" if own is None else str(own)


def _failure(exchange: RecordedExchange) -> tuple[str, str] | None:
    """The type of the error of a request, and its message; None without one."""
    if exchange.error is not None:
        return _error(exchange.error)
    if exchange.result is None:
        return "_OTHER", "the recording has no answer"
    return ("tool_error", "") if exchange.result.get("isError") is True else None


def _refusal(question: RecordedEvent) -> tuple[str, str] | None:
    if question.answer is None:
        return "_OTHER", "the recording has no answer"
    return _error(as_dict(question.answer["error"])) if "error" in question.answer else None


def _error(error: Mapping[str, Any]) -> tuple[str, str]:
    code = error.get("code")
    return str(code) if type(code) is int else "_OTHER", as_text(error.get("message"))


def _network(identity: str) -> dict[str, str | int]:
    """The attributes of the way to a server; nothing if the recording does not say what it was."""
    if not identity.startswith(("http://", "https://")):
        return {"network.transport": "pipe"} if identity else {}
    found: dict[str, str | int] = {"network.transport": "tcp", "network.protocol.name": "http"}
    try:
        address = urlsplit(identity)
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        return found
    return {**found, "server.address": address.hostname or "", "server.port": port}


def _event(began: float, event: RecordedEvent) -> dict[str, Any]:
    level = as_text(event.params.get("level")) if event.kind == "log" else ""
    attributes = {"mcp.method.name": event.method, "mcphost.log.level": level}
    when = _nanoseconds(began + event.after)
    return {"timeUnixNano": when, "name": _text(event.method), "attributes": _attributes(attributes)}


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    """Attributes in OTLP's form, without those that are empty."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value != ""]


def _value(value: str | int) -> dict[str, str]:
    return {"stringValue": _text(value)} if isinstance(value, str) else {"intValue": str(value)}


def _text(text: str) -> str:
    """A text from the recording, safe to show and without secrets: those of other programs are not masked."""
    masked = mask_credentials(text)
    for start, end in sorted(token_spans(masked), reverse=True):
        masked = masked[:start] + MASK + masked[end:]
    return show_line(masked, TEXT)


def _nanoseconds(seconds: float) -> str:
    return str(max(0, min(round(seconds * 1e9), LATEST))) if math.isfinite(seconds) and seconds < 1e12 else "0"
