"""The command line of the published conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.npm import CACHE

PACKAGES = ("@modelcontextprotocol/conformance@0.1.16",)
PREVIEW = ("@modelcontextprotocol/conformance@0.2.0-alpha.12",)


@dataclass(frozen=True)
class Suite:
    """The suite's command line, on the Node that it needs."""

    modules: Path
    node: Path

    def run(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        program = self.modules / "@modelcontextprotocol/conformance/dist/index.js"
        folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        return subprocess.run(
            [self.node, program, *arguments],
            cwd=Path(__file__).parent,  # the driver is named from here: a path with a space would be split
            env={**os.environ, "PATH": folders, "NODE_COMPILE_CACHE": str(CACHE / "node-code")},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
