from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import ConnectionLost, SpawnFailed
from mcphost.protocol.wire.jsonrpc import Notification
from mcphost.transports.base import TransportLimits
from mcphost.transports.stdio.descendants import MARK_VARIABLE, ProcessId, marked, new_mark
from mcphost.transports.stdio.process import live_groups
from mcphost.transports.stdio.transport import Command, StdioTransport, child_environment, exit_text
from tests.conftest import PythonServer, Until
from tests.executables import write_executable
from tests.loop_watchdog import LoopWatchdog
from tests.transports.conftest import Start
from tests.transports.processes import AT_ONCE, FAST, Inbox, members

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only where /proc tells who started what")

# Stopping a server


@pytest.mark.hostile("S01", "S02")
@pytest.mark.requirement("TRANS-STDIO-09", "LIFE-15")
@pytest.mark.parametrize(
    ("options", "grace", "seen", "code"),
    [
        ((), 5, "EOF", 0),
        (("--exit-delay", 0.2), 5, "EOF", 0),
        (("--ignore-eof",), 0.1, "EOF SIGTERM", -signal.SIGTERM),
        (("--ignore-eof", "--ignore-sigterm"), 0.1, "EOF SIGTERM", -signal.SIGKILL),
    ],
    ids=["at once", "slow", "ignores its end", "ignores all"],
)
async def test_stopping_closes_stdin_then_terminates_then_kills(
    start: Start, tmp_path: Path, options: tuple[object, ...], grace: float, seen: str, code: int
) -> None:
    record = tmp_path / "record"
    line = await start("echo.py", "--record", record, *options, limits=TransportLimits(exit_grace=grace))
    await line.call("echo", text="started")
    began = time.monotonic()
    await line.transport.aclose()
    assert time.monotonic() - began < 10
    assert record.read_text().split("\n")[1:-1] == seen.split()
    assert line.transport.report().exit_code == code
    assert line.inbox.ends == []


@pytest.mark.hostile("S01")
@pytest.mark.slow
async def test_stubborn_servers_are_stopped_side_by_side(start: Start, loop_watchdog: LoopWatchdog) -> None:
    stubborn = ("echo.py", "--ignore-eof", "--ignore-sigterm")
    lines = [await start(*stubborn, limits=TransportLimits(exit_grace=0.5)) for _ in range(20)]
    for line in lines:
        await line.call("echo", text="started")
    os.kill(lines[0].pid, signal.SIGSTOP)
    began = time.monotonic()
    await asyncio.gather(*(line.transport.aclose() for line in lines))
    assert time.monotonic() - began < 0.5 * 20
    assert {line.transport.report().exit_code for line in lines} == {-signal.SIGKILL}
    assert loop_watchdog.longest < 0.25


@pytest.mark.hostile("S03")
@pytest.mark.requirement("TRANS-STDIO-15", "LIFE-23")
@pytest.mark.parametrize("ignore_sigterm", [False, True])
@pytest.mark.parametrize("leader_dies", [False, True])
async def test_what_a_server_started_ends_with_it(
    start: Start, until: Until, ignore_sigterm: bool, leader_dies: bool
) -> None:
    line = await start("echo.py")
    child: int = (await line.call("children", ignore_sigterm=ignore_sigterm))["structuredContent"]["pid"]
    assert child in members(line.pid)
    if leader_dies:
        began = time.monotonic()
        with pytest.raises(ConnectionLost, match="exited with code 7"):  # although the child holds its stdout
            await line.call("exit", code=7)
        assert time.monotonic() - began < AT_ONCE
        assert members(line.pid) == [child]
    await line.transport.aclose()
    await until(lambda: not members(line.pid))


@pytest.mark.hostile("S04")
@pytest.mark.requirement("TRANS-STDIO-15", "LIFE-23")
@pytest.mark.parametrize(
    ("how", "leader_dies"),
    [
        ({"own_session": True}, False),
        ({"own_session": True}, True),
        ({"own_session": True, "ignore_sigterm": True}, True),
        ({"own_session": True, "bare": True}, False),  # it inherits no mark, but its parent tells whose it is
        ({"daemon": True}, False),
        ({"daemon": True}, True),
    ],
    ids=["session", "session of a dead server", "stubborn session", "no environment", "daemon", "daemon of a dead one"],
)
@LINUX
async def test_what_a_server_started_in_another_session_ends_with_it(
    start: Start, until: Until, how: dict[str, bool], leader_dies: bool
) -> None:
    line = await start("echo.py")
    child: int = (await line.call("children", **how))["structuredContent"]["pid"]
    await until(lambda: members(child) == [child])
    if leader_dies:
        with pytest.raises(ConnectionLost, match="exited with code 7"):
            await line.call("exit", code=7)
    assert members(child) == [child]
    await line.transport.aclose()
    assert members(child) == []


