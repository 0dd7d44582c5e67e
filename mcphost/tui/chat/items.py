"""The items of a transcript: messages, thoughts, answers, tool calls and notes. Each is laid out on its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual.strip import Strip

from mcphost.host.chat.turns import NOT_RUN, ModelRound, ModelToolUse, Turn, TurnState, UserMessage
from mcphost.host.tool_calls.call import CallState
from mcphost.protocol.display import duration_text, show, show_line, size_text
from mcphost.protocol.models.content import TextContent
from mcphost.tui.chat.markdown import CodeBlock, GrowingMarkdown, plain_lines
from mcphost.tui.kit.json_text import json_lines, json_spans
from mcphost.tui.kit.markdown import Line
from mcphost.tui.kit.marks import CALL_MARKS
from mcphost.tui.kit.text_view import wrap_line

Key = tuple[int, int, str]
"""The number of the turn, the answer in it, and the part of that."""

MESSAGE_CHARACTERS: Final = 100_000
"""Characters of a message that are shown."""
THOUGHT_CHARACTERS: Final = 20_000

RENDER_SECONDS: Final = 0.02
"""Seconds of rendering after which keys and painting get their turn: a long answer may come all at once."""


Row = tuple[int, int, int]
"""The number of a line, and where in it the row starts and ends."""


class WrappedLines:
    """Lines, and their rows at the width they were last wrapped for."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.rows: list[Row] = []
        self.strips: dict[int, Strip] = {}
        """Drawn rows, kept until they change."""
        self.width = 0
        self._first_rows: list[int] = []

    def replace(self, first: int, lines: Iterable[Line]) -> None:
        """Replace all lines from ``first`` on."""
        del self.lines[first:]
        self.lines.extend(lines)
        self._keep(first)
        if self.width:
            self._wrap()

    def lay_out(self, width: int) -> None:
        if width != self.width:
            self.width = width
            self._keep(0)
            self._wrap()

    def row_of(self, line: int, column: int) -> int:
        if line >= len(self._first_rows):
            return 0
        first = self._first_rows[line]
        found = (
            row for row in range(first, len(self.rows)) if self.rows[row][0] == line and column < self.rows[row][2]
        )
        return next(found, first)

    def _keep(self, lines: int) -> None:
        """Forget the rows of all lines from this one on."""
        if lines < len(self._first_rows):
            row = self._first_rows[lines]
            del self._first_rows[lines:]
            del self.rows[row:]
            self.strips = {number: strip for number, strip in self.strips.items() if number < row}

    def _wrap(self) -> None:
        for number in range(len(self._first_rows), len(self.lines)):
            line = self.lines[number]
            self._first_rows.append(len(self.rows))
            hang = cell_len(line.hang) if line.hang else 0
            self.rows.extend((number, start, end) for start, end in wrap_line(line.text, self.width, hang))


class TranscriptItem:
    """One item of a conversation. ``gutter`` is drawn before each row, so that no text can imitate another speaker."""

    gutter: ClassVar[tuple[str, str]] = (" ", "muted")
    folds: ClassVar[bool] = False

    def __init__(self, key: Key) -> None:
        self.key = key
        self.laid = WrappedLines()
        self.gap = 1
        self.folded = self.folds
        self._last_state: object = None
        self._due = True

    @property
    def source(self) -> str:
        """The text as it came: it is copied and searched, and its length predicts the height."""
        return ""

    def state(self) -> object:
        """Return a value that differs whenever the lines differ."""
        return None

    def refresh(self) -> bool:
        """Compare the state with that of the last call; return whether it changed."""
        now = (self.state(), self.folded)
        changed = now != self._last_state
        self._last_state, self._due = now, self._due or changed
        return changed

    def height(self, width: int) -> int:
        """The rows with the gap above; an estimate until the item is laid out."""
        rows = len(self.laid.rows) if self.ready(width) or self.laid.rows else self._guess(width)
        return rows + self.gap

    def ready(self, width: int) -> bool:
        """True if the item is laid out for this width."""
        return not self._due and not self.behind and self.laid.width == width

    @property
    def behind(self) -> bool:
        """True if a part is not rendered yet, for lack of time."""
        return False

    def lay_out(self, width: int) -> None:
        self.write_lines()
        self.laid.lay_out(width)

    def write_lines(self) -> None:
        """Write the lines that are out of date, or some more of those that are behind."""
        if self._due or self.behind:
            self._due = False
            self.write()

    def write(self) -> None:
        self.laid.replace(0, self.lines())

    def lines(self) -> Iterator[Line]:
        yield from ()

    def _guess(self, width: int) -> int:
        return 1 if self.folded else 1 + self.source.count("\n") + len(self.source) // max(width, 1)


