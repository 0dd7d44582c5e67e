"""What the user wants done with frames of the traffic, done by the host or the book: send one again, pin one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App

from mcphost.errors import McphostError, NotDone
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.protocol.display import show, show_line

if TYPE_CHECKING:
    from mcphost.host.traffic.resending import ResentRequest
    from mcphost.tui.traffic.pane import TrafficPane

    _App = App[Any]
else:
    _App = object


class TrafficWishes(_App):
    """The app's ear for these wishes."""

    host: Host

    def on_traffic_pane_resend_wanted(self, event: TrafficPane.ResendWanted) -> None:
        """Send a request again; its answer is in the traffic. A tool call is asked for as any other."""
        try:
            sent = self.host.resend(event.frame)
        except McphostError as error:
            self.notify(show(f"Not sent: {error}"), severity="warning", markup=False)
            return
        if isinstance(sent, ToolCall):
            self.notify(f"Asked for again, as call {sent.number}.")
        else:
            self.run_worker(self._await_answer(sent, event.frame.method))

    async def _await_answer(self, sent: ResentRequest, method: str) -> None:
        try:
            await sent.result()
        except McphostError as error:
            self.notify(show(f"Sent again: {error}", limit=400), severity="error", markup=False)
        else:
            self.notify(f"Sent again: {show_line(method, 60)} was answered.", markup=False)

    def on_traffic_pane_pin_wanted(self, event: TrafficPane.PinWanted) -> None:
        """Keep a frame whatever comes, or no longer."""
        book, frame = event.pane.book, event.frame
        try:
            book.unpin(frame) if book.is_pinned(frame) else book.pin(frame)
        except NotDone as error:
            self.notify(show(str(error)), severity="warning", markup=False)
        event.pane.frame_changed()
