"""The arguments of a call that is being asked about, in the tool's own form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from mcphost.protocol.display import show_line
from mcphost.protocol.types import Tool
from mcphost.tui.widgets.schema_form import SchemaForm


class EditArgumentsScreen(ModalScreen[Mapping[str, Any] | None]):
    """Dismissed with the new arguments, or None when they stay as they were."""

    HELP = "Change the arguments before anything is sent. ctrl+r takes them over, esc leaves them as they were."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "leave as they were", id="edit.back", tooltip="Close without a change"),
    ]

    DEFAULT_CSS = """
    EditArgumentsScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical { width: 100%; max-width: 140; height: 85%; border: round $accent; background: $surface; }
    }
    """

    def __init__(self, server: str, tool: Tool, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self._server, self._tool, self._arguments = server, tool, arguments

    def compose(self) -> ComposeResult:
        """The form in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Arguments of {self._server} › {show_line(self._tool.name, 60)}")
            frame.border_subtitle = "ctrl+r take over · esc leave as they were"
            yield SchemaForm(submit_label="take over")

    async def on_mount(self) -> None:
        """Fill the form."""
        form = self.query_one(SchemaForm)
        await form.load(self._tool.input_schema, self._arguments)
        form.focus_first()

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        self.dismiss(event.arguments)

    def action_back(self) -> None:
        """Close without a change."""
        self.dismiss(None)
