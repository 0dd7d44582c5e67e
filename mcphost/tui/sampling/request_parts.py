"""The prompt or the answer of a sampling request as one text, to read and to edit; and as JSON.

Every part is below a heading. To leave a part out, the user deletes it with its heading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Any, Final

from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line, show_name
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import (
    Block,
    CreateMessageResult,
    ToolResult,
    ToolUse,
    block_object,
    read_block,
    text_block,
)
from mcphost.tui.forms.text_boxes import conceal, escape, reveal
from mcphost.tui.kit.json_text import json_lines, json_text
from mcphost.tui.kit.text_view import Spans
from mcphost.tui.results import content
from mcphost.tui.results.content import describe, json_size

EDITABLE: Final = 100_000
"""Characters that can be edited: the text area wraps all of them at each key."""

NOTHING_LEFT: Final = "A prompt needs at least one message. n declines."
NOT_EDITED: Final = f"Only text can be edited here, up to {EDITABLE:,} characters."


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a prompt or an answer."""

    name: str
    """Its place, safe to show; no two parts of a prompt or an answer share a name."""
    block: Block | None
    """None: its message is empty."""
    message: int | None = None
    """The number of its message; None in the system prompt and in an answer."""


def prompt_parts(sampling: Sampling) -> Iterator[Part]:
    """The system prompt, if there is one, and every block of the messages."""
    system = sampling.request.system
    if system:
        changed = system != sampling.asked.system_prompt
        yield Part("system prompt · changed" if changed else "system prompt", text_block(system))
    for number, message in enumerate(sampling.request.messages):
        yield from _numbered(message.blocks or (None,), f"{number + 1} · {show_line(message.role, 20)}", number)


def answer_parts(blocks: Sequence[Block]) -> Iterator[Part]:
    return _numbered(blocks, "", None)


def _numbered(blocks: Sequence[Block | None], who: str, message: int | None) -> Iterator[Part]:
    for at, block in enumerate(blocks, 1):
        place = f"{at} of {len(blocks)}" if len(blocks) > 1 else ""
        yield Part(" · ".join(filter(None, (who, place))), block, message)


Kept = Sequence[tuple[Part, Block | None]]


