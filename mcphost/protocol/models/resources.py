"""Resources, resource templates, and the result of reading a resource.

A URI is an opaque name, sent back byte for byte.

Specification: server/resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Hint, Shown, Wire, unread_words
from mcphost.protocol.models.content import Annotations, ResourceContents, UnreadableContent, items_of, remarks_on
from mcphost.protocol.models.freshness import Freshness


class Resource(Wire):
    """A resource as listed."""

    uri: str = Field(min_length=1)
    name: Shown[str] = ""
    title: Hint[str] = None
    description: Hint[str] = None
    mime_type: Hint[str] = None
    size: Hint[int] = None
    """Bytes, as the server claims."""
    annotations: Hint[Annotations] = None
    icons: Any = None

    @property
    def label(self) -> str:
        """The name for the screen; the wire uses ``uri``."""
        return self.title or self.name or self.uri

    @property
    def is_folder(self) -> bool:
        return self.mime_type == "inode/directory"


class ResourceTemplate(Wire):
    """A resource template (RFC 6570) as listed; `mcphost.protocol.uri_templates` expands it."""

    uri_template: str = Field(min_length=1)
    name: Shown[str] = ""
    title: Hint[str] = None
    description: Hint[str] = None
    mime_type: Hint[str] = None
    annotations: Hint[Annotations] = None
    icons: Any = None

    @property
    def label(self) -> str:
        """The name for the screen; the wire uses the template."""
        return self.title or self.name or self.uri_template


@dataclass(frozen=True, slots=True)
class ReadResourceResult:
    """The contents of a resource: any number, perhaps with other URIs than the one that was read."""

    contents: tuple[ResourceContents | UnreadableContent, ...]
    raw: Mapping[str, Any]
    """The result object as received."""
    freshness: Freshness | None = None
    """None: not known."""

    @classmethod
    def read(cls, result: Mapping[str, Any], freshness: Freshness | None = None) -> ReadResourceResult:
        """Parse a resources/read result. Raises InvalidResult."""
        contents = items_of(result, "contents", "resource", "uri", "text", "blob")
        return cls(tuple(map(_read_contents, contents)), result, freshness)

    @property
    def unread(self) -> str:
        """Why nothing of the result is shown although it holds something; empty if that is not so."""
        return "" if self.contents else unread_words(self.raw, ("contents",), "has no contents")

    @property
    def remarks(self) -> list[str]:
        """Violations of the specification in a result that could be read."""
        return remarks_on(self.contents)


def _read_contents(item: object) -> ResourceContents | UnreadableContent:
    try:
        contents = ResourceContents.read(item)
        if contents.text is None and contents.blob is None:
            raise InvalidResult("neither text nor blob")
        contents.content()
    except InvalidResult as error:
        return UnreadableContent("resource", str(error), item)
    return contents
