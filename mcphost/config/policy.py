"""``[policy]``: which calls need consent, and the matching of its rules."""

from __future__ import annotations

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


def names_agent(rule: str) -> bool:
    """True if a rule of ``[policy]`` names an agent, and so holds whatever the agent runs as that server."""
    return ">" in rule.partition(":")[0]
