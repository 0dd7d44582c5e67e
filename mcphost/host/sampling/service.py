"""Answers what servers ask of a language model: settled, asked, streamed, reviewed, and sent at most once.

What a server asks for is kept in no file: the audit log says who asked, which model answered, and what it took.

Specification: client/sampling (2024-11-05 to 2025-11-25).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, NoReturn

from mcphost.client.server_requests import InputRefused
from mcphost.config import Config, SamplingConfig, ServerConfig, entry_of
from mcphost.errors import Declined, InvalidSampling, McphostError, ModelAnswerCut, ModelAnswerMalformed, ModelRefused
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.policy import PolicyDecision, SamplingPolicy, sampling_policy
from mcphost.host.consent.questions import Answer, SamplingQuestion
from mcphost.host.events import SamplingChanged, ServerChanged
from mcphost.host.internal_error import internal_error, without_secrets
from mcphost.host.models import ModelCatalog
from mcphost.host.reporting import Reporting
from mcphost.host.sampling.budgets import SamplingBudgets, SamplingUsage
from mcphost.host.sampling.draft import bounded, checked, draft, labelled
from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply, SamplingState
from mcphost.host.server_requests.pending import MOST_PENDING, MUTED, PendingRequests, Resolution, ServerRequest
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.protocol.json_size import json_size
from mcphost.protocol.lifecycle.revisions import NEWEST_HANDSHAKE
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import CreateMessageRequest, CreateMessageResult, check
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.providers.base import AnswerCollector, CollectedAnswer, ModelRequest, TokenUsage, estimate_tokens

REJECTED: Final = -1
"""The specification's code for a request that the user refuses."""

REJECTION: Final = "User rejected sampling request"

NO_ANSWER: Final = "the language model gave no answer"
"""All that a server learns of a model that failed."""

KEPT: Final = 50
"""Ended requests that are kept to look at again."""

KEPT_BYTES: Final = 32 << 20
"""About how much of them."""

TEXT_CHARACTERS: Final = 16_000
"""Characters of earlier results of the server that are added to a prompt, if that is allowed."""

KEPT_ROUNDS: Final = 1000
"""Calls of which is known how often the model wanted tools for them."""


