"""The identities of the configuration: who is signed in at each provider, signing in there, and signing out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from mcphost.config import Config
from mcphost.errors import AuthorizationRequired, SignInFailed, UnknownName
from mcphost.host.reporting import Reporting
from mcphost.host.sign_in.service import SignIn, SignInService

if TYPE_CHECKING:
    from mcphost.auth.ports import IdentityPort, IdentityStatus, SignInStatus
    from mcphost.host.connections.servers import Servers

IDENTITY: Final = "identity "
"""Before the name of an identity, where a sign-in is named by its server; no server is called so."""

OpenIdentity = Callable[[Config, str], Awaitable["IdentityPort"]]
"""Opens the port of an identity, its references resolved. Raises ConfigError, UnknownName."""


class IdentityService:
    """The identities of this run. ``open_port`` None: signing in is not possible."""

    def __init__(
        self,
        open_port: OpenIdentity | None,
        config: Callable[[], Config],
        servers: Servers,
        sign_ins: SignInService,
        reporting: Reporting,
    ) -> None:
        self._open_port, self._config, self._servers, self._sign_ins = open_port, config, servers, sign_ins
        self._audit = reporting.audit

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._config().identity)

    async def status(self, name: str) -> IdentityStatus:
        """Raises UnknownName, ConfigError, SignInFailed."""
        return await (await self._port(name)).status()

    def begin(self, name: str) -> SignIn:
        """Start a sign-in at the identity provider, or join the running one. Returns at once. Raises UnknownName."""
        if name not in self.names:
            known = f"; there are {', '.join(self.names)}" if self.names else ""
            raise UnknownName(f"there is no [identity.{name}] in your configuration{known}")

        async def attempt(sign_in: SignIn) -> SignInStatus:
            status = await (await self._port(name)).sign_in(sign_in)
            self._sign_ins.signed_in_with(name)
            return status

        return self._sign_ins.start(IDENTITY + name, AuthorizationRequired(""), attempt, by_user=True)

    async def sign_out(self, name: str) -> str:
        """Forget the sign-in and the tokens of servers that were got with it, and reconnect these servers.

        Returns what happened, in words. Raises UnknownName, ConfigError, SignInFailed.
        """
        port = await self._port(name)
        self._sign_ins.cancel(IDENTITY + name)
        outcome, servers = await port.sign_out()
        self._audit.note({"event": "sign-out", "identity": name, "servers": list(servers), "outcome": outcome})
        for connection in self._servers.values():
            if connection.entry in servers and connection.ready:
                connection.restart()
        return outcome

    async def _port(self, name: str) -> IdentityPort:
        if self._open_port is None:
            raise SignInFailed("this run of mcphost signs in nowhere")
        return await self._open_port(self._config(), name)
