"""State files: private, whole, and never silently lost."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli.completion import known_names
from mcphost.composition import detected_transports
from mcphost.config import TrustedFolders, read_toml, state, state_folder, update_toml
from mcphost.config.state import write_toml
from mcphost.errors import ConfigError
from mcphost.host import crash_files, layout
from mcphost.host.chat import preferences
from mcphost.host.connections import eras
from mcphost.host.consent import approval_store
from mcphost.host.server_requests import roots
from mcphost.host.tool_calls import started_tasks
from mcphost.imports import bundles, remembered


def _no_report(sentence: str) -> None:
    pytest.fail(f"unexpected report: {sentence}")


@pytest.mark.hostile("C07")
def test_written_state_is_private_and_reads_back(tmp_path: Path) -> None:
    path = state_folder({"MCPHOST_STATE_DIR": str(tmp_path / "new" / "state")}) / "approvals.toml"
    assert read_toml(path, _no_report) == {}
    for data in ({"a": 1}, {"tools": {"x\n]": ["é", 1.5, True]}}):
        write_toml(path, data)
        assert read_toml(path, _no_report) == data
    assert [oct(one.stat().st_mode & 0o777) for one in (path, path.parent)] == ["0o600", "0o700"]
    assert os.listdir(path.parent) == [path.name]


def test_the_state_folder_is_the_platforms_and_made_private(isolated: Path) -> None:
    folder = isolated / "state" / "mcphost"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert state_folder({}) == folder
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.hostile("C07")
@pytest.mark.parametrize(
    ("names", "mode", "after"),
    [
        ((), 0o755, 0o700),
        (("approvals.toml", "audit.jsonl", ".eras.toml.lock", "running", "chats"), 0o755, 0o700),
        (("approvals.toml.damaged-1", ".layout.toml.a1b2c3d4", "completion.json"), 0o777, 0o700),
        (("approvals.toml", "theirs"), 0o755, 0o755),
        (("approvals.toml", "theirs"), 0o700, 0o700),
        (("theirs",), 0o700, 0o700),
    ],
)
def test_a_folder_is_closed_to_others_only_where_it_is_mcphost_s(
    tmp_path: Path, names: tuple[str, ...], mode: int, after: int
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("")
    folder.chmod(mode)
    assert state_folder({"MCPHOST_STATE_DIR": str(folder)}) == folder
    assert folder.stat().st_mode & 0o7777 == after


@pytest.mark.hostile("C07")
@pytest.mark.parametrize(
    ("names", "mode"),
    [
        (("theirs",), 0o755),
        ((), 0o1777),
        (("theirs",), 0o1777),
        (("config.toml",), 0o750),
        (("approvals.toml", "theirs"), 0o1777),
        (("approvals.toml", "theirs"), 0o770),
    ],
)
def test_a_folder_of_others_is_refused_and_stays_as_it_is(tmp_path: Path, names: tuple[str, ...], mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("")
    folder.chmod(mode)
    with pytest.raises(
        ConfigError, match=r"(other files, such as|shared by all users).* set MCPHOST_STATE_DIR to a new folder"
    ):
        state_folder({"MCPHOST_STATE_DIR": str(folder)})
    assert folder.stat().st_mode & 0o7777 == mode
    assert sorted(os.listdir(folder)) == sorted(names)


def test_every_state_file_is_known_as_mcphost_s_own() -> None:
    tables = (
        approval_store.APPROVALS,
        eras.FILE,
        started_tasks.FILE,
        detected_transports.FILE,
        roots.STATE,
        state.TRUSTED,
    )
    names = [f"{name}.toml" for name in (*tables, state.TRUSTED, preferences.CHAT, layout.FILE)]
    names += [remembered.FILE, known_names.REMEMBERED, crash_files.FOLDER, bundles.BUNDLES]
    names += ["remarks.toml", "audit.jsonl", "audit.jsonl.1", "chats", "running", "locks"]
    names += ["history.sqlite", "history.sqlite-wal", "history.sqlite-shm", "history.sqlite.damaged-1-wal"]
    assert [name for name in names if not state._OWN_NAME.fullmatch(name)] == []


@pytest.mark.hostile("C07")
def test_a_linked_state_folder_closes_no_other_folder(isolated: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    (theirs / "file").write_text("")
    (isolated / "state").mkdir()
    (isolated / "state" / "mcphost").symlink_to(theirs)
    with pytest.raises(ConfigError, match="it holds other files"):
        state_folder({})
    assert theirs.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("content", [b"a = ", b"\xff", b"x = " + b"[" * 5000])
def test_a_damaged_file_is_set_aside_and_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.toml"
    reports: list[str] = []
    for number in (1, 2):
        path.write_bytes(content)
        assert read_toml(path, reports.append) == {}
        assert (tmp_path / f"s.toml.damaged-{number}").read_bytes() == content
        assert f"s.toml.damaged-{number}" in reports[-1]
        assert not path.exists()


@pytest.mark.hostile("C07")
def test_a_planted_link_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "s.toml"
    target.write_text("a = 1")
    path.symlink_to(target)
    with pytest.raises(ConfigError, match="is a link, which mcphost does not follow to its own files; move it away"):
        read_toml(path, _no_report)
    write_toml(path, {"b": 2})
    assert not path.is_symlink()
    assert target.read_text() == "a = 1"


@pytest.mark.hostile("C06", "C07")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_something_else_in_place_of_a_state_file_is_reported(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(path := tmp_path / "s.toml")
    with pytest.raises(ConfigError, match="is not a regular file; move it away"):
        read_toml(path, _no_report)


@pytest.mark.hostile("C07")
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a file away")
def test_another_users_file_or_folder_is_refused(tmp_path: Path) -> None:
    folder, link, path = tmp_path / "theirs", tmp_path / "link", tmp_path / "s.toml"
    folder.mkdir()
    path.write_text("a = 1")
    link.symlink_to(tmp_path)
    for one in (folder, path, link):
        os.chown(one, 12345, 12345, follow_symlinks=False)
    with pytest.raises(ConfigError, match="belongs to another user"):
        read_toml(path, _no_report)
    for one in (folder, link):
        with pytest.raises(ConfigError, match="belongs to another user"):
            state_folder({"MCPHOST_STATE_DIR": str(one)})


def test_a_full_disk_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.toml"
    write_toml(path, {"a": 1})

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_toml(path, {"a": 2})
    assert read_toml(path, _no_report) == {"a": 1}
    assert sorted(os.listdir(tmp_path)) == ["home", "s.toml"]


@pytest.mark.hostile("C07")
def test_a_file_is_changed_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a planted lock followed."""
    path = tmp_path / "s.toml"

    def count(data: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"n": data.get("n", 0) + 1}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: update_toml(path, count, _no_report), range(40)))
    assert read_toml(path, _no_report) == {"n": 40}
    monkeypatch.setattr(state, "LOCK_SECONDS", 0.02)
    lock = tmp_path / ".s.toml.lock"
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="held by another mcphost"):
            update_toml(path, count, _no_report)
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be locked"):
        update_toml(path, count, _no_report)
    assert not (tmp_path / "elsewhere").exists()


