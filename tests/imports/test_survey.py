"""The files of known hosts are found, counted and read; nothing else is."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from mcphost.errors import ConfigError
from mcphost.imports.documents import MAX_BYTES
from mcphost.imports.survey import read_any, read_file, read_host, survey

RELATIVE = ("server.js", "src/server.py", "./data", "..", ".", r"dist\index.mjs")
ELSEWHERE = (
    "@ada/tool.js",
    "-c",
    "--out=x.js",
    "/srv/server.js",
    r"C:\srv\server.js",
    "https://a.example/x.js",
    "mcp-server",
)


@pytest.mark.parametrize(
    ("argument", "starts_there"), [*((each, True) for each in RELATIVE), *((each, False) for each in ELSEWHERE)]
)
def test_a_project_server_that_names_its_files_starts_there(tmp_path: Path, argument: str, starts_there: bool) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "node", "args": [argument]}}}))
    (server,) = read_host("cursor", {}, None, "linux", tmp_path)
    assert server.table.get("cwd") == (str(tmp_path) if starts_there else None)


def test_a_relative_script_of_a_users_file_has_a_note(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text('{"mcpServers": {"a": {"command": "node", "args": ["server.js"]}}}')
    (server,) = read_host("cursor", {}, tmp_path, "linux", None)
    assert [note.key for note in server.notes] == ["cwd"]


def place(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_files_with_servers_are_listed_with_how_many_they_have(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    entry = {"command": "uvx", "args": ["x"]}
    own = place(home / ".claude.json", {"mcpServers": {"a": entry}, "projects": {"/p": {"mcpServers": {"b": entry}}}})
    shared = place(project / ".mcp.json", {"mcpServers": {"c": entry}})
    place(home / ".cursor" / "mcp.json", {"mcpServers": {}})
    listed = survey({}, home, "linux", project)
    assert [(each.host.id, each.path, each.scope, each.servers) for each in listed] == [
        ("claude-code", own, "", 2),
        ("claude-code", shared, "project", 1),
    ]


def test_the_servers_of_a_host_are_read_from_all_its_files(tmp_path: Path) -> None:
    project = tmp_path / "project"
    place(tmp_path / ".claude.json", {"projects": {str(project): {"mcpServers": {"b": {"command": "./run"}}}}})
    place(project / ".mcp.json", {"mcpServers": {"c": {"type": "http", "url": "https://x.example/mcp"}}})
    first, second = read_host("claude-code", {}, tmp_path, "linux", project)
    assert first.table == {"command": "./run", "cwd": str(project)}
    assert first.origin.scope == f"project {project}"
    assert second.table == {"url": "https://x.example/mcp", "transport": "http"}


ENTRY = {"mcpServers": {"a": {"command": "a-mcp"}}}


def problems(home: Path, project: Path | None = None) -> dict[str, str]:
    return {each.path.name: each.problem for each in survey({}, home, "linux", project) if each.problem}


def test_a_link_of_a_dotfile_manager_is_followed(tmp_path: Path) -> None:
    kept = place(tmp_path / "dotfiles" / "cursor.json", ENTRY)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").symlink_to(kept)
    (found,) = survey({}, tmp_path, "linux", None)
    assert (found.host.id, found.servers) == ("cursor", 1)


@pytest.mark.hostile("C04")
def test_a_pipe_a_folder_and_a_huge_file_are_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    os.mkfifo(tmp_path / ".cursor" / "mcp.json")
    (tmp_path / ".claude.json").mkdir()
    large = place(tmp_path / ".gemini" / "settings.json", ENTRY)
    os.truncate(large, MAX_BYTES + 1)
    found = problems(tmp_path)
    assert found.keys() == {"mcp.json", ".claude.json", "settings.json"}
    assert "larger" in found["settings.json"]
    with pytest.raises(ConfigError):
        read_host("cursor", {}, tmp_path, "linux", None)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    path = place(tmp_path / ".cursor" / "mcp.json", ENTRY)
    os.chown(path, 65_534, 65_534)
    assert "another user" in problems(tmp_path)["mcp.json"]


def test_a_large_history_of_claude_code_is_read(tmp_path: Path) -> None:
    history = [{"display": "x" * 1000}] * 2000
    place(
        tmp_path / ".claude.json",
        {"oauthAccount": {"token": "never"}, "projects": {"/p": {"history": history}}} | ENTRY,
    )
    (found,) = read_host("claude-code", {}, tmp_path, "linux", None)
    assert "never" not in repr(found)
    assert found.table == {"command": "a-mcp"}


def test_empty_files_of_any_format_hold_no_servers(tmp_path: Path) -> None:
    for name in (".config/goose/config.yaml", ".codex/config.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    place(tmp_path / ".cursor" / "mcp.json", {})
    assert survey({}, tmp_path, "linux", None) == []


def test_variables_of_the_environment_move_a_hosts_folder(tmp_path: Path) -> None:
    place(tmp_path / "elsewhere" / ".claude.json", ENTRY)
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "config.toml").write_text('[mcp_servers.x]\ncommand = "x"\n')
    env = {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere"),
        "CODEX_HOME": str(tmp_path / "codex"),
        "COPILOT_HOME": "rel",
    }
    assert [each.host.id for each in survey(env, tmp_path / "home", "linux", None)] == ["claude-code", "codex"]


@pytest.mark.parametrize(
    ("platform", "env", "path"),
    [
        ("linux", {}, ".config/Code/User/mcp.json"),
        ("linux", {"XDG_CONFIG_HOME": "{home}/xdg"}, "xdg/Code/User/mcp.json"),
        ("darwin", {}, "Library/Application Support/Code/User/mcp.json"),
        ("win32", {"APPDATA": "{home}/Roaming"}, "Roaming/Code/User/mcp.json"),
    ],
)
def test_each_platform_has_its_configuration_folder(
    platform: str, env: dict[str, str], path: str, tmp_path: Path
) -> None:
    place(tmp_path / path, {"servers": {"a": {"command": "a-mcp"}}})
    env = {name: value.replace("{home}", str(tmp_path)) for name, value in env.items()}
    assert [each.host.id for each in survey(env, tmp_path, platform, None)] == ["vscode"]


def test_a_deep_tree_of_plugins_is_searched_within_limits(tmp_path: Path) -> None:
    plugins = tmp_path / ".claude" / "plugins" / "cache"
    near = place(plugins / "market" / "a" / ".mcp.json", ENTRY)
    place(plugins / "node_modules" / "b" / ".mcp.json", ENTRY)
    place(plugins.joinpath(*"0123456789") / ".mcp.json", ENTRY)
    (plugins / "market" / "loop").symlink_to(plugins)
    assert [each.path for each in survey({}, tmp_path, "linux", None)] == [near]


MIXED = {"mcpServers": {"a": {"command": "./x", "timeout": 2000, "env": {"A": "$B"}}}}


@pytest.mark.parametrize(
    ("name", "timeout", "variable"),
    [(".gemini/settings.json", 2.0, "${B}"), ("roo/.roo/mcp.json", 600.0, "$B"), ("other.json", 2.0, "$B")],
)
def test_a_files_path_decides_its_dialect(tmp_path: Path, name: str, timeout: float, variable: str) -> None:
    (found,) = read_file(place(tmp_path / name, MIXED))
    assert (found.table["tool_timeout_sec"], found.table["env"]) == (timeout, {"A": variable})


def test_a_server_of_a_projects_file_starts_in_the_project(tmp_path: Path) -> None:
    (found,) = read_file(place(tmp_path / "roo" / ".roo" / "mcp.json", MIXED))
    assert (found.origin.source, found.table["cwd"]) == ("roo", str(tmp_path / "roo"))


@pytest.mark.parametrize("name", ["missing.json", "a\0b", "folder"])
def test_a_file_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError):
        read_file(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"mcpServers": {"a": {"command": "x"}}}', ["a"]),
        ('{"servers": {"a": {"command": "x"}}}', ["a"]),
        ('{"a": {"command": "x"}, "b": {"url": "https://x.example"}}', ["a", "b"]),
        ('{"command": "x", "args": []}', ["server"]),
        ('{"name": "Nice One", "url": "https://x.example"}', ["Nice-One"]),
        ('"a": {"command": "x"}', ["a"]),
        ('"mcpServers": {"a": {"command": "x"}},', ["a"]),
        ('{"mcp": {"a": {"type": "local", "command": ["x"]}}}', ["a"]),
        ('{"mcp": {"servers": {"a": {"type": "stdio", "command": "x"}}}}', ["a"]),
        ('{"context_servers": {"a": {"command": "x"}}}', ["a"]),
        ('[mcp_servers.a]\ncommand = "x"', ["a"]),
        ("extensions:\n  a: {type: stdio, cmd: x}", ["a"]),
        ("mcpServers:\n  - {name: a, command: x}", ["a"]),
        ("- {name: a, command: x}", ["a"]),
    ],
)
def test_a_paste_of_any_shape_is_recognized(text: str, names: list[str]) -> None:
    assert [(each.name, each.refusal) for each in read_any(text.encode())] == [(name, "") for name in names]


@pytest.mark.parametrize("text", ["", "5", "null", "{}", '{"mcpServers": 5}', '{"a": 1}', "hello", '{"servers": "x"}'])
def test_a_paste_without_servers_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read_any(text.encode())


def test_more_servers_than_anybody_has_are_refused() -> None:
    many = {"mcpServers": {str(number): {"command": "x"} for number in range(501)}}
    with pytest.raises(ConfigError, match="more than 500 servers"):
        read_any(json.dumps(many).encode())


def test_a_command_with_blanks_is_split_at_its_program(tmp_path: Path) -> None:
    (program := tmp_path / "serve").touch()
    (spaced := tmp_path / "my serve").touch()
    lines = {"line": f"{shlex.quote(str(program))} --port 1", "path": str(spaced), "missing": f"{tmp_path}/none at all"}
    document = {"mcpServers": {name: {"command": command} for name, command in lines.items()}}
    found = {server.name: server.table for server in read_any(json.dumps(document).encode())}
    assert found["line"] == {"command": str(program), "args": ["--port", "1"]}
    assert found["path"] == {"command": str(spaced)}
    assert found["missing"] == {"command": lines["missing"]}


def test_servers_under_two_keys_of_a_file_are_all_read(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}, "mcp": 5}'
    file = tmp_path / "some.json"
    file.write_text(text)
    assert [server.name for server in read_file(file)] == ["a", "b"]
    file.write_text('{"mcpServers": {"a": {"command": "x"}}, "servers": "of another kind"}')
    assert [server.name for server in read_file(file)] == ["a"]


def test_a_setting_that_only_the_user_may_make_is_said_to_be_theirs() -> None:
    (server,) = read_any(b'{"mcpServers": {"a": {"command": "x", "trust_hints": true, "sampling": "always", "zz": 1}}}')
    reasons = {note.key: note.reason for note in server.notes}
    assert (
        reasons["trust_hints"]
        == reasons["sampling"]
        == ("this is yours to set in mcphost; it is not taken from elsewhere")
    )
    assert reasons["zz"] == "mcphost has no such setting"
