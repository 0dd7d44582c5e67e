"""Reads bundles (``.mcpb``, formerly ``.dxt``): a server as a ZIP archive with a manifest.

A bundle is unpacked into a folder whose name holds its SHA-256: the folder is in the server's command line, so
approvals hold for exactly these bytes. Everything here blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from mcphost.errors import ConfigError
from mcphost.imports.documents import read_document
from mcphost.imports.found import FoundServer, ImportNote, Input, Origin, legal_name
from mcphost.imports.inputs import Placeholder, input_id, join, placeholder
from mcphost.json_values import as_dict, as_list, is_number, texts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.posix import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT, owned_by_us
from mcphost.protocol.display import show_line, size_text

BUNDLES: Final = "bundles"
"""The folder in the state folder to which bundles are unpacked."""

MOST_PACKED: Final = 512_000_000
"""Bytes of a bundle."""

MOST_UNPACKED: Final = 1_500_000_000
"""Bytes of all its files; the largest real bundles, with a browser in them, have about a third of that."""

MOST_RATIO: Final = 100
"""Ratio of the size of the files to that of the bundle, above `FREE_RATIO`; text shrinks to a tenth at best."""

FREE_RATIO: Final = 50_000_000

MOST_ENTRIES: Final = 50_000
"""Files and folders; ``node_modules`` may have ten thousand."""

MOST_DIRECTORY: Final = 8_000_000
"""Bytes of the archive's directory, which is read into memory."""

MOST_MANIFEST: Final = 1_000_000
MOST_NAME: Final = 1000
MOST_DEPTH: Final = 40

_CHUNK: Final = 1 << 18
_END_RECORD: Final = struct.Struct("<4s4H2LH")
_END_MAGIC: Final = b"PK\x05\x06"
_LARGE_MAGIC: Final = b"PK\x06\x07"
_FILE_MAGIC: Final = b"PK\x03\x04"
_SIGNATURE_START: Final = b"MCPB_SIG_V1"
_SIGNATURE_END: Final = b"MCPB_SIG_END"
_SIGNATURE_BYTES: Final = 1_000_000

_ENCRYPTED: Final = 0x1 | 0x40
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_UNSAFE_NAME: Final = re.compile(r"[\x00-\x1f\x7f\\:]")
_REFERENCE: Final = re.compile(r"\$\{([^{}]{1,200})\}")
_FOLDER: Final = re.compile(r"[A-Za-z0-9_].*-[0-9a-f]{32}")
_KINDS: Final = ("node", "python", "binary", "uv")
_FOLDERS: Final = {"DESKTOP": "Desktop", "DOCUMENTS": "Documents", "DOWNLOADS": "Downloads"}


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine on which a bundle is configured."""

    home: Path
    platform: str = sys.platform
    has_program: Callable[[str], object] = shutil.which


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was read and checked, and not unpacked yet. Close ``archive``, our copy of it, in the end."""

    archive: IO[bytes] = field(repr=False)
    sha256: str
    signed: bool
    """True if the bundle has a signature, which is not verified."""
    manifest: Mapping[str, Any]
    entries: tuple[zipfile.ZipInfo, ...] = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def version(self) -> str:
        return str(self.manifest["version"])

    @property
    def signature_text(self) -> str:
        return "signed, not verified" if self.signed else "not signed"

    def folder(self, bundles: Path) -> Path:
        """The folder in ``bundles`` that it is unpacked to: ``NAME-VERSION-`` and 32 digits of its SHA-256."""
        name, version = legal_name(self.name, "bundle"), legal_name(self.version, "0")
        return bundles / f"{name[:48]}-{version[:32]}-{self.sha256[:32]}"


def private_file(bundles: Path) -> IO[bytes]:
    """An empty file without a name on the disk of the bundles. Raises ConfigError."""
    try:
        bundles.mkdir(mode=0o700, parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=bundles)
    except OSError as error:
        raise ConfigError(f"cannot be written to: {_words(error)}", path=bundles) from None


