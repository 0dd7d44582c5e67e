"""Servers of an mcphost that was killed are found again, and nothing else is taken for one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcphost.transports.stdio.descendants import MARK_VARIABLE, new_mark
from mcphost.transports.stdio.pid_files import PidFiles
from mcphost.transports.stdio.transport import StdioTransport
from tests.conftest import PythonServer
from tests.transports.processes import FAST, Inbox

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only where /proc tells when it started")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def leave_and_die(folder: Path, pid: int, mark: str = "") -> None:
    """Start a server as an mcphost that is then killed."""
    program = "import sys; from pathlib import Path; from mcphost.transports.stdio.pid_files import PidFiles; "
    program += f"PidFiles(Path({str(folder)!r})).write('git', {pid}, {mark!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)


@pytest.mark.hostile("S05")
def test_a_server_whose_host_was_killed_is_named_until_it_ends(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    traces = PidFiles(tmp_path / "running")
    assert traces.leftovers() == ()
    leave_and_die(traces.folder, sleeper.pid)
    for _ in range(2):
        (found,) = traces.leftovers()
        assert (found.server, found.pid) == ("git", sleeper.pid)
        assert f"to end it: kill -- -{sleeper.pid}" in str(found)
    sleeper.kill()
    sleeper.wait()
    assert traces.leftovers() == ()
    assert os.listdir(traces.folder) == []


def test_what_a_server_left_in_another_session_is_named_until_it_ends(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    traces, mark = PidFiles(tmp_path / "running"), new_mark()
    apart = [subprocess.Popen(["sleep", "60"], env={MARK_VARIABLE: mark, "PATH": os.defpath}) for _ in range(2)]
    first, second = sorted(process.pid for process in apart)
    leave_and_die(traces.folder, sleeper.pid, mark)
    said = [str(found) for found in traces.leftovers()]
    assert said == [
        f"the server git (process {sleeper.pid}) still runs, and so do programs it started ({first} {second}), though "
        f"the mcphost that started it was killed; to end them: kill -- -{sleeper.pid} {first} {second}"
    ]
    sleeper.kill()
    sleeper.wait()
    (found,) = traces.leftovers()
    assert str(found).startswith(
        f"the server git has ended, but programs it started ({first} {second}) still run, though"
    )
    assert str(found).endswith(f"to end them: kill {first} {second}")
    for process in apart:
        process.kill()
        process.wait()
    assert traces.leftovers() == ()
    assert os.listdir(traces.folder) == []


@pytest.mark.hostile("S05")
@pytest.mark.parametrize("content", ["", "{}", "[]", "7", '{"server": "x"}', None])
def test_no_other_process_is_taken_for_a_leftover(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], content: str | None
) -> None:
    """A server of a running mcphost is not named, nor a process that reuses its id."""
    folder = tmp_path / "running"
    traces = PidFiles(folder)
    traces.write("ours", sleeper.pid, "")
    assert traces.leftovers() == ()
    assert os.listdir(folder) == [str(sleeper.pid)]
    leave_and_die(folder, sleeper.pid)
    file = folder / str(sleeper.pid)
    file.write_text(file.read_text().replace('"born": "', '"born": "1') if content is None else content)
    (folder / "²").touch()
    assert traces.leftovers() == ()
    assert os.listdir(folder) == ["²"]


@pytest.mark.hostile("S05")
async def test_start_and_end_of_a_program_are_reported(
    python_server: PythonServer,
) -> None:
    told: list[int] = []
    transport = StdioTransport(python_server("echo.py"), FAST, os.environ)
    transport.started, transport.ended = lambda pid, mark: told.append(pid), lambda pid: told.append(-pid)
    await transport.open(Inbox())
    pid = transport.report().pid
    assert told == [pid]
    await transport.aclose()
    assert told == [pid, -(pid or 0)]


@pytest.mark.hostile("C07")
@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b"{", b"\xff", b"[]", b"7", b'{"server": "a"}',
     b'{"server": 1, "born": 2, "host": "x", "host_born": []}',
     b'{"server": "a", "born": "1", "host": 1, "host_born": "2", "mark": 7}'],
)  # fmt: skip
def test_a_damaged_file_is_removed_and_stops_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "4242").write_bytes(content)
    assert PidFiles(tmp_path).leftovers() == ()
    assert not (tmp_path / "4242").exists()


@pytest.mark.hostile("C07")
def test_a_pipe_a_link_and_a_folder_in_place_of_a_file_stop_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1")
    (tmp_path / "2").symlink_to("/dev/zero")
    (tmp_path / "3").mkdir()
    assert PidFiles(tmp_path).leftovers() == ()
    assert Path("/dev/zero").exists()


@pytest.mark.hostile("C07")
def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    theirs, link = tmp_path / "theirs", tmp_path / "running"
    theirs.mkdir()
    (theirs / "4242").write_text("theirs")
    link.symlink_to(theirs)
    assert PidFiles(link).leftovers() == ()
    PidFiles(link).write("git", os.getpid(), "")
    assert os.listdir(theirs) == ["4242"]
