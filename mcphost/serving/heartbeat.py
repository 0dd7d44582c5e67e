"""Progress that mcphost reports for a call that waits, so that the agent does not give it up."""

from __future__ import annotations

from typing import Final

from mcphost.json_values import is_number
from mcphost.serving.gate_lines import Message, MessageId

BEAT_SECONDS: Final = 10.0
"""Between two beats: an agent that is looked at every 30 s shows life, and a log stays readable."""

BEAT_WORDS: Final = "waiting for you in mcphost"

_STEP: Final = 0.001
"""All beats together are less than this, so that the server's own progress still grows after them."""


class Heartbeat:
    """The progress of one call by its token: beats while it waits, and which values of the server still grow."""

    def __init__(self, token: MessageId | None, now: float) -> None:
        self.token = token
        self.next_at = now + BEAT_SECONDS
        self.restarted = False
        """True if the server begins to count again, or may have to begin above a beat."""
        self._beats = 0
        self._base = 0.0
        """The server's last value."""
        self._last = 0.0
        """The agent's last value."""

    def beat(self, now: float) -> Message | None:
        """The beat that is due, as a notification; None if no greater value is left."""
        if (report := self.report(now)) is None:
            return None
        params = {"progressToken": self.token, **report}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    def report(self, now: float) -> Message | None:
        """The beat that is due, as the params of a notification without its token; None as for `beat`."""
        self.next_at = now + BEAT_SECONDS
        self.restarted = True
        self._beats += 1
        value = self._base + _STEP * self._beats / (self._beats + 1)
        if value <= self._last:
            return None
        self._last = value
        return {"progress": value, "message": BEAT_WORDS}

    def passes(self, value: object) -> bool:
        """Take a value of the server; False if the agent may not see it, since it does not grow."""
        if not is_number(value) or not abs(value) < _LARGEST:
            return not self.restarted
        if self.restarted and value <= self._last:
            return False
        if value > self._last:
            self._base = self._last = value
            self._beats = 0
        return True


_LARGEST: Final = 1e300
