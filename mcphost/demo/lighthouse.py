"""The lighthouse on Puffin Stack: the state that tools read and change. It exists only in this process."""

from __future__ import annotations

import threading
from dataclasses import field
from typing import Any

from mcphost.lazy_dataclass import dataclass

NAME = "lighthouse"
TITLE = "Puffin Stack Lighthouse"
VERSION = "1.0.0"
DESCRIPTION = "mcphost's demo server: a small lighthouse that tries every feature on you."
INSTRUCTIONS = """\
This is the lighthouse on Puffin Stack, a demo that touches nothing outside itself. You are its assistant keeper.
Start with ships_in_sight and read_instruments. climb_tower and watch_horizon take a while and may be cancelled.
hail_ship often fails and ask_ghost always does: that is what they are for. put_out_light ends the server, so
ask before you use it. Write what happened into the logbook with keep_logbook."""

LENSES = {"sixth-order": 3, "fourth-order": 6, "first-order": 12}
"""The lenses in the store room, each with the most flashes it can give in one call."""


@dataclass(frozen=True, slots=True)
class Ship:
    """One ship as seen from the gallery; distances in nautical miles, bearings in degrees."""

    name: str
    kind: str
    distance: float
    bearing: int
    knots: float
    answers: bool = True

    def row(self) -> dict[str, Any]:
        """The ship as a row of the table that ships_in_sight gives."""
        return {
            "name": self.name,
            "kind": self.kind,
            "distance_miles": self.distance,
            "bearing_degrees": self.bearing,
            "speed_knots": self.knots,
            "answers_hails": self.answers,
        }


SHIPS = (
    Ship("Ebba Lund", "trawler", 2.4, 215, 6.5),
    Ship("Kittiwake", "ferry", 5.1, 40, 16.0),
    Ship("Great Auk", "tall ship", 7.8, 310, 4.2),
    Ship("Northern Patience", "freighter", 11.6, 268, 12.1),
    Ship("Limpet", "tug", 3.3, 122, 8.0),
    Ship("Marie Celestial", "tall ship", 13.9, 187, 0.0, answers=False),
)


@dataclass(slots=True)
class Lighthouse:
    """The state that tools read and change; take `lock` where two calls could meet."""

    logbook: list[dict[str, Any]] = field(default_factory=list)
    lens: str = "sixth-order"
    boathouse_open: bool = False
    gulls: int = 7
    lock: threading.Lock = field(default_factory=threading.Lock)
