"""Tries what a server refused again after a sign-in, or a wider one, and never without end.

Specification: authorization, step-up authorization flow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from mcphost.errors import AuthorizationRequired, Declined, SessionExpired, SignInFailed
from mcphost.host.cancellation import is_cancelled
from mcphost.host.connections.connection import Connection
from mcphost.host.sign_in.service import SignIn, SignInService, SignInState

STEP_UPS: Final = 2
"""How often more rights are asked for on behalf of one operation before its refusal counts as final."""

_T = TypeVar("_T")


class AuthorizationRetry:
    """Tries operations again after a sign-in. ``begins``: an operation that is refused begins one by itself."""

    def __init__(self, sign_ins: SignInService, *, begins: bool) -> None:
        self.sign_ins, self.begins = sign_ins, begins

    def attempt(self, connection: Connection, operation: str) -> AuthorizedAttempt:
        """One try at ``operation`` (a tool's name, a URI) on this server."""
        return AuthorizedAttempt(self, connection, operation)

    def done(self, server: str) -> int:
        """How often somebody was signed in at this server, in this run."""
        return sum(each.server == server and each.state is SignInState.DONE for each in self.sign_ins.all.values())


class AuthorizedAttempt:
    """One operation that may need a sign-in on its way."""

    def __init__(self, retry: AuthorizationRetry, connection: Connection, operation: str) -> None:
        self._retry, self._connection = retry, connection
        self._key = (connection.name, operation)
        self._done = retry.done(connection.name)
        self._fresh = False
        self._another = False
        """Was somebody signed in since this was last sent?"""

    async def through(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do what changes nothing, and once more after each sign-in that it takes. Raises as `regain` and ``work``."""
        while True:
            try:
                result = await work()
            except AuthorizationRequired as refusal:
                await self.regain(refusal)
            else:
                self.succeeded()
                return result

    def succeeded(self) -> None:
        """The server let it through."""
        self._retry.sign_ins.step_ups.pop(self._key, None)

    async def regain(self, refusal: AuthorizationRequired, waits: Callable[[SignIn], None] = lambda it: None) -> None:
        """Return once it is worth trying again; ``waits`` is told which sign-in is waited for.

        Raises the refusal itself where no sign-in is begun, SignInFailed, or Declined where it was stopped.
        """
        name = self._connection.name
        if not self._retry.begins or not self._connection.config.signs_in:
            raise refusal
        if (done := self._retry.done(name)) == self._done:  # else somebody was signed in meanwhile
            self._count(refusal)
            sign_in = self._retry.sign_ins.begin_for(name, refusal)
            waits(sign_in)
            await _to_its_end(sign_in)
            done = self._retry.done(name)
        self._done, self._another = done, True
        await self._settled()

    async def reopened(self, gone: SessionExpired) -> None:
        """Return once there is another session, where the last was that of whoever was signed in before.

        Servers tie a session to its user and client, and know it no more for another. Raises ``gone`` where no sign-in
        explains it, or the request may have been done.
        """
        if not (self._another and gone.refused):
            raise gone
        self._another = False
        await self._settled()

    async def _settled(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._connection.config.startup_timeout_sec):
                await self._connection.settled(retries=True)

    def _count(self, refusal: AuthorizationRequired) -> None:
        """Raises SignInFailed where one more sign-in would only lead to the same refusal."""
        server, operation = self._key
        if refusal.status == 401:
            if self._fresh:
                raise SignInFailed(f"{server} refuses {operation} even with a fresh sign-in (HTTP 401)")
            self._fresh = True
            return
        if self._retry.sign_ins.step_ups[self._key] >= STEP_UPS:
            raise SignInFailed(
                f"{server} refuses {operation} for want of rights although they were widened {STEP_UPS} times "
                "(HTTP 403); to try once more, sign in to it yourself"
            )
        self._retry.sign_ins.step_ups[self._key] += 1


async def _to_its_end(sign_in: SignIn) -> None:
    """Wait for the sign-in. Cancelling the wait does not cancel the sign-in."""
    try:
        await sign_in.result()
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise Declined(f"the sign-in to {sign_in.server} was cancelled", by="user", rule="sign-in") from None
