"""Links from a text to other resources of the same server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urldefrag, urljoin

from textual.content import Content

from mcphost.protocol.display import show_line
from mcphost.tui.kit.framed import PickScreen
from mcphost.tui.kit.rows import Cell, columns

SEARCHED: Final = 200_000
"""Characters of a text that are searched."""

MOST: Final = 200
"""Links of a text that are listed."""

_ELSEWHERE: Final = frozenset(
    ("http", "https", "ws", "wss", "ftp", "mailto", "tel", "data", "javascript", "vbscript", "about", "blob")
)
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.\-]{0,39}"
_LINK: Final = re.compile(
    rf"\[(?P<words>[^\[\]\n]{{1,200}})\]\(<?(?P<target>[^\s<>()]{{1,2000}})>?(?:\s+[\"'][^\n]{{0,200}})?\)"
    rf"|(?<![\w+.\-])(?P<bare>{_SCHEME}://[^\s<>()\[\]{{}}\"'`|\\]{{1,2000}})"
)
_STARTS: Final = re.compile(rf"({_SCHEME}):")


class ResourceTextLink(NamedTuple):
    """Both are as they came."""

    words: str
    uri: str


@lru_cache(maxsize=32)
def links_in(text: str, base: str) -> tuple[ResourceTextLink, ...]:
    """The links in ``text``, each URI once; relative ones are resolved against ``base``, the URI of the text."""
    found: dict[str, ResourceTextLink] = {}
    for link in _links(text[:SEARCHED], base):
        if len(found) < MOST and link.uri != base:
            found.setdefault(link.uri, link)
    return tuple(found.values())


def _links(text: str, base: str) -> Iterator[ResourceTextLink]:
    for match in _LINK.finditer(text):
        bare = match["bare"]
        target = bare.rstrip(".,;:!?*_") if bare else match["target"]
        uri = _resolved(target, base)
        if uri:
            yield ResourceTextLink("" if bare else match["words"], uri)


def _resolved(target: str, base: str) -> str:
    """Resolve a URI; empty if it does not belong to this server."""
    start = _STARTS.match(target)
    if start is not None:
        return "" if start[1].lower() in _ELSEWHERE else target
    scheme = _STARTS.match(base)
    if scheme is None or "://" not in base or target.startswith(("#", "//")):
        return ""
    rest = base[scheme.end() :]
    joined, _ = urldefrag(urljoin(f"http:{rest}", target))  # urljoin resolves relative URIs for known schemes only
    return f"{scheme[1]}:{joined.removeprefix('http:')}"


class LinksScreen(PickScreen[ResourceTextLink, str]):
    """Dismissed with the URI of the chosen link."""

    HELP = (
        "The resources that this text links to, of the server it came from. Web addresses are not among them: "
        "nothing here opens a browser."
    )

    def __init__(self, links: Sequence[ResourceTextLink]) -> None:
        super().__init__("Read which resource?", "read", links)

    def row(self, item: ResourceTextLink, width: int) -> Content:
        words = f"{show_line(item.words, 60)}  " if item.words and item.words != item.uri else ""
        uri = show_line(item.uri, 300), "$foreground-muted" if words else ""
        return columns(width, [Cell(Content.assemble((words, "bold"), uri))])

    def value(self, item: ResourceTextLink) -> str:
        return item.uri
