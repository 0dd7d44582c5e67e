"""Puts a valid token on every request to one server, without ever asking a person.

Renews tokens before they expire, and once when the server answers 401; concurrent calls, and other mcphost processes,
share one renewal.

Specification: authorization, token usage, token handling and refresh.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import httpx

from mcphost.auth import dpop
from mcphost.auth.assertions import AssertionReader, Assertions
from mcphost.auth.dpop import Nonces, ProofKey, Prover
from mcphost.auth.flow.discovered import SignInRequest
from mcphost.auth.flow.grants import flow_of, repeats
from mcphost.auth.flow.oauth import refresh
from mcphost.auth.flow.steps import PERSON
from mcphost.auth.http import Fetcher, ResolveHost, resolve
from mcphost.auth.identity_session import IdentitySession
from mcphost.auth.ports import OAuthSettings, obtains_alone
from mcphost.auth.shared_renewal import RENEWAL_PAUSE, SharedRenewal
from mcphost.auth.step_runner import StepRunner, run_flow
from mcphost.auth.storage.credentials import Credentials, TokenGrant
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import ConfigError, HeldSignIn, SignInFailed

FORGOTTEN_CLIENT: Final = ("invalid_client", "unauthorized_client")
"""The codes by which authorization servers say that they do not know a client any more."""

RENEWAL_SECONDS: Final = 60.0
"""Of all steps by which a program gets a token; other processes wait for them."""

HEADER: Final = "Authorization"


class TokenSession:
    """The tokens for requests to ``url``. ``now`` gives seconds since 1970."""

    def __init__(
        self,
        server: str,
        url: str,
        settings: OAuthSettings,
        store: TokenStore,
        now: Callable[[], float],
        resolve: ResolveHost = resolve,
        nonces: Nonces | None = None,
        assertions: AssertionReader | None = None,
        identity: IdentitySession | None = None,
    ) -> None:
        self.server, self.url, self.settings, self.identity = server, url, settings, identity
        self.steps = StepRunner(Fetcher(url, resolve).fetch)
        if settings.assertion is not None and assertions is not None:
            self.steps.assertions = Assertions(settings.assertion, assertions, server)
        if identity is not None:
            self.steps.identity = identity.token
        self.nonces = nonces or Nonces()
        self.problem = ""
        """Why the last renewal failed; empty if it did not."""
        self._store, self._now = store, now
        self._pause = (0.0, 0.0)
        self._renewal = SharedRenewal[TokenGrant | None](f"renew the token of {server}")
        self._ready_key: ProofKey | None = None

    async def grant(self) -> TokenGrant | None:
        """The grant of the last sign-in, if the configuration still allows it."""
        return self._usable(await self._store.read(self.server))

    async def grant_to_send(self) -> TokenGrant | None:
        """The grant whose token is to be sent, if any. A token that is about to expire is renewed first."""
        grant = await self.grant()
        if grant is not None and self._needs_renewal(grant):
            grant = await self._renew_once(grant.access_token, "") or grant
        return await self._ready(grant)

    async def replacement(self, rejected: str, challenge: str) -> TokenGrant | None:
        """A grant to replace one whose token was refused with a 401; None if only a person can obtain one."""
        grant = await self._renew_once(rejected, challenge)
        return None if grant is None or grant.access_token == rejected else await self._ready(grant)

    def present(self, grant: TokenGrant | None, request: httpx.Request) -> None:
        """Put the token of ``grant`` on a request, and a new proof if it is bound to a key."""
        if grant is None:
            return
        request.headers[HEADER] = f"{grant.token_type} {grant.access_token}"
        request.headers.pop(dpop.HEADER, None)
        if (prover := self._prover(grant)) is not None:
            url, token = str(request.url), grant.access_token
            request.headers[dpop.HEADER] = prover.proof(request.method, url, self._now(), token)

    def learn_nonce(self, grant: TokenGrant | None, response: httpx.Response) -> bool:
        """Remember the nonce that a response gives to the holder of a key; return whether there is one."""
        prover = None if grant is None else self._prover(grant)
        if prover is None:
            return False
        return prover.learn(str(response.request.url), response.headers.get(dpop.NONCE_HEADER))

    def proof_problem(self, response: httpx.Response) -> str:
        """Why the server may have refused a proof, as a sentence."""
        advice = dpop.clock_advice(response.headers.get("date"), self._now())
        return f"the server does not take the proof of the key{f': {advice}' if advice else ''}"

    def _prover(self, grant: TokenGrant) -> Prover | None:
        return Prover(grant.key, self.nonces, "server") if grant.bound and grant.key is not None else None

    async def _ready(self, grant: TokenGrant | None) -> TokenGrant | None:
        if grant is not None and grant.key is not None and grant.key != self._ready_key:
            self._ready_key = await asyncio.to_thread(dpop.ready_key, grant.key)
        return grant

    async def held(self) -> HeldSignIn:
        """The sign-in of the last request, for advice on why it was refused."""
        grant, problem = await self.grant(), ""
        if grant is None and (unread := self._store.unread(self.server)):
            problem = f"the keychain cannot be asked: {unread}"
        elif self.problem:
            machine = obtains_alone(self.settings) or (grant is None and repeats(self.settings))
            problem = f"{'mcphost got no token' if machine else 'the sign-in could not be renewed'}: {self.problem}"
        if grant is None:
            return HeldSignIn(problem=problem)
        expired = grant.expires_at is not None and grant.expires_at <= self._now()
        age = None if grant.signed_in_at is None else self._now() - grant.signed_in_at
        scopes = tuple(dict.fromkeys((*grant.asked, *grant.scopes)))
        return HeldSignIn(not expired, scopes, age, problem)

    def forget_failures(self) -> None:
        """Try again at once: a person has signed in, or wants to."""
        self.problem, self._pause = "", (0.0, 0.0)
        if self.steps.assertions is not None:
            self.steps.assertions.forget_refusals()

    @property
    def renewing(self) -> bool:
        return self._renewal.running

    async def wait_closed(self) -> None:
        """Wait for the renewal under way, if any."""
        await self._renewal.wait_closed()

    async def _renew_once(self, old: str, challenge: str) -> TokenGrant | None:
        """Return the grant after one shared renewal; None if it failed."""
        return await self._renewal.join(lambda: self._renew(old, challenge))

    async def _renew(self, old: str, challenge: str) -> TokenGrant | None:
        try:
            async with self._store.changing(self.server) as held:
                current = self._usable(held)
                if current is not None and current.access_token != old and not self._needs_renewal(current):
                    return current  # another process renewed it first
                return None if self._cooling_down() else await self._obtain(current, challenge, held)
        except ConfigError as error:  # the lock is held by another process
            self.problem = str(error)
            return None

    async def _obtain(self, current: TokenGrant | None, challenge: str, held: Credentials) -> TokenGrant | None:
        try:
            if repeats(self.settings):
                request = SignInRequest(self.server, self.url, self.settings, challenge, known=held, nonces=self.nonces)
                try:
                    async with asyncio.timeout(RENEWAL_SECONDS):
                        renewed = await run_flow(flow_of(self.settings)(request, self._now), self.steps.do)
                except TimeoutError:
                    raise SignInFailed(f"the steps to a token took more than {RENEWAL_SECONDS:g} s") from None
            elif current is not None and current.refresh_token:
                if unread := self._store.unread(self.server):  # another mcphost may have used this refresh token
                    self.problem = f"the keychain cannot be asked: {unread}"
                    return None
                await self._ready(current)
                renewed = await run_flow(refresh(current, self.settings, self._now, self.nonces), self.steps.do)
            else:
                return None
        except SignInFailed as error:
            await self._failed(error, held, current)
            return None
        if self.identity is not None:  # first, so that a sign-out of the identity finds the grant
            await self.identity.add_server(self.server)
        await self._store.write(self.server, held.with_grant(renewed))
        self.problem = ""
        self._pause = self._now(), renewed.slack  # if a token this young is refused, another one does not help
        return renewed

    async def _failed(self, error: SignInFailed, held: Credentials, current: TokenGrant | None) -> None:
        """Forget a grant only if the authorization server says that this very grant is invalid."""
        self.problem = "" if error.code == PERSON else str(error)  # no one agreed to the first sign-in yet
        self._pause = self._now(), RENEWAL_PAUSE
        if error.code in FORGOTTEN_CLIENT and current is not None and current.client.kept:
            await self._store.write(self.server, held.without_client(current.issuer))
        elif error.code == "invalid_grant" and current is not None and not repeats(self.settings):
            await self._store.write(self.server, held.without_grant(current))

    def _usable(self, held: Credentials) -> TokenGrant | None:
        """The grant for this server, unless the configuration now requires another issuer, binding or identity."""
        grant, identity = held.grant_for(self.url, self.settings.resource), self.settings.identity
        if grant is None or not self.settings.takes(grant.issuer):
            return None
        if obtains_alone(self.settings) and grant.signed_in_at is not None:
            return None  # a person's token is not one of this program's
        unfit = {"require": not grant.bound, "off": grant.bound, "auto": False}
        own = ("", "") if identity is None else (identity.name, identity.issuer)
        return None if unfit[self.settings.dpop] or (grant.identity, grant.identity_issuer) != own else grant

    def _needs_renewal(self, grant: TokenGrant) -> bool:
        able = bool(grant.refresh_token) or repeats(self.settings)
        return able and grant.due(self._now()) and not self._cooling_down()

    def _cooling_down(self) -> bool:
        since, seconds = self._pause
        return 0 <= self._now() - since < seconds  # the clock may have been set back
