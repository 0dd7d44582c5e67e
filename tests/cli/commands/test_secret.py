"""``mcphost secret`` and ``mcphost remove``: the keychain's items, and what goes with a server."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tomli_w

from mcphost.config.servers_file import read_servers
from tests.auth.keychains import FileShelf, Shelf, locked
from tests.auth.keyring_session import session
from tests.cli.conftest import ECHO, GITHUB, Add, Mcphost, items
from tests.terminal import Terminal
from tests.whole.keychain_file import KeychainFile

ROOT = Path(__file__).parents[3]
CANARY = "canary-hidden-12345678"


def pipe(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let stdin be a pipe with this content."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_secret_comes_from_stdin_and_is_never_printed(
    mcphost: Mcphost, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, f"{CANARY} é\n".encode())
    done = mcphost("secret", "set", "github.TOKEN")
    assert (done.code, done.out) == (
        0,
        "github.TOKEN is in the keychain; refer to it by ${keyring:github.TOKEN}\n",
    )
    assert items(shelf) == {"github.TOKEN": f"{CANARY} é"}
    assert "canary" not in done.err
    pipe(monkeypatch, b"other")
    assert "was replaced" in mcphost("secret", "set", "github.TOKEN").out
    assert items(shelf) == {"github.TOKEN": "other"}


def test_a_byte_order_mark_is_no_part_of_a_secret(
    mcphost: Mcphost, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, b"\xef\xbb\xbf-----BEGIN KEY-----\r\n\tabc\r\n-----END KEY-----\r\n")
    assert mcphost("secret", "set", "a").code == 0
    assert items(shelf) == {"a": "-----BEGIN KEY-----\r\n\tabc\r\n-----END KEY-----"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "nothing was given"),
        (b"x" * 65_537, "at most"),
        (b"\xff", "UTF-8"),
        (b"sk-\x00", "a control character, U+0000"),
        (b"sk-\x1b[D6", "a control character, U+001B"),
        ("sk-\u200b6".encode(), "an invisible character, U+200B"),
        ("sk-\u00a06".encode(), "an invisible character, U+00A0"),
        ("sk-\ufffd".encode(), "bytes that are not UTF-8"),
    ],
)
def test_what_can_be_no_secret_is_refused(
    mcphost: Mcphost, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, content: bytes, words: str
) -> None:
    pipe(monkeypatch, content)
    done = mcphost("secret", "set", "a")
    assert done.code == 2
    assert words in done.err
    assert shelf.items == {}


@pytest.mark.parametrize(
    "words",
    [
        ["set"],
        ["set", "a", "s3cret"],
        ["list", "a"],
        ["forget"],
        ["set", "a}b"],
        ["set", ""],
        ["set", "a\nb"],
        ["list", "--traffic", "t"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(mcphost: Mcphost, shelf: Shelf, words: list[str]) -> None:
    assert mcphost("secret", *words).code == 2
    assert shelf.calls == []


def test_secrets_are_listed_with_what_uses_them(mcphost: Mcphost, shelf: Shelf, tmp_path: Path) -> None:
    config = {
        "servers": {"github": {"command": "x", "env": {"T": "a ${keyring:github.TOKEN} b"}}},
        "models": {"m": {"provider": "openai", "model": "m", "api_key": "${keyring:absent}"}},
    }
    (tmp_path / "c.toml").write_text(tomli_w.dumps(config))
    shelf.items = {"mcphost github.TOKEN": CANARY}
    done = mcphost("--config", "c.toml", "secret", "list", "--json")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"name": "absent", "stored": False, "usedBy": ["models.m.api_key"]},
        {"name": "github.TOKEN", "stored": True, "usedBy": ["servers.github.env.T"]},
    ]
    assert CANARY not in done.out + done.err
    lines = mcphost("--config", "c.toml", "secret", "list").out.splitlines()
    assert lines[2].split() == ["github.TOKEN", "yes", "servers.github.env.T"]


def test_a_locked_keychain_is_asked_once_and_the_list_is_still_shown(mcphost: Mcphost, add: Add, shelf: Shelf) -> None:
    add({"github": GITHUB}, "--yes")
    shelf.before, shelf.calls = locked, []
    done = mcphost("secret", "list")
    assert done.code == 0
    assert [line.split()[1] for line in done.out.splitlines()[1:]] == ["?", "?"]
    assert "it is locked" in done.err
    assert shelf.calls == ["get"]


def test_without_any_secret_the_list_says_how_to_keep_one(mcphost: Mcphost, shelf: Shelf) -> None:
    done = mcphost("secret", "list")
    assert (done.code, done.out) == (0, "")
    assert "mcphost secret set NAME" in done.err


def test_a_forgotten_secret_is_gone(mcphost: Mcphost, add: Add, shelf: Shelf) -> None:
    add({"github": GITHUB}, "--yes")
    done = mcphost("secret", "forget", "github.TOKEN", "absent")
    assert (done.code, done.out) == (0, "github.TOKEN is forgotten\nabsent was not in the keychain\n")
    assert items(shelf) == {"github.api-key": "s3cret-arg"}
    assert mcphost("secret", "forget", "absent").code == 2


def test_where_no_keychain_may_be_used_that_is_said(mcphost: Mcphost) -> None:
    done = mcphost("secret", "list")
    assert done.code == 2
    assert "MCPHOST_KEYCHAIN=off" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "stored", "words"),
    [
        (b"sk-45\x1b[D6", "sk-456", ""),
        (b"\x1b[200~sk-456\x1b[201~", "sk-456", ""),
        (b"wrong\x17right", "right", ""),
        (b"sk-\x00456", "", "it has a control character, U+0000; nothing was stored"),
        ("sk-\u200b456".encode(), "", "it has an invisible character, U+200B; nothing was stored"),
        (b"sk-\xe9456", "", "it has bytes that are not UTF-8 text; nothing was stored"),
    ],
    ids=["arrow key", "paste", "word erased", "NUL", "zero-width", "latin-1"],
)
def test_a_hidden_secret_is_what_was_meant_or_refused(tmp_path: Path, typed: bytes, stored: str, words: str) -> None:
    shelf = KeychainFile(tmp_path / "items.shelf")
    command = [sys.executable, "-m", KeychainFile.PROGRAM, "secret", "set", "a"]
    with Terminal(command, env={**shelf.env, "MCPHOST_KEYCHAIN": ""}, cwd=tmp_path) as terminal:
        terminal.wait_for("Secret a (not shown):")
        terminal.press(typed.decode("utf-8", "surrogateescape"), "enter")
        terminal.wait_for(words or "a is in the keychain")
        assert terminal.wait_exit() == (2 if words else 0)
    assert FileShelf(tmp_path / "items.shelf").get_password("mcphost", "a") == (stored or None)
    (tmp_path / "items.shelf").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_hang_up_ends_the_question_for_a_secret(tmp_path: Path) -> None:
    shelf = KeychainFile(tmp_path / "items.shelf")
    program = shlex.join([sys.executable, "-m", KeychainFile.PROGRAM, "secret", "set", "a"])
    inner = shlex.quote(f"echo $$ >pid; exec {program}")
    command = ["sh", "-c", f"sh -c {inner}; echo ended with $?; stty -a"]
    with Terminal(command, env={**shelf.env, "MCPHOST_KEYCHAIN": ""}, cwd=tmp_path) as terminal:
        terminal.wait_for("Secret a (not shown):")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGHUP)
        terminal.wait_for("ended with 129", " echo ", " icanon ")


@pytest.mark.slow
def test_a_secret_is_not_shown_after_a_suspension_either(tmp_path: Path) -> None:
    shelf = KeychainFile(tmp_path / "items.shelf")
    command = [sys.executable, "-m", KeychainFile.PROGRAM, "secret", "set", "a"]
    with Terminal(command, env={**shelf.env, "MCPHOST_KEYCHAIN": ""}, cwd=tmp_path) as terminal:
        terminal.wait_for("Secret a (not shown):")
        for number in (signal.SIGTSTP, signal.SIGSTOP):  # a shell may change the modes before it continues the program
            terminal.process.send_signal(number)
            terminal.wait_until(lambda _: os.waitpid(terminal.process.pid, os.WUNTRACED | os.WNOHANG)[0] != 0, "a stop")
            terminal.cook()
            terminal.process.send_signal(signal.SIGCONT)
            terminal.wait_until(lambda _: not terminal.is_cooked, "the modes of the question")
        terminal.press(CANARY, "enter")
        terminal.wait_for("a is in the keychain")
        assert CANARY.encode() not in terminal.raw
        assert terminal.wait_exit() == 0
        assert terminal.is_cooked


@pytest.mark.slow
def test_a_secret_is_asked_for_without_being_shown(tmp_path: Path) -> None:
    shelf = KeychainFile(tmp_path / "items.shelf")
    command = [sys.executable, "-m", KeychainFile.PROGRAM, "secret", "set", "a b"]
    env = {**shelf.env, "MCPHOST_KEYCHAIN": ""}
    with Terminal(command, env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("Secret a b (not shown):")
        terminal.press(CANARY, "enter")
        terminal.wait_for("a b is in the keychain")
        assert terminal.wait_exit() == 0
        assert CANARY.encode() not in terminal.raw
    assert FileShelf(tmp_path / "items.shelf").get_password("mcphost", "a b") == CANARY
    (tmp_path / "items.shelf").unlink()


def test_a_removed_server_is_gone_with_what_was_allowed_of_it(
    mcphost: Mcphost, add: Add, shelf: Shelf, servers_toml: Path, isolated: Path
) -> None:
    add({"github": GITHUB, "b": {"command": "b"}}, "--yes")
    approval = {"tool": "t", "lifetime": "always", "since": "", "identity": "i", "definition": "{}"}
    text = "".join(
        tomli_w.dumps({"approval": [{**approval, "server": name}]}).replace(
            'since = ""', "since = 2026-01-01T00:00:00Z"
        )
        for name in ("github", "b")
    )
    state = isolated / "state" / "mcphost"
    (state / "approvals.toml").write_text(text)
    (state / "approvals.toml").chmod(0o600)
    done = mcphost("remove", "github")
    assert done.code == 0
    assert "what you allowed of 1 of its tools is forgotten" in done.out
    assert list(read_servers(servers_toml)) == ["b"]
    assert 'server = "b"' in (state / "approvals.toml").read_text()
    assert 'server = "github"' not in (state / "approvals.toml").read_text()
    assert "mcphost secret forget github" in done.err
    assert len(shelf.items) == 2


def test_with_yes_its_secrets_go_as_well(mcphost: Mcphost, add: Add, shelf: Shelf) -> None:
    add({"github": GITHUB}, "--yes")
    done = mcphost("remove", "github", "--yes")
    assert "deleted from the keychain: " in done.out
    assert shelf.items == {}
    assert mcphost("secret", "list").out == ""


def test_a_server_of_the_users_own_file_is_not_removed(
    mcphost: Mcphost, add: Add, shelf: Shelf, servers_toml: Path
) -> None:
    add({"github": GITHUB}, "--yes")
    own = servers_toml.with_name("config.toml")
    own.write_text('[servers.own]\ncommand = "x"\n[servers.github]\ncommand = "mine"\n')
    done = mcphost("remove", "own")
    assert done.code == 2
    assert "are yours to delete" in done.err
    assert "github is still in your own configuration" in mcphost("remove", "github").out
    assert own.read_text().startswith("[servers.own]")


@pytest.mark.slow
def test_an_imported_secret_reaches_its_server_from_the_keychain(tmp_path: Path) -> None:
    home, server = tmp_path / "home", [sys.executable, "-S", "-E", str(ECHO)]
    entry = {"command": server[0], "args": server[1:], "env": {"SHOWN": "1", "API_TOKEN": CANARY}}

    def mcphost(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mcphost", *words]
        return subprocess.run(command, env=env, text=True, capture_output=True, timeout=60, cwd=tmp_path)

    with session(tmp_path / "keyring") as found:
        env = {**found.env, "HOME": str(home), "PYTHONPATH": str(ROOT)}
        (home / ".claude.json").write_text(json.dumps({"mcpServers": {"echo": entry}}))
        added = mcphost("import", "claude-code", "--yes")
        assert added.returncode == 0, added.stderr
        (home / ".claude.json").unlink()
        called = mcphost("call", "echo", "environment", 'names:=["API_TOKEN"]', "--yes", "--json")
        assert CANARY in called.stdout, called.stderr
        listed = mcphost("secret", "list", "--json")
        assert json.loads(listed.stdout) == {
            "name": "echo.API_TOKEN",
            "stored": True,
            "usedBy": ["servers.echo.env.API_TOKEN"],
        }
        assert mcphost("remove", "echo", "--yes").returncode == 0
        assert mcphost("secret", "list", "--json").stdout == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()] == []
