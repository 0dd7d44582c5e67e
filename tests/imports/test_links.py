"""Pasted links: each host's shape, and that no link does harm."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.config import references_within
from mcphost.errors import ConfigError
from mcphost.imports.found import FoundServer
from mcphost.imports.inputs import fill_in
from mcphost.imports.links import MOST_BYTES, is_link, read_link
from tests.imports.pasted_links import CURSOR, ENTRY, LINKS, encoded

TABLE = {"command": "npx", "args": ["-y", "@ada/tides@1.2.0"], "env": {"COAST": "north"}}


def one(link: str) -> FoundServer:
    assert is_link(link)
    (server,) = read_link(link)
    return server


@pytest.mark.hostile("C04")
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_a_link_of_each_host_is_the_server_that_it_offers(link: str) -> None:
    server = one(link)
    assert (server.name, server.table, server.refusal) == ("tides", TABLE, "")
    assert server.origin.source == "link"
    assert "tides" not in server.origin.place.removeprefix("link")
    assert "?" not in server.origin.place


ASKING = {
    "name": "tides",
    "type": "http",
    "url": "https://tides.example/mcp",
    "headers": {"Authorization": "Bearer ${input:token}"},
}
INPUTS = [{"type": "promptString", "id": "token", "description": "Your token", "password": True}]


@pytest.mark.parametrize(
    "link",
    [
        f"vscode:mcp/install?{quote(json.dumps({**ASKING, 'inputs': INPUTS}))}",
        "https://vscode.dev/redirect/mcp/install?"
        + urlencode({"name": "tides", "config": json.dumps(ASKING), "inputs": json.dumps(INPUTS)}),
    ],
    ids=["link", "page"],
)
def test_inputs_of_vscode_are_asked_for(link: str) -> None:
    server = one(link)
    assert server.table["http_headers"] == {"Authorization": "Bearer ${input:token}"}
    (asked,) = server.inputs
    assert (asked.id, asked.secret) == ("token", True)


def test_approvals_in_a_link_are_left_out() -> None:
    config = json.dumps({**ENTRY, "autoApprove": ["*"], "trust": True, "disabled": False})
    server = one(f"{CURSOR}?{urlencode({'name': 'tides', 'config': config})}")
    assert server.table == TABLE
    assert {note.key for note in server.notes} == {"autoApprove", "trust"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://cursor.com/",
        "https://cursor.com.evil.example/install-mcp?config=x",
        "http://cursor.com/install-mcp?config=x",
        "https://user@cursor.com/install-mcp?config=x",
        "https://evil.example/redirect/mcp/install?config={}",
        "cursor://other/mcp/install?config=x",
        "vscode:extension/x",
        "file:///etc/passwd",
        "https://[::1",
        "io.github.ada/x",
        "lmstudio://add_mcp?name=x&config=e30=",
        "https://kiro.dev/launch/mcp/add?name=x&config={}",
        "goose://extension?cmd=npx&arg=x&id=x",
    ],
)
def test_what_is_no_link_is_not_taken_for_one(text: str) -> None:
    assert not is_link(text)
    with pytest.raises(ConfigError, match="is not a link"):
        read_link(text)


CURSOR_LINK = f"{CURSOR}?name=x&config="


@pytest.mark.hostile("C04")
@pytest.mark.parametrize(
    ("link", "words"),
    [
        (CURSOR_LINK + "e" * MOST_BYTES, "longer than 64,000 bytes"),
        (CURSOR_LINK + "e30=\x1b[2J", "control character"),
        (CURSOR_LINK + "e30= e30=", "blank"),
        (CURSOR_LINK + "e3*0", "neither JSON nor base64"),
        (CURSOR_LINK + "e3=0", "neither JSON nor base64"),
        (CURSOR_LINK, "neither JSON nor base64"),
        (CURSOR_LINK + "e", "damaged base64"),
        (CURSOR_LINK + quote(base64.b64encode(b"\xff\xfe").decode()), "damaged base64"),
        (CURSOR_LINK + quote(base64.b64encode(b"[" * 40_000).decode()), "the link's content is"),
        (CURSOR_LINK + encoded([1]), "holds no server"),
        (CURSOR_LINK + encoded("x"), "holds no server"),
        (CURSOR_LINK + "e30%3D&config=e30%3D", "a parameter twice"),
        (CURSOR_LINK + "e30%3D" + "&a=b" * 200, "too many parameters"),
        ("vscode:mcp/install?", "the link's content"),
        ("vscode:mcp/install?%7B", "not valid JSON"),
        ("vscode:mcp/install?%5B%5D", "holds no server"),
    ],
)
def test_a_link_that_is_damaged_or_huge_is_refused(link: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        read_link(link)
    assert "\x1b" not in str(raised.value)


BAD = "\x1b]0;x\x07\u202e${HOME}\n"


@pytest.mark.parametrize("kind", ["name", "command", "args", "env", "url", "headers", "type", "key"])
def test_escape_sequences_in_any_part_are_text(kind: str) -> None:
    entry: dict[str, Any] = {"command": "x"}
    match kind:
        case "name":
            pass
        case "args":
            entry["args"] = [BAD]
        case "env":
            entry["env"] = {"A": BAD}
        case "key":
            entry[BAD] = BAD
        case "headers" | "url":
            entry = {"url": "https://x.example", "headers": {"A": BAD}} if kind == "headers" else {"url": BAD}
        case _:
            entry[kind] = BAD
    (server,) = read_link(f"vscode:mcp/install?{quote(json.dumps({'name': BAD, **entry}))}")
    assert "\x1b" not in server.name + server.refusal + server.origin.place
    assert list(references_within(fill_in(server.table, server.inputs, {}))) == []


STARTS = sorted({link.partition("?")[0] for link in LINKS.values()})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("a${}:\x1b/-", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("name", "command", "args", "env", "url", "headers", "type", "inputs", "mcpServers", "cwd", "oauth", "disabled")


@given(
    start=st.sampled_from(STARTS),
    payload=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6) | VALUES,
    name=st.text(max_size=8),
    wrapped=st.sampled_from(["whole", "json", "base64"]),
)
def test_any_payload_is_read_or_refused(start: str, payload: Any, name: str, wrapped: str) -> None:
    text = json.dumps(payload)
    query = {
        "whole": quote(text),
        "json": urlencode({"name": name, "config": text, "inputs": text}),
        "base64": urlencode({"name": name, "config": base64.b64encode(text.encode()).decode()}),
    }[wrapped]
    try:
        servers = read_link(f"{start}?{query}")
    except ConfigError:
        return
    for server in servers:
        assert bool(server.table) != bool(server.refusal)


@given(st.text(max_size=300))
def test_any_text_is_no_link_or_a_link(text: str) -> None:
    for start in ("", *STARTS):
        try:
            read_link(f"{start}?{text}" if start else text)
        except ConfigError:
            continue
