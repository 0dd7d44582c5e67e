"""Runs a command in a host, and closes that host in order when a signal arrives."""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import select
import signal
import stat
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar

from mcphost.cli.completion.remembering import remember_offers
from mcphost.cli.output import Outcome, Signalled, answer, is_terminal, remark, report
from mcphost.composition.early_start import started_early
from mcphost.config import Config, state_folder
from mcphost.errors import UsageError
from mcphost.host.crash_files import CrashFiles, CrashLogHandler
from mcphost.host.events import Alarmed
from mcphost.host.internal_error import log as internal_error_log
from mcphost.posix import HANG_UP, wakeup_pipe

if TYPE_CHECKING:
    from mcphost.host.dependencies import Dependencies
    from mcphost.host.host import Host
    from mcphost.host.traffic.redactions import TrafficTarget

END_SIGNALS: Final = [
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if name in signal.Signals.__members__
]
"""Signals that end a run in order. Some are missing on Windows."""

SECOND_SIGNAL_SECONDS: Final = 0.3
"""Seconds after which a second signal ends the process at once; a terminal that closes sends several together."""

SHUTDOWN_SECONDS: Final = 8.0
"""Seconds after a signal within which everything must be closed; stopping a stubborn server takes less than five."""

EXIT_SECONDS: Final = 2.0
"""Seconds that the functions at the exit of the process may take after that; killing takes a moment."""

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


def traffic_target(options: Namespace) -> TrafficTarget | None:
    """The file of ``--traffic``; see `traffic_file`."""
    command = options.command.prog.partition(" ")[2] or "screen"
    return traffic_file(options.traffic, options.redact, "--traffic", command)


def traffic_file(
    file: str | None, redact: Sequence[str], option: str, command: str, seen: str = ""
) -> TrafficTarget | None:
    """The file of an ``option`` for all messages, and its redactions; None without one. ``seen``: see `RecordingFacts`.

    Raises ConfigError where the file cannot be written, and UsageError for a wrong ``--redact``, or one without a file.
    """
    if file is None:
        if redact:
            raise UsageError(f"--redact: it needs a file; add {option} FILE")
        return None
    from mcphost.host.traffic.claim import claim  # late: few runs write their traffic to a file
    from mcphost.host.traffic.redactions import Redactions, TrafficTarget

    path, redactions = Path(file), Redactions(redact)
    claim(path)
    return TrafficTarget(path, command, redactions, seen)


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
    with _internal_errors_saved(), _SignalWatch() as watch:
        return asyncio.run(_until_signalled(work, watch))


def save_crash(error: BaseException) -> Path | None:
    """Save the traceback of an unexpected exception in the state folder; None where that is not possible."""
    with suppress(Exception):  # what failed may be needed here, too
        return CrashFiles(state_folder(os.environ)).save(error)
    return None


@contextmanager
def _internal_errors_saved() -> Iterator[None]:
    """Save the traceback of each exception that becomes an `InternalError`, or that ends a thread."""
    handler = CrashLogHandler(lambda: CrashFiles(state_folder(os.environ)))
    log, level, hook = internal_error_log, internal_error_log.level, threading.excepthook
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    # Python would print the text of the exception, which may quote a secret, over the screen or into an answer.
    threading.excepthook = lambda failure: log.debug("a thread failed", exc_info=failure.exc_value)
    try:
        yield
    finally:
        threading.excepthook = hook
        log.removeHandler(handler)
        log.setLevel(level)


def raise_signalled(number: int, frame: object) -> NoReturn:
    """Handle a signal by an exception, so that what was changed is put back on the way."""
    _leave_job_control(number, frame)  # in the background, to put the terminal's modes back would stop it again
    raise Signalled(number)


def _exit_now(number: int) -> NoReturn:
    # Transports kill their processes there, and the screen gives the terminal back. One that waits must not keep us.
    closing = threading.Thread(target=atexit._run_exitfuncs, name="exit", daemon=True)
    with suppress(RuntimeError):  # no more threads
        closing.start()
        closing.join(EXIT_SECONDS)
    os._exit(128 + number)


def _detach_from_terminal() -> None:
    """Point streams whose terminal hung up at the null device, so that writing to them does not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            os.dup2(nowhere, stream)


class _SignalWatch:
    """Cancels the work at the first signal, and ends the process where that takes too long or a second one arrives.

    It hears signals in a thread of its own: whatever blocks the event loop, and Python's own handlers with it, does not
    block this. Use as ``with``, around the event loop.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._before: dict[int, Any] = {}
        self._ears = self._mouth = self._wakeup_before = -1

    def __enter__(self) -> Self:
        # nohup ignores SIGHUP on purpose. A shell ignores SIGINT for every background job, so a SIGINT that arrives
        # there is meant for this process.
        heard = [each for each in END_SIGNALS if not (each == HANG_UP and signal.getsignal(each) is signal.SIG_IGN)]
        if threading.current_thread() is threading.main_thread():  # only that one may set handlers
            self._ears, self._mouth = wakeup_pipe()
            self._before = {number: signal.signal(number, _leave_job_control) for number in heard}
            self._wakeup_before = signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._before and self.received is None:  # else the limit holds until the process has ended
            signal.set_wakeup_fd(self._wakeup_before)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            os.close(self._mouth)  # which ends the thread

    def cancels(self, task: asyncio.Task[Any]) -> None:
        """Cancel this task of the running event loop when a signal arrives, or now if one has."""
        self._cancel = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        if self.received is not None:
            task.cancel()

    def _watch(self) -> None:
        number = self._next_signal(None)
        if number is None:
            os.close(self._ears)
            return
        began = time.monotonic()
        self.received = number
        if number == HANG_UP:
            with suppress(OSError):
                _detach_from_terminal()
        with suppress(RuntimeError):  # the loop is closed
            self._cancel()
        while (left := began + SHUTDOWN_SECONDS - time.monotonic()) > 0:
            another = self._next_signal(left)
            impatient = time.monotonic() >= began + SECOND_SIGNAL_SECONDS
            if another is not None and another != HANG_UP and impatient:  # a closed terminal may be reported twice
                number = another
                break
        _exit_now(number)

    def _next_signal(self, seconds: float | None) -> int | None:
        """The next signal that ends the process; None after so many seconds, or when the watch has ended."""
        while select.select([self._ears], [], [], seconds)[0]:
            number = os.read(self._ears, 1)
            if not number:
                return None
            if number[0] in self._before:
                return number[0]
        return None


def _leave_job_control(number: int, _: object) -> None:
    """Let no signal stop this process once it ends: whoever stopped it would wait for it for ever.

    The program timeout and shells send SIGCONT together with SIGTERM.
    """
    for name in ("SIGTSTP", "SIGCONT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: None)  # ignored, a signal that just came were an error
    for name in ("SIGTTIN", "SIGTTOU"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


async def _until_signalled(work: Coroutine[Any, Any, _T], watch: _SignalWatch) -> _T:
    task = asyncio.current_task()
    assert task is not None
    watch.cancels(task)
    try:
        result = await work
    except asyncio.CancelledError:
        if watch.received is not None:
            raise Signalled(watch.received) from None
        raise
    if watch.received is not None:
        raise Signalled(watch.received)
    return result
