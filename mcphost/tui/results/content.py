"""Content blocks of results, resources and messages, described for the screen."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show, show_line, size_text
from mcphost.protocol.models.content import (
    Content,
    EmbeddedResource,
    MediaContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnreadableContent,
)
from mcphost.tui.kit.code_text import language_of
from mcphost.tui.kit.json_text import json_lines, parse
from mcphost.tui.kit.markdown import LONGEST, looks_like_markdown
from mcphost.tui.results.desktop_open import opened_as
from mcphost.tui.results.media import Probe, decoded_size, probe_base64
from mcphost.tui.results.pictures import is_drawn

TEXT_CHARACTERS: Final = 200_000
LEAST_ROOM: Final = 2_000
TEXT_LINES: Final = 2_000
"""Lines of a block; the rest can only be saved."""

_SAMPLE: Final = 200_000

_BYTES: Final = "application/octet-stream"
_ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-flac": "audio/flac",
}
"""Other names for known types."""

BLOCKS: Final = 50
"""Blocks that get a frame; the raw tab has all."""


class BlockPresentation(Enum):
    PLAIN = "source"
    JSON = "JSON"
    MARKDOWN = "Markdown"
    CODE = "code"
    HEX = "bytes"


@dataclass(frozen=True, slots=True)
class Block:
    """``title`` and ``facts`` are safe to show; everything else is as it came."""

    kind: str
    title: str
    text: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    mime_type: str = "text/plain"
    data: str | None = None
    """Base64."""
    link: str | None = None
    """The URI of a resource to read from the same server."""
    room: int = TEXT_CHARACTERS
    """Characters of the text that are shown."""
    lines: int = TEXT_LINES
    """Lines of the text that are shown."""
    uri: str = ""
    """The URI of the content, as it came."""
    found: Probe | None = None
    """The format that the first bytes of ``data`` show, if it is known."""
    link_size: int | None = None
    """The size in bytes of the linked resource, as its server says."""

    @property
    def mismatch(self) -> str:
        """Say which format the bytes have, if it is not the declared one; else empty."""
        declared = self.mime_type.partition(";")[0].strip().lower()
        known = self.found.type if self.found else declared
        return "" if _ALIASES.get(declared, declared) in (known, _BYTES) else f"its first bytes are those of {known}"

    @property
    def pixels(self) -> tuple[int, int] | None:
        """The size of an image that can be drawn, by its header."""
        return self.found.pixels if self.found is not None and is_drawn(self.found) else None

    @property
    def opens_as(self) -> str:
        """The MIME type under which it opens on the desktop; empty: not at all."""
        if self.kind not in ("text", "resource", "image", "audio"):
            return ""
        return opened_as(self.mime_type, self.found, self.text)

    @property
    def copied(self) -> str:
        """The text, the URI or the description, for the clipboard."""
        if self.text is not None:
            return self.text
        return self.link or "\n".join(f"{name}: {value}" for name, value in self.facts) or self.title

    def content(self) -> tuple[bytes, str]:
        """Return the bytes to save, and their MIME type."""
        if self.data is not None:
            try:
                return base64.b64decode(self.data, validate=True), self.mime_type
            except ValueError:
                return self.data.encode("utf-8", "surrogatepass"), "text/plain"
        return self.copied.encode("utf-8", "surrogatepass"), self.mime_type


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines that are safe to show; ``rest`` says how much was cut."""

    lines: Sequence[str]
    rest: str = ""


def describe(content: Content) -> Block:
    match content:
        case TextContent():
            return Block("text", _title("text", _size(content.text), _annotations(content)), content.text)
        case MediaContent():
            return _media(content)
        case EmbeddedResource():
            return _embedded(content.resource)
        case ResourceLink():
            return _link(content)
        case UnreadableContent():
            return _unreadable(content)


def quoted(label: str, text: str) -> Block:
    """Text of a server or an error, in a frame of its own."""
    return Block("quote", label, text)


def best_presentation(block: Block) -> tuple[BlockPresentation, Any]:
    """The best presentation of a block, and its value if it is JSON."""
    text = block.text
    if text is None:
        return (
            BlockPresentation.HEX if block.kind == "resource" and block.found is None else BlockPresentation.PLAIN,
            None,
        )
    if len(text) <= block.room:
        with suppress(ValueError):
            return BlockPresentation.JSON, parse(text)
    kind = block.mime_type.partition(";")[0].strip().lower()
    if block.kind == "quote" or len(text) > min(block.room, LONGEST):
        return BlockPresentation.PLAIN, None
    declared = kind in ("text/markdown", "text/x-markdown") or (kind == "text/plain" and block.uri.endswith(".md"))
    if not declared and language_of(kind, block.uri):
        return BlockPresentation.CODE, None
    return BlockPresentation.MARKDOWN if declared or (
        kind == "text/plain" and looks_like_markdown(text)
    ) else BlockPresentation.PLAIN, None


def cut(text: str, room: int = TEXT_CHARACTERS, lines: int = TEXT_LINES) -> Shown:
    """Cut a text to so many characters and lines."""
    end = min(_end_of_lines(text, lines), room)
    rest = _bytes(text[end:])
    return Shown(show(text[:end], joiners=True).split("\n"), f"{size_text(rest)} more" if rest else "")


