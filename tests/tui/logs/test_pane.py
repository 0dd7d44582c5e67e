"""The log pane: rows, filter, limits, keys."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.pilot import Pilot

from mcphost.config import UI
from mcphost.host.logs import LogBook, LogBudget, LogRecord, LogSource
from mcphost.protocol.models.logging import LogLevel
from mcphost.tui.app import McphostApp
from mcphost.tui.kit.export import SaveScreen
from mcphost.tui.kit.inputs import FilterLine
from mcphost.tui.kit.messages import CallChosen, LogLevelRequested
from mcphost.tui.kit.ranking import HIT
from mcphost.tui.kit.rows import RowList
from mcphost.tui.logs.dialogs import LogDetail, text_view
from mcphost.tui.logs.filter import FilterError, parse_filter
from mcphost.tui.logs.pane import LogsPane
from mcphost.tui.main import screen as main_screen
from tests.tui.stage import echo, on_stage

RECORDS = (
    LogRecord(1, 0.0, "db", LogSource.SERVER, LogLevel.WARNING, "slow Query: 12 ms", "db.pool", 12),
    LogRecord(2, 0.0, "db", LogSource.STDERR, LogLevel.INFO, "TypeError: x=5 of http://host", "", None),
    LogRecord(3, 0.0, "git", LogSource.SERVER, LogLevel.DEBUG, "query done", "core", 3),
    LogRecord(4, 0.0, "git-2", LogSource.STDOUT, LogLevel.ERROR, "a [b] c", "", 12),
    LogRecord(5, 0.0, "", LogSource.MCPHOST, LogLevel.EMERGENCY, "config read", "", None),
)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", "12345"),
        ("  ", "12345"),
        ("query", "13"),
        ("QUERY slow", "1"),
        ('"slow query"', "1"),
        ('"query slow"', ""),
        ('"slow que', "1"),
        ("-query", "245"),
        ("-", "12345"),
        ('-""', "12345"),
        ("typeerror:", "2"),
        ("x=5", "2"),
        ("http://host", "2"),
        ("12", "1"),
        ("server:db", "12"),
        ("server:DB,git", "123"),
        ("server:git", "3"),
        ("server:git*", "34"),
        ("-server:git*", "125"),
        ("server:mcphost", "5"),
        ("server:[db]", ""),
        ("level:warning", "145"),
        ("level>=warn", "145"),
        ("level>warning", "45"),
        ("level=warning", "1"),
        ("level<info", "3"),
        ("level<=info", "23"),
        ("-level:warning", "23"),
        ("level:em", "5"),
        ("source:stderr", "2"),
        ("source:stdout,mcphost", "45"),
        ("call:12", "14"),
        ("call:12,3", "134"),
        ("call:*", "134"),
        ("-call:*", "25"),
        ("logger:pool", "1"),
        ("logger:*", "12345"),
        ("[b]", "4"),
        ("Server:db LEVEL:warning -slow", ""),
    ],
)
def test_a_filter_lets_these_lines_pass(text: str, numbers: str) -> None:
    wanted = parse_filter(text)
    assert "".join(str(record.number) for record in RECORDS if wanted.passes(record)) == numbers


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sever:db", 'There is no field sever; write server:, or "sever:" to look for the text.'),
        ("level>=", "Write a value after level>=, for example level>=warning."),
        ("level:loud", "There is no level loud; there are debug, info, notice, warning, error, critical, alert"),
        ("level:e", "The level e could be error and emergency; write one more letter."),
        ("source:disk", "There is no source disk; there are server, stderr, stdout and mcphost."),
        ("call:last", "A call is a number, as in call:12, or call:* for any call; last is neither."),
        ("call:" + "9" * 5000, "A call is a number"),
        ("server>db", "Only levels can be compared; write server:db."),
    ],
)
def test_a_wrong_filter_is_answered_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(f"word {text}")
    assert str(caught.value).startswith(sentence)


class CountingPane(LogsPane):
    """Counts the work for each line."""

    filtered = drawn = 0

    def passes(self, record: LogRecord) -> bool:
        self.filtered += 1
        return super().passes(record)

    def row(self, record: LogRecord, width: int) -> Any:
        self.drawn += 1
        return super().row(record, width)


class Logs(App[None]):
    """The pane as the whole screen; records its messages."""

    def __init__(self, limit: int = 1000) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.book = LogBook(lambda: self.now, lambda text: text, lambda: None)
        self.pane, self.chosen = CountingPane(self.book, limit=limit), list[Message]()

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.rows.focus()

    def on_call_chosen(self, event: CallChosen) -> None:
        self.chosen.append(event)

    def on_log_level_requested(self, event: LogLevelRequested) -> None:
        self.chosen.append(event)

    def log_lines(self, count: int, text: str = "line", server: str = "db", **more: Any) -> None:
        for number in range(count):
            self.now += 1
            self.book.add(server, LogSource.SERVER, LogLevel.INFO, f"{text} {number}", **more)

    def lines(self) -> list[str]:
        rows = self.pane.rows
        return [rows.render_line(y).text.rstrip() for y in range(rows.size.height)]

    @property
    def heading(self) -> str:
        return self.pane.border_title or ""


def running(app: Logs) -> Any:
    return app.run_test(size=(80, 24))


async def refresh(app: Logs, pilot: Pilot[None]) -> None:
    app.pane.refresh_logs()
    await pilot.pause()


async def set_filter(app: Logs, pilot: Pilot[None], text: str) -> None:
    app.pane.query_one(FilterLine).show_filter(text)
    await pilot.pause()


async def test_a_row_shows_all_of_a_record_and_obeys_no_text() -> None:
    """A server's text is neither markup nor a command to the terminal, and stays on its line."""
    app = Logs()
    app.book.add("db", LogSource.SERVER, LogLevel.WARNING, "[red]slow[/]\nquery \x1b[31m", logger="pool", call=12)
    app.book.add("files", LogSource.STDERR, LogLevel.INFO, "a" * 300)
    app.book.add("", LogSource.MCPHOST, LogLevel.ERROR, "not started")
    async with running(app):
        lines = [line[2:] for line in app.lines()[:3]]
        assert [line[2:8] for line in lines] == [":46:40"] * 3
        assert lines[0][8:] == " db      ▲ warning   pool [red]slow[/]⏎query ␛[31m".ljust(64) + "↗12"
        assert lines[1][8:] == " files     stderr    " + "a" * 40 + "…"
        heads = app.pane.heads.render().plain
        assert heads.split() == ["time", "server", "level", "message", "call"]
        assert heads.index("server") == app.lines()[0].index("db")
        assert heads.index("message") == app.lines()[0].index("pool")
        assert lines[2][8:] == " mcphost ✖ mcphost   not started"


