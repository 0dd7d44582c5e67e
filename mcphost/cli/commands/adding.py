"""``mcphost add`` and ``mcphost search``: a server by its command, address, link, file or name in a registry."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from mcphost.cli.add_questions import add_found
from mcphost.cli.importer import bundles_folder, discard_unused, used_bundles
from mcphost.cli.output import Outcome, json_text, remark, table
from mcphost.cli.run import finish, run
from mcphost.cli.settings import find, users_settings
from mcphost.config.fields import reason_against_url
from mcphost.errors import ConfigError, McphostError, UsageError
from mcphost.imports.found import FoundServer
from mcphost.imports.registry import Registry, RegistryServer
from mcphost.imports.sources import AddRequest, ServerSources, this_machine
from mcphost.protocol.display import show_line

HEADING: Final = ("NAME", "VERSION", "PUBLISHED", "STATUS", "ABOUT")


def run_add(options: Namespace) -> int:
    """Find a server, show it, and add it if the user agrees."""
    _refuse_traffic(options)
    return run(add(options, os.environ))


def run_search(options: Namespace) -> int:
    _refuse_traffic(options)
    words = " ".join(options.words).strip()
    if not words:
        raise UsageError("search needs a word of the server's name")
    return finish(run(search(words, registries(options, os.environ), as_json=options.json)))


async def add(options: Namespace, env: Mapping[str, str]) -> int:
    """Find what the command line names, and add it. Raises what finding and adding raise."""
    request = AddRequest(
        word=options.word,
        program=tuple(options.program or ()),
        env=_pairs("--env", options.env),
        headers=_pairs("--header", options.header),
        transport=options.transport or "",
        package=options.package or "",
        registries=registries(options, env),
    )
    if options.program is not None and not options.program:
        raise UsageError("after -- comes the command of the server")
    before = await asyncio.to_thread(used_bundles, env)
    found = await ServerSources(this_machine(), bundles_folder(env), unpacks=not options.dry_run).find(request)
    try:
        _check_inputs(options.set, found.servers, asks=not options.yes)
        for sentence in found.remarks:
            remark(sentence)
        return await add_found(found.servers, options)
    finally:
        if not options.print:  # what is printed may stand in a file of the user's by and by
            await asyncio.to_thread(discard_unused, env, {*before, *(folder.name for folder in found.unpacked)})


async def search(words: str, urls: Sequence[str], *, as_json: bool) -> Outcome:
    """Ask each registry. Raises the first one's error where none answers."""
    if not urls:
        raise ConfigError("no registry is configured ([registry] urls is empty); name one with --registry URL")
    found: dict[str, RegistryServer] = {}
    remarks: list[str] = []
    failures: list[McphostError] = []
    for url in urls:
        try:
            result = await Registry(url).search(words)
        except McphostError as error:
            failures.append(error)
            continue
        for server in result.servers:
            found.setdefault(server.name, server)
        if result.unusable:
            remarks.append(f"{show_line(url, 200)}: {result.unusable} entries are not servers, and were left out")
        if result.more:
            remarks.append(f"{show_line(url, 200)} has more; add a word")
    if len(failures) == len(urls):
        raise failures[0]
    remarks += map(str, failures)
    if as_json:
        return Outcome("".join(json_text(_as_object(server)) for server in found.values()), remarks=tuple(remarks))
    if not found:
        return Outcome(remarks=(*remarks, f"no server's name holds {show_line(words, 100)}; names alone are searched"))
    now = datetime.now(UTC)
    hint = "to see one, and add it if you agree: mcphost add NAME"
    return Outcome(table([HEADING, *(_row(server, now) for server in found.values())]), remarks=(*remarks, hint))


def registries(options: Namespace, env: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the command line, else those of the user's configuration. Raises UsageError and ConfigError."""
    for url in options.registry:
        if reason := reason_against_url(url):
            raise UsageError(f"--registry {show_line(url, 100)}: {reason}")
    if options.registry:
        return tuple(options.registry)
    return users_settings(find(options.config, env)).loaded.config.registry.urls


def _row(server: RegistryServer, now: datetime) -> tuple[str, ...]:
    status = "" if server.status == "active" else server.status
    return server.name, server.version, server.age(now), status, server.description or server.title


def _as_object(server: RegistryServer) -> dict[str, Any]:
    return {
        "registry": server.registry,
        "name": server.name,
        "title": server.title,
        "version": server.version,
        "description": server.description,
        "status": server.status,
        "publishedAt": server.published and server.published.isoformat(),
        "namespace": server.proof,
    }


def _pairs(flag: str, texts: Iterable[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((name for name, equals, _ in pairs if not (name and equals)), None):
        raise UsageError(f"{flag} {show_line(wrong, 40)}: write NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _check_inputs(texts: Iterable[str], servers: Sequence[FoundServer], *, asks: bool) -> None:
    inputs = [each for server in servers for each in server.inputs]
    known, given = [each.id for each in inputs], _pairs("--set", texts)
    for name in given:
        if name not in known:
            asked = f"it asks for {', '.join(dict.fromkeys(known))}" if known else "it asks for nothing"
            raise UsageError(f"--set {show_line(name, 40)}: it does not ask for that; {asked}")
    for each in inputs:
        if not asks and each.required and not each.secret and each.default is None and each.id not in given:
            about = f" ({show_line(each.description, 200)})" if each.description else ""
            raise UsageError(f"it needs {each.id}{about}: add --set {each.id}=VALUE")


def _refuse_traffic(options: Namespace) -> None:
    if options.traffic is not None:
        raise UsageError("--traffic: this command connects to no server")
