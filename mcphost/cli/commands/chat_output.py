"""Prints a turn of a chat as it goes: as text for people, or as JSON events for scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.cli.margin import Margin, size
from mcphost.cli.output import ErrorReport, Exit, Outcome, StatusLine, answer, is_terminal, json_text, remark
from mcphost.host.chat.chat import Chat
from mcphost.host.chat.tool_results import said
from mcphost.host.chat.turns import ModelRound, ModelToolUse, Turn, TurnState
from mcphost.protocol.display import duration_text, show, show_line

LINE: Final = 4000
"""Characters after which an unfinished line is treated as a whole one."""

_CODES: Final[Mapping[TurnState, Exit]] = {
    TurnState.DONE: Exit.DONE,
    TurnState.FAILED: Exit.NOT_CONNECTED,
    TurnState.BOUNDED: Exit.NEGATIVE,
}


class TurnPrinter:
    """Prints each part of a turn once, as it arrives."""

    def __init__(self, talk: Chat) -> None:
        self._talk = talk
        self._told = 0
        """Characters of the current answer that were printed."""
        self._at: ModelRound | None = None
        self._uses: set[str] = set()
        self._begun: set[str] = set()

    def tell(self, turn: Turn) -> None:
        """Print what is new."""
        for each in turn.rounds[turn.rounds.index(self._at) if self._at is not None else 0 :]:
            if each is not self._at:
                self._at, self._told = each, 0
                self.answer_begins(each)
            if each.size > self._told:
                new = each.text[self._told :]
                self._told = each.size
                self.text(new)
            for use in each.uses:
                self._use(use)

    def _use(self, use: ModelToolUse) -> None:
        if use.call is not None and use.id not in self._begun:
            self._begun.add(use.id)
            self.begins(use)
        if use.outcome and use.id not in self._uses:
            self._uses.add(use.id)
            self.ends(use)

    def end(self, turn: Turn) -> Outcome:
        """Print the rest; return the outcome of the command."""
        self.tell(turn)
        self.over(turn)
        declined = any(use.outcome == "declined" for use in turn.uses)
        code = _CODES.get(turn.state, Exit.NEGATIVE)
        remarks = [each.cut for each in turn.rounds if each.cut and not each.superseded]
        ended = f"{turn.state.value}: {turn.reason}" if turn.reason else ""
        if ended and code is Exit.DONE:
            remarks.append(ended)
        if turn.silence and not any(remarks):
            remarks.append(turn.silence)
        kind = "model" if turn.state is TurnState.FAILED else "stopped"
        errors = (ErrorReport(kind, ended, code),) if ended and code is not Exit.DONE else ()
        return Outcome("", Exit.DECLINED if declined and code is Exit.DONE else code, tuple(remarks), errors)

    def answer_begins(self, each: ModelRound) -> None:
        """Another answer of the model begins."""

    def text(self, new: str) -> None:
        """Print the next part of the answer."""

    def begins(self, use: ModelToolUse) -> None:
        """A tool call begins."""

    def ends(self, use: ModelToolUse) -> None:
        """A tool call ended."""

    def over(self, turn: Turn) -> None:
        """The turn is over."""

    def rest(self) -> None:
        """Leave the terminal in order, whether the turn is complete or not."""


class _Words(TurnPrinter):
    """For people: text on stdout, a line on stderr for each call."""

    def __init__(self, talk: Chat) -> None:
        super().__init__(talk)
        self._stream = StreamText() if is_terminal(sys.stdout) else None
        self._margin = Margin(size(sys.stdout)[0], at_spaces=True)
        self._status = StatusLine()
        self._open = False
        """True if the last line of output is unfinished."""

    def text(self, new: str) -> None:
        self._status.clear()
        self._open = not new.endswith("\n")
        answer(new if self._stream is None else self._margin.feed(self._stream.feed(new)))

    def begins(self, use: ModelToolUse) -> None:
        self._end_line()
        self._status.show(f"{use.server}:{use.tool}")

    def ends(self, use: ModelToolUse) -> None:
        self._end_line()
        self._status.clear()
        name = f"{use.server}:{use.tool}" if use.server else use.name or "a tool call without a name"
        words = [f"{show_line(name)} {use.state}"]
        words += [duration_text(use.seconds)] if use.seconds else []
        words += ["edited by you"] if use.edited else []
        words += [said(use.result)] if use.result is not None and not use.ok else []
        remark(", ".join([*words, *use.notes]))

    def rest(self) -> None:
        self._status.clear()
        self._end_line()

    def _end_line(self) -> None:
        if self._open:
            self._open = False
            answer("\n" if self._stream is None else self._margin.end())
            if self._stream is not None:
                self._stream = StreamText()


class _Events(TurnPrinter):
    """For scripts: one JSON object per line."""

    def text(self, new: str) -> None:
        answer(json_text({"type": "text", "text": new}))

    def begins(self, use: ModelToolUse) -> None:
        names = {"id": use.id, "name": use.name, "server": use.server, "tool": use.tool}
        answer(json_text({"type": "tool_use", **names, "arguments": dict(use.arguments)}))

    def ends(self, use: ModelToolUse) -> None:
        event: dict[str, Any] = {"type": "tool_result", "id": use.id, "name": use.name, "outcome": use.outcome}
        if use.edited:
            event["arguments"] = dict(use.sent or {})
        answer(json_text({**event, "result": None if use.result is None else use.result.definition()}))

    def over(self, turn: Turn) -> None:
        spent = self._talk.usage
        tokens = {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens, "guessed": spent.guessed}
        last = turn.rounds[-1] if turn.rounds else ModelRound("")
        state = {"state": turn.state.name.lower(), "reason": turn.reason, "chat": self._talk.id, "model": last.model}
        ended = {"stop_reason": last.stop_reason, "cut": last.cut}
        answer(json_text({"type": "end", **state, **ended, **tokens, "cost": spent.cost}))


def turn_printer(talk: Chat, *, as_json: bool) -> TurnPrinter:
    """The printer for turns of ``talk``."""
    return (_Events if as_json else _Words)(talk)


class StreamText:
    """Makes streamed text safe for a terminal, including sequences that arrive in several pieces."""

    def __init__(self) -> None:
        self._line = ""
        self._shown = ""
        """The part of the line that was returned."""

    def feed(self, text: str) -> str:
        """Return the text that may be written now."""
        return "".join(self._lines(text))

    def _lines(self, text: str) -> Iterator[str]:
        for part in text.splitlines(keepends=True) if "\n" in text else [text]:
            self._line += part
            line = self._line
            whole = line.endswith("\n")
            if not whole and line.endswith("\r"):  # a line feed may follow
                line = line[:-1]
            shown = show(line, joiners=True)
            if shown.startswith(self._shown):
                yield shown[len(self._shown) :]
                self._shown = shown
            else:  # more text changed how the start is shown: go on as if a new line began
                self._line, self._shown = part, show(part, joiners=True)
                yield self._shown
            if whole or len(self._line) > LINE:
                self._line = self._shown = ""