class MessageItem(TranscriptItem):
    gutter = ("▌", "user")

    def __init__(self, key: Key, turn: Turn) -> None:
        super().__init__(key)
        self.turn = turn

    @property
    def message(self) -> UserMessage:
        return self.turn.message

    @property
    def source(self) -> str:
        return self.message.text

    def lines(self) -> Iterator[Line]:
        for prompt in self.message.prompts:
            text = f"/{show_line(prompt.server, 60)}:{show_line(prompt.prompt, 80)} · {_count(len(prompt.messages))}"
            yield from plain_lines(text + _note(prompt.note), part="label")
        for each in self.message.attachments:
            whose = f"{show_line(each.server, 60)}:" if each.server else ""
            size = f"{size_text(each.size)}, about {each.tokens:,} tokens"
            sign = "/skill " if each.skill else "@"
            yield from plain_lines(f"{sign}{whose}{show_line(each.name, 200)} · {size}{_note(each.note)}", part="label")
        if self.message.text:
            yield from plain_lines(show(self.message.text, limit=MESSAGE_CHARACTERS, joiners=True))


class ThoughtItem(TranscriptItem):
    """The thoughts of a model before an answer."""

    gutter = ("│", "muted")
    folds = True

    def __init__(self, key: Key, answer: ModelRound) -> None:
        super().__init__(key)
        self.answer = answer

    @property
    def source(self) -> str:
        return self.answer.thought

    def state(self) -> object:
        return len(self.answer.thought)

    def lines(self) -> Iterator[Line]:
        mark = "▸" if self.folded else "▾"
        yield from plain_lines(f"{mark} thoughts · {len(self.answer.thought):,} characters", part="muted")
        if not self.folded:
            yield from plain_lines(
                show(self.answer.thought, limit=THOUGHT_CHARACTERS, joiners=True), indent="  ", part="muted"
            )


class AnswerItem(TranscriptItem):
    """A model's answer as far as it has come."""

    gutter = ("│", "model")

    def __init__(self, key: Key, answer: ModelRound) -> None:
        super().__init__(key)
        self.answer, self.markdown = answer, GrowingMarkdown()
        self._head: tuple[Line, ...] | None = None

    @property
    def source(self) -> str:
        return self.answer.text

    @property
    def codes(self) -> list[CodeBlock]:
        self.write_lines()
        while self.behind:
            self.write_lines()
        return self.markdown.codes

    @property
    def behind(self) -> bool:
        return self.markdown.behind

    def state(self) -> object:
        return self.answer.size, self.answer.superseded, self.answer.stop_reason

    def write(self) -> None:
        """Render what is new."""
        head = tuple(self._heading())
        first = self.markdown.grow(self.answer.text, RENDER_SECONDS)
        if head != self._head:
            self._head = head
            self.laid.replace(0, (*head, *self.markdown.lines))
        else:
            self.laid.replace(len(head) + first, self.markdown.lines[first:])

    def _heading(self) -> Iterator[Line]:
        words = show_line(self.answer.entry, 60)
        if self.answer.superseded:
            words += " · broke off and was asked again"
        elif self.answer.cut:
            words += " · cut off"
        yield Line(words, ((0, len(words), "label"),))


class NoteItem(TranscriptItem):
    """A note of mcphost's: the model is busy, failed or was stopped, and what to do."""

    def __init__(self, key: Key, turn: Turn) -> None:
        super().__init__(key)
        self.turn = turn

    @property
    def source(self) -> str:
        return note_of(self.turn)[1]

    def state(self) -> object:
        return note_of(self.turn)

    def lines(self) -> Iterator[Line]:
        part, words = note_of(self.turn)
        yield from plain_lines(words, part=part)


def note_of(turn: Turn) -> tuple[str, str]:
    """Return the style and text of a turn's note; both are empty if there is nothing to say."""
    if not turn.state.ended:
        return _doing(turn)
    reason = show(turn.reason, limit=2_000)
    reason = reason if reason.endswith((".", "?", "!")) else f"{reason}."
    match turn.state:
        case TurnState.FAILED:
            return "bad", f"✖ {reason}\n  r asks again · m switches the model · or write on"
        case TurnState.BOUNDED:
            return "warn", f"▲ Stopped here: {reason}\n  r continues · or write on"
        case TurnState.STOPPED:
            return "muted", "◌ You stopped the model; its text so far is kept. r asks again · or write on"
    if cut := turn.rounds[-1].cut if turn.rounds else "":
        return "warn", f"▲ {cut[0].upper()}{cut[1:]}.\n  write on to continue"
    if silence := turn.silence:
        return "muted", f"◌ {silence[0].upper()}{silence[1:]}. E edits and resends your message"
    return "", ""


def _doing(turn: Turn) -> tuple[str, str]:
    answer = turn.rounds[-1] if turn.rounds else None
    if answer is None:
        return "muted", "◐ waiting for the model"
    entry = show_line(answer.entry, 60)
    if answer.waiting is not None:
        wait = answer.waiting
        again = f"asked again in {duration_text(wait.seconds)} ({wait.attempt} of {wait.most})"
        return "warn", f"◐ {entry} is overloaded; {again}: {show(wait.reason, limit=400)}"
    if turn.state is TurnState.REVIEWING:
        return "warn", "? results wait for your review"
    if answer.writing:
        return "muted", f"◐ {entry} is writing the arguments of {show_line(answer.writing, 80)}"
    if turn.state is TurnState.ANSWERING and not answer.size:
        return "muted", f"◐ {entry} is {'thinking' if answer.thought else 'working'} · esc stops"
    return "", ""


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _note(note: str) -> str:
    return f" · {show_line(note, 200)}" if note else ""


