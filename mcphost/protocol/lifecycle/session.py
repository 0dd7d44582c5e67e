"""Writes requests, headers and cancellations, and reads results, as the session's revision demands.

`HandshakeRules` are those of the revisions that begin with ``initialize``; `ModernRules` those of the later ones, in
which each request carries the metadata that the handshake used to exchange.

Specification: basic/lifecycle, basic/utilities/cancellation and progress; 2026-07-28 basic/index (``_meta``),
basic/transports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Protocol

from mcphost.errors import CapabilityMissing, CapabilityWithheld, MethodRemoved
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.results import Complete, InputRequired, TaskStarted, read_result
from mcphost.protocol.lifecycle.revisions import (
    META_PREFIX,
    NEEDED_EXTENSION,
    REMOVED_METHODS,
    Revision,
    has_extension,
    missing_capability,
)
from mcphost.protocol.wire.headers import ParameterHeader, encode_header_value, parameter_headers_of
from mcphost.protocol.wire.jsonrpc import Notification, Request, RequestId

UNCANCELLABLE = frozenset({"initialize"})

NAMED_BY: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The param that the header ``Mcp-Name`` repeats."""


class SessionRules(Protocol):
    @property
    def revision(self) -> Revision: ...

    def request(
        self, request_id: RequestId, method: str, params: Mapping[str, Any] | None, *, progress: bool
    ) -> Request:
        """The request to send; with ``progress``, its id is also its progress token.

        Raises CapabilityMissing if the server does not offer what the method needs, MethodRemoved if the revision
        does not have the method.
        """

    def headers(self, request: Request) -> Mapping[str, str]:
        """The HTTP headers that the revision demands of this request, besides those of every message.

        Raises InvalidArguments if a header cannot hold an argument that it repeats.
        """

    def read(self, method: str, result: Mapping[str, Any]) -> Complete | InputRequired | TaskStarted:
        """Return the result object of ``method`` by its kind. Raises InvalidResult."""

    def cancellation(self, request: Request, reason: str) -> Notification | None:
        """The cancellation of a request that is no longer awaited; None if none may be sent."""


@dataclass(frozen=True, slots=True)
class HandshakeRules:
    """The rules of a session that began with ``initialize``; ``capabilities`` are the server's."""

    revision: Revision
    capabilities: Mapping[str, Any]
    _lacking: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    """The missing capability by method: a cache, since the capabilities of a session do not change."""

    def request(
        self, request_id: RequestId, method: str, params: Mapping[str, Any] | None, *, progress: bool
    ) -> Request:
        if method not in self._lacking:
            self._lacking[method] = missing_capability(method, self.capabilities, self.revision)
        if (lacking := self._lacking[method]) is not None:
            raise CapabilityMissing(method, lacking)
        return Request(request_id, method, with_progress_token(params, request_id) if progress else params)

    def headers(self, request: Request) -> Mapping[str, str]:
        return _NO_HEADERS

    def read(self, method: str, result: Mapping[str, Any]) -> Complete:
        return Complete(result)

    def cancellation(self, request: Request, reason: str) -> Notification | None:
        if request.method in UNCANCELLABLE:
            return None
        return Notification("notifications/cancelled", {"requestId": request.id, "reason": reason})


_NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(slots=True)
class ClientMetadata:
    """The metadata about the client in each modern request."""

    identity: Mapping[str, Any]
    """The ``clientInfo``."""
    declare: Callable[[], Mapping[str, Any]]
    """Returns the capabilities, asked for each request: only what is declared will be answered."""
    log_level: str | None = None
    """The least level of log messages that requests ask for; None: they ask for none."""


@dataclass(slots=True)
class ModernRules:
    """The rules of a session without a handshake; ``capabilities`` are the server's."""

    revision: Revision
    client: ClientMetadata
    own_stream: bool = False
    """True if each request has its own response stream."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    parameter_headers: dict[str, tuple[ParameterHeader, ...]] = field(default_factory=dict)
    """By tool, of those that were listed; without an entry, no argument is repeated in a header."""
    _lacking: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)
    """The missing capability by method: a cache, as in `HandshakeRules`."""

    def request(
        self, request_id: RequestId, method: str, params: Mapping[str, Any] | None, *, progress: bool
    ) -> Request:
        if method not in self._lacking:
            if method in REMOVED_METHODS:
                raise MethodRemoved(method, self.revision.version)
            self._lacking[method] = missing_capability(method, self.capabilities, self.revision)
        if (lacking := self._lacking[method]) is not None:
            raise CapabilityMissing(method, lacking)
        extension = NEEDED_EXTENSION.get(method)
        if extension is not None and not has_extension(extension, self.client.declare()):
            raise CapabilityWithheld(method, extension)
        return self.stamped(Request(request_id, method, params), progress=progress)

    def stamped(self, request: Request, *, progress: bool = False) -> Request:
        """The request with its metadata. What the caller put in place of a reserved key is replaced."""
        params, client = dict(request.params or {}), self.client
        given = params.get("_meta")
        meta = {key: value for key, value in given.items() if not key.startswith(META_PREFIX)} if given else {}
        if progress:
            meta["progressToken"] = request.id
        meta[f"{META_PREFIX}protocolVersion"] = self.revision.version
        meta[f"{META_PREFIX}clientInfo"] = client.identity
        meta[f"{META_PREFIX}clientCapabilities"] = client.declare()
        if client.log_level is not None and "logging" in self.capabilities:
            meta[f"{META_PREFIX}logLevel"] = client.log_level
        params["_meta"] = meta
        return Request(request.id, request.method, params)

    def headers(self, request: Request) -> Mapping[str, str]:
        return modern_headers(request, self.revision.version, self.parameter_headers)

    def read(self, method: str, result: Mapping[str, Any]) -> Complete | InputRequired | TaskStarted:
        return read_result(method, result, self.client.declare)

    def cancellation(self, request: Request, reason: str) -> Notification | None:
        if self.own_stream:
            return None  # closing the stream of the response is the cancellation
        return Notification("notifications/cancelled", {"requestId": request.id, "reason": reason})


def modern_headers(
    request: Request, version: str, parameters: Mapping[str, tuple[ParameterHeader, ...]]
) -> dict[str, str]:
    """The headers that repeat parts of a modern request; ``parameters`` has those of each tool that repeats arguments.

    Raises InvalidArguments if a header cannot hold an argument that it repeats.
    """
    params = request.params or {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": request.method}
    named = params.get(NAMED_BY.get(request.method, ""))
    if isinstance(named, str):
        headers["Mcp-Name"] = encode_header_value(named)
        if request.method == "tools/call" and named in parameters:
            headers |= parameter_headers_of(parameters[named], params.get("arguments") or {})
    return headers


def with_progress_token(params: Mapping[str, Any] | None, token: RequestId) -> dict[str, Any]:
    """The params with ``_meta.progressToken`` set and the rest of ``_meta`` kept."""
    given = dict(params or {})
    given["_meta"] = {**given.get("_meta", {}), "progressToken": token}
    return given
