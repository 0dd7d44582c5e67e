"""The models of tools, initialization, logging and progress, in one vocabulary for all revisions.

Parsing is lenient: unknown members are kept, and one bad item never spoils the others. Nothing is made safe to show
here. The other models can be imported from here too; theirs are loaded on first use, since building them takes time.

Specification: schema of every revision; server/tools, utilities/logging.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from pydantic import Field

from mcphost.errors import InvalidResult
from mcphost.protocol.models.base import Wire, first_problem
from mcphost.protocol.models.content import (
    Annotations,
    Content,
    EmbeddedResource,
    MediaContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnreadableContent,
    read_content,
)

if TYPE_CHECKING:
    from mcphost.protocol.models.prompts import (
        Completion,
        CompletionRef,
        GetPromptResult,
        Prompt,
        PromptArgument,
        PromptMessage,
        PromptRef,
        TemplateRef,
    )
    from mcphost.protocol.models.resources import ReadResourceResult, Resource, ResourceTemplate
    from mcphost.protocol.models.tasks import RELATED_TASK, CreateTaskResult, Task, TaskSupport
else:
    _ELSEWHERE: Final = {
        "mcphost.protocol.models.prompts": {
            "Completion", "CompletionRef", "GetPromptResult", "Prompt", "PromptArgument", "PromptMessage", "PromptRef",
            "TemplateRef",
        },
        "mcphost.protocol.models.resources": {"ReadResourceResult", "Resource", "ResourceTemplate"},
        "mcphost.protocol.models.tasks": {"RELATED_TASK", "CreateTaskResult", "Task", "TaskSupport"},
    }  # fmt: skip

    def __getattr__(name: str) -> Any:
        for module, names in _ELSEWHERE.items():
            if name in names:
                return getattr(import_module(module), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "RELATED_TASK",
    "Annotations",
    "CallToolResult",
    "Completion",
    "CompletionRef",
    "Content",
    "CreateTaskResult",
    "EmbeddedResource",
    "GetPromptResult",
    "Implementation",
    "InitializeResult",
    "LogLevel",
    "MediaContent",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptRef",
    "ReadResourceResult",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceTemplate",
    "Task",
    "TaskSupport",
    "TemplateRef",
    "TextContent",
    "Tool",
    "ToolAnnotations",
    "UnreadableContent",
    "Wire",
    "build_readers",
    "first_problem",
    "read_content",
]


class Implementation(Wire):
    """The other side's name and version: a claim, never a reason for trust."""

    name: str = ""
    version: str = ""
    title: str | None = None
    description: str | None = None
    website_url: str | None = None


class InitializeResult(Wire):
    """The result of ``initialize``."""

    protocol_version: str
    capabilities: dict[str, Any] = Field(default_factory=dict)
    server_info: Implementation = Field(default_factory=Implementation)
    instructions: str | None = None


class ToolAnnotations(Wire):
    """A server's claims about a tool. None: no claim; the cautious default applies."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Tool(Wire):
    """A tool as listed."""

    name: str = Field(min_length=1)
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None

    @property
    def label(self) -> str:
        """The name for the screen; the wire uses ``name``."""
        return self.title or (self.annotations and self.annotations.title) or self.name

    @cached_property
    def refusal(self) -> str:
        """Why mcphost does not call it: one of its schemas refers to another document. Empty: it may be called."""
        from mcphost.protocol.schema.validation import refers_outside

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
    def claims(self) -> tuple[str, ...]:
        """The server's claims in words."""
        hints = self.annotations or ToolAnnotations()
        pairs = (
            (hints.read_only_hint, "read-only", "writes"),
            (None if hints.read_only_hint else hints.destructive_hint, "destructive", "not destructive"),
            (hints.idempotent_hint, "idempotent", "not idempotent"),
            (hints.open_world_hint, "open-world", "closed-world"),
        )
        return tuple(yes if hint else no for hint, yes, no in pairs if hint is not None)

    @property
    def task_support(self) -> TaskSupport:
        """Whether it may, or must, be called as a task."""
        from mcphost.protocol.models.tasks import TaskSupport

        return TaskSupport.read((self.model_extra or {}).get("execution"))


def build_readers() -> None:
    """Build the models of every server's first responses now, instead of at their first use."""
    for model in (InitializeResult, Tool):
        model.model_rebuild()


@dataclass(frozen=True)
class CallToolResult:
    """The result of a tool call."""

    raw: Mapping[str, Any]
    """The result object as received."""

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> CallToolResult:
        """Parse a tools/call result. Raises InvalidResult."""
        if type(result.get("content", [])) is not list:
            raise InvalidResult("the content of the tool result is not an array")
        return cls(result)

    @cached_property
    def content(self) -> tuple[Content, ...]:
        """The blocks, parsed at first use."""
        return tuple(map(read_content, self.raw.get("content", [])))

    @property
    def structured(self) -> Any:
        """``structuredContent``; check ``has_structured``, since null is a valid content."""
        return self.raw.get("structuredContent")

    @property
    def has_structured(self) -> bool:
        return "structuredContent" in self.raw

    @property
    def is_error(self) -> bool:
        """Did the tool report a failure? Its content says why."""
        return self.raw.get("isError") is True


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
        """The name on the wire."""
        return self.name.lower()

    @classmethod
    def read(cls, name: object) -> LogLevel | None:
        """The level of this name; None if there is none."""
        return cls.__members__.get(name.upper()) if isinstance(name, str) and name.islower() else None


@dataclass(frozen=True, slots=True)
class Progress:
    """The latest progress of a request."""

    progress: float
    total: float | None = None
    message: str | None = None

    @property
    def fraction(self) -> float | None:
        """Between 0 and 1; None if the total is unknown or invalid."""
        if self.total is None or self.total <= 0:
            return None
        return min(max(self.progress / self.total, 0.0), 1.0)

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> Progress | None:
        """Parse the params of notifications/progress; None if they are invalid."""
        done, total, message = params.get("progress"), params.get("total"), params.get("message")
        if not _is_number(done):
            return None
        return cls(done, total if _is_number(total) else None, message if isinstance(message, str) else None)


def _is_number(value: object) -> TypeGuard[float]:
    # JSON integers are unbounded; one beyond the range of floats would fail in a division.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
