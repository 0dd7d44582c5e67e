"""Rules about the answers to tool calls, which are made only where the user names the tool."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from mcphost.host.server_rules.outcomes import Rule, quoted
from mcphost.host.server_rules.sighting import ProbeExchange, Sighting, Unjudged
from mcphost.json_values import as_dict, dicts_in
from mcphost.protocol.lifecycle.revisions import ASKS_FOR
from mcphost.protocol.schema.validation import SchemaRefused, is_cheap, problems

Block = Mapping[str, Any]


def _named(call: ProbeExchange) -> str:
    return quoted(as_dict(call.sent.get("params")).get("name"))


def _results(check: Callable[[Mapping[str, Any]], Iterable[str]]) -> Rule:
    """Every final result of a call passes ``check``."""

    def rule(seen: Sighting) -> Iterator[str]:
        found = [(call, call.complete) for call in seen.calls if call.complete is not None]
        if not found:
            raise Unjudged("no call got a result")
        for call, result in found:
            yield from (f"{_named(call)}: {problem}" for problem in check(result or {}))

    return rule


def _blocks(kind: str, check: Callable[[Block], Iterable[str]]) -> Rule:
    def rule(seen: Sighting) -> Iterator[str]:
        found = False
        for call in seen.calls:
            for block in dicts_in((call.complete or {}).get("content")):
                if block.get("type") == kind:
                    found = True
                    yield from (f"{_named(call)}: {problem}" for problem in check(block))
        if not found:
            raise Unjudged("no such block was in a result")

    return rule


def _strings(*names: str) -> Callable[[Block], Iterator[str]]:
    def check(block: Block) -> Iterator[str]:
        yield from (f"{name} is {quoted(block.get(name))}" for name in names if not isinstance(block.get(name), str))

    return check


def _base64(block: Block) -> Iterator[str]:
    yield from _strings("data", "mimeType")(block)
    if isinstance(data := block.get("data"), str):
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            yield "data is not Base64"


def _embedded(block: Block) -> Iterator[str]:
    resource = as_dict(block.get("resource"))
    if not isinstance(resource.get("uri"), str):
        yield f"the uri of its resource is {quoted(resource.get('uri'))}"
    if not any(isinstance(resource.get(name), str) for name in ("text", "blob")):
        yield "its resource has neither text nor blob"


def _content(result: Mapping[str, Any]) -> Iterator[str]:
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        yield f"content is {quoted(content)}"


def _is_error(result: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(result.get("isError", False), bool):
        yield f"it is {quoted(result['isError'])}"


def _types(*allowed: str) -> Rule:
    def check(result: Mapping[str, Any]) -> Iterator[str]:
        for block in dicts_in(result.get("content")):
            if block.get("type") not in allowed:
                yield f"a block is of type {quoted(block.get('type'))}"

    return _results(check)


def _structured(result: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(given := result.get("structuredContent", {}), dict):
        yield f"it is {quoted(given)}"


def _conforms(seen: Sighting) -> Iterator[str]:
    schemas = {item.get("name"): item.get("outputSchema") for item in seen.items("tools/list")}
    checked = False
    for call in seen.calls:
        schema = schemas.get(as_dict(call.sent.get("params")).get("name"))
        result = call.complete or {}
        if not isinstance(schema, dict) or "structuredContent" not in result or result.get("isError") is True:
            continue
        try:
            if is_cheap(schema, result["structuredContent"]):
                checked = True
                for path, message in problems(schema, result["structuredContent"], limit=3):
                    yield f"{_named(call)}: {path} {message}"
        except SchemaRefused:
            continue
    if not checked:
        raise Unjudged("no call gave structured content for an outputSchema that is checked cheaply")


def _asked(seen: Sighting) -> list[tuple[ProbeExchange, Mapping[str, Any]]]:
    found = [(call, call.result or {}) for call in seen.calls]
    asked = [(call, result) for call, result in found if result.get("resultType") == "input_required"]
    if not asked:
        raise Unjudged("no call was answered with input_required")
    return asked


def _input_methods(seen: Sighting) -> Iterator[str]:
    for call, result in _asked(seen):
        for request in as_dict(result.get("inputRequests")).values():
            if as_dict(request).get("method") not in ASKS_FOR:
                yield f"{_named(call)} asks for {quoted(as_dict(request).get('method'))}"


def _input_members(seen: Sighting) -> Iterator[str]:
    yield from (_named(call) for call, result in _asked(seen) if not {"inputRequests", "requestState"} & result.keys())


def _state(seen: Sighting) -> Iterator[str]:
    for call, result in _asked(seen):
        if not isinstance(result.get("requestState", ""), str):
            yield f"that of {_named(call)} is not"


def _uncached(seen: Sighting) -> Iterator[str]:
    for call, result in _asked(seen):
        yield from (f"{_named(call)} has {name}" for name in ("ttlMs", "cacheScope") if name in result)


RULES: Final[Mapping[str, Rule]] = {
    "STOOL-26": _results(_content),
    "STOOL-27": _results(_is_error),
    "STOOL-28": _blocks("text", _strings("text")),
    "STOOL-29": _blocks("image", _base64),
    "STOOL-30": _blocks("audio", _base64),
    "STOOL-31": _blocks("resource_link", _strings("uri", "name")),
    "STOOL-32": _blocks("resource", _embedded),
    "STOOL-33": _types("text", "image", "resource"),
    "STOOL-34": _types("text", "image", "audio", "resource"),
    "STOOL-35": _types("text", "image", "audio", "resource_link", "resource"),
    "STOOL-37": _results(_structured),
    "STOOL-39": _conforms,
    "SMRTR-04": _input_methods,
    "SMRTR-05": _input_members,
    "SMRTR-06": _state,
    "SCACHE-03": _uncached,
}
