"""The hosted workflows: pinned actions, few rights, and only what is in the repository is run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
JOBS: list[tuple[str, str, dict[str, Any]]] = [
    (path.name, name, job) for path in FILES for name, job in yaml.safe_load(path.read_text())["jobs"].items()
]


def test_there_is_one_for_changes_and_one_for_releases() -> None:
    assert [path.name for path in FILES] == ["ci.yml", "release.yml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_with_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+", each)] == []


@pytest.mark.parametrize(("file", "name", "job"), JOBS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_job_has_no_right_that_it_was_not_given_and_ends(file: str, name: str, job: dict[str, Any]) -> None:
    assert yaml.safe_load((ROOT / ".github" / "workflows" / file).read_text())["permissions"] == {}
    assert job["permissions"].keys() <= {"attestations", "contents", "id-token"}
    assert job["permissions"].get("contents", "read") == "read"
    assert job["timeout-minutes"] <= 60


def test_what_they_run_of_ours_is_there() -> None:
    commands = "\n".join(step.get("run", "") for *_, job in JOBS for step in job["steps"])
    assert "python -m tests.smoke" in commands
    for script in re.findall(r"\.ci/\w+", commands):
        assert (ROOT / script).is_file()


def test_zizmor_finds_nothing_to_object_to() -> None:
    beside = Path(sys.executable).with_name("zizmor")
    program = str(beside) if beside.exists() else shutil.which("zizmor")
    if program is None:
        pytest.skip("zizmor is not installed; it comes with the extra dev")
    done = subprocess.run(
        [program, "--offline", ROOT / ".github/workflows"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout
