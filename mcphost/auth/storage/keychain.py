"""Stores secrets in the operating system's keychain, without ever blocking the event loop.

A keychain may be locked, slow or broken: every call is bounded in time, and failures are `KeychainUnusable`.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar

from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SECONDS: Final = 5.0
"""For one call. A keychain that prompts takes longer: that call continues alone, and no other starts meanwhile."""

CHANGE_SECONDS: Final = 20.0
"""For one call of a change: a refresh token that is given up on may be sent twice, which ends the sign-in."""

PART: Final = 1_200 if sys.platform == "win32" else 60_000
"""Characters of one item: Windows allows at most 2,560 bytes."""

_BACKENDS: Final[Mapping[str, Sequence[str]]] = {"darwin": ("macOS",), "win32": ("Windows",)}
TRUSTED: Final = tuple(
    f"keyring.backends.{name}" for name in _BACKENDS.get(sys.platform, ("SecretService", "libsecret", "kwallet"))
)
"""The backends of this system that keep secrets from other users; neither plain files nor memory."""

_PARTS: Final = re.compile(r"parts ([0-9]{1,3}) ([0-9a-f]{8})")

_T = TypeVar("_T")


class KeychainUnusable(Exception):
    """The keychain failed; ``str()`` is a clause that says why."""


class NoKeychain(KeychainUnusable):
    """There is no keychain on this system."""


class Keychain:
    """The items of one service. The backend is loaded at first use."""

    def __init__(self, service: str, backend: Callable[[], KeyringBackend] | None = None) -> None:
        self.name = ""
        """The name of the backend; empty before first use."""
        self._service = service
        self._find = backend or best_backend
        self._backend: KeyringBackend | None = None
        self._late: threading.Thread | None = None

    async def read(self, name: str, *, to_change: bool = False) -> str | None:
        """The secret; None if it does not exist. Raises KeychainUnusable."""
        return await self._call(lambda: self._read(name), CHANGE_SECONDS if to_change else SECONDS)

    async def write(self, name: str, secret: str) -> None:
        """Store a secret, and verify that it reads back. Raises KeychainUnusable."""
        await self._call(lambda: self._write(name, secret), CHANGE_SECONDS)

    async def delete(self, name: str) -> None:
        """Raises KeychainUnusable."""
        await self._call(lambda: self._delete(name), CHANGE_SECONDS)

    # These run in a thread.

    def _opened(self) -> KeyringBackend:
        if self._backend is None:
            self._backend = self._find()
            self.name = str(self._backend.name).partition(" ")[0]
        return self._backend

    def _read(self, name: str) -> str | None:
        first = self._get(name)
        if first is None or not _PARTS.fullmatch(first):
            return first
        parts = [self._get(part) for part in _part_names(name, first)]
        return None if None in parts else "".join(part or "" for part in parts)

    def _write(self, name: str, secret: str) -> None:
        before = self._get(name) or ""
        now = self._put(name, secret)
        if self._read(name) != secret:
            raise KeychainUnusable("it does not give back what it was given")
        self._drop([part for part in _part_names(name, before) if part not in now])

    def _put(self, name: str, secret: str) -> Sequence[str]:
        """Write a secret, in parts if it is long; return their names. Old parts stay until the item names new ones."""
        pieces = [secret[start : start + PART] for start in range(0, len(secret), PART)]
        whole = len(pieces) <= 1 and not _PARTS.fullmatch(secret)
        first = secret if whole else f"parts {len(pieces)} {secrets.token_hex(4)}"
        names = _part_names(name, "" if whole else first)
        try:
            for part, piece in zip((*names, name), (*(() if whole else pieces), first), strict=True):
                self._opened().set_password(self._service, part, piece)
        except Exception:
            self._drop(names)
            raise
        return names

    def _delete(self, name: str) -> None:
        first = self._get(name)
        if first is not None:
            self._opened().delete_password(self._service, name)
            self._drop(_part_names(name, first))

    def _get(self, name: str) -> str | None:
        return self._opened().get_password(self._service, name)

    def _drop(self, names: Sequence[str]) -> None:
        """Delete items that nothing refers to. Failure is harmless."""
        for name in names:
            with suppress(Exception):
                self._opened().delete_password(self._service, name)

    async def _call(self, work: Callable[[], _T], seconds: float) -> _T:
        """Run ``work`` in a daemon thread, since a keychain may never answer."""
        if self._late is not None and self._late.is_alive():
            raise KeychainUnusable("it has not answered yet; it may be waiting for you")
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        thread = threading.Thread(target=_run, args=(work, done), name="ask the keychain", daemon=True)
        thread.start()
        try:
            async with asyncio.timeout(seconds):
                return await done
        except TimeoutError:
            self._late = thread
            raise KeychainUnusable(f"it does not answer within {seconds:g} s; it may be waiting for you") from None


def _part_names(name: str, first: str) -> Sequence[str]:
    """The names of the parts that the text ``first`` of an item refers to."""
    found = _PARTS.fullmatch(first)
    return [f"{name} {found[2]}/{index}" for index in range(int(found[1]))] if found else []


def given_secret(service: str, name: str) -> str | None:
    """A secret that the user stored under ``name``; None if it does not exist.

    Blocks, perhaps for a prompt: never call it on the event loop. Raises KeychainUnusable.
    """
    try:
        return Keychain(service)._read(name)
    except Exception as raised:
        raise _unusable(raised) from None


def best_backend() -> KeyringBackend:
    """The best trusted backend, whatever the environment or keyring's own configuration says. Raises NoKeychain."""
    usable = list(_usable_backends())
    if not usable:
        raise NoKeychain("this system has no keychain that mcphost knows")
    return max(usable, key=lambda each: each.priority)


def _usable_backends() -> Iterator[KeyringBackend]:
    # keyring's own search would import whatever is installed.
    from keyring.backend import KeyringBackend  # late: most runs need no keychain

    for name in TRUSTED:
        for kind in vars(import_module(name)).values():
            own = isinstance(kind, type) and issubclass(kind, KeyringBackend) and kind.__module__ == name
            if own and kind.viable:
                yield kind()


def _run(work: Callable[[], _T], done: asyncio.Future[_T]) -> None:
    def set_outcome() -> None:
        if done.done():
            return  # the caller has given up
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    error: KeychainUnusable | None = None
    try:
        result = work()
    except Exception as raised:
        error = _unusable(raised)
    with suppress(RuntimeError):  # the loop has ended
        done.get_loop().call_soon_threadsafe(set_outcome)


def _unusable(error: Exception) -> KeychainUnusable:
    from keyring.errors import KeyringLocked

    if isinstance(error, KeychainUnusable):
        return error
    if isinstance(error, KeyringLocked):
        return KeychainUnusable("it is locked")
    return KeychainUnusable(f"it fails ({type(error).__name__}: {show_line(str(error).strip(), 200)})")
