"""The servers that other programs on this machine have configured, to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from mcphost.imports.found import FoundServer, Origin
from mcphost.imports.hosts import BY_ID
from mcphost.imports.importer import ImportCandidate, ImportComparison, ImportStatus
from mcphost.imports.preview import place_of
from mcphost.imports.remembered import ImportedServer
from mcphost.imports.survey import HostFile
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.rows import Cell, RowList, columns

EMPTY: Final = (
    "No other program on this machine has servers that mcphost could read.\n"
    "a in the server list adds one from a command line, an address, a link or a file."
)

LEAST: Final = 4
"""Rows of an empty list."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file, above its servers."""

    origin: Origin
    count: int
    problem: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return _file_key(self.origin)


@dataclass(frozen=True, slots=True)
class GoneRow:
    """A server that was added, and is no longer there."""

    server: ImportedServer


@dataclass(frozen=True, eq=False)
class CandidateRow:
    """A server that may be added."""

    candidate: ImportCandidate
    line: str
    """Its command line or address, safe to show."""
    dangerous: bool

    @property
    def addable(self) -> bool:
        return self.candidate.status is not ImportStatus.SAME

    @property
    def is_new(self) -> bool:
        candidate = self.candidate
        return candidate.status is ImportStatus.NEW and not candidate.like and not candidate.found.disabled_there


Row = FileRow | CandidateRow | FoundServer | GoneRow


def rows_of(files: Sequence[HostFile], comparison: ImportComparison) -> list[Row]:
    """The servers below their files, as the survey lists them. Takes a millisecond for each server."""
    return list(_rows(files, comparison))


