"""Skills of servers at the host: found, read, verified and loaded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcphost.errors import CapabilityMissing, CapabilityWithheld, Declined, UnknownName
from mcphost.host.events import SkillLoaded, SkillRead
from mcphost.host.skills.service import FileState
from tests.conftest import Until
from tests.host.skills.rig import (
    ALWAYS,
    FILES,
    NO,
    ONCE,
    SCHEME,
    TABLE,
    TIDES,
    Skilled,
    SkillServer,
    refused,
    spoiled,
)

ERAS = pytest.mark.parametrize("protocol", ["legacy", "modern"])


@ERAS
@pytest.mark.requirement("SKILL-01", "SKILL-02", "SKILL-03")
async def test_listing_reads_no_file_in_either_era(protocol: str) -> None:
    async with Skilled(SkillServer(), protocol=protocol) as running:
        names = [each.skill.name for each in running.catalog.skills("a")]
        assert names == ["tides", "harbour", "pilots", "logbook", "signals", "signals"]
        states = [running.skills.status("a", each.skill).words for each in running.catalog.skills("a")]
        assert states == ["new", "new", "new", "dynamic", "new", "new"]
        assert running.reads == {}


@ERAS
@pytest.mark.requirement("SKILL-04", "SKILL-05", "SKILL-18")
async def test_a_skill_is_loaded_once_it_is_allowed(protocol: str) -> None:
    async with Skilled(SkillServer(), answers=(ONCE,), protocol=protocol) as running:
        loaded = await running.skills.load("a", "tides")
        assert loaded.body.startswith("\n# Tides")
        assert loaded.text == FILES["tides/SKILL.md"].decode()
        (question,) = running.asked.questions
        assert question.about == 'load the skill "tides"'
        assert [running.skills.status("a", loaded.skill).words, running.reads] == ["new", {TIDES: 1}]
        assert SkillLoaded("a", TIDES) in running.events


async def test_the_question_comes_before_any_read() -> None:
    async with Skilled(SkillServer(), answers=(NO,)) as running:
        with pytest.raises(Declined, match="declined by you: not today"):
            await running.skills.load("a", "tides")
        assert running.reads == {}


@pytest.mark.requirement("SKILL-09")
async def test_a_window_reads_the_files_of_its_entry_alone() -> None:
    async with Skilled(SkillServer(), answers=(ONCE,)) as running:
        window = (await running.skills.load("a", "tides")).window
        table = await window.read("references/table.csv", origin="model")
        chart = await window.read(f"{SCHEME}tides/assets/chart.png", origin="model")
        assert [table.text, chart.text, chart.mime_type] == [
            FILES["tides/references/table.csv"].decode(),
            None,
            "image/png",
        ]
        for path in (
            "references/secret.md",
            "../harbour/SKILL.md",
            f"{SCHEME}harbour/SKILL.md",
            "/etc/passwd",
            "a%2Fb",
        ):
            assert (await refused(window.read(path, origin="model"))).finding == "unlisted-file"
        assert sum(running.reads.values()) == 3


async def test_a_file_whose_name_looks_like_a_scheme_is_read_by_its_path() -> None:
    server = SkillServer()
    server.shelf.edit(f"{SCHEME}tides/a:b.md", b"x")
    async with Skilled(server, answers=(ONCE,)) as running:
        window = (await running.skills.load("a", "tides")).window
        for path in ("a:b.md", "./a:b.md"):
            assert (await window.read(path, origin="model")).text == "x"


@pytest.mark.requirement("SKILL-10")
async def test_reading_a_skill_approves_and_activates_nothing() -> None:
    async with Skilled(SkillServer()) as running:
        await running.resources.read("a", TIDES)
        file = await running.skills.read("a", "tides")
        assert file.text == FILES["tides/SKILL.md"].decode()
        assert running.skills.status("a", file.skill).words == "new"
        assert running.asked.questions == []
        assert not any(isinstance(event, SkillLoaded) for event in running.events)


async def test_the_state_of_each_file_is_kept() -> None:
    async with Skilled(spoiled("one-byte")) as running:
        skill = await running.skills.find("a", "tides")
        main, table, picture = skill.files
        await running.skills.read("a", TIDES, main.uri)
        assert (await refused(running.skills.read("a", TIDES, table.uri))).finding == "wrong-digest"
        await running.skills.read("a", TIDES, picture.uri)
        states = [running.skills.file_status("a", skill, file).state for file in skill.files]
        assert states == [FileState.VERIFIED, FileState.DIFFERS, FileState.VERIFIED]
        assert running.events.count(SkillRead("a", TIDES, TABLE)) == 1
        assert running.skills.file_status("a", skill, skill.files[0]).words.startswith("verified ")


@pytest.mark.requirement("SKILL-08")
async def test_an_unlisted_skill_is_found_by_its_uri() -> None:
    async with Skilled(SkillServer(), answers=(ONCE,)) as running:
        loaded = await running.skills.load("a", f"{SCHEME}cellar/SKILL.md")
        assert loaded.skill.name == "cellar"
        with pytest.raises(UnknownName, match='a has no skill "notice:///board"'):
            await running.skills.load("a", "notice:///board")


@pytest.mark.requirement("SKILL-02")
async def test_an_empty_list_does_not_mean_no_skills() -> None:
    server = SkillServer()
    server.entries = list
    async with Skilled(server) as running:
        assert (await running.skills.find("a", TIDES)).name == "tides"


@pytest.mark.requirement("SKILL-11")
async def test_a_name_of_two_skills_is_asked_for_by_uri() -> None:
    async with Skilled(SkillServer()) as running:
        with pytest.raises(UnknownName, match=r"2 skills \"signals\"; say which by its URI: .*north.*south"):
            await running.skills.find("a", "signals")
        north = await running.skills.find("a", f"{SCHEME}north/signals/SKILL.md")
        assert [each.path for each in running.skills.namesakes("a", north)] == ["south/signals"]


@pytest.mark.requirement("SKILL-11")
@pytest.mark.hostile("SK10")
async def test_an_approval_counts_for_one_server_of_two_with_a_uri() -> None:
    async with Skilled(SkillServer(name="b"), SkillServer(name="a"), answers=(ALWAYS, NO)) as running:
        await running.skills.load("a", "tides")
        with pytest.raises(Declined):
            await running.skills.load("b", "tides")
        assert [grant.server for grant in running.consent.grants()] == ["a"]


@pytest.mark.requirement("SKILL-01")
@pytest.mark.parametrize("kind", ["true", "null", "text", "number"])
async def test_only_an_object_declares_skills(kind: str) -> None:
    server = spoiled("bad-declaration", kind)
    async with Skilled(server) as running:
        with pytest.raises(CapabilityMissing):
            await running.skills.find("a", TIDES)
        assert not [method for method in server.asked if method.startswith("skills/")]


@ERAS
@pytest.mark.requirement("SKILL-01")
async def test_skills_are_withheld_where_the_entry_leaves_them_out(protocol: str) -> None:
    entry = {"capabilities": {"extensions": ["io.modelcontextprotocol/tasks"]}}
    async with Skilled(SkillServer(), protocol=protocol, entry=entry) as running:
        with pytest.raises(CapabilityWithheld):
            await running.skills.find("a", "tides")
        assert "skills/list" not in running.skill_servers["a"].asked


@pytest.mark.requirement("SKILL-03")
async def test_selecting_and_approving_reads_no_file() -> None:
    async with Skilled(SkillServer(), answers=(NO,)) as running:
        skill = await running.skills.find("a", "tides")
        running.skills.status("a", skill)
        [running.skills.file_status("a", skill, file) for file in skill.files]
        with pytest.raises(Declined):
            await running.skills.load("a", TIDES)
        assert running.reads == {}


@pytest.mark.requirement("SKILL-07")
async def test_a_skill_of_exactly_the_limits_is_loaded() -> None:
    async with Skilled(
        spoiled("many-files", count=512), spoiled("large", size=16 << 20), answers=(ONCE, ONCE)
    ) as running:
        assert len((await running.skills.load("a", "many")).skill.files) == 512
        window = (await running.skills.load("b", "large")).window
        file = await window.read("large.txt", origin="model")
        assert len(file.content) + window.skill.files[0].size == 16 << 20


@pytest.mark.requirement("SKILL-07")
@pytest.mark.hostile("SK08")
@pytest.mark.parametrize(("mode", "finding"), [("many-files", "too-many-files"), ("large", "too-large")])
async def test_a_skill_above_a_limit_is_declined_unread(mode: str, finding: str) -> None:
    async with Skilled(spoiled(mode)) as running:
        (skill,) = [each.skill for each in running.catalog.skills("a")]
        assert (await refused(running.skills.load("a", skill.uri))).finding == finding
        assert running.skills.status("a", skill).words.startswith("refused: ")
        assert (running.reads, running.asked.questions) == ({}, [])


@pytest.mark.requirement("SKILL-19")
async def test_kept_bytes_are_verified_at_each_use() -> None:
    async with Skilled(SkillServer()) as running:
        await running.skills.read("a", "tides")
        assert await running.skills.read("a", "tides")
        assert running.reads == {TIDES: 1}  # the second came from the cache of the client
        cache = running.servers["a"].client._cache
        assert cache is not None
        for entry in cache._entries.values():
            if entry.method == "resources/read":
                entry.result["contents"][0]["text"] += "!"
        assert (await running.skills.read("a", "tides")).text == FILES["tides/SKILL.md"].decode()
        assert running.reads == {TIDES: 2}  # what was kept differs, so that it was read again


@pytest.mark.requirement("SKILL-19")
async def test_what_was_read_goes_with_its_server() -> None:
    async with Skilled(SkillServer()) as running:
        await running.skills.read("a", "tides")
        skill = await running.skills.find("a", "tides")
        await running.forget("a")
        assert running.skills.file_status("a", skill, skill.files[0]).state is FileState.NOT_READ


@pytest.mark.requirement("SKILL-15", "SKILL-16")
async def test_tools_that_a_skill_allows_itself_grant_nothing() -> None:
    async with Skilled(SkillServer(), answers=(ALWAYS,)) as running:
        loaded = await running.skills.load("a", f"{SCHEME}harbour/pilots/SKILL.md")
        assert loaded.frontmatter["allowed-tools"] == "Bash(git:*) Read"
        assert [grant.tool for grant in running.consent.grants()] == [""]


@pytest.mark.requirement("SKILL-17")
@pytest.mark.hostile("SK05")
async def test_a_window_stays_with_its_server() -> None:
    async with Skilled(SkillServer(), SkillServer(), answers=(ONCE,)) as running:
        window = (await running.skills.load("a", "tides")).window
        await window.read("assets/chart.png", origin="model")
        running.skill_servers["a"].shelf.edit(TABLE, None, published=False)
        assert (await refused(window.read("references/table.csv", origin="model"))).finding == "not-served"
        assert running.skill_servers["b"].reads == {}


async def test_a_call_that_is_cancelled_withdraws_its_question() -> None:
    waits = asyncio.Event()

    async def never(_: object) -> Any:
        waits.set()
        await asyncio.Event().wait()

    async with Skilled(SkillServer(), answers=(never,)) as running:
        loading = asyncio.create_task(running.skills.load("a", "tides"))
        await waits.wait()
        running.servers["a"].stop()
        with pytest.raises(Exception, match="a went away while the question about the skill was open"):
            await loading
        assert running.reads == {}


async def test_a_sign_in_has_the_skills_listed_again(until: Until) -> None:
    server = SkillServer(page=100)
    async with Skilled(server) as running:
        running.servers["a"].signed_in()
        await until(lambda: server.asked.count("skills/list") == 2)


async def test_an_unlisted_entry_is_kept_while_it_is_fresh(until: Until) -> None:
    server = SkillServer()
    async with Skilled(server) as running:
        for _ in range(2):
            await running.skills.find("a", f"{SCHEME}cellar/SKILL.md")
        assert server.asked.count("skills/get") == 1
        server.announce()
        await until(lambda: server.asked.count("skills/list") > 3)
        await running.skills.find("a", f"{SCHEME}cellar/SKILL.md")
        assert server.asked.count("skills/get") == 2


async def test_a_read_that_is_cancelled_leaves_its_file_unread() -> None:
    server, reading = SkillServer(), asyncio.Event()
    async with Skilled(server) as running:
        skill = await running.skills.find("a", "tides")

        async def never(*_: object, **__: object) -> Any:
            reading.set()
            await asyncio.Event().wait()

        running.servers["a"].client.resources.fetch = never  # type: ignore[method-assign]
        read = asyncio.create_task(running.skills.read_file("a", skill, origin="you"))
        await reading.wait()
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
        assert running.skills.file_status("a", skill, skill.files[0]).state is FileState.NOT_READ
