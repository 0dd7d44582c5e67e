from __future__ import annotations

import asyncio
import os
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from mcphost.client.server_requests import InputRequest
from mcphost.config import Config
from mcphost.errors import NotDone, UnknownName
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer
from mcphost.host.events import RootsChanged
from mcphost.host.server_requests import roots
from mcphost.host.server_requests.folders import FolderCheck, check_folder
from mcphost.host.server_requests.request_kinds import DIALOG_KINDS
from mcphost.host.server_requests.roots import RootSource
from tests.conftest import Until
from tests.host.conftest import FileStore, script, settings
from tests.host.server_requests.pending import LATER, NEVER, NO, ROOTS, AskedHost, Person, asked_host

pytestmark = pytest.mark.slow

CHANGED = "notifications/roots/list_changed"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree with folders of every spelling, in which mcphost was started; no check of it is reused."""
    monkeypatch.setattr(roots, "FRESH", 0.0)
    project = (tmp_path / "work").resolve()
    for name in (".git", "plain", "with space#and?marks%41", "größe", "\udcff"):
        (project / name).mkdir(parents=True)
    (project / "file").write_text("no folder")
    (project / "link").symlink_to(project / "plain")
    monkeypatch.chdir(project / "plain")
    return project


def granted(*paths: Path, lifetime: Lifetime = Lifetime.ONCE) -> Answer:
    return Answer(True, lifetime, content=paths)


async def listed(host: AskedHost) -> list[str]:
    """The folders that the server gets, as paths."""
    (reply,) = await host.replies(ROOTS)
    return [unquote(urlsplit(root["uri"]).path, errors="surrogateescape") for root in reply["result"]["roots"]]


async def notices(host: AskedHost) -> int:
    count: int = (await host.use("heard"))["notices"].count(CHANGED)
    return count


@pytest.mark.hostile("F09")
@pytest.mark.requirement("ROOT-02", "ROOT-09", "ROOT-06")
async def test_the_first_time_it_is_asked_and_a_no_holds(tree: Path) -> None:
    """Only chosen folders are shared, and a server that asks again causes no question."""
    async with asked_host(LATER, NO) as host:
        assert await listed(host) == []  # left without an answer: it is asked again
        for _ in range(3):
            assert await listed(host) == []
        assert len(host.person.asked) == 2
        assert host.person.asked[0].suggestions == (tree, tree / "plain")
        assert host.roots.sent("a") is not None


@pytest.mark.requirement("ROOT-02", "ROOT-03", "ROOT-09")
async def test_what_was_chosen_is_told_as_uris_that_lead_back(tree: Path) -> None:
    chosen = [tree / "plain", tree / "with space#and?marks%41", tree / "größe", tree / "\udcff"]
    async with asked_host(granted(*chosen)) as host:
        (reply,) = await host.replies(ROOTS)
        told = reply["result"]["roots"]
        assert [root["uri"].rpartition("/")[2] for root in told] == [
            "plain",
            "with%20space%23and%3Fmarks%2541",
            "gr%C3%B6%C3%9Fe",
            "%FF",
        ]
        assert [root["name"] for root in told] == ["plain", "with space#and?marks%41", "größe", "?"]
        assert await listed(host) == [str(path) for path in chosen]
        assert len(host.person.asked) == 1
        seen = host.roots.sent("a")
        assert seen is not None
        assert [root.name for root in seen.roots] == [root["name"] for root in told]


@pytest.mark.hostile("F10")
@pytest.mark.requirement("ROOT-07", "ROOT-11")
@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        (lambda tree: tree / "nowhere", "does not exist"),
        (lambda tree: tree / "file", "is not a folder"),
        (lambda tree: Path("plain"), "is not an absolute path"),
        (lambda tree: tree / "a\0b", "cannot be found"),
    ],
)
async def test_what_cannot_be_shared_is_asked_about_again(
    tree: Path, chosen: Callable[[Path], Path], problem: str
) -> None:
    async with asked_host(granted(tree / "plain", chosen(tree)), NO) as host:
        assert await listed(host) == []
        assert problem in host.person.asked[1].problem
        with pytest.raises(NotDone, match=problem):
            await host.roots.share("a", chosen(tree))


@pytest.mark.requirement("ROOT-07", "ROOT-11")
@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
async def test_a_folder_one_cannot_read_is_not_shared(tree: Path) -> None:
    (tree / "plain").chmod(0)
    async with asked_host() as host:
        with pytest.raises(NotDone, match="cannot be read"):
            await host.roots.share("a", tree / "plain")
    (tree / "plain").chmod(0o700)


@pytest.mark.hostile("F10")
@pytest.mark.requirement("ROOT-07")
async def test_links_are_resolved_and_wide_folders_warned_of(tree: Path, isolated: Path) -> None:
    """One agrees to a place on the disk, whatever its name leads to later."""
    async with asked_host() as host:
        link = await host.roots.share("a", tree / "link")
        assert (link.path, "over a link" in link.warning) == (tree / "plain", True)
        dots = await host.roots.share("a", tree / "plain" / ".." / "größe")
        assert (dots.path, dots.problem) == (tree / "größe", "")
        for wide in (Path("/"), isolated, isolated.parent):
            assert "far more than a project" in (await host.roots.share("a", wide)).warning
            await host.roots.unshare("a", wide.resolve())
        (isolated / ".ssh").mkdir()
        assert "keys and passwords" in (await host.roots.share("a", isolated / ".ssh")).warning
        await host.roots.unshare("a", (isolated / ".ssh").resolve())
        (isolated / ".config" / "gh").mkdir(parents=True)
        assert "keys and passwords" in (await host.roots.share("a", isolated / ".config" / "gh")).warning
        await host.roots.unshare("a", (isolated / ".config" / "gh").resolve())
        assert await listed(host) == [str(tree / "plain"), str(tree / "größe")]
        (tree / "größe").rmdir()
        (tree / "größe").symlink_to("/etc")
        assert await listed(host) == [str(tree / "plain")]
        assert "now leads to /etc" in host.roots.offered("a")[1].problem


@pytest.mark.requirement("ROOT-01", "ROOT-04", "ROOT-06", "ROOT-08", "ROOT-11")
async def test_each_server_whose_own_list_changed_is_told(tree: Path, until: Until) -> None:
    server = script("asks.py", capabilities={"roots": True})
    config = settings(policy={"default": "allow"}, a=server, b=server, c={**server, "capabilities": {"roots": False}})
    host = AskedHost(config, Person(), answers=DIALOG_KINDS)
    async with host:
        await host.servers.ready()

        async def counts() -> list[int]:
            calls = [host.tool_calls.call(name, "heard", {}) for name in "abc"]
            texts = [(await call.result()).raw["content"][0]["text"] for call in calls]
            return [text.count(CHANGED) for text in texts]

        await host.roots.share("a", tree / "plain")
        assert await counts() == [1, 0, 0]
        await host.roots.share(None, tree / "größe")
        assert await counts() == [2, 1, 0]
        assert [folder.path.name for folder in host.roots.offered("a")] == ["plain", "größe"]
        assert [folder.path.name for folder in host.roots.offered("b")] == ["größe"]
        assert [(folder.path.name, folder.source) for folder in host.roots.offered(None)] == [("größe", RootSource.RUN)]
        await host.roots.check()
        assert await counts() == [2, 1, 0]
        (tree / "größe").rmdir()
        await host.roots.check()
        assert await counts() == [3, 2, 0]
        assert "does not exist" in host.roots.offered("b")[0].problem
        assert any("größe is not shared with it now: it does not exist" in line for line in host.said("b"))
        await host.roots.unshare("a", tree / "plain")
        assert await counts() == [4, 2, 0]
        assert RootsChanged(None) in host.events
        for server_name, path, error in (("a", tree, NotDone), ("zzz", tree, UnknownName)):
            with pytest.raises(error):
                await host.roots.unshare(server_name, path)


@pytest.mark.requirement("ROOT-04", "ROOT-08", "ROOT-11")
async def test_a_folder_that_comes_and_goes_is_announced_at_a_call(tree: Path, until: Until) -> None:
    async with asked_host(entry={"roots": [str(tree / "plain")]}) as host:
        await host.roots.check()
        assert await notices(host) == 0  # the server got nothing yet that could have changed
        assert await listed(host) == [str(tree / "plain")]
        for changes, change in enumerate(((tree / "plain").rmdir, (tree / "plain").mkdir), 1):
            change()
            host.events.clear()
            await host.use("heard")
            await until(lambda: RootsChanged("a") in host.events)
            assert await notices(host) == changes
            await host.roots.check()
            assert RootsChanged(None) not in host.events


async def test_a_slow_check_does_not_replace_a_later_result(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on, folder = asyncio.Event(), threading.Event(), tree / "plain"
    loop = asyncio.get_running_loop()

    def slow(path: Path) -> FolderCheck:
        found = check_folder(path)
        if not entered.is_set() and not found.problem:
            loop.call_soon_threadsafe(entered.set)
            assert go_on.wait(20)
        return found

    async with asked_host(entry={"roots": [str(folder)]}) as host:
        monkeypatch.setattr("mcphost.host.server_requests.roots.check_folder", slow)
        first = asyncio.create_task(host.roots.check())
        await entered.wait()
        folder.rmdir()
        second = asyncio.create_task(host.roots.check())
        await asyncio.wait([second], timeout=0.2)  # it is over only where it does not wait for the first
        go_on.set()
        await asyncio.gather(first, second)
        assert [offered.problem for offered in host.roots.offered("a")] == ["does not exist"]


@pytest.mark.requirement("ROOT-08", "ROOT-11")
async def test_a_missing_folder_is_left_out_of_the_next_list(tree: Path) -> None:
    """Not even a call, which looks as well, began in between."""
    async with asked_host(granted(tree / "plain", tree / "größe")) as host:
        assert await listed(host) == [str(tree / "plain"), str(tree / "größe")]
        (tree / "größe").rmdir()
        handler = host._connection_context.server_requests.handler("a")
        told = await handler.answer(InputRequest("roots/list", {}))
        assert [root["name"] for root in told["roots"]] == ["plain"]
        assert [folder.problem for folder in host.roots.offered("a")] == ["", "does not exist"]
        assert any("größe is not shared with it now: it does not exist" in line for line in host.said("a"))


@pytest.mark.requirement("ROOT-06", "ROOT-08", "ROOT-09")
async def test_the_configuration_is_a_standing_grant(tree: Path) -> None:
    entry = {"roots": [{"path": str(tree / "plain" / ".." / "link"), "name": "mine"}, str(tree / "gone")]}
    async with asked_host(entry=entry, answers=frozenset()) as host:
        assert (await host.use("heard"))["capabilities"] == {"roots": {"listChanged": True}}
        (reply,) = await host.replies(ROOTS)
        assert reply["result"] == {"roots": [{"uri": (tree / "plain").as_uri(), "name": "mine"}]}
        mine, gone = host.roots.offered("a")
        assert (mine.source, gone.problem) == (RootSource.CONFIG, "does not exist")
        (tree / "link").unlink()
        (tree / "link").symlink_to("/etc")
        assert await listed(host) == []
        (tree / "link").unlink()
        (tree / "link").symlink_to(tree / "plain")
        assert await listed(host) == [str(tree / "plain")]
        await host.roots.unshare("a", tree / "plain")
        assert await listed(host) == []
        await host.roots.share("a", tree / "plain")
        assert await listed(host) == [str(tree / "plain")]
        again = host.config.servers["a"].model_copy(update={"roots": ()})
        before = host.servers["a"].session
        await host.apply(Config.model_validate({**dict(host.config), "servers": {"a": again}}, strict=False))
        assert await listed(host) == [str(tree / "plain")]  # what was shared besides
        assert host.servers["a"].session is before
        assert host.person.asked == []


@pytest.mark.hostile("P10")
async def test_what_is_remembered_is_kept_for_the_program_it_was_said_to(tree: Path, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    async with asked_host(granted(tree / "plain", lifetime=Lifetime.ALWAYS), store=store) as host:
        await listed(host)
        await host.roots.share(None, tree / "größe", remember=True)
        await host.roots.share("a", tree, remember=False)
        with pytest.raises(NotDone, match="until mcphost exits only"):
            await host.roots.share("a", tree / "\udcff", remember=True)
    kept = tomllib.loads((tmp_path / "roots.toml").read_text())["folders"]
    assert [(entry.get("server"), Path(entry["path"]).name) for entry in kept] == [("a", "plain"), (None, "größe")]
    async with asked_host(store=store) as host:
        assert await listed(host) == [str(tree / "plain"), str(tree / "größe")]
        assert [folder.source for folder in host.roots.offered("a")] == [RootSource.REMEMBERED] * 2
    async with asked_host(store=store, args=("--revision", "2025-06-18")) as host:  # run by something else
        assert await listed(host) == [str(tree / "größe")]
        await host.roots.unshare(None, tree / "größe")
    assert len(tomllib.loads((tmp_path / "roots.toml").read_text())["folders"]) == 1


@pytest.mark.parametrize(
    "entry",
    [{}, {"path": 7}, {"path": "relative"}, {"path": "/x", "server": 3}, {"path": "/x", "server": "a"}, "x"],
)
async def test_an_entry_of_the_state_that_makes_no_sense_shares_nothing(entry: Any, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.update("roots", lambda data: {"folders": [entry] if isinstance(entry, dict) else "x"})
    async with asked_host(NO, store=store) as host:
        assert await listed(host) == []


@pytest.mark.hostile("F09")
@pytest.mark.requirement("ROOT-05")
async def test_ten_thousand_questions_cost_one_look(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "FRESH", 60.0)
    looks: list[Path] = []

    def counted(path: Path) -> FolderCheck:
        looks.append(path)
        return check_folder(path)

    monkeypatch.setattr("mcphost.host.server_requests.roots.check_folder", counted)
    async with asked_host(entry={"roots": [str(tree)], "limits": {"pending_server_requests": 20_000}}) as host:
        replies = await host.replies(*[ROOTS] * 2000)
        assert {reply["result"]["roots"][0]["uri"] for reply in replies} == {tree.as_uri()}
    assert len(looks) <= 2


async def test_one_question_serves_all_requests_that_come_meanwhile(tree: Path, until: Until) -> None:
    async with asked_host(NEVER, granted(tree)) as host:
        host.ask(ROOTS)
        await until(lambda: host.person.asked)
        await host.use("take_back")
        await until(lambda: host.person.left)
        replies = await host.replies(ROOTS, ROOTS, ROOTS)
        assert len({str(reply) for reply in replies}) == 1
        assert len(host.person.asked) == 2
        host.pending_requests.mute("a")
        assert await listed(host) == [str(tree)]  # what was granted stays; nothing new is asked


async def test_what_is_shared_meanwhile_answers_the_question_which_folders(tree: Path, until: Until) -> None:
    async with asked_host(NEVER, NEVER) as host:
        call = host.ask(ROOTS)
        await until(lambda: host.person.asked)
        await host.roots.share(None, tree / "plain")
        await call.result()
        assert host.person.left == 1
        assert await listed(host) == [str(tree / "plain")]
        await host.roots.unshare(None, tree / "plain")
        host.ask(ROOTS)
        await until(lambda: len(host.person.asked) == 2)  # the user did not decline


@pytest.mark.requirement("ROOT-09")
async def test_a_refusal_is_remembered_for_its_program(tree: Path, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    async with asked_host(NO, store=store) as host:
        await listed(host)
    async with asked_host(store=store) as host:
        assert await listed(host) == []
        assert host.roots.declined("a")
        assert host.person.asked == []
    async with asked_host(NO, store=store, args=("--revision", "2025-06-18")) as host:  # run by something else
        assert await listed(host) == []
        assert len(host.person.asked) == 1
    async with asked_host(store=store) as host:
        await host.roots.share("a", tree / "plain")
        assert await listed(host) == [str(tree / "plain")]
    async with asked_host(NO, store=store) as host:
        assert await listed(host) == []
        assert len(host.person.asked) == 1
        assert "that you share no folder with it" in await host.forget("a")
        assert not host.roots.declined("a")
