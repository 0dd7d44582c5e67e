"""A script that stands in for a language model: it knows a few phrases, calls the demo server's tools, and says so."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import SamplingMessage, ToolResult
from mcphost.providers.base import (
    AnswerFinished,
    ModelCapabilities,
    ModelRequest,
    ProviderEvent,
    TextDelta,
    TokenUsage,
    ToolUseBegun,
    ToolUseReady,
    check,
    estimate_tokens,
)

NAME: Final = "demo script (no model)"
"""Short enough to be read in full wherever a model is named."""

WORD_SECONDS: Final = 0.03
"""Seconds between two words, so that the answer streams as a model's does."""

LINE: Final = 200
"""Characters of what others wrote that the script repeats."""


class ScriptedAnswer(NamedTuple):
    """The script's text, and the tool that it then uses."""

    text: str
    tool: str = ""
    """Its name as the server has it; empty: none."""
    arguments: Mapping[str, Any] = MappingProxyType({})


class ScriptedTurn(NamedTuple):
    """The last message of a person or a server, and the results of the tools that were used since."""

    said: str
    attached: str
    """The first attached text."""
    results: tuple[ToolResult, ...]
    tools: frozenset[str]
    """The names of the tools on offer, as their servers have them."""

    @classmethod
    def last_of(cls, request: ModelRequest) -> ScriptedTurn:
        results: list[ToolResult] = []
        texts: list[str] = [""]
        for message in reversed(request.messages):
            results[:0] = message.results
            if message.role == "user" and not message.results:
                texts = _texts(message) or [""]
                break
        attached = texts[1] if len(texts) > 2 else ""  # a heading, the attached text, what was said
        tools = frozenset(_plain(tool.name) for tool in request.tools if request.offers(tool.name))
        return cls(texts[-1], attached, tuple(results), tools)


def _texts(message: SamplingMessage) -> list[str]:
    return [block.text for block in message.blocks if isinstance(block, TextContent)]


def _plain(name: str) -> str:
    """The name of a tool without its server's."""
    return name.rpartition("__")[2]


def _line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:LINE]


def _failed(result: ToolResult) -> str:
    """The text of an error; empty if the tool succeeded."""
    return _line(_text(result)) or "it failed" if result.is_error else ""


def _text(result: ToolResult) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextContent))


# Phrases. Each is a pattern, an example for the person, and a function that answers.


def _look_out(turn: ScriptedTurn) -> ScriptedAnswer:
    if not turn.results:
        return ScriptedAnswer("I will look out from the gallery.", "ships_in_sight")
    if len(turn.results) > 1:
        failed = _failed(turn.results[-1])
        sounded = (
            f"No foghorn, then. The answer was: {failed}"
            if failed
            else "The foghorn has sounded, and the puffins are cross."
        )
        return ScriptedAnswer(sounded)
    if failed := _failed(turn.results[0]):
        return ScriptedAnswer(f"I cannot see anything: {failed}")
    ships = _ships(turn.results[0])
    if not ships:
        return ScriptedAnswer("Not a ship in sight.")
    nearest = f"the {ships[0]['name']} is nearest" if "name" in ships[0] else "one of them is near"
    return ScriptedAnswer(
        f"I see {len(ships)} ships; {nearest}. Shall I sound the foghorn for them? I ask for the call, you decide.",
        "sound_foghorn",
        {"blasts": 2},
    )


def _ships(result: ToolResult) -> list[dict[str, Any]]:
    """The rows of a table of ships, the nearest first."""
    try:
        found = json.loads(_text(result))
    except (ValueError, RecursionError):
        return []
    rows = found.get("ships") if isinstance(found, dict) else found
    ships = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return sorted(ships, key=_distance)


def _distance(ship: Mapping[str, Any]) -> float:
    miles = ship.get("distance_miles")
    return float(miles) if isinstance(miles, int | float) else 1e9


def _climb(turn: ScriptedTurn) -> ScriptedAnswer:
    if not turn.results:
        return ScriptedAnswer("199 steps. Press esc to call me back down.", "climb_tower")
    return ScriptedAnswer(_failed(turn.results[-1]) or _line(_text(turn.results[-1])))


def _write_logbook(turn: ScriptedTurn) -> ScriptedAnswer:
    if turn.results:
        return ScriptedAnswer(_failed(turn.results[-1]) or "It is in the logbook. *Read the logbook* shows it.")
    entry = _line(turn.attached) or "All quiet."
    return ScriptedAnswer("I copy it word by word.", "keep_logbook", {"keeper": "the script", "entry": entry})


