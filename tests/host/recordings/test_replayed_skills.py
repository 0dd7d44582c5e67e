"""Skills in a recording: listed, fetched and read again as they were, in both eras."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mcphost.host.recordings.recording import RecordedSession, Recording
from mcphost.host.verification.cases import recorded_cases
from mcphost.protocol.extensions import SKILLS_EXTENSION
from mcphost.protocol.lifecycle.revisions import V2025_11_25, V2026_07_28, Revision
from tests.conftest import SERVERS
from tests.host.recordings.replay_rig import ScriptedClient, replay_client

sys.path.insert(0, str(SERVERS))  # the scripts there import each other by bare names

from skills import SkillServer

Json = dict[str, Any]

ERAS = (V2025_11_25, V2026_07_28)
TIDES, CELLAR, NOBODY = "skill://tides/SKILL.md", "skill://cellar/SKILL.md", "skill://nobody/SKILL.md"
FOLDER = "resources/directory/read"


def skill_client(revision: Revision) -> ScriptedClient:
    """A client of a server with skills, in this process."""
    client, server = ScriptedClient(revision), SkillServer(page=1)

    def take(message: Json) -> None:
        if (answer := server.answer(message)) is not None:
            client.receive(answer)

    client.take = take
    return client


def use(client: ScriptedClient) -> Json:
    """Use the skills; what a person would see of them."""
    seen: Json = {"declared": client.open()["capabilities"]["extensions"][SKILLS_EXTENSION]}
    seen["skills"] = client.listed("skills/list", "skills")
    for uri in (TIDES, CELLAR, NOBODY):
        reply = client.ask("skills/get", {"uri": uri})
        seen[f"get {uri}"] = (reply.result or {}).get("skill") or (reply.error or {})["code"]
    folder: list[Json] = []
    cursor: Json = {}
    while True:
        page = client.ask(FOLDER, {"uri": "skill://tides", **cursor}).result or {}
        folder += page["resources"]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    seen["folder"] = folder
    seen["file"] = (client.ask("resources/read", {"uri": TIDES}).result or {})["contents"]
    return seen


def recorded(revision: Revision) -> tuple[Json, RecordedSession]:
    client = skill_client(revision)
    return use(client), client.session()


@pytest.mark.parametrize("recorded_in", ERAS, ids=lambda each: f"recorded-{each.version}")
@pytest.mark.parametrize("live", ERAS, ids=lambda each: f"live-{each.version}")
def test_skills_are_replayed_as_they_were(recorded_in: Revision, live: Revision) -> None:
    seen, session = recorded(recorded_in)
    client, server = replay_client(live, session)
    assert use(client) == seen
    assert use_again(client) == seen["skills"]
    assert server.faithful


def use_again(client: ScriptedClient) -> list[Json]:
    return client.listed("skills/list", "skills")


def test_a_skill_that_was_not_recorded_is_invalid() -> None:
    _, session = recorded(V2026_07_28)
    client, server = replay_client(V2026_07_28, session)
    client.open()
    error = client.ask("skills/get", {"uri": "skill://elsewhere/SKILL.md"}).error
    assert error is not None
    assert error["code"] == -32602
    assert "It holds " in error["message"]
    assert not server.faithful


def test_answers_about_skills_show_what_was_not_declared() -> None:
    """A recording may begin behind the handshake."""
    _, session = recorded(V2025_11_25)
    client, _ = replay_client(V2025_11_25, session._replace(introduction={}))
    assert client.open()["capabilities"]["extensions"] == {SKILLS_EXTENSION: {"directoryRead": True}}


def test_requests_for_skills_are_cases_of_a_test() -> None:
    _, session = recorded(V2026_07_28)
    cases = recorded_cases(Recording("r", sessions=(session,)), "r")
    methods = [case.exchange.method for case in cases if not case.skipped]
    assert [methods.count(each) for each in ("skills/list", "skills/get", FOLDER, "resources/read")] == [1, 3, 1, 1]
    assert {case.skipped for case in cases if case.skipped} == {"it asks for a page by a cursor of its session"}
