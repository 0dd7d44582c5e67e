"""Makes a server of a recording for one run: it starts ``mcphost replay``, and nothing of the recording."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final

from mcphost.config import RecordedServer
from mcphost.host.recordings.reading import read_recording
from mcphost.host.recordings.recording import RecordedSession, RecordingFacts
from mcphost.host.recordings.replayed_server import server_in
from mcphost.protocol.display import show_line

NAME_CHARACTERS: Final = 40
"""Characters of a server's name in that of its recording."""


def mounted_server(file: str, taken: Collection[str]) -> tuple[str, RecordedServer]:
    """A free name, and the server that replays the recording in this file. Blocks on the disk; raises NotDone."""
    path = Path(os.path.expanduser(file)).absolute()
    recording = read_recording(path)
    server = server_in(recording)
    sessions = [each for each in recording.sessions if each.server == server]
    # -P keeps the working directory, which may be anybody's project, off the import path.
    program = ("-P", "-m", "mcphost", "replay", str(path), "--server", server)
    words = _words(server, sessions, recording.facts)
    entry = RecordedServer.model_construct(command=sys.executable, args=program, recording=words)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", server).strip("-.")[:NAME_CHARACTERS].strip("-.") or "server"
    numbered = (f"{plain}-recorded" + (f"-{number}" if number > 1 else "") for number in count(1))
    return next(name for name in numbered if name not in taken), entry


def _words(server: str, sessions: Sequence[RecordedSession], facts: RecordingFacts | None) -> str:
    """Such as ``git, on 27 Nov 2026 at 14:44 by tap: 12 requests of 2025-11-25``."""
    requests = sum(len(session.exchanges) for session in sessions)
    when = ""
    with suppress(ValueError, OverflowError, OSError):  # a file may name a time that no calendar has
        started = datetime.fromtimestamp(min(session.started for session in sessions))
        when = f", on {started.day} {started:%b %Y at %H:%M}"
    by = f" by {show_line(facts.recorded_by, 40)}" if facts is not None and facts.recorded_by else ""
    revision = next((f" of {show_line(each.revision, 20)}" for each in sessions if each.revision), "")
    return f"{show_line(server, 80)}{when}{by}: {requests} request{'s' if requests != 1 else ''}{revision}"
