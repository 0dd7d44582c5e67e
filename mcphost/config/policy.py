"""``[policy]``: which calls need consent, and the matching of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from mcphost.config.fields import ConfigTable, InSchema, Several

PolicyAction = Literal["allow", "ask", "deny"]


def _pattern(text: str) -> str:
    caller, colon, tool = text.partition(":")
    agent, arrow, server = caller.rpartition(">")
    if not (server and colon and tool) or (arrow and not agent):
        raise ValueError('is not a rule; write "server:tool" or "agent>server:tool", with * for any')
    return text


Rule = Annotated[str, AfterValidator(_pattern), InSchema("^([^:]+>)?[^:>]+:.")]


def _choice(text: str) -> str:
    server, colon, tool = text.removeprefix("!").partition(":")
    if not (server and colon and tool) or ">" in server:
        raise ValueError('is not a choice of tools; write "server:tool" or "!server:tool", with * for any')
    return text


ToolChoices = Several[Annotated[str, AfterValidator(_choice), InSchema("^!?[^!:>][^:>]*:.")]]
"""Patterns for the tools of servers; those that begin with ``!`` leave tools out."""


class Policy(ConfigTable):
    """``[policy]``: what needs a question. Rules are ``server:tool`` with ``*``, ``?`` and ``[abc]`` on each side.

    ``agent>server:tool`` holds for calls through a gate, by the agent's name of ``--as``.
    """

    default: PolicyAction = "ask"
    """The action for calls that match no rule."""
    allow: Several[Rule] = ()
    """Calls that run at once."""
    ask: Several[Rule] = ()
    """Calls that are always asked about."""
    deny: Several[Rule] = ()
    """Calls that are refused."""
    sampling: PolicyAction = "ask"
    """The action for servers that ask for a language model's answer; deny is stronger than a server's own policy."""
    remember_days: Annotated[int, Field(ge=0, le=36_500)] = 90
    """After so many days a call that was allowed for good on screen is asked about again; 0: never."""
    relist_sec: Annotated[float, Field(ge=0, le=31_536_000)] = 60.0
    """Before a call that runs because it was allowed on screen, the server's tools are listed again if the last listing
    is older than so many seconds; 0: before each such call."""
    audit: Literal["on", "required", "off"] = "on"
    """Record calls; ``required``: a call that cannot be recorded does not run."""


def rule_matches(rule: str, server: str, tool: str, agent: str = "") -> bool:
    """True if a rule of ``[policy]`` fits; case counts, a tool's name may hold colons.

    ``agent`` is the name of the agent that calls through a gate. A rule that names an agent fits no other call.
    """
    caller, _, tool_pattern = rule.partition(":")
    agent_pattern, arrow, server_pattern = caller.rpartition(">")
    if arrow and not (agent and fnmatchcase(agent, agent_pattern)):
        return False
    return fnmatchcase(server, server_pattern) and fnmatchcase(tool, tool_pattern)


def chooses(choices: Sequence[str], server: str, tool: str) -> bool:
    """True if `ToolChoices` have this tool: one names it, or none names any, and none leaves it out."""
    named = [choice for choice in choices if not choice.startswith("!")]
    left_out = [choice[1:] for choice in choices if choice.startswith("!")]
    return (not named or any(rule_matches(each, server, tool) for each in named)) and not any(
        rule_matches(each, server, tool) for each in left_out
    )


def names_agent(rule: str) -> bool:
    """True if a rule of ``[policy]`` names an agent, and so holds whatever the agent runs as that server."""
    return ">" in rule.partition(":")[0]
