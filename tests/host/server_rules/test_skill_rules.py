"""Servers with skills, judged; no file of a skill is read for that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.host.comparison.sides import ERAS, EraName
from mcphost.host.server_rules import sessions
from mcphost.host.server_rules.checking import look_at
from mcphost.host.server_rules.judging import RuleFinding, judge
from mcphost.host.server_rules.ports import Channel
from mcphost.host.server_rules.skill_rules import RULES
from mcphost.transports.base import Inbound, MessageObserver
from tests.host.server_rules.peers import PeerTarget, value_of

from skills import FILES, Shelf, SkillServer  # isort: skip  # found by the path that peers add
from skills_hostile import spoiled  # isort: skip

SELF = {"name": "mcphost", "version": "1"}
UNIQUE = {path: content for path, content in FILES.items() if not path.startswith("south/")}
Change = Callable[[SkillServer], object]


class SkillChannel:
    """A session with a server of this process, which answers within `write`."""

    def __init__(self, observer: MessageObserver, server: SkillServer) -> None:
        self._observer, self._server = observer, server

    async def open(self, inbound: Inbound) -> None:
        """Nothing is opened."""

    async def write(self, line: bytes) -> None:
        message = value_of(line)
        response = self._server.answer(message) if isinstance(message, dict) else None
        if response is not None:
            self._observer.received(json.dumps(response).encode())
        elif isinstance(message, dict) and "id" in message:
            raise TimeoutError

    async def aclose(self) -> None:
        """Nothing is left behind."""


class SkillTarget(PeerTarget):
    def __init__(self, server: SkillServer) -> None:
        super().__init__("")
        self._server = server

    def channel(self, observer: MessageObserver) -> Channel:
        return SkillChannel(observer, self._server)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "AFTER_A_WRONG_ANSWER", 0.01)


async def judged(server: SkillServer, era: EraName = "modern") -> dict[str, RuleFinding]:
    """The rows about skills."""
    (looked,) = await look_at(SkillTarget(server), [era], SELF, lambda probe: None)
    assert looked.seen is not None, looked.words
    return {each.row.id: each for each in judge(looked.seen) if each.row.id in RULES}


@pytest.mark.server_requirement(*RULES)
@pytest.mark.requirement("SKILL-03")
@pytest.mark.parametrize("era", ERAS)
async def test_a_sound_server_keeps_every_rule_unread(era: EraName) -> None:
    server = SkillServer(Shelf(UNIQUE))
    found = await judged(server, era)
    assert {each.row.id: each.seen for each in found.values() if each.outcome in ("failed", "warning")} == {}
    skipped = {each.row.id for each in found.values() if each.outcome == "skipped"}
    assert skipped == (set() if era == "modern" else {"SSKILL-21", "SSKILL-22"})
    assert not [uri for uri in server.reads if uri.startswith("skill:")]


def entry(**members: Any) -> Change:
    """The first entry with other members; None takes one away."""

    def change(server: SkillServer) -> None:
        def altered(given: dict[str, Any]) -> dict[str, Any]:
            if not given["uri"].endswith("tides/SKILL.md"):
                return given
            merged = {**given, **members}
            return {name: value for name, value in merged.items() if value is not None}

        server.alter = altered

    return change


def frontmatter(**members: Any) -> Change:
    return entry(frontmatter={"name": "tides", "description": "Works it out.", **members})


def file(**members: Any) -> Change:
    whole = {"uri": "skill://tides/SKILL.md", "digest": f"sha256:{'a' * 64}", "size": 3}
    return entry(resources=[{**whole, **members}])


def method(name: str, answer: Any) -> Change:
    def change(server: SkillServer) -> None:
        known = server.methods[name]
        server.methods[name] = lambda params: answer(known(params))

    return change


def declared(value: Any) -> Change:
    return lambda server: setattr(server, "declared", value)


def without(member: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda result: {name: value for name, value in result.items() if name != member}


def forever(server: SkillServer) -> None:
    """Say of nothing how long it is fresh."""
    answer = server.answer

    def without_hints(message: dict[str, Any]) -> Any:
        response = answer(message) or {}
        response.get("result", {}).pop("ttlMs", None)
        return response or None

    server.answer = without_hints  # type: ignore[method-assign]


LISTING = "resources/directory/read"

BROKEN: tuple[tuple[str, Change], ...] = (
    ("SSKILL-01", method("skills/list", without("skills"))),
    ("SSKILL-02", method(LISTING, without("resources"))),
    ("SSKILL-04", entry(uri="skill://tides/README.md")),
    ("SSKILL-04", entry(uri=None)),
    ("SSKILL-05", entry(frontmatter=None)),
    ("SSKILL-05", frontmatter(description="")),
    ("SSKILL-06", entry(uri="docs://tides/SKILL.md")),
    ("SSKILL-07", frontmatter(name="ebbs")),
    ("SSKILL-08", frontmatter(name="Tides")),
    ("SSKILL-13", lambda server: server.shelf.edit("skill://east/tides/SKILL.md", FILES["tides/SKILL.md"])),
    ("SSKILL-14", entry(resources=None)),
    ("SSKILL-14", entry(resources="Dynamic")),
    ("SSKILL-15", file(uri="skill://tides/a.md")),
    ("SSKILL-16", file(uri="skill://tides-evil/SKILL.md")),
    ("SSKILL-17", file(size=-1)),
    ("SSKILL-18", file(digest="sha256:ABC")),
    ("SSKILL-20", file(size=(16 << 20) + 1)),
    ("SSKILL-21", forever),
    ("SSKILL-22", forever),
    ("SSKILL-24", method("skills/get", lambda result: {"skill": {**result["skill"], "uri": "skill://x/SKILL.md"}})),
    ("SSKILL-26", lambda server: server.methods.update({LISTING: lambda params: {"resources": []}})),
    ("SSKILL-31", declared([])),
    ("SSKILL-31", declared({"directoryRead": "yes"})),
    ("SSKILL-32", method("skills/get", lambda result: {"skill": {**result["skill"], "resources": "dynamic"}})),
    ("SSKILL-33", method("skills/get", lambda result: {**result, "nextCursor": "2"})),
    (
        "SSKILL-34",
        lambda server: setattr(server, "entries", lambda: [server.shelf.entry("skill://tides/SKILL.md")] * 2),
    ),
    ("SSKILL-35", frontmatter(license=5)),
    ("SSKILL-36", frontmatter(metadata={"io.modelcontextprotocol/x": "1"})),
    ("SSKILL-37", method(LISTING, lambda result: {"resources": [{"uri": "skill://tides/a/b.md"}]})),
    ("SSKILL-38", method(LISTING, lambda result: {"resources": [{"uri": "skill://tides/assets"}]})),
)


@pytest.mark.parametrize(("row", "change"), BROKEN)
async def test_a_broken_rule_is_found(row: str, change: Change) -> None:
    server = SkillServer(Shelf(UNIQUE), page=50)
    change(server)
    found = (await judged(server))[row]
    assert found.outcome in ("failed", "warning"), found
    assert found.seen


@pytest.mark.hostile("SK14")
@pytest.mark.parametrize("mode", ["directory-outside", "directory-loop", "directory-deep", "directory-endless"])
async def test_folders_without_end_are_listed_once(mode: str) -> None:
    server = spoiled(mode)
    found = (await judged(server))["SSKILL-37"]
    assert found.outcome == ("failed" if mode in ("directory-outside", "directory-loop") else "passed"), found
    assert server.asked.count(LISTING) == 3  # a skill's folder, an unknown one, and a file


@pytest.mark.requirement("SKILL-01")
@pytest.mark.parametrize("kind", ["true", "odd-flag"])
async def test_folders_are_not_asked_for_without_the_flag(kind: str) -> None:
    server = spoiled("bad-declaration", kind)
    assert (await judged(server))["SSKILL-37"].outcome == "skipped"
    assert LISTING not in server.asked


@pytest.mark.requirement("SKILL-01")
async def test_a_server_without_skills_is_asked_nothing_about_them() -> None:
    server = SkillServer()
    server.declared = None
    found = await judged(server)
    assert {each.outcome for each in found.values()} == {"skipped"}
    assert not {"skills/list", "skills/get", LISTING} & {*server.asked}
