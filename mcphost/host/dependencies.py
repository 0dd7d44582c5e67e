"""The parts that a host is built with, besides its configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcphost.config import Config, Values
from mcphost.config.state import StateStore
from mcphost.host.consent.questions import Approver
from mcphost.host.desktop import Open, no_browser
from mcphost.host.server_requests.folders import ResolveRoots, plain_roots
from mcphost.host.traffic.book import TrafficBook
from mcphost.lazy_dataclass import dataclass
from mcphost.transports.base import ProcessUsageReport, Transport

if TYPE_CHECKING:  # what is imported where it is needed
    from mcphost.auth.ports import IdentityPort, SignInPort
    from mcphost.config.calls import CallsFile
    from mcphost.host.models import ModelPort
    from mcphost.host.traffic.redactions import TrafficTarget


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The concrete parts that a host uses through ports and callables. Only the first three are needed."""

    open_transport: Callable[[Config, str], Awaitable[Transport]]
    """Returns the transport of a server, its references resolved. Raises ConfigError."""
    approver: Approver
    version: str
    store: StateStore | None = None
    """None: nothing is remembered between runs."""
    audit_path: Path | None = None
    history_path: Path | None = None
    """The database of past calls; None: they are not kept."""
    mask: Callable[[str], str] = field(default=lambda text: text)
    """Takes secrets out of a text."""
    traffic: TrafficBook | None = None
    """Where the transports that ``open_transport`` returns record their messages; None: nowhere."""
    traffic_target: TrafficTarget | None = None
    """The file to which all traffic of this run is written; None: it is kept in memory only."""
    answers: frozenset[str] = frozenset()
    """The server requests that the approver can answer: some of `SCREEN_KINDS`."""
    resolve_roots: ResolveRoots = plain_roots
    """The folders that a server's entry grants."""
    roots: Sequence[Path] = ()
    """Folders that every server of this run may know of."""
    chats_path: Path | None = None
    """The folder of chat transcripts; None: they are not kept."""
    open_calls: Callable[[Config], CallsFile] | None = None
    """Returns the file of saved calls that belongs to a configuration; None: no call can be saved."""
    models: ModelPort | None = None
    """Opens the language models of the configuration; None: no model is asked."""
    sign_in: Callable[[Config, str], Awaitable[SignInPort]] | None = None
    """Returns the sign-in port of a server. Raises ConfigError, SignInFailed. None: signing in is not possible."""
    identity: Callable[[Config, str], Awaitable[IdentityPort]] | None = None
    """Returns the port of an identity, likewise."""
    audit_sign_ins: Callable[[Callable[[Mapping[str, Any]], Awaitable[None]]], None] | None = None
    """Takes what writes an audit record before a sign-in without a person runs a command. Raises Declined."""
    open_url: Open = no_browser
    """Opens a URL in the browser; returns why it could not, or an empty text."""
    prefetch: bool = True
    """True to list a server's resources and prompts as soon as it is ready, False to wait until they are used."""
    begin_sign_ins: bool = True
    """True if an operation that needs a sign-in starts it."""
    measure: Callable[[int], ProcessUsageReport | None] | None = None
    """Returns the resource usage of a process group; called in a thread. None: it cannot be measured."""
    forget: Callable[[Config, str], Awaitable[Sequence[str]]] | None = None
    """Forgets what was learned of a server outside the host; returns what that was, in words."""
    program_values: Values | None = None
    """Finds the programs of configured servers, to compare them with those of agents. It never waits for a keychain."""
    close: Callable[[], Awaitable[None]] | None = None
    """Releases these parts; called when every server has ended."""
