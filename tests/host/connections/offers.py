"""A server with tools, resources, templates and prompts, and the listing of all."""

from __future__ import annotations

from typing import Any

from mcphost.host.catalog import CatalogKind
from tests.host.conftest import RecordingHost, script

README, ODD = "memo:///readme.md", "Foo+BAR://x/%7e%2F/ü ?a=b"


def serve(*args: object, **entry: Any) -> dict[str, Any]:
    return script("offers.py", *args, **entry)


async def listed(running: RecordingHost, server: str = "a") -> None:
    for kind in CatalogKind:
        await running.resources.current(server, kind)
