"""The servers with skills of `tests/servers`, in this process: their files can be changed, and their reads counted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "servers"))  # the scripts there import each other by bare names

from skills import FILES, PICTURE, Shelf, SkillServer
from skills_hostile import PILOTS, TABLE, TIDES, spoiled
from web import Web

__all__ = ["FILES", "PICTURE", "PILOTS", "TABLE", "TIDES", "Shelf", "SkillServer", "at_url", "spoiled"]


@contextmanager
def at_url(server: SkillServer) -> Iterator[str]:
    """The URL of the server."""
    with Web(server.visit) as web:
        yield web.url
