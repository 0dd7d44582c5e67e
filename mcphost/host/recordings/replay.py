"""Serves the sessions of a recording again, to clients of any revision: answers, and all that came with them.

Nothing of a recording is run, and nothing here waits but by timers.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from mcphost.host.endpoint.translation import Translation, of_this_leg, without
from mcphost.host.recordings.matching import ExchangeSequence, differing_names, fits, listed, titled
from mcphost.host.recordings.recording import LISTED, RecordedEvent, RecordedExchange, RecordedWalk
from mcphost.host.recordings.replayed_server import PLAYED, ReplayedServer
from mcphost.json_values import as_dict, as_text, is_number
from mcphost.protocol.lifecycle.revisions import ASKS_FOR, Revision
from mcphost.protocol.models.logging import LogLevel
from mcphost.protocol.wire.error_codes import ErrorCode
from mcphost.serving.negotiation import InvalidParamsError, RpcError, ServerIntroduction
from mcphost.serving.pages import page
from mcphost.serving.served_request import ClientAnswer, ClientAsk, Json, ServedRequest
from mcphost.serving.session import MODERN_MEMBERS, ServedContent, SessionHandle
from mcphost.serving.time_limits import Timers
from mcphost.transports.base import MessageObserver

SILENT_SECONDS: Final = 20.0
"""The longest wait without a message: clients give up a request after 60 s, and some after 30 s."""

BATCH_EVENTS: Final = 100
"""Events that are sent in one turn of the event loop."""


class ReplayedContent(ServedContent):
    """The content for one client, over HTTP too (`HttpContent`). `attach` it right after it was made."""

    def __init__(self, server: ReplayedServer, timers: Timers) -> None:
        self.server, self.timers = server, timers
        self._live = None if server.open_live is None else server.open_live()
        self.sequence = ExchangeSequence(server.index, loop=server.options.loop)
        self._session: SessionHandle | None = None
        self._walks: dict[str, RecordedWalk] = {}
        """The walk through each list that the client is on, or did last."""
        self._walked: set[int] = set()
        self._begun = -1
        """The last place of the recording that the client has come to by a request of `PLAYED`."""
        self._last: ServedRequest | None = None
        self._uris: frozenset[str] = frozenset()
        self._noticed: set[int] = set()

    @property
    def observer(self) -> MessageObserver | None:
        return None

    def attach(self, session: SessionHandle) -> None:
        self._session = session
        if self._live is not None:
            self._live.attach(session)

    def introduction(self, revision: Revision) -> ServerIntroduction:
        return self.server.introduction()

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        walks = self.server.walks["tools/list"]
        found = (item for item in (walks[-1].items if walks else ()) if item.get("name") == tool)
        return as_dict(next(found, {}).get("inputSchema"))

    def introduced(self, capabilities: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        if self._live is not None:
            self._live.introduced(capabilities, meta)

    def opened(self) -> None:
        self.pass_by(-1)
        if self._live is not None:
            self._live.opened()

    def level_changed(self, level: LogLevel) -> None:
        if self._live is not None:
            self._live.level_changed(level)

    def roots_changed(self) -> None:
        if self._live is not None:
            self._live.roots_changed()

    def closed(self) -> None:
        if self._live is not None:
            self._live.closed()

    def subscriptions_changed(self, uris: frozenset[str]) -> None:
        if self._live is not None:
            self._live.subscriptions_changed(uris - self.server.subscribed.keys())
        added, self._uris = uris - self._uris, uris
        for place in sorted(self.server.subscribed[uri] for uri in added if uri in self.server.subscribed):
            self.pass_by(place)

    def begin(self, request: ServedRequest) -> None:
        self._last = request
        if request.revision.modern:
            self.pass_by(-1)
        if member := LISTED.get(request.method):
            self._list(request, member)
        elif request.method in PLAYED:
            self._play(request)
        else:
            request.finish({})  # a subscription, or its end

    def pass_by(self, place: int) -> None:
        """Send the notices that followed this exchange, once."""
        if place in self._noticed:
            return
        self._noticed.add(place)
        ended = self._ended_at(place)
        for notice in self.server.notices.get(place, ()):
            speed = self.server.options.speed
            wait = min((notice.at - ended) / speed, SILENT_SECONDS) if speed and place >= 0 else 0.0
            if wait > 0:
                self.timers.call_later(wait, partial(self.notify, notice.method, notice.params))
            else:
                self.notify(notice.method, notice.params)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification to the client, if it wants it."""
        session, kind = self._session, method.split("/")[1:2]
        if session is None:
            return
        if method == "notifications/message":
            level = LogLevel.read(params.get("level"))
            if level is not None:
                session.log(level, params.get("data"), as_text(params.get("logger")))
        elif method == "notifications/resources/updated":
            session.resource_updated(as_text(params.get("uri")))
        elif method == "notifications/elicitation/complete" and self._last is not None:
            self._last.aside().complete_elicitation(as_text(params.get("elicitationId")))
        elif method.endswith("/list_changed") and kind[0] in ("tools", "prompts", "resources"):
            session.list_changed(kind[0])

    def miss(self, request: ServedRequest, code: ErrorCode, data: Any = None) -> None:
        """Answer a request that was not recorded, or let the live server answer it. Raises RpcError."""
        options = self.server.options
        if self._live is not None:
            self.server.counts["missed"] += 1
            self._live.begin(request)
            return
        words = self.server.index.miss(request.method, request.params, nearest=options.names_nearest)
        self.server.counts["missed"] += 1
        self.server.report(f"{titled(request.method, request.params)}: {words}")
        if options.names_nearest:
            refuse(request, words, code, data)
        else:
            request.fail(RpcError(code, words, data))

    def _ended_at(self, place: int) -> float:
        exchange = self.server.exchanges[place].exchange if place >= 0 else RecordedExchange("")
        return exchange.at + (exchange.seconds or 0.0)

    def _play(self, request: ServedRequest) -> None:
        found = self.sequence.take(request.method, request.params)
        if found is None and request.method == "resources/read":
            self.miss(request, ErrorCode.RESOURCE_NOT_FOUND, {"uri": request.params.get("uri")})
        elif found is None:
            self.miss(request, ErrorCode.INVALID_PARAMS)
        else:
            self.server.counts["repeated"] += found.repeated
            self._begun = max(self._begun, found.place)
            _Playback(self, request, found.place).begin()

    def _list(self, request: ServedRequest, member: str) -> None:
        method, on_the_way = request.method, "cursor" in request.params
        walk = self._walks.get(method) if on_the_way else self._next_walk(method)
        if walk is None:
            errors = (exchange.error for exchange, _ in self.server.exchanges if exchange.method == method)
            if on_the_way:
                raise InvalidParamsError("This cursor is not valid. List from the start.")
            if (error := next(filter(None, errors), None)) is None:
                self.miss(request, ErrorCode.METHOD_NOT_FOUND)
                return
            raise _error_in(error)
        self._walks[method] = walk
        self._walked.add(walk.place)
        translation = Translation(self.server.exchanges[walk.place].revision, request.revision)
        items = [translation.tool(item) for item in walk.items] if member == "tools" else walk.items
        found = page(member, items, request.params, max(1, *map(len, walk.pages)))
        self.server.counts["served"] += not on_the_way
        request.finish({**without(carried(walk.last), {member, "nextCursor"}), **found})
        if "nextCursor" not in found:
            self.pass_by(walk.place)

    def _next_walk(self, method: str) -> RecordedWalk | None:
        """The list as it was between the calls before and after which this client comes."""
        walks, played = self.server.walks[method], self.server.played
        after = bisect_right(played, self._begun)
        end = played[after] if after < len(played) else len(self.server.exchanges)
        before = [walk for walk in walks if walk.place < end]
        fresh = [walk for walk in before if walk.place > self._begun and walk.place not in self._walked]
        return next(iter([*fresh[:1], *reversed(before), *walks]), None)


