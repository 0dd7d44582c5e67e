"""Decides which IP addresses may be reached on behalf of a server.

Specification: security best practices, server-side request forgery.
"""

from __future__ import annotations

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK: Final = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
"""The addresses of ``localhost``, whatever a resolver says."""

_CARRIER_GRADE_NAT: Final = ipaddress.ip_network("100.64.0.0/10")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def literal_address(host: str) -> Address | None:
    """The address that a host spells out; None for a name other than ``localhost``."""
    if f".{host}".lower().rstrip(".").endswith(".localhost"):
        return LOOPBACK[0]
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    return _embedded_ipv4(address)


def may_reach(address: Address, home: list[Address]) -> bool:
    """True if metadata may be fetched from ``address`` for a server whose addresses are ``home``.

    Public addresses always; this machine only for a server on it; a private network only for a server in a private
    network or on this machine; a link-local address only if it is the server's own.
    """
    address = _embedded_ipv4(address)
    homes = [_embedded_ipv4(each) for each in home]
    # Cloud providers serve credentials at link-local addresses.
    if address.is_link_local or address.is_unspecified or address.is_multicast:
        return address in homes
    if address.is_loopback:
        return any(each.is_loopback for each in homes)
    private = address.is_private or address.is_reserved or address in _CARRIER_GRADE_NAT
    return not private or any(each.is_private for each in homes)


def _embedded_ipv4(address: Address) -> Address:
    """The IPv4 address inside a mapped, 6to4 or NAT64 address; any other address unchanged."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour or address
    return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address
