"""The replay of a recording: as the server was, to clients of every revision."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mcphost.errors import NotDone, UnknownName
from mcphost.host.recordings.recording import (
    RecordedEvent,
    RecordedExchange,
    RecordedNotice,
    RecordedSession,
    Recording,
)
from mcphost.host.recordings.replay import SILENT_SECONDS, ReplayedContent
from mcphost.host.recordings.replayed_server import ReplayedServer, ReplayOptions, server_in
from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28, Revision
from mcphost.serving.http_listener import HttpContent
from mcphost.serving.negotiation import ServerIntroduction
from mcphost.serving.served_request import ServedRequest
from mcphost.serving.session import ServerSession
from tests.host.recordings.replay_rig import (
    ANSWERS,
    Reply,
    ScriptedClient,
    another_client,
    demo_client,
    replay_client,
)
from tests.serving.manual_timers import ManualTimers

Json = dict[str, Any]

ERAS = (V2025_11_25, V2026_07_28)
recorded_in = pytest.mark.parametrize("recorded", ERAS, ids=lambda each: f"recorded-{each.version}")
replayed_in = pytest.mark.parametrize("live", ERAS, ids=lambda each: f"live-{each.version}")

# The demo and its replay.

CALLS: tuple[tuple[str, Json], ...] = (
    ("read_instruments", {}),
    ("hail_ship", {"name": "Nobody"}),
    ("hail_ship", {"name": 7}),
    ("ask_ghost", {"question": "Why?"}),
    ("no_such_tool", {}),
    ("climb_tower", {"seconds": 0}),
    ("brew_storm", {"lines": 3, "on_stderr": 0, "seconds": 0}),
    ("sign_guest_book", {}),
    ("look_at_charts", {}),
    ("write_verse", {}),
)
REQUESTS: tuple[tuple[str, Json], ...] = (
    ("resources/read", {"uri": "lighthouse://logbook"}),
    ("resources/read", {"uri": "lighthouse://nothing"}),
    ("prompts/get", {"name": "hail_ship", "arguments": {"ship": "Kittiwake"}}),
    ("prompts/get", {"name": "no_such_prompt"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "hail_ship"}, "argument": {"name": "ship", "value": "K"}},
    ),
)
LISTS = (
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
)
OF_AN_ERA = ("_meta", "resultType", "ttlMs", "cacheScope")


def use(client: ScriptedClient) -> Json:
    """Use all of the demo; what a person would see of it."""
    seen: Json = {"instructions": client.open()["instructions"], "tools": tools(client)}
    seen |= {method: client.listed(method, member) for method, member in LISTS}
    seen |= {f"{tool} {arguments}": told(client.call(tool, **arguments)) for tool, arguments in CALLS}
    seen |= {f"{method} {params}": told(client.ask(method, params)) for method, params in REQUESTS}
    seen["gulls"] = [told(client.call("feed_gulls", fish=1)) for _ in range(2)]
    return seen


def tools(client: ScriptedClient) -> list[Json]:
    listed = client.listed("tools/list", "tools")
    return [{name: value for name, value in each.items() if name != "execution"} for each in listed]


def told(reply: Reply) -> Json:
    """A reply without what differs between the eras."""
    result = {name: value for name, value in as_dict(reply.result).items() if name not in OF_AN_ERA}
    error = None if reply.error is None else reply.error["message"]
    logs = [(each["level"], each["data"]) for each in reply.logs if each["logger"] == "weather"]
    return {"result": result, "error": error, "progress": reply.progress, "asked": reply.asked, "logs": logs}


@cache
def recorded_demo(revision: Revision) -> tuple[RecordedSession, Json]:
    client = demo_client(revision)
    seen = use(client)
    return client.session(), seen


@recorded_in
@replayed_in
def test_the_same_script_sees_the_same_of_server_and_replay(recorded: Revision, live: Revision) -> None:
    session, expected = recorded_demo(recorded)
    client, server = replay_client(live, session)
    seen = use(client)
    assert {name for name, value in expected.items() if seen[name] != value} == set()
    assert server.faithful, server.summary()


def test_an_older_client_gets_what_its_revision_can_carry() -> None:
    client, _ = replay_client(V2024_11_05, recorded_demo(V2026_07_28)[0])
    assert client.open()["protocolVersion"] == "2024-11-05"
    assert "structuredContent" not in as_dict(client.call("hail_ship", name="Nobody").result)
    assert client.ask("resources/read", {"uri": "lighthouse://nothing"}).error


def test_a_list_is_served_as_it_was_at_that_place() -> None:
    recorded = demo_client(V2025_11_25)
    recorded.open()
    before = tools(recorded)
    recorded.call("open_boathouse")
    after = tools(recorded)
    client, _ = replay_client(V2025_11_25, recorded.session())
    client.open()
    assert [tools(client), tools(client)] == [before, before] != [after, after]
    client.call("open_boathouse")
    assert [each["method"] for each in client.drain()] == ["notifications/tools/list_changed"]
    assert [tools(client), tools(client)] == [after, after]


# Written recordings.

TEXT = {"content": [{"type": "text", "text": "done"}]}
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ADA = {"action": "accept", "content": {"name": "Ada"}}
ALL = {
    "tools": {}, "prompts": {}, "resources": {"subscribe": True, "listChanged": True}, "logging": {},
}  # fmt: skip


def session(
    *exchanges: RecordedExchange, notices: tuple[RecordedNotice, ...] = (), revision: Revision = V2025_11_25
) -> RecordedSession:
    introduction = {"capabilities": ALL, "serverInfo": {"name": "s", "version": "1"}}
    return RecordedSession("s", 1, revision.modern, revision.version, introduction, {}, exchanges, notices)


def call(name: str = "t", *events: RecordedEvent, text: str = "done", **more: Any) -> RecordedExchange:
    result = {"content": [{"type": "text", "text": text}]}
    return RecordedExchange("tools/call", {"name": name, "arguments": {}}, 0.0, 1.0, events, result)._replace(**more)


def question(answer: Json | None, key: str = "", method: str = "elicitation/create") -> RecordedEvent:
    return RecordedEvent("question", method, FORM, 0.5, key, answer)


def text_of(reply: Reply) -> str:
    text: str = as_dict(reply.result)["content"][0]["text"]
    return text


def replayed(live: Revision, *exchanges: RecordedExchange, **options: Any) -> tuple[ScriptedClient, ReplayedServer]:
    client, server = replay_client(live, session(*exchanges), **options)
    client.open()
    return client, server


@replayed_in
def test_a_call_that_was_not_recorded_names_the_nearest(live: Revision) -> None:
    client, server = replayed(live, call("log", params={"name": "log", "arguments": {"count": 10}}))
    reply = client.call("log", count=11)
    assert as_dict(reply.result)["isError"] is True
    assert text_of(reply) == "The recording holds no such call. Nearest: log {count: 10}; it differs in count."
    assert (server.counts["missed"], server.faithful) == (1, False)


def test_without_the_nearest_a_miss_is_an_error() -> None:
    client, _ = replayed(V2025_11_25, call("log"), names_nearest=False)
    assert client.call("log", count=11).error == {"code": -32602, "message": "The recording holds no such call."}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [("resources/read", {"uri": "a:b"}, -32002), ("prompts/get", {"name": "p"}, -32602), ("prompts/list", {}, -32601)],
)
def test_what_was_not_recorded_is_an_error(method: str, params: Json, code: int) -> None:
    client, server = replayed(V2025_11_25, call())
    assert as_dict(client.ask(method, params).error)["code"] == code
    assert server.counts["missed"] == 1


@replayed_in
def test_an_error_keeps_its_code_message_and_data(live: Revision) -> None:
    error = {"code": 7, "message": "no", "data": {"why": [1]}}
    client, _ = replayed(live, call(result=None, error=error))
    assert client.call("t").error == error


@replayed_in
def test_an_unanswered_request_stays_open(live: Revision) -> None:
    said: list[str] = []
    server = ReplayedServer([session(call(result=None, seconds=None))], report=said.append)
    client = another_client(server, live)
    client.open()
    client.start("tools/call", {"name": "t"})
    assert [each for each in client.drain() if "id" in each] == []
    assert said == ["tools/call t: the recording holds no answer, so none comes."]
    assert "unanswered as recorded 1" in server.summary()


@replayed_in
def test_another_answer_of_the_client_ends_the_call(live: Revision) -> None:
    recorded = call("t", question({"result": {"action": "decline"}}))
    client, server = replayed(live, recorded)
    assert text_of(client.call("t")) == (
        "The recording holds no such answer to elicitation/create: "
        "it differs in action, content.name and content.steps."
    )
    assert server.counts["differing"] == 1


@replayed_in
def test_another_answer_goes_on_where_it_was_recorded(live: Revision) -> None:
    declined = call("t", question({"result": {"action": "decline"}}), text="declined")
    accepted = call("t", question({"result": ANSWERS["elicitation/create"]}), text="accepted")
    client, server = replayed(live, declined, accepted)
    assert text_of(client.call("t")) == "accepted"
    assert server.faithful


def test_in_order_another_answer_is_only_counted() -> None:
    client, server = replayed(V2025_11_25, call("t", question({"result": ADA})), matching="order")
    assert (text_of(client.call("t")), server.counts["differing"]) == ("done", 1)


@replayed_in
def test_a_client_that_takes_no_questions_is_informed(live: Revision) -> None:
    client, server = replay_client(live, session(call("t", question({"result": ADA}))))
    client.capabilities = {}
    client.open()
    assert "The client declares no elicitation." in text_of(client.call("t"))
    assert server.counts["differing"] == 1


@replayed_in
def test_the_questions_of_a_round_are_asked_together(live: Revision) -> None:
    both = [question({"result": ANSWERS[method]}, key, method) for key, method in (("a", "roots/list"), ("b", FORMS))]
    client, _ = replay_client(live, session(call("t", *both), revision=V2026_07_28))
    client.open()
    reply = client.call("t")
    assert (text_of(reply), reply.asked) == ("done", ["roots/list", FORMS])
    rounds = [line for sent, line in client.lines if not sent and "inputRequests" in as_dict(line.get("result"))]
    assert [each["result"]["inputRequests"].keys() for each in rounds] == ([{"a", "b"}] if live.modern else [])


FORMS = "elicitation/create"


def test_a_recording_that_ends_with_a_question_says_so() -> None:
    client, _ = replayed(V2025_11_25, call("t", question(None), result=None, seconds=None))
    assert text_of(client.call("t")) == "The recording ends with this question."


def test_several_sessions_of_a_server_are_merged_in_order() -> None:
    client, _ = replay_client(V2025_11_25, session(call(text="one")), session(call(text="two"), revision=V2026_07_28))
    client.open()
    assert [text_of(client.call("t")) for _ in range(3)] == ["one", "two", "two"]


def test_each_client_begins_at_the_start() -> None:
    server = ReplayedServer([session(call(text="one"), call(text="two"))])
    first, second = (another_client(server, V2025_11_25) for _ in range(2))
    first.open()
    second.open()
    assert [text_of(each.call("t")) for each in (first, first, second)] == ["one", "two", "one"]
    assert server.counts["served"] == 3


@replayed_in
def test_notices_follow_the_exchange_before_them(live: Revision) -> None:
    updated = RecordedNotice("notifications/resources/updated", {"uri": "a:b"}, 2.0, 1)
    subscribed = RecordedExchange("resources/subscribe", {"uri": "a:b"}, result={}, seconds=0.1)
    client, _ = replay_client(live, session(subscribed, call(), notices=(updated,)))
    client.open()
    if live.modern:
        client.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a:b"]}})
    else:
        client.ask("resources/subscribe", {"uri": "a:b"})
    assert "notifications/resources/updated" not in [each["method"] for each in client.drain()]
    client.call("t")
    assert "notifications/resources/updated" in [each["method"] for each in client.drain()]


def test_logs_of_the_start_come_once_the_session_is_open() -> None:
    hello = RecordedNotice("notifications/message", {"level": "info", "data": "hello"}, 0.1, 0)
    client, _ = replay_client(V2025_11_25, session(RecordedExchange("initialize"), call(), notices=(hello,)))
    client.capabilities = {}
    client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert [each["params"]["data"] for each in client.drain()] == ["hello"]


@replayed_in
def test_a_recorded_task_is_a_task_for_who_takes_one(live: Revision) -> None:
    started = call(result={"task": {"taskId": "7", "status": "working"}})
    ended = RecordedExchange("tasks/result", {"taskId": "7"}, 1.0, 1.0, result={**TEXT, "_meta": {"a": 1}})
    tasks: Json = {"tasks": {"requests": {"tools": {"call": {}}}}}
    recorded = session(started, ended)
    recorded = recorded._replace(introduction={**recorded.introduction, "capabilities": {**ALL, **tasks}})
    client, _ = replay_client(live, recorded)
    client.open()
    reply = client.ask("tools/call", {"name": "t", "arguments": {}, "task": {}})
    task = as_dict(reply.result) if live.modern else as_dict(reply.result)["task"]
    found = as_dict(client.ask("tasks/get" if live.modern else "tasks/result", {"taskId": task["taskId"]}).result)
    assert (found["result"] if live.modern else found)["content"] == TEXT["content"]
    client.capabilities = {}
    assert client.call("t").result is not None


def test_masked_values_are_counted() -> None:
    client, server = replayed(V2025_11_25, call(masked=True))
    client.call("t")
    assert "with masked values 1" in server.summary()


class Live(HttpContent):
    """Answers everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def introduction(self, revision: Revision) -> ServerIntroduction:
        raise AssertionError("the recording introduces the server")

    def input_schema(self, tool: str) -> Json:
        return {}

    def begin(self, request: ServedRequest) -> None:
        self.heard.append(request.params.get("name", request.method))
        request.finish({**TEXT, "tools": []})

    def subscriptions_changed(self, uris: frozenset[str]) -> None:
        self.heard.append(uris)


