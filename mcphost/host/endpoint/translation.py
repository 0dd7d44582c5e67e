"""Changes what a server sends into what the revision of an agent can carry; nothing else is touched.

Names of members that an older revision lacks may stay, since its objects are open.

Specification: server/tools, server/prompts, client/elicitation and client/sampling of every revision; basic (errors).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple

from mcphost.json_values import as_dict, as_list, as_text
from mcphost.protocol.lifecycle.revisions import META_PREFIX, RELATED_TASK, Revision
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import RpcError

CONTENT_SINCE: Final[Mapping[str, str]] = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""Types of content that older revisions lack."""

MESSAGE_CONTENT_SINCE: Final[Mapping[str, str]] = {
    "audio": "2025-03-26",
    "tool_use": "2025-11-25",
    "tool_result": "2025-11-25",
}
"""The same of messages for a language model."""

ANY_STRUCTURE_SINCE: Final = "2026-07-28"
"""The first revision in which structured content may be any JSON value."""

SEVERAL_BLOCKS_SINCE: Final = "2025-11-25"
"""The first revision in which a message for a language model may hold several blocks, or tools."""

CHOICES_SINCE: Final = "2025-11-25"
"""The first revision whose forms have lists of choices, and titles of choices beside their values."""

_OTHER_LEG: Final = frozenset({RELATED_TASK, f"{META_PREFIX}serverInfo", f"{META_PREFIX}subscriptionId"})
"""Members of ``_meta`` whose meaning ends with the session that they come from."""

_OWN_LEG_CODES: Final = frozenset({ErrorCode.HEADER_MISMATCH, ErrorCode.UNSUPPORTED_PROTOCOL_VERSION})
"""Codes of errors that mcphost made at the server, not the agent."""

_RESERVED: Final = range(-32099, -32019)
"""Codes that a modern server uses only as the specification defines them."""


