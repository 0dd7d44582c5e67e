"""``mcphost tasks``: the tasks a server keeps, listed, stopped, and what they brought.

Knows how a task is told on stdout. Refuses to know how it was had. A task's id is text from its server; the one that
is typed goes out as it is.

Specification: basic/utilities/tasks (2025-11-25 only).
"""

from __future__ import annotations

from typing import Final

from mcphost.cli.commands.call import once_ready, outcome_of
from mcphost.cli.failures import Broken
from mcphost.cli.output import Exit, Outcome, json_text, table
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Task

HEADING: Final = ("STATE", "TASK", "CREATED", "LAST CHANGE", "KEPT FOR", "SAYS")
ID_CHARACTERS: Final = 200
"""Of a task's id in the table; --json has all of it."""


async def show(host: Host, server: str, broken: Broken, *, as_json: bool) -> Outcome:
    """The tasks a server keeps."""

    async def work() -> Outcome:
        listing = await host.list_tasks(server)
        remarks = [f"{server}: {listing.notice}"] if listing.notice else []
        remarks += [f"{server}: a task that cannot be read was left out: {each.reason}" for each in listing.rejected]
        if as_json:
            text = json_text({"server": server, "tasks": [task.definition() for task in listing.items]})
        else:
            text = table([HEADING, *map(_row, listing.items)]) if listing.items else ""
            remarks += [] if listing.items else [f"{server} keeps no tasks now"]
        return Outcome(text, remarks=tuple(remarks))

    return await once_ready(host, server, broken, work)


async def cancel(host: Host, server: str, task: str, broken: Broken, *, as_json: bool) -> Outcome:
    """Stop a task, and print how it stands now."""

    async def work() -> Outcome:
        stands = await host.cancel_task(server, task)
        text = json_text(stands.definition()) if as_json else f"{show_line(stands.words)}\n"
        return Outcome(text, Exit.DONE if stands.status == "cancelled" else Exit.TOOL_FAILED)

    return await once_ready(host, server, broken, work)


async def collect(host: Host, server: str, task: str, broken: Broken, *, as_json: bool, output: str | None) -> Outcome:
    """Print what a task brought, once it has ended; the task goes on where nobody waits any more."""

    async def work() -> Outcome:
        collected = host.collect_task(server, task)
        return await outcome_of(host, collected, broken, as_json=as_json, output=output)

    return await once_ready(host, server, broken, work)


def _row(task: Task) -> tuple[str, ...]:
    times = (f"{each.astimezone():%Y-%m-%d %H:%M:%S}" if each else "-" for each in (task.created, task.updated))
    name = show_line(task.task_id, ID_CHARACTERS)
    return task.status.replace("_", " "), name, *times, task.kept, task.status_message or ""
