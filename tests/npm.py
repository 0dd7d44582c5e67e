"""Programs from npm for the tests: installed once into the checkout's cache, whichever worker comes first."""

from __future__ import annotations

import fcntl
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import MACHINE

CACHE = Path(__file__).resolve().parents[1] / ".cache"
CODE = f"NODE_COMPILE_CACHE={CACHE / 'node-code'}"
INSTALL_SECONDS = 300

OFFLINE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|name resolution|establish a new connection|from versions: none", re.I
)
"""In what npm and pip say where there is no network."""


def _answers(proxy: str) -> bool:
    address = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    try:
        socket.create_connection((address.hostname or "", address.port or 80), timeout=5).close()
    except OSError:
        return False
    return True


def _is_dead_proxy(name: str, value: str) -> bool:
    return name.lower() in ("http_proxy", "https_proxy", "all_proxy") and bool(value) and not _answers(value)


NETWORK = {name: value for name, value in MACHINE.items() if not _is_dead_proxy(name, value)}
"""The environment the tests were started in, but for proxies at which nothing answers."""


def installed(name: str, packages: Sequence[str]) -> Path:
    """The ``node_modules`` that holds ``packages``, in a cache folder called ``name``; skips where there is no npm."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed, and these are Node programs")
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with untimed(), alone(folder / "lock"):
        wanted = "\n".join(packages)
        done = folder / "installed"
        if not done.exists() or done.read_text() != wanted:
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
            download(*command)
            done.write_text(wanted)
    return folder / "node_modules"


def newer_node() -> Path:
    """The Node.js of npm, one for all programs: some need a newer one than systems have."""
    return installed("node", ("node@22",)) / "node/bin/node"


def node_runs(program: Path, *words: str) -> list[str]:
    """The command line of a program of Node.js, which compiles its code at the first start alone."""
    return ["env", CODE, str(newer_node()), str(program), *words]


def download(*command: str) -> None:
    """Run a command that fetches something; skips where nothing can be reached, and says why in either case."""
    done = subprocess.run(command, env=NETWORK, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}".strip()
        (pytest.skip if OFFLINE.search(said) else pytest.fail)(f"{' '.join(command)}: {said[-1000:]}")


@contextmanager
def untimed() -> Iterator[None]:
    """Stop the clock of the test: installing has a limit of its own, and whoever comes second waits for the first."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other block with the same ``path`` is open, in this process or another."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
