"""Reads what kind of result a modern server sent: the answer, a need for input, or a task that will bring the answer.

Specification: 2026-07-28 basic/index (results), basic/patterns/mrtr, extensions/tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcphost.errors import InvalidResult
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import MAY_NEED_INPUT, has_extension

RESULT_TYPE_LENGTH: Final = 40
"""Characters of an unknown ``resultType`` that an error quotes."""


@dataclass(frozen=True, slots=True)
class Complete:
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServerInput:
    """One thing that the server needs: a request in all but the envelope, with unvalidated params."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The server needs ``inputs``, by the keys that the answers carry, before it can answer.

    ``state`` goes back unread with the answers, if and only if it is not None.
    """

    inputs: Mapping[str, ServerInput]
    state: str | None


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task will bring the answer; ``task`` is its state, unvalidated."""

    task: Mapping[str, Any]


def read_result(
    method: str, result: Mapping[str, Any], declare: Callable[[], Mapping[str, Any]]
) -> Complete | InputRequired | TaskStarted:
    """Tell the kinds of results of ``method`` apart; ``declare`` returns the capabilities that the request declared.

    Raises InvalidResult for an unknown type, and for one that this method may not have.
    """
    kind = result.get("resultType", "complete")
    if kind == "complete" or (kind == "task" and method == "tasks/get"):  # as some examples of the extension have it
        return Complete(result)
    if kind == "input_required" and method in MAY_NEED_INPUT:
        return _read_input_required(result)
    if kind == "task" and method == "tools/call" and has_extension(TASKS_EXTENSION, declare()):
        return TaskStarted(result)
    shown = f"of type {kind[:RESULT_TYPE_LENGTH]!r}" if isinstance(kind, str) else "whose type is not a text"
    raise InvalidResult(f"the server answered {method} with a result {shown}, which it may not have")


def _read_input_required(result: Mapping[str, Any]) -> InputRequired:
    inputs, state = read_inputs(result.get("inputRequests")), result.get("requestState")
    if state is not None and not isinstance(state, str):
        raise InvalidResult("the requestState of the server's input_required result is not a string")
    if not inputs and state is None:
        raise InvalidResult("the server's input_required result asks for nothing and has no requestState")
    return InputRequired(inputs, state)


def read_inputs(given: object) -> dict[str, ServerInput]:
    """The ``inputRequests`` of a result or a task, in the server's order. Raises InvalidResult."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidResult("inputRequests is not an object")
    return {key: _read_input(key, value) for key, value in given.items()}


def _read_input(key: str, value: object) -> ServerInput:
    given = as_dict(value)
    method, params = given.get("method"), given.get("params")
    params = {} if params in (None, []) else params  # PHP writes an object without members as []
    if not isinstance(method, str) or not isinstance(params, dict):
        raise InvalidResult(f"input request {key[:RESULT_TYPE_LENGTH]!r} has no method, or no object as params")
    return ServerInput(method, params)