class SamplingService:
    """Every sampling request of this run.

    ``asks``: questions about sampling can be answered.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        models: ModelCatalog,
        servers: Servers,
        calls: CallRegistry,
        pending: PendingRequests,
        reporting: Reporting,
        *,
        asks: bool,
    ) -> None:
        self._config, self._models, self._servers, self._calls = config, models, servers, calls
        self._pending, self._asks = pending, asks
        self._logs, self._audit = reporting.logs, reporting.audit
        self._bus, self._mask = reporting.bus, reporting.mask
        self._budgets = SamplingBudgets(config, time.monotonic)
        self.all: dict[int, Sampling] = {}
        """By number, oldest first: all that go on, and the last of those that ended."""
        self._last = 0
        self._tools: dict[str, bool] = {}
        self._rounds: dict[tuple[str, int | None], int] = {}
        self._flooding: set[str] = set()
        self._paused: set[str] = set()

    def declared(self, server: str) -> Mapping[str, Any] | None:
        """The sampling capability to declare to this server; None if no request could be answered."""
        config = self._config()
        settings, policy = _settings(config, server), sampling_policy(config, server)
        models = self._models.for_server(server)
        off = (
            not settings.capabilities.sampling
            or settings.sampling.per_minute == 0
            or policy.decision is PolicyDecision.DENY
        )
        unasked = policy.decision is PolicyDecision.ALLOW and not policy.review
        if off or not models or not (self._asks or unasked):
            return None
        self._tools[server] = any(model.able.tools for model in models)
        tools: dict[str, Any] = {"tools": {}} if self._tools[server] else {}
        return {**tools, "context": {}} if settings.sampling.context != "none" else tools

    def check_readable(self, server_request: ServerRequest) -> None:
        """Raise InputRefused if the request cannot be read."""
        self._read(server_request)

    async def answer(self, server_request: ServerRequest) -> Mapping[str, Any]:
        """Return the result to send. Raises InputRefused; cancelled when the server takes the request back."""
        policy = sampling_policy(self._config(), server_request.server)
        self._admit(server_request, policy)
        version = self._version(server_request.server)
        request = self._read(server_request)
        if policy.decision is PolicyDecision.ASK:
            self._pending.admit(server_request.server, paced=True)  # by sampling.per_minute
        sampling = self._begin(server_request, request, policy)
        try:
            result = await self._settle(sampling, policy, server_request.certain)
            sampling.enter(SamplingState.SENT)
            return result.as_object(version)
        except asyncio.CancelledError:
            sampling.enter(SamplingState.WITHDRAWN)
            raise
        except InputRefused:
            raise
        except Exception as error:  # the server is owed an answer, and `Sampling` an end
            self._fail(sampling, error if isinstance(error, McphostError) else internal_error(error))
        finally:
            self._ended(sampling)

    def usage(self, server: str) -> SamplingUsage:
        """A server's use of the models in this run, and its limits."""
        return self._budgets.usage(server)

    def raise_budget(self, server: str, *, tokens: int | None = None, cost: float | None = None) -> None:
        """Raise a server's budget for this run; with neither, by the configured budget."""
        self._budgets.increase(server, tokens, cost)
        self._paused.discard(entry_of(server))
        self._bus.publish(ServerChanged(server))

    # Before anybody is asked.

    def _admit(self, server_request: ServerRequest, policy: SamplingPolicy) -> None:
        """Raise InputRefused for a request that is not even looked at."""
        server = server_request.server
        open_ = sum(entry_of(each.server) == entry_of(server) and not each.state.ended for each in self.all.values())
        if self._budgets.exceeds_rate(server):
            self._refuse_flood(server, "that is more sampling requests in a minute than the user allows")
        if open_ >= MOST_PENDING:
            self._refuse_flood(server, f"{MOST_PENDING} sampling requests are being answered already")
        self._flooding.discard(server)
        paused = self._budgets.exhausted(server)
        if policy.decision is PolicyDecision.DENY:
            self._turn_away(server_request, policy.rule, "")
        if self._pending.muted(server):
            self._turn_away(server_request, MUTED, "")
        if paused:
            self._turn_away(server_request, paused, "the budget for this server is used up")

    def _read(self, server_request: ServerRequest) -> CreateMessageRequest:
        version = self._version(server_request.server)
        try:
            bounded(server_request.params)
            request = CreateMessageRequest.read(server_request.params)
            checked(request)
            check(request, version=version, tools=self._tools.get(server_request.server, False))
        except InvalidSampling as error:
            raise InputRefused(ErrorCode.INVALID_PARAMS, str(error)) from None
        rounds, most = (
            self._rounds.get((server_request.server, server_request.number), 0),
            self._settings(server_request.server).tool_rounds,
        )
        forbidden = request.tool_choice is not None and request.tool_choice.mode == "none"
        if request.tools and not forbidden and rounds >= most:
            raise InputRefused(
                ErrorCode.INTERNAL_ERROR, f"the model was let use tools {rounds} times, which is the most; end without"
            )
        return request

    def _begin(self, server_request: ServerRequest, request: CreateMessageRequest, policy: SamplingPolicy) -> Sampling:
        server = server_request.server
        context = labelled(server, self._texts_before(server)) if request.include_context != "none" else ""
        try:
            drafted = draft(
                request,
                self._settings(server),
                context,
                lambda wanted: self._models.choose(server, wanted, request.preferences),
            )
        except ModelRefused as error:
            raise InputRefused(ErrorCode.INVALID_PARAMS, str(error).partition(": ")[2]) from None
        self._last += 1
        known = server_request.number, server_request.tool, request, drafted, self._models
        sampling = self.all[self._last] = Sampling(self._last, server, *known, self._changed)
        sampling.rule = policy.rule
        self._changed(sampling)
        return sampling

    def _turn_away(self, server_request: ServerRequest, why: str, reason: str) -> NoReturn:
        self._logs.warn(server_request.server, f"refused its request for a language model: {why}")
        self._audit.note(
            {
                "event": "sampling",
                "server": server_request.server,
                "call": server_request.number,
                "outcome": "refused",
                "reason": why,
            }
        )
        raise _rejected(reason)

    def _refuse_flood(self, server: str, why: str) -> NoReturn:
        if server not in self._flooding:
            self._flooding.add(server)
            self._logs.warn(server, f"a sampling request was refused: {why}; further refusals are counted, not logged")
        raise InputRefused(ErrorCode.INTERNAL_ERROR, f"{why}; ask again later", quiet=True)

    # From the question to the answer.

    async def _settle(self, sampling: Sampling, policy: SamplingPolicy, certain: bool) -> CreateMessageResult:
        """The result. Raises InputRefused, and whatever else went wrong."""
        reply = await self._agreed(sampling, policy, certain)
        while reply is None:
            if not sampling.model.by_hand:
                await self._think(sampling, certain)
            if not (policy.review or sampling.stopped or sampling.model.by_hand):
                break
            sampling.enter(SamplingState.REVIEWING)
            answer = await self._ask(sampling, certain, review=True)
            if isinstance(answer.content, SamplingEdit) and answer.by == "user":  # a rule would ask again for ever
                sampling.edit(answer.content)
                continue
            reply = answer.content if isinstance(answer.content, SamplingReply) else None
            if reply is None:
                self._sendable(sampling, answer)
                break
        if reply is not None:
            sampling.write(reply)
        elif sampling.error is not None:
            self._fail(sampling, sampling.error)
        self._count_rounds(sampling)
        return sampling.send(sampling.model.name)

    async def _agreed(self, sampling: Sampling, policy: SamplingPolicy, certain: bool) -> SamplingReply | None:
        """Return once a model may be asked; with a reply where that is not even needed."""
        if policy.decision is PolicyDecision.ASK:
            answer = await self._ask(sampling, certain, review=False)
            if isinstance(answer.content, SamplingReply):
                return answer.content
            if isinstance(answer.content, SamplingEdit):
                sampling.edit(answer.content)
            return None
        try:
            await self._audit.before(
                {"event": "question", "kind": "sampling", "server": sampling.server, "call": sampling.call}
                | {"verdict": "accept", "by": "policy", "reason": policy.rule}
            )
        except Declined as declined:
            self._refuse(sampling, str(declined))
        return None

    async def _ask(self, sampling: Sampling, certain: bool, *, review: bool) -> Answer:
        """Ask the user; return the answer if it allows the request. Raises InputRefused."""
        question = SamplingQuestion(sampling.server, sampling.number, sampling.call, sampling.tool, review)
        answer = await self._pending.ask("sampling", question, certain=certain, admitted=True)
        if not answer.allow:
            self._refuse(sampling, answer.reason, for_server=answer.reason if answer.by == "user" else "")
        return answer

    def _sendable(self, sampling: Sampling, answer: Answer) -> None:
        """Raise InputRefused if there is no answer, or an incomplete one that no user reviewed."""
        seen = answer.by == "user"
        if sampling.blocks and (seen or sampling.error is None):
            sampling.error = None
            return
        self._fail(sampling, sampling.error or ModelAnswerCut(sampling.model.entry, "no answer was written"))

    async def _think(self, sampling: Sampling, certain: bool) -> None:
        """Ask the model; ``sampling`` keeps the answer or the error. Raises InputRefused if the user ended it."""
        asking = _ask_model(sampling, self._models, self._budgets, self._mask)
        ended = await self._pending.meanwhile(sampling.server, sampling.call if certain else None, asking)
        if isinstance(ended, Resolution):
            self._refuse(sampling, ended.answer.reason)
        if sampling.refused_by_user:
            self._refuse(sampling, sampling.refusal, for_server=sampling.refusal)

    # The end.

    def _refuse(self, sampling: Sampling, why: str, *, for_server: str = "") -> NoReturn:
        sampling.refusal = why
        sampling.enter(SamplingState.REFUSED)
        raise _rejected(for_server)

    def _fail(self, sampling: Sampling, error: McphostError) -> NoReturn:
        sampling.error = error
        sampling.enter(SamplingState.FAILED)
        self._logs.warn(sampling.server, f"its request for a language model failed: {error}")
        raise InputRefused(ErrorCode.INTERNAL_ERROR, NO_ANSWER, quiet=True) from None

    def _count_rounds(self, sampling: Sampling) -> None:
        """Count how often the model wants tools for one call; where no call is known, in a row."""
        key = sampling.server, sampling.call
        if sampling.uses:
            self._rounds[key] = self._rounds.pop(key, 0) + 1
        elif sampling.call is None:
            self._rounds.pop(key, None)
        while len(self._rounds) > KEPT_ROUNDS:
            del self._rounds[next(iter(self._rounds))]

    def _ended(self, sampling: Sampling) -> None:
        self._audit.note(_record(sampling))
        self._publish_usage(sampling.server)
        ended = [each for each in self.all.values() if each.state.ended]
        size = sum(json_size(each.asked.raw) for each in ended)
        while len(ended) > 1 and (len(ended) > KEPT or size > KEPT_BYTES):
            oldest = ended.pop(0)
            size -= json_size(oldest.asked.raw)
            del self.all[oldest.number]

    def _publish_usage(self, server: str) -> None:
        server = entry_of(server)
        paused = self._budgets.exhausted(server)
        if paused and server not in self._paused:
            self._paused.add(server)
            self._bus.alarm(f"{server} gets no more answers of language models: {paused}")
        self._bus.publish(ServerChanged(server))

    def _version(self, server: str) -> str:
        """The revision this server speaks, the newest with server requests while that is not known."""
        connection = self._servers.get(server)
        session = None if connection is None else connection.session
        return NEWEST_HANDSHAKE.version if session is None else session.revision.version

    def _texts_before(self, server: str) -> str:
        """The server's answers to its last calls, the newest first; nothing of any other server."""
        return "\n\n".join(self._texts_of(server))[:TEXT_CHARACTERS]

    def _texts_of(self, server: str) -> Iterator[str]:
        for call in reversed(tuple(self._calls.calls.values())):
            if call.request.server == server and call.outcome is not None:
                texts = (block.text for block in call.outcome.content if isinstance(block, TextContent))
                yield from (text[:TEXT_CHARACTERS] for text in texts)

    def _changed(self, sampling: Sampling) -> None:
        self._bus.publish(SamplingChanged(sampling.server, sampling.number))

    def _settings(self, server: str) -> SamplingConfig:
        return _settings(self._config(), server).sampling


