"""The dialog for roots: the tree, its marks, what a key shares, and the questions before that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.events import AppBlur, AppFocus

from mcphost.host.server_requests import roots
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.roots import tree as roots_tree
from mcphost.tui.roots.screen import RootsScreen
from mcphost.tui.roots.tree import (
    FolderEntry,
    FolderListing,
    FolderRow,
    FolderRows,
    FolderTree,
    Mark,
    folder_row,
    list_folders,
)
from mcphost.tui.servers.card import ServerCard
from tests.host.server_requests.pending import ROOTS
from tests.tui.elicitation.questions import ask, at, got, question_stage
from tests.tui.stage import NARROW, WIDE, Stage

pytestmark = pytest.mark.slow


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git work tree with a few folders as the working directory; home is beside it."""
    home, work = tmp_path / "home", tmp_path / "work" / "api"
    for folder in (home, work / ".git", work / "src" / "deep", work / ".cache", tmp_path / "other"):
        folder.mkdir(parents=True, exist_ok=True)
    (work / "link").symlink_to(tmp_path / "other")
    (work / "file.txt").write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    return work


def told(folders: list[Path]) -> dict[str, Any]:
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


async def settled(stage: Stage) -> RootsScreen:
    """The dialog, once it has read all folders that it asked for."""
    screen = await at(stage, RootsScreen)
    await stage.until(lambda _: "reading…" not in stage.text)
    return screen


def under_cursor(stage: Stage) -> Path | None:
    row = stage.app.screen.query_one(FolderTree).item
    return row.entry.path if row is not None and row.entry is not None else None


async def go(stage: Stage, path: Path) -> None:
    """Go to a folder by its path."""
    await stage.press("slash")
    for character in str(path):
        await stage.pilot.press(
            {"/": "slash", "_": "underscore", "-": "minus", ".": "full_stop"}.get(character, character)
        )
    await stage.press("enter")
    await stage.until(lambda _: under_cursor(stage) == path)


async def mark(stage: Stage) -> None:
    """Mark the selected folder, which is checked first."""
    screen = stage.app.screen
    assert isinstance(screen, RootsScreen)
    before = set(screen.marked)
    await stage.press("space")
    await stage.until(lambda _: screen.marked != before)


@pytest.mark.hostile("F09")
@pytest.mark.requirement("ROOT-09", "ROOT-10")
async def test_the_suggested_work_tree_is_marked_and_one_key_shares_it(work: Path) -> None:
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, ROOTS)
        screen = await settled(stage)
        await stage.shows("“a” asks for its roots (folders it may use)", "suggested: the git work tree you are in")
        await stage.shows(
            "shared now  none", "last requested  not in this run", "y share · n share none · p later · m more"
        )
        assert screen.marked == {work}
        await stage.press("space")
        await stage.until(lambda _: not screen.marked)
        await stage.press("y")
        await stage.shows("no folder is marked")
        await mark(stage)
        assert call.state is CallState.RUNNING
        await stage.press("y")
        assert await got(stage, call) == told([work])
        await stage.press("s", "down", "c")
        assert "until mcphost exits" in stage.app.main.query_one(ServerCard).text
        assert "just now: got 1 folder" in stage.app.main.query_one(ServerCard).text


async def test_each_way_out_of_the_picker_tells_the_server_of_no_folder(work: Path, tmp_path: Path) -> None:
    for key in ("n", "x", "M"):
        async with question_stage(size=NARROW, state=tmp_path / key) as stage:
            call = ask(stage, ROOTS)
            await settled(stage)
            await stage.press(key)
            assert await got(stage, call) == told([]), key


@pytest.mark.requirement("ROOT-09")
@pytest.mark.parametrize(("keys", "share"), [(("Y",), True), (("N",), False), (("escape", "f2", "enter", "N"), False)])
async def test_servers_that_ask_together_are_answered_together(work: Path, keys: tuple[str, ...], share: bool) -> None:
    async with question_stage("a", "b", "c", size=NARROW) as stage:
        calls = [ask(stage, ROOTS, server=name) for name in "abc"]
        await settled(stage)
        await stage.press("m")
        await stage.shows("Y all · N none for all")
        await stage.press(*keys)
        for call in calls:
            assert await got(stage, call) == told([work] if share else [])
        await stage.gone()
        assert not stage.app.approver.open
        assert not any("withdrawn" in note.message for note in stage.app._notifications)
        again = ask(stage, ROOTS, server="b")
        assert await got(stage, again) == told([work] if share else [])


