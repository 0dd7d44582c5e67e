"""Every message of a session in which everything is done once, as the servers read it, held against the protocol.

The judge of shapes is the official SDK, which has a table of methods for each revision; it leaves tasks out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.types.methods import validate_client_notification, validate_client_request

from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.lifecycle.revisions import HANDSHAKE_REVISIONS, V2025_06_18, V2025_11_25, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.prompts import PromptRef
from tests.conftest import Until
from tests.host.conftest import HostOf, RecordingHost, hostile
from tests.host.connections.offers import README, listed, serve

pytestmark = pytest.mark.slow

Frame = dict[str, Any]

PREFIX = r"(?P<prefix>[a-zA-Z]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*/)?"
META_KEY = re.compile(PREFIX + r"([a-zA-Z0-9]([\w.-]*[a-zA-Z0-9])?)?")
OURS = {"progressToken", "io.modelcontextprotocol/related-task"}
"""The keys of `_meta` that the protocol itself defines; any other would be of our own making."""


async def do_everything(running: RecordingHost, revision: Revision, until: Until) -> None:
    await running.servers.ready()
    await listed(running)
    await running.run("a", "echo", {"text": "x"})
    await running.run("a", "sleep", {"seconds": 30}, timeout=0.05)
    cancelled = running.tool_calls.call("a", "sleep", {"seconds": 30})
    await until(lambda: cancelled.state is CallState.RUNNING)
    cancelled.cancel()
    await running.end_of(cancelled)
    assert (await running.run("a", "maybe", as_task=True)).state is CallState.DONE
    if revision is V2025_11_25:
        await running.run("a", "research", {"polls": 1})
        await running.tasks.listed("a")
        await running.tasks.cancel("a", "task-1")
    await running.resources.subscribe("a", README)
    await running.resources.unsubscribe("a", README)
    await running.resources.read("a", README)
    await running.resources.get_prompt("a", "review", {"language": "python"})
    await running.completion.complete("a", PromptRef("review"), "framework", "f", {"language": "python"})
    await running.servers["a"].set_level(LogLevel.ERROR)
    await running.servers["a"].client.ping()
    await running.run("b", "act")
    report = await running.run("b", "report")
    assert report.outcome is not None
    assert len(report.outcome.structured["replies"]) > 10


def meta_keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value.get("_meta", {})
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from meta_keys(inner)


def check_request(message: Frame, version: str) -> None:
    assert type(message["id"]) in (int, str)
    assert message.keys() <= {"jsonrpc", "id", "method", "params"}
    if message["method"].startswith("tasks/"):
        assert version == V2025_11_25.version
        assert message.get("params") is None or isinstance(message["params"].get("taskId", ""), str)
    else:
        validate_client_request(message["method"], version, message.get("params"))


def check_reply(message: Frame) -> None:
    assert message.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    assert isinstance(message.get("result", {}), dict)
    if "error" in message:
        assert (type(message["error"]["code"]), type(message["error"]["message"])) == (int, str)


def check(message: Frame, version: str) -> None:
    assert message["jsonrpc"] == "2.0"
    assert "params" not in message or isinstance(message["params"], dict)
    if "method" not in message:
        check_reply(message)
    elif "id" in message:
        check_request(message, version)
    else:
        validate_client_notification(message["method"], version, message.get("params"))
    for key in meta_keys(message):
        assert META_KEY.fullmatch(key), key
        assert key in OURS


@pytest.mark.requirement("MSG-01", "MSG-02", "MSG-03", "MSG-05", "MSG-08", "MSG-09", "MSG-11", "BATCH-02", "BATCH-03")
@pytest.mark.requirement("META-02", "META-03", "META-04", "LIFE-01", "LIFE-02", "LIFE-05", "LIFE-08", "LIFE-12")
@pytest.mark.requirement("LIFE-13", "LIFE-22", "CAP-01", "PROG-01", "PROG-02", "PROG-07", "ERR-07", "TRANS-STDIO-03")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.version)
async def test_every_message_of_a_session_is_one_of_its_revision(
    host: HostOf, tmp_path: Path, until: Until, revision: Revision
) -> None:
    def options(name: str) -> tuple[object, ...]:
        return ("--protocol", revision.version, "--record", tmp_path / name)

    servers = {
        "a": serve("--page", 2, *options("a"), protocol="legacy"),
        "b": hostile("server-requests", *options("b"), protocol="legacy"),
    }
    async with host(**servers, policy={"default": "allow"}) as running:
        await do_everything(running, revision, until)
    for name in servers:
        lines = (tmp_path / name).read_bytes().removesuffix(b"EOF\n").splitlines()
        messages: list[Frame] = [json.loads(line) for line in lines]
        for message in messages:
            check(message, revision.version)
        opening, opened, *rest = (message.get("method") for message in messages)
        assert (opening, opened) == ("initialize", "notifications/initialized")
        assert not {opening, opened, "notifications/progress"} & set(rest)
        assert messages[0]["params"] == {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "mcphost", "title": "mcphost", "version": "0.0-test"},
        }
        requests = [message for message in messages if "method" in message and "id" in message]
        assert len({message["id"] for message in requests}) == len(requests)
        params = [message.get("params", {}) for message in requests]
        assert any("task" in each for each in params) == (name == "a" and revision is V2025_11_25)
        contexts = [message for message in requests if "context" in message.get("params", {})]
        assert bool(contexts) == (name == "a" and revision in (V2025_06_18, V2025_11_25))
        tokens = [each["_meta"]["progressToken"] for each in params if "_meta" in each]
        assert len(set(tokens)) == len(tokens) > 0
        assert {type(token) for token in tokens} <= {int, str}
