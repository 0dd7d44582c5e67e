"""Passes each server request to the service that answers it, and says which requests a server may send.

Specification: client/roots, client/sampling, client/elicitation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.server_requests import InputRefused, InputRequest
from mcphost.config import Config, ServerConfig, entry_of
from mcphost.host.consent.policy import PolicyDecision, sampling_policy
from mcphost.host.server_requests.elicitation import ElicitationService
from mcphost.host.server_requests.pending import PendingRequests, ServerRequest
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.current import AskedAgent, current_agent, current_call
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.json_values import as_dict, as_list
from mcphost.protocol.extensions import DPOP_EXTENSION, ENTERPRISE_EXTENSION, WORKLOAD_EXTENSION
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities, modes_of
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from mcphost.host.connections.instances import Holder
    from mcphost.host.sampling.service import SamplingService

METHOD_CHARACTERS: Final = 80
"""Characters of an unknown method in the error that refuses it."""


class ServerRequestService:
    """The services that answer server requests.

    ``sampling`` creates its service at the first request. ``holder_of`` finds the agent's session for which a server
    runs, and ``sharers_of`` those that share it. ``writes``: the user can write answers instead of a model.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        pending: PendingRequests,
        calls: CallRegistry,
        roots: RootsService,
        elicitation: ElicitationService,
        sampling: Callable[[], SamplingService],
        holder_of: Callable[[str], Holder | None],
        sharers_of: Callable[[str], Sequence[Holder]] = lambda server: (),
        *,
        writes: bool,
    ) -> None:
        self._config, self._holder_of, self._sharers_of, self._writes = config, holder_of, sharers_of, writes
        self.pending, self.calls = pending, calls
        self.roots, self.elicitation, self._sampling = roots, elicitation, sampling
        self.answering_now: dict[str, AskedAgent] = {}
        """Those that answer what a server asks outside of calls; see `answered_by`."""

    @contextmanager
    def answered_by(self, server: str, agent: AskedAgent) -> Iterator[None]:
        """Let ``agent`` answer what the server asks outside of calls, until the block ends.

        It is for one request at a time: an older server does not say to which of several its question belongs.
        """
        self.answering_now[server] = agent
        try:
            yield
        finally:
            del self.answering_now[server]

    def handler(self, server: str) -> ServerRequestHandler:
        return ServerRequestHandler(server, self)

    def capabilities(self, server: str) -> ClientCapabilities:
        """The client capabilities to declare: what can be answered here and is enabled for this server."""
        config = self._config()
        samples, settings = bool(config.models) or self._writes, config.servers.get(server)
        own = ClientCapabilities(
            roots=self.roots.declared(server),
            elicitation=self.elicitation.modes(server),
            sampling=self._sampling().declared(server) if samples else None,
            extensions=frozenset() if settings is None else frozenset(declared_extensions(settings)),
        )
        holder = self._holder_of(server)
        if holder is None or settings is None:
            return own
        may_sample = sampling_policy(config, server).decision is not PolicyDecision.DENY
        return _of_agent(holder.capabilities, settings, own, may_sample=may_sample)

    def with_agents(self, server: str, own: ClientCapabilities) -> ClientCapabilities:
        """See `mcphost.host.connections.context.ServerRequestPort`."""
        sharers, config = self._sharers_of(server), self._config()
        settings = config.servers.get(server)
        if not sharers or settings is None:
            return own
        may_sample = sampling_policy(config, server).decision is not PolicyDecision.DENY
        for each in sharers:
            theirs = _of_agent(each.capabilities, settings, own, may_sample=may_sample)
            own = _joint(own, replace(theirs, roots=settings.capabilities.roots and each.roots is not None))
        return own

    def elicitation_completed(self, server: str, elicitation: str) -> None:
        """See `mcphost.host.connections.context.ServerRequestPort`."""
        self.elicitation.completed(server, elicitation)
        for call in self.calls.sent(server):
            if call.request.questions is not None:
                call.request.questions.completed(elicitation)

    def session_ended(self, server: str) -> None:
        """See `mcphost.host.connections.context.ServerRequestPort`."""
        self.elicitation.session_ended(server)

    def answering(self, method: str) -> RootsService | ElicitationService | SamplingService:
        """The service that answers this method. Raises InputRefused if no service does."""
        match method:
            case "roots/list":
                return self.roots
            case "elicitation/create":
                return self.elicitation
            case "sampling/createMessage":
                return self._sampling()
        raise InputRefused(ErrorCode.METHOD_NOT_FOUND, f"mcphost does not answer {method[:METHOD_CHARACTERS]}")


