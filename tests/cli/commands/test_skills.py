"""Skills without a screen: what is listed, read and verified, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Mcphost
from tests.skill_servers import PICTURE, TABLE, TIDES, SkillServer, at_url, spoiled

Served = Callable[[SkillServer], str]


@pytest.fixture
def served() -> Iterator[Served]:
    """The URL of a server of this process."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(at_url(server))


@pytest.mark.requirement("SKILL-02", "SKILL-03", "SKILL-11")
def test_skills_are_listed_and_counted_without_reading_any(mcphost: Mcphost, served: Served) -> None:
    server = SkillServer()
    url = served(server)
    listed = mcphost("list", "skills", url)
    assert listed.code == 0, listed
    assert [line.split()[1] for line in listed.out.splitlines()[1:]] == [
        "tides", "harbour", "pilots", "logbook", "signals", "signals",
    ]  # fmt: skip
    assert [("new" in line, "dynamic" in line) for line in listed.out.splitlines()[3:5]] == [
        (True, False),
        (False, True),
    ]
    (entry, *_) = json.loads(mcphost("list", "skills", url, "--json").out)["skills"]
    assert entry == server.shelf.entry(TIDES)
    assert json.loads(mcphost("check", url, "--json").out)["skills"] == 6
    assert server.reads == {}


def test_a_shell_completes_what_was_listed(mcphost: Mcphost, served: Served, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f'[servers.harbour]\nurl = "{served(SkillServer())}"\n')
    assert mcphost("--config", "own.toml", "list", "skills").code == 0
    words = mcphost("__complete", "--config", "own.toml", "skill", "read", "harbour", "").out.splitlines()
    assert {"tides", "harbour", "pilots", "logbook", "skill://south/signals/SKILL.md"} <= set(words)
    assert "signals" not in words  # two are called so, and have their URIs alone
    files = mcphost("__complete", "--config", "own.toml", "skill", "read", "harbour", "tides", "").out
    assert sorted(files.split()) == ["SKILL.md", "assets/chart.png", "references/table.csv"]


@pytest.mark.requirement("SKILL-01")
def test_a_server_without_skills_has_no_column_for_them(mcphost: Mcphost, served: Served) -> None:
    server = SkillServer()
    server.declared = True
    url = served(server)
    assert "SKILLS" not in mcphost("check", url).out
    assert "offers no skills" in mcphost("list", "skills", url).err
    assert mcphost("skill", "verify", url).code == 2
    assert not {"skills/list", "skills/get"} & set(server.asked)


@pytest.mark.requirement("SKILL-04", "SKILL-08")
def test_a_file_is_printed_once_it_is_verified(mcphost: Mcphost, served: Served, tmp_path: Path) -> None:
    server, picture = SkillServer(), tmp_path / "chart.png"
    url = served(server)
    assert mcphost("skill", "read", url, "tides", "references/table.csv").out == server.shelf.served[TABLE].decode()
    assert mcphost("skill", "read", url, "tides", "assets/chart.png", "--output", str(picture)).code == 0
    assert picture.read_bytes() == PICTURE
    unlisted = json.loads(mcphost("skill", "read", url, "skill://cellar/SKILL.md", "--json").out)
    assert (unlisted["path"], unlisted["verified"]) == ("SKILL.md", True)
    assert "dynamic" in mcphost("skill", "read", url, "logbook").err


@pytest.mark.requirement("SKILL-04", "SKILL-09", "SKILL-11")
@pytest.mark.hostile("SK01", "SK02", "SK05")
@pytest.mark.parametrize(
    ("mode", "words", "code", "finding"),
    [
        ("other-bytes", ["tides"], 1, "wrong-digest"),
        ("longer", ["tides"], 1, "wrong-size"),
        ("unlisted-link", ["tides", "references/secret.md"], 1, "unlisted-file"),
        ("unlisted-link", ["signals"], 2, None),
        ("refuses-get", ["skill://cellar/SKILL.md"], 2, None),
    ],
)
def test_a_file_that_differs_is_not_printed(
    mcphost: Mcphost, served: Served, mode: str, words: list[str], code: int, finding: str | None
) -> None:
    said = mcphost("skill", "read", served(spoiled(mode)), *words, "--json")
    assert (said.code, said.out) == (code, ""), said
    assert json.loads(said.err)["error"].get("finding") == finding


@pytest.mark.requirement("SKILL-04", "SKILL-05", "SKILL-06")
@pytest.mark.hostile("SK03", "SK04", "SK05", "SK07")
@pytest.mark.parametrize(
    ("server", "options", "code", "words"),
    [
        (SkillServer(), [], 0, "6 skills: 5 verified, 1 dynamic\n"),
        (SkillServer(), ["logbook"], 0, "   -  SKILL.md\n"),
        (SkillServer(), ["--require-digests"], 1, "✖  logbook  its server vouches for none of its files"),
        (spoiled("one-byte"), [], 1, "   ✖  references/table.csv: The file"),
        (spoiled("rotates"), [], 1, "✖  pilots  differs"),  # read as a file of the outer skill before
        (spoiled("removed-file"), [], 1, "(not-served)"),
        (spoiled("lying-frontmatter", "extra-hooks"), [], 1, "(frontmatter-mismatch)"),
        (spoiled("bad-entry", "file-scheme"), [], 1, "(malformed-file-uri)"),
        (spoiled("no-methods"), [], 3, ""),
    ],
    ids=["sound", "dynamic", "digests", "byte", "rotated", "removed", "frontmatter", "entry", "methods"],
)
def test_the_exit_code_says_whether_all_is_verified(
    mcphost: Mcphost, served: Served, server: SkillServer, options: list[str], code: int, words: str
) -> None:
    said = mcphost("skill", "verify", served(server), *options)
    assert said.code == code, said
    assert words in said.out


def test_a_report_has_each_file_and_each_finding(mcphost: Mcphost, served: Served, tmp_path: Path) -> None:
    report = tmp_path / "skills.xml"
    url = served(spoiled("one-byte"))
    said = mcphost("skill", "verify", url, "tides", "--json", "--junit", str(report))
    (skill,) = map(json.loads, said.out.splitlines())
    assert skill["state"] == "differs"
    assert [each["state"] for each in skill["files"]] == ["verified", "differs", "verified"]
    cases = {each.get("name"): len(each) for each in ElementTree.parse(report).iter("testcase")}
    assert cases == {"tides SKILL.md": 0, "tides references/table.csv": 1, "tides assets/chart.png": 0}


@pytest.mark.parametrize(
    "words", [["read", "s"], ["read", "s", "t", "--junit", "x"], ["verify", "s", "t", "f"], ["verify", "--output", "x"]]
)
def test_words_that_do_not_go_together_are_a_mistake(mcphost: Mcphost, words: list[str]) -> None:
    assert mcphost("skill", *words).code == 2
