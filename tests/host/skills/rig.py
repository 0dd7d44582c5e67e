"""A host whose servers with skills run in the test's own process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from mcphost.config import Config
from mcphost.errors import SkillRefused
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, Question, SkillQuestion
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.wire.jsonrpc import ErrorObject, Notification, Request, Response
from mcphost.transports.base import Inbound, ProcessReport
from tests.host.conftest import NO, SCRIPTS, RecordingHost, settings

if str(SCRIPTS) not in sys.path:
    sys.path.append(str(SCRIPTS))

from skills import FILES, SCHEME, Shelf, SkillServer, skill_text
from skills_hostile import TABLE, TIDES, spoiled

__all__ = [
    "ALWAYS",
    "FILES",
    "NO",
    "ONCE",
    "SCHEME",
    "SESSION",
    "TABLE",
    "TIDES",
    "Shelf",
    "SkillServer",
    "Skilled",
    "refused",
    "skill_text",
    "spoiled",
]

ONCE, SESSION, ALWAYS = (Answer(allow=True, lifetime=each) for each in Lifetime)

Step = Answer | Callable[[SkillQuestion], Awaitable[Answer]]


async def refused(work: Awaitable[object]) -> SkillRefused:
    """Await the work, which must be refused."""
    with pytest.raises(SkillRefused) as caught:
        await work
    return caught.value


class InProcess:
    """A transport to a server of tests/servers/skills.py without a process."""

    own_stream = False
    handshake_only = False

    def __init__(self, server: SkillServer) -> None:
        self.server = server
        self._inbound: Inbound | None = None

    async def open(self, inbound: Inbound) -> None:
        self._inbound = inbound
        self.server.listeners[:] = [(self._said, None)]

    def _said(self, message: Mapping[str, Any]) -> None:
        assert self._inbound is not None
        self._inbound.message(Notification(message["method"], message.get("params")))

    async def request(self, request: Request, headers: Mapping[str, str]) -> Response:
        message = json.loads(json.dumps(request.as_object()))
        if request.method == "subscriptions/listen":
            self.server.listeners.clear()
            self.server.listen(message, self._said)
            await asyncio.Event().wait()
        answer = self.server.answer(message)
        assert answer is not None
        if "error" in answer:
            return Response(request.id, error=ErrorObject.read(answer["error"]))
        return Response(request.id, result=answer["result"])

    def agreed(self, revision: Revision) -> None:
        return

    async def send(self, message: Notification | Response) -> None:
        return

    async def listen(self) -> None:
        return

    async def aclose(self) -> None:
        return

    def report(self) -> ProcessReport:
        return ProcessReport()


class SkillApprover:
    """Answers questions about skills by the script, step by step, and then refuses; keeps what it was asked."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.questions: list[SkillQuestion] = []

    async def ask(self, question: Question) -> Answer:
        assert isinstance(question, SkillQuestion)
        self.questions.append(question)
        step = self.script.pop(0) if self.script else NO
        return step if isinstance(step, Answer) else await step(question)


class Skilled(RecordingHost):
    """`async with Skilled(SkillServer(), answers=(ALWAYS,)) as running:`; the servers are called a, b and so on."""

    def __init__(
        self,
        *servers: SkillServer,
        answers: tuple[Step, ...] = (),
        protocol: str = "modern",
        policy: Mapping[str, Any] | None = None,
        entry: Mapping[str, Any] | None = None,
        **dependencies: Any,
    ) -> None:
        self.skill_servers = dict(zip("abc", servers, strict=False))
        self.asked = SkillApprover(*answers)

        async def opened(config: Config, name: str) -> Any:
            return InProcess(self.skill_servers[name])

        given = {"command": "skills", "protocol": protocol, **(entry or {})}
        config = settings(policy=policy, **dict.fromkeys(self.skill_servers, given))
        super().__init__(config, self.asked, open_transport=opened, **dependencies)  # type: ignore[arg-type]

    async def __aenter__(self) -> Skilled:
        await super().__aenter__()
        await self.servers.ready()
        for name in self.skill_servers:
            if self.servers[name].ready:
                await self.all_listed(name)
        return self

    @property
    def reads(self) -> dict[str, int]:
        """The number of reads of each URI, at all servers."""
        return {uri: times for server in self.skill_servers.values() for uri, times in server.reads.items()}

    @property
    def allowed(self) -> list[str]:
        """The URIs of the skills that load without a question."""
        return [grant.skill for grant in self.consent.grants()]