async def test_work_for_each_refresh_is_proportional_to_what_is_new() -> None:
    app = Logs(limit=1000)
    app.book.set_budget("db", LogBudget(lines=2000))
    app.log_lines(2000)
    async with running(app) as pilot:
        for new in (0, 7, 300):
            app.log_lines(new, "new")
            app.pane.filtered = app.pane.drawn = 0
            await refresh(app, pilot)
            assert app.pane.filtered == new
            assert app.pane.drawn <= 3 * 24
            assert len(app.pane.rows.items) == 1000
        app.log_lines(5000, "flood")
        app.pane.filtered = 0
        await refresh(app, pilot)
        assert (app.pane.filtered, len(app.pane.rows.items)) == (2000, 1000)
        assert "flood 4999" in app.lines()[-1]


async def test_new_lines_do_not_lay_out_the_screen_again() -> None:
    app = Logs()
    async with running(app) as pilot:
        app.log_lines(100)
        await refresh(app, pilot)
        layouts: list[object] = []
        app.screen.screen_layout_refresh_signal.subscribe(app.pane, layouts.append)
        for text in ("more", "still more"):
            app.log_lines(7, text)
            await refresh(app, pilot)
            assert f"{text} 6" in app.lines()[-1]
        assert not layouts


async def test_an_opening_filter_shows_the_current_count() -> None:
    app = Logs()
    async with running(app) as pilot:
        await pilot.press("slash", "escape")
        app.log_lines(1234)
        await refresh(app, pilot)
        await pilot.press("slash")
        await pilot.pause()
        count = app.pane.query_one(".count")
        assert (str(count.render()), count.size.width) == ("1,000 of 1,234", len("1,000 of 1,234"))


async def test_looking_back_pauses_and_end_follows_again() -> None:
    app = Logs()
    app.log_lines(50)
    async with running(app) as pilot:
        assert app.heading == "Logs · all servers · info and up · following"
        await pilot.press("up")
        app.log_lines(120, "new")
        await refresh(app, pilot)
        assert app.heading == "Logs · all servers · info and up · paused · 120 new"
        assert app.lines()[-1].endswith("line 49")
        await pilot.press("end")
        await pilot.pause()
        assert app.heading == "Logs · all servers · info and up · following"
        assert app.lines()[-1].endswith("new 119")
        await pilot.press("f")
        app.log_lines(1)
        await refresh(app, pilot)
        assert app.heading.endswith("paused · 1 new")
        await pilot.press("f")
        await pilot.pause()
        assert app.heading.endswith("following")


