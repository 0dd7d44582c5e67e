"""The table of what each revision demands of a server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class ServerRequirement(NamedTuple):
    """One row; tests/README.md describes the columns."""

    id: str
    section: str
    level: str
    revisions: str
    capability: str
    transport: str
    kind: str
    text: str

    @property
    def derived(self) -> bool:
        """True for a consequence of the text, whose level is a judgement."""
        return "(derived)" in self.section

    @property
    def strict(self) -> bool:
        """True if the text itself says MUST or MUST NOT."""
        return self.level.startswith("MUST") and not self.derived

    def holds_in(self, version: str) -> bool:
        """True if the row is about this revision."""
        first, _, last = self.revisions.partition("..")
        return first <= version <= last if last else version == first.removesuffix(" only")


@cache
def requirements() -> Mapping[str, ServerRequirement]:
    """Every row by its id, in the table's order."""
    text = (files(__package__) / "requirements.tsv").read_text("utf-8")
    rows = (ServerRequirement(*line.split("\t")) for line in text.splitlines()[1:])
    return {row.id: row for row in rows}
