"""The protocol's nouns, in one vocabulary for all revisions: lenient in, exact out.

Members nobody here knows are kept, optional ones may be missing, and one bad item never spoils its neighbours. What
is read is what was sent: nothing here makes text safe to show (`mcphost.protocol.display` does).

Specification: schema of every revision; server/tools, utilities/logging.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Self, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from mcphost.errors import InvalidResult


class Wire(BaseModel):
    """The base of what arrives as JSON: camelCase there, snake_case here, unknown members kept."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )

    @classmethod
    def read(cls, value: object) -> Self:
        """The model of ``value``; raises InvalidResult with the first thing that is wrong."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise InvalidResult(first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """The first thing a model found wrong, in a few words."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


class Implementation(Wire):
    """Who the other side says it is; a claim, never a reason for trust."""

    name: str = ""
    version: str = ""
    title: str | None = None
    description: str | None = None
    website_url: str | None = None


class InitializeResult(Wire):
    """What a server says of itself when a session opens."""

    protocol_version: str
    capabilities: dict[str, Any] = Field(default_factory=dict)
    server_info: Implementation = Field(default_factory=Implementation)
    instructions: str | None = None


class ToolAnnotations(Wire):
    """What a server claims of a tool. None: it claims nothing, and the careful default holds."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Tool(Wire):
    """A tool as its server defines it."""

    name: str = Field(min_length=1)
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None

    @property
    def label(self) -> str:
        """What to call it on screen; the wire always uses ``name``."""
        return self.title or (self.annotations and self.annotations.title) or self.name

    @property
    def may_destroy(self) -> bool:
        """Not claimed harmless: absent hints mean it writes, and destroys."""
        hints = self.annotations or ToolAnnotations()
        return hints.read_only_hint is not True and hints.destructive_hint is not False

    @property
    def claims(self) -> tuple[str, ...]:
        """What the server claims, in words; empty when it claims nothing."""
        hints = self.annotations or ToolAnnotations()
        pairs = (
            (hints.read_only_hint, "read-only", "writes"),
            (None if hints.read_only_hint else hints.destructive_hint, "destructive", "not destructive"),
            (hints.idempotent_hint, "idempotent", "not idempotent"),
            (hints.open_world_hint, "open-world", "closed-world"),
        )
        return tuple(yes if hint else no for hint, yes, no in pairs if hint is not None)

    def definition(self) -> dict[str, Any]:
        """The definition as it came, for fingerprints, differences and the raw view."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Text(Wire):
    """A text block of a result."""

    type: str
    text: str


class Media(Wire):
    """An image or audio block; ``data`` is base64 as it came."""

    type: str
    data: str
    mime_type: str = "application/octet-stream"

    def content(self) -> bytes:
        """The bytes; raises InvalidResult when the data is not base64."""
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidResult(f"the {self.type} data is not base64") from None


class ResourceContents(Wire):
    """A resource's contents: ``text``, or ``blob`` as base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class EmbeddedResource(Wire):
    """A resource carried inside a result."""

    type: str
    resource: ResourceContents


class ResourceLink(Wire):
    """A pointer to a resource that the same server can be asked for."""

    type: str
    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A block of an unknown type or a wrong shape, kept beside its neighbours with the reason."""

    type: str
    reason: str
    raw: Any


Content = Text | Media | EmbeddedResource | ResourceLink | Unreadable


def _embedded(item: Mapping[str, Any]) -> Content:
    if "resource" not in item and "uri" in item:  # a shape some early servers send
        return EmbeddedResource.read({**item, "resource": item})
    return EmbeddedResource.read(item)


def _media(item: Mapping[str, Any]) -> Content:
    media = Media.read(item)
    media.content()
    return media


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Content]]] = {
    "text": Text.read,
    "image": _media,
    "audio": _media,
    "resource": _embedded,
    "resource_link": ResourceLink.read,
}


def read_content(item: object) -> Content:
    """One content block; never raises."""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return Unreadable("?", "not a content block", item)
    kind = item["type"]
    reader = _READERS.get(kind)
    if reader is None:
        return Unreadable(kind, "a type of content that mcphost does not know", item)
    try:
        return reader(item)
    except InvalidResult as error:
        return Unreadable(kind, str(error), item)


@dataclass(frozen=True, slots=True)
class CallToolResult:
    """What a tool answered."""

    content: tuple[Content, ...]
    structured: Any
    """``structuredContent``; meaningful only when ``has_structured``, since null can be content."""
    has_structured: bool
    is_error: bool
    """The tool itself says that it failed; its content says why."""
    raw: Mapping[str, Any]
    """The protocol's own result object."""

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> CallToolResult:
        """Read a tools/call result; raises InvalidResult when it is none."""
        blocks = result.get("content", [])
        if type(blocks) is not list:
            raise InvalidResult("the content of the tool result is not an array")
        return cls(
            content=tuple(map(read_content, blocks)),
            structured=result.get("structuredContent"),
            has_structured="structuredContent" in result,
            is_error=result.get("isError") is True,
            raw=result,
        )


class LogLevel(IntEnum):
    """The severities of RFC 5424, least first."""

    DEBUG = 0
    INFO = 1
    NOTICE = 2
    WARNING = 3
    ERROR = 4
    CRITICAL = 5
    ALERT = 6
    EMERGENCY = 7

    @property
    def wire(self) -> str:
        """Its name on the wire."""
        return self.name.lower()

    @classmethod
    def read(cls, name: object) -> LogLevel | None:
        """The level of this name; None for a name that no revision has."""
        return cls.__members__.get(name.upper()) if isinstance(name, str) and name.islower() else None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request has come, as last told."""

    progress: float
    total: float | None = None
    message: str | None = None

    @property
    def fraction(self) -> float | None:
        """Between 0 and 1; None when the total is unknown or senseless."""
        if self.total is None or self.total <= 0:
            return None
        return min(max(self.progress / self.total, 0.0), 1.0)

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Progress | None:
        """Read the params of notifications/progress; None when they say no number."""
        done, total, message = params.get("progress"), params.get("total"), params.get("message")
        if not _is_number(done):
            return None
        return cls(done, total if _is_number(total) else None, message if isinstance(message, str) else None)


def _is_number(value: object) -> TypeGuard[float]:
    # JSON's integers have no end; one that no float can hold would fail in the first division.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
