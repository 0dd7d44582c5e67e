"""Flows that run without a person."""

from __future__ import annotations

import threading

from mcphost.auth.flow.steps import PERSON, Flow, HttpAnswer, HttpExchange, InThread, ListenForCallback
from mcphost.auth.step_runner import StepRunner, run_flow
from mcphost.errors import SignInFailed


async def no_fetch(fetch: HttpExchange) -> HttpAnswer:
    raise AssertionError(fetch)


async def test_the_failure_of_a_step_is_raised_inside_the_flow() -> None:
    def flow() -> Flow[tuple[str, str]]:
        try:
            yield ListenForCallback("/", 0, False)
        except SignInFailed as error:
            return error.code, (yield InThread(lambda: "more"))
        return "", ""

    assert await run_flow(flow(), StepRunner(no_fetch).do) == (PERSON, "more")


async def test_long_work_is_done_beside_the_event_loop() -> None:
    def flow() -> Flow[int]:
        thread: int = yield InThread(threading.get_ident)
        return thread

    assert await run_flow(flow(), StepRunner(no_fetch).do) != threading.get_ident()
