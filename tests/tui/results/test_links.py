"""Links in texts of servers to resources of the same server."""

from __future__ import annotations

import time

import pytest

from mcphost.tui.results.links import MOST, SEARCHED, ResourceTextLink, links_in

BASE = "demo://docs/guide/start.md"
CASES = [
    ("see [the end](demo://docs/end.md).", [("the end", "demo://docs/end.md")]),
    ('[a](<demo://a> "title")', [("a", "demo://a")]),
    ("[next](next.md) [up](../index.md#top) [root](/r.md)", [
        ("next", "demo://docs/guide/next.md"), ("up", "demo://docs/index.md"), ("root", "demo://docs/r.md")
    ]),
    ("bare memo:///x/y.md, and <file:///etc/x>.", [("", "memo:///x/y.md"), ("", "file:///etc/x")]),
    ('{"uri": "demo://a", "more": ["demo://b"]}', [("", "demo://a"), ("", "demo://b")]),
    ("[w](https://x.example/a) http://y.example [j](javascript:alert(1)) [d](data:text/html,x) [m](mailto:a@b)", []),
    ("[here](#part) [me](start.md) [net](//x.example/y) []() [x]()", []),
    ("[a](demo://same) [b](demo://same)", [("a", "demo://same")]),
    ("[ü](Foo+BAR://x/%7e/ü?a=b)", [("ü", "Foo+BAR://x/%7e/ü?a=b")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), CASES)
def test_links_to_resources_are_found_and_web_addresses_left_alone(text: str, found: list[tuple[str, str]]) -> None:
    assert links_in(text, BASE) == tuple(ResourceTextLink(*each) for each in found)


def test_without_an_address_of_its_own_a_text_has_whole_links_only() -> None:
    assert links_in("[a](b.md) [c](demo://d)", "") == (ResourceTextLink("c", "demo://d"),)
    assert links_in("[a](b.md)", "memo:note") == ()


BUSY = {"open": "[", "bare": "a://", "half": "[a](", "word": "a", "parts": "[a](b "}


@pytest.mark.parametrize("piece", BUSY.values(), ids=BUSY)
def test_texts_made_to_keep_us_busy_are_read_in_time(piece: str) -> None:
    """The search has bounds in characters and in links."""
    began = time.thread_time()
    assert len(links_in(piece * (300_000 // len(piece)), BASE)) <= MOST
    assert time.thread_time() - began < 1


def test_what_is_beyond_the_part_looked_at_is_not_offered() -> None:
    assert links_in(" " * SEARCHED + "demo://late", BASE) == ()
