"""``servers.toml``: what mcphost writes beside the user's configuration, and how the two are read together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcphost.config import ConfigLocation, LoadedConfig, find_config, load_found, servers_path, state
from mcphost.config.loading import MAX_FILE_BYTES, placed
from mcphost.config.servers_file import read_servers, remove_server, servers_toml, update_servers, validated_server
from mcphost.errors import ConfigError, UnresolvedReference

GITHUB = (
    '[servers.github]\ncommand = "npx"\nargs = ["-y", "server"]\n\n[servers.github.env]\nTOKEN = "t"\nMODE = "ro"\n'
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's configuration."""
    made = tmp_path / "own"
    made.mkdir()
    monkeypatch.setenv("MCPHOST_CONFIG", str(made / "config.toml"))
    return made


def loaded(folder: Path, own: str, added: str = GITHUB) -> LoadedConfig:
    (folder / "config.toml").write_text(own)
    (folder / "servers.toml").write_text(added)
    return load_found(find_config(None, folder.parent, os.environ))


def test_both_files_configure_servers_and_the_users_file_wins(folder: Path) -> None:
    config = loaded(folder, '[servers.own]\ncommand = "true"\n').config
    assert list(config.servers) == ["own", "github"]
    assert config.servers["github"].args == ("-y", "server")
    assert (config.path, config.added) == (folder / "config.toml", folder / "servers.toml")


def test_the_users_entry_replaces_single_keys_of_the_same_server(folder: Path) -> None:
    own = '[servers.github]\nstart = "lazy"\nargs = []\nenv.MODE = "rw"\ntools.x = { approval = "deny" }\n'
    server = loaded(folder, own).config.servers["github"]
    assert (server.command, server.args, server.start) == ("npx", (), "lazy")
    assert server.env == {"TOKEN": "t", "MODE": "rw"}
    assert server.tools["x"].approval == "deny"


@pytest.mark.parametrize("what", ['command = "own"', 'url = "https://own.example"'])
def test_an_entry_with_a_command_of_the_user_replaces_the_other(folder: Path, what: str) -> None:
    server = loaded(folder, f"[servers.github]\n{what}\n").config.servers["github"]
    assert (server.args, server.env) == ((), {})


def test_the_alias_mcp_servers_replaces_keys_as_well(folder: Path) -> None:
    assert not loaded(folder, "[mcp_servers.github]\nenabled = false\n").config.servers["github"].enabled


@pytest.mark.parametrize(
    ("own", "added", "file", "line", "words"),
    [
        ("", '[servers.a]\ncommand = "x"\nargs = 1\n', "servers.toml", 3, "servers.a.args: must be a list"),
        ("\n[servers.github]\nstart = 1\n", GITHUB, "config.toml", 3, "servers.github.start"),
        ("[servers.github]\nstart = 'lazy'\n", GITHUB + "X = 1\n", "servers.toml", 8, "servers.github.env.X"),
        ("[servers.github]\nenv.X = 2\n", GITHUB, "config.toml", 2, "servers.github.env.X"),
        ("[mcp_servers.github]\nstart = 'lazy'\n", GITHUB + "X = 1\n", "servers.toml", 8, "env.X"),
        ("", "[policy]\ndefault = 'allow'\n", "servers.toml", 1, "policy: is ignored here"),
        ("", "[servers\n", "servers.toml", 1, "not valid TOML"),
        ("", "servers = 1\n", "servers.toml", 1, "must be a table"),
        ("", "[servers.'a b']\ncommand = 'x'\n", "servers.toml", 1, "a name has"),
        ("", "[servers.a]\ncommand='x'\nsampling.model='m'\n", "servers.toml", 3, "no [models.m]"),
    ],
)
def test_a_mistake_is_reported_with_its_file_and_line(
    folder: Path, own: str, added: str, file: str, line: int, words: str
) -> None:
    found = loaded(folder, own, added)
    (problem,) = found.problems
    assert (problem.path, problem.line) == (folder / file, line)
    assert words in str(problem)


