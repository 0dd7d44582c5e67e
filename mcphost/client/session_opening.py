"""Opens a session: finds out which revision the server speaks, and makes the exchange that it begins with.

Specification: basic/lifecycle; 2026-07-28 basic/versioning and server/discover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from mcphost.cancellation import first_of
from mcphost.client.requests import result_of
from mcphost.errors import (
    ConnectionLost,
    EraUnclear,
    McphostError,
    NoAnswerFound,
    ProbeFailed,
    RequestTimeout,
    ServerError,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.negotiation import (
    Agreed,
    DiscoverAttempt,
    InitializeAttempt,
    LateDiscovery,
    Negotiation,
    Outcome,
    lists_modern,
)
from mcphost.protocol.lifecycle.revisions import Revision
from mcphost.protocol.lifecycle.session import ClientMetadata, ModernRules
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.protocol.wire.jsonrpc import Request, RequestId, Response
from mcphost.transports.base import Transport

Declare = Callable[[Revision], Mapping[str, Any]]
"""The capabilities to declare in this revision."""

MOST_PROBE_SECONDS: Final = 10.0
"""For the answer to ``server/discover``: a cold server on a busy machine takes up to 6 s."""

PROBE_SHARE: Final = 3
"""The probe may take this part of the time for opening: a server that ignores it needs time for ``initialize``."""

STRAY_LINES: Final = 3
"""Lines that are not messages, after which a silent server is taken to write nothing else."""

SILENCE: Final = 5.0
"""Seconds without output that end the wait for an answer to ``initialize``, if something else came before."""

PROBE_SILENCE: Final = 1.0
"""As `SILENCE`, for the probe: its answer is still taken when it comes while ``initialize`` is waited for."""


MARK_KEY: Final = "mcphost/process"
"""The member of ``_meta`` by which an mcphost recognizes itself behind a server."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Name and version under which mcphost introduces itself, with nothing about the machine."""

    version: str
    name: str = "mcphost"
    mark: str = ""
    """A random name of this process, for servers that may be mcphost; empty for all others."""

    def as_object(self) -> dict[str, str]:
        """The ``clientInfo``."""
        return {"name": self.name, "title": self.name, "version": self.version}

    @property
    def marked(self) -> Mapping[str, Any]:
        """The params with which a session is opened, whatever its revision."""
        return {"_meta": {MARK_KEY: self.mark}} if self.mark else {}


class UnusableOutput:
    """A server's output instead of an answer, while its session is opened."""

    def __init__(self) -> None:
        self._strays = 0
        self._pieces = False
        self._mismatch = ""
        self._wrote = asyncio.Event()

    @property
    def words(self) -> str:
        """A sentence about what came instead of an answer; empty while that is not certain."""
        if self._mismatch:
            return self._mismatch
        if self._pieces or self._strays >= STRAY_LINES:
            return "the server writes lines that are not messages; each message must be one line of JSON"
        return ""

    def stray(self, line: bytes) -> None:
        """Count a line that is not JSON."""
        self._strays += 1
        # A piece of a message, or the header of another framing: no program writes these into its log.
        self._pieces = self._pieces or b'"jsonrpc"' in line or line.lower().startswith(b"content-length:")
        self.wrote()

    def mismatched(self, words: str) -> None:
        """Note an answer to no request; ``words`` name its id."""
        self._mismatch = words
        self.wrote()

    def wrote(self) -> None:
        """The server wrote something."""
        self._wrote.set()
        self._wrote = asyncio.Event()

    async def instead_of_answer(self, seconds: float) -> NoReturn:
        """Raise NoAnswerFound once only unusable output came, and nothing more for ``seconds``."""
        while True:
            wrote = self._wrote
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds if self.words else None):
                    await wrote.wait()
            if self.words and not wrote.is_set():
                raise NoAnswerFound(self.words)


