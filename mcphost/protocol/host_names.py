"""Shows host names so that none can pass for another: in both spellings, with a warning about deceptive letters.

Whether a host is trustworthy is not decided here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mcphost.protocol.display import readable_label, show_line

LONGEST: Final = 253
"""Characters of a host name; the limit of the domain name system."""

_ONE_SCRIPT: Final = frozenset(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"))
"""Scripts that are mixed in honest names."""


class HostName(NamedTuple):
    """A host with its port, safe to show: ``wire`` as it is resolved (punycode), ``read`` as a person reads it."""

    wire: str
    read: str
    warning: str = ""
    """A warning about its letters, or an empty text."""

    @property
    def both(self) -> str:
        """Both spellings, or the only one."""
        return self.wire if self.wire == self.read else f"{self.wire} (reads {self.read})"


def host_in(url: str) -> HostName:
    """The host of a URL; the start of the text if it names none."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "")[:LONGEST], parts.port
    except ValueError:
        host, port = "", None
    if not host:
        return HostName(show_line(url, 80), show_line(url, 80))
    labels = host.split(".")
    wire, read = [_wire(label) for label in labels], [readable_label(label) for label in labels]
    brackets = ("[", "]") if ":" in host else ("", "")
    names = [show_line(".".join(each).join(brackets), 300) for each in (wire, read)]
    end = f":{port}" if port is not None else ""
    return HostName(f"{names[0]}{end}", f"{names[1]}{end}", _warning(names[0], names[1], read))


def in_both(url: str) -> str:
    """The URL with its host in punycode, followed by the readable host if it differs. Not safe to show."""
    host = host_in(url)
    start, slashes, rest = url.partition("://")
    if host.wire == host.read or not slashes:
        return url
    end = min((at for sign in "/?#" if (at := rest.find(sign)) >= 0), default=len(rest))
    return f"{start}://{host.wire}{rest[end:]}  (reads {host.read})"


def warnings_of(urls: Iterable[str]) -> list[str]:
    """The warnings about the hosts of these URLs, each once."""
    return list(dict.fromkeys(found for url in urls if (found := host_in(url).warning)))


def _wire(label: str) -> str:
    if label.isascii():
        return label
    try:
        return label.encode("idna").decode("ascii")
    except UnicodeError:
        return "xn--" + label.encode("punycode", "replace").decode("ascii")


def _warning(wire: str, read: str, labels: Iterable[str]) -> str:
    if wire.isascii() and wire == read:
        return ""
    mixed = next((scripts for label in labels if len(scripts := sorted(set(_scripts(label)))) > 1), None)
    if mixed is not None:
        names = " and ".join(mixed)
        return f"{read} mixes {names} letters in one name, as forgeries do: what is meant is {wire}"
    return f"{read} holds letters other than a to z, which may look like them: what is meant is {wire}"


def _scripts(label: str) -> Iterator[str]:
    for letter in label:
        if unicodedata.category(letter).startswith("L"):
            script = unicodedata.name(letter, "unknown").partition(" ")[0]
            yield "East Asian" if script in _ONE_SCRIPT else script.capitalize()