def test_a_live_server_answers_only_what_was_not_recorded() -> None:
    live = Live()
    server = ReplayedServer([session(RecordedExchange("resources/subscribe", {"uri": "a:b"}, result={}), call())])
    server.open_live = lambda: live
    client = another_client(server, V2025_11_25)
    client.open()
    assert [text_of(client.call(name)) for name in ("t", "u")] == ["done", "done"]
    assert client.listed("tools/list", "tools") == []
    for uri in ("a:b", "a:c"):
        client.ask("resources/subscribe", {"uri": uri})
    assert live.heard == ["u", "tools/list", frozenset(), frozenset({"a:c"})]
    assert (server.counts["served"], server.counts["missed"]) == (1, 2)


# Time.


def timed(speed: float, *events: RecordedEvent, seconds: float, token: bool = True) -> list[float]:
    """The times at which messages come."""
    timers, times = ManualTimers(), list[float]()
    content = ReplayedContent(
        ReplayedServer([session(call("t", *events, seconds=seconds))], ReplayOptions(speed=speed)), timers
    )
    served = ServerSession(content, lambda message, about: times.append(round(timers.now, 3)), timers=timers)
    served.take({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
    meta = {"_meta": {"progressToken": 1}} if token else {}
    params = {"name": "t", "arguments": {}, **meta}
    served.take({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
    timers.advance(1_000.0)
    return times[1:]


def progress(value: int, after: float) -> RecordedEvent:
    return RecordedEvent("progress", "notifications/progress", {"progress": value, "progressToken": 1}, after)


@pytest.mark.parametrize(("speed", "expected"), [(0.0, [0, 0, 0]), (1.0, [1, 3, 4]), (2.0, [0.5, 1.5, 2])])
def test_the_recorded_times_pass_as_fast_as_asked(speed: float, expected: list[float]) -> None:
    assert timed(speed, progress(1, 1.0), progress(2, 3.0), seconds=4.0) == expected


def test_no_wait_is_longer_than_clients_bear() -> None:
    assert timed(1.0, progress(1, 300.0), seconds=900.0) == [SILENT_SECONDS, 2 * SILENT_SECONDS]
    assert timed(1.0, progress(1, 300.0), seconds=900.0, token=False) == [SILENT_SECONDS]


# Hostile recordings.


@pytest.mark.parametrize(
    "event",
    [
        RecordedEvent("progress", "notifications/progress", {"progress": "1"}),
        RecordedEvent("progress", "notifications/progress", {"progress": 1, "total": [], "message": {}}),
        RecordedEvent("log", "notifications/message", {"level": 7}),
        RecordedEvent("log", "notifications/message", {"level": [], "logger": {}}),
        RecordedEvent("notification", "notifications/resources/updated", {"uri": []}),
        RecordedEvent("notification", "notifications/elicitation/complete", {"elicitationId": []}),
        RecordedEvent("question", "server/format", {}),
        RecordedEvent("notification", "notifications/cancelled", {"requestId": 1}),
        RecordedEvent("notification", "/list_changed", {}),
        RecordedEvent("notification", "", {}, -5.0),
    ],
)
@replayed_in
def test_events_of_wrong_kinds_do_not_end_a_call(live: Revision, event: RecordedEvent) -> None:
    client, _ = replayed(live, call("t", event))
    assert text_of(client.call("t")) == "done"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", {"mode": []}),
        ("elicitation/create", {"mode": "x", "requestedSchema": 7}),
        ("elicitation/create", {"requestedSchema": {"properties": {"a": 7, "b": {"oneOf": [7]}}}}),
        ("sampling/createMessage", {"messages": [7, {"content": [[]]}], "tools": 1}),
    ],
)
@pytest.mark.parametrize("live", [V2024_11_05, V2025_06_18, *ERAS], ids=lambda each: each.version)
def test_a_question_of_wrong_kinds_ends_in_an_answer(live: Revision, method: str, params: Json) -> None:
    client, _ = replayed(live, call("t", RecordedEvent("question", method, params)))
    assert text_of(client.call("t"))


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": 7, "structuredContent": 7, "_meta": 7, "isError": "x"},
        {"content": [7, {"type": []}, {"type": "audio", "mimeType": 7}], "resultType": 7},
        {"task": {"taskId": 7}, "inputRequests": []},
    ],
)
@pytest.mark.parametrize("live", [V2024_11_05, *ERAS], ids=lambda each: each.version)
def test_a_result_of_wrong_kinds_is_passed_on(live: Revision, result: Json) -> None:
    client, _ = replayed(live, call(result=result))
    assert client.call("t").error is None


