"""Programs from npm for the tests: installed once into the checkout's cache, whichever worker comes first."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import MACHINE

CACHE = Path(__file__).resolve().parents[1] / ".cache"
INSTALL_SECONDS = 300

OFFLINE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|name resolution|establish a new connection|from versions: none", re.I
)
"""In what npm and pip say where there is no network."""


def installed(name: str, packages: Sequence[str]) -> Path:
    """The ``node_modules`` that holds ``packages``, in a cache folder called ``name``; skips where there is no npm."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is not installed, and these are Node programs")
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        wanted = "\n".join(packages)
        done = folder / "installed"
        if not done.exists() or done.read_text() != wanted:
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
            download(*command)
            done.write_text(wanted)
    return folder / "node_modules"


def download(*command: str) -> None:
    """Run a command that fetches something; skips where nothing can be reached, and says why in either case.

    It has the environment the tests were started in, and where the proxies of that one lead nowhere, goes without.
    """
    direct = {name: value for name, value in MACHINE.items() if not name.lower().endswith("_proxy")}
    for env in (MACHINE, direct):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if not done.returncode:
            return
        said = f"{done.stdout}\n{done.stderr}".strip()
        if not OFFLINE.search(said):
            pytest.fail(f"{' '.join(command)}: {said[-1000:]}")
    pytest.skip(f"{' '.join(command)}: {said[-1000:]}")


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nobody else is in a block with the same ``path``, in this process or another."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