def _settings(config: Config, server: str) -> ServerConfig:
    """The entry of a server; one that was just removed from the configuration has the defaults."""
    return config.servers.get(entry_of(server)) or ServerConfig.model_construct()


def _rejected(reason: str) -> InputRefused:
    return InputRefused(REJECTED, f"{REJECTION}: {reason}" if reason else REJECTION)


def _record(sampling: Sampling) -> dict[str, Any]:
    """The audit record of a request, without the texts of request and answer."""
    return {
        "event": "sampling",
        "server": sampling.server,
        "call": sampling.call,
        "sampling": sampling.number,
        "outcome": sampling.state.value,
        "entry": sampling.model.entry,
        "model": sampling.answered_by,
        "attempts": sampling.attempts,
        "input_tokens": sampling.usage.input_tokens,
        "output_tokens": sampling.usage.output_tokens,
        "cost": sampling.cost,
        "edited": sampling.edited,
        "rewritten": sampling.rewritten,
    }


async def _ask_model(
    sampling: Sampling, models: ModelCatalog, budgets: SamplingBudgets, mask: Callable[[str], str]
) -> None:
    """Ask the model once; ``sampling`` keeps the answer or the error. Raises nothing but CancelledError."""
    sampling.begin()
    sampling.attach(asyncio.current_task())
    gathering, error = AnswerCollector(), None
    try:
        await _gather(sampling, gathering, models, budgets)
    except asyncio.CancelledError:
        if not sampling.interrupted:
            raise
    except McphostError as raised:
        error = without_secrets(raised, mask)
    except Exception as raised:  # a fault in here is one that the user may get over with another model
        error = internal_error(raised)
    finally:
        sampling.attach(None)
        gathered = gathering.gathered
        sampling.gathered(gathered, error or _flaw(sampling, gathered))


