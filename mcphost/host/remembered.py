"""Remembers one value for each server or URL, in a state file that several mcphosts share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import Final, Generic, TypeVar

from mcphost.config.state import StateFile, StateStore
from mcphost.host.internal_error import describe_failure

KEPT: Final = 500
"""Servers in a file, the latest: more than anyone uses, and few enough to be read at every start."""

Value = TypeVar("Value")


def server_digest(identity: str) -> str:
    """Digest of what runs a server, a command line or a URL, which may hold a secret."""
    return sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class RememberedByServer(Generic[Value]):
    """Values by key, in the table ``table`` of the state file ``name`` (``store`` None: for this run only).

    ``value`` is the type of a value, see `mcphost.config.state.StateFile`. ``report`` takes a sentence for the user: a
    file that cannot be used has no other effect. ``what`` names the values in it. Use it in one event loop.
    """

    def __init__(
        self,
        store: StateStore | None,
        name: str,
        table: str,
        value: type[Value],
        report: Callable[[str], None],
        what: str,
    ) -> None:
        content: Callable[[], dict[str, dict[str, Value]]] = dict[str, dict[str, value]]  # type: ignore[valid-type]
        self._file = None if store is None else StateFile(store, name, content)
        self._table, self._report, self._what = table, report, what
        self._known: dict[str, Value] = {}
        self._loaded = False
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Read the file if that was not done yet."""
        async with self._loading:
            if self._loaded or self._file is None:
                return
            self._loaded = True
            try:
                saved = (await asyncio.to_thread(self._file.read)).get(self._table, {})
            except Exception as error:
                self._report(f"{self._what} could not be read, and is detected again: {describe_failure(error)}")
                return
            # What was learned while the file was read is newer.
            self._known = {**saved, **self._known}

    def get(self, key: str) -> Value | None:
        """Return the value; None if it is unknown or not loaded yet."""
        return self._known.get(key)

    def learn(self, key: str, value: Value) -> asyncio.Future[str]:
        """Keep a value. The result is done when the file is written or that has failed."""
        self._known[key] = value
        return self._save(key)

    def forget(self, key: str) -> asyncio.Future[str] | None:
        """Forget a value; the result is as for `learn`, or None if the value was unknown."""
        return None if self._known.pop(key, None) is None else self._save(key)

    def _save(self, key: str) -> asyncio.Future[str]:
        saving = asyncio.get_running_loop().run_in_executor(None, self._write, key)
        saving.add_done_callback(self._saved)
        return saving

    def _saved(self, saving: asyncio.Future[str]) -> None:
        if not saving.cancelled() and (failure := saving.result()):
            self._report(failure)

    def _write(self, key: str) -> str:
        """Write what is known of ``key``; return what failed, or an empty text. Blocks on the disk."""

        def change(content: dict[str, dict[str, Value]]) -> dict[str, dict[str, Value]]:
            saved = content.get(self._table, {})
            saved.pop(key, None)
            # Read here, under the file's lock: several writes of one key may come in any order, and the last one then
            # still writes what was learned last.
            value = self._known.get(key)
            if value is not None:
                saved[key] = value
            return {self._table: dict(list(saved.items())[-KEPT:])}

        try:
            if self._file is not None:
                self._file.update(change)
        except Exception as error:
            return f"{self._what} could not be saved, and is detected again: {describe_failure(error)}"
        return ""