ARGUMENT_LINES: Final = 200
RESULT_CHARACTERS: Final = 20_000
"""Characters of a result on an unfolded card."""
GLANCE_CHARACTERS: Final = 160
"""Characters of arguments or of a result on a folded card."""

_STATES: Final[Mapping[str, CallState]] = {state.value: state for state in CallState}
_PARTS: Final[Mapping[str, str]] = {
    "$text-success": "good", "$text-warning": "warn", "$text-error": "bad", "$foreground-muted": "muted",
}  # fmt: skip


class UseItem(TranscriptItem):
    """A tool call, as a card. Folded, it takes two lines."""

    gutter = ("┆", "use")
    folds = True

    def __init__(self, key: Key, use: ModelToolUse) -> None:
        super().__init__(key)
        self.use = use

    @property
    def source(self) -> str:
        use = self.use
        return "\n".join([f"{use.server}:{use.tool or use.name}", _compact(use.arguments), result_text(use)])

    def state(self) -> object:
        use, call = self.use, self.use.call
        running = call is not None and not call.state.ended
        return (
            use.state,
            use.edited,
            use.notes,
            running and call is not None and int(call.elapsed),
            result_text(use)[:50],
        )

    def lines(self) -> Iterator[Line]:
        yield self._head()
        yield from self._glance() if self.folded else self._details()
        for note in self.use.notes:
            yield from plain_lines(f"! {show_line(note)}", indent="    ", part="warn")

    def _head(self) -> Line:
        use = self.use
        state = _STATES.get(use.state.split(" as a task")[0])
        mark, style = CALL_MARKS[state] if state else ("◌" if use.outcome == NOT_RUN else "?", "$text-warning")
        fold, part = "▸" if self.folded else "▾", _PARTS.get(style, "warn")
        name = f"{show_line(use.server, 40)} › {show_line(use.tool, 80)}" if use.server else show_line(use.name, 80)
        edited = use.edited or (use.call is not None and use.call.edited)
        rest = [show_line(use.state, 120), *(["arguments edited by you"] if edited else []), *self._time()]
        text = f"{fold} {mark} {name} · {' · '.join(rest)}"
        after = 4 + len(name)
        return Line(text, ((2, 3, part), (4, after, "strong"), (after, len(text), part)), "    ")

    def _time(self) -> list[str]:
        call = self.use.call
        if call is not None and not call.state.ended:
            return [duration_text(int(call.elapsed))] if call.sent_at is not None and call.elapsed >= 1 else []
        return [duration_text(self.use.seconds)] if self.use.seconds else []

    def _glance(self) -> Iterator[Line]:
        use = self.use
        if use.arguments and not use.outcome:
            yield from plain_lines(show_line(_compact(_sent(use)), GLANCE_CHARACTERS), indent="    ", part="muted")
        elif use.outcome and not use.ok:
            yield from plain_lines(show_line(result_text(use), 2 * GLANCE_CHARACTERS), indent="    ", part="muted")
        elif use.arguments:
            yield from plain_lines(show_line(_compact(_sent(use)), GLANCE_CHARACTERS // 2), indent="    ", part="muted")

    def _details(self) -> Iterator[Line]:
        use = self.use
        if use.server and use.name != f"{use.server}__{use.tool}":
            yield from plain_lines(f"the model called it {show_line(use.name, 80)}", indent="    ", part="muted")
        if use.problem:
            yield from plain_lines(show(use.problem, limit=500), indent="    ", part="bad")
            yield from plain_lines(show(use.raw, limit=2_000), indent="    ")
        elif use.edited:
            yield from self._arguments("the model wrote", use.arguments)
            yield from self._arguments("you sent", _sent(use))
        else:
            yield from self._arguments("arguments", use.arguments)
        if use.result is not None:
            label = "the model got" + (" an error:" if use.result.is_error else "")
            yield from plain_lines(label, indent="    ", part="label")
            yield from plain_lines(show(result_text(use), limit=RESULT_CHARACTERS, joiners=True), indent="    ")

    def _arguments(self, label: str, arguments: Mapping[str, Any]) -> Iterator[Line]:
        if not arguments:
            yield from plain_lines(f"{label}: none", indent="    ", part="label")
            return
        yield from plain_lines(label, indent="    ", part="label")
        lines, more = json_lines(dict(arguments), ARGUMENT_LINES)
        for line in lines:
            spans = tuple((start + 4, end + 4, part) for start, end, part in json_spans(line))
            yield Line(f"    {line}", spans, "      ")
        if more:
            yield from plain_lines("… o opens it in full", indent="    ", part="warn")


def result_text(use: ModelToolUse) -> str:
    blocks = () if use.result is None else use.result.blocks
    return "\n".join(block.text if isinstance(block, TextContent) else f"({block.type})" for block in blocks)


def _sent(use: ModelToolUse) -> Mapping[str, Any]:
    if use.sent is not None:
        return use.sent
    return use.arguments if use.call is None else use.call.arguments


def _compact(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)
