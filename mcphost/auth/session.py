"""One server's sign-in as its transport uses it: a token that is good now, without ever asking a person.

Knows when a token is renewed, and that several calls and several mcphosts share one renewal. Refuses to start a
sign-in.

Specification: authorization, token handling and refresh.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from mcphost.auth.flow.oauth import SignInRequest, refresh, sign_in_machine
from mcphost.auth.flow.steps import Flow, HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.http import Fetcher, Resolve, resolve
from mcphost.auth.ports import OAuthSettings
from mcphost.auth.storage.credentials import Credentials, TokenGrant
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import ConfigError, SignInFailed

COOL_DOWN: Final = 30.0
"""Seconds after a renewal that failed in which none is tried."""

_T = TypeVar("_T")


class TokenSession:
    """Signs requests to ``url`` as far as that needs nobody. ``now`` gives seconds since 1970."""

    def __init__(
        self,
        server: str,
        url: str,
        settings: OAuthSettings,
        store: TokenStore,
        now: Callable[[], float],
        resolve: Resolve = resolve,
    ) -> None:
        self.server, self.url, self.settings = server, url, settings
        self.fetch = Fetcher(url, resolve).fetch
        self.problem = ""
        """Why the last renewal did not work; empty where it did."""
        self._store, self._now = store, now
        self._pause = (0.0, 0.0)
        self._renewal: asyncio.Task[TokenGrant | None] | None = None

    async def grant(self) -> TokenGrant | None:
        """What this server was signed in with."""
        return self._usable(await self._store.read(self.server))

    async def token(self) -> str:
        """The token to send; empty where there is none. One that is about to end is renewed first."""
        grant = await self.grant()
        if grant is None:
            return ""
        if self._wants_renewal(grant):
            grant = await self._renewed(grant.access_token, "") or grant
        return grant.access_token

    async def replacement(self, rejected: str, challenge: str) -> str:
        """Another token than the one that was refused with a 401; empty where only a person can get one."""
        grant = await self._renewed(rejected, challenge)
        return "" if grant is None or grant.access_token == rejected else grant.access_token

    def renewed(self) -> None:
        """A person signed in: what went wrong with the grant before says nothing of this one."""
        self.problem, self._pause = "", (0.0, 0.0)

    async def settle(self) -> None:
        """Wait until no renewal is under way."""
        if self._renewal is not None:
            await asyncio.wait([self._renewal])

    async def _renewed(self, old: str, challenge: str) -> TokenGrant | None:
        """The grant after a renewal, one for all who want it; None where it did not work.

        It goes on where the call that wanted it is cancelled: an answer that nobody read would be a token lost.
        """
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(old, challenge), name=f"renew the token of {self.server}")
        return await asyncio.shield(self._renewal)

    async def _renew(self, old: str, challenge: str) -> TokenGrant | None:
        try:
            async with self._store.changing(self.server) as held:
                current = self._usable(held)
                if current is not None and current.access_token != old and not self._wants_renewal(current):
                    return current  # another mcphost was first
                return None if self._pausing() else await self._asked_for(current, challenge, held)
        except ConfigError as error:  # the lock cannot be had
            self.problem = str(error)
            return None

    async def _asked_for(self, current: TokenGrant | None, challenge: str, held: Credentials) -> TokenGrant | None:
        try:
            if self.settings.grant == "client_credentials":
                request = SignInRequest(self.server, self.url, self.settings, challenge, known=held)
                renewed = await carry_out(sign_in_machine(request, self._now), self.fetch)
            elif current is not None and current.refresh_token:
                renewed = await carry_out(refresh(current, self.settings, self._now), self.fetch)
            else:
                return None
        except SignInFailed as error:
            await self._failed(error, held, current)
            return None
        await self._store.write(self.server, held.with_grant(renewed))
        self.problem = ""
        self._pause = self._now(), renewed.slack  # a token this young that is refused is not helped by a younger one
        return renewed

    async def _failed(self, error: SignInFailed, held: Credentials, current: TokenGrant | None) -> None:
        """Forget a grant only where the authorization server says, of this very one, that it is over."""
        self.problem = str(error)
        self._pause = self._now(), COOL_DOWN
        if error.code == "invalid_client" and current is not None and current.client.kept:
            await self._store.write(self.server, held.without_client(current.issuer))
        elif error.code == "invalid_grant" and current is not None:
            await self._store.write(self.server, held.without_grant(current))

    def _usable(self, held: Credentials) -> TokenGrant | None:
        """The grant for this server, unless the configuration names another authorization server by now."""
        grant = held.grant_for(self.url)
        return grant if grant is not None and self.settings.takes(grant.issuer) else None

    def _wants_renewal(self, grant: TokenGrant) -> bool:
        able = bool(grant.refresh_token) or self.settings.grant == "client_credentials"
        return able and grant.due(self._now()) and not self._pausing()

    def _pausing(self) -> bool:
        since, seconds = self._pause
        return 0 <= self._now() - since < seconds  # not where the clock was set back


async def carry_out(flow: Flow[_T], fetch: Callable[[HttpExchange], Awaitable[HttpAnswer | Unreachable]]) -> _T:
    """Work through a flow that needs nobody. Raises SignInFailed."""
    outcome = None
    try:
        while True:
            step = flow.send(outcome)
            if not isinstance(step, HttpExchange):
                raise SignInFailed("a person is needed for this")
            outcome = await fetch(step)
    except StopIteration as end:
        result: _T = end.value
        return result
    finally:
        flow.close()
