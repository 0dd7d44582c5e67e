"""A ping by hand: whether a server answers now, and how fast. Its card keeps what came of it."""

from __future__ import annotations

from textual.app import App

from mcphost.errors import McphostError
from mcphost.host.connection import Connection
from mcphost.protocol.display import duration_text, show


async def ping(app: App[None], server: Connection) -> None:
    """Ask, and say what came of it."""
    try:
        answer = await server.ping()
    except McphostError as error:
        app.notify(show(f"{server.name}: {error}", limit=400), severity="error", markup=False)
    else:
        app.notify(f"{server.name} answered a ping in {duration_text(answer.seconds)}.", markup=False)
