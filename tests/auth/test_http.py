"""One exchange of a sign-in: which address of which network is asked, over which TLS, by which proxy."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from mcphost.auth import http as auth_http
from mcphost.auth.flow.steps import HttpExchange, Unreachable
from mcphost.net.addresses import Address
from tests.auth.people import Talk, Web


def names(**known: str) -> auth_http.ResolveHost:
    """A resolver that knows these names."""

    async def find(host: str, port: int) -> Sequence[Address]:
        return [ipaddress.ip_address(each) for each in known[host.replace(".", "_")].split()]

    return find


@pytest.mark.hostile("O06")
@pytest.mark.requirement("SEC-10", "AUTH-19")
@pytest.mark.parametrize(
    ("home_at", "issuer_at"),
    [
        ("203.0.114.1", "127.0.0.1"),
        ("203.0.114.1", "::1"),
        ("203.0.114.1", "::ffff:127.0.0.1"),
        ("203.0.114.1", "64:ff9b::7f00:1"),
        ("203.0.114.1", "2002:7f00:1::"),
        ("203.0.114.1", "10.1.2.3"),
        ("203.0.114.1", "172.16.0.1 192.168.0.1 100.64.0.1"),
        ("203.0.114.1", "fd00::1 fe80::1"),
        ("203.0.114.1", "169.254.169.254"),
        ("203.0.114.1", "0.0.0.0 :: 224.0.0.1 240.0.0.1"),
        ("10.1.2.3", "127.0.0.1"),
        ("10.1.2.3", "169.254.169.254"),
        ("127.0.0.1", "169.254.169.254"),
    ],
)
async def test_a_name_in_a_foreign_private_network_is_not_asked(home_at: str, issuer_at: str) -> None:
    """Judged by the address that would be connected to, whatever the name is."""
    fetcher = auth_http.Fetcher("https://mcp.test/", names(mcp_test=home_at, as_test=issuer_at))
    answer = await fetcher.fetch(HttpExchange("t", "https://as.test/x", "metadata"))
    assert answer == Unreachable("its address is in a private network, where the server does not live; not asked")


async def test_a_provider_that_the_user_named_may_be_in_its_own_network() -> None:
    fetcher = auth_http.Fetcher("https://mcp.test/", names(mcp_test="203.0.114.1", idp_test="127.0.0.1"))
    place = "https://idp.test:1/x"
    own = await fetcher.fetch(HttpExchange("t", place, "metadata", home="https://idp.test"))
    servers = await fetcher.fetch(HttpExchange("t", place, "metadata"))
    assert own == Unreachable("connection refused")
    assert "not asked" in str(servers)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """Trusted by way of the environment."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return authority


def hello(talk: Talk) -> None:
    talk.json({"host": talk.headers["host"]})


async def fetch(url: str, **known: str) -> Any:
    fetcher = auth_http.Fetcher(url, names(mcp_test="127.0.0.1", **known))
    return await fetcher.fetch(HttpExchange("t", url, "metadata"))


@pytest.mark.hostile("O06")
@pytest.mark.requirement("AUTH-19")
async def test_a_checked_address_gets_the_hosts_name_in_tls_and_header(
    authority: trustme.CA,
) -> None:
    """Pinned, and every address of a name is tried."""
    asked: list[Any] = []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.sni_callback = lambda _, name, __: asked.append(name)
    authority.issue_cert("as.test").configure_cert(tls)
    with Web(hello, tls) as web:
        answer = await fetch(f"https://as.test:{web.port}/x", as_test="127.0.0.2 ::1 127.0.0.1")
        assert answer.content == f'{{"host": "as.test:{web.port}"}}'.encode()
        assert asked == ["as.test"]
        wrong = await fetch(f"https://other.test:{web.port}/x", other_test="127.0.0.1")
        assert "certificate is not trusted" in wrong.reason
        assert "other.test" in wrong.reason
        assert len(web.visits) == 1


async def test_an_untrusted_certificate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")  # by the authorities that are trusted without it
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("as.test").configure_cert(tls)
    with Web(hello, tls) as web, Web(hello) as plain:
        answer = await fetch(f"https://as.test:{web.port}/x", as_test="127.0.0.1")
        assert answer.reason == "its certificate is not trusted: unable to get local issuer certificate"
        answer = await fetch(f"https://as.test:{plain.port}/x", as_test="127.0.0.1")
        assert answer.reason.startswith("no TLS with it")
        free = plain.port
    assert (await fetch(f"http://127.0.0.1:{free}/x")).reason == "connection refused"


@asynccontextmanager
async def unwilling_proxy() -> AsyncIterator[tuple[int, list[str]]]:
    """A proxy that refuses every connection; its port, and the requests it got."""
    asked: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().partition(" HTTP")[0])
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked


async def test_the_proxy_is_used_for_other_machines_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with unwilling_proxy() as (port, asked):
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        with Web(hello) as web:
            answer = await fetch("https://as.test/x")  # its address is the proxy's to find
            assert "403" in answer.reason
            assert asked == ["CONNECT as.test:443"]
            for host in ("localhost", "127.0.0.1"):
                assert (await fetch(f"http://{host}:{web.port}/x")).status == 200
            monkeypatch.setenv("NO_PROXY", "as.test")
            await fetch(f"https://as.test:{web.port}/x", as_test="127.0.0.1")
            assert len(asked) == 1


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("ALL_PROXY", "socks5://127.0.0.1:1", "socks5"), ("SSL_CERT_FILE", "/no/such/file.pem", "no such file")],
)
async def test_an_environment_that_cannot_be_used_is_a_reason_and_no_crash(
    name: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert says in (await fetch("https://as.test/x", as_test="127.0.0.1")).reason
