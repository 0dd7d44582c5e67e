from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mcphost.protocol.display import show
from mcphost.tui.kit.json_text import json_lines, json_spans, parse
from mcphost.tui.kit.markdown import looks_like_markdown, render_markdown
from mcphost.tui.kit.search import SearchArea
from mcphost.tui.kit.text_view import TextView, wrap_line
from mcphost.tui.results.content import pretty
from tests.loop_watchdog import LoopWatchdog


class Reading(App[None]):
    def __init__(self, view: TextView) -> None:
        super().__init__()
        self.animation_level = "none"
        self.view, self.area = view, SearchArea()

    def compose(self) -> ComposeResult:
        yield self.area

    def on_mount(self) -> None:
        self.area.mount(self.view, before=self.area.bar)
        self.view.focus()

    @property
    def rows(self) -> list[str]:
        return [self.view.render_line(y).text.rstrip() for y in range(self.view.size.height)]


@pytest.mark.parametrize("line", ["", "a b", "word " * 40, "x" * 95, "界" * 60, "a界" * 30 + " b", "👩‍👩‍👧 " * 20])
@pytest.mark.parametrize("width", [1, 2, 10, 31])
def test_a_wrapped_line_loses_only_blanks_at_its_breaks(line: str, width: int) -> None:
    rows = [line[start:end] for start, end in wrap_line(line, width)]
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")
    assert all(cell_len(row) <= width or len(row) == 1 for row in rows)


@pytest.mark.hostile("T12")
async def test_a_million_lines_open_scroll_and_jump_at_once(loop_watchdog: LoopWatchdog) -> None:
    lines = [f"line {number}" for number in range(1_000_000)]
    app = Reading(TextView(lines))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        loop_watchdog.restart()
        for key in ("pagedown", "down"):
            await pilot.press(key)
        app.view.scroll_end(animate=False, immediate=True)
        await pilot.pause()
        assert app.rows[-1] == "line 999999"
        assert loop_watchdog.longest < 0.5
        assert not app.view.wraps


async def test_a_shorter_text_loaded_without_room_is_drawn() -> None:
    app = Reading(TextView(["a"] * 50))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.view.styles.width = 0
        await pilot.pause()
        app.view.load(["b"])
        assert "a" not in "".join(app.rows)
        assert app.view.render_line(20).text.strip() == ""


async def test_a_line_longer_than_the_screen_wraps_or_scrolls_sideways() -> None:
    app = Reading(TextView(["a" * 100 + "END", "next"]))
    async with app.run_test(size=(82, 10)) as pilot:
        await pilot.pause()
        assert app.rows[:3] == ["a" * 80, "a" * 20 + "END", "next"]
        await pilot.press("W")
        assert app.rows[:2] == ["a" * 80, "next"]
        app.view.scroll_to(x=23, animate=False)
        await pilot.pause()
        assert app.rows[0].endswith("END")


async def test_the_column_of_the_scrollbar_hides_no_text() -> None:
    app = Reading(TextView(["x" * 77 + "yz"] * 50))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.rows[:2] == ["x" * 77, "yz"]


async def test_a_search_marks_every_place_and_n_goes_round() -> None:
    app = Reading(TextView([f"row {number} {'[b]Pin' if number % 50 == 7 else ''}" for number in range(200)]))
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press("slash", *"[b]pin", "enter")
        await pilot.pause()
        seen = []
        for _ in range(5):
            seen.append(next(row for row in app.rows if "Pin" in row))
            await pilot.press("n")
        assert seen == [f"row {n} [b]Pin" for n in (7, 57, 107, 157, 7)]
        await pilot.press("N")
        assert any("row 7 " in row for row in app.rows)
        assert app.focused is app.view
        await pilot.press("escape")
        assert not app.area.bar.display
        await pilot.press("slash", *"nowhere", "enter")
        await pilot.pause()
        assert not app.area.check_action("go", (1,))


def test_json_keeps_every_number_and_member_as_it_was_written() -> None:
    lines, more = json_lines(parse('{"a": 1.50, "a": 10000000000000000001, "b": [1e400, {}, [], "\\u202e"]}'))
    assert not more
    assert [line.strip() for line in lines] == [
        *("{", '"a": 1.50,', '"a": 10000000000000000001,', '"b": [', "1e400,", "{},", "[],", '"⟨U+202E⟩"', "]", "}")
    ]
    assert list(json_spans('  "k\\"": -1.5e3,')) == [(2, 7, "key"), (9, 15, "number")]


@pytest.mark.parametrize("text", ["", "12", '"a"', "[1", "[" * 100_000, "{'a': 1}"])
def test_what_is_no_json_object_or_array_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"an object|delimiter|deep|property"):
        parse(text)


def test_json_is_written_until_the_budget_is_spent() -> None:
    lines, more = json_lines({"a": "x" * 1_000_000, "b": list(range(1_000_000))}, limit=10)
    assert (len(lines), more) == (10, True)
    assert lines[1].endswith('x" ⟨990 kB more⟩,')
    deep: object = 1
    for _ in range(400):
        deep = [deep]
    assert any("deeper than" in line for line in json_lines(deep)[0])


