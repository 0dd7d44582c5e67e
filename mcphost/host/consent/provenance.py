"""Parts of a call's arguments that occurred elsewhere in the conversation: values, and their descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

EDITED: Final = "you edited the arguments: they were not compared again; what was marked before and is still there is"


@dataclass(frozen=True, slots=True)
class UntrustedSpan:
    """A stretch of an argument that the model read somewhere the receiving server does not see."""

    path: KeyPath
    start: int
    end: int
    """Characters of the value at ``path``: of a number its digits, of a name the name."""
    text: str
    """The copied stretch of the argument."""
    source: str
    """A server's configured name, a file's name, or a description such as ``your instructions``."""
    form: str = ""
    """``base64`` or ``hex`` where that is how it was written; empty: plainly."""
    is_name: bool = False
    """True if it is the name of the value at ``path``, not the value."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """All marks of one call."""

    marks: tuple[UntrustedSpan, ...] = ()
    note: str = ""
    """A sentence on what was not compared; empty: everything was."""

    def spans_of(self, name: str) -> tuple[UntrustedSpan, ...]:
        """The marks of one argument."""
        return tuple(mark for mark in self.marks if mark.path[:1] == (name,))

    def words(self, name: str) -> Iterator[str]:
        """Describe the copied parts of one argument, a line for each source; safe to show."""
        sizes: dict[tuple[str, str], list[int]] = {}
        for mark in self.spans_of(name):
            how = f", as {mark.form}" if mark.form else ""
            how += ", in its name" if mark.is_name else ""
            sizes.setdefault((mark.source, how), []).append(mark.end - mark.start)
        for (source, how), found in sizes.items():
            places = f" in {len(found)} places" if len(found) > 1 else ""
            yield f"from {show_line(source, 60)}: {sum(found):,} characters{places}{how}"

    def after(self, arguments: Mapping[str, Any]) -> Provenance:
        """The marks that still hold after the user edited the arguments; nothing is compared again."""
        if self == NOTHING:
            return self
        kept = (_moved(mark, arguments) for mark in self.marks)
        note = f"{self.note}; {EDITED}" if self.note else EDITED
        return Provenance(tuple(mark for mark in kept if mark is not None), note)


NOTHING: Final = Provenance()


def _moved(mark: UntrustedSpan, arguments: Any) -> UntrustedSpan | None:
    """The mark at the present place of its stretch; None if it is gone."""
    value = arguments
    for step in mark.path:
        there = step in value if isinstance(value, Mapping) else isinstance(value, list) and step in range(len(value))
        if not there:
            return None
        value = value[step]
    text = str(mark.path[-1]) if mark.is_name else str(value)
    start = mark.start if text.startswith(mark.text, mark.start) else text.find(mark.text)
    return None if start < 0 else replace(mark, start=start, end=start + len(mark.text))
