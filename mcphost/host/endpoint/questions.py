"""Passes what a server asks in an agent's call on to that agent, if it answers such requests.

Specification: client/elicitation, client/sampling, client/roots; 2026-07-28 basic/patterns/mrtr.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from mcphost.client.server_requests import InputPurpose, InputRefused, InputRequest
from mcphost.config import ProfileConfig
from mcphost.host.endpoint.translation import Translation, without
from mcphost.json_values import as_dict, as_text
from mcphost.protocol.lifecycle.revisions import MAY_NEED_INPUT
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import UndeclaredError
from mcphost.serving.served_request import ClientAnswer, ClientAsk, ServedRequest

MOST_OPEN: Final = 6
"""Questions of one call that its agent has at once: as many as the user of mcphost has of one server."""

MOST_ASKED: Final = 60
"""Questions of one call in all."""

ERROR_CHARACTERS: Final = 300
"""Characters of an agent's error that the server gets."""

CONTEXT_SINCE: Final = "2025-11-25"
"""The first revision in which clients declare whether they add context to a prompt."""

ENDED: Final = "the agent does not wait for its call any more"
DENIED: Final = "the user lends no model to this server"
TOO_MANY: Final = "the server asks more in this call than the agent may be asked"

Json = Mapping[str, Any]
Side = Literal["agent", "mcphost", "both", "deny"]


class AnsweringSides(NamedTuple):
    """The side that answers each kind of request in an agent's call."""

    elicitation: Side
    sampling: Side
    roots: Side

    @classmethod
    def of(cls, questions: Literal["agent", "here"], profile: ProfileConfig | None) -> AnsweringSides:
        """The sides that the profile names; others are as the command line says."""
        side: Side = "agent" if questions == "agent" else "mcphost"
        if profile is None:
            return cls(side, side, "mcphost")
        return cls(profile.elicitation or side, profile.sampling or side, profile.roots)

    def answering(self, method: str) -> Side:
        match method:
            case "elicitation/create":
                return self.elicitation
            case "sampling/createMessage":
                return self.sampling
            case "roots/list":
                return self.roots
        return "mcphost"


class _Question:
    """A question that the agent has."""

    def __init__(self, request: InputRequest, params: Json, served: ServedRequest) -> None:
        self.answered: asyncio.Future[ClientAnswer] = asyncio.get_running_loop().create_future()
        self.ask = ClientAsk(request.method, params, self._take, request.key or None)
        self._served = served

    def withdraw(self) -> None:
        self.answered.cancel()
        self._served.withdraw(self.ask)

    def _take(self, answer: ClientAnswer) -> None:
        if not self.answered.done():
            self.answered.set_result(answer)


class AgentQuestions:
    """The questions of one call (`mcphost.host.tool_calls.call.CallQuestions`).

    ``server`` is shown with each question; empty where the agent knows one server only.
    """

    def __init__(self, sides: AnsweringSides, translation: Translation, server: str = "") -> None:
        self._sides, self._translation, self._server = sides, translation, server
        self.request: ServedRequest | None = None
        """The agent's request that waits for the call; None: the agent does not wait."""
        self._asked = 0
        self._open: set[_Question] = set()
        self._visits: set[str] = set()
        """The ids of the addresses that the agent was asked to open."""
        self._round: tuple[InputPurpose, dict[str, _Question]] | None = None

    def takes(self, request: InputRequest) -> bool:
        return self._sides.answering(request.method) == "deny" or self._params(request) is not None

    def adds_own(self, request: InputRequest) -> bool:
        return self._sides.answering(request.method) == "both"

    async def answer(self, request: InputRequest) -> Json:
        if self._sides.answering(request.method) == "deny":
            raise InputRefused(ErrorCode.INTERNAL_ERROR, DENIED)
        question = self._question(request)
        try:
            return self._result(request, await question.answered)
        except (asyncio.CancelledError, InputRefused):
            for each in (question, *(self._round[1].values() if self._round else ())):
                each.withdraw()
                self._open.discard(each)
            raise
        finally:
            self._open.discard(question)

    def completed(self, elicitation: str) -> None:
        if self.request is not None and elicitation in self._visits:
            self.request.complete_elicitation(elicitation)

    def _question(self, request: InputRequest) -> _Question:
        """The question to the agent, put together with all others that it answers in the same round."""
        purpose = request.purpose
        if purpose is None:
            return self._put([request])[request.key]
        if self._round is None or self._round[0] is not purpose:
            needed = [InputRequest(each.method, each.params, purpose, key) for key, each in purpose.inputs.items()]
            self._round = purpose, self._put([each for each in needed if self._params(each) is not None])
        return self._round[1][request.key]

    def _put(self, requests: Sequence[InputRequest]) -> dict[str, _Question]:
        """Ask the agent all of this. Raises InputRefused."""
        served = self.request
        self._asked += len(requests)
        if len(self._open) + len(requests) > MOST_OPEN or self._asked > MOST_ASKED:
            raise InputRefused(ErrorCode.INTERNAL_ERROR, TOO_MANY)
        asked = {each.key: params for each in requests if (params := self._params(each)) is not None}
        if served is None or len(asked) < len(requests):
            raise InputRefused(ErrorCode.INTERNAL_ERROR, ENDED)
        self._visits.update(as_text(params.get("elicitationId")) for params in asked.values())
        questions = {each.key: _Question(each, asked[each.key], served) for each in requests}
        self._open.update(questions.values())
        served.ask(*(each.ask for each in questions.values()))
        return questions

    def _params(self, request: InputRequest) -> Json | None:
        """The params for the agent; None if it does not answer this request now."""
        served, method = self.request, request.method
        if served is None or served.over or self._sides.answering(method) not in ("agent", "both"):
            return None
        params, revision = dict(without(request.params, {"_meta"})), served.revision
        if revision.modern and served.method not in MAY_NEED_INPUT:
            return None
        try:
            served.declaration.require(method, params)
        except UndeclaredError:
            return None
        if method == "sampling/createMessage":
            declared = as_dict(served.declaration.capabilities["sampling"])
            if "tools" not in declared and (params.get("tools") or params.get("toolChoice")):
                return None
            if "context" not in declared and revision.version >= CONTEXT_SINCE:
                params.pop("includeContext", None)
        if method == "elicitation/create" and self._server:
            params["message"] = f"{self._server}: {as_text(params.get('message'))}"
        if params.get("mode") == "url":  # modern servers name no id
            params.setdefault("elicitationId", secrets.token_urlsafe(16))
        return self._translation.question(method, params)

    def _result(self, request: InputRequest, answer: ClientAnswer) -> Json:
        """The result for the server. Raises InputRefused."""
        if answer.result is not None:
            return self._translation.answer(request.method, without(answer.result, {"_meta", "resultType"}))
        error = answer.error
        if request.method == "elicitation/create" and (error is None or request.purpose is not None):
            return {"action": "cancel"}  # a modern server can take no error
        if error is None:
            raise InputRefused(ErrorCode.INTERNAL_ERROR, ENDED)
        raise InputRefused(error.code, error.message[:ERROR_CHARACTERS])
