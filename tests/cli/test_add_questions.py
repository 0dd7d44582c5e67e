"""Adding found servers at the command line: what is shown, asked, stored and printed."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcphost.errors import UsageError
from tests.auth.keychains import Shelf, locked
from tests.cli.conftest import GITHUB, Add, items
from tests.terminal import Terminal

ROOT = Path(__file__).parents[2]


def test_added_without_a_look_it_starts_only_when_told_to(add: Add, shelf: Shelf, servers_toml: Path) -> None:
    done = add({"github": GITHUB}, "--yes")
    assert done.code == 0
    assert done.out == f'+ github: added in {servers_toml}, to be started by hand (start = "manual")\n'
    assert items(shelf) == {"github.TOKEN": "s3cret-env", "github.api-key": "s3cret-arg"}
    entry = tomllib.loads(servers_toml.read_text())["servers"]["github"]
    assert entry == {
        "command": "npx",
        "args": ["-y", "server", "--api-key", "${keyring:github.api-key}"],
        "env": {"TOKEN": "${keyring:github.TOKEN}"},
        "start": "manual",
    }
    assert "args[3] is an argument: every program on this machine can read it while the server runs" in done.err


def test_the_line_where_a_secret_still_stands_is_named(add: Add, shelf: Shelf, tmp_path: Path) -> None:
    done = add({"github": GITHUB}, "--yes")
    lines = (tmp_path / "there.json").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "s3cret-env" in line)
    assert f"env.TOKEN is still in {tmp_path / 'there.json'}, line {number}" in done.err.replace("\n", " ")


@pytest.mark.requirement("SEC-12")
def test_without_a_terminal_nothing_is_added_and_everything_is_shown(
    add: Add, servers_toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    long = "x" * 300
    done = add({"bad": {"command": "sudo", "args": ["rm", "-rf", "/", long], "notes": {"autoApprove": "is yours"}}})
    assert done.code == 4
    assert f"sudo rm -rf / {long}" in done.err
    assert "WARNING     It runs as administrator: sudo" in done.err
    assert "It deletes files: rm -rf" in done.err
    assert "note        autoApprove: is yours" in done.err
    assert "there is no terminal to ask on" in done.err
    assert not servers_toml.exists()


PLACES: dict[str, dict[str, Any]] = {
    "env": {"command": "x", "env": {"TOKEN": "{}"}},
    "env by shape": {"command": "x", "env": {"X": "ghp_{}-ABCDEFGHIJ"}},
    "argument": {"command": "x", "args": ["--token", "{}"]},
    "argument after =": {"command": "x", "args": ["--api-key={}"]},
    "variable of docker": {"command": "docker", "args": ["run", "-e", "GH_TOKEN={}", "image"]},
    "header in an argument": {"command": "x", "args": ["--header", "Authorization: Bearer {}"]},
    "address in an argument": {"command": "x", "args": ["postgres://ada:{}@h/db"]},
    "JSON in an argument": {"command": "x", "args": ["--config", '{"apiKey": "{}"}']},
    "header": {"url": "https://h.example/mcp", "http_headers": {"Authorization": "Bearer {}"}},
    "other header": {"url": "https://h.example/mcp", "http_headers": {"X-Api-Key": "{}"}},
    "query": {"url": "https://h.example/mcp?api_key={}"},
    "password in the address": {"url": "https://ada:{}@h.example/mcp"},
    "sign-in": {"url": "https://h.example/mcp", "oauth": {"client_id": "x", "client_secret": "{}"}},
    "input": {"command": "x", "env": {"T": "${input:key}"}, "inputs": {"key": True}},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("words", [["--yes"], ["--yes", "--json"], ["--dry-run"], ["--print"], []])
def test_a_canary_is_nowhere_but_in_the_keychain(
    add: Add, shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str, words: list[str]
) -> None:
    canary = "canary-store-12345678"
    table = json.loads(json.dumps(PLACES[place]).replace("{}", canary))
    done = add({"web": table}, *words, "--set", f"key={canary}")
    changed = add({"web": {**table, "tool_timeout_sec": 5.0}}, *words, "--set", f"key={canary}")
    assert (done.code, changed.code) == ((0, 0) if words else (4, 4))
    (tmp_path / "there.json").unlink()
    for said in (done.out, done.err, changed.out, changed.err, caplog.text):
        assert canary not in said.replace("\n", "").replace(" ", "")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()] == []
    kept = [secret for secret in items(shelf).values() if canary in secret or place == "password in the address"]
    assert bool(kept) == ("--yes" in words)


def test_printed_entries_are_toml_and_nothing_is_written(add: Add, shelf: Shelf, servers_toml: Path) -> None:
    done = add(
        {"github": GITHUB, "a": {"command": "x", "env": {"M": "${input:mode}"}, "inputs": {"mode": False}}}, "--print"
    )
    printed = tomllib.loads(done.out)["servers"]
    assert printed["github"]["env"] == {"TOKEN": "${keyring:github.TOKEN}"}
    assert printed["a"]["env"] == {"M": "${A_MODE}"}
    assert "github.TOKEN: to store it: mcphost secret set github.TOKEN" in done.err
    assert "a reads the environment variable A_MODE, which is not set" in done.err
    assert not servers_toml.parent.exists()
    assert shelf.items == {}


def test_a_dry_run_changes_nothing(add: Add, shelf: Shelf, isolated: Path) -> None:
    assert add({"github": GITHUB}, "--dry-run").code == 0
    assert [path for path in isolated.rglob("*") if path.is_file()] == []
    assert shelf.items == {}


def test_without_a_keychain_secrets_become_variables(add: Add, shelf: Shelf, servers_toml: Path) -> None:
    shelf.before = locked
    done = add({"github": {"command": "npx", "env": {"TOKEN": "s3cret-env"}}}, "--yes")
    assert done.code == 0
    words = "the keychain cannot be used: it is locked; its secrets become references to environment variables"
    assert words in " ".join(done.err.split())
    assert "github reads the environment variable TOKEN, which is not set" in done.err
    assert tomllib.loads(servers_toml.read_text())["servers"]["github"]["env"] == {"TOKEN": "${TOKEN}"}
    refused = add({"b": {"command": "b", "env": {"TOKEN": "s3cret-env"}}}, "--yes", "--keep-secrets", "keyring")
    assert refused.code == 2
    assert "its secrets were not stored" in refused.err


def test_secrets_stay_out_of_the_keychain_on_request(add: Add, shelf: Shelf, servers_toml: Path) -> None:
    assert add({"github": GITHUB}, "--yes", "--keep-secrets", "env").code == 0
    entry = tomllib.loads(servers_toml.read_text())["servers"]["github"]
    assert (entry["args"][3], entry["env"]) == ("${GITHUB_API_KEY}", {"TOKEN": "${TOKEN}"})
    assert shelf.items == {}


def test_only_a_changed_server_is_asked_about_again(add: Add, shelf: Shelf) -> None:
    add({"github": GITHUB, "b": {"command": "b"}}, "--yes")
    assert add({"github": GITHUB, "b": {"command": "b"}}).out == "= github: unchanged\n= b: unchanged\n"
    done = add({"github": {**GITHUB, "command": "pnpx"}}, "--yes")
    assert 'changed     command: "npx" -> "pnpx"' in done.err
    assert "~ github: changed in" in done.out
    assert "- b: no longer in" in done.out
    assert "mcphost remove b" in done.out


def test_json_has_an_object_for_each_server(add: Add, shelf: Shelf) -> None:
    done = add({"github": GITHUB, "bad": {"command": "x", "zzz": 1}}, "--yes", "--json")
    github, bad = map(json.loads, done.out.splitlines())
    assert (github["server"], github["status"], github["added"]) == ("github", "new", True)
    assert github["entry"]["env"] == {"TOKEN": "${keyring:github.TOKEN}"}
    assert (bad["server"], bad["added"]) == ("bad", False)
    assert done.code == 2
    assert "is not taken from elsewhere" in done.err


def test_one_server_gets_the_name_that_was_given(add: Add, shelf: Shelf, servers_toml: Path) -> None:
    assert add({"github": GITHUB}, "--yes", "--as", "gh").code == 0
    assert list(tomllib.loads(servers_toml.read_text())["servers"]) == ["gh"]
    assert "gh.TOKEN" in items(shelf)


def test_with_a_configuration_of_its_own_nothing_is_written(add: Add, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("")
    with pytest.raises(UsageError, match="add --print"):
        add({"github": GITHUB}, "--yes", "--config", "c.toml")
    assert add({"github": GITHUB}, "--print", "--config", "c.toml").code == 0


def at_a_terminal(folder: Path, servers: dict[str, Any], *words: str) -> Terminal:
    """The same as a program on a terminal, with a keychain in a file."""
    (folder / "there.json").write_text(json.dumps(servers))
    command = [sys.executable, "-m", "tests.cli.adding_program", str(folder / "there.json"), *words]
    env = {"PYTHONPATH": str(ROOT), "MCPHOST_KEYCHAIN": ""}
    return Terminal(command, columns=100, rows=40, env=env, cwd=folder)


@pytest.mark.slow
@pytest.mark.requirement("SEC-12")
def test_a_dangerous_command_is_shown_in_full_and_flagged(tmp_path: Path, servers_toml: Path) -> None:
    words = ["rm", "-rf", "/", *(f"--option-{number}=value" for number in range(30)), "end-of-the-command"]
    with at_a_terminal(tmp_path, {"bad": {"command": "sudo", "args": words}}) as terminal:
        screen = terminal.wait_for("Add bad? [y/N]", "It runs as administrator: sudo", "It deletes files: rm -rf")
        shown = "".join(line.strip() for line in screen.splitlines())
        assert "".join(["sudo", *words]) in shown.replace(" ", "")
        terminal.press("enter")
        assert terminal.wait_exit() == 4
    assert not servers_toml.exists()


@pytest.mark.slow
@pytest.mark.requirement("SEC-12")
def test_a_yes_adds_a_server_and_its_secrets_go_where_the_user_says(tmp_path: Path, servers_toml: Path) -> None:
    table = {**GITHUB, "env": {"TOKEN": "s3cret-env", "MODE": "${input:mode}", "K": "${input:key}"}}
    with at_a_terminal(tmp_path, {"github": {**table, "inputs": {"mode": False, "key": True}}}) as terminal:
        terminal.wait_for("Add github? [y/N]", "nothing of it starts now, but whenever mcphost starts")
        terminal.press("y", "enter")
        terminal.wait_for("env.TOKEN looks like a secret", "[K/e/a]")
        terminal.press("enter")
        terminal.wait_for("args[3] looks like a secret")
        terminal.press("e", "enter")
        terminal.wait_for("mode: ")
        terminal.press("enter")
        terminal.wait_for("it needs a value")
        terminal.wait_until(lambda text: text.rstrip().endswith("mode:"), "the question once more")
        terminal.press("ro", "enter")
        terminal.wait_for("key: ")
        terminal.press("s3cret\u200b-input", "enter")
        terminal.wait_for("it has an invisible character, U+200B; give it again")
        terminal.wait_until(lambda text: text.rstrip().endswith("key:"), "the question once more")
        terminal.press("\x1b[200~s3cret-inpu\x1b[201~\x1b[Dt", "enter")
        screen = terminal.wait_for("+ github: added in")
        assert "s3cret" not in screen
        assert terminal.wait_exit() == 0
    entry = tomllib.loads(servers_toml.read_text())["servers"]["github"]
    assert entry == {
        "command": "npx",
        "args": ["-y", "server", "--api-key", "${GITHUB_API_KEY}"],
        "env": {"TOKEN": "${keyring:github.TOKEN}", "MODE": "ro", "K": "${keyring:github.key}"},
    }
    kept = json.loads((tmp_path / "there.keychain").read_text())
    assert kept == {"mcphost github.TOKEN": "s3cret-env", "mcphost github.key": "s3cret-input"}
    (tmp_path / "there.keychain").unlink()


@pytest.mark.slow
def test_whoever_stops_in_the_middle_knows_what_was_added(tmp_path: Path, servers_toml: Path) -> None:
    with at_a_terminal(tmp_path, {"a": {"command": "a"}, "b": {"command": "b"}}) as terminal:
        terminal.wait_for("Add a? [y/N]")
        terminal.press("y", "enter")
        terminal.wait_for("+ a: added in", "Add b? [y/N]")
        terminal.press("\x03")
        assert terminal.wait_exit() == 130
    assert list(tomllib.loads(servers_toml.read_text())["servers"]) == ["a"]
