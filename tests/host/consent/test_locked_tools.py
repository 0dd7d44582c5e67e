"""The lock of the policy: what is not as in it asks, and nothing is allowed by it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcphost.config import ComparedServer, Config, GivenServer, Policy, ServerConfig
from mcphost.config.surface_lock import SurfaceLock
from mcphost.host.catalog import CatalogKind, CatalogTool
from mcphost.host.chat.tool_selection import CheckedTools, ToolSelection
from mcphost.host.comparison.lock_file import locked_server
from mcphost.host.comparison.surface import surface
from mcphost.host.consent.approvals import Approvals, Lifetime
from mcphost.host.consent.broker import ConsentBroker, Proposal
from mcphost.host.consent.locked_tools import lock_status, unlocked
from mcphost.host.consent.policy import PolicyDecision
from mcphost.protocol.models.tools import Tool

NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
RUN = "npx files"
READ = Tool.read({"name": "read", "annotations": {"readOnlyHint": True}})
CHANGED = Tool.read({"name": "read", "description": "Sends it elsewhere.", "annotations": {"readOnlyHint": True}})
NEW = Tool.read({"name": "new"})
ENTRY = ServerConfig.model_construct(command="npx", args=("files",), trust_hints=True)


def configured(*servers: str, **policy: Any) -> Config:
    """A configuration with a lock that has the tool ``read`` of these servers."""
    kept = surface(
        "files",
        capabilities={},
        instructions="",
        server_info={},
        offered={CatalogKind.TOOLS: [READ.definition()]},
        identity=RUN,
    )
    locked = {name: locked_server(kept, str, resources=False) for name in servers}
    with_lock = Policy.model_construct(**policy).with_lock(
        Path("/p/mcphost.lock"), SurfaceLock(version=1, servers=locked)
    )
    return Config.model_construct(servers={"files": ENTRY}, policy=with_lock)


LOCKED = configured("files")


def broker(config: Config, approvals: Approvals | None = None) -> ConsentBroker:
    store: Any = SimpleNamespace(approvals=approvals or Approvals())
    nothing: Any = SimpleNamespace(audit=None, bus=None)
    return ConsentBroker(lambda: config, store, nothing, nothing)


@pytest.mark.parametrize(
    ("server", "identity", "tool", "why"),
    [
        ("files", RUN, READ, ""),
        ("files", "", READ, ""),
        ("files@agent", RUN, READ, ""),
        ("files", RUN, CHANGED, "this tool is not the one in mcphost.lock"),
        ("files", RUN, NEW, "mcphost.lock does not have this tool"),
        ("files", "npx other", READ, "mcphost.lock has another command or address for files"),
        ("other", RUN, READ, "mcphost.lock has no server other"),
    ],
)
def test_a_tool_is_as_locked_or_it_is_said_why_not(server: str, identity: str, tool: Tool, why: str) -> None:
    assert unlocked(LOCKED, server, identity, tool) == why


def test_without_a_lock_every_tool_is_as_locked() -> None:
    assert unlocked(Config.model_construct(), "files", RUN, NEW) == ""
    assert lock_status(Config.model_construct(), "files", RUN, [NEW]) is None


def test_a_copy_for_a_comparison_is_the_entry_in_the_lock() -> None:
    copy = ComparedServer.model_construct(command="npx", args=("files",), entry="files")
    config = LOCKED.model_copy(update={"servers": {"files-legacy": copy}})
    assert unlocked(config, "files-legacy", RUN, READ) == ""
    assert unlocked(config, "files-legacy", RUN, NEW)


@pytest.mark.hostile("P03")
@pytest.mark.parametrize("tool", [CHANGED, NEW])
def test_nothing_runs_without_a_question_that_is_not_as_locked(tool: Tool) -> None:
    approvals = Approvals()
    approvals.allow("files", RUN, tool, Lifetime.ALWAYS, NOW)
    for config in (configured("files", allow=("files:*",)), configured("files", default="allow"), LOCKED):
        assert broker(config).foresee("files", RUN, READ, {}) is PolicyDecision.ALLOW
        assert broker(config, approvals).foresee("files", RUN, tool, {}) is PolicyDecision.ASK


def test_a_lock_allows_nothing() -> None:
    config = configured("files", deny=("files:read",))
    assert broker(config).foresee("files", RUN, READ, {}) is PolicyDecision.DENY
    asks = LOCKED.model_copy(update={"servers": {"files": GivenServer.model_construct(command="npx")}})
    assert broker(asks).foresee("files", RUN, READ, {}) is PolicyDecision.ASK


def test_the_question_says_why_the_rule_does_not_hold() -> None:
    decides = broker(configured("files", allow=("*:*",)))
    proposal = Proposal(1, "files", CHANGED, {}, "you", RUN)
    result = decides._by_policy(proposal, decides._approval("files", RUN, CHANGED))
    assert result.rule == "this tool is not the one in mcphost.lock, so that each call of it is asked about"


async def test_a_tool_that_is_not_as_locked_is_not_allowed_with_the_others() -> None:
    found = await broker(LOCKED).read_only_tools("files", RUN, [CHANGED])
    assert [why for _, why in found.left_out] == ["this tool is not the one in mcphost.lock"]


def test_a_model_is_not_offered_what_is_not_as_locked() -> None:
    offers, checked = [CatalogTool("files", READ), CatalogTool("files", NEW)], CheckedTools()
    assert checked.check(offers, 60)
    selection = ToolSelection(offers, lambda *_: True, 10**6, checked, {("files", "new"): "it is not locked"})
    assert [each.tool for each in selection.entries] == [READ]
    assert [(each.tool, each.reason) for each in selection.dropped] == [("new", "it is not locked")]


@pytest.mark.parametrize(
    ("tools", "identity", "status"),
    [
        ([READ], RUN, ("mcphost.lock", 0, "")),
        ([CHANGED, NEW], RUN, ("mcphost.lock", 2, "")),
        ([READ], "npx x", ("mcphost.lock", 1, "mcphost.lock has another command or address for files")),
    ],
)
def test_the_status_of_a_server_counts_what_differs(tools: list[Tool], identity: str, status: tuple[Any, ...]) -> None:
    found = lock_status(LOCKED, "files", identity, tools)
    assert found == (*status, 0)
    assert found.as_locked == (status[1] == 0)
