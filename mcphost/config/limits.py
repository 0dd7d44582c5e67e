"""The keys of ``[limits]``: the bounds that a user may change, with their ranges.

Defaults that the client and the transports need without a configuration come from `mcphost.protocol.limits`, which
gives their reasons; those that only the host applies are here.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from mcphost.config.fields import ConfigTable, Count, Seconds
from mcphost.protocol import limits

MB: Final = 1_000_000


class Limits(ConfigTable):
    """Bounds that hold for each server. Sizes are bytes, times seconds, the rest counts."""

    message_bytes: Annotated[int, Field(ge=4096, le=1024 * MB)] = limits.MESSAGE_BYTES
    """Bytes of one message (a line, a body, an event) after decompression; an endless one ends here."""
    message_items: Count = limits.MESSAGE_ITEMS
    """Objects and arrays in one message above 1 MB."""
    json_depth: Annotated[int, Field(ge=8, le=500)] = limits.JSON_DEPTH
    """Levels of nesting in one message."""
    batch_items: Count = limits.BATCH_ITEMS
    """Messages in one batch."""
    list_pages: Count = limits.LIST_PAGES
    """Pages of one list."""
    list_items: Count = limits.LIST_ITEMS
    """Entries of one list."""
    list_seconds: Seconds = limits.LIST_SECONDS
    """Seconds after which no further page of a list is asked for."""
    pending_server_requests: Count = limits.PENDING_SERVER_REQUESTS
    """Requests of a server that wait for an answer; the next are refused. Of questions to the user six wait at most."""
    log_lines_per_second: Count = 2_000
    """Log lines taken per second; the rest is counted and dropped, so that the screen stays alive."""
    log_lines: Count = 5_000
    """Log lines kept: what a person may still scroll through."""
    log_bytes: Annotated[int, Field(ge=4096, le=1024 * MB)] = 5 * MB
    """Bytes of log lines kept, a program's error output among them: few but huge lines must not fill the memory."""
    traffic_frames: Count = 20_000
    """Messages kept of the traffic, and other things that passed over the wire: an afternoon of calls."""
    traffic_bytes: Annotated[int, Field(ge=4096, le=1024 * MB)] = 16 * MB
    """Bytes of messages kept; of one over a quarter of this only the start is kept."""
    resource_bytes: Count = 10_000_000
    """Bytes a resource may claim to have and be read without a question on screen: a larger one takes long to show."""
    process_bytes: Annotated[int, Field(ge=MB, le=1 << 50)] = 1000 * MB
    """Bytes of memory of a server's program and its descendants above which its card and the log warn, measured only
    while the card is in view: few servers have a use for more, and nothing else stops one that leaks."""
    exit_grace_sec: Seconds = limits.EXIT_SECONDS
    """Seconds that a program has to leave, after each step of stopping it; what it leaves behind has half a second."""
