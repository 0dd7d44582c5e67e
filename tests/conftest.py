"""The frame of all tests: no test sees the machine's own settings, secrets, keychain or network, or leaves a process.

`until` is the only way in which a test waits for something to become true.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import HealthCheck, settings

from mcphost.transports.stdio.process import live_groups
from mcphost.transports.stdio.transport import Command
from tests.loop_watchdog import LoopWatchdog

pytest_plugins = (
    "pytester",
    "tests.marks",
    "tests.secret_search",
    "tests.slow_tests",
)

# Examples are not kept: the working directory is a test's own. Deadlines would measure the neighbours' load.
settings.register_profile(
    "mcphost",
    database=None,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("mcphost")

SERVERS = Path(__file__).with_name("servers")
MACHINE = dict(os.environ)
"""The environment of whoever runs the tests, for what fetches something; no test sees more of it than `KEPT`."""

KEPT = re.compile(r"PATH|TMPDIR|TZ|USER|LOGNAME|SHELL|(PYTEST|COVERAGE|COV)_.*")
IGNORED = [
    each
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
    if signal.getsignal(each) is signal.SIG_IGN
]
"""A shell ignores some signals for what it runs in the background, and nohup does."""

LOOPBACK = re.compile(r"localhost|127\.[\d.]+|::1|0\.0\.0\.0|::|")

if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # httpcore looks for it at each request, on the whole path

Until = Callable[..., Awaitable[None]]
PythonServer = Callable[..., Command]


TESTS_BETWEEN_FREEZES = 50
"""After so many tests what they left is cheap to collect, and has not yet become a heap that takes a second."""

_tests_begun = itertools.count(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of collected tests stay until the end: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup() -> None:
    """Reports and caches of the tests before stay, too: a full collection of them all takes longer than some limits."""
    if next(_tests_begun) % TESTS_BETWEEN_FREEZES == 0:
        _freeze_heap()


def pytest_sessionfinish() -> None:
    """Pytest collects all of it again at the end."""
    _freeze_heap()


def _freeze_heap() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """For ``-n auto``: two workers more than there are processors.

    Tests wait a quarter of their time, for programs, disks and time limits; meanwhile another worker computes.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return processors + 2


@pytest.fixture(scope="session", autouse=True)
def same_on_every_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The environment and the handling of signals are those of a plain login, here and in every child process.

    There is no keychain, and the only trusted authority is one of these tests. A test that is about a proxy, a color
    setting, a locale, a keychain, an authority or an ignored signal sets it itself.
    """
    with pytest.MonkeyPatch.context() as environment:
        for name in MACHINE:
            if not KEPT.fullmatch(name):
                environment.delenv(name, raising=False)
        environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        environment.setenv("LANG", "C.UTF-8")
        environment.setenv("TERM", "xterm-256color")
        environment.setenv("MCPHOST_KEYCHAIN", "off")  # tokens are kept in memory; no keychain is looked for
        environment.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        authority = tmp_path_factory.mktemp("tls") / "authority.pem"
        trustme.CA().cert_pem.write_to_path(str(authority))
        environment.setenv("SSL_CERT_FILE", str(authority))  # the usual ones take each program 40 ms
        _unignore_signals()
        yield


def _unignore_signals() -> None:
    """Handle ignored signals by doing nothing: the tests go on as before, and a child gets the default."""
    for number in IGNORED:
        signal.signal(number, lambda *_: None)


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings, secrets and working directory of the machine are out of reach; returns the home folder."""
    _unignore_signals()  # an event loop that handled them leaves the default behind
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for name in ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CACHE_HOME", "RUNTIME_DIR"):
        monkeypatch.setenv(f"XDG_{name}", str(home / name.split("_")[0].lower()))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(socket, "getaddrinfo", _loopback_only(socket.getaddrinfo))
    monkeypatch.chdir(tmp_path)
    return home


def _loopback_only(resolve: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host or ""
        if not LOOPBACK.fullmatch(name):
            raise socket.gaierror(f"a test asked for the address of {name}")
        return resolve(host, *args, **kwargs)

    return guarded


@pytest.fixture(autouse=True)
def no_server_left(isolated: Path) -> Iterator[None]:
    """A test that leaves a server's process group behind fails, and the group is ended."""
    before = _groups()
    yield
    left = _groups() - before
    for group in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    assert not left, f"the test left the server process groups {sorted(left)}"


def _groups() -> set[int]:
    return set(live_groups)


@pytest.fixture
def until() -> Until:
    """`await until(condition, seconds=30)`: return once the condition is true, fail when the time is over."""

    async def wait(condition: Callable[[], object], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                pytest.fail(f"still not true after {seconds:g} s")
            await asyncio.sleep(0.005)

    return wait


@pytest.fixture
async def loop_watchdog() -> AsyncIterator[LoopWatchdog]:
    """Measures how long the loop is held, without the garbage of other tests: assert on ``longest``."""
    _freeze_heap()
    watchdog = LoopWatchdog(asyncio.get_running_loop())
    yield watchdog
    watchdog.stop()


@pytest.fixture
def python_server() -> PythonServer:
    """`python_server("echo.py", "--page", 2, env={...})`: the command that runs a script of tests/servers."""

    def command(script: str | Path, *args: object, **more: Any) -> Command:
        return Command(sys.executable, ("-S", "-E", str(SERVERS / script), *map(str, args)), **more)

    return command
