"""What the command line tells the screen at its start: where the settings came from, and their problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcphost.config import Config
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReloadedConfig:
    """The configuration as it is on the disk now, and what of it is not used."""

    config: Config
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StartInfo:
    config_path: Path | None
    """The configuration in use; None without one."""
    is_demo: bool
    """Does only the built-in demo server run?"""
    problems: tuple[str, ...]
    """Sentences about what of the configuration is not used, and what to do about it."""
    state_folder: Path
    """Where approvals and the audit log are kept."""
    how_to: str
    """How to add servers, in a few lines."""
    missing: Path | None = None
    """Where a configuration file would be, if none was found and the demo runs instead."""
    fixed: bool = False
    """True if this run takes no servers of other programs: its file is one that mcphost does not write beside."""
    watched: tuple[Path, ...] = ()
    """The files whose changes are noticed; they need not exist."""
    read_at: int | None = None
    """When their reading began, in nanoseconds since 1970."""
    light_terminal: bool = False
    """Is the terminal's background closer to white than to black?"""
