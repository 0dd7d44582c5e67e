"""How long a model takes: since when it answers, and when one that is busy is asked again.

Knows the time as it was seen here; a request that was not looked at from its beginning has none.
"""

from __future__ import annotations

import time

from mcphost.host.asked.sampling_handle import Sampling, SamplingState


class SamplingClock:
    """Looks at ``sampling`` whenever it went on; times in seconds."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._attempt = sampling.attempts
        self._began: float | None = None
        self._ended: float | None = None
        self._waiting: object = None
        self._waits_until = 0.0

    def look(self) -> None:
        """It may have gone on."""
        now, sampling = time.monotonic(), self._sampling
        if sampling.attempts != self._attempt:
            streams = sampling.state is SamplingState.STREAMING
            self._attempt, self._began, self._ended = sampling.attempts, now if streams else None, None
        if sampling.state is not SamplingState.STREAMING and self._ended is None:
            self._ended = now
        if sampling.waiting is not self._waiting:
            self._waiting = sampling.waiting
            self._waits_until = now + (0.0 if sampling.waiting is None else sampling.waiting.seconds)

    @property
    def seconds(self) -> float | None:
        """How long the last answer takes, or took."""
        return None if self._began is None else (self._ended or time.monotonic()) - self._began

    @property
    def patience(self) -> float:
        """Until a busy model is asked again."""
        return max(0.0, self._waits_until - time.monotonic())
