from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest

from mcphost.protocol.lifecycle.revisions import REVISIONS
from mcphost.transports.stdio.transport import Command
from tests.cli.conftest import IN_BACKGROUND
from tests.conftest import Until
from tests.loop_watchdog import LoopWatchdog
from tests.marks import (
    SERVER_REQUIREMENTS,
    WITHOUT_A_TEST,
    ServerRow,
    cells,
    named_in_source,
    read_cases,
    read_rows,
    read_server_rows,
    unmet,
)
from tests.secret_search import secrets_in
from tests.sentences import long_sentences
from tests.slow_tests import starts_something
from tests.tui.stage import on_stage


def test_a_test_sees_no_home_secret_or_network_of_the_machine(isolated: Path) -> None:
    assert Path.home() == isolated
    assert Path.cwd() == isolated.parent
    assert not [name for name in os.environ if "TOKEN" in name or "API_KEY" in name]
    assert all(value.startswith(str(isolated)) for name, value in os.environ.items() if name.startswith("XDG_"))
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("example.org", 443)
    assert socket.getaddrinfo("127.0.0.1", 80)


SURROUNDINGS = {"HTTP_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "NO_COLOR": "1"}
SURROUNDINGS |= {"COLUMNS": "60", "LINES": "9", "LANG": "C", "LC_ALL": "C", "TERM": "dumb", "PYTHONWARNINGS": "ignore"}
DEFAULTS = (
    "import signal; print(*(signal.getsignal(getattr(signal, f'SIG{name}')) for name in ('QUIT', 'HUP', 'TERM')))"
)


def test_a_test_runs_in_the_environment_of_a_plain_login() -> None:
    assert not {"HTTP_PROXY", "https_proxy", "NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "PYTHONWARNINGS"} & set(
        os.environ
    )
    assert (os.environ["LANG"], os.environ["TERM"]) == ("C.UTF-8", "xterm-256color")
    child = subprocess.run([sys.executable, "-c", DEFAULTS], capture_output=True, text=True, check=True)
    assert child.stdout.split() == ["0", "0", "0"]
    interrupted = subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 2)"], capture_output=True)
    assert interrupted.returncode == -signal.SIGINT


