"""A conversation as Markdown, for people.

Text of models and servers is put where it can neither end a fence nor hide anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from mcphost.host.chat.tool_results import said
from mcphost.host.chat.turns import ModelRound, ModelToolUse, Turn, TurnState, UserMessage
from mcphost.protocol.display import duration_text, show, show_line, size_text


def markdown(title: str, turns: Iterable[Turn]) -> str:
    """The whole conversation."""
    lines = [f"# {show_line(title, 200)}"]
    for turn in turns:
        lines.extend(_turn(turn))
    return "\n\n".join(lines) + "\n"


def _turn(turn: Turn) -> Iterator[str]:
    yield "## You"
    yield from _message(turn.message)
    for answer in turn.rounds:
        yield f"## {show_line(answer.model or answer.entry, 100)}"
        yield from _round(answer)
    if turn.state is not TurnState.DONE:
        yield f"*{turn.state.value}{': ' + show_line(turn.reason, 500) if turn.reason else ''}*"


def _message(message: UserMessage) -> Iterator[str]:
    for prompt in message.prompts:
        yield f"*the prompt {show_line(prompt.server)}:{show_line(prompt.prompt)}*"
        for each in prompt.messages:
            yield f"*{each.role}:*\n\n{_fenced(each.text)}"
    for attached in message.attachments:
        whose = f"from {attached.server}" if attached.server else "a file"
        whose = f"the skill {attached.acting}, untrusted" if attached.skill else whose
        note = f"; {show_line(attached.note)}" if attached.note else ""
        yield f"*attached, {whose}: {show_line(attached.name)}, {size_text(attached.size)}{note}*"
    if message.text:
        yield show(message.text)


def _round(answer: ModelRound) -> Iterator[str]:
    if answer.text:
        yield show(answer.text, joiners=True)
    if answer.superseded:
        yield "*(asked again)*"
    elif answer.cut:
        yield f"*({answer.cut})*"
    for use in answer.uses:
        yield from _use(use)


def _use(use: ModelToolUse) -> Iterator[str]:
    name = f"{use.server}:{use.tool}" if use.server else use.name
    took = f", {duration_text(use.seconds)}" if use.seconds else ""
    yield f"### {show_line(name)} ({show_line(use.state)}{', edited by you' if use.edited else ''}{took})"
    arguments = use.arguments if use.sent is None else use.sent
    yield _fenced(json.dumps(dict(arguments), indent=2, ensure_ascii=False), "json")
    if use.result is not None:
        yield _fenced(said(use.result))
    if use.notes:
        yield f"*{show_line('; '.join(use.notes), 500)}*"


def _fenced(text: str, language: str = "") -> str:
    shown = show(text, joiners=True)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    return f"{fence}{language}\n{shown}\n{fence}"
