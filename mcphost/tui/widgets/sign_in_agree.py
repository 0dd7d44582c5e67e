"""The question whether to sign in like this: all there is to know, the scopes to choose from, and the answers.

Knows what must have been seen before a yes. Refuses to answer by itself: it posts what the user wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from mcphost.auth.base import ClientOrigin, SignInConsent, SignInPlan
from mcphost.protocol.display import show_line
from mcphost.protocol.hosts import host_in
from mcphost.tui.widgets.answers import AnswerOption, AnswerOptions
from mcphost.tui.widgets.facts import FactsTable
from mcphost.tui.widgets.rows import RowList
from mcphost.tui.widgets.scope_list import Scope, ScopeList
from mcphost.tui.widgets.sign_in_plan import plan_facts, warnings
from mcphost.tui.widgets.to_the_end import ReadToEnd

LEAST: Final = 3
"""Rows of what is asked about that are on screen, however little room there is."""


class AgreePanel(Vertical):
    """Shows a plan. ``server`` is the configured name."""

    DEFAULT_CSS = """
    AgreePanel {
        height: 1fr;
        & > .note { height: auto; color: $foreground-muted; }
        & > .hint { height: auto; color: $text-warning; }
        & > ScopeList { height: auto; }
        & > .field { height: 1; }
        & > .field > Static { width: 15; color: $text-muted; }
        & > .field > Input { width: 1fr; background: $panel; }
    }
    """

    @dataclass
    class Chosen(Message):
        """The user chose this answer; it is the screen's action."""

        action: str

    def __init__(self, server: str, plan: SignInPlan) -> None:
        super().__init__()
        self.plan = plan
        self.scopes = ScopeList(plan.scopes, plan.granted)
        self.answers = AnswerOptions()
        self._what = ReadToEnd(FactsTable(plan_facts(server, plan), labels=15))
        self._what.styles.max_height = LEAST  # until it is known what fits: what is cut off was not seen
        self._asked_for, self._hint = Static(classes="note", markup=False), Static(classes="hint", markup=False)
        self._client_id = Input(
            placeholder="as the authorization server gave it to you", compact=True, select_on_focus=False
        )
        self._secret = Input(placeholder="empty where there is none", password=True, compact=True)
        self._missing = ""

    def compose(self) -> ComposeResult:
        """The plan, the scopes, the fields where they are needed, what is missing, the answers."""
        yield self._what
        yield self._asked_for
        if self.plan.scopes:
            yield self.scopes
        if self.asks_for_client:
            yield Horizontal(Static("client id", markup=False), self._client_id, classes="field")
            yield Horizontal(Static("client secret", markup=False), self._secret, classes="field")
        yield self._hint
        yield self.answers

    def on_mount(self) -> None:
        """The cursor stands where no harm is done."""
        careful = bool(warnings(self.plan)) or self.plan.obtained
        self.answers.offer(_answers(self.plan), at="n" if careful else "y")
        (self._client_id if self.asks_for_client else self.answers).focus()
        self._count()
        self.call_after_refresh(self._tell_hint)

    def on_resize(self) -> None:
        """Nothing that came from outside pushes the answers off the screen."""
        fixed = 4 + 1 + 1 + 2 * self.asks_for_client  # answers, what is asked for, hint, fields
        rows = min(len(self.plan.scopes), max(2, (self.size.height - fixed) // 3))
        self.scopes.styles.height = rows
        self._what.styles.max_height = max(LEAST, self.size.height - fixed - rows)

    @property
    def asks_for_client(self) -> bool:
        """Must the user say who mcphost is there?"""
        return self.plan.client is ClientOrigin.ASKED

    def choice(self) -> SignInConsent | None:
        """What is agreed to; None while something is missing, which is then said and shown."""
        if not self._what.reached:
            return None
        name = self._client_id.value.strip()
        if self.asks_for_client and not name:
            self._tell_missing("a client id is needed")
            self._client_id.focus()
            return None
        secret = self._secret.value
        self._secret.value = ""
        return SignInConsent(self.scopes.chosen, name, secret)

    def page(self, direction: int) -> None:
        """Scroll what is asked about by a page."""
        self._what.page(direction)

    @on(ScopeList.Toggled)
    def _count(self) -> None:
        self._asked_for.update(_asked_for(self.plan, len(self.scopes.chosen)))

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[AnswerOption | Scope]) -> None:
        event.stop()
        if isinstance(event.item, AnswerOption):
            self.post_message(self.Chosen(event.item.action))
        else:
            self.answers.focus()

    @on(Input.Submitted)
    def _on(self, event: Input.Submitted) -> None:
        event.stop()
        (self._secret if event.input is self._client_id else self.answers).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._tell_missing("")

    def _tell_missing(self, words: str) -> None:
        self._missing = words
        self._tell_hint()

    @on(ReadToEnd.Reached)
    def _tell_hint(self) -> None:
        more = "" if self._what.reached else "▼ more above: space (in a field: page down) until its end, then y"
        self._hint.update(more or (f"✖ {self._missing}" if self._missing else ""))
        self._hint.display = bool(more or self._missing)


def _answers(plan: SignInPlan) -> Iterator[AnswerOption]:
    if plan.obtained:
        yield AnswerOption("y", "keep this sign-in: it is the account that is meant", "agree")
        yield AnswerOption("n", "do not sign in: the account before stays", "decline")
        yield AnswerOption("p", "leave it in the inbox (f2)", "park")
        return
    where = show_line(host_in(plan.authorization_endpoint).wire, 80)
    first = "register, then open" if plan.client is ClientOrigin.REGISTER else "open"
    yield AnswerOption("y", f"sign in: {first} the browser at {where}", "agree")
    yield AnswerOption("n", "do not sign in", "decline")
    yield AnswerOption("p", "leave it in the inbox (f2)", "park")


def _asked_for(plan: SignInPlan, chosen: int) -> str:
    if plan.obtained:
        return f"scopes         granted: {show_line(' '.join(plan.granted) or 'none', 200)}"
    if not plan.scopes:
        return f"scopes         none: named by {plan.scopes_from}"
    if not chosen:
        return "scopes (tab)   none asked for: the authorization server then decides by itself what you get"
    return f"scopes (tab)   {chosen} of {len(plan.scopes)} asked for, named by {plan.scopes_from}"
