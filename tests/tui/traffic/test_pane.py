"""The traffic on screen: the list, a message in full, and what keys do with them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input, Static

from mcphost.host.recordings.reading import recording_of
from mcphost.host.traffic.book import TrafficBook, TrafficBudget
from mcphost.host.traffic.file import RecordedWaits
from mcphost.host.traffic.message import TrafficMessage
from mcphost.host.traffic.spool import Spool, spool_path
from mcphost.tui.kit.export import SaveScreen
from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.messages import CallChosen
from mcphost.tui.kit.ranking import Search
from mcphost.tui.traffic import list as traffic_list
from mcphost.tui.traffic.detail import facts_of
from mcphost.tui.traffic.list import TrafficList
from mcphost.tui.traffic.pane import OpenTrafficScreen, TrafficPane
from mcphost.tui.traffic.rows import TrafficRows, short_place
from tests.tui.stage import NARROW, WIDE, echo, on_stage

SECRET = "hunter2-hunter2"


class Passing(App[None]):
    """The pane as the whole screen; records its messages."""

    def __init__(self, state: Path | None = None) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.book = TrafficBook(lambda text: text.replace(SECRET, "•••"), clock=self.clock, monotonic=self.clock)
        self.pane, self.chosen = TrafficPane(self.book, state), list[Message]()

    def clock(self) -> float:
        return self.now

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.focus_rows()

    def on_call_chosen(self, event: CallChosen) -> None:
        self.chosen.append(event)

    def on_traffic_pane_resend_requested(self, event: TrafficPane.ResendRequested) -> None:
        self.chosen.append(event)

    def call(self, number: int, seconds: float = 0.01, text: str = "done", server: str = "db", **more: Any) -> None:
        """A tool call and its answer after ``seconds``; it is the host's call of the same number."""
        params = {"name": "query", "arguments": {"n": number, **more}}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        share = self.book.tap(server)._share
        self.book.take(share, 1, True, "", json.dumps(request).encode(), number)
        self.now += seconds
        result = {"content": [{"type": "text", "text": text}]}
        self.answer(number, {"result": result}, server)

    def answer(self, number: int, outcome: dict[str, Any], server: str = "db") -> None:
        message = json.dumps({"jsonrpc": "2.0", "id": number, **outcome}).encode()
        self.book.take(self.book.tap(server)._share, 1, False, "", message, None)

    def lines(self) -> list[str]:
        rows = self.pane.rows
        drawn = [rows.render_line(y).text.rstrip() for y in range(rows.size.height)]
        return [line for line in drawn if line]

    @property
    def numbers(self) -> list[int]:
        return [message.number for message in self.pane.rows.items]

    @property
    def heading(self) -> str:
        return str(self.pane.list.border_title)

    @property
    def detail(self) -> str:
        return "\n".join([str(self.pane.detail._facts.content), *self.pane.detail.text.lines])


@asynccontextmanager
async def running(app: Passing, size: tuple[int, int] = NARROW) -> AsyncIterator[Pilot[None]]:
    """Run the app, and wait until all is shown."""
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda _: app.heading.startswith("Traffic · following"))
        yield pilot


async def until(pilot: Pilot[None], condition: Callable[[object], object]) -> None:
    """Wait until the condition holds, ten seconds at most."""
    async with asyncio.timeout(30):
        while not condition(pilot):
            await pilot.pause()


async def refresh(app: Passing, pilot: Pilot[None]) -> None:
    assert app.book.pair(20)  # or the pane's slice of time might end first, and the rest be shown a moment later
    app.pane.refresh_traffic()
    await pilot.pause()


async def set_filter(app: Passing, pilot: Pilot[None], text: str) -> None:
    app.pane.list.filter_line.show_filter(text)
    await pilot.pause()


async def test_a_row_shows_the_message_and_obeys_no_text() -> None:
    """A message's text is neither markup nor a command to the terminal, and its secrets are masked."""
    app = Passing()
    app.call(7, 0.0312, text=f"[b] \x1b {SECRET}")
    app.book.tap("db").noted("stderr", "warm\x1b[31m")
    app.book.tap("db").noted("http", "HTTP 404 Not Found\nserver: x")
    app.answer(8, {"error": {"code": -32602, "message": "no"}})
    async with running(app, (109, 24)):
        request, response, stderr, head, error = app.lines()
    assert request[8:].split(maxsplit=8) == (
        ["46:40.000", "→", "out", "request", "tools/call", "103", "B", "31", 'ms ↗7   query {"n": 7}']
    )
    assert ".031 ← in  response     tools/call" in response
    assert '"[b] \\u001b •••"' in response
    assert "warm␛[31m" in stderr
    assert [line[:4].strip() for line in (request, response, stderr, head, error)] == ["", "", "", "✖", "▸  ✖"]
    assert "http 404" in head
    assert "error" in error


