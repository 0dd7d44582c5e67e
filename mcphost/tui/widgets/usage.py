"""What a server's program was seen to take of the machine, for its card.

Knows words. Refuses to look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcphost.host.gauges import UsageReading
from mcphost.protocol.display import size_text
from mcphost.tui.widgets.facts import Fact, fact


@dataclass(frozen=True, slots=True)
class SeenUsage:
    """There is a program to look at; ``reading`` is what was seen last, None before the first look."""

    reading: UsageReading | None


def usage_facts(seen: SeenUsage | None) -> Iterator[Fact]:
    """Memory, processes and processor; nothing where there is no program of ours."""
    if seen is None:
        return
    if seen.reading is None:
        yield fact("takes", "nobody looked yet: u does")
        return
    reading = seen.reading
    usage = reading.usage
    several = f" in {usage.processes} processes" if usage.processes > 1 else ""
    words = f"{size_text(usage.memory)} of memory{several} · {reading.share:.0%} of a processor"
    yield fact("takes", words, "$text-warning" if reading.too_large or reading.busy else "")
    if reading.busy:
        yield fact("", "▲ it keeps a processor busy", "$text-warning")
    if reading.too_large:
        yield fact("", f"▲ {reading.too_large}", "$text-warning")
