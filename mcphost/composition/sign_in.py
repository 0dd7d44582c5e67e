"""Builds the authorizer and the token store of a run, when a server at a URL first needs them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcphost.composition.detected_transports import DetectedTransports
from mcphost.composition.lookup import resolve_in_thread
from mcphost.config import (
    AssertionConfig,
    ComparedServer,
    Config,
    GivenServer,
    ResolvedIdentity,
    ResolvedServer,
    Values,
    entry_of,
    resolve_identity,
)
from mcphost.config.state import named_lock
from mcphost.errors import ConfigError, SignInFailed
from mcphost.transports.stdio.descendants import new_mark
from mcphost.transports.stdio.transport import Command, child_environment, find_program

if TYPE_CHECKING:
    from mcphost.auth.assertions import AssertionReader
    from mcphost.auth.authorizer import Authorizer
    from mcphost.auth.ports import (
        AssertionSource,
        IdentityPort,
        IdentitySettings,
        IdentityStatus,
        OAuthSettings,
        SignInPort,
        SignInStatus,
        SignInUser,
    )
    from mcphost.auth.presenter import TokenPresenter
    from mcphost.auth.session import TokenSession


LOCK_SECONDS: Final = 120.0
"""Seconds to wait while another mcphost renews a token; longer than all its steps and the keychain may take."""


async def has_sign_in(name: str) -> bool:
    """True if the keychain holds tokens of the entry ``name``. Raises ConfigError if it cannot be asked."""
    from mcphost.auth.storage.keychain import Keychain, KeychainUnusable, NoKeychain
    from mcphost.auth.storage.tokens import SERVICE

    try:
        return await Keychain(SERVICE).read(name) is not None
    except NoKeychain:
        return False
    except KeychainUnusable as error:
        raise ConfigError(f"the keychain cannot be used: {error}") from None


class SignIns:
    """The sign-ins of one run. ``locks`` is the folder of the locks between several mcphosts.

    Without ``keychain`` tokens are kept in memory, and nothing needs a lock.
    """

    def __init__(self, values: Values, locks: Path, *, keychain: bool) -> None:
        self._values, self._locks, self._keychain = values, locks, keychain
        self._made: Authorizer | None = None
        self.audit: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None
        """Writes a record before the command of a workload's identity runs."""
        self._making = threading.Lock()

    def presenter(self, config: Config, server: ResolvedServer) -> TokenPresenter | None:
        """The authorization of this server's requests; None without sign-in. Imports take time: call it in a thread."""
        session = self._session(config, server)
        if session is None:
            return None
        from mcphost.auth.presenter import TokenPresenter

        return TokenPresenter(session)

    async def port(self, config: Config, name: str) -> SignInPort:
        """The sign-in of one server, its references resolved. Raises ConfigError, SignInFailed."""
        server, session = await resolve_in_thread(
            config, self._values, name, lambda found: self._session(config, found)
        )
        if session is None:
            why = "it is a program" if server.url is None else "it has no use for it, by its entry in the configuration"
            raise SignInFailed(f"{name} is not signed in to: {why}")
        return _ServerSignIn(self._authorizer(), item_name(config, server))

    async def identity(self, config: Config, name: str) -> IdentityPort:
        """The sign-in of one identity, its references resolved. Raises ConfigError.

        One that was removed from the configuration can be signed out of, too.
        """
        if name in config.identity:
            found = await asyncio.to_thread(resolve_identity, config, self._values, name)
            return _IdentitySignIn(self._authorizer(), identity_settings(found))
        from mcphost.auth.ports import IdentitySettings

        return _IdentitySignIn(self._authorizer(), IdentitySettings(name, "", ""))

    async def forget(self, config: Config, name: str, detected: DetectedTransports) -> Sequence[str]:
        """Delete what was learned of a server besides its tokens; returns it in words."""
        server, _ = await resolve_in_thread(config, self._values, name, lambda _: None)
        await detected.load()
        return ("which transport it speaks",) if server.url is not None and detected.forget(server.url) else ()

    async def aclose(self) -> None:
        """Wait for renewals to finish: a new token that is not stored is lost."""
        if self._made is not None:
            await self._made.aclose()

    def _session(self, config: Config, server: ResolvedServer) -> TokenSession | None:
        if server.url is None or not config.servers[server.name].signs_in:
            return None
        return self._authorizer().session(item_name(config, server), server.url, settings_of(server))

    def _authorizer(self) -> Authorizer:
        with self._making:
            if self._made is None:
                from mcphost.auth.authorizer import Authorizer
                from mcphost.auth.storage.keychain import Keychain
                from mcphost.auth.storage.tokens import SERVICE, TokenStore, no_lock

                keychain = Keychain(SERVICE) if self._keychain else None
                lock = partial(named_lock, self._locks, seconds=LOCK_SECONDS) if keychain else no_lock
                assertions = assertion_reader(self._values)
                if self.audit is not None:
                    assertions.audit = self.audit
                self._made = Authorizer(TokenStore(keychain, self._values.remember, lock), assertions=assertions)
            return self._made


