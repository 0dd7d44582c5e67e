"""Starts and shows sign-ins, signs out, and forgets servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.questions import SignInQuestion
from mcphost.host.events import Event, SignInChanged
from mcphost.host.host import Host
from mcphost.host.sign_in.identities import IDENTITY
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.protocol.display import show, show_line
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.messages import IdentitiesRequested, SignInRequested
from mcphost.tui.main.updater import MainScreenUpdater
from mcphost.tui.servers.card import ServerCard
from mcphost.tui.sign_in.status import SignInStatusCache

if TYPE_CHECKING:
    from mcphost.auth.ports import IdentityStatus


class SignInController:
    """Acts for the sign-in screen and the server card of ``app`` on ``host``; keeps ``sign_in_status`` up to date."""

    def __init__(
        self,
        app: App[Any],
        host: Host,
        approver: ScreenApprover,
        questions: QuestionQueue,
        sign_in_status: SignInStatusCache,
        updater: MainScreenUpdater,
    ) -> None:
        self._app, self._host, self._approver, self._questions = app, host, approver, questions
        self._sign_in_status, self._updater = sign_in_status, updater
        self._fetched: tuple[str, ServerState] | None = None
        """The server whose status was fetched last, and its state then, so that events do not query the keychain
        needlessly."""

    def fetch_status(self, server: str | None) -> None:
        connection = self._host.servers.get(server or "")
        if connection is not None and connection.config.signs_in:
            self._fetched = (connection.name, connection.state)
            work = partial(self._fetch_status, connection.name)
            _: Worker[None] = self._app.run_worker(work, group="sign-in-status", exclusive=True)

    def changed(self, events: Iterable[Event], chosen: str | None) -> None:
        """Show changes of sign-ins on their screens, else as a notification; fetch the ``chosen`` server's status if
        needed.
        """
        for event in events:
            if isinstance(event, SignInChanged):
                self._sign_in_changed(event.sign_in)
        connection = self._host.servers.get(chosen or "")
        if connection is not None and (self._ended(events) or self._fetched != (connection.name, connection.state)):
            self.fetch_status(chosen)

    def on_sign_in_requested(self, event: SignInRequested) -> None:
        identity = event.server.removeprefix(IDENTITY)
        if identity == event.server:
            self.sign_in(event.server)
        else:
            self.sign_in_identity(identity)

    def on_identities_requested(self, _: IdentitiesRequested) -> None:
        self.show_identities()

    def on_server_card_sign_out_requested(self, event: ServerCard.SignOutRequested) -> None:
        self.sign_out(event.server)

    def on_server_card_forget_requested(self, event: ServerCard.ForgetRequested) -> None:
        self.forget(event.server)

    def sign_in(self, server: str) -> None:
        """Start a sign-in or join the one that runs, and show it."""
        self._show_sign_in(partial(self._host.sign_ins.begin, server))

    def sign_in_identity(self, name: str) -> None:
        """See `IdentityActions`."""
        self._show_sign_in(partial(self._host.identities.begin, name))

    def show_identities(self) -> None:
        from mcphost.tui.sign_in.identities import IdentitiesScreen

        if len(self._app.screen_stack) == 1:
            self._app.push_screen(IdentitiesScreen(self))

    async def identity_statuses(self) -> Sequence[IdentityStatus]:
        """See `IdentityActions`; one that cannot be looked up says why."""
        return [await self._identity_status(name) for name in self._host.identities.names]

    async def sign_out_identity(self, name: str) -> None:
        """See `IdentityActions`."""
        from mcphost.tui.kit.modal_screen import AskScreen

        facts = [
            fact("identity", show_line(name, 60)),
            fact("then", "Its tokens are forgotten, and those of all servers that were got with it."),
        ]
        if await self._app.push_screen_wait(AskScreen(f"Sign out of “{show_line(name, 40)}”?", facts, "sign out")):
            await self._report(partial(self._host.identities.sign_out, name))

    async def _identity_status(self, name: str) -> IdentityStatus:
        try:
            return await self._host.identities.status(name)
        except McphostError as error:
            from mcphost.auth.ports import IdentityStatus

            return IdentityStatus(name, self._host.config.identity[name].issuer, problem=str(error))

    def _show_sign_in(self, begin: Callable[[], SignIn]) -> None:
        from mcphost.tui.sign_in.screen import SignInScreen

        if len(self._app.screen_stack) > 1:
            return
        try:
            sign_in = begin()
        except McphostError as error:
            self._app.notify(show(str(error), limit=400), severity="error", markup=False)
            return
        self._app.push_screen(SignInScreen(sign_in))
        self._questions.unpark(set(self._questions_of(sign_in)))

    def sign_out(self, server: str) -> None:
        """Ask the user, then sign out."""
        facts = [
            fact("server", show_line(server, 60)),
            fact("then", "Its tokens are revoked where that is offered, and forgotten here. It will want a sign-in."),
        ]
        self._ask(f"Sign out of “{show_line(server, 40)}”?", facts, "sign out", partial(self._sign_out, server))

    def forget(self, server: str) -> None:
        """Ask the user, then forget everything about a server."""
        facts = [
            fact("server", show_line(server, 60)),
            fact("forgotten", "its tokens, and who mcphost is at the place that signs in"),
            fact("", "which of its tools you allowed, and how they looked then"),
            fact("", "that you share no folder with it, if you said so"),
            fact("", "what was learned of its transport"),
            fact("kept", "its entry in your configuration, and the audit log"),
        ]
        name = show_line(server, 40)
        self._ask(f"Forget everything about “{name}”?", facts, "forget it", partial(self._forget, server))

    def commands(self) -> Iterator[SystemCommand]:
        if self._host.config.identity:
            about = "Who is signed in at your identity providers, for which servers"
            yield SystemCommand("Identities", about, self.show_identities)
        from mcphost.auth.ports import obtains_alone  # late: no frame needs it

        for name, connection in self._host.servers.items():
            called = f"“{show_line(name, 60)}”"
            if connection.config.signs_in:
                alone = obtains_alone(connection.config.oauth)
                about = "By itself, without a browser" if alone else "Through the browser, or see how that goes"
                yield SystemCommand(f"Sign in to {called}", about, lambda name=name: self.sign_in(name))
                if self._sign_in_status.summary_of(name).signed_in:
                    about = "Its tokens are revoked and forgotten"
                    yield SystemCommand(f"Sign out of {called}", about, lambda name=name: self.sign_out(name))
            about = "Tokens, what you allowed, what was learned; asks first"
            yield SystemCommand(f"Forget everything about {called}", about, lambda name=name: self.forget(name))

    def _questions_of(self, sign_in: SignIn) -> Iterator[int]:
        for number, waiting in self._approver.open.items():
            question = waiting.question
            if isinstance(question, SignInQuestion) and question.sign_in == sign_in.number:
                yield number

    def _ended(self, events: Iterable[Event]) -> bool:
        found = (self._host.sign_ins.all.get(event.sign_in) for event in events if isinstance(event, SignInChanged))
        return any(each is not None and each.state.ended for each in found)

    def _sign_in_changed(self, number: int) -> None:
        from mcphost.tui.sign_in.screen import SignInScreen

        sign_in = self._host.sign_ins.all.get(number)
        if sign_in is None:
            return
        stack = self._app.screen_stack
        screens = [each for each in stack if isinstance(each, SignInScreen) and each.sign_in is sign_in]
        for screen in screens:
            screen.call_later(screen.refresh_sign_in)
        if not screens and sign_in.state is SignInState.DONE:
            self._app.notify(f"Signed in to {show_line(sign_in.server, 60)}.", markup=False)
        elif not screens and sign_in.state is SignInState.FAILED:
            words = f"Not signed in to {show_line(sign_in.server, 60)}: {sign_in.error}"
            self._app.notify(show(words, limit=400), severity="error", timeout=15, markup=False)

    async def _fetch_status(self, server: str) -> None:
        try:
            self._sign_in_status.statuses[server] = await self._host.sign_ins.status(server)
        except McphostError:  # no sign-in is possible there; an attempt says why
            self._sign_in_status.statuses.pop(server, None)
        self._updater.card()

    def _ask(self, title: str, facts: list[Fact], yes: str, act: Callable[[], Awaitable[str]]) -> None:
        from mcphost.tui.kit.modal_screen import AskScreen

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._app.run_worker(self._report(act), group="accounts")

        if len(self._app.screen_stack) == 1:
            self._app.push_screen(AskScreen(title, facts, yes), answered)

    async def _report(self, act: Callable[[], Awaitable[str]]) -> None:
        try:
            outcome = await act()
        except McphostError as error:
            self._app.notify(show(str(error), limit=600), severity="error", timeout=15, markup=False)
        else:
            self._app.notify(show(outcome, limit=600), timeout=15, markup=False)

    async def _sign_out(self, server: str) -> str:
        outcome = await self._host.sign_ins.sign_out(server)
        await self._fetch_status(server)
        return f"{show_line(server, 60)}: {outcome}."

    async def _forget(self, server: str) -> str:
        forgotten = await self._host.forget(server)
        await self._fetch_status(server)
        name = show_line(server, 60)
        return (
            f"Forgotten about “{name}”: {'; '.join(forgotten)}." if forgotten else f"Nothing was kept about “{name}”."
        )
