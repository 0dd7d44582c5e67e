"""Finds the folders of unpacked bundles that the user's servers use, and removes those that none uses any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from mcphost.config import servers_path, state_folder, users_path
from mcphost.imports.bundles import discard


def bundles_folder(env: Mapping[str, str]) -> Path:
    """The folder in the state folder that holds them. Raises ConfigError."""
    return state_folder(env) / "bundles"


def used_bundles(env: Mapping[str, str]) -> frozenset[str]:
    """The names of the folders that ``servers.toml`` or the user's own configuration names. Blocks on the disk."""
    texts: list[str] = []
    for path in (servers_path(env), users_path(env)):
        with suppress(OSError):
            texts.append(path.read_text("utf-8", "replace"))
    with suppress(OSError):
        return frozenset(
            each.name for each in bundles_folder(env).iterdir() if any(each.name in text for text in texts)
        )
    return frozenset()


def discard_unused(env: Mapping[str, str], names: Iterable[str]) -> None:
    """Remove those of these folders that nothing names any more. Blocks on the disk."""
    for name in set(names) - used_bundles(env):
        discard(bundles_folder(env) / name)
