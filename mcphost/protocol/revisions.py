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


V2024_11_05: Final = Revision("2024-11-05", Era.LEGACY)
V2025_03_26: Final = Revision("2025-03-26", Era.LEGACY, batches=True)
V2025_06_18: Final = Revision("2025-06-18", Era.LEGACY)
V2025_11_25: Final = Revision("2025-11-25", Era.LEGACY)

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
}
"""The server capability without which a method is not sent."""

ASKS_FOR: Final[Mapping[str, str]] = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
"""The client capability without which a server may not send a request."""

_UNDECLARED: Final[Mapping[str, str]] = {"completions": "2025-03-26"}
"""Capabilities that older revisions had no word for, with the revision that brought the word."""


def find_revision(version: object) -> Revision | None:
    """The revision with exactly this version string, else None."""
    return _BY_VERSION.get(version) if type(version) is str else None


def missing_capability(method: str, capabilities: Mapping[str, Any], revision: Revision) -> str | None:
    """The capability that ``method`` needs and the server did not declare; None when it may be sent.

    A sub-capability is offered only when it is ``true``: its mere presence says nothing.
    """
    needed = NEEDED_CAPABILITY.get(method)
    if needed is None or revision.version < _UNDECLARED.get(needed, ""):
        return None
    feature, _, part = needed.partition(".")
    declared = capabilities.get(feature)
    if part:
        return None if isinstance(declared, dict) and declared.get(part) is True else needed
    return None if isinstance(declared, dict) else needed
