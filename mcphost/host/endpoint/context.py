"""The choices for one session, and the services that all sessions use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from mcphost.config import Config
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.service import AgentService
from mcphost.host.audited_requests import AuditedRequests
from mcphost.host.background import BackgroundTasks
from mcphost.host.connections.instances import Instances
from mcphost.host.connections.servers import Servers
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.reporting import Reporting
from mcphost.host.resources import ResourceService
from mcphost.host.server_requests.roots import RootsService
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.host.tool_calls.service import ToolCallService
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """The choices of a command line, or of an address, for one session; fixed when it opens."""

    agent: AgentFacts
    servers: tuple[str, ...] = ()
    """Entries of the configuration by name; none: all that are enabled."""
    profile: str | None = None
    questions: Literal["agent", "here"] = "agent"
    """The side that answers what servers ask."""
    approve: bool = False
    """True to offer the tool that an agent asks for permission."""
    alone: bool = False
    """True if the host serves this session only, so that the servers' own connections are the session's."""


@dataclass(frozen=True, slots=True)
class EndpointContext:
    """The services of the host that sessions use."""

    version: str
    config: Callable[[], Config]
    servers: Servers
    instances: Instances
    roots: RootsService
    agents: AgentService
    consent: ConsentBroker
    tool_calls: ToolCallService
    calls: CallRegistry
    requests: AuditedRequests
    resources: ResourceService
    background: BackgroundTasks
    reporting: Reporting
