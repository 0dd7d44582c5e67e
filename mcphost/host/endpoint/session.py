"""One agent's session with mcphost as its server: one endpoint for all the servers that it may use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mcphost.client.server_requests import InputRequest
from mcphost.config import Config, entry_of
from mcphost.config.profiles import in_profile
from mcphost.errors import ConfigError, McphostError, ServerError
from mcphost.host.agents.facts import AgentFacts, claim_of
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.instances import Holder
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.locked_tools import unlocked
from mcphost.host.consent.skill_approvals import SkillState
from mcphost.host.endpoint.calls import AskedCall, CallContext, EndpointCalls, unknown_tool
from mcphost.host.endpoint.context import EndpointContext, EndpointOptions
from mcphost.host.endpoint.drift import Drift
from mcphost.host.endpoint.exposure import Exposure
from mcphost.host.endpoint.known_servers import KnownServers
from mcphost.host.endpoint.permissions import APPROVE, DEFINITION, AgentPermissions
from mcphost.host.endpoint.questions import AgentQuestions, AnsweringSides
from mcphost.host.endpoint.requests import EndpointRequestContext, EndpointRequests, failure_of
from mcphost.host.endpoint.results import LargeResults
from mcphost.host.endpoint.subscriptions import EndpointSubscriptions
from mcphost.host.endpoint.translation import Translation, of_this_leg
from mcphost.host.internal_error import internal_error
from mcphost.host.loop_guard import ITSELF, is_own
from mcphost.json_values import as_dict, as_text, dicts_in
from mcphost.protocol.display import show_line
from mcphost.protocol.lifecycle.revisions import MAY_NEED_INPUT, NEWEST_HANDSHAKE, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import InvalidParamsError, RpcError, ServerIntroduction, unknown_method
from mcphost.serving.pages import page
from mcphost.serving.served_request import Json, ServedRequest
from mcphost.serving.session import ServedContent, SessionHandle
from mcphost.transports.base import MessageObserver

NAME: Final = "mcphost"

PREPARE_SECONDS: Final = 5.0
"""For servers to start before an agent learns what they offer: some agents give a server 10 s in all."""

LIST_SECONDS: Final = 8.0
"""For the lists of all servers; what comes later is announced as a change."""

ANNOUNCE_SECONDS: Final = 0.1
"""In which changes of a list are announced together."""

PAGE_ITEMS: Final = 200
"""Items of a page: with the longest definitions still a message that clients take."""

REASON: Final = 300
"""Characters of the reason why a server does not run."""

SAID: Final = 5
"""Skills that a line of the log names."""

LISTS: Final[Mapping[str, tuple[CatalogKind, str]]] = {
    "tools/list": (CatalogKind.TOOLS, "tools"),
    "prompts/list": (CatalogKind.PROMPTS, "prompts"),
    "resources/list": (CatalogKind.RESOURCES, "resources"),
    "resources/templates/list": (CatalogKind.TEMPLATES, "resourceTemplates"),
    "skills/list": (CatalogKind.SKILLS, "skills"),
}
"""The kind of the items, and the member of the result."""


class EndpointSession(ServedContent):
    """The content of one session (`mcphost.serving.session.ServedContent`). `attach` it right after it was made."""

    def __init__(
        self,
        number: int,
        options: EndpointOptions,
        context: EndpointContext,
        known: KnownServers,
        drift: Drift,
        level_changed: Callable[[EndpointSession], None],
        ended: Callable[[EndpointSession], None],
    ) -> None:
        self.number, self.options = number, options
        self._context, self._known, self._drift = context, known, drift
        self._level_changed, self._ended = level_changed, ended
        self._session: SessionHandle | None = None
        self._listed: dict[CatalogKind, Sequence[tuple[str, Json]]] = {}
        """The items of each kind as the agent listed them last."""
        self._said: dict[str, str] = {}
        """The last words in the log on the skills of each entry that the agent does not get."""
        self._due: dict[str, asyncio.TimerHandle] = {}
        self._closed = False
        self._holder: Holder | None = None
        """The session as a holder of servers, once it has used one."""
        self._chosen: tuple[Config, Sequence[str]] | None = None
        self._exposed: tuple[object, Config, Exposure] | None = None
        self._asking: ServedRequest | None = None
        """The last request in which the agent may be asked."""
        self._declared: Mapping[str, Any] = {}
        """The capabilities that the agent declared last."""
        self._handshaken = False
        self.level: LogLevel | None = None
        """The level of log messages that the agent asked for; None: it has not."""
        self.shown = context.agents.add_served(options.agent, self.entries, options.profile, self)
        """The session as the user sees it, which observes the agent's messages."""
        self._results = LargeResults(lambda: context.config().serve.max_result)
        self._requests = EndpointRequests(
            EndpointRequestContext(
                servers=context.servers,
                audited=context.requests,
                agent=self._agent,
                exposure=lambda: self._exposure,
                results=self._results,
                lease=self._lease,
                listed=lambda kind: self._reached(self.entries, LIST_SECONDS, kind),
                translation=self._translation,
                withheld=self._withheld,
                questions=self._questions,
            )
        )
        self._subscriptions = EndpointSubscriptions(
            context.resources, self._requests.resource, self._lease, lambda: self._agent().origin, self._start
        )
        self.calls = EndpointCalls(
            CallContext(
                begin=context.tool_calls.begin,
                asks=context.consent.asks,
                agent=self._agent,
                shown=self.shown,
                answer_within=lambda: context.config().serve.answer_within,
                result=self._call_result,
                failure=self._call_failure,
                results=self._results,
                warn=context.reporting.logs.warn,
                start=self._start,
            )
        )
        self._permissions = AgentPermissions(
            context.agents.gated,
            context.agents.next_number,
            self.shown,
            lambda: context.config().serve.answer_within,
        )
        self._methods: Mapping[str, Callable[[ServedRequest], Coroutine[Any, Any, Mapping[str, Any] | None]]] = {
            "tools/call": self._call,
            "resources/read": self._requests.read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/get": self._requests.prompt,
            "completion/complete": self._requests.complete,
            "skills/get": self._requests.skill,
            "resources/directory/read": self._requests.folder,
            **{method: partial(self._list, *listed) for method, listed in LISTS.items()},
        }

    @property
    def observer(self) -> MessageObserver:
        """See `mcphost.serving.http_listener.HttpContent`."""
        return self.shown

    def attach(self, session: SessionHandle) -> None:
        """The session in which this is served."""
        self._session = session

    def closed(self) -> None:
        """The agent is gone: end what runs for it."""
        if self._closed:
            return
        self._closed = True
        for timer in self._due.values():
            timer.cancel()
        self.calls.close()
        self._subscriptions.close()
        if self._holder is not None:
            self._context.instances.release(self._holder)
        self.shown.closed()
        self._ended(self)

    def roots_changed(self) -> None:
        """The agent has other folders: tell what runs for it alone."""
        for server in self.shown.session.servers.values():
            holder = self._context.instances.holder_of(server)
            if holder is not None and holder.session == self.number:
                self._context.roots.agent_changed(server)

    # `mcphost.host.agents.served.ServedPort`.

    def decline(self, call: int, words: str) -> None:
        self.calls.decline(call, words)
        self._permissions.decline(call, words)

    def disconnect(self) -> None:
        if self._session is not None:
            self._session.disconnect()

    # What is served.

    @property
    def entries(self) -> Sequence[str]:
        """The entries of the configuration that this agent may use, in their order."""
        config = self._context.config()
        if self._chosen is None or self._chosen[0] is not config:
            self._chosen = config, tuple(self._entries(config))
        return self._chosen[1]

    def _entries(self, config: Config) -> Iterator[str]:
        chosen = self.options.servers
        with suppress(ConfigError):  # the profile is gone since the session began
            for name, entry in in_profile(config, self.options.profile)[0].servers.items():
                if name in chosen if chosen else entry.enabled:
                    yield name

    @property
    def _exposure(self) -> Exposure:
        config = self._context.config()
        servers = {entry: self._listed_by(entry) for entry in self.entries}
        state = self._known.version, self._drift.version, tuple(servers.items())
        if self._exposed is None or self._exposed[0] != state or self._exposed[1] is not config:
            self._exposed = (
                state,
                config,
                Exposure(config, servers, self._known, self._shows, self._withheld, self._own_tools),
            )
        return self._exposed[2]

    # `ServedContent`.

    def introduction(self, revision: Revision) -> ServerIntroduction:
        identity = {"name": NAME, "title": NAME, "version": self._context.version}
        kept: Json = {"resources": {}} if self._results.shortens else {}  # where large results can be read
        if self.options.approve:
            kept["tools"] = {"listChanged": True}
        instructions = "\n\n".join(filter(None, (self._exposure.instructions, *self._absent())))
        return ServerIntroduction(identity, kept | self._exposure.capabilities, instructions)

    def _absent(self) -> Iterator[str]:
        """Words on each server whose items are missing."""
        for entry in self.entries:
            connection = self._context.servers.get(entry)
            if self._known.get(self.server_of(entry)) is None and connection is not None:
                why = f": {show_line(connection.reason, REASON)}" if connection.reason else ""
                words = f"The tools of {entry} are missing, since this server is {connection.state.value}{why}"
                yield words if words.endswith((".", "?")) else f"{words}."

    def introduced(self, capabilities: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        if is_own(meta):
            raise RpcError(ErrorCode.INVALID_REQUEST, ITSELF)
        self._declared = capabilities

    def prepare(self, then: Callable[[], None]) -> None:
        if all(self._known.get(self.server_of(entry)) for entry in self.entries):
            then()
            return

        async def prepared() -> None:
            await self._reached(self.entries, PREPARE_SECONDS)
            then()

        self._start(prepared(), "prepare an agent's session")

    def begin(self, request: ServedRequest) -> None:
        self._introduce(request)
        method = self._methods.get(request.method)
        if method is None:
            raise unknown_method(request.method)
        wanted = request.declaration.log_level  # of a modern request; servers are asked before they get it
        if wanted is not None and wanted is not self.level:
            self.level_changed(wanted)
        self._answer(request, method(request))

    def opened(self) -> None:
        self._handshaken = True
        self._level_changed(self)

    def wanted_level(self, revision: Revision) -> LogLevel | None:
        """The level of log messages to ask a server of this revision for; None: the server decides."""
        return LogLevel.INFO if self.level is None and revision.modern and self._handshaken else self.level

    def level_changed(self, level: LogLevel) -> None:
        self.level = level
        self._level_changed(self)

    def subscriptions_changed(self, uris: frozenset[str]) -> None:
        self._subscriptions.wanted(uris)

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        """See `mcphost.serving.http_listener.HttpContent`."""
        found = self._exposure.tool(tool)
        return {} if found is None else as_dict(found[1].received.get("inputSchema"))

    # From the service.

    def items_changed(self, server: str, kind: CatalogKind) -> None:
        """A server's list is another now."""
        if self.uses(server):
            self.may_have_changed(kind)

    def may_have_changed(self, *kinds: CatalogKind) -> None:
        """Other items of these kinds may be offered now."""
        if self._session is not None and not self._closed:
            for kind in kinds:
                self._announce_later(kind.capability)

    def resource_updated(self, server: str, uri: str) -> None:
        """A resource of a server may have changed."""
        for exposed in self._subscriptions.exposed(server, uri):
            if self._session is not None:
                self._session.resource_updated(exposed)

    def logged(self, server: str, params: Mapping[str, Any]) -> None:
        """A server that this session uses has logged something."""
        level, logger = LogLevel.read(params.get("level")), as_text(params.get("logger"))
        level = LogLevel.INFO if level is None else level
        if len(self.entries) > 1:
            entry = entry_of(server)
            logger = f"{entry}/{logger}" if logger else entry
        running = self.calls.runs_at(server)
        if len(running) == 1:
            running[0].log(level, params.get("data"), logger)
            return
        if self._session is not None:
            self._session.log(level, params.get("data"), logger)

    def _announce_later(self, kind: str) -> None:
        if kind not in self._due:
            self._due[kind] = asyncio.get_running_loop().call_later(ANNOUNCE_SECONDS, self._announce, kind)

    def _announce(self, kind: str) -> None:
        del self._due[kind]
        seen = [(each, listed) for each, listed in self._listed.items() if each.capability == kind]
        changed = any(listed != self._exposure.definitions(each) for each, listed in seen)
        if changed and self._session is not None:
            self._session.list_changed(kind)

    # Lists.

    async def _list(self, kind: CatalogKind, member: str, request: ServedRequest) -> Json:
        await self._reached(self.entries, LIST_SECONDS, kind)
        found = self._listed[kind] = self._exposure.definitions(kind)
        if kind is CatalogKind.TOOLS:
            found = [(entry, self._tool(entry, each, request)) for entry, each in found]
        if kind is CatalogKind.SKILLS:
            self._log_withheld()
        definitions = [each for _, each in found]
        if kind is CatalogKind.TOOLS and self.options.approve:
            definitions.insert(0, dict(DEFINITION))
        return {"ttlMs": self._fresh_milliseconds(kind), **page(member, definitions, request.params, PAGE_ITEMS)}

    def _log_withheld(self) -> None:
        """Say in the log which skills of a server the agent does not get, once until that changes."""
        withheld: dict[str, list[str]] = {entry: [] for entry in self._said}
        for entry, skill, why in self._exposure.withheld_skills:
            withheld.setdefault(entry, []).append(f"{show_line(skill.uri, REASON)}: {why}")
        for entry, reasons in withheld.items():
            more = f"; and {len(reasons) - SAID} more" if len(reasons) > SAID else ""
            words = f"{show_line(self._agent().label)} does not get every skill. {'; '.join(reasons[:SAID])}{more}"
            if reasons and self._said.get(entry) != words:
                self._context.reporting.logs.warn(self.server_of(entry), words)
            self._said[entry] = words if reasons else ""

    def _tool(self, entry: str, definition: Json, request: ServedRequest) -> Json:
        """The definition of a tool as the agent's revision has it."""
        return dict(self._results.definition(self._translation(entry, request).tool(definition)))

    def _fresh_milliseconds(self, kind: CatalogKind) -> int:
        """For which the whole list is fresh: as long as the part that is so shortest."""
        return min((self._fresh_part(entry, kind) for entry in self.entries), default=0)

    def _fresh_part(self, entry: str, kind: CatalogKind) -> int:
        connection, now = self._context.servers.get(entry), time.monotonic()
        freshness = None if connection is None else connection.listings.of_kind(kind).freshness
        if freshness is None or freshness.until == float("inf"):
            return 0
        return max(0, round((freshness.until - now) * 1000))

    async def _reached(self, entries: Sequence[str], seconds: float, kind: CatalogKind | None = None) -> None:
        """Wait until these servers run, and have listed their items of a kind, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(self._reach(entry, kind) for entry in entries))

    async def _reach(self, entry: str, kind: CatalogKind | None) -> None:
        """Wait for a server, and start it unless the user wants to do that. Never raises."""
        connection = self._context.servers.get(entry)
        if connection is None:
            return
        if self.options.alone:
            await self._lease(entry)  # before it starts, so that it hears what this agent answers
        if connection.state is ServerState.STOPPED and entry in self.options.servers:
            connection.start()
        known = self._known.get(connection.name)
        with suppress(McphostError):
            if known is not None and kind not in known.items:  # it crashed before that was listed
                await connection.settled(retries=True)
            await connection.reach()
            if kind is not None and connection.listings.declared(kind):
                await connection.current(kind)

    # Requests.

    def _agent(self) -> AgentFacts:
        return self.shown.session.agent

    def _shows(self, entry: str, tool: Tool) -> bool:
        """True if the agent may know of a tool."""
        config = self._context.config()
        profile = None if self.options.profile is None else config.profiles.get(self.options.profile)
        shown = profile is None or profile.shows(entry, tool.name)
        return shown and not self._drift.holds(entry, tool, self._agent().given) and not self._unlocked(entry, tool)

    def _unlocked(self, entry: str, tool: Tool) -> str:
        """Why the tool is not as in the lock of the policy."""
        connection = self._context.servers.get(entry)
        return unlocked(self._context.config(), entry, connection.config.identity if connection else "", tool)

    def _withheld(self, entry: str, skill: Skill) -> str | None:
        """Why the agent does not get a skill, as a clause that is safe to show; empty if it does.

        None where its profile does not have the skill, so that it does not exist for the agent.
        """
        profile = None if self.options.profile is None else self._context.config().profiles.get(self.options.profile)
        if profile is not None and not profile.shows_skill(entry, skill.name):
            return None
        connection = self._context.servers.get(entry)
        identity = connection.config.identity if connection else ""
        if why := show_line(skill.refusal, REASON):
            return why
        answer = self._context.consent.skills.unasked(entry, identity, skill)
        if answer is not None and not answer.allow:
            return answer.reason
        if self._context.config().serve.drift != "hold":
            return ""
        approval = self._context.consent.skills.status_of(entry, identity, skill)
        return "it changed since you allowed it" if approval.state is SkillState.CHANGED else ""

    def _introduce(self, request: ServedRequest) -> None:
        """Take note of what the agent says of itself."""
        declaration = request.declaration
        self._declared = declaration.capabilities
        if not request.revision.modern or request.method in MAY_NEED_INPUT:
            self._asking = request
        if declaration.log_level is not None and (self.level is None or declaration.log_level < self.level):
            self.level_changed(declaration.log_level)  # for the requests of modern agents that follow, too
        if declaration.identity:
            self.shown.named(*claim_of(declaration.identity, declaration.revision.version))

    async def _call(self, request: ServedRequest) -> Mapping[str, Any] | None:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str):
            raise InvalidParamsError("name is not a text.")
        if not isinstance(arguments, dict):
            raise InvalidParamsError("arguments is not an object.")
        if name in self._own_tools:
            return await self._permissions.answer(request)
        found = self._exposure.tool(name)
        if found is None:
            await self._reached(self.entries, LIST_SECONDS, CatalogKind.TOOLS)
            found = self._exposure.tool(name)
        if found is None:
            raise unknown_tool(name)
        entry, tool = found
        server = await self._lease(entry)
        self.calls.begin(request, AskedCall(entry, server, tool, arguments, self._questions(entry, request)))
        return None

    @property
    def _own_tools(self) -> Collection[str]:
        """The names of mcphost's own tools here."""
        return {APPROVE} if self.options.approve else set()

    @property
    def _sides(self) -> AnsweringSides:
        """The side that answers what servers ask."""
        profile = None if self.options.profile is None else self._context.config().profiles.get(self.options.profile)
        return AnsweringSides.of(self.options.questions, profile)

    def _questions(self, entry: str, request: ServedRequest) -> AgentQuestions:
        """The agent's answers to what this server asks in a call."""
        translation, sides = self._translation(self.server_of(entry), request), self._sides
        if sides.roots == "both" and self._context.instances.holder_of(self.server_of(entry)) is not None:
            sides = sides._replace(roots="mcphost")  # whose service then asks the agent, too
        return AgentQuestions(sides, translation, entry if len(self.entries) > 1 else "")

    async def _subscribe(self, request: ServedRequest) -> Json:
        uri = request.params.get("uri")
        if not isinstance(uri, str):
            raise InvalidParamsError("uri is not a text.")
        await self._subscriptions.begin(uri)
        return {}

    async def _unsubscribe(self, request: ServedRequest) -> Json:
        return {}  # what the session is subscribed to changes with this answer

    async def _lease(self, entry: str) -> str:
        """The server of an entry that this session uses now: the entry's own, or an instance."""
        options, agent, sides, declared = self.options, self._agent(), self._sides, self._declared
        by_agent = {kind: getattr(sides, kind) == "agent" for kind in ("elicitation", "sampling")}
        answered = {
            kind: as_dict(declared[kind]) if agent_answers and kind in declared else None
            for kind, agent_answers in by_agent.items()
            if getattr(sides, kind) != "mcphost"
        }
        roots = self._roots if sides.roots != "mcphost" and "roots" in declared else None
        both = sides.roots == "both"
        self._holder = Holder(self.number, agent.label, options.alone, answered, options.agent.given, roots, both)
        server = await self._context.instances.lease(entry, self._holder)
        if self._closed:
            self._context.instances.release(self._holder)
        self._context.instances.touch(server)
        self.shown.uses(entry, server)
        return server

    async def _roots(self) -> Sequence[Mapping[str, Any]]:
        """The agent's folders, for a server that asks outside of a call. Raises InputRefused."""
        request, asking = InputRequest("roots/list", {}), self._asking
        revision = NEWEST_HANDSHAKE if asking is None else asking.revision
        questions = AgentQuestions(self._sides, Translation(revision, revision))
        questions.request = asking.aside() if asking is not None and asking.over else asking
        return dicts_in((await questions.answer(request)).get("roots"))

    def server_of(self, entry: str) -> str:
        """The server of an entry that this session used last, if that is known by now; else the entry's own."""
        server = self.shown.session.servers.get(entry, entry)
        return entry if self._known.get(server) is None else server

    def _listed_by(self, entry: str) -> str:
        """The server whose lists the agent gets: the one that it uses, once that has listed everything."""
        server = self.server_of(entry)
        return server if self._known.has_listed(server) else entry

    def uses(self, server: str) -> bool:
        """True if this session uses this running server."""
        entry = entry_of(server)
        return entry in self.entries and self.server_of(entry) == server

    def hears(self, server: str) -> bool:
        """True if this session gets the log messages of this running server: it runs for this session, or for all."""
        instances = self._context.instances
        return self.uses(server) and (
            instances.holder_of(server) is not None or instances.share_of(entry_of(server)) == "all"
        )

    def _translation(self, server: str, request: ServedRequest) -> Translation:
        known = self._known.get(server) or self._known.get(entry_of(server))
        return Translation(request.revision if known is None else known.revision, request.revision)

    def _call_result(self, asked: AskedCall, request: ServedRequest, result: Mapping[str, Any]) -> Mapping[str, Any]:
        passed = self._translation(asked.server, request).tool_result(of_this_leg(result))
        return self._exposure.uris.in_result(asked.entry, passed)

    def _call_failure(self, asked: AskedCall, request: ServedRequest, error: ServerError) -> RpcError:
        lacking = error.code == ErrorCode.MISSING_CLIENT_CAPABILITY and _lacks(request, error)
        return self._translation(asked.server, request).error(request.method, failure_of(error), lacking=lacking)

    def _answer(self, request: ServedRequest, work: Coroutine[Any, Any, Mapping[str, Any] | None]) -> None:
        """Answer a request with the result of this work; None: something else answers it."""

        async def answered() -> None:
            try:
                if (result := await work) is not None:
                    request.finish(result)
            except RpcError as error:
                request.fail(error)
            except McphostError as error:
                request.fail(failure_of(error))
            except Exception as error:
                request.fail(RpcError(ErrorCode.INTERNAL_ERROR, str(internal_error(error))))

        task = self._start(answered(), f"serve {request.method}")
        request.on_cancel = task.cancel

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._context.background.start(work, name)


def _lacks(request: ServedRequest, error: ServerError) -> bool:
    """True if the agent itself does not declare what the server misses."""
    required = as_dict(as_dict(error.data).get("requiredCapabilities"))
    return any(name not in request.declaration.capabilities for name in required)
