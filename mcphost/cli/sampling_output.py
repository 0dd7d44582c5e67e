"""Tells on stderr what servers ask of language models in a run without a screen.

Knows what is worth a line. Refuses to know how a person is asked (`mcphost.cli.server_questions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcphost.cli.output import remark
from mcphost.host.events import Event, SamplingChanged
from mcphost.host.host import Host
from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from mcphost.host.sampling.request import Sampling, SamplingState


class ModelWatch:
    """Says on stderr which model was asked for whom, and why one did not answer: the server learns nothing of that."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._told: set[tuple[int, int | SamplingState]] = set()
        host.bus.observe(self._heard)

    def _heard(self, event: Event) -> None:
        sampling = self._host.samplings.get(event.sampling) if isinstance(event, SamplingChanged) else None
        if sampling is None:
            return
        from mcphost.host.sampling.request import SamplingState  # late: most runs ask no model

        if sampling.state is SamplingState.STREAMING and self._is_new(sampling, sampling.attempts):
            remark(f"{sampling.server} has {show_line(sampling.model.entry)} asked ({show_line(sampling.reason, 200)})")
        if sampling.state is SamplingState.FAILED and self._is_new(sampling, sampling.state):
            remark(f"{sampling.server} got no answer of a model: {show_line(str(sampling.error), 1000)}")

    def _is_new(self, sampling: Sampling, what: int | SamplingState) -> bool:
        key = sampling.number, what
        new = key not in self._told
        self._told.add(key)
        return new
