"""``[policy]``: which calls need consent, and the matching of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from mcphost.config.fields import ConfigTable, Filled, InSchema, Several

if TYPE_CHECKING:
    from mcphost.config.surface_lock import SurfaceLock

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
    lock: Filled | None = None
    """The lock that servers must fit, such as mcphost.lock; a relative path starts at this file's folder. A tool
    that is not in it, or is not what it says, is not offered to models and agents, and each call of it is asked about.
    It allows nothing."""
    _locked: SurfaceLock | None = PrivateAttr(None)

    @property
    def locked(self) -> SurfaceLock | None:
        """The content of ``lock`` as it was when the configuration was read."""
        return self._locked

    def with_lock(self, path: Path, content: SurfaceLock | None) -> Policy:
        """The same with the path of ``lock``, absolute, and its content."""
        made = self.model_copy(update={"lock": str(path)})
        made._locked = content
        return made


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