@pytest.mark.parametrize("error", [{}, {"code": "x", "message": 7}, {"code": True, "data": None}])
def test_an_error_of_wrong_kinds_is_still_one(error: Json) -> None:
    client, _ = replayed(V2025_11_25, call(result=None, error=error))
    assert as_dict(client.call("t").error)["code"] == -32603


def test_cursors_in_a_circle_are_no_list() -> None:
    pages = [
        RecordedExchange("tools/list", {"cursor": "a"} if n else {}, result={"tools": [], "nextCursor": "a"})
        for n in range(9)
    ]
    client, _ = replayed(V2025_11_25, *pages)
    error = {"code": -32601, "message": "The recording holds no whole tools/list."}
    assert client.ask("tools/list").error == error


def test_a_list_with_other_things_serves_its_definitions() -> None:
    client, _ = replayed(V2025_11_25, RecordedExchange("tools/list", result={"tools": [7, {"name": "t"}, None]}))
    assert client.listed("tools/list", "tools") == [{"name": "t"}]


def test_a_flood_of_progress_leaves_others_their_turn() -> None:
    client, _ = replayed(V2025_11_25, call("t", *(progress(number, 0.0) for number in range(1_000))))
    client.start("tools/call", {"name": "t"})
    client.start("ping")
    first = [client.next() for _ in range(2)]
    assert {"jsonrpc": "2.0", "id": client.start("ping") - 1, "result": {}} in [*first, *client.drain()]


# The choice of a server.


def test_the_server_with_the_most_requests_is_replayed() -> None:
    recording = Recording("r", sessions=(session(call())._replace(server="a"), session(call(), call())))
    assert (server_in(recording), server_in(recording, "a")) == ("s", "a")
    with pytest.raises(UnknownName, match="holds no server 'b'; it holds a and s"):
        server_in(recording, "b")
    with pytest.raises(NotDone, match="holds no request"):
        server_in(Recording("r"))
