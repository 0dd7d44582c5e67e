"""Argument completion.

Specification: server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.requests import RequestTimeouts
from mcphost.errors import CapabilityMissing, ServerError
from mcphost.protocol.lifecycle.revisions import offers
from mcphost.protocol.models.prompts import Completion, CompletionRef
from mcphost.protocol.wire.jsonrpc import ErrorCode

if TYPE_CHECKING:
    from mcphost.client.client import Client

METHOD: Final = "completion/complete"
CAPABILITY: Final = "completions"


class Completions:
    """Completions of one server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._refused = False  # in the oldest revision, which has no capability for it, one refusal settles it

    @property
    def offered(self) -> bool:
        """Does the server offer completion, as far as known? Raises ServerNotReady."""
        session = self._client.open_session
        return not self._refused and offers(CAPABILITY, session.server.capabilities, session.revision)

    async def complete(
        self,
        ref: CompletionRef,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        *,
        timeouts: RequestTimeouts | None = None,
    ) -> Completion:
        """Complete ``argument``, whose text so far is ``value``; ``context`` holds the other arguments.

        Raises as `mcphost.client.client.Client.request` does.
        """
        if self._refused:
            raise CapabilityMissing(METHOD, CAPABILITY)
        params: dict[str, Any] = {"ref": ref.as_object(), "argument": {"name": argument, "value": value}}
        others = {name: known for name, known in (context or {}).items() if name != argument}
        if others and self._client.open_session.revision.completion_context:
            params["context"] = {"arguments": others}
        try:
            found = Completion.read(await self._client.request(METHOD, params, timeouts=timeouts))
        except ServerError as error:
            self._refused = error.code == ErrorCode.METHOD_NOT_FOUND
            raise
        if found.unreadable:
            self._client.remark(f"{METHOD}: suggestions that are not texts were left out")
        if found.unread:
            self._client.remark(f"{METHOD}: {found.unread}")
        return found
