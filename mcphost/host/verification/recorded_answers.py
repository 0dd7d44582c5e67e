"""Answers what a server asks in a case as the recording has it.

Specification: client/elicitation, client/sampling, client/roots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcphost.client.server_requests import InputRefused, InputRequest
from mcphost.host.recordings.recording import RecordedEvent
from mcphost.host.verification.answers import AnswerRules, compare_answers
from mcphost.json_values import as_dict, as_text
from mcphost.protocol.display import show_line
from mcphost.protocol.wire.error_codes import ErrorCode

NOT_RECORDED: Final = "the recording holds no such question"

_OWN: Final = frozenset({"_meta", "elicitationId", "mode"})
"""Members of a question that differ by era or from run to run."""


class RecordedAnswers:
    """The answers of one exchange (`mcphost.host.tool_calls.call.CallQuestions`).

    Questions of a kind are answered in the order in which they were recorded.
    """

    def __init__(self, questions: Sequence[RecordedEvent], rules: AnswerRules) -> None:
        self._left, self._rules = list(questions), rules
        self._problems: list[str] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about questions that came and were not recorded, and the other way round."""
        unasked = (f"the server did not ask {show_line(each.method, 80)}, as recorded" for each in self._left)
        return (*self._problems, *unasked)

    def takes(self, request: InputRequest) -> bool:
        return True

    def adds_own(self, request: InputRequest) -> bool:
        return False

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        """Return the recorded answer. Raises InputRefused as recorded, or where none is."""
        event = next((each for each in self._left if each.method == request.method), None)
        if event is None:
            words = as_text(request.params.get("message"))
            said = f": {show_line(words)}" if words else ""
            self._problems.append(f"the server asked {show_line(request.method, 80)}, which was not recorded{said}")
            return self._nothing(request, NOT_RECORDED)
        self._left.remove(event)
        self._compare(event, request)
        given = as_dict(event.answer)
        if isinstance(given.get("result"), Mapping):
            return {name: value for name, value in given["result"].items() if name not in ("_meta", "resultType")}
        error = as_dict(given.get("error"))
        if "error" not in given:
            return self._nothing(request, "the recording holds no answer to this")
        code = error.get("code")
        raise InputRefused(code if type(code) is int else ErrorCode.INTERNAL_ERROR, as_text(error.get("message")))

    def completed(self, elicitation: str) -> None:
        return

    def _compare(self, event: RecordedEvent, request: InputRequest) -> None:
        before, after = (
            {name: value for name, value in params.items() if name not in _OWN}
            for params in (event.params, request.params)
        )
        found = compare_answers(before, after, self._rules)
        self._problems += (f"{event.method}: {each.words}" for each in found.differences)

    @staticmethod
    def _nothing(request: InputRequest, why: str) -> Mapping[str, Any]:
        if request.method == "elicitation/create":
            return {"action": "cancel"}
        raise InputRefused(ErrorCode.INTERNAL_ERROR, why)