@pytest.mark.parametrize("width", [75, 115, 160])
def test_heads_are_above_their_columns_and_methods_are_whole(width: int) -> None:
    app = Passing()
    for server in ("db", "a server with a long name"):
        app.book.tap(server).sent(b'{"jsonrpc":"2.0","id":123,"method":"resources/templates/list","params":{"c":1}}')
    messages, rows = app.book.since(0), TrafficRows(app.book)
    rows.name_servers({each.server for each in messages})
    rows.name_methods(messages)
    head, row = rows.head(width, ids=True).plain, rows.row(messages[0], width, Search(), ids=True).plain
    assert len(head) == len(row) == width
    for name, text in (("server", "db"), ("method", "resources/templates/list")):
        assert row[head.index(name) :].startswith(text), (head, row)
    for name, text in (("id", "123"), ("size", " B")):
        assert row[: head.index(name) + len(name)].endswith(text), (head, row)
    assert ("123" in rows.row(messages[0], width, Search()).plain) is (width == 160)


@pytest.mark.parametrize(
    ("size", "place"), [((80, 24), ""), ((120, 24), "-beside"), ((120, 30), "-below"), ((200, 60), "-beside")]
)
async def test_the_message_is_below_its_list_where_rows_allow(size: tuple[int, int], place: str) -> None:
    app = Passing()
    app.call(1)
    async with running(app, size):
        assert [name for name in ("-beside", "-below") if app.pane.has_class(name)] == [place] * bool(place)
        assert app.pane.detail.display is bool(place)


async def test_the_newest_match_is_selected_while_a_filter_is_typed() -> None:
    app = Passing()
    for number in range(1, 7):
        app.call(number)
    async with running(app) as pilot:
        await pilot.press("home", "slash", *"dir:out")
        await pilot.pause()
        assert app.pane.rows.highlighted == 5
        assert len(app.numbers) == 6


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_enter_shows_a_message_in_full_and_escape_goes_back(size: tuple[int, int]) -> None:
    app = Passing()
    app.call(7, text=SECRET)
    async with running(app, size) as pilot:
        await pilot.press("enter")
        assert app.pane.detail.text.has_focus
        assert "← in · response · tools/call" in app.detail
        assert "id 7" in app.detail
        assert '      "type": "text",' in app.detail
        assert SECRET not in app.detail
        assert app.pane.list.display == (size[0] > 110)
        await pilot.press("v")
        assert app.pane.detail.text.lines[0].startswith('{"jsonrpc"')
        await pilot.press("escape")
        assert app.pane.rows.has_focus
        assert app.pane.list.display


async def test_r_switches_between_request_and_response() -> None:
    app = Passing()
    app.call(1)
    app.call(2)
    async with running(app) as pilot:
        for shown, key in (([1, 2, 3, 4], "r"), ([4], "r")):
            await pilot.press(key)
            assert app.pane.message is app.book.message(3)
            await pilot.press("r")
            assert app.pane.message is app.book.message(4)
            assert app.numbers == shown
            await set_filter(app, pilot, "dir:in id:2")
        assert "r opens its request: → out at" in app.detail


async def test_keys_find_a_slow_call_among_ten_thousand_messages() -> None:
    app = Passing()
    app.book.set_budget("db", TrafficBudget(20_000))
    app.book.tap("db").noted("stderr", "never answered")
    for number in range(5_000):
        app.call(number, 2.5 if number == 3_210 else 0.01)
    async with running(app) as pilot:
        await until(pilot, lambda _: len(app.numbers) == 10_001)
        await pilot.press("S")
        assert app.heading == "Traffic · slowest first"
        assert app.pane.message is not None
        assert (app.pane.message.id, app.pane.message.latency) == (3_210, 2.5)
        await pilot.press("f")
        assert app.heading == "Traffic · paused"
        assert app.pane.message.id == 3_210  # and is seen among its neighbours
        await set_filter(app, pilot, "latency>1s")
        assert [app.book.message(number).id for number in app.numbers] == [3_210] * 2  # type: ignore[union-attr]


