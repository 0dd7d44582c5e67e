"""What a person writes in a message besides words: ``/server:prompt key=value`` and ``@server:uri`` or ``@file``.

Pure: text in, wishes out, and what could be completed at a place in it. Refuses to know what there is beyond the names
it is given, and to read anything. Only what the person typed is looked at, never what a server or model said.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

MOST_MENTIONS: Final = 50
"""In one message."""

MOST_CANDIDATES: Final = 200

_PROMPT: Final = re.compile(r"/(?P<server>[^\s:/]+):(?P<prompt>\S+)(?:[ \t]+(?P<arguments>[^\n]*))?(?:\n|\Z)")
_MENTION: Final = re.compile(r"(?<!\S)@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<plain>[^\s\"@][^\s\"]*))")
_ENDING: Final = ".,;:!?)'"
"""What ends a sentence rather than a name."""


@dataclass(frozen=True, slots=True)
class PromptMention:
    """A prompt to be put into the conversation."""

    server: str
    prompt: str
    arguments: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    """Why its arguments cannot be read."""


@dataclass(frozen=True, slots=True)
class AttachmentMention:
    """Something to be attached. ``server`` is empty for a file."""

    server: str
    name: str
    """A URI, or a path."""


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message taken apart. ``text`` is what goes to the model as the person's words; mentions stay in it."""

    text: str
    prompt: PromptMention | None = None
    mentions: tuple[AttachmentMention, ...] = ()


@dataclass(frozen=True, slots=True)
class MentionCandidates:
    """What could stand from ``start`` to ``end`` of a text instead of what stands there."""

    start: int
    end: int
    texts: tuple[str, ...] = ()


def parse(text: str, servers: Collection[str]) -> ParsedMessage:
    """Take a message apart. What names no server of ``servers`` after a slash is just text."""
    found = _PROMPT.match(text)
    if found is None or found["server"] not in servers:
        return ParsedMessage(text, mentions=_mentions(text, servers))
    rest = text[found.end() :].strip("\n")
    wish = _wish(found["server"], found["prompt"], found["arguments"] or "")
    return ParsedMessage(rest, wish, _mentions(rest, servers))


def candidates(
    text: str, cursor: int, *, prompts: Sequence[tuple[str, str]], resources: Sequence[tuple[str, str]]
) -> MentionCandidates:
    """What could be meant by what stands before ``cursor``: names of prompts, or resources, that begin or hold it.

    Pairs are of server and name. Nothing where the cursor is in plain words.
    """
    before = text[:cursor]
    if re.fullmatch(r"/\S*", before):
        return MentionCandidates(0, cursor, _fitting(before, (f"/{server}:{name}" for server, name in prompts)))
    mention = re.search(r"(?<!\S)@\S*\Z", before)
    if mention is None:
        return MentionCandidates(cursor, cursor)
    return MentionCandidates(mention.start(), cursor, _fitting(mention[0], (_written(*each) for each in resources)))


def _written(server: str, uri: str) -> str:
    name = f"{server}:{uri}"
    return f'@"{name}"' if re.search(r"\s", name) else f"@{name}"


def _fitting(typed: str, names: Iterator[str]) -> tuple[str, ...]:
    """Those that begin like this first, then those that hold it somewhere."""
    part = typed[1:].lower()
    known = [name for name in dict.fromkeys(names) if part in name.lower()]
    known.sort(key=lambda name: not name.lower().startswith(typed.lower()))
    return tuple(known[:MOST_CANDIDATES])


def _wish(server: str, prompt: str, written: str) -> PromptMention:
    try:
        words = shlex.split(written)
    except ValueError as error:
        return PromptMention(server, prompt, problem=f"its arguments cannot be read: {str(error).lower()}")
    arguments: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            return PromptMention(server, prompt, problem=f"{word!r} is no argument; write name=value")
        arguments[key] = value
    return PromptMention(server, prompt, arguments)


def _mentions(text: str, servers: Collection[str]) -> tuple[AttachmentMention, ...]:
    found = (match["quoted"] or match["plain"].rstrip(_ENDING) for match in _MENTION.finditer(text))
    named = dict.fromkeys(_mention(name, servers) for name in found if name)
    return tuple(named)[:MOST_MENTIONS]


def _mention(name: str, servers: Collection[str]) -> AttachmentMention:
    server, colon, uri = name.partition(":")
    return AttachmentMention(server, uri) if colon and uri and server in servers else AttachmentMention("", name)
