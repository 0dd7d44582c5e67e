"""server-everything asks for forms, pages and folders, and says what arrived: answered from a command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.warm_start import run
from tests.whole.peers import PEERS, running

FORM, PAGE, ROOTS = "trigger-elicitation-request", "trigger-url-elicitation", "get-roots-list"
CONTENT = {"name": "Ada", "check": True, "email": "ada@example.com", "integer": 7, "birthdate": "1815-12-10"}
VISIT = ["url=https://example.com/", "message=come"]


@pytest.fixture(scope="module", params=["stdio", "http"])
def asking(request: pytest.FixtureRequest) -> Iterator[str]:
    """The SERVER that a command line names, over each transport, for all tests of it."""
    with running(PEERS["everything"], request.param) as entry:
        yield entry.get("url") or f"stdio:{shlex.join([entry['command'], *entry['args']])}"


@pytest.mark.requirement(
    "ELIC-04", "ELIC-05", "ELIC-09", "ELIC-14", "ELIC-15", "ELIC-21", "ELIC-24", "ROOT-02", "ROOT-03"
)
@pytest.mark.parametrize(
    ("tool", "words", "answers", "said"),
    [
        (
            FORM,
            [],
            {"kind": "form", "content": CONTENT},
            ["- Name: Ada", "- Favorite Integer: 7", '"action": "accept"'],
        ),
        (FORM, [], {"kind": "form", "action": "decline"}, ["declined", '"action": "decline"']),
        (FORM, [], {"kind": "form", "action": "cancel"}, ["cancelled", '"action": "cancel"']),
        (PAGE, VISIT, {"kind": "url"}, ['"action": "accept"\n}']),
        (PAGE, VISIT, {"kind": "url", "action": "decline"}, ['"action": "decline"']),
        (PAGE, VISIT, {"kind": "url", "action": "cancel"}, ['"action": "cancel"']),
        (PAGE, [*VISIT, "errorPath:=true", "--timeout", "0.3"], {"kind": "url"}, ['"action": "accept"\n}']),
        (ROOTS, [], {"kind": "roots", "paths": ["a b"]}, ["(1 total)", "1. a b", "/a%20b"]),
        (ROOTS, [], {"kind": "roots", "action": "decline"}, ["no roots are currently configured"]),
    ],
)
def test_the_server_receives_the_answer(
    asking: str, tool: str, words: list[str], answers: dict[str, object], said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "answers.json").write_text(json.dumps([answers]))
    done = run("call", asking, tool, *words, "--yes", "--answers", "answers.json")
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in said), done.stdout


def test_list_and_check_show_tools_that_are_added_for_this_client(asking: str) -> None:
    listed, checked = (run(*command, asking, "--json") for command in (["list", "tools"], ["check"]))
    names = [tool["name"] for tool in json.loads(listed.stdout)["tools"]]
    assert {FORM, PAGE, ROOTS, "trigger-sampling-request", "echo"} <= {*names}
    assert json.loads(checked.stdout)["tools"] == len(names)