async def _gather(
    sampling: Sampling, gathering: AnswerCollector, models: ModelCatalog, budgets: SamplingBudgets
) -> None:
    """Take the events of the answer. Raises ModelError, ConfigError."""
    request, tokens = _within(sampling, budgets)
    provider = await models.provider(sampling.model)
    with budgets.reserve(sampling.server, TokenUsage(tokens, request.max_tokens), sampling.model.price) as used:
        try:
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    gathering.add(event)
                    sampling.take(event)
            if gathering.done is None:
                raise ModelAnswerCut(sampling.model.entry, "the answer has no end")
        except McphostError:
            tokens = tokens if gathering.gathered.result.message.text else 0
            raise
        finally:
            used(_usage(gathering.gathered, tokens))


def _within(sampling: Sampling, budgets: SamplingBudgets) -> tuple[ModelRequest, int]:
    """The request with room for no more than the budget has, and about how many tokens it is. Raises ModelRefused."""
    server, tokens, price = sampling.server, sampling.estimate.input_tokens, sampling.model.price
    if why := sampling.problem or budgets.shortage(server, tokens, price):
        raise ModelRefused(sampling.model.entry, why)
    tokens_left = budgets.answer_tokens_left(server, tokens, price)
    most = sampling.request.max_tokens
    return replace(sampling.request, max_tokens=most if tokens_left is None else min(most, tokens_left)), tokens


def _usage(gathered: CollectedAnswer, input_tokens: int) -> TokenUsage:
    """The use of an answer: as the model reports it, otherwise estimated from the text that came."""
    told = gathered.usage
    return TokenUsage(
        told.input_tokens or input_tokens, told.output_tokens or estimate_tokens(gathered.result.message.text)
    )


def _flaw(sampling: Sampling, gathered: CollectedAnswer) -> McphostError | None:
    """Tool uses that must not be passed on make an answer none."""
    if not gathered.flawed:
        return None
    return ModelAnswerMalformed(sampling.model.entry, f"it wants to use a tool wrongly: {gathered.flawed[0].problem}")
