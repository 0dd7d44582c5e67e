"""The demo server as another host would use it: a real process and plain JSON lines, without our client."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
import zlib

import pytest

from tests.demo.conftest import REVISIONS, Json, Keeper


@pytest.mark.parametrize(("asked", "agreed"), [*zip(REVISIONS, REVISIONS, strict=True), ("2199-01-01", REVISIONS[-1])])
def test_the_revision_asked_for_is_spoken_if_known(newcomer: Keeper, asked: str, agreed: str) -> None:
    greeting = newcomer.greet(asked)
    assert greeting["protocolVersion"] == agreed
    newer: Json = {"completions": {}} if agreed >= "2025-03-26" else {}
    skills: Json = {"extensions": {"io.modelcontextprotocol/skills": {}}}
    more: Json = {"resources": {"subscribe": True}, "prompts": {}} | skills | newer
    if agreed >= "2025-11-25":
        more["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert greeting["capabilities"] == {"logging": {}, "tools": {"listChanged": True}} | more
    assert ("title" in greeting["serverInfo"]) == (agreed >= "2025-06-18")
    assert "ships_in_sight" in greeting["instructions"]
    members = set().union(*newcomer.tools().values())
    assert ("annotations" in members, "outputSchema" in members) == (agreed >= "2025-03-26", agreed >= "2025-06-18")
    assert {"name", "description", "inputSchema"} <= members
    assert ("structuredContent" in newcomer.call("ships_in_sight")) == (agreed >= "2025-06-18")
    kinds = [newcomer.call(name)["content"][-1]["type"] for name in ("sound_foghorn", "fetch_chart")]
    assert kinds == [
        "audio" if agreed >= "2025-03-26" else "text",
        "resource_link" if agreed >= "2025-06-18" else "text",
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b'{"jsonrpc":"2.0","id":9,"method":"ping","x":"\xff"}', -32700),
        (b'{"jsonrpc":"2.0","id":9,"method":"ping","x":NaN}', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":9,"method":"server/discover"}', -32601),
        (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}', -32602),
    ],
)  # fmt: skip
def test_an_invalid_line_is_refused_and_the_next_answered(newcomer: Keeper, line: bytes, code: int) -> None:
    newcomer.write(line)
    newcomer.ask("ping")
    assert newcomer.answer()["result"] == {}
    assert newcomer.heard[0]["error"]["code"] == code


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/list", {"cursor": "page-9"}),
        ("tools/call", {"name": "row_boat"}),
        ("tools/call", {"name": "feed_gulls", "arguments": [1]}),
        ("logging/setLevel", {"level": "loud"}),
        ("tools/call", {"name": "ask_ghost"}),
    ],
)
def test_invalid_params_are_a_protocol_error(keeper: Keeper, method: str, params: Json) -> None:
    keeper.ask(method, params)
    assert keeper.answer()["error"]["code"] == -32602


def test_a_batch_is_answered_in_one_line(newcomer: Keeper) -> None:
    newcomer.greet("2025-03-26")
    newcomer.write(
        b'[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":9,"method":"ping"}]'
    )
    assert newcomer.hear()["method"] == "notifications/message"
    assert [answer["id"] for answer in newcomer.hear()] == [8, 9]


def test_two_pages_of_tools_show_every_field_and_annotation(keeper: Keeper) -> None:
    tools = keeper.tools()
    assert len(keeper.heard) - 1 - len(keeper.notices("message")) == 2
    fields = tools["keep_logbook"]["inputSchema"]["properties"]
    simple = {field["type"] for name, field in fields.items() if name != "relief"}
    assert simple == {"string", "integer", "number", "boolean", "array", "object"}
    assert [name for name, field in fields.items() if "oneOf" in field] == ["sky"]
    assert fields["ships"]["items"]["type"] == "object"
    assert [shape["type"] for shape in fields["relief"]["anyOf"]] == ["object", "string"]
    assert tools["keep_logbook"]["inputSchema"]["required"] == ["keeper", "entry"]
    assert "annotations" not in tools["feed_gulls"]
    claims = {name: tool.get("annotations", {}) for name, tool in tools.items()}
    assert claims["ships_in_sight"]["readOnlyHint"] is True
    assert claims["put_out_light"]["destructiveHint"] is True
    assert claims["fit_lens"]["idempotentHint"] is True


def test_the_logbook_keeps_entries_until_they_are_torn_out(keeper: Keeper) -> None:
    keeper.call("keep_logbook", keeper="Ana", entry="Fog.\nThen none.", tide={"state": "low"}, seen=[])
    page = keeper.call("read_logbook")["content"][0]["text"]
    assert "## 1. Ana, first watch\n\n> Fog.\n> Then none.\n\nsky clear, wind 4, seen: nothing" in page
    relief = {"keeper": "Bo", "minutes_late": 5}
    ships = [{"name": "Limpet"}, {"name": "Kittiwake"}]
    keeper.call("keep_logbook", keeper="Ana", entry="e", ships=ships, relief=relief)
    keeper.call("keep_logbook", keeper="Bo", entry="e", relief="He overslept.")
    pages = keeper.call("read_logbook")["content"][0]["text"]
    assert "seen: puffins, Limpet, Kittiwake; relieved by Bo, 5 minutes late" in pages
    assert "seen: puffins; relieved by nobody: He overslept." in pages
    keeper.call("tear_out_pages")
    assert "empty" in keeper.call("read_logbook")["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "keeper: is required; entry: is required"),
        ({"keeper": "", "entry": "e"}, "keeper: 0 is below 1"),
        ({"keeper": "k", "entry": "e", "wind_force": 13}, "wind_force: 13 is above 12"),
        ({"keeper": "k", "entry": "e", "wind_force": True}, "wind_force: should be of type integer"),
        ({"keeper": "k", "entry": "e", "sky": "green"}, "sky: should be one of clear, cloud, fog, storm"),
        ({"keeper": "k", "entry": "e", "seen": ["a", 1]}, "seen[1]: should be of type string"),
        ({"keeper": "k", "entry": "e", "tide": {"state": "odd"}}, "tide.state: should be one of rising"),
        ({"keeper": "k", "entry": "e", "ships": [{"hailed": True}]}, "ships[0].name: is required"),
        ({"keeper": "k", "entry": "e", "relief": {"minutes_late": 1}}, "relief.keeper: is required"),
        ({"keeper": "k", "entry": "e", "relief": ""}, "relief: 0 is below 1"),
        ({"keeper": "k", "entry": "e", "relief": 7}, "relief: should be of type"),
        ({"keeper": "k", "entry": "e", "x": 1}, "x: no such argument"),
    ],
)
def test_arguments_that_do_not_fit_are_a_failure_of_the_tool(keeper: Keeper, arguments: Json, complaint: str) -> None:
    result = keeper.call("keep_logbook", **arguments)
    assert result["isError"] is True
    assert complaint in result["content"][0]["text"]


def test_ships_in_sight_is_a_table_that_fits_its_schema(keeper: Keeper) -> None:
    row = keeper.tools()["ships_in_sight"]["outputSchema"]["properties"]["ships"]["items"]
    result = keeper.call("ships_in_sight", kind="tall ship", within_miles=10)
    assert [ship["name"] for ship in result["structuredContent"]["ships"]] == ["Great Auk"]
    assert set(result["structuredContent"]["ships"][0]) == set(row["required"])
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_results_have_every_kind_of_content(keeper: Keeper) -> None:
    assert json.loads(keeper.call("read_instruments")["content"][0]["text"])["kettle"] == "on"
    assert keeper.call("read_handbook")["content"][0]["text"].startswith("# The keeper's handbook")
    assert [block["type"] for block in keeper.call("fetch_chart", how="both")["content"]] == [
        "resource",
        "resource_link",
    ]
    sound = base64.b64decode(keeper.call("sound_foghorn", blasts=2)["content"][1]["data"])
    assert sound[:4] + sound[8:16] == b"RIFFWAVEfmt "
    assert struct.unpack_from("<I", sound, 40)[0] == len(sound) - 44


@pytest.mark.parametrize("hour", [0, 7, 12, 19])
def test_the_picture_is_a_png(keeper: Keeper, hour: int) -> None:
    block = keeper.call("paint_view", hour=hour)["content"][1]
    picture = base64.b64decode(block["data"])
    assert (block["mimeType"], picture[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack_from(">II", picture, 16)
    size = struct.unpack_from(">I", picture, 33)[0]
    assert len(zlib.decompress(picture[41 : 41 + size])) == height * (width * 3 + 1)


def test_a_slow_call_reports_progress_and_blocks_nothing(keeper: Keeper) -> None:
    climb = keeper.start("climb_tower", token="up", seconds=0.2)
    keeper.ask("ping")
    keeper.answer()
    assert all(message.get("id") != climb for message in keeper.heard)
    assert "At the top" in keeper.answer(climb)["result"]["content"][0]["text"]
    steps = keeper.notices("progress")
    assert [step["progress"] for step in steps] == sorted(step["progress"] for step in steps)
    assert steps[-1] == {"progressToken": "up", "progress": 199, "total": 199, "message": "the gallery"}


def test_progress_may_have_no_total_and_comes_only_with_a_token(keeper: Keeper) -> None:
    keeper.start("watch_horizon", token=0, seconds=0.5)
    keeper.answer()
    assert [(step["progressToken"], "total" in step) for step in keeper.notices("progress")] == [(0, False)] * 2
    keeper.heard.clear()
    keeper.call("climb_tower", seconds=0)
    assert keeper.notices("progress") == []


def test_a_cancelled_call_stops_and_is_never_answered(keeper: Keeper) -> None:
    climb = keeper.start("climb_tower", seconds=600)
    keeper.send("notifications/cancelled", {"requestId": climb, "reason": "tea"})
    while "called back" not in str(keeper.heard[-1:]):
        keeper.heard.append(keeper.hear())
    keeper.ask("ping")
    keeper.answer()
    assert all(message.get("id") != climb for message in keeper.heard)


@pytest.mark.parametrize("params", [{}, {"requestId": 99}, {"requestId": [1]}, {"requestId": None}])
def test_a_cancellation_of_nothing_is_ignored(keeper: Keeper, params: Json) -> None:
    keeper.send("notifications/cancelled", params)
    keeper.ask("ping")
    assert keeper.answer()["result"] == {}


def test_a_storm_is_as_loud_as_the_client_wants_it(keeper: Keeper) -> None:
    keeper.ask("logging/setLevel", {"level": "debug"})
    keeper.answer()
    keeper.heard.clear()
    keeper.call("brew_storm", lines=8, on_stderr=3, seconds=0)
    assert len({line["level"] for line in keeper.notices("message")}) == 8
    keeper.ask("logging/setLevel", {"level": "alert"})
    keeper.answer()
    keeper.heard.clear()
    keeper.call("brew_storm", lines=16, on_stderr=0, seconds=0)
    assert [line["level"] for line in keeper.notices("message")] == ["alert", "emergency"] * 2
    assert keeper.process.stdin
    _, errors = keeper.process.communicate(timeout=30)
    assert errors.count(b"[storm]") == 3


def test_the_boathouse_adds_a_tool_and_takes_it_away(keeper: Keeper) -> None:
    for is_there in (True, False):
        keeper.heard.clear()
        keeper.call("open_boathouse")
        assert len(keeper.notices("tools/list_changed")) == 1
        assert ("row_boat" in keeper.tools()) is is_there


def test_another_lens_changes_the_definition_of_the_lamp(keeper: Keeper) -> None:
    before = keeper.tools()
    for changes in (1, 0):
        keeper.heard.clear()
        keeper.call("fit_lens", lens="first-order")
        assert len(keeper.notices("tools/list_changed")) == changes
    after = keeper.tools()
    assert [name for name in before if before[name] != after[name]] == ["flash_lamp"]
    assert "isError" not in keeper.call("flash_lamp", times=12)


def test_a_ship_that_does_not_answer_is_a_failure_of_the_tool(keeper: Keeper) -> None:
    assert keeper.call("hail_ship")["isError"] is True
    assert "we see your light" in keeper.call("hail_ship", name="Kittiwake")["content"][0]["text"]


def test_a_lone_surrogate_leaves_the_line_valid_utf_8(keeper: Keeper) -> None:
    assert "\N{REPLACEMENT CHARACTER}" in keeper.call("flash_lamp", message="\ud800")["content"][0]["text"]


def test_putting_out_the_light_ends_the_server_without_an_answer(keeper: Keeper) -> None:
    keeper.start("put_out_light")
    output, errors = keeper.process.communicate(timeout=30)
    assert (keeper.process.returncode, b"The light is out." in errors) == (13, True)
    assert b'"id":' not in output


def test_it_ends_at_once_when_its_input_ends_even_in_mid_climb(keeper: Keeper) -> None:
    keeper.start("climb_tower", seconds=600)
    keeper.process.communicate(timeout=30)
    assert keeper.process.returncode == 0


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, mcphost.demo.server; print({*sys.modules} & {'pydantic', 'httpx', 'asyncio', 'textual'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"set()\n"
