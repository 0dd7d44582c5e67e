"""The importer of a command, and the folders of unpacked bundles in the state folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mcphost.cli.output import remark
from mcphost.cli.settings import find, users_settings
from mcphost.composition import secret_items
from mcphost.config import servers_path, state_folder, users_path
from mcphost.config.files import read_regular
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.errors import ConfigError, UsageError
from mcphost.imports.bundles import BUNDLES, discard
from mcphost.imports.importer import Importer
from mcphost.imports.remembered import ImportRecords


def open_importer(explicit: str | None, env: Mapping[str, str], *, writes: bool = True) -> Importer:
    """Open the importer over the user's configuration, the state folder and the keychain.

    Raises ConfigError; UsageError with ``writes`` and ``--config``, which leaves ``servers.toml`` out.
    """
    if explicit is not None and writes:
        raise UsageError(
            "--config: this configuration is used alone, without servers.toml; add --print and put the entry into it"
        )
    loaded = users_settings(find(explicit, env)).loaded
    return Importer(servers_path(env), loaded, ImportRecords(state_folder(env), remark), secret_items(env))


def bundles_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of unpacked bundles. Raises ConfigError."""
    return state_folder(env) / BUNDLES


def used_bundles(env: Mapping[str, str]) -> frozenset[str]:
    """Return the names of bundles that ``servers.toml`` or the user's configuration mentions. Blocks on the disk."""
    folder = bundles_folder(env)
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    texts: list[str] = []
    for path in (servers_path(env), users_path(env)):
        try:
            texts.append(read_regular(path, MAX_FILE_BYTES).decode("utf-8", "replace"))
        except FileNotFoundError:
            continue
        except ConfigError:  # it may name any of them
            return frozenset(names)
    return frozenset(name for name in names if any(name in text for text in texts))


def discard_unused(env: Mapping[str, str], names: Iterable[str]) -> None:
    """Remove those of these bundles that no file mentions any more. Blocks on the disk."""
    for name in set(names) - used_bundles(env):
        discard(bundles_folder(env) / name)
