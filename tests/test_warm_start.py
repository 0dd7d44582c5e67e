"""A fork is a process like a fresh one."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.terminal import TAKE_CONTROL
from tests.warm_start import CAN_FORK, MCPHOST, Fork, may_fork, relayed

pytestmark = pytest.mark.slow
if not CAN_FORK:
    pytest.skip("only Linux has such forks", allow_module_level=True)
FACTS = [sys.executable, "-m", "tests.process_facts"]
TESTS = Path(__file__).parents[1]


def ended(kind: type[subprocess.Popen[bytes]], words: Sequence[str], **more: Any) -> tuple[int, Any, bytes]:
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": TESTS}
    with kind(words, **pipes, **more) as process:
        out, err = process.communicate(timeout=60)
    return process.returncode, json.loads(out or b"null"), err


@pytest.mark.parametrize("session", [False, True])
def test_a_fork_has_what_a_fresh_process_has(session: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    mask = os.umask(0o27)
    try:
        env = {**os.environ, "NEW": "näh"}
        fresh = ended(subprocess.Popen, FACTS, env=env, start_new_session=session)
        fork = ended(Fork, FACTS, env=env, start_new_session=session)
    finally:
        os.umask(mask)
    assert fork == fresh
    assert (fork[0], fork[2], fork[1]["mask"]) == (7, b"a remark\n", 0o27)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_fork_ends_by_a_signal_as_a_fresh_process_does(number: signal.Signals) -> None:
    words = [*FACTS, str(int(number))]
    assert ended(Fork, words)[0] == ended(subprocess.Popen, words)[0] == -number


def test_a_fork_owns_its_terminal_as_a_fresh_process_does() -> None:
    def on_terminal(begin: Callable[..., subprocess.Popen[bytes]]) -> Any:
        master, slave = pty.openpty()
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        with begin(os.ttyname(slave), **streams, cwd=TESTS, env=os.environ, start_new_session=True) as process:
            os.close(slave)
            line = os.read(master, 65536)
            while not line.endswith(b"a remark\r\n"):
                line += os.read(master, 65536)
        os.close(master)
        facts = json.loads(line.splitlines()[0])
        facts["environment"] |= {"PWD": "", "OLDPWD": ""}  # the shell sets them
        return process.returncode, facts["owns_terminal"], facts

    fork = on_terminal(lambda path, **more: Fork(FACTS, terminal=path, **more))
    assert fork == on_terminal(lambda path, **more: subprocess.Popen([*TAKE_CONTROL, path, *FACTS], **more))
    assert fork[:2] == (7, True)


def relayed_facts(*words: str) -> list[str]:
    return relayed(sys.executable, ("json",), *FACTS[1:], *words)


def test_a_relayed_program_has_what_a_fresh_one_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW", "näh")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    relay, fresh = ended(subprocess.Popen, relayed_facts()), ended(subprocess.Popen, FACTS)
    assert (relay[0], relay[2]) == (fresh[0], fresh[2]) == (7, b"a remark\n")
    same = ("environment", "files", "folder", "mask", "streams", "threads", "time")
    assert {name: relay[1][name] for name in same} == {name: fresh[1][name] for name in same}
    assert "/nowhere" in relay[1]["arguments"][2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_relay_ends_by_the_signal_of_its_program(number: signal.Signals) -> None:
    assert ended(subprocess.Popen, relayed_facts(str(int(number))))[0] == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_a_relay_ends_its_program(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text("import signal\nprint(1, flush=True)\nsignal.pause()\n")
    words = relayed(sys.executable, ("json",), str(script))
    with subprocess.Popen(words, stdout=subprocess.PIPE) as relay:
        assert relay.stdout is not None
        assert relay.stdout.readline() == b"1\n"
        relay.send_signal(number)
        assert relay.stdout.read() == b""  # closed by the program, too
    assert relay.returncode == -number


def test_streams_without_buffers_need_a_fresh_process() -> None:
    assert not any(may_fork(MCPHOST, {**os.environ, "PYTHONUNBUFFERED": "1"}) for _ in range(9))


def test_what_is_not_mcphost_is_not_forked() -> None:
    assert not any(may_fork(FACTS, os.environ) for _ in range(9))
