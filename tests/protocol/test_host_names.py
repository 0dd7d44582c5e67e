"""Hosts in both spellings, and the letters that deceive."""

from __future__ import annotations

import pytest

from mcphost.protocol.host_names import host_in, in_both, warnings_of

HOSTS = [
    ("https://as.example.com/authorize?x=1", "as.example.com", "as.example.com", ""),
    ("http://127.0.0.1:4000/cb", "127.0.0.1:4000", "127.0.0.1:4000", ""),
    ("http://[::1]:8080/", "[::1]:8080", "[::1]:8080", ""),
    ("https://bücher.example/", "xn--bcher-kva.example", "bücher.example", "other than a to z"),
    ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", "bücher.example", "other than a to z"),
    ("https://xn--80ak6aa92e.com", "xn--80ak6aa92e.com", "аррӏе.com", "other than a to z"),
    ("https://login.\u0430pple.com:444", "login.xn--pple-43d.com:444", "login.\u0430pple.com:444", "mixes Cyrillic"),
    ("https://xn--pple-43d.com", "xn--pple-43d.com", "\u0430pple.com", "mixes Cyrillic and Latin"),
    ("https://メールmail漢字.jp", "xn--mail-kt4c8b7fz650b6htb.jp", "メールmail漢字.jp", "mixes East Asian and Latin"),
    ("https://東京かな.jp", "xn--u8j2cs63jx5v.jp", "東京かな.jp", "other than a to z"),
    ("https://[", "https://[", "https://[", ""),
    ("https://a:99999999/", "https://a:99999999/", "https://a:99999999/", ""),
    ("nonsense", "nonsense", "nonsense", ""),
    (f"https://xn--{'a' * 4000}.com", None, None, None),
]


@pytest.mark.hostile("O03")
@pytest.mark.parametrize(("url", "wire", "read", "warning"), HOSTS, ids=lambda value: str(value)[:30])
def test_a_host_is_shown_in_both_spellings(url: str, wire: str | None, read: str, warning: str) -> None:
    found = host_in(url)
    assert len(found.both) < 1000
    if wire is not None:
        assert (found.wire, found.read) == (wire, read)
        assert warning in found.warning
        assert bool(warning) == bool(found.warning)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://as.example.com:1/a?b#c", "https://as.example.com:1/a?b#c"),
        ("https://аррӏе.com", "https://xn--80ak6aa92e.com  (reads аррӏе.com)"),
        ("https://аррӏе.com:8/а?u=http://x/", "https://xn--80ak6aa92e.com:8/а?u=http://x/  (reads аррӏе.com:8)"),
        ("https://xn--80ak6aa92e.com?a=/", "https://xn--80ak6aa92e.com?a=/  (reads аррӏе.com)"),
        ("аррӏе", "аррӏе"),
    ],
)
def test_an_address_begins_with_the_host_that_is_looked_up(url: str, told: str) -> None:
    assert in_both(url) == told


def test_a_warning_is_given_once() -> None:
    assert len(warnings_of(["https://bücher.example/a", "https://bücher.example/b", "https://b.example"])) == 1
