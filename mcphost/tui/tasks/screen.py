"""The list of tasks: calls that servers answer later, of this run and of others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from mcphost.host.tool_calls.tasks import KeptTask
from mcphost.protocol.display import age_text, duration_text, show, show_line
from mcphost.tui.kit.clock import clock_text
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.marks import TASK_MARKS
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import ScrolledColumn


def task_row(kept: KeptTask, width: int, now: datetime, *, mixed: bool) -> Content:
    """``mixed``: the rows belong to several servers."""
    task, (mark, style) = kept.task, _mark(kept)
    cells = [Cell(mark, style, 1, 1), Cell(_state(kept), style, 9, 14)]
    if mixed:
        cells.append(Cell(kept.server, "$foreground-muted", 4, 12))
    cells.append(Cell(show_line(kept.tool or "unknown", 60), "bold" if kept.tool else "$foreground-muted", 9, 22))
    cells.append(Cell(show_line(task.status_message or "", 160), "", 16))
    if width >= 100:
        cells.append(Cell(show_line(task.task_id, 60), "$foreground-muted", 12, 36))
    updated = task.updated or task.created
    age = "" if updated is None else age_text((now - updated).total_seconds())
    return columns(width, [*cells, Cell(age, "$foreground-muted", 8, 11, "right")])


def task_facts(kept: KeptTask, now: datetime) -> Iterator[Fact]:
    task, (mark, style) = kept.task, _mark(kept)
    yield fact("task", show(task.task_id, limit=600))
    yield fact("state", f"{mark} {_state(kept)}", style)
    if task.status_message:
        yield fact("server says", show(task.status_message, limit=1000))
    yield fact("tool", _tool(kept))
    yield fact("created", _when(task.created, task.created_at, now))
    yield fact("last change", _when(task.updated, task.last_updated_at, now))
    yield fact("kept for", _kept(kept, now))
    if task.poll_interval is not None:
        yield fact("polled", f"every {duration_text(task.poll_interval / 1000)}, as the server asks")


def _mark(kept: KeptTask) -> tuple[str, str]:
    return TASK_MARKS.get(kept.task.status, ("·", ""))


def _state(kept: KeptTask) -> str:
    return show_line(kept.task.status, 40).replace("_", " ")


def _tool(kept: KeptTask) -> str:
    if kept.call is None:
        return (
            "unknown: not started in this run"
            if kept.tool is None
            else f"{show_line(kept.tool, 80)} · of an earlier run"
        )
    return f"{show_line(kept.call.request.tool, 80)} · call {kept.call.number}, {kept.call.state.value}"


def _when(moment: datetime | None, said: str | None, now: datetime) -> str:
    if moment is None:
        return show_line(said, 60) if said else "unknown"
    return f"{moment.astimezone():%-d %b %H:%M:%S} · {age_text((now - moment).total_seconds())}"


def _kept(kept: KeptTask, now: datetime) -> str:
    task = kept.task
    if task.ttl is None or task.created is None:
        return task.kept
    left = task.ttl / 1000 - (now - task.created).total_seconds()
    return f"{task.kept} after it was created · {f'{duration_text(left)} left' if left > 0 else 'over by now'}"


LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
LABELS = 16
"""Cells of a fact's label."""

ASKING = "◐ loading …"
EMPTY = (
    "No tasks.\nA server can run a call as a task and answer it later. Tasks are listed here while their server "
    "keeps them.\nRun such a tool, then press r to refresh."
)


class TaskActions(Protocol):
    """Acts on the servers' tasks for the screen."""

    async def fetch(self, server: str | None) -> tuple[list[KeptTask], list[str]]:
        """Return the tasks of this server (None: of all), and why there may be more."""

    async def cancel(self, kept: KeptTask) -> None:
        """Cancel a task, or report why not."""

    async def show_result(self, kept: KeptTask) -> None:
        """Show the call of this task."""


