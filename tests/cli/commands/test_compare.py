"""``mcphost compare`` and ``mcphost check --era``, against servers of the official SDK and our own."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Mcphost, echo, entry
from tests.whole.peers import sdk_runs

SDK = Path(__file__).parents[2] / "servers" / "sdk.py"
ROUNDS = SDK.with_name("sdk_modern.py")
SERVERS = SDK.parent


def sdk(script: Path = SDK) -> str:
    """The SERVER argument for a server that speaks both eras."""
    return f"stdio:{shlex.join(sdk_runs(script, 'stdio'))}"


@pytest.mark.slow
def test_one_server_is_compared_with_itself_in_both_eras(mcphost: Mcphost) -> None:
    said = mcphost("compare", sdk(), "weather", "city=Rome", "--times", "3", "--yes")
    assert said.code == 0, said.err
    assert "2025-11-25" in said.out
    assert "asked in 2026-07-28, answered" in said.out
    assert "Tools: the same" in said.out
    assert "Calls: the same answers" in said.out
    assert "median" in said.out


@pytest.mark.slow
def test_the_json_of_a_comparison_has_both_sides(mcphost: Mcphost) -> None:
    said = mcphost("compare", sdk(ROUNDS), "plan_trip", "days=1", "--yes", "--accept", "form", "--json")
    found = json.loads(said.out)
    legacy, modern = found["sides"]
    assert (legacy["label"], modern["label"]) == ("legacy", "modern")
    assert modern["calls"][0]["questions"] == {"elicitation/create": 1, "roots/list": 1}
    assert modern["calls"][0]["messages"] == 4
    assert modern["calls"][0]["bytesSent"] > 0
    assert legacy["calls"][0]["error"]
    assert found["same"] is False


def test_two_servers_differ_by_what_they_offer(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(entry("one") + entry("two"), encoding="utf-8")
    said = mcphost("--config", str(config), "compare", "one", "one")
    assert said.code == 2
    assert "the same server" in said.err
    config.write_text(entry("one") + entry("two"), encoding="utf-8")
    said = mcphost("--config", str(config), "compare", "one", "two", "--json")
    assert said.code == 0, said.err
    assert [side["server"] for side in json.loads(said.out)["sides"]] == ["one", "two"]


def test_results_of_which_nothing_can_be_read_are_no_answers(mcphost: Mcphost, tmp_path: Path) -> None:
    args = json.dumps([str(SERVERS / "plain.py"), json.dumps({"tools/call": {"result": {"output": "fine"}}})])
    config = tmp_path / "own.toml"
    config.write_text(
        "".join(f"[servers.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n" for name in "ab")
    )
    said = mcphost("--config", str(config), "compare", "a", "b", "t", "--yes")
    assert said.code == 1, said.err
    assert "has neither content nor structuredContent, but output" in said.out


def test_nothing_is_called_without_consent(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    deny = '[policy]\ndeny = ["one:*"]\n'
    config.write_text(entry("one") + entry("two") + deny, encoding="utf-8")
    said = mcphost("--config", str(config), "compare", "one", "two", "echo", "text=hi")
    assert (said.code, said.out) == (4, "")
    said = mcphost("--config", str(config), "compare", "one", "two", "echo", "text=hi", "--yes")
    assert (said.code, said.out) == (4, "")
    assert "policy.deny" in said.err


def test_a_server_of_one_era_is_reported_with_what_the_probe_answered(mcphost: Mcphost) -> None:
    said = mcphost("compare", echo())
    assert said.code == 3
    assert "answered -32601" in said.out
    assert said.err.startswith("mcphost: stdio (modern): ")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--times", "3"], "name a tool"),
        (["--era", "legacy,legacy"], "neither"),
        (["stdio:other", "--era", "legacy,modern"], "leave it out"),
    ],
)
def test_what_makes_no_comparison_is_a_usage_error(mcphost: Mcphost, words: list[str], reason: str) -> None:
    said = mcphost("compare", echo(), *words)
    assert said.code == 2
    assert reason in said.err


@pytest.mark.parametrize(
    ("asked", "code"),
    [([], 0), (["legacy"], 0), (["modern"], 1), (["both"], 1)],
    ids=["any", "legacy", "modern", "both"],
)
def test_check_says_which_eras_a_server_speaks_and_ends_accordingly(
    mcphost: Mcphost, asked: list[str], code: int
) -> None:
    said = mcphost("check", echo(), "--json", "--era", *asked)
    assert said.code == code, said.err
    found = json.loads(said.out)
    assert found["speaks"] == ["legacy"]
    assert found["legacy"] == {"speaks": True, "protocolVersion": "2025-11-25", "answer": "agreed on 2025-11-25"}
    assert found["modern"]["answer"] == "asked in 2026-07-28, answered -32601"


@pytest.mark.slow
@pytest.mark.requirement("MOD-31")
def test_check_says_how_both_eras_were_detected(mcphost: Mcphost) -> None:
    said = mcphost("check", "--era", "both", sdk())
    assert said.code == 0, said.err
    assert "legacy and modern" in said.out
    assert "asked in 2026-07-28, answered" in said.out


def test_of_a_server_that_does_not_start_nothing_is_known(mcphost: Mcphost) -> None:
    said = mcphost("check", "--era", "stdio:no-such-program-here")
    assert said.code == 3
    assert "legacy is not known; modern is not known" in said.out


@pytest.mark.slow
@pytest.mark.requirement("MOD-31")
def test_an_era_of_which_the_server_says_nothing_is_not_known(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "silent.toml"
    config.write_text(
        f"[servers.s]\ncommand = {json.dumps(sys.executable)}\nstartup_timeout_sec = 2\n"
        f'args = [{json.dumps(str(SERVERS / "hostile.py"))}, "probe-silent"]\n',
        encoding="utf-8",
    )
    said = mcphost("--config", str(config), "check", "--era", "both", "s", "--json")
    assert said.code == 3
    found = json.loads(said.out)
    assert (found["speaks"], found["legacy"]["speaks"], found["modern"]["speaks"]) == (["legacy"], True, None)
    said = mcphost("--config", str(config), "check", "--era", "both", "s")
    assert "legacy; modern is not known" in said.out
