"""Names as vendors take them: letters, digits, ``_`` and ``-``. The protocol's may hold dots, slashes and anything.

Knows both spellings of what is in one request. Refuses to guess: a name that was not in it stays as it is.
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
"""Characters of a name that are kept before the number that makes it unique."""


class NameMapping:
    """Both spellings of ``names``, one to one."""

    def __init__(self, names: Iterable[str]) -> None:
        distinct = dict.fromkeys(names)
        self._there = {name: name for name in distinct if _TAKEN.fullmatch(name)}
        self._back = dict(self._there)
        numbers = defaultdict[str, Iterator[int]](lambda: count(1))
        for name in distinct:
            if name not in self._there:
                stem = _OTHER.sub("_", name[:_STEM])
                spelled = next(free for number in numbers[stem] if (free := f"{stem}_{number}") not in self._back)
                self._there[name], self._back[spelled] = spelled, name

    def there(self, name: str) -> str:
        """How the vendor is told."""
        return self._there.get(name, name)

    def back(self, spelled: str) -> str:
        """What the vendor means."""
        return self._back.get(spelled, spelled)


def tool_names(request: ModelRequest) -> NameMapping:
    """The tools that ``request`` offers, and those that were used in it."""
    used = (use.name for message in request.messages for use in message.uses)
    return NameMapping((*(tool.name for tool in request.tools), *used))


def use_ids(request: ModelRequest) -> NameMapping:
    """The ids that tie its tool uses and results together."""
    uses = (use.id for message in request.messages for use in message.uses)
    results = (result.tool_use_id for message in request.messages for result in message.results)
    return NameMapping((*uses, *results))