def pretty(value: Any) -> Shown:
    """The lines of a JSON value."""
    lines, more = json_lines(value, TEXT_LINES, joiners=True)
    return Shown(lines, "more" if more else "")


def with_room(blocks: Iterable[Block], characters: int = TEXT_CHARACTERS, lines: int = TEXT_LINES) -> Iterator[Block]:
    """Limit the blocks to so many characters in total; each may have `LEAST_ROOM`."""
    left = characters
    for block in blocks:
        yield replace(block, room=max(left, LEAST_ROOM), lines=lines)
        left -= len(block.text or "")


def _end_of_lines(text: str, lines: int) -> int:
    at = -1
    for _ in range(lines):
        at = text.find("\n", at + 1)
        if at < 0:
            return len(text)
    return at


def _media(media: MediaContent) -> Block:
    found = probe_base64(media.data)
    title = _title(
        f"{media.type} {show_line(media.mime_type, 60)}",
        *_probe_parts(found)[1:],
        size_text(decoded_size(media.data)),
        _annotations(media),
    )
    facts = _why_only_named(media.mime_type, found)
    return Block(media.type, title, None, facts, media.mime_type, media.data, found=found)


def _embedded(resource: ResourceContents) -> Block:
    kind = resource.mime_type or ("text/plain" if resource.text is not None else _BYTES)
    name = show_line(resource.uri, 80)
    facts = (("uri", show_line(resource.uri, 500)), ("type", show_line(resource.mime_type or "not given", 120)))
    if resource.text is not None:
        title = _title("resource", name, show_line(resource.mime_type or "", 60), _size(resource.text))
        return Block("resource", title, resource.text, facts, kind, uri=resource.uri)
    data = resource.blob or ""
    found, size = probe_base64(data), size_text(decoded_size(data))
    title = _title(
        "resource", name, show_line(kind, 60), *_probe_parts(found)[kind == found.type if found else 0 :], size
    )
    more = (("bytes", size), *_why_only_named(kind, found))
    return Block("resource", title, None, (*facts, *more), kind, data, uri=resource.uri, found=found)


def _why_only_named(declared: str, found: Probe | None) -> tuple[tuple[str, str], ...]:
    """Why it is neither drawn nor played, and what the user can do."""
    words = "o opens it in a desktop program, w saves it." if opened_as(declared, found) else "w saves it to a file."
    if is_drawn(found):
        return (("", words),)
    if found is None and declared.startswith("image/"):
        words = f"Not drawn: only PNG, JPEG, GIF and WebP are. {words}"
    return (("", words),)


def _probe_parts(found: Probe | None) -> tuple[str, ...]:
    """Describe an image or audio by its first bytes: type, pixels, duration."""
    if found is None:
        return ()
    pixels = f"{found.pixels[0]}×{found.pixels[1]}" if found.pixels else ""
    seconds = duration_text(found.seconds) if found.seconds is not None else ""
    return tuple(part for part in (found.type, pixels, seconds) if part)


def _link(link: ResourceLink) -> Block:
    facts = (
        ("title", show_line(link.title or "")),
        ("name", show_line(link.name)),
        ("uri", show_line(link.uri, 2_000)),
        ("about", show_line(link.description or "", 1_000)),
        ("type", show_line(link.mime_type or "", 120)),
        ("bytes", "" if link.size is None else size_text(link.size)),
    )
    title = _title("link", show_line(link.title or link.name or link.uri, 60), _annotations(link))
    shown_facts = tuple(fact for fact in facts if fact[1])
    return Block("resource_link", title, None, shown_facts, "text/uri-list", None, link.uri, link_size=link.size)


def _unreadable(content: UnreadableContent) -> Block:
    facts = (("type", show_line(content.type, 80)), ("why", show_line(content.words, 400)))
    return Block("unreadable", _title("✖ unreadable", show_line(content.type, 40)), None, facts, "application/json")


def _annotations(content: TextContent | MediaContent | ResourceLink) -> str:
    """The annotations: audience, priority and last change."""
    hints = content.annotations
    if hints is None:
        return ""
    parts = (
        f"for {show_line(' and '.join(hints.audience), 40)}" if hints.audience else "",
        f"priority {hints.priority:g}" if hints.priority is not None else "",
        f"changed {hints.modified:%-d %b %Y %H:%M}" if hints.modified else "",
    )
    return " · ".join(part for part in parts if part)


def _title(*parts: str) -> str:
    return " · ".join(filter(None, parts))


def _size(text: str) -> str:
    return size_text(_bytes(text))


def _bytes(text: str) -> int:
    """The length in UTF-8; an estimate for megabytes that are not ASCII."""
    if text.isascii():
        return len(text)
    sample = text[:_SAMPLE]
    return len(sample.encode("utf-8", "surrogatepass")) * len(text) // len(sample)


def json_size(values: Iterable[Any]) -> int:
    """An estimate of the values' size as JSON; stops after 100,000 parts."""
    stack, total, left = list(values), 0, 100_000
    while stack and left:
        left -= 1
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend((*value, *value.values()))
        elif isinstance(value, list):
            stack.extend(value)
        total += _bytes(value) + 3 if isinstance(value, str) else 3
    return total
