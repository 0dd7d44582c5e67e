from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from mcphost.errors import (
    ConnectionLost,
    Declined,
    InvalidArguments,
    InvalidResult,
    McphostError,
    RequestTimeout,
    ServerError,
)
from mcphost.host.consent.repetition import Repetition
from mcphost.host.tool_calls.call import CallRequest, ToolCall
from mcphost.host.tool_calls.repeated_calls import RepeatedCall
from mcphost.host.tool_calls.validation import ValidationResult
from mcphost.protocol.models.progress import Progress
from mcphost.protocol.models.tools import CallToolResult
from mcphost.protocol.schema.validation import SchemaProblem
from mcphost.tui.kit.export import SaveScreen
from mcphost.tui.kit.messages import CancelRequested, ResourceLinkFollowed
from mcphost.tui.kit.search import SearchBar
from mcphost.tui.results.failure import failure_of
from mcphost.tui.results.view import ResultView, progress_line
from tests.loop_watchdog import LoopWatchdog
from tests.tui.results.samples import PNG, WAV


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Stage(App[None]):
    """The pane of a result; records its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.animation_level = "none"
        self.view, self.clock, self.chosen = ResultView(), Clock(), list[Message]()

    def compose(self) -> ComposeResult:
        yield self.view

    def on_cancel_requested(self, message: Message) -> None:
        self.chosen.append(message)

    on_resource_link_followed = on_cancel_requested

    def call(self, tool: str = "echo", **more: Any) -> ToolCall:
        """A call that was sent."""
        call = ToolCall(7, CallRequest("everything", tool, {"message": "hi"}, **more), self.clock)
        call.sent(call.arguments)
        return call

    def done(self, *content: Mapping[str, Any], verdict: ValidationResult | None = None, **more: Any) -> ToolCall:
        call = self.call()
        self.clock.now += 0.031
        call.answered(CallToolResult.read({"content": list(content), **more}), verdict)
        return call

    async def present(self, call: ToolCall | None, pilot: Pilot[None]) -> None:
        """Show it, and wait until it is drawn."""
        self.view.show_call(call)
        await pilot.pause()  # what takes the focus is composed now
        self.view.focus()
        await pilot.pause()
        await self.workers.wait_for_complete()
        await pilot.pause()

    @property
    def text(self) -> str:
        strips = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


@asynccontextmanager
async def showing(
    call: ToolCall | None, app: Stage, *keys: str, size: tuple[int, int] = (80, 30)
) -> AsyncIterator[Pilot[None]]:
    async with app.run_test(size=size) as pilot:
        await app.present(call, pilot)
        for key in keys:
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.pause()
        yield pilot


@pytest.fixture
def app() -> Stage:
    return Stage()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_the_empty_pane_says_what_fills_it(app: Stage) -> None:
    async with showing(None, app, "y", "w", "x", "1", "right"):
        assert "Results appear here" in app.text
        assert "run it with ctrl+r" in " ".join(app.text.split())
        assert (app.chosen, app.clipboard) == ([], "")
        assert len(app.screen_stack) == 1


async def test_a_running_call_moves_only_by_events_and_ends_in_its_result(app: Stage) -> None:
    call = app.call(timeout=60)
    async with showing(call, app) as pilot:
        assert "no progress reported" in app.text
        call.progress = Progress(3, 10, "copying \x1b[31m[b]files")
        app.clock.now += 12
        app.view.refresh_call()
        await pilot.pause()
        for words in ("◐ running · 12 s", "limit 1 min", "30%   3 of 10", "everything says  copying ␛[31m[b]files"):
            assert words in app.text
        assert app.text.count("12 s") == 1  # two would be drawn at different moments
        call.answered(CallToolResult.read({"content": [text("there it is")]}), None)
        app.view.refresh_call()
        await pilot.pause()
        assert "● done · 12 s" in app.text
        assert "there it is" in app.text
        assert "3 of 10" not in app.text


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (None, "no progress reported"),
        (Progress(3, 10), "30%   3 of 10"),
        (Progress(-5, 10), "0%   -5 of 10"),
        (Progress(500, 10), "100%   500 of 10"),
        (Progress(7), "7 so far"),
        (Progress(7, 0), "7 so far"),
        (Progress(1e299, 1e299), "100%   1e+299 of 1e+299"),
    ],
)
def test_progress_is_drawn_whatever_the_numbers_are(progress: Progress | None, words: str) -> None:
    lines = [progress_line(progress, moves).plain for moves in range(100)]
    assert {len(line.split("  ", 1)[0]) for line in lines} == {30}
    assert all(line.endswith(words) for line in lines)


@pytest.mark.parametrize("key", ["escape", "x"])
async def test_a_running_call_is_cancelled_by_a_key_and_an_ended_one_is_not(app: Stage, key: str) -> None:
    call = app.call()
    async with showing(call, app, key) as pilot:
        assert app.chosen == [CancelRequested(7)]
        call.cancelled()
        app.view.refresh_call()
        await pilot.press(key)
        assert len(app.chosen) == 1
        assert "◌ cancelled" in app.text


BLOCKS = [
    text("first [b]words[/b]"),
    {"type": "image", "data": encoded(PNG + bytes(14_000)), "mimeType": "image/png"},
    {"type": "image", "data": encoded(PNG), "mimeType": "image/gif"},
    {"type": "audio", "data": encoded(WAV), "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a\u202etxt", "mimeType": "text/plain", "text": "within"}},
    {"type": "resource", "resource": {"uri": "file:///b", "blob": encoded(b"12345")}},
    {"type": "resource", "uri": "file:///flat", "text": "a flat one"},
    {"type": "resource_link", "uri": "file:///big", "name": "big", "title": "Big", "size": 2_000_000},
    text("only for one", annotations={"audience": ["user"]}),
    {"type": "hologram"},
    {"type": "image", "data": "%%%", "mimeType": "image/png"},
]


@pytest.mark.hostile("T10", "C14")
@pytest.mark.requirement("TOOLS-04", "TOOLS-05", "TOOLS-07", "TOOLS-08", "TOOLS-25")
async def test_every_kind_of_content_has_its_own_frame_in_order(app: Stage) -> None:
    async with showing(app.done(*BLOCKS), app, size=(100, 60)):
        expected = [
            *("text · 18 B", "first [b]words[/b]", "image image/png · 320×200 · 14 kB"),
            *("image image/gif · 320×200 · 29 B", "its first bytes are those of image/png", "audio audio/wav · 1.5 s"),
            *("resource · file:///a⟨U+202E⟩txt · text/plain", "within", "resource · file:///b", "5 B"),
            *("file:///flat", "a flat one", "link · Big", "file:///big", "2.0 MB", "for user", "only for one"),
            *("hologram", "a type of content that mcphost does not know", "the image data is not base64"),
        ]
        at = 0
        for words in expected:
            at = app.text.find(words, at)
            assert at >= 0, words


@pytest.mark.requirement("TOOLS-06")
async def test_the_arrows_walk_the_blocks_and_enter_follows_a_link(app: Stage) -> None:
    links = [{"type": "resource_link", "uri": f"file:///{n}", "name": str(n)} for n in range(5)]
    async with showing(app.done(*links), app, *["down"] * 14, "up", "enter", size=(80, 16)):
        assert app.chosen == [ResourceLinkFollowed("everything", "file:///3")]
        assert "▸ link · 3" in app.text


@pytest.mark.hostile("T11")
async def test_json_and_markdown_are_rendered_and_m_shows_what_was_sent(app: Stage) -> None:
    async with showing(None, app) as pilot:
        for sent, rendered in (('{"a":[1]}', '  "a": ['), ("# Title\n\n**bold**", "│ Title"), ("**not sure**", None)):
            await app.present(app.done(text(sent)), pilot)
            first = sent.split("\n")[0]
            assert (rendered or first) in app.text
            assert (first in app.text) is (rendered is None)
            await pilot.press("m")
            await pilot.pause()
            assert (first in app.text) is (rendered is not None)


@pytest.mark.hostile("T12")
async def test_long_or_hostile_markdown_holds_nothing_up(app: Stage, loop_watchdog: LoopWatchdog) -> None:
    async with showing(app.done(text("# T\n\n" + "**bold** word " * 900), text("**a** - b\n\n" + "![" * 20_000)), app):
        assert "· Markdown" in app.text
        assert "**bold**" not in app.text
        assert loop_watchdog.longest < 1.0


@pytest.mark.hostile("T12")
async def test_nineteen_megabytes_are_cut_and_saved_whole(app: Stage, loop_watchdog: LoopWatchdog) -> None:
    words = "a line of words\n" * 1_200_000
    async with showing(app.done(text(words)), app, "end") as pilot:
        assert "… 19 MB more: w saves all of it" in app.text
        await pilot.press("w")
        assert loop_watchdog.longest < 1.0
        saved = app.screen
        assert isinstance(saved, SaveScreen)
        assert saved._content == words.encode()
        assert saved._file_name.startswith("everything-echo-")
        assert saved._file_name.endswith(".txt")


HOSTILE = [
    "x" * 200_000,
    "word" * 5_000,
    "a" + "\u0301" * 200_000,
    "\n" * 60 + "╭ Approved ╮\nRun? [y/N]",
    "👩‍👩‍👧" * 20_000,
    "[" * 5_000 + "]" * 5_000,
]


@pytest.mark.hostile("T12")
async def test_hostile_text_stays_in_its_frame_and_holds_nothing_up(app: Stage, loop_watchdog: LoopWatchdog) -> None:
    async with showing(None, app) as pilot:
        for words in HOSTILE:
            await app.present(app.done(text(words), text("neighbour")), pilot)
            await pilot.press("pagedown", "pagedown")
            lines = app.text.split("\n")
            assert "everything › echo" in lines[0]
            assert "1 Content" in lines[1]
            assert all(line.startswith(("│", "╭", "╰")) for line in lines if line)
        assert loop_watchdog.longest < 1.0


@pytest.mark.requirement("TOOLS-21", "TOOLS-24")
async def test_what_a_table_is_said_to_be_is_read_whole_where_it_is_narrow(app: Stage) -> None:
    value = {"ships": [{"name": "Limpet"}, {"name": "Kittiwake"}], "lookout": "north gallery"}
    async with showing(app.done(structuredContent=value), app, "2", size=(48, 30)):
        assert "ships · 2 rows" in app.text
        assert "lookout: north gallery" in app.text
        assert "JSON" in app.text.replace("table/JSON", "")


async def shows(app: Stage, pilot: Pilot[None], words: str, *, shown: bool = True) -> None:
    async with asyncio.timeout(20):
        while (words in app.text) is not shown:
            await pilot.pause()


async def test_a_wide_table_says_how_to_see_the_rest_and_scrolls(app: Stage) -> None:
    value = [{f"column {number}": "x" * 12 for number in range(6)}]
    async with showing(app.done(structuredContent=value), app, "2") as pilot:
        await shows(app, pilot, "1 row · o sorts · ←→ columns · z zooms · m JSON")
        assert "column 5" not in app.text
        await pilot.press(*["right"] * 30)
        await shows(app, pilot, "column 5")
        await pilot.resize_terminal(120, 30)
        await shows(app, pilot, "1 row · o sorts · m JSON")


async def test_structured_content_of_any_type_has_a_tab_and_none_has_not(app: Stage) -> None:
    async with showing(None, app) as pilot:
        for value in (None, [1, 2], "x", {}, {"a": {"b": "c\u202e"}}, [{"a": 1}, 2]):
            await app.present(app.done(text("t"), structuredContent=value), pilot)
            await pilot.press("2")
            async with asyncio.timeout(20):
                while app.clipboard != json.dumps(value, indent=2, ensure_ascii=False):
                    await pilot.press("y")  # until the text of this result is there
            assert "▸2 Structured" in app.text
            assert "\u202e" not in app.text
        app.view.show_call(app.done(text("t")))
        await pilot.press("2")
        await pilot.pause()
        assert "Structured" not in app.text


@pytest.mark.parametrize("inside", [False, True])
async def test_a_list_of_objects_is_a_table_and_m_shows_its_json(app: Stage, inside: bool) -> None:
    rows = [{"name": f"[b]{n}\x1b", "size": n * 1000, "tags": ["x"]} for n in range(1_000)]
    value = {"items": rows} if inside else rows
    async with showing(app.done(structuredContent=value), app, "2", "down") as pilot:
        assert ("items · 1,000 rows" in app.text) is inside
        for words in ("1,000 rows", "name s", "[b]1␛", " 1000", '["x"]'):
            await shows(app, pilot, words)
        await pilot.press("m", "slash", *"999000", "enter")
        await shows(app, pilot, '"size": 999000,')
        await shows(app, pilot, "1 of 1 ")


@pytest.mark.hostile("L07")
@pytest.mark.requirement("TOOLS-22", "TOOLS-23")
async def test_the_verdict_of_the_output_schema_names_each_place(app: Stage) -> None:
    wrong = ValidationResult((SchemaProblem("items[3].size", "'x' is not a number"), SchemaProblem("", "a is missing")))
    cases = (
        (
            wrong,
            (
                "✖ schema: 2 problems",
                "▲ The structured content does not match",
                "items[3].size: 'x' is not a number",
                "(root): a is",
            ),
        ),
        (
            ValidationResult((), "not validated: the check took longer than 0.25 s"),
            ("▲ schema not checked", "▲ not validated: the check took"),
        ),
        (ValidationResult(), ("✔ schema",)),
    )
    async with showing(None, app) as pilot:
        for verdict, words in cases:
            await app.present(app.done(text("t"), structuredContent={"a": 1}, verdict=verdict), pilot)
            assert [part for part in words if part not in app.text] == []
            await pilot.press("2")
            await pilot.pause()
            assert [part for part in words if part not in app.text] == []
            assert ("▲" in app.text) is not verdict.valid


def failed(app: Stage, error: McphostError) -> ToolCall:
    call = app.call()
    call.failed(error)
    return call


FAILURES: list[tuple[McphostError, tuple[str, ...]]] = [
    (
        ServerError(-32602, "Unknown tool\x1b]0;x\x07 [b]", {"known": ["a"]}),
        (
            "✖ The server refuses: Unknown tool␛",
            "Error -32602 · invalid params",
            "everything says",
            "Unknown tool␛]0;x␇ [b]",
            '"known"',
            "error",
        ),
    ),
    (ServerError(-32001, " "), ("The server refuses, and gives no reason", "Error -32001 · server-defined error")),
    (ServerError(-32603, "x"), ("-32603 · internal error", "failed internally")),
    (RequestTimeout("tools/call", 60), ("▲ timed out", "60 s without an answer", "tool_timeout_sec")),
    (RequestTimeout("tools/call", 9, hard=True), ("9 s in total", "tool_timeout_max_sec")),
    (Declined("no", by="user"), ("◌ declined", "Not run: you declined", "Press ctrl+r to be asked again")),
    (Declined("it changed", by="mcphost"), ("Not run: it differs from what was allowed", "it changed", "run it again")),
    (Declined("not now", by="policy", rule="read_only"), ("declined by policy · read_only", "not now")),
    (
        InvalidArguments([("path", "3 is no string"), ("", "b is missing")]),
        ("✖ not sent", "2 problems", "path: 3 is no string", "arguments: b is missing", "Correct them in the form"),
    ),
    (
        ConnectionLost("the server ended", exit_code=-9, stderr_tail=["Traceback", "Memory\x1b[2JError"]),
        ("Connection lost · ended by signal 9", "last stderr lines of everything", "Memory␛[2JError", "Run it again"),
    ),
    (ConnectionLost("gone", exit_code=3), ("exit code 3",)),
    (InvalidResult("content is no array"), ("malformed", "content is no array")),
    (McphostError("[/b] odd"), ("No result", "[/b] odd")),
]


@pytest.mark.hostile("T01")
@pytest.mark.requirement("TOOLS-10", "ERR-01", "ERR-02", "ERR-11")
async def test_each_failure_says_what_happened_and_what_to_do(app: Stage) -> None:
    async with showing(None, app) as pilot:
        for error, expected in FAILURES:
            await app.present(failed(app, error), pilot)
            assert [words for words in expected if words not in app.text] == []
            assert "\x1b" not in app.text
        await pilot.press("4")
        await pilot.pause()
        assert '"message": "hi"' in app.text


@pytest.mark.requirement("ERR-01", "ERR-02", "ERR-03", "ERR-04", "ERR-05", "ERR-06", "ERR-07", "ERR-08")
@pytest.mark.parametrize(
    ("codes", "label"),
    [
        ([-32700], "parse error"),
        ([-32600], "invalid request"),
        ([-32601], "method not found"),
        ([-32602], "invalid params"),
        ([-32603], "internal error"),
        ([-32002], "resource not found"),
        ([-32042], "a page must be visited first"),
        ([-32001, -32003, -32004, -32005, -32006, -32007, 0, 12345], "server-defined error"),
    ],
)
def test_an_error_code_is_called_what_the_specification_calls_it(app: Stage, codes: list[int], label: str) -> None:
    failures = [failure_of(failed(app, ServerError(code, "x"))) for code in codes]
    advice = [each.advice if each else "" for each in failures]
    assert [text.partition(".")[0] for text in advice] == [f"Error {c} · {label}" for c in codes]


@pytest.mark.requirement("TOOLS-09", "ERR-05")
async def test_a_tool_that_reports_failure_is_quoted_at_once(app: Stage) -> None:
    async with showing(app.done(text("\nprotected [y/N]\nsecond"), isError=True), app):
        assert "✖ failed" in app.text
        assert "✖ The tool reports: protected [y/N]" in app.text
        assert app.text.index("The tool reports") < app.text.index("second")


async def test_a_failure_of_one_line_is_said_once_and_can_be_copied(app: Stage) -> None:
    async with showing(app.done(text("no such\x1b ship"), isError=True), app, "y"):
        assert app.text.count("no such␛ ship") == 1
        assert app.clipboard == "no such\x1b ship"


@pytest.mark.parametrize(
    ("content", "headline"),
    [
        ([text("no\x1b such\u202e file")], "The tool reports: no␛ such⟨U+202E⟩ file"),
        ([text(" \n"), text("second")], "The tool reports: second"),
        ([text("x" * 5_000)], "The tool reports: " + "x" * 180),
        ([], "The tool reports an error, and no reason"),
    ],
)
def test_the_headline_of_a_failure_is_its_first_line(
    app: Stage, content: list[Mapping[str, Any]], headline: str
) -> None:
    failure = failure_of(app.done(*content, isError=True))
    assert failure is not None
    assert failure.headline.startswith(headline)
    assert len(failure.headline) < 250


async def test_the_raw_tab_shows_all_members_and_the_call_tab_the_call(app: Stage) -> None:
    call = ToolCall(7, CallRequest("files", "write", {"path": "a"}, origin="model\u202e"), app.clock)
    app.clock.now += 2
    call.sent({"path": "b"})
    call.answered(CallToolResult.read({"content": [text("x", _meta={"k": 1})], "x-future": {}}), None)
    async with showing(call, app, "3") as pilot:
        for words in ('"x-future": {}', '"_meta": {'):
            assert words in app.text
        await pilot.press("right")
        await pilot.pause()
        for words in (
            "edited by you",
            '"path": "b"',
            "before your edit",
            '"path": "a"',
            "model⟨U+202E⟩",
            "2.0 s after",
        ):
            assert words in app.text
        await pilot.press("right", "left", "left", "y")
        assert '"x-future": {}' in app.clipboard


async def test_json_folds_and_unfolds(app: Stage) -> None:
    value = {"a": {"b": [1, 2]}, "c": "\u202e"}
    async with showing(app.done(text("x"), structuredContent=value), app, "2", "down") as pilot:
        for keys, shown, hidden in (
            (("enter",), '▸ "a": { b },', '"b"'),
            (("right", "down"), '▾ "b": [', "▸ "),
            (("down", "left", "left"), '▸ "b": [ 2 items ]', " 1,"),
            (("left", "left"), '▸ "a": { b },', '"b"'),
            (("Z",), '▾ "b": [', "▸ "),
            (("Z",), '▸ "a": { b },', '"b"'),
            (("Z", "slash", "2", "enter"), "1 of 3", "▸ "),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            body = app.text.partition("4 Call")[2]
            assert shown in body, keys
            assert hidden not in body, keys
        assert "⟨U+202E⟩" in app.text
        await pilot.press("escape", "home", "right")
        await pilot.pause()
        assert "▸3 Raw" in app.text


async def test_a_large_list_is_shown_at_once_and_more_of_it_by_enter(app: Stage) -> None:
    async with showing(app.done(structuredContent=list(range(2_500))), app, "2", "end", "up") as pilot:
        assert "▸ … 1,500 more" in app.text
        await pilot.press("enter", "end", "up", "up")
        await pilot.pause()
        assert "▸ … 500 more" in app.text
        assert "1999," in app.text


TABLE = {"rows": [{"name": "a"}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("content", "tab"),
    [
        ((text(json.dumps(TABLE)),), "▸2 Structured"),
        ((), "▸2 Structured"),
        ((text("two rows"),), "▸1 Content"),
        ((text(json.dumps(TABLE)), text("more")), "▸1 Content"),
    ],
    ids=["same", "none", "other", "same and more"],
)
async def test_a_table_opens_as_one_unless_its_text_says_more(app: Stage, content: tuple[Any, ...], tab: str) -> None:
    async with showing(app.done(*content, structuredContent=TABLE), app):
        assert tab in app.text


async def test_a_tab_is_opened_by_the_mouse_and_keeps_the_focus_inside(app: Stage) -> None:
    async with showing(app.done(text("x"), structuredContent={"a": 1}), app) as pilot:
        for key in ("2", "3", "4", "1", "2"):
            await pilot.press(key)
            await pilot.pause()
            assert app.view.has_focus_within
        await pilot.click("TabStrip", offset=(4, 0))
        await pilot.pause()
        assert "▸1 Content" in app.text


async def test_more_blocks_than_anyone_reads_are_counted(app: Stage) -> None:
    async with showing(app.done(*[text(str(n)) for n in range(3_000)]), app, "end"):
        assert "2950 more blocks" in app.text


async def test_a_result_without_content_says_so(app: Stage) -> None:
    async with showing(app.done(), app):
        assert "No content: the tool sent nothing back." in app.text


async def test_a_result_of_an_unknown_shape_is_not_called_empty(app: Stage) -> None:
    call = app.call()
    call.answered(CallToolResult.read({"output": "the weather is fine", "isError": "yes"}), None)
    async with showing(call, app):
        assert "Nothing to show: the result has neither content nor structuredContent" in app.text
        assert 'isError is "yes", neither true nor false' in app.text
        assert "No content" not in app.text


async def test_an_unreadable_block_quotes_what_it_holds(app: Stage) -> None:
    async with showing(app.done({"type": "thinking", "text": "let me see"}), app):
        assert "a type of content that mcphost does not know: let me see" in app.text


async def test_focus_stays_in_a_result_that_changes_meanwhile(app: Stage) -> None:
    call = app.call()
    async with showing(call, app) as pilot:
        app.view.focus()
        await pilot.pause()
        focus = app.view.focus

        def focus_and_end() -> None:
            app.screen.set_focus(None)  # as Textual does once what had the focus is removed
            focus()
            if call.outcome is None:
                call.answered(CallToolResult.read({"content": [text("there it is")]}), None)
                app.view.refresh_call()

        app.view.focus = focus_and_end  # type: ignore[assignment, method-assign]
        app.view._rebuild()
        await pilot.pause()
        await pilot.pause()
        assert "there it is" in app.text
        assert app.view.has_focus_within


async def test_a_search_stays_open_when_a_repeated_answer_changes(app: Stage) -> None:
    first = app.done(text("calm sea, calm wind"))
    repeated = RepeatedCall(1, first.request, Repetition(5))
    repeated.take(first)
    async with showing(first, app) as pilot:
        app.view.show_call(first, repeated)
        await pilot.pause()
        app.view.focus()
        await pilot.press("slash", *"calm", "enter")
        await pilot.pause()
        assert "1 of 2" in app.text
        await pilot.press("slash", "x")
        repeated.take(app.done(text("rough sea, calm wind, calm bird, calm sky")))
        app.view.refresh_runs()
        await pilot.pause()
        await pilot.pause()
        await pilot.press("y")
        assert "rough sea" in app.text
        assert "1 of 3" in app.text
        assert app.view.query_one(SearchBar).input.value == "xy"
        await pilot.press("escape")
        assert "1 of 3" not in app.text
        assert app.view.has_focus_within