async def test_the_least_level_cycles_and_dropped_lines_are_counted() -> None:
    app = Logs()
    app.book.set_budget("db", LogBudget(per_second=3))
    for level in LogLevel:
        app.book.add("db", LogSource.SERVER, level, level.wire)
    app.book.add("git", LogSource.SERVER, LogLevel.DEBUG, "debug")
    async with running(app) as pilot:
        seen = {}
        for _ in range(4):
            seen[app.heading] = len(app.pane.rows.items)
            await pilot.press("l")
        assert seen == {
            "Logs · all servers · info and up · following · 5 dropped": 2,
            "Logs · all servers · warning and up · following · 5 dropped": 0,
            "Logs · all servers · error and up · following · 5 dropped": 0,
            "Logs · all servers · all levels · following · 5 dropped": 4,
        }


async def test_the_least_level_that_is_configured_holds_at_the_start() -> None:
    async with on_stage(echo().model_copy(update={"ui": UI(logs="error")})) as stage:
        await stage.ready()
        await stage.press("f3")
        await stage.shows("error and up")
        await stage.press("l")
        await stage.shows("all levels")


async def test_f3_goes_to_the_logs_even_before_the_hidden_panes_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_screen, "FIRST_FRAME", 3600.0)
    async with on_stage(echo()) as stage:
        assert not stage.app.main.logs.is_attached
        await stage.press("f3")
        assert stage.app.main.logs.has_focus_within


@pytest.mark.requirement("LOG-03")
async def test_a_filter_works_as_it_is_typed() -> None:
    app = Logs()
    app.log_lines(10, "flow flow", "db")
    app.log_lines(10, "work", "git")
    async with running(app) as pilot:
        await pilot.press("slash")
        await pilot.press(*"flow")
        assert len(app.pane.rows.items) == 10
        await set_filter(app, pilot, "server:git 7")
        assert [line.split()[-2:] for line in app.lines() if line] == [["work", "7"]]
        assert str(app.pane.query_one(FilterLine)._count.content) == "1 of 20"
        assert "filtered" in app.heading
        await pilot.press("enter", "f")
        await pilot.pause()
        assert app.pane.rows.has_focus
        assert not app.pane.rows.following
        app.log_lines(10, "more", "git")
        await refresh(app, pilot)
        assert len(app.pane.rows.items) == 2
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.pane.rows.items) == 30
        assert not app.pane.query_one(FilterLine).is_open


async def test_a_filter_that_names_a_level_overrides_the_least_level() -> None:
    app = Logs()
    app.book.add("db", LogSource.SERVER, LogLevel.DEBUG, "detail")
    async with running(app) as pilot:
        assert "No lines match." in "".join(app.lines())
        await pilot.press("slash")
        await set_filter(app, pilot, "level:debug")
        assert app.lines()[0].endswith("detail")


async def test_a_wrong_filter_says_so_and_leaves_the_last_good_one() -> None:
    app = Logs()
    app.log_lines(10)
    async with running(app) as pilot:
        await pilot.press("slash")
        await set_filter(app, pilot, "7")
        await set_filter(app, pilot, "7 level:")
        assert str(app.pane.query_one(FilterLine).problem.content).startswith("Write a value after level:")
        await pilot.press("enter")
        assert app.pane.query_one(FilterLine).input.has_focus
        assert len(app.pane.rows.items) == 1
        await set_filter(app, pilot, "7 level:info")
        await pilot.press("enter")
        assert app.pane.rows.has_focus


