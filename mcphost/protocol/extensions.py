"""The extensions of the protocol that are spoken, each with its identifier.

Specification: basic/lifecycle (extension negotiation); the identifiers of drafts are those of the conformance suite.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Extension(NamedTuple):
    """An extension that both sides may declare in ``capabilities.extensions``."""

    identifier: str
    name: str
    draft: bool = False
    """True if its text may still change: it is declared only where the user configures it."""


TASKS: Final = Extension("io.modelcontextprotocol/tasks", "tasks")
SKILLS: Final = Extension("io.modelcontextprotocol/skills", "skills")
ENTERPRISE: Final = Extension(
    "io.modelcontextprotocol/enterprise-managed-authorization", "enterprise-managed authorization"
)
DPOP: Final = Extension("io.modelcontextprotocol/auth/dpop", "DPoP", draft=True)
WORKLOAD: Final = Extension("io.modelcontextprotocol/auth/wif", "workload identity", draft=True)

EXTENSIONS: Final = (TASKS, SKILLS, ENTERPRISE, DPOP, WORKLOAD)

TASKS_EXTENSION: Final = TASKS.identifier
SKILLS_EXTENSION: Final = SKILLS.identifier
ENTERPRISE_EXTENSION: Final = ENTERPRISE.identifier
DPOP_EXTENSION: Final = DPOP.identifier
WORKLOAD_EXTENSION: Final = WORKLOAD.identifier
