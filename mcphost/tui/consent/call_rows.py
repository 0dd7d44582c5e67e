"""The arguments of a call, row by row. Nothing is folded away, and hidden characters are counted.

Names are shown as JSON strings and every row is part of the arguments' frame, so that no argument can imitate a fact of
ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final

from rich.cells import cell_len
from textual.containers import Horizontal
from textual.content import Content, Span
from textual.widget import Widget
from textual.widgets import Static

from mcphost.host.consent.approvals import ApprovalStatus, ToolApproval
from mcphost.host.consent.argument_rules import in_words
from mcphost.host.consent.provenance import NOTHING, Provenance, UntrustedSpan
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import (
    age_text,
    hidden_count,
    hidden_in,
    show,
    show_line,
    show_name,
    size_text,
    unindented,
)
from mcphost.protocol.models.tools import Tool
from mcphost.tui.consent.difference import difference_facts, is_shown_whole
from mcphost.tui.consent.origin import agent_facts
from mcphost.tui.kit.answers import ReadToEnd
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.json_text import json_spans, json_text

SHOWN_CHARACTERS: Final = 20_000
"""Of one argument. For a longer one, the whole must have been read (``v``) before the call can be allowed."""

SHOWN_ARGUMENTS: Final = 300
"""Rows; a model may send tens of thousands, which no screen lays out in time."""

LABEL: Final = 24
"""Cells of a quoted name beside its value; a longer name is on a line of its own above."""

SEARCHED_CHARACTERS: Final = 5 * SHOWN_CHARACTERS
"""Characters of JSON in which untrusted text is searched: long blanks are counted and not shown."""

PADDING: Final = re.compile(r"(?:[^\S\n]*\n){4,}|[^\S\n]{24,}")
"""Blanks long enough to push something out of sight; shorter ones are indentation."""


UNTRUSTED_STYLE: Final = "underline"
"""The style of text that was copied from elsewhere; a line below says so in words."""

COLOURED_CHARACTERS: Final = 5_000
"""Of one argument; a longer one is not coloured, which would take too long."""

COLOURS: Final = {
    "key": "$text-primary",
    "string": "$text-success",
    "number": "$text-warning",
    "constant": "bold $text-accent",
}
"""Of the parts of JSON, as in `mcphost.tui.kit.text_view`."""


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """An argument's name and value, side by side or one above the other."""

    name: Content
    value: Content | None = None
    """None: the name stands alone, above its value."""
    name_width: int = 0

    def widget(self) -> Widget:
        name = Static(self.name, classes="name")
        if self.value is None:
            return name
        name.styles.width = self.name_width
        return Horizontal(name, Static(self.value, classes="value"), classes="argument")

    def height_at(self, width: int) -> int:
        if self.value is None:
            return self.name.get_height({}, width)
        return max(1, self.value.get_height({}, width - self.name_width))


class Arguments(ReadToEnd):
    DEFAULT_CSS = """
    Arguments {
        border: round $border-blurred; border-title-color: $foreground-muted;
        border-title-color: $foreground;
        padding: 0 1;
        .argument { height: auto; }
        .argument > .value { width: 1fr; }
        .name { color: $text-primary; height: auto; }
    }
    """

    def __init__(self, arguments: Mapping[str, Any], *, edited: bool, provenance: Provenance = NOTHING) -> None:
        self._rows = tuple(argument_rows(arguments, provenance))
        super().__init__(*(row.widget() for row in self._rows))
        self.border_title = Content.assemble(
            f"Arguments ({len(arguments):,})", (" · edited by you" if edited else "", "bold $text-warning")
        )

    def height_at(self, width: int) -> int:
        """The rows that all of it needs in this width, with the frame."""
        return sum(row.height_at(width - 4) for row in self._rows) + 2


