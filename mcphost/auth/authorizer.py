"""Signs servers in and out: runs the flow with a person, and stores its outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from mcphost.auth import http as auth_http
from mcphost.auth import masking
from mcphost.auth.accounts import confirmation
from mcphost.auth.assertions import AssertionReader
from mcphost.auth.dpop import Nonces
from mcphost.auth.flow import oauth
from mcphost.auth.flow.callback import read_redirect, why_turned_away
from mcphost.auth.flow.discovered import OFFLINE, SignInRequest
from mcphost.auth.flow.grants import flow_of, repeats
from mcphost.auth.flow.identity import ask_for_identity
from mcphost.auth.flow.steps import (
    AskConsent,
    FlowStep,
    GetAssertion,
    HttpAnswer,
    HttpExchange,
    ListenForCallback,
    PendingAuthorization,
    SignInIdentity,
    Unreachable,
    VisitAuthorizationPage,
)
from mcphost.auth.http import ResolveHost
from mcphost.auth.identity_session import IdentitySession
from mcphost.auth.loopback import Loopback, Parameters
from mcphost.auth.ports import (
    BOUND,
    CALLBACK_SECONDS,
    AuthorizationLink,
    IdentitySettings,
    OAuthSettings,
    SignInExchange,
    SignInStatus,
    SignInUser,
    obtains_alone,
)
from mcphost.auth.session import FORGOTTEN_CLIENT, TokenSession
from mcphost.auth.step_runner import StepRunner, run_flow
from mcphost.auth.storage.credentials import Credentials, TokenGrant
from mcphost.auth.storage.identities import KeptIdentity
from mcphost.auth.storage.tokens import TokenStore
from mcphost.errors import SignInFailed

ENDING_SECONDS: Final = 3.0
"""Seconds that closing waits for renewals and revocations."""

NOT_THE_ADDRESS: Final = "that is not the address this sign-in ends at: copy the one the browser shows after you agreed"


class Authorizer:
    """Signs all servers in and out, over one token store. Call `session` for a server before anything else."""

    def __init__(
        self,
        store: TokenStore,
        now: Callable[[], float] = time.time,
        *,
        resolve: ResolveHost = auth_http.resolve,
        assertions: AssertionReader | None = None,
    ) -> None:
        self._store, self._now, self._resolve, self._assertions = store, now, resolve, assertions
        self._identity_store = store.beside(KeptIdentity)
        self._sessions: dict[str, TokenSession] = {}
        self._identities: dict[str, IdentitySession] = {}
        self._replaced: list[TokenSession | IdentitySession] = []
        """Those of earlier settings, whose renewals may be under way."""
        self._nonces = Nonces()
        self._turns: dict[str, asyncio.Lock] = {}
        self._revoking: set[asyncio.Task[str]] = set()

    def session(self, server: str, url: str, settings: OAuthSettings) -> TokenSession:
        """Return the tokens for this server's requests. From now on the server can be signed in."""
        session = self._sessions.get(server)
        if session is None or (session.url, session.settings) != (url, settings):
            identity = None if settings.identity is None else self.identity(settings.identity)
            session = TokenSession(
                server, url, settings, self._store, self._now, self._resolve, self._nonces, self._assertions, identity
            )
            self._replace(self._sessions.get(server))
            self._sessions[server] = session
        return session

    def identity(self, settings: IdentitySettings) -> IdentitySession:
        """Return the sign-in of this identity, which all its servers share."""
        identity = self._identities.get(settings.name)
        if identity is None or identity.settings != settings:
            identity = IdentitySession(settings, self._identity_store, self._now, self._resolve, self._assertions)
            self._replace(self._identities.get(settings.name))
            self._identities[settings.name] = identity
        return identity

    async def sign_in_identity(self, settings: IdentitySettings, person: SignInUser) -> SignInStatus:
        """Sign in at the identity provider, also if someone is signed in. Raises as `sign_in`."""
        identity = self.identity(settings)
        runner = _FlowRunner(identity.steps, person)
        try:
            await run_flow(ask_for_identity(settings), runner.do)
            step = SignInIdentity(await identity.present_token())
            await identity.sign_in(step, lambda flow: run_flow(flow, runner.do))
        finally:
            await runner.aclose()
        self._signed_in(identity)
        status = await identity.status()
        return SignInStatus(
            signed_in=status.signed_in,
            issuer=status.issuer,
            client_id=settings.client_id,
            expires_at=status.expires_at,
            renewable=status.renewable,
            kept_in=status.kept_in,
        )

    async def sign_out_identity(self, settings: IdentitySettings) -> tuple[str, Sequence[str]]:
        """Forget the sign-in of the identity, and the grants that were made with it; return what happened."""
        identity = self.identity(settings)
        kept, problem = await identity.sign_out()
        for server in kept.servers:
            async with self._store.changing(server) as held:
                grants = tuple(grant for grant in held.grants if grant.identity != settings.name)
                if not await self._store.write(server, held.model_copy(update={"grants": grants})):
                    raise SignInFailed(
                        f"the keychain may hold the tokens of {server} still: {self._store.problem}; sign out once "
                        "more when it can be asked"
                    )
        await identity.forget_servers(kept.servers)
        also = f"the tokens of {', '.join(kept.servers)} are forgotten" if kept.servers else ""
        if not (kept.id_token or kept.refresh_token):
            return also or "no one was signed in", kept.servers
        done = "the tokens are revoked and forgotten" if kept.refresh_token else "the tokens are forgotten"
        words = f"the refresh token was not revoked: {problem}" if problem else done
        return "; ".join(filter(None, ["signed out", words, also])), kept.servers

    async def sign_in(self, server: str, challenge: str, status: int, person: SignInUser) -> SignInStatus:
        session = self._known_session(server)
        async with self._turns.setdefault(server, asyncio.Lock()):
            known = await self._store.read(server, again=True)
            settings = session.settings
            if person.began:
                session.forget_failures()
            request = SignInRequest(server, session.url, settings, challenge, status, known, nonces=self._nonces)
            runner = _FlowRunner(session.steps, person, session.identity)
            try:
                grant = await run_flow(flow_of(settings)(request, self._now), runner.do)
            except SignInFailed as error:
                registers = error.code in FORGOTTEN_CLIENT and not obtains_alone(settings)
                if registers and await self._forget_clients(server):
                    raise SignInFailed(f"{error}; the next sign-in registers mcphost again", code=error.code) from None
                raise
            finally:
                await runner.aclose()
            await self._confirm(known, grant, session, person)
            if session.identity is not None:  # first, so that a sign-out of the identity finds the grant
                await session.identity.add_server(server)
            async with self._store.changing(server) as held:
                await self._store.write(server, held.with_grant(grant))
            if session.identity is not None:
                self._signed_in(session.identity)
            session.forget_failures()
            return await self.status(server)

    async def status(self, server: str) -> SignInStatus:
        session = self._known_session(server)
        grant = await session.grant()
        if grant is None:
            unread = self._store.unread(server)
            return SignInStatus(False, problem=f"the keychain cannot be asked: {unread}" if unread else session.problem)
        return SignInStatus(
            signed_in=True,
            issuer=grant.issuer,
            resource=grant.resource,
            client_id=grant.client.client_id,
            scopes=grant.scopes,
            asked=tuple(scope for scope in grant.asked if scope != OFFLINE or not grant.refresh_token),
            expires_at=grant.expires_at,
            renewable=bool(grant.refresh_token) or repeats(session.settings),
            problem=session.problem,
            kept_in=self._store.place(server),
            identity=grant.identity,
            binding=_binding(grant),
        )

    async def sign_out(self, server: str) -> str:
        session = self._known_session(server)
        async with self._store.changing(server) as held:
            deleted = await self._store.write(server, Credentials())
        problems = [await self._revoke(grant, session) for grant in held.grants]
        if not deleted:
            raise SignInFailed(
                f"the tokens are forgotten in this run, but the keychain may hold them still: {self._store.problem}; "
                "sign out once more when it can be asked"
            )
        if not problems:
            return "no one was signed in"
        problem = next(filter(None, problems), "")
        outcome = (
            f"the tokens were not revoked, and end by themselves: {problem}" if problem else "the tokens were revoked"
        )
        return f"signed out; {outcome}"

    async def aclose(self) -> None:
        """Wait at most `ENDING_SECONDS` for renewals and revocations under way. Never raises."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                every = (*self._sessions.values(), *self._identities.values(), *self._replaced)
                await asyncio.gather(*(each.wait_closed() for each in every), *self._revoking)

    def _replace(self, before: TokenSession | IdentitySession | None) -> None:
        every = self._replaced if before is None else [*self._replaced, before]
        self._replaced = [each for each in every if each.renewing]

    async def _confirm(self, known: Credentials, grant: TokenGrant, session: TokenSession, person: SignInUser) -> None:
        """Ask if this is another account than before. Raises Declined after revoking the token."""
        plan = confirmation(session.server, session.url, known, grant)
        if plan is None or obtains_alone(session.settings):
            return
        try:
            await person.agree(plan)
        except BaseException:  # declined or cancelled; only `aclose` waits for the revocation
            revoking = asyncio.create_task(self._revoke(grant, session), name="revoke an unwanted token")
            self._revoking.add(revoking)
            revoking.add_done_callback(self._revoking.discard)
            raise

    def _signed_in(self, identity: IdentitySession) -> None:
        for session in self._sessions.values():
            if session.identity is identity:
                session.forget_failures()

    async def _forget_clients(self, server: str) -> bool:
        """Forget the registrations that the server has forgotten; return whether there were any."""
        async with self._store.changing(server) as held:
            await self._store.write(server, held.model_copy(update={"clients": {}}))
        return bool(held.clients)

    async def _revoke(self, grant: TokenGrant, session: TokenSession) -> str:
        """Return why the grant was not revoked; empty if it was."""
        try:
            return await run_flow(oauth.revoke(grant, session.settings, self._now), session.steps.do)
        except SignInFailed as error:
            return str(error)

    def _known_session(self, server: str) -> TokenSession:
        try:
            return self._sessions[server]
        except KeyError:
            raise SignInFailed(f"{server} is not signed in to: it has no URL, or sends a header of its own") from None


class _FlowRunner:
    """Carries out the steps of one sign-in."""

    def __init__(self, steps: StepRunner, person: SignInUser, identity: IdentitySession | None = None) -> None:
        self._person, self._identity, self._fetch_url = person, identity, steps.fetch
        self._alone = replace(steps, fetch=self._fetch)
        self._loopback = Loopback(person.turned_away)
        self._steps = 0

    async def do(self, step: FlowStep) -> Any:
        """Carry out one step and return its outcome, which the flow is to be sent."""
        match step:
            case GetAssertion():
                return await self._get_assertion(step)
            case ListenForCallback():
                return await self._loopback.open(step)
            case AskConsent(plan):
                return await self._person.agree(plan)
            case VisitAuthorizationPage():
                return await self._visit(step)
            case SignInIdentity() if self._identity is not None:
                return await self._identity.sign_in(step, lambda flow: run_flow(flow, self.do))
            case _:
                return await self._alone.do(step)

    async def aclose(self) -> None:
        await self._loopback.aclose()

    async def _get_assertion(self, step: GetAssertion) -> str:
        self._steps += 1
        number, began = self._steps, time.monotonic()
        words = "" if self._alone.assertions is None else self._alone.assertions.place
        shown = SignInExchange("Get this workload's JWT", "from", words, local=True)
        self._person.step(number, shown)
        try:
            assertion: str = await self._alone.do(step)
        except SignInFailed as error:
            self._person.step(number, replace(shown, problem=str(error), seconds=time.monotonic() - began))
            raise
        self._person.step(number, replace(shown, status=200, seconds=time.monotonic() - began))
        return assertion

    async def _fetch(self, fetch: HttpExchange) -> HttpAnswer | Unreachable:
        self._steps += 1
        number, began = self._steps, time.monotonic()
        shown = SignInExchange(
            title=fetch.title,
            method="GET" if fetch.body is None else "POST",
            url=fetch.url,
            request_headers=masking.request_headers(fetch),
            request_body=masking.request_body(fetch),
        )
        self._person.step(number, shown)
        answer = await self._fetch_url(fetch)
        self._person.step(number, _answered(shown, fetch, answer, time.monotonic() - began))
        return answer

    async def _visit(self, step: VisitAuthorizationPage) -> Parameters:
        """Wait for the browser on this machine or for a pasted address, whichever comes first."""
        link = AuthorizationLink(step.url, step.pending.redirect_uri, CALLBACK_SECONDS)
        tasks = [
            asyncio.create_task(self._loopback.callback(step.pending), name="wait for the browser"),
            asyncio.create_task(self._pasted(link, step.pending), name="wait for a pasted address"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, timeout=CALLBACK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise SignInFailed(
                    f"the browser did not come back within {CALLBACK_SECONDS / 60:g} minutes; if its page says that it "
                    "does not know mcphost, sign out of this server first: then mcphost registers again"
                )
            return done.pop().result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._loopback.aclose()

    async def _pasted(self, link: AuthorizationLink, pending: PendingAuthorization) -> Parameters:
        problem = ""
        while True:
            try:
                found = read_redirect((await self._person.visit(link, problem)).strip())
                if pending.is_answered_by(found):
                    return found
                problem = why_turned_away(pending, found) if found.get("error") else NOT_THE_ADDRESS
            except SignInFailed as error:
                problem = str(error)
            await asyncio.sleep(0)  # an approver that answers at once must not starve the browser's callback


def _binding(grant: TokenGrant) -> str:
    if grant.key is None:
        return ""
    return BOUND if grant.bound else "not bound to a key: the authorization server did not do so"


def _answered(
    shown: SignInExchange, fetch: HttpExchange, answer: HttpAnswer | Unreachable, seconds: float
) -> SignInExchange:
    if isinstance(answer, Unreachable):
        return replace(shown, problem=answer.reason, seconds=seconds)
    return replace(
        shown,
        status=answer.status,
        response_headers=masking.response_headers(fetch, answer),
        response_body=masking.response_body(fetch, answer),
        seconds=seconds,
    )
