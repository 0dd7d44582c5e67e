"""The prober over HTTP, against servers of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

import pytest

from mcphost.host.comparison.sides import EraName
from mcphost.host.server_rules.checking import look_at
from mcphost.host.server_rules.judging import judge
from mcphost.host.server_rules.ports import Channel, RawHttp
from mcphost.transports.base import MessageObserver
from mcphost.transports.http.probing import HttpProbing
from tests.host.server_rules.peers import Unobserved
from tests.transports.http.http_connection import Echo, Talk, Web

CALLS = import_module("http_hostile").CALLS  # found once `http_connection` is imported
LEGACY: tuple[EraName, ...] = ("legacy",)


class WebTarget:
    """A server at an address of this machine."""

    transports: Sequence[str] = ("http",)
    loopback = True
    opening_seconds = 0.0

    def __init__(self, url: str) -> None:
        self._url = url

    def channel(self, observer: MessageObserver) -> Channel:
        raise NotImplementedError

    def http(self, observer: MessageObserver) -> RawHttp:
        return HttpProbing(self._url, 1 << 20, headers={}, auth=None, observer=observer)

    def traffic(self) -> MessageObserver:
        return Unobserved()


async def broken(url: str) -> set[str]:
    """The rows that the server at ``url`` breaks with a handshake."""
    (looked,) = await look_at(WebTarget(url), LEGACY, {"name": "mcphost", "version": "1"}, lambda probe: None)
    assert looked.seen is not None, looked.words
    return {each.row.id for each in judge(looked.seen) if each.outcome in ("failed", "warning")}


def careful(mode: str = "", answers: str = "json") -> Callable[[Talk], None]:
    """The scripted server, with answers to what it does not expect; ``mode`` spoils its list of tools."""
    echo = Echo(answers=answers)

    def serve(talk: Talk) -> None:
        try:
            message = talk.visit.message or {}
        except ValueError:
            talk.whole(400)
            return
        if message.get("method") == "tools/call":
            failed = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no such tool"}}
            talk.json(failed, 200)
        elif message.get("method") == "tools/list" and mode:
            CALLS[mode](talk, message["id"])
        else:
            echo(talk)

    return serve


OWN = {"SHTTP-03", "SHTTP-04", "SHDR-02", "SSESS-04", "SHTTP-16", "SMSG-21", "SLIFE-06", "SCOMP-09"}
"""The rows that the scripted server breaks: it looks at no origin, version or method."""


@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_a_plain_server_breaks_only_what_it_does_not_look_at(answers: str) -> None:
    with Web(careful(answers=answers)) as web:
        assert await broken(web.url) <= OWN


@pytest.mark.parametrize(
    ("mode", "row"),
    [
        ("html", "SHTTP-11"),
        ("no-type", "SHTTP-11"),
        ("accepted", "SHTTP-11"),
        ("not-json", "SMSG-01"),
        ("not-an-answer", "SBATCH-09"),
        ("batch", "SBATCH-09"),
        ("utf-16", "SMSG-26"),
        ("wrong-id", "SMSG-06"),
        ("string-id", "SMSG-06"),
        ("both", "SMSG-11"),
        ("error-with-200", "SMSG-07"),
        ("ends-early", "SHTTP-12"),
        ("keeps-open", "SHTTP-19"),
        ("invalid-answer", "SMSG-12"),
    ],
)
async def test_a_hostile_server_at_an_address_is_named(mode: str, row: str) -> None:
    with Web(careful(mode)) as web:
        assert row in await broken(web.url)


@pytest.mark.parametrize("mode", ["gone", "server-error", "sign-in", "error-of-nobody", "bomb", "brotli"])
async def test_what_a_gateway_may_say_is_no_finding(mode: str) -> None:
    with Web(careful(mode)) as web:
        assert await broken(web.url) <= OWN
