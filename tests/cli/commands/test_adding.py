"""``mcphost add`` and ``mcphost search``, with a registry on the loopback."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcphost.cli.parser import parse
from tests.auth.people import Web
from tests.cli.conftest import Mcphost
from tests.imports.bundle_files import archive
from tests.imports.registries import StubRegistry, base, listed
from tests.terminal import mcphost as terminal_of

NPM = {"registryType": "npm", "identifier": "@ada/tides", "version": "1.2.0", "transport": {"type": "stdio"}}
ENTRIES = [
    listed("io.github.ada/tides", "1.2.0", title="Tides", packages=[NPM]),
    listed("com.example/tides", description="\x1b[2Jclears", status="deprecated"),
    listed("org.example/other"),
]


@pytest.fixture
def configured(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = isolated / "own.toml"
    path.write_text("")
    monkeypatch.setenv("MCPHOST_CONFIG", str(path))
    return path


@pytest.fixture
def registry(configured: Path) -> Iterator[Web]:
    with Web(StubRegistry(ENTRIES)) as web:
        configured.write_text(f'[registry]\nurls = ["{base(web)}"]\n')
        yield web


def added(configured: Path) -> dict[str, Any]:
    path = configured.with_name("servers.toml")
    servers: dict[str, Any] = tomllib.loads(path.read_text())["servers"] if path.exists() else {}
    return servers


def test_the_words_after_two_dashes_are_the_program_s() -> None:
    options = parse(["--config", "add", "add", "--env", "A=b", "git", "--yes", "--", "uvx", "--yes", "--", "x", "-y"])
    assert (options.word, options.program) == ("git", ["uvx", "--yes", "--", "x", "-y"])
    assert (options.yes, options.env, options.config) == (True, ["A=b"], "add")
    assert parse(["add", "https://x.example"]).program is None
    assert parse(["call", "s", "add", "--", "a=b"]).pairs == ["a=b"]


def test_a_command_is_added(mcphost: Mcphost, configured: Path) -> None:
    said = mcphost("add", "git", "--env", "MODE=ro", "--yes", "--", "uvx", "mcp-server-git", "--repository", ".")
    assert said.code == 0
    assert "would run" in said.err
    assert "uvx mcp-server-git --repository ." in said.err
    assert added(configured) == {
        "git": {
            "command": "uvx",
            "args": ["mcp-server-git", "--repository", "."],
            "env": {"MODE": "ro"},
            "start": "manual",
        }
    }


def test_a_second_name_for_a_known_server_is_refused(mcphost: Mcphost, configured: Path) -> None:
    program = ("--", "uvx", "mcp-server-git")
    assert mcphost("add", "git", "--yes", *program).code == 0
    again = mcphost("add", "git", "--yes", *program)
    assert (again.code, again.out) == (0, "= git: unchanged\n")
    renamed = mcphost("add", "git", "--yes", "--as", "ev", *program)
    assert renamed.code == 2
    assert "there already as" in renamed.err
    assert "mcphost remove" in renamed.err
    assert list(added(configured)) == ["git"]
    assert mcphost("add", "git", "--yes", "--as", "git", *program).out == "= git: unchanged\n"


@pytest.mark.parametrize("name", ["", "a\nb", "a b", "-a", "x" * 65])
def test_an_illegal_name_is_refused_before_anything_is_shown(mcphost: Mcphost, configured: Path, name: str) -> None:
    said = mcphost("add", "git", "--yes", f"--as={name}", "--", "uvx", "mcp-server-git")
    assert (said.code, "a name has 1 to 64 letters" in said.err, "would run" in said.err) == (2, True, False)
    assert len(said.err.splitlines()) == 1


def test_a_change_under_another_name_is_a_new_entry_and_replaces_none(mcphost: Mcphost, configured: Path) -> None:
    assert mcphost("add", "git", "--yes", "--", "uvx", "mcp-server-git").code == 0
    assert mcphost("add", "ev", "--yes", "--", "uvx", "other").code == 0
    changed = mcphost("add", "git", "--yes", "--as", "ev", "--", "uvx", "mcp-server-git", "--verbose")
    assert changed.code == 2
    assert added(configured)["ev"]["args"] == ["other"]


def test_without_a_terminal_and_without_yes_nothing_is_added(mcphost: Mcphost, configured: Path) -> None:
    said = mcphost("add", "git", "--", "uvx", "mcp-server-git")
    assert (said.code, added(configured)) == (4, {})
    assert "add --yes" in said.err


def test_a_server_of_a_registry_is_added_by_its_name(mcphost: Mcphost, configured: Path, registry: Web) -> None:
    said = mcphost("add", "io.github.ada/tides", "--yes", "--as", "sea")
    assert said.code == 0
    assert added(configured)["sea"]["args"] == ["-y", "@ada/tides@1.2.0"]
    assert "the name's owner: GitHub account ada" in said.err
    assert "@ada/tides from npm" in said.err
    assert len(registry.visits) == 1


def test_values_that_are_asked_for_can_be_given(mcphost: Mcphost, configured: Path, tmp_path: Path) -> None:
    package = {
        **NPM,
        "packageArguments": [
            {"type": "named", "name": "--dir", "isRepeated": True, "isRequired": True},
            {"type": "named", "name": "--port", "format": "number"},
        ],
    }
    (tmp_path / "server.json").write_text(json.dumps({"name": "a.b/c", "description": "x", "packages": [package]}))
    said = mcphost("add", "server.json", "--set", "dir=/a", "--set", "dir=/b", "--yes")
    assert said.code == 0
    assert added(configured)["c"]["args"] == ["-y", "@ada/tides@1.2.0", "--dir", "/a", "--dir", "/b"]
    said = mcphost("add", "server.json", "--yes")
    assert said.code == 2
    assert "it needs dir: add --set dir=VALUE" in said.err
    assert mcphost("add", "server.json", "--dry-run").code == 0
    said = mcphost("add", "server.json", "--set", "port=1", "--set", "what=1")
    assert said.code == 2
    assert "--set what: it does not ask for that; it asks for dir, port" in said.err


@pytest.mark.slow
def test_at_a_terminal_the_values_are_asked_for(configured: Path, tmp_path: Path) -> None:
    arguments = [
        {"type": "named", "name": "--dir", "isRepeated": True, "isRequired": True, "description": "\x1b[2JWhich"},
        {"type": "named", "name": "--mode", "choices": ["calm", "storm"], "default": "calm"},
        {"type": "named", "name": "--port", "format": "number"},
    ]
    package = {**NPM, "packageArguments": arguments}
    (tmp_path / "server.json").write_text(json.dumps({"name": "a.b/c", "description": "x", "packages": [package]}))
    with terminal_of("add", "server.json", cwd=tmp_path) as terminal:
        terminal.wait_for("Add c? [y/N]")
        terminal.press("y", "enter")
        terminal.wait_for("dir (␛[2JWhich):")
        terminal.press("/a", "enter")
        terminal.wait_for("dir, one more (enter: no more):")
        terminal.press("/b", "enter")
        terminal.wait_until(lambda text: text.count("one more (enter: no more):") == 2, "the question for a third")
        terminal.press("enter")
        terminal.wait_for("mode, one of calm, storm [calm]:")
        terminal.press("gale", "enter")
        terminal.wait_until(lambda text: text.count("[calm]:") == 2, "the question once more")
        terminal.wait_for("it must be one of these")
        terminal.press("storm", "enter")
        terminal.wait_for("port (")
        terminal.press("enter")
        terminal.wait_for("+ c: added in")
        assert terminal.wait_exit() == 0
    words = ["-y", "@ada/tides@1.2.0", "--dir", "/a", "--dir", "/b", "--mode", "storm"]
    assert added(configured)["c"] == {"command": "npx", "args": words}


def test_a_bundle_stays_unpacked_while_a_server_uses_it(mcphost: Mcphost, configured: Path, isolated: Path) -> None:
    Path("tides.mcpb").write_bytes(archive(("server/index.js", b"x")))

    def unpacked() -> list[str]:
        return [path.name for path in isolated.rglob("bundles/*")]

    assert mcphost("add", "tides.mcpb").code == 4
    assert unpacked() == []
    assert mcphost("add", "tides.mcpb", "--dry-run").code == 0
    assert unpacked() == []
    said = mcphost("add", "tides.mcpb", "--yes")
    assert said.code == 0
    assert "not signed" in said.err
    (folder,) = unpacked()
    entry = added(configured)["tide-tables"]
    assert entry["cwd"].endswith(folder)
    assert Path(entry["args"][0]).read_bytes() == b"x"
    Path("tides.mcpb").write_bytes(archive(("server/index.js", b"newer")))
    assert mcphost("add", "tides.mcpb", "--yes").code == 0
    (newer,) = unpacked()
    assert newer != folder
    assert mcphost("remove", "tide-tables").code == 0
    assert unpacked() == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add"], "the following arguments are required: WHAT"),
        (["add", "x", "--"], "after -- comes the command"),
        (["add", "x", "y"], "unrecognized: y"),
        (["add", "https://x.example/mcp", "--env", "A"], "--env A: write NAME=VALUE"),
        (["add", "a.b/c", "--registry", "ftp://x"], "--registry ftp://x: must start with https"),
        (["--traffic", "x", "add", "a", "--", "b"], "connects to no server"),
        (["search"], "needs a word"),
        (["add", "nothing-known"], "is not a URL, a file, a link or a name"),
    ],
)
def test_mistakes_are_named(words: list[str], says: str, mcphost: Mcphost, configured: Path) -> None:
    said = mcphost(*words)
    assert said.code == 2
    assert says in said.err


def test_a_search_lists_what_the_registries_know(mcphost: Mcphost, registry: Web) -> None:
    said = mcphost("search", "tides")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].split() == ["NAME", "VERSION", "PUBLISHED", "STATUS", "ABOUT"]
    assert [line.split()[0] for line in lines[1:]] == ["io.github.ada/tides", "com.example/tides"]
    assert "deprecated" in lines[2]
    assert "\x1b" not in said.out
    assert "mcphost add NAME" in said.err
    said = mcphost("search", "tides", "--json")
    first, second = map(json.loads, said.out.splitlines())
    assert (first["name"], first["version"], first["status"]) == ("io.github.ada/tides", "1.2.0", "active")
    assert second["description"] == "\x1b[2Jclears"


def test_a_search_goes_on_where_one_registry_fails(mcphost: Mcphost, registry: Web) -> None:
    with Web(lambda talk: talk.whole(500)) as broken:
        said = mcphost("search", "tides", "--registry", base(broken), "--registry", base(registry))
        assert said.code == 0
        assert f"HTTP 500: 127.0.0.1:{broken.port}" in said.err
        assert "io.github.ada/tides" in said.out
        said = mcphost("search", "tides", "--registry", base(broken))
        assert said.code == 3


def test_nothing_found_is_said(mcphost: Mcphost, registry: Web) -> None:
    said = mcphost("search", "nothing")
    assert (said.code, said.out) == (0, "")
    assert "no server's name holds nothing" in said.err


@pytest.mark.parametrize("words", [["search", "x"], ["add", "a.b/c"]])
def test_a_search_needs_a_registry(mcphost: Mcphost, configured: Path, words: list[str]) -> None:
    configured.write_text("[registry]\nurls = []\n")
    said = mcphost(*words)
    assert said.code == 2
    assert "no registry is configured" in said.err


@pytest.mark.hostile("C06")
@pytest.mark.parametrize("command", [("add", "x", "--yes", "--", "y"), ("remove", "x"), ("check",)])
@pytest.mark.parametrize("target", ["pipe", "/dev/zero"])
def test_a_pipe_in_place_of_the_servers_file_is_named(
    mcphost: Mcphost, configured: Path, command: tuple[str, ...], target: str
) -> None:
    os.mkfifo(configured.with_name("pipe"))
    configured.with_name("servers.toml").symlink_to(target)
    said = mcphost(*command)
    assert (said.code, "is not a regular file" in said.err) == (2, True)
