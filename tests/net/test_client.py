from __future__ import annotations

import httpx
import pytest

from mcphost.net.client import proxy_for

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
