"""Programs from npm for the tests: installed once into a cache, whichever worker comes first.

The cache is the checkout's own, or the folder that ``MCPHOST_TEST_CACHE`` names.
"""

from __future__ import annotations

import fcntl
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import MACHINE

CACHE = Path(MACHINE.get("MCPHOST_TEST_CACHE") or Path(__file__).resolve().parents[1] / ".cache")
CODE = f"NODE_COMPILE_CACHE={CACHE / 'node-code'}"
INSTALL_SECONDS = 300

MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
NODE = f"node-{sys.platform}-{MACHINES.get(platform.machine(), platform.machine())}"
"""The package that holds Node.js itself."""
PROGRAMS = (
    f"{NODE}@22.23.3",
    "@anthropic-ai/mcpb@2.1.2",
    "@copilotkit/aimock@1.43.0",
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/node@2.1.2",
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "conformance-preview@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "oidc-provider@9.13.3",
)
"""One set of all that can share one: a run of npm takes longer than one more package in it."""

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


def programs() -> Path:
    """The ``node_modules`` of `PROGRAMS`."""
    return installed("programs", PROGRAMS)


def newer_node() -> Path:
    """The Node.js of npm, one for all programs: some need a newer one than systems have."""
    return programs() / NODE / "bin/node"


def node_runs(program: str | Path, *words: str) -> list[str]:
    """The command line of a script of `PROGRAMS`, or of the tests, which is compiled at the first start alone."""
    return ["env", CODE, str(newer_node()), str(programs() / program), *words]


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
