"""The capabilities that the client declares, as each revision spells them.

Specification: basic/lifecycle (capability negotiation), client/roots, client/elicitation, client/sampling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import DPOP_EXTENSION, ENTERPRISE_EXTENSION, WORKLOAD_EXTENSION
from mcphost.protocol.lifecycle.revisions import Revision

IN_HANDSHAKES: Final = frozenset({DPOP_EXTENSION, ENTERPRISE_EXTENSION, WORKLOAD_EXTENSION})
"""The extensions that are declared in ``initialize``, too."""

FORM: Final = "form"
URL: Final = "url"


@dataclass(frozen=True, slots=True)
class ClientCapabilities:
    """The features that the client declares; requests for any other are not answered."""

    roots: bool = False
    elicitation: frozenset[str] = frozenset()
    """The modes, `FORM` and `URL`."""
    sampling: Mapping[str, Any] | None = None
    """The declared capability; None: no sampling."""
    extensions: frozenset[str] = frozenset()
    """The identifiers of the extensions."""

    def under(self, revision: Revision) -> dict[str, Any]:
        """The ``capabilities`` to declare in this revision."""
        changes_announced = {} if revision.modern else {"listChanged": True}
        declared: dict[str, Any] = {"roots": changes_announced} if self.roots else {}
        if self.sampling is not None:
            declared["sampling"] = dict(self.sampling)
        modes = [mode for mode in revision.elicitation if mode in self.elicitation]
        if modes:  # older revisions declare an empty object
            declared["elicitation"] = {mode: {} for mode in modes} if URL in revision.elicitation else {}
        extensions = self.extensions if revision.modern else self.extensions & IN_HANDSHAKES
        if extensions:
            declared["extensions"] = {extension: {} for extension in sorted(extensions)}
        return declared


def modes_of(capabilities: Mapping[str, Any]) -> frozenset[str]:
    """The elicitation modes in these capabilities; an empty object means forms."""
    declared = capabilities.get("elicitation")
    return frozenset() if declared is None else frozenset(declared or (FORM,))
