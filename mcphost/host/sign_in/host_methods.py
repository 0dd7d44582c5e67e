"""Who is signed in where, as plain methods of the host; and forgetting a server.

Knows which desk does what. Refuses to know how. A sign-in is a command that goes on: `SignIn` is what to hold on to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcphost.errors import AuthorizationRequired
from mcphost.host.connections.connection import Connection
from mcphost.host.consent.broker import ConsentBroker
from mcphost.host.sign_in.service import SignIn, SignInService
from mcphost.host.tool_calls.authorization_retry import AuthorizationRetry

if TYPE_CHECKING:
    from mcphost.auth.ports import SignInStatus


class Accounts:
    """The host's methods about sign-ins. Those that raise ConfigError do so where a reference cannot be resolved."""

    consent: ConsentBroker
    servers: dict[str, Connection]
    _sign_ins: SignInService
    _admission: AuthorizationRetry
    _tasks: asyncio.TaskGroup | None

    def server(self, name: str) -> Connection:
        """A connection; raises UnknownName."""
        raise NotImplementedError

    async def _forget_more(self, server: str) -> Sequence[str]:
        """What else was learned of a server; in words."""
        raise NotImplementedError

    @property
    def sign_ins(self) -> Mapping[int, SignIn]:
        """The sign-ins of this run by number, oldest first."""
        return self._sign_ins.all

    def sign_in(self, server: str) -> SignIn:
        """Begin to sign in, or anew; one that runs is joined. Returns at once; raises UnknownName."""
        connection = self.server(server)
        self._admission.forget(server)
        return self._begin_sign_in(server, connection.refusal or AuthorizationRequired(""))

    async def standing(self, server: str) -> SignInStatus:
        """Who is signed in. Raises SignInFailed where nobody can be (a program, a header of its own), ConfigError."""
        self.server(server)
        return await self._sign_ins.standing(server)

    async def sign_out(self, server: str) -> str:
        """Revoke and forget the tokens and our names at its authorization servers, and connect anew without them.

        Returns what happened, in words. Raises SignInFailed, ConfigError.
        """
        connection = self.server(server)
        self._sign_ins.cancel(server)
        told = await self._sign_ins.sign_out(server)
        if connection.ready:
            connection.restart()
        return told

    async def forget(self, server: str) -> Sequence[str]:
        """Sign out, and forget all that was learned of this server; what that was, in words. Raises as `sign_out`."""
        connection, told = self.server(server), list[str]()
        if connection.config.signs_in and self._sign_ins.possible:
            told.append(await self.sign_out(server))
        if number := self.consent.forget(server):
            told.append(f"what you allowed or saw of {number} of its tools")
        self._admission.forget(server)
        return (*told, *await self._forget_more(server))

    def _begin_sign_in(self, server: str, why: AuthorizationRequired) -> SignIn:
        assert self._tasks is not None
        return self._sign_ins.begin(server, why, self._tasks)

    def _signed_in(self, server: str) -> None:
        if server in self.servers:
            self.servers[server].signed_in()
