"""What the user wants done with frames of the traffic, done by the host or the book."""

from __future__ import annotations

from textual.app import App

from mcphost.errors import McphostError, NotDone
from mcphost.host.calls import Call
from mcphost.host.host import Host
from mcphost.host.traffic.book import TrafficBook
from mcphost.host.traffic.frames import Frame
from mcphost.protocol.display import show, show_line


def resend(app: App[None], host: Host, frame: Frame) -> None:
    """Send a request again; its answer is in the traffic. A tool call is asked for as any other."""
    try:
        sent = host.resend(frame)
    except McphostError as error:
        app.notify(show(f"Not sent: {error}"), severity="warning", markup=False)
        return
    if isinstance(sent, Call):
        app.notify(f"Asked for again, as call {sent.number}.")
        return

    async def wait() -> None:
        try:
            await sent.result()
        except McphostError as error:
            app.notify(show(f"Sent again: {error}", limit=400), severity="error", markup=False)
        else:
            app.notify(f"Sent again: {show_line(frame.method, 60)} was answered.", markup=False)

    app.run_worker(wait(), exit_on_error=False)


def pin(app: App[None], book: TrafficBook, frame: Frame) -> None:
    """Keep a frame whatever comes, or no longer."""
    try:
        book.unpin(frame) if book.is_pinned(frame) else book.pin(frame)
    except NotDone as error:
        app.notify(show(str(error)), severity="warning", markup=False)
