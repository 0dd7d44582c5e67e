"""Dialogs of a sampling request: which model answers, its limits, and the reason of a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input

from mcphost.host.models import AvailableModel
from mcphost.host.sampling.request import Sampling, SamplingEdit
from mcphost.protocol.display import show_line
from mcphost.protocol.models.sampling import ToolChoice
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.framed import FramedScreen, LineScreen, PickScreen
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.sampling.request_facts import model_words, price_words, setup_facts


class ModelScreen(PickScreen[AvailableModel, str]):
    """Lists ``models``; dismissed with the name of the chosen entry. ``current`` would answer now."""

    HELP = (
        "The language models of [models] in the configuration, and you. The figures are your ratings, 0 to 1: "
        "cost, speed, intelligence; servers say how much each matters to them."
    )

    def __init__(self, models: Sequence[AvailableModel], current: str, config: Path | None, words: str) -> None:
        entries = [model.entry for model in models]
        at = entries.index(current) if current in entries else 0
        super().__init__("Choose the model that answers", words, models, at=at)
        self._current, self._config = current, config
        self._none = all(model.by_hand for model in models)

    def below(self) -> ComposeResult:
        if self._none:
            yield FactsTable(setup_facts(self._config))

    def value(self, item: AvailableModel) -> str:
        return item.entry

    def row(self, item: AvailableModel, width: int) -> Content:
        mark = "●" if item.entry == self._current else " "
        if item.by_hand:
            entry = show_line(item.entry, 60)
            return columns(width, [Cell(mark, "$text-success", 1, 1), Cell(f"{entry} · you write the answer")])
        candidate = item.candidate
        shares = (("cost", candidate.cost), ("speed", candidate.speed), ("intelligence", candidate.intelligence))
        return columns(
            width,
            [
                Cell(mark, "$text-success", 1, 1),
                Cell(model_words(item), "", 20),
                *(
                    Cell(f"{name} {share:g}", "$foreground-muted", len(name) + 5, len(name) + 5)
                    for name, share in shares
                ),
                Cell(price_words(item), "$foreground-muted", 18, 24),
            ],
        )


TOKENS: Final = "max tokens"
TEMPERATURE: Final = "temperature"
STOPS: Final = "stop sequences"
TOOLS: Final = "tools"


class LimitsScreen(FramedScreen[SamplingEdit | None]):
    """Dismissed with the changes, or None."""

    HELP = "Limits of the model's answer."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "drop changes", id="limits.back", tooltip="Close without changes"),
    ]

    DEFAULT_CSS = """
    LimitsScreen {
        align: center bottom;
        & > .frame { width: 100%; max-width: 120; height: 16; max-height: 85%; }
    }
    """

    def __init__(self, sampling: Sampling) -> None:
        super().__init__()
        self._sampling = sampling
        self._form = SchemaForm(submit_label="keep changes")

    def compose(self) -> ComposeResult:
        with self.framed("Limits of the answer", "esc drop changes"):
            yield self._form

    async def on_mount(self) -> None:
        await self._form.load(schema(self._sampling), values(self._sampling))
        self._form.focus_first()

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        self.dismiss(edit_of(self._sampling, event.arguments))


def schema(sampling: Sampling) -> dict[str, Any]:
    """The form's schema: at most as many tokens as the server asked for, and tools only if there are some."""
    most = max(1, sampling.asked.max_tokens)
    properties: dict[str, Any] = {
        TOKENS: {"type": "integer", "minimum": 1, "maximum": most},
        TEMPERATURE: {"type": "number", "minimum": 0, "description": "empty: the model's default"},
        STOPS: {"type": "array", "items": {"type": "string"}},
    }
    if sampling.request.tools:
        properties[TOOLS] = {"type": "string", "enum": ["auto", "required", "none"]}
    return {"type": "object", "properties": properties, "required": [TOKENS]}


def values(sampling: Sampling) -> dict[str, Any]:
    request = sampling.request
    current: dict[str, Any] = {TOKENS: request.max_tokens, TEMPERATURE: request.temperature}
    current |= {STOPS: list(request.stop)} if request.stop else {}
    current |= {TOOLS: request.tool_choice.mode} if request.tools else {}
    return {name: value for name, value in current.items() if value is not None}


def edit_of(sampling: Sampling, arguments: dict[str, Any]) -> SamplingEdit:
    """The edit that the form describes."""
    choice = sampling.request.tool_choice
    mode = arguments.get(TOOLS, choice.mode)
    changed = replace(
        sampling.request,
        max_tokens=arguments[TOKENS],
        temperature=arguments.get(TEMPERATURE),
        stop=tuple(arguments.get(STOPS, ())),
        tool_choice=choice if mode == choice.mode else ToolChoice(mode),
    )
    return SamplingEdit(changed)


class RefusalScreen(LineScreen[str | None]):
    """Asks for a reason; dismissed with the text for ``server`` (safe to show), or with None: not refused."""

    HELP = "Give a reason, if you like: whoever asked gets this text. enter declines."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="words.back", tooltip="Go back without declining"),
    ]

    DEFAULT_CSS = """
    RefusalScreen {
        & > .frame { max-width: 120; border: round $warning; }
        .problem { display: none; }
    }
    """

    def __init__(self, server: str) -> None:
        line = Input(placeholder="no reason", compact=True, max_length=1000)
        super().__init__(f"Decline · reason for {server}", "enter decline · esc back", line)

    async def submit(self, text: str) -> None:
        self.dismiss(text.strip())
