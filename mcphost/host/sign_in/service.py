"""The state of a sign-in (its steps, its open question, its error), and the service that runs sign-ins."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING

from mcphost.config import Config, entry_of
from mcphost.errors import AuthorizationRequired, Declined, McphostError, SignInFailed
from mcphost.host.background import BackgroundTasks
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.questions import Approver, SignInQuestion
from mcphost.host.desktop import Open
from mcphost.host.events import SignInChanged
from mcphost.host.internal_error import internal_error, without_secrets
from mcphost.host.reporting import Reporting

if TYPE_CHECKING:
    from mcphost.auth.ports import (
        AuthorizationLink,
        SignInConsent,
        SignInExchange,
        SignInPlan,
        SignInPort,
        SignInStatus,
    )
    from mcphost.host.connections.servers import Servers

OpenPort = Callable[[Config, str], Awaitable["SignInPort"]]
"""Opens the port of a server, its references resolved. Raises ConfigError, SignInFailed."""


class SignInState(Enum):
    LOOKING = "finding out where to sign in"
    AGREEING = "waiting for you to agree"
    PREPARING = "preparing"
    VISITING = "waiting for the browser to come back"
    EXCHANGING = "getting the token"
    DONE = "signed in"
    FAILED = "failed"
    DECLINED = "declined"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (SignInState.DONE, SignInState.FAILED, SignInState.DECLINED, SignInState.CANCELLED)


class SignIn:
    """One attempt to sign in to a server; the `mcphost.auth.ports.SignInUser` of its flow."""

    def __init__(
        self, number: int, server: str, why: AuthorizationRequired, service: SignInService, *, began: bool = False
    ) -> None:
        self.number, self.server, self.why = number, server, why
        self.began = began
        """True if the user began it, and not a refused operation."""
        self.state = SignInState.LOOKING
        self.reached = SignInState.LOOKING
        """The last state before the end, or the present one."""
        self.steps: list[SignInExchange] = []
        """The exchanges in order; the last may be under way."""
        self.plan: SignInPlan | None = None
        self.choice: SignInConsent | None = None
        self.link: AuthorizationLink | None = None
        """The page to visit, while the browser is waited for."""
        self.link_until = 0.0
        """Until when, on the event loop's clock."""
        self.not_opened = ""
        """Why the browser was not opened."""
        self.paste_problem = ""
        """Why what was pasted, or what a browser came back with, would not do."""
        self.error: McphostError | None = None
        self.status: SignInStatus | None = None
        self._service = service
        self._pasted: asyncio.Future[str] | None = None
        self._task: asyncio.Task[None] | None = None

    def attach(self, task: asyncio.Task[None]) -> None:
        """The task that carries it out."""
        self._task = task

    def cancel(self) -> None:
        """Stop it; nothing of it is kept."""
        if self._task is not None and not self.state.ended:
            self._task.cancel()

    def paste(self, url: str) -> None:
        """The address at which the browser ended, where it could not come back by itself."""
        if self._pasted is not None and not self._pasted.done():
            self._pasted.set_result(url)

    async def reopen(self) -> None:
        """Open the page once more."""
        if self.link is not None:
            self.not_opened = await self._service.open_page(self.link.url)
            self._changed()

    async def result(self) -> SignInStatus:
        """Wait for the end. Raises SignInFailed, Declined, or CancelledError when it was cancelled."""
        if self._task is not None:
            await asyncio.shield(self._task)
        if self.error is not None:
            raise self.error
        if self.status is None:
            raise asyncio.CancelledError
        return self.status

    # What the flow asks of a person.

    async def agree(self, plan: SignInPlan) -> SignInConsent:
        self.plan = plan
        self.enter(SignInState.AGREEING)
        self.choice = await self._service.ask_consent(SignInQuestion(self.server, plan, self.number))
        self.enter(SignInState.PREPARING)
        return self.choice

    async def visit(self, link: AuthorizationLink, problem: str) -> str:
        first = self.link is None
        self.link, self.paste_problem = link, problem
        self._pasted = asyncio.get_running_loop().create_future()
        if first:
            self.link_until = asyncio.get_running_loop().time() + link.expires
        self.enter(SignInState.VISITING)
        if first:
            await self.reopen()
        return await self._pasted

    def turned_away(self, problem: str) -> None:
        self.paste_problem = problem
        self._changed()

    def step(self, number: int, exchange: SignInExchange) -> None:
        self.steps[number - 1 : number] = [exchange]
        if self.state is SignInState.VISITING or exchange.local:
            self.link = None
            self.state = self.reached = SignInState.EXCHANGING
        self._changed()

    def enter(self, state: SignInState) -> None:
        """Go on to ``state``."""
        self.state = state
        if not state.ended:
            self.reached = state
        self._changed()

    def ended(self, state: SignInState, error: McphostError | None = None) -> None:
        """Nothing more will come."""
        self.link, self.error = None, error
        self.enter(state)

    def _changed(self) -> None:
        self._service.changed(self)


