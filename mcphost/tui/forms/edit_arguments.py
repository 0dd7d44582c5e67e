"""The form of a tool's arguments as a screen of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Tool
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.kit.framed import FramedScreen


class EditArgumentsScreen(FramedScreen[Mapping[str, Any] | None]):
    """Dismissed with the new arguments, or with None if they stay as they were.

    The title shows ``owner`` before the tool's name. ``arguments`` None: the schema's defaults. ``submit`` says
    what ctrl+r does.
    """

    HELP = "Edit the arguments before anything is sent."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "drop changes", id="edit.back", tooltip="Close without changes"),
    ]

    DEFAULT_CSS = """
    EditArgumentsScreen {
        align: center bottom;
        & > .frame { width: 100%; max-width: 140; height: 85%; }
    }
    """

    def __init__(
        self, owner: str, tool: Tool, arguments: Mapping[str, Any] | None, *, submit: str = "keep changes"
    ) -> None:
        super().__init__()
        self._owner, self._tool, self._arguments, self._submit = owner, tool, arguments, submit

    def compose(self) -> ComposeResult:
        title = f"Arguments of {self._owner} › {show_line(self._tool.name, 60)}"
        with self.framed(title, "esc drop changes"):
            yield SchemaForm(submit_label=self._submit)

    async def on_mount(self) -> None:
        form = self.query_one(SchemaForm)
        await form.load(self._tool.input_schema, self._arguments)
        form.focus_first()

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        self.dismiss(event.arguments)
