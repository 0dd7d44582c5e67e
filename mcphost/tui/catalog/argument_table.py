"""The arguments of a tool or prompt as a table that fits any width."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from mcphost.json_values import as_dict, texts_in
from mcphost.protocol.display import show_line
from mcphost.protocol.forms.form import ABSENT, FieldKind, FormField, place_text, read_form
from mcphost.tui.kit.rows import Cell, columns

if TYPE_CHECKING:
    from mcphost.tui.catalog.argument_form import TextArgument

MOST_ARGUMENTS: Final = 40
"""Rows of a table: more are for the form."""

NAME, TYPE, DEFAULT = 28, 26, 16
"""Cells of a column at most."""

MEANING: Final = 28
"""Cells that the meaning needs beside the other columns; with less it is below them."""

MEANING_LINES: Final = 3
GAP: Final = 2

_WITHOUT_BRANCHES: Final = ("type", "properties", "required", "$defs", "definitions")
"""Keywords of a schema that make a table of it, even if it combines several forms."""

MUTED: Final = "$foreground-muted"


class ListedArgument(NamedTuple):
    """One argument; all texts are safe to show."""

    name: str
    """Of an argument inside an object with the object's: ``place.city``."""
    needed: bool = False
    type: str = ""
    default: str = ""
    meaning: str = ""


class ListedArguments(NamedTuple):
    """``left_out`` says in words what has no row."""

    rows: Sequence[ListedArgument]
    left_out: str = ""


def schema_arguments(schema: dict[str, Any]) -> ListedArguments:
    """Read the arguments from an input schema, those inside of objects too, and those that are required first."""
    properties = as_dict(schema.get("properties"))
    if more := max(0, len(properties) - MOST_ARGUMENTS):  # all of them would take longer than a frame
        needed = set(texts_in(schema.get("required")))
        first = sorted(properties, key=lambda name: name not in needed)[:MOST_ARGUMENTS]
        schema = {**schema, "properties": {name: properties[name] for name in first}}
    form = read_form(schema)
    left_out = "" if form.raw_only is None else f"{form.raw_only}: enter edits JSON"
    if form.raw_only is not None:
        form = read_form({name: schema[name] for name in _WITHOUT_BRANCHES if name in schema})
    rows = [row for field in sorted(form.fields, key=lambda each: not each.required) for row in _rows(field)]
    rows = rows or [ListedArgument(show_line(name, 60)) for name in as_dict(schema.get("properties"))]
    more += max(0, len(rows) - MOST_ARGUMENTS)
    return ListedArguments(rows[:MOST_ARGUMENTS], left_out or (f"… {more:,} more" if more else ""))


def text_arguments(arguments: Iterable[TextArgument]) -> ListedArguments:
    """The arguments of a prompt or template, which are all texts."""
    listed = [
        ListedArgument(show_line(each.name, 60), each.required, meaning=meaning_of(each.description or each.title))
        for each in arguments
    ]
    more = len(listed) - MOST_ARGUMENTS
    return ListedArguments(listed[:MOST_ARGUMENTS], f"… {more:,} more" if more > 0 else "")


def _rows(field: FormField) -> Iterator[ListedArgument]:
    default = "" if field.default is ABSENT else show_line(json.dumps(field.default, ensure_ascii=False), 60)
    name = place_text(tuple(part for part in field.path if isinstance(part, str))) or "(all)"
    title = "" if _words(field.title) == _words(name) else field.title
    yield ListedArgument(name, field.required, _type(field), default, meaning_of(field.description or title))
    for each in field.fields:
        yield from _rows(each)


def _words(name: str) -> list[str]:
    """The words of a name: libraries make a title such as "Repo Path" of ``repo_path``, which adds nothing."""
    return name.replace("_", " ").replace("-", " ").casefold().split()


def meaning_of(text: str) -> str:
    """A description on one line."""
    return show_line(" ".join(text[:2_000].split()), 400)


