"""The importer of a command: over the user's configuration, the state folder and the keychain."""

from __future__ import annotations

from collections.abc import Mapping

from mcphost.cli.output import remark
from mcphost.cli.settings import find, users_settings
from mcphost.composition import secret_items
from mcphost.config import servers_path, state_folder
from mcphost.errors import UsageError
from mcphost.imports.importer import Importer
from mcphost.imports.remembered import ImportRecords


def open_importer(explicit: str | None, env: Mapping[str, str], *, writes: bool = True) -> Importer:
    """Raises ConfigError; UsageError if it is to write and ``--config`` is given, which leaves ``servers.toml`` out."""
    if explicit is not None and writes:
        raise UsageError(
            "--config: this configuration is used alone, without servers.toml; add --print and put the entry into it"
        )
    loaded = users_settings(find(explicit, env)).loaded
    return Importer(servers_path(env), loaded, ImportRecords(state_folder(env), remark), secret_items(env))