async def test_an_answer_lets_its_request_pass_a_filter_or_pass_no_longer() -> None:
    app = Passing()
    app.book.tap("db").sent(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    async with running(app) as pilot:
        await set_filter(app, pilot, "status:waiting")
        assert app.numbers == [1]
        app.now += 2
        app.answer(1, {"result": {}})
        await refresh(app, pilot)
        assert app.numbers == []
        assert "No messages match." in "".join(app.lines())
        await set_filter(app, pilot, "latency>1s")
        assert app.numbers == [1, 2]


@pytest.mark.parametrize("filtered", ["", "status:waiting"])
async def test_a_request_to_a_dead_server_says_that_it_is_not_answered(filtered: str) -> None:
    app = Passing()
    app.book.tap("db").sent(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    async with running(app, WIDE) as pilot:
        await set_filter(app, pilot, filtered)
        assert "waiting" in app.lines()[-1]
        app.book.disconnected("db")
        await refresh(app, pilot)
        assert app.numbers == ([] if filtered else [1])
        await set_filter(app, pilot, "status:lost")
        assert "lost" in app.lines()[-1]
        assert "waiting" not in app.lines()[-1]
        assert "not answered: connection lost" in app.detail


async def test_a_wrong_filter_says_so_and_leaves_the_last_good_one() -> None:
    app = Passing()
    app.call(1)
    async with running(app) as pilot:
        await set_filter(app, pilot, "dir:out")
        await set_filter(app, pilot, "sever:db")
        line = app.pane.query_one(FilterLine)
        assert str(line.problem.content).startswith("There is no field sever")
        assert app.numbers == [1]
        await pilot.press("escape")
        assert app.numbers == [1, 2]


class CountingList(TrafficList):
    looked_at = 0

    def passes(self, message: TrafficMessage) -> bool:
        self.looked_at += 1
        return super().passes(message)


async def test_a_refresh_reads_only_new_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcphost.tui.traffic.pane.TrafficList", CountingList)
    monkeypatch.setattr(traffic_list, "STALE_MESSAGES", 100)
    app = Passing()
    app.book.set_budget("db", TrafficBudget(1_000))
    for number in range(500):
        app.call(number)
    shown = app.pane.list
    assert isinstance(shown, CountingList)
    async with running(app) as pilot:
        for new in (0, 3, 40):
            for number in range(new):
                app.call(number)
            shown.looked_at = 0
            await refresh(app, pilot)
            assert shown.looked_at == 2 * new
        app.pane.display = False
        await until(pilot, lambda _: not app.pane._visible)
        for number in range(1_000):
            app.call(number)
        shown.looked_at = 0
        await refresh(app, pilot)
        assert shown.looked_at == 0
        app.pane.display = True
        await until(pilot, lambda _: shown.looked_at)
        assert len(app.numbers) == 1_000  # and what the book let go of is let go of here
        assert app.heading == "Traffic · following · 2,086 older dropped"


async def test_pausing_counts_new_and_clearing_keeps_pinned_messages() -> None:
    app = Passing()
    app.call(1)
    async with running(app) as pilot:
        await pilot.press("f", "P")
        assert app.lines()[1].startswith("▸ ◆")
        app.call(2)
        await refresh(app, pilot)
        assert app.heading == "Traffic · paused · 2 new"
        await pilot.press("x")
        assert app.numbers == [2]
        await pilot.press("X")
        assert app.numbers == [1, 2, 3, 4]


async def test_keys_copy_and_export_messages_and_post_what_the_user_chose() -> None:
    app = Passing()
    app.call(1, text=SECRET)
    async with running(app) as pilot:
        await pilot.press("R", "y", "up", "R", "C", "w")
        await until(pilot, lambda _: isinstance(app.screen, SaveScreen))
        assert json.loads(app.clipboard)["result"]["content"][0]["text"] == "•••"
        request = app.book.message(1)
        assert request is not None
        assert app.chosen == [TrafficPane.ResendRequested(request), CallChosen(1)]
        saved = app.screen
        assert isinstance(saved, SaveScreen)
        assert [json.loads(line)["direction"] for line in saved._content.splitlines()[1:]] == ["out", "in"]
        assert SECRET.encode() not in saved._content


async def test_one_session_is_saved_as_a_recording_whatever_is_shown() -> None:
    app = Passing()
    app.call(1, server="git")
    app.call(2)
    app.call(3, server="git")
    async with running(app) as pilot:
        await pilot.press("slash", *"call:3", "enter", "W")
        await until(pilot, lambda _: isinstance(app.screen, SaveScreen))
        saved = app.screen
        assert isinstance(saved, SaveScreen)
        assert re.fullmatch(r"git-[0-9-]+\.mcp\.jsonl", saved._file_name)
        (session,) = recording_of(saved._content, "x").sessions
        assert (session.server, [each.id for each in session.exchanges]) == ("git", [1, 3])


async def test_the_request_that_opens_a_session_is_never_resent() -> None:
    app = Passing()
    app.book.tap("db").sent(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}')
    app.book.tap("db").sent(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    async with running(app) as pilot:
        offered = [binding.binding.action for binding in app.screen.active_bindings.values()]
        assert "resend" in offered
        await pilot.press("up")
        assert "resend" not in [binding.binding.action for binding in app.screen.active_bindings.values()]
        await pilot.press("R")
        assert not app.chosen
        assert [each.message for each in app._notifications] == [
            "initialize opens a session and is sent once; restart the server to send it again."
        ]


async def test_files_that_taps_wrote_are_listed_and_opened(tmp_path: Path) -> None:
    spool = Spool(spool_path(tmp_path, "git", 0.0, 7), "git", lambda text: text)
    spool.add("agent", 0.0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 40, 0)
    spool.flush()
    app = Passing(tmp_path)
    async with running(app) as pilot:
        await pilot.press("o")
        screen = app.screen
        assert isinstance(screen, OpenTrafficScreen)
        await until(pilot, lambda _: screen.taps.items)
        await pilot.press("down", "enter")
        await until(pilot, lambda _: len(app.numbers) == 1)
        assert "file git-19700101T000000-7.jsonl" in app.heading


async def test_a_held_call_shows_its_three_times_and_what_the_gate_wrote() -> None:
    app = Passing()
    tap = app.book.agent_tap("claude-code>git", "claude-code")
    tap.copied("agent", b'{"jsonrpc":"2.0","id":5,"method":"tools/call"}', app.now)
    tap.held(5, RecordedWaits(40.0, 1.5))
    app.now += 41.5
    tap.copied("gate", b'{"jsonrpc":"2.0","id":5,"result":{}}', app.now)
    async with running(app, WIDE):
        call, result = app.pane.rows.items
        assert "waited: agent 42 s · you 40 s · server 1.5 s" in facts_of(app.book, call).plain
        assert "written by mcphost" in facts_of(app.book, result).plain
        row, answer = (TrafficRows(app.book).row(each, 150, Search()).plain for each in (call, result))
        assert "you 40 s · server 1.5 s │" in row
        assert "⇠ in" in answer


def problem_says(screen: OpenTrafficScreen, words: str, _: object) -> bool:
    return words in str(screen.query_one(".problem", Static).content)


async def test_an_opened_file_is_read_only(tmp_path: Path) -> None:
    app = Passing()
    app.call(1)
    (tmp_path / "wrong.jsonl").write_text("what\n")
    (tmp_path / "theirs.jsonl").write_bytes(app.book.export(app.book.since(0)))
    app.call(2)
    async with running(app) as pilot:
        await pilot.press("o")
        screen = app.screen
        assert isinstance(screen, OpenTrafficScreen)
        for name, words in (("no.jsonl", "There is no file"), ("wrong.jsonl", "line 1: this is not a line")):
            screen.query_one(Input).value = str(tmp_path / name)
            await pilot.press("enter")
            await until(pilot, partial(problem_says, screen, words))
        screen.query_one(Input).value = str(tmp_path / "theirs.jsonl")
        await pilot.press("enter")
        await until(pilot, lambda _: len(app.numbers) == 2)
        assert app.heading == "Traffic · file theirs.jsonl, read only"
        await pilot.press("up", "R", "C")
        assert not app.chosen
        await pilot.press("escape")
        assert len(app.numbers) == 4
        assert app.heading == "Traffic · following"


async def test_a_large_message_is_laid_out_in_a_thread() -> None:
    app = Passing()
    notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"so hunter2-\\u0068unter2 '
    app.book.tap("db").received(f'{notice}{"x" * 200_000}"}}}}'.encode())
    async with running(app) as pilot:
        assert app.lines()[0].replace(" …", "…").endswith('{"data":"so…')
        await pilot.press("enter")
        await until(pilot, lambda _: '"data": "so ••• xxx' in app.detail)


@pytest.mark.slow
async def test_f4_shows_the_messages_of_a_result_and_c_its_call() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "hello"})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.press("h", "enter", "f4")
        await stage.shows("/ call:1", "2 of ", "→ tools/call", 'echo {"text"')
        await stage.press("up", "R")
        await stage.call_dialog()
        await stage.press("y")
        again = await stage.ended()
        assert again.arguments == {"text": "hello"}
        await stage.press("escape")
        await stage.shows("initialize", "↗2")
        await stage.press("end", "C")
        await stage.shows("hello")
        assert stage.app.main.tools.shown_call == again.number


async def test_the_footer_of_filtered_traffic_names_the_key_that_saves_it() -> None:
    async with on_stage(echo(), size=(120, 36)) as stage:
        await stage.ready()
        await stage.press("f4", "slash")
        await stage.write("dir:out")
        await stage.press("enter")
        await stage.until(lambda _: "clear filter" in stage.text.splitlines()[-1])
        assert "w save" in stage.text.splitlines()[-1]


@pytest.mark.slow
async def test_a_listing_is_sent_again_and_answered() -> None:
    async with on_stage(echo(), size=WIDE) as stage:
        await stage.ready()
        await stage.press("f4", "slash")
        await stage.write("tools/list")
        await stage.press("enter", "home", "R")
        await stage.shows("Sent again: tools/list was answered.")


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def modern(app: Passing, number: int, method: str, headers: str = "", **params: Any) -> None:
    """A modern request over HTTP; all on one connection."""
    share = app.book._share("web")
    share.connections = share.connections or 1
    if headers:
        app.book.take(share, 1, True, "http", f"POST http://x/mcp\n{headers}".encode(), None)
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}
    app.book.take(share, 1, True, "", json.dumps(request).encode(), None)


