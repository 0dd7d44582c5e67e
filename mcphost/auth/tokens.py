"""Keeps the credentials of each server: in the keychain, or in memory for this run where there is none.

Knows one item a server, read once, and that another mcphost may change it meanwhile. Refuses to know what they allow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from pydantic import ValidationError

from mcphost.auth.credentials import Credentials
from mcphost.auth.keychain import Keychain, KeychainUnusable

SERVICE: Final = "mcphost-oauth"
"""Apart from what ``${keyring:NAME}`` reads: no configuration may name a token."""

Lock = Callable[[str], AbstractAsyncContextManager[None]]
"""Keeps other mcphosts from changing one server's item; may raise ConfigError."""


@asynccontextmanager
async def no_lock(server: str) -> AsyncIterator[None]:
    """For a run that shares nothing with another."""
    yield


class TokenStore:
    """All servers' credentials. ``learn`` is told each secret as soon as it is known, so that it is never shown."""

    def __init__(self, keychain: Keychain | None, learn: Callable[[str], None], lock: Lock = no_lock) -> None:
        self._keychain, self._learn, self._lock = keychain, learn, lock
        self._known: dict[str, Credentials] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self.why_in_memory = "" if keychain else "mcphost was told to use no keychain"
        """Why tokens are kept in memory only; empty while the keychain is used."""

    @property
    def place(self) -> str:
        """Where tokens are kept, in words."""
        if self.why_in_memory:
            return f"in memory until mcphost ends: {self.why_in_memory}"
        return f"in the keychain ({self._keychain.name})" if self._keychain and self._keychain.name else "the keychain"

    async def read(self, server: str, *, again: bool = False) -> Credentials:
        """What is kept for ``server``; asks the keychain once, or again where another mcphost may have changed it."""
        if server not in self._known or (again and self._keychain and not self.why_in_memory):
            found = await self._from_keychain(server)
            self._keep(server, self._known.get(server, Credentials()) if found is None else found)
        return self._known[server]

    @asynccontextmanager
    async def changing(self, server: str) -> AsyncIterator[Credentials]:
        """Nobody else changes this server's item meanwhile, in whatever process; gives what it holds now."""
        async with self._turns.setdefault(server, asyncio.Lock()), self._lock(server):
            yield await self.read(server, again=True)

    async def write(self, server: str, credentials: Credentials) -> None:
        """Keep this instead; within `changing`."""
        self._keep(server, credentials)
        if self._keychain is None or self.why_in_memory:
            return
        try:
            if credentials == Credentials():
                await self._keychain.delete(server)
            else:
                await self._keychain.write(server, credentials.model_dump_json(exclude_defaults=True))
        except KeychainUnusable as error:
            self.why_in_memory = f"the keychain cannot be used: {error}"

    async def _from_keychain(self, server: str) -> Credentials | None:
        """None where the keychain does not answer: then what is known already stands."""
        if self._keychain is None or self.why_in_memory:
            return None
        try:
            text = await self._keychain.read(server)
        except KeychainUnusable as error:
            self.why_in_memory = f"the keychain cannot be used: {error}"
            return None
        try:
            return Credentials() if text is None else Credentials.model_validate_json(text)
        except ValidationError:  # written by something else: as good as none
            return Credentials()

    def _keep(self, server: str, credentials: Credentials) -> None:
        for secret in credentials.secrets():
            if secret:
                self._learn(secret)
        self._known[server] = credentials
