"""The folders shared with a server, and the check of each.

Specification: client/roots.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from mcphost.config import Config, ResolvedRoot, home_folder
from mcphost.lazy_dataclass import dataclass

ResolveRoots = Callable[[Config, str], Sequence[ResolvedRoot]]
"""The ``roots`` of a server's entry, their references resolved; called in a thread. Raises ConfigError."""

_PRIVATE: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config", ".kube", ".docker", ".password-store", ".local/share/keyrings",
    "Library/Keychains", "Library",
)  # fmt: skip
"""Folders below home that hold keys and passwords."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder as a server receives it: its percent-encoded ``file://`` URI, and a name."""

    uri: str
    name: str

    @classmethod
    def of(cls, path: Path, name: str | None = None) -> Root:
        """The root of an absolute path; the default name is that of the folder. Raises ValueError."""
        called = name or path.name or path.as_posix()
        # A folder's name may hold bytes that are not text; the URI preserves them, JSON could not.
        return cls(path.as_uri(), called.encode("utf-8", "replace").decode())

    def as_object(self) -> dict[str, str]:
        return {"uri": self.uri, "name": self.name}


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """The result of checking ``given``. ``problem``: why it is not shared; ``warning``: a caution before sharing it."""

    given: Path
    path: Path
    """The same without links and ``..``: the path that a server gets."""
    problem: str = ""
    warning: str = ""


def check_folder(given: Path) -> FolderCheck:
    """Look at a folder. Never raises."""
    folder = Path(os.path.expanduser(given))
    if not folder.is_absolute():
        return FolderCheck(given, given, "is not an absolute path")
    try:
        path = folder.resolve(strict=True)
    except FileNotFoundError:
        return FolderCheck(given, folder, "does not exist")
    except (OSError, RuntimeError, ValueError) as error:
        return FolderCheck(given, folder, f"cannot be found: {getattr(error, 'strerror', None) or error}")
    if not path.is_dir():
        return FolderCheck(given, path, "is not a folder")
    if not os.access(path, os.R_OK | os.X_OK):
        return FolderCheck(given, path, "cannot be read by you")
    return FolderCheck(given, path, "", _warning(folder, path))


def suggestions(start: Path) -> tuple[Path, ...]:
    """Folders that are likely meant: the git work tree that ``start`` lies in, and ``start`` itself."""
    here = check_folder(start)
    if here.problem:
        return ()
    tree = next((each for each in (here.path, *here.path.parents) if (each / ".git").exists()), here.path)
    return tuple(path for path in dict.fromkeys((tree, here.path)) if not check_folder(path).warning)


def _warning(folder: Path, path: Path) -> str:
    home = (home_folder() or Path(path.anchor)).resolve()
    if path == path.parent or path == home or path in home.parents:
        return "this is far more than a project: everything of yours lies in it"
    if any(path == home / name or home / name in path.parents for name in _PRIVATE):
        return "programs keep keys and passwords here"
    # What was written need not be what is shared.
    return "" if os.path.abspath(folder) == str(path) else f"it is reached over a link; the server gets {path}"


def plain_roots(config: Config, server: str) -> Sequence[ResolvedRoot]:
    """The ``roots`` of an entry where nothing in them is a reference."""
    return [ResolvedRoot(Path(os.path.expanduser(root.path)), root.name) for root in config.servers[server].roots]
