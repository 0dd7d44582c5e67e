"""Handlers of server requests with a script and a record, and the results that need them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcphost.client.server_requests import InputRefused, InputRequest
from tests.client.scripted import NEVER

DONE = {"resultType": "complete", "content": []}


def needs(state: str | None = None, **inputs: str) -> dict[str, Any]:
    """A result that needs these inputs: a key each, and a method."""
    requests = {key: {"method": method, "params": {"for": key}} for key, method in inputs.items()}
    result: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        result["inputRequests"] = requests
    return result if state is None else {**result, "requestState": state}


class Answers:
    """Answers each input with its params, and records the requests."""

    def __init__(self, refuses: str = "") -> None:
        self.asked: list[InputRequest] = []
        self._refuses = refuses

    def check(self, request: InputRequest) -> None:
        if request.params.get("for") == "unreadable":
            raise InputRefused(-32602, "it cannot be read")

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        self.asked.append(request)
        if request.method == self._refuses:
            raise InputRefused(-1, "the user declined")
        return {"got": request.params["for"]}

    def leave(self) -> None:
        return


class ScriptedHandler:
    """Answers each method as the script says, and records requests and cancellations."""

    def __init__(self, **script: Any) -> None:
        self.script = script
        self.asked: list[InputRequest] = []
        self.cancelled: list[str] = []

    def leave(self) -> None:
        self.left = True

    def check(self, request: InputRequest) -> None:
        return

    async def answer(self, request: InputRequest) -> Mapping[str, Any]:
        self.asked.append(request)
        answer = self.script[request.method.split("/")[0]]
        try:
            if isinstance(answer, BaseException):
                raise answer
            if answer is NEVER:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.method)
            raise
        given: Mapping[str, Any] = answer
        return given
