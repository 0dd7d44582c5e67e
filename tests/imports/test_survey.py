"""The files of known hosts are found, counted and read; nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

from mcphost.imports.survey import read_host, survey


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
