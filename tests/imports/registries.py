"""A registry of MCP servers on the loopback, by API v0.1, which can be made to lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.auth.people import Talk, Web

META = "io.modelcontextprotocol.registry/official"


def listed(name: str, version: str = "1.0.0", **more: Any) -> dict[str, Any]:
    """An entry; ``status`` and the like go into the registry's own part, all else into the server's."""
    state = {"status": "active", "publishedAt": "2026-01-02T03:04:05.678901Z", "isLatest": True}
    state |= {key: more.pop(key) for key in ("status", "statusMessage", "publishedAt") if key in more}
    server = {"name": name, "description": f"about {name}", "version": version, **more}
    return {"server": server, "_meta": {META: state}}


@dataclass
class StubRegistry:
    """Answers searches by name, pages included, and single versions; ``lie`` may answer in its place."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    page: int = 2
    lie: Callable[[Talk], object] | None = None

    def __call__(self, talk: Talk) -> None:
        if self.lie is not None and self.lie(talk) is not None:
            return
        address = urlsplit(talk.visit.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        words = address.path.removeprefix("/v0.1/").split("/")
        if words == ["servers"]:
            talk.json(self._list(query))
        elif len(words) == 4 and words[2] == "versions":
            self._one(talk, unquote(words[1]), unquote(words[3]))
        else:
            talk.json({"error": "no such path"}, 404)

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        found = [each for each in self.entries if query.get("search", "") in each["server"]["name"]]
        start = int(query.get("cursor", 0))
        more = {"nextCursor": str(start + self.page)} if start + self.page < len(found) else {}
        servers = found[start : start + self.page]
        return {"servers": servers, "metadata": {"count": len(servers), **more}}

    def _one(self, talk: Talk, name: str, version: str) -> None:
        named = [each for each in self.entries if each["server"]["name"] == name]
        found = [each for each in named if version in ("latest", each["server"]["version"])]
        if found:
            talk.json(found[0])
        else:
            talk.json({"error": "Server not found"}, 404)


def base(web: Web) -> str:
    return f"http://127.0.0.1:{web.port}"
