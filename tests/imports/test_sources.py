"""The servers that a word of `mcphost add` names; addresses are real, on the loopback."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme

from mcphost.errors import ConfigError, ConnectionLost, HttpStatusError, InvalidResult, UnknownName, UsageError
from mcphost.imports.bundles import Machine
from mcphost.imports.sources import AddKind, AddRequest, ResolvedAdd, ServerSources, kind_of_add
from mcphost.net.addresses import Address
from tests.auth.people import Talk, Web
from tests.imports.bundle_files import MANIFEST, archive
from tests.imports.pasted_links import LINKS
from tests.imports.registries import StubRegistry, base, listed

HERE = Machine(Path("/home/ada"), "linux", lambda program: True)


@pytest.fixture
def sources(tmp_path: Path) -> ServerSources:
    return ServerSources(HERE, tmp_path / "bundles")


def only(found: ResolvedAdd) -> Any:
    (server,) = found.servers
    return server


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("https://mcp.example/mcp", AddKind.ADDRESS),
        ("http://localhost:8000/mcp?x=1", AddKind.ADDRESS),
        ("https://example.com", AddKind.SITE),
        ("https://example.com/", AddKind.SITE),
        ("https://example.com/server.json", AddKind.WEB_DOCUMENT),
        ("https://example.com/.well-known/ai-catalog.json", AddKind.WEB_DOCUMENT),
        ("https://example.com/mcp/server-card", AddKind.WEB_DOCUMENT),
        ("https://example.com/x.MCPB?raw=1", AddKind.WEB_BUNDLE),
        ("https://example.com/x.dxt", AddKind.WEB_BUNDLE),
        (LINKS["cursor"], AddKind.LINK),
        (LINKS["cursor's page"], AddKind.LINK),
        ("./x", AddKind.FILE),
        ("~/x.mcpb", AddKind.FILE),
        ("server.json", AddKind.FILE),
        ("a.b/there", AddKind.FILE),
        ("io.github.ada/weather", AddKind.REGISTERED),
        ("io.github.ada/weather@1.2.0", AddKind.REGISTERED),
    ],
)
def test_a_word_says_what_it_names(word: str, kind: AddKind, tmp_path: Path) -> None:
    (tmp_path / "a.b").mkdir()
    (tmp_path / "a.b" / "there").write_text("{}")
    assert kind_of_add(AddRequest(word)) is kind
    assert kind_of_add(AddRequest("x", ("y",))) is AddKind.PROGRAM


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("weather", "mcphost search weather"),
        ("two words", "mcphost add NAME -- COMMAND"),
        ("\x1b[2J", "␛[2J is not a URL"),
        ("vscode:extension/x", "no such link"),
        ("javascript:alert(1)", "no such link"),
        ("https://", "name a host"),
        ("https://a b/", "a space"),
    ],
)
def test_a_word_that_names_nothing_is_an_error_that_says_what_would(word: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        kind_of_add(AddRequest(word))
    assert says in str(raised.value)
    assert "\x1b" not in str(raised.value)


async def test_a_command_is_taken_word_for_word(sources: ServerSources) -> None:
    request = AddRequest("git", ("uvx", "mcp-server-git", "--repository", "a b"), {"A": "${HOME}"})
    server = only(await sources.find(request))
    assert (server.name, server.origin.source) == ("git", "command line")
    assert server.table == {
        "command": "uvx",
        "args": ["mcp-server-git", "--repository", "a b"],
        "env": {"A": "${HOME}"},
    }
    with pytest.raises(UsageError, match="cannot be its name"):
        await sources.find(AddRequest("a b", ("x",)))
    with pytest.raises(UsageError, match="--header: git is a program"):
        await sources.find(AddRequest("git", ("x",), headers={"A": "b"}))


CARD = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    "name": "com.example/docs",
    "version": "1.0.0",
    "description": "All the docs",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "{base}/mcp",
            "headers": [{"name": "X-Key", "isRequired": True, "isSecret": True, "description": "Your key"}],
        }
    ],
}


def card(address: str, **more: Any) -> dict[str, Any]:
    remote = {**CARD["remotes"][0], "url": f"{address}/mcp"}  # type: ignore[dict-item]
    return {**CARD, "remotes": [remote], **more}


async def test_an_address_gets_the_headers_that_its_card_wants(sources: ServerSources) -> None:
    def answer(talk: Talk) -> None:
        talk.json(card(base(talk.web)))

    with Web(answer) as web:
        found = await sources.find(AddRequest(f"{base(web)}/mcp?tenant=1", transport="http"))
        assert [visit.path for visit in web.visits] == ["/mcp/server-card"]
    server = only(found)
    assert server.table == {
        "url": f"{base(web)}/mcp?tenant=1",
        "http_headers": {"X-Key": "${input:X-Key}"},
        "transport": "http",
    }
    assert (server.description, [each.id for each in server.inputs]) == ("All the docs", ["X-Key"])
    assert "what counts is what it says once it is opened" in found.remarks[0]
    assert "tenant" not in server.origin.place
    with Web(answer) as web:
        given = only(await sources.find(AddRequest(f"{base(web)}/mcp", headers={"X-Key": "${KEY}"})))
    assert (given.table["http_headers"], given.inputs) == ({"X-Key": "${KEY}"}, ())


@pytest.mark.parametrize("status", [200, 401, 404, 500])
async def test_an_address_without_a_card_needs_none(status: int, sources: ServerSources) -> None:
    with Web(lambda talk: talk.whole(status, b"<html>")) as web:
        server = only(await sources.find(AddRequest(f"{base(web)}/mcp")))
    assert server.table == {"url": f"{base(web)}/mcp"}
    server = only(await sources.find(AddRequest("http://127.0.0.1:1/mcp")))
    assert server.table == {"url": "http://127.0.0.1:1/mcp"}


async def test_a_password_in_an_address_is_neither_sent_nor_kept(
    sources: ServerSources,
) -> None:
    with Web(lambda talk: talk.json({"server": SERVER_JSON})) as web:
        secret = base(web).replace("http://", "http://ada:word@")
        server = only(await sources.find(AddRequest(f"{secret}/mcp?key=s3cret")))
        assert "authorization" not in web.visits[0].headers
        assert server.table == {"url": f"{secret}/mcp?key=s3cret"}  # the importer lifts it into the keychain
        document = only(await sources.find(AddRequest(f"{secret}/server.json?key=s3cret")))
        assert "authorization" in web.visits[1].headers
    assert server.origin.place == f"{base(web)}/mcp"
    assert document.origin.place == f"{base(web)}/server.json"


async def test_a_card_that_names_another_origin_says_nothing_about_this_one(sources: ServerSources) -> None:
    with Web(lambda talk: talk.json(card("https://evil.example"))) as web:
        server = only(await sources.find(AddRequest(f"{base(web)}/mcp")))
    assert server.table == {"url": f"{base(web)}/mcp"}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.stripe.com/v1", "stripe"),
        ("https://docs.example.com/mcp", "docs"),
        ("https://example.com/mcp", "example"),
        ("https://mcp.dev/mcp", "mcp.dev"),
        ("http://localhost:8000/mcp", "local-8000"),
        ("http://127.0.0.1:39471/mcp", "local-39471"),
        ("http://[::1]:8000/mcp", "local-8000"),
        ("http://localhost/mcp", "local"),
        ("http://tides.localhost:8000/mcp", "tides.localhost"),
        ("https://192.0.2.7:8000/mcp", "192.0.2.7"),
    ],
)
async def test_an_address_is_named_by_its_host(url: str, name: str, tmp_path: Path) -> None:
    async def nobody(host: str, port: int) -> Sequence[Address]:
        raise OSError("nobody is asked")

    server = only(await ServerSources(HERE, tmp_path, nobody).find(AddRequest(url)))
    assert server.name == name


def catalog(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"specVersion": "1.0", "entries": [{"type": "application/mcp-server-card+json", **each} for each in entries]}


async def test_a_site_is_searched_for_its_catalog(sources: ServerSources) -> None:
    def answer(talk: Talk) -> None:
        here = base(talk.web)
        cards = json.dumps(card(here, name="com.example/linked")).encode()
        match talk.visit.path:
            case "/.well-known/ai-catalog.json":
                digest = f"sha256:{hashlib.sha256(cards).hexdigest()}"
                talk.json(
                    catalog(
                        {"identifier": "urn:air:example.com:mcp:held", "data": card(here, name="com.example/held")},
                        {
                            "identifier": "urn:x",
                            "url": "/card",
                            "digest": digest,
                        },
                        {"identifier": "urn:air:x:wrong", "url": "/card", "digest": "sha256:" + "0" * 64},
                        {"identifier": "urn:air:x:away", "url": "/none"},
                        {"identifier": "urn:air:x:file", "url": "file:///etc/passwd"},
                        {"identifier": "urn:x", "type": "application/ai-catalog+json", "url": "/more"},
                        {"identifier": "urn:x", "type": "text/html", "url": "/page"},
                    )
                )
            case "/more":
                nested = {"type": "application/ai-catalog+json", "url": "/deeper"}
                talk.json(catalog({"displayName": "Nested", "data": card(here, name="com.example/nested")}, nested))
            case "/card":
                talk.whole(200, cards)
            case _:
                talk.whole(404)

    with Web(answer) as web:
        found = await sources.find(AddRequest(base(web)))
        assert "/deeper" not in [visit.path for visit in web.visits]
        assert "/page" not in [visit.path for visit in web.visits]
    named = {server.name: server.refusal for server in found.servers}
    assert named == {
        "held": "",
        "linked": "",
        "wrong": "its card has another digest than the catalog says",
        "away": f"the server answered HTTP 404: 127.0.0.1:{web.port}",
        "file": "its address is none of the web",
        "nested": "",
    }
    with Web(answer) as web:
        direct = await sources.find(AddRequest(f"{base(web)}/.well-known/ai-catalog.json"))
    assert len(direct.servers) == len(found.servers)


async def test_a_site_without_a_catalog_is_an_address(sources: ServerSources) -> None:
    with Web(lambda talk: talk.whole(404)) as web:
        server = only(await sources.find(AddRequest(base(web))))
    assert server.table == {"url": base(web)}


SERVER_JSON: dict[str, Any] = {
    "name": "io.github.ada/tides",
    "description": "Tides",
    "version": "1.2.0",
    "packages": [
        {
            "registryType": "npm",
            "identifier": "@ada/tides",
            "version": "1.2.0",
            "transport": {"type": "stdio"},
            "environmentVariables": [{"name": "KEY", "isSecret": True}],
        },
        {"registryType": "oci", "identifier": "ada/tides:1.2.0", "transport": {"type": "stdio"}},
    ],
    "remotes": [{"type": "streamable-http", "url": "https://tides.example/mcp"}],
}


async def test_a_document_is_read_from_a_file_or_the_web(sources: ServerSources, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(SERVER_JSON))
    found = await sources.find(AddRequest("server.json"))
    server = only(found)
    assert server.table == {"url": "https://tides.example/mcp", "transport": "http"}
    assert server.origin.place == str(tmp_path / "server.json")
    offered = "it is also offered as npm (@ada/tides@1.2.0), oci (ada/tides:1.2.0); to choose: --package npm"
    assert found.remarks == (offered,)
    with Web(lambda talk: talk.json({"server": SERVER_JSON})) as web:
        found = await sources.find(AddRequest(f"{base(web)}/server.json", package="npm"))
    assert only(found).table["args"] == ["-y", "@ada/tides@1.2.0"]
    assert (found.remarks, only(found).origin.place) == ((), f"{base(web)}/server.json")
    with pytest.raises(UsageError, match="--package pypi: it is offered as remote, npm, oci"):
        await sources.find(AddRequest("server.json", package="pypi"))


async def test_variables_given_by_hand_replace_those_that_are_asked_for(sources: ServerSources, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(SERVER_JSON))
    server = only(await sources.find(AddRequest("server.json", package="npm", env={"KEY": "${KEY}", "B": "c"})))
    assert (server.table["env"], server.inputs) == ({"KEY": "${KEY}", "B": "c"}, ())
    server = only(await sources.find(AddRequest("server.json", package="oci", env={"B": "c"})))
    assert server.table["args"] == ["run", "--rm", "-i", "-e", "B", "ada/tides:1.2.0"]
    with pytest.raises(UsageError, match="--env: tides is an address"):
        await sources.find(AddRequest("server.json", env={"B": "c"}))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"mcpServers": {}}', "mcphost import FILE"),
        (b"[]", "is not an object"),
        (b"{", "not valid JSON"),
        (b"x" * 2_000_000, "larger than"),
        (b'{"name": "a.b/c", "packages": []}', "offers no package and no address"),
        (b'{"specVersion": "1.0", "entries": []}', "is a catalog"),
    ],
)
async def test_a_file_that_is_none_is_an_error(
    content: bytes, words: str, sources: ServerSources, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        await sources.find(AddRequest("x.json"))
    with pytest.raises(ConfigError, match="there is no such file"):
        await sources.find(AddRequest("none.json"))


async def test_a_bundle_is_unpacked_and_named_where_it_may_be_removed_again(
    sources: ServerSources, tmp_path: Path
) -> None:
    (tmp_path / "tides.mcpb").write_bytes(archive(("server/index.js", b"x")))
    found = await sources.find(AddRequest("tides.mcpb", env={"A": "b"}))
    (folder,) = found.unpacked
    assert only(found).table["args"] == [f"{folder}/server/index.js"]
    assert (folder / "server" / "index.js").read_bytes() == b"x"
    assert (await sources.find(AddRequest("tides.mcpb"))).unpacked == ()  # it was there before
    looking = ServerSources(HERE, tmp_path / "other", unpacks=False)
    assert (await looking.find(AddRequest("tides.mcpb"))).unpacked == ()
    assert list((tmp_path / "other").iterdir()) == []
    (tmp_path / "broken.mcpb").write_bytes(b"PK")
    with pytest.raises(ConfigError, match=r"broken\.mcpb: is not a bundle"):
        await sources.find(AddRequest("broken.mcpb"))


async def test_a_bundle_is_downloaded_through_redirects(sources: ServerSources) -> None:
    content = archive(("server/index.js", b"x"))
    with Web(lambda talk: talk.whole(200, content)) as store:

        def answer(talk: Talk) -> None:
            talk.whole(302, location=f"{base(store)}/stored?secret=1")

        with Web(answer) as web:
            found = await sources.find(AddRequest(f"{base(web)}/tides.mcpb?token=1"))
    server = only(found)
    assert server.origin.place == f"{base(web)}/tides.mcpb"
    assert found.remarks == (f"downloaded from {base(store)}/stored; no SHA-256 was announced for it",)
    with Web(lambda talk: talk.whole(404)) as web, pytest.raises(HttpStatusError):
        await sources.find(AddRequest(f"{base(web)}/tides.mcpb"))
    with Web(lambda talk: talk.whole(200, b"<html>")) as web, pytest.raises(ConfigError, match="is not a bundle"):
        await sources.find(AddRequest(f"{base(web)}/tides.mcpb"))


async def test_a_name_is_asked_of_the_registries(sources: ServerSources) -> None:
    entry = listed("io.github.ada/tides", "1.2.0", status="deprecated", packages=SERVER_JSON["packages"])
    with Web(StubRegistry([entry, listed("a.b/gone", status="deleted", statusMessage="malware\x1b[2J")])) as web:
        found = await sources.find(AddRequest("io.github.ada/tides@1.2.0", registries=(base(web),)))
        server = only(found)
        assert (server.name, server.origin.source, server.origin.place) == ("tides", "registry", base(web))
        assert (server.origin.name, server.origin.scope) == ("io.github.ada/tides", "npm")
        said = " ".join(found.remarks)
        assert "GitHub account ada" in said
        assert "it is deprecated" in said
        assert "--package oci" in said
        with pytest.raises(UnknownName, match=r"taken out of the registry: malware␛\[2J"):
            await sources.find(AddRequest("a.b/gone", registries=(base(web),)))
        with pytest.raises(UnknownName, match=r"knows no a\.b/none"):
            await sources.find(AddRequest("a.b/none", registries=(base(web),)))
    with pytest.raises(ConfigError, match="no registry is configured"):
        await sources.find(AddRequest("a.b/c"))


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


async def test_the_bundle_of_a_registry_must_have_the_announced_hash(
    sources: ServerSources, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    content = archive(("server/index.js", b"x"))
    with Web(lambda talk: talk.whole(200, content), tls) as store:
        package = {
            "registryType": "mcpb",
            "identifier": f"https://localhost:{store.port}/tides.mcpb",
            "fileSha256": hashlib.sha256(content).hexdigest(),
            "transport": {"type": "stdio"},
        }
        wrong = {**package, "fileSha256": "a" * 64}
        entries = [listed("a.b/tides", packages=[package]), listed("a.b/wrong", packages=[wrong])]
        with Web(StubRegistry(entries)) as web:
            found = await sources.find(AddRequest("a.b/tides", registries=(base(web),)))
            with pytest.raises(ConfigError, match="it is not the same file"):
                await sources.find(AddRequest("a.b/wrong", registries=(base(web),)))
    server = only(found)
    assert (server.origin.source, server.origin.name, server.name) == ("registry", "a.b/tides", "tides")
    assert server.origin.digest == hashlib.sha256(content).hexdigest()
    assert "its SHA-256 is the announced one" in found.remarks[-1]
    assert len(list((tmp_path / "bundles").iterdir())) == 1


@pytest.mark.requirement("SEC-10")
async def test_a_public_registry_cannot_reach_this_machine(tls: ssl.SSLContext, tmp_path: Path) -> None:
    """The registry's own address is public by its name; a proxy of the test brings its answers."""
    with Web(lambda talk: talk.whole(200, archive()), tls) as inside:
        package = {
            "registryType": "mcpb",
            "identifier": f"https://localhost:{inside.port}/tides.mcpb",
            "fileSha256": hashlib.sha256(archive()).hexdigest(),
            "transport": {"type": "stdio"},
        }
        document = {"name": "a.b/tides", "description": "x", "version": "1", "packages": [package]}

        async def public(host: str, port: int) -> Sequence[Address]:
            return [ipaddress.ip_address("203.0.114.1")]

        sources = ServerSources(HERE, tmp_path / "bundles", public)
        request = AddRequest("a.b/tides", registries=("https://registry.test",))
        with pytest.raises(ConnectionLost, match="private network"):
            await sources._offered(_offers(document), request, "https://registry.test")
        assert inside.visits == []


def _offers(document: dict[str, Any]) -> Any:
    from mcphost.imports.found import Origin
    from mcphost.imports.server_json import read_server_json

    return read_server_json(document, Origin("registry", "https://registry.test", "", ""), lambda _: True)


async def test_a_document_that_is_none_is_an_error(sources: ServerSources) -> None:
    with Web(lambda talk: talk.whole(200, b"<html>")) as web, pytest.raises(InvalidResult, match="not valid JSON"):
        await sources.find(AddRequest(f"{base(web)}/server.json"))
    with Web(lambda talk: talk.json([1])) as web, pytest.raises(ConfigError, match="is not an object"):
        await sources.find(AddRequest(f"{base(web)}/server.json"))


async def test_links_are_read_and_nothing_is_called(sources: ServerSources) -> None:
    server = only(await sources.find(AddRequest(LINKS["cursor's page"], env={"COAST": "south"})))
    assert server.table["env"] == {"COAST": "south"}
    assert MANIFEST["name"] not in server.name
