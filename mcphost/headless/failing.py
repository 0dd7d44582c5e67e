"""Why a server is not there, in words for people, and how the process exits for it.

Knows a connection's state. Refuses to know which command wanted the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcphost.errors import ConfigError, McphostError, ServerNotReady
from mcphost.headless.output import Exit, exit_for
from mcphost.host.connection import Connection
from mcphost.host.host import Host
from mcphost.host.logs import Source

Broken = Mapping[str, ConfigError]
"""Servers that cannot run as they are configured, and why: known beforehand, or found out when one was started."""

LAST_WORDS = 200
"""Characters of a dead server's last line on stderr."""


def failure(host: Host, name: str, broken: Broken) -> McphostError:
    """Why this server is not ready: the error that says how to exit, in words that name the server."""
    text = f"{name}: {reason_of(host, host.server(name))}"
    return ConfigError(text) if name in broken else ServerNotReady(text)


def failures_of(host: Host, names: Sequence[str], broken: Broken) -> list[McphostError]:
    """Why each of these servers that is not ready is not, and what else cannot run as it is configured."""
    down: list[McphostError] = [failure(host, name, broken) for name in names if not host.server(name).ready]
    return [*down, *(error for _, error in others(broken, names))]


def with_last_words(host: Host, name: str, reason: str) -> str:
    """The reason, and the last line that the server wrote on stderr."""
    said = [record.text for record in host.logs.of(name) if record.source is Source.STDERR]
    last = next((text.strip() for text in reversed(said) if text.strip()), "")
    return f"{reason}; it said: {last[:LAST_WORDS]}" if last else reason


def others(broken: Broken, names: Sequence[str]) -> list[tuple[str, ConfigError]]:
    """What cannot run as it is configured and is none of these servers."""
    return [(name, error) for name, error in broken.items() if name not in names]


def reason_of(host: Host, connection: Connection) -> str:
    """Why it failed, with the last thing it said on stderr: that is mostly the true reason."""
    reason, odd = connection.reason or f"is {connection.state.value}", connection.irregularities
    if odd.stray and not connection.ready:
        reason += f"; on stdout it wrote what is no message ({odd.stray} times), first: {odd.first_stray[:LAST_WORDS]}"
    words = with_last_words(host, connection.name, reason)
    return f"{words}. {connection.advice}" if connection.advice else words


def worst(failures: Sequence[McphostError]) -> Exit:
    """A mistake in the configuration before anything else: it is for the user to mend."""
    return min(map(exit_for, failures), default=Exit.DONE)
