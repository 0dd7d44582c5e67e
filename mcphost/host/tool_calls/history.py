"""The calls of a tool that were wanted before, and which of them a rule by argument would have allowed."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from mcphost.host.consent.argument_rules import fits
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT

PAST_CALLS: Final = 200
"""More are no more telling."""

PAST_CHARACTERS: Final = 200_000
"""Of all their texts together: a rule is tried on them with each letter of it that is typed."""

TAIL_BYTES: Final = 1 << 20
"""Of the end of the audit log, which are read: some thousand decisions, in about 20 ms on a thread of their own."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that was wanted: ``name`` says which."""

    name: str
    arguments: Mapping[str, Any]
    declined: bool = False


@dataclass(frozen=True, slots=True)
class CallHistory:
    """The calls of one tool, newest first. ``reaches`` says in words where they were looked for."""

    calls: Sequence[PastCall] = ()
    reaches: str = "this run"


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """An earlier call, and whether the rule would have allowed it."""

    call: PastCall
    allowed: bool


def tried(when: Mapping[str, str], past: CallHistory) -> list[RuleTrial]:
    """Try a rule on each earlier call."""
    return [RuleTrial(call, fits(when, call.arguments)) for call in past.calls]


async def call_history(
    question: ToolCallQuestion, calls: Iterable[ToolCall], log: Path | None, began: datetime
) -> CallHistory:
    """The calls of the tool that is asked about, but for the one that is asked about.

    ``calls`` are those of this run; earlier ones, before ``began``, are in the audit log ``log``.
    """
    here = list(_of_this_run(question, calls))
    if log is None:
        return CallHistory(tuple(_few(here)), "this run; no audit log is kept")
    try:
        earlier = await asyncio.to_thread(_of_log, question, log, began)
    except FileNotFoundError:  # nothing was ever written down
        earlier = []
    except OSError:
        return CallHistory(tuple(_few(here)), "this run; the audit log cannot be read")
    return CallHistory(tuple(_few([*here, *earlier])), "this run, audit log")


def _of_this_run(question: ToolCallQuestion, calls: Iterable[ToolCall]) -> Iterator[PastCall]:
    for call in reversed(list(calls)):
        request = call.request
        of_it = (request.server, request.tool, request.task) == (question.server, question.tool.name, None)
        if of_it and call.number != question.call:
            yield PastCall(f"call {call.number}", call.arguments, call.state is CallState.DECLINED)


def _few(calls: Iterable[PastCall]) -> Iterator[PastCall]:
    """The newest, as many as can be tried at once."""
    left = PAST_CHARACTERS
    for _, call in zip(range(PAST_CALLS), calls, strict=False):
        left -= sum(len(value) for value in call.arguments.values() if isinstance(value, str))
        if left < 0:
            return
        yield call


def _of_log(question: ToolCallQuestion, log: Path, began: datetime) -> list[PastCall]:
    lines = _last_lines(log)
    read = (_read(question, line, began) for line in reversed(lines))
    return [call for call in read if call is not None]


def _read(question: ToolCallQuestion, line: bytes, began: datetime) -> PastCall | None:
    if b'"decision"' not in line:
        return None
    record: Any = None
    with suppress(ValueError, RecursionError):
        record = json.loads(line)
    match record:
        case {
            "event": "decision",
            "time": str(time),
            "server": question.server,
            "sent_to": question.identity,
            "tool": question.tool.name,
            "arguments": dict(arguments),
            "allowed": bool(allowed),
        }:
            when = _moment(time)
            return PastCall(f"{when:%d %b %H:%M}", arguments, not allowed) if when and when < began else None
    return None


def _moment(time: str) -> datetime | None:
    """Here, as the clock on the wall shows it."""
    try:
        when = datetime.fromisoformat(time)
        return when.astimezone() if when.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _last_lines(log: Path) -> list[bytes]:
    # Not blocking: a pipe planted under this name would hold the thread for ever.
    descriptor = os.open(log, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a regular file")
        begin = max(0, found.st_size - TAIL_BYTES)
        file.seek(begin)
        lines = file.read(TAIL_BYTES).splitlines()
    return lines[1:] if begin else lines
