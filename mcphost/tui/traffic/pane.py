"""The traffic of all servers: every message both ways, stderr, stray lines and HTTP heads between them."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.message import Message

from mcphost.errors import NotDone
from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.message import TrafficMessage
from mcphost.host.traffic.resending import ONCE, is_resendable
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show
from mcphost.tui.kit.export import save_as
from mcphost.tui.kit.messages import CallChosen
from mcphost.tui.kit.rows import RowList
from mcphost.tui.textual_private.corrections import timer_without_skips
from mcphost.tui.traffic.detail import TrafficDetail
from mcphost.tui.traffic.list import TrafficList, key

BESIDE: Final = 110
"""Cells from which the list and the frame are side by side."""

SOON: Final = 0.01
"""Seconds until more unseen frames are paired."""


class TrafficPane(Container):
    """Shows the ``live`` traffic or a file; the app calls `refresh_traffic` when frames were added."""

    HELP = (
        "The traffic of all servers. enter shows a message in full, esc goes back. r switches between a request and\n"
        "its response. R sends a request again; a tool call asks for your approval as usual. P pins a message,\n"
        "C opens its call. w saves the messages shown to a file; o opens such a file, read-only, until esc."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        key("escape", "back", "back", "Back to the list, or from a file to the live traffic"),
        key("w", "save", "save", "Save the messages shown to a file (JSONL)"),
        key("r", "partner", "pair", "Switch between a request and its response"),
        key("v", "look", "raw", "Show the message as it came, or laid out"),
        key("C", "call", "call", "Open the call that this message is part of"),
        key("P", "pin", "pin", "Keep this message when older ones are dropped, or unpin it"),
        key("R", "resend", "send again", "Send this request again"),
        key("y", "copy", "copy", "Copy this message"),
        key("o", "open", "import", "Open a file of exported traffic, read-only"),
        key("C", "say_no_call", "no call", "", show=False, system=True),
        key("R", "say_not_sent", "not to be sent", "", show=False, system=True),
    ]
    DEFAULT_CSS = """
    TrafficPane {
        layout: horizontal; height: 1fr;
        & TrafficDetail { display: none; }
        &.-frame TrafficList { display: none; }
        &.-frame TrafficDetail { display: block; }
        &.-beside TrafficList { display: block; width: 3fr; }
        &.-beside TrafficDetail { display: block; width: 2fr; }
    }
    """

    @dataclass
    class ResendRequested(Message):
        """The user asked to send this request again."""

        frame: TrafficMessage

    def __init__(self, live: TrafficBook) -> None:
        super().__init__()
        self._live = live
        self.frame: TrafficMessage | None = None
        """The frame that keys act on."""
        self._visible, self._active_keys = False, tuple[bool | None, ...]()
        self.list, self.detail = TrafficList(live), TrafficDetail()
        self.rows = self.list.rows

    def compose(self) -> ComposeResult:
        yield self.list
        yield self.detail

    @property
    def book(self) -> TrafficBook:
        """The live traffic, or that of a file."""
        return self.list.feed.book

    @property
    def opened(self) -> bool:
        """Does one frame take the whole pane?"""
        return self.has_class("-frame") and not self.has_class("-beside")

    def on_resize(self, event: Resize) -> None:
        beside = event.size.width >= BESIDE
        if beside is not self.has_class("-beside"):
            self.set_class(beside, "-beside")
            self.refresh_bindings()  # whoever follows the traffic is not told of other keys otherwise
        self._show_frame()

    def on_show(self) -> None:
        """Take in the frames that passed while the pane was hidden."""
        self._visible = True
        self.refresh_traffic()

    def on_hide(self) -> None:
        self._visible = False

    def refresh_traffic(self) -> None:
        """Show new frames, unless the pane is hidden."""
        if not self._visible:
            return
        if not self.list.refresh_traffic():
            timer_without_skips(self.set_timer(SOON, self.refresh_traffic))
        if self.frame is None and self.rows.item is not None:
            self._select(self.rows.item)  # a new list has not posted its selection yet
        self._show_facts()
        self._update_keys()

    def focus_rows(self) -> None:
        """Focus the frames, or the open frame."""
        (self.detail.text if self.opened else self.rows).focus()

    def show_call(self, number: int) -> None:
        """Show only the frames of this call."""
        self._close_frame()
        if self.list.file:
            self.list.show_book(self._live)
        self.list.show_filtered(f"call:{number}")

    # The frame that keys act on.

    def _select(self, frame: TrafficMessage | None) -> None:
        self.frame = frame
        self._show_frame()
        self._update_keys()

    def _show_frame(self) -> None:
        if self.opened or self.has_class("-beside"):
            self.detail.show_frame(self.book, self.frame)

    def _show_facts(self) -> None:
        if self.frame is not None and (self.opened or self.has_class("-beside")):
            self.detail.show_facts(self.book)

    def _close_frame(self) -> None:
        if self.has_class("-frame"):
            self.remove_class("-frame")
            self.rows.focus()

    def on_traffic_list_highlighted(self, event: TrafficList.Highlighted) -> None:
        self._select(event.frame)

    def on_traffic_list_followed(self) -> None:
        self._update_keys()

    def on_row_list_selected(self, event: RowList.Selected[TrafficMessage]) -> None:
        event.stop()
        self.rows.following = False
        self._open(event.item)

    def _open(self, frame: TrafficMessage) -> None:
        self.add_class("-frame")
        self._select(frame)
        self.detail.text.focus()

    def _update_keys(self) -> None:
        """Update the key line only if other keys work, since that is slow."""
        active = tuple(self.check_action(action, ()) for action in ("back", "partner", "look", "call", "resend"))
        if active != self._active_keys and not self.rows.following:
            self._active_keys = active
            self.refresh_bindings()

    def action_partner(self) -> None:
        """Go to the response of a request, or to the request of a response."""
        partner = self.book.partner(self.frame) if self.frame is not None else None
        if partner is None:
            self.notify("The other message of this pair is no longer kept.", severity="warning")
            return
        self.rows.following = False
        place = self.list.feed.place_of(partner)
        if place is not None:
            self.rows.highlighted = place
            self._select(partner)
        else:
            self._open(partner)  # hidden by the filter, which stays

    def action_look(self) -> None:
        self.detail.raw = not self.detail.raw
        self._show_frame()

    def action_back(self) -> None:
        """Go back from the frame to the list, or from a file to the live traffic."""
        if self.opened or self.detail.has_focus_within:
            self._close_frame()
            self.rows.focus()
        else:
            self._show_book(self._live)
            self.rows.following = self.rows.tails

    # Actions.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        frame, live = self.frame, not self.list.file
        match action:
            case "back":
                return not live or self.opened or self.detail.has_focus_within
            case "look":
                return self.opened or self.has_class("-beside")
            case "partner":
                return frame is not None and frame.partner is not None
            case "call":
                return live and frame is not None and frame.call is not None
            case "resend":
                return live and frame is not None and is_resendable(frame)
            case "say_no_call" | "say_not_sent":  # else the key would reach the screen
                return frame is not None
            case "pin" | "copy" | "save":
                return frame is not None
        return True

    def _show_book(self, book: TrafficBook, file: str = "") -> None:
        self._close_frame()
        self.list.show_book(book, file)
        self.refresh_traffic()

    def action_open(self) -> None:
        from mcphost.tui.traffic.open import OpenTrafficScreen

        def opened(found: tuple[str, TrafficBook] | None) -> None:
            if found is not None:
                self._show_book(found[1], found[0])

        self.app.push_screen(OpenTrafficScreen(Path.cwd()), opened)

    def action_call(self) -> None:
        if self.frame is not None and self.frame.call is not None:
            self.post_message(CallChosen(self.frame.call))

    def action_resend(self) -> None:
        if self.frame is not None:
            self.post_message(self.ResendRequested(self.frame))

    def action_say_no_call(self) -> None:
        """Say why the key for calls does nothing here."""
        self.notify(
            "An imported file has no calls of this run." if self.list.file else "This message is not part of a call."
        )

    def action_say_not_sent(self) -> None:
        """Say why this cannot be sent again."""
        if self.list.file:
            self.notify("A file's messages cannot be resent.")
        elif self.frame is not None and self.frame.method in ONCE and self.frame.sent:
            self.notify(f"{self.frame.method} opens a session and is sent once; restart the server to send it again.")
        else:
            self.notify("Only requests that mcphost sent can be sent again; r goes from a response to its request.")

    def action_pin(self) -> None:
        """Pin the frame, or unpin it."""
        book, frame = self.book, self.frame
        if frame is None:
            return
        try:
            book.unpin(frame) if book.is_pinned(frame) else book.pin(frame)
        except NotDone as error:
            self.notify(show(str(error)), severity="warning", markup=False)
        self._show_facts()
        self.rows.refresh()

    def action_copy(self) -> None:
        """Copy the frame as it is shown."""
        if self.frame is not None:
            self.app.copy_to_clipboard((self.book.raw if self.detail.raw else self.book.pretty)(self.frame))

    def action_save(self) -> None:
        self.run_worker(self._export(list(self.rows.items)), group="export", exclusive=True)

    async def _export(self, frames: list[TrafficMessage]) -> None:
        """In a thread: masking the secrets of thousands of frames is slow."""
        content = await asyncio.to_thread(self.book.export, frames)
        name = f"mcphost-traffic-{datetime.now():%Y%m%d-%H%M%S}.jsonl"
        save_as(self.app, name, content)
