"""Maps names to ones that vendors accept (letters, digits, ``_`` and ``-``), and back.

MCP names may hold anything. A name that is not in the mapping stays as it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count

from mcphost.providers.base import ModelRequest

_TAKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_STEM = 56
"""Characters kept of a name, before the number that makes it unique."""


class NameMapping:
    """A one-to-one mapping of ``names``."""

    def __init__(self, names: Iterable[str]) -> None:
        distinct = dict.fromkeys(names)
        self._for_vendor = {name: name for name in distinct if _TAKEN.fullmatch(name)}
        self._originals = dict(self._for_vendor)
        numbers = defaultdict[str, Iterator[int]](lambda: count(1))
        for name in distinct:
            if name not in self._for_vendor:
                stem = _OTHER.sub("_", name[:_STEM])
                spelled = next(free for number in numbers[stem] if (free := f"{stem}_{number}") not in self._originals)
                self._for_vendor[name], self._originals[spelled] = spelled, name

    def for_vendor(self, name: str) -> str:
        return self._for_vendor.get(name, name)

    def original(self, name: str) -> str:
        """The name that the vendor's one stands for."""
        return self._originals.get(name, name)


def tool_names(request: ModelRequest) -> NameMapping:
    """The mapping of the tools that ``request`` offers or that were used in it."""
    used = (use.name for message in request.messages for use in message.uses)
    return NameMapping((*(tool.name for tool in request.tools), *used))


def use_ids(request: ModelRequest) -> NameMapping:
    """The mapping of the ids of its tool uses and results."""
    uses = (use.id for message in request.messages for use in message.uses)
    results = (result.tool_use_id for message in request.messages for result in message.results)
    return NameMapping((*uses, *results))
