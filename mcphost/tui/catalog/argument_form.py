"""The form for the arguments of a prompt or the variables of a template: the same as a tool's, all fields texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.forms.form import is_empty
from mcphost.tui.forms.field_row import FieldRow
from mcphost.tui.forms.schema_form import SchemaForm


@dataclass(frozen=True, slots=True)
class TextArgument:
    """``title`` and ``description`` are as the server wrote them."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


def schema_of(arguments: Iterable[TextArgument]) -> dict[str, Any]:
    arguments = list(arguments)
    # The format makes a line of each, whatever its name: suggestions have their place below a line.
    properties = {
        each.name: {"type": "string", "format": "text", "title": each.title, "description": each.description}
        for each in arguments
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in arguments if each.required],
    }


class ArgumentForm(SchemaForm):
    HELP = (
        "The arguments; * marks what is required. Suggestions come below the field. enter takes one, or goes to "
        "the next field and submits on the last."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,ctrl+enter", "submit", "get it", id="form.submit", priority=True, tooltip="Submit the form"),
    ]

    def __init__(self, submit_label: str) -> None:
        super().__init__(submit_label=submit_label, suggests=True)

    def first_row(self, rows: Sequence[FieldRow]) -> FieldRow | None:
        """The first required row that is empty, else the first."""
        missing = (row for row in rows if row.field.required and is_empty(row.field, row.entry))
        return next(missing, None) or super().first_row(rows)
