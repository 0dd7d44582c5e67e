"""What servers ask of language models, asked at a terminal: the request and the answer, each by y or N.

Knows how a request and an answer look there. Refuses to know rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcphost.headless.consent import NO_CUT, confirmed, typed_line
from mcphost.headless.terminal import say
from mcphost.host.asked.sampling_handle import Sampling, SamplingEdit, SamplingReply
from mcphost.host.questions import Answer, SamplingQuestion
from mcphost.protocol.display import show, show_line
from mcphost.protocol.sampling import Block, ToolResult, ToolUse
from mcphost.protocol.types import Media, Text

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
    if request.system:
        yield f"  system     {_text(request.system)}"
    for message in request.messages:
        for block in message.blocks:
            yield f"  {show_line(message.role):<10} {_block(block)}"
    for tool in request.tools:
        yield f"  tool       {show_line(tool.name)}: {show_line(tool.description or '', TURNS)}"
    yield from (f"  note       {show_line(note)}" for note in sampling.notes)
    yield f"  model      {show_line(sampling.model.entry)}: {show_line(sampling.reason, 200)}"
    cost = "" if guess.cost is None else f", at most {guess.cost:.4g} by your prices"
    yield f"  takes      about {guess.input_tokens} tokens, and up to {guess.most_tokens} for the answer{cost}"


def _answer_lines(sampling: Sampling) -> Iterator[str]:
    if sampling.error is not None:
        yield f"The model gave {'half an' if sampling.blocks else 'no'} answer: {show_line(str(sampling.error), 1000)}"
    else:
        yield f"{show_line(sampling.answered_by or sampling.model.entry)} answers, for {sampling.server}:"
    yield from (f"  {_block(block)}" for block in sampling.blocks)


def _block(block: Block) -> str:
    match block:
        case Text():
            return _text(block.text)
        case Media():
            return f"[{show_line(block.type)} {show_line(block.mime_type)}]"
        case ToolUse():
            return f"[wants {show_line(block.name)} with {show_line(str(block.input), TURNS)}]"
        case ToolResult():
            return f"[result: {show_line(str(block.content), TURNS)}]"
    return "[unreadable]"


def _text(text: str) -> str:
    """The whole of it: what is not seen cannot be allowed."""
    return show(text, limit=NO_CUT).replace("\n", "\n             ")
