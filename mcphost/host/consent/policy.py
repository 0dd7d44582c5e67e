"""Which calls run without asking, which never run, and which line of the configuration says so.

Pure: rules in, a decision out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from mcphost.config import (
    Config,
    SamplingConfig,
    ServerConfig,
    ToolConfig,
    entry_of,
    names_agent,
    rule_matches,
)
from mcphost.host.consent.argument_rules import fits, in_words
from mcphost.lazy_dataclass import dataclass


class PolicyDecision(Enum):
    """The decision about a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A decision, and its rule in words for the dialog and the audit log."""

    decision: PolicyDecision
    rule: str


@dataclass(frozen=True, slots=True)
class GatedBy:
    """The caller behind a gate, whose command line chose the server's name, and the program behind that name."""

    agent: str
    """The name of ``--as``; empty without one."""
    same_program: bool
    """True if the configuration's entry of that name runs the same program."""


def decide(
    config: Config,
    server: str,
    tool: str,
    *,
    remembered: str | None,
    claims_read_only: bool,
    arguments: Mapping[str, object] | None = None,
    gated: GatedBy | None = None,
) -> PolicyResult:
    """The decision for one call.

    A deny anywhere wins; then the tool's own entry, first what it says of the call's ``arguments``, the ask and allow
    lists, what the user allowed before (``remembered``: its description, None for nothing), a trusted server's
    read-only claim, and last the default.

    For a call through a gate (``gated``) that runs another program than the entry of that name, only rules that refuse
    or ask hold, and those that name the agent.
    """
    settings, policy = config.servers.get(server), config.policy
    entry = settings.tools.get(tool) if settings else None
    agent, trusted = ("", True) if gated is None else (gated.agent, gated.same_program)
    allow = policy.allow if trusted else [rule for rule in policy.allow if names_agent(rule)]
    return (
        (entry and _denied(entry, server, tool))
        or (gated and settings and _disabled(settings, server, tool))
        or _listed(policy.deny, PolicyDecision.DENY, "deny", server, tool, agent)
        or (entry and trusted and _by_arguments(entry, server, tool, arguments or {}))
        or (entry and (trusted or entry.approval != "allow") and _own_entry(entry, server, tool))
        or _listed(policy.ask, PolicyDecision.ASK, "ask", server, tool, agent)
        or _listed(allow, PolicyDecision.ALLOW, "allow", server, tool, agent)
        or (PolicyResult(PolicyDecision.ALLOW, remembered) if remembered else None)
        or (_trusted(settings, server) if claims_read_only and trusted else None)
        or PolicyResult(PolicyDecision(policy.default), f"policy.default = {policy.default!r}")
    )


def _disabled(settings: ServerConfig, server: str, tool: str) -> PolicyResult | None:
    """Refuse a tool that is not offered: a gate passes on the server's own list."""
    if settings.enables(tool):
        return None
    return PolicyResult(PolicyDecision.DENY, f"servers.{server}: its enabled_tools and disabled_tools leave it out")


def _denied(entry: ToolConfig, server: str, tool: str) -> PolicyResult | None:
    if entry.approval != "deny":
        return None
    return PolicyResult(PolicyDecision.DENY, f"servers.{server}.tools.{tool}.approval = 'deny'")


def _by_arguments(entry: ToolConfig, server: str, tool: str, arguments: Mapping[str, object]) -> PolicyResult | None:
    """Allow the call if the rule by argument fits."""
    if not entry.allow_when:
        return None
    told = f"servers.{server}.tools.{tool}.allow_when: {in_words(entry.allow_when)}"
    return PolicyResult(PolicyDecision.ALLOW, told) if fits(entry.allow_when, arguments) else None


def _own_entry(entry: ToolConfig, server: str, tool: str) -> PolicyResult | None:
    if entry.approval is None:
        return None
    return PolicyResult(PolicyDecision(entry.approval), f"servers.{server}.tools.{tool}.approval = {entry.approval!r}")


def _listed(
    patterns: Sequence[str], decision: PolicyDecision, name: str, server: str, tool: str, agent: str
) -> PolicyResult | None:
    for pattern in patterns:
        if rule_matches(pattern, server, tool, agent):
            return PolicyResult(decision, f"policy.{name} has {pattern!r}")
    return None


def _trusted(settings: ServerConfig | None, server: str) -> PolicyResult | None:
    if settings is None or not settings.trust_hints:
        return None
    return PolicyResult(PolicyDecision.ALLOW, f"servers.{server}.trust_hints, and the tool claims to be read-only")


@dataclass(frozen=True, slots=True)
class SamplingPolicy:
    """The policy for a server's sampling requests, and the rule that says so."""

    decision: PolicyDecision
    review: bool
    """True if the user approves each answer before the server gets it."""
    rule: str


def sampling_policy(config: Config, server: str) -> SamplingPolicy:
    """The rules for one server's requests; a deny anywhere wins, then its own entry, then what holds for all."""
    server = entry_of(server)
    settings = config.servers.get(server)
    own = settings.sampling if settings else SamplingConfig.model_construct()
    said, rule = own.policy, f"servers.{server}.sampling.policy = {own.policy!r}"
    if said is None or config.policy.sampling == "deny":
        said, rule = config.policy.sampling, f"policy.sampling = {config.policy.sampling!r}"
    return SamplingPolicy(PolicyDecision(said), (own.review or said) == "ask", rule)
