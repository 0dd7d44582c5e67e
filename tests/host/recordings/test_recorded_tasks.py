"""Calls that were answered with a task, with what the task brought."""

from __future__ import annotations

from typing import Any

from mcphost.host.recordings.recorded_tasks import with_tasks
from mcphost.host.recordings.recording import RecordedEvent, RecordedExchange, RecordedNotice, RecordedSession

Json = dict[str, Any]
DONE: Json = {"content": []}
FORM: Json = {"method": "elicitation/create", "params": {"message": "Who?"}}


def joined(
    result: Json, *more: RecordedExchange, notices: tuple[RecordedNotice, ...] = ()
) -> tuple[RecordedExchange, frozenset[int]]:
    params = {"name": "t", "_meta": {"progressToken": 5}}
    call = RecordedExchange("tools/call", params, 10.0, 0.1, result=result)
    session, tasks = with_tasks(RecordedSession("s", exchanges=(call, *more), notices=notices))
    assert session.exchanges[1:] == more
    return session.exchanges[0], tasks


def test_a_task_of_the_older_dialect_brings_all_that_came() -> None:
    asked = RecordedEvent("question", "elicitation/create", FORM["params"], 1.0, "", {"result": {"action": "decline"}})
    result = RecordedExchange("tasks/result", {"taskId": "7"}, 12.0, 3.0, (asked,), DONE)
    progress = RecordedNotice("notifications/progress", {"progressToken": 5, "progress": 1}, 11.0)
    call, tasks = joined({"task": {"taskId": "7"}}, result, notices=(progress,))
    assert (call.result, call.seconds, tasks) == (DONE, 5.0, frozenset({0}))
    assert [(each.kind, each.after) for each in call.events] == [("progress", 1.0), ("question", 3.0)]
    assert call.questions[0].answer == {"result": {"action": "decline"}}


def test_a_task_of_the_newer_dialect_brings_all_that_came() -> None:
    needs = RecordedExchange("tasks/get", {"taskId": "7"}, 11.0, 1.0, result={"inputRequests": {"a": FORM}})
    given = {"taskId": "7", "inputResponses": {"a": {"action": "cancel"}}}
    update = RecordedExchange("tasks/update", given, 13.0, 1.0, result={})
    ended = RecordedNotice("notifications/tasks", {"taskId": "7", "result": DONE}, 20.0, 2)
    call, _ = joined({"resultType": "task", "taskId": "7"}, needs, update, notices=(ended,))
    assert (call.result, call.seconds) == (DONE, 10.0)
    (question,) = call.questions
    assert (question.key, question.after, question.answer) == ("a", 2.0, {"result": {"action": "cancel"}})


def test_a_task_that_failed_brings_its_error() -> None:
    error = {"code": -32603, "message": "no"}
    failed = RecordedExchange("tasks/get", {"taskId": "7"}, 11.0, 1.0, result={"status": "failed", "error": error})
    call, _ = joined({"resultType": "task", "taskId": "7"}, failed)
    assert (call.result, call.error) == (None, error)


def test_a_task_without_an_end_is_unanswered() -> None:
    call, tasks = joined({"task": {"taskId": "7"}}, RecordedExchange("tasks/get", {"taskId": "7"}, 11.0, result={}))
    assert (call.result, call.error, call.seconds, tasks) == (None, None, None, frozenset({0}))


def test_a_result_without_a_task_stays() -> None:
    call, tasks = joined({"task": 7, "taskId": "7"})
    assert (call.result, tasks) == ({"task": 7, "taskId": "7"}, frozenset())
