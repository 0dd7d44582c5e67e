"""Finds and reads the configuration for a command. A project's file is used only after the user trusted it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mcphost.cli.output import remark
from mcphost.config import (
    Config,
    ConfigLocation,
    LoadedConfig,
    TrustedFolders,
    find_config,
    load_found,
    state_folder,
)
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.lazy_dataclass import dataclass
from mcphost.places import working_folder

TRUST_COMMAND = "mcphost config trust"


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """A configuration with its place. ``untrusted`` says why a project's file was left out; None where it was not."""

    found: ConfigLocation
    loaded: LoadedConfig
    untrusted: str | None = None

    @property
    def path(self) -> Path | None:
        """The path of the file in use; ``servers.toml`` where that is the only one."""
        return self.found.path or self.found.added

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about parts of the configuration that are not used."""
        return (*filter(None, [self.untrusted]), *map(str, self.loaded.problems))


def find(explicit: str | None, env: Mapping[str, str], profile: str | None = None) -> ConfigLocation:
    return find_config(None if explicit is None else Path(explicit), working_folder(), env, profile)


def read_settings(found: ConfigLocation, env: Mapping[str, str]) -> FoundSettings:
    """Read the configuration; a project's file only if it is trusted. Raises ConfigError."""
    if not found.needs_trust or found.path is None:
        return users_settings(found)
    loaded = load_found(found)
    decision = trusted_folders(env).decision(found.path, loaded.digest)
    if decision == "trusted":
        return FoundSettings(found, loaded)
    untrusted = _untrusted(found.path, decision)
    try:
        return replace(users_settings(found), untrusted=untrusted)
    except ConfigError:
        if found.profile in loaded.config.profiles:  # it is the project's
            raise ConfigError(untrusted) from None
        raise


def settings_for_screen(found: ConfigLocation, env: Mapping[str, str]) -> FoundSettings:
    """As `read_settings`, but leave out a project's file that cannot be read: anybody may have put it there."""
    try:
        return read_settings(found, env)
    except ConfigError as error:
        if not found.needs_trust:
            raise
        return replace(users_settings(found), untrusted=str(error))


def users_settings(found: ConfigLocation) -> FoundSettings:
    """Read only the user's own file. Raises ConfigError."""
    own = ConfigLocation(found.user, added=found.added, profile=found.profile) if found.needs_trust else found
    return FoundSettings(own, load_found(own) if own.found else LoadedConfig(Config.model_construct()))


def trusted_folders(env: Mapping[str, str]) -> TrustedFolders:
    """The project files that the user trusted."""
    return TrustedFolders(StateStore(state_folder(env), remark))


def _untrusted(path: Path, decision: Literal["changed", "unknown"]) -> str:
    why = (
        "changed since you trusted it"
        if decision == "changed"
        else "names programs to run, and you have not trusted it"
    )
    return f"{path} {why}; to see what it would run and decide: {TRUST_COMMAND}"
