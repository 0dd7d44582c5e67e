"""Decides the calls that a gate holds, by the same consent as all other calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from mcphost.config import Config, Values
from mcphost.config.gated import GatedProgram
from mcphost.config.servers import program_words
from mcphost.errors import Declined, InvalidArguments, InvalidResult, McphostError
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.consent.broker import ConsentBroker, Proposal
from mcphost.host.internal_error import internal_error
from mcphost.host.tool_calls.arguments import check_arguments, misfit
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.tools import Tool
from mcphost.redaction import command_secrets
from mcphost.serving.ports import GateDecision

OWN_TOOLS: Final = "the agent's own tools"
"""In place of the program or address of a server."""

UNLISTED: Final = "the server lists no tool of that name"

MOST_SECRETS: Final = 20
"""Secrets in the arguments of a program that are masked; more than any command has."""

MOST_KEPT: Final = 100
"""Programs that were compared with the configuration: as many as gates may be connected at once."""


@dataclass(frozen=True, slots=True)
class GatedServer:
    """A server behind a gate."""

    name: str
    """The name that its command line chose, by which rules and approvals are found."""
    program: GatedProgram
    own: bool = False
    """True for the agent's own tools, which no server runs; the program is then only a folder."""

    @property
    def identity(self) -> str:
        """The words that approvals are bound to."""
        return program_words(OWN_TOOLS, self.program.folder, ()) if self.own else self.program.identity


class GatedCalls:
    """Decides the calls of agents.

    ``values`` finds the program of a configured server, without a keychain, so that it never waits. ``asks`` is False
    where no person can be asked, so that nothing need be prepared for a question.
    """

    def __init__(
        self, consent: ConsentBroker, config: Callable[[], Config], values: Values, *, asks: bool = True
    ) -> None:
        self._consent, self._config, self._values, self._asks = consent, config, values, asks
        self._same: dict[GatedServer, tuple[object, bool]] = {}
        self._tools: dict[tuple[GatedServer, str], tuple[Mapping[str, Any], tuple[Tool, str]]] = {}

    def keep_secrets(self, program: GatedProgram, others: Iterable[str] = ()) -> None:
        """Mask what looks secret in the arguments of a program, and ``others``, from now on."""
        for secret in (*islice(command_secrets(program.command), MOST_SECRETS), *others):
            self._values.remember(secret)

    async def decide(
        self,
        number: int,
        server: GatedServer,
        agent: AgentFacts,
        tool: str,
        definition: Mapping[str, Any] | None,
        arguments: Mapping[str, Any],
        *,
        refusal: str = "",
    ) -> GateDecision:
        """Decide on a call; the decision is in the audit log when this returns. Never raises.

        ``number`` is unique among the calls of this run. ``definition`` is the tool as the server listed it last, None
        if it did not. ``refusal`` declines the call, whatever the rules say. Cancelling withdraws the question.
        """
        listed_within: float | None = None
        try:
            proposal = self._proposal(number, server, agent, tool, definition, arguments, refusal)
            if self._asks and not proposal.refusal:
                proposal = replace(proposal, note=await misfit(proposal.tool, arguments))

            async def list_again() -> Proposal:
                nonlocal listed_within
                listed_within = self._consent.relist_sec  # the gate lists again before it sends the call
                return proposal

            proposal, answer = await self._consent.decide(proposal, list_again)
            if answer.arguments is not None:
                await check_arguments(proposal.tool, answer.arguments)
        except Declined as declined:
            by_user = declined.by == "user"
            return GateDecision(False, words=refusal_words(tool, declined), by="user" if by_user else "policy")
        except InvalidArguments as invalid:  # only edited ones are checked
            self.ended(number, server, agent, tool, "error", 0.0, sent=False)
            return GateDecision(
                False, words=f"the user changed the arguments, and they do not fit: {invalid}", by="user"
            )
        except McphostError as error:
            return GateDecision(False, words=str(error))
        except Exception as error:
            return GateDecision(False, words=str(internal_error(error)))
        if answer.by == "user":
            return GateDecision(True, answer.arguments, by="user")
        return GateDecision(True, listed_within=listed_within)

    def decide_at_once(
        self,
        number: int,
        server: GatedServer,
        agent: AgentFacts,
        tool: str,
        definition: Mapping[str, Any] | None,
        arguments: Mapping[str, Any],
    ) -> GateDecision | None:
        """As `decide`, for a call that a rule allows and that nothing waits for; None for another, with no trace.

        It needs no event loop; one thread at a time may use it.
        """
        try:
            proposal = self._proposal(number, server, agent, tool, definition, arguments, "")
            answer = self._consent.decide_at_once(proposal)
        except Exception:
            return None  # `decide` meets it again, and says so
        return None if answer is None else GateDecision(True)

    def ended(
        self,
        number: int,
        server: GatedServer,
        agent: AgentFacts,
        tool: str,
        outcome: str,
        seconds: float,
        *,
        sent: bool = True,
        at_once: bool = False,
    ) -> bool:
        """Write down how a call that was allowed ended, in a word.

        With ``at_once`` it needs no event loop, and returns False where that is not possible.
        """
        return self._consent.note_outcome(number, server.name, tool, outcome, sent, seconds, agent, at_once=at_once)

    def _proposal(
        self,
        number: int,
        server: GatedServer,
        agent: AgentFacts,
        name: str,
        definition: Mapping[str, Any] | None,
        arguments: Mapping[str, Any],
        refusal: str,
    ) -> Proposal:
        tool, unreadable = self._tool(server, name, definition)
        refusal = refusal or unreadable
        return Proposal(
            call=number,
            server=server.name,
            tool=tool,
            arguments=arguments,
            origin=agent.origin,
            identity=server.identity,
            agent=agent,
            own_tool=server.own,
            folder=server.program.folder,
            same_program=self.is_configured(server),
            refusal=refusal,
        )

    def _tool(self, server: GatedServer, name: str, definition: Mapping[str, Any] | None) -> tuple[Tool, str]:
        """As `_read`, once for each definition: a gate passes the same object until the server lists another."""
        if definition is None:
            return _read(name, None)
        known = self._tools.get((server, name))
        if known is None or known[0] is not definition:
            if len(self._tools) >= MOST_KEPT:
                self._tools.clear()
            known = self._tools[server, name] = definition, _read(name, definition)
        return known[1]

    def is_configured(self, server: GatedServer) -> bool:
        """True if the configuration's entry of that name runs the same program; own tools have none."""
        config = self._config()
        if server.own:
            return server.name not in config.servers
        entry = config.servers.get(server.name)
        known = self._same.get(server)
        if known is None or known[0] is not entry:
            if len(self._same) >= MOST_KEPT:
                self._same.clear()
            known = self._same[server] = entry, server.program.is_entry(config, server.name, self._values)
        return known[1]


def refusal_words(tool: str, declined: Declined) -> str:
    """The words for the agent's model: "you" would be the model itself."""
    if declined.by != "user":
        return str(declined)
    why = f": {declined.reason}" if declined.reason else ""
    return f"the user declined this call of {tool} in mcphost{why}; do not repeat it unless the user asks for it"


def _read(name: str, definition: Mapping[str, Any] | None) -> tuple[Tool, str]:
    """The tool, and why it cannot be called; empty if it can."""
    if definition is None:
        return Tool(name=name), UNLISTED
    try:
        tool = Tool.read(dict(definition))
    except InvalidResult as error:
        return Tool(name=name), f"its definition cannot be read: {error}"
    return (tool, "") if tool.name == name else (Tool(name=name), UNLISTED)