@pytest.mark.hostile("T11", "T08", "T10")
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title\n\nSome **bold** and `code`", ["Title", "", "Some bold and code"]),
        ("- a\n- b\n  1. c\n  2. d\n\nend", ["• a", "• b", "  1. c", "  2. d", "", "end"]),
        ("a\n\n> quoted\n> more\n>\n> b\n\nc", ["a", "", "▌ quoted more", "▌", "▌ b", "", "c"]),
        ("|a|b|\n|-|-|\n|one|2|", ["a   │ b", "────┼──", "one │ 2"]),
        ("```json\n[1]\n```", ["json", "  [1]"]),
        ("[Docs](javascript:alert(1))", ["[Docs](javascript:alert(1))"]),
        ("[Docs](https://a.example/?x)", ["Docs ⟨https://a.example/?x⟩"]),
        ("[file](file:///etc/passwd) x", ["[file](file:///etc/passwd) x"]),
        ("![pixel](https://t.example/p.png)", ["[image: pixel] ⟨https://t.example/p.png⟩"]),
        ("<script>x</script> <b>y</b>", ["<script>x</script> <b>y</b>"]),
        ("[red]x[/] [@click=app.quit]y", ["[red]x[/] [@click=app.quit]y"]),
        ("&#x202e;evil &lt; \\* &#27;[2J", ["&#x202e;evil &lt; * &#27;[2J"]),
        ("<https://a.example/>", ["https://a.example/"]),
        ("<https://a.example/%E2%80%AEx>", ["https://a.example/⟨U+202E⟩x ⟨https://a.example/%E2%80%AEx⟩"]),
    ],
)
def test_markdown_shows_every_target_and_does_nothing(text: str, lines: list[str]) -> None:
    rendered = render_markdown(show(text))
    assert rendered is not None
    assert [line.text for line in rendered] == lines


@pytest.mark.hostile("T11")
@pytest.mark.parametrize(
    "text", ["> " * 25 + "deep", "".join(f"[a{n}]: http://hidden.example\n" for n in range(9)), "x" * 60_000]
)
def test_markdown_that_would_hide_something_is_left_as_it_was_sent(text: str) -> None:
    assert render_markdown(text) is None


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("# T\n\n- a\n- b", True),
        ("```\nx\n```", True),
        ("just words. And 1 * 2 * 3", False),
        ("# a comment\nimport os", False),
        ("2026-11-03 - started\n2026-11-04 - ended", False),
    ],
)
def test_text_is_markdown_only_when_it_looks_like_it(text: str, markdown: bool) -> None:
    assert looks_like_markdown(text) is markdown


@pytest.mark.parametrize(
    ("start", "end", "copied"),
    [((1, 0), (5, 0), "hello"), ((7, 0), (5, 1), "world\nsecon"), ((5, 1), (7, 0), "world\nsecon")],
)
async def test_ctrl_c_copies_what_was_chosen_with_the_mouse(
    start: tuple[int, int], end: tuple[int, int], copied: str
) -> None:
    app = Reading(TextView(["hello world", "second line"]))
    async with app.run_test(size=(40, 10)) as pilot:
        await choose(pilot, start, end)
        style = app.view.get_component_rich_style("text-view--selection", partial=True)
        row = min(start[1], end[1])
        assert any(segment.style and segment.style.bgcolor == style.bgcolor for segment in app.view.render_line(row))
        await pilot.press("ctrl+c")
        assert app.clipboard == copied


async def test_a_choice_in_wrapped_lines_is_of_the_lines_as_they_are() -> None:
    line = "word " * 30
    app = Reading(TextView([line]))
    async with app.run_test(size=(30, 12)) as pilot:
        await choose(pilot, (1, 0), (5, 2))
        await pilot.press("ctrl+c")
        assert len(app.clipboard) > 30
        assert line.startswith(app.clipboard)


async def choose(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.pause()
    await pilot.mouse_down(TextView, offset=start)
    await pilot.hover(TextView, offset=end)
    await pilot.mouse_up(TextView, offset=end)
    await pilot.pause()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a\tb", "a       b"),
        ("12345678\tb", "12345678        b"),
        ("界\tb", "界      b"),
        ("é\t\tb", "é" + " " * 15 + "b"),
    ],
)
def test_columns_aligned_by_tabs_stand_as_on_a_terminal(line: str, shown: str) -> None:
    view = TextView([line])
    assert view.lines == [shown]


def test_json_from_a_text_keeps_emoji_whole_as_its_text_does() -> None:
    assert pretty({"who": "👨‍👩‍👧", "dark": "a\u202eb"}).lines == [
        "{",
        '  "who": "👨‍👩‍👧",',
        '  "dark": "a⟨U+202E⟩b"',
        "}",
    ]
    assert json_lines({"who": "👨‍👩‍👧"})[0][1].count("⟨U+200D⟩") == 2
