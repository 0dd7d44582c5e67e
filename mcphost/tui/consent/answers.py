"""The ways to answer a question, one a row: the key, and what it does in words."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from mcphost.dataclass import dataclass
from mcphost.tui.kit.rows import Cell, RowList, columns


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """A way to answer: its key, what it does, and the action of the screen. Foreign text in it was made safe."""

    key: str
    words: str
    action: str
    short: str = ""
    """The same in a word, for where there is one line for all of them."""


class AnswerOptions(RowList[AnswerOption]):
    """Lists ways to answer; as tall as they are many, and a line above them. Enter on one does what its key does."""

    DEFAULT_CSS = """
    AnswerOptions { border-top: solid $border-blurred; &:focus { border-top: solid $border; } }
    """

    def __init__(self) -> None:
        super().__init__(_row)

    def offer(self, ways: Iterable[AnswerOption], at: str | None = None) -> None:
        """Offer these; the cursor goes to the one with the key ``at``, else it stays."""
        listed = list(ways)
        self.styles.height = len(listed) + 1
        self.set_items(listed, keep=lambda way: way.key)
        if at is not None:
            self.highlighted = next(index for index, way in enumerate(listed) if way.key == at)


def _row(way: AnswerOption, width: int) -> Content:
    return columns(width, [Cell(way.key, "bold $text-accent", 3, 3), Cell(way.words)])
