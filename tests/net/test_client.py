from __future__ import annotations

import ssl

import httpx
import pytest

from mcphost import __version__
from mcphost.net.client import new_client, proxy_for

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_the_proxy_of_the_environment_is_the_way_to_other_machines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for(httpx.URL("http://server.example/")) is None
    monkeypatch.setenv(name, PROXY)
    found = proxy_for(httpx.URL("http://server.example:8000/"))
    assert found is not None
    assert str(found.url) == PROXY
    monkeypatch.setenv("NO_PROXY", "server.example")
    assert proxy_for(httpx.URL("http://server.example:8000/")) is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "x.localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_proxy_is_a_way_to_this_machine(scheme: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, PROXY)
    assert proxy_for(httpx.URL(f"{scheme}://{host}:8000/")) is None
    assert proxy_for(httpx.URL(f"{scheme}://localhost.example.com:8000/")) is not None


async def test_every_client_has_the_same_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    proxies: list[httpx.Proxy | None] = []

    def engine(context: ssl.SSLContext, proxy: httpx.Proxy | None) -> httpx.AsyncBaseTransport:
        proxies.append(proxy)
        moved = {"Location": "http://elsewhere.example/", "Set-Cookie": "a=b"}
        return httpx.MockTransport(lambda request: httpx.Response(302, headers=moved))

    url = httpx.URL("http://server.example/")
    async with new_client(url, connect=2.0, headers={"X-Own": "1"}, engine=engine) as client:
        responses = [await client.get(url) for _ in range(2)]
    assert [str(proxy.url) for proxy in proxies if proxy] == [PROXY]
    assert [response.status_code for response in responses] == [302, 302]
    request = responses[1].request
    assert "Cookie" not in request.headers
    assert (request.headers["X-Own"], request.headers["User-Agent"]) == ("1", f"mcphost/{__version__}")
    assert request.extensions["timeout"] == {"connect": 2.0, "pool": 2.0, "read": None, "write": None}


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "ftp://proxy.example"])
def test_a_proxy_of_another_kind_is_refused(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ValueError, match="only http and https proxies"):
        new_client(httpx.URL("http://server.example/"), connect=1.0, headers={})
