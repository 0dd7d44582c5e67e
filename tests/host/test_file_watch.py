"""Files that are watched on the disk: every way in which an editor or another program changes one is reported once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcphost.host import file_watch
from mcphost.host.file_watch import FileWatch
from tests.conftest import Until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@asynccontextmanager
async def watching(*files: Path) -> AsyncIterator[list[float]]:
    """The times at which changes of these files were reported."""
    told: list[float] = []
    watch = FileWatch(files, lambda: told.append(time.monotonic()))
    assert watch.start()
    try:
        yield told
    finally:
        watch.close()


def _clock_of(folder: Path) -> int:
    """The present time of the file system, whose clock is coarser than Python's."""
    probe = folder / "probe"
    probe.touch()
    return probe.stat().st_ctime_ns


def write(path: Path) -> None:
    path.write_text("changed")


def replace(path: Path) -> None:
    path.with_name("new").write_text("changed")
    path.with_name("new").replace(path)


def remove(path: Path) -> None:
    path.unlink()


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more")


def rename_away(path: Path) -> None:
    path.rename(path.with_name("backup"))


def link_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("other")


@pytest.mark.parametrize("change", [write, replace, append])
async def test_a_change_between_the_reading_and_the_watch_is_told(
    tmp_path: Path, until: Until, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("before")
    os.utime(path, (0, 0))
    read_at, told = path.stat().st_ctime_ns + 1, list[bool]()
    await until(lambda: _clock_of(tmp_path) > read_at)
    change(path)
    watch = FileWatch([path, tmp_path / "none.toml"], lambda: told.append(True), since=read_at)
    assert watch.start()
    try:
        await until(lambda: told == [True])
    finally:
        watch.close()


async def test_a_file_that_is_as_it_was_read_is_no_news(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("before")
    watch = FileWatch([path], pytest.fail, since=path.stat().st_ctime_ns + 1)
    assert watch.start()
    assert watch._settling is None
    watch.close()


async def test_elsewhere_nothing_is_watched(tmp_path: Path) -> None:
    watch = FileWatch([tmp_path / "config.toml"], pytest.fail, platform="darwin")
    assert not watch.start()
    watch.close()


@pytest.mark.parametrize("change", [write, replace, remove, append, rename_away, link_elsewhere])
async def test_every_way_to_change_a_file_is_told(tmp_path: Path, until: Until, change: Callable[[Path], None]) -> None:
    path = tmp_path / "config ü.toml"
    path.write_text("before")
    async with watching(path) as told:
        change(path)
        await until(lambda: told)


async def test_a_file_that_is_created_later_is_told_and_so_is_its_folder(tmp_path: Path, until: Until) -> None:
    path = tmp_path / "a" / "b" / "config.toml"
    async with watching(path) as told:
        path.parent.mkdir(parents=True)
        await until(lambda: told)
        count = len(told)
        path.write_text("new")
        await until(lambda: len(told) > count)


async def test_the_target_of_a_link_is_watched(tmp_path: Path, until: Until) -> None:
    (tmp_path / "dotfiles").mkdir()
    target, path = tmp_path / "dotfiles" / "own.toml", tmp_path / "config.toml"
    target.write_text("before")
    path.symlink_to(target)
    async with watching(path) as told:
        replace(target)
        await until(lambda: told)


async def test_a_folder_that_is_replaced_is_watched_on(tmp_path: Path, until: Until) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    async with watching(folder / "config.toml") as told:
        folder.rmdir()
        await until(lambda: told)
        count = len(told)
        folder.mkdir()
        await until(lambda: len(told) > count)
        count = len(told)
        (folder / "config.toml").write_text("new")
        await until(lambda: len(told) > count)


async def test_other_files_in_the_folder_are_not_told(tmp_path: Path, until: Until) -> None:
    async with watching(tmp_path / "config.toml") as told:
        (tmp_path / "other.toml").write_text("x")
        (tmp_path / ".config.toml.swp").write_text("x")
        (tmp_path / "config.toml").write_text("x")
        await until(lambda: told)
        assert len(told) == 1


async def test_several_steps_of_one_change_are_told_once(
    tmp_path: Path, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watch, "SETTLED", 1.0)
    async with watching(tmp_path / "config.toml") as told:
        for text in "abc":
            (tmp_path / "config.toml").write_text(text)
        await until(lambda: told)
        assert len(told) == 1


async def test_a_closed_watch_tells_nothing_and_leaves_no_descriptor(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    async with watching(tmp_path / "config.toml") as told:
        (tmp_path / "config.toml").write_text("x")
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 0
    await asyncio.sleep(0)
    assert told == []


IDLE = """
import asyncio, sys
from pathlib import Path
from mcphost.host.file_watch import FileWatch

def switches():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary"))

async def main():
    watch = FileWatch([Path(sys.argv[1])], lambda: None)
    assert watch.start()
    before = switches()
    await asyncio.sleep(2)
    print(switches() - before, len(list(Path("/proc/self/task").iterdir())))
    watch.close()

asyncio.run(main())
"""


@pytest.mark.slow
def test_an_idle_watch_does_nothing_and_needs_no_thread(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IDLE, str(tmp_path / "config.toml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    switches, threads = map(int, done.stdout.split())
    assert switches <= 5  # one for the sleep itself
    assert threads == 1
