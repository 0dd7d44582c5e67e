"""Puts server requests to a person at the terminal: forms field by field, pages, folders and sampling by y or N.

The host checks what was typed before it is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from mcphost.cli.approver import NO_CUT, confirmed, readable_json, typed_line
from mcphost.cli.margin import MARK, behind_margin, cells, framed, labelled
from mcphost.cli.terminal import say, terminal_size
from mcphost.host.consent.questions import (
    Answer,
    FormQuestion,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    wall_clock,
)
from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply
from mcphost.protocol.display import show, show_line, show_name
from mcphost.protocol.forms.form import (
    ABSENT,
    FieldError,
    FieldKind,
    Form,
    FormField,
    collect,
    fill,
    parse,
    read_form,
)
from mcphost.protocol.models.content import MediaContent, TextContent
from mcphost.protocol.models.sampling import Block, ToolResult, ToolUse

TURNS = 1000
"""Characters shown of a tool's arguments or result; texts are shown whole."""


async def ask_at_terminal(sampling: Sampling, question: SamplingQuestion) -> Answer:
    """Show a sampling request, or the model's answer to it, and read a line."""
    if question.review and sampling.model.by_hand:
        line = await typed_line("  Your answer as the model (empty: decline): ")
        return Answer(bool(line), content=SamplingReply.of(line))
    say(*(_answer_lines if question.review else _request_lines)(sampling))
    if question.review and sampling.error is not None:
        return Answer(await confirmed("Ask again? [y/N] "), content=SamplingEdit())
    what = "Send this" if question.review else "Write the answer" if sampling.model.by_hand else "Ask the model"
    return Answer(await confirmed(f"{what}? [y/N] "))


def _request_lines(sampling: Sampling) -> Iterator[str]:
    guess, request = sampling.estimate, sampling.request
    yield f"{sampling.server} wants a language model to answer this (the server asks, not mcphost):"
    width, _ = terminal_size()
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
    for number, tool in enumerate(request.tools, 1):
        described = f"{show_name(tool.name)}\n{show_line(tool.description or '', TURNS)}"
        yield from framed(f"tool {number} of {len(request.tools)}", described, width)


def _answer_lines(sampling: Sampling) -> Iterator[str]:
    if sampling.error is not None:
        what = "half an" if sampling.blocks else "no"
        yield from _indented(f"The model gave {what} answer: {show_line(str(sampling.error), 1000)}")
    else:
        yield f"{show_line(sampling.answered_by or sampling.model.entry)} answers, for {sampling.server}:"
    width, _ = terminal_size()
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
    """Return the whole text, since users can only allow what they see."""
    return show(text, limit=NO_CUT)


MESSAGE = 4000
"""Characters shown of a server's reason."""

DECLINE, CANCEL = "!no", "!later"


class _Left(Exception):
    """The person left the form; ``str()`` is the word typed for it."""


class TerminalPerson:
    """Asks at the terminal; a whole line is an answer, a key typed ahead is none."""

    samplings: Mapping[int, Sampling] = MappingProxyType({})
    """The host's requests for a language model, by number."""

    async def ask(self, question: Question) -> Answer:
        match question:
            case FormQuestion():
                return await _form(question)
            case UrlQuestion():
                return await _page(question)
            case RootsQuestion():
                return await _roots(question)
            case SamplingQuestion():
                return await ask_at_terminal(self.samplings[question.sampling], question)
        return Answer(False, reason="this cannot be asked on a terminal", by="policy")


def _indented(text: str, indent: str = "  ") -> list[str]:
    """A text that may quote a server, wrapped so that none of its lines begins in the first column."""
    return behind_margin(text, terminal_size()[0], indent).splitlines()


def _message(question: FormQuestion | UrlQuestion) -> list[str]:
    return framed(f"{question.server} says", show(question.message, limit=MESSAGE), terminal_size()[0])


