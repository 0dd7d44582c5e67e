"""State files: one private folder of TOML files, each written atomically.

Everything here except `named_lock` blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import os
import re
import stat
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, cast

from pydantic_core import ValidationError, to_json

from mcphost.config.files import read_regular
from mcphost.errors import ConfigError
from mcphost.places import state_path
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, owned_by_us, take_lock

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_STATE_BYTES = 16 * 1024 * 1024
"""Bytes of one state file, far above what mcphost writes."""

LOCK_SECONDS = 3.0
"""Seconds to wait for another mcphost that writes the same file; writing takes milliseconds."""

_OWN_NAME = re.compile(
    r"\.?(?:(?:approvals|bearers|chat|declined|eras|imports|layout|pins|remarks|roots|tasks|transports|trusted|wrapped)\.toml"
    r"|audit\.jsonl|agents\.sock|completion\.json"
    r"|history\.sqlite)(?:\.[a-z0-9_]{8}|\.lock|\.damaged-\d+|\.\d+)?(?:-wal|-shm|-journal)?"
    r"|chats|crashes|running|locks|bundles|taps|[0-9a-f]{32}\.lock"
)
"""Names of the files and folders that mcphost keeps in its state folder."""

Report = Callable[[str], None]
"""Takes a sentence for the user."""

Content = TypeVar("Content")


def state_folder(env: Mapping[str, str]) -> Path:
    """Return the state folder, created if necessary, readable by this user alone.

    ``$MCPHOST_STATE_DIR`` if set, else the platform's. Raises ConfigError if it cannot be used.
    """
    folder = state_path(env)
    _make_private(folder, ours=not env.get("MCPHOST_STATE_DIR"))
    return folder


def _make_private(folder: Path, *, ours: bool) -> None:
    """Create the folder, or close it to others where it is mcphost's: ``ours``, empty, or with mcphost's files only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A link planted by another user would redirect our files.
        if not (owned_by_us(folder.lstat()) and owned_by_us(folder.stat())):
            raise ConfigError("the state folder belongs to another user; set MCPHOST_STATE_DIR", path=folder)
        mode = folder.stat().st_mode
        rights = mode & 0o077
        if not rights:
            return
        if mode & stat.S_ISVTX:  # such as /tmp of a new container, which is empty
            raise ConfigError(
                "cannot be used as state folder: it is shared by all users; set MCPHOST_STATE_DIR to a new folder",
                path=folder,
            )
        names = [] if ours and not folder.is_symlink() else os.listdir(folder)
        strange = next((name for name in sorted(names) if not _OWN_NAME.fullmatch(name)), None)
        if strange is None:
            folder.chmod(0o700)
        elif rights & 0o022 or not any(map(_OWN_NAME.fullmatch, names)):
            raise ConfigError(
                f"cannot be used as state folder: it holds other files, such as {strange[:64]!a}, and mcphost would "
                "have to close it to other users; set MCPHOST_STATE_DIR to a new folder",
                path=folder,
            )
    except OSError as error:
        # mkdir reports "exists" for anything in its place, and "not a directory" for a file above it.
        why = "it is not a folder" if os.path.lexists(folder) and not folder.is_dir() else error.strerror
        reason = f"cannot be used as state folder: {why}; set MCPHOST_STATE_DIR to a new folder"
        raise ConfigError(reason, path=folder) from None


def read_toml(path: Path, report: Report) -> dict[str, Any]:
    """Return the content of a state file; empty if it does not exist.

    A damaged file is renamed to ``NAME.damaged-N`` and reported, and counts as none. Raises ConfigError for a link, a
    device or another user's file.
    """
    try:
        content = read_regular(path, MAX_STATE_BYTES, ours=True)
    except FileNotFoundError:
        return {}
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        kept = set_aside(path)
    report(f"{path} was damaged; it is kept as {kept.name}, and mcphost starts a new one")
    return {}


