from __future__ import annotations

from ipaddress import ip_address

import pytest

from mcphost.net.addresses import literal_address, may_reach

PUBLIC, PRIVATE, LOOPBACK, LINK_LOCAL = "93.184.216.34", "10.0.0.1", "127.0.0.1", "169.254.169.254"


@pytest.mark.parametrize(
    ("address", "home", "allowed"),
    [
        (PUBLIC, PUBLIC, True),
        (PUBLIC, PRIVATE, True),
        (PRIVATE, PUBLIC, False),
        (PRIVATE, "192.168.1.1", True),
        (PRIVATE, LOOPBACK, True),
        (LOOPBACK, PUBLIC, False),
        (LOOPBACK, PRIVATE, False),
        (LOOPBACK, "::1", True),
        (LINK_LOCAL, LOOPBACK, False),
        (LINK_LOCAL, LINK_LOCAL, True),
        ("::ffff:127.0.0.1", PUBLIC, False),
        ("64:ff9b::a00:1", PUBLIC, False),
        ("64:ff9b::a9fe:a9fe", PRIVATE, False),
        ("64:ff9b::a9fe:a9fe", LOOPBACK, False),
        ("64:ff9b::a00:1", "64:ff9b::a00:2", True),
        ("2002:a00:1::", PUBLIC, False),
        ("2002:a9fe:a9fe::", PRIVATE, False),
        ("::ffff:169.254.169.254", PRIVATE, False),
        ("100.64.0.1", PUBLIC, False),
        ("0.0.0.0", PUBLIC, False),
    ],
)
def test_private_addresses_are_for_servers_in_private_networks(address: str, home: str, allowed: bool) -> None:
    assert may_reach(ip_address(address), [ip_address(home)]) is allowed


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", LOOPBACK),
        ("API.LocalHost.", LOOPBACK),
        ("[::ffff:10.0.0.1]", PRIVATE),
        ("fe80::1%eth0", "fe80::1"),
        ("example.com", None),
        ("notlocalhost", None),
    ],
)
def test_a_host_may_spell_out_its_address(host: str, address: str | None) -> None:
    assert literal_address(host) == (None if address is None else ip_address(address))
