"""The names of an agent: by its configuration, by its own words, and by the kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mcphost.json_values import as_dict, as_text
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import META_PREFIX

CLAIM_BYTES: Final = 64 << 10
"""Bytes of the longest message in which an agent's name is looked for: longer ones carry data."""

_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """An agent. Its claims only label: they never widen what it may do. All texts are foreign."""

    label: str
    """The name to show: of ``--as``, else what the agent claims, else the name of its program."""
    claimed: str = ""
    """The name that it claims in the protocol."""
    version: str = ""
    """The version that it claims."""
    pid: int | None = None
    program: str = ""
    """The path of its program, as the kernel knows it."""
    folder: str = ""
    """The folder that it works in, as the kernel knows it."""
    given: str = ""
    """The name of ``--as``: the only one that rules go by."""

    def introduced(self, claimed: str, version: str) -> AgentFacts:
        """The same agent, with what it now says of itself."""
        return replace(self, label=self.given or claimed or self.label, claimed=claimed, version=version)

    @property
    def origin(self) -> str:
        """The asking party in questions and in the audit log."""
        return f"agent:{self.label}"

    @property
    def record(self) -> dict[str, object]:
        """Its members of an audit record."""
        return {
            "agent": self.label,
            "agent_pid": self.pid,
            "agent_program": self.program,
            "agent_folder": self.folder,
        }


class AgentClaim(NamedTuple):
    """The words of an agent about itself in the protocol."""

    name: str
    version: str
    revision: str
    """The revision that it asks for."""


def claim_in(message: bytes) -> AgentClaim | None:
    """The claim in a message to a server, of either era; None without one."""
    if len(message) > CLAIM_BYTES or b"clientInfo" not in message:
        return None
    try:
        params = as_dict(as_dict(json.loads(message)).get("params"))
    except (ValueError, RecursionError):
        return None
    meta = {key.removeprefix(META_PREFIX): value for key, value in as_dict(params.get("_meta")).items()}
    for said in (params, meta):
        claim = claim_of(as_dict(said.get("clientInfo")), said.get("protocolVersion"))
        if claim.name:
            return claim
    return None


def claim_of(info: Mapping[str, Any], revision: object) -> AgentClaim:
    """The claim in a ``clientInfo``; what is missing is empty."""
    words = (info.get("name"), info.get("version"), revision)
    return AgentClaim(*(as_text(word)[:_NAME].encode("utf-8", "replace").decode() for word in words))
