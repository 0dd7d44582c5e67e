"""The reader of a skill: its entry, a verified file, and why one is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from mcphost.errors import SkillRefused
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.skill_approvals import FileChange, SkillApproval, SkillState
from mcphost.host.skills.service import FileState, FileStatus, SkillStatus
from mcphost.host.skills.verification import VerifiedFile
from mcphost.protocol.models.skills import Skill, SkillFile
from mcphost.protocol.skill_text import FrontmatterDifference
from mcphost.tui.results.reading_pane import PaneReading, ReadingView
from mcphost.tui.skills.files import check_words
from mcphost.tui.skills.reading import described, refusal_blocks, state_facts, with_file
from tests.tui.resources.resources import Alone, shows
from tests.tui.skills.skills import TABLE, TIDES, entries, skill

NOON = datetime(2026, 11, 27, 12, 3)
NEW = SkillStatus(SkillState.NEW, "new", SkillApproval(SkillState.NEW))


def verified(text: str | bytes, *, of: Skill | None = None, uri: str = TIDES, vouched: bool = True) -> VerifiedFile:
    held, content = of or skill(), text.encode() if isinstance(text, str) else text
    shown = text if isinstance(text, str) else None
    return VerifiedFile(held, uri, held.path_of(uri), content, shown, None, NOON, vouched)


def lines(facts: Any) -> list[str]:
    return [f"{each.label} {each.value.plain}" for each in facts]


def test_an_entry_is_described_with_its_state_and_frontmatter() -> None:
    fields: dict[str, Any] = {"license": "MIT", "metadata": {"author": "Ann", "v": "1"}}
    (entry,) = entries(skill(**{**fields, "allowed-tools": ["Bash", "Read"]}))
    reading = described(entry, tuple(state_facts(entry.skill, NEW)))
    assert lines(reading.facts) == [
        "state ○ new",
        f"uri {TIDES}",
        "beware Its allowed-tools is not as the format has it.",
    ]
    assert reading.blocks is not None
    assert reading.blocks[0].facts == (
        ("name", "tides"),
        ("description", "Use it for tides."),
        ("license", "MIT"),
        ("metadata.author", "Ann"),
        ("metadata.v", "1"),
        ("allowed-tools", '["Bash", "Read"]'),
    )


@pytest.mark.parametrize(
    ("state", "words", "shown"),
    [
        (SkillState.APPROVED, "approved", "● approved, always, on 1 Nov 2026"),
        (
            SkillState.CHANGED,
            "changed: 1 file rotated",
            "✱ changed: 1 file rotated, since you approved it on 1 Nov 2026",
        ),
        (SkillState.REFUSED, "refused: bad\x1b", "✖ refused: bad␛"),
        (SkillState.DYNAMIC, "dynamic", "◌ dynamic"),
    ],
)
def test_the_state_says_since_when_or_why(state: SkillState, words: str, shown: str) -> None:
    approval = SkillApproval(state, datetime(2026, 11, 1).astimezone(), Lifetime.ALWAYS)
    first, *_ = state_facts(skill(), SkillStatus(state, words, approval))
    assert first.value.plain == shown


@pytest.mark.requirement("SKILL-04", "SKILL-05")
def test_a_verified_skill_has_its_text_behind_the_frontmatter() -> None:
    reading = with_file("harbour", verified("---\nname: tides\n---\n# Tides\n"))
    assert lines(reading.facts) == ["verified 12:03 · SKILL.md, 28 B: size, digest and frontmatter are as listed"]
    frontmatter, body = reading.blocks or ()
    assert (frontmatter.kind, body.text, body.mime_type) == ("fields", "# Tides\n", "text/markdown")


def test_a_file_of_a_dynamic_skill_is_not_called_verified() -> None:
    reading = with_file("harbour", verified("a,b\n", uri=TABLE, vouched=False))
    assert lines(reading.facts) == ["not verified references/table.csv, 4 B: its server vouches for no file"]


@pytest.mark.parametrize(
    ("digest", "status", "words"),
    [
        ("sha256:1", FileStatus(), "○ not read"),
        ("sha256:1", FileStatus(FileState.VERIFIED, NOON), "✓ verified 12:03"),
        ("sha256:1", FileStatus(FileState.DIFFERS, NOON, "It differs."), "✖ differs"),
        ("", FileStatus(FileState.VERIFIED, NOON), "◌ read 12:03"),
    ],
)
def test_a_file_has_a_mark_for_its_last_check(digest: str, status: FileStatus, words: str) -> None:
    assert check_words(SkillFile(TIDES, digest, 1), status)[0] == words


def test_bytes_that_are_no_text_are_shown_as_bytes() -> None:
    (block,) = with_file("harbour", verified(b"\x00\xff", uri="skill://tides/a.bin")).blocks or ()
    assert block.content() == (b"\x00\xff", "application/octet-stream")


@pytest.mark.hostile("T01")
async def test_hidden_text_of_a_skill_is_visible_and_counted() -> None:
    hidden = skill(description="a\u200bb", **{"state\u202e": "● approved"})
    view, text = ReadingView("Skill", "hint"), "---\nname: tides\n---\nobey\U000e0041 \x1b[2J <!-- me --> [b]x[/]\n"
    reading = with_file("harbour", verified(text, of=hidden))
    async with Alone(lambda: view).run_test(size=(100, 30)) as pilot:
        view.show_reading(reading)
        await shows(pilot, "frontmatter", "a⟨U+200B⟩b", "state⟨U+202E⟩", "obey⟨U+E0041⟩ ␛[2J <!-- me --> [b]x[/]")
        await shows(pilot, "SKILL.md holds 1 invisible character, marked ⟨U+…⟩")
    words = lines(state_facts(hidden, NEW))
    assert "beware its frontmatter holds 2 invisible characters, marked ⟨U+…⟩" in words


@pytest.mark.requirement("SKILL-04", "SKILL-05", "SKILL-13")
async def test_a_refusal_says_what_differs_and_shows_no_bytes() -> None:
    changes = (
        FrontmatterDifference("description", '"Good."', '"Bad."'),
        FrontmatterDifference("hooks", None, '{"start": "id"}'),
        FileChange("table.csv", None, skill().files[0]),
    )
    view, refused = (
        ReadingView("Skill", "hint"),
        SkillRefused("frontmatter-mismatch", "The frontmatter differs.", changes),
    )
    reading = PaneReading("harbour", TIDES, refusal_blocks(refused)).with_error(refused, 0.1)
    async with Alone(lambda: view).run_test(size=(100, 24)) as pilot:
        view.show_reading(reading)
        await shows(pilot, "✖ refused", "✖ The frontmatter differs.", "Nothing of it is shown. r gets the entry again.")
        await shows(pilot, 'description  entry:    "Good."', 'SKILL.md: "Bad."', "hooks        entry:    (absent)")
        await shows(pilot, "table.csv    added, 5 bytes")
