"""Approvals of skills: bound to every file, kept between runs, and shared by several of them."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from mcphost.host.background import BackgroundTasks
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.saved_skills import skill_tables, skills_from_tables
from mcphost.host.consent.skill_approvals import ApprovedSkill, SkillApprovals, SkillState, why_not_always
from mcphost.host.events import EventBus
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.models.tools import Tool
from tests.host.conftest import FileStore

NOW = datetime(2026, 11, 27, 12, 3, tzinfo=UTC)
MAIN = "skill://git/SKILL.md"


def skill(*digits: str, **members: Any) -> Skill:
    """A skill with a file for each digit, of which its digest is made."""
    names = ["SKILL.md", *(f"{number}.md" for number in range(1, len(digits)))]
    files = [
        {"uri": f"skill://git/{name}", "digest": f"sha256:{digit * 64}", "size": 3}
        for name, digit in zip(names, digits, strict=False)
    ]
    frontmatter = {"name": "git", "description": "Uses git."}
    return Skill.read({"uri": MAIN, "frontmatter": frontmatter, "resources": files, **members})


def state(approvals: SkillApprovals, other: Skill, **more: Any) -> str:
    return approvals.status_of("s", "git-server", other, **more).state.value


def allowed(lifetime: Lifetime = Lifetime.ALWAYS) -> SkillApprovals:
    approvals = SkillApprovals()
    assert approvals.allow("s", "git-server", skill("1", "2"), lifetime, NOW)
    return approvals


@pytest.mark.requirement("SKILL-12")
@pytest.mark.parametrize(
    ("other", "words"),
    [
        (skill("1", "2"), ""),
        (skill("1", "3"), "1 file rotated"),
        (skill("1"), "1 file removed"),
        (skill("1", "2", "3"), "1 file added"),
        (skill("3", "2", frontmatter={"name": "git", "description": "x"}), "1 file rotated, its frontmatter changed"),
    ],
)
def test_an_approval_holds_for_the_same_files_alone(other: Skill, words: str) -> None:
    found = allowed().status_of("s", "git-server", other)
    assert (found.state.value, found.differences.words) == ("changed" if words else "approved", words)
    assert bool(found.remembered) is not bool(words)


DIGITS = st.dictionaries(st.sampled_from(["SKILL.md", "a", "b"]), st.sampled_from("01"), min_size=1)


@given(DIGITS, DIGITS)
def test_an_approval_holds_exactly_if_uris_and_digests_are_equal(one: dict[str, str], other: dict[str, str]) -> None:
    def made(files: dict[str, str]) -> Skill:
        listed = [
            {"uri": f"skill://git/{name}", "digest": f"sha256:{digit * 64}", "size": 1} for name, digit in files.items()
        ]
        return skill(resources=listed)

    first, second = made({"SKILL.md": "0", **one}), made({"SKILL.md": "0", **other})
    approvals = SkillApprovals()
    approvals.allow("s", "git-server", first, Lifetime.ALWAYS, NOW)
    assert (state(approvals, second) == "approved") is (first.manifest == second.manifest)


def test_the_order_and_the_spelling_of_files_do_not_count() -> None:
    files = skill("1", "2").resources
    spelled = [{**files[1], "uri": "SKILL://GIT/%31.md"}, files[0]]
    assert state(allowed(), skill(resources=spelled)) == "approved"


@pytest.mark.requirement("SKILL-12")
def test_a_dynamic_skill_is_never_approved() -> None:
    approvals, dynamic = SkillApprovals(), skill(resources="dynamic")
    assert not approvals.allow("s", "git-server", dynamic, Lifetime.ALWAYS, NOW)
    assert state(approvals, dynamic) == "dynamic"
    assert why_not_always(dynamic) == "its server vouches for no file, so that a change would not be noticed"


@pytest.mark.requirement("SKILL-11")
def test_an_approval_counts_for_its_server_and_program_alone() -> None:
    approvals = allowed()
    assert approvals.status_of("t", "git-server", skill("1", "2")).state is SkillState.NEW
    assert approvals.status_of("s", "another", skill("1", "2")).state is SkillState.CHANGED
    assert approvals.noticed("s", "another", skill("3")) is False


def test_a_skill_that_was_loaded_once_is_known_and_asked_about() -> None:
    approvals = allowed(Lifetime.ONCE)
    assert (state(approvals, skill("1", "2")), state(approvals, skill("1"))) == ("new", "changed")
    assert [*approvals.grants()] == []


def test_a_longer_approval_outlives_a_shorter_one() -> None:
    approvals = allowed()
    assert not approvals.allow("s", "git-server", skill("1", "2"), Lifetime.SESSION, NOW)
    assert [grant.lifetime for grant in approvals.grants()] == [Lifetime.ALWAYS]


def test_an_old_approval_lapses() -> None:
    approvals, oldest = allowed(), NOW + timedelta(days=1)
    assert (state(approvals, skill("1", "2"), oldest=oldest), [*approvals.grants(oldest)]) == ("new", [])


@pytest.mark.requirement("SKILL-12")
def test_a_change_revokes_an_approval_also_if_it_is_undone() -> None:
    approvals = allowed()
    assert not approvals.noticed("s", "git-server", skill("1", "2"))
    assert approvals.noticed("s", "git-server", skill("1", "3"))
    assert not approvals.noticed("s", "git-server", skill("1", "3"))
    assert (state(approvals, skill("1", "2")), state(approvals, skill("1", "3"))) == ("new", "changed")


@pytest.mark.parametrize("other", [skill(resources="dynamic"), skill(resources=None)])
def test_an_approved_skill_without_a_list_of_files_is_revoked(other: Skill) -> None:
    assert allowed().noticed("s", "git-server", other)


def test_a_long_entry_is_kept_for_this_run() -> None:
    long = skill("1", frontmatter={"name": "git", "description": "x", "more": "y" * 300_000})
    assert why_not_always(long) == "its entry is too long to be kept"


def test_what_is_saved_is_read_again() -> None:
    (kept,) = allowed().saved_part()
    data = tomllib.loads(tomli_w.dumps({"skill": skill_tables([kept])}))
    assert skills_from_tables(data["skill"]) == [kept]
    broken = [{**data["skill"][0], "files": [{"uri": MAIN}]}, {**data["skill"][0], "lifetime": "session"}, 1]
    assert skills_from_tables(broken) == []


class Run:
    """One mcphost on a folder of state files."""

    def __init__(self, folder: Path) -> None:
        self.store = ApprovalStore(FileStore(folder), BackgroundTasks(), EventBus())

    async def opened(self) -> Run:
        await self.store.load()
        return self

    async def allow(self, *digits: str, server: str = "s", lifetime: Lifetime = Lifetime.ALWAYS) -> None:
        self.store.skills.allow(server, "git-server", skill(*digits), lifetime, NOW)
        await self.save()

    async def save(self) -> None:
        self.store._stale = True
        await self.store.save()

    @property
    def grants(self) -> list[tuple[str, int, str]]:
        return [(each.server, each.files, each.lifetime.value) for each in self.store.skills.grants()]


@pytest.mark.requirement("SKILL-12")
async def test_two_runs_keep_what_the_other_allowed_and_revoked(tmp_path: Path) -> None:
    one, other = await Run(tmp_path).opened(), await Run(tmp_path).opened()
    await one.allow("1", "2")
    await other.allow("1", server="t")
    await one.store.refresh()
    assert one.grants == [("s", 2, "always"), ("t", 1, "always")]
    one.store.skills.revoke("t", MAIN)
    await one.save()
    await other.store.refresh()
    assert other.grants == (await Run(tmp_path).opened()).grants == [("s", 2, "always")]


async def test_an_answer_for_one_loading_takes_none_back_elsewhere(tmp_path: Path) -> None:
    one, other = await Run(tmp_path).opened(), await Run(tmp_path).opened()
    await one.allow("1")
    await other.allow("1", lifetime=Lifetime.ONCE)
    assert (await Run(tmp_path).opened()).grants == [("s", 1, "always")]


async def test_an_approval_for_this_run_is_saved_as_seen(tmp_path: Path) -> None:
    run = await Run(tmp_path).opened()
    await run.allow("1", lifetime=Lifetime.SESSION)
    later = await Run(tmp_path).opened()
    assert (later.grants, state(later.store.skills, skill("2"))) == ([], "changed")
    await later.allow("3", server="t")
    await run.store.refresh()
    assert sorted(run.grants) == [("s", 1, "session"), ("t", 1, "always")]


async def test_skills_and_tools_share_a_file(tmp_path: Path) -> None:
    run = await Run(tmp_path).opened()
    await run.allow("1")
    tools = await Run(tmp_path).opened()
    assert tools.store.has_skills
    tool = Tool.read({"name": "log", "inputSchema": {"type": "object"}})
    tools.store.approvals.allow("s", "git-server", tool, Lifetime.ALWAYS, NOW)
    await tools.save()
    again = await Run(tmp_path).opened()
    assert (again.grants, len(again.store.approvals.grants())) == ([("s", 1, "always")], 1)
    assert again.store.skills.forget("s") == 1
    await again.save()
    assert "skill" not in tomllib.loads((tmp_path / "approvals.toml").read_text())


def test_what_was_approved_is_seen_by_its_files() -> None:
    one = ApprovedSkill.of("s", "git-server", skill("1", "2"), NOW)
    assert one.fingerprint == ApprovedSkill.of("t", "git-server", skill("1", "2"), NOW).fingerprint
    assert one.fingerprint != ApprovedSkill.of("s", "git-server", skill("1", "3"), NOW).fingerprint
