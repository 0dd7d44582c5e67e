"""`mcphost doctor`: what it finds, the command it names, and that it works where hardly anything else does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from pathlib import Path

import pytest

from mcphost.auth.storage.keychain import NoKeychain
from mcphost.cli.doctor.configuration import saved_calls
from mcphost.cli.doctor.environment import TerminalFacts, check_environment
from mcphost.cli.doctor.findings import Finding, Severity, as_text, problem
from mcphost.composition import diagnosis
from mcphost.config import load
from tests.cli.conftest import Mcphost, echo, entry, mcphost_command
from tests.screen_text import says
from tests.terminal import mcphost as on_terminal
from tests.transports.http.http_connection import Echo, Talk, Web

XTERM = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}


def topics(out: str) -> dict[str, dict[str, str]]:
    """The findings of ``--json`` by topic; of several with one topic the worst."""
    order = ["ok", "warning", "problem"]
    found = sorted(map(json.loads, out.splitlines()), key=lambda each: order.index(each["status"]))
    return {each["topic"]: each for each in found}


def test_without_a_problem_it_exits_with_0(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(entry("echo"))
    said = mcphost("doctor", "--config", "own.toml")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert all(line.startswith(("✓ ok", "▲ warning", " ")) for line in lines)
    assert "ready after" in said.out
    assert "tools" in said.out


def test_a_mistake_in_the_configuration_comes_with_an_edit_command(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "ed")
    (tmp_path / "own.toml").write_text(f"{entry('echo')}[servers.bad]\ncomand = 'x'\n")
    said = mcphost("doctor", "--config", "own.toml", "--json")
    found = topics(said.out)
    assert said.code == 1
    assert found["configuration"]["status"] == "problem"
    assert found["configuration"]["fix"].startswith("ed +")
    assert found["server echo"]["status"] == "ok"
    assert "server bad" not in found
    assert topics(mcphost("doctor", "bad", "--config", "own.toml", "--json").out)["server bad"]["status"] == "problem"


def test_mistakes_in_saved_calls_are_found(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(entry("echo"))
    call = '[[call]]\nname = "{}"\nserver = "{}"\n{}\n'
    calls = (("a", "echo", 'tool = "t"'), ("b", "gone", 'tool = "t"'), ("c", "echo", 'tol = "t"'))
    path.with_name("calls.toml").write_text("".join(call.format(*each) for each in calls))
    found = list(saved_calls(load(path).config, {"EDITOR": "ed"}))
    assert [(each.severity.value, each.text.partition("calls.toml:")[2]) for each in found] == [
        ("problem", '12: call[2].tol: unknown key tol; did you mean "tool"?'),
        ("warning", " b is for gone, which is not configured"),
        ("ok", " 2 can be read"),
    ]
    assert found[0].fix == f"ed +12 {path.with_name('calls.toml')}"


@pytest.mark.parametrize(
    "content",
    [b"a = ", b"[polcy]\n", b"\xff\xfe", b"x = " + b"[" * 9000, None],
    ids=["toml", "key", "text", "deep", "none"],
)
def test_an_unreadable_configuration_does_not_stop_the_checks(
    mcphost: Mcphost, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "own.toml").write_bytes(content)
    said = mcphost("doctor", "--config", "own.toml", "--json")
    found = topics(said.out)
    assert (said.code, said.err) == (1, "")
    assert found["configuration"]["status"] == "problem"
    assert found["state folder"]["status"] == "ok"
    assert "cannot be used" in found["servers"]["text"]


def test_a_server_whose_identity_cannot_be_used_is_a_problem(mcphost: Mcphost, tmp_path: Path) -> None:
    oauth = 'oauth = { grant = "enterprise", identity = "corp", client_id = "x" }'
    (tmp_path / "own.toml").write_text(
        f'[identity.corp]\nissuer = "https://i"\n[servers.web]\nurl = "http://127.0.0.1:1/mcp"\n{oauth}\n'
    )
    said = mcphost("doctor", "--config", "own.toml", "--json")
    found = topics(said.out)
    assert (said.code, said.err) == (1, "")
    assert "identity.corp.client_id: is missing" in found["configuration"]["text"]
    assert found["server web"]["text"] == "there is no [identity.corp] in the configuration that can be used"


def test_an_identity_is_named_with_the_command_that_signs_in(mcphost: Mcphost, tmp_path: Path) -> None:
    with Web(Echo()) as web:
        oauth = 'oauth = { grant = "enterprise", identity = "corp", client_id = "x" }'
        identity = '[identity.corp]\nissuer = "https://idp.example"\nclient_id = "y"'
        (tmp_path / "own.toml").write_text(f'[servers.a]\nurl = "{web.url}"\n{oauth}\n{identity}\n')
        found = topics(mcphost("doctor", "--json", "--config", "own.toml").out)["identity corp"]
    assert (found["status"], found["text"]) == ("warning", "no one is signed in at idp.example")
    assert found["fix"] == "mcphost login --identity corp"


def test_an_untrusted_project_file_runs_nothing(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "mcphost.toml").write_text(f'[servers.evil]\ncommand = "touch"\nargs = ["{tmp_path}/ran"]\n')
    said = mcphost("doctor", "--json")
    found = topics(said.out)
    assert found["project"]["status"] == "warning"
    assert found["project"]["fix"] == "mcphost config trust"
    assert "server evil" not in found
    assert not (tmp_path / "ran").exists()


def test_a_missing_program_is_named_with_its_server(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[servers.gone]\ncommand = "no-such-program"\n')
    said = mcphost("doctor", "--config", "own.toml", "--json")
    found = topics(said.out)
    assert said.code == 1
    assert found["program"]["text"] == "no-such-program is missing, which gone needs; not started"
    assert "own.toml" in found["program"]["fix"]
    assert "server gone" not in found


def test_a_program_that_an_entry_s_own_path_leads_to_is_there(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "own-program").symlink_to("/bin/true")
    (tmp_path / "own.toml").write_text(f'[servers.a]\ncommand = "own-program"\nenv = {{ PATH = "{tmp_path}" }}\n')
    assert "program" not in topics(mcphost("doctor", "--no-start", "--config", "own.toml", "--json").out)


def test_a_failed_server_has_no_edit_command(mcphost: Mcphost, tmp_path: Path) -> None:
    text = f'[servers.dies]\ncommand = "{sys.executable}"\nargs = ["-c", "raise SystemExit(3)"]\n'
    (tmp_path / "own.toml").write_text(f'{text}[servers.far]\nurl = "http://127.0.0.1:1/mcp"\n')
    found = topics(mcphost("doctor", "--config", "own.toml", "--json").out)
    for name in ("dies", "far"):
        assert found[f"server {name}"]["status"] == "problem"
        assert found[f"server {name}"]["fix"] is None


def homeless(path: str) -> str:
    """`os.path.expanduser` for a user without an entry among the accounts."""
    return path


def test_without_a_home_the_advice_leads_to_a_doctor_without_problems(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as no_home:
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            no_home.delenv(name)
        no_home.setattr(os.path, "expanduser", homeless)
        said = mcphost("doctor", "--json")
        found = topics(said.out)
    for topic in ("home", "configuration", "state folder"):
        assert (topic, found[topic]["status"], found[topic]["fix"]) == (
            topic, "problem", "export HOME=/a/folder/of/yours"
        )  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    assert mcphost("doctor", "--json").code == 0


def test_the_fix_for_a_shared_state_folder_works(
    mcphost: Mcphost, isolated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "theirs").write_text("")
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(shared))
    found = topics(mcphost("doctor", "--json").out)["state folder"]
    assert (found["status"], found["fix"]) == ("problem", "export MCPHOST_STATE_DIR=~/.mcphost")
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(isolated / ".mcphost"))
    assert topics(mcphost("doctor", "--json").out)["state folder"]["status"] == "ok"


def test_a_manual_server_is_tried_only_by_name(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(entry("shy", more='start = "manual"'))
    all_of_them = topics(mcphost("doctor", "--config", "own.toml", "--json").out)
    named = topics(mcphost("doctor", "shy", "--config", "own.toml", "--json").out)
    assert "mcphost doctor shy" in all_of_them["server shy"]["text"]
    assert "ready after" in named["server shy"]["text"]


@pytest.mark.parametrize("words", [(), ("--no-start",)])
def test_an_unknown_server_is_a_usage_error(mcphost: Mcphost, words: tuple[str, ...]) -> None:
    said = mcphost("doctor", "nobody", *words)
    assert (said.code, said.out) == (2, "")
    assert "no server is called 'nobody'" in said.err


def test_a_server_may_be_given_by_its_command_line(mcphost: Mcphost) -> None:
    assert "ready after" in mcphost("doctor", echo()).out


def test_no_server_is_started_where_that_is_not_wanted(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(entry("echo"))
    assert "server echo" not in mcphost("doctor", "--no-start", "--config", "own.toml").out


# What mcphost runs in


TERMINAL = TerminalFacts(80, 24)


def found_in(env: Mapping[str, str], terminal: TerminalFacts | None = TERMINAL) -> dict[str, Finding]:
    order = list(Severity)
    found = sorted(check_environment(env, terminal), key=lambda each: order.index(each.severity))
    return {each.topic: each for each in found}


@pytest.mark.parametrize(
    ("env", "topic", "severity", "text", "fix"),
    [
        ({}, "terminal", Severity.OK, "xterm-256color", ""),
        ({"TERM": "dumb"}, "terminal", Severity.PROBLEM, "TERM=dumb", "export TERM=xterm-256color"),
        ({"TERM": ""}, "terminal", Severity.PROBLEM, "not set", "export TERM=xterm-256color"),
        ({"NO_COLOR": "1"}, "terminal", Severity.OK, "no colours", ""),
        ({"COLORTERM": "truecolor"}, "terminal", Severity.OK, "true colour", ""),
        ({"TMUX": "/tmp/x"}, "tmux", Severity.WARNING, "true colour is off", "export COLORTERM=truecolor"),
        ({"TMUX": "/tmp/x", "COLORTERM": "truecolor"}, "tmux", Severity.OK, "pictures", ""),
        ({"LANG": "C"}, "locale", Severity.WARNING, "LANG=C", "export LC_ALL=C.UTF-8"),
        ({"LANG": ""}, "locale", Severity.WARNING, "neither", "export LC_ALL=C.UTF-8"),
        ({"LC_ALL": "de_DE.utf8", "LANG": "C"}, "locale", Severity.OK, "LC_ALL=de_DE.utf8", ""),
        ({"HTTPS_PROXY": "http://me:s3cret@h:1"}, "proxy", Severity.OK, "HTTPS_PROXY=http://•••@h:1", ""),
        ({"https_proxy": "h:1", "NO_PROXY": "a"}, "proxy", Severity.OK, "https_proxy=h:1, not for a", ""),
        ({"ALL_PROXY": "socks5://h:1"}, "proxy", Severity.PROBLEM, "a socks5 proxy", "unset ALL_PROXY"),
    ],
)
def test_the_environment_is_judged(
    env: dict[str, str], topic: str, severity: Severity, text: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    found = found_in({**XTERM, **env})[topic]
    assert (found.severity, found.fix) == (severity, fix)
    assert text in found.text
    assert "s3cret" not in found.text


def test_without_a_terminal_nothing_is_wrong_with_it() -> None:
    assert found_in({"TERM": "dumb"}, None)["terminal"].severity is Severity.OK


@pytest.mark.slow
def test_the_size_and_the_encoding_are_those_of_the_terminal() -> None:
    env = {"COLUMNS": "200", "LINES": "10", "PYTHONIOENCODING": "iso-8859-1"}
    with on_terminal("doctor", "--no-start", columns=101, rows=31, env=env) as terminal:
        terminal.wait_exit()
        assert "xterm-256color, 101x31" in terminal.text
        assert says(terminal.text, "unset PYTHONIOENCODING")


@pytest.mark.parametrize(
    ("env", "encoding", "fix"),
    [
        ({"PYTHONIOENCODING": "iso-8859-1"}, "iso-8859-1", "unset PYTHONIOENCODING"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0"}, "ANSI_X3.4-1968", "unset PYTHONUTF8"),
        ({"LC_ALL": "de_DE.ISO-8859-1"}, "ISO-8859-1", "export LC_ALL=C.UTF-8"),
    ],
)
def test_an_encoding_that_cannot_write_marks_is_named(env: dict[str, str], encoding: str, fix: str) -> None:
    found = found_in({**XTERM, **env}, TerminalFacts(80, 24, encoding))["locale"]
    assert (found.severity, found.fix) == (Severity.WARNING, fix)
    assert encoding in found.text


def test_what_a_server_says_never_stands_at_the_start_of_a_line() -> None:
    said = problem("server a", "\x1b[2J" + "✓ ok       all is well " * 20 + "\n✗ problem", "fix\nme")
    lines = as_text([said], 60).splitlines()
    assert [line for line in lines[1:] if not line.startswith(" " * 20)] == []
    assert "\x1b" not in "".join(lines)


# What mcphost has


def _damaged(state: Path) -> Path:
    (state / "approvals.toml.damaged-1").write_text("x")
    return state / "approvals.toml.damaged-1"


def _torn(state: Path) -> Path:
    (state / ".roots.toml.abcd_123").write_text("x")
    return state / ".roots.toml.abcd_123"


def _bundle(state: Path) -> Path:
    (state / "bundles" / "one-1.0-0123").mkdir(parents=True)
    return state / "bundles" / "one-1.0-0123"


@pytest.mark.parametrize("leave", [_damaged, _torn, _bundle])
def test_what_is_left_over_is_named_with_the_command_that_removes_it(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leave: Callable[[Path], Path]
) -> None:
    state = tmp_path / "a state"
    state.mkdir(mode=0o700)
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(state))
    left = leave(state)
    found = topics(mcphost("doctor", "--json").out)["leftover"]
    assert found["status"] == "warning"
    assert str(left) in found["text"]
    subprocess.run(["sh", "-c", found["fix"]], check=True)
    assert not left.exists()
    assert "leftover" not in topics(mcphost("doctor", "--json").out)


def test_a_bundle_that_a_server_uses_is_no_leftover(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "state"))
    used = tmp_path / "state" / "bundles" / "one-1.0-0123"
    used.mkdir(parents=True)
    (tmp_path / "own.toml").write_text(f'[servers.one]\ncommand = "node"\nargs = ["{used}/main.js"]\nenabled = false\n')
    assert "leftover" not in topics(mcphost("doctor", "--no-start", "--config", "own.toml", "--json").out)


def test_without_a_state_folder_no_server_starts(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MCPHOST_STATE_DIR", str(tmp_path / "file"))
    (tmp_path / "own.toml").write_text(entry("echo"))
    said = mcphost("doctor", "--config", "own.toml", "--json")
    found = topics(said.out)
    assert said.code == 1
    assert found["state folder"]["status"] == "problem"
    assert "no state folder" in found["servers"]["text"]


class Keychain:
    """Stands in for the backend of a keychain; ``answer`` is what it does when it is asked."""

    name = "Shelf of a test"

    def __init__(self, answer: Callable[[], object]) -> None:
        self._answer = answer

    def get_password(self, service: str, name: str) -> None:
        self._answer()


def _fails() -> None:
    raise OSError("it is broken")


@pytest.mark.parametrize(
    ("answer", "entry_text", "status", "text"),
    [
        (lambda: None, "", "ok", "Shelf answers after"),
        (_fails, "", "warning", "it is broken"),
        (None, "", "warning", "does not answer within 0.2 s"),
        (_fails, 'env = { KEY = "${keyring:one}" }', "problem", "your configuration refers to it"),
    ],
)
def test_a_silent_keychain_is_a_problem_only_if_needed(
    mcphost: Mcphost,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[], object] | None,
    entry_text: str,
    status: str,
    text: str,
) -> None:
    monkeypatch.setenv("MCPHOST_KEYCHAIN", "")
    ended = threading.Event()
    backend = Keychain(answer or ended.wait)  # None: it does not answer before the test has ended
    monkeypatch.setattr("mcphost.auth.storage.keychain.best_backend", lambda: backend)
    monkeypatch.setattr("mcphost.cli.doctor.diagnosis.KEYCHAIN_SECONDS", 0.2 if "within" in text else 20.0)
    (tmp_path / "own.toml").write_text(f'[servers.a]\ncommand = "true"\n{entry_text}\n')
    try:
        found = topics(mcphost("doctor", "--no-start", "--config", "own.toml", "--json").out)["keychain"]
    finally:
        ended.set()
    assert (found["status"], text in found["text"]) == (status, True)


def test_a_keychain_without_a_session_is_given_one(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Keychain:
        raise NoKeychain("this system has no keychain that mcphost knows")

    monkeypatch.setenv("MCPHOST_KEYCHAIN", "")
    monkeypatch.setattr("mcphost.auth.storage.keychain.best_backend", none)
    for program in ("gnome-keyring-daemon", "dbus-run-session"):
        (tmp_path / program).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "own.toml").write_text('[servers.a]\ncommand = "true"\nenv = { KEY = "${keyring:one}" }\n')
    found = topics(mcphost("doctor", "--no-start", "--config", "own.toml", "--json").out)["keychain"]
    assert (found["status"], found["fix"]) == ("problem", "dbus-run-session -- sh")
    (tmp_path / "own.toml").write_text('[servers.a]\ncommand = "true"\n')
    found = topics(mcphost("doctor", "--no-start", "--config", "own.toml", "--json").out)["keychain"]
    assert (found["status"], found["fix"]) == ("warning", "dbus-run-session -- sh")


def test_a_keychain_that_is_switched_off_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert diagnosis.ask_keychain({"MCPHOST_KEYCHAIN": "off"}, 1) is None


# The clock


def _late(talk: Talk) -> None:
    head, date = talk.head, formatdate(time.time() + 3600, usegmt=True)
    talk.head = lambda status, **headers: head(status, date=date, **headers)  # type: ignore[method-assign]
    Echo("sse", stateless=True, listens=False)(talk)


def test_the_clock_is_compared_with_the_dates_of_answers(mcphost: Mcphost) -> None:
    with Web(_late) as web:
        late = topics(mcphost("doctor", web.url, "--json").out)["clock"]
    assert late["status"] == "warning"
    assert "behind" in late["text"]
    assert "clock" not in topics(mcphost("doctor", echo(), "--json").out)


# Where hardly anything works


@pytest.mark.slow
@pytest.mark.parametrize(
    "env",
    [
        {"HOME": "/nonexistent"},
        {"HOME": ""},
        {"MCPHOST_KEYCHAIN": "", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PATH": ""},
        {"TERM": "dumb"},
    ],
    ids=lambda env: next(iter(env)),
)
def test_it_works_where_hardly_anything_else_does(env: dict[str, str], tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    done = subprocess.run(
        mcphost_command("doctor"),
        env={**kept, "MCPHOST_KEYCHAIN": "off", "XDG_STATE_HOME": str(tmp_path), **env},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    said = done.stdout.decode()
    assert (done.returncode in (0, 1), done.stderr) == (True, b"")
    assert "state folder" in said
    assert "servers" in said


@pytest.mark.slow
def test_a_folder_that_was_deleted_meanwhile_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd '{gone}' && rmdir '{gone}' && exec \"$@\""
    done = subprocess.run(
        ["sh", "-c", script, "sh", *mcphost_command("doctor")], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert "cannot be looked for" in done.stdout.decode()


@pytest.mark.parametrize(
    ("option", "severity", "text", "fix"),
    [
        ("external", Severity.OK, "to the terminal's clipboard", ""),
        ("on", Severity.OK, "to the terminal's clipboard", ""),
        ("off", Severity.WARNING, "stays in tmux", "tmux set -s set-clipboard external"),
        ("", Severity.OK, "pictures", ""),
    ],
)
def test_the_line_about_tmux_says_where_copies_go(
    option: str, severity: Severity, text: str, fix: str, tmp_path: Path
) -> None:
    program(tmp_path / "tmux", f'test "$*" = "show-options -sv set-clipboard" && echo "{option}"')
    found = found_in({**XTERM, "TMUX": "/tmp/x", "COLORTERM": "truecolor", "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert (found["tmux"].severity, found["tmux"].fix) == (severity, fix)
    assert text in found["tmux"].text


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
