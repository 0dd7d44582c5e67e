"""What a host is built with: everything it is given instead of knowing it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mcphost.config import Config
from mcphost.host.consent.approvals import StateStore
from mcphost.host.consent.questions import Approver
from mcphost.host.desktop import Open, no_browser
from mcphost.host.server_requests.roots import Resolve, plain_roots
from mcphost.host.traffic.book import TrafficBook
from mcphost.transports.base import ProcessUsageReport, Transport

if TYPE_CHECKING:  # what is imported where it is needed
    from mcphost.auth.ports import SignInPort
    from mcphost.host.models import ModelPort


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a host is built with, besides its configuration."""

    open_transport: Callable[[Config, str], Awaitable[Transport]]
    """Makes the transport of a server, its references resolved. Raises ConfigError."""
    approver: Approver
    version: str
    store: StateStore | None = None
    """None: nothing is remembered between runs."""
    audit_path: Path | None = None
    mask: Callable[[str], str] = field(default=lambda text: text)
    """Takes secrets out of a text."""
    traffic: TrafficBook | None = None
    """Where the transports that ``open_transport`` makes tell what passes; None: they tell nobody."""
    traffic_path: Path | None = None
    """The file that takes all traffic of this run; None: it is kept in memory only."""
    answers: frozenset[str] = frozenset()
    """What the approver can answer of what servers ask: some of `mcphost.host.server_requests.request.SCREEN`."""
    resolve_roots: Resolve = plain_roots
    """The folders that a server's entry grants."""
    roots: Sequence[Path] = ()
    """Folders that every server of this run may know of."""
    chats_path: Path | None = None
    """The folder of conversations; None: they are not kept."""
    models: ModelPort | None = None
    """Who opens the language models of the configuration; None: none is asked."""
    sign_in: Callable[[Config, str], Awaitable[SignInPort]] | None = None
    """Who signs a server in, its references resolved. Raises ConfigError, SignInFailed. None: signs in nowhere."""
    open_url: Open = no_browser
    """Opens the page of a sign-in."""
    begin_sign_ins: bool = True
    """Does what a server refuses for want of a sign-in begin one by itself?"""
    measure: Callable[[int], ProcessUsageReport | None] | None = None
    """What a process group takes of the machine; called in a thread. None: nobody can say."""
    forget: Callable[[Config, str], Awaitable[Sequence[str]]] | None = None
    """Forgets what others than the host learned of a server; what that was, in words."""
    close: Callable[[], Awaitable[None]] | None = None
    """Ends what these parts began; called when every server has ended."""
