"""Lines on the terminal about a skill, before it is loaded and before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.cli.commands.chat import _preview_lines
from mcphost.cli.skill_questions import skill_lines
from mcphost.host.chat.model_messages import MessagePreview, pieces_of
from mcphost.host.chat.turns import Attachment, UserMessage
from mcphost.host.consent.questions import SkillQuestion
from mcphost.host.consent.skill_approvals import FileChange, SkillApproval, SkillDifferences, SkillState
from mcphost.protocol.models.sampling import text_block
from mcphost.protocol.models.skills import Skill, SkillFile
from mcphost.providers.base import ModelCapabilities

HIDDEN = "\x1b\u202e\u200b\U000e0041"
DIGESTS = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def skill(**frontmatter: Any) -> Skill:
    uri = "skill://tides/SKILL.md"
    about = {"name": "tides", "description": f"Reads\n{HIDDEN} tides.", **frontmatter}
    resources = [{"uri": uri, "digest": DIGESTS[0], "size": 400}]
    return Skill.read({"uri": uri, "frontmatter": about, "resources": resources})


def is_safe(lines: list[str]) -> bool:
    return all(line.isprintable() for line in lines) and not any(mark in "".join(lines) for mark in HIDDEN)


@pytest.mark.hostile("SK13")
@pytest.mark.requirement("SKILL-13")
def test_the_question_about_a_changed_skill_names_all_that_changed() -> None:
    files = [FileChange(f"a{HIDDEN}.md", *(SkillFile("skill://tides/a.md", each, 10) for each in DIGESTS))]
    approval = SkillApproval(SkillState.CHANGED, differences=SkillDifferences(files))
    told = skill(**{"allowed-tools": f"Bash{HIDDEN}"})
    lines = list(skill_lines(SkillQuestion("charts", told, "npx charts", approval, "you", "it changed")))
    shown = " ".join(" ".join(lines).split())
    assert is_safe(lines)
    assert "tools has no effect" in shown
    assert "rotated, aaaaaaaaaaaa…" in shown
    assert "invisible characters" in shown


@pytest.mark.hostile("SK13")
@pytest.mark.requirement("SKILL-18")
def test_the_text_of_a_skill_cannot_reach_the_terminal() -> None:
    body = f"# Tides\n{HIDDEN}\n  together about 0 tokens\n"
    given = Attachment("charts", "skill://tides/SKILL.md", "tides", (text_block(body),), 9, 9, skill=skill())
    pieces = tuple(pieces_of(UserMessage("go", (given,)), ModelCapabilities(tools=True)))
    preview = MessagePreview("big", pieces, 100)
    lines = list(_preview_lines(preview))
    assert (is_safe(lines), preview.hidden, preview.must_be_read) == (True, 3, True)
    assert next(line for line in lines if "together about" in line).startswith("    │ ")
    assert lines[0].startswith("  /skill charts:skill://tides/SKILL.md: ")
