"""A question of ours that is answered with yes or no, and what there is to know before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from mcphost.tui.screens.dialog import KEYS, Dialog
from mcphost.tui.widgets.facts import Fact, FactsTable


class AskScreen(Dialog[bool], inherit_bindings=False):
    """Shows ``facts``, whose foreign text has been made safe; dismissed with True for yes. ``yes`` says what y does."""

    HELP = "y is yes. n and esc are no: nothing is done."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "close(True)", "yes", id="ask.yes", tooltip="Do what the question says"),
        Binding("n,escape", "close(False)", "no", id="ask.no", tooltip="Do nothing"),
        KEYS,
    ]

    def __init__(self, title: str, facts: Sequence[Fact], yes: str) -> None:
        super().__init__()
        self._title, self._facts, self._yes = title, facts, yes

    def compose(self) -> ComposeResult:
        """The facts in a frame."""
        with VerticalScroll(classes="dialog") as frame:
            frame.border_title = Content(self._title)
            frame.border_subtitle = Content(f"y {self._yes} · n do not")
            yield FactsTable(self._facts)

    def action_close(self, yes: bool) -> None:
        """Answer."""
        self.dismiss(yes)
