"""Reads what came over HTTP as messages, by the limits that hold and the revision that was agreed, and tells the tap.

Knows bytes that are whole. Refuses to know how they came and whose the messages are.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcphost.protocol.display import size_text
from mcphost.protocol.framing import Overlong
from mcphost.protocol.jsonrpc import Malformed, Message, answered_by, decode_in_steps
from mcphost.protocol.revisions import Revision
from mcphost.transports.base import TransportLimits
from mcphost.transports.tap import Tap
from mcphost.transports.turns import in_turns


class MessageReader:
    """Bytes to messages, for one connection."""

    def __init__(self, limits: TransportLimits, tap: Tap | None) -> None:
        self.limits = limits
        self._tap = tap
        self._batch_items = 0

    def agreed(self, revision: Revision) -> None:
        """From now on arrays are taken where the revision has them."""
        self._batch_items = self.limits.batch_items if revision.batches else 0

    async def messages(self, data: bytes) -> Sequence[Message | Malformed]:
        """The messages in a body, or in an event's data."""
        if self._tap is not None:
            self._tap.received(data)
        items, limits = self._batch_items, self.limits
        return await in_turns(
            decode_in_steps(data, batch_items=items, max_items=limits.message_items, max_depth=limits.json_depth)
        )

    def too_large(self, event: Overlong) -> Malformed:
        """What to make of an event over the limit."""
        reason = f"an event over the limit of {size_text(self.limits.message_bytes)}"
        if self._tap is not None:
            self._tap.noted("malformed", f"{reason}: {event.start.decode('utf-8', 'replace')}…")
        limit = self.limits.message_bytes
        return Malformed(reason, event.start, answers=answered_by(event.start), limit=limit)
