"""Skills that differ from their entries, and entries that change."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.errors import Declined, ListingFailed, SkillRefused
from mcphost.host.consent.questions import Answer, SkillQuestion
from mcphost.host.consent.skill_approvals import SkillState
from mcphost.host.skills.verification import checked_bytes, checked_text, own_content
from mcphost.protocol.models.content import ResourceContents
from mcphost.protocol.models.skills import Skill, SkillFile
from tests.conftest import Until
from tests.host.conftest import FileStore
from tests.host.skills.rig import (
    ALWAYS,
    FILES,
    NO,
    ONCE,
    SCHEME,
    SESSION,
    TABLE,
    TIDES,
    Skilled,
    SkillServer,
    refused,
    spoiled,
)

MAIN = FILES["tides/SKILL.md"]
PILOTS = f"{SCHEME}harbour/pilots/SKILL.md"


async def relisted(running: Skilled, until: Until) -> None:
    """Have the server announce a change, and wait until its skills are listed again."""
    before = running.servers["a"].listings.skills.items
    running.skill_servers["a"].announce()
    await until(lambda: running.servers["a"].listings.skills.items is not before)


@pytest.mark.requirement("SKILL-04", "SKILL-12", "SKILL-13")
@pytest.mark.hostile("SK01")
async def test_a_skill_changed_by_one_byte_never_reaches_a_model() -> None:
    server = SkillServer()
    async with Skilled(server, answers=(ALWAYS, NO)) as running:
        loaded = await running.skills.load("a", "tides")
        running.servers["a"].client.forget_fetched()
        server.shelf.edit(TIDES, MAIN.replace(b"# Tides", b"# tides"), published=False)
        assert (await refused(running.skills.load("a", "tides"))).finding == "wrong-digest"
        assert (await refused(loaded.window.read("SKILL.md", origin="model"))).finding == "wrong-digest"
        server.shelf.edit(TIDES, MAIN.replace(b"# Tides", b"# tides"))
        refusal = await refused(loaded.window.read("SKILL.md", origin="model"))
        assert (refusal.finding, "changed at its server (1 file rotated): approve it again" in str(refusal)) == (
            "changed",
            True,
        )
        assert (await refused(loaded.window.read("references/table.csv", origin="model"))).finding == "changed"
        assert running.allowed == []
        with pytest.raises(Declined):
            await running.skills.load("a", "tides")
        _, question = running.asked.questions
        (change,) = question.approval.differences.files
        assert (question.approval.state, change.path, change.words.partition(",")[0]) == (
            SkillState.CHANGED,
            "SKILL.md",
            "rotated",
        )
        assert question.careful


@pytest.mark.requirement("SKILL-04")
@pytest.mark.hostile("SK01", "SK02", "SK08")
@pytest.mark.parametrize(
    ("mode", "finding"), [("other-bytes", "wrong-digest"), ("longer", "wrong-size"), ("shorter", "wrong-size")]
)
async def test_other_bytes_end_the_loading(mode: str, finding: str) -> None:
    async with Skilled(spoiled(mode), answers=(ALWAYS,)) as running:
        refusal = await refused(running.skills.load("a", "tides"))
        assert (refusal.finding, running.allowed, running.reads) == (finding, [], {TIDES: 1})
        assert "Its content is not used" in str(refusal)


@pytest.mark.requirement("SKILL-04")
@pytest.mark.hostile("SK04")
async def test_each_read_is_verified_anew() -> None:
    async with Skilled(spoiled("rotates"), answers=(ONCE,)) as running:
        window = (await running.skills.load("a", "tides")).window
        assert await window.read("references/table.csv", origin="model")
        running.servers["a"].client.forget_fetched()
        assert (await refused(window.read("references/table.csv", origin="model"))).finding == "wrong-digest"


@pytest.mark.requirement("SKILL-04")
@pytest.mark.hostile("SK02")
@pytest.mark.parametrize("kind", ["none", "two", "other-uri", "neither"])
async def test_an_answer_without_its_one_content_is_refused(kind: str) -> None:
    async with Skilled(spoiled("odd-contents", kind), answers=(ONCE,)) as running:
        assert (await refused(running.skills.load("a", "tides"))).finding == "wrong-content"


async def test_the_bytes_that_count_are_those_that_are_shown() -> None:
    async with Skilled(spoiled("odd-contents", "both"), answers=(ONCE,)) as running:
        assert (await refused(running.skills.load("a", "tides"))).finding == "wrong-size"


@pytest.mark.requirement("SKILL-05")
@pytest.mark.hostile("SK03")
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("description", ["description"]),
        ("extra-hooks", ["hooks"]),
        ("missing", ["license"]),
        ("value-type", ["metadata"]),
        ("true-is-one", ["flag"]),
    ],
)
async def test_a_frontmatter_that_lies_ends_the_loading(kind: str, fields: list[str]) -> None:
    async with Skilled(spoiled("lying-frontmatter", kind), answers=(ALWAYS,)) as running:
        refusal = await refused(running.skills.load("a", kind))
        assert (refusal.finding, [each.field for each in refusal.differences]) == ("frontmatter-mismatch", fields)
        assert f'"{fields[0]}" differs.' in str(refusal)
        assert running.allowed == []


@pytest.mark.requirement("SKILL-10")
@pytest.mark.parametrize(("answer", "ends"), [(ALWAYS, True), (SESSION, True), (ONCE, False)])
async def test_a_window_ends_with_the_approval_it_rests_on(answer: Answer, ends: bool) -> None:
    async with Skilled(SkillServer(), answers=(answer,)) as running:
        window = (await running.skills.load("a", "tides")).window
        assert window.problem == ""
        for grant in list(running.consent.grants()):
            running.consent.revoke_grant(grant)
        assert window.problem == ('You took back your approval of the skill "tides".' if ends else "")


@pytest.mark.requirement("SKILL-05")
async def test_a_dynamic_skill_is_held_to_its_frontmatter() -> None:
    server = SkillServer()
    async with Skilled(server, answers=(ALWAYS, ALWAYS)) as running:
        loaded = await running.skills.load("a", "logbook")
        file = await loaded.window.read("SKILL.md", origin="model")
        assert (file.vouched, running.allowed, loaded.skill.dynamic) == (False, [], True)
        server.shelf.edit(
            f"{SCHEME}logbook/SKILL.md", FILES["logbook/SKILL.md"].replace(b"Keeps", b"Loses"), published=False
        )
        running.servers["a"].client.forget_fetched()
        assert (await refused(running.skills.load("a", "logbook"))).finding == "frontmatter-mismatch"
        assert len(running.asked.questions) == 2


@pytest.mark.requirement("SKILL-14")
async def test_a_skill_within_a_dynamic_one_is_not_read() -> None:
    async with Skilled(SkillServer(), answers=(ONCE,)) as running:
        window = (await running.skills.load("a", "logbook")).window
        reads = dict(running.reads)
        for path in ("inner/SKILL.md", "./inner/skill%2Emd"):
            refusal = await refused(window.read(path, origin="model"))
            assert "is another skill, which needs its own approval" in str(refusal)
        assert running.reads == reads


@pytest.mark.hostile("SK12")
@pytest.mark.parametrize(
    "kind", ["alias-bomb", "cycle", "duplicate-key", "python-tag", "nul", "no-end", "no-start", "long"]
)
async def test_yaml_that_bites_ends_the_loading(kind: str) -> None:
    async with Skilled(spoiled("bad-yaml", kind), answers=(ONCE,)) as running:
        assert (await refused(running.skills.load("a", kind))).finding == "malformed-frontmatter"


@pytest.mark.requirement("SKILL-06")
@pytest.mark.hostile("SK06", "SK07")
async def test_no_entry_of_a_wrong_shape_is_read() -> None:
    server = spoiled("bad-entry")
    server.page = 100
    async with Skilled(server) as running:
        skills = [each.skill for each in running.catalog.skills("a")]
        assert len(skills) > 30
        for skill in skills:
            refusal = await refused(running.skills.load("a", skill.uri))
            assert refusal.finding in [each.code for each in skill.findings]
            assert running.skills.status("a", skill).kind is SkillState.REFUSED
        assert (running.reads, running.asked.questions) == ({}, [])


@pytest.mark.requirement("SKILL-09", "SKILL-13")
@pytest.mark.hostile("SK04")
async def test_a_file_that_changed_since_the_listing_ends_the_window() -> None:
    async with Skilled(spoiled("entry-changes"), answers=(ALWAYS,)) as running:
        window = (await running.skills.load("a", "tides")).window
        refusal = await refused(window.read("references/table.csv", origin="model"))
        assert (refusal.finding, running.allowed, window.problem) == ("changed", [], str(refusal))


@pytest.mark.requirement("SKILL-12")
@pytest.mark.hostile("SK15")
async def test_an_entry_that_changes_during_its_question_is_not_loaded(until: Until) -> None:
    server = SkillServer()

    async def changes(question: SkillQuestion) -> Answer:
        server.shelf.edit(TABLE, b"day,high,low\n")
        await relisted(running, until)
        return ALWAYS

    async with Skilled(server, answers=(changes,)) as running:
        assert (await refused(running.skills.load("a", "tides"))).finding == "changed"
        assert (running.allowed, running.reads) == ([], {})


@pytest.mark.requirement("SKILL-12")
@pytest.mark.parametrize("how", ["added", "removed", "rotated"])
async def test_another_list_of_files_revokes_an_approval(how: str, until: Until) -> None:
    server = SkillServer()
    async with Skilled(server, answers=(ALWAYS, NO)) as running:
        await running.skills.load("a", "tides")
        assert running.allowed == [TIDES]
        uri = f"{SCHEME}tides/new.md" if how == "added" else TABLE
        server.shelf.edit(uri, None if how == "removed" else b"x")
        await relisted(running, until)
        assert running.allowed == []
        skill = await running.skills.find("a", "tides")
        assert running.skills.status("a", skill).words == f"changed: 1 file {how}"
        with pytest.raises(Declined):
            await running.skills.load("a", "tides")


@pytest.mark.requirement("SKILL-12")
async def test_a_skill_that_changes_back_is_asked_about_again(until: Until) -> None:
    server = SkillServer()
    async with Skilled(server, answers=(ALWAYS, NO)) as running:
        await running.skills.load("a", "tides")
        for content in (b"x", FILES["tides/references/table.csv"]):
            server.shelf.edit(TABLE, content)
            await relisted(running, until)
        with pytest.raises(Declined):
            await running.skills.load("a", "tides")


@pytest.mark.requirement("SKILL-13")
async def test_the_question_shows_both_texts_that_were_read_in_this_run(until: Until) -> None:
    server = SkillServer()
    async with Skilled(server, answers=(ALWAYS, NO)) as running:
        await running.skills.load("a", "tides")
        changed = MAIN.replace(b"# Tides", b"# Tides and more")
        server.shelf.edit(TIDES, changed)
        await relisted(running, until)
        await running.skills.read("a", "tides")
        with pytest.raises(Declined):
            await running.skills.load("a", "tides")
        assert running.asked.questions[1].approval.differences.text == (MAIN.decode(), changed.decode())


@pytest.mark.requirement("SKILL-14")
@pytest.mark.hostile("SK11")
async def test_an_approval_does_not_cover_a_nested_skill(until: Until) -> None:
    server = SkillServer()
    async with Skilled(server, answers=(ALWAYS, NO)) as running:
        loaded = await running.skills.load("a", "harbour")
        assert [each.uri for each in loaded.skill.nested] == [PILOTS]
        with pytest.raises(Declined):
            await running.skills.load("a", "pilots")
        assert running.allowed == [f"{SCHEME}harbour/SKILL.md"]
        server.shelf.edit(PILOTS, FILES["harbour/pilots/SKILL.md"].replace(b"git:*", b"*"))
        await relisted(running, until)
        assert running.allowed == []


@pytest.mark.hostile("SK11")
async def test_a_nested_skill_that_changed_after_the_listing_is_not_read() -> None:
    async with Skilled(spoiled("nested-changes"), answers=(ALWAYS,)) as running:
        window = (await running.skills.load("a", "harbour")).window
        assert (await refused(window.read("pilots/SKILL.md", origin="model"))).finding == "changed"


async def test_a_skill_allowed_until_the_end_is_not_asked_about_again() -> None:
    async with Skilled(SkillServer(), answers=(SESSION, NO)) as running:
        await running.skills.load("a", "tides")
        await running.skills.load("a", "tides")
        assert len(running.asked.questions) == 1


@pytest.mark.requirement("SKILL-12")
async def test_an_approval_outlives_a_restart(tmp_path: Any) -> None:
    for questions in (1, 0):
        store = FileStore(tmp_path)
        async with Skilled(SkillServer(), answers=(ALWAYS,), store=store) as running:
            await running.skills.load("a", "tides")
            assert len(running.asked.questions) == questions
    async with Skilled(
        SkillServer(), answers=(NO,), store=FileStore(tmp_path), entry={"command": "another"}
    ) as running:
        with pytest.raises(Declined):
            await running.skills.load("a", "tides")
        (question,) = running.asked.questions
        assert question.approval.differences.words == "its server's command changed"


@pytest.mark.requirement("SKILL-16")
@pytest.mark.parametrize("policy", [{"allow": ["*:*"]}, {"default": "allow"}, {"ask": ["*:*"]}])
async def test_a_rule_that_allows_tools_covers_no_skill(policy: dict[str, Any]) -> None:
    async with Skilled(SkillServer(), answers=(NO,), policy=policy) as running:
        with pytest.raises(Declined, match="by you"):
            await running.skills.load("a", "tides")


@pytest.mark.parametrize("policy", [{"deny": ["a:*"]}, {"deny": ["a:skill://tides/*"]}, {"default": "deny"}])
async def test_a_rule_that_refuses_covers_skills(policy: dict[str, Any]) -> None:
    async with Skilled(SkillServer(), policy=policy) as running:
        with pytest.raises(Declined, match=r"by policy: policy\.de"):
            await running.skills.load("a", "tides")
        assert (running.asked.questions, running.reads) == ([], {})


@pytest.mark.hostile("SK09")
async def test_a_list_that_fails_is_not_taken_for_an_empty_one() -> None:
    async with Skilled(spoiled("no-methods")) as running:
        with pytest.raises(ListingFailed, match="listing the skills failed"):
            await running.skills.find("a", "tides")


@pytest.mark.hostile("SK05")
async def test_a_link_to_an_unlisted_file_leads_nowhere() -> None:
    async with Skilled(spoiled("unlisted-link"), answers=(ONCE,)) as running:
        loaded = await running.skills.load("a", "tides")
        assert "references/secret.md" in loaded.body
        assert (await refused(loaded.window.read("references/secret.md", origin="model"))).finding == "unlisted-file"


async def test_an_entry_that_is_no_longer_fresh_is_got_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = SkillServer()
    monkeypatch.setattr("skills.FRESH_MILLISECONDS", 0)
    monkeypatch.setattr("mcphost.host.connections.listings.LEAST_FRESH", 0.0)
    async with Skilled(server, answers=(ONCE,)) as running:
        await running.skills.load("a", TIDES)
        assert server.asked.count("skills/get") == 1


@pytest.mark.requirement("SKILL-08")
async def test_an_answer_about_another_skill_is_refused() -> None:
    async with Skilled(spoiled("other-entry")) as running:
        with pytest.raises(Exception, match="is about another skill"):
            await running.skills.load("a", f"{SCHEME}cellar/SKILL.md")


async def test_a_window_ends_with_its_server() -> None:
    async with Skilled(SkillServer(), SkillServer(), answers=(ONCE,)) as running:
        window = (await running.skills.load("a", "tides")).window
        await running.apply(running.config.model_copy(update={"servers": {"b": running.config.servers["b"]}}))
        assert window.problem == "The server a was removed."
        assert (await refused(window.read("SKILL.md", origin="model"))).finding == "changed"


@pytest.mark.hostile("SK09", "SK10")
async def test_a_skill_that_is_listed_twice_is_taken_once() -> None:
    async with Skilled(spoiled("twins")) as running:
        listing = running.servers["a"].listings.skills
        assert [each.reason for each in listing.rejected] == ["the server lists this URI twice; the first is used"] * 2
        assert [each.refusal == "" for each in listing.items] == [True, False]


@pytest.mark.hostile("SK09")
@pytest.mark.requirement("SKILL-02")
@pytest.mark.parametrize(
    ("mode", "notice", "count"),
    [
        ("same-cursor", "the same cursor twice", 1),
        ("endless-list", "after 64 pages", 64),
        ("empty-cursor", None, 6),
        ("many-skills", "after 200 items", 200),
    ],
)
async def test_a_list_without_an_end_is_cut_off(mode: str, notice: str | None, count: int) -> None:
    async with Skilled(spoiled(mode, count=201), entry={"limits": {"list_items": 200}}) as running:
        listing = running.servers["a"].listings.skills
        assert (notice or "") in (listing.notice or "")
        assert len(listing.items) == count


@pytest.mark.hostile("SK09")
async def test_a_long_description_leaves_the_skill_out() -> None:
    server = spoiled("long-description", size=2_000_000)
    async with Skilled(server) as running:
        (rejected,) = running.servers["a"].listings.skills.rejected
        assert (rejected.name, "1048576 characters" in rejected.reason) == (TIDES, True)


@pytest.mark.hostile("SK13")
async def test_hidden_text_is_counted_and_makes_the_question_careful() -> None:
    server = spoiled("hidden-text", "tags")
    async with Skilled(server, answers=(ONCE,)) as running:
        loaded = await running.skills.load("a", "tags")
        (question,) = running.asked.questions
        assert (question.hidden, question.careful, loaded.hidden) == (7, True, 14)


# The bytes alone.

ENTRY = SkillServer().shelf.entry(TIDES)


def result(data: bytes, *, blob: bool) -> dict[str, Any]:
    held = {"blob": base64.b64encode(data).decode()} if blob else {"text": data.decode("utf-8", "surrogateescape")}
    return {"contents": [{"uri": TIDES, **held}]}


def load(entry: dict[str, Any], data: bytes, *, blob: bool) -> str:
    skill = Skill.read(entry)
    if skill.refusal:
        raise SkillRefused("", skill.refusal)
    file = skill.file(TIDES)
    assert file is not None
    content = own_content(TIDES, result(data, blob=blob))
    return checked_text(skill, checked_bytes("SKILL.md", file, content))


def test_a_blob_of_the_right_length_must_be_base64() -> None:
    content = ResourceContents.read({"uri": TIDES, "blob": "!!!!"})
    with pytest.raises(SkillRefused, match="is not base64"):
        checked_bytes("SKILL.md", SkillFile(TIDES, "sha256:", 3), content)


@given(st.integers(0, len(MAIN) - 1), st.integers(1, 127), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40)
def test_any_other_byte_of_the_body_is_refused(at: int, flip: int, blob: bool) -> None:
    assert load(ENTRY, MAIN, blob=blob) == MAIN.decode()
    changed = MAIN[:at] + bytes([MAIN[at] ^ flip]) + MAIN[at + 1 :]
    with pytest.raises(SkillRefused):
        load(ENTRY, changed, blob=blob)


@given(st.sampled_from(["size", "digest", "frontmatter"]), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=40)
def test_any_other_character_of_the_entry_is_refused(member: str, data: st.DataObject) -> None:
    first, *others = ENTRY["resources"]
    assert first["uri"] == TIDES
    entry = {**ENTRY}
    if member == "frontmatter":
        field = data.draw(
            st.sampled_from([name for name, value in ENTRY["frontmatter"].items() if isinstance(value, str)])
        )
        text = ENTRY["frontmatter"][field]
        entry["frontmatter"] = {**ENTRY["frontmatter"], field: _flipped(text, data)}
    elif member == "digest":
        entry["resources"] = [{**first, "digest": _flipped(first["digest"], data)}, *others]
    else:
        entry["resources"] = [{**first, "size": first["size"] ^ data.draw(st.integers(1, 255))}, *others]
    with pytest.raises(SkillRefused):
        load(entry, MAIN, blob=True)


def _flipped(text: str, data: st.DataObject) -> str:
    at = data.draw(st.integers(0, len(text) - 1))
    return text[:at] + chr(ord(text[at]) ^ data.draw(st.integers(1, 7))) + text[at + 1 :]
