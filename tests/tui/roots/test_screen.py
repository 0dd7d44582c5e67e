"""The dialog for roots: its rows, the tree to choose another folder, and what each key shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.events import AppBlur, AppFocus

from mcphost.host.server_requests import roots
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.roots import rows as roots_rows
from mcphost.tui.roots.rows import FolderRow, FolderScreen, FolderTree, folder_row
from mcphost.tui.roots.screen import RootsScreen
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


async def mark(stage: Stage, path: Path) -> None:
    """Type the path of a folder, which marks it."""
    screen = await at(stage, RootsScreen)
    await stage.press("slash")
    await stage.write(str(path))
    await stage.press("enter")
    await stage.until(lambda _: path in screen.marked)


@pytest.mark.hostile("F09")
@pytest.mark.requirement("ROOT-09", "ROOT-10")
async def test_the_suggested_work_tree_is_marked_and_one_key_shares_it(work: Path) -> None:
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, ROOTS)
        screen = await at(stage, RootsScreen)
        await stage.shows("“a” asks for its roots (folders it may use)", "suggested: the git work tree you are in")
        await stage.shows(
            "shared now  none", "last requested  not in this run", "y share · n share none · p later · m more"
        )
        assert screen.marked == {work}
        await stage.press("space")
        await stage.until(lambda _: not screen.marked)
        await stage.press("y")
        await stage.shows("no folder is marked")
        await stage.press("space")
        await stage.until(lambda _: screen.marked == {work})
        assert call.state is CallState.RUNNING
        await stage.press("y")
        assert await got(stage, call) == told([work])
        await stage.press("s", "down", "c")
        assert "until mcphost exits" in stage.app.main.query_one(ServerCard).text
        assert "just now: got 1 folder" in stage.app.main.query_one(ServerCard).text


@pytest.mark.parametrize("key", ["n", "x", "M"])
async def test_each_way_out_shares_no_folder(work: Path, key: str) -> None:
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, ROOTS)
        await at(stage, RootsScreen)
        await stage.press(key)
        assert await got(stage, call) == told([])


@pytest.mark.requirement("ROOT-09")
@pytest.mark.parametrize(("keys", "share"), [(("Y",), True), (("N",), False), (("escape", "f2", "enter", "N"), False)])
async def test_servers_that_ask_together_are_answered_together(work: Path, keys: tuple[str, ...], share: bool) -> None:
    async with question_stage("a", "b", "c", size=NARROW) as stage:
        calls = [ask(stage, ROOTS, server=name) for name in "abc"]
        await at(stage, RootsScreen)
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
        screen = await at(stage, RootsScreen)
        await mark(stage, work / "src")
        await stage.press("escape")
        await stage.gone()
        await stage.press("f2", "enter")
        again = await at(stage, RootsScreen)
        assert again is not screen
        assert again.marked == {work, work / "src"}
        await stage.press("a")
        assert await got(stage, call) == told([work, work / "src"])
        assert stage.host.roots.offered("a")[0].source.value == "remembered"


@pytest.mark.hostile("F10")
async def test_a_folder_is_chosen_in_a_tree_of_home(work: Path) -> None:
    evil = Path.home() / "evil\x1b[2J\u202e[bold]"
    (evil / "inner").mkdir(parents=True)
    (Path.home() / ".cache").mkdir()
    (Path.home() / "a file").touch()
    async with question_stage(size=(110, 40)) as stage:
        call = ask(stage, ROOTS)
        screen = await at(stage, RootsScreen)
        await stage.press("o")
        await stage.at(FolderScreen)
        await stage.shows("evil␛[2J⟨U+202E⟩[bold]")
        assert ".cache" not in stage.text
        assert "a file" not in stage.text
        await stage.press("full_stop")
        await stage.shows(".cache")
        await stage.press("full_stop")
        await stage.until(lambda _: ".cache" not in stage.text)
        await stage.press("down", "space")
        await stage.shows("inner")
        await stage.press("escape")
        await at(stage, RootsScreen)
        assert screen.marked == {work}
        await stage.press("o")
        await stage.at(FolderScreen)
        await stage.shows("evil")
        await stage.press("down", "enter")
        await stage.until(lambda _: screen.marked == {work, evil})
        await stage.shows("evil␛[2J⟨U+202E⟩[bold]", "chosen by you")
        await stage.press("y")
        assert await got(stage, call) == told(sorted([work, evil]))


@pytest.mark.hostile("F10")
async def test_a_link_is_shared_as_its_target(work: Path) -> None:
    other = work.parents[1] / "other"
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, ROOTS)
        screen = await at(stage, RootsScreen)
        await stage.press("slash")
        await stage.write(str(work / "link"))
        await stage.press("enter")
        await stage.until(lambda _: screen.marked == {work, other})
        await stage.shows("it is reached over a link")
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.press("y")
        assert await got(stage, call) == told(sorted([work, other]))


@pytest.mark.hostile("F10")
async def test_home_and_the_root_are_asked_about_once_more(work: Path) -> None:
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, ROOTS)
        await at(stage, RootsScreen)
        await stage.press("down", "space")
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
        await at(stage, RootsScreen)
        await stage.press("slash", "y", "n", "enter")
        await stage.shows("✖ yn cannot be shared: it is not an absolute path")
        await stage.press("escape", "escape")
        await stage.gone()
        await stage.shows("a asks for its roots · f2")


@pytest.mark.requirement("ROOT-04", "ROOT-06", "ROOT-10")
async def test_folders_are_added_and_taken_back_for_one_server_and_for_all(work: Path) -> None:
    async with question_stage("a", "b", size=WIDE) as stage:
        await stage.press("s", "down", "enter")
        await stage.shows("Server · a", "none: f chooses folders")
        await stage.press("f")
        screen = await at(stage, RootsScreen)
        await stage.shows("Roots of “a” (folders it may use)", "space marks")
        assert "asked by" not in stage.text
        await stage.press("space")
        await stage.until(lambda _: screen.marked == {work})
        await stage.press("y")
        await stage.until(lambda app: [each.path for each in app.host.roots.offered("a")] == [work])
        await stage.shows("● ", "until mcphost exits")
        await stage.press("t")
        await stage.shows("Roots of all servers (folders it may use)", "shared now  none")
        await mark(stage, work / "src")
        await stage.press("a")
        await stage.until(lambda app: [each.path for each in app.host.roots.offered(None)] == [work / "src"])
        await stage.press("t")
        seen = screen.query_one(".seen FactsTable", FactsTable)
        await stage.until(lambda _: "(remembered, all servers)" in seen.text)
        screen.picker.highlighted = [row.path for row in screen.picker.items].index(work / "src")
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


async def test_folders_that_are_shared_already_are_offered(work: Path) -> None:
    async with question_stage("a", "b", size=WIDE) as stage:
        await stage.host.roots.share("b", work / "src")
        ask(stage, ROOTS, server="a")
        screen = await at(stage, RootsScreen)
        assert [row.path for row in screen.picker.items] == [work, work / "src", Path.home()]
        await stage.shows("until mcphost exits, b", "home")
        assert screen.marked == {work}


async def test_a_folder_of_thousands_is_cut(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots_rows, "LISTED", 5)
    for number in range(8):
        (Path.home() / f"n{number}").mkdir()
    async with question_stage(size=WIDE) as stage:
        ask(stage, ROOTS)
        await at(stage, RootsScreen)
        await stage.press("o")
        await stage.at(FolderScreen)
        await stage.shows("home")
        await stage.until(lambda app: len(app.screen.query_one(FolderTree).root.children) == 5)


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
def test_of_a_long_path_its_end_is_shown(width: int) -> None:
    path = Path("/a-rather-long-name") / "with-another-long-folder" / "inside-of-it" / "packages" / "frontend"
    drawn = folder_row(FolderRow(path, "suggested", marked=True), width).plain
    assert "[x] " in drawn
    assert "packages/frontend " in drawn
    assert (str(path) in drawn) == (width == 118)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_many_folders_leave_the_answers_in_view(work: Path, size: tuple[int, int]) -> None:
    folders = [work / "src" / f"package-{number:02}" for number in range(30)]
    for folder in folders:
        folder.mkdir()
    async with question_stage(size=size) as stage:
        for folder in folders:
            await stage.host.roots.share(None, folder)
        await stage.press("s", "down", "enter", "f")
        screen = await at(stage, RootsScreen)
        await stage.shows("package-00", "close")
        assert screen.picker.show_vertical_scrollbar == (size == NARROW)
        assert screen.query_one(".dialog").outer_size.height <= size[1]
