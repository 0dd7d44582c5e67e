"""The hosted workflows pin their actions, run only scripts that exist, and pass the linter, as the action does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_with_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+", each)] == []


def test_every_script_that_they_run_exists() -> None:
    text = "\n".join(path.read_text() for path in FILES)
    scripts = re.findall(r"\.ci/\w+", text)
    assert scripts
    assert [each for each in scripts if not (ROOT / each).is_file()] == []


def test_the_linter_accepts_the_workflows_and_actions() -> None:
    beside = Path(sys.executable).with_name("zizmor")
    program = str(beside) if beside.exists() else shutil.which("zizmor")
    if program is None:
        pytest.skip("zizmor is not installed; it comes with the extra dev")
    done = subprocess.run([program, "--offline", ROOT / ".github"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
