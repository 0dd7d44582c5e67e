"""A call as texts to copy: they mean the same where they are pasted, and hold no secret."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.cli.commands.call import read_arguments, typed_arguments
from mcphost.cli.parser import parse
from mcphost.config import Config, ServerConfig, Values
from mcphost.errors import NotDone
from mcphost.host.consent.argument_rules import fits
from mcphost.host.tool_calls.copies import CallCopies, CopyKind, command_line, curl, json_rpc, rule
from mcphost.protocol.models.tools import Tool
from mcphost.protocol.wire.jsonrpc import Request
from tests.host.conftest import HostOf, echo

SECRET = "hunter2-hunter2"


def mask(text: str) -> str:
    return text.replace(SECRET, "•••")


def tool(name: str = "act", **more: Any) -> Tool:
    return Tool.read({"name": name, "inputSchema": {"type": "object"}, **more})


def read_back(words: list[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that ``mcphost`` would send for these words of a command line."""
    options = parse(words[1:])
    return typed_arguments(read_arguments(options.pairs, options.args), schema)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
KINDS = [{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}, {"enum": ["a", 1]}, {}]


@given(st.dictionaries(texts, values, max_size=4), st.sampled_from(KINDS))
def test_the_command_line_reads_back_the_same_arguments(arguments: dict[str, Any], kind: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": dict.fromkeys(list(arguments)[:2], kind)}
    written = command_line("files", tool("read it", inputSchema=schema), arguments, mask).text
    words = shlex.split(written)
    assert words[:4] == ["mcphost", "call", "files", "read it"]
    assert read_back(words, schema) == arguments
    assert written.isprintable()


def test_plain_texts_are_pairs_and_other_values_are_json() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}}}
    written = command_line(
        "files", tool("read", inputSchema=schema), {"path": "a b", "depth": 2, "all": True}, mask, Path("/c d.toml")
    )
    assert written.text == "mcphost call --config '/c d.toml' files read 'path=a b' depth:=2 all:=true"
    assert parse(shlex.split(written.text)[1:]).config == "/c d.toml"


@pytest.mark.hostile("P09")
@pytest.mark.parametrize("hidden", ["\x1b[201~rm -rf ~\n", "a\u202eb", "line\nline", "\x9b0m", "\U000e0041"])
def test_nothing_that_a_terminal_obeys_gets_into_a_copy(hidden: str) -> None:
    request = Request(1, "tools/call", {"name": "act", "arguments": {"text": hidden, hidden: 1}})
    server = ServerConfig(url="https://example.com/mcp")
    for copy in (
        command_line("files", tool(), {"text": hidden, hidden: 1}, mask),
        json_rpc(request, mask),
        curl(server, request, {}, mask, version="2025-11-25"),
        rule("files", tool(hidden), {"text": hidden}, mask),
    ):
        assert all(character.isprintable() for character in copy.text.replace("\n", "")), copy
    assert tomllib.loads(copy.text)["servers"]["files"]["tools"].keys() == {hidden}


@pytest.mark.parametrize(
    ("server", "name", "value"), [("a", "-x", "v"), ("a", "b\n", "v"), ("a", "b", "\ud800"), ("--yes", "b", "v")]
)
def test_a_command_line_that_cannot_be_typed_is_refused(server: str, name: str, value: str) -> None:
    with pytest.raises(NotDone):
        command_line(server, tool(name), {"text": value}, mask)


@pytest.mark.hostile("P11")
def test_secrets_become_variables_of_the_shell() -> None:
    arguments = {"token": SECRET, "path": f"x{SECRET}", "deep": {"a": [f"{SECRET}!", "b"]}}
    copy = command_line("files", tool(), arguments, mask)
    assert copy.text == (
        """mcphost call files act token="$TOKEN" path="$SECRET_PATH" """
        """'deep:={"a": ["'"$SECRET_A_1"'", "b"]}'"""
    )
    assert copy.variables == ("TOKEN", "SECRET_PATH", "SECRET_A_1")


@pytest.mark.hostile("P11")
def test_two_secrets_do_not_share_a_variable() -> None:
    copy = command_line("files", tool(), {"a": {"key": f"1{SECRET}"}, "b": {"key": f"2{SECRET}"}}, mask)
    assert copy.variables == ("KEY", "KEY_2")
    same = command_line("files", tool(), {"a": {"key": SECRET}, "b": {"key": SECRET}}, mask)
    assert same.variables == ("KEY",)


def test_json_rpc_is_the_request_without_its_secrets() -> None:
    params = {"name": "act", "arguments": {"n": 1, "pass": SECRET}, "_meta": {"a": "ö"}}
    copy = json_rpc(Request(7, "tools/call", params), mask)
    assert json.loads(copy.text) == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {**params, "arguments": {"n": 1, "pass": "$PASS"}},
    }
    assert (copy.variables, "ö" in copy.text) == (("PASS",), True)


