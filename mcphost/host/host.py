"""The host: every configured server, and the services that use them.

The app runs inside it (``async with Host(...)``), so that leaving the app, in whatever way, stops every server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from mcphost.client.client import Identity
from mcphost.config import Changes, Config, Values, compare
from mcphost.host.audit import AuditLog, AuditWriter
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.background import BackgroundTasks
from mcphost.host.catalog import Catalog
from mcphost.host.chat.context import ChatContext
from mcphost.host.chat.preferences import ChatPreferences
from mcphost.host.chat.service import ChatService
from mcphost.host.connections.connection import Connection
from mcphost.host.connections.context import ConnectionContext
from mcphost.host.connections.eras import EraMemory
from mcphost.host.connections.process_usage import ProcessUsage
from mcphost.host.connections.servers import Servers
from mcphost.host.connections.state import same_for_connection
from mcphost.host.consent.approval_store import ApprovalStore
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.dependencies import Dependencies
from mcphost.host.events import EventBus, Logged, ServersChanged, TrafficAdded
from mcphost.host.history.call_history import CallHistory
from mcphost.host.logs import LogBook, LogBudget
from mcphost.host.reporting import Reporting
from mcphost.host.resources import CompletionService, ResourceService
from mcphost.host.server_requests.elicitation import ElicitationService
from mcphost.host.server_requests.pending import PendingRequests
from mcphost.host.server_requests.request_kinds import ROOTS, SAMPLING, WRITING
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.server_requests.service import ServerRequestService
from mcphost.host.sign_in.retry import SignInRetry
from mcphost.host.sign_in.service import SignInService
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.tool_calls.repeated_calls import RepeatedCallService
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.host.tool_calls.started_tasks import StartedTasks
from mcphost.host.tool_calls.tasks import TaskService
from mcphost.host.traffic.book import TrafficBook, TrafficBudget

if TYPE_CHECKING:  # imported when they are first used: most runs need none of them
    from mcphost.host.agents.service import AgentService
    from mcphost.host.bench.measurement import BenchService
    from mcphost.host.comparison.observation import ComparisonService
    from mcphost.host.connections.instances import Holder, Instances, SharingReport
    from mcphost.host.endpoint.service import EndpointService
    from mcphost.host.models import ModelCatalog
    from mcphost.host.sampling.service import SamplingService
    from mcphost.host.saved_calls import SavedCallService
    from mcphost.host.sign_in.identities import IdentityService
    from mcphost.host.skills.service import SkillService
    from mcphost.host.tool_calls.copies import CallCopies
    from mcphost.host.traffic.file import TrafficFile
    from mcphost.host.traffic.resending import Resender
    from mcphost.host.verification.service import VerificationService

_SIGN_IN_FIELDS: Final = frozenset(
    {"url", "oauth", "http_headers", "env_http_headers", "bearer_token_env_var", "enabled"}
)
"""Settings in which a sign-in that runs must not change under a person's eyes."""


