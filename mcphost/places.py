"""Where mcphost's files are. Nothing is read or created here; completion in a shell needs them within milliseconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from mcphost.errors import ConfigError

PROJECT_FILE: Final = "mcphost.toml"

SERVERS_FILE: Final = "servers.toml"
"""mcphost's own file of servers, beside the user's; see `mcphost.config.servers_file`."""

CALLS_FILE: Final = "calls.toml"
"""The saved calls, beside the configuration in use; see `mcphost.config.calls`."""

DEPTH_VARIABLE: Final = "MCPHOST_SERVE_DEPTH"
"""The variable that is set in the processes below an mcphost that serves agents."""

SOCKET_BYTES: Final = 103
"""Bytes of a Unix socket's path: macOS takes no more."""


def users_path(env: Mapping[str, str]) -> Path:
    """The user's own file, there or not: ``$MCPHOST_CONFIG``, else ``config.toml`` in the platform's folder.

    Raises ConfigError without a home folder, or if a file cannot have that name.
    """
    if named := env.get("MCPHOST_CONFIG"):
        path = Path(os.path.expanduser(named))
        if not path.name:
            raise ConfigError("MCPHOST_CONFIG names a folder; name a file in it", path=path)
        return path
    from platformdirs import user_config_path  # late: slow to import

    folder = _of_platform(lambda: user_config_path("mcphost", appauthor=False), "MCPHOST_CONFIG to a file")
    return folder / "config.toml"


def servers_path(env: Mapping[str, str]) -> Path:
    """``servers.toml``, there or not."""
    return users_path(env).with_name(SERVERS_FILE)


def state_path(env: Mapping[str, str]) -> Path:
    """The state folder, there or not: ``$MCPHOST_STATE_DIR``, else the platform's. Raises as `users_path`."""
    if named := env.get("MCPHOST_STATE_DIR"):
        path = Path(os.path.expanduser(named))
        return path if path.is_absolute() else working_folder() / path
    from platformdirs import user_state_path  # late: slow to import

    return _of_platform(lambda: user_state_path("mcphost", appauthor=False), "MCPHOST_STATE_DIR to a folder")


def socket_path(env: Mapping[str, str]) -> Path:
    """The socket of the running screen, there or not: in the state folder.

    In ``$XDG_RUNTIME_DIR``, with a name for each state folder, only where that path is too long: agents often start
    their servers without that variable. Raises ConfigError if both are too long.
    """
    folder = state_path(env)
    path, runtime = folder / "agents.sock", env.get("XDG_RUNTIME_DIR", "")
    if len(os.fsencode(path)) > SOCKET_BYTES and os.path.isabs(runtime):
        from hashlib import sha256  # late: completion does without

        digest = sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:12]
        path = Path(runtime) / "mcphost" / f"agents-{digest}.sock"
    if len(os.fsencode(path)) > SOCKET_BYTES:
        raise ConfigError(
            f"the socket for agents would have a path of more than {SOCKET_BYTES} bytes; set MCPHOST_STATE_DIR or "
            "XDG_RUNTIME_DIR to a folder with a shorter path",
            path=path,
        )
    return path


def home_folder() -> Path | None:
    """The user's home folder; None for a user without one, as in some containers."""
    home = os.path.expanduser("~")
    return Path(home) if os.path.isabs(home) and os.environ.get("HOME") != "" else None


def working_folder() -> Path:
    """The folder that mcphost was started in. Raises ConfigError where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError("the folder you are in is no longer there; go to another") from None


def with_tilde(path: Path) -> Path:
    """The path as one writes it: ``~`` stands for the user's home folder."""
    home = home_folder()
    return Path("~") / path.relative_to(home) if home is not None and home in path.parents else path


def _of_platform(folder: Callable[[], Path], instead: str) -> Path:
    """The platform's folder. Raises ConfigError where it would be in a home folder that is not there."""
    try:
        path = folder()
    except RuntimeError:
        path = Path()
    if path.is_absolute():
        return path
    raise ConfigError(f"mcphost does not know your home folder; set HOME to a folder of yours, or {instead}")
