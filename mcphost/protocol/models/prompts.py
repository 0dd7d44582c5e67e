"""Prompts, their messages, and argument completion.

Specification: server/prompts; server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Hint, Shown, Wire, unread_words
from mcphost.protocol.models.content import Content, UnreadableContent, items_of, read_content, remarks_on

COMPLETION_VALUES: Final = 100
"""The most values of one result, by the specification; further ones are ignored."""

VALUE_CHARACTERS: Final = 4096
"""Characters of a usable suggestion."""


class PromptArgument(Wire):
    """An argument of a prompt. Its value is always a string on the wire."""

    name: str = Field(min_length=1)
    title: Hint[str] = None
    description: Hint[str] = None
    required: Shown[bool] = False

    @property
    def label(self) -> str:
        """The name for the screen; the wire uses ``name``."""
        return self.title or self.name


class Prompt(Wire):
    """A prompt as listed."""

    name: str = Field(min_length=1)
    title: Hint[str] = None
    description: Hint[str] = None
    arguments: list[PromptArgument] | None = None
    icons: Any = None

    @property
    def label(self) -> str:
        """The name for the screen; the wire uses ``name``."""
        return self.title or self.name

    def missing(self, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """The required arguments that are missing in ``arguments``."""
        return tuple(each.name for each in self.arguments or () if each.required and each.name not in arguments)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt; ``role`` is ``user``, ``assistant`` or any other text of the server."""

    role: str
    content: Content


@dataclass(frozen=True, slots=True)
class GetPromptResult:
    """The messages of a prompt."""

    description: str | None
    messages: tuple[PromptMessage, ...]
    raw: Mapping[str, Any]
    """The result object as received."""

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> GetPromptResult:
        """Parse a prompts/get result. Raises InvalidResult."""
        description = result.get("description")
        items = items_of(result, "messages", "prompt", "role")
        parsed = tuple(message for item in items for message in _messages(item))
        return cls(description if isinstance(description, str) else None, parsed, result)

    @property
    def unread(self) -> str:
        """Why nothing of the result is shown although it holds something; empty if that is not so."""
        return "" if self.messages else unread_words(self.raw, ("messages", "description"), "has no messages")

    @property
    def remarks(self) -> list[str]:
        """Violations of the specification in a result that could be read."""
        return remarks_on(message.content for message in self.messages)


def _messages(item: object) -> Iterator[PromptMessage]:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        yield PromptMessage("?", UnreadableContent("?", "not a message: it has no role", item))
        return
    content = item.get("content")
    blocks = content if isinstance(content, list) else [content]  # some servers send several blocks under one role
    yield from (PromptMessage(item["role"], read_content(block)) for block in blocks)


@dataclass(frozen=True, slots=True)
class PromptRef:
    """Refers to the prompt whose argument is completed."""

    name: str

    def as_object(self) -> dict[str, str]:
        """The ``ref`` of a completion request."""
        return {"type": "ref/prompt", "name": self.name}


@dataclass(frozen=True, slots=True)
class TemplateRef:
    """Refers to the resource template whose argument is completed."""

    uri: str

    def as_object(self) -> dict[str, str]:
        """The ``ref`` of a completion request."""
        return {"type": "ref/resource", "uri": self.uri}


CompletionRef = PromptRef | TemplateRef


class _Suggestions(Wire):
    values: list[Any] | None = None
    total: Hint[int] = None
    has_more: Hint[bool] = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The suggestions for an argument."""

    values: tuple[str, ...] = ()
    """At most `COMPLETION_VALUES`, unchecked."""
    total: int | None = None
    """The total number of suggestions, if the server states it."""
    has_more: bool = False
    unreadable: int = field(default=0, compare=False)
    """The number of values that are not texts."""
    unread: str = field(default="", compare=False)
    """The reason for no suggestions although the result holds something; else empty."""

    @property
    def usable(self) -> tuple[str, ...]:
        """The values that fit a field: printable, on one line, each once."""
        fit = (value for value in self.values if value.isprintable() and len(value) <= VALUE_CHARACTERS)
        return tuple(dict.fromkeys(fit))

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> Completion:
        """Parse a completion/complete result. Never raises: an invalid result is empty."""
        given = result.get("completion") or {}
        try:
            found = _Suggestions.read(given)
        except InvalidResult as error:
            return cls(unread=f"the completion of the result cannot be read: {error}")
        known = ("values", "total", "hasMore") if given else ("completion",)
        unread = "" if found.values is not None else unread_words(given or result, known, "has no suggestions")
        items = found.values or []
        values = [value for value in items if isinstance(value, str)]
        cut, unreadable = len(values) > COMPLETION_VALUES, len(items) - len(values)
        more = found.has_more is True or cut
        return cls(tuple(values[:COMPLETION_VALUES]), found.total, more, unreadable=unreadable, unread=unread)
