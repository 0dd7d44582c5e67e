"""What this client says it may be asked, as each revision spells it.

Knows spellings. Refuses to know who answers.

Specification: basic/lifecycle (capability negotiation), client/roots, client/elicitation, client/sampling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcphost.protocol.eras.revisions import Revision

FORM: Final = "form"
URL: Final = "url"


@dataclass(frozen=True, slots=True)
class ClientCapabilities:
    """What a server may ask of us; what is absent here is neither declared nor answered."""

    roots: bool = False
    elicitation: frozenset[str] = frozenset()
    """The modes, `FORM` and `URL`."""
    sampling: Mapping[str, Any] | None = None
    """The capability as it is declared; None: no model answers."""

    def under(self, revision: Revision) -> dict[str, Any]:
        """The ``capabilities`` of an ``initialize`` that offers this revision."""
        said: dict[str, Any] = {"roots": {"listChanged": True}} if self.roots else {}
        if self.sampling is not None:
            said["sampling"] = dict(self.sampling)
        modes = [mode for mode in revision.elicitation if mode in self.elicitation]
        if modes:  # before there were modes, their names had no place
            said["elicitation"] = {mode: {} for mode in modes} if URL in revision.elicitation else {}
        return said


def modes_of(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """The modes in which these capabilities let a server elicit; an empty object means forms."""
    declared = capabilities.get("elicitation")
    return frozenset() if declared is None else frozenset(declared or (FORM,))
