"""The verb for completion: what might an argument's value be?

Specification: server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.requests import RequestTimeouts
from mcphost.errors import CapabilityMissing, ServerError
from mcphost.protocol.eras.revisions import offers
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:
    from mcphost.client.client import Client
    from mcphost.protocol.models.tools import Completion, CompletionRef

METHOD: Final = "completion/complete"
CAPABILITY: Final = "completions"


class Completions:
    """What one server suggests. The oldest revision has no word for offering it: there one refusal settles it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._refused = False

    @property
    def offered(self) -> bool:
        """Is it worth asking? Raises ServerNotReady."""
        session = self._client.opened
        return not self._refused and offers(CAPABILITY, session.server.capabilities, session.revision)

    async def complete(
        self,
        ref: CompletionRef,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        *,
        patience: RequestTimeouts | None = None,
    ) -> Completion:
        """Suggestions for ``argument``, of which ``value`` is typed so far; ``context`` holds the other arguments.

        Raises as `mcphost.client.client.Client.request` does.
        """
        from mcphost.protocol.models.tools import Completion

        if self._refused:
            raise CapabilityMissing(METHOD, CAPABILITY)
        params: dict[str, Any] = {"ref": ref.as_object(), "argument": {"name": argument, "value": value}}
        others = {name: known for name, known in (context or {}).items() if name != argument}
        if others and self._client.opened.revision.completion_context:
            params["context"] = {"arguments": others}
        try:
            return Completion.read(await self._client.request(METHOD, params, patience=patience))
        except ServerError as error:
            self._refused = error.code == ErrorCode.METHOD_NOT_FOUND
            raise
