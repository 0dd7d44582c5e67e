"""Listens for changes at a modern server, which announces them only on the stream of ``subscriptions/listen``.

One request at a time is open for all that is wanted. Where that changes, another takes its place; where the stream
breaks off, it is opened again, after a growing pause.

Specification: 2026-07-28 basic/utilities/subscriptions.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from enum import Enum
from typing import Any, Final, Protocol

from mcphost.errors import CapabilityMissing, McphostError, PeerError, RequestTimeout, ServerError
from mcphost.json_values import as_dict, texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import enumerated
from mcphost.protocol.lifecycle.revisions import META_PREFIX, offers
from mcphost.protocol.lifecycle.session import ModernRules
from mcphost.protocol.wire.jsonrpc import Notification, Request, RequestId, Response
from mcphost.transports.base import Transport

METHOD: Final = "subscriptions/listen"
SUBSCRIPTION_ID: Final = f"{META_PREFIX}subscriptionId"

LIST_KINDS: Final = ("tools", "prompts", "resources")
"""The lists whose changes can be announced."""

GATHER_SECONDS: Final = 0.1
"""Seconds in which further changes of the filter are gathered before the stream is opened again."""

ACKNOWLEDGE_SECONDS: Final = 10.0
"""Seconds for the server to say what it will announce."""

FIRST_WAIT: Final = 1.0
"""Seconds that opening a session waits for that, so that lists are fetched after, not before: nothing is replayed."""

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 15.0
QUIET: Final = 30.0
"""Seconds that a stream must last for the next pause to be the first again."""

JITTER: Final = 0.2

MOST_REFUSALS: Final = 3
"""Refusals in a row after which the server is no longer asked."""


class ListenState(Enum):
    """State of the announcements of changes."""

    OFF = "nothing to announce"
    OPENING = "asking for announcements"
    LISTENING = "changes are announced"
    LOST = "announcements broke off"
    REFUSED = "the server refuses to announce changes"


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Changes to announce: those wanted, or those promised."""

    lists: frozenset[str] = frozenset()
    """Of `LIST_KINDS`."""
    resources: frozenset[str] = frozenset()
    """URIs."""
    tasks: frozenset[str] = frozenset()
    """Ids of tasks."""

    def __bool__(self) -> bool:
        return bool(self.lists or self.resources or self.tasks)

    def __sub__(self, other: ChangeFilter) -> ChangeFilter:
        return ChangeFilter(self.lists - other.lists, self.resources - other.resources, self.tasks - other.tasks)

    def __str__(self) -> str:
        lists = f"the lists of {enumerated(sorted(self.lists))}" if self.lists else ""
        return ", ".join(
            filter(None, (lists, *sorted(self.resources), *(f"task {each}" for each in sorted(self.tasks))))
        )

    def as_object(self) -> dict[str, Any]:
        wanted: dict[str, Any] = {f"{kind}ListChanged": True for kind in LIST_KINDS if kind in self.lists}
        if self.resources:
            wanted["resourceSubscriptions"] = sorted(self.resources)
        if self.tasks:
            wanted["taskIds"] = sorted(self.tasks)
        return wanted

    @classmethod
    def read(cls, value: object) -> ChangeFilter:
        """The filter in an acknowledgement, without its invalid members."""
        given = as_dict(value)
        return cls(
            frozenset(kind for kind in LIST_KINDS if given.get(f"{kind}ListChanged") is True),
            frozenset(texts_in(given.get("resourceSubscriptions"))),
            frozenset(texts_in(given.get("taskIds"))),
        )


class ChangeObserver(Protocol):
    """Called when something changed, or when a change may have been missed."""

    def list_changed(self, kind: str) -> None: ...

    def resource_updated(self, uri: str) -> None: ...

    def task_may_have_changed(self, task_id: str) -> None: ...

    def listening_changed(self) -> None: ...


@dataclass(eq=False, slots=True)
class _Listen:
    """One open request."""

    id: RequestId
    filter: ChangeFilter
    began: float
    answer: asyncio.Task[Response]
    acknowledged: asyncio.Future[ChangeFilter]
    ended: bool = field(default=False)
    """True if the server ended it with a notification."""


class ReopeningPauses:
    """Growing pauses before a stream is opened again; ``random`` returns numbers from 0 to 1."""

    def __init__(self, random: Callable[[], float] = random.random) -> None:
        self._random, self._next = random, FIRST_PAUSE

    def after(self, lived: float) -> float:
        """The pause, in seconds, after a stream that lasted ``lived`` seconds."""
        if lived >= QUIET:
            self._next = FIRST_PAUSE
        pause, self._next = self._next, min(self._next * 2, LONGEST_PAUSE)
        return pause * (1 + JITTER * (2 * self._random() - 1))