class ServerRequestHandler:
    """Answers one server (`mcphost.client.server_requests.InputHandler`)."""

    def __init__(self, server: str, service: ServerRequestService) -> None:
        self._server, self._service = server, service

    def check(self, request: InputRequest) -> None:
        """Raise InputRefused if the request cannot be read."""
        if self._asked_agent(request) is not None:
            return
        read = ServerRequest(self._server, request.params, purpose=request.purpose)
        self._service.answering(request.method).check_readable(read)

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Return the result to send. Raises InputRefused; cancelled when the server withdraws the request."""
        agent = self._asked_agent(request)
        if agent is None:
            return await self._own(request)
        given = await self._by_agent(request, agent)
        return _joined(given, await self._own(request)) if agent.questions.adds_own(request) else given

    async def _own(self, request: InputRequest) -> Mapping[str, Any]:
        """The answer of mcphost's own services."""
        call, certain = self._call()
        service = self._service.answering(request.method)
        if request.purpose is not None:
            call, certain = (call if certain else None), True
            await self._service.pending.pace(self._server, request.purpose.budget)
        return await service.answer(ServerRequest(self._server, request.params, call, certain, request.purpose))

    def _asked_agent(self, request: InputRequest) -> AskedAgent | None:
        """The agent that answers this request; None: mcphost itself does."""
        agent = current_agent.get() or self._caller(request) or self._service.answering_now.get(self._server)
        if agent is None or self._service.pending.muted(self._server):
            return None
        outside = request.purpose is None and self._service.roots.has_agents(self._server)
        if request.method == "roots/list" and outside:
            return None  # they are asked for there, as they are outside of calls
        return agent if agent.questions.takes(request) else None

    def _caller(self, request: InputRequest) -> AskedAgent | None:
        """The agent whose call the request certainly belongs to."""
        call, certain = self._call()
        if call is None or not certain or call.request.questions is None:
            return None
        if request.purpose is not None and call.number != current_call.get():
            return None  # a modern server asks in the task of the request itself
        return AskedAgent(call.request.questions, call.request.origin)

    async def _by_agent(self, request: InputRequest, agent: AskedAgent) -> Mapping[str, Any]:
        """The agent's answer, once it is written down."""
        pending, by = self._service.pending, agent.origin
        call = None if current_agent.get() is not None else self._call()[0]
        number = None if call is None else call.number
        mode = "url" if request.params.get("mode") == "url" else "form"
        kind = {"roots/list": "roots", "sampling/createMessage": "sampling"}.get(request.method, mode)
        record = {"event": "question", "kind": kind, "server": entry_of(self._server), "call": number}
        try:
            with pending.waits(number):
                answer = await agent.questions.answer(request)
        except asyncio.CancelledError:
            pending.note({**record, "verdict": "withdrawn", "by": "server"})
            raise
        except InputRefused as refused:
            pending.note({**record, "verdict": "failed", "by": by, "reason": str(refused)})
            raise
        verdict = answer.get("action", "accept")
        await pending.written({**record, "verdict": verdict if isinstance(verdict, str) else "?", "by": by})
        return answer

    def leave(self) -> None:
        """Cancel the pending questions: the connection is about to be closed."""
        self._service.pending.leave(self._server)

    def _call(self) -> tuple[ToolCall | None, bool]:
        """The tool call that the request belongs to, and whether that is certain.

        Over HTTP it is certain if the request came on the call's response stream.
        """
        # Most servers ask during the call they got last, so that one is the best guess. Only a certain call withdraws
        # its questions when it ends.
        sent = self._service.calls.sent(self._server)
        exact = current_call.get()
        for call in sent:
            if call.number == exact:
                return call, True
        return (sent[-1], len(sent) == 1) if sent else (None, False)


def _joined(agents: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The folders of an agent, and those of mcphost that are not among them."""
    roots = [*as_list(agents.get("roots")), *as_list(own.get("roots"))]
    return {**own, "roots": [root for index, root in enumerate(roots) if root not in roots[:index]]}


def _joint(one: ClientCapabilities, other: ClientCapabilities) -> ClientCapabilities:
    """All that one of the two answers."""
    sampling = [each.sampling for each in (one, other) if each.sampling is not None]
    return replace(
        one,
        roots=one.roots or other.roots,
        elicitation=one.elicitation | other.elicitation,
        sampling={name: part for each in sampling for name, part in each.items()} if sampling else None,
    )


def declared_extensions(settings: ServerConfig) -> Iterator[str]:
    """The extensions that are declared to a server: those that it is offered, and those of its sign-in."""
    yield from settings.capabilities.extensions
    if not settings.signs_in:
        return
    if settings.oauth.grant in _OF_GRANT:
        yield _OF_GRANT[settings.oauth.grant]
    if settings.oauth.dpop == "require":
        yield DPOP_EXTENSION


_OF_GRANT: Final = {"enterprise": ENTERPRISE_EXTENSION, "workload": WORKLOAD_EXTENSION}


def _of_agent(
    declared: Mapping[str, Any], settings: ServerConfig, own: ClientCapabilities, *, may_sample: bool
) -> ClientCapabilities:
    """``own``, with what the agent answers instead of mcphost, as far as the entry lets its server ask."""
    offered, answered = settings.capabilities, own
    if "elicitation" in declared:
        modes = modes_of(declared) & frozenset(offered.elicitation)
        answered = replace(answered, elicitation=modes)
    if "sampling" in declared:
        given = declared["sampling"] if offered.sampling and may_sample else None
        parts = as_dict(given)
        known: dict[str, Any] = {name: {} for name in ("context", "tools") if isinstance(parts.get(name), dict)}
        answered = replace(answered, sampling=None if given is None else known)
    return answered
