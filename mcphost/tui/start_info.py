"""Facts from the command line for the screen: the origin of the settings, and their problems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcphost.config import Config
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReloadedConfig:
    """The configuration as it is on the disk now, and sentences about unused parts of it."""

    config: Config
    problems: Sequence[str] = ()

    def in_profile(self, name: str | None) -> ReloadedConfig:
        """The same as this profile has it; None: with every server. Raises ConfigError for an unknown profile."""
        if name is None:
            return self
        from mcphost.config.profiles import in_profile  # late: most runs have none

        config, problems = in_profile(self.config, name)
        return ReloadedConfig(config, (*self.problems, *map(str, problems.values())))


@dataclass(frozen=True, slots=True)
class StartInfo:
    config_path: Path | None
    """The configuration in use; None without one."""
    is_demo: bool
    """True if only the built-in demo server runs."""
    problems: tuple[str, ...]
    """Sentences about what of the configuration is not used, and what to do about it."""
    state_folder: Path
    """Where approvals and the audit log are kept."""
    how_to: str
    """A few lines on adding servers."""
    missing: Path | None = None
    """Where a configuration file would be, if none was found and the demo runs instead."""
    fixed: bool = False
    """True if this run takes no servers of other programs: its file is one that mcphost does not write beside."""
    watched: tuple[Path, ...] = ()
    """The files whose changes are noticed; they need not exist."""
    read_at: int | None = None
    """When their reading began, in nanoseconds since 1970."""
    light_terminal: bool = False
    """True if the terminal's background is closer to white than to black."""
    theme: str = ""
    """The theme that an earlier run kept; empty without one."""
