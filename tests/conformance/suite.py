"""The command line of the published conformance suite."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.npm import node_runs, programs

HERE = Path(__file__).parent
"""The working directory of the suite: the driver is named from here, because a path with a space would be split."""


@dataclass(frozen=True)
class Suite:
    """The command line of a version of the suite, on the Node that it needs."""

    package: str

    @property
    def program(self) -> Path:
        return programs() / self.package / "dist/index.js"

    def run(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        command = node_runs(self.program, *arguments)
        return subprocess.run(command, cwd=HERE, env=_env(), capture_output=True, text=True, timeout=seconds)


class KeptSuite:
    """Runs the command line again and again in one process, whose start takes longer than most scenarios."""

    def __init__(self, suite: Suite) -> None:
        self._command = node_runs(HERE / "suite.mjs", str(suite.program))
        self._process = self._start()

    def run(self, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run it to its end. Raises TimeoutExpired, as `Suite.run` does."""
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        orders.write(json.dumps({"arguments": arguments, "env": _env()}) + "\n")
        orders.flush()
        if not select.select([answers], [], [], seconds)[0]:
            self.end()
            self._process = self._start()
            raise subprocess.TimeoutExpired(list(arguments), seconds)
        done: dict[str, Any] = json.loads(answers.readline())
        return subprocess.CompletedProcess(list(arguments), done["code"], done["stdout"], done["stderr"])

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command, cwd=HERE, env=_env(), stdin=pipe, stdout=pipe, text=True)


def _env() -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}


RELEASED = Suite("@modelcontextprotocol/conformance")
PREVIEW = Suite("conformance-preview")
