"""Which language model shall answer: all that can be asked, with what they were said to be good at, and oneself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.content import Content

from mcphost.host.models import AvailableModel
from mcphost.protocol.display import show_line
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.pick import PickScreen
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.sampling.facts import model_words, price_words, setup_facts


class ModelScreen(PickScreen[AvailableModel, str]):
    """Lists ``models``; dismissed with the entry that was chosen. ``current`` is the one that would answer now."""

    HELP = (
        "The language models of [models] in the configuration, and you. The figures are yours, 0 to 1: how cheap, how\n"
        "fast and how clever each is; servers say how much each of these matters. enter chooses, esc goes back."
    )

    def __init__(self, models: Sequence[AvailableModel], current: str, config: Path | None, words: str) -> None:
        entries = [model.entry for model in models]
        at = entries.index(current) if current in entries else 0
        super().__init__("Which model shall answer?", words, models, at=at)
        self._current, self._config = current, config
        self._none = all(model.by_hand for model in models)

    def below(self) -> ComposeResult:
        """How to have models where there are none."""
        if self._none:
            yield FactsTable(setup_facts(self._config))

    def value(self, item: AvailableModel) -> str:
        """The name of its entry."""
        return item.entry

    def row(self, item: AvailableModel, width: int) -> Content:
        """What it is said to be good at."""
        mark = "●" if item.entry == self._current else " "
        if item.by_hand:
            entry = show_line(item.entry, 60)
            return columns(width, [Cell(mark, "$text-success", 1, 1), Cell(f"{entry} · you write the answer")])
        told = item.candidate
        shares = (("cost", told.cost), ("speed", told.speed), ("intelligence", told.intelligence))
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
