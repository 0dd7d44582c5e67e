"""A host for one command: opened, used and closed in order, whatever signal arrives meanwhile.

Knows signals and the order of answer and end. Refuses to know commands.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import signal
import stat
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeVar

from mcphost.cli.output import Outcome, Signalled, answer, is_terminal, remark
from mcphost.config import Config
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import Alarmed, Event
from mcphost.host.host import Host

ENDING: Final = ("SIGINT", "SIGTERM", "SIGHUP")

AGAIN: Final = 0.3
"""Seconds after which a second signal is a person who will not wait; a terminal that closes sends several at once."""

PATIENCE: Final = 8.0
"""Seconds in which leaving must be done after a signal; servers that will not leave take less than five."""

_T = TypeVar("_T")


def in_host(config: Config, fittings: Dependencies, work: Callable[[Host], Awaitable[Outcome]]) -> int:
    """Do ``work`` in a host and print its outcome; the exit code. Raises what ``work`` does, and Signalled."""

    async def inside() -> Outcome:
        async with Host(config, fittings) as host:
            host.bus.observe(_remark_alarm)
            outcome = await work(host)
            if is_terminal(sys.stdout):  # a person should not wait for servers that are slow to leave
                answer(outcome.text)
                return replace(outcome, text="")
        return outcome

    # Into a pipe only now: who reads slowly would keep the servers running, and signals from being heard.
    return finish(run(inside()))


def _remark_alarm(event: Event) -> None:
    if isinstance(event, Alarmed):
        remark(event.text)


def finish(outcome: Outcome) -> int:
    """Print what is left to be said; the exit code."""
    answer(outcome.text)
    for sentence in outcome.remarks:
        remark(sentence)
    return outcome.code


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run ``work`` until it ends or a signal cancels it; a second one no longer waits for servers to leave."""
    if not gc.isenabled():
        gc.freeze()  # what was imported stays: looking through it again, at the end too, is time lost
        gc.enable()
    return asyncio.run(_heeding_signals(work))


def _leave_in_time(number: int) -> None:
    """Whatever leaving waits for, a terminal that is gone above all, it waits no longer than this."""
    last = threading.Timer(PATIENCE, _leave_now, (number,))
    last.daemon = True
    last.start()


def _leave_now(number: int) -> NoReturn:
    atexit._run_exitfuncs()  # transports end their processes here, at once
    os._exit(128 + number)


def _without_terminal() -> None:
    """The terminal is gone: what is still written goes nowhere, and does not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):  # a terminal that hung up no longer says that it is one
            os.dup2(nowhere, stream)


async def _heeding_signals(work: Coroutine[Any, Any, _T]) -> _T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []
    impatient_at = 0.0

    def end(number: int) -> None:
        nonlocal impatient_at
        if not received:
            received.append(number)
            _leave_in_time(number)
            if number == signal.SIGHUP:
                _without_terminal()
            impatient_at = loop.time() + AGAIN
            task.cancel()
        elif loop.time() >= impatient_at:
            _leave_now(number)

    for name in ENDING:
        number = getattr(signal, name, None)
        # SIGHUP stays ignored where nohup did that. SIGINT is ignored in whatever a shell runs in the background, and
        # whoever sends it there means this process. Where the loop knows no signals, Python's own ways hold.
        if number is not None and not (number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN):
            with suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, end, number)
    try:
        result = await work
    except asyncio.CancelledError:
        if received:
            raise Signalled(received[0]) from None
        raise
    if received:
        raise Signalled(received[0])
    return result
