"""A host over real servers, with an approver that follows a script."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections import reconnection as retry
from mcphost.host.consent.questions import Answer, Question, ToolCallQuestion
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import Alarmed, Event
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.transports.base import Transport, TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport

SCRIPTS = Path(__file__).parents[1] / "servers"

YES, NO = Answer(allow=True), Answer(allow=False, reason="not today")
Step = Answer | Exception | Callable[[ToolCallQuestion], Awaitable[Answer]]


class ScriptedApprover:
    """Answers by the script, step by step, and then yes; keeps what it was asked."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.questions: list[ToolCallQuestion] = []

    async def ask(self, question: Question) -> Answer:
        assert isinstance(question, ToolCallQuestion)
        self.questions.append(question)
        step: Step = self.script.pop(0) if self.script else YES
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, Answer) else await step(question)


class FileStore(StateStore):
    """A store of state files in one folder, which keeps its reports."""

    def __init__(self, folder: Path) -> None:
        self.alarms: list[str] = []
        super().__init__(folder, self.alarms.append)


class RecordingHost(Host):
    """A host that keeps its events, and the approver it was given."""

    def __init__(self, config: Config, approver: ScriptedApprover | None = None, **dependencies: Any) -> None:
        opener = dependencies.pop("open_transport", open_stdio)
        self.approver = approver or ScriptedApprover()
        super().__init__(config, Dependencies(opener, self.approver, "0.0-test", **dependencies))
        self.events: list[Event] = []
        self.bus.observe(self.events.append)

    @property
    def alarms(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Alarmed)]

    async def run(self, server: str, tool: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> ToolCall:
        """Make a call and wait for its end, whatever that is."""
        call = self.tool_calls.call(server, tool, arguments or {}, **more)
        await self.end_of(call)
        return call

    async def all_listed(self, server: str) -> None:
        """Wait until every list of a ready server has been read."""
        for kind in CatalogKind:
            await self.servers[server].current(kind)

    @staticmethod
    async def end_of(call: ToolCall) -> None:
        try:
            await call.result()
        except BaseException:
            if not call.state.ended:
                raise

    def said(self, server: str) -> list[str]:
        """The texts of a server's log."""
        return [record.text for record in self.logs.of_server(server)]


HostOf = Callable[..., RecordingHost]


async def open_stdio(config: Config, name: str) -> Transport:
    """Open a transport as composition does, without references; a server named `missing` has none."""
    server = config.servers[name]
    if server.command == "missing":
        raise ConfigError("servers.missing.env.TOKEN: ${TOKEN} is not set")
    assert server.command is not None
    limits = TransportLimits(exit_grace=config.limits_for(name).exit_grace_sec)
    return StdioTransport(Command(server.command, server.args, server.env), limits, os.environ)


def script(name: str, *args: object, **entry: Any) -> dict[str, Any]:
    """The configuration entry that runs a script of tests/servers."""
    return {"command": sys.executable, "args": ["-S", "-E", str(SCRIPTS / name), *map(str, args)], **entry}


def alive(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def received(record: Path) -> list[str]:
    """The methods of the messages that a scripted server recorded, ``answer`` for a response."""
    return [json.loads(line).get("method", "answer") for line in record.read_text().splitlines() if line[0] == "{"]


def echo(*args: object, **entry: Any) -> dict[str, Any]:
    return script("echo.py", *args, **entry)


def hostile(*args: object, **entry: Any) -> dict[str, Any]:
    return script("hostile.py", *args, **entry)


def settings(*, policy: Mapping[str, Any] | None = None, **servers: Mapping[str, Any]) -> Config:
    """A configuration; servers get little time to leave."""
    return Config.model_validate(
        {"servers": servers, "policy": policy or {}, "limits": {"exit_grace_sec": 0.15}}, strict=False
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come fast."""
    monkeypatch.setattr(retry, "FIRST", 0.01)


@pytest.fixture
def host() -> HostOf:
    """`async with host(a=echo(), policy={...}, answers=(NO,), dependencies={"store": ...}) as running:`"""

    def build(
        *,
        policy: Mapping[str, Any] | None = None,
        answers: tuple[Step, ...] = (),
        dependencies: Mapping[str, Any] | None = None,
        **servers: Mapping[str, Any],
    ) -> RecordingHost:
        return RecordingHost(settings(policy=policy, **servers), ScriptedApprover(*answers), **(dependencies or {}))

    return build


def wire(record: Path, method: str) -> list[dict[str, Any]]:
    """The messages of this method that the server received."""
    lines = record.read_text().splitlines() if record.exists() else []
    messages = [json.loads(line) for line in lines if line.startswith("{")]
    return [message for message in messages if message.get("method") == method]


def asked(record: Path, method: str) -> list[dict[str, Any]]:
    """The params of each request of this method that the server received."""
    frames = [json.loads(line) for line in record.read_text().splitlines() if line[0] == "{"]
    return [frame.get("params") for frame in frames if frame.get("method") == method]


def statuses(audit: Path) -> list[str]:
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    return [record["status"] for record in records if record["event"] == "task"]


class Waiting:
    """A step of the script that waits for its answer to be set."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.withdrawn = False

    async def __call__(self, question: ToolCallQuestion) -> Answer:
        self.asked.set()
        try:
            return await self.answer
        except asyncio.CancelledError:
            self.withdrawn = True
            raise


async def change_tool(running: RecordingHost) -> None:
    tool = running.catalog.tool("a", "echo")
    running.catalog.keep("a", [tool.model_copy(update={"description": "Now it also deletes."})])


async def drop_tool(running: RecordingHost) -> None:
    running.catalog.keep("a", [])


async def stop_server(running: RecordingHost) -> None:
    running.servers["a"].stop()
    await running.servers["a"].settled()
