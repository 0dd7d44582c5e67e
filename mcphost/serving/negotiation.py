"""A server's side of the agreement on era and revision, and of what both sides declare.

Specification: basic/lifecycle (to 2025-11-25); 2026-07-28 basic/versioning, basic/index (``_meta``), server/discover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcphost.json_values import as_dict
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import (
    ASKS_FOR,
    META_PREFIX,
    NEWEST_HANDSHAKE,
    REVISIONS,
    Revision,
    find_revision,
    has_extension,
    serves,
)
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode

VERSION_KEY: Final = f"{META_PREFIX}protocolVersion"
CAPABILITIES_KEY: Final = f"{META_PREFIX}clientCapabilities"
LEVEL_KEY: Final = f"{META_PREFIX}logLevel"


class RpcError(Exception):
    """A JSON-RPC error that answers a request."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def as_object(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": int(self.code), "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class InvalidParamsError(RpcError):
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_PARAMS, message)


class UndeclaredError(RpcError):
    """The client did not declare what a request needs; ``required`` is the capability as it would be declared."""

    def __init__(self, name: str, required: Mapping[str, Any]) -> None:
        words = f"The client declares no {name}."
        super().__init__(ErrorCode.MISSING_CLIENT_CAPABILITY, words, {"requiredCapabilities": required})


class ServerIntroduction(NamedTuple):
    """A server's words about itself, with the capabilities of all revisions."""

    identity: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    instructions: str = ""
    fresh_milliseconds: int = 0
    """For which the answer to ``server/discover`` is fresh."""

    def under(self, revision: Revision) -> dict[str, Any]:
        """The members that the results of ``initialize`` and ``server/discover`` share."""
        capabilities = {name: each for name, each in self.capabilities.items() if _may_declare(name, revision)}
        # The handshake revisions have no such field, but clients that know skills look for it there.
        skills = as_dict(self.capabilities.get("extensions")).get(SKILLS_EXTENSION)
        if not revision.modern and isinstance(skills, dict):
            capabilities["extensions"] = {SKILLS_EXTENSION: skills}
        members: dict[str, Any] = {"capabilities": capabilities}
        return members | ({"instructions": self.instructions} if self.instructions else {})


class ClientDeclaration(NamedTuple):
    """A client's words about itself: at the handshake, or with each modern request."""

    revision: Revision
    capabilities: Mapping[str, Any]
    identity: Mapping[str, Any]
    log_level: LogLevel | None = None
    """The least level that a modern request asks for; None: no log messages."""

    def require(self, method: str, params: Mapping[str, Any]) -> None:
        """Raises UndeclaredError if the client does not answer this request of a server."""
        capability = ASKS_FOR[method]
        declared = self.capabilities.get(capability)
        mode = params.get("mode", "form") if capability == "elicitation" else None
        if not isinstance(declared, dict):
            raise UndeclaredError(capability, {capability: {} if mode is None else {mode: {}}})
        # An empty object means forms.
        if mode is not None and (mode not in (declared or ("form",)) or mode not in self.revision.elicitation):
            raise UndeclaredError(f"elicitation by {mode}", {capability: {mode: {}}})

    def require_tasks(self) -> None:
        """Raises UndeclaredError if a modern client does not know tasks."""
        if not has_extension(TASKS_EXTENSION, self.capabilities):
            raise UndeclaredError("tasks", {"extensions": {TASKS_EXTENSION: {}}})


def agreed(asked: object) -> Revision:
    """The revision to answer ``initialize`` with: the one asked for, or the newest."""
    found = find_revision(asked)
    return NEWEST_HANDSHAKE if found is None or found.modern else found


def has_metadata(message: Mapping[str, Any]) -> bool:
    """True if the message is a modern one."""
    return VERSION_KEY in as_dict(as_dict(message.get("params")).get("_meta"))


def declaration_in(params: Mapping[str, Any]) -> ClientDeclaration | None:
    """The declaration in a modern request; None for one of the handshake revisions. Raises RpcError."""
    meta = as_dict(params.get("_meta"))
    if VERSION_KEY not in meta:
        if CAPABILITIES_KEY in meta:
            raise InvalidParamsError(f"_meta has no {VERSION_KEY}.")
        return None
    revision, capabilities = find_revision(meta[VERSION_KEY]), meta.get(CAPABILITIES_KEY)
    if revision is None or not revision.modern:
        data = {"supported": versions(), "requested": meta[VERSION_KEY]}
        words = "This protocol version is not supported in the metadata of a request."
        raise RpcError(ErrorCode.UNSUPPORTED_PROTOCOL_VERSION, words, data)
    if not isinstance(capabilities, dict):
        raise InvalidParamsError(f"_meta has no {CAPABILITIES_KEY}, or it is not an object.")
    level = log_level(meta[LEVEL_KEY]) if LEVEL_KEY in meta else None
    return ClientDeclaration(revision, capabilities, as_dict(meta.get(f"{META_PREFIX}clientInfo")), level)


def log_level(name: object) -> LogLevel:
    """The level that a client names. Raises InvalidParamsError."""
    level = LogLevel.read(name)
    if level is None:
        raise InvalidParamsError(f"A log level is one of {', '.join(each.wire for each in LogLevel)}.")
    return level


def versions() -> list[str]:
    """The supported protocol versions, oldest first."""
    return [each.version for each in REVISIONS]


def check_method(method: str, declaration: ClientDeclaration, introduction: ServerIntroduction) -> None:
    """Raises RpcError unless the revision has the method and this server offers it."""
    if not serves(method, introduction.capabilities, declaration.revision):
        raise unknown_method(method)


def unknown_method(method: str) -> RpcError:
    return RpcError(ErrorCode.METHOD_NOT_FOUND, f"Unknown method: {method}")


_SINCE: Final = {"completions": "2025-03-26", "tasks": "2025-11-25", "extensions": "2026-07-28"}
"""Capabilities of servers that older revisions lack."""


def _may_declare(capability: str, revision: Revision) -> bool:
    return _SINCE.get(capability, "") <= revision.version and not (revision.modern and capability == "tasks")
