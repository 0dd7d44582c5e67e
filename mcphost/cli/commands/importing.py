"""``mcphost import`` and ``mcphost export``: servers from other hosts' files, and for them."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcphost.cli.add_questions import add_found
from mcphost.cli.importer import open_importer
from mcphost.cli.output import Outcome, is_terminal, json_text, remark, table
from mcphost.cli.preparation import load_config
from mcphost.cli.run import finish, run
from mcphost.composition import values_for
from mcphost.config import Config, Reference, ServerConfig
from mcphost.errors import ConfigError, UnknownName, UsageError
from mcphost.imports.documents import MAX_BYTES
from mcphost.imports.export import Resolve, export_servers
from mcphost.imports.found import FoundServer, Origin
from mcphost.imports.hosts import BY_ID, NO_HOST, KnownHost
from mcphost.imports.importer import ImportComparison, ImportStatus
from mcphost.imports.links import MOST_BYTES, is_link, read_link
from mcphost.imports.preview import preview_of
from mcphost.imports.secrets import masked
from mcphost.imports.survey import HostFile, files_of, read_any, read_file, read_host, survey
from mcphost.places import home_folder, with_tilde, working_folder
from mcphost.protocol.display import show, show_line

STDIN: Final = "-"
HEADING: Final = ("HOST", "SERVER", "HERE", "RUNS", "FILE")

RUNS_WARNED: Final = "▲ "

_HERE: Final[Mapping[ImportStatus | None, str]] = {
    ImportStatus.NEW: "new",
    ImportStatus.CHANGED: "changed",
    ImportStatus.SAME: "added",
    None: "-",
}
"""The word in the list for each state; a dash for what cannot be added or compared."""


def run_import(options: Namespace) -> int:
    """Look around, or add what a host, a file or the standard input has."""
    _refuse_traffic(options)
    home = None if options.project else home_folder()
    if options.source is None:
        return finish(list_found(options, os.environ, home))
    if options.project and options.source not in BY_ID:
        raise UsageError("--project: it narrows a HOST to the files of this folder; a file stands for itself")
    found, places = read_source(options.source, os.environ, home)
    return run(add_found(chosen(found, options.names), options, places=() if options.names else places))


def run_export(options: Namespace) -> int:
    """Print the document with which another host has our servers."""
    _refuse_traffic(options)
    host = NO_HOST if options.host == STDIN else BY_ID.get(options.host)
    if host is None:
        raise UnknownName(f"{show_line(options.host)!a} is not a known host; hosts are {', '.join(BY_ID)}")
    if options.via == "serve":
        return _export_served(host, options)
    config = load_config(options, ()).config
    folder = working_folder() if config.path is None else config.path.absolute().parent
    resolve = _resolver(config) if options.inline_secrets else None
    exported = export_servers(host, _selected(config, options.names), folder, resolve)
    text = show(exported.text) if is_terminal(sys.stdout) else exported.text
    return finish(Outcome(text, remarks=tuple(map(str, exported.notes))))


def _export_served(host: KnownHost, options: Namespace) -> int:
    from mcphost.cli.serve_entries import program_entries, served_names  # late: few exports need them

    if options.inline_secrets:
        raise UsageError("--inline-secrets: with --via serve no secret leaves mcphost")
    served = Namespace(**{**vars(options), "agent": None, "state": None})
    return finish(program_entries(host, served_names(load_config(options, ()), options.names, options.profile), served))


def list_found(options: Namespace, env: Mapping[str, str], home: Path | None) -> Outcome:
    """List the servers to import, file by file; with ``home`` None only those of this folder. Changes nothing."""
    here = env, home, sys.platform, working_folder()
    files = survey(*here)
    remarks = [_problem(each) for each in files if each.problem]
    readable = [each for each in files if not each.problem]
    hosts = dict.fromkeys(each.host.id for each in readable)
    read = [server for id in hosts for server in read_host(id, *here)]
    listed = [(file, each) for file in readable for each in read if _is_of(each, file)]
    try:
        here_as = _statuses(open_importer(options.config, env, writes=False).compare(each for _, each in listed))
    except ConfigError as error:  # what others have can be listed all the same
        here_as = {}
        remarks.append(str(error))
    if options.json:
        text = "".join(json_text(_as_object(file, each, here_as.get(each.origin))) for file, each in listed)
        return Outcome(text, remarks=tuple(remarks))
    rows = [_row(file, each, here_as.get(each.origin)) for file, each in listed]
    if not rows:
        where = "in the files of this folder" if home is None else "here"
        none = f"no known host has servers {where}; for a file or a paste: mcphost import FILE"
        return Outcome(remarks=(*remarks, none))
    narrowed = " --project" if home is None else ""
    warned = any(RUNS_WARNED in row[3] for row in rows)
    marked = ("▲ has signs of danger, which are named before it is added",) if warned else ()
    hint = f"nothing was changed; to add servers: mcphost import HOST{narrowed} [NAME ...]"
    return Outcome(table([HEADING, *rows]), remarks=(*remarks, *marked, hint))


def read_source(source: str, env: Mapping[str, str], home: Path | None) -> tuple[list[FoundServer], list[str]]:
    """The servers of a host, a file or the standard input, and the places that were read for them.

    With ``home`` None a host has only the files of this folder. Raises UnknownName and ConfigError.
    """
    if source == STDIN:
        if is_terminal(sys.stdin):
            remark("paste what there is to import; then ctrl+d on a line of its own")
        content = sys.stdin.buffer.read(MAX_BYTES + 1)
        text = content[:MOST_BYTES].decode("utf-8", "replace").strip()
        return read_link(text) if is_link(text) else read_any(content), []
    if source in BY_ID:
        here = env, home, sys.platform, working_folder()
        found = read_host(source, *here)
        for each in survey(*here, [BY_ID[source]]):
            if each.problem:
                remark(_problem(each))
        return found, [str(path) for path in files_of(source, *here)]
    path = Path(os.path.expanduser(source))
    if "://" in source and not os.path.lexists(path):
        raise UsageError("import reads a host's files, or FILE; an address or a link is for mcphost add")
    if not os.path.lexists(path) and not {"/", os.sep, "."} & set(source):
        raise UnknownName(f"{show_line(source)!a} is neither a known host nor a file; hosts are {', '.join(BY_ID)}")
    return read_file(path), [str(path.absolute())]


def chosen(found: Sequence[FoundServer], names: Sequence[str]) -> list[FoundServer]:
    """The servers of these names, ours or theirs; without names all. Raises UnknownName."""
    for name in names:
        if not any(name in (each.name, each.origin.name) for each in found):
            names_there = ", ".join(show_line(each.name) for each in found)
            there = f"it has {names_there}" if found else "it has no servers"
            raise UnknownName(f"no server there is called {show_line(name)!a}; {there}")
    return [each for each in found if not names or each.name in names or each.origin.name in names]


def _selected(config: Config, names: Sequence[str]) -> dict[str, ServerConfig]:
    for name in names:
        if name not in config.servers:
            raise UnknownName(f"there is no server {show_line(name)!a} in the configuration")
    return {name: server for name, server in config.servers.items() if not names or name in names}


def _resolver(config: Config) -> Resolve:
    values = values_for(config, os.environ)

    def resolve(reference: Reference, field: str) -> str:
        return values.resolve(reference.text, field, secret=True)

    return resolve


def _refuse_traffic(options: Namespace) -> None:
    if options.traffic is not None:
        raise UsageError("--traffic: this command connects to no server")


def _statuses(comparison: ImportComparison) -> dict[Origin, ImportStatus]:
    """Compare each server with what mcphost has; the result is keyed by where the server was found."""
    return {
        origin: candidate.status
        for candidate in comparison.candidates
        for origin in (candidate.found.origin, *candidate.others)
    }


def _problem(file: HostFile) -> str:
    return f"{file.host.label}: {file.path} {file.problem}"


def _is_of(server: FoundServer, file: HostFile) -> bool:
    return (server.origin.source, server.origin.place) == (file.host.id, str(file.path))


def _runs(server: FoundServer) -> str:
    """Return what the server runs, without secrets."""
    if server.refusal:
        return f"cannot be imported: {server.refusal}"
    preview = preview_of(server, {})
    words = preview.url or preview.command_line
    warned = RUNS_WARNED if preview.dangers else ""
    return f"{warned}{words} (disabled there)" if server.disabled_there else f"{warned}{words}"


def _row(file: HostFile, server: FoundServer, status: ImportStatus | None) -> tuple[str, ...]:
    scope = f" ({server.origin.scope})" if server.origin.scope else ""
    return file.host.id, server.name, _HERE[status], _runs(server), f"{with_tilde(file.path)}{scope}"


def _as_object(file: HostFile, server: FoundServer, status: ImportStatus | None) -> dict[str, Any]:
    return {
        "host": file.host.id,
        "file": str(file.path),
        "scope": server.origin.scope,
        "server": server.name,
        "nameThere": server.origin.name,
        "status": None if status is None else status.value,
        "disabledThere": server.disabled_there,
        "refusal": server.refusal or None,
        "entry": masked(server.table),
        "inputs": [each.id for each in server.inputs],
        "dangers": [] if server.refusal else [sign.text for sign in preview_of(server, {}).dangers],
        "leftOut": [{"key": note.key, "reason": note.reason} for note in server.notes],
    }
