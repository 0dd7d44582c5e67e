"""How a task looks: as a row of a list, and with all that is known of it.

Knows words and columns. Everything but our own words is the server's, its id above all, and is made safe to show.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from textual.content import Content

from mcphost.host.kept_tasks import KeptTask
from mcphost.protocol.display import age_text, duration_text, show, show_line
from mcphost.tui.marks import TASK_MARKS
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.facts import Fact, fact


def task_row(kept: KeptTask, width: int, now: datetime, *, mixed: bool) -> Content:
    """One line; ``mixed``: the rows belong to several servers."""
    task, (mark, style) = kept.task, _mark(kept)
    cells = [Cell(mark, style, 1, 1), Cell(_state(kept), style, 9, 14)]
    if mixed:
        cells.append(Cell(kept.server, "$foreground-muted", 4, 12))
    cells.append(Cell(show_line(kept.tool or "not known", 60), "bold" if kept.tool else "$foreground-muted", 9, 22))
    cells.append(Cell(show_line(task.status_message or "", 160), "", 16))
    if width >= 100:
        cells.append(Cell(show_line(task.task_id, 60), "$foreground-muted", 12, 36))
    updated = task.updated or task.created
    age = "" if updated is None else age_text((now - updated).total_seconds())
    return columns(width, [*cells, Cell(age, "$foreground-muted", 8, 11, "right")])


def task_facts(kept: KeptTask, now: datetime) -> Iterator[Fact]:
    """What there is to know of a task."""
    task, (mark, style) = kept.task, _mark(kept)
    yield fact("task", show(task.task_id, limit=600))
    yield fact("state", f"{mark} {_state(kept)}", style)
    if task.status_message:
        yield fact("its server says", show(task.status_message, limit=1000))
    yield fact("tool", _tool(kept))
    yield fact("created", _when(task.created, task.created_at, now))
    yield fact("last change", _when(task.updated, task.last_updated_at, now))
    yield fact("is kept", _kept(kept, now))
    if task.poll_interval is not None:
        yield fact("look again", f"every {duration_text(task.poll_interval / 1000)}, as its server wants")


def _mark(kept: KeptTask) -> tuple[str, str]:
    return TASK_MARKS.get(kept.task.status, ("·", ""))


def _state(kept: KeptTask) -> str:
    return show_line(kept.task.status, 40).replace("_", " ")


def _tool(kept: KeptTask) -> str:
    if kept.call is None:
        return "not known: it was not begun in this run"
    return f"{show_line(kept.call.request.tool, 80)} · call {kept.call.number}, {kept.call.state.value}"


def _when(moment: datetime | None, said: str | None, now: datetime) -> str:
    if moment is None:
        return show_line(said, 60) if said else "not told"
    return f"{moment.astimezone():%-d %b %H:%M:%S} · {age_text((now - moment).total_seconds())}"


def _kept(kept: KeptTask, now: datetime) -> str:
    task = kept.task
    if task.ttl is None or task.created is None:
        return task.kept
    left = task.ttl / 1000 - (now - task.created).total_seconds()
    return f"{task.kept} after it was created · {f'{duration_text(left)} left' if left > 0 else 'over by now'}"
