"""The panel while mcphost waits for the browser: the page, the time left, and the ways from another machine."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content, Span
from textual.message import Message
from textual.style import Style
from textual.widgets import Input, Static

from mcphost.auth.ports import AuthorizationLink, ClientOrigin
from mcphost.host.sign_in.service import SignIn
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show
from mcphost.protocol.host_names import host_in
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.textual_private.corrections import ScrolledColumn


class AddressInput(Input):
    """Accepts an address pasted in pieces, and masks it, since it holds a code."""

    def __init__(self) -> None:
        super().__init__(
            placeholder="paste the address at which the browser ended", password=True, compact=True, id="address"
        )

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.value = "".join(event.text.split())
        self.cursor_position = len(self.value)


class VisitPanel(Vertical):
    """Call `show_visit` to update it."""

    DEFAULT_CSS = """
    VisitPanel {
        height: auto;
        & > VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
        & > .field { height: 1; }
        & > .field > Static { width: 15; color: $foreground-muted; }
        & > .field > Input { width: 1fr; background: $panel; }
        & > .remark { height: auto; padding: 0 0 0 15; }
    }
    """

    @dataclass
    class Pasted(Message):
        """The browser ended at this address. It holds a code: never show it."""

        url: str

    def __init__(self) -> None:
        super().__init__()
        self._facts, self._remark = FactsTable(labels=15), Static(classes="remark", markup=False)
        self._address = AddressInput()
        self._problem = ""

    def compose(self) -> ComposeResult:
        yield ScrolledColumn(self._facts, can_focus=False)
        yield Horizontal(Static("paste here (v)", markup=False), self._address, classes="field")
        yield self._remark

    def show_visit(self, sign_in: SignIn, link: AuthorizationLink, left: float) -> None:
        """Show this link; ``left`` is the time left in seconds."""
        self._facts.show_facts(visit_facts(sign_in, link, left))
        self._problem = sign_in.paste_problem
        self._update_remark()

    def focus_address(self) -> None:
        self._address.focus()

    def take_paste(self, text: str) -> None:
        """Take text that was pasted while no field had the focus."""
        self._address.focus()
        self._address.value = "".join(text.split())

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._update_remark()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self._address.value = ""
            self.post_message(self.Pasted(event.value))

    def _update_remark(self) -> None:
        typed = self._address.value
        words = Content("")
        if typed:
            words = Content.styled(
                f"{_place(typed)} ({len(typed)} characters, hidden): enter uses it", "$foreground-muted"
            )
        elif self._problem:
            words = Content.styled(f"✖ {show(self._problem, limit=300)}", "$text-error")
        self._remark.update(Content.assemble(words))
        self._remark.display = bool(words.plain)


def visit_facts(sign_in: SignIn, link: AuthorizationLink, left: float) -> Iterator[Fact]:
    """Only the addresses are foreign text."""
    host = host_in(link.url)
    if sign_in.not_opened:
        yield fact("▲ not opened", f"{show(sign_in.not_opened, limit=300)}; open the page yourself", "$text-warning")
    yield Fact(f"page at {host.both}:", link_content(link.url), wide=True)
    yield fact("waits", f"{duration_text(max(0.0, left))} more, for {show(link.redirect_uri, limit=300)}")
    if sign_in.plan is not None and sign_in.plan.client is ClientOrigin.KNOWN:
        yield fact("unknown there?", "x cancels: sign out of this server, and sign in again")
    if (port := port_of(link)) is not None:
        yield Fact("elsewhere", _elsewhere(ssh_line(port)))


def _elsewhere(line: str) -> Content:
    return Content.assemble(
        "Browser on another machine? Run there first (s copies):\n  ",
        (line, "bold $text-accent"),
        "\nor take the page there, and bring the address it ends at:",
    )


def link_content(url: str) -> Content:
    """A link in full. Terminals may open it only if no character in it could end the escape sequence."""
    shown = show(url)
    safe = url.isascii() and url.isprintable() and " " not in url and url.startswith(("https://", "http://"))
    if not safe:
        return Content(shown)
    return Content(shown, [Span(0, len(shown), Style(link=url, underline=True))])


def port_of(link: AuthorizationLink) -> int | None:
    """The local port to which the browser returns."""
    try:
        return urlsplit(link.redirect_uri).port
    except ValueError:
        return None


def ssh_line(port: int) -> str:
    """The command to run where the browser is."""
    return f"ssh -L {port}:127.0.0.1:{port} YOUR-HOST"


def _place(typed: str) -> str:
    """The start of an address, without what may be secret."""
    start = typed.partition("?")[0]
    return show(start, limit=60) if start.startswith(("http://", "https://")) else "what was pasted"