def copy_bundle(path: Path, bundles: Path) -> IO[bytes]:
    """Copy the file at ``path``, so that it cannot change while it is read. Raises ConfigError."""
    copy = private_file(bundles)
    try:
        with open(os.open(path, os.O_RDONLY | NO_WAIT), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError("is not a regular file; name one that is", path=path)
            size = 0
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                if size > MOST_PACKED:
                    raise ConfigError(f"is larger than {size_text(MOST_PACKED)}", path=path)
                copy.write(chunk)
    except OSError as error:
        copy.close()
        raise ConfigError(f"cannot be read: {_words(error)}", path=path) from None
    except BaseException:
        copy.close()
        raise
    return copy


def open_bundle(archive: IO[bytes], sha256: str = "") -> Bundle:
    """Check all of a bundle, and read its manifest. ``archive`` is a private file, which is changed.

    ``sha256`` is what the bundle must have, if that is known. Raises ConfigError.
    """
    digest = _digest(archive)
    if sha256 and digest != sha256:
        raise ConfigError(f"has the SHA-256 {digest}, and {sha256} was announced: it is not the same file")
    try:
        signed = _cut_signature(archive)
        _check_directory(archive)
        with zipfile.ZipFile(archive) as opened:
            entries = tuple(_checked_entries(opened.infolist()))
            _check_size(entries, archive)
            manifest = _manifest(opened, entries)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OSError, struct.error) as error:
        raise ConfigError(f"is not a readable bundle ({_words(error)})") from None
    return Bundle(archive, digest, signed, manifest, entries)


def unpack(bundle: Bundle, bundles: Path) -> Path:
    """Unpack a bundle into its folder in ``bundles``, unless that is there already; return the folder.

    Files are readable by this user alone; only the programs that the manifest names are executable. Raises ConfigError.
    """
    folder = bundle.folder(bundles)
    try:
        bundles.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_symlink() or (folder.exists() and not owned_by_us(folder.lstat())):
            raise ConfigError("is not a folder of yours; remove it")
        if folder.exists():
            return folder
        fresh = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=bundles))
        try:
            _extract(bundle, fresh)
            fresh.rename(folder)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    except ConfigError as error:
        raise ConfigError(error.message, path=folder) from None
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OSError) as error:
        if folder.is_dir() and not folder.is_symlink():  # another mcphost was faster
            return folder
        raise ConfigError(f"cannot be unpacked: {_words(error)}", path=folder) from None
    return folder


def discard(folder: Path) -> None:
    """Remove an unpacked bundle; a folder of any other name is left alone."""
    if _FOLDER.fullmatch(folder.name) and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)


def read_bundle(bundle: Bundle, bundles: Path, place: str, machine: Machine) -> FoundServer:
    """Describe the server of a bundle as it runs once it is unpacked."""
    manifest, folder = bundle.manifest, bundle.folder(bundles)
    files = frozenset(entry.filename for entry in bundle.entries if not entry.is_dir())
    reader = _ManifestReader(manifest, folder, files, machine)
    notes = (ImportNote("signature", bundle.signature_text),)
    try:
        table, refusal = reader.table(), ""
    except ConfigError as error:
        table, refusal = {}, error.message
    return FoundServer(
        name=legal_name(bundle.name),
        origin=Origin("bundle", place, bundle.name, bundle.sha256),
        table=table,
        inputs=() if refusal else tuple(reader.inputs.values()),
        notes=(*notes, *reader.notes),
        refusal=refusal,
        description=_text(manifest, "description"),
    )


def _digest(archive: IO[bytes]) -> str:
    archive.seek(0)
    return hashlib.file_digest(archive, "sha256").hexdigest()  # type: ignore[arg-type]


def _cut_signature(archive: IO[bytes]) -> bool:
    """Cut the signature off, so that only the archive is left. Say whether there was one."""
    size = archive.seek(0, os.SEEK_END)
    archive.seek(max(0, size - _SIGNATURE_BYTES))
    tail = archive.read()
    end = tail.rfind(_SIGNATURE_END)
    start = tail.rfind(_SIGNATURE_START, 0, end) if end >= 0 else -1
    if start < 0 or end + len(_SIGNATURE_END) != len(tail):
        return False
    archive.truncate(size - len(tail) + start)
    return True


