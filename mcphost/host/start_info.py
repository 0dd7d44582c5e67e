"""What a front is told when it starts: where the settings came from and what is wrong with them.

A value handed from the command line to a screen; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcphost.config import Config
from mcphost.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReloadedConfig:
    """The configuration as its file has it now, and what of it is not used."""

    config: Config
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StartInfo:
    """How this run began."""

    config_path: Path | None
    """The configuration in use; None when there is none."""
    is_demo: bool
    """Does only the built-in demo server run?"""
    problems: tuple[str, ...]
    """Sentences about what of the configuration is not used, and what to do about it."""
    state_folder: Path
    """Where approvals and the audit log are kept."""
    how_to: str
    """How to add servers, in a few lines for somebody who has none."""
    light_terminal: bool = False
    """Is the terminal's background closer to white than to black?"""
    missing: Path | None = None
    """Where a configuration would be, in a run that shows the demo because it found none."""
