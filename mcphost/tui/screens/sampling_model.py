"""Which language model shall answer: all that can be asked, with what they were said to be good at, and oneself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from mcphost.host.models import Model
from mcphost.protocol.display import show_line
from mcphost.tui.faults import Sturdy
from mcphost.tui.screens.dialog import KEYS
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.facts import Facts
from mcphost.tui.widgets.rows import RowList
from mcphost.tui.widgets.sampling_facts import model_words, price_words, setup_facts


class ModelScreen(Sturdy, ModalScreen[str | None]):
    """Lists ``models``; dismissed with the entry that was chosen. ``current`` is the one that would answer now."""

    HELP = (
        "The language models of [models] in the configuration, and you. The figures are yours, 0 to 1: how cheap, how\n"
        "fast and how clever each is; servers say how much each of these matters. enter chooses, esc goes back."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="model.back", tooltip="Leave the choice as it was"),
        KEYS,
    ]

    DEFAULT_CSS = """
    ModelScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical {
            width: 92%; max-width: 120; height: auto; max-height: 80%; border: round $accent; background: $surface;
            padding: 0 1;
        }
        RowList { max-height: 20; }
    }
    """

    def __init__(self, models: Sequence[Model], current: str, config: Path | None, words: str) -> None:
        super().__init__()
        self._models, self._current, self._config, self._words = models, current, config, words
        self._rows = RowList[Model](self._row)

    def compose(self) -> ComposeResult:
        """A list in a frame; how to have more of them where there are none."""
        with Vertical() as frame:
            frame.border_title = "Which model shall answer?"
            frame.border_subtitle = f"enter {self._words} · esc back"
            yield self._rows
            if all(model.by_hand for model in self._models):
                yield Facts(setup_facts(self._config))

    def on_mount(self) -> None:
        """Begin at the one that would answer now."""
        self._rows.styles.height = max(1, len(self._models))
        self._rows.set_items(self._models, keep=lambda model: model.entry)
        entries = [model.entry for model in self._models]
        if self._current in entries:
            self._rows.highlighted = entries.index(self._current)
        self._rows.focus()

    @on(RowList.Selected)
    def _chosen(self, event: RowList.Selected[Model]) -> None:
        event.stop()
        self.dismiss(event.item.entry)

    def action_back(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def _row(self, model: Model, width: int) -> Content:
        mark = "●" if model.entry == self._current else " "
        if model.by_hand:
            entry = show_line(model.entry, 60)
            return columns(width, [Cell(mark, "$text-success", 1, 1), Cell(f"{entry} · you write the answer")])
        told = model.candidate
        shares = (("cost", told.cost), ("speed", told.speed), ("intelligence", told.intelligence))
        return columns(
            width,
            [
                Cell(mark, "$text-success", 1, 1),
                Cell(model_words(model), "", 20),
                *(
                    Cell(f"{name} {share:g}", "$foreground-muted", len(name) + 5, len(name) + 5)
                    for name, share in shares
                ),
                Cell(price_words(model), "$foreground-muted", 18, 24),
            ],
        )
