"""The question of a sign-in: what the user should know, the scopes, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from mcphost.auth.ports import BOUND, NO_BROWSER, ClientOrigin, SignInConsent, SignInPlan
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.protocol.host_names import host_in, warnings_of
from mcphost.tui.kit.answers import LATER, SCROLL_FIRST, AnswerOption, AnswerOptions, ReadToEnd
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.rows import Cell, RowList, columns

LONG = 2000
"""Characters of an address; longer ones are rejected earlier, or cut here with a count."""


def plan_facts(server: str, plan: SignInPlan) -> Iterator[Fact]:
    """The facts to know before agreeing, warnings first. ``server`` is the configured name."""
    if plan.problem:
        yield fact("asked again", show(plan.problem, limit=600), "$text-warning")
    for warning in warnings(plan):
        yield fact("▲ beware", show(warning, limit=600), "bold $text-warning")
    if plan.resource:  # else only the identity is signed in
        yield Fact("server", Content.assemble((show_line(server, 60), "bold"), " · ", show(plan.url, limit=LONG)))
        yield fact("token for", show(plan.resource, limit=LONG))
    yield from _places(plan)
    yield from _client(plan)
    if plan.redirect_uri:
        yield fact("comes back to", show(plan.redirect_uri, limit=300))
    if plan.bound:
        yield fact("the token is", BOUND)


def warnings(plan: SignInPlan) -> list[str]:
    """Warnings about the flow, and about the characters of host names."""
    return [*plan.warnings, *warnings_of(plan.urls)]


def _places(plan: SignInPlan) -> Iterator[Fact]:
    issuer, page = host_in(plan.issuer), plan.authorization_endpoint
    if plan.identity:
        name = f"{show_line(plan.identity, 60)} at "
        yield Fact("identity", Content.assemble(name, _address(plan.identity_issuer)))
        yield from _account(plan)
        if plan.resource:
            yield Fact("token from", _address(plan.issuer))
        page = ""
    else:
        yield Fact("you sign in at", _address(plan.issuer))
    registers = plan.registration_endpoint if plan.client is ClientOrigin.REGISTER else ""
    others = (
        ("its page is at", page),
        ("token from", plan.token_endpoint),
        ("registers at", registers),
    )
    for label, url in others:
        host = host_in(url)
        if url and host.wire != issuer.wire:
            yield fact(label, f"{host.both}: another host", "$text-warning")


def _account(plan: SignInPlan) -> Iterator[Fact]:
    """The account at the identity provider, or that the browser goes there first."""
    if plan.account:
        yield fact("account", f"{show_line(plan.account, 200)}; {NO_BROWSER}")
        return
    page = host_in(plan.authorization_endpoint)
    elsewhere = page.wire != host_in(plan.identity_issuer).wire
    where = f"at {page.both}, another host" if elsewhere else "there"
    yield fact("account", f"you sign in {where}, in the browser", "$text-warning" if elsewhere else "")


def _address(url: str) -> Content:
    """An address with its host in bold, and how the host reads."""
    host = host_in(url)
    before, found, after = show(url, limit=LONG).partition(host.wire)
    reading = "" if host.wire == host.read else f"\nwhich reads {host.read}"
    return Content.assemble(before, (found, "bold"), after, reading)


def _client(plan: SignInPlan) -> Iterator[Fact]:
    words = plan.client.value
    if plan.client_id:
        words = f"{show_line(plan.client_id, 200)}, {words}"
    elif plan.client is ClientOrigin.ASKED:
        words = "a client id that you enter below: this server does not register clients"
    yield fact("mcphost is", words)


def plan_line(plan: SignInPlan) -> str:
    """Where to sign in and the number of scopes, for a list."""
    many = len(plan.scopes)
    scopes = f", {many} scope{'' if many == 1 else 's'}" if many else ""
    return f"sign in at {host_in(plan.identity_issuer or plan.issuer).wire}{scopes}"


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope as it came; ``granted`` by an earlier sign-in."""

    name: str
    granted: bool
    requested: bool = True


class ScopeList(RowList[Scope]):
    """Check boxes; ``chosen`` are the checked scopes. Textual's SelectionList marks these by colour alone."""

    HELP = "The scopes to ask for."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "ask_or_not", "ask for it or not", id="scopes.toggle", tooltip="Remove it, or put it back"),
    ]

    class Toggled(Message):
        """The user checked or unchecked a scope."""

    def __init__(self, scopes: Iterable[str], granted: Iterable[str], *, id: str | None = None) -> None:
        super().__init__(_row, id=id)
        granted_before = set(granted)
        self.set_items([Scope(each, each in granted_before) for each in scopes], keep=lambda scope: scope.name)

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(scope.name for scope in self.items if scope.requested)

    def action_ask_or_not(self) -> None:
        at = self.highlighted
        if at is None:
            return
        items = list(self.items)
        items[at] = replace(items[at], requested=not items[at].requested)
        self.set_items(items)
        self.post_message(self.Toggled())

    def on_click(self, event: events.Click) -> None:
        row = round(self.scroll_y) + event.y
        if event.x < 6 and row < len(self.items):
            self.highlighted = row
            self.action_ask_or_not()


