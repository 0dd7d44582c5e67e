"""Programs from PyPI that are kept apart from mcphost: each set in an environment of its own, installed once.

Their requirements may contradict those of mcphost, so they share no environment with it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.npm import CACHE, alone, download, untimed

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def environment(name: str, packages: Sequence[str]) -> Path:
    """The folder of programs of an environment that holds ``packages``, in a cache folder called ``name``."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with untimed(), alone(folder / "lock"):
        wanted = "\n".join((sys.version, str(folder), *packages))
        done = folder / "installed"
        if not done.exists() or done.read_text() != wanted:
            download(sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder / "venv"))  # ours installs
            options = ("-q", "--no-compile")  # most of it is never imported
            download(*PIP, "--python", str(folder / "venv/bin/python"), "install", *options, *packages)
            done.write_text(wanted)
    return folder / "venv/bin"


def sources(name: str, version: str) -> Path:
    """The unpacked source package of a version, which holds what no wheel does."""
    folder = CACHE / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    unpacked = folder / f"{name}-{version}"
    with untimed(), alone(folder / "lock"):
        if not unpacked.exists():
            exact = ("--no-deps", "--no-binary", name, f"{name}=={version}")
            download(*PIP, "download", "-q", "-d", str(folder), *exact)
            (archive,) = folder.glob(f"{name}-{version}.tar.gz")
            (folder / "part").mkdir(exist_ok=True)
            subprocess.run(["tar", "-xzf", str(archive), "-C", str(folder / "part")], check=True)
            (folder / "part" / unpacked.name).rename(unpacked)
    return unpacked
