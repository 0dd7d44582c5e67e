"""Locks as files: the same surface comes back, and nothing is in them that does not belong there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcphost.config.surface_lock import SurfaceLock, lock_text, policy_lock, read_lock
from mcphost.errors import ConfigError
from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.findings import compare_surfaces
from mcphost.host.comparison.lock_file import full_path, full_server, locked_server, open_lock, write_lock
from mcphost.host.comparison.surface import Surface, surface
from mcphost.protocol.models.base import digest_of
from mcphost.protocol.models.tools import Tool

TOOL: dict[str, Any] = {
    "name": 'say "hi"\n\ud800',
    "description": "Say it.",
    "inputSchema": {"type": "object", "properties": {"a.b": {"type": "string"}}, "required": ["a.b"]},
    "annotations": {"readOnlyHint": True},
}


def made(*tools: dict[str, Any], **more: Any) -> Surface:
    parts: dict[str, Any] = {"capabilities": {"tools": {}, "experimental": {"x": 2}}, "instructions": "Be careful."}
    parts |= {"server_info": {"name": "says", "version": "1.0"}, "identity": "uvx says", "revision": "2025-11-25"}
    return surface("says", entry="says", offered={CatalogKind.TOOLS: tools}, **{**parts, **more})


def lock_of(found: Surface, mask: Any = str) -> SurfaceLock:
    return SurfaceLock(version=1, servers={"says": locked_server(found, mask, resources=False)})


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, content = tmp_path / "mcphost.lock", lock_of(made(TOOL))
    write_lock(path, content, None)
    found = open_lock(path)
    assert found.content == content
    kept = found.surface("says")
    assert kept is not None
    assert compare_surfaces(kept, made(TOOL)) == []
    assert found.surface("other") is None
    assert not full_path(path).exists()


def test_whole_definitions_beside_a_lock_tell_more(tmp_path: Path) -> None:
    path, before = tmp_path / "mcphost.lock", made(TOOL)
    write_lock(path, lock_of(before), {"says": full_server(before, str, resources=False)})
    changed = made({**TOOL, "description": "Say it twice."}, instructions="Be quick.")
    kept = open_lock(path).surface("says")
    assert kept is not None
    found = [(each.before, each.after) for each in compare_surfaces(kept, changed)]
    assert found == [("Be careful.", "Be quick."), ("Say it.", "Say it twice.")]


def test_whole_definitions_from_elsewhere_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "mcphost.lock"
    write_lock(
        path, lock_of(made(TOOL)), {"says": full_server(made({**TOOL, "description": "x"}), str, resources=False)}
    )
    kept = open_lock(path).surface("says")
    assert kept is not None
    assert [item.definition for item in kept.kinds[CatalogKind.TOOLS].values()] == [None]


def test_a_secret_that_a_server_repeats_is_not_written(tmp_path: Path) -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "•••")

    hostile = made(
        {**TOOL, "description": "hunter2", "inputSchema": {"properties": {"hunter2": {}}}, "hunter2": 1},
        {"name": "hunter2"},
        {"name": "named", "inputSchema": {"properties": {"hunter2": {}}}},
        instructions="hunter2",
        server_info={"name": "hunter2", "version": "hunter2"},
        capabilities={"hunter2": {}},
        identity="run hunter2",
    )
    path = tmp_path / "mcphost.lock"
    write_lock(path, lock_of(hostile, mask), {"says": full_server(hostile, mask, resources=False)})
    assert all("hunter2" not in each.read_text() for each in (path, full_path(path)))


def test_a_lock_depends_on_no_order() -> None:
    tools = [{**TOOL, "name": name} for name in "abc"]
    assert lock_text(lock_of(made(*tools))) == lock_text(lock_of(made(*reversed(tools))))


def test_the_digest_of_a_tool_is_the_one_in_the_lock() -> None:
    tool = {**TOOL, "name": "say"}
    volatile = {**tool, "_meta": {"traceparent": "00"}}
    assert Tool.read(volatile).digest == digest_of(tool) == Tool.read(tool).digest
    assert Tool.read({**tool, "title": "x"}).digest != Tool.read(tool).digest


BROKEN = {
    "not TOML": ("version =", "is not a lock"),
    "another version": ("version = 2", "of version 1"),
    "no digest": ('version = 1\n[servers.a.tools.t]\ndefinition = "x"', "servers.a.tools.t.definition"),
    "an unknown key": ("version = 1\n[servers.a]\nallow = true", "servers.a"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_lock_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    path, (text, words) = tmp_path / "mcphost.lock", BROKEN[name]
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_lock(path)
    assert caught.value.path == path
    assert words in str(caught.value)


def test_a_policy_needs_its_lock(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="write it with mcphost lock"):
        policy_lock(tmp_path / "mcphost.lock")
