"""Resolves the values of configuration entries in a thread, since a keychain may take long or never answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from mcphost.config import Config, ResolvedServer, Values, resolve_server
from mcphost.config.loading import placed
from mcphost.errors import ConfigError, UnresolvedReference

LOOKUP_SECONDS: Final = 60.0
"""Seconds to resolve a server's values; a keychain may ask its owner first."""

_T = TypeVar("_T")


async def resolve_in_thread(
    config: Config, values: Values, name: str, prepare: Callable[[ResolvedServer], _T]
) -> tuple[ResolvedServer, _T]:
    """Resolve the references of a server's entry, and call ``prepare`` with it; return both. Raises ConfigError.

    Both happen in one thread, since keychains and imports take time.
    """

    def work() -> tuple[ResolvedServer, _T]:
        server = _resolved(config, values, name)
        return server, prepare(server)

    return await in_lookup_thread(work, f"servers.{name}")


async def in_lookup_thread(work: Callable[[], _T], entry: str) -> _T:
    """Run ``work`` in a thread; ``entry`` names it in the error. Raises ConfigError after `LOOKUP_SECONDS`."""
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            return await _in_daemon_thread(work)
    except TimeoutError:
        raise ConfigError(f"{entry}: its values were not found within {LOOKUP_SECONDS:g} s") from None


def _resolved(config: Config, values: Values, name: str) -> ResolvedServer:
    try:
        return resolve_server(config, values, name)
    except UnresolvedReference as error:
        raise placed(error, config, name) from None


async def _in_daemon_thread(work: Callable[[], _T]) -> _T:
    """Run ``work`` in a daemon thread: a keychain may never answer, and must not block the exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop was closed
            return

    threading.Thread(target=run, name="look up values", daemon=True).start()
    return await done
