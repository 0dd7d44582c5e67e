"""Carries out the steps of a flow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcphost.auth.assertions import Assertions
from mcphost.auth.flow.steps import (
    PERSON,
    Flow,
    FlowStep,
    GetAssertion,
    GetIdentity,
    HttpAnswer,
    HttpExchange,
    IdentityToken,
    InThread,
    RefuseAssertion,
    Unreachable,
)
from mcphost.errors import SignInFailed
from mcphost.lazy_dataclass import dataclass

_T = TypeVar("_T")


@dataclass(slots=True)
class StepRunner:
    """Carries out the steps that need no person."""

    fetch: Callable[[HttpExchange], Awaitable[HttpAnswer | Unreachable]]
    assertions: Assertions | None = None
    """None: this workload has no identity."""
    identity: Callable[[GetIdentity], Awaitable[IdentityToken]] | None = None
    """None: the server is signed in to without an identity."""

    async def do(self, step: FlowStep) -> Any:
        """Carry out one step and return its outcome. Raises SignInFailed, with code `PERSON` if it needs a person."""
        match step:
            case HttpExchange():
                return await self.fetch(step)
            case InThread(work):
                return await asyncio.to_thread(work)
            case GetAssertion(audience) if self.assertions is not None:
                return await self.assertions.get(audience)
            case RefuseAssertion(assertion) if self.assertions is not None:
                return self.assertions.refuse(assertion)
            case GetIdentity() if self.identity is not None:
                return await self.identity(step)
            case _:
                raise SignInFailed("a person is needed for this", code=PERSON)


async def run_flow(flow: Flow[_T], do: Callable[[FlowStep], Awaitable[Any]]) -> _T:
    """Run a flow to its end; the failure of a step is raised inside it. Raises SignInFailed."""
    outcome, failure = None, None
    try:
        while True:
            step = flow.send(outcome) if failure is None else flow.throw(failure)
            outcome, failure = None, None
            try:
                outcome = await do(step)
            except SignInFailed as error:
                failure = error
    except StopIteration as end:
        result: _T = end.value
        return result
    finally:
        flow.close()