class PartsText:
    """Parts as one text, and back: text as it is, arguments and results of tools as JSON."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = tuple(parts)
        read = [_lines(part.block) for part in self._parts]
        self._mark = _unused_mark(line for lines in read for line in lines)
        self._headings = [f"{self._mark} {_heading(part)}".rstrip() for part in self._parts]
        self._lines = dict(zip(self._headings, read, strict=True))

    def to_read(self) -> Iterator[list[str] | content.Block]:
        """The lines, safe to show, and between them the pictures to draw."""
        lines: list[str] = []
        for heading, part in zip(self._headings, self._parts, strict=True):
            lines += [*([heading] if heading != self._mark else []), *self._lines[heading]]
            for picture in _pictures(part.block):
                yield lines
                yield picture
                lines = []
        yield lines

    def spans(self, line: str) -> Spans:
        """Colours the headings."""
        return [(0, len(line), "key")] if line.startswith(f"{self._mark} ") else []

    @property
    def plain(self) -> str:
        """The text to read, with pictures only named."""
        return "\n".join(line for piece in self.to_read() if isinstance(piece, list) for line in piece)

    # To edit.

    def draft(self) -> str | None:
        """The text to edit; without headings if it is one text. None: there is nothing to change or to leave out."""
        bodies = self._bodies()
        if self._is_one_text:
            return bodies[0]
        if len(bodies) == 1 and bodies[0] is None:
            return None
        return "\n".join(line for pair in zip(self._headings, bodies, strict=True) for line in pair if line is not None)

    @property
    def _is_one_text(self) -> bool:
        return len(self._parts) == 1 and isinstance(self._parts[0].block, TextContent)

    def _bodies(self) -> list[str | None]:
        """The text of each part; None if it cannot be edited, or is too long."""
        room, bodies = EDITABLE, list[str | None]()
        for part in reversed(self._parts):  # the last messages are edited most
            bodies.append(_body(part.block, room))
            room -= len(bodies[-1] or "")
        return bodies[::-1]

    def read_back(self, text: str) -> Kept:
        """The parts that are left, with their blocks. Raises ValueError with a sentence for the user."""
        texts = {self._headings[0]: text} if self._is_one_text else self._split(text)
        kept = list[tuple[Part, Block | None]]()
        for heading, part, before in zip(self._headings, self._parts, self._bodies(), strict=True):
            after = texts.get(heading)
            if after is None:
                continue
            if before is None and after.strip():
                raise ValueError(f"“{heading}” cannot be edited: only left out, by deleting the heading")
            if before is None or after == before:
                kept.append((part, part.block))
            elif after.strip() and part.block is not None:
                kept.append((part, rewritten(part.block, after)))
        return kept

    def _split(self, text: str) -> dict[str, str]:
        """The text below each heading that is left."""
        found: dict[str, list[str]] = {}
        lines: list[str] | None = None
        for number, line in enumerate(text.split("\n"), 1):
            heading = line.rstrip()
            if line.startswith(f"{self._mark} "):
                if heading not in self._lines or heading in found:
                    raise ValueError(f"line {number}: keep each heading as it is, or delete it with its text")
                lines = found[heading] = []
            elif lines is not None:
                lines.append(line)
            elif heading:
                raise ValueError(f"line {number}: this text is above the first heading")
        return {heading: "\n".join(lines) for heading, lines in found.items()}


def _heading(part: Part) -> str:
    match part.block:
        case None:
            kind = "empty"
        case TextContent():
            kind = ""
        case ToolUse() as use:
            kind = f"→ wants the tool {show_name(use.name, 80)} · id {show_name(use.id, 40)}"
        case ToolResult() as result:
            kind = f"← result for id {show_name(result.tool_use_id, 40)}{' · it failed' if result.is_error else ''}"
        case media:
            kind = describe(media).title
    return " · ".join(filter(None, (part.name, kind)))


def _lines(block: Block | None) -> list[str]:
    """The lines of a block, safe to show; none of what is only named."""
    match block:
        case TextContent():
            return show(block.text).split("\n")
        case ToolUse():
            return json_lines(block.input)[0]
        case ToolResult():
            inner = (
                show(each.text) if isinstance(each, TextContent) else describe(each).title for each in block.blocks
            )
            lines = "\n".join(inner).split("\n")
            structured = block.structured_content
            return lines if structured is None else [*lines, *json_lines(structured)[0]]
    return []


def _pictures(block: Block | None) -> Iterator[content.Block]:
    for each in block.blocks if isinstance(block, ToolResult) else (block,):
        if each is not None and not isinstance(each, TextContent | ToolUse) and (shown := describe(each)).pixels:
            yield replace(shown, facts=())


def _body(block: Block | None, room: int) -> str | None:
    if isinstance(block, TextContent):
        return conceal(block.text, lines=True) if len(block.text) <= room else None
    if isinstance(block, ToolUse | ToolResult):
        value: object = block.input if isinstance(block, ToolUse) else block.content
        return escape(json_text(value)) if json_size([value]) <= room else None
    return None


_MARKS: Final = re.compile(r"\s*(━━\d*) ")


def _unused_mark(lines: Iterable[str]) -> str:
    """A mark for headings with which no line begins: a server must not be able to imitate a heading."""
    used = {found[1] for line in lines if (found := _MARKS.match(line))}
    return next(mark for number in count() if (mark := f"━━{number or ''}") not in used)


def rewritten(block: Block, text: str) -> Block:
    """The block with another content. Raises ValueError with a sentence for invalid JSON."""
    match block:
        case TextContent():
            return read_block({**block_object(block), "text": reveal(text)})
        case ToolUse():
            read = read_block({**block_object(block), "input": _json(text, dict, "an object {…}")})
        case ToolResult():
            read = read_block({**block_object(block), "content": _json(text, list, "a list […]")})
        case _:
            return block
    if type(read) is not type(block):
        raise ValueError("this is not valid here any more")
    return read


def _json(text: str, kind: type, called: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise ValueError(f"it must be {called}")
    return value


def edit_of_prompt(sampling: Sampling, kept: Kept) -> SamplingEdit:
    """The edit that leaves these parts. Raises ValueError if no message is left."""
    request, system, blocks = sampling.request, "", dict[int, list[Block]]()
    for part, block in kept:
        if part.message is not None:
            blocks.setdefault(part.message, []).extend([] if block is None else [block])
        elif isinstance(block, TextContent):
            system = block.text
    if not blocks:
        raise ValueError(NOTHING_LEFT)
    messages = (replace(request.messages[number], blocks=tuple(of)) for number, of in sorted(blocks.items()))
    return SamplingEdit(replace(request, system=system, messages=tuple(messages)))


def answer_of(kept: Kept) -> tuple[Block, ...]:
    """The blocks of an edited answer, without empty texts."""
    return tuple(block for _, block in kept if block and not (isinstance(block, TextContent) and not block.text))


# As it would be sent.


def request_object(sampling: Sampling) -> dict[str, Any]:
    """The request in the protocol's terms; each vendor's API has its own."""
    request, choice = sampling.request, sampling.request.tool_choice
    sent: dict[str, Any] = {"model": sampling.model.name}
    if request.system:
        sent["systemPrompt"] = request.system
    sent["messages"] = [message.as_object() for message in request.messages]
    sent["maxTokens"] = request.max_tokens
    if request.temperature is not None:
        sent["temperature"] = request.temperature
    if request.stop:
        sent["stopSequences"] = list(request.stop)
    if request.tools:
        sent["tools"] = [tool.definition() for tool in request.tools]
        sent["toolChoice"] = {"mode": choice.mode}
    if request.metadata:
        sent["metadata"] = dict(request.metadata)
    return sent


def result_object(result: CreateMessageResult, version: str | None) -> dict[str, Any]:
    """The result as sent to the server, in its revision."""
    return result.as_object(version) if version else result.as_object()


def preview(sampling: Sampling, reply: SamplingReply | None) -> CreateMessageResult:
    """The result that would be sent, made from a copy of the request."""
    spare = copy(sampling)
    if reply is not None:
        spare.write(reply)
    return spare.send(sampling.model.name)