def _tear_out(turn: ScriptedTurn) -> ScriptedAnswer:
    if not turn.results:
        return ScriptedAnswer("That cannot be undone, so read the question well before you answer.", "tear_out_pages")
    failed = _failed(turn.results[-1])
    return ScriptedAnswer(f"The pages stay. The answer was: {failed}" if failed else "The pages are gone.")


def _verse(turn: ScriptedTurn) -> ScriptedAnswer:
    if "look_out" in turn.tools and not turn.results:
        return ScriptedAnswer("", "look_out")
    about = re.search(r"\babout\s+(.+?)[.!?]?\s*$", turn.said, re.IGNORECASE | re.DOTALL)
    ships = [name for result in turn.results for ship in _ships(result) if isinstance(name := ship.get("name"), str)]
    lines = (
        "The lamp goes round, the night is long,",
        f"of {_line(about[1]) if about else 'the fog'} the keeper hums a song;",
        f"{f'the {_line(ships[0])}' if ships else 'a ship far out'} holds on her way,",
        "and morning finds us, still and grey.",
    )
    return ScriptedAnswer("\n".join(lines))


class Phrase(NamedTuple):
    """Something that the script answers."""

    pattern: re.Pattern[str]
    example: str
    shows: str
    answer: Callable[[ScriptedTurn], ScriptedAnswer]


PHRASES: Final = (
    Phrase(
        re.compile(r"who.{0,20}out there", re.I), "Who is out there?", "two tool calls, each asked about", _look_out
    ),
    Phrase(re.compile(r"climb", re.I), "Climb the tower", "a long call, with progress", _climb),
    Phrase(
        re.compile(r"tear out", re.I),
        "Tear out the pages",
        "a destructive call, which you had better refuse",
        _tear_out,
    ),
    Phrase(
        re.compile(r"logbook", re.I),
        "Copy @FILE into the logbook",
        "words of a file of yours, marked in the question",
        _write_logbook,
    ),
    Phrase(re.compile(r"\bverse\b", re.I), "Write a verse about gulls", "an answer without tools", _verse),
)


def _help() -> str:
    known = "\n".join(f"- {phrase.example} ({phrase.shows})" for phrase in PHRASES)
    return (
        f"I am a script, not a language model: I know {len(PHRASES)} phrases and nothing else.\n\n{known}\n\n"
        "For a real model, add a table [models.NAME] to your configuration."
    )


def scripted_answer(turn: ScriptedTurn) -> ScriptedAnswer:
    found = next((phrase.answer(turn) for phrase in PHRASES if phrase.pattern.search(turn.said)), None)
    if found is None:
        return ScriptedAnswer(_help())
    if found.tool and found.tool not in turn.tools:
        return ScriptedAnswer(f"For that I need the tool {found.tool}, which is not on offer here.")
    return found


class DemoScript:
    """Answers from the script; see `mcphost.providers.base.Provider`. Uses no network and no key."""

    key_refused: Final = False

    def __init__(self, entry: str, capabilities: ModelCapabilities, *, word_seconds: float = WORD_SECONDS) -> None:
        self.entry, self.capabilities, self._word_seconds = entry, capabilities, word_seconds

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        check(self.entry, request, self.capabilities)
        answer = scripted_answer(ScriptedTurn.last_of(request))
        words, stop = _limited(answer.text, request)
        for word in words:
            yield TextDelta(word)
            await asyncio.sleep(self._word_seconds)
        if answer.tool and not stop:
            offered = next(tool.name for tool in request.tools if _plain(tool.name) == answer.tool)
            use = f"demo-{sum(len(message.uses) for message in request.messages) + 1}"
            yield ToolUseBegun(use, offered, True)
            yield ToolUseReady(use, offered, dict(answer.arguments), True)
            stop = "toolUse"
        asked = estimate_tokens(request.system + "".join(_every_text(request.messages)))
        yield TokenUsage(asked, estimate_tokens("".join(words)) or 1)
        yield AnswerFinished(stop or "endTurn", NAME)

    async def aclose(self) -> None:
        """Nothing is open."""


def _limited(text: str, request: ModelRequest) -> tuple[list[str], str]:
    """The words of an answer within the request's limits, and the stop reason where one of them ended it."""
    found = [at for stop in request.stop if stop and (at := text.find(stop)) >= 0]
    words = re.findall(r"\S+\s*", text[: min(found)] if found else text)
    tokens = 0
    for count, word in enumerate(words):
        tokens += estimate_tokens(word)
        if tokens > request.max_tokens:
            return words[:count], "maxTokens"
    return words, "stopSequence" if found else ""


def _every_text(messages: Sequence[SamplingMessage]) -> Iterator[str]:
    for message in messages:
        yield message.text
        yield from map(_text, message.results)
