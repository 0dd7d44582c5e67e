from __future__ import annotations

from typing import Any

import pytest

from mcphost.client.paging import ListedItems, Rejected
from mcphost.config import ServerConfig
from mcphost.errors import UnknownName
from mcphost.host.catalog import DEFINITION_CHARACTERS, Catalog, usable
from mcphost.protocol.models.tools import Tool


def tools(*names: str, **more: Any) -> list[Tool]:
    return [Tool.read({"name": name, **more}) for name in names]


def keys(catalog: Catalog) -> list[tuple[str, str]]:
    return [offered.key for offered in catalog.tools()]


@pytest.mark.hostile("P05")
@pytest.mark.requirement("HOST-06", "TOOLS-27")
def test_a_tool_is_its_server_and_its_name() -> None:
    """No name a server chooses can pass for a tool of another."""
    catalog = Catalog(["files", "evil"])
    catalog.keep("evil", tools("read", "files:read", "files__read", "Read"))
    catalog.keep("files", tools("read"))
    assert keys(catalog) == [
        ("files", "read"), ("evil", "read"), ("evil", "files:read"), ("evil", "files__read"), ("evil", "Read"),
    ]  # fmt: skip
    assert catalog.tool("files", "read") is catalog.tools("files")[0].tool
    with pytest.raises(UnknownName, match="files has no tool 'files__read'; it has: read"):
        catalog.tool("files", "files__read")


def test_servers_keep_the_configured_order() -> None:
    catalog = Catalog(["a", "b"])
    for server in ("b", "c", "a"):
        catalog.keep(server, tools("t"))
    assert keys(catalog) == [("a", "t"), ("b", "t"), ("c", "t")]
    catalog.put_in_order(["c", "b", "a"])
    catalog.forget("b")
    assert keys(catalog) == [("c", "t"), ("a", "t")]
    assert catalog.tools("b") == ()


def test_a_long_list_of_names_is_cut_in_the_error() -> None:
    catalog = Catalog(["a"])
    catalog.keep("a", tools(*(f"t{n}" for n in range(50))))
    with pytest.raises(UnknownName, match=r"t11 …$"):
        catalog.tool("a", "x")


@pytest.mark.hostile("L03", "L04", "P05")
@pytest.mark.parametrize(
    ("listed", "config", "kept", "reasons"),
    [
        (tools("a", "b", "a"), {}, ["a", "b"], ["the server lists this name twice; the first is used"]),
        (tools("a", "b"), {"disabled_tools": ["b"]}, ["a"], ["left out by enabled_tools or disabled_tools"]),
        (tools("a", "b"), {"enabled_tools": ["b"]}, ["b"], ["left out by enabled_tools or disabled_tools"]),
        (
            tools("a", description="d" * DEFINITION_CHARACTERS),
            {},
            [],
            ["its definition has more than the 65536 characters"],
        ),
        (tools("a", description="d" * (DEFINITION_CHARACTERS - 100)), {}, ["a"], []),
    ],
)
@pytest.mark.requirement("SEC-07")
async def test_what_may_not_be_used_is_left_out_with_its_reason(
    listed: list[Tool], config: dict[str, Any], kept: list[str], reasons: list[str]
) -> None:
    """Doubles and giants are refused with a message, never silently."""
    earlier = Rejected("odd", "was no tool")
    entry = ServerConfig.model_validate({"command": "x", **config}, strict=False)
    found, rejected = await usable(ListedItems(listed, [earlier]), entry)
    assert [tool.name for tool in found] == kept
    assert rejected[0] == earlier
    assert [each.reason[: len(reason)] for each, reason in zip(rejected[1:], reasons, strict=True)] == reasons
