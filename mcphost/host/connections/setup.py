"""Creates a client as the configuration says, and checks what its session offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from mcphost.client.client import Client, Identity, RequestTimeouts, Session
from mcphost.client.observer import NotificationObserver
from mcphost.client.paging import ListLimits
from mcphost.client.requester import ClientLimits
from mcphost.client.server_requests import InputHandler
from mcphost.config import Limits, ServerConfig
from mcphost.errors import CapabilityMissing, ConfigError, McphostError
from mcphost.protocol.display import show_line
from mcphost.protocol.lifecycle.capabilities import ClientCapabilities
from mcphost.protocol.lifecycle.negotiation import Era
from mcphost.protocol.lifecycle.revisions import REVISIONS, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.headers import InvalidAnnotation, read_annotations
from mcphost.redaction import looks_secret
from mcphost.transports.base import ProcessReport, Transport


def new_client(
    transport: Transport,
    listener: NotificationObserver,
    identity: Identity,
    config: ServerConfig,
    limits: Limits,
    answers: tuple[InputHandler, ClientCapabilities],
    era: Era,
) -> Client:
    """A client for one connection, not yet open; ``answers`` is who answers what the server asks, and what it may.

    Raises ConfigError where only revisions are wanted that are not spoken.
    """
    handler, declared = answers
    return Client(
        transport,
        listener,
        identity,
        capabilities=declared.under,
        handler=handler,
        era=era,
        minimum=_oldest_accepted(config.minimum_version or ""),
        timeouts=default_timeouts(config),
        limits=ClientLimits(
            ListLimits(limits.list_pages, limits.list_items, limits.list_seconds),
            pending_requests=limits.pending_server_requests,
        ),
    )


def default_timeouts(config: ServerConfig) -> RequestTimeouts:
    """For every request to a server but its tool calls, which may have their own."""
    return RequestTimeouts(config.tool_timeout_sec, config.tool_timeout_max_sec)


def _oldest_accepted(minimum_version: str) -> Revision:
    """The oldest revision that is not older than this; versions are dates."""
    for revision in REVISIONS:
        if revision.version >= minimum_version:
            return revision
    newest = REVISIONS[-1].version
    raise ConfigError(f'minimum_version = "{minimum_version}" is newer than all that is spoken here, up to {newest}')


def check_required(session: Session, config: ServerConfig) -> None:
    """Raise CapabilityMissing where the server does not offer what the user said it must."""
    for needed in config.required_capabilities:
        if not isinstance(session.server.capabilities.get(needed), dict):
            raise CapabilityMissing("required_capabilities", needed)


async def ask_for_level(
    client: Client, session: Session, level: LogLevel | None, note: Callable[[LogLevel, str], None]
) -> LogLevel | None:
    """Ask for log messages of ``level`` and above; the level that holds from now on, None where none was asked for."""
    if level is None or "logging" not in session.server.capabilities:
        return level
    try:
        await client.set_log_level(level)
    except McphostError as error:
        note(LogLevel.WARNING, f"the log level {level.wire} was not taken: {error}")
        return None
    return level


def masked(report: ProcessReport, mask: Callable[[str], str]) -> ProcessReport:
    """A process report with the secrets in its command line and stderr masked."""
    return replace(report, stderr_tail=tuple(map(mask, report.stderr_tail)), command=tuple(map(mask, report.command)))


def secrets_in_headers(tools: Iterable[Tool]) -> Iterator[str]:
    """A sentence for each argument that looks secret and that its tool wants in an HTTP header, too."""
    for tool in tools:
        with suppress(InvalidAnnotation):
            for header in read_annotations(tool.input_schema):
                if looks_secret(header.path[-1]) or looks_secret(header.name):
                    argument = show_line(".".join(header.path), 80)
                    name = show_line(tool.name, 80)
                    yield f"{name}: its argument {argument} looks secret, and is repeated in an HTTP header"