def answered(app: Passing, number: int, **outcome: Any) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": number, **outcome}).encode()
    app.book.take(app.book._share("web"), 1, False, "", message, None)


async def test_the_list_marks_probes_streams_and_needed_input() -> None:
    app = Passing()
    modern(app, 1, "server/discover")
    modern(app, 2, "subscriptions/listen")
    modern(app, 3, "tools/call", name="plan")
    needs = {"a": {"method": "roots/list"}}
    answered(app, 3, result={"resultType": "input_required", "inputRequests": needs, "requestState": SECRET})
    async with running(app, (240, 24)):
        probe, listen, _, needed = app.lines()
    assert "probe server/d" in probe
    assert " open " in listen
    assert "waiting" not in listen
    assert "round 1 · needs 1 × roots/list · requestState 15 B" in needed


@pytest.mark.requirement("MOD-35")
async def test_a_header_that_contradicts_the_body_is_marked() -> None:
    app = Passing()
    headers = "mcp-protocol-version: 2026-07-28\nmcp-method: tools/call\nmcp-name: Plan\x1b"
    modern(app, 3, "tools/call", headers, name="plan")
    answered(app, 3, error={"code": -32020, "message": "Mcp-Name and params.name differ"})
    async with running(app, (140, 40)) as pilot:
        for key in ("enter", "up"):  # the error, then the request
            await pilot.press("escape", key, "enter")
            await pilot.pause()
            assert "≠ Mcp-Name: Plan␛ ≠ params.name: plan" in app.detail
            assert "Mcp-Method: tools/call = method" in app.detail
            assert "_meta: protocolVersion 2026-07-28 · clientCapabilities none" in app.detail


@pytest.mark.parametrize(
    ("place", "cells", "shown"),
    [
        ("claude-code>git", 8, "cla…>git"),
        ("claude-code>git", 16, "claude-code>git"),
        ("claude-code>files", 7, "files"),
        ("filesystem", 8, "filesystem"),
    ],
)
def test_little_room_cuts_the_agent_before_its_server(place: str, cells: int, shown: str) -> None:
    assert short_place(place, cells) == shown
