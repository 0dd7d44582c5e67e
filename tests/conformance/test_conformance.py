"""The published conformance suite against mcphost's own client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.client import ASKED, DEADLINE_SECONDS, REFUSING, SCRIPTS, SIGNING_IN, WAITING
from tests.conformance.suite import HERE, PREVIEW, RELEASED, KeptSuite
from tests.warm_start import relayed

CHECKS = {
    "initialize": 1,
    "tools_call": 1,
    "sse-retry": 3,
    "elicitation-sep1034-client-defaults": 5,
    **dict.fromkeys(SIGNING_IN, 13),
    "auth/scope-from-www-authenticate": 14,
    "auth/scope-from-scopes-supported": 14,
    "auth/scope-omitted-when-undefined": 14,
    "auth/scope-step-up": 22,
    "auth/scope-retry-limit": 18,
    "auth/token-endpoint-auth-basic": 18,
    "auth/token-endpoint-auth-post": 18,
    "auth/token-endpoint-auth-none": 18,
    "auth/resource-mismatch": 2,
    "auth/offline-access-not-supported": 14,
    "auth/2025-03-26-oauth-endpoint-fallback": 7,
    "auth/client-credentials-jwt": 8,
    "auth/client-credentials-basic": 8,
}
"""The number of checks that each scenario must have made; without it, an idle client would pass."""


@pytest.fixture(scope="module")
def released() -> Iterator[KeptSuite]:
    suite = KeptSuite(RELEASED)
    yield suite
    suite.end()


@pytest.fixture(scope="module")
def preview() -> Iterator[KeptSuite]:
    suite = KeptSuite(PREVIEW)
    yield suite
    suite.end()


@pytest.mark.requirement("SSE-03", "SSE-04", "SSE-07", "ELIC-14")
@pytest.mark.parametrize("scenario", [*SCRIPTS, *SIGNING_IN, *ASKED])
def test_a_scenario_passes_with_all_its_checks(released: KeptSuite, scenario: str, tmp_path: Path) -> None:
    done, verdicts = followed(released, scenario, tmp_path / "first")
    if "WARNING" in verdicts:  # 0.2 s late, which happens on a machine with other work
        done, verdicts = followed(released, scenario, tmp_path / "second")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(verdicts) == {"SUCCESS"}
    assert len(verdicts) >= CHECKS[scenario]


MODERN_SCENARIOS = (
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    "auth/metadata-default",
    "auth/scope-step-up",
    "auth/authorization-server-migration",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
)
"""Scenarios of revision 2026-07-28, in the suite's newest preview."""


@pytest.mark.requirement("MOD-01", "MOD-03", "MOD-13", "HDR-01", "HDR-02", "HDR-03", "HDR-04", "HDR-06", "MRTR-03")
@pytest.mark.requirement("MRTR-04", "MRTR-05", "SCHEMA-03", "AUTH-45")
@pytest.mark.parametrize("scenario", MODERN_SCENARIOS)
def test_a_scenario_of_the_modern_era_passes_with_all_its_checks(
    preview: KeptSuite, scenario: str, tmp_path: Path
) -> None:
    done, verdicts = followed(preview, scenario, tmp_path, "--spec-version", "2026-07-28")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in verdicts
    assert set(verdicts) <= {"SUCCESS", "SKIPPED"}  # skipped is what a modern session does not have


@pytest.mark.requirement("AUTH-44")
@pytest.mark.parametrize(("scenario", "words"), REFUSING.items())
def test_a_forbidden_offer_stops_the_client_with_a_reason(
    released: KeptSuite, scenario: str, words: str, tmp_path: Path
) -> None:
    followed(released, scenario, tmp_path)
    (said,) = tmp_path.glob("**/stderr.txt")
    assert words in said.read_text()


def client_command() -> str:
    """The driver as a fork of an interpreter that has imported it; the suite splits the command at its spaces."""
    modules = tuple(f"tests.conformance.{name}" for name in ("asked", "client", "generic"))
    python, *words = relayed(sys.executable, modules, "client.py")
    return " ".join(
        [Path(python).name, *(os.path.relpath(word, HERE) if word.startswith("/") else word for word in words)]
    )


def followed(
    suite: KeptSuite, scenario: str, folder: Path, *more: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    command = ["client", "--command", client_command(), "--scenario", scenario, "--output-dir", str(folder), *more]
    done = suite.run(*command, seconds=DEADLINE_SECONDS + 15)
    (report,) = folder.glob("**/checks.json")
    return done, [check["status"] for check in json.loads(report.read_text()) if check["status"] != "INFO"]


def test_every_scenario_has_a_script_or_a_named_reason() -> None:
    listed = RELEASED.run("list", "--client", seconds=30).stdout.splitlines()
    scenarios = {line.split()[1] for line in listed if line.startswith("  - ")}
    known = [*SCRIPTS, *SIGNING_IN, *ASKED, *REFUSING, *WAITING]
    assert sorted(scenarios) == sorted(known)
    assert CHECKS.keys() == {*SCRIPTS, *SIGNING_IN, *ASKED}
