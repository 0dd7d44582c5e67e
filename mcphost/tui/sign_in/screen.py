"""The dialog for a sign-in, from the question to the end, with every step."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from mcphost.auth.ports import SignInPlan
from mcphost.host.consent.questions import Answer, SignInQuestion
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.protocol.display import show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.kit.answers import naming
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.messages import IdentitiesRequested, SignInRequested
from mcphost.tui.kit.modal_screen import QuestionDialog
from mcphost.tui.kit.rows import RowList
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.sign_in.plan import AgreePanel
from mcphost.tui.sign_in.status import end_facts
from mcphost.tui.sign_in.steps import (
    SignInStep,
    StepLadder,
    acts_in,
    keys_in,
    mark_of,
    step_lines,
    step_spans,
    step_text,
)
from mcphost.tui.sign_in.visit import VisitPanel, port_of, ssh_line
from mcphost.tui.textual_private.corrections import ScrolledColumn

WIDE: Final = 130
"""Columns from which the steps are beside the question, with the details of the selected one."""


class SignInScreen(QuestionDialog):
    """Shows ``sign_in``; call `refresh_sign_in` when it changed. ``waiting`` is its question, if known."""

    HELP = (
        "Sign in to a server. First you see who asks for what, and where: nothing was registered or opened yet. "
        "Then a page opens in the browser; if that is on another machine, there is a line to run there. Every "
        "step is listed with its request and response, secrets masked."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "sign in", id="sign-in.agree", tooltip="Agree: then the browser opens"),
        Binding("e", "edit", "edit scopes", id="sign-in.edit", tooltip="Choose the scopes to ask for"),
        Binding("n", "decline", "don't sign in", id="sign-in.decline", tooltip="Decline: nothing is done"),
        Binding("p", "park", "later", id="sign-in.park", tooltip="Decide later; f2 lists it"),
        Binding("l", "steps", "steps", id="sign-in.steps", tooltip="The steps so far, or the question again"),
        Binding("space,pagedown", "page(1)", "scroll", id="sign-in.down", show=False),
        Binding("b,pageup", "page(-1)", "scroll back", id="sign-in.up", show=False),
        Binding("c", "copy_link", "copy link", id="sign-in.copy", tooltip="Copy the address of the page"),
        Binding("o", "open_again", "open again", id="sign-in.open", tooltip="Open the page in the browser once more"),
        Binding("v", "paste", "paste", id="sign-in.paste", tooltip="Go where the address is pasted"),
        Binding("s", "copy_ssh", "copy ssh line", id="sign-in.ssh", tooltip="Copy the line to run at the browser"),
        Binding("x", "cancel", "cancel", id="sign-in.cancel", tooltip="Stop this sign-in; nothing of it is kept"),
        Binding("r", "again", "try again", id="sign-in.again", tooltip="Begin another attempt"),
        Binding("D", "identities", "identities", id="sign-in.identities", tooltip="List the identities"),
        Binding(
            "escape",
            "back",
            "back",
            id="sign-in.back",
            tooltip="Close; the question stays in the inbox (F2), and a sign-in keeps running",
        ),
    ]

    DEFAULT_CSS = """
    SignInScreen {
        & > .dialog { max-width: 100%; height: 1fr; max-height: 100%; margin: 1 0 0 0; }
        .where { height: auto; }
        .both { height: 1fr; }
        .asked { height: 1fr; }
        .asked > VerticalScroll { height: auto; max-height: 1fr; }
        .steps { height: 1fr; min-height: 3; border-top: solid $border-blurred; }
        .steps:focus-within { border-top: solid $border; }
        .steps TextView { display: none; border-top: solid $border-blurred; height: 2fr; }
        &.-nothing-asked .asked { display: none; }
        &.-one-column .both { layout: vertical; }
        &.-one-column .asked { height: auto; max-height: 75%; }
        &.-one-column.-agreeing .asked { height: 1fr; max-height: 100%; }
        &.-one-column.-agreeing .steps { display: none; }
        &.-one-column.-agreeing.-show-steps .steps { display: block; }
        &.-one-column.-agreeing.-show-steps .asked { display: none; }
        &.-two-columns .asked { width: 11fr; padding-right: 1; }
        &.-two-columns .steps { width: 10fr; height: 100%; border-top: none; border-left: solid $border-blurred; }
        &.-two-columns .steps TextView { display: block; }
    }
    """

    def __init__(self, sign_in: SignIn, waiting: OpenQuestion | None = None) -> None:
        super().__init__(waiting)
        self.sign_in = sign_in
        self._entered: tuple[SignInState, SignInPlan | None] | None = None
        self._state_line = Static(classes="where", markup=False)
        self._panel_area, self._ladder, self._details = (
            Vertical(classes="asked"),
            StepLadder(),
            TextView(spans=step_spans),
        )
        self._panel: AgreePanel | VisitPanel | None = None
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with self.framed(naming("Sign in to ", show_line(self.sign_in.server, 60))):
            yield self._state_line
            with Horizontal(classes="both"):
                yield self._panel_area
                with Vertical(classes="steps"):
                    yield self._ladder
                    yield self._details

    async def on_mount(self) -> None:
        self._arrange()
        self._ladder.focus()
        await self.refresh_sign_in()

    def on_resize(self) -> None:
        self._arrange()

    # Questions and changes from the host.

    def adopt_question(self, waiting: OpenQuestion) -> bool:
        """Take over a question about this sign-in."""
        question = waiting.question
        if not isinstance(question, SignInQuestion) or question.sign_in != self.sign_in.number:
            return False
        self.waiting = waiting
        self.call_later(self.refresh_sign_in)
        return True

    def withdrawn(self) -> None:
        """Stay open, and show how the sign-in ended."""
        self.waiting = None
        self.call_later(self.refresh_sign_in)

    async def refresh_sign_in(self) -> None:
        """Show the current state."""
        state = self.sign_in.state
        self._ladder.show_steps(self.sign_in)
        mark, style = mark_of(state)
        self._state_line.update(Content.assemble((f"{mark} {state.value}", style), f" · {_cause(self.sign_in)}"))
        if self._entered != (state, self.sign_in.plan):
            await self._enter(state)
        self._update_visit()

    async def _enter(self, state: SignInState) -> None:
        """Show the panel of another state."""
        self._entered = (state, self.sign_in.plan)
        self.start_guard()
        typing = isinstance(self.focused, Input)
        await self._panel_area.remove_children()
        self._panel = self._new_panel(state)
        self.set_class(state is SignInState.AGREEING, "-agreeing")
        self.set_class(False, "-show-steps")
        if self._panel is not None:
            await self._panel_area.mount(self._panel)
        elif state.ended:
            await self._panel_area.mount(ScrolledColumn(FactsTable(end_facts(self.sign_in)), can_focus=False))
        if state is not SignInState.AGREEING or typing:
            self._ladder.focus()
        self._keep_time(state is SignInState.VISITING)
        self.set_class(self._panel is None and not state.ended, "-nothing-asked")
        self.set_subtitle(Content(keys_in(state)))
        self.refresh_bindings()

    def _new_panel(self, state: SignInState) -> AgreePanel | VisitPanel | None:
        if state is SignInState.AGREEING and self.sign_in.plan is not None:
            return AgreePanel(self.sign_in.server, self.sign_in.plan)
        return VisitPanel() if state is SignInState.VISITING else None

    def _update_visit(self) -> None:
        link = self.sign_in.link
        if isinstance(self._panel, VisitPanel) and link is not None:
            left = self.sign_in.link_until - asyncio.get_running_loop().time()
            self._panel.show_visit(self.sign_in, link, left)

    def _keep_time(self, needed: bool) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(1.0, self._update_visit) if needed else None

    def _arrange(self) -> None:
        two = self.size.width >= WIDE
        self.set_class(two, "-two-columns")
        self.set_class(not two, "-one-column")

    # Actions.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A plan that is not in view cannot be agreed to."""
        if action in ("agree", "decline", "park") and self.waiting is None:
            return False
        if action == "agree" and self.has_class("-show-steps", "-one-column"):
            return False
        if action == "edit":
            return self.waiting is not None and isinstance(self._panel, AgreePanel) and bool(self._panel.plan.scopes)
        if action == "identities":
            return bool(self.sign_in.status is not None and self.sign_in.status.identity)
        return acts_in(action, self.sign_in.state)

    @on(AgreePanel.Chosen)
    async def _chosen(self, event: AgreePanel.Chosen) -> None:
        event.stop()
        await self.run_action(event.action)

    def action_agree(self) -> None:
        """Agree, once everything was on screen and nothing is missing."""
        consent = self._panel.consent() if isinstance(self._panel, AgreePanel) else None
        if consent is None:
            self.app.bell()
        else:
            self.answer(Answer(allow=True, content=consent))

    def action_decline(self) -> None:
        self.answer(Answer(allow=False))
        self.dismiss(None)

    def action_park(self) -> None:
        """Close without an answer; the question stays in the inbox."""
        self.answer(None)
        self.dismiss(None)

    def action_back(self) -> None:
        """Leave a field; leave an open question in the inbox; else close, and the sign-in continues."""
        if isinstance(self.focused, Input):
            (self._panel.answers if isinstance(self._panel, AgreePanel) else self._ladder).focus()
        elif self.has_class("-show-steps"):
            self.action_steps()
        elif self.waiting is not None:
            self.action_park()
        else:
            self.dismiss(None)

    def action_edit(self) -> None:
        """Go to the scopes."""
        if isinstance(self._panel, AgreePanel):
            self._panel.scopes.focus()

    def action_steps(self) -> None:
        """Switch between the steps and the question."""
        self.toggle_class("-show-steps")
        agreeing = isinstance(self._panel, AgreePanel) and not self.has_class("-show-steps")
        (self._panel.answers if agreeing and isinstance(self._panel, AgreePanel) else self._ladder).focus()
        self.refresh_bindings()

    def action_page(self, direction: int) -> None:
        if isinstance(self._panel, AgreePanel):
            self._panel.page(direction)

    def action_copy_link(self) -> None:
        if self.sign_in.link is not None:
            self.app.copy_to_clipboard(self.sign_in.link.url)

    def action_copy_ssh(self) -> None:
        """Copy the command to run where the browser is."""
        link = self.sign_in.link
        if link is not None and (port := port_of(link)) is not None:
            self.app.copy_to_clipboard(ssh_line(port))
            self.notify("YOUR-HOST is the name by which this machine is reached.")

    def action_open_again(self) -> None:
        self.app.run_worker(self.sign_in.reopen(), group="open-page", exclusive=True)

    def action_paste(self) -> None:
        if isinstance(self._panel, VisitPanel):
            self._panel.focus_address()

    def action_cancel(self) -> None:
        self.sign_in.cancel()

    def action_again(self) -> None:
        """Close, and start another attempt."""
        self.dismiss(None)
        self.app.post_message(SignInRequested(self.sign_in.server))

    def action_identities(self) -> None:
        """Close, and list the identities."""
        self.dismiss(None)
        self.app.post_message(IdentitiesRequested())

    def on_paste(self, event: events.Paste) -> None:
        """Put text that is pasted during the visit into the field."""
        if isinstance(self._panel, VisitPanel):
            event.stop()
            self._panel.take_paste(event.text)

    @on(VisitPanel.Pasted)
    def _pasted(self, event: VisitPanel.Pasted) -> None:
        event.stop()
        self._ladder.focus()
        self.sign_in.paste(event.url)

    @on(RowList.Highlighted)
    def _step_chosen(self, event: RowList.Highlighted[SignInStep]) -> None:
        if event.row_list is self._ladder:
            event.stop()
            self._details.load([] if event.item is None else step_lines(event.item))

    @on(RowList.Selected)
    def _step_opened(self, event: RowList.Selected[SignInStep]) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        if event.row_list is self._ladder and event.item.exchange is not None:
            event.stop()
            title = f"{self.sign_in.server} › step {event.item.number}: {show_line(event.item.title, 60)}"
            self.app.push_screen(ReaderScreen(title, step_text(event.item), spans=step_spans))


def _cause(sign_in: SignIn) -> str:
    if not sign_in.why.www_authenticate and sign_in.why.status == 401:
        return "wanted by you"
    return f"after HTTP {sign_in.why.status}{f': {sign_in.why.reason}' if sign_in.why.reason else ''}"
