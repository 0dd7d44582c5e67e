from __future__ import annotations

from typing import Any

import pytest

from mcphost.errors import InvalidResult
from mcphost.protocol.urls import URL_CHARACTERS, is_loopback, read_address

SCRIPT = "letters of another script"


@pytest.mark.hostile("F06")
@pytest.mark.requirement("ELIC-19")
@pytest.mark.parametrize(
    ("url", "opens", "host", "readable", "doubts"),
    [
        ("https://example.com/a?b=c#d", None, "example.com", "example.com", ()),
        ("HTTPS://Example.COM/", "https://example.com/", "example.com", "example.com", ()),
        ("http://localhost:3000/x", None, "localhost", "localhost", ()),
        ("http://127.0.0.1:1/x", None, "127.0.0.1", "127.0.0.1", ("a number",)),
        ("https://[::1]/x", None, "::1", "::1", ("a number",)),
        ("https://2130706433/", None, "2130706433", "2130706433", ("a number",)),
        ("https://xn--pple-43d.com/", None, "xn--pple-43d.com", "аpple.com", (SCRIPT, "several scripts")),
        ("https://аpple.com/", "https://xn--pple-43d.com/", "xn--pple-43d.com", "аpple.com", (SCRIPT, "several")),
        (
            "https://bücher.example/",
            "https://xn--bcher-kva.example/",
            "xn--bcher-kva.example",
            "bücher.example",
            (SCRIPT,),
        ),
        ("https://ⓔxample.com/", "https://example.com/", "example.com", "example.com", ("disguise",)),
        ("https://xn--99999.com/", None, "xn--99999.com", None, ()),
        ("https://example.com:8443/", None, "example.com", "example.com", ("port 8443",)),
        ("https://h.example/ä?ö=ü", "https://h.example/%C3%A4?%C3%B6=%C3%BC", "h.example", "h.example", ()),
        ("https://h.example/%action|{x}", "https://h.example/%action%7C%7Bx%7D", "h.example", "h.example", ()),
    ],
)
def test_an_address_is_read_with_what_is_suspicious_about_it(
    url: str, opens: str | None, host: str, readable: str | None, doubts: tuple[str, ...]
) -> None:
    address = read_address(url)
    assert (address.url, address.opens, address.host) == (url, opens or url, host)
    assert address.opens.isascii()
    assert readable is None or address.readable_host == readable
    assert len(address.doubts) == len(doubts) or readable is None
    assert all(word in doubt for word, doubt in zip(doubts, address.doubts, strict=False))


@pytest.mark.hostile("F06")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "must be text"),
        ("", "not one of the web"),
        ("javascript:alert(1)", "not one of the web"),
        ("file:///etc/passwd", "not one of the web"),
        ("data:text/html,x", "not one of the web"),
        ("--flag", "not one of the web"),
        ("http://example.com/", "not https"),
        ("http://localhost.evil.example/", "not https"),
        ("https://user@example.com/", "user name"),
        ("https://example.com@evil.example/", "user name"),
        ("https:///path", "no host"),
        ("https://ex%61mple.com/", "no host"),
        ("https://" + "ä" * 80 + ".example/", "no host"),
        ("https://example.com:99999/", "cannot be read"),
        ("https://[::1/", "cannot be read"),
        ("https://example.com\\@evil.example/", "characters"),
        ("https://example.com/\x1b[31m", "characters"),
        ("https://example.com/ --flag", "characters"),
        ("https://exam\u202eple.com/", "characters"),
        ("https://example.com/" + "x" * URL_CHARACTERS, "8212 characters"),
    ],
)
def test_an_address_that_is_not_opened(url: Any, words: str) -> None:
    with pytest.raises(InvalidResult, match=words):
        read_address(url)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *((host, True) for host in ("localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "::1%lo")),
        *((host, True) for host in ("LocalHost", "localhost.", "127.0.0.1.", "::ffff:127.0.0.1")),
        *(
            (host, False)
            for host in ("", "localhost.example.com", "192.168.1.5", "0.0.0.0", "127.1", "2130706433", "::")
        ),
        ("64:ff9b::7f00:1", False),  # these are translated on another machine
        ("2002:7f00:1::", False),
    ],
)
def test_a_host_is_this_machine_by_its_name_or_address_alone(host: str, here: bool) -> None:
    assert is_loopback(host) is here
