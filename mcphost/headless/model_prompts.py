"""What servers ask of language models, asked at a terminal: the request and the answer, each by y or N.

Knows how a request and an answer look there. Refuses to know rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcphost.headless.consent import NO_CUT, confirmed, typed_line
from mcphost.headless.margin import framed, labelled
from mcphost.headless.terminal import room, say
from mcphost.host.asked.sampling_handle import Sampling, SamplingEdit, SamplingReply
from mcphost.host.questions import Answer, SamplingQuestion
from mcphost.protocol.display import show, show_line, show_name
from mcphost.protocol.sampling import Block, ToolResult, ToolUse
from mcphost.protocol.types import MediaContent, TextContent

TURNS = 1000
"""Characters of a tool's arguments or result that are shown beside the texts, which are shown whole."""


async def ask_at_terminal(sampling: Sampling, question: SamplingQuestion) -> Answer:
    """Show what is asked for, or what came of it, and take a line."""
    if question.review and sampling.model.by_hand:
        line = await typed_line("  Your answer as the model (nothing declines): ")
        return Answer(bool(line), content=SamplingReply.of(line))
    say(*(_answer_lines if question.review else _request_lines)(sampling))
    if question.review and sampling.error is not None:
        return Answer(await confirmed("Ask again? [y/N] "), content=SamplingEdit())
    what = "Send this" if question.review else "Write the answer" if sampling.model.by_hand else "Ask the model"
    return Answer(await confirmed(f"{what}? [y/N] "))


def _request_lines(sampling: Sampling) -> Iterator[str]:
    guess, request = sampling.estimate, sampling.request
    yield f"{sampling.server} wants a language model to answer this (the server asks, not mcphost):"
    width, _ = room()
    for note in sampling.notes:
        yield from labelled("note", show_line(note), width)
    yield from labelled("model", f"{show_line(sampling.model.entry)}: {show_line(sampling.reason, 200)}", width)
    cost = "" if guess.cost is None else f", at most {guess.cost:.4g} by your prices"
    takes = f"about {guess.input_tokens} tokens, and up to {guess.most_tokens} for the answer{cost}"
    yield from labelled("takes", takes, width)
    if request.system:
        yield from framed("system prompt", _text(request.system), width)
    for number, message in enumerate(request.messages, 1):
        for block in message.blocks:
            yield from framed(f"message {number}, as {show_name(message.role, 20)}", _block(block), width)
    for tool in request.tools:
        yield from framed(f"tool {show_name(tool.name)}", show_line(tool.description or "", TURNS), width)


def _answer_lines(sampling: Sampling) -> Iterator[str]:
    if sampling.error is not None:
        yield f"The model gave {'half an' if sampling.blocks else 'no'} answer: {show_line(str(sampling.error), 1000)}"
    else:
        yield f"{show_line(sampling.answered_by or sampling.model.entry)} answers, for {sampling.server}:"
    width, _ = room()
    for number, block in enumerate(sampling.blocks, 1):
        yield from framed(f"answer {number} of {len(sampling.blocks)}", _block(block), width)


def _block(block: Block) -> str:
    match block:
        case TextContent():
            return _text(block.text)
        case MediaContent():
            return f"[{show_line(block.type)} {show_line(block.mime_type)}]"
        case ToolUse():
            return f"[wants {show_name(block.name)} with {show_name(block.input, TURNS)}]"
        case ToolResult():
            return f"[result: {show_name(block.content, TURNS)}]"
    return "[unreadable]"


def _text(text: str) -> str:
    """The whole of it: what is not seen cannot be allowed."""
    return show(text, limit=NO_CUT)
