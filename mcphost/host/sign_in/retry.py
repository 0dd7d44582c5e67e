"""Retries operations that a server refused with 401 or 403 after a sign-in, a bounded number of times.

Specification: authorization, step-up authorization flow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from mcphost.cancellation import is_cancelled
from mcphost.errors import AuthorizationRequired, Declined, SessionExpired, SignInFailed
from mcphost.host.connections.connection import Connection
from mcphost.host.sign_in.service import SignIn, SignInService, SignInState

STEP_UPS: Final = 2
"""Sign-ins with wider scopes for one operation, after which its refusal counts as final."""

_T = TypeVar("_T")


class SignInRetry:
    """Retries operations after a sign-in. ``begins``: a refused operation starts the sign-in itself."""

    def __init__(self, sign_ins: SignInService, *, begins: bool) -> None:
        self.sign_ins, self.begins = sign_ins, begins

    def operation(self, connection: Connection, name: str) -> RetriedOperation:
        """Return the retries of one operation; ``name`` (of a tool, a URI) is quoted in errors."""
        return RetriedOperation(self, connection, name)

    def completed(self, server: str) -> int:
        """The number of successful sign-ins to this server in this run."""
        return sum(each.server == server and each.state is SignInState.DONE for each in self.sign_ins.all.values())


class RetriedOperation:
    """One operation, which may need sign-ins before the server carries it out."""

    def __init__(self, retry: SignInRetry, connection: Connection, name: str) -> None:
        self._retry, self._connection = retry, connection
        self._key = (connection.entry, name)
        self._sign_ins_before = retry.completed(connection.entry)
        self._signed_in_after_401 = False
        self._session_may_be_stale = False
        """True if a sign-in succeeded since this was last sent."""

    async def run(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do ``work``, and repeat it after each sign-in it needs. Raises as `sign_in` and ``work``."""
        while True:
            try:
                result = await work()
            except AuthorizationRequired as refusal:
                await self.sign_in(refusal)
            else:
                self.succeeded()
                return result

    def succeeded(self) -> None:
        """The server carried it out: the count of its step-ups begins again."""
        self._retry.sign_ins.step_ups.pop(self._key, None)

    async def sign_in(self, refusal: AuthorizationRequired, on_wait: Callable[[SignIn], None] = lambda _: None) -> None:
        """Start a sign-in or join the running one, and return when the operation can be retried.

        ``on_wait`` gets the sign-in. Raises ``refusal`` if none may start, SignInFailed, or Declined if it was stopped.
        """
        name = self._connection.entry
        hopeless = refusal.held is not None and refusal.held.proof_refused
        if hopeless or not self._retry.begins or not self._connection.config.signs_in:
            raise refusal
        if (
            completed := self._retry.completed(name)
        ) == self._sign_ins_before:  # otherwise one succeeded in the meantime
            self._count(refusal)
            sign_in = self._retry.sign_ins.begin_for(name, refusal)
            on_wait(sign_in)
            await _wait_for(sign_in)
            completed = self._retry.completed(name)
        self._sign_ins_before, self._session_may_be_stale = completed, True
        await self._connection_settled()

    async def new_session(self, expired: SessionExpired) -> None:
        """Wait for a new session after a sign-in: servers drop the session of another user or client.

        Raises ``expired`` if no sign-in explains it, or if the server may have carried out the request.
        """
        if not (self._session_may_be_stale and expired.refused):
            raise expired
        self._session_may_be_stale = False
        await self._connection_settled()

    async def _connection_settled(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._connection.config.startup_timeout_sec):
                await self._connection.settled(retries=True)

    def _count(self, refusal: AuthorizationRequired) -> None:
        """Raise SignInFailed if another sign-in would only lead to the same refusal."""
        server, operation = self._key
        if refusal.status == 401:
            if self._signed_in_after_401:
                raise SignInFailed(
                    f"{server} refuses {operation} even with a fresh sign-in (HTTP 401){_reason(refusal)}"
                )
            self._signed_in_after_401 = True
            return
        if self._retry.sign_ins.step_ups[self._key] >= STEP_UPS:
            raise SignInFailed(
                f"{server} refuses {operation} for want of rights although they were widened {STEP_UPS} times "
                f"(HTTP 403){_reason(refusal)}; to try once more, sign in to it yourself"
            )
        self._retry.sign_ins.step_ups[self._key] += 1


def _reason(refusal: AuthorizationRequired) -> str:
    return f": {refusal.reason}" if refusal.reason else ""


async def _wait_for(sign_in: SignIn) -> None:
    """Wait for the sign-in. Cancelling the wait does not cancel the sign-in."""
    try:
        await sign_in.result()
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise Declined(f"the sign-in to {sign_in.server} was cancelled", by="user", rule="sign-in") from None
