"""Calls that the demo server answers later."""

from __future__ import annotations

import pytest

from tests.demo.conftest import Json, Keeper


def send(keeper: Keeper, seconds: float, **task: object) -> str:
    """Send for supplies as a task; its id."""
    arguments = {"what": "jam", "seconds": seconds}
    keeper.ask(
        "tools/call",
        {"name": "send_for_supplies", "arguments": arguments, "task": task, "_meta": {"progressToken": 7}},
    )
    begun: Json = keeper.answer()["result"]["task"]
    assert (begun["status"], begun["pollInterval"]) == ("working", 1000)
    return str(begun["taskId"])


def asked(keeper: Keeper, method: str, name: str | None = None) -> Json:
    keeper.ask(f"tasks/{method}", {} if name is None else {"taskId": name})
    return keeper.answer()


def test_a_finished_task_keeps_its_result(keeper: Keeper) -> None:
    name = send(keeper, 0.1, ttl=5000)
    result = asked(keeper, "result", name)["result"]  # waits
    assert result["content"][0]["text"].startswith("Here is jam")
    assert result["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": name}}
    keeper.ask("ping")
    keeper.answer()
    (status,) = keeper.notices("tasks/status")
    assert status == asked(keeper, "get", name)["result"]
    assert (status["status"], status["ttl"], status["statusMessage"]) == ("completed", 5000, "home, and dry")
    assert asked(keeper, "result", name)["result"] == result
    assert [report["progress"] for report in keeper.notices("progress")] == [0, 1, 2, 3, 4, 5]


def test_a_task_is_cancelled_once(keeper: Keeper) -> None:
    name = send(keeper, 600)
    waiting = keeper.ask("tasks/result", {"taskId": name})
    assert asked(keeper, "cancel", name)["result"]["status"] == "cancelled"
    if not any(message.get("id") == waiting for message in keeper.heard):
        keeper.answer(waiting)
    (error,) = (message["error"] for message in keeper.heard if message.get("id") == waiting)
    assert error["message"] == "This task was cancelled, and has no result."
    assert asked(keeper, "cancel", name)["error"]["code"] == -32602
    assert asked(keeper, "get", name)["result"]["status"] == "cancelled"


def test_tasks_are_listed_in_pages(keeper: Keeper) -> None:
    names = [send(keeper, 600) for _ in range(6)]
    first = asked(keeper, "list")["result"]
    keeper.ask("tasks/list", {"cursor": first["nextCursor"]})
    second = keeper.answer()["result"]
    assert [task["taskId"] for task in first["tasks"] + second["tasks"]] == names
    assert "nextCursor" not in second


def test_a_task_is_forgotten_after_its_time_to_live(keeper: Keeper) -> None:
    name = send(keeper, 0, ttl=1)
    for _ in range(200):
        if "error" in asked(keeper, "get", name):
            break
    assert asked(keeper, "result", name)["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("revision", "name", "task", "answer"),
    [
        ("2025-11-25", "send_for_supplies", {}, "send_for_supplies only runs as a task."),
        ("2025-11-25", "feed_gulls", {"task": {}}, "feed_gulls never runs as a task."),
        ("2025-06-18", "send_for_supplies", {}, "Here is tea"),
        ("2025-06-18", "feed_gulls", {"task": {}}, "gulls now"),
    ],
)
def test_tasks_run_only_in_the_revision_that_has_them(
    newcomer: Keeper, revision: str, name: str, task: Json, answer: str
) -> None:
    newcomer.greet(revision)
    assert ("execution" in newcomer.tools()["send_for_supplies"]) is (revision >= "2025-11-25")
    arguments = {"seconds": 0} if name == "send_for_supplies" else {}
    newcomer.ask("tools/call", {"name": name, "arguments": arguments, **task})
    said = newcomer.answer()
    assert answer in (said["error"]["message"] if "error" in said else said["result"]["content"][0]["text"])
    newcomer.ask("tasks/list")
    assert ("error" in newcomer.answer()) is (revision < "2025-11-25")