def argument_rows(arguments: Mapping[str, Any], provenance: Provenance = NOTHING) -> Iterator[ArgumentRow]:
    """The rows of each argument. Text that ``provenance`` marks as untrusted is underlined, with its source below."""
    shown = dict(islice(arguments.items(), SHOWN_ARGUMENTS))
    names = {name: show_name(name, LABEL * 2) for name in shown}
    short = [cell_len(quoted) for quoted in names.values() if cell_len(quoted) <= LABEL]
    width = max(short, default=0) + 2
    for name, value in shown.items():
        beside = cell_len(names[name]) <= LABEL
        if not beside:
            yield ArgumentRow(_shown(json.dumps(name, ensure_ascii=False), ()))
        yield ArgumentRow(Content(names[name] if beside else ""), _value(value, provenance, name), width)
    if not shown:
        yield ArgumentRow(Content(""), Content("none"))


def argument_facts(arguments: Mapping[str, Any], provenance: Provenance = NOTHING) -> Iterator[Fact]:
    """Facts about the arguments as a whole."""
    if (more := len(arguments) - SHOWN_ARGUMENTS) > 0:
        yield fact("beware", f"{more:,} more arguments are not shown here", "bold $text-error")
    if provenance.note:
        yield fact("beware", show_line(provenance.note, 400), "$text-warning")


def is_cut(arguments: Mapping[str, Any]) -> bool:
    """True if the arguments are longer than `argument_rows` shows."""
    texts = (text for name, value in arguments.items() for text in (name, text_of(value)))
    return len(arguments) > SHOWN_ARGUMENTS or any(len(text) > SHOWN_CHARACTERS for text in texts)


def _value(value: object, provenance: Provenance, name: str) -> Content:
    if value == "":
        return Content.styled("(empty)", "$foreground-muted")
    text = text_of(value)
    lines = [_coloured(_shown(text, _spans(value, text, provenance.spans_of(name))), value)]
    lines.extend(Content.styled(f"▲ {words}", "$text-warning") for words in provenance.words(name))
    if notes := "; ".join(_notes(text)):
        lines.append(Content.styled(f"({notes})", "$foreground-muted"))
    return Content("\n").join(lines)


def _coloured(shown: Content, value: object) -> Content:
    plain = shown.plain
    if len(plain) > COLOURED_CHARACTERS:
        return shown
    if isinstance(value, str):
        return Content(plain, [Span(0, len(plain), COLOURS["string"]), *shown.spans])
    spans, at = [], 0
    for line in plain.split("\n"):
        spans += [Span(at + start, at + end, COLOURS[part]) for start, end, part in json_spans(line)]
        at += len(line) + 1
    return Content(plain, [*spans, *shown.spans])


def _notes(text: str) -> Iterator[str]:
    if len(text) > 80 or "\n" in text:
        size = size_text(len(text.encode("utf-8", "replace")))
        yield f"{len(text):,} characters, {text.count(chr(10)) + 1} lines, {size}"
    if hidden := hidden_count(text):
        yield f"{hidden} invisible characters"


def _shown(text: str, spans: Iterable[tuple[int, int]]) -> Content:
    """Make the text safe piece by piece, since escapes would shift the spans."""
    parts: list[Content] = []
    at, room = 0, SHOWN_CHARACTERS
    for start, end in spans:
        for piece, style in ((text[at:start], ""), (text[start:end], UNTRUSTED_STYLE)):
            shown = show(PADDING.sub(_counted, piece))
            if len(shown) > room:
                return Content("").join([*parts, Content(show(PADDING.sub(_counted, text[at:]), limit=room))])
            parts.append(Content.styled(shown, style))
            at, room = at + len(piece), room - len(shown)
    return Content("").join([*parts, Content(show(PADDING.sub(_counted, text[at:]), limit=room))])


def _spans(value: object, text: str, marks: Iterable[UntrustedSpan]) -> Iterator[tuple[int, int]]:
    """The spans of untrusted text in ``text``, the shown form of ``value``: in order, not overlapping."""
    here = [mark for mark in marks if len(mark.path) > 1 or not mark.is_name]  # else it is in the row's label
    if isinstance(value, str):
        places = {(mark.start, mark.end) for mark in here}
    else:
        places = {place for words in {mark.text for mark in here} for place in _written(words, text)}
    done = 0
    for start, end in sorted(places):
        if end > done:
            yield max(start, done), end
            done = end


