"""How far a model may go with an answer: its length, its temperature, the texts that end it, and its tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from mcphost.host.sampling.request import Sampling, SamplingEdit
from mcphost.protocol.models.sampling import ToolChoice
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.forms import SchemaForm

TOKENS: Final = "max tokens"
TEMPERATURE: Final = "temperature"
STOPS: Final = "stops at"
TOOLS: Final = "tools"


class LimitsScreen(ErrorBoundary, ModalScreen[SamplingEdit | None]):
    """Dismissed with the changes, or None when all stays as it was."""

    HELP = "How far the model may go with its answer. ctrl+r takes it over, esc leaves it as it was."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "leave as it was", id="limits.back", tooltip="Close without a change"),
    ]

    DEFAULT_CSS = """
    LimitsScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical {
            width: 100%; max-width: 120; height: 16; max-height: 85%; border: round $border; background: $surface;
        }
    }
    """

    def __init__(self, sampling: Sampling) -> None:
        super().__init__()
        self._sampling = sampling
        self._form = SchemaForm(submit_label="take over")

    def compose(self) -> ComposeResult:
        """The form in a frame."""
        with Vertical() as frame:
            frame.border_title = "Limits of the answer"
            frame.border_subtitle = "ctrl+r take over · esc leave as it was"
            yield self._form

    async def on_mount(self) -> None:
        await self._form.load(schema(self._sampling), values(self._sampling))
        self._form.focus_first()

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        self.dismiss(edit_of(self._sampling, event.arguments))

    def action_back(self) -> None:
        """Close without a change."""
        self.dismiss(None)


def schema(sampling: Sampling) -> dict[str, Any]:
    """The form: never more tokens than the server wants, tools only where it offers some."""
    most = max(1, sampling.asked.max_tokens)
    properties: dict[str, Any] = {
        TOKENS: {"type": "integer", "minimum": 1, "maximum": most},
        TEMPERATURE: {"type": "number", "minimum": 0, "description": "empty: the model's own"},
        STOPS: {"type": "array", "items": {"type": "string"}},
    }
    if sampling.request.tools:
        properties[TOOLS] = {"type": "string", "enum": ["auto", "required", "none"]}
    return {"type": "object", "properties": properties, "required": [TOKENS]}


def values(sampling: Sampling) -> dict[str, Any]:
    request = sampling.request
    known: dict[str, Any] = {TOKENS: request.max_tokens, TEMPERATURE: request.temperature}
    known |= {STOPS: list(request.stop)} if request.stop else {}
    known |= {TOOLS: request.tool_choice.mode} if request.tools else {}
    return {name: value for name, value in known.items() if value is not None}


def edit_of(sampling: Sampling, given: dict[str, Any]) -> SamplingEdit:
    """The change that the form says."""
    choice = sampling.request.tool_choice
    mode = given.get(TOOLS, choice.mode)
    changed = replace(
        sampling.request,
        max_tokens=given[TOKENS],
        temperature=given.get(TEMPERATURE),
        stop=tuple(given.get(STOPS, ())),
        tool_choice=choice if mode == choice.mode else ToolChoice(mode),
    )
    return SamplingEdit(changed)
