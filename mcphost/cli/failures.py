"""Why a server, or some of what it offers, is not there: in words for people, and how the process exits for it.

Knows a connection's state. Refuses to know which command wanted the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mcphost.cli.output import Exit, exit_for
from mcphost.errors import ConfigError, ListingFailed, McphostError, ServerNotReady, UnknownName
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.connection import Connection
from mcphost.host.host import Host
from mcphost.host.logs import LogSource

Broken = Mapping[str, ConfigError]
"""Servers that cannot run as they are configured, and why: known beforehand, or found out when one was started."""

LAST_WORDS = 200
"""Characters of a dead server's last line on stderr."""

LEFT_OUT_REMARKS: Final = 20
"""Items left out of one list that stderr names: a hostile list has thousands."""


def failure(host: Host, name: str, broken: Broken) -> McphostError:
    """Why this server is not ready: the error that says how to exit, in words that name the server."""
    text = f"{name}: {reason_of(host, host.server(name))}"
    return ConfigError(text) if name in broken else ServerNotReady(text)


def listing_failure(host: Host, name: str, kind: CatalogKind) -> ListingFailed | None:
    """Why it is not known what this server offers of this kind, in words that name the server."""
    connection = host.server(name)
    failed = connection.offers.of(kind).failure
    return failed and ListingFailed(f"{name}: {connection.notice_of(kind)}", timed_out=failed.timed_out)


def why_unknown(host: Host, name: str, kind: CatalogKind, item: str, error: UnknownName) -> McphostError:
    """Why this server has no such item, where more is known of it than ``error`` says."""
    if failed := listing_failure(host, name, kind):
        return failed
    rejected = host.server(name).offers.of(kind).rejected
    found = next((each for each in rejected if each.name == item), None)
    return error if found is None else UnknownName(f"{name}: {kind.words_for(found)}")


def left_out(host: Host, name: str, kind: CatalogKind) -> Iterator[str]:
    """A sentence for each item of a list that cannot be used, unless the configuration excludes it."""
    rejected = [each for each in host.server(name).offers.of(kind).rejected if not each.by_configuration]
    yield from (f"{name}: {kind.words_for(each)}" for each in rejected[:LEFT_OUT_REMARKS])
    if len(rejected) > LEFT_OUT_REMARKS:
        yield f"{name}: left out {len(rejected) - LEFT_OUT_REMARKS} more {kind.value}"
    if kind is CatalogKind.TOOLS:
        tools = [each.tool for each in host.catalog.tools(name)]
        yield from (f"{name}: {tool.name} is refused: {tool.refusal}" for tool in tools if tool.refusal)


def with_last_words(host: Host, name: str, reason: str) -> str:
    """The reason, and the last line that the server wrote on stderr."""
    said = [record.text for record in host.logs.of(name) if record.source is LogSource.STDERR]
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
