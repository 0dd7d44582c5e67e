"""The two sides of a comparison, as entries of a configuration: one server in two eras, or two servers."""

from __future__ import annotations

from collections.abc import Container, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

from mcphost.config import ComparedServer, Config, GivenServer, Policy, ServerConfig
from mcphost.errors import ConfigError
from mcphost.lazy_dataclass import dataclass

EraName = Literal["legacy", "modern"]

ERAS: Final[tuple[EraName, EraName]] = ("legacy", "modern")

NAME: Final = 64
"""Characters of the name of a server."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side: the name of its ``server`` in the host, and how it is called in the report."""

    server: str
    label: str
    original: str = ""
    """The server that ``server`` is a copy of; empty if it is not a copy."""

    @property
    def name(self) -> str:
        """The side's label beside others: a name that the user gave."""
        return f"{self.original} ({self.label})" if self.original else self.server


Sides = tuple[Side, Side]


def in_era(config: Config, server: str, era: EraName) -> tuple[Config, Side]:
    """The configuration with a copy of ``server`` that speaks only ``era``, and that side.

    Rules of ``[policy]`` that hold for the server hold for its copy. Raises ConfigError where it cannot speak the era.
    """
    entry, name = config.servers[server], _free_name(f"{server[: NAME - 10]}-{era}", config.servers)
    if era == "modern" and entry.transport == "sse":
        raise ConfigError(f'servers.{server} has transport = "sse", which the modern era does not have')
    servers = {**config.servers, name: _copy(entry, server, era)}
    policy = _policy_for(config.policy, server, name)
    return config.model_copy(update={"servers": servers, "policy": policy}), Side(name, era, server)


def in_eras(config: Config, server: str, eras: Sequence[EraName] = ERAS) -> tuple[Config, Sides]:
    """As `in_era`, for two eras."""
    config, first = in_era(config, server, eras[0])
    config, second = in_era(config, server, eras[1])
    return config, (first, second)


def without(config: Config, sides: Sides) -> Config:
    """The configuration without the servers that only these sides have."""
    gone = {side.server for side in sides if isinstance(config.servers.get(side.server), ComparedServer)}
    rules = {
        kind: tuple(rule for rule in getattr(config.policy, kind) if rule.partition(":")[0] not in gone)
        for kind in ("allow", "ask", "deny")
    }
    servers = {name: entry for name, entry in config.servers.items() if name not in gone}
    return config.model_copy(update={"servers": servers, "policy": config.policy.model_copy(update=rules)})


def between(first: str, second: str) -> Sides:
    """The sides of two configured servers."""
    return Side(first, first), Side(second, second)


def _copy(entry: ServerConfig, name: str, era: EraName) -> ServerConfig:
    values = {key: getattr(entry, key) for key in ServerConfig.model_fields}
    values |= {"protocol": era, "start": "manual", "enabled": True, "minimum_version": None}
    owner = "" if isinstance(entry, GivenServer) else name
    set_there = {*entry.model_fields_set, "protocol", "start"}
    return ComparedServer.model_construct(_fields_set=set_there, **values, entry=owner)


def _free_name(wanted: str, taken: Container[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _policy_for(policy: Policy, original: str, copy: str) -> Policy:
    """The policy, in which what holds for a server also holds for its copy."""
    rules: dict[str, tuple[str, ...]] = {}
    for kind in ("allow", "ask", "deny"):
        given: tuple[str, ...] = getattr(policy, kind)
        held = (rule.partition(":") for rule in given)
        rules[kind] = (*given, *(f"{copy}:{tool}" for server, _, tool in held if fnmatchcase(original, server)))
    return policy.model_copy(update=rules)