class _Playback:
    """One exchange, as it is played to a client: its events and its answer, each at its time."""

    def __init__(self, content: ReplayedContent, request: ServedRequest, place: int) -> None:
        self._content, self._server, self._request = content, content.server, request
        self._given: list[tuple[str, Json]] = []
        """The client's answers so far: method, and ``result`` or ``error``."""
        self._asked: list[RecordedEvent] = []
        """The open questions, and their answers by their places in it."""
        self._answers: dict[int, ClientAnswer] = {}
        self._at = 0.0
        """The recorded time that has passed."""
        self._go_to(place, 0)

    def begin(self) -> None:
        """Raises RpcError."""
        was_task = self._place in self._server.tasks
        if self._request.may_start_task and (was_task or not self._request.revision.modern):
            self._request.start_task()
        self._go_on()

    def _go_to(self, place: int, event: int) -> None:
        self._place, self._next = place, event
        self._exchange, recorded = self._server.exchanges[place]
        self._events = self._exchange.events
        self._translation = Translation(recorded, self._request.revision)
        speed = self._server.options.speed
        self._pace = 1 / speed if speed else 0.0
        whole = self._due(len(self._events)) * self._pace
        if not self._request.has_token and whole > SILENT_SECONDS:
            self._pace *= SILENT_SECONDS / whole

    def _due(self, event: int) -> float:
        """The recorded time of an event, or of the answer behind the last one."""
        return self._events[event].after if event < len(self._events) else self._exchange.seconds or 0.0

    def _go_on(self) -> None:
        for _ in range(BATCH_EVENTS):
            if self._request.over:
                return
            wait = min((self._due(self._next) - self._at) * self._pace, SILENT_SECONDS)
            self._at = max(self._at, self._due(self._next))
            if wait > 0:
                self._content.timers.call_later(wait, self._go_on)
                return
            if self._next == len(self._events):
                self._end()
                return
            event = self._events[self._next]
            if event.kind == "question" and event.method in ASKS_FOR:
                self._ask()
                return
            self._next += 1
            self._send(event)
        self._content.timers.call_later(0.0, self._go_on)

    def _send(self, event: RecordedEvent) -> None:
        params = event.params
        if event.kind == "progress" and is_number(params.get("progress")):
            report = {name: params[name] for name in ("progress", "total") if is_number(params.get(name))}
            self._request.progress(report | ({"message": words} if (words := as_text(params.get("message"))) else {}))
        elif event.kind == "log":
            level = LogLevel.read(params.get("level"))
            if level is not None:
                self._request.log(level, params.get("data"), as_text(params.get("logger")))
        elif event.kind == "notification":
            if event.method == "notifications/elicitation/complete":
                self._request.complete_elicitation(as_text(params.get("elicitationId")))
            else:
                self._content.notify(event.method, params)

    # Questions.

    def _ask(self) -> None:
        """Ask what the server asked in one round."""
        first = self._events[self._next]
        self._asked = [first]
        for event in self._events[self._next + 1 :] if first.key else ():
            if event.kind != "question" or event.after != first.after or event.method not in ASKS_FOR:
                break
            self._asked.append(event)
        self._next += len(self._asked)
        self._answers = {}
        asks = []
        for number, event in enumerate(self._asked):
            params = self._question(event)
            if params is None:
                self._stop(f"The client's revision cannot carry the recorded {event.method}.")
                return
            asks.append(ClientAsk(event.method, params, partial(self._take, number), event.key or None))
        try:
            self._request.ask(*asks)
        except RpcError as error:
            self._stop(f"The recording goes on after an answer to {first.method}. {error.message}")

    def _question(self, event: RecordedEvent) -> Mapping[str, Any] | None:
        params = dict(without(event.params, {"_meta"}))
        if not isinstance(params.get("mode", ""), str):
            return None
        if params.get("mode") == "url":  # modern servers name no id
            params.setdefault("elicitationId", secrets.token_urlsafe(16))
        return self._translation.question(event.method, params)

    def _take(self, number: int, answer: ClientAnswer) -> None:
        self._answers[number] = answer
        if len(self._answers) == len(self._asked) and not self._request.over:
            # Later, since a modern request has its new id only once all answers were passed on.
            self._content.timers.call_later(0.0, self._answered)

    def _answered(self) -> None:
        if self._request.over:
            return
        first = len(self._given)
        self._given += [
            (event.method, _given(self._answers[number], event.method, self._translation))
            for number, event in enumerate(self._asked)
        ]
        pairs = zip(self._asked, self._given[first:], strict=True)
        differing = next((pair for pair in pairs if not _agrees(*pair)), None)
        if differing is not None and not self._found_branch():
            event, (_, given) = differing
            if self._server.options.matching != "order":
                self._stop(_differs(event, given))
                return
            self._server.counts["differing"] += 1
        self._at = self._due(self._next)  # the person's time has passed
        self._go_on()

    def _found_branch(self) -> bool:
        """Go on in an exchange in which the client gave these answers to the same questions; False without one."""
        if self._server.options.matching == "order":
            return False
        for place in self._server.index.candidates(self._request.method, self._request.params):
            exchange = self._server.exchanges[place].exchange
            questions = [(n, event) for n, event in enumerate(exchange.events) if _is_question(event)]
            asked = questions[: len(self._given)]
            agree = (_agrees(event, given) for (_, event), given in zip(asked, self._given, strict=False))
            if len(asked) == len(self._given) and all(agree):
                self._content.sequence.use(place)
                self._go_to(place, asked[-1][0] + 1)
                return True
        return False

    def _stop(self, words: str) -> None:
        """End where the recording does not say how the server goes on."""
        self._server.counts["differing"] += 1
        self._server.report(f"{titled(self._request.method, self._request.params)}: {words}")
        refuse(self._request, words, ErrorCode.INTERNAL_ERROR)

    def _end(self) -> None:
        result, error = self._exchange.result, self._exchange.error
        self._server.counts["masked"] += self._exchange.masked
        method = self._request.method
        if result is not None:
            self._finish(method, carried(result))
        elif error is not None:
            failure = self._translation.error(method, _error_in(error))
            self._request.fail(failure)
        elif self._events and _is_question(self._events[-1]) and self._events[-1].answer is None:
            self._stop("The recording ends with this question.")
            return
        else:
            self._server.counts["unanswered"] += 1
            words = titled(method, self._request.params)
            self._server.report(f"{words}: the recording holds no answer, so none comes.")
        self._server.counts["served"] += 1
        self._content.pass_by(self._place)

    def _finish(self, method: str, result: Mapping[str, Any]) -> None:
        match method:
            case "tools/call":
                result = self._translation.tool_result(result)
            case "prompts/get":
                result = self._translation.prompt(result)
        self._request.finish(result)


