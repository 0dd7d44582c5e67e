"""Finds the folders of unpacked bundles that the user's servers use, and removes those that none uses any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mcphost.config import servers_path, state_folder, users_path
from mcphost.config.files import read_regular
from mcphost.config.loading import MAX_FILE_BYTES
from mcphost.errors import ConfigError
from mcphost.imports.bundles import BUNDLES, discard


def bundles_folder(env: Mapping[str, str]) -> Path:
    """The folder in the state folder that holds them. Raises ConfigError."""
    return state_folder(env) / BUNDLES


def used_bundles(env: Mapping[str, str]) -> frozenset[str]:
    """The names of the folders that ``servers.toml`` or the user's own configuration names. Blocks on the disk."""
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
    """Remove those of these folders that nothing names any more. Blocks on the disk."""
    for name in set(names) - used_bundles(env):
        discard(bundles_folder(env) / name)