class FoundServersScreen(FramedScreen[tuple[ImportCandidate, ...] | None]):
    """Dismissed with the candidates that the user wants to look at."""

    HELP = (
        "Servers that other programs on this machine have configured. Nothing of them has run, and each is shown in\n"
        "full before it is added. New ones are chosen already. ▲ marks those with a sign of danger."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "choose", id="found.choose", tooltip="Choose it, or not; on a file: all in it"),
        Binding("a", "choose_all", "all", id="found.all", tooltip="Choose all that can be added, or none"),
        Binding("enter", "open_chosen", "look at them", id="found.look", tooltip="Look at the chosen ones, one by one"),
        Binding("escape", "back", "back", id="found.back", tooltip="Add nothing"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    FoundServersScreen {
        & > .frame { width: 96%; max-width: 140; height: auto; max-height: 90%; }
        RowList { max-height: 70vh; }
        .details { height: auto; max-height: 6; padding: 0 1; border-top: solid $border-blurred; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows = RowList[Row](self._row, empty="Looking …")
        self._details = Static(markup=False, classes="details")
        self._chosen: set[CandidateRow] = set()

    def compose(self) -> ComposeResult:
        with self.framed("Servers found on this machine", "space choose · enter look at them · esc back"):
            yield self.rows
            yield self._details

    def on_mount(self) -> None:
        self._details.display = False
        self.rows.styles.height = LEAST
        self.rows.focus()

    def show_rows(self, rows: Sequence[Row]) -> None:
        """List what was found, the new ones chosen."""
        self._chosen = {row for row in rows if isinstance(row, CandidateRow) and row.is_new}
        self.rows.empty = EMPTY
        self.rows.styles.height = max(len(rows), LEAST)
        self.rows.set_items(rows, keep=id)
        at = [number for number, row in enumerate(rows) if isinstance(row, CandidateRow)]
        self.rows.highlighted = next((number for number in at if rows[number] in self._chosen), next(iter(at), 0))
        self._update()

    def show_problem(self, problem: str) -> None:
        """Say why nothing can be listed; ``problem`` is safe to show."""
        self.rows.empty = problem
        self.rows.set_items([])

    @property
    def chosen(self) -> tuple[ImportCandidate, ...]:
        """The chosen candidates, in the order of the list."""
        return tuple(row.candidate for row in self._candidates if row in self._chosen)

    @property
    def _candidates(self) -> list[CandidateRow]:
        return [row for row in self.rows.items if isinstance(row, CandidateRow)]

    def action_choose(self) -> None:
        row = self.rows.item
        if isinstance(row, FileRow):
            self._toggle([each for each in self._candidates if _file_key(each.candidate.found.origin) == row.key])
        elif isinstance(row, CandidateRow):
            self._toggle([row])
            self.rows.action_down()
        else:
            self.app.bell()

    def action_choose_all(self) -> None:
        self._toggle(self._candidates)

    def _toggle(self, rows: Sequence[CandidateRow]) -> None:
        """Choose all of these that can be added, or none if all are chosen."""
        addable = {row for row in rows if row.addable}
        self._chosen = self._chosen - addable if addable <= self._chosen else self._chosen | addable
        self._update()

    def action_open_chosen(self) -> None:
        """Look at the chosen ones; without any, at the one under the cursor."""
        row = self.rows.item
        chosen = self.chosen or ((row.candidate,) if isinstance(row, CandidateRow) and row.addable else ())
        if chosen:
            self.dismiss(chosen)
        else:
            self.app.bell()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[Row]) -> None:
        event.stop()
        self.action_open_chosen()

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[Row]) -> None:
        event.stop()
        self._update()

    def _update(self) -> None:
        count = len(self._chosen)
        look = f"enter look at {count}" if count else "enter look at this one"
        self.frame.border_subtitle = Content(f"space choose · a all · {look} · esc back")
        row = self.rows.item
        self._details.display = row is not None
        self._details.update(Content("") if row is None else _details(row))
        self.rows.refresh()

    def _row(self, row: Row, width: int) -> Content:
        match row:
            case FileRow():
                return _file_row(row, width)
            case CandidateRow():
                return _candidate_row(row, width, chosen=row in self._chosen)
            case FoundServer():
                words = show_line(row.refusal, 400)
                return _server_row(width, " ✖ ", show_line(row.origin.name, 64), "refused", words, "$text-error")
            case GoneRow():
                words = "it is still configured here"
                return _server_row(width, " – ", show_line(row.server.name, 64), "gone", words)


def _rows(files: Sequence[HostFile], comparison: ImportComparison) -> Iterator[Row]:
    servers: list[ImportCandidate | FoundServer] = [*comparison.candidates, *comparison.refused]
    order = {str(file.path): number for number, file in enumerate(files)}
    servers.sort(key=lambda each: order.get(_origin(each).place, len(order)))
    for _, group in groupby(servers, key=lambda each: _file_key(_origin(each))):
        listed = list(group)
        yield FileRow(_origin(listed[0]), len(listed))
        yield from (_candidate(each) if isinstance(each, ImportCandidate) else each for each in listed)
    for file in files:
        if file.problem:
            yield FileRow(Origin(file.host.id, str(file.path), "", "", file.scope), 0, file.problem)
    yield from map(GoneRow, comparison.gone)


def _candidate(candidate: ImportCandidate) -> CandidateRow:
    preview = candidate.preview({})
    return CandidateRow(candidate, preview.url or preview.command_line, bool(preview.dangers))


def _origin(server: ImportCandidate | FoundServer) -> Origin:
    return server.found.origin if isinstance(server, ImportCandidate) else server.origin


def _file_key(origin: Origin) -> tuple[str, str, str]:
    return origin.source, origin.place, origin.scope


def _file_row(row: FileRow, width: int) -> Content:
    label, _, place = place_of(row.origin).partition(" · ")
    words = "cannot be read" if row.problem else f"{row.count} server{'s' if row.count != 1 else ''}"
    style = "$text-error" if row.problem else "$foreground-muted"
    return columns(
        width,
        [
            Cell(Content.styled(label, "bold $text-accent"), "", min(len(label), 24), min(len(label), 24)),
            Cell(place, "$foreground-muted", 10, None, keep="end"),
            Cell(words, style, len(words), len(words), "right"),
        ],
    )


def _candidate_row(row: CandidateRow, width: int, *, chosen: bool) -> Content:
    mark = "   " if not row.addable else "[x]" if chosen else "[ ]"
    status, style = _status(row.candidate)
    warned = "▲ " if row.dangerous else ""
    return _server_row(width, mark, show_line(row.candidate.name, 64), status, row.line, "", style, warned)


def _server_row(
    width: int, mark: str, name: str, status: str, about: str, style: str = "$foreground-muted", status_style: str = "",
    warned: str = "",
) -> Content:  # fmt: skip
    return columns(
        width,
        [
            Cell(mark, "bold $text-accent" if "x" in mark else style, 3, 3),
            Cell(name, style, 12, 20),
            Cell(status, status_style or style, 9, 9),
            Cell(Content.assemble((warned, "$text-error"), (show_line(about, 400), "$foreground-muted")), "", 10),
        ],
    )


def _status(candidate: ImportCandidate) -> tuple[str, str]:
    if candidate.status is ImportStatus.SAME:
        return "added", "$foreground-muted"
    if candidate.status is ImportStatus.CHANGED:
        return "changed", "$text-warning"
    if candidate.like:
        return "here", "$foreground-muted"
    return ("off there", "$foreground-muted") if candidate.found.disabled_there else ("new", "$text-success")


def _details(row: Row) -> Content:
    """More of the row under the cursor than fits on a line."""
    match row:
        case FileRow():
            words = show_line(row.problem, 600) if row.problem else show_line(row.origin.place, 1000)
            return Content.styled(words, "$text-error" if row.problem else "$foreground-muted")
        case FoundServer():
            return Content.assemble(("it cannot come in: ", "$text-error"), show_line(row.refusal, 600))
        case GoneRow():
            place = show_line(row.server.origins[0].place, 400)
            return Content(f"It was added from {place}, where it is no longer. mcphost remove {row.server.name}")
        case CandidateRow(candidate, line):
            lines = [Content(show_line(line, 2000))]
            if not row.addable:
                lines.append(
                    Content.styled(f"added before as {candidate.name}, and still the same", "$foreground-muted")
                )
            if candidate.changes:
                changed = ", ".join(show_line(change.key, 60) for change in candidate.changes)
                lines.append(Content.styled(f"changed there since it was added: {changed}", "$text-warning"))
            if candidate.others:
                also = ", ".join(dict.fromkeys(_label(each) for each in candidate.others))
                lines.append(Content.styled(f"also in {also}", "$foreground-muted"))
            if candidate.like:
                lines.append(Content.styled(f"here as {candidate.like}, with other settings", "$foreground-muted"))
            return Content("\n").join(lines)


def _label(origin: Origin) -> str:
    host = BY_ID.get(origin.source)
    return host.label if host else show_line(origin.source, 40)
