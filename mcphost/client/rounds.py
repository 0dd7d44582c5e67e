"""Answers what a modern server needs before it can answer: round after round, until the answer comes.

Each retry is the same request with a new id, the answers, and the server's state as it came. What the answers are made
of is decided by the same `InputHandler` that answers the requests of older servers.

Specification: 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcphost.client.deadlines import TimeBudget
from mcphost.client.server_requests import InputHandler, InputPurpose, InputRefused, InputRequest
from mcphost.errors import InputNotGiven, InvalidResult
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import size_text
from mcphost.protocol.lifecycle.results import Complete, InputRequired, ServerInput, TaskStarted
from mcphost.protocol.limits import INPUT_ROUNDS, INPUTS_IN_A_ROUND, REQUEST_STATE_BYTES, STATE_ROUNDS

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 0.25
"""Seconds before a retry that nothing was asked for: a server that is not ready yet must not be hurried."""

Result = Complete | InputRequired | TaskStarted
Send = Callable[[Mapping[str, Any]], Awaitable[Result]]
"""Sends the request with these params, under a new id."""


@dataclass(frozen=True, slots=True)
class InputRound:
    """One round: its number, from 1, and what the server needed."""

    number: int
    needed: InputRequired
    answered: bool = False


RoundCallback = Callable[[InputRound], Awaitable[None]]
"""Awaited when a round begins, and with ``answered`` before its answers are sent; may raise to abandon the request."""


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Limits of the input that a server may need for one answer."""

    rounds: int = INPUT_ROUNDS
    inputs: int = INPUTS_IN_A_ROUND
    """In one round."""
    state_bytes: int = REQUEST_STATE_BYTES
    state_rounds: int = STATE_ROUNDS
    """Rounds in a row without any input."""


async def answer_rounds(
    send: Send,
    handler: InputHandler,
    method: str,
    params: Mapping[str, Any],
    first: InputRequired,
    limits: RoundLimits,
    report: RoundCallback,
    budget: TimeBudget,
) -> Complete | TaskStarted:
    """Give what the server needs until it answers the request of this ``method`` and ``params``.

    Raises InputNotGiven if an input is refused, InvalidResult if a limit is exceeded, and what ``send`` and ``report``
    raise.
    """
    needed, number, idle = first, 0, 0
    declined: list[object] = []
    name = params.get("uri" if method == "resources/read" else "name", "")
    while True:
        number += 1
        idle = 0 if needed.inputs else idle + 1
        check_round(needed, number, limits, idle)
        await report(InputRound(number, needed))
        purpose = InputPurpose(method, str(name), number, budget, declined)
        answers = {key: answer async for key, answer in answer_inputs(needed.inputs, handler, purpose)}
        await report(InputRound(number, needed, answered=True))
        if not answers:
            await asyncio.sleep(min(FIRST_PAUSE * 2 ** (idle - 1), LONGEST_PAUSE))
        result = await send(retry_params(params, answers, needed.state))
        if not isinstance(result, InputRequired):
            return result
        needed = result


async def answer_inputs(
    inputs: Mapping[str, ServerInput], handler: InputHandler, purpose: InputPurpose
) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """The answers to these inputs by their keys, asked for one after the other once all of them can be answered.

    Raises InputNotGiven for the first that is refused.
    """
    purpose = replace(purpose, inputs=inputs)
    requests = {key: InputRequest(needed.method, needed.params, purpose, key) for key, needed in inputs.items()}
    method = ""
    try:
        for request in requests.values():
            method = request.method
            handler.check(request)
        for key, request in requests.items():
            method = request.method
            yield key, await handler.answer(request)
    except InputRefused as refused:
        raise InputNotGiven(method, str(refused)) from None


def retry_params(
    params: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]], state: str | None
) -> dict[str, Any]:
    """The params of the next attempt. Answers and state belong to this one alone."""
    retry = {key: value for key, value in params.items() if key not in ("inputResponses", "requestState")}
    if answers:
        retry["inputResponses"] = answers
    if state is not None:
        retry["requestState"] = state
    return retry


def check_round(needed: InputRequired, number: int, limits: RoundLimits, idle: int = 0) -> None:
    """Raise InvalidResult, before anything is shown, if the server needs more than it may.

    ``number`` counts the rounds, ``idle`` the last of them without any input.
    """
    if number > limits.rounds:
        raise InvalidResult(f"the server still needs input after {limits.rounds} rounds")
    if idle > limits.state_rounds:
        raise InvalidResult(f"the server asked {limits.state_rounds} times to try again without needing anything")
    if len(needed.inputs) > limits.inputs:
        raise InvalidResult(
            f"the server needs {len(needed.inputs)} inputs at once; mcphost gives at most {limits.inputs}"
        )
    if needed.state is not None and len(needed.state) > limits.state_bytes:
        raise InvalidResult(f"the server's requestState is over the limit of {size_text(limits.state_bytes)}")
