"""``mcphost remove``: takes a server out of ``servers.toml``, with what mcphost keeps of it."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcphost.cli.approver import confirmed
from mcphost.cli.commands.login import sign_out
from mcphost.cli.importer import discard_unused, open_importer, used_bundles
from mcphost.cli.output import Outcome, remark
from mcphost.cli.run import finish, run
from mcphost.cli.settings import find, users_settings
from mcphost.cli.terminal import has_terminal
from mcphost.composition import has_sign_in, keychain_is_used, select
from mcphost.config import state_folder, update_toml
from mcphost.config.servers_file import read_servers
from mcphost.errors import McphostError, UsageError
from mcphost.host.consent.approval_store import APPROVALS, from_toml, to_toml
from mcphost.imports.importer import Importer


def run_remove(options: Namespace) -> int:
    if options.traffic is not None:
        raise UsageError("--traffic: this command connects to no server")
    importer = open_importer(options.config, os.environ)
    if run(_is_signed_in(importer, options.server)):  # nothing could sign it out later
        chosen = select(users_settings(find(None, os.environ)).loaded, [options.server])
        try:
            sign_out(options, chosen, options.server)
        except McphostError:
            remark(f"{options.server} was not removed, because signing out of it failed")
            raise
    return finish(run(_remove(importer, options.server, yes=options.yes)))


async def _is_signed_in(importer: Importer, name: str) -> bool:
    """True if no entry will use this one's sign-in after it is removed. Raises ConfigError."""
    found = find(None, os.environ)
    server = users_settings(found).loaded.config.servers.get(name)
    if server is None or not server.signs_in or name not in read_servers(importer.path) or _is_own(name):
        return False
    return keychain_is_used(os.environ) and await has_sign_in(name)


def _is_own(name: str) -> bool:
    """True if the user's own configuration has a server of this name, ``servers.toml`` aside."""
    own = replace(find(None, os.environ), added=None)
    return name in users_settings(own).loaded.config.servers


async def _remove(importer: Importer, name: str, *, yes: bool) -> Outcome:
    bundles = await asyncio.to_thread(used_bundles, os.environ)
    items = await importer.remove(name)
    await asyncio.to_thread(discard_unused, os.environ, bundles)
    lines = [f"{name} is no longer in {importer.path}"]
    if _is_own(name):
        lines.append(f"{name} is still in your own configuration, which mcphost does not write")
    elif number := await asyncio.to_thread(_forget_approvals, state_folder(os.environ), name):
        lines.append(f"what you allowed of {number} of its tools is forgotten")
    remarks = list[str]()
    if items:
        if await _agreed(items, yes=yes):
            await importer.forget_items(items)
            lines.append(f"deleted from the keychain: {', '.join(items)}")
        else:
            remarks.append(f"still in the keychain; to delete it: mcphost secret forget {' '.join(items)}")
    return Outcome("".join(f"{line}\n" for line in lines), remarks=tuple(remarks))


async def _agreed(items: Sequence[str], *, yes: bool) -> bool:
    if yes or not has_terminal():
        return yes
    return await confirmed(f"Delete its secrets from the keychain, too ({', '.join(items)})? [y/N] ")


def _forget_approvals(state: Path, server: str) -> int:
    """Forget what was allowed of a server; of how many tools. Raises ConfigError."""
    number = 0

    def without(data: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal number
        approved = from_toml(data)
        kept = [tool for tool in approved if tool.server != server]
        number = len(approved) - len(kept)
        return to_toml(kept)

    path = state / f"{APPROVALS}.toml"
    if path.exists():
        update_toml(path, without, remark)
    return number
