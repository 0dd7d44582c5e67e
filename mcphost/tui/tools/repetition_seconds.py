"""Asks how often a call is repeated."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from mcphost.host.tool_calls.repeated_calls import read_seconds
from mcphost.protocol.display import show_line
from mcphost.tui.kit.facts_table import FactsTable, fact
from mcphost.tui.kit.framed import LineScreen
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.messages import RepetitionRequested
from mcphost.tui.kit.modal_screen import HELP_BINDING


class RepetitionScreen(LineScreen[float | None]):
    """Dismissed with the seconds between two runs; ``seconds`` is proposed."""

    HELP = (
        "The call runs, and again so many seconds after each end, until you stop it.\n"
        "You are asked once, for all runs. They end if the tool or its server changes, and after three failures in a "
        "row."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="repetition.back", tooltip="Run nothing"),
        HELP_BINDING,
    ]

    def __init__(self, requested: RepetitionRequested, seconds: float) -> None:
        line = LineInput(f"{seconds:g}", placeholder="seconds between two runs")
        super().__init__("Repeat this call", "enter repeat · esc back", line)
        called = f"{requested.server} › {show_line(requested.tool, 200)}"
        self._facts = FactsTable([fact("tool", called), fact("seconds", "between the end of a run and the next one:")])

    def compose(self) -> ComposeResult:
        with self.framed(self._title, self._keys):
            yield self._facts
            yield self._line
            yield self._problem

    async def submit(self, text: str) -> None:
        try:
            self.dismiss(read_seconds(text))
        except ValueError as error:
            self.show_problem(f"✖ {show_line(str(error), 200)}")
