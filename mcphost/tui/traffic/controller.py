"""Sends recorded requests again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App

from mcphost.errors import McphostError
from mcphost.host.host import Host
from mcphost.host.tool_calls.call import ToolCall
from mcphost.host.traffic.resending import ResentRequest
from mcphost.protocol.display import show, show_line

if TYPE_CHECKING:  # late: the first frame does without traffic
    from mcphost.tui.traffic.pane import TrafficPane


class TrafficController:
    """Acts for the traffic pane of ``app`` on ``host``."""

    def __init__(self, app: App[Any], host: Host) -> None:
        self._app, self._host = app, host

    def on_traffic_pane_resend_requested(self, event: TrafficPane.ResendRequested) -> None:
        """Send a request again; the traffic shows the response. A tool call needs approval as usual."""
        try:
            sent = self._host.resender.resend(event.message)
        except McphostError as error:
            self._app.notify(show(f"Not sent: {error}"), severity="warning", markup=False)
            return
        if isinstance(sent, ToolCall):
            self._app.notify(f"Sent again as call {sent.number}.")
        else:
            self._app.run_worker(self._await_response(sent, event.message.method))

    async def _await_response(self, sent: ResentRequest, method: str) -> None:
        try:
            await sent.result()
        except McphostError as error:
            self._app.notify(show(f"Sent again: {error}", limit=400), severity="error", markup=False)
        else:
            self._app.notify(f"Sent again: {show_line(method, 60)} was answered.", markup=False)
