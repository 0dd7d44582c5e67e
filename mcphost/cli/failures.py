"""Why a server, a list or an item is missing: as a sentence for people and as an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from mcphost.cli.output import Exit, exit_for
from mcphost.errors import ConfigError, ListingFailed, McphostError, ServerNotReady, UnknownName
from mcphost.host.catalog import CatalogKind
from mcphost.host.failure_advice import next_step
from mcphost.host.logs import LogSource
from mcphost.host.stderr_excerpt import most_telling

if TYPE_CHECKING:
    from mcphost.host.connections.connection import Connection
    from mcphost.host.host import Host

BrokenServers = Mapping[str, ConfigError]
"""Servers that cannot run as configured, and why; found before or while starting them."""

QUOTED: Final = 300
"""Characters quoted of what a dead server wrote."""

LEFT_OUT_REMARKS: Final = 20
"""Left-out items of one list that are named on stderr; a hostile list has thousands."""


def failure(host: Host, name: str, broken: BrokenServers, *, called: str = "") -> McphostError:
    """The error that says why this server is not ready; ``called`` is the name to show, where that is another."""
    text = f"{called or name}: {reason_of(host, host.servers[name])}"
    return ConfigError(text) if name in broken else ServerNotReady(text)


def listing_failure(host: Host, name: str, kind: CatalogKind) -> ListingFailed | None:
    """The error that says why this list of the server failed; None where it did not."""
    connection = host.servers[name]
    listing = connection.listings.of_kind(kind)
    if listing.failure is None:
        return None
    advice = next_step(listing.refusal, name, connection.config) if listing.refusal else ""
    words = f"{name}: {connection.notice_of(kind)}{f'. {advice}' if advice else ''}"
    return ListingFailed(words, timed_out=listing.failure.timed_out)


def why_unknown(host: Host, name: str, kind: CatalogKind, item: str, error: UnknownName) -> McphostError:
    """The error that says best why the server has no such item; ``error`` where nothing more is known."""
    if failed := listing_failure(host, name, kind):
        return failed
    rejected = host.servers[name].listings.of_kind(kind).rejected
    found = next((each for each in rejected if each.name == item), None)
    return error if found is None else UnknownName(f"{name}: {kind.words_for(found)}")


def left_out(host: Host, name: str, kind: CatalogKind, *, called: str = "") -> Iterator[str]:
    """A sentence for each item of a list that cannot be used, except those that the configuration excludes."""
    called = called or name
    rejected = [each for each in host.servers[name].listings.of_kind(kind).rejected if not each.by_configuration]
    yield from (f"{called}: {kind.words_for(each)}" for each in rejected[:LEFT_OUT_REMARKS])
    if len(rejected) > LEFT_OUT_REMARKS:
        yield f"{called}: left out {len(rejected) - LEFT_OUT_REMARKS} more {kind.value}"
    if kind is CatalogKind.TOOLS:
        tools = [each.tool for each in host.catalog.tools(name)]
        yield from (f"{called}: {tool.name} is refused: {tool.refusal}" for tool in tools if tool.refusal)


def with_stderr(host: Host, name: str, reason: str) -> str:
    """``reason`` with what the server wrote to stderr about it."""
    said = most_telling([record.text for record in host.logs.of_server(name) if record.source is LogSource.STDERR])
    return f"{reason}; it said: {said[:QUOTED]}" if said else reason


def unselected(broken: BrokenServers, names: Sequence[str]) -> list[tuple[str, ConfigError]]:
    """The broken servers that are not among ``names``."""
    return [(name, error) for name, error in broken.items() if name not in names]


def reason_of(host: Host, connection: Connection) -> str:
    """Why a connection failed, with what it wrote to stderr, which mostly holds the true reason."""
    reason, odd = connection.reason or f"is {connection.state.value}", connection.violations
    if odd.stray and not connection.ready:
        wrote = "it sent" if connection.config.url else "on stdout it wrote"
        first = f", first: {odd.first_stray[:QUOTED]}" if odd.first_stray else ""
        reason += f"; {wrote} something that is not a message ({odd.stray} times){first}"
    words = with_stderr(host, connection.name, reason)
    return f"{words}. {connection.advice}" if connection.advice else words


def worst_exit(failures: Sequence[McphostError]) -> Exit:
    """The exit code for several failures; a configuration error wins, since the user can correct it."""
    return min(map(exit_for, failures), default=Exit.DONE)