async def test_keys_copy_and_save_lines_and_post_what_the_user_chose() -> None:
    app = Logs()
    app.book.add("db", LogSource.SERVER, LogLevel.INFO, "one\ntwo \x1b[0m", logger="pool", call=12)
    app.book.add("", LogSource.MCPHOST, LogLevel.INFO, "three")
    async with running(app) as pilot:
        await pilot.press("C", "L", "up", "C", "L", "y", "w")
        await pilot.pause()
        assert app.chosen == [LogLevelRequested(None), CallChosen(12), LogLevelRequested("db")]
        assert app.clipboard.partition(" ")[2] == "db server info call:12 pool: one\n    two ␛[0m"
        saved = app.screen
        assert isinstance(saved, SaveScreen)
        assert saved._content.startswith(app.clipboard.encode())
        assert saved._content.endswith(b" mcphost mcphost info three\n")
        assert re.fullmatch(r"mcphost-\d{8}-\d{6}\.log", saved._file_name)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one\ntwo \x1b", ["one", "two ␛"]),
        ('{"a":[1e999,{}],"a":"[b]\\u202e"}', None),
        ("[" * 5000, ["[" * 5000]),
        ("{not json}", ["{not json}"]),
    ],
    ids=["text", "json", "too deep", "not quite json"],
)
def test_a_whole_line_is_shown_and_json_is_laid_out(text: str, lines: list[str] | None) -> None:
    shown = list(text_view(text).lines)
    if lines is None:  # nothing is rounded, merged or hidden
        assert len(shown) > 4
        assert all(part in "\n".join(shown) for part in ("1e999", "[b]", "202"))
        assert "\u202e" not in "".join(shown)
    else:
        assert shown == lines


async def test_enter_opens_the_line_and_c_goes_from_there_to_its_call() -> None:
    app = Logs()
    app.book.add("db", LogSource.SERVER, LogLevel.INFO, "one\ntwo", call=12)
    async with running(app) as pilot:
        await pilot.press("enter", "C")
        await pilot.pause()
        assert app.chosen == [CallChosen(12)]
        await pilot.press("enter")
        assert isinstance(app.screen, LogDetail)
        await pilot.press("escape")
        assert not isinstance(app.screen, LogDetail)


async def test_clearing_empties_the_view_only_and_can_be_taken_back() -> None:
    app = Logs()
    app.log_lines(10)
    async with running(app) as pilot:
        await pilot.press("x")
        assert "X restores the earlier lines." in "".join(app.lines())
        app.log_lines(1, "later")
        await refresh(app, pilot)
        assert [record.text for record in app.pane.rows.items] == ["later 0"]
        await pilot.press("X")
        assert len(app.pane.rows.items) == 11


async def test_a_book_that_was_cleared_elsewhere_is_empty_here_too() -> None:
    app = Logs()
    async with running(app) as pilot:
        assert "No log lines yet." in "".join(app.lines())
        app.log_lines(10)
        await refresh(app, pilot)
        app.book.clear()
        await refresh(app, pilot)
        assert "No log lines yet." in "".join(app.lines())
        app.log_lines(3, "later")
        await refresh(app, pilot)
        assert [record.text for record in app.pane.rows.items] == ["later 0", "later 1", "later 2"]


def test_every_key_is_explained() -> None:
    for binding in (*LogsPane.BINDINGS, *LogDetail.BINDINGS, *RowList.BINDINGS):
        assert isinstance(binding, Binding)
        assert all((binding.description, binding.tooltip, binding.id))


async def test_the_longest_level_is_shown_whole() -> None:
    app = Logs()
    app.book.add("db", LogSource.SERVER, LogLevel.EMERGENCY, "fire")
    async with running(app):
        assert "✖ emergency fire" in app.lines()[0]


async def test_filter_words_are_marked_and_the_newest_is_selected() -> None:
    app = Logs()
    app.log_lines(10, "work", "git")
    async with running(app) as pilot:
        await pilot.press("home", "slash", *"work")
        await pilot.pause()
        assert app.pane.rows.highlighted == 9
        row = app.pane.row(app.pane.rows.items[0], 60)
        assert [row.plain[span.start : span.end] for span in row.spans if span.style == HIT] == ["work"]
        await pilot.press("enter", "slash", "9")  # what was typed is selected
        await pilot.pause()
        assert len(app.pane.rows.items) == 1


def logs_are(is_open: bool, app: McphostApp) -> bool:
    return app.main.logs_open is is_open


@pytest.mark.slow
async def test_the_log_drawer_follows_the_size_and_closes_in_chat() -> None:
    async with on_stage(echo(), size=(120, 40)) as stage:
        await stage.ready()
        assert stage.app.main.logs_open
        for height, is_open in ((24, False), (40, True), (10, False), (40, True)):
            await stage.pilot.resize_terminal(120, height)
            await stage.until(partial(logs_are, is_open))
        await stage.press("f5")
        await stage.until(lambda app: app.main.conversing and not app.main.logs_open)
        await stage.press("escape", "t")
        await stage.until(lambda app: app.main.logs_open)
        await stage.press("f3", "f3")
        await stage.pilot.resize_terminal(120, 50)
        await stage.pilot.pause()
        assert not stage.app.main.logs_open, "closed by the user"
