"""The files in which mcphost keeps what it learns: one private folder, written whole or not at all.

Knows how to keep such files from other users and from half-written content; refuses to know what is in them,
except for the list of trusted project files. Everything here waits for the disk: call it in a thread.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from mcphost.config.files import owned_by_us, read_regular
from mcphost.errors import ConfigError

MAX_STATE_BYTES = 16 * 1024 * 1024
"""Bytes of one state file; what we write ourselves never comes near it."""

Report = Callable[[str], None]
"""Takes a sentence for the user."""


def state_folder(env: Mapping[str, str]) -> Path:
    """Return the state folder, made if need be, readable by this user alone.

    ``$MCPHOST_STATE_DIR`` if set, else the platform's. Raises ConfigError when it cannot be ours.
    """
    folder = _place(env)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A link that another user planted would lead our files to where that user wants them.
        if not (owned_by_us(folder.lstat()) and owned_by_us(folder.stat())):
            raise ConfigError("the state folder belongs to another user; set MCPHOST_STATE_DIR", path=folder)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        reason = f"cannot be used as state folder: {error.strerror}; set MCPHOST_STATE_DIR"
        raise ConfigError(reason, path=folder) from None
    return folder


def read_toml(path: Path, report: Report) -> dict[str, Any]:
    """Return the content of a state file; empty when there is none.

    A damaged file is set aside as ``NAME.damaged-N`` and reported, then counts as none. Raises ConfigError for
    a file that is not ours to read: a link, a device, another user's.
    """
    try:
        content = read_regular(path, MAX_STATE_BYTES, ours=True)
    except FileNotFoundError:
        return {}
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        kept = _set_aside(path)
    report(f"{path} was damaged; it is kept as {kept.name}, and mcphost starts it anew")
    return {}


def write_toml(path: Path, data: Mapping[str, Any]) -> None:
    """Replace the state file by ``data``, mode 0600: readers see the old content or the new, whatever happens.

    Raises ConfigError when the disk does not let us; the old content is then untouched.
    """
    import tomli_w  # late: reading needs none of it

    content = tomli_w.dumps(data).encode()
    try:
        _replace(path, content)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=path) from None


class TrustedFolders:
    """Which projects' ``mcphost.toml`` the user trusts: by canonical path and by content."""

    def __init__(self, file: Path, report: Report) -> None:
        self._file, self._report = file, report

    def verdict(self, path: Path, digest: str) -> Literal["trusted", "changed", "unknown"]:
        """Say whether the file at ``path`` with this SHA-256 (``Loaded.digest``) is the one that was trusted."""
        known = self._records().get(_canonical(path))
        return "unknown" if known is None else "trusted" if known == digest else "changed"

    def trust(self, path: Path, digest: str) -> None:
        """Remember that the user trusts ``path`` as long as its content has this SHA-256."""
        self._write({**self._records(), _canonical(path): digest})

    def forget(self, path: Path) -> None:
        """Ask again about ``path`` the next time."""
        name = _canonical(path)
        self._write({known: digest for known, digest in self._records().items() if known != name})

    def _records(self) -> dict[str, str]:
        files = read_toml(self._file, self._report).get("files")
        return {} if not isinstance(files, dict) else {str(path): str(digest) for path, digest in files.items()}

    def _write(self, records: Mapping[str, str]) -> None:
        write_toml(self._file, {"files": dict(sorted(records.items()))})


def _place(env: Mapping[str, str]) -> Path:
    if named := env.get("MCPHOST_STATE_DIR"):
        return Path(os.path.expanduser(named)).absolute()
    from platformdirs import user_state_path  # late: rarely the first thing needed

    return user_state_path("mcphost", appauthor=False)


def _canonical(path: Path) -> str:
    # A file name may hold bytes that are no text, which TOML could not keep.
    return str(path.resolve()).encode("utf-8", "backslashreplace").decode()


def _set_aside(path: Path) -> Path:
    taken = {entry.name for entry in path.parent.iterdir()}
    names = (f"{path.name}.damaged-{number}" for number in range(1, len(taken) + 2))
    kept = path.with_name(next(name for name in names if name not in taken))
    try:
        path.rename(kept)
    except OSError as error:
        raise ConfigError(f"is damaged and cannot be set aside: {error.strerror}", path=path) from None
    return kept


def _replace(path: Path, content: bytes) -> None:
    import tempfile  # late, as above

    # mkstemp makes a new file with mode 0600 and follows no link; the same folder keeps the rename atomic.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where folders can be opened at all."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