def _written(words: str, text: str) -> Iterator[tuple[int, int]]:
    """All places of this text in JSON."""
    written = json.dumps(words, ensure_ascii=False)[1:-1]
    start = text.find(written, 0, SEARCHED_CHARACTERS)
    while start >= 0:
        yield start, start + len(written)
        start = text.find(written, start + len(written), SEARCHED_CHARACTERS)


def text_of(value: object) -> str:
    """The shown form of a value."""
    return value if isinstance(value, str) else json_text(value)


def _counted(padding: re.Match[str]) -> str:
    lines = padding[0].count("\n")
    return f"\n⏎×{lines:,}\n" if lines else f" {show_line(padding[0], 10_000)} "


def call_facts(question: ToolCallQuestion) -> Iterator[Fact]:
    """Where the arguments go, why the user is asked, and what is known of the tool."""
    if question.agent is not None:
        yield from agent_facts(question.agent)
    if question.skill:
        yield fact("skill", f"the model acts on {question.skill}", "bold $text-warning")
    tool = question.tool
    if tool.label != tool.name:
        yield fact("tool", show_name(tool.name))
    if not question.own_tool:
        yield Fact("server says", claims_text(tool))
    yield fact("history", *_history(question.approval))
    yield fact("sent to", show(question.identity, limit=2000))
    yield fact("rule", show_line(question.rule, 200))
    if question.repeats:
        yield fact("repeats", question.repeats, "bold $text-warning")
    if question.note:
        yield fact("note", show(question.note), "$text-warning")
    if hidden := hidden_in(tool.definition()):
        yield fact("beware", f"its definition holds {hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error")


def tool_facts(question: ToolCallQuestion) -> Iterator[Fact]:
    """The changes, the approvals so far, and the server's description unless it is among the changes."""
    for difference in question.approval.differences:
        yield from difference_facts(difference)
    for rule in question.approval.rules:
        yield fact("allowed", f"where {in_words(rule.when)}, {rule.lifetime.words}")
    shown = any(each.field == "description" and is_shown_whole(each) for each in question.approval.differences)
    if (description := question.tool.description) and not shown:
        description, in_full = unindented(description), question.approval.kind is not ApprovalStatus.UNCHANGED
        text = show(description, limit=4000) if in_full else show_line(description, 120)
        yield Fact("description", Content.styled(text, "italic $foreground-muted"))


def claims_text(tool: Tool) -> Content:
    if not tool.claims:
        return Content.styled("nothing (so it may write, delete and reach the network)", "$foreground-muted")
    return Content(", ").join(Content.styled(claim, _claim_style(claim)) for claim in tool.claims)


def _claim_style(claim: str) -> str:
    return "bold $text-error" if claim == "destructive" else ""


def _history(approval: ToolApproval) -> tuple[str, str]:
    """Since when the tool is allowed, and the style to say it in."""
    if approval.kind is ApprovalStatus.NEW or approval.since is None:
        return "not allowed before", ""
    since = f"since you allowed it {when_text(approval.since)}"
    if approval.kind is ApprovalStatus.CHANGED:
        return f"CHANGED {since}", "bold $text-error"
    lapsed = "; that was for good, but too long ago (policy.remember_days)" if approval.lapsed else ""
    return f"definition unchanged {since}{lapsed}", ""


def when_text(moment: datetime) -> str:
    """``a moment ago``, ``5 min ago``; a date from a day on."""
    seconds = (datetime.now(moment.tzinfo) - moment).total_seconds()
    if not 0 <= seconds < 86_400:
        return f"on {moment:%-d %b %Y}"
    return "a moment ago" if seconds < 60 else age_text(seconds)