def file_version(path: Path) -> tuple[int, ...] | None:
    """Changes whenever the file is written or replaced. None if it does not exist."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def write_toml(path: Path, data: Mapping[str, Any]) -> None:
    """Replace the state file atomically by ``data``, mode 0600.

    Raises ConfigError if it cannot be written; the old content is then untouched.
    """
    import tomli_w  # late: not needed for reading

    replace_file(path, tomli_w.dumps(data).encode())


def update_toml(path: Path, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], report: Report) -> None:
    """Replace the state file by what ``change`` makes of its content, unless that is equal.

    Holds a lock against other writers, in all processes. Raises ConfigError.
    """
    with locked(path):
        before = read_toml(path, report)
        after = change(before)
        # A missing file is equal to one whose tables are all empty.
        if after != before and (before or any(after.values())):
            write_toml(path, after)


class StateStore:
    """The state files of one folder, by name without suffix. ``report`` takes a sentence for the user."""

    def __init__(self, folder: Path, report: Report) -> None:
        self._folder, self._report = folder, report
        self._paths: dict[str, Path] = {}

    def read(self, name: str) -> Mapping[str, Any]:
        """Return the content of a state file, see `read_toml`."""
        return read_toml(self.path(name), self._report)

    def version(self, name: str) -> object:
        """See `file_version`. Fast enough for the event loop: it reads the folder's entry only."""
        return file_version(self.path(name))

    def update(self, name: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Replace a state file, see `update_toml`."""
        update_toml(self.path(name), change, self._report)

    def path(self, name: str) -> Path:
        path = self._paths.get(name)
        if path is None:  # to make one takes longer than to ask for its version
            path = self._paths[name] = self._folder / f"{name}.toml"
        return path


class StateFile(Generic[Content]):
    """A state file whose content is a ``content``: a dataclass with defaults, or a dictionary type.

    Invalid entries are left out, each by itself, so this is not for files in which a missing entry would allow or share
    more. Values are of exactly the declared types.
    """

    def __init__(self, store: StateStore, name: str, content: Callable[[], Content]) -> None:
        self._store, self._name, self._content = store, name, content

    def read(self) -> Content:
        """Return the content; the empty one if there is no file. Raises ConfigError."""
        return valid_part(self._content, self._store.read(self._name))

    def update(self, change: Callable[[Content], Content]) -> None:
        """Replace the content under a lock against other writers, in all processes. Raises ConfigError."""
        self._store.update(self._name, lambda data: as_plain(change(valid_part(self._content, data))))


def valid_part(content: Callable[[], Content], data: Mapping[str, Any]) -> Content:
    """Read plain data as a ``content``; see `StateFile`. Invalid entries are left out."""
    if not data:  # without building a validator, which takes a millisecond
        return content()
    # JSON, because strict validation then still takes lists for sets and tuples, which TOML does not have.
    adapter: TypeAdapter[Content] = _adapter(content)
    try:
        return adapter.validate_json(to_json(data), strict=True)
    except ValidationError as error:
        places = [problem["loc"] for problem in error.errors(include_url=False)]
    wrong = {key: {place[1] if len(place) > 1 else None for place in places if place[0] == key} for key in data}
    kept = {key: _without(value, wrong[key]) for key, value in data.items()}
    return adapter.validate_json(to_json({key: value for key, value in kept.items() if value is not None}), strict=True)


@cache
def _adapter(content: Callable[[], Content]) -> TypeAdapter[Content]:
    from pydantic import TypeAdapter  # late, as building it: most runs read few state files

    return TypeAdapter(cast(Any, content))


def _without(value: Any, wrong: set[int | str | None]) -> Any:
    """A value without its invalid entries; None if it is not a list or dictionary of which only entries are invalid."""
    if not wrong:
        return value
    if isinstance(value, dict) and wrong <= value.keys():
        return {key: entry for key, entry in value.items() if key not in wrong}
    if isinstance(value, list) and wrong <= {*range(len(value))}:
        return [entry for place, entry in enumerate(value) if place not in wrong]
    return None


def as_plain(content: Any) -> Any:
    """The reverse of `valid_part`: dataclasses as dictionaries, sets as sorted lists."""
    if is_dataclass(content):
        return {field.name: as_plain(getattr(content, field.name)) for field in fields(content)}
    if isinstance(content, Mapping):
        return {key: as_plain(value) for key, value in content.items()}
    if isinstance(content, frozenset):
        return [as_plain(each) for each in sorted(content)]
    if isinstance(content, (list, tuple)):
        return [as_plain(each) for each in content]
    return content


TRUSTED: Final = "trusted"
"""The name of the state file of `TrustedFolders`."""


class TrustedFolders:
    """The trusted project files, by canonical path and content."""

    def __init__(self, store: StateStore) -> None:
        self._file = StateFile(store, TRUSTED, dict[str, dict[str, str]])

    def decision(self, path: Path, digest: str) -> Literal["trusted", "changed", "unknown"]:
        """Compare the file with the one that was trusted; ``digest`` is its SHA-256 (``LoadedConfig.digest``)."""
        known = self._file.read().get("files", {}).get(_canonical(path))
        return "unknown" if known is None else "trusted" if known == digest else "changed"

    def trust(self, path: Path, digest: str) -> None:
        """Trust ``path`` as long as its content has this SHA-256."""
        self._set(path, digest)

    def forget(self, path: Path) -> None:
        """Stop trusting ``path``."""
        self._set(path, None)

    def _set(self, path: Path, digest: str | None) -> None:
        def change(content: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
            files = content.get("files", {})
            files.pop(_canonical(path), None)
            if digest is not None:
                files[_canonical(path)] = digest
            return {"files": dict(sorted(files.items()))}

        self._file.update(change)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file that several mcphosts write. Raises ConfigError after `LOCK_SECONDS`."""
    with _lock(path.with_name(f".{path.name}.lock"), path) as taken:
        _wait_for(taken, path)
        yield


@contextmanager
def folder_locked(path: Path) -> Iterator[None]:
    """As `locked`, by a lock on the folder of the file: a project's folder gets no other file."""
    with _lock(path.parent, path, os.O_RDONLY) as taken:
        _wait_for(taken, path)
        yield


def _wait_for(taken: Callable[[], bool], path: Path) -> None:
    until = time.monotonic() + LOCK_SECONDS
    while not taken():
        if time.monotonic() > until:
            raise _held(path, LOCK_SECONDS)
        time.sleep(0.01)


@asynccontextmanager
async def named_lock(folder: Path, name: str, seconds: float) -> AsyncIterator[None]:
    """Hold the lock ``name`` in ``folder`` against all processes and tasks. Creates the folder if necessary.

    Waits up to ``seconds`` without blocking the event loop. Raises ConfigError after that.
    """
    import asyncio  # late: only sign-ins take such locks

    path = folder / f"{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.lock"
    _make_private(folder, ours=True)
    with _lock(path, path) as taken:
        until = time.monotonic() + seconds
        while not taken():
            if time.monotonic() > until:
                raise _held(path, seconds)
            await asyncio.sleep(0.02)
        yield


@contextmanager
def _lock(file: Path, what: Path, flags: int = os.O_RDWR | os.O_CREAT | NO_FOLLOW) -> Iterator[Callable[[], bool]]:
    """Yield a function that tries to take a lock. The lock ends with the block or the process."""
    try:
        handle = os.open(file, flags | CLOSE_ON_EXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"cannot be locked: {error.strerror}", path=what) from None

    try:
        yield lambda: take_lock(handle)
    finally:
        os.close(handle)


def _held(path: Path, seconds: float) -> ConfigError:
    return ConfigError(f"is held by another mcphost for more than {seconds:g} s", path=path)


def _canonical(path: Path) -> str:
    # A file name may hold bytes that are not text, which TOML cannot hold.
    return str(path.resolve()).encode("utf-8", "backslashreplace").decode()


def set_aside(path: Path) -> Path:
    """Rename a damaged file to ``NAME.damaged-N``, and return that path. Raises ConfigError."""
    taken = {entry.name for entry in path.parent.iterdir()}
    names = (f"{path.name}.damaged-{number}" for number in range(1, len(taken) + 2))
    kept = path.with_name(next(name for name in names if name not in taken))
    try:
        path.rename(kept)
    except OSError as error:
        raise ConfigError(f"is damaged and cannot be set aside: {error.strerror}", path=path) from None
    return kept


def replace_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace a file atomically. Raises ConfigError; the old content is then untouched."""
    try:
        _replace(path, content, mode)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=path) from None


def _replace(path: Path, content: bytes, mode: int) -> None:
    import tempfile  # late: not needed for reading

    # mkstemp makes a new file with mode 0600 and follows no link; the same folder keeps the rename atomic.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if mode != 0o600:
                os.chmod(name, mode)
            os.fsync(handle)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable, if folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
