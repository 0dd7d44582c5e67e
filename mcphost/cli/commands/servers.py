"""``mcphost check``: connects to servers and reports each result."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mcphost.auth.ports import SignInStatus
from mcphost.cli.commands.login import status_object, status_text
from mcphost.cli.failures import BrokenServers, failure, left_out, listing_failure, reason_of, unselected, worst_exit
from mcphost.cli.output import Outcome, StatusLine, json_text, table
from mcphost.cli.preparation import run_without_calls, select_servers
from mcphost.composition import Selection
from mcphost.errors import ConfigError, McphostError, SignInFailed, UsageError
from mcphost.host.catalog import CatalogKind
from mcphost.host.connections.state import ServerState
from mcphost.host.events import ServerChanged
from mcphost.host.failure_advice import sign_in_command
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line

if TYPE_CHECKING:
    from mcphost.host.host import Host


def run_check(options: Namespace) -> int:
    """Connect to servers and report each result, or do what ``--strict`` or ``--era`` demand."""
    if options.strict:
        from mcphost.cli.commands.strict_check import run_check_strict  # late: as below

        return run_check_strict(options)
    refuse_without_strict(options)
    if options.era is not None:
        from mcphost.cli.commands.eras import run_check_eras  # late: it is another command in all but name

        return run_check_eras(options)
    chosen = select_servers(options)
    return run_without_calls(
        options,
        chosen,
        lambda host: check(host, chosen.names, chosen.broken, _of_profile(chosen), as_json=options.json),
    )


def refuse_without_strict(options: Namespace) -> None:
    """Raise UsageError for options that only ``--strict`` reads."""
    given = [name for name in ("call", "rules", "junit", "sarif", "yes") if getattr(options, name)]
    if given:
        raise UsageError(f"--{given[0]} belongs to --strict; add it")


def _of_profile(chosen: Selection) -> Sequence[str]:
    """Names in the profile in use that no server has."""
    where = f"profiles.{chosen.config.profile}.servers"
    return [str(problem) for problem in chosen.problems if problem.message.startswith(where)]


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """The result for one server. ``seconds``: from the start of the check to the result."""

    name: str
    remark: str
    """Why the server failed, or a warning."""
    failure: McphostError | None = None
    revision: str = ""
    server: Mapping[str, Any] | None = None
    """The server's ``serverInfo``."""
    capabilities: Mapping[str, Any] | None = None
    tools: int | None = None
    skills: int | None = None
    """None for a server without skills."""
    seconds: float = 0.0
    needs_sign_in: bool = False
    sign_in: str = ""
    """The command for the sign-in that is missing; empty where none would help."""
    standing: SignInStatus | None = None
    """The sign-in status; None for a server without sign-in."""

    def as_object(self) -> dict[str, Any]:
        return {
            "server": self.name,
            "state": "needs sign-in" if self.needs_sign_in else "failed" if self.failure else "ready",
            "reason": self.remark,
            "protocolVersion": self.revision or None,
            "serverInfo": self.server,
            "capabilities": self.capabilities,
            "tools": self.tools,
            "skills": self.skills,
            "seconds": round(self.seconds, 3),
            "signIn": None if self.standing is None else status_object(self.standing),
        }

    def as_row(self) -> tuple[str, ...]:
        claimed = f"{self.server.get('name', '')} {self.server.get('version', '')}".strip() if self.server else ""
        return (
            "▲ needs sign-in" if self.needs_sign_in else "✖ failed" if self.failure else "● ready",
            self.name,
            self.revision or "-",
            "-" if self.tools is None else str(self.tools),
            "-" if self.skills is None else str(self.skills),
            duration_text(self.seconds),
            claimed or "-",
            "; ".join(filter(None, [self.remark, self._signed_in])),
        )

    @property
    def _signed_in(self) -> str:
        standing = self.standing
        if standing is None or not (standing.signed_in or standing.problem not in self.remark):
            return ""
        return status_text(standing, self.remark)


