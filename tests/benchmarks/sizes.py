"""The sizes of each work: the real ones, and tiny ones that only show that everything runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts, bytes and seconds of all works."""

    calls: int = 3_000
    """Sequential calls in one run."""
    input_rounds: int = 1_000
    """Rounds that one call of a modern server needs."""
    flights: int = 64
    """Calls in flight at once."""
    logs: int = 50_000
    big: int = 15_000_000
    """Bytes of one text result."""
    large: int = 15_900_000
    """Bytes of an answer of many small values."""
    references: int = 50_000
    """Of one schema to others."""
    web_flood: int = 100_000
    """Notifications in one answer over HTTP."""
    servers: int = 20
    delay: float = 1.0
    """Seconds each of those servers takes to answer ``initialize``."""
    tools: int = 10_000
    rows: int = 1_000_000
    """Bytes of a table that is sorted; each of its 20,000 rows has about 50."""
    rounds: int = 5
    """Times that a filter is typed and erased."""
    keys: int = 100
    """Keys pressed while a server floods, and before it does; an even number, since the cursor goes down and up."""
    starts: int = 5
    """Times that the screen is started to open each pane for the first time."""
    flood_rate: int = 10_000
    """Log messages a second."""
    hidden_rate: int = 1_000
    """Messages a second that nothing on screen shows; a server that logs twice as many is warned about."""
    hidden_seconds: float = 10.0
    tokens: int = 40
    """Answers of a model whose first word is waited for."""
    deltas: int = 10_000
    """Pieces of one answer, in which keys are pressed."""
    turns: int = 1_000
    """Of a kept conversation that is looked through."""
    kept_calls: int = 100_000
    """Of earlier runs."""
    pages: int = 60
    web_calls: int = 480
    """Calls over HTTP in one run."""
    web_flights: int = 16
    web_logs: int = 10_000
    tapped: int = 100_000_000
    """Bytes that a tap carries in one run."""
    idle_taps: int = 50
    agents: int = 20
    idle_servers: int = 50
    idle_tools: int = 100
    """Tools of each of those servers."""
    idle_seconds: float = 2.0
    """Seconds of idle time before the memory is read."""


TINY = Sizes(
    calls=20,
    input_rounds=10,
    flights=4,
    logs=200,
    big=50_000,
    large=100_000,
    references=50,
    web_flood=50,
    servers=2,
    delay=0.01,
    tools=50,
    rows=20_000,
    keys=2,
    rounds=1,
    starts=1,
    flood_rate=500,
    hidden_rate=400,
    hidden_seconds=0.5,
    tokens=2,
    deltas=50,
    turns=30,
    kept_calls=300,
    pages=2,
    web_calls=16,
    web_flights=4,
    web_logs=50,
    tapped=120_000,
    idle_taps=2,
    agents=2,
    idle_servers=2,
    idle_tools=3,
    idle_seconds=0.1,
)