async def test_a_named_lock_is_held_by_one_task_at_a_time(tmp_path: Path) -> None:
    folder, inside = tmp_path / "locks", list[str]()

    async def enter(name: str) -> None:
        async with state.named_lock(folder, "web", 5):
            inside.append(name)
            await asyncio.sleep(0)
            assert inside.pop() == name
            assert inside == []

    await asyncio.gather(*(enter(str(number)) for number in range(10)))
    async with state.named_lock(folder, "web", 5), state.named_lock(folder, "other/../\udc80", 0):
        with pytest.raises(ConfigError, match="held by another mcphost"):
            await enter_at_once(folder)
    await enter_at_once(folder)
    assert oct(folder.stat().st_mode & 0o777) == "0o700"


async def enter_at_once(folder: Path) -> None:
    async with state.named_lock(folder, "web", 0):
        return


HOLDER = """
import asyncio, sys
from pathlib import Path
from mcphost.config.state import named_lock

async def main():
    async with named_lock(Path(sys.argv[1]), "web", 5):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.hostile("C07")
async def test_a_named_lock_ends_with_its_process_and_follows_no_link(tmp_path: Path) -> None:
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(tmp_path / "locks"), stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    with pytest.raises(ConfigError, match="held by another mcphost"):
        await enter_at_once(tmp_path / "locks")
    holder.kill()
    await holder.communicate()
    await enter_at_once(tmp_path / "locks")
    [lock] = (tmp_path / "locks").iterdir()
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be locked"):
        await enter_at_once(tmp_path / "locks")
    assert not (tmp_path / "elsewhere").exists()


def test_a_state_folder_that_cannot_be_made_has_advice(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="set MCPHOST_STATE_DIR"):
        state_folder({"MCPHOST_STATE_DIR": str(tmp_path / "file" / "state")})


@pytest.mark.parametrize("place", ["file", "dangling", "loop"])
def test_a_file_in_place_of_the_state_folder_is_reported(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match="it is not a folder; set MCPHOST_STATE_DIR to a new folder"):
        state_folder({"MCPHOST_STATE_DIR": str(tmp_path / place)})


def test_trust_holds_for_one_file_with_one_content(tmp_path: Path) -> None:
    """Cases C01 and C02: a link to a trusted file is that file; other content asks again."""
    project, link = tmp_path / "mcphost.toml", tmp_path / "link.toml"
    project.touch()
    link.symlink_to(project)
    odd = tmp_path / os.fsdecode(b"odd\xff") / "mcphost.toml"
    trusted = TrustedFolders(state.StateStore(tmp_path, _no_report))
    assert trusted.decision(project, "d1") == "unknown"
    trusted.trust(project, "d1")
    trusted.trust(odd, "d1")
    again = TrustedFolders(state.StateStore(tmp_path, _no_report))
    assert [again.decision(path, "d1") for path in (project, link, odd)] == ["trusted"] * 3
    assert again.decision(link, "d2") == "changed"
    again.forget(link)
    assert [again.decision(path, "d1") for path in (project, odd)] == ["unknown", "trusted"]


def test_importing_the_package_loads_nothing_it_may_not_need() -> None:
    script = (
        "import sys, mcphost.config\n"
        "print(*sys.modules.keys() & {'platformdirs', 'tomli_w', 'tempfile', 'difflib', 'asyncio', 'keyring', 'httpx'})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