async def _form(question: FormQuestion) -> Answer:
    form = read_form(question.schema)
    say(f"{question.server} asks you to fill in a form (this server asks, not mcphost):", *_message(question))
    if question.wants_secret:
        say("  Its message seems to ask for a secret. No server may ask for one in a form.")
    if question.problem:
        say(*_indented(f"Your answer was not sent because it is invalid: {show_line(question.problem, 1000)}"))
    say(f"  Enter takes the value in brackets; {DECLINE} declines, {CANCEL} leaves it unanswered.")
    entries = fill(form)
    try:
        for field in form.leaves():
            entries[field.path] = await _typed(field, entries[field.path])
        content, errors = collect(form, entries)
        problems = [f"{show_name('.'.join(map(str, path)))} {show_line(words)}" for path, words in errors.items()]
        return await _reviewed(form, content, problems)
    except _Left as left:
        return Answer(False, cancelled=str(left) == CANCEL)


async def _reviewed(form: Form, content: Mapping[str, Any], errors: list[str]) -> Answer:
    say(*(line for error in errors for line in _indented(error)))
    secret = any(field.secret_looking for field in form.leaves())
    say(*framed(f"It gets ({len(content)})", readable_json(content), terminal_size()[0]))
    if secret:
        say("  One of these looks like a secret. No server may ask for one in a form.")
    yes = await confirmed("Send this? [y/N] ")
    return Answer(True, content=content) if yes else Answer(False, cancelled=True)


async def _typed(field: FormField, entry: Any) -> Any:
    for line in _field_lines(field):
        say(line)
    shown = "" if entry is ABSENT or entry in ("", []) else f" [{_entry_text(entry)}]"
    name = f"{show_name(field.title or field.name)}{shown}"
    prompt = f"  {name}: "
    if cells(prompt) >= terminal_size()[0]:  # a terminal would wrap it to the first column
        say(*_indented(name, f"  {MARK}"))
        prompt = "  Your entry: "
    while True:
        line = await typed_line(prompt, fresh=False)
        if line in (DECLINE, CANCEL):
            raise _Left(line)
        if not line:
            line_value: Any = entry
        else:
            line_value = line
        try:
            parse(field, line_value)
        except FieldError as error:
            say(*_indented(show_line(str(error)), "    "))
            continue
        return line_value


def _field_lines(field: FormField) -> Iterator[str]:
    words = [show_line(field.description, 500)] if field.description else []
    for value, label in field.choices[:50]:
        text = value if isinstance(value, str) else json.dumps(value)
        words.append(f"{show_line(text)}{f'  ({show_line(label)})' if label != text else ''}")
    yield from _indented("\n".join(words), f"  {MARK}")
    takes = field.constraints or ("yes or no" if field.kind is FieldKind.BOOLEAN else "")
    rules = ", ".join(filter(None, [takes, "required" if field.required else ""]))
    if rules:
        yield from _indented(rules, "    ")


def _entry_text(entry: Any) -> str:
    return show_line(entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False))


async def _page(question: UrlQuestion) -> Answer:
    say(f"{question.server} asks you to visit a page:", *_message(question))
    if question.address is not None:
        width, _ = terminal_size()
        say(*labelled("page", show_line(question.address.url, 8192), width))
        say(*labelled("host", show_line(question.address.host), width))
        if question.address.readable_host != question.address.host:
            say(*labelled("which reads", show_line(question.address.readable_host), width))
        say(*(line for warning in question.warnings for line in labelled("▲ beware", warning, width)))
    if question.until is not None:
        say(f"  can be answered until {wall_clock(question.until)}")
    return await _yes_or_no("Open it? [y/N] ")


async def _roots(question: RootsQuestion) -> Answer:
    say(f"{question.server} asks for your roots (folders it may use).")
    if question.problem:
        say(*_indented(f"Nothing was shared: {show_line(question.problem, 1000)}"))
    offered = question.suggestions[:1]
    if not offered:
        return Answer(False, reason="no folder is suggested; --root PATH shares one")
    answer = await _yes_or_no(f"Tell it of {show_line(str(offered[0]), 4096)}? [y/N] ")
    return Answer(True, content=offered) if answer.allow else answer


async def _yes_or_no(prompt: str) -> Answer:
    return Answer(await confirmed(prompt))
