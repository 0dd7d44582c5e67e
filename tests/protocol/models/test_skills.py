"""Entries of skills, read strictly."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.errors import InvalidResult
from mcphost.protocol.models import skills
from mcphost.protocol.models.skills import Skill

DIGEST = f"sha256:{'0' * 64}"
MAIN = {"uri": "skill://git/SKILL.md", "digest": DIGEST, "size": 3}


def entry(*files: Any, **members: Any) -> Skill:
    frontmatter = {"name": "git", "description": "Uses git."}
    found = {"uri": MAIN["uri"], "frontmatter": frontmatter, "resources": [MAIN, *files], **members}
    return Skill.read({name: value for name, value in found.items() if value != "absent"})


def file(uri: str, **members: Any) -> dict[str, Any]:
    return {"uri": uri, "digest": DIGEST, "size": 1, **members}


def codes(skill: Skill) -> list[str]:
    return [each.code for each in skill.findings]


def test_a_sound_entry_has_no_finding() -> None:
    skill = entry(file("skill://git/a/b.md"), file("skill://git/sub/SKILL.md"))
    assert (skill.findings, skill.refusal, skill.size, skill.path) == ((), "", 5, "git")
    assert [skill.path_of(each.uri) for each in skill.files] == ["SKILL.md", "a/b.md", "sub/SKILL.md"]
    assert [each.uri for each in skill.nested] == ["skill://git/sub/SKILL.md"]
    assert skill.file("SKILL://GIT/a/%62.md") == skill.files[1]


def test_the_name_is_that_of_the_folder_in_a_longer_path() -> None:
    main = file("https://host/skills/git/SKILL.md")
    assert codes(entry(uri=main["uri"], resources=[main])) == []


def test_a_dynamic_skill_is_found_so_and_not_refused() -> None:
    skill = entry(resources="dynamic")
    assert (codes(skill), skill.refusal, skill.dynamic, skill.files) == (["dynamic-resources"], "", True, ())


@pytest.mark.requirement("SKILL-06")
@pytest.mark.hostile("SK06")
@pytest.mark.parametrize("resources", [None, {}, "Dynamic", "absent", 1, True, ""])
def test_resources_of_another_shape_refuse_the_skill(resources: object) -> None:
    skill = entry(resources=resources)
    assert codes(skill) == ["missing-resources"]
    assert skill.refusal.startswith("The entry has ")


@pytest.mark.requirement("SKILL-06")
@pytest.mark.hostile("SK06")
@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"size": -1}, "malformed-size"),
        ({"size": 1.5}, "malformed-size"),
        ({"size": True}, "malformed-size"),
        ({"size": 1e18}, "malformed-size"),
        ({"size": 1 << 53}, "malformed-size"),
        ({"size": 9 * 10**4299}, "malformed-size"),
        ({"size": None}, "malformed-size"),
        ({"size": "1"}, "malformed-size"),
        ({"digest": f"sha256:{'A' * 64}"}, "malformed-digest"),
        ({"digest": f"sha512:{'0' * 128}"}, "malformed-digest"),
        ({"digest": f"sha256:{'0' * 63}"}, "malformed-digest"),
        ({"digest": f"sha256:{'0' * 64}\n"}, "malformed-digest"),
        ({"digest": None}, "malformed-digest"),
        ({"uri": 1}, "malformed-file"),
    ],
)
def test_a_file_of_another_shape_refuses_the_skill(members: dict[str, Any], code: str) -> None:
    assert codes(entry({**file("skill://git/a.md"), **members})) == [code]


@pytest.mark.requirement("SKILL-06")
@pytest.mark.hostile("SK07")
@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("skill://git/../a.md", "malformed-file-uri"),
        ("skill://git/%2e%2e%2fa.md", "malformed-file-uri"),
        ("file:/etc/passwd", "malformed-file-uri"),
        ("skill://other/a.md", "file-outside-folder"),
        ("https://git/a.md", "file-outside-folder"),
        ("skill://git-evil/a.md", "file-outside-folder"),
        ("skill://git/skill.md", "look-alike-files"),
        ("skill://git/SKILL.md", "duplicate-file"),
        ("skill://git/%53KILL.md", "duplicate-file"),
    ],
)
def test_a_file_outside_or_listed_twice_refuses_the_skill(uri: str, code: str) -> None:
    assert codes(entry(file(uri))) == [code]


@pytest.mark.requirement("SKILL-06")
def test_an_entry_must_list_its_own_file() -> None:
    assert codes(entry(resources=[file("skill://git/a.md")])) == ["missing-self"]
    assert codes(entry(resources=[])) == ["missing-self"]


@pytest.mark.parametrize(
    ("frontmatter", "code"),
    [
        (None, "missing-frontmatter"),
        ([], "missing-frontmatter"),
        ({"description": "x"}, "missing-name"),
        ({"name": 1, "description": "x"}, "missing-name"),
        ({"name": "git"}, "missing-description"),
        ({"name": "git", "description": " "}, "missing-description"),
        ({"name": "other", "description": "x"}, "name-path-mismatch"),
        ({"name": "git", "description": "x", "a": ["x" * 70_000]}, "long-frontmatter"),
    ],
)
def test_a_frontmatter_without_its_fields_refuses_the_skill(frontmatter: Any, code: str) -> None:
    assert codes(entry(frontmatter=frontmatter)) == [code]


@pytest.mark.hostile("SK10", "SK13")
@pytest.mark.parametrize("name", ["Git", "git-", "a--b", "g\u0456t", "\uff47it", "git\u202e", "x" * 65, "a b"])
def test_a_name_of_other_characters_is_refused(name: str) -> None:
    main = file(f"skill://x/{name}/SKILL.md")
    assert "malformed-name" in codes(
        entry(uri=main["uri"], resources=[main], frontmatter={"name": name, "description": "x"})
    )


def test_faults_of_the_format_alone_refuse_nothing() -> None:
    frontmatter = {
        "name": "git",
        "description": "x" * 1025,
        "license": 1,
        "compatibility": "x" * 501,
        "metadata": {"a": 1},
        "allowed-tools": ["Bash"],
    }
    skill = entry(frontmatter=frontmatter)
    assert codes(skill) == [
        "long-description",
        "malformed-license",
        "malformed-compatibility",
        "malformed-metadata",
        "malformed-allowed-tools",
    ]
    assert skill.refusal == ""


def test_a_deep_frontmatter_is_refused() -> None:
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    assert codes(entry(frontmatter={"name": "git", "description": "x", "deep": deep})) == ["deep-frontmatter"]


@pytest.mark.parametrize("uri", ["skill://git/README.md", "file:///git/SKILL.md", "git/SKILL.md"])
def test_an_entry_of_another_uri_is_refused(uri: str) -> None:
    assert codes(entry(uri=uri))[0] == "malformed-uri"


@pytest.mark.requirement("SKILL-07")
@pytest.mark.hostile("SK08")
@pytest.mark.parametrize(("more", "found"), [(511, []), (512, ["too-many-files"])])
def test_a_skill_has_at_most_512_files(more: int, found: list[str]) -> None:
    assert codes(entry(*(file(f"skill://git/{number}") for number in range(more)))) == found


@pytest.mark.requirement("SKILL-07")
@pytest.mark.hostile("SK08")
@pytest.mark.parametrize(("size", "found"), [((16 << 20) - 3, []), ((16 << 20) - 2, ["too-large"])])
def test_the_files_of_a_skill_have_at_most_16_mib(size: int, found: list[str]) -> None:
    assert codes(entry(file("skill://git/a", size=size))) == found


@pytest.mark.parametrize("value", ["git", None, [], {}, {"uri": ""}, {"uri": 1}])
def test_what_has_no_uri_is_not_an_entry(value: object) -> None:
    with pytest.raises(InvalidResult):
        Skill.read(value)


def test_one_skill_has_one_key_however_it_is_spelled() -> None:
    assert entry().key == entry(uri="SKILL://git/%53KILL.md").key == "skill://git/SKILL.md"


@pytest.mark.hostile("SK09")
@pytest.mark.parametrize("value", [["x"] * 300_000, "x" * 5_000_000, {"a" * 70_000: 1}])
def test_a_huge_frontmatter_is_not_written_out(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "canonical", lambda given: pytest.fail("written"))
    frontmatter = {"name": "git", "description": "Uses git.", "z": value}
    assert codes(entry(frontmatter=frontmatter)) == ["long-frontmatter"]


def test_a_file_is_found_by_a_path_that_looks_like_a_uri() -> None:
    skill = entry(file("skill://git/a:b.md"))
    assert skill.file("a:b.md") is None
    assert skill.file_at("a:b.md") is skill.files[1]
