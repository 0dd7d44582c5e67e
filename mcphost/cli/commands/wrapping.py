"""``mcphost wrap`` and ``mcphost unwrap``: put mcphost before the servers of other hosts, and take it away again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final

from mcphost.cli.approver import NO_CUT, confirmed
from mcphost.cli.margin import framed
from mcphost.cli.output import Exit, Outcome, json_text, remark, table
from mcphost.cli.parser import did_you_mean
from mcphost.cli.run import finish, run
from mcphost.cli.terminal import has_terminal, say, terminal_size
from mcphost.config import state_folder, users_path
from mcphost.errors import ConfigError, UnknownName, UsageError
from mcphost.imports.documents import MAX_HISTORY_BYTES
from mcphost.imports.hosts import BY_ID, HOSTS, KnownHost
from mcphost.imports.survey import places_of
from mcphost.imports.wrapped_files import (
    FileEdit,
    WrappedEntry,
    WrapPlan,
    WrapRecords,
    plan_wraps,
    state_of,
    unwrap,
    write_edit,
)
from mcphost.imports.wrapping import EntryChange, WrapCommand, WrapMode
from mcphost.places import home_folder, with_tilde, working_folder
from mcphost.protocol.display import show_line
from mcphost.redaction import MASK

HEADING: Final = ("HOST", "SERVER", "BY", "STATE", "FILE")

_NEXT: Final[Mapping[WrapMode, str]] = {
    "gate": "then open mcphost in a terminal, where it asks you; without it, calls that you did not allow are declined",
    "tap": "then open mcphost in a terminal, and press f4 for the messages",
}
"""The step that follows, by what was put before the servers."""


def run_wrap(options: Namespace) -> int:
    """Put mcphost before servers of a host, or list where it is."""
    records = WrapRecords(state_folder(os.environ), remark)
    if options.list:
        return finish(list_wrapped(records, options.host, as_json=options.json))
    if options.host is None:
        raise UsageError(f"name a HOST, or add --list; hosts are {', '.join(BY_ID)}")
    host = _host(options.host)
    command = wrap_command("tap" if options.tap else "gate", options.config, sys.argv[0], os.environ)
    plan = plan_wraps(host, _files(host, options.file), options.servers, command, records.entries())
    _check_names(plan, host, options.servers)
    return finish(_wrap(plan, records, yes=options.yes, named=bool(options.servers or options.file)))


def run_unwrap(options: Namespace) -> int:
    """Restore the entries of a host."""
    records = WrapRecords(state_folder(os.environ), remark)
    if options.host is None:
        hosts = ", ".join(dict.fromkeys(each.host for each in records.entries()))
        raise UsageError(f"name the HOST; wrapped are servers of {hosts}" if hosts else "no server is wrapped")
    host = _host(options.host)
    known = [each for each in records.entries() if each.host == host.id]
    for name in options.servers:
        if not any(each.name == name for each in known):
            names = ", ".join(dict.fromkeys(show_line(each.name) for each in known))
            there = f"its wrapped servers are {names}" if names else "none of its servers is wrapped"
            raise UnknownName(f"{show_line(name)!a} is not wrapped for {host.label}; {there}")
    chosen = [each for each in known if not options.servers or each.name in options.servers]
    if not chosen:
        return finish(Outcome(remarks=(f"no server of {host.label} is wrapped",)))
    restarts = [_restart(host)] if any(state_of(each) == "wrapped" for each in chosen) else []
    done, failed = unwrap(chosen, records)
    remarks = (*failed, *restarts)
    return finish(Outcome("".join(f"{show_line(line, NO_CUT)}\n" for line in done), _code(failed), remarks))


def wrap_command(mode: WrapMode, config: str | None, program: str, env: Mapping[str, str]) -> WrapCommand:
    """The mcphost that runs now, as entries start it. ``program`` is how it was started, as in `sys.argv`."""
    chosen = users_path(env) if config is None else Path(config)
    return WrapCommand(_program(program), str(chosen.absolute()), str(state_folder(env).absolute()), mode)


def list_wrapped(records: WrapRecords, host: str | None, *, as_json: bool) -> Outcome:
    """List what is wrapped, of one host or of all."""
    chosen = [each for each in records.entries() if host in (None, each.host)]
    if as_json:
        return Outcome("".join(json_text(_as_object(each)) for each in chosen))
    if not chosen:
        return Outcome(remarks=("no server is wrapped; to wrap those of a host: mcphost wrap HOST",))
    rows = [(each.host, each.name, each.mode, state_of(each), str(with_tilde(Path(each.file)))) for each in chosen]
    return Outcome(table([HEADING, *rows]))


def _wrap(plan: WrapPlan, records: WrapRecords, *, yes: bool, named: bool) -> Outcome:
    remarks, lines, steps, declined = [*plan.same, *plan.left], list[str](), list[str](), False
    for edit in plan.edits:
        say(*_shown(edit))
        if not (yes or _agreed(edit)):
            declined = True
            remarks.append(f"{edit.path} was not changed")
            continue
        backup = write_edit(edit, records)
        names = ", ".join(show_line(each.name) for each in edit.changes)
        go = "go" if len(edit.changes) > 1 else "goes"
        lines.append(f"{edit.path}: {names} {go} through mcphost {edit.mode} now")
        remarks.append(f"the file as it was: {backup}; to restore it: mcphost unwrap {edit.host.id}")
        remarks += _readers(edit)
        steps = [_restart(edit.host), _NEXT[edit.mode]]
    if not plan.edits and not remarks:
        remarks.append("there is no server to wrap")
    code = Exit.DECLINED if declined else Exit.NEGATIVE if named and plan.left else Exit.DONE
    return Outcome("".join(f"{show_line(line, NO_CUT)}\n" for line in lines), code, (*remarks, *steps))


def _agreed(edit: FileEdit) -> bool:
    if not has_terminal():
        raise UsageError(f"there is no terminal to ask on, so {edit.path} was not changed; add --yes to write it")
    return run(confirmed(f"Write this to {show_line(str(edit.path), NO_CUT)}? [y/N] "))


def _shown(edit: FileEdit) -> Iterator[str]:
    """The lines that change, with what looks secret masked."""
    width, _ = terminal_size()
    yield show_line(str(edit.path), NO_CUT)
    for each in edit.changes:
        yield from framed(show_line(each.name), "\n".join(_diff(each)), width)
        for note in each.notes:
            yield f"  {note}"


def _diff(change: EntryChange) -> Iterator[str]:
    texts = [change.before, change.after]
    for secret in sorted(change.secrets, key=len, reverse=True):
        texts = [text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], MASK) for text in texts]
    for line in list(unified_diff(texts[0].splitlines(), texts[1].splitlines(), n=1, lineterm=""))[2:]:
        if not line.startswith("@@"):
            yield line[:1] + " " * (len(line[1:]) - len(line[1:].lstrip())) + show_line(line[1:].lstrip(), NO_CUT)


def _readers(edit: FileEdit) -> Iterator[str]:
    """The other hosts that read a file."""
    readers = [host.label for host in HOSTS if host is not edit.host and _is_shared(host, edit)]
    if readers:
        yield f"{edit.path.name} is also read by {', '.join(readers)}; their calls are those of {edit.host.id}, too"


def _restart(host: KnownHost) -> str:
    return f"{host.label} reads this when it starts: restart it where it runs"


def _is_shared(host: KnownHost, edit: FileEdit) -> bool:
    shared = (place for place in host.project if place in edit.host.project)
    return any(place.path == edit.path.name for place in shared)


def _host(name: str) -> KnownHost:
    if name not in BY_ID:
        raise UnknownName(
            f"{show_line(name)!a} is not a known host{did_you_mean(name, BY_ID)}; hosts are {', '.join(BY_ID)}"
        )
    return BY_ID[name]


def _files(host: KnownHost, named: str | None) -> Sequence[tuple[Path, str, int]]:
    if named is not None:
        path = Path(os.path.expanduser(named)).absolute()
        if not os.path.lexists(path):
            raise ConfigError("there is no such file", path=path)
        return [(path, "", MAX_HISTORY_BYTES)]
    found = places_of(host, os.environ, home_folder(), sys.platform, working_folder())
    if not found:
        raise ConfigError(f"{host.label} has no file here; name one with --file FILE")
    return found


def _check_names(plan: WrapPlan, host: KnownHost, names: Sequence[str]) -> None:
    for name in names:
        if name not in plan.names:
            names = ", ".join(dict.fromkeys(map(show_line, plan.names)))
            there = f"it has {names}" if names else "it has no servers"
            why = f"; {'; '.join(plan.left)}" if plan.left else ""
            raise UnknownName(f"{host.label} has no server {show_line(name)!a} here; {there}{why}")


def _program(started: str) -> tuple[str, ...]:
    """The words that start this mcphost. Raises ConfigError where they would not last."""
    found = shutil.which(started) if started else None
    script = None if found is None else Path(found).absolute()
    parts = (script or Path(sys.executable)).parts
    if "archive-v0" in parts or (".cache" in parts and {"uv", "pipx"} & {*parts}):
        raise ConfigError("this mcphost is in a cache that may be emptied; install it first: uv tool install mcphost")
    if script is not None and script.stem == "mcphost" and os.access(script, os.X_OK):
        return (str(script),)
    # -P: the agent's folder must not give mcphost its modules.
    return sys.executable, "-P", "-m", "mcphost"


def _as_object(entry: WrappedEntry) -> dict[str, object]:
    return {
        "host": entry.host,
        "server": entry.name,
        "by": entry.mode,
        "state": state_of(entry),
        "file": entry.file,
        "backup": entry.backup or None,
        "since": entry.since.isoformat(timespec="seconds"),
    }


def _code(failed: Sequence[str]) -> Exit:
    return Exit.NEGATIVE if failed else Exit.DONE
