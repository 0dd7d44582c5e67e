"""Keychains of the tests: one that keeps in memory or in a file, and those that forget, lie, lag or are locked."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keyring.errors import KeyringLocked, PasswordDeleteError

from mcphost.auth.storage.keychain import Keychain
from mcphost.auth.storage.tokens import Lock
from mcphost.config.state import named_lock


def locked_in(folder: Path) -> Lock:
    return lambda server: named_lock(folder, server, 10)


class Shelf:
    """A backend of the keyring library, unknown to it; what is done to it is counted, and can be held up."""

    name = "Shelf of tests"

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda call: None
        """Called with the name of each call before it is done."""

    def get_password(self, service: str, username: str) -> str | None:
        self._called("get")
        return self._all().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._called("set")
        self._keep({**self._all(), f"{service} {username}": password})

    def delete_password(self, service: str, username: str) -> None:
        self._called("delete")
        items = self._all()
        if items.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError("not there")
        self._keep(items)

    def _called(self, call: str) -> None:
        self.calls.append(call)
        self.before(call)

    def _all(self) -> dict[str, str]:
        return dict(self.items)

    def _keep(self, items: dict[str, str]) -> None:
        self.items = items


class FileShelf(Shelf):
    """One that several processes share."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def _all(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self._path.read_text()) if self._path.exists() else {}
        return found

    def _keep(self, items: dict[str, str]) -> None:
        written = self._path.with_suffix(f".{os.getpid()}")  # who reads meanwhile finds the whole of it
        written.write_text(json.dumps(items))
        written.replace(self._path)


class Forgetful(Shelf):
    """Takes everything, and keeps nothing."""

    def _keep(self, items: dict[str, str]) -> None: ...


class Lying(Shelf):
    """Keeps the first hundred characters."""

    def _keep(self, items: dict[str, str]) -> None:
        super()._keep({name: secret[:100] for name, secret in items.items()})


def locked(call: str) -> None:
    raise KeyringLocked("Failed to unlock the collection!")


class Lagging:
    """Does not answer before it is let go."""

    def __init__(self) -> None:
        self.free = threading.Event()

    def __call__(self, call: str) -> None:
        self.free.wait(20)


def shelved(shelf: Any, service: str = "test") -> Keychain:
    return Keychain(service, lambda: shelf)
