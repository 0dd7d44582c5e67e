"""Where services report what happens."""

from __future__ import annotations

from collections.abc import Callable

from mcphost.host.audit import AuditWriter
from mcphost.host.events import EventBus
from mcphost.host.logs import LogBook
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Reporting:
    """The places for a service's reports: log lines about a server, audit records, and events for front ends."""

    logs: LogBook
    audit: AuditWriter
    bus: EventBus
    mask: Callable[[str], str]
    """Takes secrets out of a text that quotes a server. The logs and the audit log apply it themselves."""
