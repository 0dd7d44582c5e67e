"""Joins streams of agents with the sessions of the host's endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcphost import __version__
from mcphost.host.endpoint.service import EndpointOptions, EndpointService
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import RpcError, ServerIntroduction, unknown_method
from mcphost.serving.served_request import ServedRequest
from mcphost.serving.session import ServedContent, ServerSession, Write
from mcphost.serving.stream_pump import serve_stream


class ServedStream:
    """An agent that speaks over a pair of streams; see `mcphost.serving.listener.ServedConnection`."""

    address = ""

    def __init__(self, endpoint: EndpointService, options: EndpointOptions) -> None:
        """Open the session. Raises UnknownName or ConfigError."""
        self._content = endpoint.open(options)

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Serve until the stream ends; return the reason, empty if the agent ended it."""
        return await serve_stream(reader, writer, self._session, self._content.observer)

    async def aclose(self) -> None:
        self._content.closed()

    def _session(self, write: Write) -> ServerSession:
        session = ServerSession(self._content, write, timers=asyncio.get_running_loop())
        self._content.attach(session)
        return session


class NothingServed(ServedContent):
    """A server that has nothing but instructions."""

    def __init__(self, instructions: str) -> None:
        self._instructions = instructions

    def introduction(self, revision: Revision) -> ServerIntroduction:
        identity = {"name": "mcphost", "title": "mcphost", "version": __version__}
        return ServerIntroduction(identity, {"tools": {}}, self._instructions)

    def begin(self, request: ServedRequest) -> None:
        if request.method != "tools/list":
            raise unknown_method(request.method)
        request.finish({"tools": []})


class RefusedClient(NothingServed):
    """A server that refuses its client in these words."""

    def introduced(self, capabilities: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        raise RpcError(ErrorCode.INVALID_REQUEST, self._instructions)


async def serve_content(content: ServedContent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
    """Serve one client; return why it ended, empty if the client ended it."""
    return await serve_stream(reader, writer, lambda write: ServerSession(content, write))
