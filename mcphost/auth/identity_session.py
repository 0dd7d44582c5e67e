"""Gives the token of one identity to all its servers, renews it, and lets one browser visit serve them all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mcphost.auth.assertions import AssertionReader
from mcphost.auth.flow.id_tokens import account_of
from mcphost.auth.flow.identity import renew_identity, revoke_identity, sign_in_identity
from mcphost.auth.flow.steps import LOGIN, Flow, GetIdentity, IdentityToken, SignInIdentity, StepUp
from mcphost.auth.http import Fetcher, ResolveHost, resolve
from mcphost.auth.jwt_claims import claims_of, why_unfit
from mcphost.auth.ports import AssertionSource, IdentitySettings, IdentityStatus
from mcphost.auth.shared_renewal import RENEWAL_PAUSE, SharedRenewal
from mcphost.auth.step_runner import StepRunner, run_flow
from mcphost.auth.storage.identities import KeptIdentity, identity_item
from mcphost.auth.storage.tokens import ItemStore
from mcphost.errors import ConfigError, SignInFailed
from mcphost.net.origins import host_of
from mcphost.protocol.display import show_line


class IdentitySession:
    """The sign-in of one identity. ``now`` gives seconds since 1970."""

    def __init__(
        self,
        settings: IdentitySettings,
        store: ItemStore[KeptIdentity],
        now: Callable[[], float],
        resolve: ResolveHost = resolve,
        assertions: AssertionReader | None = None,
    ) -> None:
        self.settings, self._assertions = settings, assertions
        self._store, self._now = store, now
        self._item = identity_item(settings.name)
        self.steps = StepRunner(Fetcher(settings.issuer, resolve).fetch)
        self._visits = asyncio.Lock()
        self._step_up = StepUp()
        self._renewal = SharedRenewal[IdentityToken](f"renew identity {settings.name}")
        self._failed_at, self._problem = float("-inf"), ""

    async def kept(self, *, again: bool = False) -> KeptIdentity:
        """The stored sign-in, if it was made with the present settings."""
        return self._own(await self._store.read(self._item, again=again))

    async def token(self, step: GetIdentity) -> IdentityToken:
        """The token without a person. Raises SignInFailed, with code `LOGIN` if a person must sign in."""
        if self.settings.id_token is not None:
            return await self._given(self.settings.id_token, step.rejected)
        kept = await self.kept()
        if (token := self._present(kept)) is not None and token.token != step.rejected:
            return token
        return await self._renewal.join(lambda: self._renewed(step.rejected))

    async def present_token(self) -> str:
        """The token that needs no renewal; empty without one."""
        token = self._present(await self.kept())
        return "" if token is None else token.token

    async def sign_in(
        self, step: SignInIdentity, run: Callable[[Flow[KeptIdentity]], Awaitable[KeptIdentity]]
    ) -> IdentityToken:
        """Let the person sign in; those who ask at the same time share one visit. ``run`` shows it to the person."""
        if self.settings.id_token is not None:
            source = show_line(self.settings.id_token.words, 300)
            raise SignInFailed(
                f"identity {self.settings.name} takes its ID token from {source}: no one signs in for it"
            )
        since = self._now()
        async with self._visits:
            before = await self.kept(again=True)
            if (token := self._present(before)) is not None and token.token != step.rejected:
                fresh = before.signed_in_at is not None and before.signed_in_at >= since
                if not step.step_up.parameters or (fresh and self._step_up == step.step_up):
                    return token
            made = await run(sign_in_identity(self.settings, before, step.step_up, self._now))
            async with self._store.changing(self._item) as held:
                made = made.model_copy(update={"servers": self._own(held).servers})
                await self._store.write(self._item, made)
            self._step_up, self._failed_at, self._problem = step.step_up, float("-inf"), ""
            if self.settings.subject == "refresh_token" and not made.refresh_token:
                raise SignInFailed(
                    f"{host_of(self.settings.issuer)} gave no refresh token, and subject of identity "
                    f"{self.settings.name} takes no other; the scope offline_access may not be allowed"
                )
            return self._present(made) or _id_token(made)

    async def add_server(self, server: str) -> None:
        """Remember that this server has a grant that was made with the identity. Raises ConfigError."""
        if server in (await self.kept()).servers:
            return
        async with self._store.changing(self._item) as held:
            await self._store.write(self._item, self._own(held).with_server(server))

    async def status(self) -> IdentityStatus:
        kept, source = await self.kept(), self.settings.id_token
        return IdentityStatus(
            name=self.settings.name,
            issuer=self.settings.issuer,
            signed_in=bool(kept.id_token or kept.refresh_token),
            account=kept.account,
            expires_at=kept.expires_at or None,
            renewable=bool(kept.refresh_token),
            servers=kept.servers,
            problem=self._problem or self._store.unread(self._item),
            given=source is not None,
            kept_in=self._store.place(self._item) if source is None else f"given by {show_line(source.words, 300)}",
        )

    async def sign_out(self) -> tuple[KeptIdentity, str]:
        """Forget the sign-in; return what was kept, and why it was not revoked. Raises SignInFailed, ConfigError.

        Its servers are remembered until `forget_servers`.
        """
        async with self._store.changing(self._item) as held:
            if not await self._store.write(self._item, KeptIdentity(servers=held.servers)):
                raise SignInFailed(
                    f"the tokens are forgotten in this run, but the keychain may hold them still: "
                    f"{self._store.problem}; sign out once more when it can be asked"
                )
        if not held.refresh_token:
            return held, ""
        if not held.is_of(self.settings):
            return held, "it is of another identity provider or client than the configuration names"
        try:
            return held, await run_flow(revoke_identity(self.settings, held, self._now), self.steps.do)
        except SignInFailed as error:
            return held, str(error)

    async def forget_servers(self, servers: Sequence[str]) -> None:
        """The grants of these servers are gone. Raises ConfigError."""
        async with self._store.changing(self._item) as held:
            left = tuple(server for server in held.servers if server not in servers)
            await self._store.write(self._item, held.model_copy(update={"servers": left}))

    @property
    def renewing(self) -> bool:
        return self._renewal.running

    async def wait_closed(self) -> None:
        """Wait for the renewal under way, if any."""
        await self._renewal.wait_closed()

    async def _given(self, source: AssertionSource, rejected: str) -> IdentityToken:
        """The ID token of the configured source. Its signature is the provider's business."""
        what = f"the ID token of {show_line(source.words, 300)}"
        if self._assertions is None:
            raise SignInFailed(f"{what} cannot be read in this run")
        token = await self._assertions.read(source, self.settings.client_id, self._item)
        claims = claims_of(token)
        if problem := why_unfit(claims, {self.settings.client_id}, self._now()):
            raise SignInFailed(f"{what} {problem}; nothing was sent")
        if token == rejected:
            raise SignInFailed(f"{what} was refused by {host_of(self.settings.issuer)}, and there is no newer one")
        return IdentityToken(token, "id_token", account_of(claims))

    async def _renewed(self, rejected: str) -> IdentityToken:
        """The token after one shared renewal."""
        try:
            async with self._store.changing(self._item) as held:
                kept = self._own(held)
                if (token := self._present(kept)) is not None and token.token != rejected:
                    return token  # another process renewed it first
                kept = await self._renew(kept)
        except ConfigError as error:  # the lock is held by another process
            raise SignInFailed(str(error)) from None
        token = self._present(kept)
        if token is None and self.settings.subject == "auto" and kept.refresh_token:
            token = IdentityToken(kept.refresh_token, "refresh_token", kept.account)
        if token is None or token.token == rejected:
            raise self._needs_person()
        return token

    async def _renew(self, kept: KeptIdentity) -> KeptIdentity:
        if not kept.refresh_token or self.settings.subject == "refresh_token":
            raise self._needs_person()
        if 0 <= self._now() - self._failed_at < RENEWAL_PAUSE:
            raise SignInFailed(self._problem)
        if unread := self._store.unread(self._item):  # another mcphost may have used this refresh token
            raise SignInFailed(f"the keychain cannot be asked: {unread}")
        try:
            made = await run_flow(renew_identity(self.settings, kept, self._now), self.steps.do)
        except SignInFailed as error:
            self._problem = str(error)
            if error.code != "invalid_grant":
                self._failed_at = self._now()
                raise
            await self._store.write(self._item, kept.model_copy(update={"refresh_token": ""}))
            raise self._needs_person() from None
        await self._store.write(self._item, made)
        self._problem = ""
        return made

    def _present(self, kept: KeptIdentity) -> IdentityToken | None:
        """The token that needs no renewal."""
        if self.settings.subject == "refresh_token":
            return IdentityToken(kept.refresh_token, "refresh_token", kept.account) if kept.refresh_token else None
        return _id_token(kept) if kept.has_id_token(self._now()) else None

    def _own(self, held: KeptIdentity) -> KeptIdentity:
        return held if held.is_of(self.settings) else KeptIdentity(servers=held.servers)

    def _needs_person(self) -> SignInFailed:
        why = f" ({self._problem})" if self._problem else ""
        return SignInFailed(
            f"you are not signed in at the identity provider {host_of(self.settings.issuer)}{why}; sign in with: "
            f"mcphost login --identity {self.settings.name}",
            code=LOGIN,
        )


def _id_token(kept: KeptIdentity) -> IdentityToken:
    return IdentityToken(kept.id_token, "id_token", kept.account)
