"""The published conformance suite against mcphost's own sessions and HTTP listener."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.suite import PACKAGES, PREVIEW, Suite
from tests.npm import installed, newer_node

SERVER = Path(__file__).parents[1] / "servers" / "conformance.py"
SECONDS = 240.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with subprocess.Popen([sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate(timeout=30)  # the end of its input ends it


@pytest.mark.parametrize(
    ("name", "packages", "chosen", "least"),
    [
        ("conformance", PACKAGES, ("--suite", "all"), 32),
        ("conformance-preview", PREVIEW, ("--requirements", "2026-07-28"), 49),
    ],
)
def test_every_scenario_passes(
    url: str, name: str, packages: tuple[str, ...], chosen: tuple[str, str], least: int
) -> None:
    done = Suite(installed(name, packages), newer_node()).run("server", "--url", url, *chosen, seconds=SECONDS)
    summary, _, _ = done.stdout.partition("=== SUMMARY ===")[2].partition("Not scored")
    assert "✗" not in summary, done.stdout
    assert summary.count("✓") >= least
