"""The two copies of a server: what holds for the entry holds for them."""

from __future__ import annotations

import pytest

from mcphost.config import ComparedServer, Config, Policy, ServerConfig, ToolConfig
from mcphost.errors import ConfigError
from mcphost.host.comparison.sides import in_eras, without
from mcphost.host.consent.policy import PolicyDecision, decide


def config(deny: tuple[str, ...] = ()) -> Config:
    entry = ServerConfig(command="git", protocol="auto", tools={"push": ToolConfig(approval="deny")})
    return Config(servers={"git": entry, "git-modern": ServerConfig(command="other")}, policy=Policy(deny=deny))


def test_each_copy_speaks_one_era_and_has_a_name_of_its_own() -> None:
    made, (first, second) = in_eras(config(), "git")
    assert (first.server, second.server) == ("git-legacy", "git-modern-2")
    assert [made.servers[side.server].protocol for side in (first, second)] == ["legacy", "modern"]
    copy = made.servers[first.server]
    assert isinstance(copy, ComparedServer)
    assert copy.entry == "git"
    assert without(made, (first, second)) == config()


@pytest.mark.parametrize("rule", ["git:log", "g?t:l*"])
def test_what_policy_denies_for_the_server_is_denied_for_its_copies(rule: str) -> None:
    made, sides = in_eras(config((rule,)), "git")
    for side in sides:
        for tool in ("log", "push"):
            found = decide(made, side.server, tool, remembered="yes", claims_read_only=True)
            assert found.decision is PolicyDecision.DENY, (side, tool)
    assert without(made, sides).policy == config((rule,)).policy


def test_a_transport_without_the_modern_era_is_refused() -> None:
    old = Config(servers={"old": ServerConfig(url="https://example.com/sse", transport="sse")})
    with pytest.raises(ConfigError, match="sse"):
        in_eras(old, "old")