def refuse(request: ServedRequest, words: str, code: ErrorCode, data: Any = None) -> None:
    """Answer with these words; for a tool as its result, which a model reads."""
    if request.method == "tools/call":
        request.finish({"content": [{"type": "text", "text": words}], "isError": True})
    else:
        request.fail(RpcError(code, words, data))


def carried(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recorded result without what names its session."""
    kept = of_this_leg(result)
    return {**kept, "cacheScope": result["cacheScope"]} if "cacheScope" in result else kept


def _is_question(event: RecordedEvent) -> bool:
    return event.kind == "question" and event.method in ASKS_FOR


def _error_in(error: Mapping[str, Any]) -> RpcError:
    code = error.get("code")
    return RpcError(
        code if type(code) is int else ErrorCode.INTERNAL_ERROR, as_text(error.get("message")), error.get("data")
    )


def _given(answer: ClientAnswer, method: str, translation: Translation) -> Json:
    """The client's answer as a recorded one."""
    if answer.result is None:
        return {"error": {} if answer.error is None else answer.error.as_object()}
    return {"result": dict(translation.answer(method, answer.result))}


def _agrees(event: RecordedEvent, given: tuple[str, Json]) -> bool:
    """True if the client gave the recorded answer to a question; any, where none was recorded."""
    method, answer = given
    if method != event.method or event.answer is None:
        return method == event.method
    if "result" not in event.answer:
        return "result" not in answer
    return "result" in answer and fits(_said(event.answer), _said(answer))


def _said(answer: Mapping[str, Any]) -> Json:
    """The members of an answer by which answers differ, those of its content beside the others."""
    result = as_dict(answer.get("result"))
    members = {name: value for name, value in result.items() if name not in {"_meta", *MODERN_MEMBERS}}
    if isinstance(members.get("content"), dict):
        members |= {f"content.{name}": value for name, value in members.pop("content").items()}
    return {name: value for name, value in members.items() if value is not None}


def _differs(event: RecordedEvent, given: Mapping[str, Any]) -> str:
    recorded = as_dict(event.answer)
    how = "it is an error, or the recorded one is"
    if "result" in recorded and "result" in given:
        how = f"it differs in {listed(differing_names(_said(recorded), _said(given)))}"
    return f"The recording holds no such answer to {event.method}: {how}."
