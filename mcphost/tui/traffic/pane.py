"""The traffic of all servers: every message both ways, stderr, stray lines and HTTP heads between them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input

from mcphost.errors import McphostError, NotDone
from mcphost.host.traffic.book import TrafficBook, read_traffic
from mcphost.host.traffic.message import TrafficMessage
from mcphost.host.traffic.resending import ONCE, is_resendable
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line, size_text
from mcphost.tui.kit.clock import clock_text, date_text
from mcphost.tui.kit.framed import LineScreen
from mcphost.tui.kit.messages import CallChosen
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import timer_without_skips
from mcphost.tui.traffic.detail import TrafficDetail
from mcphost.tui.traffic.list import TrafficList

BESIDE: Final = 170
"""Cells from which the list and the message are side by side."""

BELOW: Final = 26
"""Rows from which the message is below the list where it is not beside it: a screen of 30 rows has them."""

BESIDE_IF_LOW: Final = 110
"""Cells from which they are side by side where the message has no room below."""

SOON: Final = 0.01
"""Seconds until more unseen messages are paired."""


def _key(key: str, action: str, description: str, tooltip: str, *, show: bool = True, system: bool = False) -> Binding:
    """``system`` keeps a binding out of the help."""
    return Binding(key, action, description, show=show, tooltip=tooltip, id=f"traffic.{action}", system=system)


class TrafficPane(Container):
    """Shows the ``live`` traffic or a file; the app calls `refresh_traffic` when messages were added."""

    HELP = "The traffic of all servers. A tool call that is sent again asks for your approval as usual."
    BINDINGS: ClassVar[list[BindingType]] = [
        _key("escape", "back", "back", "Back to the list, or from a file to the live traffic"),
        _key("w", "save", "save", "Export the messages shown as a recording (JSONL)"),
        _key("W", "save_session", "save session", "Save all messages of this connection as a recording", show=False),
        _key("r", "partner", "pair", "Switch between a request and its response"),
        _key("v", "look", "raw", "Show the message as it came, or laid out"),
        _key("C", "call", "call", "Open the call that this message is part of"),
        _key("P", "pin", "pin", "Keep this message when older ones are dropped, or unpin it"),
        _key("R", "resend", "send again", "Send this request again"),
        _key("y", "copy", "copy", "Copy this message"),
        _key("o", "open", "import", "Open a file of exported traffic, read-only"),
        _key("C", "say_no_call", "no call", "", show=False, system=True),
        _key("R", "say_not_sent", "not to be sent", "", show=False, system=True),
    ]
    DEFAULT_CSS = """
    TrafficPane {
        layout: horizontal; height: 1fr;
        & TrafficDetail { display: none; }
        &.-open TrafficList { display: none; }
        &.-open TrafficDetail { display: block; }
        &.-beside TrafficList { display: block; width: 3fr; }
        &.-beside TrafficDetail { display: block; width: 2fr; }
        &.-below { layout: vertical; }
        &.-below TrafficList { display: block; height: 3fr; }
        &.-below TrafficDetail { display: block; height: 2fr; }
    }
    """

    @dataclass
    class ResendRequested(Message):
        """The user asked to send this request again."""

        message: TrafficMessage

    def __init__(self, live: TrafficBook, state: Path | None = None) -> None:
        """``state`` is the state folder, in which taps leave what passed while no screen ran."""
        super().__init__()
        self._live, self._state = live, state
        self.message: TrafficMessage | None = None
        """The message that keys act on."""
        self._visible, self._active_keys = False, tuple[bool | None, ...]()
        self.list, self.detail = TrafficList(live), TrafficDetail()
        self.rows = self.list.rows

    def compose(self) -> ComposeResult:
        yield self.list
        yield self.detail

    @property
    def book(self) -> TrafficBook:
        """The live traffic, or that of a file."""
        return self.list.book

    @property
    def split(self) -> bool:
        """True if the list and a message are both seen."""
        return self.has_class("-beside") or self.has_class("-below")

    @property
    def opened(self) -> bool:
        """True if one message takes the whole pane."""
        return self.has_class("-open") and not self.split

    def on_resize(self, event: Resize) -> None:
        width, height = event.size
        beside = width >= BESIDE or (width >= BESIDE_IF_LOW and height < BELOW)
        below = not beside and height >= BELOW
        was_split = self.split
        self.update_classes({"-beside": beside, "-below": below})
        if self.split is not was_split:
            self.refresh_bindings()  # else a list that follows would not show other keys
        self._show_message()

    def on_show(self) -> None:
        """Take in the messages that passed while the pane was hidden."""
        self._visible = True
        self.refresh_traffic()

    def on_hide(self) -> None:
        self._visible = False

    def refresh_traffic(self) -> None:
        """Show new messages, unless the pane is hidden."""
        if not self._visible:
            return
        if not self.list.refresh_traffic():
            timer_without_skips(self.set_timer(SOON, self.refresh_traffic))
        if self.message is None and self.rows.item is not None:
            self._select(self.rows.item)  # a new list has not posted its selection yet
        self._show_facts()
        self._update_keys()

    def focus_rows(self) -> None:
        """Focus the messages, or the open message; take in what passed while the pane was hidden."""
        self.on_show()
        (self.detail.text if self.opened else self.rows).focus()

    def show_call(self, number: int) -> None:
        """Show only the messages of this call."""
        self._close_message()
        if self.list.file:
            self.list.show_book(self._live)
        self.list.show_filtered(f"call:{number}")

    # The message that keys act on.

    def _select(self, message: TrafficMessage | None) -> None:
        self.message = message
        self._show_message()
        self._update_keys()

    def _show_message(self) -> None:
        if self.opened or self.split:
            self.detail.show_message(self.book, self.message)

    def _show_facts(self) -> None:
        if self.message is not None and (self.opened or self.split):
            self.detail.show_facts(self.book)

    def _close_message(self) -> None:
        if self.has_class("-open"):
            self.remove_class("-open")
            self.rows.focus()

    def on_traffic_list_highlighted(self, event: TrafficList.Highlighted) -> None:
        self._select(event.message)

    def on_traffic_list_followed(self) -> None:
        self._update_keys()

    def on_row_list_selected(self, event: RowList.Selected[TrafficMessage]) -> None:
        event.stop()
        self.rows.following = False
        self._open(event.item)

    def _open(self, message: TrafficMessage) -> None:
        self.add_class("-open")
        self._select(message)
        self.detail.text.focus()

    def _update_keys(self) -> None:
        """Update the key line only if other keys work, since that is slow."""
        active = tuple(self.check_action(action, ()) for action in ("back", "partner", "look", "call", "resend"))
        if active != self._active_keys and not self.rows.following:
            self._active_keys = active
            self.refresh_bindings()

    def action_partner(self) -> None:
        """Go to the response of a request, or to the request of a response."""
        partner = self.book.partner(self.message) if self.message is not None else None
        if partner is None:
            self.notify("The other message of this pair is no longer kept.", severity="warning")
            return
        self.rows.following = False
        place = self.list.place_of(partner)
        if place is not None:
            self.rows.highlighted = place
            self._select(partner)
        else:
            self._open(partner)  # hidden by the filter, which stays

    def action_look(self) -> None:
        self.detail.raw = not self.detail.raw
        self._show_message()

    def action_back(self) -> None:
        """Go back from the message to the list, or from a file to the live traffic."""
        if self.opened or self.detail.has_focus_within:
            self._close_message()
            self.rows.focus()
        else:
            self._show_book(self._live)
            self.rows.following = self.rows.tails

    # Actions.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        message, live = self.message, not self.list.file
        match action:
            case "back":
                return not live or self.opened or self.detail.has_focus_within
            case "look":
                return self.opened or self.split
            case "partner":
                return message is not None and message.partner is not None
            case "call":
                return live and message is not None and message.call is not None
            case "resend":
                return live and message is not None and is_resendable(message)
            case "say_no_call" | "say_not_sent":  # else the key would reach the screen
                return message is not None
            case "pin" | "copy" | "save":
                return message is not None
        return True

    def _show_book(self, book: TrafficBook, file: str = "") -> None:
        self._close_message()
        self.list.show_book(book, file)
        self.refresh_traffic()

    def action_open(self) -> None:
        def opened(found: tuple[str, TrafficBook] | None) -> None:
            if found is not None:
                self._show_book(found[1], found[0])

        self.app.push_screen(OpenTrafficScreen(Path.cwd(), self._state), opened)

    def action_call(self) -> None:
        if self.message is not None and self.message.call is not None:
            self.post_message(CallChosen(self.message.call))

    def action_resend(self) -> None:
        if self.message is not None:
            self.post_message(self.ResendRequested(self.message))

    def action_say_no_call(self) -> None:
        """Say why the key for calls does nothing here."""
        self.notify(
            "An imported file has no calls of this run." if self.list.file else "This message is not part of a call."
        )

    def action_say_not_sent(self) -> None:
        """Say why this cannot be sent again."""
        if self.list.file:
            self.notify("A file's messages cannot be resent.")
        elif self.message is not None and self.message.method in ONCE and self.message.sent:
            self.notify(f"{self.message.method} opens a session and is sent once; restart the server to send it again.")
        else:
            self.notify("Only requests that mcphost sent can be sent again; r goes from a response to its request.")

    def action_pin(self) -> None:
        """Pin the message, or unpin it."""
        book, message = self.book, self.message
        if message is None:
            return
        try:
            book.unpin(message) if book.is_pinned(message) else book.pin(message)
        except NotDone as error:
            self.notify(show(str(error)), severity="warning", markup=False)
        self._show_facts()
        self.rows.refresh()

    def action_copy(self) -> None:
        """Copy the message as it is shown."""
        if self.message is not None:
            self.app.copy_to_clipboard((self.book.raw if self.detail.raw else self.book.pretty)(self.message))

    def action_save(self) -> None:
        self.list.action_save()

    def action_save_session(self) -> None:
        if self.message is not None:
            self.list.save_session(self.message)


@dataclass(frozen=True, slots=True)
class TapFile:
    """A file that a tap wrote while no screen ran."""

    path: Path
    time: float
    size: int


def tap_files(state: Path) -> list[TapFile]:
    """The files of taps, newest first. Blocks on the disk."""
    from mcphost.host.traffic.spool import spool_files  # late: few runs open files

    found = []
    for path in spool_files(state):
        with suppress(OSError):  # removed meanwhile
            facts = path.lstat()
            found.append(TapFile(path, facts.st_mtime, facts.st_size))
    return found


class OpenTrafficScreen(LineScreen[tuple[str, TrafficBook] | None]):
    """Reads the file that is typed or chosen; dismissed with its name and its traffic, or None."""

    HELP = (
        "The path of a file of exported traffic (JSONL), which is never changed. enter opens it. "
        "Below are the files that taps wrote while no screen ran."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "do not open", id="open_traffic.back", tooltip="Back to the live traffic"),
        Binding("down", "taps", "files of taps", id="open_traffic.taps", tooltip="Go to the files of taps", show=False),
    ]

    DEFAULT_CSS = """
    OpenTrafficScreen RowList { height: auto; max-height: 10; display: none; margin-top: 1; }
    """

    def __init__(self, folder: Path, state: Path | None = None) -> None:
        line = Input(f"{folder}/", select_on_focus=False, compact=True)
        super().__init__("Open exported traffic", "enter open · esc back", line)
        self._state = state
        self.taps = RowList[TapFile](_tap_row)

    async def on_mount(self) -> None:
        await self.frame.mount(self.taps)
        files = [] if self._state is None else await asyncio.to_thread(tap_files, self._state)
        self.taps.set_items(files, keep=lambda each: each.path)
        self.taps.display = bool(files)
        if files:
            self.frame.border_subtitle = "enter open · ↓ files of taps · esc back"

    def action_taps(self) -> None:
        if self.taps.items:
            self.taps.focus()

    @on(RowList.Selected)
    async def _chosen(self, event: RowList.Selected[TapFile]) -> None:
        event.stop()
        await self.submit(str(event.item.path))

    async def submit(self, text: str) -> None:
        try:
            name, book = await asyncio.to_thread(_read, text.strip())
        except FileNotFoundError:
            self.show_problem(show(f"There is no file {text.strip()}.", limit=400))
        except (McphostError, OSError, ValueError, RuntimeError) as problem:
            self.show_problem(show(str(problem), limit=400))
        else:
            self.dismiss((name, book))


def _tap_row(file: TapFile, width: int) -> Content:
    when = f"{date_text(file.time)} {clock_text(file.time)[:5]}"
    size = Cell(size_text(file.size), "$foreground-muted", 7, 9, "right")
    name = Cell(show_line(file.path.name, 120), "", 12)
    return columns(width, [name, size, Cell(when, "$foreground-muted", 16, 16)])


def _read(typed: str) -> tuple[str, TrafficBook]:
    path = Path(typed).expanduser()
    return path.name, read_traffic(path)
