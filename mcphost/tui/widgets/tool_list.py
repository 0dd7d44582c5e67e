"""The tools of one or all servers, filtered as one types."""

from __future__ import annotations

from textual.content import Content

from mcphost.host.catalog import OfferedTool
from mcphost.protocol.display import show_line
from mcphost.protocol.types import Tool
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.offer_list import OfferList


class ToolList(OfferList[OfferedTool]):
    """The tools."""

    TITLE = "Tools"
    EMPTY = "No tools yet: no server is ready.\nThe list on the left says why; f3 shows the logs."
    HELP = (
        "The tools on offer. Type / and words to filter by name, server or description.\n"
        "enter opens a tool's form (or runs it when it takes no arguments), d shows its definition.\n"
        "A tool that is refused is never run: its form says why."
    )

    def row(self, offered: OfferedTool, width: int) -> Content:
        """Title, description, what it claims."""
        tool, roomy = offered.tool, width >= 58
        cells = [Cell(offered.server, "$foreground-muted", 5, min(14, max(6, width // 6)))] if self.mixed else []
        cells.append(Cell(show_line(tool.label, 80), "bold", 10, min(30, width // 3) if roomy else None))
        if roomy:
            cells.append(Cell(show_line((tool.description or "").split("\n", 1)[0], 160), "$foreground-muted"))
        word, style = _claim(offered)
        return columns(width, [*cells, Cell(word, style, 8, 8, "right")])

    def defined(self, offered: OfferedTool) -> Tool:
        """The tool."""
        return offered.tool

    def haystack(self, offered: OfferedTool) -> str:
        """All that is known of it."""
        tool = offered.tool
        return f"{offered.server} {tool.name} {tool.label} {tool.description or ''}"


def _claim(offered: OfferedTool) -> tuple[str, str]:
    if offered.tool.refusal:
        return "refused", "$text-error"
    claims = offered.tool.claims
    if "read-only" in claims:
        return "reads", "$text-success"
    return ("destroys", "$text-error") if "destructive" in claims else ("", "")
