"""Skills of servers, as agents get them: every file at one place, digests unchanged, and nothing read for it."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from mcphost.config.surface_lock import SurfaceLock
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.lock_file import locked_server
from mcphost.host.comparison.surface import surface_of
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.lifecycle.revisions import NEWEST_MODERN, Revision
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import RpcError
from mcphost.serving.served_request import ServedRequest
from tests.conftest import SERVERS
from tests.host.endpoint.rig import ERAS, Agent, Json, ServerContent, rig, says

sys.path.insert(0, str(SERVERS))  # the scripts there import each other by bare names

from skills import FILES, RefusedError, SkillServer

pytestmark = pytest.mark.asyncio

FOLDER = "resources/directory/read"
TIDES, CELLAR = "skill://tides/SKILL.md", "skill://cellar/SKILL.md"


class SkillContent(ServerContent):
    """A server with skills."""

    def __init__(self, server: SkillServer | None = None) -> None:
        super().__init__(lamp=says("lit"))
        self.server = server or SkillServer(page=50)
        self.capabilities["extensions"] = {SKILLS_EXTENSION: self.server.declared}

    def begin(self, request: ServedRequest) -> None:
        if request.method.startswith("tools/"):
            super().begin(request)
            return
        self.begun.append(request)
        self.came.set()
        try:
            request.finish(self.server.methods[request.method](dict(request.params)))
        except (KeyError, RefusedError) as error:
            raise RpcError(getattr(error, "code", ErrorCode.METHOD_NOT_FOUND), str(error)) from None


async def listed(agent: Agent) -> list[Json]:
    result = await agent.result("skills/list")
    skills: list[Json] = result["skills"]
    return skills


async def read_whole(agent: Agent, skill: Json) -> None:
    """Read each file of a skill as a host does that verifies it."""
    folder = skill["uri"].removesuffix("SKILL.md")
    for each in skill["resources"]:
        assert each["uri"].startswith(folder)
        (content,) = (await agent.result("resources/read", {"uri": each["uri"]}))["contents"]
        assert content["uri"] == each["uri"]
        if "text" in content:
            assert f"sha256:{hashlib.sha256(content['text'].encode()).hexdigest()}" == each["digest"]


@pytest.mark.requirement("SKILL-03", "SKILL-08")
@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_skills_of_one_server_pass_unchanged(era: str, revision: Revision) -> None:
    content = SkillContent()
    async with rig({"rock": content}, era=era) as running:
        agent = await running.agent(revision, opens=False)
        opened = await agent.open()
        assert opened["capabilities"]["extensions"][SKILLS_EXTENSION] == {"directoryRead": True}
        assert await listed(agent) == content.server.shelf.entries()
        for uri in (TIDES, CELLAR):
            got = await agent.result("skills/get", {"uri": uri})
            assert got["skill"] == content.server.shelf.entry(uri)
            assert {"ttlMs", "cacheScope"} <= got.keys() or not revision.modern
        folder = await agent.result(FOLDER, {"uri": "skill://tides"})
        assert folder["resources"] == content.server.shelf.children("skill://tides")
        error = await agent.error("skills/get", {"uri": "skill://nobody/SKILL.md"})
        assert error["code"] == ErrorCode.INVALID_PARAMS
    assert content.server.reads == {}


@pytest.mark.requirement("SKILL-11")
@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
async def test_two_servers_with_the_same_skills_are_told_apart(revision: Revision) -> None:
    contents = {"rock": SkillContent(), "Quay_2": SkillContent()}
    async with rig(contents) as running:
        agent = await running.agent(revision)
        skills = [each for each in await listed(agent) if each["frontmatter"]["name"] == "tides"]
        assert len({each["uri"] for each in skills}) == 2
        original = contents["rock"].server.shelf.entry(TIDES)
        for skill in skills:
            assert skill["uri"].startswith("skill://mcphost+")
            assert skill["uri"].endswith("/tides/SKILL.md")
            assert Skill.read(skill).refusal == ""
            assert skill["frontmatter"] == original["frontmatter"]
            assert [each["digest"] for each in skill["resources"]] == [each["digest"] for each in original["resources"]]
            assert (await agent.result("skills/get", {"uri": skill["uri"]}))["skill"] == skill
            await read_whole(agent, skill)
            folder = skill["uri"].removesuffix("/SKILL.md")
            children = (await agent.result(FOLDER, {"uri": folder}))["resources"]
            assert {each["uri"] for each in children} >= {skill["uri"], f"{folder}/references"}
    assert all(content.server.reads[TIDES] == 1 for content in contents.values())


async def test_an_unlisted_skill_is_found_at_its_server() -> None:
    async with rig({"rock": SkillContent(), "quay": ServerContent(lamp=says("lit"))}) as running:
        agent = await running.agent()
        uri = "skill://mcphost+rock/cellar/SKILL.md"
        skill = (await agent.result("skills/get", {"uri": uri}))["skill"]
        assert skill["uri"] == uri
        await read_whole(agent, skill)
        error = await agent.error("skills/get", {"uri": "skill://mcphost+quay/cellar/SKILL.md"})
        assert error["code"] == ErrorCode.INVALID_PARAMS


async def test_a_skill_of_another_scheme_stays_in_one_folder() -> None:
    server = SkillServer(page=50)
    entry = {
        "uri": "docs://a/tides/SKILL.md",
        "frontmatter": {"name": "tides", "description": "Works it out."},
        "resources": [{"uri": "docs://a/tides/SKILL.md", "digest": f"sha256:{'a' * 64}", "size": 1}],
    }
    server.methods["skills/list"] = lambda params: {"skills": [entry]}
    content = SkillContent(server)
    async with rig({"rock": content, "quay": ServerContent(lamp=says("lit"))}) as running:
        agent = await running.agent()
        (skill,) = await listed(agent)
        assert skill["uri"] == skill["resources"][0]["uri"] == "skill://mcphost+rock+docs/a/tides/SKILL.md"
        assert Skill.read(skill).refusal == ""
        await agent.ask("resources/read", {"uri": skill["uri"]})
        assert content.all("resources/read")[0].params["uri"] == entry["uri"]


async def test_a_server_without_skills_offers_none() -> None:
    async with rig({"rock": ServerContent(lamp=says("lit"))}) as running:
        for revision in ERAS.values():
            agent = await running.agent(revision, opens=False)
            assert SKILLS_EXTENSION not in (await agent.open())["capabilities"].get("extensions", {})
            assert (await agent.error("skills/list"))["code"] == ErrorCode.METHOD_NOT_FOUND


@pytest.mark.requirement("SKILL-01")
async def test_folders_are_listed_only_where_that_is_declared() -> None:
    plain = SkillContent(SkillServer(page=50, directories=False))
    async with rig({"rock": plain}) as running:
        agent = await running.agent(NEWEST_MODERN, opens=False)
        assert (await agent.open())["capabilities"]["extensions"][SKILLS_EXTENSION] == {}
        assert (await agent.error(FOLDER, {"uri": "skill://tides"}))["code"] == ErrorCode.METHOD_NOT_FOUND
    async with rig({"rock": plain, "quay": SkillContent()}) as running:
        agent = await running.agent()
        error = await agent.error(FOLDER, {"uri": "skill://mcphost+rock/tides"})
        assert error["code"] == ErrorCode.INVALID_PARAMS
    assert plain.all(FOLDER) == []


@pytest.mark.requirement("SKILL-06")
async def test_a_refused_entry_is_left_out_with_a_line_in_the_log() -> None:
    server = SkillServer(page=50)
    server.alter = lambda entry: {**entry, "resources": None} if entry["uri"] == TIDES else entry
    async with rig({"rock": SkillContent(server)}) as running:
        agent = await running.agent()
        for _ in range(2):
            assert TIDES not in [each["uri"] for each in await listed(agent)]
        assert (await agent.error("skills/get", {"uri": TIDES}))["code"] == ErrorCode.INVALID_PARAMS
        lines = [record.text for record in running.host.logs.of_server("rock") if TIDES in record.text]
    assert len(lines) == 1
    assert lines[0].startswith("claude-code")


async def test_an_agent_gets_only_skills_as_locked() -> None:
    content = SkillContent()
    async with rig({"rock": content}) as running:
        host, agent = running.host, await running.agent()
        everything = [each["uri"] for each in await listed(agent)]
        found = surface_of(host.servers["rock"])
        assert found is not None
        lock = SurfaceLock(version=1, servers={"rock": locked_server(found, str, resources=False)})
        await host.apply(
            host.config.model_copy(update={"policy": host.config.policy.with_lock(Path("mcphost.lock"), lock)})
        )
        assert [each["uri"] for each in await listed(agent)] == everything
        content.server.shelf.edit(TIDES, FILES["tides/SKILL.md"] + b"More.")
        assert (await agent.error("skills/get", {"uri": TIDES}))["code"] == ErrorCode.INVALID_PARAMS
        await host.servers["rock"].relist(CatalogKind.SKILLS)
        await agent.notice("resources/list_changed")
        assert [each["uri"] for each in await listed(agent)] == [uri for uri in everything if uri != TIDES]


async def test_an_agent_gets_no_skill_that_a_rule_denies() -> None:
    async with rig({"rock": SkillContent()}, policy={"deny": ["rock:tides"]}) as running:
        agent = await running.agent()
        assert TIDES not in [each["uri"] for each in await listed(agent)]
        assert "policy.deny has 'rock:tides'" in (await agent.error("skills/get", {"uri": TIDES}))["message"]


async def test_a_skill_that_changed_since_it_was_allowed_can_be_held() -> None:
    content = SkillContent()
    async with rig({"rock": content}, serve={"drift": "hold"}) as running:
        host, agent = running.host, await running.agent()
        assert TIDES in [each["uri"] for each in await listed(agent)]
        allowed = host.catalog.skill("rock", TIDES)
        assert allowed is not None
        host.consent.skills.remember("rock", "in-process", allowed, Answer(allow=True, lifetime=Lifetime.SESSION))
        content.server.shelf.edit(TIDES, FILES["tides/SKILL.md"] + b"More.")
        await host.servers["rock"].relist(CatalogKind.SKILLS)
        await agent.notice("resources/list_changed")
        assert TIDES not in [each["uri"] for each in await listed(agent)]
        changed = host.catalog.skill("rock", TIDES)
        assert changed is not None
        host.consent.skills.remember("rock", "in-process", changed, Answer(allow=True, lifetime=Lifetime.SESSION))
        assert TIDES in [each["uri"] for each in await listed(agent)]


@pytest.mark.parametrize("revision", ERAS.values(), ids=ERAS)
async def test_a_profile_leaves_out_the_skills_of_other_servers(revision: Revision) -> None:
    profiles = {"p": {"servers": ["quay"]}}
    async with rig({"rock": SkillContent(), "quay": ServerContent(lamp=says("lit"))}, profiles=profiles) as running:
        agent = await running.agent(revision, profile="p", opens=False)
        assert SKILLS_EXTENSION not in (await agent.open())["capabilities"].get("extensions", {})
        assert (await agent.error("skills/get", {"uri": TIDES}))["code"] == ErrorCode.METHOD_NOT_FOUND


async def test_a_profile_chooses_single_skills() -> None:
    profiles = {"p": {"skills": ["rock:*", "!rock:tides"]}}
    async with rig({"rock": SkillContent()}, profiles=profiles) as running:
        agent = await running.agent(profile="p")
        names = [each["frontmatter"]["name"] for each in await listed(agent)]
        assert "harbour" in names
        assert "tides" not in names
        error = await agent.error("skills/get", {"uri": TIDES})
        assert error["message"] == f"Unknown skill or folder: {TIDES}"
        assert [record.text for record in running.host.logs.of_server("rock") if "skill" in record.text] == []


@pytest.mark.requirement("SKILL-10")
@pytest.mark.parametrize("rule", ["profile", "deny"])
async def test_a_file_of_a_withheld_skill_is_no_resource(rule: str) -> None:
    profiles = {"p": {"skills": ["rock:*", "!rock:tides"]}} if rule == "profile" else {"p": {}}
    policy = {"deny": ["rock:tides"]} if rule == "deny" else {}
    content = SkillContent()
    async with rig({"rock": content}, profiles=profiles, policy=policy) as running:
        agent = await running.agent(profile="p")
        for uri in (TIDES, "skill://TIDES/references/table.csv", "skill://harbour/../tides/SKILL.md"):
            await agent.error("resources/read", {"uri": uri})
        await agent.error(FOLDER, {"uri": "skill://tides"})
        await agent.result("resources/read", {"uri": "skill://harbour/SKILL.md"})
    assert list(content.server.reads) == ["skill://harbour/SKILL.md"]


async def test_a_read_of_a_skills_file_is_audited_as_any_other(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig({"rock": SkillContent()}, dependencies={"audit_path": audit}) as running:
        agent = await running.agent()
        await agent.result("resources/read", {"uri": TIDES})
        await agent.result("skills/get", {"uri": TIDES})
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    asked = [each for each in records if each["event"] != "outcome"]
    assert [(each["event"], each.get("method")) for each in asked] == [("resource", None), ("request", "skills/get")]
    assert (asked[0]["uri"], asked[1]["params"]) == (TIDES, {"uri": TIDES})
