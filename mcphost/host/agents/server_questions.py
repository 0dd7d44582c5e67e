"""Answers the questions of servers behind gates, as those of configured servers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mcphost.client.server_requests import InputRefused
from mcphost.config import Config
from mcphost.host.agents.gated_calls import GatedCalls, GatedServer
from mcphost.host.agents.session import AgentCall, AgentSession
from mcphost.host.consent.policy import PolicyDecision, sampling_policy
from mcphost.host.server_requests.elicitation import ElicitationService
from mcphost.host.server_requests.folders import ResolveRoots, Root, check_folder
from mcphost.host.server_requests.pending import ServerRequest
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from mcphost.host.sampling.service import SamplingService


class AgentServerQuestions:
    """``sampling`` creates its service at the first request."""

    def __init__(
        self,
        config: Callable[[], Config],
        gated: GatedCalls,
        elicitation: ElicitationService,
        sampling: Callable[[], SamplingService],
        resolve_roots: ResolveRoots,
    ) -> None:
        self._config, self._gated = config, gated
        self._elicitation, self._sampling, self._resolve_roots = elicitation, sampling, resolve_roots

    async def answer(
        self,
        session: AgentSession,
        server: GatedServer,
        method: str,
        params: Mapping[str, Any],
        call: AgentCall | None = None,
    ) -> Mapping[str, Any]:
        """Return the result to send; ``call`` is the one that it belongs to, if that is known.

        Raises InputRefused; cancelled when the server takes the question back.
        """
        if method == "roots/list":
            return {"roots": [root.as_object() for root in await asyncio.to_thread(self._roots, server)]}
        request = ServerRequest(session.asker, params, agent_call=call)
        settings = self._config().servers.get(server.name)
        if method == "elicitation/create":
            # What an entry of this name refuses is refused, whatever runs.
            if settings is not None and not settings.capabilities.elicitation:
                raise InputRefused(ErrorCode.INTERNAL_ERROR, "the user takes no questions of this server")
            return await self._elicitation.answer(request)
        if method == "sampling/createMessage":
            denied = sampling_policy(self._config(), server.name).decision is PolicyDecision.DENY
            if denied or (settings is not None and not settings.capabilities.sampling):
                raise InputRefused(ErrorCode.INTERNAL_ERROR, "the user lends no model to this server")
            return await self._sampling().answer(request)
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, "mcphost does not answer this method")

    def _roots(self, server: GatedServer) -> list[Root]:
        """The folders of the entry of that name, if it runs the same program. Blocks."""
        if not self._gated.is_configured(server):
            return []
        folders = ((check_folder(root.path), root.name) for root in self._resolve_roots(self._config(), server.name))
        return [Root.of(folder.path, name) for folder, name in folders if not folder.problem]
