"""A tool that a model wanted used, as a card: which, with what, where it stands, and what the model was told of it.

Knows a tool use. Refuses to show more of a result than a glance takes: the call's own view has all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.host.calls import CallState
from mcphost.host.chat.turns import NOT_RUN, ModelToolUse
from mcphost.protocol.display import duration_text, show, show_line
from mcphost.protocol.types import TextContent
from mcphost.tui.marks import CALL_MARKS
from mcphost.tui.widgets.chat_items import Key, TranscriptItem
from mcphost.tui.widgets.chat_layout import plain_lines
from mcphost.tui.widgets.json_text import json_lines, json_spans
from mcphost.tui.widgets.markdown_text import Line

ARGUMENT_LINES: Final = 200
RESULT: Final = 20_000
"""Characters of a result that an open card shows."""
GLANCE: Final = 160
"""Characters of arguments, or of a result, on a folded card."""

_STATES: Final[Mapping[str, CallState]] = {state.value: state for state in CallState}
_PARTS: Final[Mapping[str, str]] = {
    "$text-success": "good", "$text-warning": "warn", "$text-error": "bad", "$foreground-muted": "muted",
}  # fmt: skip


class UseItem(TranscriptItem):
    """The card. Folded it is two lines."""

    gutter = ("┆", "use")
    folds = True

    def __init__(self, key: Key, use: ModelToolUse) -> None:
        super().__init__(key)
        self.use = use

    @property
    def source(self) -> str:
        """Its name, arguments and result."""
        use = self.use
        return "\n".join([f"{use.server}:{use.tool or use.name}", _compact(use.arguments), told(use)])

    def state(self) -> object:
        """What changes while it goes on."""
        use, call = self.use, self.use.call
        running = call is not None and not call.state.ended
        return use.state, use.edited, use.notes, running and call is not None and int(call.elapsed), told(use)[:50]

    def lines(self) -> Iterator[Line]:
        """The head, then a glance or all of it."""
        yield self._head()
        yield from self._glance() if self.folded else self._whole()
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
            yield from plain_lines(show_line(_compact(_sent(use)), GLANCE), indent="    ", part="muted")
        elif use.outcome and not use.ok:
            yield from plain_lines(show_line(told(use), 2 * GLANCE), indent="    ", part="muted")
        elif use.arguments:
            yield from plain_lines(show_line(_compact(_sent(use)), GLANCE // 2), indent="    ", part="muted")

    def _whole(self) -> Iterator[Line]:
        use = self.use
        if use.server and use.name != f"{use.server}__{use.tool}":
            yield from plain_lines(f"the model calls it {show_line(use.name, 80)}", indent="    ", part="muted")
        if use.problem:
            yield from plain_lines(show(use.problem, limit=500), indent="    ", part="bad")
            yield from plain_lines(show(use.raw, limit=2_000), indent="    ")
        elif use.edited:
            yield from self._arguments("the model wrote", use.arguments)
            yield from self._arguments("you sent", _sent(use))
        else:
            yield from self._arguments("arguments", use.arguments)
        if use.result is not None:
            label = "the model was told" + (" that it failed" if use.result.is_error else "")
            yield from plain_lines(label, indent="    ", part="label")
            yield from plain_lines(show(told(use), limit=RESULT, joiners=True), indent="    ")

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
            yield from plain_lines("… o shows all of it", indent="    ", part="warn")


def told(use: ModelToolUse) -> str:
    """The texts that the model was told."""
    blocks = () if use.result is None else use.result.blocks
    return "\n".join(block.text if isinstance(block, TextContent) else f"({block.type})" for block in blocks)


def _sent(use: ModelToolUse) -> Mapping[str, Any]:
    if use.sent is not None:
        return use.sent
    return use.arguments if use.call is None else use.call.arguments


def _compact(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)
