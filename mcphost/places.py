"""Where mcphost's files are. Nothing is read or created here; completion in a shell needs them within milliseconds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PROJECT_FILE: Final = "mcphost.toml"

SERVERS_FILE: Final = "servers.toml"
"""mcphost's own file of servers, beside the user's; see `mcphost.config.servers_file`."""


def users_path(env: Mapping[str, str]) -> Path:
    """The user's own file, there or not: ``$MCPHOST_CONFIG``, else ``config.toml`` in the platform's folder."""
    if named := env.get("MCPHOST_CONFIG"):
        return Path(os.path.expanduser(named))
    from platformdirs import user_config_path  # late: slow to import

    return user_config_path("mcphost", appauthor=False) / "config.toml"


def servers_path(env: Mapping[str, str]) -> Path:
    """``servers.toml``, there or not."""
    return users_path(env).with_name(SERVERS_FILE)


def state_path(env: Mapping[str, str]) -> Path:
    """The state folder, there or not: ``$MCPHOST_STATE_DIR``, else the platform's."""
    if named := env.get("MCPHOST_STATE_DIR"):
        return Path(os.path.expanduser(named)).absolute()
    from platformdirs import user_state_path  # late: slow to import

    return user_state_path("mcphost", appauthor=False)


def with_tilde(path: Path) -> Path:
    """The path as one writes it: ``~`` stands for the user's home folder."""
    home = Path.home()
    return Path("~") / path.relative_to(home) if home in path.parents else path