class SessionOpening:
    """Opens one session over ``transport``, within ``seconds`` that the caller enforces.

    ``only_modern``: no ``initialize`` follows the probe, which may take all the time. ``handshake_begins`` is called
    before the first ``initialize`` is sent: from then on the server may send requests.
    """

    def __init__(
        self,
        transport: Transport,
        ids: Iterator[RequestId],
        identity: Identity,
        declare: Declare,
        seconds: float,
        handshake_begins: Callable[[], None],
        *,
        only_modern: bool = False,
    ) -> None:
        self._transport, self._ids, self._identity, self._declare = transport, ids, identity, declare
        self._probe_seconds = None if only_modern else min(MOST_PROBE_SECONDS, seconds / PROBE_SHARE)
        self._handshake_begins = handshake_begins
        self._probe: asyncio.Task[Response] | None = None
        """The probe, as long as its answer may still come."""
        self._refused_probe = False
        """True if the process behind a pipe answered the probe with an error."""
        self._step, self._began = "initialize", asyncio.get_running_loop().time()
        self.unusable = UnusableOutput()
        self.lost: Exception | None = None
        """The reason if the connection ended meanwhile; pending requests fail with it, and say more."""
        self.probe_seconds = 0.0
        """Duration of the wait for the last probe."""

    async def negotiate(self, negotiation: Negotiation) -> Agreed:
        """Make the attempts that ``negotiation`` demands. Raises what it raises, and ProbeFailed."""
        attempt = next(negotiation)
        try:
            while True:
                outcome = await self._outcome(attempt)
                attempt = negotiation.send(outcome)
        except StopIteration as agreed:
            value: Agreed = agreed.value
            return value
        except ServerError as error:
            about_version = error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION
            if not self._refused_probe or self._step != "initialize" or about_version:
                raise
            what = f"refused initialize after it was asked for its protocol versions: {error}"
            raise probe_failed(what) from None
        finally:
            if self._probe is not None:
                self._probe.cancel()
                await asyncio.gather(self._probe, return_exceptions=True)

    def begin(self, step: str) -> None:
        """Note that this request or notification is sent now."""
        self._step, self._began = step, asyncio.get_running_loop().time()

    def timed_out(self) -> McphostError:
        """The exception for an opening that took too long: names the step, and its share of the time."""
        if self._probe is not None and self._step == "initialize":
            return probe_failed("answered nothing after it was asked for its protocol versions", silent=True)
        seconds = round(asyncio.get_running_loop().time() - self._began, 1)
        return RequestTimeout(self._step, seconds, instead=self.unusable.words)

    async def _outcome(self, attempt: DiscoverAttempt | InitializeAttempt) -> Outcome | LateDiscovery:
        try:
            if isinstance(attempt, DiscoverAttempt):
                return await self._discover(attempt.revision)
            return await self._initialize(attempt.offer)
        except McphostError as error:
            return error

    async def _discover(self, revision: Revision) -> Mapping[str, Any]:
        metadata = ClientMetadata(self._identity.as_object(), lambda: self._declare(revision))
        rules = ModernRules(revision, metadata)
        request = rules.stamped(Request(next(self._ids), "server/discover", self._identity.marked))
        headers = rules.headers(request) if self._transport.own_stream else {}
        self.begin(request.method)
        self._probe = asyncio.create_task(self._transport.request(request, headers), name="probe")
        try:
            async with asyncio.timeout(self._probe_seconds):
                await first_of(wait_for(self._probe), self.unusable.instead_of_answer(PROBE_SILENCE))
        except TimeoutError:
            raise RequestTimeout(request.method, self._probe_seconds or 0) from None
        finally:
            self.probe_seconds = asyncio.get_running_loop().time() - self._began
        probe, self._probe = self._probe, None
        try:
            result = result_of(probe.result(), request.method)
        except ConnectionLost as lost:
            if self._transport.own_stream:
                raise
            raise probe_failed("exited when it was asked for its protocol versions", lost) from None
        except ServerError:
            self._refused_probe = not self._transport.own_stream
            raise
        return result

    async def _initialize(self, offer: Revision) -> Mapping[str, Any] | LateDiscovery:
        self._handshake_begins()
        params = {
            "protocolVersion": offer.version,
            "capabilities": self._declare(offer),
            "clientInfo": self._identity.as_object(),
            **self._identity.marked,
        }
        self.begin("initialize")
        request = Request(next(self._ids), "initialize", params)
        answer = asyncio.create_task(self._transport.request(request, {}), name="initialize")
        # Both may end in one round of the event loop; which came first decides the era, so that the order is recorded.
        ended: list[asyncio.Task[Response]] = []
        for task in filter(None, (answer, self._probe)):
            task.add_done_callback(ended.append)
        try:
            waiting = [wait_for(answer), self.unusable.instead_of_answer(SILENCE)]
            await first_of(*waiting, *([] if self._probe is None else [self._late_discovery(self._probe)]))
            if (late := self._discovered(self._probe)) is not None and ended[0] is self._probe:
                await self._see_refused(answer)
                return LateDiscovery(late)
            return result_of(answer.result(), "initialize")
        except ConnectionLost as lost:
            if self._probe is not None and not self._transport.own_stream:
                raise probe_failed("exited after it was asked for its protocol versions", lost) from None
            raise
        finally:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    async def _see_refused(self, answer: asyncio.Task[Response]) -> None:
        """Wait for a program's answer to an ``initialize`` that is no longer wanted. Raises EraUnclear for a result."""
        if self._transport.own_stream:
            return  # what is abandoned there has no effect on other requests
        await asyncio.wait((answer,), timeout=SILENCE)
        if answer.done() and answer.exception() is None and answer.result().error is None:
            raise EraUnclear("the server answered late when it was asked for its protocol versions (server/discover)")

    async def _late_discovery(self, probe: asyncio.Task[Response]) -> None:
        """Return once the probe is answered by a modern server after all; wait for ever after any other answer."""
        await wait_for(probe)
        if self._discovered(probe) is None:
            await asyncio.Event().wait()

    @staticmethod
    def _discovered(probe: asyncio.Task[Response] | None) -> Mapping[str, Any] | None:
        if probe is None or not probe.done() or probe.cancelled() or probe.exception() is not None:
            return None
        result = probe.result().result
        return result if result is not None and lists_modern(result) else None


async def wait_for(task: asyncio.Task[Response]) -> None:
    """Wait until the task has ended, in whatever way. Cancelling the wait leaves it alone."""
    await asyncio.wait((task,))


def probe_failed(what: str, lost: ConnectionLost | None = None, *, silent: bool = False) -> ProbeFailed:
    """The failure of a server that did not survive the probe; ``what`` it did, as a clause."""
    message = f"the server {what} (server/discover)"
    if lost is None:
        return ProbeFailed(message, silent=silent)
    return ProbeFailed(message, exit_code=lost.exit_code, stderr_tail=lost.stderr_tail)
