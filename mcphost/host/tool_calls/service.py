"""Runs tool calls: checks arguments, asks for consent, sends at most once, validates the result, and audits all of it.

Specification: server/tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcphost.client.client import RequestTimeouts
from mcphost.client.server_requests import InputRequest
from mcphost.config import ServerConfig, entry_of
from mcphost.errors import (
    AuthorizationRequired,
    Declined,
    InvalidArguments,
    McphostError,
    ServerError,
    SessionExpired,
    TaskStopped,
)
from mcphost.host.background import BackgroundTasks
from mcphost.host.catalog import Catalog, CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker, Proposal
from mcphost.host.consent.questions import ReadOnlyTools, ToolCallQuestion
from mcphost.host.events import CallChanged, CallFinished, CallStarted
from mcphost.host.history.past_call import masked_paths
from mcphost.host.internal_error import internal_error, without_secrets
from mcphost.host.reporting import Reporting
from mcphost.host.server_requests.elicitation import ElicitationService
from mcphost.host.sign_in.retry import RetriedOperation, SignInRetry
from mcphost.host.sign_in.service import SignIn
from mcphost.host.tool_calls.arguments import check_arguments, misfit
from mcphost.host.tool_calls.call import NOTHING_SENT, ArgumentReferences, CallRequest, ToolCall
from mcphost.host.tool_calls.current import current_call
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.tool_calls.sending import CallSending
from mcphost.host.tool_calls.started_tasks import StartedTasks
from mcphost.host.tool_calls.validation import ValidationResult, prepare, validate
from mcphost.protocol.models.tools import CallToolResult, Tool
from mcphost.protocol.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from mcphost.protocol.models.tasks import Task

_log = logging.getLogger(__name__)

VISITS: Final = 3
"""Times that one call may require visits to pages first."""

_AGAIN: Final = {
    True: "the server refused this before it did anything, for want of a sign-in; now you are signed in",
    False: "the server refused this before it did anything, for want of rights; now you have more",
}
"""Why a call is asked about again."""

_ANOTHER: Final = (
    "you are signed in now, but the server refused this before it did anything: the session was that of the sign-in "
    "before; now there is another"
)


class ToolCallService:
    def __init__(
        self,
        registry: CallRegistry,
        servers: Servers,
        catalog: Catalog,
        consent: ConsentBroker,
        elicitation: ElicitationService,
        sign_in_retry: SignInRetry,
        started: StartedTasks,
        background: BackgroundTasks,
        reporting: Reporting,
    ) -> None:
        self._registry, self._servers, self._catalog, self._consent = registry, servers, catalog, consent
        self._elicitation, self._sign_in_retry, self._started = elicitation, sign_in_retry, started
        self._background, self._reporting = background, reporting
        self._audit, self._bus, self._mask = reporting.audit, reporting.bus, reporting.mask

    @property
    def calls(self) -> Mapping[int, ToolCall]:
        """The calls by number, oldest first: all that run, and the last of those that ended."""
        return self._registry.calls

    def running(self, server: str | None = None) -> list[ToolCall]:
        """The calls that have not ended, oldest first."""
        return self._registry.running(server)

    async def read_only_tools(self, question: ToolCallQuestion) -> ReadOnlyTools:
        """The tools of the server that is asked about that claim to be read-only, as listed now."""
        tools = [entry.tool for entry in self._catalog.tools(question.instance or question.server)]
        return await self._consent.read_only_tools(question.server, question.identity, tools)

    async def prepare(self) -> None:
        """Load what checks arguments and results, beside other work; the first call would do it otherwise."""
        await prepare()

    def call(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        origin: str = "you",
        timeout: float | None = None,
        as_task: bool = False,
        composed: bool = False,
        references: ArgumentReferences | None = None,
    ) -> ToolCall:
        """Begin a tool call: checked, asked for, sent, and its result checked. Returns at once.

        ``as_task``: as a task where the tool leaves the choice. ``composed``: the user wrote the arguments just now.
        ``references``: those in the arguments of a saved call.
        """
        return self.begin(
            CallRequest(server, tool, arguments, origin, timeout, as_task, composed=composed, references=references)
        )

    def repeat(self, call: ToolCall) -> ToolCall:
        """Begin a call of the same tool with the same arguments, which is asked for as any other.

        What an agent called on an instance runs on the entry's own connection.
        """
        was = call.request
        again = CallRequest(
            entry_of(was.server), was.tool, call.arguments, references=was.references, recalled=was.recalled
        )
        return self.begin(again)

    def begin(self, request: CallRequest) -> ToolCall:
        """Begin the call of a request. Returns at once."""
        call = self._registry.add(request)
        task = self._background.start(self._run(call), f"call {call.number}")
        call.attach(task)
        task.add_done_callback(lambda _: self._finish(call))  # where it was cancelled before it began
        self._bus.publish(CallStarted(call.number))
        return call

    async def _run(self, call: ToolCall) -> None:
        try:
            await self._attempt(call)
        except asyncio.CancelledError:
            call.cancelled()
        except McphostError as error:
            if call.stopping and isinstance(error, TaskStopped):
                call.cancelled()
            else:
                call.failed(without_secrets(error, self._mask))
        except Exception as error:  # a bug in here must end neither other calls nor servers
            call.failed(internal_error(error))
        finally:
            try:
                self._finish(call)
            except Exception:
                _log.exception("call %d did not end as it should", call.number)

    def _finish(self, call: ToolCall) -> None:
        if call.finished.is_set():
            return
        call.finished.set()
        self._registry.unmark_sent(call)
        if not call.state.ended:
            call.cancelled()
        if call.allowed:
            self._consent.finished(call)
        self._registry.ended(call)
        self._bus.publish(CallFinished(call.number))

    async def _attempt(self, call: ToolCall) -> None:
        """Try until the server accepts it. Each attempt checks the arguments and asks for consent again."""
        connection, request = self._servers[call.request.server], call.request
        operation, note, visits = self._sign_in_retry.operation(connection, request.tool), "", 0
        while True:
            try:
                await self._reached(connection)
                await self._once(call, connection, note)
            except AuthorizationRequired as refusal:
                note = await self._signed_in(call, operation, refusal)
            except SessionExpired as expired:
                note = await self._in_new_session(call, operation, expired)
            except ServerError as error:
                visits += 1
                note = await self._visited(call, connection, error, visits)
            else:
                return operation.succeeded()

    async def _signed_in(self, call: ToolCall, operation: RetriedOperation, refusal: AuthorizationRequired) -> str:
        """Wait for a sign-in while the call's timeouts stand still; return why consent is asked for again."""

        def on_wait(sign_in: SignIn) -> None:
            call.waits_for_sign_in(sign_in.number)
            self._bus.publish(CallChanged(call.number))

        was_sent = self._registry.unmark_sent(call)
        await operation.sign_in(refusal, on_wait)
        call.begins_anew()
        self._bus.publish(CallChanged(call.number))
        return _AGAIN[refusal.status == 401] if was_sent else ""

    async def _in_new_session(self, call: ToolCall, operation: RetriedOperation, expired: SessionExpired) -> str:
        """Wait for the session of the new sign-in; return why consent is asked for again. Raises ``expired``."""
        await operation.new_session(expired)
        self._registry.unmark_sent(call)
        call.begins_anew()
        self._bus.publish(CallChanged(call.number))
        return _ANOTHER

    async def _visited(self, call: ToolCall, connection: Connection, error: ServerError, time: int) -> str:
        """Have the pages visited that the server wants visited first; why it is asked about again. Raises ``error``."""
        if error.code != ErrorCode.URL_ELICITATION_REQUIRED or time > VISITS:
            raise error
        questions = call.request.questions
        if questions is not None and questions.takes(InputRequest("elicitation/create", {"mode": "url"})):
            raise error  # the agent visits the pages itself
        self._registry.unmark_sent(call)
        if not await self._elicitation.visit_required(call, error.data):
            raise error
        call.begins_anew()
        self._bus.publish(CallChanged(call.number))
        return "the server refused this before it did anything, until you had visited a page; now you have"

    async def _once(self, call: ToolCall, connection: Connection, note: str) -> None:
        request, tool = call.request, None
        if request.task is not None:
            arguments = values = await self._may_collect(call, connection, request.task)
        elif call.task is not None:  # it was begun before the server wanted a sign-in: it is not run twice
            tool, arguments = self._catalog.tool(request.server, request.tool), call.arguments
            values = arguments  # its result is collected, and nothing of them is sent again
        else:
            tool, arguments, values = await self._settle(call, connection, note)
        client = connection.client  # the one that is there now: it may have been replaced while the user was asked
        call.sent(arguments)
        self._registry.mark_sent(call)
        current_call.set(call.number)  # this task is the call's own
        asyncio.get_running_loop().call_soon(self._registry.make_room)  # runs while the server works
        self._bus.publish(CallChanged(call.number))
        timeouts = _timeouts(call, connection.config)
        begun = request.task or (call.task.task_id if call.task is not None else "")
        known = self._started.find(connection.config, begun) if begun else None
        remember = partial(self._remember, call, connection.config)
        began = known.began if known else None
        sending = CallSending(call, values, connection, timeouts, self._reporting, remember, began)
        if tool is not None and call.task is None:
            result = await sending.run(client, tool)
        else:
            result = await sending.collect(client, begun)
        call.answered(result, None if tool is None else await _validity(tool, result))

    def _remember(self, call: ToolCall, server: ServerConfig, task: Task) -> None:
        """Write down that a call became this task."""
        if call.request.task is None:
            work = self._started.add(server, task.task_id, call.request.tool)
            self._background.start_if_open(work, "remember a task")

    async def _may_collect(self, call: ToolCall, connection: Connection, task: str) -> Mapping[str, Any]:
        """Write down that a task's result is asked for: asking is the consent. The arguments it was begun with."""
        call.identity = connection.config.identity
        fields = {"call": call.number, "server": connection.name, "sent_to": call.identity}
        await self._audit.before(
            {"event": "task", **fields, "asked_by": call.request.origin, "task": task, "status": "collect"}
        )
        call.allowed = True
        return call.request.arguments

    async def _reached(self, connection: Connection) -> None:
        """Wait for the connection and its tools. Raises ServerNotReady, or AuthorizationRequired."""
        await connection.reach()  # raises where there is no server, before anybody is asked
        await connection.current(CatalogKind.TOOLS)

    async def _settle(
        self, call: ToolCall, connection: Connection, why: str
    ) -> tuple[Tool, Mapping[str, Any], Mapping[str, Any]]:
        """The tool and the arguments that were allowed, also with the values of references; ``why`` it is asked again.

        Raises InvalidArguments, Declined, ConfigError where a reference has no value, or ServerNotReady if the server
        went away while the user was asked.
        """

        async def list_again() -> Proposal:
            problem = await connection.recent(CatalogKind.TOOLS, self._consent.relist_sec)
            return replace(await self._proposal(call, connection, why), unconfirmed=problem)

        config = connection.config
        proposal, answer = await self._consent.decide(await self._proposal(call, connection, why), list_again)
        call.decided(answer.by)
        if answer.by == "user":
            self._bus.publish(CallChanged(call.number))
        arguments, values = proposal.arguments, proposal.sent
        if answer.arguments is not None:
            arguments = answer.arguments
            values = await _values(call.request, arguments)
            await check_arguments(proposal.tool, values)
        if call.request.hold is not None:
            await call.request.hold()
        await connection.current(CatalogKind.TOOLS)
        _ = connection.client  # the server may be gone by now
        self._still_as_shown(proposal, config, connection)
        if proposal.repetition is not None:
            by_user = answer.by == "user"
            proposal.repetition.bind(proposal.identity, proposal.tool, values, by_user=by_user)
        return proposal.tool, arguments, values

    async def _proposal(self, call: ToolCall, connection: Connection, why: str) -> Proposal:
        """Make the proposal from the present tool. Raises UnknownName, InvalidArguments, ConfigError."""
        request = call.request
        tool = self._catalog.tool(request.server, request.tool)
        call.identity = connection.config.identity
        if request.recalled and (masked := masked_paths(call.arguments)):
            raise InvalidArguments([(path, "is masked in the history; write its value again") for path in masked])
        values = await _values(request, call.arguments)
        by_server = request.unchecked or request.agent is not None  # an agent hears it from the server itself
        check = misfit if by_server else check_arguments
        note = "; ".join(filter(None, [why, await check(tool, values), _replaced(request)]))
        return Proposal(
            call=call.number,
            server=connection.entry,
            tool=tool,
            arguments=call.arguments,
            origin=request.origin,
            identity=call.identity,
            note=note or None,
            outside=request.outside,
            skill=request.skill,
            provenance=request.provenance.after(call.arguments) if call.edited else request.provenance,
            composed=request.composed,
            repetition=request.repetition,
            values=None if request.references is None else values,
            instance=connection.instance,
            agent=request.agent,
            served=request.agent is not None,
        )

    def _still_as_shown(self, shown: Proposal, config: ServerConfig, connection: Connection) -> None:
        """Raise Declined if the tool or the server changed since consent was asked for."""
        tool = self._catalog.tool(connection.name, shown.tool.name)
        if tool is not shown.tool and tool.canonical != shown.tool.canonical:
            moved = "the tool's definition"
        elif connection.config is not config and connection.config.identity != shown.identity:
            moved = "the server's command or address"
        else:
            return
        raise Declined(f"{moved} changed in the meantime; {NOTHING_SENT}, look again", by="mcphost", rule="changed")


def _timeouts(call: ToolCall, config: ServerConfig) -> RequestTimeouts:
    own = config.tools.get(call.request.tool)
    idle = call.request.timeout or (own and own.timeout_sec) or config.tool_timeout_sec
    return RequestTimeouts(idle, max(idle, config.tool_timeout_max_sec))


async def _values(request: CallRequest, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the values of references. Raises ConfigError."""
    return arguments if request.references is None else await request.references.resolve(arguments)


def _replaced(request: CallRequest) -> str:
    """A note on the references in the arguments."""
    if request.references is None:
        return ""
    texts = request.references.texts
    verb = "is replaced by its value" if len(texts) == 1 else "are replaced by their values"
    return f"{', '.join(texts)} {verb} when the call is sent"


async def _validity(tool: Tool, result: CallToolResult) -> ValidationResult | None:
    if tool.output_schema is None or result.is_error:
        return None
    if not result.has_structured:
        return ValidationResult((), "the tool declares an output schema but answered without structured content")
    return await validate(tool.output_schema, result.structured)
