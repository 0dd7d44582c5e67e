"""The revisions of the protocol as a table: which method and capability exists in which.

A version string is an opaque date from this list; nothing is parsed out of it and nothing like it is accepted.

Specification: basic/lifecycle (version and capability negotiation), of every revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Era(Enum):
    """How a connection is opened and what rides on a request."""

    LEGACY = "legacy"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Revision:
    """One dated revision and the rules that differ between them."""

    version: str
    era: Era
    batches: bool = False
    """May an array of messages arrive?"""
    completion_context: bool = False
    """Does a completion request say what the other arguments are?"""
    tasks: bool = False
    """May a tool call be answered later, as a task of the core protocol's?"""
    elicitation: tuple[str, ...] = ()
    """The modes in which a server may ask the user for something."""


V2024_11_05: Final = Revision("2024-11-05", Era.LEGACY)
V2025_03_26: Final = Revision("2025-03-26", Era.LEGACY, batches=True)
V2025_06_18: Final = Revision("2025-06-18", Era.LEGACY, completion_context=True, elicitation=("form",))
V2025_11_25: Final = Revision(
    "2025-11-25", Era.LEGACY, completion_context=True, tasks=True, elicitation=("form", "url")
)

LEGACY: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
"""Oldest first."""

NEWEST_LEGACY: Final = LEGACY[-1]
_BY_VERSION: Final[Mapping[str, Revision]] = {revision.version: revision for revision in LEGACY}

NEEDED_CAPABILITY: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "resources/subscribe": "resources.subscribe",
    "resources/unsubscribe": "resources.subscribe",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "logging/setLevel": "logging",
    "completion/complete": "completions",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/cancel": "tasks.cancel",
    "tasks/list": "tasks.list",
}
"""The server capability without which a method is not sent."""

ASKS_FOR: Final[Mapping[str, str]] = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
"""The client capability without which a server may not send a request."""

MAY_ASK: Final = frozenset({"tools/call", "tasks/result", "prompts/get", "resources/read"})
"""The requests a server may have to ask us something for before it can answer."""

TASK_CALLS: Final = "tasks.requests.tools.call"
"""The server capability without which no tool is called as a task."""

_FLAGS: Final = frozenset({"resources.subscribe"})
"""Capabilities that are a boolean: present and false means no. All others are objects."""

_UNDECLARED: Final[Mapping[str, str]] = {"completions": "2025-03-26"}
"""Capabilities that older revisions had no word for, with the revision that brought the word."""


def find_revision(version: object) -> Revision | None:
    """The revision with exactly this version string, else None."""
    return _BY_VERSION.get(version) if type(version) is str else None


def missing_capability(method: str, capabilities: Mapping[str, Any], revision: Revision) -> str | None:
    """The capability that ``method`` needs and the server did not declare; None when it may be sent."""
    needed = NEEDED_CAPABILITY.get(method)
    return None if needed is None or offers(needed, capabilities, revision) else needed


def offers(capability: str, capabilities: Mapping[str, Any], revision: Revision) -> bool:
    """Did the server declare this (``feature`` or ``feature.part``), in a revision that has it?

    What is a flag is offered only when it is ``true``: its mere presence says nothing.
    """
    if revision.version < _UNDECLARED.get(capability, ""):
        return True
    *features, last = capability.split(".")
    if "tasks" in (*features, last) and not revision.tasks:
        return False
    declared: Any = capabilities
    for feature in features:
        declared = declared.get(feature)
        if not isinstance(declared, dict):
            return False
    return declared.get(last) is True if capability in _FLAGS else isinstance(declared.get(last), dict)