class SignInService:
    """All sign-ins of this run, each for an entry and its instances. ``open_port`` None: signing in is not possible."""

    def __init__(
        self,
        open_port: OpenPort | None,
        config: Callable[[], Config],
        servers: Servers,
        approver: Approver,
        open_url: Open,
        background: BackgroundTasks,
        reporting: Reporting,
    ) -> None:
        self._open_port, self._config, self._servers = open_port, config, servers
        self._approver, self._background = approver, background
        self._audit, self._bus, self._mask = reporting.audit, reporting.bus, reporting.mask
        self.all: dict[int, SignIn] = {}
        """By number, oldest first."""
        self.step_ups: Counter[tuple[str, str]] = Counter()
        """The number of requests for more rights, by server and operation, since its last success."""
        self.open_page = open_url

    @property
    def possible(self) -> bool:
        """True if this run can sign in."""
        return self._open_port is not None

    def running(self, server: str) -> SignIn | None:
        """The sign-in of this server that has not ended."""
        entry = entry_of(server)
        return next((each for each in self.all.values() if each.server == entry and not each.state.ended), None)

    def begin(self, server: str) -> SignIn:
        """Start a sign-in, or join the running one. Returns at once. Raises UnknownName."""
        connection = self._servers[server]
        self.reset_step_ups(server)
        return self.begin_for(server, connection.refusal or AuthorizationRequired(""), by_user=True)

    def begin_for(self, server: str, refusal: AuthorizationRequired, *, by_user: bool = False) -> SignIn:
        """Begin the sign-in that a refusal calls for, or join the one that runs."""
        return self.start(entry_of(server), refusal, self._at_server, by_user=by_user)

    def start(
        self,
        name: str,
        refusal: AuthorizationRequired,
        attempt: Callable[[SignIn], Awaitable[SignInStatus]],
        *,
        by_user: bool,
    ) -> SignIn:
        """Start ``attempt`` as the sign-in called ``name``, or join the one that runs."""
        if (running := self.running(name)) is not None:
            return running
        number = len(self.all) + 1
        sign_in = self.all[number] = SignIn(number, name, refusal, self, began=by_user)
        task = self._background.start(self._run(sign_in, attempt), f"sign-in {number}")
        sign_in.attach(task)
        task.add_done_callback(lambda _: None if sign_in.state.ended else sign_in.ended(SignInState.CANCELLED))
        self.changed(sign_in)
        return sign_in

    def reset_step_ups(self, server: str) -> None:
        """Reset the counts of step-ups at this server."""
        for key in [key for key in self.step_ups if key[0] == entry_of(server)]:
            del self.step_ups[key]

    async def status(self, server: str) -> SignInStatus:
        """The status of the sign-in. Raises UnknownName, ConfigError, SignInFailed if the server has no sign-in."""
        _ = self._servers[server]
        return await (await self._port(server)).status()

    async def sign_out(self, server: str) -> str:
        """Revoke and forget the tokens and our names at its authorization servers, and reconnect without them.

        Returns what happened, in words. Raises UnknownName, ConfigError, SignInFailed.
        """
        _ = self._servers[server]
        self.cancel(server)
        outcome = await (await self._port(server)).sign_out()
        self._audit.note({"event": "sign-out", "server": server, "outcome": outcome})
        for connection in self._servers.of_entry(entry_of(server)):
            if connection.ready:
                connection.restart()
        return outcome

    async def ask_consent(self, question: SignInQuestion) -> SignInConsent:
        """Ask for consent, and record it before it is used. Raises Declined."""
        from mcphost.auth.ports import SignInConsent  # late: most runs sign in nowhere

        answer = await self._approver.ask(question)
        choice = answer.content if isinstance(answer.content, SignInConsent) else SignInConsent(question.plan.scopes)
        plan = question.plan
        await self._audit.before(
            {
                "event": "sign-in",
                "server": question.server,
                "resource": plan.resource,
                "issuer": plan.issuer,
                "scopes": list(choice.scopes),
                "client": plan.client.value,
                "allowed": answer.allow,
                "by": answer.by,
                "reason": answer.reason,
            }
        )
        if not answer.allow:
            why = f": {answer.reason}" if answer.reason else ""
            raise Declined(f"signing in to {question.server} was declined{why}", by=answer.by, rule=answer.reason)
        return choice

    def cancel(self, server: str | None = None) -> None:
        """End the sign-ins that run, of one server or of all."""
        for sign_in in self.all.values():
            if server is None or entry_of(server) == sign_in.server:
                sign_in.cancel()

    async def _port(self, server: str) -> SignInPort:
        if self._open_port is None:
            raise SignInFailed("this run of mcphost signs in nowhere")
        return await self._open_port(self._config(), entry_of(server))

    def changed(self, sign_in: SignIn) -> None:
        self._bus.publish(SignInChanged(sign_in.server, sign_in.number))

    def signed_in_with(self, identity: str) -> None:
        """Let the servers try again that wait for a sign-in with this identity."""
        for name, entry in self._config().servers.items():
            if entry.oauth.identity == identity:
                for connection in self._servers.of_entry(name):
                    if connection.state is ServerState.NEEDS_SIGN_IN and self.running(name) is None:
                        connection.signed_in()

    async def _at_server(self, sign_in: SignIn) -> SignInStatus:
        why, port = sign_in.why, await self._port(sign_in.server)
        return await port.sign_in(why.www_authenticate, why.status, sign_in)

    async def _run(self, sign_in: SignIn, attempt: Callable[[SignIn], Awaitable[SignInStatus]]) -> None:
        try:
            sign_in.status = await attempt(sign_in)
        except asyncio.CancelledError:
            sign_in.ended(SignInState.CANCELLED)
            return
        except Declined as error:
            sign_in.ended(SignInState.DECLINED, error)
        except McphostError as error:
            sign_in.ended(SignInState.FAILED, without_secrets(error, self._mask))
        except Exception as error:  # a fault in here must end neither the calls nor the servers
            sign_in.ended(SignInState.FAILED, internal_error(error))
        else:
            sign_in.ended(SignInState.DONE)
            for connection in self._servers.of_entry(sign_in.server):
                connection.signed_in()
            entry = self._config().servers.get(sign_in.server)
            if entry is not None and entry.oauth.identity is not None:
                self.signed_in_with(entry.oauth.identity)
        self._audit.note({"event": "sign-in", "server": sign_in.server, "outcome": sign_in.state.value})
