"""Resources on screen by keys: found, read, watched, filled in and followed."""

from __future__ import annotations

import base64
import re
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from mcphost.config import ServerConfig
from mcphost.errors import RequestTimeout
from mcphost.host.catalog import CatalogResource
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.prompts import Completion
from mcphost.protocol.models.resources import ReadResourceResult, Resource
from mcphost.tui.catalog.argument_form import ArgumentForm, TextArgument, schema_of
from mcphost.tui.forms.suggestions import SuggestingBox
from mcphost.tui.kit.clock import freshness_text
from mcphost.tui.kit.export import SaveScreen
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.resources.pane import ResourceList
from mcphost.tui.results.reading_pane import PaneReading, ReadingView
from mcphost.tui.servers.card import card
from tests.tui.resources.resources import PNG, SIZES, Alone, go, offers, pane, seen, shows, text_of
from tests.tui.stage import NARROW, WIDE, on_stage, servers
from tests.whole.peers import sdk_runs

pytestmark = pytest.mark.slow
SERVERS = Path(__file__).parents[2] / "servers"
README, PIXEL = "memo:///readme.md", "memo:///pixel.png"


@SIZES
@pytest.mark.requirement("RES-09", "RES-14")
async def test_a_resource_is_found_read_and_left_by_esc(size: tuple[int, int]) -> None:
    async with on_stage(offers(), size=size) as stage:
        await go(stage)
        await stage.shows("Resources · all servers · 6", "Read me", "9 B", "{} A note")
        await go(stage, "readme.md")
        await stage.shows("1 of 6")
        await stage.press("enter")
        await stage.shows("Contents · offers › memo:///readme.md", "Markdown")
        assert pane(stage).step == "reading"
        await stage.press("m")
        await stage.shows("# Read me")
        await stage.press("escape")
        assert pane(stage).step == "list"


@pytest.mark.requirement("RES-02", "RES-10", "RES-11")
async def test_a_uri_is_sent_as_listed_and_a_missing_one_reported(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=NARROW) as stage:
        await go(stage, "odd")
        await stage.press("enter")
        await stage.shows("odd", "ms")
        assert seen(record, "resources/read") == [{"uri": "Foo+BAR://x/%7e%2F/ü ?a=b"}]
        stage.app.catalog.open("offers", "memo:///gone")
        await stage.shows("✖ The server has no such resource", "offers says", "there is no such resource")


@pytest.mark.requirement("CACHE-01", "CACHE-08")
async def test_a_resource_from_the_cache_says_so_and_can_be_read_again() -> None:
    command, *args = sdk_runs(SERVERS / "sdk_ttl.py", "3600000")
    entry = ServerConfig(command=command, args=tuple(args), startup_timeout_sec=60)
    async with on_stage(servers(ttl=entry), size=WIDE) as stage:
        await go(stage, "count")
        await stage.press("enter")
        await stage.shows("Contents · ttl › count://reads", "ms", "1")
        assert "cached" not in stage.text
        await stage.press("escape")
        await stage.press("enter")
        await stage.shows("cached ", "fresh until ", "r read again")
        await stage.press("space")
        await stage.shows("◉ watching", "cached ", "fresh until ")
        await stage.press("r")
        await stage.until(lambda _: "cached " not in stage.text)
        await stage.shows("2")
        facts = card(stage.host.servers["ttl"], time.monotonic(), 0)
        (kept,) = (each.value.plain for each in facts if each.label == "cache")
        assert re.fullmatch(r"(tools|prompts|resources|templates) of [\d:]+, fresh until [\d:]+( · .*)?", kept)


async def test_a_stale_result_that_stands_in_says_why() -> None:
    noon = datetime(2026, 11, 23, 12, 0, 0)
    kept = Freshness(received=100.0, until=160.0, cached=True)
    assert freshness_text(kept, 130.0, noon) == "11:59:30, fresh until 12:00:30"
    assert freshness_text(kept, 190.0, noon) == "11:58:30, stale since 11:59:30"
    assert freshness_text(replace(kept, problem="gone\x1b"), 190.0, noon) == "11:58:30, stale: gone␛"