async def test_marks_stay_with_a_question_that_is_left_for_later(work: Path) -> None:
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, ROOTS)
        screen = await settled(stage)
        await go(stage, work / "src")
        await mark(stage)
        await stage.press("escape")
        await stage.gone()
        await stage.press("f2", "enter")
        again = await settled(stage)
        assert again is not screen
        assert again.marked == {work, work / "src"}
        await stage.press("a")
        assert await got(stage, call) == told([work, work / "src"])
        assert stage.host.roots.offered("a")[0].source.value == "remembered"


@pytest.mark.hostile("F10")
async def test_the_tree_tells_links_and_hidden_and_unreadable_folders(work: Path) -> None:
    (work / "evil\x1b[2J\u202e[bold]").mkdir()
    locked = work / "locked"
    locked.mkdir(mode=0o000)
    listing = list_folders(work, work)
    assert {entry.path.name: entry.problem for entry in listing.entries}["locked"] in (
        "cannot be read",
        "",
    )  # root reads
    async with question_stage(size=(110, 40)) as stage:
        ask(stage, ROOTS)
        await settled(stage)
        await stage.press("end")
        await go(stage, work / "src")
        await stage.press("left")
        target = str(work.parents[1] / "other")[:50]  # the row may cut the rest
        for words in (f"link → {target}", "evil␛[2J⟨U+202E⟩[bold]", "▹ [·] src", "▾ [x] api"):
            await stage.shows(words)
        assert ".cache" not in stage.text
        await stage.press("full_stop")
        await stage.shows(".cache", ".git")
        await stage.press("left")
        assert ".cache" not in stage.text
        locked.chmod(0o700)


@pytest.mark.hostile("F10")
async def test_a_link_is_shared_as_what_it_leads_to_and_opened_there(work: Path) -> None:
    other = work.parents[1] / "other"
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, ROOTS)
        screen = await settled(stage)
        await go(stage, work / "src")
        await stage.until(lambda _: any(row.entry and row.entry.is_link for row in screen.picker.items))
        screen.picker.highlighted = next(
            at for at, row in enumerate(screen.picker.items) if row.entry and row.entry.path == work / "link"
        )
        await stage.press("space")
        await stage.until(lambda _: screen.marked == {work, other})
        await stage.shows("it is reached over a link")
        await stage.press("right")
        await stage.until(lambda _: under_cursor(stage) == other)
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.press("y")
        assert await got(stage, call) == told(sorted([work, other]))


@pytest.mark.hostile("F10")
async def test_home_and_the_root_are_asked_about_once_more(work: Path) -> None:
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, ROOTS)
        await settled(stage)
        await go(stage, Path.home())
        await stage.press("space")
        await stage.shows("far more than a project")
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.shows("Share this with a?", "▲ beware")
        await stage.press("escape")
        await at(stage, RootsScreen)
        assert call.state is CallState.RUNNING
        await stage.press("n")
        assert await got(stage, call) == told([])


async def test_a_path_that_leads_nowhere_is_said_and_esc_leaves_the_field(work: Path) -> None:
    async with question_stage(size=NARROW) as stage:
        ask(stage, ROOTS)
        await settled(stage)
        await stage.press("slash", "y", "n", "enter")
        await stage.shows("✖ yn is not an absolute path")
        await stage.press("escape", "escape")
        await stage.gone()
        await stage.shows("a asks for its roots · f2")