class TasksScreen(FramedScreen[None]):
    """Lists the tasks of ``server``; None: of all servers."""

    HELP = (
        "The tasks that servers keep, of this run and of earlier ones. Opening one shows its result, or waits for it."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "cancel", "cancel", id="tasks.cancel", tooltip="Ask the server to stop this task"),
        Binding("r", "refresh", "refresh", id="tasks.refresh", tooltip="List the tasks again"),
        Binding("y", "copy", "copy id", id="tasks.copy", tooltip="Copy the task's id"),
        Binding("escape,T", "back", "back", id="tasks.back", tooltip="Close"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    TasksScreen {
        & > .frame { width: 94%; max-width: 160; height: 88%; max-height: 26; }
        #remarks { height: auto; max-height: 4; padding: 0 2; color: $text-warning; }
        RowList { height: 1fr; min-height: 3; }
        VerticalScroll {
            height: 10; max-height: 48vh; padding: 0 2; border-top: solid $border-blurred;
            &:focus { border-top: solid $border; }
        }
    }
    """

    def __init__(self, actions: TaskActions, server: str | None) -> None:
        super().__init__()
        self._actions, self.server = actions, server
        self.rows = RowList[KeptTask](self._row, empty=ASKING)
        self._column = ScrolledColumn()
        self._facts, self._remarks = FactsTable(labels=LABELS), Static("", id="remarks", markup=False)
        self._now = datetime.now(UTC)
        self._mixed = server is None

    def compose(self) -> ComposeResult:
        with self.framed(""):
            yield self._remarks
            yield self.rows
            with self._column:
                yield self._facts

    def on_mount(self) -> None:
        self._update_title("")
        self._remarks.display = False
        self._update_facts()
        self.rows.focus()
        self.action_refresh()

    def show_tasks(self, kept: Sequence[KeptTask], remarks: Sequence[str]) -> None:
        """``remarks`` say why there may be more tasks."""
        self._now = datetime.now(UTC)
        self.rows.empty = EMPTY
        newest_first = sorted(kept, key=lambda each: each.task.created or LONG_AGO, reverse=True)
        self.rows.set_items(newest_first, keep=lambda each: each.key)
        self._remarks.update(Content("\n".join(show(each, limit=400) for each in remarks)))
        self._remarks.display = bool(remarks)
        self._update_title(f" · {len(kept)} · at {clock_text(time.time())}")
        self._update_facts()

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[KeptTask]) -> None:
        event.stop()
        self._update_facts()

    @on(RowList.Selected)
    async def _selected(self, event: RowList.Selected[KeptTask]) -> None:
        event.stop()
        self.dismiss()
        self.app.call_later(self._actions.show_result, event.item)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        item = self.rows.item
        if action == "cancel":
            return item is not None and not item.task.ended
        return item is not None if action == "copy" else True

    def action_refresh(self) -> None:
        _: Worker[None] = self.run_worker(self._list, group="list-tasks", exclusive=True)

    def action_cancel(self) -> None:
        if self.rows.item is not None:
            # the app's worker, so that it outlives this screen
            self.app.run_worker(self._cancel(self.rows.item), group="cancel-task")

    def action_copy(self) -> None:
        if self.rows.item is not None:
            self.app.copy_to_clipboard(self.rows.item.task.task_id)

    async def _list(self) -> None:
        self.show_tasks(*await self._actions.fetch(self.server))

    async def _cancel(self, kept: KeptTask) -> None:
        await self._actions.cancel(kept)
        if self.is_attached:
            self.action_refresh()

    def _row(self, kept: KeptTask, width: int) -> Content:
        return task_row(kept, width, self._now, mixed=self._mixed)

    def _update_title(self, more: str) -> None:
        self.frame.border_title = Content(f"Tasks · {self.server or 'all servers'}{more}")

    def _update_facts(self) -> None:
        item = self.rows.item
        self._facts.show_facts(task_facts(item, self._now) if item is not None else ())
        self._column.display = item is not None
        self.frame.border_subtitle = _keys(item)
        self.refresh_bindings()


def _keys(kept: KeptTask | None) -> str:
    if kept is None:
        return "r refresh · esc back"
    return f"enter result{'' if kept.task.ended else ' · x cancel'} · r refresh · y copy id · esc back"
