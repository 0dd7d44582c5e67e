"""Tools and the results of tool calls, in one vocabulary for all revisions.

Parsing is lenient: unknown members are kept, and one bad item never spoils the others. Nothing is made safe to show
here.

Specification: server/tools of every revision; extensions/apps (``_meta.ui``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from functools import cached_property
from typing import Any

from pydantic import Field, StrictBool

from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.base import Hint, Wire, kind_of, unread_words
from mcphost.protocol.models.content import Content, is_plain_text, items_of, parse_content, read_content, remarks_on
from mcphost.protocol.schema.validation import refers_outside


class TaskSupport(Enum):
    """Support of calls as tasks."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"

    @classmethod
    def read(cls, execution: Any) -> TaskSupport:
        """Parse a tool's ``execution``; FORBIDDEN if it is invalid."""
        word = as_dict(execution).get("taskSupport")
        return next((each for each in cls if each.value == word), cls.FORBIDDEN)


class ToolAnnotations(Wire):
    """A server's claims about a tool. None: no claim; the cautious default applies."""

    # Strict, since a hint may spare the user a question: a text or a number claims nothing.
    title: Hint[str] = None
    read_only_hint: Hint[StrictBool] = None
    destructive_hint: Hint[StrictBool] = None
    idempotent_hint: Hint[StrictBool] = None
    open_world_hint: Hint[StrictBool] = None


class Tool(Wire):
    """A tool as listed."""

    name: str = Field(min_length=1)
    title: Hint[str] = None
    description: Hint[str] = None
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    output_schema: Hint[dict[str, Any]] = None
    annotations: Hint[ToolAnnotations] = None

    @property
    def label(self) -> str:
        """The name for the screen; the wire uses ``name``."""
        return self.title or (self.annotations and self.annotations.title) or self.name

    @property
    def takes_arguments(self) -> bool:
        """True if there is anything to fill in."""
        schema = self.input_schema
        plain = set(schema) <= {"type", "properties", "$schema", "additionalProperties"}
        return bool(schema.get("properties")) or not plain

    @cached_property
    def refusal(self) -> str:
        """Why mcphost does not call it: one of its schemas refers to another document. Empty: it may be called."""
        return refers_outside(self.input_schema) or refers_outside(self.output_schema)

    @property
    def open_world(self) -> bool:
        """Not claimed to be closed-world: anybody may have written its results."""
        return (self.annotations or ToolAnnotations()).open_world_hint is not False

    @property
    def reaches_out(self) -> bool:
        """Not claimed to be both read-only and closed-world: it may change or disclose something."""
        return (self.annotations or ToolAnnotations()).read_only_hint is not True or self.open_world

    @property
    def may_destroy(self) -> bool:
        """Not claimed to be read-only or not destructive: without a claim, the specification's defaults hold."""
        hints = self.annotations or ToolAnnotations()
        return hints.read_only_hint is not True and hints.destructive_hint is not False

    @property
    def claims(self) -> tuple[str, ...]:
        """The server's claims in words."""
        if (hints := self.annotations) is None:
            return ()
        pairs = (
            (hints.read_only_hint, "read-only", "writes"),
            (None if hints.read_only_hint else hints.destructive_hint, "destructive", "not destructive"),
            (hints.idempotent_hint, "idempotent", "not idempotent"),
            (hints.open_world_hint, "open-world", "closed-world"),
        )
        return tuple(yes if hint else no for hint, yes, no in pairs if hint is not None)

    @property
    def has_ui(self) -> bool:
        """True if an app shows its results in a user interface of its own."""
        return "resourceUri" in self._ui

    @property
    def app_only(self) -> bool:
        """True if it is for that user interface alone, and for no model."""
        audience = self._ui.get("visibility")
        return isinstance(audience, list) and "model" not in audience

    @property
    def _ui(self) -> Mapping[str, Any]:
        meta = (self.model_extra or {}).get("_meta")
        ui = as_dict(meta).get("ui")
        return as_dict(ui)

    @property
    def task_support(self) -> TaskSupport:
        return TaskSupport.read((self.model_extra or {}).get("execution"))


def says_failure(said: object) -> bool:
    """True if a value of ``isError`` says that the tool failed.

    One that is neither true nor false counts as true unless it says no: to take a failure for a success would mislead
    a user, a script or a model more than the reverse.
    """
    return said.strip().lower() not in ("", "0", "false") if isinstance(said, str) else bool(said)


@dataclass(frozen=True)
class CallToolResult:
    """The result of a tool call."""

    raw: Mapping[str, Any]
    """The result object as received."""
    null_is_value: bool = field(default=True, compare=False)
    """True if structured content may be null, as since 2026-07-28; before, null counts as absent."""

    @classmethod
    def read(cls, result: Mapping[str, Any], *, null_is_value: bool = True) -> CallToolResult:
        """Parse a tools/call result. Raises InvalidResult."""
        items_of(result, "content", "tool result", "type", "text")
        return cls(result, null_is_value)

    @cached_property
    def content(self) -> tuple[Content, ...]:
        """The blocks, parsed at first use."""
        return tuple(map(read_content, items_of(self.raw, "content", "tool result", "type", "text")))

    @property
    def structured(self) -> Any:
        """``structuredContent``; check ``has_structured``, since null is a valid content."""
        return self.raw.get("structuredContent")

    @property
    def has_structured(self) -> bool:
        return "structuredContent" in self.raw and (self.null_is_value or self.structured is not None)

    @property
    def is_error(self) -> bool:
        """True if the tool reported a failure; its content says why."""
        return says_failure(self.raw.get("isError"))

    @property
    def unread(self) -> str:
        """Why nothing of the result is shown although it holds something; empty if that is not so."""
        if self.content or self.has_structured:
            return ""
        known = ("content", "structuredContent", "isError")
        return unread_words(self.raw, known, "has neither content nor structuredContent")

    @property
    def remarks(self) -> list[str]:
        """Violations of the specification in a result that could be read."""
        content, failed = self.raw.get("content", []), self.raw.get("isError", False)
        remarks = [] if isinstance(content, list) else [f"content is {kind_of(content)}, not a list"]
        if "structuredContent" in self.raw and not self.has_structured:
            remarks.append("structuredContent is null, and counts as absent")
        if not isinstance(failed, bool):
            counts = "an error" if self.is_error else "no error"
            remarks.append(f"isError is {kind_of(failed)}, not true or false, and counts as {counts}")
        items = items_of(self.raw, "content", "tool result", "type", "text")
        if not items and self.unread:
            remarks.append(self.unread)
        # Most results need no parsing for this, and none the decoding of pictures: that is left to their first use.
        return remarks if all(map(is_plain_text, items)) else remarks + remarks_on(map(parse_content, items))
