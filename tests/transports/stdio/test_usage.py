"""Memory and CPU time of a server's programs, from this system and from one with misleading names."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcphost.transports.base import ProcessUsageReport
from mcphost.transports.stdio import usage
from mcphost.transports.stdio.usage import usage_of

GREEDY = """
import os, sys
kept = bytearray(48 << 20)
if os.fork() == 0:
    os.setpgid(0, 0)  # a group of its own, in the same session
while sum(os.times()[:2]) < 0.2:
    pass
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def greedy() -> Iterator[int]:
    """Two processes, each with 48 MiB and 0.2 seconds of a processor behind it."""
    command = [sys.executable, "-c", GREEDY]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    assert [child.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
    yield child.pid
    child.communicate()
    end = time.monotonic() + 5
    while usage_of(child.pid) is not None:  # the one it started leaves a moment later
        assert time.monotonic() < end


@pytest.mark.hostile("S10")
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_usage_covers_a_program_and_all_that_it_started(greedy: int) -> None:
    """A child that left the group is still in the session."""
    found = usage_of(greedy)
    assert found is not None
    assert found.processes == 2
    assert 96 << 20 < found.memory < 300 << 20
    assert 0.4 <= found.cpu < 20


@pytest.mark.hostile("S10")
@pytest.mark.skipif(shutil.which(usage.PS[0]) is None, reason="there is no ps")
def test_without_proc_it_is_read_from_ps(greedy: int, tmp_path: Path) -> None:
    found = usage_of(greedy, tmp_path / "proc")
    assert found is not None
    assert (found.processes, found.memory > 48 << 20, found.cpu < 20) == (1, True, True)


def test_each_column_is_named_by_an_argument_of_its_own() -> None:
    """POSIX: what follows a ``=`` is a heading, to the end of the argument; only procps reads on at a comma."""
    assert [name for name in usage.PS if "=" in name] == ["pgid=", "rss=", "time="]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:01", 1), ("1:02.50", 62.5), ("01:00:00", 3600), ("2-00:00:10", 172_810), ("3:00", 180)],
)
def test_the_time_of_ps_is_read_in_each_of_its_spellings(text: str, seconds: float) -> None:
    assert usage._seconds(text) == seconds


def test_odd_process_names_and_vanished_files_are_harmless(tmp_path: Path) -> None:
    page, ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")

    def process(pid: str, name: str, state: str, group: int, pages: int) -> None:
        times = f"{ticks} {ticks} 0 {2 * ticks}"
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(
            f"{pid} ({name}) {state} 1 {group} {group} 0 0 0 0 0 0 0 {times} 20 0 1 0 9 9 {pages} 0"
        )

    (tmp_path / "self").mkdir()
    (tmp_path / "31").mkdir()  # it ended between two readings
    (tmp_path / "meminfo").write_text("")
    process("7", ") Z 1 99 99 (", "S", 7, 3)
    process("8", "zombie", "Z", 7, 0)
    process("9", "other", "R", 9, 1000)
    assert usage_of(7, tmp_path) == ProcessUsageReport(1, 3 * page, 8.0)
    assert usage_of(31, tmp_path) is None


def test_nothing_is_said_of_a_group_that_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert usage_of(child.pid) is None
