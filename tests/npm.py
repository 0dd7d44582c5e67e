"""Programs from npm for the tests: installed once into the checkout's cache, whichever worker comes first."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[1] / ".cache"
INSTALL_SECONDS = 300


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
            subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)
            done.write_text(wanted)
    return folder / "node_modules"


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nobody else is in a block with the same ``path``, in this process or another."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
