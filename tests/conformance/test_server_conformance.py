"""The published conformance suite against mcphost's own sessions and HTTP listener, and against the tests' skills."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.skills import SKILL_CHECKS, judged
from tests.conformance.suite import PREVIEW, RELEASED, Suite
from tests.skill_servers import FILES, Shelf, SkillServer, at_url

SERVER = Path(__file__).parents[1] / "servers" / "conformance.py"
SECONDS = 240.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen([sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate(timeout=30)  # the end of its input ends it


@pytest.mark.parametrize(
    ("suite", "chosen", "least"),
    [(RELEASED, ("--suite", "all"), 32), (PREVIEW, ("--requirements", "2026-07-28"), 49)],
    ids=["released", "preview"],
)
def test_every_scenario_passes(url: str, suite: Suite, chosen: tuple[str, str], least: int) -> None:
    done = suite.run("server", "--url", url, *chosen, seconds=SECONDS)
    summary, _, _ = done.stdout.partition("=== SUMMARY ===")[2].partition("Not scored")
    assert "✗" not in summary, done.stdout
    assert summary.count("✓") >= least


def test_the_server_with_skills_passes_their_scenarios() -> None:
    # Two skills of one name are allowed, and a warning.
    shelf = Shelf({path: content for path, content in FILES.items() if not path.startswith("south/")})
    with at_url(SkillServer(shelf)) as url:
        assert judged(url) == SKILL_CHECKS
