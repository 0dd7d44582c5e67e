"""Keeps the calls of each run in the state folder, and finds those of earlier runs; a thread does all that waits."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcphost.config import Config, entry_of
from mcphost.errors import ConfigError
from mcphost.host.events import CallFinished, EventBus
from mcphost.host.history.past_call import PastCall, PastCallQuery, kept_text, past_call
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.tool_calls.registry import CallRegistry
from mcphost.json_values import as_dict
from mcphost.redaction import Mask

if TYPE_CHECKING:
    from mcphost.host.history.store import HistoryStore

BACKLOG: Final = 1000
"""Calls that may wait for the disk; more are left out."""

GATHER_SECONDS: Final = 0.1
"""Seconds in which calls are gathered before they are written: a thread that wakes up for each would delay the next.
Whoever reads the history or ends the run does not wait for that.
"""

CLOSE_SECONDS: Final = 2.0
"""Seconds to wait at the end of mcphost for a disk that does not answer."""

_T = TypeVar("_T")
_Reading = Callable[["HistoryStore"], None]


class CallHistory:
    """Keeps calls in ``path``; with None it keeps nothing. ``alarm`` takes a sentence that the user must see."""

    def __init__(
        self, path: Path | None, config: Callable[[], Config], registry: CallRegistry, bus: EventBus, mask: Mask
    ) -> None:
        self._path, self._config, self._registry, self._bus, self._mask = path, config, registry, bus, mask
        self.run: Final = os.urandom(6).hex()
        """The name of this run."""
        self._jobs: SimpleQueue[ToolCall | _Reading | None] = SimpleQueue()
        self._urgent = threading.Event()
        """Set by a job that does not wait until more calls are gathered."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._left_out = self._failing = False
        bus.observe(self._finished, CallFinished)

    @property
    def kept(self) -> bool:
        """True if calls are kept across runs."""
        return self._path is not None and self._config().ui.history

    @property
    def path(self) -> Path | None:
        return self._path

    async def find(self, query: PastCallQuery) -> list[PastCall]:
        """The kept calls that fit, newest first. Raises ConfigError if they cannot be read."""
        return await self._read(lambda store: store.find(query)) if self.kept else []

    async def count(self, server: str | None = None) -> int:
        """The number of kept calls to this server (None: to all). Raises ConfigError."""
        return await self._read(lambda store: store.count(server)) if self.kept else 0

    async def result(self, call: PastCall) -> Mapping[str, Any] | None:
        """The result of a kept call; None if it was not kept. Raises ConfigError."""
        text = await self._read(lambda store: store.result(call.id)) if self.kept else None
        if text is not None:
            with suppress(ValueError, RecursionError):
                return as_dict(json.loads(text)) or None
        return None

    async def last_used(self, most: int = 20) -> list[tuple[str, str]]:
        """The servers and tools called last, the newest first: of this run, and of earlier ones if they can be read."""
        here = (
            (entry_of(call.request.server), call.request.tool) for call in reversed(list(self._registry.calls.values()))
        )
        earlier: list[tuple[str, str]] = []
        with suppress(ConfigError):
            earlier = await self._read(lambda store: store.last_tools(most)) if self.kept else []
        return list(islice(dict.fromkeys(chain(here, earlier)), most))

    async def last_calls(self, server: str, tool: str, most: int = 5) -> list[PastCall]:
        """The last calls of a tool that ended, newest first: of this run, and of earlier ones if they can be read."""
        here = [call for call in self.of_this_run(server, tool) if call.state.ended][:most]
        if len(here) == most:
            return here
        with suppress(ConfigError):
            query = PastCallQuery(server, tool, without_run=self.run, most=most - len(here))
            return [*here, *await self.find(query)]
        return here

    def of_this_run(self, server: str, tool: str) -> list[PastCall]:
        """The calls of a tool in this run, newest first; they need not have ended. Their arguments are not masked."""
        calls = (call for call in reversed(list(self._registry.calls.values())) if call.request.task is None)
        return [
            past_call(call, self.run)
            for call in calls
            if (entry_of(call.request.server), call.request.tool) == (server, tool)
        ]

    def masked(self, identity: str) -> str:
        """The identity of a server as the history keeps it."""
        return kept_text(identity, self._mask)

    async def aclose(self) -> None:
        """Write what is still to be written, for at most `CLOSE_SECONDS`."""
        if self._loop is None:
            return
        self._jobs.put(None)
        self._urgent.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), CLOSE_SECONDS)

    def _finished(self, event: CallFinished) -> None:
        call = self._registry.find(event.call)
        if not self.kept or call.request.task is not None:  # a task's result; the call that began it is kept
            return
        if call.same_as_before:  # a call that runs every second would push all others out
            return
        if self._jobs.qsize() < BACKLOG:
            self._put(call)
        elif not self._left_out:
            self._left_out = True
            self._bus.alarm("calls are missing in the history: the disk is too slow")

    async def _read(self, read: Callable[[HistoryStore], _T]) -> _T:
        found: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def work(store: HistoryStore) -> None:
            try:
                value = read(store)
            except Exception as error:
                self._tell(partial(_fail, found, error))
            else:
                self._tell(partial(_settle, found, value))

        self._put(work)
        self._urgent.set()
        return await found

    def _put(self, job: ToolCall | _Reading) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._work, args=(self._path,), name="history", daemon=True).start()
        self._jobs.put(job)

    # In the thread.

    def _work(self, path: Path) -> None:
        from mcphost.host.history.store import HistoryStore  # late: SQLite is only needed once a call has ended

        store, job, gathers = HistoryStore(path, self._say), self._jobs.get(), False
        while job is not None:
            calls: list[ToolCall] = []
            if isinstance(job, ToolCall) and gathers:
                self._urgent.wait(GATHER_SECONDS)
                self._urgent.clear()
            gathers = True  # not the first call: a command makes one, and stops its server meanwhile
            while isinstance(job, ToolCall):
                calls.append(job)
                job = _nothing if self._jobs.empty() else self._jobs.get()
            if calls:
                self._write(store, calls)
            if job is not None:
                job(store)
                job = self._jobs.get()
        store.close()
        self._tell(self._ended.set)

    def _write(self, store: HistoryStore, calls: list[ToolCall]) -> None:
        """Keep these calls; say once that they cannot be kept, and again only after they could."""
        from mcphost.host.history.store import HistoryBudget  # late: as the store

        ui = self._config().ui
        try:
            store.add(self.run, calls, self._mask, HistoryBudget(ui.history_bytes, ui.history_days))
        except ConfigError as error:
            if not self._failing:
                self._say(f"the history of calls cannot be written: {error}")
            self._failing = True
        else:
            self._failing = False

    def _say(self, text: str) -> None:
        self._tell(partial(self._bus.alarm, text))

    def _tell(self, what: Callable[[], object]) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended, and with it everybody who wanted to know
            self._loop.call_soon_threadsafe(what)


def _nothing(store: HistoryStore) -> None:
    """Between two batches."""


def _settle(found: asyncio.Future[_T], value: _T) -> None:
    if not found.done():
        found.set_result(value)


def _fail(found: asyncio.Future[_T], error: Exception) -> None:
    if not found.done():
        found.set_exception(error)
