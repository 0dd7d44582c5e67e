"""What servers say of resources to put them in order: when they changed, how much they matter, for whom they are.

Knows `Annotations`, which are a server's claims, and that most resources have none.

Specification: server/resources (annotations).
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from math import inf, isnan

from mcphost.protocol.types import Resource, ResourceTemplate

Described = Resource | ResourceTemplate


class ResourceOrder(Enum):
    """How the list is sorted; each value says so in its title."""

    LISTED = ""
    NEWEST = "last changed first"
    WEIGHTIEST = "most important first"

    @property
    def next(self) -> ResourceOrder:
        """The one after this; after the last comes the first."""
        orders = list(ResourceOrder)
        return orders[(orders.index(self) + 1) % len(orders)]


def audience(thing: Described) -> str:
    """For whom alone the server says it is."""
    named = set((thing.annotations and thing.annotations.audience) or ())
    return "for you" if named == {"user"} else "for models" if named == {"assistant"} else ""


def rank(thing: Described, order: ResourceOrder) -> float:
    """The more, the further up; what its server says nothing of is last."""
    hints = thing.annotations
    if hints is None:
        return -inf
    if order is ResourceOrder.NEWEST:
        return -inf if hints.modified is None else _seconds(hints.modified)
    return -inf if hints.priority is None or isnan(hints.priority) else hints.priority


def _seconds(moment: datetime) -> float:
    return (moment - datetime.min.replace(tzinfo=UTC)).total_seconds()  # in any year, as timestamp() is not


def ranked_by(thing: Described, order: ResourceOrder) -> str:
    """What it is sorted by, in ten cells."""
    hints = thing.annotations
    if hints is None:
        return ""
    if order is ResourceOrder.NEWEST:
        return f"{hints.modified:%Y-%m-%d}" if hints.modified else ""
    return "" if hints.priority is None else f"{hints.priority:.2g}"
