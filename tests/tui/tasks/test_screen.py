"""The tasks of servers on screen: listed, cancelled, and their results."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcphost.host.catalog import CatalogTool
from mcphost.host.tool_calls.call import CallState
from mcphost.host.tool_calls.tasks import KeptTask
from mcphost.protocol.models.tasks import TASK_ID_LENGTH, Task
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.tasks.screen import TasksScreen, task_facts, task_row
from tests.tui.stage import NARROW, WIDE, on_stage, server, servers
from tests.tui.tasks.errands import begun, errands, listed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.requirement("TASK-09")
async def test_tasks_are_listed_with_all_that_is_known_and_one_is_cancelled(size: tuple[int, int]) -> None:
    async with on_stage(errands(), size=size) as stage:
        await stage.ready()
        call = await begun(stage, interval=60_000)
        screen = await listed(stage)
        assert [each.key for each in screen.rows.items] == [("errands", "task-1")]
        await stage.shows("task-1", "research · call 1, running", "◐ working", "100000 to go", "5 min", "every 1 min")
        await stage.press("x")
        await stage.shows("◌ cancelled", "research · call 1, cancelled")
        assert (await stage.ended(call)).state is CallState.CANCELLED
        assert not screen.check_action("cancel", ())
        await stage.press("escape")
        await stage.gone()


async def test_a_list_that_arrives_after_the_screen_was_closed_does_no_harm() -> None:
    """The worker may end when the screen has lost its widgets, and before it is cancelled."""
    async with on_stage(errands(), size=NARROW) as stage:
        await stage.ready()
        call = await begun(stage)
        screen = await listed(stage)
        tasks = screen.rows.items
        await stage.press("escape")
        await stage.until(lambda _: not screen.children)
        screen.show_tasks(tasks, ["one more thing"])
        assert stage.app.failure_count == 0
        call.cancel()
        await stage.ended(call)


async def test_a_running_call_is_found_again_in_the_list_of_tasks() -> None:
    async with on_stage(errands(), size=NARROW) as stage:
        await stage.ready()
        call = await begun(stage)
        await stage.press("h")
        await stage.shows("research", "task ")
        await stage.press("T")
        await stage.at(TasksScreen)
        await stage.shows("Tasks · errands · 1")  # of the call's server
        await stage.press("enter")
        await stage.gone()
        assert stage.app.main.tools.shown_call == call.number
        await stage.shows("runs as task  task-1 · working", "kept for 5 min")
        await stage.press("4")
        await stage.shows("task state", "task kept for")
        call.cancel()
        await stage.ended(call)


async def test_what_a_task_of_an_earlier_run_brought_is_shown_as_a_result(tmp_path: Path) -> None:
    keep = tmp_path / "tasks"
    old = {"left": 0, "token": None, "status": "working"}
    keep.write_text(json.dumps({"task-1": old, "task-2": {**old, "left": 100_000}}))
    async with on_stage(errands("--keep", keep)) as stage:
        await stage.ready()
        screen = await listed(stage)
        await stage.shows("unknown: not started in this run")
        await stage.press("y")
        assert stage.app.clipboard == "task-1"
        await stage.press("enter")
        await stage.gone()
        await stage.shows("found", "Result · errands › task task-1", "● done")
        await listed(stage)
        await stage.press("down", "enter")
        await stage.shows("esc or x stops waiting; the task continues")
        call = list(stage.host.tool_calls.calls.values())[-1]
        await stage.press("escape")
        assert (await stage.ended(call)).state is CallState.CANCELLED
        await stage.shows("No longer waiting", "The task continues on the server")
        assert (await stage.host.tasks.listed("errands")).items[1].status == "working"
    assert screen.rows.items[0].tool is None


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("cancel", "errands does not list its tasks: it declares no tasks.list"),
        ("list", "Not cancelled: the server does not offer tasks.cancel"),
    ],
)
@pytest.mark.requirement("TASK-01")
async def test_what_a_server_did_not_declare_is_said_in_a_sentence(declared: str, said: str) -> None:
    async with on_stage(errands("--declare", declared), size=WIDE) as stage:
        await stage.ready()
        call = await begun(stage)
        await listed(stage)
        await stage.shows("task-1", "working")
        if declared == "list":
            await stage.press("x")
        await stage.until(lambda _: said in stage.flat)
        await stage.press("escape")
        call.cancel()
        await stage.ended(call)


async def test_the_key_is_on_the_line_only_where_a_server_keeps_tasks() -> None:
    async with on_stage(servers(plain=server("echo.py")), size=WIDE) as stage:
        await stage.ready()
        await stage.press("s", "T")
        assert len(stage.app.screen_stack) == 1
        assert "T tasks" not in stage.text
        stage.app.post_message(MainScreen.TasksRequested(None))
        await stage.at(TasksScreen)
        await stage.shows("No ready server keeps tasks")
        await stage.press("escape")
    async with on_stage(errands(), size=WIDE) as stage:
        await stage.ready()
        await stage.press("s")
        await stage.shows("T tasks")
        await stage.press("down", "c")
        await stage.shows("calls can run as tasks: T lists them", "T tasks")


@pytest.mark.hostile("T01")
async def test_a_hostile_task_id_is_shown_safe_and_sent_as_it_came(tmp_path: Path) -> None:
    """A task's id and words are its server's: never markup, never a command; the server gets its id back exactly."""
    odd, record = "[red]\x1b[2J‮$(reboot)/../", tmp_path / "wire"
    async with on_stage(errands("--named", odd, "--record", record), size=WIDE) as stage:
        await stage.ready()
        call = await begun(stage)
        screen = await listed(stage)
        await stage.shows("[red]␛[2J⟨U+202E⟩$(reboot)/../")
        await stage.press("y", "x")
        assert stage.app.clipboard == odd
        await stage.ended(call)
        await stage.shows("◌ cancelled")
        assert screen.rows.items[0].task.task_id == odd
    assert "\x1b" not in stage.app.clipboard.replace(odd, "")
    cancelled = [json.loads(line) for line in record.read_text().splitlines() if '"tasks/cancel"' in line]
    assert [each["params"] for each in cancelled] == [{"taskId": odd}]


@pytest.mark.parametrize(
    "told",
    [
        {"status": "x" * 10_000, "statusMessage": "m\n" * 5_000, "createdAt": "9" * 10_000},
        {"status": "\x1b[2J", "ttl": 1e300, "pollInterval": -1e300, "createdAt": "0001-01-01T00:00:00+14:00"},
        {"status": "working", "ttl": -1, "createdAt": "9999-12-31T23:59:59Z", "lastUpdatedAt": "2025-11-25T00:00:00"},
    ],
)
def test_whatever_a_server_says_of_a_task_can_be_drawn(told: dict[str, object]) -> None:
    kept = KeptTask("a", Task.read({"taskId": "t" * TASK_ID_LENGTH, **told}))
    now = datetime.now(UTC)
    for width in (20, 76, 200):
        assert task_row(kept, width, now, mixed=True).cell_length == width
    facts = "\n".join(f"{each.label} {each.value.plain}" for each in task_facts(kept, now))
    assert len(facts) < 4_000
    assert "\x1b" not in facts


async def test_a_cursor_that_moves_in_a_list_moves_nothing_elsewhere() -> None:
    """A list's cursor messages reach only its own pane."""
    async with on_stage(errands(), size=WIDE) as stage:
        await stage.ready()
        await stage.press("s", "down", "down")
        chosen = stage.app.main.servers.chosen
        assert chosen == "plain"
        for _ in range(3):
            await stage.ended(stage.call("echo", {"text": "x"}, server="plain"))
        await stage.press("h", "down", "down", "up")
        assert stage.app.main.calls.item is list(stage.host.tool_calls.calls.values())[1]
        tools = stage.app.main.tools.list
        servers = {each.server for each in tools.rows.items if isinstance(each, CatalogTool)}
        assert (stage.app.main.servers.chosen, servers) == (chosen, {"plain"})


async def test_the_facts_of_a_task_have_room_and_do_not_move() -> None:
    async with on_stage(errands(), size=WIDE) as stage:
        await stage.ready()
        await begun(stage, interval=60_000)
        await begun(stage, interval=60_000)
        screen = await listed(stage)
        facts = screen.query_one("VerticalScroll")
        await stage.until(lambda _: facts.size.height)
        assert facts.max_scroll_y == 0
        before = screen.frame.region, facts.region
        await stage.press("down")
        assert (screen.frame.region, facts.region) == before
