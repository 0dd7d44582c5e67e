"""The command line of the published conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.npm import node_runs

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Suite:
    """The command line of a version of the suite, on the Node that it needs."""

    package: str

    def run(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        return subprocess.run(
            node_runs(f"{self.package}/dist/index.js", *arguments),
            cwd=HERE,  # the driver is named from here: a path with a space would be split
            env={**os.environ, "PATH": folders},
            capture_output=True,
            text=True,
            timeout=seconds,
        )


RELEASED = Suite("@modelcontextprotocol/conformance")
PREVIEW = Suite("conformance-preview")