def _type(field: FormField) -> str:
    """The type in the words of the form."""
    labels = " | ".join(show_line(label, 30) for _, label in field.choices[:8])
    match field.kind:
        case FieldKind.BOOLEAN:
            return "true or false"
        case FieldKind.CHOICE:
            return labels
        case FieldKind.CHOICES:
            return f"some of {labels}"
        case FieldKind.BRANCH:
            return labels.replace(" | ", " or ")
        case FieldKind.GROUP:
            return "object"
        case FieldKind.LIST if field.item is not None:
            return f"list of {_type(field.item)}"
    return field.constraints.removeprefix("JSON: ")


def argument_table(arguments: ListedArguments, width: int) -> Iterator[Content]:
    """Yield the lines of the table, at most ``width`` cells each."""
    rows = arguments.rows
    name = _widest(("argument", *(f"{row.name}*" for row in rows)), min(NAME, max(10, width // 3)))
    defaults = ("default", *map(_default, rows))
    default = _widest(defaults, DEFAULT if width >= 100 else 10) if any(defaults[1:]) else 0
    left = width - name - (GAP + default if default else 0) - GAP
    kind = _widest((row.type for row in rows), min(TYPE, max(20, left - GAP - MEANING)))
    meaning = left - (kind + GAP if kind else 0)
    beside = meaning >= MEANING and any(row.meaning for row in rows)
    if not beside:
        kind = _widest((row.type for row in rows), left)
        default = _widest(defaults, default + left - kind) if default else 0
    heads = ("argument", "type" if kind else "", "default" if default else "", "meaning" if beside else "")
    widths = (name, kind, default, meaning if beside else 0)
    yield _line(width, [Cell(head, MUTED, size, size) for head, size in zip(heads, widths, strict=True)])
    for row in rows:
        yield from _table_row(row, width, widths)
    if arguments.left_out:
        yield Content.styled(show_line(arguments.left_out, width), MUTED)


class ArgumentTable(Widget):
    """The arguments, laid out for the width of the widget."""

    DEFAULT_CSS = """
    ArgumentTable { height: auto; width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._arguments = ListedArguments(())
        self._lines: tuple[int, list[Content]] | None = None

    def show_arguments(self, arguments: ListedArguments) -> None:
        self._arguments = arguments
        self.lay_out_again()

    def lay_out_again(self) -> None:
        self._lines = None
        self.refresh(layout=True)

    def render(self) -> Content:
        return Content("\n").join(self._laid_out(self.size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._laid_out(width))

    def draw(self, width: int) -> Iterator[Content]:
        """Yield the lines, at most ``width`` cells each."""
        if self._arguments.rows or self._arguments.left_out:
            yield from argument_table(self._arguments, width)

    def _laid_out(self, width: int) -> list[Content]:
        if self._lines is None or self._lines[0] != width:
            self._lines = width, list(self.draw(width))
        return self._lines[1]


def _table_row(row: ListedArgument, width: int, widths: Sequence[int]) -> Iterator[Content]:
    name, kind, default, beside = widths
    lines = list(_meaning(row.meaning, beside or width - GAP))
    star = Content.styled("*", "bold $text-warning") if row.needed else Content("")
    shown = Content.styled(row.name, "bold").truncate(name - row.needed, ellipsis=True) + star
    style = "$text-warning" if row.needed and not row.default else MUTED
    cells = [
        Cell(shown, "", name, name),
        Cell(row.type, "$text-primary", kind, kind),
        Cell(_default(row), style, default, default),
    ]
    first = lines.pop(0) if beside and lines else ""
    yield _line(width, [*cells, Cell(first, MUTED, beside, beside)])
    left = width - beside if beside else GAP
    for line in lines:
        yield Content(" " * left) + Content.styled(line, MUTED)


def _line(width: int, cells: Sequence[Cell]) -> Content:
    return columns(width, [cell for cell in cells if cell.min], GAP)


def _default(row: ListedArgument) -> str:
    return row.default or ("required" if row.needed else "")


def _meaning(text: str, width: int) -> Iterator[str]:
    """The first lines of the meaning."""
    lines = [line.plain.rstrip() for line in Content(text).wrap(width)] if text else []
    yield from lines[: MEANING_LINES - 1]
    if rest := lines[MEANING_LINES - 1 :]:
        yield rest[0] if len(rest) == 1 else f"{Content(rest[0]).truncate(width - 1).plain}…"


def _widest(texts: Iterable[str], most: int) -> int:
    return min(most, max(map(cell_len, texts), default=0))
