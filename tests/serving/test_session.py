"""The server's side of a session, fed by hand, in every revision."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from mcphost.protocol.extensions import TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import (
    HANDSHAKE_REVISIONS,
    META_PREFIX,
    MODERN_REVISIONS,
    REVISIONS,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Revision,
)
from mcphost.protocol.models.logging import LogLevel
from mcphost.serving.client_state import ASK_SECONDS, LOG_MESSAGES
from mcphost.serving.negotiation import LEVEL_KEY, RpcError, UndeclaredError
from mcphost.serving.pages import page
from mcphost.serving.rounds import ROUND_SECONDS, WAITING_REQUESTS
from mcphost.serving.served_request import ClientAnswer, ClientAsk, ServedRequest
from mcphost.serving.session import EARLY_MESSAGES
from mcphost.serving.subscriptions import SUBSCRIBED_ITEMS, SUBSCRIPTION_ID
from mcphost.serving.tasks import LONGEST_MILLISECONDS
from tests.serving.session_rig import QUESTION, Json, SessionRig

server = pytest.mark.server_requirement
every = pytest.mark.parametrize("revision", REVISIONS, ids=lambda each: each.version)
handshake = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda each: each.version)
modern = pytest.mark.parametrize("revision", MODERN_REVISIONS, ids=lambda each: each.version)
TASK_REVISIONS = pytest.mark.parametrize("revision", [V2025_11_25, V2026_07_28], ids=lambda each: each.version)


def code(answer: Json) -> int:
    number: int = answer["error"]["code"]
    return number


# Negotiation.


@server("SLIFE-01", "SLIFE-02", "SLIFE-03", "SLIFE-05")
@handshake
def test_initialize_agrees_on_the_revision_asked_for(revision: Revision) -> None:
    result = SessionRig(revision).ask("initialize", {"protocolVersion": revision.version})["result"]
    assert (result["protocolVersion"], result["instructions"]) == (revision.version, "Be kind.")
    assert result["serverInfo"] == {"name": "rig", "version": "1"}
    newer = {"completions"} if revision.version > "2024-11-05" else set()
    expected = {"logging", "tools", "resources", "prompts"} | newer | ({"tasks"} if revision.tasks else set())
    assert result["capabilities"].keys() == expected


@server("SLIFE-06", "SLIFE-07", "SLIFE-12")
@pytest.mark.parametrize("asked", ["1999-01-01", "2026-07-28", None, 7])
def test_an_unknown_revision_is_answered_with_the_newest(asked: Any) -> None:
    result = SessionRig(V2025_11_25).ask("initialize", {"protocolVersion": asked})["result"]
    assert result["protocolVersion"] == "2025-11-25"


@handshake
def test_messages_wait_until_initialize_is_answered(revision: Revision) -> None:
    rig, ready = SessionRig(revision), list[Callable[[], None]]()
    rig.prepare = ready.append  # type: ignore[assignment, method-assign]
    key = rig.start("initialize", {"protocolVersion": revision.version, "capabilities": {}})
    rig.notify("notifications/initialized")
    for _ in range(EARLY_MESSAGES - 1):
        rig.start("ping")
    assert rig.sent == []
    assert code(rig.ask("tools/list")) == -32600
    rig.sent.clear()
    ready.pop()()
    assert [each["id"] for each in rig.sent] == [*range(key, key + EARLY_MESSAGES)]
    assert rig.openings == 1


@server("SDISC-01", "SDISC-02", "SDISC-03", "SDISC-04", "SMETA-17", "SCACHE-01", "SXTASK-38")
@modern
def test_discover_is_answered_first_and_names_all_revisions(revision: Revision) -> None:
    result = SessionRig(revision).ask("server/discover")["result"]
    assert result["supportedVersions"] == [each.version for each in REVISIONS]
    assert result["_meta"] == {f"{META_PREFIX}serverInfo": {"name": "rig", "version": "1"}}
    assert "tasks" not in result["capabilities"]
    assert result["capabilities"]["extensions"] == {TASKS_EXTENSION: {}}
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")


@server("SVER-08", "SVER-09")
@handshake
def test_a_session_opens_after_the_probe_of_a_modern_client(revision: Revision) -> None:
    rig = SessionRig(V2026_07_28)
    assert "result" in rig.ask("server/discover")
    rig.revision = revision
    rig.open()
    rig.call().finish({"content": []})
    assert rig.answer(3)["result"] == {"content": []}


@server("SVER-01", "SVER-02", "SVER-03")
@pytest.mark.parametrize("version", ["2027-01-01", "2025-11-25", 7])
def test_metadata_of_an_unknown_version_is_refused(version: Any) -> None:
    error = SessionRig(V2026_07_28).ask("tools/list", **{f"{META_PREFIX}protocolVersion": version})["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": [each.version for each in REVISIONS], "requested": version}


@server("SMETA-08", "SMETA-09", "SLOG-12")
@pytest.mark.parametrize(
    "change",
    [
        {f"{META_PREFIX}clientCapabilities": None},
        {f"{META_PREFIX}logLevel": "loud"},
    ],
)
def test_invalid_metadata_is_refused(change: Json) -> None:
    assert code(SessionRig(V2026_07_28).ask("tools/list", **change)) == -32602


@server("SMETA-08")
def test_metadata_without_a_version_is_refused() -> None:
    rig = SessionRig(V2025_11_25)
    assert code(rig.ask("tools/list", **{f"{META_PREFIX}clientCapabilities": {}})) == -32602


@server("SMSG-21", "SMSG-22", "SVER-12", "SXTASK-36")
@pytest.mark.parametrize(
    ("method", "has_it"),
    [
        ("ping", HANDSHAKE_REVISIONS),
        ("logging/setLevel", HANDSHAKE_REVISIONS),
        ("resources/subscribe", HANDSHAKE_REVISIONS),
        ("resources/unsubscribe", HANDSHAKE_REVISIONS),
        ("tasks/list", [V2025_11_25]),
        ("tasks/result", [V2025_11_25]),
        ("tasks/get", [V2025_11_25, V2026_07_28]),
        ("tasks/cancel", [V2025_11_25, V2026_07_28]),
        ("tasks/update", [V2026_07_28]),
        ("server/discover", MODERN_REVISIONS),
        ("subscriptions/listen", MODERN_REVISIONS),
        ("tools/list", REVISIONS),
        ("resources/templates/list", REVISIONS),
        ("completion/complete", REVISIONS),
        ("roots/list", []),
        ("mcphost/approve", []),
    ],
)
def test_a_method_exists_in_its_revisions(method: str, has_it: list[Revision]) -> None:
    for revision in REVISIONS:
        rig = SessionRig(revision).open()
        answers = rig.answers(rig.start(method))
        missing = any(each.get("error", {}).get("code") == -32601 for each in answers)
        assert missing is (revision not in has_it), revision.version


@server("SLIFE-10", "SLIFE-11", "SPROM-24", "SCOMP-09")
@every
@pytest.mark.parametrize("method", ["prompts/list", "resources/read", "completion/complete"])
def test_a_method_needs_its_capability(revision: Revision, method: str) -> None:
    rig = SessionRig(revision)
    rig.offers = {"tools": {}}
    rig.open()
    undeclared = revision.version == "2024-11-05" and method == "completion/complete"  # it had no capability then
    assert [code(each) for each in rig.answers(rig.start(method))] == ([] if undeclared else [-32601])


@server("SPING-02")
@handshake
def test_only_ping_is_answered_before_initialize(revision: Revision) -> None:
    rig = SessionRig(revision)
    assert rig.ask("ping")["result"] == {}
    assert code(rig.ask("tools/list")) == -32600


@handshake
def test_a_session_is_initialized_once(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    rig.notify("notifications/initialized")
    assert rig.openings == 1
    assert code(rig.ask("initialize", {"protocolVersion": revision.version})) == -32600


# Messages.


@server("SMSG-07", "SMSG-20", "SMSG-23", "SMSG-24", "SMSG-25")
@pytest.mark.parametrize(
    ("line", "key", "number"),
    [
        (b"no json", None, -32700),
        (b'{"jsonrpc":"2.0","id":3,"id":4,"method":"ping"}', None, -32700),
        (b"[]", None, -32600),
        (b'["a"]', None, -32600),
        (b"7", None, -32600),
        (b'{"id":3,"method":"ping"}', 3, -32600),
        (b'{"jsonrpc":"2.0","id":"a","method":7}', "a", -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', 3, -32602),
    ],
)
def test_an_invalid_message_gets_its_error(line: bytes, key: Any, number: int) -> None:
    rig = SessionRig(V2025_11_25).open()
    rig.session.receive(line)
    (answer,) = rig.sent
    assert (answer["id"], code(answer)) == (key, number)
    assert rig.ask("ping")["result"] == {}


@server("SCANC-08", "SMSG-19")
@every
@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/unknown"},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"method": "notifications/cancelled", "params": {"requestId": True}},
        {"method": "notifications/cancelled", "params": 7},
        {"id": "ask-9", "result": {}},
        {"id": 1, "result": {}},
    ],
)
def test_a_stray_message_gets_no_answer(revision: Revision, message: Json) -> None:
    rig = SessionRig(revision).open()
    rig.session.take({"jsonrpc": "2.0", **message})
    assert rig.sent == []


def test_a_second_request_with_an_open_id_is_refused() -> None:
    rig = SessionRig(V2025_11_25).open()
    for _ in range(2):
        rig.session.take({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "t"}})
    assert (code(rig.answer("x")), len(rig.begun)) == (-32600, 1)


@server("SBATCH-01", "SBATCH-04")
def test_a_batch_is_answered_together_when_all_is_done() -> None:
    rig = SessionRig(V2025_03_26).open()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
    rig.session.take([call, {"jsonrpc": "2.0", "id": 2, "method": "ping"}, 7, {"jsonrpc": "2.0", "method": "x"}])
    assert rig.sent == []
    rig.begun[0].finish({"content": []})
    (answers,) = rig.sent
    assert [each["id"] for each in answers] == [2, None, 1]


@server("SBATCH-03")
def test_a_batch_without_requests_gets_no_answer() -> None:
    rig = SessionRig(V2025_03_26).open()
    rig.session.take([{"jsonrpc": "2.0", "method": "notifications/unknown"}] * 2)
    assert rig.sent == []


def test_a_batch_does_not_wait_for_a_cancelled_request() -> None:
    rig = SessionRig(V2025_03_26).open()
    rig.session.take([{"jsonrpc": "2.0", "id": each, "method": "tools/call", "params": {}} for each in (1, 2)])
    rig.begun[0].finish({"content": []})
    rig.notify("notifications/cancelled", {"requestId": 2})
    assert [[each["id"] for each in batch] for batch in rig.sent] == [[1]]


@server("SBATCH-08")
@pytest.mark.parametrize("revision", [each for each in REVISIONS if not each.batches], ids=lambda each: each.version)
def test_a_batch_is_refused_in_other_revisions(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    rig.session.take([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert [code(each) for each in rig.sent] == [-32600]


# Results and errors.


@server("SMSG-32", "SMSG-33", "SCACHE-01", "SCACHE-02", "SCACHE-04", "SCACHE-05")
@every
@pytest.mark.parametrize(("method", "cached"), [("tools/list", True), ("resources/read", True), ("tools/call", False)])
def test_a_result_has_the_members_of_its_era(revision: Revision, method: str, cached: bool) -> None:
    rig = SessionRig(revision).open()
    key = rig.start(method)
    rig.begun[-1].finish({"a": 1, "_meta": {"x": 2}} | ({"ttlMs": 5} if cached else {}))
    result = rig.answer(key)["result"]
    hints = {"ttlMs": 5, "cacheScope": "private"} if cached else {}
    identity = {f"{META_PREFIX}serverInfo": {"name": "rig", "version": "1"}}
    added = {"resultType": "complete", "_meta": {"x": 2, **identity}, **hints} if revision.modern else {}
    assert result == {"a": 1, "_meta": {"x": 2}} | added


@server("SRES-25", "SRES-26", "SMSG-30")
@every
def test_a_missing_resource_has_the_code_of_its_era(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    key = rig.start("resources/read", {"uri": "x:/"})
    rig.begun[-1].fail(RpcError(-32002, "not here", {"uri": "x:/"}))
    number = -32602 if revision.modern else -32002
    assert rig.answer(key)["error"] == {"code": number, "message": "not here", "data": {"uri": "x:/"}}


@every
def test_an_error_passes_unchanged(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    key = rig.start("tools/call")
    rig.begun[-1].fail(RpcError(12345, "as it came", [1]))
    assert rig.answer(key)["error"] == {"code": 12345, "message": "as it came", "data": [1]}


# Progress, cancellation, log messages.


@server("SPROG-01", "SPROG-03", "SPROG-04", "SPROG-05")
@every
@pytest.mark.parametrize("token", ["a", 0])
def test_progress_grows_and_ends_with_the_answer(revision: Revision, token: str | int) -> None:
    rig = SessionRig(revision).open()
    request = rig.call(progressToken=token)
    for value in (0, 1, 1, 0.5, 2):
        request.progress({"progress": value})
    request.finish({"content": []})
    request.progress({"progress": 3})
    assert rig.notices("progress") == [{"progressToken": token, "progress": value} for value in (0, 1, 2)]


@server("SPROG-01")
@every
@pytest.mark.parametrize("meta", [{}, {"progressToken": True}, {"progressToken": 1.5}])
def test_progress_needs_a_token(revision: Revision, meta: Json) -> None:
    rig = SessionRig(revision).open()
    rig.call(**meta).progress({"progress": 1})
    assert rig.sent == []


@server("SCANC-02", "SCANC-04", "SSTDIO-06")
@every
def test_a_cancelled_request_gets_no_answer(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    request, told = rig.call(progressToken=1), list[int]()
    request.on_cancel = lambda: told.append(1)
    rig.notify("notifications/cancelled", {"requestId": rig.start("tools/list") - 1})
    request.finish({"content": []})
    request.progress({"progress": 1})
    request.log(LogLevel.EMERGENCY, "x", "y")
    assert (told, rig.sent) == ([1], [])


@server("SCANC-06", "SCANC-07")
@every
def test_a_late_cancellation_changes_nothing(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    request = rig.call()
    request.finish({"content": []})
    request.on_cancel = lambda: pytest.fail("cancelled")
    before = list(rig.sent)
    rig.notify("notifications/cancelled", {"requestId": 1 if revision.modern else 2})
    assert rig.sent == before


@server("SLOG-04", "SLOG-05")
@handshake
def test_the_log_level_is_that_of_the_session(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    request = rig.call()
    assert rig.ask("logging/setLevel", {"level": "error"})["result"] == {}
    for level in LogLevel:
        request.log(level, {"a": 1}, "l")
    rig.session.log(LogLevel.ERROR, "s", "l")
    levels = [each["level"] for each in rig.notices("message")]
    assert levels == ["error", "critical", "alert", "emergency", "error"]
    assert code(rig.ask("logging/setLevel", {"level": "loud"})) == -32602


@server("SLOG-08", "SLOG-09", "SLOG-10")
@modern
@pytest.mark.parametrize(("level", "heard"), [(None, []), ("alert", ["alert", "emergency"])])
def test_the_log_level_is_that_of_the_request(revision: Revision, level: str | None, heard: list[str]) -> None:
    rig = SessionRig(revision)
    request = rig.call(**({f"{META_PREFIX}logLevel": level} if level else {}))
    for each in LogLevel:
        request.log(each, "x", "l")
        rig.session.log(each, "of no request", "l")
    assert [each["level"] for each in rig.notices("message")] == heard


# Questions to the client.


@server("SMSG-34", "SMRTR-01", "SMRTR-06", "SELIC-07")
@every
def test_a_question_is_asked_and_answered(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    request, answers = rig.call(progressToken=1), list[ClientAnswer]()
    request.ask(ClientAsk("roots/list", {}, answers.append))
    if revision.modern:
        (need,) = rig.answer(1)["result"]["inputRequests"].values()
    else:
        need = rig.sent[-1]
    assert (need["method"], need["params"]) == ("roots/list", {})
    rig.reply({"roots": []})
    assert answers == [ClientAnswer({"roots": []})]
    request.finish({"content": []})
    assert rig.sent[-1]["result"]["content"] == []


@server("SELIC-01", "SELIC-02", "SSAMP-01", "SSAMP-02", "SROOT-01", "SMRTR-07", "SMETA-12", "SMETA-14")
@every
@pytest.mark.parametrize(
    ("method", "params", "declared", "required"),
    [
        ("roots/list", {}, {}, {"roots": {}}),
        ("sampling/createMessage", {}, {"sampling": None}, {"sampling": {}}),
        ("elicitation/create", {}, {}, {"elicitation": {"form": {}}}),
        ("elicitation/create", {"mode": "url"}, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("elicitation/create", {"mode": "form"}, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
    ],
)
def test_what_is_undeclared_is_not_asked(
    revision: Revision, method: str, params: Json, declared: Json, required: Json
) -> None:
    rig = SessionRig(revision, declared).open()
    request = rig.call()
    with pytest.raises(UndeclaredError) as caught:
        request.ask(ClientAsk(method, params, lambda answer: None))
    assert (caught.value.code, caught.value.data) == (-32021, {"requiredCapabilities": required})
    assert rig.sent == []


@pytest.mark.parametrize(
    ("revision", "members"),
    [
        (V2025_06_18, {"message", "requestedSchema"}),
        (V2025_11_25, {"mode", "message", "requestedSchema", "elicitationId"}),
        (V2026_07_28, {"mode", "message", "requestedSchema"}),
    ],
)
def test_a_question_has_the_members_of_its_revision(revision: Revision, members: set[str]) -> None:
    rig = SessionRig(revision).open()
    rig.call().ask(ClientAsk("elicitation/create", {**QUESTION, "elicitationId": "e"}, lambda answer: None))
    message = rig.sent[-1]
    asked = message if "params" in message else next(iter(message["result"]["inputRequests"].values()))
    assert asked["params"].keys() - ({"elicitationId"} if revision is V2025_06_18 else set()) == members


@server("SCANC-01", "SCANC-05", "SMSG-04")
@handshake
def test_a_question_ends_with_its_request(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    request, answers = rig.call(), list[ClientAnswer]()
    request.ask(ClientAsk("roots/list", {}, answers.append))
    key = rig.sent[-1]["id"]
    rig.notify("notifications/cancelled", {"requestId": 2})
    rig.reply({"roots": []})
    assert [each["requestId"] for each in rig.notices("cancelled")] == [key]
    assert answers == [ClientAnswer()]


@handshake
def test_a_refusal_of_the_client_is_passed_on(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    answers = list[ClientAnswer]()
    rig.call().ask(ClientAsk("roots/list", {}, answers.append))
    key = rig.sent[-1]["id"]
    rig.session.take({"jsonrpc": "2.0", "id": key, "error": {"code": -1, "message": "no", "data": 7}})
    (answer,) = answers
    assert answer.error is not None
    assert answer.error.as_object() == {"code": -1, "message": "no", "data": 7}


# Rounds.


def waiting() -> tuple[SessionRig, list[ClientAnswer], Json]:
    """A call that waits for an answer, and the result that asks for it."""
    rig, answers = SessionRig(V2026_07_28), list[ClientAnswer]()
    rig.call(progressToken="old").ask(ClientAsk("elicitation/create", QUESTION, answers.append))
    return rig, answers, rig.answer(1)["result"]


def attempt(rig: SessionRig, asked: Json, **change: Any) -> int:
    responses = {key: {"action": "decline"} for key in asked["inputRequests"]}
    params = {"name": "t", "arguments": {}, "inputResponses": responses, "requestState": asked["requestState"]}
    return rig.start(change.pop("method", "tools/call"), params | change, progressToken="new")


@server("SMRTR-05", "SCACHE-03", "SMSG-38")
def test_the_state_of_a_round_says_nothing() -> None:
    _, _, asked = waiting()
    assert asked["resultType"] == "input_required"
    assert not {"ttlMs", "cacheScope"} & asked.keys()
    assert len(bytes.fromhex(asked["requestState"])) == 16


def test_a_call_goes_on_with_the_id_and_token_of_its_attempt() -> None:
    rig, answers, asked = waiting()
    request = rig.begun[0]
    request.progress({"progress": 5})  # between two attempts there is no request that it could belong to
    key = attempt(rig, asked)
    assert answers == [ClientAnswer({"action": "decline"})]
    request.progress({"progress": 1})
    assert rig.notices("progress") == [{"progressToken": "new", "progress": 1}]
    request.finish({"content": []})
    assert rig.answer(key)["result"]["content"] == []
    assert len(rig.begun) == 1


@server("SMRTR-14")
def test_a_state_counts_once() -> None:
    rig, answers, asked = waiting()
    attempt(rig, asked)
    assert code(rig.answer(attempt(rig, asked))) == -32602
    assert len(answers) == 1


@server("SMRTR-08", "SMRTR-10", "SMRTR-13", "SMRTR-16", "SMRTR-17")
@pytest.mark.parametrize(
    "change",
    [
        {"requestState": "0" * 32},
        {"requestState": 7},
        {"arguments": {"changed": 1}},
        {"name": "other"},
        {"method": "prompts/get"},
        {"inputResponses": [1]},
        {"inputResponses": {"ask-1": "yes"}},
    ],
)
def test_a_forged_attempt_is_refused_and_the_call_waits_on(change: Json) -> None:
    rig, answers, asked = waiting()
    assert code(rig.answer(attempt(rig, asked, **change))) == -32602
    assert answers == []
    attempt(rig, asked)
    assert len(answers) == 1


@server("SMRTR-18", "SMRTR-19")
def test_a_missing_answer_is_asked_for_again() -> None:
    rig, answers, asked = waiting()
    again = rig.answer(attempt(rig, asked, inputResponses={"unknown": {}}))["result"]
    assert again["inputRequests"] == asked["inputRequests"]
    assert again["requestState"] != asked["requestState"]
    attempt(rig, again)
    assert len(answers) == 1


def test_a_question_of_the_meantime_is_asked_in_the_next_round() -> None:
    rig, _, asked = waiting()
    rig.begun[0].ask(ClientAsk("roots/list", {}, lambda answer: None))
    again = rig.answer(attempt(rig, asked))["result"]
    assert [each["method"] for each in again["inputRequests"].values()] == ["roots/list"]


@server("SMRTR-03")
def test_several_questions_are_asked_in_one_round() -> None:
    rig, answers = SessionRig(V2026_07_28), list[ClientAnswer]()
    rig.call().ask(*(ClientAsk("roots/list", {}, answers.append) for _ in range(2)))
    asked = rig.answer(1)["result"]
    assert len(asked["inputRequests"]) == 2
    attempt(rig, asked)
    assert len(answers) == 2


def test_a_question_after_an_answer_waits_for_the_others() -> None:
    rig, answers = SessionRig(V2026_07_28), list[ClientAnswer]()
    request = rig.call()
    more = ClientAsk("sampling/createMessage", {}, answers.append)
    request.ask(
        ClientAsk("roots/list", {}, lambda answer: request.ask(more)), ClientAsk("roots/list", {}, answers.append)
    )
    again = rig.answer(attempt(rig, rig.answer(1)["result"]))["result"]
    assert [each["method"] for each in again["inputRequests"].values()] == ["sampling/createMessage"]
    assert len(answers) == 1


def test_a_result_of_the_meantime_answers_the_next_attempt() -> None:
    rig, answers, asked = waiting()
    rig.begun[0].finish({"content": [1]})
    assert answers == [ClientAnswer()]
    assert rig.answer(attempt(rig, asked))["result"]["content"] == [1]


@server("SMRTR-12")
@pytest.mark.parametrize("idle", [True, False])
def test_a_state_is_valid_for_a_while_only(idle: bool) -> None:
    rig, _, asked = waiting()
    if idle:
        rig.timers.advance(ROUND_SECONDS)
        assert rig.begun[0].over
    rig.timers.now = ROUND_SECONDS
    assert code(rig.answer(attempt(rig, asked))) == -32602
    assert (rig.begun[0].over, rig.timers.waiting) == (True, [])


@server("SMRTR-15")
@every
def test_a_call_goes_on_without_an_answer_after_a_while(revision: Revision) -> None:
    rig, answers = SessionRig(revision).open(), list[ClientAnswer]()
    request = rig.call()
    request.ask(ClientAsk("roots/list", {}, answers.append))
    rig.timers.advance(ASK_SECONDS - 1)
    assert answers == []
    rig.timers.advance(1)
    assert [answer.error and answer.error.message for answer in answers] == [
        "The client did not answer within 600 seconds."
    ]
    assert len(rig.notices("cancelled")) == (0 if revision.modern else 1)
    request.finish({"content": []})
    if revision.modern:
        rig.reply({"roots": []})
    assert rig.sent[-1]["result"]["content"] == []
    assert rig.timers.waiting == []


def test_an_answer_ends_the_wait_for_it() -> None:
    rig, answers = SessionRig(V2025_11_25).open(), list[ClientAnswer]()
    rig.call().ask(ClientAsk("roots/list", {}, answers.append))
    rig.reply({"roots": []})
    assert (rig.timers.waiting, len(answers)) == ([], 1)


@server("SMRTR-15")
def test_the_oldest_of_too_many_waiting_calls_is_given_up() -> None:
    rig = SessionRig(V2026_07_28)
    for _ in range(WAITING_REQUESTS + 1):
        rig.call().ask(ClientAsk("roots/list", {}, lambda answer: None))
    assert [each.over for each in rig.begun] == [True] + [False] * WAITING_REQUESTS


@server("SMRTR-02")
def test_other_methods_cannot_ask_in_rounds() -> None:
    rig = SessionRig(V2026_07_28)
    rig.start("completion/complete")
    with pytest.raises(RpcError, match="cannot ask"):
        rig.begun[0].ask(ClientAsk("roots/list", {}, lambda answer: None))


@server("SMETA-16")
def test_each_attempt_declares_its_own_capabilities() -> None:
    rig, _, asked = waiting()
    rig.capabilities = {}
    attempt(rig, asked)
    with pytest.raises(UndeclaredError):
        rig.begun[0].ask(ClientAsk("roots/list", {}, lambda answer: None))


# Announcements.


@server("SRES-02", "STOOL-02")
@handshake
def test_a_changed_list_is_announced_if_that_was_declared(revision: Revision) -> None:
    rig = SessionRig(revision)
    rig.session.list_changed("tools")  # not before the session is open
    rig.open()
    for kind in ("tools", "prompts", "resources"):
        rig.session.list_changed(kind)
    assert [each["method"] for each in rig.sent] == [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
    ]


@server("SRES-33", "SRES-34", "SRES-35", "SRES-36")
@handshake
def test_a_resource_is_announced_while_it_is_subscribed(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    for method in ("resources/subscribe", "resources/unsubscribe"):
        rig.session.resource_updated("x:/")
        rig.start(method, {"uri": "x:/"})
        rig.begun[-1].finish({})
        rig.session.resource_updated("x:/")
    assert rig.notices("resources/updated") == [{"uri": "x:/"}] * 2


@handshake
def test_a_refused_subscription_announces_nothing(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    rig.start("resources/subscribe", {"uri": "x:/"})
    rig.begun[-1].fail(RpcError(-32002, "no"))
    rig.session.resource_updated("x:/")
    assert rig.notices("resources/updated") == []


def listen(rig: SessionRig, **wanted: Any) -> Json:
    """Listen; what is honoured."""
    rig.start("subscriptions/listen", {"notifications": wanted})
    honoured: Json = rig.sent[-1]["params"]["notifications"]
    assert rig.sent[-1]["method"] == "notifications/subscriptions/acknowledged"
    return honoured


@server("SSUB-02", "SSUB-04", "SSUB-05")
@modern
def test_a_listener_hears_what_can_be_kept(revision: Revision) -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["x:/", 7], "other": 1}
    assert listen(SessionRig(revision), **wanted) == {"toolsListChanged": True, "resourceSubscriptions": ["x:/"]}


@server("SSUB-01", "SSUB-06", "SSUB-07", "SSUB-08", "SSUB-11", "SRES-38", "SRES-39", "STOOL-03")
@modern
def test_each_listener_hears_of_its_own(revision: Revision) -> None:
    rig = SessionRig(revision)
    listen(rig, toolsListChanged=True)
    listen(rig, toolsListChanged=False, resourceSubscriptions=["x:/"])
    listen(rig, toolsListChanged=True)
    rig.sent.clear()
    rig.notify("notifications/cancelled", {"requestId": 3})
    rig.session.list_changed("tools")
    rig.session.list_changed("resources")
    rig.session.resource_updated("x:/")
    rig.session.resource_updated("y:/")
    assert [(each["method"], each["params"]["_meta"]) for each in rig.sent] == [
        ("notifications/tools/list_changed", {SUBSCRIPTION_ID: 1}),
        ("notifications/resources/updated", {SUBSCRIPTION_ID: 2}),
    ]


@server("SSUB-09", "SSUB-10", "SCANC-10", "SCANC-11")
@modern
def test_the_end_of_a_session_ends_its_listeners_with_words(revision: Revision) -> None:
    rig = SessionRig(revision)
    listen(rig, toolsListChanged=True)
    call = rig.call()
    rig.session.close()
    assert rig.answer(1)["result"]["_meta"][SUBSCRIPTION_ID] == 1
    assert rig.notices("cancelled") == [{"requestId": 1}]
    assert call.over
    count = len(rig.sent)
    rig.session.list_changed("tools")
    assert len(rig.sent) == count


@modern
@pytest.mark.parametrize("wanted", [None, [], True])
def test_an_invalid_filter_is_refused(revision: Revision, wanted: Any) -> None:
    assert code(SessionRig(revision).ask("subscriptions/listen", {"notifications": wanted})) == -32602


# Pages.


@server("SPAGE-01", "SPAGE-02", "SPAGE-03", "SPAGE-04")
def test_pages_follow_each_other_without_gaps() -> None:
    found, params = list[int](), dict[str, Any]()
    for _ in range(3):
        got = page("items", range(7), params, 3)
        found += got["items"]
        params = {"cursor": got.get("nextCursor")}
    assert (found, params) == ([*range(7)], {"cursor": None})


@server("SPAGE-05", "SPAGE-06")
@pytest.mark.parametrize("cursor", ["", "from-0", "from-1", "from-9", 3, None])
def test_an_unknown_cursor_is_refused(cursor: Any) -> None:
    with pytest.raises(RpcError) as caught:
        page("items", range(7), {"cursor": cursor}, 3)
    assert caught.value.code == -32602


# Tasks, in both dialects.


def task(rig: SessionRig, **wanted: Any) -> Json:
    """Start a task; as its client sees it."""
    key = rig.start("tools/call", {"name": "t", "arguments": {}, "task": wanted}, progressToken=1)
    assert rig.begun[-1].may_start_task
    rig.begun[-1].start_task()
    result = rig.answer(key)["result"]
    started: Json = result if rig.revision.modern else result["task"]
    return started


@server("STASK-10", "STASK-20", "STASK-21", "STASK-50", "SXTASK-04", "SXTASK-06", "SXTASK-09", "SXTASK-34")
@TASK_REVISIONS
def test_a_call_is_answered_by_a_task(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    started = task(rig)
    suffix = "Ms" if revision.modern else ""
    assert started["status"] == "working"
    assert {"createdAt", "lastUpdatedAt", f"ttl{suffix}", f"pollInterval{suffix}"} <= started.keys()
    assert len(bytes.fromhex(started["taskId"])) == 16
    got = rig.ask("tasks/get", {"taskId": started["taskId"]})["result"]
    assert got["status"] == "working"
    assert got.get("resultType") == ("complete" if revision.modern else None)


@server("SXTASK-02", "STASK-06", "SXTASK-39")
@every
def test_a_task_is_started_only_where_the_client_takes_one(revision: Revision) -> None:
    rig = SessionRig(revision, {}).open()
    rig.start("tools/call", {"name": "t"} if revision.tasks else {"name": "t", "task": {}})
    assert not rig.begun[-1].may_start_task


@pytest.mark.parametrize(
    ("revision", "outcome", "status"),
    [
        (V2025_11_25, {"content": []}, "completed"),
        (V2025_11_25, {"content": [], "isError": True}, "failed"),
        (V2025_11_25, RpcError(-5, "broke"), "failed"),
        (V2026_07_28, {"content": []}, "completed"),
        (V2026_07_28, {"content": [], "isError": True}, "completed"),
        (V2026_07_28, RpcError(-5, "broke"), "failed"),
    ],
)
@server("STASK-22", "STASK-27", "STASK-29", "STASK-46", "STASK-47", "SXTASK-07", "SXTASK-14", "SXTASK-15")
@server("SXTASK-24", "SXTASK-31", "SXTASK-32", "SXTASK-33")
def test_a_task_keeps_its_outcome(revision: Revision, outcome: Any, status: str) -> None:
    rig = SessionRig(revision).open()
    name = task(rig)["taskId"]
    if revision.modern:
        listen(rig, taskIds=[name])
    call = rig.begun[-1]
    if isinstance(outcome, RpcError):
        call.fail(outcome)
    else:
        call.finish(outcome)
    got = rig.ask("tasks/get", {"taskId": name})["result"]
    assert got["status"] == status
    notice = rig.notices("tasks" if revision.modern else "tasks/status")[-1]
    envelope = {"_meta", "resultType"}
    assert {key: notice[key] for key in notice.keys() - envelope} == {key: got[key] for key in got.keys() - envelope}
    whole = got if revision.modern else rig.ask("tasks/result", {"taskId": name})
    if isinstance(outcome, RpcError):
        assert (whole["error"], got["statusMessage"]) == ({"code": -5, "message": "broke"}, "broke")
    elif revision.modern:
        assert whole["result"] == outcome
    else:
        related = {"_meta": {f"{META_PREFIX}related-task": {"taskId": name}}}
        assert whole["result"] == outcome | related


@server("STASK-23")
def test_the_result_of_a_task_is_awaited() -> None:
    rig = SessionRig(V2025_11_25).open()
    name = task(rig)["taskId"]
    key = rig.start("tasks/result", {"taskId": name})
    assert rig.answers(key) == []
    rig.begun[-1].finish({"content": [1]})
    assert rig.answer(key)["result"]["content"] == [1]


def test_a_cancelled_wait_for_a_task_is_forgotten() -> None:
    rig = SessionRig(V2025_11_25).open()
    params = {"taskId": task(rig)["taskId"]}
    waiter = ServedRequest(rig.session, "waiter", "tasks/result", params, rig.begun[-1].declaration)
    assert rig.state.tasks.result(waiter) is None
    waiter.cancel()
    kept = weakref.ref(waiter)
    del waiter
    gc.collect()
    assert kept() is None


@server("STASK-12", "STASK-36", "STASK-38", "STASK-39", "SXTASK-08", "SXTASK-21")
@TASK_REVISIONS
def test_a_task_is_cancelled_for_good(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    name = {"taskId": task(rig)["taskId"]}
    call, stopped = rig.begun[-1], list[int]()
    call.on_cancel = lambda: stopped.append(1)
    first, second = rig.ask("tasks/cancel", name), rig.ask("tasks/cancel", name)
    call.finish({"content": []})
    assert (rig.ask("tasks/get", name)["result"]["status"], stopped) == ("cancelled", [1])
    if revision.modern:
        assert first["result"].keys() == second["result"].keys() == {"resultType", "_meta"}
    else:
        assert (first["result"]["status"], code(second)) == ("cancelled", -32602)


@server("STASK-14", "STASK-15", "STASK-16", "SXTASK-13", "SXTASK-18", "SXTASK-19", "SXTASK-20")
@TASK_REVISIONS
def test_a_task_asks_in_its_dialect(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    name, answers = {"taskId": task(rig)["taskId"]}, list[ClientAnswer]()
    rig.begun[-1].ask(ClientAsk("roots/list", {}, answers.append))
    got = rig.ask("tasks/get", name)["result"]
    assert got["status"] == "input_required"
    if revision.modern:
        (key,) = got["inputRequests"]
        rig.ask("tasks/update", name | {"inputResponses": {"unknown": {}}})
        assert rig.ask("tasks/update", name | {"inputResponses": {key: {"roots": []}}})["result"].keys() == {
            "resultType",
            "_meta",
        }
    else:
        assert next(each for each in rig.sent if each.get("method") == "roots/list")["params"] == {
            "_meta": {f"{META_PREFIX}related-task": name}
        }
        rig.reply({"roots": []})
    assert answers == [ClientAnswer({"roots": []})]
    assert rig.ask("tasks/get", name)["result"]["status"] == "working"


@server("STASK-24", "STASK-31", "STASK-32", "SXTASK-25")
@TASK_REVISIONS
def test_progress_of_a_task_is_for_the_older_dialect(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    name = task(rig)["taskId"]
    rig.begun[-1].progress({"progress": 1, "message": "half"})
    rig.begun[-1].log(LogLevel.ALERT, "x", "l")
    progress = [each["_meta"] for each in rig.notices("progress")]
    assert progress == ([] if revision.modern else [{f"{META_PREFIX}related-task": {"taskId": name}}])
    assert rig.ask("tasks/get", {"taskId": name})["result"]["statusMessage"] == "half"


@server("STASK-42", "SXTASK-26", "SXTASK-27")
@TASK_REVISIONS
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_an_unknown_task_is_an_error(revision: Revision, method: str) -> None:
    rig = SessionRig(revision).open()
    for params in ({"taskId": "x"}, {}):
        assert code(rig.ask(method, params)) == -32602


@server("SXTASK-23", "SXTASK-28")
@pytest.mark.parametrize(
    ("method", "params"),
    [("tasks/get", {"taskId": "x"}), ("subscriptions/listen", {"notifications": {"taskIds": ["x"]}})],
)
def test_tasks_need_the_extension_on_each_request(method: str, params: Json) -> None:
    error = SessionRig(V2026_07_28, {}).ask(method, params)["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}


@server("STASK-56")
def test_the_time_of_a_task_is_bounded() -> None:
    assert task(SessionRig(V2025_11_25).open(), ttl=10**12)["ttl"] == LONGEST_MILLISECONDS


@server("SLOG-14")
@every
def test_log_messages_come_at_a_bounded_rate(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    request = rig.call(**({LEVEL_KEY: "info"} if revision.modern else {}))
    for number in range(LOG_MESSAGES + 20):
        request.log(LogLevel.INFO, number, "flood")
    assert [each["data"] for each in rig.notices("message")] == [*range(LOG_MESSAGES)]
    rig.timers.advance(1)
    request.log(LogLevel.INFO, "calm", "flood")
    words = f"20 log messages were left out: more than {LOG_MESSAGES} in a second."
    assert [each["data"] for each in rig.notices("message")][LOG_MESSAGES:] == [words, "calm"]


# Notices to the content.


@handshake
def test_a_level_is_reported_to_the_content(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    rig.ask("logging/setLevel", {"level": "debug"})
    rig.ask("logging/setLevel", {"level": "loud"})
    assert rig.told == [LogLevel.DEBUG]


@server("SROOT-02")
@handshake
def test_changed_roots_are_reported_to_the_content(revision: Revision) -> None:
    rig = SessionRig(revision).open()
    rig.notify("notifications/roots/list_changed")
    assert rig.told == ["roots"]


def test_subscriptions_of_both_ways_are_reported_together() -> None:
    rig = SessionRig(V2025_11_25).open()
    rig.start("resources/subscribe", {"uri": "a:1"})
    rig.begun[-1].finish({})
    rig.start("resources/subscribe", {"uri": "a:2"})
    rig.begun[-1].fail(RpcError(-32002, "none"))
    rig.revision = V2026_07_28
    first = rig.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a:1", "a:3"]}})
    rig.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["a:3"]}})
    rig.notify("notifications/cancelled", {"requestId": first})
    rig.revision = V2025_11_25
    rig.start("resources/unsubscribe", {"uri": "a:1"})
    rig.begun[-1].finish({})
    rig.session.close()
    assert rig.told == [{"a:1"}, {"a:1", "a:3"}, {"a:3"}, set()]


def test_subscriptions_are_bounded() -> None:
    rig = SessionRig(V2025_11_25).open()
    for number in range(SUBSCRIBED_ITEMS):
        rig.start("resources/subscribe", {"uri": f"a:{number}"})
        rig.begun[-1].finish({})
    assert code(rig.ask("resources/subscribe", {"uri": "b:1"})) == -32602
    rig.start("resources/subscribe", {"uri": "a:1"})
    assert len(rig.begun) == SUBSCRIBED_ITEMS + 1


def test_a_fault_in_serving_a_request_is_an_error_of_that_request(caplog: pytest.LogCaptureFixture) -> None:
    rig = SessionRig(V2025_11_25).open()
    rig.begun = ()  # type: ignore[assignment]  # which has no append
    assert code(rig.ask("tools/list")) == -32603
    assert "tools/list" in caplog.text
    assert rig.ask("ping")["result"] == {}
