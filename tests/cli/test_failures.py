"""Commands at servers on the web that refuse: what to do is said, in the words of the screen."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Mcphost
from tests.transports.http.http_connection import Echo, Talk, Web

REFUSALS = [
    (404, "HTTP 404. There is no MCP server at this address, or none over this transport: check url and transport"),
    (403, "HTTP 403. The server refuses this to everyone or to you: check http_headers, or ask whoever runs it."),
]


@pytest.mark.parametrize(("status", "words"), REFUSALS)
def test_a_server_that_lets_nobody_in_says_what_to_do(mcphost: Mcphost, status: int, words: str) -> None:
    with Web(lambda talk: talk.whole(status)) as web:
        said = mcphost("call", web.url, "echo", "--yes")
        assert (said.code, said.err.count("\n")) == (3, 1)
        assert words in said.err
        checked = mcphost("check", web.url, "--json")
        assert words in json.loads(checked.out)["reason"]


class Refusing(Echo):
    """Begins a session, and refuses whatever is called."""

    def call(self, talk: Talk, request_id: Any, name: str, arguments: Any) -> None:
        talk.whole(413, b"too much", "text/plain")


def test_a_call_that_is_refused_says_what_to_do(mcphost: Mcphost, tmp_path: Path) -> None:
    with Web(Refusing(listens=False)) as web:
        said = mcphost("call", web.url, "echo", "text=x", "--yes")
    assert (said.code, said.out) == (3, "")
    assert said.err.splitlines() == [
        "mcphost: http: the server answered HTTP 413 (text/plain): too much",
        "mcphost: It was too large for the server: send less.",
    ]


class Compressed(Echo):
    """Sends gzip and does not say so."""

    def say(self, talk: Talk, *messages: Any, **headers: Any) -> None:
        talk.whole(200, gzip.compress(json.dumps(messages[0]).encode()), "application/json", **headers)


def test_bytes_that_are_not_text_are_not_quoted(mcphost: Mcphost) -> None:
    with Web(Compressed()) as web:
        said = mcphost("call", web.url, "echo", "text=x", "--yes")
    assert said.code == 3
    assert re.search(r"; it sent something that is not a message \(1 times\), first: \d+ bytes that are not", said.err)
    assert "stdout" not in said.err


class LacksARequest(Echo):
    """Its tool says that the newest version lacks what it needs."""

    def call(self, talk: Talk, request_id: Any, name: str, arguments: Any) -> None:
        text = {"type": "text", "text": "elicitation is unavailable on 2026-07-28 connections"}
        talk.result({"content": [text], "isError": True})


def test_a_tool_that_needs_an_older_revision_leads_to_the_setting(mcphost: Mcphost) -> None:
    with Web(LacksARequest()) as web:
        said = mcphost("call", web.url, "echo", "text=x", "--yes")
    assert (said.code, said.out) == (1, "elicitation is unavailable on 2026-07-28 connections\n")
    assert 'protocol = "legacy" in an entry for it uses an older one' in said.err
