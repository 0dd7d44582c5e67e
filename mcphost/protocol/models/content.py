"""Content blocks: what tools return, prompts contain and resources hold.

A block that cannot be read is kept among the others, with the reason.

Specification: schema of every revision; server/tools, server/resources (annotations), server/prompts.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from mcphost.errors import InvalidResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Hint, Wire


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


class TextContent(Wire):
    """A text block of a result."""

    type: str
    text: str
    annotations: Hint[Annotations] = None


class MediaContent(Wire):
    """An image or audio block; ``data`` is base64, unchecked."""

    type: str
    data: str
    mime_type: str = "application/octet-stream"
    annotations: Hint[Annotations] = None

    def content(self) -> bytes:
        """The decoded bytes. Raises InvalidResult if the data is not base64."""
        return _decoded(self.data, f"the {self.type} data")


class ResourceContents(Wire):
    """A resource's contents: ``text``, or ``blob`` as base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None

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
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Hint[Annotations] = None

    @property
    def label(self) -> str:
        """The name for the screen."""
        return self.title or self.name or self.uri


@dataclass(frozen=True, slots=True)
class UnreadableContent:
    """A block of an unknown type or an invalid shape, with the reason."""

    type: str
    reason: str
    raw: Any


Content = TextContent | MediaContent | EmbeddedResource | ResourceLink | UnreadableContent


def _decoded(data: str, what: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidResult(f"{what} is not base64") from None


def _embedded(item: Mapping[str, Any]) -> Content:
    if "resource" not in item and "uri" in item:  # some early servers send this shape
        return EmbeddedResource.read({**item, "resource": item})
    return EmbeddedResource.read(item)


def _media(item: Mapping[str, Any]) -> Content:
    media = MediaContent.read(item)
    media.content()
    return media


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Content]]] = {
    "text": TextContent.read,
    "image": _media,
    "audio": _media,
    "resource": _embedded,
    "resource_link": ResourceLink.read,
}


def read_content(item: object) -> Content:
    """Parse one content block. Never raises."""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return UnreadableContent("?", "not a content block", item)
    kind = item["type"]
    reader = _READERS.get(kind)
    if reader is None:
        return UnreadableContent(kind, "a type of content that mcphost does not know", item)
    try:
        return reader(item)
    except InvalidResult as error:
        return UnreadableContent(kind, str(error), item)
