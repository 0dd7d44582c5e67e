"""The calls of agents that were declined because no one could be asked, kept for ``mcphost allow``."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from mcphost.config.state import StateStore
from mcphost.host.consent.approvals import ApprovalStatus, Gate
from mcphost.host.consent.questions import Answer, Question, ToolCallQuestion
from mcphost.host.internal_error import describe_failure
from mcphost.json_values import canonical, dicts_in
from mcphost.lazy_dataclass import dataclass

DECLINED: Final = "declined"
"""The name of the state file."""

KEPT: Final = 100
"""Declined calls that are kept: those of a day's work."""

DEFINITION_CHARACTERS: Final = 100_000
"""Characters of a definition; a longer one is not kept, and must be allowed on screen."""


@dataclass(frozen=True, slots=True)
class DeclinedCall:
    """A tool that an agent wanted to call, with all that an approval is bound to."""

    server: str
    tool: str
    identity: str
    gate: Gate
    """The folder of its server, and the agent's name of ``--as``."""
    definition: Mapping[str, Any]
    time: datetime


class DeclinedCalls:
    """Blocks on the disk: use it in a thread. Raises ConfigError."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def all(self) -> list[DeclinedCall]:
        """The kept calls, the newest last; one for each tool, program and agent."""
        return list(_read(self._store.read(DECLINED)))

    def add(self, call: DeclinedCall) -> None:
        def change(data: Mapping[str, Any]) -> Mapping[str, Any]:
            others = [each for each in _read(data) if _key(each) != _key(call)]
            return {DECLINED: _tables([*others, call][-KEPT:])}

        if len(canonical(call.definition)) <= DEFINITION_CHARACTERS:
            self._store.update(DECLINED, change)


class AbsentApprover:
    """Declines, since no one can be asked, and names the command that allows the tool.

    ``command`` are the words that begin it, such as ``mcphost allow``; ``unasked`` holds why a screen that runs cannot
    be asked about a call, as a clause, by its number.
    """

    def __init__(
        self,
        declined: DeclinedCalls,
        command: Iterable[str],
        report: Callable[[str], None],
        unasked: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._declined, self._command, self._report, self._unasked = declined, tuple(command), report, unasked

    async def ask(self, question: Question) -> Answer:
        if not isinstance(question, ToolCallQuestion) or question.agent is None:
            return Answer(False, reason="mcphost's screen does not run", by="policy")
        gate = Gate(question.folder, question.agent.given)
        now, tool = datetime.now().astimezone(), question.tool
        call = DeclinedCall(question.server, tool.name, question.identity, gate, tool.definition(), now)
        try:
            await asyncio.to_thread(self._declined.add, call)
        except Exception as error:
            self._report(f"the declined call could not be kept for mcphost allow: {describe_failure(error)}")
        command = shlex.join([*self._command, f"{question.server}:{tool.name}"])
        changed = question.approval.kind is ApprovalStatus.CHANGED
        why = "the tool has changed since it was allowed, and " if changed else ""
        absent = "mcphost's screen, where the user decides, does not run"
        start, unasked = "start mcphost and decide there, or ", self._unasked.get(question.call)
        reason = (
            f"{why}{unasked or absent}; the user can {'' if unasked else start}allow this tool beforehand: {command}"
        )
        return Answer(False, reason=reason, by="policy")


def _key(call: DeclinedCall) -> tuple[str, str, str, Gate]:
    return call.server, call.tool, call.identity, call.gate


def _tables(calls: Iterable[DeclinedCall]) -> list[dict[str, Any]]:
    return [
        {
            "server": call.server,
            "tool": call.tool,
            "identity": call.identity,
            "gate": call.gate._asdict(),
            "definition": canonical(call.definition),
            "time": call.time,
        }
        for call in calls
    ]


def _read(data: Mapping[str, Any]) -> Iterator[DeclinedCall]:
    for entry in dicts_in(data.get(DECLINED)):
        match entry:
            case {
                "server": str(server),
                "tool": str(tool),
                "identity": str(identity),
                "gate": {"folder": str(folder), "agent": str(agent)},
                "definition": str(text),
                "time": datetime() as time,
            }:
                try:
                    definition = json.loads(text)
                except (ValueError, RecursionError):
                    continue
                if isinstance(definition, dict):
                    yield DeclinedCall(server, tool, identity, Gate(folder, agent), definition, time)
