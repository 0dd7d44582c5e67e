"""What the user wants of sign-ins, done by the host: begin one, go on with it, sign out, forget a server.

Knows the host and the screens. Refuses to know how a sign-in goes: its screen shows the host's handle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.connections.state import ServerState
from mcphost.host.consent.questions import SignInQuestion
from mcphost.host.events import Event, SignInChanged
from mcphost.host.host import Host
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.protocol.display import show, show_line
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.messages import SignInRequested
from mcphost.tui.kit.modal import QuestionDialog
from mcphost.tui.main.refresh import MainScreenUpdater
from mcphost.tui.servers.card import ServerCard
from mcphost.tui.sign_in.account import Account

if TYPE_CHECKING:
    from mcphost.auth.ports import SignInStatus
    from mcphost.tui.sign_in.screen import SignInScreen

    _App = App[Any]
else:
    _App = object


class SignInWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    approver: ScreenApprover
    questions: QuestionQueue
    updater: MainScreenUpdater
    standings: dict[str, SignInStatus]
    """Who was signed in where, when last asked."""
    _learned: tuple[str, ServerState] | None = None
    """Of which server that was asked last, and how it stood then: a flood of events asks no keychain."""

    def account(self, server: str) -> Account:
        """What is known of the sign-in of a server."""
        attempts = [each for each in self.host.sign_ins.all.values() if each.server == server]
        return Account(self.standings.get(server), attempts[-1] if attempts else None)

    def learn_standing(self, server: str | None) -> None:
        """Ask who is signed in there, and show it."""
        connection = self.host.servers.get(server or "")
        if connection is not None and connection.config.signs_in:
            self._learned = (connection.name, connection.state)
            _: Worker[None] = self.run_worker(partial(self._learn, connection.name), group="standing", exclusive=True)

    def sign_ins_changed(self, events: Iterable[Event], chosen: str | None) -> None:
        """Show what went on, on its screen or else in a note; learn anew who is signed in at the ``chosen`` server."""
        for event in events:
            if isinstance(event, SignInChanged):
                self._went_on(event.sign_in)
        connection = self.host.servers.get(chosen or "")
        if connection is not None and (self._ended(events) or self._learned != (connection.name, connection.state)):
            self.learn_standing(chosen)

    # Begin, or go on.

    def on_sign_in_requested(self, event: SignInRequested) -> None:
        """Sign in, or show how it goes."""
        self.sign_in_to(event.server)

    def sign_in_to(self, server: str) -> None:
        """Begin to sign in, or join the sign-in that runs; either way show it."""
        from mcphost.tui.sign_in.screen import SignInScreen

        if len(self.screen_stack) > 1:
            return
        try:
            sign_in = self.host.sign_ins.begin(server)
        except McphostError as error:
            self.notify(show(str(error), limit=400), severity="error", markup=False)
            return
        self.push_screen(SignInScreen(sign_in))
        self.questions.unpark(set(self._asked_by(sign_in)))

    def on_sign_in_screen_again_wanted(self, event: SignInScreen.AgainWanted) -> None:
        """Begin another attempt."""
        event.screen.dismiss(None)
        self.call_later(self.sign_in_to, event.sign_in.server)

    def on_sign_in_screen_cancel_wanted(self, event: SignInScreen.CancelWanted) -> None:
        """Stop it."""
        event.sign_in.cancel()

    def on_sign_in_screen_open_wanted(self, event: SignInScreen.OpenWanted) -> None:
        """Open the page once more."""
        self.run_worker(event.sign_in.reopen(), group="open-page", exclusive=True)

    def on_sign_in_screen_pasted(self, event: SignInScreen.Pasted) -> None:
        """Here is where the browser ended."""
        event.sign_in.paste(event.url)

    def on_question_dialog_answered(self, event: QuestionDialog.Answered) -> None:
        """An answer of a screen that stays."""
        self.questions.take(event.number, event.answer)

    # Sign out, forget.

    def on_server_card_sign_out_requested(self, event: ServerCard.SignOutRequested) -> None:
        """Ask, then sign out."""
        self.sign_out_of(event.server)

    def on_server_card_forget_requested(self, event: ServerCard.ForgetRequested) -> None:
        """Ask, then forget."""
        self.forget(event.server)

    def sign_out_of(self, server: str) -> None:
        """Ask, then sign out."""
        facts = [
            fact("server", show_line(server, 60)),
            fact("then", "Its tokens are revoked where that is offered, and forgotten here. It will want a sign-in."),
        ]
        self._ask(f"Sign out of {show_line(server, 40)}?", facts, "sign out", lambda: self._signed_out(server))

    def forget(self, server: str) -> None:
        """Ask, then forget everything about a server."""
        facts = [
            fact("server", show_line(server, 60)),
            fact("forgotten", "its tokens, and who mcphost is at the place that signs in"),
            fact("", "which of its tools you allowed, and how they looked then"),
            fact("", "what was learned of its transport"),
            fact("kept", "its entry in your configuration, and the audit log"),
        ]
        name = show_line(server, 40)
        self._ask(f"Forget everything about {name}?", facts, "forget it", lambda: self._forgotten(server))

    def sign_in_commands(self) -> Iterator[SystemCommand]:
        """For the palette."""
        for name, connection in self.host.servers.items():
            called = show_line(name, 60)
            if connection.config.signs_in:
                told = "Through the browser, or see how that goes"
                yield SystemCommand(f"Sign in to {called}", told, lambda name=name: self.sign_in_to(name))
                if self.account(name).signed_in:
                    told = "Its tokens are revoked and forgotten"
                    yield SystemCommand(f"Sign out of {called}", told, lambda name=name: self.sign_out_of(name))
            told = "Tokens, what you allowed, what was learned; asks first"
            yield SystemCommand(f"Forget everything about {called}", told, lambda name=name: self.forget(name))

    # How it is done.

    def _asked_by(self, sign_in: SignIn) -> Iterator[int]:
        for number, waiting in self.approver.open.items():
            question = waiting.question
            if isinstance(question, SignInQuestion) and question.sign_in == sign_in.number:
                yield number

    def _ended(self, events: Iterable[Event]) -> bool:
        """Did some sign-in end?"""
        found = (self.host.sign_ins.all.get(event.sign_in) for event in events if isinstance(event, SignInChanged))
        return any(each is not None and each.state.ended for each in found)

    def _went_on(self, number: int) -> None:
        from mcphost.tui.sign_in.screen import SignInScreen

        sign_in = self.host.sign_ins.all.get(number)
        if sign_in is None:
            return
        seen = [each for each in self.screen_stack if isinstance(each, SignInScreen) and each.sign_in is sign_in]
        for screen in seen:
            screen.call_later(screen.refresh_sign_in)
        if not seen and sign_in.state is SignInState.DONE:
            self.notify(f"Signed in to {show_line(sign_in.server, 60)}.", markup=False)
        elif not seen and sign_in.state is SignInState.FAILED:
            words = f"Not signed in to {show_line(sign_in.server, 60)}: {sign_in.error}"
            self.notify(show(words, limit=400), severity="error", timeout=15, markup=False)

    async def _learn(self, server: str) -> None:
        try:
            self.standings[server] = await self.host.sign_ins.status(server)
        except McphostError:  # nobody can be signed in there; why is said when somebody tries
            self.standings.pop(server, None)
        self.updater.card()

    def _ask(self, title: str, facts: list[Fact], yes: str, do: Callable[[], Awaitable[str]]) -> None:
        from mcphost.tui.kit.modal import AskScreen

        def answered(agreed: bool | None) -> None:
            if agreed:
                self.run_worker(self._tell(do), group="accounts")

        if len(self.screen_stack) == 1:
            self.push_screen(AskScreen(title, facts, yes), answered)

    async def _tell(self, do: Callable[[], Awaitable[str]]) -> None:
        try:
            told = await do()
        except McphostError as error:
            self.notify(show(str(error), limit=600), severity="error", timeout=15, markup=False)
        else:
            self.notify(show(told, limit=600), timeout=15, markup=False)

    async def _signed_out(self, server: str) -> str:
        told = await self.host.sign_ins.sign_out(server)
        await self._learn(server)
        return f"{show_line(server, 60)}: {told}."

    async def _forgotten(self, server: str) -> str:
        told = await self.host.forget(server)
        await self._learn(server)
        name = show_line(server, 60)
        return f"Forgotten about {name}: {'; '.join(told)}." if told else f"Nothing was kept about {name}."
