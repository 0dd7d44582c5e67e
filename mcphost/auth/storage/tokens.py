"""Stores the credentials of each server: in the keychain, or in memory for this run if the keychain cannot be used.

The keychain is read once for each server, and again before changes, which other mcphost processes may have made too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

from pydantic import ValidationError

from mcphost.auth.storage.credentials import Credentials
from mcphost.auth.storage.keychain import Keychain, KeychainUnusable, NoKeychain

SERVICE: Final = "mcphost-oauth"
"""Differs from the service that ``${keyring:NAME}`` reads, so that no configuration can name a token."""

KEYCHAIN_PAUSE: Final = 15.0
"""Seconds after a failure in which the keychain is not used, so that calls do not wait for it each time."""

Lock = Callable[[str], AbstractAsyncContextManager[None]]
"""Keeps other mcphost processes from changing one server's item; may raise ConfigError."""

_T = TypeVar("_T")


@asynccontextmanager
async def no_lock(server: str) -> AsyncIterator[None]:
    """For a run that shares no storage with others."""
    yield


class TokenStore:
    """The credentials of all servers. ``learn`` is called with each secret as soon as it is known, to mask it.

    ``clock`` is monotonic, in seconds.
    """

    def __init__(
        self,
        keychain: Keychain | None,
        learn: Callable[[str], None],
        lock: Lock = no_lock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keychain, self._learn, self._lock, self._clock = keychain, learn, lock, clock
        self._known: dict[str, Credentials] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._unsaved: set[str] = set()
        """Servers whose latest credentials are not in the keychain."""
        self._doubtful: set[str] = set()
        """Servers whose credentials the keychain did not give again: another process may have changed them."""
        self._not_before = 0.0
        self.problem = "" if keychain else "mcphost is set to use no keychain"
        """Why the keychain was not used the last time; empty if it was."""

    def place(self, server: str) -> str:
        """Where the tokens of this server are stored, in words."""
        if self._keychain is None or server in self._unsaved:
            return f"in memory until mcphost ends: {self.problem or 'the keychain did not take them'}"
        return f"in the keychain ({self._keychain.name})"

    def unread(self, server: str) -> str:
        """Why the keychain's item for this server could not be read; empty if it was, or if there is no keychain."""
        read = server in self._known and server not in self._doubtful
        return "" if self._keychain is None or read else self.problem

    async def read(self, server: str, *, again: bool = False) -> Credentials:
        """The credentials of ``server``. Reads the keychain once; with ``again``, once more."""
        if server in self._known and not again:
            return self._known[server]
        async with self._turn(server):
            return await self._looked_up(server, to_change=False)

    @asynccontextmanager
    async def changing(self, server: str) -> AsyncIterator[Credentials]:
        """Lock this server's item against all other tasks and processes, and read it again, see `unread`.

        Raises ConfigError if another mcphost does not release it in time.
        """
        async with self._turn(server), self._lock(server):
            yield await self._looked_up(server, to_change=True)

    async def write(self, server: str, credentials: Credentials) -> bool:
        """Replace the credentials, inside `changing`. False: there is a keychain, but it did not take them."""
        self._keep(server, credentials)
        await self._save(server)
        return self._keychain is None or server not in self._unsaved

    def _turn(self, server: str) -> asyncio.Lock:
        return self._turns.setdefault(server, asyncio.Lock())

    async def _looked_up(self, server: str, *, to_change: bool) -> Credentials:
        """The credentials in the keychain, or those in memory if they are newer or the keychain fails."""
        if server in self._unsaved:
            await self._save(server)
            return self._known[server]
        try:
            text = await self._call(lambda keychain: keychain.read(server, to_change=to_change))
        except KeychainUnusable:
            self._doubtful.add(server)
            return self._known.get(server, Credentials())  # not remembered: the keychain is read again next time
        self._keep(server, _credentials(text))
        return self._known[server]

    async def _save(self, server: str) -> None:
        held = self._known[server]
        text = held.model_dump_json(exclude_defaults=True)
        gone = held == Credentials()
        try:
            await self._call(lambda keychain: keychain.delete(server) if gone else keychain.write(server, text))
        except KeychainUnusable:
            self._unsaved.add(server)
        else:
            self._unsaved.discard(server)

    async def _call(self, question: Callable[[Keychain], Awaitable[_T]]) -> _T:
        if self._keychain is None or self._clock() < self._not_before:
            raise KeychainUnusable(self.problem)
        try:
            answer = await question(self._keychain)
        except KeychainUnusable as error:
            self.problem = str(error)
            self._not_before = self._clock() + KEYCHAIN_PAUSE
            if isinstance(error, NoKeychain):
                self._keychain = None
            raise
        self.problem = ""
        return answer

    def _keep(self, server: str, credentials: Credentials) -> None:
        for secret in credentials.secrets():
            if secret:
                self._learn(secret)
        self._known[server] = credentials
        self._doubtful.discard(server)


def _credentials(text: str | None) -> Credentials:
    try:
        return Credentials() if text is None else Credentials.model_validate_json(text)
    except ValidationError:  # not written by mcphost
        return Credentials()
