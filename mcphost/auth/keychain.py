"""The operating system's keychain: one secret text under one name, or the reason why not.

Knows which backends of the keyring library are one, and that any of them may be locked, slow or lying. Refuses to know
what is kept. Nothing here blocks the event loop.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SECONDS: Final = 5.0
"""For one call: a keychain that asks its owner first is asked again later."""

PART: Final = 1_200 if sys.platform == "win32" else 60_000
"""Characters of one item: Windows takes no more than 2,560 bytes."""

TRUSTED: Final = (
    "keyring.backends.SecretService", "keyring.backends.libsecret", "keyring.backends.kwallet",
    "keyring.backends.macOS", "keyring.backends.Windows",
)  # fmt: skip
"""Backends that keep secrets from other users. Plain files and those that forget are none."""

_T = TypeVar("_T")


class KeychainUnusable(Exception):
    """There is no keychain, or it does not answer; ``str()`` is a clause that says why."""


class Keychain:
    """One service's items in the keychain; found when it is first needed."""

    def __init__(self, service: str, backend: Callable[[], KeyringBackend] | None = None) -> None:
        self.name = ""
        """What it is called; empty until it was used."""
        self._service = service
        self._find = backend or _best_backend
        self._backend: KeyringBackend | None = None

    async def read(self, name: str) -> str | None:
        """The secret; None where there is none. Raises KeychainUnusable."""
        return await _bounded(lambda: self._read(name))

    async def write(self, name: str, secret: str) -> None:
        """Keep it, and make sure that it is kept. Raises KeychainUnusable."""
        await _bounded(lambda: self._write(name, secret))

    async def delete(self, name: str) -> None:
        """Forget it. Raises KeychainUnusable."""
        await _bounded(lambda: self._delete(name))

    def _opened(self) -> KeyringBackend:
        if self._backend is None:
            self._backend = self._find()
            self.name = str(self._backend.name).partition(" ")[0]
        return self._backend

    def _read(self, name: str) -> str | None:
        backend = self._opened()
        first = backend.get_password(self._service, name)
        if first is None or not first.startswith("parts "):
            return first
        _, count, mark = first.split(" ")
        parts = [backend.get_password(self._service, _part(name, index, mark)) for index in range(int(count))]
        return None if None in parts else "".join(part or "" for part in parts)

    def _write(self, name: str, secret: str) -> None:
        backend, before = self._opened(), self._parts(name)
        if len(secret) <= PART:
            backend.set_password(self._service, name, secret)
        else:  # the parts first: until the item that names them is written, the old ones stand
            mark = secrets.token_hex(4)
            pieces = [secret[start : start + PART] for start in range(0, len(secret), PART)]
            for index, piece in enumerate(pieces):
                backend.set_password(self._service, _part(name, index, mark), piece)
            backend.set_password(self._service, name, f"parts {len(pieces)} {mark}")
        if self._read(name) != secret:
            raise KeychainUnusable("it does not give back what it was given")
        self._drop(before)

    def _delete(self, name: str) -> None:
        from keyring.errors import PasswordDeleteError

        parts = self._parts(name)
        try:
            self._opened().delete_password(self._service, name)
        except PasswordDeleteError:
            return  # it was not there
        self._drop(parts)

    def _parts(self, name: str) -> list[str]:
        first = self._opened().get_password(self._service, name) or ""
        if not first.startswith("parts "):
            return []
        _, count, mark = first.split(" ")
        return [_part(name, index, mark) for index in range(int(count))]

    def _drop(self, names: list[str]) -> None:
        for name in names:
            self._opened().delete_password(self._service, name)


def _part(name: str, index: int, mark: str) -> str:
    return f"{name} {mark}/{index}"


def _best_backend() -> KeyringBackend:
    """The best keychain there is, whatever the environment and files in it name. Raises KeychainUnusable."""
    from keyring import backend  # late: it looks for every backend that is installed

    usable = [each for each in backend.get_all_keyring() if type(each).__module__ in TRUSTED]
    if not usable:
        raise KeychainUnusable("this system has no keychain that mcphost knows")
    return max(usable, key=lambda each: each.priority)


async def _bounded(work: Callable[[], _T]) -> _T:
    """Run ``work`` in a thread that nobody waits for at the end: a keychain may never answer."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(error)

    def run() -> None:
        try:
            outcome: tuple[_T | None, Exception | None] = work(), None
        except Exception as error:
            outcome = None, _unusable(error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="ask the keychain", daemon=True).start()
    try:
        async with asyncio.timeout(SECONDS):
            return await done
    except TimeoutError:
        raise KeychainUnusable(f"it does not answer within {SECONDS:g} s; it may be waiting for you") from None


def _unusable(error: Exception) -> KeychainUnusable:
    if isinstance(error, KeychainUnusable):
        return error
    kind = type(error).__name__
    if kind == "KeyringLocked":
        return KeychainUnusable("it is locked")
    return KeychainUnusable(f"it fails ({kind}: {str(error).strip()[:200]})")
