"""Says of the servers that were just added if they start, and what is left to do by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.imports.importer import ImportCandidate, PlannedEntry
from mcphost.imports.preview import place_of, short_path
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.tui.imports.consent import unset_in
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.modal_screen import HELP_BINDING, Dialog
from mcphost.tui.textual_private.corrections import ScrolledColumn


@dataclass(frozen=True, slots=True)
class AddedServer:
    candidate: ImportCandidate
    planned: PlannedEntry
    lines: tuple[int, ...] = ()
    """The lines of the file there that still hold its secrets."""


class AddedScreen(Dialog[None], inherit_bindings=False):
    """``problem`` says why the servers do not start now."""

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


def added_facts(added: Iterable[AddedServer], file: str, *, started: bool) -> Iterator[Fact]:
    """Say of each server if it starts, and where its secrets are; then where the servers are written."""
    for each in added:
        name, waits = each.planned.name, unset_in(each.candidate, each.planned)
        if each.candidate.found.disabled_there:
            yield fact(name, "added, and off as it was there")
        elif waits:
            yield fact(
                name,
                f"added; it cannot start yet: {'; '.join(waits)}. Set it, and start mcphost again",
                "$text-warning",
            )
        else:
            yield fact(name, "added; it starts now" if started else "added", "$text-success")
        if each.planned.items:
            yield fact("", f"in your keychain: {', '.join(each.planned.items)}")
        if each.lines:
            place, lines = place_of(each.candidate.found.origin), ", ".join(map(str, each.lines))
            yield fact("", f"still in plain text where it was: {place}, line {lines}", "$text-warning")
    yield fact("", "")
    yield fact("written to", f"{file}  (mcphost remove NAME takes a server out again)")
