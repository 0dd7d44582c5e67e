"""Joins the socket for agents with the host that decides their calls, and that serves them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mcphost.config.gated import GatedProgram
from mcphost.config.state import StateStore
from mcphost.host.agents.connected import ConnectedAgent
from mcphost.host.agents.kernel_facts import agent_of, caller_of
from mcphost.host.agents.service import Introduction, as_json
from mcphost.host.endpoint.context import EndpointOptions
from mcphost.host.host import Host
from mcphost.serving import link
from mcphost.serving.listener import AgentListener, LinkConnection, ServedConnection
from mcphost.serving.ports import GateDecision


async def listen_for_agents(host: Host, path: Path, state: Path) -> None:
    """Take taps, gates and agents to serve at ``path`` until cancelled; ``state`` is the state folder."""

    def report(text: str) -> None:
        host.logs.warn("", text)

    await AgentListener(path, state / "agents.sock", _Handler(host, state, report), report).run()


class _Handler:
    def __init__(self, host: Host, state: Path, report: Callable[[str], None]) -> None:
        self._host, self._state, self._report = host, state, report

    async def open(self, hello: link.Hello, pid: int, connection: LinkConnection) -> _Session:
        program = GatedProgram(
            command=tuple(hello.command or ()), url=hello.url, folder=hello.cwd, names=frozenset(hello.names)
        )
        introduction = Introduction(
            role="gate" if hello.role == "gate" else "tap",
            name=hello.name or "server",
            given=hello.given or "",
            program=program,
            since=hello.started,
            child=hello.child,
            questions=hello.questions,
            secrets=hello.secrets,
        )
        return _Session(await self._host.agents.connect(introduction, pid, _Port(connection)))

    async def serve(self, hello: link.Hello, pid: int) -> ServedConnection:
        if hello.role == "http":
            return await self._address(hello)
        from mcphost.composition.endpoint import ServedStream  # late: most screens serve no agent

        caller = await asyncio.to_thread(caller_of, pid)
        agent = agent_of(caller, hello.given or "")
        options = EndpointOptions(agent, tuple(hello.servers), hello.profile, _side(hello.questions), hello.approve)
        return ServedStream(self._host.endpoint, options)

    async def _address(self, hello: link.Hello) -> ServedConnection:
        from mcphost.composition.bearers import Bearers  # late: few screens have an address
        from mcphost.composition.served_address import AddressChoice, ServedAddress

        choice = AddressChoice(tuple(hello.servers), hello.profile, _side(hello.questions), hello.approve)
        served = ServedAddress(self._host.endpoint, choice, Bearers(StateStore(self._state, self._report)))
        await served.open(hello.port)
        return served

    def agents(self) -> Sequence[dict[str, Any]]:
        return [as_json(session) for session in self._host.agents.sessions]


def _side(questions: str) -> Literal["agent", "here"]:
    return "here" if questions == "here" else "agent"


class _Port:
    """Writes what the host says to the gate."""

    def __init__(self, connection: LinkConnection) -> None:
        self._connection = connection

    def decided(self, call: int, decision: GateDecision) -> None:
        self._connection.send(
            link.CallDecided(
                call=call,
                allow=decision.allow,
                arguments=None if decision.arguments is None else dict(decision.arguments),
                words=decision.words[: link.WORDS_CHARACTERS],
                by=decision.by,
                listed_within=decision.listed_within,
            )
        )

    def replied(self, number: int, result: Mapping[str, Any]) -> None:
        self._connection.send(link.InboxReply(number=number, result=dict(result)))

    def refused(self, number: int, code: int, message: str) -> None:
        error = link.ReplyError(code=code, message=message[: link.WORDS_CHARACTERS])
        self._connection.send(link.InboxReply(number=number, error=error))

    def disconnect(self) -> None:
        self._connection.send(link.EndSession())
        self._connection.close()


class _Session:
    """Passes the gate's messages to the host."""

    def __init__(self, agent: ConnectedAgent) -> None:
        self._agent = agent

    def received(self, message: link.FromGate) -> None:
        agent = self._agent
        match message:
            case link.AgentNamed():
                agent.named(message.name, message.version, message.revision)
            case link.CallAsked():
                definition = message.definition
                tool = message.tool or str((definition or {}).get("name", ""))
                agent.asked(message.call, message.request, tool, definition, message.arguments, message.answer_within)
            case link.CallWithdrawn():
                agent.withdrawn(message.call)
            case link.CallOverdue():
                agent.overdue(message.call)
            case link.CallDoubted():
                agent.doubted(message.call)
            case link.CallForwarded():
                agent.sent(message.call)
            case link.CallEnded():
                agent.finished(message.call, message.state, message.seconds)
            case link.InboxRequest():
                agent.requested(message.number, message.method, message.params, message.call)
            case link.InboxRequestGone():
                agent.request_gone(message.number)

    def copied(self, copy: link.MessageCopy, data: bytes) -> None:
        self._agent.copied(
            copy.source, data, copy.time, to_server=copy.to_server, whole=copy.whole, dropped=copy.dropped
        )

    def closed(self) -> None:
        self._agent.closed()