class SubscriptionListener:
    """Listens at one server while `run` runs. ``note`` takes a sentence for the log."""

    def __init__(
        self,
        transport: Transport,
        rules: ModernRules,
        ids: Iterator[RequestId],
        observer: ChangeObserver,
        note: Callable[[str], None],
    ) -> None:
        self._transport, self._rules, self._ids = transport, rules, ids
        self._observer, self._note = observer, note
        self._lists = frozenset(kind for kind in LIST_KINDS if _announces_changes(rules.capabilities.get(kind)))
        self._resources: set[str] = set()
        self._tasks: set[str] = set()
        self._announces_tasks = True
        """False once the server refused a subscription that named tasks: those are polled in any case."""
        self._open: dict[RequestId, _Listen] = {}
        self._current: _Listen | None = None
        self._changed = asyncio.Event()
        self._moved = asyncio.Event()
        self._refusals = 0
        self._pauses = ReopeningPauses()
        self._interrupted = False
        self.state = ListenState.OPENING if self._lists else ListenState.OFF
        self.honoured = ChangeFilter()
        """The changes that the server said it announces."""
        self.missing = ChangeFilter()
        """Requested changes that it did not promise."""
        self.reason = ""
        """The reason for LOST or REFUSED."""
        self.strays = 0
        """Announcements whose id belongs to no subscription."""

    @property
    def wanted(self) -> ChangeFilter:
        """Changes that the server should announce."""
        tasks = self._tasks if self._announces_tasks else ()
        return ChangeFilter(self._lists, frozenset(self._resources), frozenset(tasks))

    # What is wanted.

    async def watch(self, uri: str) -> None:
        """Have changes of a resource announced. Raises CapabilityMissing, PeerError, or why there is no stream."""
        if not offers("resources.subscribe", self._rules.capabilities, self._rules.revision):
            raise CapabilityMissing(METHOD, "resources.subscribe")
        self._resources.add(uri)
        self._changed.set()
        try:
            async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
                while not self._settled(uri):
                    await self._moved.wait()
        except TimeoutError:
            self.unwatch(uri)
            raise RequestTimeout(METHOD, ACKNOWLEDGE_SECONDS) from None
        except asyncio.CancelledError:
            self.unwatch(uri)
            raise
        if uri not in self.honoured.resources:
            self.unwatch(uri)
            raise PeerError(self.reason or "the server does not announce changes of this resource")

    def unwatch(self, uri: str) -> None:
        """Changes of this resource are no longer wanted."""
        self._resources.discard(uri)
        self._changed.set()

    def follow(self, task_id: str) -> None:
        """Have changes of a task announced, if the server does that."""
        self._tasks.add(task_id)
        self._changed.set()

    def unfollow(self, task_id: str) -> None:
        """The task ended."""
        self._tasks.discard(task_id)
        self._changed.set()

    async def first_acknowledgement(self) -> None:
        """Wait a moment for the server to listen, if there is anything to announce."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WAIT):
                while self.state is ListenState.OPENING:
                    await self._moved.wait()

    # What the server sends.

    def acknowledged(self, params: Mapping[str, Any]) -> None:
        """``notifications/subscriptions/acknowledged``."""
        listen = self._listen_of(params)
        if listen is not None and not listen.acknowledged.done():
            listen.acknowledged.set_result(ChangeFilter.read(params.get("notifications")))

    def belongs(self, params: Mapping[str, Any]) -> bool:
        """True if this announcement belongs to an open subscription. One that does not is counted."""
        return self._listen_of(params) is not None

    def ended_by_server(self, request_id: object) -> None:
        """``notifications/cancelled`` of the server: it ends a subscription, and nothing else."""
        listen = self._by_id(request_id)
        if listen is not None:
            listen.ended = True
            listen.answer.cancel()

    # The stream.

    async def run(self) -> None:
        """Keep the stream open for what is wanted, until cancelled."""
        try:
            while True:
                await self._adapt()
                await self._wait_for_change()
        finally:
            for listen in tuple(self._open.values()):
                listen.answer.cancel()
            await asyncio.gather(*(listen.answer for listen in self._open.values()), return_exceptions=True)

    async def _adapt(self) -> None:
        """Open a stream for what is wanted now, in place of the one that is open."""
        self._changed.clear()
        wanted, current = self.wanted, self._current
        if current is not None and current.filter == wanted:
            return
        if not wanted:
            self._current = None
            await self._end(current)
            self._enter(ListenState.OFF)
        elif self._refusals < MOST_REFUSALS:
            if current is None:
                self._enter(ListenState.OPENING)
            await self._replace(current, self._begin(wanted))

    async def _replace(self, current: _Listen | None, new: _Listen) -> None:
        await asyncio.wait((new.answer, new.acknowledged), timeout=ACKNOWLEDGE_SECONDS, return_when="FIRST_COMPLETED")
        if new.answer.done() and not new.acknowledged.done():
            if new.filter.tasks and (refusal := await _refusal_of(new)):
                self._open.pop(new.id, None)
                self._announces_tasks = False
                self._note(f"the server does not announce changes of tasks, which are polled: {refusal}")
                self._changed.set()
                return
            self._current = None
            await self._end(current)
            await self._ended(new)
            return
        # The new stream is open before the old one ends, so that no change falls between them.
        self._current = new
        await self._end(current)
        announced = frozenset[str]() if self._interrupted else self.honoured.tasks
        self.honoured = new.acknowledged.result() if new.acknowledged.done() else ChangeFilter()
        self.missing = new.filter - self.honoured
        if self.missing:
            said = "does not announce" if new.acknowledged.done() else "did not say that it announces"
            self._note(f"the server {said} changes of {self.missing}")
        self._refusals = 0
        self._enter(ListenState.LISTENING)
        if self._interrupted:
            self._interrupted = False
            self._everything_may_have_changed(new.filter)
        for task_id in sorted((self.honoured.tasks & new.filter.tasks) - announced):
            self._observer.task_may_have_changed(task_id)  # before it was announced: nothing is replayed

    async def _wait_for_change(self) -> None:
        changed = asyncio.ensure_future(self._changed.wait())
        waiting: list[asyncio.Future[Any]] = [changed]
        if self._current is not None:
            waiting.append(self._current.answer)
        try:
            await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
        finally:
            changed.cancel()
        current = self._current
        if current is not None and current.answer.done():
            self._current = None
            await self._ended(current)
        else:
            await asyncio.sleep(GATHER_SECONDS)

    def _begin(self, wanted: ChangeFilter) -> _Listen:
        loop = asyncio.get_running_loop()
        request = self._rules.stamped(Request(next(self._ids), METHOD, {"notifications": wanted.as_object()}))
        answer = asyncio.create_task(
            self._transport.request(request, self._rules.headers(request)), name="listen for changes"
        )
        listen = _Listen(request.id, wanted, loop.time(), answer, loop.create_future())
        self._open[request.id] = listen  # before it is written: the acknowledgement may come first
        return listen

    async def _end(self, listen: _Listen | None) -> None:
        """End a stream that is no longer wanted."""
        if listen is None or self._open.pop(listen.id, None) is None:
            return
        if not listen.answer.done():
            listen.answer.cancel()
            if not self._transport.own_stream:
                with suppress(McphostError):
                    await self._transport.send(Notification("notifications/cancelled", {"requestId": listen.id}))
        await asyncio.gather(listen.answer, return_exceptions=True)

    async def _ended(self, listen: _Listen) -> None:
        """The server ended a stream, or refused it: wait before the next."""
        self._open.pop(listen.id, None)
        self._interrupted = True
        refusal = await _refusal_of(listen)
        if refusal:
            self._refusals += 1
            self._enter(ListenState.REFUSED, refusal)
            if self._refusals == MOST_REFUSALS:
                self._note(f"the server does not announce changes: {refusal}")
                return
        else:
            (outcome,) = await asyncio.gather(listen.answer, return_exceptions=True)
            graceful = listen.ended or isinstance(outcome, Response)
            how = "the server ended it" if graceful else str(outcome)
            self._enter(ListenState.LOST, how)
        await asyncio.sleep(self._pauses.after(asyncio.get_running_loop().time() - listen.began))
        self._changed.set()

    def _everything_may_have_changed(self, filter_: ChangeFilter) -> None:
        for kind in sorted(filter_.lists):
            self._observer.list_changed(kind)
        for uri in sorted(filter_.resources):
            self._observer.resource_updated(uri)

    def _enter(self, state: ListenState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        if state is not ListenState.LISTENING:
            self.honoured = self.missing = ChangeFilter()
        self._moved.set()
        self._moved = asyncio.Event()
        self._observer.listening_changed()

    def _settled(self, uri: str) -> bool:
        """True once it is known whether changes of this resource are announced."""
        if self.state is ListenState.REFUSED:
            return True
        current = self._current
        return self.state is ListenState.LISTENING and current is not None and uri in current.filter.resources

    def _listen_of(self, params: Mapping[str, Any]) -> _Listen | None:
        meta = params.get("_meta")
        listen = self._by_id(as_dict(meta).get(SUBSCRIPTION_ID))
        if listen is None:
            self.strays += 1
        return listen

    def _by_id(self, request_id: object) -> _Listen | None:
        listen = self._open.get(request_id) if type(request_id) in (int, str) else None  # type: ignore[call-overload]
        return listen if listen is not None and type(listen.id) is type(request_id) else None


def _announces_changes(capability: object) -> bool:
    return isinstance(capability, dict) and capability.get("listChanged") is True


async def _refusal_of(listen: _Listen) -> str:
    """The server's reason for refusing a subscription that ended; empty if it did not refuse."""
    (outcome,) = await asyncio.gather(listen.answer, return_exceptions=True)
    if isinstance(outcome, Response) and outcome.error is not None:
        return f"{outcome.error.message} ({outcome.error.code})"
    return str(outcome) if isinstance(outcome, ServerError) or getattr(outcome, "lasting", False) else ""