@SIZES
@pytest.mark.requirement("RES-05", "RES-06")
async def test_a_watched_resource_is_marked_and_read_again_when_it_changes(
    size: tuple[int, int], tmp_path: Path
) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=size) as stage:
        await go(stage, "readme.md")
        await stage.press("space")
        await stage.shows("◉  Read me")
        await stage.press("enter")
        await stage.shows("◉ watching")
        stage.call("change", {"uri": README})
        await stage.call_dialog()
        await stage.press("y")
        await stage.shows("changed 1", "updated")
        await stage.press("space")
        await stage.until(lambda _: "watching" not in stage.text)
        await stage.until(lambda _: seen(record, "resources/unsubscribe") == [{"uri": README}])


@pytest.mark.requirement("RES-04")
async def test_where_a_server_lets_nothing_be_watched_the_key_says_so(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--no-subscribe", "--record", record), size=NARROW) as stage:
        await go(stage, "readme.md")
        await stage.press("space")
        await stage.until(lambda _: "Not watched:" in stage.flat)
        assert not seen(record, "resources/subscribe")


async def test_what_is_watched_and_not_listed_can_be_found_in_the_list() -> None:
    async with on_stage(offers(), size=WIDE) as stage:
        await go(stage)
        await stage.host.resources.subscribe("offers", "memo:///unlisted")
        await stage.shows("◉  memo:///unlisted")


@SIZES
@pytest.mark.requirement("RES-07", "COMP-01", "COMP-03")
async def test_a_template_is_filled_in_with_suggestions_and_read(size: tuple[int, int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=size) as stage:
        await go(stage, "note")
        await stage.press("enter")
        await stage.shows("offers › A note", "folder *")
        await stage.write("ru")
        await stage.until(lambda _: "rust" in stage.text and "python" not in stage.text)
        await stage.press("down", "enter")
        await stage.shows("reads  memo:///rust/")
        await stage.press("enter")
        await stage.write("a b")
        await stage.shows("reads  memo:///rust/a%20b")
        await stage.press("enter")
        await stage.until(lambda _: seen(record, "resources/read") == [{"uri": "memo:///rust/a%20b"}])
        # How much of the title fits depends on how long the answer took to write; the whole URI is in the record.
        await stage.shows("Contents · offers › memo:///")
        question_stage = seen(record, "completion/complete")
        assert question_stage[0]["ref"] == {"type": "ref/resource", "uri": "memo:///{folder}/{name}"}
        await stage.until(lambda _: seen(record, "completion/complete")[-1]["argument"]["name"] == "name")
        assert seen(record, "completion/complete")[-1]["context"] == {"arguments": {"folder": "rust"}}
        await stage.press("escape")
        await stage.shows("rust", "a b")  # what was typed is still there


async def test_a_variable_that_must_not_be_empty_is_asked_for_first(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with on_stage(offers("--record", record), size=NARROW) as stage:
        await go(stage, "note")
        await stage.press("enter")
        await stage.shows("folder *")
        await stage.press("ctrl+r")
        await stage.shows("▸ folder *", "▲ is required", "▲ 2 invalid fields")
        assert not seen(record, "resources/read")


@pytest.mark.parametrize(
    ("options", "is_requested"),
    [
        (("--no-completions",), False),
        (("--without", "completion/complete"), True),
        (("--without", "completion/complete", "--unknown", "-32603"), True),
        (("--without", "completion/complete", "--unknown", "silent"), True),
    ],
    ids=["not offered", "unknown", "failing", "silent"],
)
@pytest.mark.requirement("COMP-02", "COMP-06")
async def test_without_suggestions_the_form_works_as_well(
    tmp_path: Path, options: tuple[str, ...], is_requested: bool
) -> None:
    record = tmp_path / "record"
    config = offers(*options, "--record", record, protocol="legacy")  # a silent server is probed for ten seconds
    async with on_stage(config, size=NARROW) as stage:
        await go(stage, "search")
        await stage.press("enter")
        await stage.shows("optional")
        await stage.write("x")
        await stage.until(lambda _: bool(seen(record, "completion/complete")) is is_requested)
        await stage.write("y")
        await stage.press("ctrl+r")
        await stage.until(lambda _: seen(record, "resources/read") == [{"uri": "search:///?q=xy"}])
        assert bool(seen(record, "completion/complete")) is is_requested


@pytest.mark.requirement("RES-01")
async def test_the_list_follows_the_server_and_the_tab_counts() -> None:
    async with on_stage(offers(), size=WIDE) as stage:
        await go(stage)
        await stage.shows("Resources 6", "Prompts 2")
        call = stage.call("announce")
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.shows("Resources 7", "Prompts 3", "memo:///new-5")


async def test_keys_of_the_list_copy_the_uri_and_show_the_definition() -> None:
    async with on_stage(offers(), size=NARROW) as stage:
        await go(stage, "pixel")
        await stage.press("y")
        assert stage.app.clipboard == PIXEL
        await stage.press("d")
        await stage.at(ReaderScreen)
        await stage.shows("image/png")


@pytest.mark.requirement("RES-16")
async def test_a_file_saved_has_a_name_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with on_stage(offers(), tmp_path / "state", size=NARROW) as stage:
        await go(stage, "pixel")
        await stage.press("enter")
        await stage.shows("bytes")
        await stage.press("w")
        await stage.at(SaveScreen)
        await stage.press("enter")
        await stage.gone()
    (saved,) = sorted(tmp_path.glob("offers-memo-pixel-png-*.png"))  # noqa: ASYNC240
    assert saved.read_bytes().startswith(b"\x89PNG")


CONTENTS = [
    ({"text": '{"a": [1]}', "mimeType": "application/json"}, ["JSON", '  "a": [']),
    ({"text": "def f():\n    return 1", "mimeType": "text/x-python"}, ["code", "return 1"]),
    ({"text": "fn main() {}", "uri": "f:///a/main.rs?x=1"}, ["code", "f:///a/main.rs"]),
    ({"text": "<b>x", "mimeType": "text/html"}, ["code", "<b>x"]),
    ({"text": "# T\n\n[red]**x**[/red]", "uri": "f:///readme.md"}, ["Markdown", "[red]x[/red]"]),
    ({"text": "a\x1b[31mb‮c"}, ["a␛[31mb⟨U+202E⟩c"]),
    ({"blob": base64.b64encode(bytes(range(64, 96))).decode()}, ["00000010", "5e 5f", "@ABCDEFGHIJKLMNO"]),
    ({"blob": PNG, "mimeType": "image/png"}, ["3×2", "24 B", "m bytes"]),
    ({"blob": "no base64!"}, ["✖ unreadable", "base64"]),
    ({"mimeType": "text/plain"}, ["✖ unreadable", "neither text nor blob"]),
]


@pytest.mark.requirement("RES-03")
@pytest.mark.hostile("T01")
@pytest.mark.parametrize(("contents", "words"), CONTENTS)
async def test_contents_are_shown_as_they_read_best(contents: dict[str, str], words: list[str]) -> None:
    """Sequences that would command a terminal, hide text or be markup are shown, not obeyed."""
    view = ReadingView("Contents", "hint")
    async with Alone(lambda: view).run_test(size=(90, 24)) as pilot:
        await shows(pilot, "hint")
        result = ReadResourceResult.read({"contents": [{"uri": "f:///a", **contents}]})
        view.show_reading(PaneReading("s", "f:///").with_resource(result, 0.1))
        await shows(pilot, "Contents · s › f:/// · 100 ms", *words)


@pytest.mark.requirement("RES-03", "RES-17")
async def test_contents_come_in_order_and_failures_have_reasons() -> None:
    view, reading = ReadingView("Contents", "hint"), PaneReading("s", "f:///")
    async with Alone(lambda: view).run_test(size=(90, 24)) as pilot:
        both = {"contents": [{"uri": "f:///1", "text": "one"}, {"uri": "f:///2", "text": "two"}]}
        view.show_reading(reading.with_resource(ReadResourceResult.read(both), 0.1))
        await shows(pilot, "▸ f:///1", "one", "f:///2", "two")
        view.show_reading(reading.with_resource(ReadResourceResult.read({"contents": []}), 0.1))
        await shows(pilot, "No content. The server sent an empty answer.")
        view.show_reading(reading.with_resource(ReadResourceResult.read({"data": "x"}), 0.1))
        await shows(pilot, "Nothing to show: the result has no contents, but data")
        view.show_reading(reading.with_error(RequestTimeout("resources/read", 60), 60.0))
        await shows(pilot, "✖ failed · 1 min", "timed out after 60 s")


@pytest.mark.requirement("COMP-07", "COMP-08")
async def test_late_and_unusable_suggestions_are_not_shown() -> None:
    app = Alone(lambda: ArgumentForm("read"))
    async with app.run_test(size=(60, 20)) as pilot:
        form = app.query_one(ArgumentForm)
        await form.load(schema_of([TextArgument("one", "One"), TextArgument("two", required=True)]), {"one": "1"})
        form.focus_first()
        await pilot.press("down")
        await shows(pilot, "▸ two *")
        two = form.query(SuggestingBox).last()
        assert two.has_focus
        await pilot.press("a", "b")
        two.suggest("a", Completion(("stale",)))
        two.suggest("ab", Completion(("ab\x1b[31m", "ab\ncd", *(f"ab{number:03}" for number in range(120))), 5_000))
        await shows(pilot, "ab000", "100 of 5,000: type on")
        assert app.requested[-1] == ("ab", {"one": "1"})
        assert "stale" not in text_of(app)
        await pilot.press(*["down"] * 99)
        await shows(pilot, "▸ ab098")
        await pilot.press("enter")
        assert two.entry == "ab098"
        assert not two.suggestions.values
        await pilot.press("backspace")
        two.suggest("ab09", Completion(("ab09", "ab090")))
        assert not two.check_action("close", ())  # none is chosen: esc leaves the form
        await pilot.press("down", "escape")
        assert two.entry == "ab09"
        assert not two.suggestions.values
        two.suggest("ab09", Completion(()))
        await shows(pilot, "▸ two *", "nothing is suggested that fits")
        two.suggest("ab09", Completion(("ab091", "ab092")))
        await shows(pilot, "ab092")
        line = next(row for row, text in enumerate(text_of(app).split("\n")) if "ab092" in text)
        await pilot.click(offset=(20, line))
        assert two.entry == "ab092"


async def test_a_chosen_value_stays_when_more_suggestions_come() -> None:
    app = Alone(lambda: ArgumentForm("read"))
    async with app.run_test(size=(60, 20)) as pilot:
        form = app.query_one(ArgumentForm)
        await form.load(schema_of([TextArgument("one", required=True)]), {})
        form.focus_first()
        await pilot.press("a")
        box = form.query_one(SuggestingBox)
        box.suggest("a", Completion(("ab", "ac")))
        await pilot.press("down", "down")
        await shows(pilot, "▸ ac")
        box.suggest("a", Completion(("aa", "ab", "ac")))
        await pilot.press("enter")
        assert box.entry == "ac"
        await pilot.press("backspace")
        box.suggest("a", Completion(("ab", "ac")))
        await pilot.press("down")
        box.suggest("a", Completion(("ac",)))
        assert box.suggestions.chosen is None


async def test_keys_typed_while_a_template_opens_its_form_reach_the_form() -> None:
    async with on_stage(size=NARROW) as stage:
        await go(stage, "ship")
        await stage.pilot.press("enter", *"tug")  # no wait in between
        await stage.until(lambda _: pane(stage).form.form is not None and "▏tug" in stage.text)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("architecture.md", "file:///a/rather/"), ("How it is built", "folder/architecture.md")],
)
def test_a_uri_that_is_cut_keeps_the_end_that_its_label_does_not_say(name: str, shown: str) -> None:
    uri = "file:///a/rather/long/folder/architecture.md"
    row = ResourceList().row(CatalogResource("docs", Resource(uri=uri, name=name)), 60).plain
    assert shown in row
    assert uri not in row
