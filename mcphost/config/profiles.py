"""Applies a profile to a configuration: leaves out servers, and puts values in place of references."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from mcphost.config.fields import ConfigTable
from mcphost.config.models import Config, ModelConfig, ProfileConfig
from mcphost.config.problems import TableValidator, nearest, shown_key
from mcphost.config.references import substituted
from mcphost.config.servers import ServerConfig
from mcphost.errors import ConfigError
from mcphost.json_values import map_texts

_T = TypeVar("_T", bound=ConfigTable)

_WILD: Final = frozenset("*?[")


Problems = dict[tuple[str, str], ConfigError]
"""By section and name."""


def in_profile(config: Config, name: str | None) -> tuple[Config, Problems]:
    """The configuration as the profile ``name`` has it (None: as it is), and what of it is not used.

    An entry that its profile's values make invalid is left out. Raises ConfigError for an unknown profile.
    """
    if name is None:
        return config, {}
    profile = config.profiles.get(name)
    if profile is None:
        raise ConfigError(_unknown(name, config), path=config.path)
    problems: Problems = dict(_unmatched(name, profile, config))
    servers = {each: server for each, server in config.servers.items() if profile.has(each)}
    return config.model_copy(
        update={
            "servers": dict(_entries(f"profiles.{name}", "servers", servers, profile, ServerConfig, problems)),
            "models": dict(_entries(f"profiles.{name}", "models", config.models, profile, ModelConfig, problems)),
            "profile": name,
        }
    ), problems


def _entries(
    where: str,
    section: str,
    entries: Mapping[str, _T],
    profile: ProfileConfig,
    model: type[_T],
    problems: Problems,
) -> Iterator[tuple[str, _T]]:
    """The entries with the profile's values in them; of what is invalid then, ``problems`` gets the reason."""
    for name, entry in entries.items():
        variables = profile.variables_for(name if section == "servers" else None)
        before: dict[str, Any] = entry.model_dump(exclude_unset=True) if variables else {}
        after = map_texts(before, partial(substituted, values=variables))
        if after == before:
            yield name, entry
            continue
        try:
            yield name, TableValidator("", None).validated(model, after, (section, name))
        except ConfigError as error:
            problems[section, name] = ConfigError(f"{where}: {error.message}")


def unmatched(config: Config, disabled: Container[str]) -> Iterator[ConfigError]:
    """Names in the profiles that no server has, nor any of the ``disabled`` ones, whose entries are invalid."""
    for name, profile in config.profiles.items():
        for (_, server), problem in _unmatched(name, profile, config):
            if server not in disabled:
                yield problem


def _unmatched(name: str, profile: ProfileConfig, config: Config) -> Iterator[tuple[tuple[str, str], ConfigError]]:
    """Names in the profile that no server has. Patterns may match nothing."""
    for index, pattern in enumerate(profile.servers):
        if not _WILD & set(pattern) and pattern not in config.servers:
            sentence = f"profiles.{name}.servers[{index}]: no server is called {shown_key(pattern)}"
            yield ("profiles", pattern), ConfigError(sentence + _nearest(pattern, config.servers), path=config.path)


def _unknown(name: str, config: Config) -> str:
    sentence = f"there is no profile {shown_key(name)}"
    if not config.profiles:
        return f"{sentence}; add a table [profiles.{shown_key(name)}]"
    return sentence + (_nearest(name, config.profiles) or f"; there are {', '.join(config.profiles)}")


def _nearest(word: str, known: Mapping[str, object]) -> str:
    near = nearest(word, list(known))
    return f"; did you mean {near}?" if near else ""