def test_they_are_the_same_whatever_the_tests_were_started_from() -> None:
    case = f"{__file__}::{test_a_test_runs_in_the_environment_of_a_plain_login.__name__}"
    command = [*IN_BACKGROUND, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", case]
    env = {**os.environ, **SURROUNDINGS, "XDG_CONFIG_HOME": "/nowhere", "MCPHOST_CONFIG": "/nowhere"}
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


async def test_waiting_ends_with_the_condition_or_fails_in_time(until: Until) -> None:
    done: list[int] = []
    asyncio.get_running_loop().call_later(0.02, done.append, 1)
    await until(lambda: done)
    with pytest.raises(pytest.fail.Exception, match=r"after 0\.02 s"):
        await until(lambda: False, seconds=0.02)


async def test_the_watchdog_sees_who_computes_and_does_not_let_others_run(loop_watchdog: LoopWatchdog) -> None:
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    assert loop_watchdog.longest >= 0.1
    await asyncio.sleep(0)
    assert loop_watchdog.longest >= 0.1
    loop_watchdog.restart()
    assert loop_watchdog.longest < 0.05


@pytest.mark.parametrize(
    "secret", ["refresh-0123456789abcdef01234567", "canary-env-01234567", f"eyJ{'x' * 20}.eyJ{'x' * 20}"]
)
def test_a_file_that_holds_a_secret_is_found(secret: str, tmp_path: Path) -> None:
    file = tmp_path / "state" / "log.jsonl"
    file.parent.mkdir()
    file.write_text(f'{{"text": "Bearer {secret}"}}')
    assert secrets_in(tmp_path) == [f"{secret} in {file}"]
    file.unlink()  # it would be found in the end


def test_the_table_holds_every_row_once() -> None:
    rows = read_rows()
    assert len(rows) == 558
    assert {row.source for row in rows.values()} == {"seed", "seed-named", "page", "beyond"}
    left = unmet(rows, ["PING-01"], ["ping"])
    assert [row.id for row in left["ping"]] == ["PING-02", "PING-03", "PING-04"]
    beyond = {row.id for row in rows.values() if row.source == "beyond" and row.asked_for}
    assert {"META-04", "CANC-09", "META-06"} <= beyond
    assert "AUTH-09" not in beyond


def test_the_table_of_a_server_has_a_header_and_unique_ids() -> None:
    header, _, _ = SERVER_REQUIREMENTS.read_text("utf-8").partition("\n")
    assert header.split("\t") == [field.name for field in fields(ServerRow)]
    ids = [each[0] for each in cells(SERVER_REQUIREMENTS)]
    assert len(ids) == len({*ids}) == 740
    assert {*ids}.isdisjoint(read_rows())


REVISION = "|".join(each.version for each in REVISIONS)
SERVER_CELLS = {
    "id": r"S[A-Z]+-\d\d+",
    "section": r"[\w/-]+: \S.*",
    "level": "(MUST|SHOULD)( NOT)?|MAY",
    "revisions": rf"({REVISION}) only|({REVISION})\.\.({REVISION})",
    "capability": r"-|authorization|(client:)?[a-zA-Z.]+|io\.modelcontextprotocol/[a-z]+",
    "transport": "any|stdio|http|sse",
    "kind": "visible|call|hidden",
    "seen": r"[A-Z`\d-].*\.",
}


def test_each_row_of_a_server_has_allowed_values_and_a_short_sentence() -> None:
    rows = read_server_rows().values()
    assert [
        row.id for row in rows for name, cell in SERVER_CELLS.items() if not re.fullmatch(cell, getattr(row, name))
    ] == []
    assert [row.id for row in rows if row.revisions[:10] >= row.revisions[12:] > ""] == []
    assert [row.id for row in rows if [*long_sentences(row.seen)]] == []


@pytest.mark.slow
def test_every_row_has_a_test_or_a_reason() -> None:
    left = [row.id for rows in unmet(read_rows(), named_in_source("requirement"), []).values() for row in rows]
    assert {*left} - WITHOUT_A_TEST.keys() == set()


@pytest.mark.slow
def test_every_hostile_case_has_a_test_or_a_reason() -> None:
    cases = read_cases()
    assert len(cases) == 133
    assert all(sentence.endswith(".") for sentence in cases.values())
    assert cases.keys() - named_in_source("hostile") == {"F08", "L08"} == WITHOUT_A_TEST.keys()


@pytest.mark.slow
def test_a_test_that_names_no_hostile_case_stops_the_collection(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.hostile('Z99')\ndef test_it(): pass")
    result = run(monkeypatch, pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no such row in hostile_cases.tsv:", "*::test_it: 'Z99'"])


@pytest.mark.slow
def test_a_test_that_names_no_row_stops_the_collection(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.requirement('NO-99')\ndef test_it(): pass")
    result = run(monkeypatch, pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no such row in requirements.tsv:", "*::test_it: 'NO-99'"])


@pytest.mark.slow
def test_the_rows_of_a_server_are_known_and_printed_alike(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.server_requirement('SPING-01')\ndef test_it(): 1 / 0")
    result = run(monkeypatch, pytester, "--server-requirements", "utilities/ping")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["basic/utilities/ping: 3", "  SPING-03 *"])
    result.stdout.no_fnmatch_line("*SPING-01*")


@pytest.mark.slow
def test_the_rows_without_a_test_are_printed_and_nothing_runs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.requirement('PING-01')\ndef test_it(): 1 / 0")
    result = run(monkeypatch, pytester, "--requirements", "ping", "pagination")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["ping: 3", "  PING-02 *", "  PING-03 *", "  PING-04 *", "pagination: 7"])
    result.stdout.no_fnmatch_line("*PING-01*")


@pytest.mark.slow
def test_the_inner_loop_does_not_import_a_slow_module(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    raises = "raise AssertionError('imported')\n"
    pytester.makepyfile(
        test_slow=f"import pytest\npytestmark = pytest.mark.slow\n{raises}", test_fast="def test_it(): pass"
    )
    pytester.mkdir("whole").joinpath("test_folder.py").write_text(raises)
    run(monkeypatch, pytester, "-p", "tests.slow_tests", "-m", "not slow").assert_outcomes(passed=1)
    run(monkeypatch, pytester, "-p", "tests.slow_tests", "-m", "slow").assert_outcomes(errors=2)


def run(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    pytester.makeini(
        "[pytest]\nmarkers =\n requirement(*ids): rows\n server_requirement(*ids): rows\n hostile(*ids): cases\n slow"
    )
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return pytester.runpytest_subprocess("-p", "tests.marks", "-p", "no:cacheprovider", *args)


async def runs_the_app() -> None:
    async with on_stage():
        pass


def runs_a_server() -> Command:
    return EchoServer().command()


class EchoServer:
    def command(self) -> Command:
        return Command(sys.executable)


def test_a_test_is_slow_if_it_starts_something() -> None:
    assert starts_something(runs_the_app)
    assert starts_something(runs_a_server)
    assert not starts_something(test_the_table_holds_every_row_once)
