"""The skills that a conversation acts on: whose file a model means, and what is said of a skill before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.errors import NotDone
from mcphost.host.chat.acting_skills import READ_FILE, ActingSkill, in_words, meant, skills_in, what_it_may_do
from mcphost.host.chat.tool_selection import alias
from mcphost.host.chat.turns import Attachment, Turn, UserMessage
from mcphost.protocol.models.skills import Skill

DIGEST = "sha256:" + "0" * 64


def skill(folder: str, *paths: str, resources: Any = None, **frontmatter: Any) -> Skill:
    root, name = f"skill://{folder}", folder.rpartition("/")[2]
    files = [{"uri": f"{root}/{path}", "digest": DIGEST, "size": 10} for path in ("SKILL.md", *paths)]
    about = {"name": name, "description": "Does it.", **frontmatter}
    return Skill.read({"uri": f"{root}/SKILL.md", "frontmatter": about, "resources": resources or files})


def given(server: str, brought: Skill) -> Turn:
    attached = Attachment(server, brought.uri, brought.name, (), 0, 0, skill=brought)
    return Turn(1, UserMessage("go", (attached,)))


TIDES = ActingSkill("charts", skill("tides", "references/table.csv", "notes.md"))
PILOTS = ActingSkill("charts", skill("harbour/pilots", "notes.md"))
OTHER = ActingSkill("other", skill("tides", "references/table.csv"))


def test_one_skill_is_meant_whatever_the_path() -> None:
    assert meant([TIDES], {"path": "../gone"}) is TIDES


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"path": "references/table.csv"}, TIDES),
        ({"path": "./references/table.csv"}, TIDES),
        ({"path": "skill://harbour/pilots/notes.md"}, PILOTS),
        ({"path": "notes.md", "skill": "charts:tides"}, TIDES),
        ({"path": "notes.md", "skill": "pilots"}, PILOTS),
        ({"path": "gone.md", "skill": "skill://harbour/pilots/SKILL.md"}, PILOTS),
    ],
)
def test_of_several_skills_the_one_with_the_file_is_meant(arguments: dict[str, Any], found: ActingSkill) -> None:
    assert meant([TIDES, PILOTS], arguments) is found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "write the path of the file"),
        ({"path": 3}, "write the path of the file"),
        ({"path": "references/table.csv"}, "several skills have the file"),
        ({"path": "gone.md"}, "no skill that you act on has the file"),
        ({"path": "x", "skill": "fog\x1b"}, 'you act on no skill called "fog\\u001b", but on the skills tides'),
    ],
)
def test_a_file_of_no_certain_skill_is_an_error(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(NotDone) as caught:
        meant([TIDES, OTHER], arguments)
    assert words in str(caught.value)


def test_a_skill_that_came_again_is_held_by_its_last_entry() -> None:
    newer = skill("tides", "more.md")
    assert skills_in([given("charts", TIDES.skill), given("other", OTHER.skill), given("charts", newer)]) == [
        ActingSkill("charts", newer),
        OTHER,
    ]


def test_the_skills_are_named_with_their_servers() -> None:
    assert in_words([]) == ""
    assert in_words([TIDES]) == "the skill tides of charts"
    assert in_words([TIDES, OTHER]) == "the skills tides of charts and tides of other"


@pytest.mark.requirement("SKILL-16", "SKILL-18")
@pytest.mark.parametrize(
    ("told", "words"),
    [
        (TIDES.skill, "it may read 2 files (20 B): references/table.csv, notes.md"),
        (skill("tides"), "it has no other file"),
        (skill("tides", resources="dynamic"), "it may read files of its folder, none of which the server vouches for"),
        (
            skill("tides", **{"allowed-tools": "Bash", "hooks\u202e": [], "license": "MIT"}),
            "it has no other file; its allowed-tools and hooks⟨U+202E⟩ have no effect",
        ),
    ],
)
def test_the_person_sees_what_a_model_may_do_with_a_skill(told: Skill, words: str) -> None:
    assert what_it_may_do(told) == words


def test_no_tool_of_a_server_has_the_name_of_the_tool_for_files() -> None:
    assert "__" not in READ_FILE
    assert all("__" in alias(*names) for names in (("read", "skill_file"), ("", READ_FILE), ("read_skill", "file")))
