"""Edits of texts that were found."""

from __future__ import annotations

from pathlib import Path

from mcphost.config import Config, LoadedConfig
from mcphost.config.servers_file import read_servers
from mcphost.imports.found import FoundServer, Origin, digest_of
from mcphost.imports.importer import ImportAnswer, Importer, ImportStatus
from mcphost.imports.remembered import ImportRecords


async def test_an_edited_server_is_the_same_at_the_next_import(tmp_path: Path) -> None:
    table = {"command": "x", "args": ["--dir", "/Users/ada"], "env": {"MODE": "a"}}
    found = FoundServer("files", Origin("cursor", "/home/ada/.cursor/mcp.json", "files", digest_of(table)), table)
    path = tmp_path / "servers.toml"

    def importer() -> Importer:
        return Importer(path, LoadedConfig(Config()), ImportRecords(tmp_path, print), None)

    (candidate,) = importer().compare([found]).candidates
    edited = candidate.edited({("args", 1): "/home/ada", ("env", "MODE"): "b"})
    await importer().store(edited, ImportAnswer())
    assert read_servers(path)["files"]["args"] == ["--dir", "/home/ada"]
    assert read_servers(path)["files"]["env"] == {"MODE": "b"}
    (again,) = importer().compare([found]).candidates
    assert again.status is ImportStatus.SAME
    assert table["args"] == ["--dir", "/Users/ada"]
