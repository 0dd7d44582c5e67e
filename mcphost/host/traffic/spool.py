"""Writes the traffic that a tap saw while no screen ran: one file of masked lines for each run.

It loads little, since it runs in the process of the tap. The lines are those of `mcphost.host.traffic.file`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from mcphost.host.private_file import PrivateFile
from mcphost.host.traffic import claim
from mcphost.protocol.limits import MESSAGE_BYTES
from mcphost.redaction import MASK, MIN_SECRET, Mask, command_secrets, looks_secret, redacted, secrets_in

FOLDER: Final = "taps"
"""The folder of the files, in the state folder."""

LONGEST: Final = 64 << 10
"""Bytes kept of one line, unless a person asked for all: more would hold up the pumps while it is masked."""

ROTATE: Final = 16 << 20
"""Bytes after which a new file is begun; the old one keeps its name with ``.1``."""

KEPT: Final = 50
"""Runs of which files are kept."""

_NAME: Final = r"[^A-Za-z0-9_.-]+"
_NAME_CHARACTERS: Final = 40


def spool_path(state: Path, name: str, started: float, pid: int) -> Path:
    """The file of a run, in the folder of spools, from which the oldest are removed."""
    folder = state / FOLDER
    for each in (state, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_old(folder)
    time = datetime.fromtimestamp(started, UTC).strftime("%Y%m%dT%H%M%S")
    return folder / f"{re.sub(_NAME, '-', name)[:_NAME_CHARACTERS]}-{time}-{pid}.jsonl"


def spool_files(state: Path) -> list[Path]:
    """The files of past runs, newest first. Blocks on the disk: call it in a thread."""
    try:
        entries = [each for each in os.scandir(state / FOLDER) if each.name.endswith(".jsonl")]
        found = [(each.stat(follow_symlinks=False).st_mtime, each.path) for each in entries]
    except OSError:
        return []
    return [Path(path) for _, path in sorted(found, reverse=True)]


def _remove_old(folder: Path) -> None:
    for path in spool_files(folder.parent)[KEPT - 1 :]:
        for each in (path, path.with_name(path.name + ".1")):
            with suppress(OSError):
                each.unlink()


FOLDERS: Final = ("PWD", "OLDPWD")
"""Variables that look like passwords by their names, and hold folders."""


SCHEMES: Final = frozenset({"bearer", "basic", "digest", "dpop", "token"})
"""Words before a credential; without them it would not be recognized where it is not known."""


def mask_of(env: Mapping[str, str], command: Sequence[str], headers: Collection[str] = ()) -> Mask:
    """Masks the secrets that a program is given: in variables and arguments, as names and URLs show, and in headers."""
    known = {value for name, value in env.items() if looks_secret(name) and name not in FOLDERS}
    words = (word for value in headers for word in (value, *value.split()))
    known.update(word for word in words if word.lower() not in SCHEMES)
    known.update(command_secrets(command))
    known.update(secret for value in (*env.values(), *command) if "://" in value for secret in secrets_in(value))
    secrets = sorted((value for value in known if len(value) >= MIN_SECRET), key=len, reverse=True)
    if not secrets:
        return lambda text: text
    pattern = re.compile("|".join(map(re.escape, secrets)))
    # Most lines hold none, which a search for each shows in a tenth of the time.
    return lambda text: pattern.sub(MASK, text) if any(secret in text for secret in secrets) else text


class Spool:
    """Appends lines to a file of this user alone. ``failed`` is called once if that is not possible.

    ``first`` comes before the first of them. With ``whole``, lines are as long as messages may be. ``redact`` masks
    what the user named in a text, which may be cut. ``connection`` tells the run from others that write to the file.
    """

    def __init__(
        self,
        path: Path,
        server: str,
        mask: Mask,
        failed: Callable[[OSError], None] = lambda error: None,
        *,
        first: bytes = b"",
        whole: bool = False,
        redact: Callable[[str, bool], str] = lambda text, cut: text,
        connection: int = 1,
    ) -> None:
        self._failed, self._connection = failed, connection
        self._file = PrivateFile(path)
        self._server, self._mask, self._first = server, mask, first
        self._longest, self._rotate = (MESSAGE_BYTES, claim.ROTATE) if whole else (LONGEST, ROTATE)
        self._redact = redact
        self._lines: list[bytes] = []
        self._size = 0
        self._broken = False

    def add(self, source: str, time: float, data: bytes, size: int, dropped: int) -> None:
        """Take one line of the traffic; `flush` writes it, unless many come first."""
        if self._broken:
            return
        lines = [self._gap(time, dropped)] if dropped else []
        if data or not dropped:  # a line without data may only say what is missing at the end
            lines.append(self._line(source, time, data, size))
        self._lines += lines
        self._size += sum(map(len, lines))
        if self._size >= LONGEST:
            self.flush()

    def flush(self) -> None:
        """Append what was taken; a disk that fails is not tried again."""
        lines, self._lines, self._size = b"".join(self._lines), [], 0
        if not lines or self._broken:
            return
        try:
            self._file.append(self._first + lines, self._rotate)
            self._first = b""
        except OSError as error:
            self._broken = True
            self._failed(error)

    def _line(self, source: str, time: float, data: bytes, size: int) -> bytes:
        text = data[: self._longest].decode("utf-8", "replace")
        if "requestState" in text:
            from mcphost.host.traffic.request_state import hide_state  # late: it loads much

            text = hide_state(text)
        cut = size > min(self._longest, len(data))
        note = "stderr" if source == "stderr" else "" if data.lstrip()[:1] in (b"{", b"[") else "stray"
        fields = {
            "direction": "out" if source in ("agent", "gate>server") else "in",
            "text": redacted(self._redact(text, cut), self._mask),
            "size": size,
            **({"injected": True} if source.startswith("gate>") else {}),
            **({"note": note} if note else {}),
            **({"cut": True} if cut else {}),
        }
        return self._json(time, fields)

    def _gap(self, time: float, dropped: int) -> bytes:
        words = f"mcphost left out {dropped} pieces here: they came too fast"
        return self._json(time, {"direction": "in", "text": words, "size": len(words), "note": "malformed"})

    def _json(self, time: float, fields: Mapping[str, object]) -> bytes:
        when = datetime.fromtimestamp(time, UTC).isoformat()
        line = {"time": when, "server": self._server, "connection": self._connection, **fields}
        return json.dumps(line).encode("ascii") + b"\n"
