"""The scenarios of the conformance suite for servers with skills."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.conformance.scenarios import HANDSHAKE, MODERN
from tests.conformance.suite import PREVIEW, KeptSuite

SECONDS = 60.0

SKILL_CHECKS: Mapping[tuple[str, str], str] = {
    (HANDSHAKE, "sep-2640-skills-enumeration"): "30/30, 0 failed, 0 warnings",
    (HANDSHAKE, "sep-2640-skills-manifest"): "6/6, 0 failed, 0 warnings",
    (HANDSHAKE, "sep-2640-skills-directory"): "7/7, 0 failed, 0 warnings",
    (MODERN, "sep-2640-skills-enumeration"): "32/32, 0 failed, 0 warnings",
    (MODERN, "sep-2640-skills-manifest"): "6/6, 0 failed, 0 warnings",
    (MODERN, "sep-2640-skills-directory"): "7/7, 0 failed, 0 warnings",
}
"""The result of each, by revision and scenario."""


def judged(url: str) -> Mapping[tuple[str, str], str]:
    """The results of the server at this URL, each with the output where a check failed."""
    suite, results = KeptSuite(PREVIEW), {}
    try:
        for revision, scenario in SKILL_CHECKS:
            words = ("--scenario", scenario, "--spec-version", revision, "--force")
            done = suite.run("server", "--url", url, *words, seconds=SECONDS)
            passed = re.search(r"Passed: (\d+/\d+, 0 failed, 0 warnings)", done.stdout)
            results[revision, scenario] = passed[1] if passed else done.stdout + done.stderr
    finally:
        suite.end()
    return results
