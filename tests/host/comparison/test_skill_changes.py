"""The changes of skills between two surfaces, and skills in a lock; the entries alone count."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.config import Config, Policy
from mcphost.config.surface_lock import SurfaceLock, lock_text, steady_skill
from mcphost.errors import Declined
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.findings import compare_surfaces, findings_text
from mcphost.host.comparison.lock_file import full_server, locked_server, open_lock, surface_of_lock, write_lock
from mcphost.host.comparison.surface import Surface, as_kept, surface, surface_of_recording
from mcphost.host.consent.locked_tools import unlocked_skill
from mcphost.host.consent.questions import Answer
from mcphost.host.consent.skill_approvals import SkillApprovals
from mcphost.host.consent.skill_consent import SkillConsent
from mcphost.host.recordings.recording import RecordedExchange, RecordedSession
from mcphost.json_values import canonical
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.models.skills import Skill

Json = dict[str, Any]

DECLARED: Json = {"resources": {}, "extensions": {SKILLS_EXTENSION: {}}}
TIDES = "skill://tides/SKILL.md"


def file(path: str, digit: str = "a", size: int = 3, folder: str = "skill://tides") -> Json:
    return {"uri": f"{folder}/{path}", "digest": f"sha256:{digit * 64}", "size": size}


FILES = [file("SKILL.md"), file("references/table.csv", "b")]


def entry(uri: str = TIDES, resources: Any = None, **frontmatter: Any) -> Json:
    fields = {"name": uri.split("/")[-2], "description": "Works out the depth.", **frontmatter}
    return {"uri": uri, "frontmatter": fields, "resources": FILES if resources is None else resources}


def made(*skills: Json, **more: Any) -> Surface:
    parts: Json = {"capabilities": DECLARED, "instructions": "", "server_info": {}, "revision": "2026-07-28"}
    return surface("rock", entry="rock", offered={CatalogKind.SKILLS: skills}, **{**parts, **more})


def kept(found: Surface, folder: Path, *, full: bool = False) -> Surface:
    """The surface as a lock has it."""
    path = folder / "mcphost.lock"
    lock = SurfaceLock(version=1, servers={"rock": locked_server(found, str, resources=False)})
    write_lock(path, lock, {"rock": full_server(found, str, resources=False)} if full else None)
    back = open_lock(path).surface("rock")
    assert back is not None
    return back


CHANGES: dict[str, tuple[list[Json], list[Json], list[tuple[str, str, str]]]] = {
    "gone": ([entry()], [], [("breaking", "item-removed", f"{TIDES}: the skill is gone")]),
    "new": ([], [entry()], [("review", "item-added", f"{TIDES}: a new skill")]),
    "rotated": (
        [entry()],
        [entry(resources=[FILES[0], file("references/table.csv", "c")])],
        [("review", "file", f"{TIDES}: its file references/table.csv changed")],
    ),
    "file added": (
        [entry()],
        [entry(resources=[*FILES, file("run.sh")])],
        [("review", "file", f"{TIDES}: its file run.sh is new")],
    ),
    "file gone": (
        [entry()],
        [entry(resources=FILES[:1])],
        [("review", "file", f"{TIDES}: its file references/table.csv is gone")],
    ),
    "another size": (
        [entry()],
        [entry(resources=[FILES[0], file("references/table.csv", "b", 4)])],
        [("review", "file", f"{TIDES}: its file references/table.csv changed")],
    ),
    "now dynamic": (
        [entry()],
        [entry(resources="dynamic")],
        [
            (
                "breaking",
                "digests",
                f"{TIDES}: it no longer gives the digests of its files, by which they are verified",
            )
        ],
    ),
    "no longer dynamic": (
        [entry(resources="dynamic")],
        [entry()],
        [("note", "digests", f"{TIDES}: it now gives the digests of its files")],
    ),
    "frontmatter": (
        [entry(license="MIT")],
        [entry(description="Do as I say.", **{"allowed-tools": "Bash"})],
        [
            ("review", "words", f"{TIDES}: the description in its frontmatter changed"),
            ("review", "words", f"{TIDES}: the license in its frontmatter is gone"),
            ("review", "words", f"{TIDES}: the allowed-tools in its frontmatter is new"),
        ],
    ),
    "another order": ([entry()], [entry(resources=FILES[::-1])], []),
    "moved": (
        [entry()],
        [entry("skill://east/tides/SKILL.md", [file("SKILL.md", folder="skill://east/tides")])],
        [
            ("review", "item-added", f"skill://east/tides/SKILL.md: a new skill; it looks like {TIDES}, which is gone"),
            ("breaking", "item-removed", f"{TIDES}: the skill is gone"),
        ],
    ),
    "renamed": (
        [entry()],
        [entry("skill://ebbs/SKILL.md", [file("SKILL.md", "d", folder="skill://ebbs")])],
        [
            ("review", "item-added", f"skill://ebbs/SKILL.md: a new skill; it looks like {TIDES}, which is gone"),
            ("breaking", "item-removed", f"{TIDES}: the skill is gone"),
        ],
    ),
}


@pytest.mark.requirement("SKILL-13")
@pytest.mark.parametrize("locked", ["live", "lock", "full lock"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_skill_has_its_severity(name: str, locked: str, tmp_path: Path) -> None:
    before, after, expected = CHANGES[name]
    old = made(*before) if locked == "live" else kept(made(*before), tmp_path, full=locked == "full lock")
    found = compare_surfaces(old, made(*after))
    assert sorted((each.severity.value, each.rule, each.words) for each in found) == sorted(expected)


JSON = st.recursive(st.none() | st.booleans() | st.text(max_size=3) | st.integers(0, 3), st.lists, max_leaves=4)
FILE = st.builds(file, st.sampled_from(["SKILL.md", "a.md", "b/c.md"]), st.sampled_from("ab"), st.integers(0, 2))
FIELDS = st.dictionaries(st.sampled_from(["license", "allowed-tools", "x"]), JSON, max_size=2)
FILES_OR_NOT = st.just("dynamic") | st.lists(FILE, max_size=3, unique_by=lambda each: each["uri"]) | JSON


@given(st.tuples(FIELDS, FILES_OR_NOT), st.tuples(FIELDS, FILES_OR_NOT))
@settings(max_examples=25, deadline=None)
def test_two_entries_have_no_finding_exactly_if_they_are_the_same(one: Any, other: Any) -> None:
    skills = [{**entry(**fields), "resources": files} for fields, files in (one, other)]
    surfaces = [made(each) for each in skills]
    locks = [SurfaceLock(version=1, servers={"rock": locked_server(each, str, resources=False)}) for each in surfaces]
    same = canonical(steady_skill(skills[0])) == canonical(steady_skill(skills[1]))
    for before in (surfaces[0], surface_of_lock("rock", locks[0].servers["rock"])):
        assert (compare_surfaces(before, surfaces[1]) == []) is same


def test_the_digests_of_a_change_are_in_the_report() -> None:
    found = compare_surfaces(made(entry()), made(entry(resources=[FILES[0], file("references/table.csv", "c", 9)])))
    assert [(each.before, each.after) for each in found] == [
        (f"sha256:{'b' * 64}, 3 bytes", f"sha256:{'c' * 64}, 9 bytes")
    ]
    assert findings_text(found).startswith(f"skill {TIDES}\n  review    its file references/table.csv changed\n")


def test_a_skill_of_a_server_that_declared_none_is_new(tmp_path: Path) -> None:
    """Locks from before skills were known hold no such table."""
    before = kept(made(capabilities={"tools": {}}), tmp_path)
    assert "skills" not in (tmp_path / "mcphost.lock").read_text()
    assert ("review", "item-added") in [(e.severity.value, e.rule) for e in compare_surfaces(before, made(entry()))]


def test_a_lock_depends_on_no_order_of_files() -> None:
    locks = [
        SurfaceLock(version=1, servers={"rock": locked_server(made(each), str, resources=False)})
        for each in (entry(), entry(resources=FILES[::-1]))
    ]
    assert lock_text(locks[0]) == lock_text(locks[1])
    assert f'"references/table.csv" = "sha256:{"b" * 64}, 3 bytes"' in lock_text(locks[0])


def locked() -> Config:
    """A configuration whose policy has a lock with one skill."""
    lock = SurfaceLock(version=1, servers={"rock": locked_server(made(entry()), str, resources=False)})
    return Config.model_construct(policy=Policy.model_construct().with_lock(Path("/p/mcphost.lock"), lock))


@pytest.mark.parametrize(
    ("skill", "why"),
    [
        (entry(), ""),
        (entry(resources=FILES[::-1]), ""),
        (entry(resources=[FILES[0], file("references/table.csv", "c")]), "this skill is not the one in mcphost.lock"),
        (entry(description="Do as I say."), "this skill is not the one in mcphost.lock"),
        (entry(resources="dynamic"), "this skill is not the one in mcphost.lock"),
        (entry("skill://ebbs/SKILL.md"), "mcphost.lock does not have this skill"),
    ],
)
def test_a_skill_is_as_locked_or_it_is_said_why_not(skill: Json, why: str) -> None:
    assert unlocked_skill(locked(), "rock", "", Skill.read(skill)) == why
    assert unlocked_skill(Config.model_construct(), "rock", "", Skill.read(skill)) == ""


@pytest.mark.requirement("SKILL-12")
@pytest.mark.asyncio
async def test_a_skill_that_is_not_as_locked_is_declined_unasked() -> None:
    async def nothing(*_: object) -> None:
        return

    async def allowed(question: object) -> Answer:
        return Answer(allow=True)

    store: Any = SimpleNamespace(refresh=nothing, skills=SkillApprovals())
    approver: Any = SimpleNamespace(ask=allowed)
    reporting: Any = SimpleNamespace(audit=SimpleNamespace(before=nothing), bus=None)
    consent = SkillConsent(locked, store, approver, reporting)
    assert (await consent.decide("rock", "", Skill.read(entry()), "you", lambda *_: None)).by == "user"
    changed = Skill.read(entry(resources=[FILES[0], file("references/table.csv", "c")]))
    with pytest.raises(Declined, match="by policy: this skill is not the one in"):
        await consent.decide("rock", "", changed, "you", lambda *_: None)


def test_skills_of_a_recording_are_compared() -> None:
    listing = RecordedExchange("skills/list", result={"skills": [entry()]})
    session = RecordedSession("rock", introduction={"capabilities": DECLARED}, exchanges=(listing,))
    found = surface_of_recording(session, "rock")
    assert compare_surfaces(found, made(entry(), revision="")) == []
    assert [each.rule for each in compare_surfaces(found, made(entry(resources=FILES[:1]), revision=""))] == ["file"]


def test_a_masked_skill_is_compared_with_a_masked_one() -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "•••")

    secret = made(entry(license="hunter2"))
    assert compare_surfaces(as_kept(secret, mask), as_kept(made(entry(license="•••")), mask)) == []
    assert "hunter2" not in repr(as_kept(secret, mask))
