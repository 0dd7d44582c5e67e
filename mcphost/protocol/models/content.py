"""Content blocks: what tools return, prompts contain and resources hold.

A block that deviates from the specification is read as what it must mean, with a remark. One that cannot be read is
kept among the others, with the reason.

Specification: schema of every revision; server/tools, server/resources (annotations), server/prompts.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, ValidationInfo
from pydantic.alias_generators import to_camel

from mcphost.errors import InvalidResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Hint, Shown, Wire, kind_of

EXCERPT_CHARACTERS: Final = 200
"""Characters that the reason of an unreadable block quotes of it: enough to recognise it."""


class Annotations(Wire):
    """A server's hints: for whom something is, and how important. None: not stated."""

    audience: Hint[list[str]] = None
    """``user``, ``assistant``, or both."""
    priority: Hint[float] = None
    """0 (optional) to 1 (practically required)."""
    last_modified: Hint[str] = None

    @property
    def modified(self) -> datetime | None:
        """``last_modified`` as a time, UTC unless it names a zone; None if it is invalid."""
        try:
            moment = datetime.fromisoformat(self.last_modified or "")
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _as_text(value: Any, info: ValidationInfo) -> Any:
    """A text as it is, another value as JSON."""
    if value is None or isinstance(value, str):
        return value
    if info.context is not None:
        info.context.append(f"{to_camel(info.field_name or '')} is {kind_of(value)}, and is shown as JSON")
    return json.dumps(value, ensure_ascii=False)


def plain_base64(data: str) -> str:
    """Base64 without what mail, web pages and URLs make of it: white space, ``data:…;base64,``, no padding, ``-_``."""
    head, comma, _ = data[:EXCERPT_CHARACTERS].partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        data = data[len(head) + 1 :]
    data = "".join(data.split())
    if "-" in data or "_" in data:
        data = data.replace("-", "+").replace("_", "/")
    return data + "=" * (-len(data) % 4)


_Text = Annotated[str, BeforeValidator(_as_text)]
_Base64 = Annotated[str, AfterValidator(plain_base64)]


class TextContent(Wire):
    """A text block of a result."""

    type: str
    text: _Text
    annotations: Hint[Annotations] = None


class MediaContent(Wire):
    """An image or audio block; ``data`` is base64, unchecked."""

    type: str
    data: _Base64
    mime_type: Shown[str] = "application/octet-stream"
    annotations: Hint[Annotations] = None

    def content(self) -> bytes:
        """The decoded bytes. Raises InvalidResult if the data is not base64."""
        return _decoded(self.data, f"the {self.type} data")


class ResourceContents(Wire):
    """A resource's contents: ``text``, or ``blob`` as base64."""

    uri: Shown[str] = ""
    """Empty where the server does not say it."""
    mime_type: Hint[str] = None
    text: Hint[_Text] = None
    blob: Hint[_Base64] = None

    def content(self) -> bytes:
        """The bytes, of a text in UTF-8. Raises InvalidResult if the blob is not base64."""
        if self.blob is not None:
            return _decoded(self.blob, "the blob")
        return (self.text or "").encode("utf-8", "surrogatepass")


class EmbeddedResource(Wire):
    """A resource embedded in a result."""

    type: str
    resource: ResourceContents
    annotations: Hint[Annotations] = None


class ResourceLink(Wire):
    """A link to a resource of the same server."""

    type: str
    uri: str
    name: Shown[str] = ""
    title: Hint[str] = None
    description: Hint[str] = None
    mime_type: Hint[str] = None
    size: Hint[int] = None
    annotations: Hint[Annotations] = None

    @property
    def label(self) -> str:
        return self.title or self.name or self.uri


@dataclass(frozen=True, slots=True)
class UnreadableContent:
    """A block of an unknown type or an invalid shape, with the reason."""

    type: str
    reason: str
    raw: Any

    @property
    def words(self) -> str:
        """The reason, with the beginning of what the block holds; not safe to show."""
        held = self.raw
        if isinstance(held, dict):
            held = held.get("text") or {name: value for name, value in held.items() if name != "type"}
        if held in (None, {}, [], ""):
            return self.reason
        text = held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
        rest = "…" if len(text) > EXCERPT_CHARACTERS else ""
        return f"{self.reason}: {text[:EXCERPT_CHARACTERS]}{rest}"


Content = TextContent | MediaContent | EmbeddedResource | ResourceLink | UnreadableContent


def _decoded(data: str, what: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidResult(f"{what} is not base64") from None


def _embedded(item: Mapping[str, Any]) -> Content:
    if "resource" not in item and "uri" in item:  # some early servers send this shape
        item = {**item, "resource": item}
    return EmbeddedResource.read(item)


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Content]]] = {
    "text": TextContent.read,
    "image": MediaContent.read,
    "audio": MediaContent.read,
    "resource": _embedded,
    "resource_link": ResourceLink.read,
}


def read_content(item: object) -> Content:
    """Parse one content block, and check its base64. Never raises."""
    block = parse_content(item)
    try:
        if isinstance(block, MediaContent):
            block.content()
        elif isinstance(block, EmbeddedResource):
            block.resource.content()
    except InvalidResult as error:
        return UnreadableContent(block.type, str(error), item)
    return block


def parse_content(item: object) -> Content:
    """Parse one content block without decoding its base64. Never raises."""
    if isinstance(item, str):
        return _remarked(TextContent(type="text", text=item), "a content block is a text, not an object")
    if not isinstance(item, dict):
        return UnreadableContent("?", "not a content block", item)
    kind = item.get("type")
    if not isinstance(kind, str):
        if isinstance(item.get("text"), str):
            named = TextContent.read({**item, "type": "text"})
            return _remarked(named, "a content block has no type, and is read as text", *named.remarks)
        return UnreadableContent("?", "not a content block", item)
    reader = _READERS.get(kind)
    if reader is None:
        return UnreadableContent(kind, "a type of content that mcphost does not know", item)
    try:
        return reader(item)
    except InvalidResult as error:
        return UnreadableContent(kind, str(error), item)


def is_plain_text(item: object) -> bool:
    """True if an item is a text block with nothing else in it, so that parsing it can find nothing to remark on."""
    return type(item) is dict and len(item) == 2 and item.get("type") == "text" and type(item.get("text")) is str


def items_of(result: Mapping[str, Any], key: str, owner: str, *members: str) -> list[Any]:
    """The list under ``key``; empty for null. A text, or an object with one of these members, is the only item.

    Raises InvalidResult for anything else; ``owner`` is what holds the list, in words.
    """
    value = result.get(key)
    if value is None:
        return []
    if isinstance(value, str) or (isinstance(value, dict) and any(name in value for name in members)):
        return [value]
    if type(value) is not list:
        raise InvalidResult(f"the {key} of the {owner} {'is' if key == 'content' else 'are'} not an array")
    return value


def remarks_on(blocks: Iterable[Content | ResourceContents]) -> list[str]:
    """Violations of the specification in blocks that could be read, each once."""
    readable = (block for block in blocks if not isinstance(block, UnreadableContent))
    return list(dict.fromkeys(remark for block in readable for remark in block.remarks))


def _remarked(block: TextContent, *remarks: str) -> TextContent:
    block.__dict__["remarks"] = remarks
    return block
