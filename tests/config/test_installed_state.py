"""State files of an installed mcphost, as version 0.1 wrote them: later versions read and keep what they hold."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli.answers import _said_today
from mcphost.cli.completion.known_names import read_offered
from mcphost.composition.detected_transports import DetectedTransports
from mcphost.config import ServerConfig, TrustedFolders, update_toml
from mcphost.config.state import StateStore
from mcphost.host.chat.preferences import ChatPreferences, ChatSettings
from mcphost.host.chat.transcript_store import TranscriptStore, replay, settings_of
from mcphost.host.connections.eras import EraMemory
from mcphost.host.consent import approval_store
from mcphost.host.consent.approvals import ApprovalRule, ApprovedTool, Lifetime
from mcphost.host.layout import Layout, LayoutFile
from mcphost.host.server_requests import roots
from mcphost.host.tool_calls.started_tasks import StartedTasks
from mcphost.imports.found import Origin
from mcphost.imports.remembered import ImportedServer, ImportRecords

INSTALLED = Path(__file__).with_name("installed_state")
DAY = date(2026, 11, 23)
WHEN = datetime(2026, 11, 1, 12, tzinfo=UTC)
LIGHTHOUSE = ServerConfig(command="lighthouse", args=("--stdio",))
TIDE = ServerConfig(url="https://tide.example/mcp")
OTHER = ServerConfig(command="other")
SETTINGS = ChatSettings(
    "small", "big", "", True, frozenset({"tide"}), frozenset({("lighthouse", "switch")}), {"lighthouse": "a" * 64}
)

BAD_ENTRIES = {
    "approvals": '[[approval]]\nserver = 5\n[[approval]]\nserver = "x"\n',
    "chat": 'bad = 5\n[more]\nx = "y"\n',
    "eras": "[handshake.a]\nday = 5\n[handshake.b]\nevidence = 1\nday = 2026-11-23\n",
    "imports": "[[server]]\nname = 5\n",
    "layout": 'more = "x"\n',
    "roots": '[[folders]]\npath = 5\n[[folders]]\npath = "not/absolute"\n',
    "tasks": '[[started]]\nid = "x"\n[[started]]\nserver = 1\nid = "y"\ntool = "t"\nbegan = "now"\n',
    "transports": 'a = 5\nb = "carrier pigeon"\n',
}
"""Invalid content that is added to the end of each file."""


@pytest.fixture(params=["as written", "with bad entries"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the installed state."""
    copy = tmp_path / "state"
    shutil.copytree(INSTALLED, copy)
    if request.param == "with bad entries":
        for name, text in BAD_ENTRIES.items():
            with (copy / f"{name}.toml").open("a", encoding="utf-8") as file:
                file.write(text)
    return copy


@pytest.fixture
def store(folder: Path) -> StateStore:
    return StateStore(folder, pytest.fail)


def content(folder: Path, name: str) -> Mapping[str, Any]:
    return tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))


def installed(name: str) -> Mapping[str, Any]:
    return content(INSTALLED, name)


def fail(*words: str) -> None:
    pytest.fail(" ".join(words))


def test_approvals(store: StateStore, folder: Path) -> None:
    switch, table = approval_store.from_toml(store.read("approvals"))
    definition = {
        "name": "switch",
        "description": "Switch the light.",
        "inputSchema": {"type": "object", "properties": {"on": {"type": "boolean"}}},
    }
    assert switch == ApprovedTool("lighthouse", "switch", "lighthouse --stdio", definition, WHEN, Lifetime.ALWAYS)
    assert (table.tool, table.lifetime, table.identity) == ("table", Lifetime.ONCE, "https://tide.example/mcp")
    assert table.rules == (ApprovalRule({"harbour": "Br*"}, WHEN, Lifetime.ALWAYS),)
    store.update("approvals", lambda data: approval_store.merged(data, [], []))
    assert content(folder, "approvals") == installed("approvals")


async def test_eras(store: StateStore, folder: Path) -> None:
    eras = EraMemory(store, lambda: DAY, fail)
    await eras.load()
    evidence = {"asked in 2026-07-28, answered -32601": LIGHTHOUSE, "asked in 2026-07-28, answered HTTP 400": TIDE}
    for text, server in evidence.items():
        found = eras.get(server)
        assert found is not None
        assert (found.evidence, found.day) == (text, DAY)
    assert eras.get(OTHER) is None
    await eras.learn(OTHER, "said no")
    await eras.forget(OTHER)
    assert content(folder, "eras") == installed("eras")


