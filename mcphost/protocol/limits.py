"""How much of one message is taken where nobody sets another bound: what `[limits]` and the transports agree on.

Sizes are in bytes, and decimal as they are shown: 1 MB is 1,000,000 bytes.
"""

from __future__ import annotations

from typing import Final

MESSAGE_BYTES: Final = 16_000_000
"""Of one message: a large screenshot as base64 fits, and with its text and its parsed value beside each other, as they
are for a moment, it takes less than 64 MB of memory."""

MESSAGE_ITEMS: Final = 50_000
"""Objects and arrays in a message above 1 MB: they, not the bytes, make reading slow enough to freeze."""

JSON_DEPTH: Final = 128
"""Levels of nesting in a message: far above any real schema, far below what overflows the parser."""

BATCH_ITEMS: Final = 100
"""Messages in one JSON-RPC batch: a server has no cause to answer more at once."""
