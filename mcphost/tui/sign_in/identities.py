"""The list of identities: who is signed in at each identity provider, and for which servers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.worker import Worker

from mcphost.protocol.display import duration_text, show, show_line
from mcphost.protocol.host_names import host_in
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import ScrolledColumn

if TYPE_CHECKING:
    from mcphost.auth.ports import IdentityStatus

EMPTY = "No identities.\nAdd a table [identity.NAME] to your configuration, and name it in the servers that trust it."
LABELS = 16
"""Cells of a fact's label."""


def identity_row(status: IdentityStatus, width: int, now: float) -> Content:
    mark, style = ("●", "$text-success") if status.signed_in else ("○", "$foreground-muted")
    without = "given by a source" if status.given else "not signed in"
    who = show_line(status.account, 80) if status.signed_in else without
    return columns(
        width,
        [
            Cell(mark, style, 1, 1),
            Cell(status.name, "bold", 6, 14),
            Cell(who, "" if status.signed_in else "$foreground-muted", 14),
            Cell(show_line(host_in(status.issuer).wire, 80), "", 14),
            Cell(_lasting(status, now), "$foreground-muted", 10, 22),
        ],
    )


def identity_facts(status: IdentityStatus, now: float) -> Iterator[Fact]:
    yield Fact("identity", Content.assemble((show_line(status.name, 60), "bold")))
    yield fact("provider", host_in(status.issuer).both)
    yield fact("issuer", show(status.issuer, limit=500))
    if not status.given:
        yield fact("account", show(status.account, limit=300) or "no one is signed in")
    if status.signed_in:
        yield fact("ID token", _lasting(status, now))
    yield fact("servers", ", ".join(show_line(each, 60) for each in status.servers) or "none has a token of it")
    if status.problem:
        yield fact("▲ not renewed", show(status.problem, limit=600), "$text-warning")
    yield fact("ID token" if status.given else "kept", show(status.kept_in, limit=400))


def _lasting(status: IdentityStatus, now: float) -> str:
    if not status.signed_in or status.expires_at is None:
        return ""
    if status.expires_at > now:
        return f"valid for {duration_text(status.expires_at - now)}"
    return "expired; is renewed" if status.renewable else "expired"


class IdentityActions(Protocol):
    """Acts on the identities for the screen."""

    async def identity_statuses(self) -> Sequence[IdentityStatus]: ...

    def sign_in_identity(self, name: str) -> None:
        """Begin a sign-in, and show it."""

    async def sign_out_identity(self, name: str) -> None:
        """Ask, sign out, and tell what happened."""


class IdentitiesScreen(FramedScreen[None]):
    HELP = (
        "Your accounts at identity providers. One sign-in serves all servers that name the identity; signing out "
        "removes the tokens of these servers, too."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sign_in", "sign in", id="identities.sign-in", tooltip="Sign in at its identity provider"),
        Binding("o", "sign_out", "sign out", id="identities.sign-out", tooltip="Forget it and the tokens got with it"),
        Binding("r", "refresh", "refresh", id="identities.refresh", tooltip="Look them up again"),
        Binding("escape", "back", "back", id="identities.back", tooltip="Close"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    IdentitiesScreen {
        & > .frame { width: 94%; max-width: 140; height: 80%; max-height: 22; }
        RowList { height: 1fr; min-height: 3; }
        VerticalScroll {
            height: 10; max-height: 48vh; padding: 0 2; border-top: solid $border-blurred;
            &:focus { border-top: solid $border; }
        }
    }
    """

    def __init__(self, actions: IdentityActions) -> None:
        super().__init__()
        self._actions = actions
        self.rows = RowList["IdentityStatus"](lambda status, width: identity_row(status, width, time.time()))
        self._column, self._facts = ScrolledColumn(), FactsTable(labels=LABELS)

    def compose(self) -> ComposeResult:
        with self.framed("Identities"):
            yield self.rows
            with self._column:
                yield self._facts

    def on_mount(self) -> None:
        self.rows.focus()
        self.action_refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        item = self.rows.item
        if action == "sign_out":
            return item is not None and (item.signed_in or bool(item.servers))
        return item is not None and not item.given if action == "sign_in" else True

    def action_refresh(self) -> None:
        _: Worker[None] = self.run_worker(self._list(), group="list-identities", exclusive=True)

    def action_sign_in(self) -> None:
        if self.rows.item is not None:
            self.dismiss(None)
            self.app.call_later(self._actions.sign_in_identity, self.rows.item.name)

    def action_sign_out(self) -> None:
        if self.rows.item is not None:
            self.app.run_worker(self._sign_out(self.rows.item.name), group="accounts")

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[IdentityStatus]) -> None:
        event.stop()
        self._update_facts()

    async def _sign_out(self, name: str) -> None:
        await self._actions.sign_out_identity(name)
        if self.is_attached:
            self.action_refresh()

    async def _list(self) -> None:
        self.rows.empty = EMPTY
        self.rows.set_items(await self._actions.identity_statuses(), keep=lambda status: status.name)
        self._update_facts()

    def _update_facts(self) -> None:
        item = self.rows.item
        self._facts.show_facts(identity_facts(item, time.time()) if item is not None else ())
        self._column.display = item is not None
        keys = ["s sign in"] if self.check_action("sign_in", ()) else []
        keys += ["o sign out"] if self.check_action("sign_out", ()) else []
        self.frame.border_subtitle = Content(" · ".join([*keys, "r refresh", "esc back"]))
        self.refresh_bindings()
