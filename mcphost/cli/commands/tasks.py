"""``mcphost tasks``: lists, cancels and collects a server's tasks.

A task's id is untrusted text; the one that the user types is sent unchanged.

Specification: basic/utilities/tasks (2025-11-25 only); extensions/tasks (from 2026-07-28 on).
"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from mcphost.cli.commands.call import outcome_of, when_ready
from mcphost.cli.failures import BrokenServers
from mcphost.cli.output import Exit, Outcome, json_text, table
from mcphost.cli.preparation import run_audited, run_with_answers, select_server
from mcphost.cli.save_files import claim
from mcphost.errors import UsageError
from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from mcphost.host.host import Host
    from mcphost.host.tool_calls.tasks import KeptTask

HEADING: Final = ("STATE", "TASK", "TOOL", "CREATED", "LAST CHANGE", "KEPT FOR", "MESSAGE")
ID_CHARACTERS: Final = 200
"""Characters of a task's id in the table; --json has all of it."""


def run_tasks(options: Namespace) -> int:
    """List, cancel or collect a server's tasks."""
    if options.output is not None and options.result is None:
        raise UsageError("--output goes with --result")
    claim(options.output)
    chosen, name = select_server(options)
    broken, how = chosen.broken, {"as_json": options.json}
    if options.cancel is not None:
        return run_audited(options, chosen, None, lambda host: cancel(host, name, options.cancel, broken, **how))
    if options.result is not None:
        saves = {**how, "output": options.output}
        return run_with_answers(
            options, chosen, None, lambda host: collect(host, name, options.result, broken, **saves)
        )
    return run_audited(options, chosen, None, lambda host: show(host, name, broken, **how))


async def show(host: Host, server: str, broken: BrokenServers, *, as_json: bool) -> Outcome:
    async def work() -> Outcome:
        listing = await host.tasks.listed(server)
        remarks = [f"{server}: {listing.notice}"] if listing.notice else []
        remarks += [f"{server}: a task that cannot be read was left out: {each.reason}" for each in listing.rejected]
        if as_json:
            text = json_text({"server": server, "tasks": [task.definition() for task in listing.items]})
        else:
            text = table([HEADING, *map(_row, host.tasks.known(server, listing.items))]) if listing.items else ""
            remarks += [] if listing.items else [f"{server} has no tasks"]
        return Outcome(text, remarks=tuple(remarks))

    return await when_ready(host, server, broken, work)


async def cancel(host: Host, server: str, task: str, broken: BrokenServers, *, as_json: bool) -> Outcome:
    """Cancel a task and print its state."""

    async def work() -> Outcome:
        stands = await host.tasks.cancel(server, task)
        text = json_text(stands.definition()) if as_json else f"{show_line(stands.words)}\n"
        remarks = () if stands.ended else (f"{server} got the request, and its task still goes on",)
        too_late = stands.ended and stands.status != "cancelled"
        return Outcome(text, Exit.NEGATIVE if too_late else Exit.DONE, remarks)

    return await when_ready(host, server, broken, work)


async def collect(
    host: Host, server: str, task: str, broken: BrokenServers, *, as_json: bool, output: str | None
) -> Outcome:
    """Wait for a task's result and print it; the task goes on when the wait is interrupted."""

    async def work() -> Outcome:
        collected = host.tasks.collect(server, task)
        return await outcome_of(host, collected, broken, as_json=as_json, output=output)

    return await when_ready(host, server, broken, work)


def _row(kept: KeptTask) -> tuple[str, ...]:
    task, tool = kept.task, show_line(kept.tool or "-")
    times = (f"{each.astimezone():%Y-%m-%d %H:%M:%S}" if each else "-" for each in (task.created, task.updated))
    name = show_line(task.task_id, ID_CHARACTERS)
    return task.status.replace("_", " "), name, tool, *times, task.kept, task.status_message or ""