def _check_directory(archive: IO[bytes]) -> None:
    """Look at the record at the end before `zipfile` reads the directory, as large as it claims to be, into memory."""
    archive.seek(0)
    if archive.read(4) != _FILE_MAGIC:
        raise ConfigError("is not a bundle: it is not a ZIP archive, or something precedes it")
    size = archive.seek(0, os.SEEK_END)
    archive.seek(max(0, size - (1 << 16) - _END_RECORD.size))
    tail = archive.read()
    at = tail.rfind(_END_MAGIC)
    if at < 0 or len(tail) - at < _END_RECORD.size:
        raise ConfigError("is not a readable bundle: its end is missing")
    _, _, _, _, entries, directory, _, _ = _END_RECORD.unpack_from(tail, at)
    # A record for larger archives would stand before this one, and say something else.
    if entries > MOST_ENTRIES or directory > MOST_DIRECTORY or _LARGE_MAGIC in tail[max(0, at - 20) : at]:
        raise ConfigError(f"holds more than {MOST_ENTRIES:,} files, or names of too many bytes")


def _checked_entries(entries: Sequence[zipfile.ZipInfo]) -> Iterator[zipfile.ZipInfo]:
    if len(entries) > MOST_ENTRIES:
        raise ConfigError(f"holds more than {MOST_ENTRIES:,} files")
    files: set[str] = set()
    folders: set[str] = set()
    for entry in entries:
        _check_entry(entry)
        path = _key(entry.filename)
        parents = {_key(str(each)) for each in PurePosixPath(entry.filename).parents} - {"."}
        # Also names that differ in case or Unicode form only, which are the same file on some disks.
        if path in files or (path in folders and not entry.is_dir()) or parents & files:
            raise ConfigError(f"holds {_shown(entry)} twice")
        (folders if entry.is_dir() else files).add(path)
        folders |= parents
        yield entry


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    parts = name.rstrip("/").split("/")
    # A name is cut at a NUL; ``orig_filename`` is what stood there.
    if _UNSAFE_NAME.search(entry.orig_filename) or len(name) > MOST_NAME or len(parts) > MOST_DEPTH:
        raise ConfigError(f"holds a file of a name that no file should have: {_shown(entry)}")
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ConfigError(f"holds a file that would be written elsewhere: {_shown(entry)}")
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFDIR if entry.is_dir() else stat.S_IFREG):
        raise ConfigError(f"holds a link or a device: {_shown(entry)}")
    if entry.flag_bits & _ENCRYPTED:
        raise ConfigError(f"is encrypted: {_shown(entry)}")
    if entry.compress_type not in _METHODS:
        raise ConfigError(f"is compressed in a way that bundles are not: {_shown(entry)}")


def _check_size(entries: Sequence[zipfile.ZipInfo], archive: IO[bytes]) -> None:
    packed, unpacked = archive.seek(0, os.SEEK_END), sum(entry.file_size for entry in entries)
    if unpacked > MOST_UNPACKED or unpacked > max(FREE_RATIO, MOST_RATIO * packed):
        raise ConfigError(f"would become {size_text(unpacked)} of files, which is too much")


def _manifest(opened: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo]) -> Mapping[str, Any]:
    found = next((entry for entry in entries if entry.filename == "manifest.json"), None)
    if found is None:
        raise ConfigError("is not a bundle: it holds no manifest.json")
    if found.file_size > MOST_MANIFEST:
        raise ConfigError(f"has a manifest.json larger than {size_text(MOST_MANIFEST)}")
    try:
        with opened.open(found) as file:
            manifest = read_document(file.read(MOST_MANIFEST + 1), "json")
    except ConfigError as error:
        raise ConfigError(f"has a manifest.json that {error.message}") from None
    except Exception as error:  # zlib.error, and whatever else a damaged stream raises
        raise ConfigError(f"has a manifest.json that cannot be read ({_words(error)})") from None
    if not isinstance(manifest, dict):
        raise ConfigError("has a manifest.json that is not an object")
    for key in ("name", "version"):
        if not _text(manifest, key):
            raise ConfigError(f"has a manifest.json without {key}")
    if not isinstance(manifest.get("server"), dict):
        raise ConfigError("has a manifest.json without server")
    return manifest


