"""The configuration of a program that an agent starts, and the words of the command that allows its calls."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from mcphost.cli.screen_socket import environment_of
from mcphost.cli.settings import FoundSettings, find, settings_for_screen, users_settings
from mcphost.config import ConfigLocation
from mcphost.errors import ConfigError
from mcphost.places import PROJECT_FILE, servers_path, state_path, users_path, working_folder


def agent_settings(options: Namespace) -> tuple[FoundSettings, Sequence[Path]]:
    """The user's configuration and the files that it is read from, there or not. Raises ConfigError."""
    env, profile = environment_of(options), getattr(options, "profile", None)
    files = users_path(env), servers_path(env)
    if options.config:  # entries of hosts name it before the user has written one
        own, added = (path if os.path.lexists(path) else None for path in files)
        return users_settings(ConfigLocation(own, added=added, profile=profile)), files
    found = settings_for_screen(find(None, env, profile), env)
    return found, [*files, working_folder() / PROJECT_FILE]


def allow_command(options: Namespace) -> list[str]:
    """The first words of the command that allows a declined call."""
    state = [f"MCPHOST_STATE_DIR={options.state}"] if options.state and not _is_usual(options.state) else []
    agent = ["--agent", options.agent] if options.agent else []
    return [*state, "mcphost", "allow", *agent]


def _is_usual(state: str) -> bool:
    """True if mcphost finds this state folder by itself."""
    env = {name: value for name, value in os.environ.items() if name != "MCPHOST_STATE_DIR"}
    try:
        return os.path.realpath(state) == os.path.realpath(state_path(env))
    except ConfigError:
        return False
