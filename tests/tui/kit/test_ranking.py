"""The matches of a filter, and their order."""

from __future__ import annotations

import pytest

from mcphost.host.catalog import CatalogTool
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.consent.tool_call import ToolCallScreen
from mcphost.tui.kit.ranking import HIT, LetterSearch, Search, SearchIndex, SearchText
from tests.tui.stage import NARROW, WIDE, echo, on_stage, server, servers

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])


def ranked(typed: str, *texts: SearchText) -> list[int]:
    return Search(typed).best_first(range(len(texts)), texts)


def test_the_name_ranks_before_title_and_description() -> None:
    texts = [
        SearchText("tell_all", "Tell all", "git", more="About a commit."),
        SearchText("show", "Show a commit", "git"),
        SearchText("git_recommit", "Again", "git"),
        SearchText("git_commits", "Many", "git"),
        SearchText("git_commit", "Do it", "git"),
        SearchText("commit_all", "All", "git"),
        SearchText("commit", "One", "git"),
        SearchText("other", "Other", "git"),
    ]
    assert ranked("commit", *texts) == [6, 5, 4, 3, 2, 1, 0]
    assert ranked("COMMIT", *texts) == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("name", ["fit_lens", "fit-lens", "fitLens", "fit.lens", "Fit lens"])
def test_a_name_is_found_by_its_words_however_they_are_joined(name: str) -> None:
    texts = [SearchText("fit_lens_cap", "", ""), SearchText("lens_fit", "", ""), SearchText(name, "", "")]
    assert ranked("fit lens", *texts) == [2, 0, 1]


def test_the_worst_of_several_words_decides() -> None:
    texts = [
        SearchText("put_down", "Put down", "demo", more="and take out"),
        SearchText("douse", "Put out the light", "demo"),
        SearchText("clock", "Clock", "demo", more="put out"),
    ]
    assert ranked("put out", *texts) == [1, 0, 2]
    assert ranked("demo clock", *texts) == [2]


def test_equally_good_matches_keep_their_order_and_no_words_match_all() -> None:
    texts = [SearchText("b_log", "", ""), SearchText("a_log", "", ""), SearchText("x", "", "")]
    assert ranked("log", *texts) == [0, 1]
    assert ranked(" ", *texts) == [0, 1, 2]
    assert ranked("-", *texts) == []


def test_every_matched_letter_is_marked_in_any_case() -> None:
    content = Search("lens a").mark("Fit A Lens")
    assert [(span.start, span.end) for span in content.spans if span.style == HIT] == [(4, 5), (6, 10)]


def test_an_excerpt_begins_shortly_before_the_match() -> None:
    text = f"{'words ' * 20}needle and thread"
    assert Search("needle").excerpt(text) == "…rds words words needle and thread"
    assert Search("words").excerpt(text) == text
    assert Search("other").excerpt(text) == ""


MANY = [
    SearchText(
        f"{verb}_{thing}_{n}",
        f"{verb.title()} the {thing}",
        f"server{n % 3}",
        more=f"Does {verb} what {thing} {n} needs.",
    )
    for n in range(200)
    for verb, thing in (("get", "log"), ("log", "entry"), ("list", "catalogs"), ("put", "lamp"))
]


@pytest.mark.parametrize("typed", ["log", "l", "get log 7", "put_lamp_12", "the", "needs", "server2", "-", "", "GET"])
def test_an_index_finds_the_same_in_the_same_order_as_a_plain_search(typed: str) -> None:
    index = SearchIndex[int]()
    for number, text in enumerate(MANY):
        index.add(number, text)
    expected = ranked(typed, *MANY)[:50] if Search(typed).words else []
    found = index.best(Search(typed), 50)
    assert [number for _, number, only_letters in found if not only_letters] == expected
    assert [rank for rank, _, _ in found] == sorted(rank for rank, _, _ in found)


def test_letters_in_their_order_are_the_last_rank_of_an_index() -> None:
    index = SearchIndex[str]()
    for name, about in (("git_status", ""), ("get_weather", ""), ("other", "what gst is"), ("gigantic_test_set", "")):
        index.add(name, SearchText(name, "", "", more=about))
    assert [(name, only) for _, name, only in index.best(Search("gst"), 9)] == [("other", False), ("git_status", True)]
    assert index.best(Search("tsg"), 9) == []
    assert index.best(Search("x"), 9) == []


@pytest.mark.parametrize("shown", ["git_status", "Git-Status", "git status"])
def test_letters_are_marked_where_they_were_found(shown: str) -> None:
    content = LetterSearch("gst").mark(shown)
    assert [(span.start, span.end) for span in content.spans if span.style == HIT] == [(0, 1), (4, 5), (5, 6)]
    assert not LetterSearch("gst").mark("nothing").spans


@SIZES
@pytest.mark.slow
async def test_the_best_match_is_selected_after_every_letter(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        tools = stage.app.main.tools.list
        rows = tools.rows
        await stage.press("t", "end", "slash")
        for typed in "flash":
            await stage.write(typed)
            assert rows.highlighted == 0
        assert tools.item is not None
        assert tools.item.tool.name == "flash_lamp"  # and not the tool whose description names it
        await stage.press("escape", "slash")
        await stage.write("put out")
        assert [each.tool.name for each in rows.items if isinstance(each, CatalogTool)] == [
            "put_out_light",
            "tear_out_pages",
        ]
        await stage.press("slash")  # a letter like any other here
        await stage.press("backspace")
        await stage.press("down", "slash")  # selects the words, so that others replace them
        await stage.write("fit_lens")
        await stage.shows("/ fit_lens", "1 of 24", "fit_lens")
        await stage.press("enter")
        await stage.shows("demo › fit_lens")
        assert stage.app.main.tools.step == "form"


@pytest.mark.slow
async def test_enter_in_an_empty_filter_opens_nothing() -> None:
    async with on_stage(echo(), size=NARROW) as stage:
        await stage.ready()
        await stage.press("t", "slash", "enter")
        assert stage.app.main.tools.step == "list"
        assert stage.app.main.tools.list.rows.has_focus
        await stage.press("slash")
        await stage.write("nothing like it")
        await stage.shows("No match.")
        await stage.press("enter")
        assert stage.app.main.tools.step == "list"
        assert not isinstance(stage.app.screen, ToolCallScreen)
        assert not [call for call in stage.host.tool_calls.calls.values() if call.state is not CallState.CANCELLED]


@pytest.mark.slow
async def test_the_cursor_starts_on_the_first_tool() -> None:
    async with on_stage(servers(late=server("echo.py"), first=server("echo.py")), size=NARROW) as stage:
        await stage.ready()
        tools, listed = stage.app.main.tools, stage.app.main.tools.list
        everything = stage.host.catalog.tools()
        tools.show_tools([each for each in everything if each.server == "first"], None)
        tools.show_tools(everything, None)
        assert listed.rows.highlighted == 1  # below the heading
        await stage.press("t", "down")
        chosen = listed.item
        tools.show_tools([each for each in everything if each.server == "late"], None)
        tools.show_tools(everything, None)
        assert listed.item == chosen is not None


@pytest.mark.slow
async def test_a_filter_of_letters_finds_names_where_nothing_has_the_word() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        await stage.press("t", "slash")
        await stage.write("pol")
        await stage.shows("1 of 24", "Put out the light")
        await stage.press("enter")
        await stage.shows("demo › put_out_light")
