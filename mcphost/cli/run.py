"""Runs a command in a host, and closes that host in order when a signal arrives."""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import signal
import stat
import sys
import threading
from argparse import Namespace
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from mcphost.cli.completion.remembering import remember_offers
from mcphost.cli.output import Outcome, Signalled, answer, is_terminal, remark, report
from mcphost.composition.early_start import started_early
from mcphost.config import Config, state_folder
from mcphost.host.crash_files import CrashFiles, CrashLogHandler
from mcphost.host.events import Alarmed
from mcphost.host.internal_error import log as internal_error_log
from mcphost.posix import HANG_UP

if TYPE_CHECKING:
    from mcphost.host.dependencies import Dependencies
    from mcphost.host.host import Host

END_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")

SECOND_SIGNAL_SECONDS: Final = 0.3
"""Seconds after which a second signal ends the process at once; a terminal that closes sends several together."""

SHUTDOWN_SECONDS: Final = 8.0
"""Seconds after a signal within which everything must be closed; stopping a stubborn server takes less than five."""

_T = TypeVar("_T")


def in_host(config: Config, dependencies: Dependencies, work: Callable[[Host], Awaitable[Outcome]]) -> int:
    """Run ``work`` in a host, print its outcome, return the exit code. Raises what ``work`` raises, and Signalled."""

    async def inside() -> Outcome:
        async with started_early(config, dependencies) as parts:
            from mcphost.host.host import Host  # late: the programs start meanwhile

            _collect_garbage()
            async with Host(config, parts) as host:
                host.bus.observe(_remark_alarm, Alarmed)
                outcome = await work(host)
                remember_offers(host)
                if is_terminal(sys.stdout):  # a person should not wait for servers that stop slowly
                    answer(outcome.text)
                    return replace(outcome, text="")
        return outcome

    # A slow reader of a pipe would keep the servers running and block signals, so the answer waits until they stopped.
    return finish(_run(inside()))


def traffic_path(options: Namespace) -> Path | None:
    """The file of ``--traffic``. Raises ConfigError where it cannot be written."""
    if options.traffic is None:
        return None
    from mcphost.host.traffic.file import claim  # late: few runs write their traffic to a file

    path = Path(options.traffic)
    claim(path)
    return path


def _remark_alarm(event: Alarmed) -> None:
    remark(event.text)


def finish(outcome: Outcome) -> int:
    """Print the outcome and return the exit code."""
    answer(outcome.text)
    for sentence in outcome.remarks:
        remark(sentence)
    for error in outcome.errors:
        report(error)
    return outcome.code


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run ``work`` until it ends or a signal cancels it; a second signal does not wait for the servers to stop."""
    _collect_garbage()
    return _run(work)


def _collect_garbage() -> None:
    """Collect garbage from now on, without what was imported: to go through that costs time, at exit too."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    with _internal_errors_saved():
        return asyncio.run(_until_signalled(work))


def save_crash(error: BaseException) -> Path | None:
    """Save the traceback of an unexpected exception in the state folder; None where that is not possible."""
    with suppress(Exception):  # what failed may be needed here, too
        return CrashFiles(state_folder(os.environ)).save(error)
    return None


@contextmanager
def _internal_errors_saved() -> Iterator[None]:
    """Save the traceback of each exception that becomes an `InternalError`."""
    handler = CrashLogHandler(lambda: CrashFiles(state_folder(os.environ)))
    log, level = internal_error_log, internal_error_log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def _limit_shutdown(number: int) -> None:
    """End the process after `SHUTDOWN_SECONDS`, whatever closing waits for; a terminal that is gone blocks for ever."""
    last = threading.Timer(SHUTDOWN_SECONDS, _exit_now, (number,))
    last.daemon = True
    last.start()


def _exit_now(number: int) -> NoReturn:
    atexit._run_exitfuncs()  # transports kill their processes here
    os._exit(128 + number)


def _detach_from_terminal() -> None:
    """Point the terminal's streams at the null device, so that writing to them does not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):  # isatty() is false for a terminal that hung up
            os.dup2(nowhere, stream)


async def _until_signalled(work: Coroutine[Any, Any, _T]) -> _T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []
    impatient_at = 0.0

    def end(number: int) -> None:
        nonlocal impatient_at
        if not received:
            received.append(number)
            _limit_shutdown(number)
            if number == HANG_UP:
                _detach_from_terminal()
            impatient_at = loop.time() + SECOND_SIGNAL_SECONDS
            task.cancel()
        elif number != HANG_UP and loop.time() >= impatient_at:  # a closed terminal may be reported twice
            _exit_now(number)

    for name in END_SIGNALS:
        number = getattr(signal, name, None)
        # nohup ignores SIGHUP on purpose. A shell ignores SIGINT for every background job, so a SIGINT that arrives
        # there is meant for this process. Where the loop has no signal handlers, Python's default stays.
        if number is not None and not (number == HANG_UP and signal.getsignal(number) is signal.SIG_IGN):
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