@LINUX
@pytest.mark.requirement("LIFE-23")
def test_a_process_is_recognized_while_it_executes_another_program(tmp_path: Path) -> None:
    again, mark = tmp_path / "again", new_mark()
    again.write_text('exec sh "$0"\n')
    with subprocess.Popen(["sh", again], env={**os.environ, MARK_VARIABLE: mark}) as restless:
        found = [list(marked(mark)) for _ in range(300)]
        restless.kill()
    assert found == [[restless.pid]] * 300


@LINUX
async def test_no_process_is_ended_that_no_server_of_ours_started(start: Start, until: Until) -> None:
    """Neither one that another server started, nor one of our own, nor one that has the number of one by now."""
    bystander = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    one, other = await start("echo.py"), await start("echo.py")
    child: int = (await other.call("children", daemon=True))["structuredContent"]["pid"]
    await until(lambda: members(child) == [child])
    live_groups[one.pid]._apart.add(ProcessId(bystander.pid, "another start"))
    await one.transport.aclose()
    assert members(child) == [child]
    assert bystander.returncode is None
    bystander.kill()
    await bystander.wait()
    await other.transport.aclose()
    assert members(child) == []


async def test_closing_is_final_and_nothing_is_sent_afterwards(start: Start) -> None:
    line = await start("echo.py", "--exit-delay", 0.1)
    slow = asyncio.create_task(line.call("sleep", seconds=5))
    await line.call("echo", text="started")
    first = asyncio.create_task(line.transport.aclose())
    await asyncio.sleep(0)
    with pytest.raises(ConnectionLost, match="mcphost closed the connection"):
        await slow
    first.cancel()
    await line.transport.aclose()
    assert line.transport.report().exit_code == 0
    for late in (line.call("echo", text="late"), line.transport.send(Notification("late"))):
        with pytest.raises(ConnectionLost, match="mcphost closed the connection"):
            await late
    assert line.inbox.ends == []


@pytest.mark.requirement("LIFE-23")
@pytest.mark.parametrize("turns", range(5))
async def test_a_start_that_is_given_up_leaves_no_process(
    python_server: PythonServer, until: Until, turns: int
) -> None:
    before = _children()
    transport = StdioTransport(python_server("echo.py"), FAST, os.environ)
    opening = asyncio.create_task(transport.open(Inbox()))
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    await transport.aclose()
    await until(lambda: _children() <= before)


