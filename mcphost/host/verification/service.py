"""Runs the cases of a verification against live servers: each tool call with consent, and everything audited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final, NamedTuple, TypeVar

from mcphost.config import Config, ServerConfig
from mcphost.config.calls import CallsFile
from mcphost.errors import Declined, McphostError, ServerNotReady, TransportError, UnknownName
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.catalog import Catalog
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.consent.policy import PolicyDecision
from mcphost.host.recordings.recording import LISTED
from mcphost.host.saved_calls import references_of, resource_uri
from mcphost.host.server_requests.service import ServerRequestService
from mcphost.host.tool_calls.call import CallRequest
from mcphost.host.tool_calls.current import AskedAgent
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.host.verification.answers import AnswerRules
from mcphost.host.verification.cases import (
    CaseReport,
    LiveAnswer,
    RecordedCase,
    SavedCase,
    VerificationCase,
    as_recorded,
    judged,
    without_request_envelope,
)
from mcphost.host.verification.recorded_answers import RecordedAnswers
from mcphost.json_values import as_dict
from mcphost.redaction import Mask, redacted

ORIGIN: Final = "you"

_T = TypeVar("_T")


class PlannedUse(NamedTuple):
    """A tool that will be called so many times, with the decision that rules and approvals foresee.

    ``decision`` is None where the server does not list the tool now.
    """

    server: str
    tool: str
    times: int
    decision: PolicyDecision | None


class VerificationService:
    """Runs cases, one after the other. ``apply`` lets the host go over to another configuration."""

    def __init__(
        self,
        config: Callable[[], Config],
        servers: Servers,
        catalog: Catalog,
        consent: ConsentBroker,
        tool_calls: ToolCallService,
        requests: AuditedRequests,
        server_requests: ServerRequestService,
        mask: Mask,
        apply: Callable[[Config], Awaitable[object]],
    ) -> None:
        self._config, self._servers, self._catalog, self._consent = config, servers, catalog, consent
        self._tool_calls, self._requests, self._known_secrets = tool_calls, requests, mask
        self._server_requests, self._apply = server_requests, apply
        self._sessions: dict[str, tuple[str, tuple[str, int]]] = {}

    def mask(self, text: str) -> str:
        """A text without secrets."""
        return redacted(text, self._known_secrets)

    def planned(self, cases: Sequence[tuple[VerificationCase, str]]) -> list[PlannedUse]:
        """The tools that the cases call on the servers that are ready, each case with its server."""
        found: dict[tuple[str, str, PolicyDecision | None], int] = {}
        for case, server in cases:
            if case.uses is None or not self._servers[server].ready:
                continue
            decision = None
            with suppress(UnknownName):
                tool, identity = self._catalog.tool(server, case.uses.tool), self._servers[server].config.identity
                decision = self._consent.foresee(server, identity, tool, case.uses.arguments)
            key = server, case.uses.tool, decision
            found[key] = found.get(key, 0) + 1
        return [PlannedUse(server, tool, times, decision) for (server, tool, decision), times in found.items()]

    async def run(
        self,
        case: VerificationCase,
        server: str,
        rules: AnswerRules,
        *,
        entry: ServerConfig,
        timeout: float | None = None,
        file: CallsFile | None = None,
    ) -> CaseReport:
        """Run a case on ``server``, which has this ``entry`` but for what `as_recorded` changes. Raises Declined.

        ``file`` has the references of a saved call. The cases of another session get a new connection.
        """
        if case.skipped:
            return CaseReport(case, "skipped", (case.skipped,))
        try:
            await self._in_session(case, server, entry)
            if isinstance(case, SavedCase):
                answer = await self._saved(case, server, timeout, file)
            else:
                answer = await self._recorded(case, server, rules, timeout)
        except Declined:
            raise
        except UnknownName as error:
            if isinstance(case, RecordedCase) and case.exchange.error is not None:
                return CaseReport(case, "skipped", ("mcphost calls only tools that the server lists",))
            return CaseReport(case, "failed", (str(error),), answer=LiveAnswer(error=error))
        except (ServerNotReady, TransportError) as error:
            return CaseReport(case, "error", (str(error),), answer=LiveAnswer(error=error))
        return await asyncio.to_thread(judged, case, answer, rules, self.mask)

    async def _in_session(self, case: VerificationCase, server: str, entry: ServerConfig) -> None:
        session, before = (case.group, case.session), self._sessions.get(server)
        if before != session:
            config = self._config()
            wanted = as_recorded(entry, case.recorded) if isinstance(case, RecordedCase) else entry
            if config.servers[server] != wanted:
                await self._apply(config.model_copy(update={"servers": {**config.servers, server: wanted}}))
            if before is not None:
                self._servers[server].restart()
        self._sessions[server] = session
        await self._servers.ready([server])

    async def _recorded(self, case: RecordedCase, server: str, rules: AnswerRules, timeout: float | None) -> LiveAnswer:
        method, params = case.exchange.method, without_request_envelope(case.exchange.params)
        if method in LISTED:
            began = time.monotonic()
            answer = await _answered(self._listed(server, method), lambda items: LiveAnswer(items=items))
            return answer._replace(seconds=time.monotonic() - began)
        questions = RecordedAnswers(case.exchange.questions, rules)
        if method == "tools/call":
            arguments = as_dict(params.get("arguments"))
            request = CallRequest(
                server,
                params["name"],
                arguments,
                ORIGIN,
                timeout,
                as_task="task" in case.exchange.params,
                questions=questions,
                unchecked=True,
            )
            answer = await self._called(request)
        else:
            answer = await self._sent(server, method, params, questions)
        return answer._replace(problems=questions.problems)

    async def _listed(self, server: str, method: str) -> Sequence[Mapping[str, Any]]:
        record = {"event": "request", "method": method, "params": None}
        listed = await self._requests.send(
            server,
            record,
            method,
            ORIGIN,
            lambda client: client.read_list(method, LISTED[method], as_dict, again=True),
        )
        return listed.items

    async def _saved(self, case: SavedCase, server: str, timeout: float | None, file: CallsFile | None) -> LiveAnswer:
        call = case.call
        if call.tool is not None:
            references = None if file is None else references_of(call, file, self._config)
            return await self._called(
                CallRequest(server, call.tool, call.shown, ORIGIN, timeout, references=references)
            )
        if call.prompt is not None:
            return await self._sent(server, "prompts/get", {"name": call.prompt, "arguments": call.shown})
        return await self._sent(server, "resources/read", {"uri": resource_uri(call, call.shown)})

    async def _called(self, request: CallRequest) -> LiveAnswer:
        call = self._tool_calls.begin(request)
        try:
            answer = await _answered(call.result(), lambda result: LiveAnswer(result.raw))
        except asyncio.CancelledError:
            call.cancel()
            raise
        return answer._replace(seconds=call.elapsed)

    async def _sent(
        self, server: str, method: str, params: Mapping[str, Any], questions: RecordedAnswers | None = None
    ) -> LiveAnswer:
        began = time.monotonic()
        asked: AbstractContextManager[None] = nullcontext()
        if questions is not None:
            asked = self._server_requests.answered_by(server, AskedAgent(questions, ORIGIN))
        with asked:
            work = self._requests.send_unchanged(server, method, params, ORIGIN)
            return await _answered(work, lambda result: LiveAnswer(result, seconds=time.monotonic() - began))


async def _answered(work: Awaitable[_T], read: Callable[[_T], LiveAnswer]) -> LiveAnswer:
    """The answer, or the error that a server answered with or that kept it from answering."""
    try:
        return read(await work)
    except (Declined, UnknownName, ServerNotReady, TransportError):
        raise
    except McphostError as error:
        return LiveAnswer(error=error)
