"""Choosing one of the resources that a text links to."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from mcphost.protocol.display import show_line
from mcphost.tui.links import ResourceTextLink
from mcphost.tui.screens.pick import PickScreen
from mcphost.tui.widgets.columns import Cell, columns


class LinksScreen(PickScreen[ResourceTextLink, str]):
    """Lists ``links``; dismissed with the URI of the chosen one."""

    HELP = (
        "The resources that this text links to, of the server it came from. enter reads one, esc goes back.\n"
        "Web addresses are not among them: nothing here opens a browser."
    )

    def __init__(self, links: Sequence[ResourceTextLink]) -> None:
        super().__init__("Read which resource?", "read", links)

    def row(self, item: ResourceTextLink, width: int) -> Content:
        """What it is called, if it is, and its URI."""
        words = f"{show_line(item.words, 60)}  " if item.words and item.words != item.uri else ""
        uri = show_line(item.uri, 300), "$foreground-muted" if words else ""
        return columns(width, [Cell(Content.assemble((words, "bold"), uri))])

    def value(self, item: ResourceTextLink) -> str:
        """Its URI."""
        return item.uri
