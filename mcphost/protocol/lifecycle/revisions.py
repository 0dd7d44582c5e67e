"""The protocol revisions as a table: which method and capability exists in which.

A version string is an opaque date of this table; it is compared, never parsed.

Specification: basic/lifecycle (version and capability negotiation), of every revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision, and the rules in which revisions differ."""

    version: str
    batches: bool = False
    """True if JSON-RPC batches are allowed."""
    completion_context: bool = False
    """True if a completion request may carry the other arguments."""
    tasks: bool = False
    """True if a tool may be called as a task of the core protocol."""
    elicitation: tuple[str, ...] = ()
    """The elicitation modes."""
    modern: bool = False
    """True if each request carries its own metadata, instead of a handshake at the start."""


V2024_11_05: Final = Revision("2024-11-05")
V2025_03_26: Final = Revision("2025-03-26", batches=True)
V2025_06_18: Final = Revision("2025-06-18", completion_context=True, elicitation=("form",))
V2025_11_25: Final = Revision("2025-11-25", completion_context=True, tasks=True, elicitation=("form", "url"))

V2026_07_28: Final = Revision("2026-07-28", completion_context=True, elicitation=("form", "url"), modern=True)

HANDSHAKE_REVISIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
"""The revisions whose sessions begin with ``initialize``, oldest first."""

MODERN_REVISIONS: Final = (V2026_07_28,)
"""The revisions without a handshake, oldest first."""

REVISIONS: Final = (*HANDSHAKE_REVISIONS, *MODERN_REVISIONS)
"""The revisions that are spoken, oldest first."""

NEWEST_HANDSHAKE: Final = HANDSHAKE_REVISIONS[-1]
NEWEST_MODERN: Final = MODERN_REVISIONS[-1]
_BY_VERSION: Final[Mapping[str, Revision]] = {revision.version: revision for revision in REVISIONS}

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
"""The server capability that each method requires."""

META_PREFIX: Final = "io.modelcontextprotocol/"
"""Of the keys of ``_meta`` that the specification reserves."""

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The member of ``_meta`` that names the task of a message."""

_MODERN_CAPABILITY: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "tools/call": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "completion/complete": "completions",
}
"""The server capability that each method without a handshake requires."""

NEEDED_EXTENSION: Final[Mapping[str, str]] = {
    "tasks/get": TASKS_EXTENSION,
    "tasks/update": TASKS_EXTENSION,
    "tasks/cancel": TASKS_EXTENSION,
    "skills/list": SKILLS_EXTENSION,
    "skills/get": SKILLS_EXTENSION,
    "resources/directory/read": SKILLS_EXTENSION,
}
"""The extension that each method without a handshake requires of both sides."""

_SKILLS: Final = frozenset({"skills/list", "skills/get", "resources/directory/read"})
"""Methods of skills: with a handshake, it is enough that the server declares the extension."""

DIRECTORY_READ: Final = "directoryRead"
"""The member of the extension's declaration that `resources/directory/read` requires to be true."""

_WITHOUT_CAPABILITY: Final = frozenset({"initialize", "ping"})
_WITHOUT_CAPABILITY_MODERN: Final = frozenset({"server/discover", "subscriptions/listen"})
"""Requests that need no capability of the server."""

REMOVED_METHODS: Final = frozenset(
    {
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
    }
)
"""Requests of the handshake revisions that the modern ones no longer have."""

ASKS_FOR: Final[Mapping[str, str]] = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
"""The client capability that each server request requires."""

MAY_ASK: Final = frozenset({"tools/call", "tasks/result", "prompts/get", "resources/read"})
"""Requests that may make the server ask for input before it answers."""

MAY_NEED_INPUT: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that a modern server may answer with ``input_required``."""

TASK_CALLS: Final = "tasks.requests.tools.call"
"""The server capability for calling tools as tasks."""

_FLAGS: Final = frozenset({"resources.subscribe"})
"""Boolean capabilities. All others are objects, whose presence counts."""

_UNDECLARED: Final[Mapping[str, str]] = {"completions": "2025-03-26"}
"""Capabilities that older revisions could not declare, with the revision that introduced each."""


def find_revision(version: object) -> Revision | None:
    """The revision with exactly this version string, else None."""
    return _BY_VERSION.get(version) if type(version) is str else None


def missing_capability(method: str, capabilities: Mapping[str, Any], revision: Revision) -> str | None:
    """The capability that ``method`` requires and the server lacks; None if it may be sent."""
    if (revision.modern or method in _SKILLS) and (extension := NEEDED_EXTENSION.get(method)) is not None:
        if not has_extension(extension, capabilities):
            return extension
        reads = capabilities["extensions"][extension].get(DIRECTORY_READ) is True
        return None if reads or method != "resources/directory/read" else f"{DIRECTORY_READ} of {extension}"
    needed = (_MODERN_CAPABILITY if revision.modern else NEEDED_CAPABILITY).get(method)
    return None if needed is None or offers(needed, capabilities, revision) else needed


def serves(method: str, capabilities: Mapping[str, Any], revision: Revision) -> bool:
    """True if a server with these capabilities has the request ``method`` in this revision."""
    if revision.modern:
        known = _WITHOUT_CAPABILITY_MODERN | _MODERN_CAPABILITY.keys() | NEEDED_EXTENSION.keys()
    else:
        known = _WITHOUT_CAPABILITY | NEEDED_CAPABILITY.keys() | _SKILLS
    return method in known and missing_capability(method, capabilities, revision) is None


def has_extension(extension: str, capabilities: Mapping[str, Any]) -> bool:
    """True if these capabilities, of either side, declare the extension."""
    declared = capabilities.get("extensions")
    return isinstance(declared, dict) and isinstance(declared.get(extension), dict)


def offers(capability: str, capabilities: Mapping[str, Any], revision: Revision) -> bool:
    """True if the server offers this capability (``feature`` or ``feature.part``) in this revision.

    A boolean capability counts only if it is ``true``.
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
