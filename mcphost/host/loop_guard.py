"""Keeps mcphost from serving itself.

To servers that may be mcphost, connections send a random name of their process, which the endpoint of the same process
recognizes. Below a process that serves agents, `mcphost.cli.serving` refuses to serve.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.client.session_opening import MARK_KEY
from mcphost.config import ServerConfig
from mcphost.protocol.urls import is_loopback

OWN_MARK: Final = os.urandom(16).hex()
"""The name of this process."""

ITSELF: Final = "this mcphost is the one that asks, and does not serve itself; remove this entry from its configuration"


def may_be_mcphost(entry: ServerConfig) -> bool:
    """True if a server could be mcphost: by its command line, or by its address on this machine."""
    if entry.url is not None:
        return is_loopback(urlsplit(entry.url).hostname or "")
    return any("mcphost" in word for word in (entry.command or "", *entry.args))


def is_own(meta: Mapping[str, Any]) -> bool:
    """True if a client that introduces itself with this ``_meta`` is in this process."""
    return meta.get(MARK_KEY) == OWN_MARK
