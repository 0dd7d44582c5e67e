from __future__ import annotations

import httpx
import pytest

from mcphost.net.origins import host_of, origin_of, port_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://example.com/mcp?q#f", "https://example.com"),
        ("HTTPS://Example.COM.:443/", "https://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:443", "http://example.com:443"),
        ("https://user@example.com:8443", "https://example.com:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_an_origin_has_one_spelling(url: str, origin: str) -> None:
    assert origin_of(url) == origin_of(httpx.URL(url)) == origin
    assert host_of(url) == origin.partition("://")[2]


def test_a_port_is_named_or_implied_by_the_scheme() -> None:
    assert [port_of(httpx.URL(url)) for url in ("http://a", "https://a", "https://a:80", "ftp://a")] == [80, 443, 80, 0]
