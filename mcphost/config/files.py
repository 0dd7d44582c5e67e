"""Reads files that another user may have prepared: never a device or a pipe, never more than a limit."""

from __future__ import annotations

import os
from pathlib import Path

from mcphost.errors import ConfigError
from mcphost.posix import NotRegularError, open_regular, owned_by_us


def read_regular(path: Path, limit: int, *, ours: bool = False, trusted_owner: bool = False) -> bytes:
    """Return the content of a regular file of at most ``limit`` bytes.

    With ``ours``, for files that mcphost wrote, the path must not be a symbolic link and must belong to this user.
    With ``trusted_owner`` the file must belong to this user or to root. Raises ConfigError, or FileNotFoundError if
    there is no file.
    """
    try:
        handle = open_regular(path, follow_links=not ours)
        try:
            _check(os.fstat(handle), path, limit, ours, trusted_owner)
            # One byte more than allowed: the file may have grown since it was measured.
            with open(handle, "rb", closefd=False) as file:
                content = file.read(limit + 1)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except NotRegularError:
        raise ConfigError(
            f"is not a regular file; {'move it away' if ours else 'name one that is'}", path=path
        ) from None
    except OSError as error:
        if ours and path.is_symlink():  # the system calls it a loop
            reason = "is a link, which mcphost does not follow to its own files; move it away"
            raise ConfigError(reason, path=path) from None
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from None
    if len(content) > limit:
        raise _too_large(path, limit)
    return content


def read_head(path: Path, size: int) -> bytes:
    """Return the first bytes of a regular file. Raises ConfigError, or FileNotFoundError if there is no file."""
    try:
        handle = open_regular(path)
        try:
            return os.read(handle, size)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except NotRegularError:
        raise ConfigError("is not a regular file; name another", path=path) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from None


def require_folder(path: Path) -> None:
    """Raise ConfigError where the folder of a file that is to be written does not exist."""
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist; create it, or name another", path=path)


def text_of(content: bytes) -> str:
    """Decode UTF-8, without the byte order mark that some editors write. Raises UnicodeDecodeError."""
    return content.decode("utf-8-sig")


def _check(status: os.stat_result, path: Path, limit: int, ours: bool, trusted_owner: bool) -> None:
    if status.st_size > limit:
        raise _too_large(path, limit)
    if (ours or (trusted_owner and status.st_uid != 0)) and not owned_by_us(status):
        raise ConfigError("belongs to another user; move it away or take it over", path=path)


def _too_large(path: Path, limit: int) -> ConfigError:
    return ConfigError(f"is larger than {limit:,} bytes; nothing of it was read", path=path)
