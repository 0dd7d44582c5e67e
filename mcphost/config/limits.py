"""``[limits]``: how much of what comes from outside is taken, and why that much.

Knows figures; those who read bytes enforce them.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from mcphost.config.fields import ConfigTable, Count, Seconds
from mcphost.protocol.limits import BATCH_ITEMS, JSON_DEPTH, MESSAGE_BYTES, MESSAGE_ITEMS

MB: Final = 1_000_000


class Limits(ConfigTable):
    """Bounds that hold for each server. Sizes are bytes, times seconds, the rest counts."""

    message_bytes: Annotated[int, Field(ge=4096, le=1024 * MB)] = MESSAGE_BYTES
    """Bytes of one message (a line, a body, an event) after decompression; an endless one ends here."""
    message_items: Count = MESSAGE_ITEMS
    json_depth: Annotated[int, Field(ge=8, le=500)] = JSON_DEPTH
    batch_items: Count = BATCH_ITEMS
    list_pages: Count = 64
    """Pages of one list: a server that never ends its list stops costing time."""
    list_items: Count = 10_000
    """Entries of one list: more can be neither shown nor read."""
    list_seconds: Seconds = 30.0
    """Seconds for all pages of one list: slow pages add up."""
    pending_server_requests: Count = 32
    """Requests of a server waiting for an answer; the next are refused, since nobody answers that many."""
    log_lines_per_second: Count = 2_000
    """Log lines taken per second; the rest is counted and dropped, so that the screen stays alive."""
    log_lines: Count = 5_000
    """Log lines kept: what a person may still scroll through."""
    log_bytes: Annotated[int, Field(ge=4096, le=1024 * MB)] = 5 * MB
    """Bytes of log lines kept, a program's error output among them: few but huge lines must not fill the memory."""
    traffic_frames: Count = 20_000
    """Messages and other frames kept of what passed over the wire: an afternoon of calls."""
    traffic_bytes: Annotated[int, Field(ge=4096, le=1024 * MB)] = 16 * MB
    """Bytes of them kept; of one over a quarter of this only the start is."""
    resource_bytes: Count = 10_000_000
    """Bytes a resource may say it has and be read without a question: more takes a while and much memory to show."""
    process_bytes: Annotated[int, Field(ge=MB, le=1 << 50)] = 1000 * MB
    """Bytes of memory of a server's program, with all it started, above which its card and the log warn: few servers
    have a use for more, and nothing else stops one that never gives any back."""
    exit_grace_sec: Seconds = 2.0
    """Seconds a program has to leave after each step of stopping it, so that leaving the app stays quick."""
