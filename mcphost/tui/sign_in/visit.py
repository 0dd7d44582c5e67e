"""The panel shown while mcphost waits for the browser: the page, the time left, and ways from another machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final
from urllib.parse import urlsplit

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
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
from mcphost.tui.kit.modal_screen import HELP_BINDING, Modal
from mcphost.tui.textual_private.corrections import ScrolledColumn


class AddressInput(Input):
    """Accepts an address pasted in pieces, and hides it: it holds a code."""

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
    """`show_visit` updates it."""

    DEFAULT_CSS = """
    VisitPanel {
        height: auto;
        & > VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
        & > .field { height: 1; }
        & > .field > Static { width: 15; color: $foreground-muted; }
        & > .field > Input { width: 1fr; background: $panel; }
        & > .told { height: auto; padding: 0 0 0 15; }
    }
    """

    @dataclass
    class Pasted(Message):
        """The browser ended at this address. It holds a code: never show it."""

        url: str

    def __init__(self) -> None:
        super().__init__()
        self._facts, self._remark = FactsTable(labels=15), Static(classes="told", markup=False)
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


QUIET: Final = 2
"""Light modules around the code: the standard requires four, but cameras accept two on a light background."""


class QrScreen(Modal[None]):
    """Shows ``url`` as a QR code, or how much room that needs."""

    HELP = "The link as a QR code, for the camera of another machine. esc goes back."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="qr.back", tooltip="Close"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    QrScreen {
        align: center middle;
        background: $background;
        & > Vertical { width: auto; height: auto; }
        #code { width: auto; height: auto; color: black; background: white; }
        #code.-none { color: $text-warning; background: $background; max-width: 70; }
    }
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._lines = half_blocks(url)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(id="code", markup=False)

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def action_back(self) -> None:
        self.dismiss(None)

    def _draw(self) -> None:
        rows, cells = len(self._lines), max(map(len, self._lines), default=0)
        fits = bool(rows) and rows <= self.size.height and cells <= self.size.width
        code = self.query_one("#code", Static)
        code.set_class(not fits, "-none")
        code.update(Content("\n".join(self._lines)) if fits else Content(self._too_small(rows, cells)))

    def _too_small(self, rows: int, cells: int) -> str:
        here = f"this terminal has {self.size.width} × {self.size.height}"
        if not rows:
            return "The link is too long for a QR code.\nesc goes back; c copies the link."
        return (
            f"The QR code of this link needs {cells} columns and {rows} rows; {here}.\n"
            "Make it larger, or its letters smaller. esc goes back; c copies the link."
        )


def half_blocks(text: str) -> Sequence[str]:
    """The QR code of ``text`` in half blocks, dark on light; empty if the text is too long."""
    import segno  # late: seldom used

    try:
        code = segno.make_qr(text, error="l", boost_error=False)
    except segno.DataOverflowError:
        return ()
    modules = [[bool(module) for module in row] for row in code.matrix_iter(border=QUIET)]
    if len(modules) % 2:
        modules.append([False] * len(modules[0]))
    return ["".join(map(_block, upper, lower)) for upper, lower in zip(modules[::2], modules[1::2], strict=True)]


def _block(upper: bool, lower: bool) -> str:
    return (" ", "▄", "▀", "█")[2 * upper + lower]
