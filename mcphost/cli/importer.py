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


def open_importer(explicit: str | None, env: Mapping[str, str]) -> Importer:
    """Raises UsageError with ``--config``, under which ``servers.toml`` is not read; ConfigError."""
    if explicit is not None:
        raise UsageError(
            "--config: this configuration is used alone, without servers.toml; add --print and put the entry into it"
        )
    loaded = users_settings(find(None, env)).loaded
    return Importer(servers_path(env), loaded, ImportRecords(state_folder(env), remark), secret_items(env))