def _row(scope: Scope, width: int) -> Content:
    box = "[x]" if scope.requested else "[ ]"
    remark = "granted before" if scope.granted else ""
    style = "" if scope.requested else "$foreground-muted"
    return columns(
        width,
        [
            Cell(box, "bold", 3, 3),
            Cell(show_line(scope.name, 200), style, 12),
            Cell(remark, "$foreground-muted", 14, 14),
        ],
    )


class AgreePanel(Vertical):
    """Shows a plan. ``server`` is the configured name."""

    DEFAULT_CSS = """
    AgreePanel {
        height: 1fr;
        & > ReadToEnd { height: 1fr; }
        & > .below { dock: bottom; height: auto; }
        .note { height: auto; color: $foreground-muted; }
        .hint { height: auto; color: $text-warning; display: none; }
        ScopeList { height: auto; max-height: 6; }
        .field { height: 1; }
        .field > Static { width: 15; color: $foreground-muted; }
        .field > Input { width: 1fr; background: $panel; }
    }
    """

    @dataclass
    class Chosen(Message):
        """The user chose this answer; ``action`` is the screen's."""

        action: str

    def __init__(self, server: str, plan: SignInPlan) -> None:
        super().__init__()
        self.plan = plan
        self.scopes = ScopeList(plan.scopes, plan.granted)
        self.answers = AnswerOptions()
        self._facts_area = ReadToEnd(FactsTable(plan_facts(server, plan), labels=15))
        self._scopes_line, self._hint = Static(classes="note", markup=False), Static(classes="hint", markup=False)
        self._client_id = Input(
            placeholder="as the authorization server gave it to you", compact=True, select_on_focus=False
        )
        self._secret = Input(placeholder="empty if it has none", password=True, compact=True)
        self._missing = ""

    def compose(self) -> ComposeResult:
        yield self._facts_area
        with Vertical(classes="below"):
            yield self._scopes_line
            if self.plan.scopes:
                yield self.scopes
            if self.asks_for_client:
                yield Horizontal(Static("client id", markup=False), self._client_id, classes="field")
                yield Horizontal(Static("client secret", markup=False), self._secret, classes="field")
            yield self._hint
            yield self.answers

    def on_mount(self) -> None:
        """Select the safe answer if care is needed."""
        careful = bool(warnings(self.plan)) or self.plan.obtained
        self.answers.offer(_answers(self.plan, locked=True), at="n" if careful else "y")
        (self._client_id if self.asks_for_client else self.answers).focus()
        self._count()
        self.call_after_refresh(self._update_hint)

    @property
    def asks_for_client(self) -> bool:
        """True if the user must enter a client id."""
        return self.plan.client is ClientOrigin.ASKED

    def consent(self) -> SignInConsent | None:
        """The consent; None while something is missing, which is then shown."""
        if not self._facts_area.reached:
            return None
        name = self._client_id.value.strip()
        if self.asks_for_client and not name:
            self._show_missing("enter a client id")
            self._client_id.focus()
            return None
        secret = self._secret.value
        self._secret.value = ""
        return SignInConsent(self.scopes.chosen, name, secret)

    def page(self, direction: int) -> None:
        self._facts_area.page(direction)

    @on(ScopeList.Toggled)
    def _count(self) -> None:
        self._scopes_line.update(_scopes_line(self.plan, len(self.scopes.chosen)))

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[AnswerOption | Scope]) -> None:
        event.stop()
        if isinstance(event.item, AnswerOption):
            self.post_message(self.Chosen(event.item.action))
        else:
            self.answers.focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        (self._secret if event.input is self._client_id else self.answers).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show_missing("")

    def _show_missing(self, words: str) -> None:
        self._missing = words
        self._update_hint()

    @on(ReadToEnd.Measured)
    def _update_hint(self) -> None:
        more = SCROLL_FIRST if self._facts_area.cut_off else ""
        self.answers.offer(_answers(self.plan, locked=bool(more)))
        self._hint.update(more or (f"✖ {self._missing}" if self._missing else ""))
        self._hint.display = bool(more or self._missing)


def _answers(plan: SignInPlan, *, locked: bool) -> Iterator[AnswerOption]:
    if plan.obtained:
        yield AnswerOption("y", "keep this sign-in: the account is right", "agree", locked=locked)
        yield AnswerOption("n", "don't sign in: the account before stays", "decline")
        yield AnswerOption("p", LATER, "park")
        return
    where = show_line(host_in(plan.authorization_endpoint).wire, 80)
    first = "register, then open" if plan.client is ClientOrigin.REGISTER else "open"
    how = f"{first} {where} in the browser" if plan.authorization_endpoint else NO_BROWSER
    yield AnswerOption("y", f"sign in: {how}", "agree", locked=locked)
    if plan.scopes:
        yield AnswerOption("e", "edit the scopes", "edit")
    yield AnswerOption("n", "don't sign in", "decline")
    yield AnswerOption("p", LATER, "park")


def _scopes_line(plan: SignInPlan, chosen: int) -> str:
    if plan.obtained:
        return f"scopes         granted: {show_line(' '.join(plan.granted) or 'none', 200)}"
    if not plan.scopes:
        return f"scopes         none: named by {plan.scopes_from}"
    if not chosen:
        return "scopes (e)     none requested: the authorization server decides"
    return f"scopes (e)     {chosen} of {len(plan.scopes)} requested, named by {plan.scopes_from}"
