"""Decides the calls of a gate: by the running screen, else here, by the rules and the saved approvals."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from mcphost.config import Config, Values
from mcphost.config.state import StateStore, file_version
from mcphost.errors import InvalidLink, McphostError
from mcphost.host.agents.declined import AbsentApprover, DeclinedCalls
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.gated_calls import GatedCalls, GatedServer
from mcphost.host.audit import AuditLog, AuditWriter
from mcphost.host.background import BackgroundTasks
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.events import Alarmed, EventBus
from mcphost.host.internal_error import describe_failure
from mcphost.host.logs import LogBook
from mcphost.host.reporting import Reporting
from mcphost.serving import link
from mcphost.serving.gate import (
    AgentIntroduced,
    Ask,
    AskInbox,
    Doubt,
    DropInbox,
    Finished,
    GateAction,
    Overdue,
    Sent,
    Withdraw,
)
from mcphost.serving.ports import GatedCall, GateDecision

CURRENT: Final = 0.02
"""Seconds for which the rules count as read: calls that come at once need not search for changes one by one."""

ABSENT: Final = {"code": -1, "message": "mcphost's screen, where the user answers, does not run"}
"""The error that a server gets for a question that no one can answer."""

TOO_LONG: Final = f"takes more than {link.LINE_BYTES >> 20} MiB, and mcphost's screen asks about nothing as long"

NO_ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "elicitation/create": {"action": "cancel"},
    "roots/list": {"roots": []},
}
"""The results that say that the user gave no answer."""


class ScreenConnection(Protocol):
    """The connection to the running screen. See `mcphost.shim.Observer`."""

    received: Callable[[bytes], None]
    lost: Callable[[], None]

    def say(self, line: bytes) -> bool: ...

    def connect(self) -> bool: ...

    @property
    def connected(self) -> bool: ...


class DecidedGate(Protocol):
    """The gate that is answered. See `mcphost.serving.gate_pump.GatePump`."""

    def decide(self, call: int, decision: GateDecision) -> None: ...

    def reply(self, number: int, result: Mapping[str, Any] | None, error: Mapping[str, Any] | None) -> None: ...


class SettingsFile(Protocol):
    """Reads the configuration of the user."""

    def __call__(self) -> tuple[Config, Sequence[Path]]:
        """The configuration and the files that it is read from. Blocks. Raises ConfigError."""


class LocalConsent:
    """Decides in the gate's process. Rules are read again after their files were written."""

    def __init__(
        self,
        read: SettingsFile,
        open_state: Callable[[], Path],
        env: Mapping[str, str],
        command: Sequence[str],
        mask: Callable[[str], str],
        note: Callable[[str], None],
    ) -> None:
        self._read, self._open_state, self._env, self._command = read, open_state, env, command
        self._mask, self._note = mask, note
        self.unasked: dict[int, str] = {}
        """Why the running screen cannot be asked about a call, as a clause, by its number."""
        self._config = Config.model_construct()
        self._files: dict[Path, object] | None = None
        self._calls: GatedCalls | None = None
        self._audit: AuditLog | None = None
        self._store: ApprovalStore | None = None
        self._opening = asyncio.Lock()
        self._current_until = 0.0

    async def calls(self) -> GatedCalls:
        """The calls by the present rules. Raises ConfigError."""
        if (ready := self.ready_calls()) is not None:
            return ready
        async with self._opening:
            if not self._is_current():
                self._config, self._files = await asyncio.to_thread(self._settings)
            if self._calls is None:
                self._calls = await self._open()
            return self._calls

    def ready_calls(self) -> GatedCalls | None:
        """The calls by the present rules, if these need not be read again."""
        return self._calls if self._is_current() else None

    def _is_current(self) -> bool:
        now = time.monotonic()
        if now < self._current_until:
            return True
        files = self._files
        if files is None or any(file_version(path) != version for path, version in files.items()):
            return False
        self._current_until = now + CURRENT
        return True

    async def aclose(self) -> None:
        if self._store is not None:
            await self._store.save()
        if self._audit is not None:
            await self._audit.aclose()

    def _settings(self) -> tuple[Config, dict[Path, object]]:
        config, paths = self._read()
        return config, {path: file_version(path) for path in paths}

    async def _open(self) -> GatedCalls:
        state, bus = await asyncio.to_thread(self._open_state), EventBus()
        bus.observe(lambda event: self._note(event.text), Alarmed)
        store = StateStore(state, self._note)
        self._audit = AuditLog(state / "audit.jsonl", self._mask)
        audit = AuditWriter(lambda: self._config, self._audit, bus.alarm)
        logs = LogBook(time.time, self._mask, lambda: None, lambda server: None)
        self._store = ApprovalStore(store, BackgroundTasks(), bus)
        await self._store.load()
        approver = AbsentApprover(DeclinedCalls(store), self._command, self._note, self.unasked)
        reporting = Reporting(logs, audit, bus, self._mask)
        consent = ConsentBroker(lambda: self._config, self._store, approver, reporting)
        return GatedCalls(consent, lambda: self._config, Values(self._env), asks=False)