def settings_of(server: ResolvedServer) -> OAuthSettings:
    from mcphost.auth.ports import OAuthSettings

    given = {name: value for name, value in server.oauth if value is not None}
    given["identity"] = None if server.identity is None else identity_settings(server.identity)
    given["assertion"] = _source(server.oauth.assertion)
    return OAuthSettings(**given)


def _source(source: AssertionConfig | None) -> AssertionSource | None:
    from mcphost.auth.ports import AssertionSource

    if source is None:
        return None
    return AssertionSource(source.file or "", source.env or "", source.command, source.github)


def assertion_reader(values: Values) -> AssertionReader:
    from mcphost.auth.assertions import AssertionReader

    return AssertionReader(values.passed_on, _located, values.remember)


def _located(program: str) -> tuple[str, Mapping[str, str]]:
    """The full path of a program, and the small environment that servers get, too. Raises SpawnFailed."""
    command = Command(program)
    environment = child_environment(command, os.environ, new_mark())
    return find_program(command, environment.get("PATH", os.defpath)), environment


class _ServerSignIn:
    """The `SignInPort` of one server; ``item`` is the name under which its tokens are kept."""

    def __init__(self, authorizer: Authorizer, item: str) -> None:
        self._authorizer, self._item = authorizer, item

    async def sign_in(self, challenge: str, status: int, person: SignInUser) -> SignInStatus:
        return await self._authorizer.sign_in(self._item, challenge, status, person)

    async def status(self) -> SignInStatus:
        return await self._authorizer.status(self._item)

    async def sign_out(self) -> str:
        return await self._authorizer.sign_out(self._item)


class _IdentitySignIn:
    """The `IdentityPort` of one identity."""

    def __init__(self, authorizer: Authorizer, settings: IdentitySettings) -> None:
        self._authorizer, self._settings = authorizer, settings

    async def sign_in(self, person: SignInUser) -> SignInStatus:
        return await self._authorizer.sign_in_identity(self._settings, person)

    async def status(self) -> IdentityStatus:
        return await self._authorizer.identity(self._settings).status()

    async def sign_out(self) -> tuple[str, Sequence[str]]:
        return await self._authorizer.sign_out_identity(self._settings)


def identity_settings(identity: ResolvedIdentity) -> IdentitySettings:
    from mcphost.auth.ports import IdentitySettings

    given = {name: value for name, value in identity.settings if value is not None}
    return IdentitySettings(identity.name, **{**given, "id_token": _source(identity.settings.id_token)})


def item_name(config: Config, server: ResolvedServer) -> str:
    """The name under which a server's tokens are stored: its entry's, or its URL where it has no entry.

    The URL's query may hold a secret, and is left out.
    """
    entry = config.servers[server.name]
    if isinstance(entry, ComparedServer) and entry.entry:
        return entry.entry
    if not isinstance(entry, GivenServer) or server.url is None:
        return entry_of(server.name)
    parts = urlsplit(server.url)
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def hosted_document(url: str, redirect_uri: str) -> dict[str, Any]:
    """The document to publish at ``url`` so that ``client_metadata_url`` can name it."""
    from mcphost.auth.flow.registration import hosted_document as document

    return document(url, redirect_uri)
