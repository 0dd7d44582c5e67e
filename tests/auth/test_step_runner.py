"""Flows that run without a person."""

from __future__ import annotations

from mcphost.auth.dpop import ProofKey
from mcphost.auth.flow.steps import PERSON, Flow, GetKey, HttpAnswer, HttpExchange, ListenForCallback
from mcphost.auth.step_runner import StepRunner, run_flow
from mcphost.errors import SignInFailed


async def no_fetch(fetch: HttpExchange) -> HttpAnswer:
    raise AssertionError(fetch)


async def test_the_failure_of_a_step_is_raised_inside_the_flow() -> None:
    def flow() -> Flow[tuple[str, ProofKey]]:
        try:
            yield ListenForCallback("/", 0, False)
        except SignInFailed as error:
            return error.code, (yield GetKey())
        return "", (yield GetKey())

    code, key = await run_flow(flow(), StepRunner(no_fetch).do)
    assert code == PERSON
    assert isinstance(key, ProofKey)