def _extract(bundle: Bundle, folder: Path) -> None:
    programs = set(_programs(bundle.manifest))
    left = sum(entry.file_size for entry in bundle.entries)
    with zipfile.ZipFile(bundle.archive) as opened:
        for entry in bundle.entries:
            target = folder.joinpath(*entry.filename.rstrip("/").split("/"))
            (target if entry.is_dir() else target.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
            if not entry.is_dir():
                left -= _write(opened, entry, target, 0o700 if entry.filename in programs else 0o600, left)


def _write(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, mode: int, left: int) -> int:
    """Write one file and return its size; the announced sizes of all files together are not exceeded."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
    size = 0
    try:
        with os.fdopen(os.open(target, flags, mode), "wb") as file, opened.open(entry) as packed:
            while chunk := packed.read(_CHUNK):
                size += len(chunk)
                if size > left:
                    raise ConfigError("holds more than it announces")
                file.write(chunk)
    except (zipfile.BadZipFile, OSError, ConfigError):
        raise
    except Exception as error:  # zlib.error, and whatever else a damaged stream raises
        raise ConfigError(f"{_shown(entry)} cannot be unpacked: {_words(error)}") from None
    return size


def _programs(manifest: Mapping[str, Any]) -> Iterator[str]:
    """The files of a bundle that may be executable: its entry point, and the commands inside it."""
    server = manifest["server"]
    config = as_dict(server.get("mcp_config"))
    several = [config, *as_dict(config.get("platform_overrides")).values()]
    commands = [each.get("command") for each in several if isinstance(each, dict)]
    for path in (server.get("entry_point"), *commands):
        if isinstance(path, str):
            inside = path.removeprefix("${__dirname}").replace("${/}", "/").replace("${pathSeparator}", "/")
            yield str(PurePosixPath(inside.lstrip("/")))


class _ManifestReader:
    """Translates the configuration in a manifest."""

    def __init__(self, manifest: Mapping[str, Any], folder: Path, files: frozenset[str], machine: Machine) -> None:
        self._manifest, self._folder, self._files, self._machine = manifest, folder, files, machine
        self.inputs: dict[str, Input] = {}
        self.notes: list[ImportNote] = []

    def table(self) -> dict[str, Any]:
        """The server's table. Raises ConfigError where it cannot run here, or is not described as it must be."""
        self._check_compatibility()
        server = self._manifest["server"]
        kind = _text(server, "type")
        if kind not in _KINDS:
            raise ConfigError(f"its manifest names no kind of server that is known: {show_line(kind, 40)}")
        config = self._config(server, kind)
        self._note_runtimes()
        command = self._command(_text(config, "command"))
        args = [self._text(text) for text in _texts(config, "args")]
        env = {name: self._text(text) for name, text in _text_table(config, "env").items()}
        table = {"command": command, "args": args, "env": env, "cwd": join([str(self._folder)])}
        return {key: value for key, value in table.items() if value}

    def _config(self, server: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
        config = server.get("mcp_config")
        if config is None and kind == "uv":
            entry_point = _text(server, "entry_point")
            if not entry_point:
                raise ConfigError("its manifest names no entry_point")
            return {"command": "uv", "args": ["run", "--directory", "${__dirname}", entry_point]}
        if not isinstance(config, dict) or not _text(config, "command"):
            raise ConfigError("its manifest names no command")
        overrides = as_dict(config.get("platform_overrides"))
        return {**config, **as_dict(overrides.get(self._machine.platform))}

    def _command(self, command: str) -> str:
        """The program: a file of the bundle, a path, or a program on PATH."""
        if ".." in PurePosixPath(command).parts:
            raise ConfigError("its command leads out of the bundle")
        if command.startswith(("/", "${")):
            return self._text(command)
        inside = str(PurePosixPath(command))
        if inside in self._files or "/" in command:
            return join([str(self._folder / inside)])
        if command == "python" and not self._has("python") and self._has("python3"):
            self.notes.append(ImportNote("command", "python is called python3 here"))
            return "python3"
        if not self._has(command):
            self.notes.append(ImportNote("command", f"{show_line(command, 80)} is not installed here"))
        return self._text(command)

    def _has(self, program: str) -> bool:
        return bool(self._machine.has_program(program))

    def _note_runtimes(self) -> None:
        wants = as_dict(self._manifest.get("compatibility"))
        for program, version in as_dict(wants.get("runtimes")).items():
            if program in ("node", "python") and isinstance(version, str):
                self.notes.append(ImportNote("runtimes", f"it needs {program} {show_line(version, 80)}"))

    def _check_compatibility(self) -> None:
        platforms = as_list(as_dict(self._manifest.get("compatibility")).get("platforms"))
        if platforms and self._machine.platform not in platforms:
            named = ", ".join(show_line(str(each), 20) for each in platforms[:5])
            raise ConfigError(f"it does not run on {self._machine.platform}, only on {named}")

    def _text(self, text: str) -> str:
        """A text of the manifest with its variables, as a table's text."""
        return join(self._pieces(text))

    def _pieces(self, text: str) -> Iterator[str | Placeholder]:
        position = 0
        for match in _REFERENCE.finditer(text):
            yield text[position : match.start()]
            position = match.end()
            yield self._variable(match[1], match[0])
        yield text[position:]

    def _variable(self, name: str, whole: str) -> str | Placeholder:
        if name == "__dirname":
            return str(self._folder)
        if name in ("/", "pathSeparator"):
            return os.sep
        if name == "HOME":
            return str(self._machine.home)
        if name in _FOLDERS:
            return str(self._machine.home / _FOLDERS[name])
        if name.startswith("user_config."):
            return self._input(name.removeprefix("user_config."))
        return whole

    def _input(self, key: str) -> Placeholder:
        entry = as_dict(self._manifest.get("user_config")).get(key)
        if not isinstance(entry, dict):
            raise ConfigError(f"its manifest uses user_config.{show_line(key, 40)}, and does not describe it")
        asked = Input(
            id=input_id(key),
            description=_user_description(entry),
            secret=entry.get("sensitive") is True,
            required=entry.get("required") is True,
            default=self._default(entry.get("default")),
            choices=("true", "false") if entry.get("type") == "boolean" else (),
            several=entry.get("multiple") is True,
        )
        if self.inputs.setdefault(asked.id, asked) != asked:
            raise ConfigError("its manifest asks for two values of nearly the same name")
        return placeholder(asked.id)

    def _default(self, value: object) -> str | None:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return str(value)
        if isinstance(value, list):
            return "\n".join(map(self._plain, texts_in(value))) or None
        return self._plain(value) if isinstance(value, str) and value else None

    def _plain(self, text: str) -> str:
        """A default with the folders it names; an input's value is not looked for in a default."""
        known = (name for name in _REFERENCE.findall(text) if not name.startswith("user_config."))
        for name in known:
            replaced = self._variable(name, f"${{{name}}}")
            text = text.replace(f"${{{name}}}", replaced) if isinstance(replaced, str) else text
        return text


def _user_description(entry: Mapping[str, Any]) -> str:
    title, said = _text(entry, "title"), _text(entry, "description")
    kind = {"directory": "a folder", "file": "a file", "number": "a number"}.get(_text(entry, "type"), "")
    bounds = [f"{word} {entry[key]}" for key, word in (("min", "from"), ("max", "to")) if is_number(entry.get(key))]
    more = " ".join(filter(None, (kind, *bounds)))
    return ": ".join(filter(None, (title, said))) + (f" ({more})" if more else "")


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) and len(value) <= 10_000 and "\0" not in value else ""


def _texts(table: Mapping[str, Any], key: str) -> list[str]:
    values = table.get(key, [])
    if not isinstance(values, list) or len(values) > 1000 or not all(isinstance(each, str) for each in values):
        raise ConfigError(f"{key} in its manifest is not a list of texts")
    return values


def _text_table(table: Mapping[str, Any], key: str) -> dict[str, str]:
    values = table.get(key, {})
    if not isinstance(values, dict) or len(values) > 1000 or not all(isinstance(each, str) for each in values.values()):
        raise ConfigError(f"{key} in its manifest is not a table of texts")
    return values


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name.rstrip("/")).casefold()


def _shown(entry: zipfile.ZipInfo) -> str:
    return show_line(entry.orig_filename, 200)


def _words(error: BaseException) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return show_line(reason, 200) or type(error).__name__