class Host:
    """All configured servers and the services that use them. Use as ``async with``; entering may raise ConfigError."""

    def __init__(self, config: Config, dependencies: Dependencies) -> None:
        self.config = config
        self._dependencies = given = dependencies
        mask = given.mask
        self._writes = {SAMPLING, WRITING} <= given.answers
        self._background = BackgroundTasks()
        self.bus = EventBus()
        self.catalog = Catalog(config.servers)
        self.servers = Servers(self._background)
        self._calls = CallRegistry()
        self.logs = LogBook(time.time, mask, self._log_added, self._calls.newest_sent)
        self.traffic = given.traffic or TrafficBook(mask)
        self.traffic.on_added = self._traffic_added
        self.traffic.running_call = self._calls.newest_sent
        self.traffic.identities = lambda: {name: each.identity for name, each in self.config.servers.items()}
        self._traffic_file: TrafficFile | None = None
        self.process_usage = ProcessUsage(given.measure, self._config, self.logs.warn)
        self._audit_log = AuditLog(given.audit_path, mask)
        audit = AuditWriter(self._config, self._audit_log, self.bus.alarm)
        if given.audit_sign_ins is not None:
            given.audit_sign_ins(audit.before)
        self._reporting = reporting = Reporting(self.logs, audit, self.bus, mask)
        self._approvals = ApprovalStore(given.store, self._background, self.bus)
        self.consent = ConsentBroker(self._config, self._approvals, given.approver, reporting)
        self.sign_ins = SignInService(
            given.sign_in, self._config, self.servers, given.approver, given.open_url, self._background, reporting
        )
        sign_in_retry = SignInRetry(self.sign_ins, begins=given.sign_in is not None and given.begin_sign_ins)
        self._requests = AuditedRequests(self.servers, sign_in_retry, reporting)
        self.resources = ResourceService(self.servers, self.catalog, self._requests)
        self.completion = CompletionService(self.servers)
        self.pending_requests = PendingRequests(given.approver, self._calls, reporting)
        self.elicitation = ElicitationService(
            self._config, self.pending_requests, reporting, given.open_url, given.answers
        )
        self.roots = RootsService(
            self._config,
            given.resolve_roots,
            given.store,
            self.pending_requests,
            self.servers,
            self._calls,
            reporting,
            self._background,
            self._holder_of,
            asks=ROOTS in given.answers,
        )
        self.history = CallHistory(given.history_path, self._config, self._calls, self.bus, mask)
        self._started_tasks = StartedTasks(given.store, self._warn)
        self.tool_calls = ToolCallService(
            self._calls,
            self.servers,
            self.catalog,
            self.consent,
            self.elicitation,
            sign_in_retry,
            self._started_tasks,
            self._background,
            reporting,
        )
        self.repeated_calls = RepeatedCallService(self.tool_calls.begin, self._calls.forget, self._background, self.bus)
        self.tasks = TaskService(self.servers, self.tool_calls, self._requests, self._started_tasks)
        self.chats = ChatService(
            ChatContext(
                config=self._config,
                open_models=lambda: self.models,
                catalog=self.catalog,
                servers=self.servers,
                roots=self.roots,
                resources=self.resources,
                open_skills=lambda: self.skills,
                tool_calls=self.tool_calls,
                consent=self.consent,
                approver=given.approver,
                preferences=ChatPreferences(given.store, self.bus.alarm),
                transcript_folder=given.chats_path,
                background=self._background,
                reporting=reporting,
            )
        )
        self._eras = EraMemory(given.store, date.today, self._warn)
        self._server_requests = ServerRequestService(
            self._config,
            self.pending_requests,
            self._calls,
            self.roots,
            self.elicitation,
            lambda: self.sampling,
            self._holder_of,
            self._sharers_of,
            writes=self._writes,
        )
        self._connection_context = ConnectionContext(
            config=self._config,
            open_transport=given.open_transport,
            identity=Identity(given.version),
            eras=self._eras,
            catalog=self.catalog,
            calls=self._calls,
            consent=self.consent,
            server_requests=self._server_requests,
            reporting=reporting,
            disconnected=self.traffic.disconnected,
            served_from_cache=self.traffic.served_from_cache,
            server_logged=self._server_logged,
            resource_updated=self._resource_updated,
            prefetch=given.prefetch,
        )
        self._applying = asyncio.Lock()

    @cached_property
    def agents(self) -> AgentService:
        """The agents that reach their servers through a tap or gate, or are served here."""
        from mcphost.host.agents.gated_calls import GatedCalls
        from mcphost.host.agents.server_questions import AgentServerQuestions
        from mcphost.host.agents.service import AgentService

        given = self._dependencies
        gated = GatedCalls(self.consent, self._config, given.program_values or Values({}))
        questions = AgentServerQuestions(
            self._config, gated, self.elicitation, lambda: self.sampling, given.resolve_roots
        )
        return AgentService(gated, questions, self.traffic, self._calls, self.consent.asks, self._background, self.bus)

    @cached_property
    def instances(self) -> Instances:
        """The servers that run for one agent or session."""
        from mcphost.host.connections.instances import Instances

        return Instances(
            lambda: self.config,
            self.servers,
            self._eras,
            self._calls,
            self.process_usage,
            self.logs,
            self.bus,
            self._requests.running,
            self._add,
            self._remove,
        )

    @cached_property
    def endpoint(self) -> EndpointService:
        """The sessions of agents that mcphost serves."""
        from mcphost.host.endpoint.service import EndpointContext, EndpointService

        return EndpointService(
            EndpointContext(
                version=self._dependencies.version,
                config=lambda: self.config,
                servers=self.servers,
                instances=self.instances,
                roots=self.roots,
                agents=self.agents,
                consent=self.consent,
                tool_calls=self.tool_calls,
                calls=self._calls,
                requests=self._requests,
                resources=self.resources,
                background=self._background,
                reporting=self._reporting,
            )
        )

    @cached_property
    def identities(self) -> IdentityService:
        """The accounts at identity providers."""
        from mcphost.host.sign_in.identities import IdentityService

        given = self._dependencies
        return IdentityService(given.identity, self._config, self.servers, self.sign_ins, self._reporting)

    @cached_property
    def models(self) -> ModelCatalog:
        """The language models that can be asked in this run; the user too, where there is a screen to write on."""
        from mcphost.host.models import ModelCatalog

        return ModelCatalog(self._config, self._dependencies.models, hand=self._writes)

    @cached_property
    def sampling(self) -> SamplingService:
        """Answers servers that ask for a language model."""
        from mcphost.host.sampling.service import SamplingService

        return SamplingService(
            self._config,
            self.models,
            self.servers,
            self._calls,
            self.pending_requests,
            self._reporting,
            asks=SAMPLING in self._dependencies.answers,
        )

    @cached_property
    def skills(self) -> SkillService:
        """Finds, reads, verifies and loads skills."""
        from mcphost.host.skills.service import SkillService

        return SkillService(self.servers, self.catalog, self.consent.skills, self._requests, self._reporting)

    @cached_property
    def saved_calls(self) -> SavedCallService:
        """The calls that have a name."""
        from mcphost.host.saved_calls import SavedCallService

        return SavedCallService(self._dependencies.open_calls, self._config, self._dependencies.mask)

    @cached_property
    def copies(self) -> CallCopies:
        """Writes tool calls as texts to copy."""
        from mcphost.host.tool_calls.copies import CallCopies

        return CallCopies(self.servers, self.catalog, self.traffic, self._dependencies.mask)

    @cached_property
    def comparison(self) -> ComparisonService:
        """Observes two servers to compare them."""
        from mcphost.host.comparison.observation import ComparisonService

        return ComparisonService(self.servers, self.tool_calls, self.traffic, self._dependencies.mask)

    @cached_property
    def bench(self) -> BenchService:
        """Measures how fast servers answer."""
        from mcphost.host.bench.measurement import BenchService

        return BenchService(self.servers, self.tool_calls, self.process_usage, self._dependencies.mask)

    @cached_property
    def verification(self) -> VerificationService:
        """Compares the answers of servers with recorded or expected ones."""
        from mcphost.host.verification.service import VerificationService

        return VerificationService(
            self._config,
            self.servers,
            self.catalog,
            self.consent,
            self.tool_calls,
            self._requests,
            self._server_requests,
            self._dependencies.mask,
            self.apply,
        )

    @cached_property
    def resender(self) -> Resender:
        """Sends requests of the traffic again."""
        from mcphost.host.traffic.resending import Resender

        return Resender(self.servers, self.tool_calls, self._requests, self._background)

    async def __aenter__(self) -> Self:
        await self._approvals.load()
        await self._eras.load()
        await self._started_tasks.load()
        await self.roots.load(self._dependencies.roots)
        await self.chats.load()
        self._record_traffic()
        await self._background.open()
        for name in self.config.servers:
            self._add(name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.chats.stop()
        self.repeated_calls.stop_all()
        for call in self.tool_calls.running():
            if self.tasks.outlives(call):
                call.leave()
            else:
                call.cancel()
        self.sign_ins.cancel()
        if self._has_instances:
            self.instances.close()
        self.servers.cancel()
        if "agents" in self.__dict__:  # else no agent ever came
            self.agents.close()
        if "endpoint" in self.__dict__:  # likewise
            self.endpoint.close()
        try:
            await self._background.close()
        finally:
            if self._dependencies.close is not None:
                await self._dependencies.close()
            await self._approvals.save()
            await self._audit_log.aclose()
            await self.history.aclose()
            await self.chats.aclose()
            if self._traffic_file is not None:
                await self._traffic_file.aclose()

    async def apply(self, config: Config) -> Changes:
        """Go over to another configuration: what did not change goes on undisturbed.

        Returns once the servers that are no longer configured have ended.
        """
        async with self._applying:
            before, changes = self.config, compare(self.config, config)
            self.config = config
            gone = [supervisor for name in changes.removed for supervisor in self._remove_all(name)]
            for name, fields in changes.changed.items():
                self._set_budgets(name)
                if not _SIGN_IN_FIELDS.isdisjoint(fields):
                    self.sign_ins.cancel(name)
                if same_for_connection(before.limits_for(name), config.limits_for(name)):
                    fields = tuple(field for field in fields if field != "limits")
                self.servers[name].reconfigured(fields)
                if self._has_instances:
                    self.instances.reconfigured(name, fields)
            for name in changes.added:
                self._add(name)
            self.servers.put_in_order(self._config().servers)
            self.catalog.put_in_order(self._config().servers)
            self.roots.reconfigured([*changes.removed, *changes.changed, *changes.added])
            for task in gone:
                task.cancel()
            if gone:
                await asyncio.wait(gone)
            self.bus.publish(ServersChanged())
            return changes

    async def forget(self, server: str) -> Sequence[str]:
        """Sign out, and forget all that was learned of this server; return what that was, in words.

        Raises UnknownName, ConfigError where a reference cannot be resolved, or SignInFailed.
        """
        connection, forgotten = self.servers[server], list[str]()
        if connection.config.signs_in and self.sign_ins.possible:
            forgotten.append(await self.sign_ins.sign_out(server))
        tools, skills = self.consent.forget(server)
        for number, kind in ((tools, "tools"), (skills, "skills")):
            if number:
                forgotten.append(f"what you allowed or saw of {number} of its {kind}")
        if "skills" in self.__dict__:  # else none was read
            self.skills.forget(server)
        if await self.roots.ask_again(server):
            forgotten.append("that you share no folder with it")
        self.sign_ins.reset_step_ups(server)
        if self._dependencies.forget is not None:
            forgotten.extend(await self._dependencies.forget(self.config, server))
        return tuple(forgotten)

    def _log_added(self) -> None:
        self.bus.publish(Logged())

    def _server_logged(self, server: str, params: Mapping[str, Any]) -> None:
        if "endpoint" in self.__dict__:  # else no agent ever came
            self.endpoint.server_logged(server, params)

    def _resource_updated(self, server: str, uri: str) -> None:
        if "endpoint" in self.__dict__:
            self.endpoint.resource_updated(server, uri)

    def _traffic_added(self) -> None:
        self.bus.publish(TrafficAdded())

    def _warn(self, text: str) -> None:
        self.logs.warn("", text)

    def sharing(self, server: str) -> SharingReport | None:
        """Report how agents share this server; None while none has come in this run. Raises UnknownName."""
        return self.instances.report(server) if self._has_instances else None

    def _config(self) -> Config:
        """The configuration with what runs for single agents, as the connections and services need it."""
        return self.instances.config if self._has_instances else self.config

    @property
    def _has_instances(self) -> bool:
        return "instances" in self.__dict__  # else no agent ever came

    def _sharers_of(self, server: str) -> Sequence[Holder]:
        return self.instances.sharers(server) if self._has_instances else ()

    def _holder_of(self, server: str) -> Holder | None:
        return self.instances.holder_of(server) if self._has_instances else None

    def _add(self, name: str) -> None:
        self._set_budgets(name)
        self.catalog.keep(name, ())
        self.servers.add(Connection(name, self._connection_context))

    def _remove_all(self, name: str) -> Sequence[asyncio.Task[None]]:
        """Remove a server and its instances."""
        self.sign_ins.cancel(name)
        instances = self.instances.removed(name) if self._has_instances else ()
        return [self._remove(name), *instances]

    def _remove(self, name: str) -> asyncio.Task[None]:
        self.catalog.forget(name)
        self.roots.forget(name)
        return self.servers.remove(name)

    def _set_budgets(self, name: str) -> None:
        limits = self.config.limits_for(name)
        self.logs.set_budget(name, LogBudget(limits.log_lines, limits.log_bytes, limits.log_lines_per_second))
        self.traffic.set_budget(name, TrafficBudget(limits.traffic_frames, limits.traffic_bytes))

    def _record_traffic(self) -> None:
        target = self._dependencies.traffic_target
        if target is None:
            return
        from mcphost.host.traffic.file import TrafficFile

        facts = self.traffic.facts(target.recorded_by, self.config.servers, target.seen)
        self._traffic_file = TrafficFile(target, facts, self._dependencies.mask, self.bus.alarm)
        self._traffic_file.open(self.traffic)
