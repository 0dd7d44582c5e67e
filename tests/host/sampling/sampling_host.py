"""A host with language models that follow a script, whose server asks for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcphost.config import Config, ModelConfig
from mcphost.host.sampling.request import Sampling
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.providers.base import (
    IMAGES,
    AnswerFinished,
    ModelCapabilities,
    ModelRequest,
    Provider,
    ProviderEvent,
    TextDelta,
    TokenUsage,
)
from tests.host.conftest import open_stdio, script, settings
from tests.host.server_requests.pending import AskedHost, Person, Step

Attempt = Sequence[ProviderEvent | Exception | Callable[[], Awaitable[object]]]
"""The behaviour of a model when it is asked: it streams events, fails, or waits."""

HELLO: Attempt = (TextDelta("Hel"), TextDelta("lo"), TokenUsage(10, 2), AnswerFinished("endTurn", "claude-real-1"))
MODEL = {"provider": "anthropic", "model": "claude-sonnet-4-5", "api_key": "sk-canary"}


class ScriptedProvider:
    """Answers by the script, attempt by attempt, and then with HELLO; keeps what it was asked."""

    def __init__(self, entry: str, capabilities: ModelCapabilities, attempts: list[Attempt]) -> None:
        self.entry, self.capabilities, self._attempts = entry, capabilities, attempts
        self.requests: list[ModelRequest] = []
        self.closed = 0
        """Streams that have ended, in whatever way."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        self.requests.append(request)
        try:
            for step in self._attempts.pop(0) if self._attempts else HELLO:
                if isinstance(step, Exception):
                    raise step
                if callable(step):
                    await step()
                else:
                    yield step
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        raise NotImplementedError


class ScriptedModels:
    """A `mcphost.host.models.ModelPort`; ``attempts`` by entry."""

    def __init__(self, attempts: Mapping[str, Sequence[Attempt]]) -> None:
        self._attempts = attempts
        self.providers: dict[str, ScriptedProvider] = {}

    def able(self, model: ModelConfig) -> ModelCapabilities:
        return ModelCapabilities(IMAGES if "images" in model.takes else frozenset(), tools="tools" in model.takes)

    async def provider(self, config: Config, name: str) -> Provider:
        if name not in self.providers:
            entry = config.models[name]
            self.providers[name] = ScriptedProvider(name, self.able(entry), list(self._attempts.get(name, ())))
        return self.providers[name]

    @property
    def requests(self) -> list[tuple[str, ModelRequest]]:
        """The requests, each with the name of its model."""
        return [(name, request) for name, provider in self.providers.items() for request in provider.requests]


class LendingHost(AskedHost):
    """A host with one server, `a`, that asks for a model's answers."""

    port: ScriptedModels

    @property
    def last_sampling(self) -> Sampling:
        """The last request."""
        return self.sampling.all[max(self.sampling.all)]

    @property
    def asked_model(self) -> ModelRequest:
        """The only thing a model was asked."""
        ((_, request),) = self.port.requests
        return request


def lending_host(
    *steps: Step,
    models: Mapping[str, Any] | None = None,
    attempts: Mapping[str, Sequence[Attempt]] | None = None,
    sampling: Mapping[str, Any] | None = None,
    policy: str = "ask",
    args: tuple[object, ...] = (),
    answers: frozenset[str] = SCREEN_KINDS,
    entry: Any = None,
    **dependencies: Any,
) -> LendingHost:
    """`async with lending_host(YES, YES, attempts={"claude": [HELLO]}, sampling={…}) as host:`"""
    person = Person(*steps)
    server = script("asks.py", *args, sampling=sampling or {}, **(entry or {}))
    config = settings(policy={"default": "allow", "sampling": policy}, a=server)
    entries = {"claude": MODEL} if models is None else models
    made = {name: ModelConfig.model_validate(each, strict=False) for name, each in entries.items()}
    port = ScriptedModels(attempts or {})
    parts = {"open_transport": open_stdio, "models": port, "answers": answers, **dependencies}
    host = LendingHost(config.model_copy(update={"models": made}), person, **parts)
    host.person, host.port = person, port
    return host


def create(text: str = "Say hello", **more: Any) -> dict[str, Any]:
    """A request for an answer to ``text``."""
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100, **more}}


async def for_ever() -> None:
    await asyncio.Event().wait()