@pytest.mark.requirement("ROOT-04", "ROOT-06", "ROOT-10")
async def test_folders_are_added_and_taken_back_for_one_server_and_for_all(work: Path) -> None:
    async with question_stage("a", "b", size=WIDE) as stage:
        await stage.press("s", "down", "enter")
        await stage.shows("Server · a", "none: f chooses folders")
        await stage.press("f")
        screen = await settled(stage)
        await stage.shows("Roots of “a” (folders it may use)", "space marks")
        assert "asked by" not in stage.text
        await mark(stage)
        await stage.press("y")
        await stage.until(lambda app: [each.path for each in app.host.roots.offered("a")] == [work])
        await stage.shows("● ", "until mcphost exits")
        await stage.press("t")
        await stage.shows("Roots of all servers (folders it may use)", "shared now  none")
        await go(stage, work / "src")
        await mark(stage)
        await stage.press("a")
        await stage.until(lambda app: [each.path for each in app.host.roots.offered(None)] == [work / "src"])
        await stage.press("t")
        seen = screen.query_one(".seen FactsTable", FactsTable)
        await stage.until(lambda _: "(remembered, all servers)" in seen.text)
        await stage.press("space")
        await stage.shows("is shared with all servers: t goes there")
        await stage.press("home", "space")
        await stage.shows("stop sharing 1 with “a”, until")
        await stage.press("y")
        await stage.until(lambda app: [each.path for each in app.host.roots.offered("a")] == [work / "src"])
        assert screen.is_current
        await stage.press("escape")
        await stage.gone()
        assert await got(stage, ask(stage, ROOTS, server="b")) == told([work / "src"])
        notices = stage.call("heard", server="a")
        await stage.ended(notices)
        assert notices.outcome is not None
        assert notices.outcome.raw["content"][0]["text"].count("roots/list_changed") == 3


async def test_a_folder_of_thousands_is_cut_and_says_so(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots_tree, "MOST", 50)
    for number in range(80):
        (work / "src" / f"n{number:03}").mkdir()
    listing = list_folders(work / "src", work / "src")
    assert len(listing.entries) == 50
    rows = FolderRows(work)
    assert rows.open(work / "src")
    rows.store(work, list_folders(work, work))
    rows.open(work)
    rows.store(work / "src", listing)
    assert any("only the first 50 are listed" in row.remark for row in rows.rows())
    assert list_folders(work / "none", work / "none") == FolderListing(problem="No such file or directory")


def test_a_mark_is_seen_from_above_and_from_below(work: Path) -> None:
    rows = FolderRows(work, marked={work / "src"})
    for folder in (work, work / "src"):
        rows.open(folder)
        rows.store(folder, list_folders(folder, folder))
    marks = {row.entry.path: row.mark for row in rows.rows() if row.entry}
    assert marks == {
        work: Mark.PARTLY,
        work / "src": Mark.SHARED,
        work / "src" / "deep": Mark.WITHIN,
        work / "link": Mark.NONE,
    }


@pytest.mark.requirement("ROOT-04", "ROOT-08")
async def test_who_comes_back_to_the_terminal_has_the_folders_looked_at(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots, "FRESH", 0.0)
    async with question_stage() as stage:
        await stage.host.roots.share("a", work / "src")
        await got(stage, ask(stage, ROOTS))
        (work / "src").rename(work / "moved")
        stage.app.post_message(AppBlur())
        stage.app.post_message(AppFocus())
        await stage.until(lambda _: stage.host.roots.offered("a")[0].problem)
        call = stage.call("heard")
        await stage.ended(call)
        assert call.outcome is not None
        assert str(call.outcome.raw).count("list_changed") == 2


@pytest.mark.parametrize("width", [60, 118])
def test_of_a_long_path_its_end_is_shown_beside_its_mark(width: int) -> None:
    path = Path("/a-rather-long-name") / "with-another-long-folder" / "inside-of-it" / "packages" / "frontend"
    row = FolderRow(FolderEntry(path, path), mark=Mark.SHARED, full_path=True, remark="suggested")
    drawn = folder_row(row, width).plain
    assert "[x] " in drawn
    assert "packages/frontend " in drawn
    assert (str(path) in drawn) == (width == 118)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_the_dialog_is_as_high_as_its_tree_and_keeps_its_height_when_folders_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    src = tmp_path / "api" / "src"
    for number in range(20):
        (src / f"package-{number:02}").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(src.parent)
    async with question_stage(size=size) as stage:
        ask(stage, ROOTS)
        screen = await settled(stage)

        def height() -> int:
            return screen.query_one(".dialog").outer_size.height

        await stage.until(lambda _: 0 < height() < 21)
        few, listed = height(), len(screen.picker.items)
        await go(stage, src)
        await stage.press("right")
        await stage.until(lambda _: len(screen.picker.items) > listed + 20)
        await stage.until(lambda _: height() > few)
        assert height() <= size[1]
        many = height()
        await stage.press("left")
        await stage.until(lambda _: len(screen.picker.items) < listed + 20)
        await stage.pilot.pause()
        assert height() == many