class GateDecisions:
    """Answers one gate, in an event loop of its own; `run` it there."""

    def __init__(
        self,
        gate: DecidedGate,
        screen: ScreenConnection,
        socket: Path | None,
        server: GatedServer,
        agent: AgentFacts,
        local: LocalConsent,
        disconnect: Callable[[], None],
    ) -> None:
        self._gate, self._screen, self._socket = gate, screen, socket
        self._server, self._agent, self._local = server, agent, local
        self._disconnect = disconnect
        self.handled = 0
        """Actions that `run` has handled."""
        self._asked: dict[int, GatedCall] = {}
        """The calls that the screen decides."""
        self._inbox: dict[int, AskInbox] = {}
        self._tools: dict[int, str] = {}
        """The tools of calls that were asked about and have not ended."""
        self._on_screen: set[int] = set()
        """The calls that the connected screen was asked about; other calls are none of its business."""
        self._deciding: dict[int, asyncio.Task[None]] = {}

    async def run(self, actions: asyncio.Queue[GateAction | None]) -> None:
        """Follow the gate until None comes."""
        loop = asyncio.get_running_loop()
        self._screen.received = lambda line: _call_soon(loop, self._received, line)
        self._screen.lost = lambda: _call_soon(loop, self._lost)
        try:
            while (action := await actions.get()) is not None:
                try:
                    await self._handle(action)
                except Exception as error:
                    self._fail(action, error)
                self.handled += 1
        finally:
            for task in self._deciding.values():
                task.cancel()
            await asyncio.gather(*self._deciding.values(), return_exceptions=True)
            await self._local.aclose()

    def handle_at_once(self, action: GateAction) -> bool:
        """Handle an action in the calling thread, if no screen is there and nothing waits; False, if `run` must do it.

        Only for a caller that knows that `run` has handled all that came before.
        """
        if self._on_screen or self._asked or self._deciding:
            return False
        match action:
            case Sent() | Overdue() | Doubt():
                return True
            case Ask(call) if self._alone and (calls := self._local.ready_calls()) is not None:
                decision = calls.decide_at_once(
                    call.number, self._server, self._agent, call.tool, call.definition, call.arguments
                )
                if decision is None:
                    return False
                self._tools[call.number] = call.tool
                self._gate.decide(call.number, decision)
                return True
            case Finished(number, state, seconds) if (calls := self._local.ready_calls()) is not None:
                tool = self._tools.get(number, "")
                if not calls.ended(number, self._server, self._agent, tool, state, seconds, at_once=True):
                    return False
                self._forget(number)
                return True
        return False

    async def _handle(self, action: GateAction) -> None:
        match action:
            case Ask(call):
                await self._ask(call)
            case Withdraw(number, reason):
                self._withdraw(number, reason)
            case Finished(number, state, seconds):
                await self._finished(number, state, seconds)
            case AskInbox():
                await self._ask_inbox(action)
            case DropInbox(number) if self._inbox.pop(number, None):
                self._say(link.InboxRequestGone(number=number))
            case Sent(number) if number in self._on_screen:
                self._say(link.CallForwarded(call=number))
            case Overdue(number) if number in self._on_screen:
                self._say(link.CallOverdue(call=number))
            case Doubt(number) if number in self._on_screen:
                self._say(link.CallDoubted(call=number))
            case AgentIntroduced():
                self._introduced(action)

    def _fail(self, action: GateAction, error: Exception) -> None:
        """Decline what an error of mcphost kept from being asked."""
        words = describe_failure(error)
        if isinstance(action, Ask):
            self._forget(action.call.number)
            self._gate.decide(action.call.number, GateDecision(False, words=words))
        elif isinstance(action, AskInbox):
            self._gate.reply(action.number, None, {**ABSENT, "message": words})

    # The screen.

    def _say(self, message: link.LinkMessage) -> bool:
        return self._screen.say(message.line())

    @property
    def _alone(self) -> bool:
        """True if no screen runs: one makes its socket before it answers."""
        return self._socket is None or not (self._screen.connected or os.path.exists(self._socket))

    async def _tell(self, line: bytes) -> bool:
        """Send a message, after a search for a screen; False where none runs."""
        return self._screen.say(line) or (await asyncio.to_thread(self._screen.connect) and self._screen.say(line))

    def _received(self, line: bytes) -> None:
        try:
            message = link.read_from_screen(line)
        except InvalidLink:
            return
        match message:
            case link.CallDecided(call=number) if self._asked.pop(number, None):
                if not message.allow:
                    self._forget(number)
                decision = GateDecision(
                    message.allow, message.arguments, message.words, message.by, message.listed_within
                )
                self._gate.decide(number, decision)
            case link.InboxReply(number=number) if self._inbox.pop(number, None):
                error = None if message.error is None else message.error.model_dump()
                self._gate.reply(number, message.result if error is None else None, error)
            case link.EndSession():
                self._asked.clear()  # what is open ends with the server
                self._inbox.clear()
                self._disconnect()

    def _lost(self) -> None:
        """Decide here about all that was open on screen."""
        for call in self._asked.values():
            # A screen that came at once may have been asked, too.
            self._say(link.CallWithdrawn(call=call.number, reason="it was decided without a screen"))
            self._decide_here(call)
        self._asked = {}
        self._on_screen.clear()
        inbox, self._inbox = self._inbox, {}
        for question in inbox.values():
            self._say(link.InboxRequestGone(number=question.number))
            self._refuse(question)

    # Calls.

    async def _ask(self, call: GatedCall) -> None:
        self._tools[call.number] = call.tool
        if call.number in self._deciding:
            return
        if self._alone:
            await self._decide(call)  # in no task of its own: no person is asked, so that it seldom waits
            return
        within = call.answer_within if call.answer_within is None or call.answer_within < 1e9 else None
        message = link.CallAsked(
            call=call.number,
            request=call.request_id,
            definition=None if call.definition is None else dict(call.definition),
            tool=call.tool[:4000],
            arguments=dict(call.arguments),
            answer_within=within,
            progress=call.progress,
        )
        line = message.line()
        if len(line) > link.LINE_BYTES:
            self._local.unasked[call.number] = f"the call {TOO_LONG}"
            self._decide_here(call)
        elif await self._tell(line):
            self._asked[call.number] = call
            self._on_screen.add(call.number)
        else:
            self._decide_here(call)

    def _decide_here(self, call: GatedCall) -> None:
        task = asyncio.ensure_future(self._decide(call))
        self._deciding[call.number] = task
        task.add_done_callback(lambda _: self._deciding.pop(call.number, None))

    async def _decide(self, call: GatedCall) -> None:
        try:
            calls = await self._local.calls()
        except McphostError as error:
            self._gate.decide(call.number, GateDecision(False, words=f"mcphost cannot decide about calls: {error}"))
            return
        except Exception as error:
            self._gate.decide(call.number, GateDecision(False, words=describe_failure(error)))
            return
        decision = await calls.decide(
            call.number, self._server, self._agent, call.tool, call.definition, call.arguments
        )
        if not decision.allow:
            self._forget(call.number)
        self._gate.decide(call.number, decision)

    async def _finished(self, number: int, state: str, seconds: float) -> None:
        tool, on_screen = self._tools.get(number, ""), number in self._on_screen
        self._forget(number)
        if on_screen:
            ended = link.CallEnded.model_validate({"call": number, "state": state, "seconds": seconds})
            if self._say(ended):
                return
        try:
            calls = await self._local.calls()
        except Exception:
            return  # it was declined for that, or decided by a screen that is gone
        calls.ended(number, self._server, self._agent, tool, state, seconds)

    def _withdraw(self, number: int, reason: str) -> None:
        if number in self._on_screen:
            self._say(link.CallWithdrawn(call=number, reason=reason))
        self._forget(number)
        if task := self._deciding.get(number):
            task.cancel()

    def _forget(self, number: int) -> None:
        self._asked.pop(number, None)
        self._tools.pop(number, None)
        self._on_screen.discard(number)
        self._local.unasked.pop(number, None)

    # Questions of the server, and the agent's name.

    async def _ask_inbox(self, question: AskInbox) -> None:
        if self._alone:
            self._refuse(question)
            return
        fields = {"number": question.number, "method": question.method, "params": dict(question.params)}
        try:
            message = link.InboxRequest.model_validate({**fields, "call": question.call})
        except ValueError:
            self._refuse(question)
            return
        line = message.line()
        if len(line) > link.LINE_BYTES:
            self._refuse(question, {**ABSENT, "message": f"the question {TOO_LONG}"})
        elif await self._tell(line):
            self._inbox[question.number] = question
        else:
            self._refuse(question)

    def _refuse(self, question: AskInbox, error: Mapping[str, Any] = ABSENT) -> None:
        result = NO_ANSWERS.get(question.method)
        self._gate.reply(question.number, result, None if result is not None else error)

    def _introduced(self, agent: AgentIntroduced) -> None:
        self._agent = self._agent.introduced(agent.name, agent.version)
        self._say(link.AgentNamed(name=agent.name, version=agent.version, era=agent.era, revision=agent.revision))


def _call_soon(loop: asyncio.AbstractEventLoop, work: Callable[..., None], *arguments: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(work, *arguments)
