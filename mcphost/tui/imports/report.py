"""What became of the servers that were added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.imports.preview import short_path
from mcphost.protocol.display import show, show_line
from mcphost.tui.imports.facts import AddedServer, added_facts
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.modal_screen import HELP_BINDING, Dialog
from mcphost.tui.textual_private.corrections import ScrolledColumn


class AddedScreen(Dialog[None], inherit_bindings=False):
    """``problem``: why what was added does not start now."""

    HELP = "The servers that were just added, where their secrets are, and what still has to be done by hand."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,space", "close", "close", id="added.close", tooltip="Go to the servers"),
        HELP_BINDING,
    ]

    def __init__(self, added: Sequence[AddedServer], file: str, problem: str = "") -> None:
        super().__init__(frame=ScrolledColumn())
        self._added, self._file, self._problem = added, file, problem

    def compose(self) -> ComposeResult:
        count = len(self._added)
        with self.framed(Content(f"{count} server{'s' if count > 1 else ''} added"), Content("enter close")):
            yield FactsTable(self._facts(), labels=max(14, *(len(each.planned.name) + 2 for each in self._added)))

    def _facts(self) -> Iterator[Fact]:
        if self._problem:
            yield fact("▲ not started", show(self._problem, limit=600), "$text-warning")
        yield from added_facts(self._added, show_line(short_path(self._file), 4096), started=not self._problem)

    def action_close(self) -> None:
        self.dismiss(None)
