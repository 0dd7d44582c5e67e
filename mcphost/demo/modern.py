"""Revision 2026-07-28: no handshake, inputs that a call needs in place of requests, one stream for announcements.

A tool that asks for something waits in its thread. Its question is sent as the answer to its call; the next attempt
brings the answer that it waits for.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any

from mcphost.demo import lighthouse
from mcphost.demo.revisions import CAPABILITIES, MODERN, REVISIONS, trimmed
from mcphost.demo.tool import LEVELS, CallCancelledError, InvalidParamsError, Json

PREFIX = "io.modelcontextprotocol/"
CHECK_SECONDS = 0.1
"""Seconds between two checks of whether a waiting call was cancelled."""

PATIENCE_SECONDS = 600.0
"""Seconds that a call waits for its next attempt, which may never come."""

FRESH_MILLISECONDS = {"server/discover": 3_600_000, "resources/templates/list": 600_000, "prompts/list": 600_000}
"""Milliseconds for which results that do not change are fresh; lists that change are so for a minute."""

CHANGING = ("lighthouse://logbook", "lighthouse://instruments")
"""Resources that change with each call, or all the time: their contents are never fresh."""

CACHED = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


def is_modern(params: Any) -> bool:
    """True if this request carries the metadata of a revision without a handshake."""
    return isinstance(params, dict) and f"{PREFIX}protocolVersion" in _meta(params)


def discovery() -> Json:
    """The result of ``server/discover``."""
    return {
        "supportedVersions": [*REVISIONS, MODERN],
        "capabilities": trimmed("capabilities", CAPABILITIES, MODERN),
        "instructions": lighthouse.INSTRUCTIONS,
    }


def finished(method: str, result: Json) -> Json:
    """A result with what this revision adds to each."""
    identity = {"name": lighthouse.NAME, "title": lighthouse.TITLE, "version": lighthouse.VERSION}
    meta = {**result.get("_meta", {}), f"{PREFIX}serverInfo": identity}
    whole = {"resultType": "complete", **result, "_meta": meta}
    if method in CACHED:
        changing = any(each.get("uri") in CHANGING for each in result.get("contents", ()))
        fresh = 0 if changing else FRESH_MILLISECONDS.get(method, 60_000)
        whole |= {"ttlMs": fresh, "cacheScope": "private"}
    return whole


class Announcements:
    """The open ``subscriptions/listen`` requests; ``notify`` sends a notification."""

    def __init__(self, notify: Callable[[str, Json], None]) -> None:
        self._notify = notify
        self._open: dict[str | int, Json] = {}

    def listen(self, request_id: str | int, params: Json) -> None:
        """Announce from now on the changes that the client wants. The request stays without an answer."""
        wanted = params.get("notifications")
        wanted = wanted if isinstance(wanted, dict) else {}
        honoured = {key: wanted[key] for key in ("toolsListChanged", "resourceSubscriptions") if key in wanted}
        self._open[request_id] = honoured
        self._announce(request_id, "notifications/subscriptions/acknowledged", {"notifications": honoured})

    def end(self, request_id: Any) -> None:
        """The client wants no more announcements of this request."""
        self._open.pop(request_id, None)

    def tools_changed(self) -> None:
        for request_id, wanted in list(self._open.items()):
            if wanted.get("toolsListChanged"):
                self._announce(request_id, "notifications/tools/list_changed", {})

    def resource_changed(self, uri: str) -> None:
        for request_id, wanted in list(self._open.items()):
            if uri in wanted.get("resourceSubscriptions", ()):
                self._announce(request_id, "notifications/resources/updated", {"uri": uri})

    def _announce(self, request_id: str | int, method: str, params: Json) -> None:
        self._notify(method, params | {"_meta": {f"{PREFIX}subscriptionId": request_id}})


class CallOutbox:
    """Sends one call's questions, log messages and announcements (`mcphost.demo.tool.Outbox`)."""

    def __init__(self, params: Json, notify: Callable[..., None], announcements: Announcements) -> None:
        meta = _meta(params)
        declared, level = meta.get(f"{PREFIX}clientCapabilities"), meta.get(f"{PREFIX}logLevel")
        self._declared: Json = declared if isinstance(declared, dict) else {}
        self._level = LEVELS.index(level) if level in LEVELS else len(LEVELS)
        self._notify, self._announcements = notify, announcements
        self.outcomes: Queue[Json | None] = Queue()
        """Outcomes of the call: the input that it needs next, or its answer (None: it was cancelled)."""
        self._given: Queue[Json] = Queue()

    def notify(self, method: str, params: Json | None = None) -> None:
        if method == "notifications/tools/list_changed":
            self._announcements.tools_changed()
        elif method != "notifications/elicitation/complete":  # this revision has none
            self._notify(method, params)

    def log(self, level: str, data: Any, logger: str) -> None:
        """Send a log message, if the request asked for such."""
        if LEVELS.index(level) >= self._level:
            self._notify("notifications/message", {"level": level, "logger": logger, "data": data})

    def resource_changed(self, uri: str) -> None:
        self._announcements.resource_changed(uri)

    def offered(self, capability: str) -> Json | None:
        """The declaration of the capability in the request; None without one."""
        declared = self._declared.get(capability)
        return declared if isinstance(declared, dict) else None

    def ask(self, method: str, params: Json, cancelled: threading.Event) -> Json | None:
        """The answer in the next attempt; None if the call was cancelled, or no attempt came in time."""
        asked = {key: value for key, value in params.items() if key != "elicitationId"}
        self.outcomes.put({"method": method, "params": asked})
        waited = 0.0
        while not cancelled.is_set() and waited < PATIENCE_SECONDS:
            try:
                return self._given.get(timeout=CHECK_SECONDS)
            except Empty:
                waited += CHECK_SECONDS
        return None

    def give(self, answer: Json) -> None:
        """Pass on the answer in the next attempt."""
        self._given.put(answer)


class WaitingCalls:
    """Calls that need something before they go on, by the state that goes out and comes back."""

    def __init__(self) -> None:
        self._waiting: dict[str, CallOutbox] = {}

    def resume(self, params: Json) -> CallOutbox | None:
        """The call that this attempt continues, given its answer; None for a first attempt."""
        state = params.get("requestState")
        if state is None:
            return None
        outbox = self._waiting.pop(str(state), None)
        if outbox is None:
            raise InvalidParamsError("Nobody here waits for that; the keeper began again, or gave up.")
        given = params.get("inputResponses")
        answer = given.get("keeper") if isinstance(given, dict) else None
        outbox.give(answer if isinstance(answer, dict) else {})
        return outbox

    def outcome(self, outbox: CallOutbox) -> Json:
        """The next result of a call: what it needs, or its answer. Raises CallCancelledError."""
        outcome = outbox.outcomes.get()
        if outcome is None:
            raise CallCancelledError
        if "method" not in outcome:
            return outcome
        state = secrets.token_hex(8)
        self._waiting[state] = outbox
        return {"resultType": "input_required", "inputRequests": {"keeper": outcome}, "requestState": state}


def _meta(params: Json) -> Json:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}
