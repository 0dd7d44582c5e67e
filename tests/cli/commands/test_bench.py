"""``mcphost bench``: both sides are measured, calls need consent once, and what fails is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Mcphost, echo, entry


def test_a_server_is_measured_without_a_tool(mcphost: Mcphost) -> None:
    said = mcphost("bench", echo(), "-n", "1")
    assert said.code == 0, said.err
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == [
        "server", "revision", "starts", "memory", *(["ping", "p50", "p95", "p99", "a", "errors"]),
        *(["tools/list", "p50", "p95", "p99", "a", "errors"]),
    ]  # fmt: skip


def test_two_sides_call_a_tool_after_one_consent(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    rule = '[servers.{}.tools.echo]\napproval = "allow"\n'
    config.write_text("".join(entry(name) + rule.format(name) for name in ("one", "two")))
    words = "--config", str(config), "bench", "one", "echo", "text=hi", "--against", "two", "-n", "1", "--json"
    said = mcphost(*words)
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert [side["requests"][0]["count"] for side in found["sides"]] == [1, 1]
    assert [each["figure"] for each in found["differences"]] == ["startup", "memory", "p50"]
    assert "echo is called 4 times on one and two" in said.err


def test_bench_calls_nothing_without_consent(mcphost: Mcphost) -> None:
    said = mcphost("bench", echo(), "echo", "text=hi", "-n", "1")
    assert (said.code, said.out) == (4, "")


def test_errors_of_the_tool_are_counted_and_named(mcphost: Mcphost) -> None:
    said = mcphost("bench", echo(), "fail", "-n", "2", "--yes")
    assert said.code == 1, said.err
    assert "2: it did not work" in next(line for line in said.out.splitlines() if "errors" in line)


def test_a_server_that_is_lost_ends_the_bench(mcphost: Mcphost) -> None:
    said = mcphost("bench", echo(), "exit", "code=1", "-n", "2", "--yes")
    assert said.code == 3
    assert "stdio" in said.err


def test_a_baseline_is_compared_and_its_budgets_are_checked(mcphost: Mcphost, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(
        json.dumps({"sides": [{"memoryBytes": {"value": 1000, "noise": 0.02}, "requests": [{"request": "ping"}]}]})
    )
    said = mcphost("bench", echo(), "-n", "1", "--baseline", str(before), "--budget", "errors=-1%,memory=+50%")
    assert said.code == 1, said.err
    assert "budget errors=-1% exceeded: ping: errors are 0.0 %" in said.out
    assert "budget errors=-1% unknown: tools/list was not measured on the baseline before.json" in said.out
    assert "budget memory=+50% uncertain" in said.out  # one start says little


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("a", "--budget", "p95=+1%"), "add --against"),
        (("a", "--against", "a"), "the same server"),
        (("a", "--against", "b", "--era", "both"), "give one of them"),
        (("a", "--args", "{}"), "name a tool"),
        (("a", "-n", "0"), "1 to 100000"),
        (("stdio:x", "--baseline", "none.json"), "does not exist"),
    ],
)
def test_a_bench_that_makes_no_sense_is_refused(mcphost: Mcphost, words: tuple[str, ...], reason: str) -> None:
    said = mcphost("bench", *words)
    assert said.code == 2
    assert reason in said.err
