"""Facts about roots: the folders that a server may use, why, and the last list that it got."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from textual.content import Content

from mcphost.config import home_folder
from mcphost.host.host import Host
from mcphost.host.server_requests.roots import OfferedRoot, SentRoots
from mcphost.protocol.display import age_text, show_line
from mcphost.tui.kit.facts_table import Fact, fact

SHOWN = 30
"""Folders that are listed; more are counted."""


def root_facts(host: Host, server: str | None) -> Iterator[Fact]:
    """The roots of this server (None: of every server), and the last list that it got."""
    folders = host.roots.offered(server)
    who = "shared now"
    if not folders:
        declined = server is not None and host.roots.declined(server)
        yield fact(who, "none (you declined; sharing a folder changes that)" if declined else "none")
    for number, folder in enumerate(folders[:SHOWN]):
        yield Fact("" if number else who, folder_words(folder, server))
    if len(folders) > SHOWN:
        yield fact("", f"and {len(folders) - SHOWN} more")
    if server is not None:
        yield fact("last requested", last_request_words(host.roots.sent(server), time.monotonic()))


def folder_words(folder: OfferedRoot, server: str | None) -> Content:
    """A folder, its source, and any problem."""
    mark = "✖" if folder.problem else "●"
    for_all = ", all servers" if folder.server is None and server is not None else ""
    parts: list[tuple[str, str]] = [
        (f"{mark} ", "$text-error" if folder.problem else "$text-success"),
        (short(folder.path), ""),
        (f" ({folder.source.value}{for_all})", "$foreground-muted"),
    ]
    if folder.problem:
        parts.append((f" not shared: it {folder.problem}", "$text-error"))
    elif folder.warning:
        parts.append((f" ▲ {folder.warning}", "$text-warning"))
    return Content.assemble(*parts)


def last_request_words(sent: SentRoots | None, now: float) -> str:
    """The time of the server's last request, and the number of folders in the response."""
    if sent is None:
        return "not in this run"
    count = len(sent.roots)
    return f"{age_text(now - sent.at)}: got {'no folder' if not count else f'{count} folder' + 's' * (count > 1)}"


def short(path: Path) -> str:
    """A path, safe to show, with home as ``~``."""
    home = home_folder() or path
    inside = path == home or home in path.parents
    return show_line(str(Path("~") / path.relative_to(home) if inside else path), 1000)
