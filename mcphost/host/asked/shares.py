"""Which folders the user lets servers know of: for one server or all, for this run or remembered.

Knows grants and how they are kept. Refuses to know the disk and the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

STATE: Final = "roots"
"""The state file of what is remembered."""


@dataclass(frozen=True, slots=True)
class SharedRoot:
    """One folder for one server (None: for all). ``path`` is where it really was when it was shared.

    ``identity`` is what runs the server, as shown then: another program under its name gets nothing.
    """

    server: str | None
    path: Path
    name: str | None = None
    identity: str = ""
    remembered: bool = False

    @property
    def key(self) -> tuple[str | None, Path]:
        """No two shares have the same."""
        return self.server, self.path

    def reaches(self, server: str, identity: str) -> bool:
        """May this server, run by this, know of it?"""
        return self.server is None or (self.server, self.identity) == (server, identity)


class SharedRoots:
    """All that was shared on screen, by a flag or in earlier runs; in the order it was shared."""

    def __init__(self, shares: Iterable[SharedRoot] = ()) -> None:
        self._shares = {share.key: share for share in shares}

    def add(self, share: SharedRoot) -> None:
        """Share a folder; one that was remembered stays so."""
        self._shares[share.key] = share

    def remove(self, server: str | None, path: Path) -> SharedRoot | None:
        """Share it no more; what was shared."""
        return self._shares.pop((server, path), None)

    def for_all(self) -> list[SharedRoot]:
        """What every server may know of."""
        return [share for share in self._shares.values() if share.server is None]

    def reaching(self, server: str, identity: str) -> list[SharedRoot]:
        """What this server may know of, its own first."""
        fitting = [share for share in self._shares.values() if share.reaches(server, identity)]
        return sorted(fitting, key=lambda share: share.server is None)


def from_toml(data: Mapping[str, Any]) -> list[SharedRoot]:
    """What is remembered; an entry that makes no sense shares nothing."""
    folders = data.get("folders")
    return [share for entry in (folders if isinstance(folders, list) else ()) if (share := _read(entry)) is not None]


def with_share(data: Mapping[str, Any], share: SharedRoot) -> dict[str, Any]:
    """The state with one more."""
    others = [each for each in from_toml(data) if each.key != share.key]
    return {"folders": [_table(each) for each in (*others, share)]}


def without_share(data: Mapping[str, Any], share: SharedRoot) -> dict[str, Any]:
    """The state with one less."""
    return {"folders": [_table(each) for each in from_toml(data) if each.key != share.key]}


def _table(share: SharedRoot) -> dict[str, Any]:
    named = {"server": share.server, "name": share.name, "identity": share.identity or None}
    return {"path": str(share.path), **{key: value for key, value in named.items() if value is not None}}


def _read(entry: object) -> SharedRoot | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        return None
    path, server, name = Path(entry["path"]), entry.get("server"), entry.get("name")
    identity = entry.get("identity", "")
    if not path.is_absolute() or not all(isinstance(each, str | None) for each in (server, name)):
        return None
    if not isinstance(identity, str) or (server is not None and not identity):
        return None
    return SharedRoot(server, path, name, identity, remembered=True)
