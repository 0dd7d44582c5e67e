"""The default limits of what a server may send, hold open or take, each with its reason.

They are constants of the ground floor because the client and the transports apply them where no configuration is at
hand; `mcphost.config.limits` makes them the defaults of its keys. Sizes are bytes, and decimal as they are shown: 1 MB
is 1,000,000 bytes.
"""

from __future__ import annotations

from typing import Final

MESSAGE_BYTES: Final = 24_000_000
"""The largest file of a skill, 16 MiB, fits as base64, and with its text and its parsed value beside each other, as
they are for a moment, it takes less than 96 MB of memory."""

MESSAGE_ITEMS: Final = 50_000
"""Objects and arrays in a message above 1 MB: they, not the bytes, make reading slow enough to freeze."""

JSON_DEPTH: Final = 128
"""Levels of nesting in a message: far above any real schema, far below what overflows the parser."""

BATCH_ITEMS: Final = 100
"""Messages in one JSON-RPC batch: a server has no cause to answer more at once."""

LIST_PAGES: Final = 64
"""Pages of one list: a server that never ends its list stops costing time."""

LIST_ITEMS: Final = 10_000
"""Entries of one list: more can be neither shown nor read."""

LIST_SECONDS: Final = 30.0
"""Seconds after which no further page of a list is asked for: slow pages add up."""

PENDING_SERVER_REQUESTS: Final = 32
"""Requests of a server waiting for an answer; the next are refused, since no user answers that many."""

INPUT_ROUNDS: Final = 25
"""Rounds of input for one answer of a modern server: more questions than a person answers for one call."""

INPUTS_IN_A_ROUND: Final = 16
"""Inputs that a modern server may need at once; they are put one after the other."""

STATE_ROUNDS: Final = 10
"""Retries in a row that a modern server may want without needing any input."""

REQUEST_STATE_BYTES: Final = 4_000_000
"""State that a modern server has carried through a round: it travels twice with each."""

CACHE_SECONDS: Final = 86_400.0
"""For which a result is kept at most, whatever its ``ttlMs`` says: a server that errs must not be believed for ever."""

CACHE_ENTRIES: Final = 1_000
"""Results of one server that are kept; the oldest go first."""

CACHE_BYTES: Final = 16_000_000
"""Memory that the kept results of one server take."""

REQUEST_SECONDS: Final = 60.0
"""For a request without answer or progress."""

REQUEST_SECONDS_IN_ALL: Final = 600.0
"""For a request, whatever progress it reports."""

EXIT_SECONDS: Final = 2.0
"""For a program to leave after each step of stopping it, so that leaving the app stays quick."""