def _children() -> set[str]:
    """The processes of this one, which other tests may have started."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.hostile("S05")
@pytest.mark.requirement("LIFE-23")
def test_a_host_that_forgets_to_close_leaves_no_server(python_server: PythonServer, tmp_path: Path) -> None:
    server = python_server("echo.py", "--ignore-eof", "--ignore-sigterm")
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from mcphost.protocol.wire.jsonrpc import Request
from mcphost.transports.base import TransportLimits
from mcphost.transports.stdio.transport import Command, StdioTransport
from tests.transports.processes import Inbox
async def main():
    transport = StdioTransport(Command({server.program!r}, {list(server.args)!r}), TransportLimits(), {{}})
    await transport.open(Inbox())
    call = Request(1, "tools/call", {{"name": "children", "arguments": {{"daemon": True}}}})
    answer = await transport.request(call, {{}})
    print(transport.report().pid, answer.result["structuredContent"]["pid"], flush=True)
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    groups = [int(word) for word in ran.stdout.split()]
    assert len(groups) == 2, ran.stderr
    end = time.monotonic() + 20
    while any(map(members, groups)) and time.monotonic() < end:
        os.sched_yield()
    assert not any(map(members, groups))


# Starting a server


@pytest.mark.hostile("S08")
@pytest.mark.requirement("TRANS-STDIO-14", "TRANS-STDIO-12")
async def test_a_server_gets_the_harmless_variables_and_the_configured_ones(start: Start) -> None:
    host = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "AWS_SECRET_ACCESS_KEY": "a",
        "OPENAI_API_KEY": "b",
        "SSH_AUTH_SOCK": "c",
        "PYTHONPATH": "d",
        "LD_PRELOAD": "/e",
    }
    line = await start("echo.py", environ=host, env={"TOKEN": "s3cret", "HOME": "/elsewhere"})
    found = (await line.call("environment", names=["TOKEN", "HOME"]))["structuredContent"]
    assert set(found["keys"]) - {"LC_CTYPE", MARK_VARIABLE} == {"PATH", "HOME", "LC_ALL", "TOKEN"}
    assert found["values"] == {"TOKEN": "s3cret", "HOME": "/elsewhere"}
    assert "s3cret" not in repr(line.transport.report())
    given = child_environment(Command("x"), {"USER": "u", "LC_TIME": "t", "XDG_SESSION_ID": "1"}, "m")
    given.pop(MARK_VARIABLE, None)
    assert given == {"USER": "u", "LC_TIME": "t"}


@pytest.mark.hostile("T13", "S08")
async def test_a_server_has_no_terminal_and_no_descriptor_but_its_pipes(start: Start) -> None:
    inherited = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    line = await start("hostile.py", "tty")
    os.close(inherited)
    found = (await line.call())["structuredContent"]
    assert found["tty"].startswith("refused")
    assert found["session"] == found["group"] == found["pid"] == line.pid
    assert (found["descriptors"], found["isatty"]) == ([0, 1, 2], [])


@pytest.mark.hostile("S09")
async def test_a_server_runs_in_its_folder_and_by_its_absolute_name(tmp_path: Path, until: Until) -> None:
    program = tmp_path / "bin dir" / "serve; touch harm"
    program.parent.mkdir()
    says = "import os, sys; print(os.getcwd(), sys.argv[1:], file=sys.stderr)"
    write_executable(program, [sys.executable, "-c", says])
    (tmp_path / "work").mkdir()
    command = Command(program.name, ("$HOME", "a b", "`id`"), cwd=tmp_path / "work")
    transport = StdioTransport(command, FAST, {"PATH": str(program.parent)})
    inbox = Inbox()
    await transport.open(inbox)
    await until(lambda: inbox.lines and inbox.ends)
    assert inbox.lines == [f"{tmp_path / 'work'} ['$HOME', 'a b', '`id`']"]
    assert transport.report().command == (str(program), "$HOME", "a b", "`id`")
    await transport.aclose()
    assert os.listdir(tmp_path / "work") == []


@pytest.mark.hostile("S09")
@pytest.mark.requirement("TRANS-STDIO-16")
@pytest.mark.parametrize(
    ("program", "more", "says"),
    [
        ("no-such-program-here", {}, "no-such-program-here was not found in PATH ("),
        ("./missing", {}, "./missing does not exist or is not executable"),
        ("./plain.txt", {}, "does not exist or is not executable"),
        ("./no-interpreter", {}, "could not be started: its first line names /no/such/thing, which is not there"),
        ("./windows", {}, "its first line ends as on Windows (CRLF); save it with the line ends of this system"),
        ("./bare", {}, "it has no first line such as #!/bin/sh that names what runs it; add one, or set command"),
        ("/bin/sh /x/srv.sh", {}, "/bin/sh does: what follows the program belongs in args"),
        ("sh -c x", {}, "sh does: what follows the program belongs in args"),
        ("$HOME/srv.sh", {}, "write ${HOME} for the variable HOME"),
        ("%USERPROFILE%/srv.exe", {}, "write ${USERPROFILE} for the variable USERPROFILE"),
        ("$env:HOME/srv.ps1", {}, "write ${HOME} for the variable HOME"),
        ("./100%/srv", {}, "./100%/srv does not exist or is not executable"),
        ("planted", {}, "planted was not found in PATH"),
        ("sh", {"cwd": Path("nowhere")}, "the folder nowhere does not exist; correct cwd"),
        ("sh", {"args": ("a\0b",)}, "could not be started: an argument or a variable holds a NUL character"),
        ("sh", {"env": {"A=B": "c"}}, "could not be started: illegal environment variable name"),
    ],
)
async def test_a_server_that_cannot_start_says_why(
    tmp_path: Path, program: str, more: dict[str, Any], says: str
) -> None:
    """(a program planted in the working directory is not found through an empty or relative PATH entry)."""
    (tmp_path / "plain.txt").write_text("")
    scripts = {"no-interpreter": "#!/no/such/thing", "planted": "#!/bin/sh", "windows": "#!/bin/sh\r", "bare": "ls"}
    for name, first in scripts.items():
        (tmp_path / name).write_bytes(f"{first}\n".encode())
        (tmp_path / name).chmod(0o755)
    transport = StdioTransport(Command(program, **more), FAST, {"PATH": ":.:/usr/bin:/bin:"})
    with pytest.raises(SpawnFailed) as caught:
        await transport.open(Inbox())
    assert says in str(caught.value)
    await transport.aclose()
    with pytest.raises(ConnectionLost):
        await transport.send(Notification("x"))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("~/no-such-server.py", "~ is not expanded in args: write ${HOME}/no-such-server.py"),
        ("$HOME/no-such-server.py", "$HOME is not expanded in args: write ${HOME}"),
        ("%APPDATA%/no-such-server.py", "%APPDATA% is not expanded in args: write ${APPDATA}"),
    ],
)
async def test_an_unexpanded_path_is_explained(until: Until, path: str, says: str) -> None:
    command = Command(sys.executable, ("-S", "-E", path))
    transport = StdioTransport(command, FAST, {"PATH": "/usr/bin:/bin"})
    inbox = Inbox()
    await transport.open(inbox)
    await until(lambda: inbox.ends)
    assert f"exited with code 2; {says}" in str(inbox.ends[0])
    await transport.aclose()


def test_an_exit_is_told_in_words() -> None:
    assert [exit_text(code) for code in (0, 127, -9, -99)] == [
        "exited with code 0",
        "exited with code 127",
        "was ended by SIGKILL",
        "was ended by signal 99",
    ]