@pytest.mark.hostile("P11")
def test_curl_has_every_header_and_no_secret() -> None:
    server = ServerConfig.model_validate(
        {
            "url": f"https://example.com/${{TENANT}}/mcp?api_key={SECRET}",
            "http_headers": {"X-Api-Key": "literal-key", "X-Plain": "yes", "X-Ref": "a ${keyring:my-token}"},
            "env_http_headers": {"X-Team": "TEAM_ID"},
            "bearer_token_env_var": "GH_TOKEN",
        },
        strict=False,
    )
    request = Request(1, "tools/call", {"name": "act", "arguments": {"it": "it's", "token": SECRET}})
    copy = curl(server, request, {}, mask, version="2025-11-25", session=True)
    for secret in (SECRET, "literal-key"):
        assert secret not in copy.text
    words = shlex.split(copy.text.replace("\\\n", " "))
    headers = {words[at + 1] for at, word in enumerate(words) if word == "-H"}
    assert headers == {
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2025-11-25",
        "Mcp-Session-Id: $MCP_SESSION_ID",
        "X-Api-Key: $X_API_KEY",
        "X-Plain: yes",
        "X-Ref: a $MY_TOKEN",
        "X-Team: $TEAM_ID",
        "Authorization: Bearer $GH_TOKEN",
    }
    assert words[2] == "https://example.com/$TENANT/mcp?api_key=$SECRET"
    assert json.loads(words[-1])["params"]["arguments"] == {"it": "it's", "token": "$TOKEN"}


@pytest.mark.hostile("P11")
def test_a_header_that_repeats_a_secret_argument_is_a_variable() -> None:
    encoded = "=?base64?aHVudGVyMi1odW50ZXIyIMO2?="  # the secret and an ö
    headers = {"Mcp-Method": "tools/call", "Mcp-Param-Key": encoded}
    server = ServerConfig(url="https://example.com/mcp")
    copy = curl(server, Request(1, "tools/call", {}), headers, mask, version="2026-07-28", signed=True)
    assert "aHVudGVy" not in copy.text
    assert '"$MCP_PARAM_KEY"' in copy.text
    assert '"$TOKEN"' in copy.text


def test_curl_with_a_bound_token_asks_for_a_proof() -> None:
    server = ServerConfig(url="https://example.com/mcp")
    copy = curl(server, Request(1, "tools/call", {}), {}, mask, version="2026-07-28", signed=True, bound=True)
    assert "-H 'Authorization: DPoP '\"$TOKEN\"" in copy.text
    assert "-H 'DPoP: '\"$PROOF\"" in copy.text


@pytest.mark.parametrize(
    ("claims", "arguments", "entry"),
    [
        ({}, {"n": 1}, {"approval": "allow"}),
        ({"destructiveHint": True}, {"sql": "SELECT 1"}, {"approval": "ask"}),
        ({}, {"sql": "SELECT 1", "key": SECRET}, {"allow_when": {"sql": r"^SELECT\b"}}),
    ],
)
def test_the_rule_is_a_table_that_the_configuration_takes(
    claims: dict[str, bool], arguments: dict[str, Any], entry: dict[str, Any]
) -> None:
    copy = rule("files", tool('a "b".c', annotations=claims), arguments, mask)
    loaded = tomllib.loads(f'[servers.files]\ncommand = "x"\n{copy.text}')
    assert loaded["servers"]["files"]["tools"] == {'a "b".c': entry}
    config = Config.model_validate(loaded, strict=False)
    when = config.servers["files"].tools['a "b".c'].allow_when
    assert not when or fits(when, arguments)


@pytest.mark.slow
async def test_the_copies_of_a_running_server_are_those_of_its_session(host: HostOf) -> None:
    async with host(a=echo()) as running:
        await running.servers.ready()
        await running.all_listed("a")
        values = Values({}, None, None)
        copies = CallCopies(running.servers, running.catalog, running.traffic, values.mask)
        found = {copy.kind: copy for copy in copies.of("a", "echo", {"text": "hi"}, None)}
        demo = copies.of("a", "echo", {"text": "hi"}, None, demo=True)[0]
    assert found[CopyKind.COMMAND].text == "mcphost call a echo text=hi"
    request = json.loads(found[CopyKind.JSON_RPC].text)
    assert (request["method"], request["params"]["arguments"]) == ("tools/call", {"text": "hi"})
    assert found[CopyKind.CURL].problem == "only for servers with an address"
    assert "[servers.a.tools.echo" in found[CopyKind.RULE].text
    assert shlex.split(shlex.split(demo.text)[2].removeprefix("stdio:"))[-1].endswith("echo.py")