class Translation(NamedTuple):
    """From a server of one revision to an agent of another. Within one revision, all stays as it is."""

    server: Revision
    agent: Revision

    def tool(self, definition: Mapping[str, Any]) -> Mapping[str, Any]:
        """A tool as the agent's revision can define it."""
        if self.server is self.agent:
            return definition
        dropped = set()
        if not self.agent.tasks:
            dropped.add("execution")
        schema = definition.get("outputSchema")
        if self.agent.version < ANY_STRUCTURE_SINCE and as_dict(schema).get("type") != "object":
            dropped.add("outputSchema")
        return without(definition, dropped)

    def tool_result(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a tool call; structured content that the revision lacks becomes text."""
        if self.server is self.agent:
            return result
        carried, structured = self._content(result), result.get("structuredContent")
        if self.agent.version >= ANY_STRUCTURE_SINCE or "structuredContent" not in result:
            return carried
        if isinstance(structured, dict):
            return carried
        if structured is None and not self.server.modern:  # it counts as absent
            return without(carried, {"structuredContent"})
        blocks, text = as_list(carried.get("content")), json.dumps(structured, ensure_ascii=False)
        said = any(says(block, structured, text) for block in blocks)
        content = blocks if said else [*blocks, {"type": "text", "text": text}]
        return {**without(carried, {"structuredContent"}), "content": content}

    def prompt(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of ``prompts/get``."""
        messages = result.get("messages")
        if self.server is self.agent or not isinstance(messages, list):
            return result
        return {**result, "messages": [self._message(each) for each in messages]}

    def error(self, method: str, error: RpcError, *, lacking: bool = False) -> RpcError:
        """The error of a request; ``lacking``: the agent itself does not declare what the server misses."""
        code, reading = error.code, method == "resources/read"
        own_leg = code in _OWN_LEG_CODES or (code == ErrorCode.MISSING_CLIENT_CAPABILITY and not lacking)
        if self.server.modern:
            unknown = reading and code == ErrorCode.INVALID_PARAMS and not self.agent.modern
            return _inner(error) if own_leg else _coded(ErrorCode.RESOURCE_NOT_FOUND, error) if unknown else error
        if self.agent.modern and reading and code == ErrorCode.RESOURCE_NOT_FOUND:
            return _coded(ErrorCode.INVALID_PARAMS, error)
        if self.agent.modern and (code in _RESERVED or code == ErrorCode.RESOURCE_NOT_FOUND):
            return _inner(error)
        pages = code == ErrorCode.URL_ELICITATION_REQUIRED and "url" in self.server.elicitation
        return _inner(error) if pages and "url" not in self.agent.elicitation else error

    def question(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The params of a request to the agent; None if its revision cannot carry them."""
        if self.server is self.agent:
            return params
        if method == "sampling/createMessage" and self.agent.version < SEVERAL_BLOCKS_SINCE:
            return self._sampling(params)
        if method == "elicitation/create" and self.agent.version < CHOICES_SINCE:
            return _older_form(params)
        return params

    def answer(self, method: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The agent's result of such a request, for the server."""
        content = result.get("content")
        older = self.server.version < SEVERAL_BLOCKS_SINCE <= self.agent.version
        if not older or method != "sampling/createMessage" or not isinstance(content, list):
            return result
        if len(content) == 1:
            return {**result, "content": content[0]}
        text = "".join(as_text(as_dict(block).get("text")) for block in content)
        return {**result, "content": {"type": "text", "text": text}}

    def _content(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        content = result.get("content")
        if not isinstance(content, list):
            return result
        blocks = [self._block(each) for each in content]
        return result if blocks == content else {**result, "content": blocks}

    def _message(self, message: Any) -> Any:
        content = as_dict(message).get("content")
        if isinstance(content, list):
            return {**message, "content": [self._block(each) for each in content]}
        return {**message, "content": self._block(content)} if isinstance(content, dict) else message

    def _block(self, block: Any) -> Any:
        kind = as_dict(block).get("type")
        since = CONTENT_SINCE.get(kind, "") if isinstance(kind, str) else ""
        if since <= self.agent.version:
            return block
        kept = {name: block[name] for name in ("annotations", "_meta") if name in block}
        return {"type": "text", "text": _words(block), **kept}

    def _sampling(self, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if params.get("tools") or as_dict(params.get("toolChoice")):
            return None
        messages: list[Any] = []
        for message in as_list(params.get("messages")):
            content = as_dict(message).get("content")
            blocks = content if isinstance(content, list) else [content]
            for block in blocks:
                kind = as_dict(block).get("type")
                if isinstance(kind, str) and MESSAGE_CONTENT_SINCE.get(kind, "") > self.agent.version:
                    return None
                messages.append({**as_dict(message), "content": block})
        return {**params, "messages": messages}


def of_this_leg(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """A result without what names a server's own session, and never for other agents to keep."""
    meta = result.get("_meta")
    if isinstance(meta, dict) and _OTHER_LEG & meta.keys():
        rest = without(meta, _OTHER_LEG)
        result = {**result, "_meta": rest} if rest else without(result, {"_meta"})
    return {**result, "cacheScope": "private"} if "cacheScope" in result else result


def _inner(error: RpcError) -> RpcError:
    """The error as one of mcphost's, with the original as its data."""
    return RpcError(ErrorCode.INTERNAL_ERROR, error.message, error.as_object())


def _coded(code: ErrorCode, error: RpcError) -> RpcError:
    return RpcError(code, error.message, error.data)


def without(members: Mapping[str, Any], names: Set[str]) -> Mapping[str, Any]:
    return {name: value for name, value in members.items() if name not in names}


def _words(block: Mapping[str, Any]) -> str:
    """A block of content in words."""
    kind, mime_type = as_text(block.get("type")), as_text(block.get("mimeType"))
    if kind == "resource_link":
        title = as_text(block.get("title")) or as_text(block.get("name"))
        return ": ".join(filter(None, (title, as_text(block.get("uri")))))
    return f"[{kind}: {mime_type}]" if mime_type else f"[{kind}]"


def says(block: Any, value: Any, text: str) -> bool:
    """True if a text block holds this JSON value, whose usual text is given."""
    said = as_text(as_dict(block).get("text"))
    if len(said) > 4 * len(text) + 100:  # no spelling of it is so long, and parsing takes time
        return False
    try:
        return bool(said) and json.loads(said) == value
    except ValueError:
        return False


def _older_form(params: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The form with choices in their older spelling; None if a field is a list."""
    schema = as_dict(params.get("requestedSchema"))
    fields: dict[str, Any] = {}
    for name, field in as_dict(schema.get("properties")).items():
        if as_dict(field).get("type") == "array":
            return None
        choices = [as_dict(each) for each in as_list(as_dict(field).get("oneOf"))]
        if choices and all("const" in each for each in choices):
            names = [str(each.get("title", each["const"])) for each in choices]
            older = {"enum": [each["const"] for each in choices], "enumNames": names}
            fields[name] = {**without(field, {"oneOf"}), **older}
        else:
            fields[name] = field
    return {**params, "requestedSchema": {**schema, "properties": fields}} if fields else params