async def test_transports(store: StateStore) -> None:
    detected = DetectedTransports(store, fail)
    await detected.load()
    urls = ("https://tide.example/mcp", "http://127.0.0.1:8080/mcp?key=1", "http://127.0.0.1:8080/mcp")
    assert [detected.get(url) for url in urls] == ["sse", "http", None]


async def test_tasks(store: StateStore, folder: Path) -> None:
    tasks = StartedTasks(store, fail)
    await tasks.load()
    (switch,), (survey,) = tasks.tasks_of(LIGHTHOUSE), tasks.tasks_of(TIDE)
    assert (switch.id, switch.tool, switch.began) == ("task-2", "switch", 1764000000.25)
    assert (survey.id, survey.tool, survey.began) == ("task-1", "survey", 1764000000.25)
    await tasks.add(OTHER, "task-3", "x")
    await tasks.forget(OTHER, "task-3")
    assert content(folder, "tasks") == installed("tasks")


async def test_chat_preferences(store: StateStore, folder: Path) -> None:
    preferences = ChatPreferences(store, fail)
    await preferences.load()
    assert preferences.settings == SETTINGS
    preferences.follow(SETTINGS, ChatSettings(model="other"))
    await preferences.save()
    preferences.follow(ChatSettings(model="other"), SETTINGS)
    await preferences.save()
    assert content(folder, "chat") == installed("chat")


async def test_layout(folder: Path) -> None:
    file = LayoutFile(StateStore(folder, fail), fail)
    assert await file.load() == Layout(55, "closed")
    await file.save(Layout(40, "open"))
    assert await LayoutFile(StateStore(folder, fail), fail).load() == Layout(40, "open")


def test_roots(store: StateStore, folder: Path) -> None:
    charts, lamp = roots.from_toml(store.read("roots"))
    assert charts == roots.SharedRoot(None, Path("/srv/charts"), remembered=True)
    assert lamp == roots.SharedRoot("lighthouse", Path("/srv/lamp"), "lamp room", "lighthouse --stdio", True)
    assert roots.declined_in(store.read("roots")) == {("tide", "https://tide.example/mcp")}
    store.update("roots", lambda data: roots.with_share(data, lamp))
    assert content(folder, "roots") == installed("roots")


def test_imports(folder: Path) -> None:
    records = ImportRecords(folder, fail)
    scope = "project /home/ada/app"
    assert records.items() == ("left over", "lighthouse TOKEN")
    assert records.servers() == {
        "lighthouse": ImportedServer(
            "lighthouse",
            (
                Origin("claude-code", "/home/ada/.claude.json", "lighthouse", "b" * 64, scope),
                Origin("cursor", "/home/ada/.cursor/mcp.json", "lamp", "c" * 64),
            ),
            {"command": "lighthouse", "args": ["--stdio"], "env": {"TOKEN": "${keyring:lighthouse TOKEN}"}},
            "d" * 64,
            ("env.TOKEN",),
            ("lighthouse TOKEN",),
        )
    }
    records.add_item("new")
    records.drop_item("new")
    assert content(folder, "imports") == installed("imports")


def test_trusted_folders(folder: Path) -> None:
    trusted = TrustedFolders(StateStore(folder, fail))
    project, other = Path("/srv/project/mcphost.toml"), Path("/srv/other/mcphost.toml")
    assert [trusted.decision(project, digest) for digest in ("e" * 64, "f" * 64)] == ["trusted", "changed"]
    assert trusted.decision(other, "e" * 64) == "unknown"
    trusted.trust(other, "e" * 64)
    trusted.forget(other)
    assert content(folder, "trusted") == installed("trusted")


def test_remarks(store: StateStore, folder: Path) -> None:
    update_toml(folder / "remarks.toml", lambda data: {"roots": {"tide": date.today()}}, pytest.fail)
    assert installed("remarks") == {"roots": {"tide": DAY}}
    assert [_said_today(store, server) for server in ("tide", "lighthouse", "lighthouse")] == [True, False, True]


def test_offers_for_completion(folder: Path) -> None:
    assert read_offered(folder) == {"lighthouse": {"tools": {"switch": ["on"]}}}


def test_conversations(folder: Path) -> None:
    records = TranscriptStore(folder / "chats", str, fail).records("last")
    (turn,) = replay(records)
    assert (turn.message.text, [each.text for each in turn.rounds]) == ("Is the light on?", ["It is."])
    off = frozenset({("lighthouse", "switch")})
    assert settings_of(records) == ChatSettings("small", "", "outside", False, frozenset({"tide"}), off)
