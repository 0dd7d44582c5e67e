"""The tools of one or all servers, filtered as one types."""

from __future__ import annotations

from textual.content import Content

from mcphost.host.catalog import OfferedTool
from mcphost.protocol.types import Tool
from mcphost.tui.ranking import SearchText
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.offer_list import FilteredOffers


class ToolList(FilteredOffers[OfferedTool]):
    """The tools."""

    TITLE = "Tools"
    EMPTY = "No tools yet: no server is ready.\nThe list on the left says why; f3 shows the logs."
    HELP = (
        "The tools on offer. Type / and words to filter by name, title, server or description: the best match comes\n"
        "first, and enter opens it. In the list, enter opens a tool's form (or runs it when it takes no arguments),\n"
        "d shows its definition.\n"
        "A tool that is refused is never run: its form says why."
    )

    def row(self, offered: OfferedTool, width: int) -> Content:
        """Title, description, what it claims."""
        tool = offered.tool
        cells = [Cell(offered.server, "$foreground-muted", 5, min(14, max(6, width // 6)))] if self.mixed else []
        cells += self.title_cells(tool.label, tool.name, tool.description or "", width)
        word, style = _claim(offered)
        return columns(width, [*cells, Cell(word, style, 8, 8, "right")])

    def defined(self, offered: OfferedTool) -> Tool:
        """The tool."""
        return offered.tool

    def search_text(self, offered: OfferedTool) -> SearchText:
        """All that is known of it."""
        tool = offered.tool
        return SearchText(tool.name, tool.label, offered.server, more=tool.description or "")


def _claim(offered: OfferedTool) -> tuple[str, str]:
    if offered.tool.refusal:
        return "refused", "$text-error"
    claims = offered.tool.claims
    if "read-only" in claims:
        return "reads", "$text-success"
    return ("destroys", "$text-error") if "destructive" in claims else ("", "")
