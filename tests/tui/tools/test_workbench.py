from __future__ import annotations

from textual.app import App, ComposeResult

from mcphost.host.catalog import CatalogTool
from mcphost.protocol.models.tools import Tool
from mcphost.tui.tools.workbench import ToolForm


async def test_going_through_the_list_of_tools_restyles_no_form() -> None:
    """Each tool under the cursor is described, and the form below stays away."""

    class CountingForm(ToolForm):
        styled = 0

        def update_node_styles(self, animate: bool = True) -> None:
            self.styled += 1
            super().update_node_styles(animate)

    class OneForm(App[None]):
        def compose(self) -> ComposeResult:
            yield CountingForm()

    async with OneForm().run_test() as pilot:
        form = pilot.app.query_one(CountingForm)
        form.styled = 0
        for name in ("brew", "pour"):
            form.preview(offered(name))
            await pilot.pause()
            assert name in str(form.border_title)
        assert (form.styled, form.form.display) == (0, False)
        form.show_about(offered("brew"))
        assert form.form.display


def offered(name: str) -> CatalogTool:
    return CatalogTool("kettle", Tool.read({"name": name, "inputSchema": {"type": "object"}}))
