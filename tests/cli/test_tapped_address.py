"""The copies of an address's tap: one message a line, without the tokens that passed."""

from __future__ import annotations

import pytest

from mcphost.cli.tapped_address import _Copies, _SeenSecrets
from tests.cli.conftest import Mcphost


class Taken:
    def __init__(self) -> None:
        self.lines: list[tuple[str, bytes]] = []

    def take(self, source: str, data: bytes) -> None:
        self.lines.append((source, data))


def test_a_message_of_several_lines_is_one_line() -> None:
    taken = Taken()
    copies = _Copies(taken)  # type: ignore[arg-type]
    copies.sent(b'{\r\n"id": 1}')
    copies.received(b"{\n}")
    copies.noted("http", "GET /mcp\naccept: */*")
    assert taken.lines == [("agent", b'{ "id": 1}\n'), ("server", b"{ }\n"), ("stderr", b"GET /mcp; accept: */*\n")]


def test_a_token_that_passed_is_masked_where_the_server_repeats_it() -> None:
    secrets = _SeenSecrets()
    secrets.add("Authorization", "Bearer canary-12345678")
    secrets.add("Accept", "application/json")
    assert secrets.mask(b'{"echo": "canary-12345678 application/json"}') == '{"echo": "••• application/json"}'.encode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:80", "https://docs.example.com/mcp"], "on this machine only"),
        (["--listen", "127.0.0.1:80", "--", "cat"], "--listen is for an address"),
        (["https://docs.example.com/mcp?api_key=canary-12345678"], "holds a secret"),
    ],
)
def test_a_tap_that_cannot_be_is_explained(words: list[str], said: str, mcphost: Mcphost) -> None:
    done = mcphost("tap", *words)
    assert done.code == 2
    assert said in done.err
    assert "canary" not in done.err
