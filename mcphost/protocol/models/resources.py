"""Resources and their templates, and what reading one brings.

A URI is an opaque name: kept and sent back byte for byte, whatever its scheme.

Specification: server/resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.protocol.models.base import Hint, Wire
from mcphost.protocol.models.content import Annotations, ResourceContents, UnreadableContent


class Resource(Wire):
    """A resource as its server lists it."""

    uri: str = Field(min_length=1)
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: Hint[int] = None
    """Bytes, as the server claims."""
    annotations: Hint[Annotations] = None
    icons: Any = None

    @property
    def label(self) -> str:
        """What to call it on screen; the wire always uses ``uri``."""
        return self.title or self.name or self.uri

    @property
    def is_folder(self) -> bool:
        """Does it stand for a directory?"""
        return self.mime_type == "inode/directory"


class ResourceTemplate(Wire):
    """A pattern of URIs (RFC 6570) as its server lists it; `mcphost.protocol.uri_templates` fills it in."""

    uri_template: str = Field(min_length=1)
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Hint[Annotations] = None
    icons: Any = None

    @property
    def label(self) -> str:
        """What to call it on screen; the wire always uses the template."""
        return self.title or self.name or self.uri_template


@dataclass(frozen=True, slots=True)
class ReadResourceResult:
    """What reading a resource brought: any number of contents, which may have other URIs than the one that was read."""

    contents: tuple[ResourceContents | UnreadableContent, ...]
    raw: Mapping[str, Any]
    """The protocol's own result object."""

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> ReadResourceResult:
        """Read a resources/read result; raises InvalidResult when it is none."""
        contents = result.get("contents", [])
        if type(contents) is not list:
            raise InvalidResult("the contents of the resource are not an array")
        return cls(tuple(map(_read_contents, contents)), result)


def _read_contents(item: object) -> ResourceContents | UnreadableContent:
    try:
        contents = ResourceContents.read(item)
        if contents.text is None and contents.blob is None:
            raise InvalidResult("neither text nor blob")
        if contents.blob is not None:
            contents.content()
    except InvalidResult as error:
        return UnreadableContent("resource", str(error), item)
    return contents
