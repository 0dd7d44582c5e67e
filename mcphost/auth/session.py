"""One server's sign-in as its transport uses it: a token that is good now, without ever asking a person.

Knows when a token is renewed, and that several calls and several mcphosts share one renewal. Refuses to start a
sign-in.

Specification: authorization, token handling and refresh.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from mcphost.auth.base import OAuthSettings
from mcphost.auth.credentials import Credentials, Grant
from mcphost.auth.fetching import Fetcher
from mcphost.auth.oauth import SignInRequest, refresh, sign_in_machine
from mcphost.auth.tokens import TokenStore
from mcphost.auth.wire import Fetch, Fetched, Flow, Unreachable
from mcphost.errors import SignInFailed

COOL_DOWN: Final = 30.0
"""Seconds between two attempts to renew that failed for another reason than a refusal."""

_T = TypeVar("_T")


class TokenSession:
    """Signs requests to ``url`` as far as that needs nobody. ``now`` gives seconds since 1970."""

    def __init__(
        self, server: str, url: str, settings: OAuthSettings, store: TokenStore, now: Callable[[], float]
    ) -> None:
        self.server, self.url, self.settings = server, url, settings
        self.problem = ""
        """Why the last renewal did not work; empty where it did."""
        self._store, self._now = store, now
        self._not_before = 0.0

    async def grant(self) -> Grant | None:
        """What this server was signed in with."""
        return (await self._store.read(self.server)).grant_for(self.url)

    async def token(self) -> str:
        """The token to send; empty where there is none. One that is about to end is renewed first."""
        grant = await self.grant()
        if grant is None:
            return ""
        if grant.due(self._now()) and self._can_renew(grant) and self._now() >= self._not_before:
            grant = await self._renewed(grant.access_token, "") or grant
        return grant.access_token

    async def replacement(self, rejected: str, challenge: str) -> str:
        """Another token than the one that was refused with a 401; empty where only a person can get one."""
        if not rejected and self.settings.grant != "client_credentials":  # another mcphost may have signed in since
            found = (await self._store.read(self.server, again=True)).grant_for(self.url)
            return "" if found is None else found.access_token
        renewed = await self._renewed(rejected, challenge)
        return "" if renewed is None or renewed.access_token == rejected else renewed.access_token

    def _can_renew(self, grant: Grant) -> bool:
        return bool(grant.refresh_token) or self.settings.grant == "client_credentials"

    async def _renewed(self, old: str, challenge: str) -> Grant | None:
        """The grant after a renewal, by us or by whoever was first; None where it did not work."""
        async with self._store.changing(self.server) as held:
            current = held.grant_for(self.url)
            if current is not None and current.access_token != old:
                return current
            try:
                renewed = await self._renew(current, challenge, held)
            except SignInFailed as error:
                await self._failed(error, held, current)
                return None
            self.problem, self._not_before = "", 0.0
            if renewed is not None:
                await self._store.write(self.server, held.with_grant(renewed))
            return renewed

    async def _renew(self, current: Grant | None, challenge: str, held: Credentials) -> Grant | None:
        if self.settings.grant == "client_credentials":
            request = SignInRequest(self.server, self.url, self.settings, challenge, known=held)
            return await self._run(sign_in_machine(request, self._now))
        if current is None or not current.refresh_token:
            return None
        return await self._run(refresh(current, self.settings, self._now))

    async def _failed(self, error: SignInFailed, held: Credentials, current: Grant | None) -> None:
        """Forget a grant only where the authorization server says, of this very one, that it is over."""
        self.problem = str(error)
        self._not_before = self._now() + COOL_DOWN
        if error.code == "invalid_client" and current is not None and current.client.kept:
            await self._store.write(self.server, held.without_client(current.issuer))
        elif error.code == "invalid_grant" and current is not None:
            await self._store.write(self.server, held.without_grant(current))

    async def _run(self, flow: Flow[_T]) -> _T:
        fetcher = Fetcher(self.url)
        try:
            return await carry_out(flow, fetcher.fetch)
        finally:
            await fetcher.aclose()


async def carry_out(flow: Flow[_T], fetch: Callable[[Fetch], Awaitable[Fetched | Unreachable]]) -> _T:
    """Work through a flow that needs nobody. Raises SignInFailed."""
    outcome = None
    try:
        while True:
            step = flow.send(outcome)
            if not isinstance(step, Fetch):
                raise SignInFailed("a person is needed for this")
            outcome = await fetch(step)
    except StopIteration as end:
        result: _T = end.value
        return result
    finally:
        flow.close()
