"""Reads a file of traffic, of any era and of other programs too, as sessions of exchanges."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from mcphost.config.files import read_regular
from mcphost.errors import ConfigError, NotDone
from mcphost.host.recordings.first_line import META, facts_in
from mcphost.host.recordings.other_formats import other_lines
from mcphost.host.recordings.recording import (
    RecordedEvent,
    RecordedExchange,
    RecordedNotice,
    RecordedSession,
    Recording,
    RecordingFacts,
)
from mcphost.host.traffic.file import IMPORT_BYTES, MessageRecord, read_lines
from mcphost.host.traffic.message import CANCELLED, DISCOVER, INPUT_REQUIRED, LISTEN, MessageKind, read_facts
from mcphost.host.traffic.request_state import MEMBER, state_summary
from mcphost.json_values import as_dict, as_text, canonical
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.lifecycle.revisions import MAY_ASK, META_PREFIX
from mcphost.protocol.models.initialization import SERVER_INFO
from mcphost.protocol.wire.jsonrpc import Malformed, Message, Notification, Request, RequestId, Response, decode
from mcphost.redaction import MASK

PROBLEMS: Final = 100
"""Problems of a file that are kept; more would hide them."""

QUOTED: Final = 120
"""Characters of a line that a problem quotes."""

_BATCH: Final = 10_000
_HIDDEN: Final = MASK.encode()
_SUBSCRIPTION: Final = f"{META_PREFIX}subscriptionId"


def read_recording(path: Path) -> Recording:
    """Read a recording, a cassette of mcp-recorder, or a record of mcporter. Blocks on the disk.

    Raises NotDone, naming the file, and the line where one is wrong.
    """
    try:
        content = read_regular(path, IMPORT_BYTES)
    except FileNotFoundError:
        raise NotDone(f"{path}: there is no such file") from None
    except ConfigError as error:
        raise NotDone(str(error)) from None
    return recording_of(content, path.name)


def recording_of(content: bytes, name: str) -> Recording:
    """As `read_recording`, of the content of a file."""
    reader = _Reader(name)
    for record in other_lines(content, name) or read_lines(content, name):
        reader.add(record)
    return reader.recording()


class _Problems:
    def __init__(self) -> None:
        self._found: list[str] = []
        self._more = 0

    def add(self, line: int, words: str) -> None:
        if len(self._found) < PROBLEMS:
            self._found.append(f"line {line}: {words}" if line else words)
        else:
            self._more += 1

    def all(self) -> tuple[str, ...]:
        return (*self._found, *([f"and {self._more} more like these"] if self._more else ()))


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._facts: RecordingFacts | None = None
        self._current: dict[tuple[str, int], _SessionReader] = {}
        self._all: list[_SessionReader] = []
        self._problems = _Problems()

    def recording(self) -> Recording:
        sessions = tuple(each.session() for each in self._all)
        return Recording(self._name, self._facts, sessions, self._problems.all())

    def add(self, record: MessageRecord) -> None:
        if record.note == META:
            self._begin_run(record)
        elif record.note in ("malformed", "stray"):
            text = show_line(record.data.decode("utf-8", "replace"), QUOTED)
            self._problems.add(record.line, f"not a message: {text}")
        elif record.note == "stderr":
            self._session(record).stderr.append(record.data.decode("utf-8", "replace"))
        elif not record.note:
            self._add_message(record)

    def _begin_run(self, record: MessageRecord) -> None:
        """Take the facts of a run, whose messages follow; a session of its servers does not go on over two runs."""
        facts = facts_in(record.data, f"{self._name}, line {record.line}")
        if self._facts is None:
            self._facts = facts
        else:
            self._facts = self._facts._replace(servers={**self._facts.servers, **facts.servers})
        named = facts.servers or {server.rpartition(">")[2] for server, _ in self._current}
        self._current = {
            (server, number): each
            for (server, number), each in self._current.items()
            if server.rpartition(">")[2] not in named or record.connection not in (0, number)
        }

    def _add_message(self, record: MessageRecord) -> None:
        if record.size > len(record.data):
            self._session(record).add_cut(record)
            return
        for message in decode(record.data, batch_items=_BATCH):
            if isinstance(message, Malformed):
                self._problems.add(record.line, f"not a message: {show_line(message.reason, QUOTED)}")
                continue
            session = self._session(record)
            if record.sent and isinstance(message, Request) and message.method == "initialize" and session.introduced:
                session = self._new_session(record)
            session.add(record, message)

    def _session(self, record: MessageRecord) -> _SessionReader:
        return self._current.get((record.server, record.connection)) or self._new_session(record)

    def _new_session(self, record: MessageRecord) -> _SessionReader:
        session = self._current[record.server, record.connection] = _SessionReader(record, self._problems)
        self._all.append(session)
        return session


class _Exchange:
    """An exchange while it is read."""

    def __init__(self, record: MessageRecord, request: Request, number: int) -> None:
        self.number = number
        self.method, self.params, self.id = request.method, dict(request.params or {}), request.id
        self.time, self.line = record.time, record.line
        self.events: list[RecordedEvent] = []
        self.asked: dict[str, int] = {}
        """The places of the questions of the last round, by their keys."""
        self.answer: Response | None = None
        self.answered: MessageRecord | None = None
        self.masked = _HIDDEN in record.data
        self.unusable = False

    def note(self, record: MessageRecord, event: RecordedEvent) -> int:
        """Add an event, and return its place."""
        self.masked = self.masked or _HIDDEN in record.data
        self.events.append(event)
        return len(self.events) - 1

    def answer_question(self, record: MessageRecord, place: int, outcome: Mapping[str, Any]) -> None:
        question = self.events[place]
        seconds = max(0.0, round(_seconds(self.time, record.time) - question.after, 6))
        self.events[place] = question._replace(answer=outcome, seconds=seconds)

    def end(self, record: MessageRecord, answer: Response) -> None:
        self.answer, self.answered = answer, record
        self.masked = self.masked or _HIDDEN in record.data

    def exchange(self, started: float) -> RecordedExchange:
        answer, answered = self.answer, self.answered
        return RecordedExchange(
            self.method,
            self.params,
            _seconds(started, self.time),
            None if answered is None else _seconds(self.time, answered.time),
            tuple(self.events),
            None if answer is None or answer.error is not None else (answer.result or {}),
            None if answer is None or answer.error is None else answer.error.as_object(),
            self.masked,
            self.id,
            self.line,
            0 if answered is None else answered.line,
        )


_Id = tuple[type, RequestId]
_Round = tuple[str, str | None, str]


class _SessionReader:
    """Gathers the messages of one connection; each is added in constant time."""

    def __init__(self, record: MessageRecord, problems: _Problems) -> None:
        self.stderr: list[str] = []
        self._first, self._problems = record, problems
        self._exchanges: list[_Exchange] = []
        self._notices: list[tuple[RecordedNotice, int]] = []
        """With the number of exchanges that had begun before."""
        self._asking: dict[_Id, _Exchange] = {}
        """Unanswered requests during which a server may ask something."""
        self._waiting: dict[_Id, _Exchange] = {}
        """Other unanswered requests, without those that listen."""
        self._listening: dict[_Id, _Exchange] = {}
        self._tokens: dict[tuple[type, Any], _Exchange] = {}
        self._questions: dict[_Id, tuple[_Exchange, int]] = {}
        self._rounds: dict[_Round, deque[_Exchange]] = {}
        """Requests whose next round is awaited."""
        self._initialized: Mapping[str, Any] | None = None
        self._discovered: Mapping[str, Any] | None = None
        self._client: dict[str, Any] = {}
        self._asked_client: dict[str, Any] = {}
        self._revision = ""
        self._server_info: Any = None

    @property
    def introduced(self) -> bool:
        return self._initialized is not None

    def session(self) -> RecordedSession:
        modern = self._initialized is None and (self._discovered is not None or bool(self._revision))
        kept = [each for each in self._exchanges if not each.unusable]
        places, count = [-1], -1
        for each in self._exchanges:
            count += not each.unusable
            places.append(count)
        return RecordedSession(
            self._first.server.rpartition(">")[2],
            self._first.connection,
            modern,
            self._revision if modern else as_text((self._initialized or {}).get("protocolVersion")),
            self._introduction(modern),
            self._client if modern else self._asked_client,
            tuple(each.exchange(self._first.time) for each in kept),
            tuple(notice._replace(after=places[before]) for notice, before in self._notices),
            tuple(self.stderr),
            self._first.agent,
            self._first.time,
        )

    def _introduction(self, modern: bool) -> Mapping[str, Any]:
        if not modern:
            return self._initialized or {}
        info = {} if self._server_info is None else {"serverInfo": self._server_info}
        return {**info, **(self._discovered or {})}

    def add(self, record: MessageRecord, message: Message) -> None:
        match message:
            case Request() if record.sent:
                self._add_request(record, message)
            case Request():
                self._add_question(record, message)
            case Response() if record.sent:
                self._add_client_answer(record, message)
            case Response():
                self._add_answer(record, message)
            case Notification() if not record.sent and not record.injected:
                self._add_notice(record, message)

    def add_cut(self, record: MessageRecord) -> None:
        """Leave out the exchange of a message of which only the start is there."""
        facts = read_facts(record.data, whole=False)
        words = f"only {size_text(len(record.data))} of {size_text(record.size)} are here"
        if facts.id is not None and not record.sent and facts.kind in (MessageKind.RESPONSE, MessageKind.ERROR):
            exchange = self._answered(facts.id)
            if exchange is not None:
                exchange.unusable = True
                words += f"; this {show_line(exchange.method, QUOTED)} is left out"
        self._problems.add(record.line, words)

    # From the client.

    def _add_request(self, record: MessageRecord, request: Request) -> None:
        if record.injected and self._find(request.id) is not None:
            return  # a gate sends on what the agent asked for
        params = request.params or {}
        self._see_client(request.method, params)
        exchange = self._next_round(record, params, request.method)
        if exchange is None:
            exchange = _Exchange(record, request, len(self._exchanges))
            self._exchanges.append(exchange)
        key = _key(request.id)
        for each in (self._asking, self._waiting, self._listening):
            each.pop(key, None)
        self._open(request.method)[key] = exchange
        token = as_dict(params.get("_meta")).get("progressToken")
        if isinstance(token, int | str):
            self._tokens[_key(token)] = exchange

    def _open(self, method: str) -> dict[_Id, _Exchange]:
        if method == LISTEN:
            return self._listening
        return self._asking if method in MAY_ASK else self._waiting

    def _see_client(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "initialize":
            self._asked_client = {name: params[name] for name in ("clientInfo", "capabilities") if name in params}
            return
        meta = as_dict(params.get("_meta"))
        version = meta.get(f"{META_PREFIX}protocolVersion")
        if isinstance(version, str):
            self._revision = version
            names = {"clientInfo": "clientInfo", "clientCapabilities": "capabilities"}
            found = {own: meta[f"{META_PREFIX}{name}"] for name, own in names.items() if f"{META_PREFIX}{name}" in meta}
            self._client |= found

    def _next_round(self, record: MessageRecord, params: Mapping[str, Any], method: str) -> _Exchange | None:
        """The exchange that this request goes on with, its questions answered; None for a new one."""
        answers = params.get("inputResponses")
        waiting = self._rounds.get(_round(method, params, params.get(MEMBER)))
        if not waiting or not (MEMBER in params or isinstance(answers, dict)):
            return None
        exchange = waiting.popleft()
        exchange.masked = exchange.masked or _HIDDEN in record.data
        for key, given in as_dict(answers).items():
            if key in exchange.asked:
                exchange.answer_question(record, exchange.asked[key], {"result": given})
        return exchange

    def _add_client_answer(self, record: MessageRecord, answer: Response) -> None:
        found = None if answer.id is None else self._questions.pop(_key(answer.id), None)
        if found is None:
            return
        exchange, place = found
        exchange.masked = exchange.masked or _HIDDEN in record.data
        outcome = {"result": answer.result or {}} if answer.error is None else {"error": answer.error.as_object()}
        exchange.answer_question(record, place, outcome)

    # From the server.

    def _add_answer(self, record: MessageRecord, answer: Response) -> None:
        exchange = None if answer.id is None else self._answered(answer.id)
        if exchange is None:
            self._problems.add(record.line, "this answers no request of the file")
            return
        if record.injected:
            exchange.unusable = True
            words = f"mcphost answered this {show_line(exchange.method, QUOTED)} in place of the server; it is left out"
            self._problems.add(record.line, words)
            return
        result = answer.result
        if result is not None and result.get("resultType") == INPUT_REQUIRED:
            self._await_round(record, exchange, result)
            return
        exchange.end(record, answer)
        if result is not None:
            self._see_server(exchange.method, result)

    def _see_server(self, method: str, result: Mapping[str, Any]) -> None:
        info = as_dict(result.get("_meta")).get(SERVER_INFO)
        self._server_info = self._server_info if info is None else info
        if method == "initialize":
            self._initialized = result
        elif method == DISCOVER:
            self._discovered = result

    def _await_round(self, record: MessageRecord, exchange: _Exchange, result: Mapping[str, Any]) -> None:
        after = _seconds(exchange.time, record.time)
        exchange.asked = {}
        for key, asked in as_dict(result.get("inputRequests")).items():
            method, params = as_text(as_dict(asked).get("method")), as_dict(as_dict(asked).get("params"))
            exchange.asked[key] = exchange.note(record, RecordedEvent("question", method, params, after, key))
        exchange.masked = exchange.masked or _HIDDEN in record.data
        following = _round(exchange.method, exchange.params, result.get(MEMBER))
        self._rounds.setdefault(following, deque()).append(exchange)

    def _add_question(self, record: MessageRecord, request: Request) -> None:
        if request.method == "ping":
            return
        exchange = self._newest(asking=True)
        if exchange is None:
            words = f"the server asked {show_line(request.method, QUOTED)} outside of any request; it is left out"
            self._problems.add(record.line, words)
            return
        after = _seconds(exchange.time, record.time)
        place = exchange.note(record, RecordedEvent("question", request.method, dict(request.params or {}), after))
        self._questions[_key(request.id)] = exchange, place

    def _add_notice(self, record: MessageRecord, notice: Notification) -> None:
        params = dict(notice.params or {})
        if notice.method == CANCELLED:
            return  # of a question, which stays without an answer
        exchange = self._of_notice(notice.method, params)
        if exchange is None:
            at = _seconds(self._first.time, record.time)
            self._notices.append((RecordedNotice(notice.method, params, at), len(self._exchanges)))
            return
        kinds: dict[str, Any] = {"notifications/progress": "progress", "notifications/message": "log"}
        kind = kinds.get(notice.method, "notification")
        exchange.note(record, RecordedEvent(kind, notice.method, params, _seconds(exchange.time, record.time)))

    def _of_notice(self, method: str, params: Mapping[str, Any]) -> _Exchange | None:
        if _SUBSCRIPTION in as_dict(params.get("_meta")):
            return None
        if method == "notifications/progress":
            token = params.get("progressToken")
            exchange = self._tokens.get(_key(token)) if isinstance(token, int | str) else None
            return exchange if exchange is not None and exchange.answer is None else None
        return self._newest()

    # Unanswered requests.

    def _newest(self, *, asking: bool = False) -> _Exchange | None:
        """The newest unanswered request; with ``asking``, of those during which a server may ask, if there are any."""
        newest = [next(reversed(each.values())) for each in (self._asking, self._waiting) if each]
        return (newest[0] if asking else max(newest, key=attrgetter("number"))) if newest else None

    def _find(self, request_id: RequestId) -> _Exchange | None:
        key = _key(request_id)
        return self._asking.get(key) or self._waiting.get(key) or self._listening.get(key)

    def _answered(self, request_id: RequestId) -> _Exchange | None:
        """Take the exchange of this id from the unanswered ones."""
        key = _key(request_id)
        found = (each.pop(key, None) for each in (self._asking, self._waiting, self._listening))
        return next((each for each in [*found] if each is not None), None)


def _key(request_id: Any) -> _Id:
    return type(request_id), request_id


def _round(method: str, params: Mapping[str, Any], state: Any) -> _Round:
    """The common part of a request and its retry."""
    same = {name: value for name, value in params.items() if name not in ("_meta", "inputResponses", MEMBER)}
    summary = state_summary(state)
    return method, None if summary is None else summary.digest, canonical(same)


def _seconds(start: float, end: float) -> float:
    return round(max(0.0, end - start), 6)
