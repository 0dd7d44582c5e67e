"""Registries over real HTTP: what they find, and that one that lies does no harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.errors import ConfigError, ConnectionLost, HttpStatusError, InvalidResult, McphostError, UnknownName
from mcphost.imports.registry import (
    MOST_PAGES,
    MOST_RESULTS,
    Registry,
    RegistryServer,
    SearchResult,
    find_server,
    is_server_name,
    namespace_proof,
    remarks_on,
)
from tests.auth.people import Talk, Web
from tests.imports.registries import META, StubRegistry, base, listed

KEYS = ("name", "server", "servers", "metadata", "nextCursor", "_meta", META, "status", "publishedAt", "version")
NOW = datetime(2026, 1, 5, tzinfo=UTC)

ENTRIES = [
    listed("io.github.ada/files", title="Files of Ada"),
    listed("com.example/files", description="\x1b[2Jclears", status="deprecated", statusMessage="use others"),
    listed("org.example/weather"),
    listed("io.github.ada/more-files", publishedAt="yesterday"),
    listed("io.github.bob/files", description="tides of harbours"),
]


async def test_a_search_reads_all_pages_and_looks_for_all_words() -> None:
    with Web(StubRegistry(ENTRIES)) as web:
        found = await Registry(base(web)).search("files")
        assert [each.name for each in found.servers] == [
            "io.github.ada/files",
            "com.example/files",
            "io.github.ada/more-files",
            "io.github.bob/files",
        ]
        assert (found.more, found.unusable) == (False, 0)
        assert len(web.visits) == 2
        narrowed = await Registry(base(web)).search("Harbours files")
        assert [each.name for each in narrowed.servers] == []  # names alone are searched by the registry
        narrowed = await Registry(base(web)).search("bob files tides")
        assert [each.name for each in narrowed.servers] == ["io.github.bob/files"]


async def test_what_a_person_needs_to_know_is_told() -> None:
    with Web(StubRegistry(ENTRIES)) as web:
        found = {each.name: each for each in (await Registry(base(web)).search("files")).servers}
    deprecated = found["com.example/files"]
    host = f"127.0.0.1:{web.port}"
    assert list(remarks_on(deprecated, NOW)) == [
        f"the name's owner: domain example.com, if {host} checks that",
        "version 1.0.0 was published 2 d ago",
        "it is deprecated: use others",
    ]
    assert found["io.github.ada/more-files"].published is None
    assert "published" not in " ".join(remarks_on(found["io.github.ada/more-files"], NOW))
    official = "https://registry.modelcontextprotocol.io"
    owner = namespace_proof("io.github.ada/x", official)
    assert owner == "GitHub account ada, as checked by registry.modelcontextprotocol.io"


async def test_one_version_is_asked_for_by_its_encoded_name() -> None:
    entries = [listed("a.b/c", "2.0.0+build"), listed("a.b/c", "1.0.0")]
    with Web(StubRegistry(entries)) as web:
        assert (await Registry(base(web)).server("a.b/c")).version == "2.0.0+build"
        assert (await Registry(base(web)).server("a.b/c", "1.0.0")).version == "1.0.0"
        assert (await Registry(base(web)).server("a.b/c", "2.0.0+build")).version == "2.0.0+build"
        assert web.visits[-1].path == "/v0.1/servers/a.b%2Fc/versions/2.0.0%2Bbuild"
        with pytest.raises(UnknownName, match=r"knows no a\.b/c@3"):
            await Registry(base(web)).server("a.b/c", "3")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("", "/v0.1/servers"),
        ("/", "/v0.1/servers"),
        ("/registry/api/v1/servers", "/registry/api/v1/servers"),
        ("/v0.1", "/v0.1/servers"),
        ("/gallery", "/gallery/v0.1/servers"),
    ],
)
async def test_a_base_may_have_the_path_of_the_api(path: str, asked: str) -> None:
    with Web(lambda talk: talk.json({"servers": []})) as web:
        await Registry(base(web) + path).search("x")
    assert web.visits[0].path.partition("?")[0] == asked


async def test_registries_are_asked_in_turn_until_one_knows_the_server() -> None:
    with Web(StubRegistry([])) as first, Web(StubRegistry([listed("a.b/c")])) as second:
        found = await find_server((base(first), base(second)), "a.b/c")
        assert found.registry == base(second)
        assert len(first.visits) == 1
        with pytest.raises(UnknownName, match=str(first.port)):
            await find_server((base(first),), "a.b/c")
    with pytest.raises(ConfigError, match="no registry is configured"):
        await find_server((), "a.b/c")


@pytest.mark.parametrize("wrong", [listed("a.b/other"), listed("a.b/c", "9.9.9")], ids=["name", "version"])
async def test_an_answer_about_another_server_is_refused(wrong: dict[str, Any]) -> None:
    with Web(lambda talk: talk.json(wrong)) as web, pytest.raises(InvalidResult) as raised:
        await Registry(base(web)).server("a.b/c", "1.0.0")
    assert "was asked for a.b/c@1.0.0, and answered with" in str(raised.value)


async def test_a_list_that_never_ends_is_left() -> None:
    counter = iter(range(1000))

    def endless(talk: Talk) -> None:
        number = next(counter)
        servers = [listed(f"a.b/c{number}-{each}") for each in range(3)]
        talk.json({"servers": servers, "metadata": {"nextCursor": f"{number + 1}"}})

    with Web(endless) as web:
        found = await Registry(base(web)).search("c")
    assert (len(web.visits), len(found.servers), found.more) == (MOST_PAGES, 3 * MOST_PAGES, True)

    with Web(lambda talk: talk.json({"servers": [], "metadata": {"nextCursor": "same"}})) as web:
        await Registry(base(web)).search("c")
    assert len(web.visits) == 2


async def test_a_page_of_far_too_many_servers_is_cut() -> None:
    page = {"servers": [listed(f"a.b/c{number}") for number in range(3000)], "metadata": {"nextCursor": "x"}}
    with Web(lambda talk: talk.json(page)) as web:
        found = await Registry(base(web)).search("")
    assert (len(found.servers), found.more, len(web.visits)) == (MOST_RESULTS, True, 1)


ODD: list[object] = [
    None,
    1,
    "x",
    [],
    {},
    {"server": None},
    {"server": {"name": None}},
    {"server": {"name": "no-namespace"}},
    {"server": {"name": "a.b/c\x1b[2J"}},
    {"server": {"name": "a.b/" + "c" * 300}},
    {"server": {"name": "../../a.b/c"}},
]


async def test_entries_that_are_no_servers_are_counted_and_left_out() -> None:
    strange = {
        "server": {"name": "a.b/c", "version": 7, "description": ["x"], "title": {}, "packages": 5},
        "_meta": {META: {"status": 1, "publishedAt": "9999999-99-99", "statusMessage": []}},
    }
    with Web(lambda talk: talk.json({"servers": [*ODD, strange], "metadata": "x"})) as web:
        found = await Registry(base(web)).search("")
    assert found.unusable == len(ODD)
    (server,) = found.servers
    assert (server.version, server.description, server.status, server.published) == ("", "", "active", None)


Lie = Callable[[Talk], Any]


@pytest.mark.parametrize(
    ("lie", "kind", "words"),
    [
        (lambda talk: talk.json([]), InvalidResult, "not a list of servers"),
        (lambda talk: talk.json({"servers": "x"}), InvalidResult, "not a list of servers"),
        (lambda talk: talk.whole(200, b"<html>"), InvalidResult, "is not valid JSON"),
        (lambda talk: talk.whole(200, b"\xff\xfe"), InvalidResult, "is not UTF-8"),
        (lambda talk: talk.whole(200, b"[" * 10_000), InvalidResult, "nested|valid JSON"),
        (lambda talk: talk.whole(200, b"[" * 100_000), InvalidResult, "more than 30,000 objects and lists"),
        (lambda talk: talk.whole(200, b" " * 5_000_000), ConnectionLost, "larger than 2.0 MB"),
        (lambda talk: talk.whole(500, b"[" * 1_000_000), HttpStatusError, "HTTP 500"),
        (lambda talk: talk.whole(200, b"x", content_encoding="gzip"), ConnectionLost, "compressed"),
        (lambda talk: talk.json({"error": "\x1b]0;x\x07 down"}, 500), HttpStatusError, "HTTP 500.*␛]0;x␇ down"),
        (lambda talk: talk.json({"error": ["x"]}, 429), HttpStatusError, "HTTP 429"),
        (lambda talk: talk.whole(302, location="http://10.0.0.1/"), ConnectionLost, "http://10.0.0.1, which is"),
        (lambda talk: talk.whole(302, location="http://[::1]:1/x"), ConnectionLost, "which is another origin"),
        (lambda talk: talk.whole(302, location="/again"), ConnectionLost, "more than 5 times"),
        (lambda talk: talk.whole(302, location="file:///etc/passwd"), ConnectionLost, "other than a plain web address"),
        (lambda talk: talk.raw(b"garbage\r\n\r\n"), ConnectionLost, "127.0.0.1"),
    ],
)  # fmt: skip
async def test_a_registry_that_lies_is_an_error_and_no_harm(lie: Lie, kind: type[McphostError], words: str) -> None:
    with Web(lie) as web, pytest.raises(kind, match=words) as raised:
        await Registry(base(web)).search("x")
    assert "\x1b" not in str(raised.value)


async def test_a_registry_that_is_not_there_is_named() -> None:
    with Web(lambda talk: None) as web:
        address = base(web)
    with pytest.raises(
        ConnectionLost, match=r"1:\d+: connection refused; check the address, the network, and HTTPS_PROXY"
    ):
        await Registry(address).search("x")


async def test_escape_sequences_reach_nobody_unmarked() -> None:
    bad = "\x1b[31mred\x1b[0m\u202e"
    entry = listed("a.b/c", title=bad, description=bad, version=bad, status=bad, statusMessage=bad)
    with Web(StubRegistry([entry])) as web:
        server = await Registry(base(web)).server("a.b/c")
    said = "\n".join(remarks_on(server, NOW))
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert json.dumps(bad) in json.dumps(server.document)  # the document is as it came


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        ("io.github.ada/weather", True),
        ("com.example/mcp", True),
        ("weather", False),
        ("folder/file", False),
        ("./a.b/c", False),
        ("a.b/c/d", False),
        ("a.b/c d", False),
        ("a.b/" + "c" * 300, False),
    ],
)
def test_a_name_of_a_registry_is_recognized(text: str, is_name: bool) -> None:
    assert is_server_name(text) is is_name


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("a./\x1b2026-", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)


@given(JSON | st.fixed_dictionaries({"servers": st.lists(JSON, max_size=4), "metadata": JSON}))
async def test_any_answer_is_read_or_an_error(answer: object) -> None:
    with Web(lambda talk: talk.json(answer)) as web:
        for ask in (Registry(base(web)).search("a"), Registry(base(web)).server("a.b/c")):
            try:
                found = await ask
            except McphostError:
                continue
            assert isinstance(found, SearchResult | RegistryServer)
