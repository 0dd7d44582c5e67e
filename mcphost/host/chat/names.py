"""The names under which a model knows tools, and the way back.

Knows what all vendors take: letters, digits, ``_`` and ``-``, at most 64 of them. A name depends on its server and tool
alone, so that it stays the same whatever else is offered. Refuses to guess: a name that is not exactly one of these
means nothing.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

LONGEST: Final = 64
SEPARATOR: Final = "__"

_TAKEN: Final = re.compile(r"[A-Za-z0-9_-]*")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MARK: Final = 8
"""Digits that tell apart what looks the same once it is spelled with these characters."""
_SERVER: Final = 16
"""Characters of a server's name that a shortened one keeps."""


def alias(server: str, tool: str) -> str:
    """The name of a tool for a model.

    Where the two names can be told apart in it by the first ``__``, it is just both of them; what is changed or
    shortened, and what a server could choose so as to look like another's, ends with a mark made from both.
    """
    plain = f"{server}{SEPARATOR}{tool}"
    if len(plain) <= LONGEST and _TAKEN.fullmatch(plain) and _splits(server, tool) and not _looks_marked(tool):
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    room = LONGEST - _MARK - 1
    spelled = _OTHER.sub("_", server), _OTHER.sub("_", tool)
    first = spelled[0] if len(SEPARATOR.join(spelled)) <= room else spelled[0][:_SERVER]
    return f"{first}{SEPARATOR}{_shortened(spelled[1], room - len(first) - len(SEPARATOR))}_{mark}"


def _splits(server: str, tool: str) -> bool:
    return SEPARATOR not in server and not server.endswith("_") and not tool.startswith("_")


def _looks_marked(tool: str) -> bool:
    """Could it pass for a name of ours that was marked?"""
    return re.search(rf"_[0-9a-f]{{{_MARK}}}\Z", tool) is not None


def _shortened(text: str, room: int) -> str:
    """Both ends: what tells one of many tools from the others stands at either."""
    if len(text) <= room:
        return text
    head = (room - 1) // 2
    return f"{text[:head]}-{text[len(text) - (room - 1 - head) :]}"
