"""``mcphost serve``: the entries that start it, the tokens of its address, and the options of its quick start."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli.commands.serve import fast_options
from mcphost.cli.parser import parse
from tests.auth.keychains import Shelf
from tests.cli.conftest import Mcphost, entry, items


@pytest.fixture(autouse=True)
def config(isolated: Path) -> Path:
    path = isolated / "config" / "mcphost" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    more = 'http_headers = { Authorization = "Bearer secret-12345678" }\n[profiles.work]\nservers = ["echo"]\n'
    path.write_text(f'{entry("echo")}[servers.docs]\nurl = "https://docs.example.com/mcp"\n{more}')
    return path


def entries(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)["mcpServers"]
    return found


def test_an_entry_starts_mcphost_with_its_files(mcphost: Mcphost, config: Path) -> None:
    done = mcphost("serve", "--print", "claude-code", "echo")
    words = entries(done.out)["echo"]["args"]
    given = dict(zip(words[words.index("--config") :: 2], words[words.index("--config") + 1 :: 2], strict=True))
    assert words[words.index("serve") + 1] == "echo"
    assert (given["--config"], given["--as"]) == (str(config), "claude-code")
    assert Path(given["--state"]).is_absolute()
    assert Path(entries(done.out)["echo"]["command"]).is_absolute()


def test_an_export_via_serve_has_no_secret_of_the_servers(mcphost: Mcphost) -> None:
    done = mcphost("export", "cursor", "--via", "serve")
    assert list(entries(done.out)) == ["echo", "docs"]
    assert "secret-12345678" not in done.out
    assert "https://" not in done.out


def test_a_profile_is_one_entry_for_its_servers(mcphost: Mcphost) -> None:
    done = mcphost("serve", "--print", "codex", "--profile", "work")
    (table,) = tomllib.loads(done.out)["mcp_servers"].items()
    assert table[0] == "work"
    assert {"serve", "--profile"} <= {*table[1]["args"]}
    assert "mcp_optional_startup_grace_ms = 0" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--print", "emacs"], "'emacs' is not a known host"),
        (["--print", "codex", "nothing"], "no server is called 'nothing'"),
        (["--print", "codex", "https://x.example/mcp"], "name an entry of the configuration"),
        (["--print", "codex", "--profile", "play"], "there is no profile play"),
        (["--print", "codex", "--http", "0.0.0.0:80"], "on this machine only"),
        (["--print", "codex", "--http", "echo"], "write the address as 127.0.0.1:PORT"),
        (["--print", "-", "--http"], "--as AGENT"),
        (["--revoke", "codex"], "'codex' has no token"),
    ],
)
def test_what_cannot_be_served_is_explained(words: list[str], said: str, mcphost: Mcphost, shelf: Shelf) -> None:
    done = mcphost("serve", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_host_that_reads_variables_gets_a_reference_to_its_token(mcphost: Mcphost, shelf: Shelf) -> None:
    done = mcphost("serve", "--print", "claude-code", "echo", "--http")
    (token,) = items(shelf).values()
    found = entries(done.out)["echo"]
    assert found["url"] == "http://127.0.0.1:6427/mcp/echo"
    assert found["headers"] == {"Authorization": "Bearer ${MCPHOST_SERVE_TOKEN}"}
    assert token not in done.out
    assert f"set the environment variable MCPHOST_SERVE_TOKEN where Claude Code starts, to {token}" in done.err


def test_a_host_without_variables_gets_the_token_with_a_warning(mcphost: Mcphost, shelf: Shelf) -> None:
    done = mcphost("serve", "--print", "zed", "--as", "own", "--profile", "work", "--http", "127.0.0.1:7000")
    (token,) = items(shelf).values()
    assert json.loads(done.out)["context_servers"]["work"]["url"] == "http://127.0.0.1:7000/mcp/@work"
    assert token in done.out
    assert "keep them secret" in done.err


def test_a_token_stays_until_it_is_revoked(mcphost: Mcphost, shelf: Shelf) -> None:
    def token() -> str:
        assert mcphost("serve", "--print", "codex", "echo", "--http").code == 0
        (found,) = items(shelf).values()
        return found

    first = token()
    assert token() == first
    assert "the token of codex is deleted" in mcphost("serve", "--revoke", "codex").err
    assert items(shelf) == {}
    assert token() != first


def test_without_a_keychain_there_are_no_tokens(mcphost: Mcphost) -> None:
    done = mcphost("serve", "--print", "codex", "--http")
    assert done.code == 2
    assert "agents can start mcphost serve as a program instead" in done.err


def test_the_quick_start_reads_what_the_parser_reads() -> None:
    words = [
        "git",
        "--as=a",
        "--profile",
        "p",
        "--questions",
        "here",
        "--approve",
        "--state",
        "s",
        "--config",
        "c",
        "b",
    ]
    found, parsed = fast_options(words), vars(parse(["serve", *words]))
    assert found is not None
    assert vars(found).items() <= parsed.items()


@pytest.mark.parametrize(
    "line", ["--help", "--http", "--print codex", "--as", "--as --approve", "--questions both", "-x", "-", "a -- b"]
)
def test_the_quick_start_leaves_all_else_to_the_parser(line: str) -> None:
    assert fast_options(line.split()) is None