def test_a_broken_servers_file_costs_only_its_own_servers(folder: Path) -> None:
    found = loaded(folder, '[servers.own]\ncommand = "true"\n', "[servers\n")
    assert list(found.config.servers) == ["own"]
    (folder / "servers.toml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    found = load_found(find_config(None, folder.parent, os.environ))
    assert "larger than" in str(found.problems[0])


def test_servers_toml_alone_is_a_configuration(isolated: Path, tmp_path: Path) -> None:
    path = servers_path({})
    assert path == isolated / "config" / "mcphost" / "servers.toml"
    update_servers(path, lambda servers: {**servers, "a": {"command": "true"}})
    found = find_config(None, tmp_path, {})
    assert found == ConfigLocation(None, added=path)
    config = load_found(found).config
    assert list(config.servers) == ["a"]
    assert config.path == path  # relative paths start in its folder


def test_a_named_configuration_is_used_alone(folder: Path) -> None:
    (folder / "servers.toml").write_text(GITHUB)
    (folder / "other.toml").write_text("")
    found = find_config(folder / "other.toml", folder.parent, os.environ)
    assert found.added is None
    assert not load_found(found).config.servers


def test_a_projects_servers_come_after_those_of_both_files(folder: Path) -> None:
    (folder.parent / "mcphost.toml").write_text('[servers.github]\ncommand = "evil"\n[servers.own]\ncommand = "x"\n')
    found = loaded(folder, "")
    assert found.config.servers["github"].command == "npx"
    assert sorted(found.config.servers) == ["github", "own"]
    assert "your own configuration has this name already" in str(found.problems[0])


def test_an_unresolved_reference_names_its_file(folder: Path) -> None:
    config = loaded(folder, "[servers.github]\nstart = 'lazy'\n").config
    error = placed(UnresolvedReference("servers.github.env.TOKEN", "${T}", "is not set"), config, "github")
    assert (error.path, error.line) == (folder / "servers.toml", 6)


def test_the_written_file_is_private_and_names_its_author(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "servers.toml"
    update_servers(path, lambda servers: {**servers, "a": {"command": "x", "env": {"A": "é\n\"'"}}})
    assert read_servers(path) == {"a": {"command": "x", "env": {"A": "é\n\"'"}}}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_text().startswith("# Made by `mcphost add` and `mcphost import`")


def test_a_link_of_a_dotfile_manager_stays_a_link(tmp_path: Path) -> None:
    target, path = tmp_path / "dotfiles.toml", tmp_path / "servers.toml"
    target.write_text(GITHUB)
    path.symlink_to(target)
    update_servers(path, lambda servers: {**servers, "a": {"command": "x"}})
    assert path.is_symlink()
    assert sorted(read_servers(target)) == ["a", "github"]


@pytest.mark.parametrize("content", ["[servers\n", "servers = 1\n", "[servers]\na = 1\n", "x = " + "[" * 5000])
def test_a_file_that_cannot_be_read_is_not_written_over(tmp_path: Path, content: str) -> None:
    path = tmp_path / "servers.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"servers\.toml"):
        update_servers(path, lambda servers: {})
    assert path.read_text() == content


def test_an_entry_is_removed_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    assert not remove_server(path, "github")
    assert not path.exists()
    path.write_text(f'[servers.a]\ncommand = "x"\n{GITHUB}')
    assert remove_server(path, "github")
    assert not remove_server(path, "github")
    assert list(read_servers(path)) == ["a"]


def test_a_sign_in_stays_as_it_is_when_the_file_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    oauth = 'grant = "workload"\nissuer = "https://i"\nassertion = { command = ["x", "{audience}"] }\n'
    path.write_text(f'[servers.a]\nurl = "https://h"\n[servers.a.oauth]\n{oauth}{GITHUB}')
    before = read_servers(path)["a"]
    assert remove_server(path, "github")
    assert read_servers(path)["a"] == before


def test_a_writer_that_holds_the_file_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "servers.toml"
    monkeypatch.setattr(state, "LOCK_SECONDS", 0.05)
    with (
        state.locked(path.resolve()),
        pytest.raises(ConfigError, match="held by another mcphost"),
    ):
        update_servers(path, lambda servers: {"a": {"command": "x"}})


WRITER = """
import sys
from pathlib import Path
from mcphost.config import state
from mcphost.config.servers_file import update_servers

state.LOCK_SECONDS = 60
for number in range(10):
    update_servers(Path(sys.argv[1]), lambda servers: {**servers, f"{sys.argv[2]}{number}": {"command": "x"}})
"""


@pytest.mark.slow
def test_nothing_that_two_processes_add_at_once_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "servers.toml"
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")]
    assert [process.wait(120) for process in running] == [0, 0]
    assert len(read_servers(path)) == 20


def test_toml_for_people_has_a_table_for_each_server() -> None:
    assert servers_toml({"a": {"command": "x"}}) == '[servers.a]\ncommand = "x"\n'


def test_an_invalid_entry_is_named_without_its_values() -> None:
    with pytest.raises(ConfigError, match=r"servers\.a\.args: must be a list") as caught:
        validated_server("a", {"command": "x", "args": "s3cret"})
    assert "s3cret" not in str(caught.value)
