"""The tools of all servers that a model gets, and their names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given as every
from hypothesis import strategies

from mcphost.host.catalog import CatalogTool
from mcphost.host.chat import chat as chat_module
from mcphost.host.chat.tool_selection import SEARCH, CheckedTools, ToolSelection, alias
from mcphost.protocol.models.tools import Tool
from tests.host.chat.scripted_model import chat_host, given, text, tool_result, use, uses
from tests.host.conftest import echo

ALLOW = {"default": "allow"}
NAMES = strategies.text("ab_-.\u200b世", min_size=1, max_size=80)


def offered(server: str, name: str, schema: Any = None, about: str = "") -> CatalogTool:
    return CatalogTool(server, Tool.read({"name": name, "description": about, "inputSchema": schema or {}}))


def box(*offers: CatalogTool, limit: int = 10**9) -> ToolSelection:
    checked = CheckedTools()
    assert checked.check(offers, 60)
    return ToolSelection(offers, lambda server, tool: True, limit, checked)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("files", "read_file", "files__read_file"),
        ("files", "read__file", "files__read__file"),
        ("a_b", "c", "a_b__c"),
        ("a", "_b", r"a___b_[0-9a-f]{8}"),
        ("a__b", "c", r"a__b__c_[0-9a-f]{8}"),
        ("a", "b_0123abcd", r"a__b_0123abcd_[0-9a-f]{8}"),
        ("a", "ns/read.file", r"a__ns_read_file_[0-9a-f]{8}"),
        ("a", "e\u200bcho", r"a__e_cho_[0-9a-f]{8}"),
        ("very-long-server-name", "p" * 60 + "_create", r"very-long-server__p+-p+_create_[0-9a-f]{8}"),
        ("a", "create_" + "p" * 80, r"a__create_p+-p+_[0-9a-f]{8}"),
    ],
)
def test_a_name_keeps_what_tells_tools_apart(server: str, tool: str, name: str) -> None:
    assert re.fullmatch(name, alias(server, tool))
    assert len(alias(server, tool)) <= 64


@pytest.mark.hostile("P05")
@every(NAMES, NAMES, NAMES, NAMES)
def test_no_server_can_choose_a_name_that_looks_like_anothers(a: str, b: str, c: str, d: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", alias(a, b))
    assert (alias(a, b) == alias(c, d)) == ((a, b) == (c, d))


@pytest.mark.hostile("M02", "P05")
@pytest.mark.requirement("HOST-06")
def test_the_same_tool_of_two_servers_is_two_tools() -> None:
    tools = box(offered("a", "search"), offered("b", "search"))
    assert [(entry.server, entry.name) for entry in tools.entries] == [("a", "a__search"), ("b", "b__search")]
    assert [tools.find(name) for name in ("search", "A__search", "a__search ", "a__sеarch")] == [None] * 4


def test_tools_are_ordered_by_configuration_and_then_by_name() -> None:
    first = box(offered("z", "b"), offered("z", "a"), offered("a", "c"))
    second = box(offered("z", "a"), offered("z", "b"), offered("a", "c"))
    assert [entry.name for entry in first.entries] == ["z__a", "z__b", "a__c"]
    assert first.offered(()) == second.offered(())


@pytest.mark.hostile("L05")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, "its arguments are not an object"),
        ({"type": "object", "properties": {"naïve name": {}}}, "models take no argument of the name"),
        (
            {"type": "object", "properties": {"x": {"$ref": "https://evil.test/x"}}},
            "external $ref 'https://evil.test/x'",
        ),
        ({"type": "nonsense"}, "malformed"),
    ],
)
def test_a_tool_that_no_vendor_takes_is_left_out_with_a_reason(schema: Any, reason: str) -> None:
    tools = box(offered("a", "bad", schema), offered("a", "good"))
    assert [entry.tool.name for entry in tools.entries] == ["good"]
    ((dropped),) = tools.dropped
    assert (dropped.tool, reason in dropped.reason) == ("bad", True), dropped


@pytest.mark.requirement("EXT-03")
def test_a_tool_for_an_apps_user_interface_alone_is_given_to_no_model() -> None:
    meta = {"ui": {"resourceUri": "ui://a/panel", "visibility": ["app"]}}
    app_only = CatalogTool("a", Tool.read({"name": "refresh", "inputSchema": {}, "_meta": meta}))
    shown = CatalogTool("a", Tool.read({"name": "panel", "inputSchema": {}, "_meta": {"ui": {"resourceUri": "ui:a"}}}))
    tools = box(app_only, shown)
    assert [entry.tool.name for entry in tools.entries] == ["panel"]
    assert [(each.tool, "not for models" in each.reason) for each in tools.dropped] == [("refresh", True)]
    assert tools.find("a__refresh") is None


@pytest.mark.requirement("SCHEMA-06")
def test_unknown_parts_of_a_schema_reach_the_model() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"anyOf": [{"$ref": "#/$defs/y"}, {"type": "null"}], "x-hint": 1}},
        "$defs": {"y": {"type": "string", "format": "made-up"}},
        "x-more": [1],
    }
    (tool,) = box(offered("a", "t", schema)).offered(())
    assert tool.input_schema == schema


def test_what_vendors_refuse_at_the_top_of_a_schema_is_said_in_words() -> None:
    (tool,) = box(offered("a", "t", {"anyOf": [{"required": ["x"]}]}, "does")).offered(())
    assert tool.input_schema == {"type": "object", "properties": {}}
    assert tool.description == '[a] does\nThe arguments must also fit {"anyOf": [{"required": ["x"]}]}'


@pytest.mark.hostile("P01")
@pytest.mark.requirement("SEC-13")
def test_a_description_says_whose_it_is_and_hides_nothing() -> None:
    (tool,) = box(offered("a", "t", about="harmless\U000e0041")).offered(())
    assert tool.description == "[a] harmless⟨U+E0041⟩"


@pytest.mark.requirement("TOOLS-12")
async def test_what_is_switched_off_is_neither_offered_nor_called() -> None:
    script = uses(use("a__echo", text="x")), text("hm")
    async with chat_host(*script, servers={"a": echo(), "b": echo()}, policy=ALLOW) as host:
        await host.servers.ready()
        await host.chat.tools_checked()
        assert host.chat.tools.costs().keys() == {"a", "b"}
        host.chat.switch("a", on=False)
        host.chat.switch("b", "echo", on=False)
        await host.say("echo")
        assert host.model.offered == [entry.name for entry in host.chat.tools.entries]
        assert not {"a__echo", "b__echo"} & set(host.model.offered)
        assert "b__add" in host.model.offered
        assert host.tool_calls.calls == {}
        host.chat.switch("b", "echo", on=True)
        assert "b__echo" in [entry.name for entry in host.chat.tools.entries]


async def test_of_many_tools_the_model_gets_one_that_searches_the_others() -> None:
    server = given({"name": "weather", "description": "Tells the forecast of a city", "answer": tool_result("rain")})
    script = (
        uses(use(SEARCH, query="city forecast")),
        uses(use("a__weather")),
        uses(use(SEARCH, query="zzz")),
        text("ok"),
    )
    async with chat_host(*script, servers={"a": server}, policy=ALLOW, chat={"tools_tokens": 100}) as host:
        await host.servers.ready()
        turn = await host.say("what is the weather?")
        offers = [[tool.name for tool in request.tools] for request in host.model.requests]
        assert len(host.tool_calls.calls) == 1
    assert offers == [[SEARCH], *[[SEARCH, "a__weather"]] * 3]
    assert [each.state for each in turn.uses] == ["done"] * 3
    assert "Nothing fits" in str(turn.uses[-1].result)
    assert "a__weather: Tells the forecast" in str(turn.uses[0].result)


def test_more_tools_than_vendors_take_are_searched() -> None:
    tools = box(*(offered("a", f"t{n}", about="a long word") for n in range(200)))
    assert [tool.name for tool in tools.offered(["a__t7", "gone"])] == [SEARCH, "a__t7"]
    assert len(tools.search("long")) == 8


def test_an_unchanged_tool_is_not_checked_again() -> None:
    x, y, again = offered("a", "x"), offered("a", "y"), offered("a", "x")
    checked = CheckedTools()
    assert checked.check([x, y], 60)
    before = checked.selected(x)
    assert checked.check([x, y], 0)
    assert not checked.check([again, y], 0)
    assert checked.check([again], 60)
    assert checked.selected(again) is not before
    assert checked.selected(x) is checked.selected(y) is None


async def test_all_of_very_many_tools_are_checked_before_the_model_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat_module, "CHECK_SECONDS", 0.0005)
    async with chat_host(text("ok"), servers={"a": echo("--tools", 800)}, policy=ALLOW) as host:
        await host.servers.ready()
        assert len(host.chat.tools.entries) < 800
        await host.say("hello")
        (request,) = host.model.requests
        assert "a (800)" in (request.tools[0].description or "")
        assert len(host.chat.tools.entries) == 800
