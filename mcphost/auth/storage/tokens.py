"""Stores the credentials of each server: in the keychain, or in memory for this run if the keychain cannot be used.

The keychain is read once for each item, and again before changes, which other mcphost processes may have made too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Generic, TypeVar

from pydantic import ValidationError

from mcphost.auth.storage.credentials import Credentials, Kept
from mcphost.auth.storage.keychain import Keychain, KeychainUnusable, NoKeychain

SERVICE: Final = "mcphost-oauth"
"""Differs from the service that ``${keyring:NAME}`` reads, so that no configuration can name a token."""

KEYCHAIN_PAUSE: Final = 15.0
"""Seconds after a failure in which the keychain is not used, so that calls do not wait for it each time."""

Lock = Callable[[str], AbstractAsyncContextManager[None]]
"""Keeps other mcphost processes from changing one item; may raise ConfigError."""

_T = TypeVar("_T")
_Item = TypeVar("_Item", bound=Kept)
_Other = TypeVar("_Other", bound=Kept)


@asynccontextmanager
async def no_lock(server: str) -> AsyncIterator[None]:
    """For a run that shares no storage with others."""
    yield


class ItemStore(Generic[_Item]):
    """Items of one ``kind`` by name. ``learn`` is called with each secret as soon as it is known, to mask it.

    ``clock`` is monotonic, in seconds.
    """

    def __init__(
        self,
        kind: type[_Item],
        keychain: Keychain | None,
        learn: Callable[[str], None],
        lock: Lock = no_lock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind, self._keychain, self._learn, self._lock, self._clock = kind, keychain, learn, lock, clock
        self._known: dict[str, _Item] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._unsaved: set[str] = set()
        """Items whose latest value is not in the keychain."""
        self._doubtful: set[str] = set()
        """Items that the keychain did not give again: another process may have changed them."""
        self._not_before = 0.0
        self.problem = "" if keychain else "mcphost is set to use no keychain"
        """Why the keychain was not used the last time; empty if it was."""

    def beside(self, kind: type[_Other]) -> ItemStore[_Other]:
        """A store for items of another kind in the same keychain, under other names."""
        return ItemStore(kind, self._keychain, self._learn, self._lock, self._clock)

    def place(self, name: str) -> str:
        """Where the tokens of this item are stored, in words."""
        if self._keychain is None or name in self._unsaved:
            return f"in memory until mcphost ends: {self.problem or 'the keychain did not take them'}"
        return f"in the keychain ({self._keychain.name})"

    def unread(self, name: str) -> str:
        """Why the keychain's item could not be read; empty if it was, or without a keychain."""
        read = name in self._known and name not in self._doubtful
        return "" if self._keychain is None or read else self.problem

    async def read(self, name: str, *, again: bool = False) -> _Item:
        """The item. Reads the keychain once; with ``again``, once more."""
        if name in self._known and not again:
            return self._known[name]
        async with self._turn(name):
            return await self._looked_up(name, to_change=False)

    @asynccontextmanager
    async def changing(self, name: str) -> AsyncIterator[_Item]:
        """Lock the item against all other tasks and processes, and read it again, see `unread`.

        Raises ConfigError if another mcphost does not release it in time.
        """
        async with self._turn(name), self._lock(name):
            yield await self._looked_up(name, to_change=True)

    async def write(self, name: str, item: _Item) -> bool:
        """Replace the item, inside `changing`. False: there is a keychain, but it did not take it."""
        self._keep(name, item)
        await self._save(name)
        return self._keychain is None or name not in self._unsaved

    def _turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())

    async def _looked_up(self, name: str, *, to_change: bool) -> _Item:
        """The item in the keychain, or that in memory if it is newer or the keychain fails."""
        if name in self._unsaved:
            await self._save(name)
            return self._known[name]
        try:
            text = await self._call(lambda keychain: keychain.read(name, to_change=to_change))
        except KeychainUnusable:
            self._doubtful.add(name)
            return self._known.get(name, self._kind())  # not remembered: the keychain is read again next time
        self._keep(name, self._parsed(text))
        return self._known[name]

    async def _save(self, name: str) -> None:
        held = self._known[name]
        text = held.model_dump_json(exclude_defaults=True)
        gone = held == self._kind()
        try:
            await self._call(lambda keychain: keychain.delete(name) if gone else keychain.write(name, text))
        except KeychainUnusable:
            self._unsaved.add(name)
        else:
            self._unsaved.discard(name)

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

    def _parsed(self, text: str | None) -> _Item:
        try:
            return self._kind() if text is None else self._kind.model_validate_json(text)
        except ValidationError:  # not written by mcphost
            return self._kind()

    def _keep(self, name: str, item: _Item) -> None:
        for secret in item.secrets():
            if secret:
                self._learn(secret)
        self._known[name] = item
        self._doubtful.discard(name)


class TokenStore(ItemStore[Credentials]):
    """The credentials of all servers."""

    def __init__(
        self,
        keychain: Keychain | None,
        learn: Callable[[str], None],
        lock: Lock = no_lock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(Credentials, keychain, learn, lock, clock)