HEADING = ("STATE", "SERVER", "REVISION", "TOOLS", "SKILLS", "TIME", "IDENTIFIES AS", "REASON")


async def check(
    host: Host, names: Sequence[str], broken: BrokenServers, remarks: Sequence[str] = (), *, as_json: bool
) -> Outcome:
    """Connect to all servers at once and report each result, after ``remarks``."""
    status = StatusLine()

    stop = host.bus.observe(lambda _: _show_waiting(host, names, status), ServerChanged)
    _show_waiting(host, names, status)
    try:
        results = await check_servers(host, names, broken)
    finally:
        stop()
        status.clear()
    text = "".join(json_text(each.as_object()) for each in results) if as_json else _table(results)
    cut = [each for each in results if each.failure and not as_json and show_line(each.remark) not in text]
    remarks = [*remarks, *(f"{each.name}: {each.remark}" for each in cut)]
    for name in names:
        remarks += left_out(host, name, CatalogKind.TOOLS) if host.servers[name].ready else ()
    return Outcome(text, worst_exit([each.failure for each in results if each.failure]), tuple(remarks))


def _table(results: Sequence[ServerCheck]) -> str:
    """The results; without a column for skills where no server has any."""
    rows = [HEADING, *(each.as_row() for each in results)]
    if all(each.skills is None for each in results):
        place = HEADING.index("SKILLS")
        rows = [row[:place] + row[place + 1 :] for row in rows]
    return table(rows)


async def check_servers(host: Host, names: Sequence[str], broken: BrokenServers) -> Sequence[ServerCheck]:
    """Connect to all servers at once and return each result, and those of servers that cannot run as configured."""
    checked = await asyncio.gather(*(_check(host, name, broken) for name in names))
    return [*checked, *(ServerCheck(name, str(error), error) for name, error in unselected(broken, names))]


async def _check(host: Host, name: str, broken: BrokenServers) -> ServerCheck:
    began = time.monotonic()
    await host.servers.ready([name])
    seconds, connection = time.monotonic() - began, host.servers[name]
    with suppress(McphostError):
        await connection.settled_list(CatalogKind.TOOLS)
        if connection.has_skills:
            await connection.settled_list(CatalogKind.SKILLS)
    session, standing = connection.session, await _standing(host, name)
    if not connection.ready or session is None:
        waits = connection.state is ServerState.NEEDS_SIGN_IN
        why = reason_of(host, connection), failure(host, name, broken)
        command = sign_in_command(connection.refusal, name, connection.config) if waits else ""
        return ServerCheck(name, *why, seconds=seconds, needs_sign_in=waits, sign_in=command, standing=standing)
    failed = listing_failure(host, name, CatalogKind.TOOLS)
    return ServerCheck(
        name,
        connection.notice or "",
        failed,
        revision=session.revision.version,
        server=session.server.server_info.model_dump(by_alias=True, exclude_unset=True),
        capabilities=session.server.capabilities,
        tools=None if failed else len(connection.tools),
        skills=_number_of_skills(host, name),
        seconds=seconds,
        standing=standing,
    )


def _number_of_skills(host: Host, name: str) -> int | None:
    has_any = host.servers[name].has_skills and listing_failure(host, name, CatalogKind.SKILLS) is None
    return len(host.catalog.skills(name)) if has_any else None


async def _standing(host: Host, name: str) -> SignInStatus | None:
    if not host.servers[name].config.signs_in:
        return None
    with suppress(SignInFailed, ConfigError):
        return await host.sign_ins.status(name)
    return None


def _show_waiting(host: Host, names: Sequence[str], status: StatusLine) -> None:
    if waiting := [name for name in names if host.servers[name].state.value == "starting"]:
        progress = f"{len(names) - len(waiting)} of {len(names)} servers answered; waiting for {', '.join(waiting)}"
        status.show(progress, last=True)
