"""One argument of a rule: the pattern that its text must match, and what is to be said of it as it is typed.

Knows the pattern and the text of the call that is asked about. Refuses to know the other arguments.
"""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from mcphost.host.argument_rules import PATTERN_CHARACTERS, fits, left_open, suggested, wrong_with
from mcphost.protocol.display import show_line

ANYTHING = "may be anything"


class PatternRow(Vertical):
    """A field for the pattern of ``argument``, which has this ``text``; left empty, the argument may be anything."""

    DEFAULT_CSS = """
    PatternRow {
        height: auto;
        & > Horizontal { height: 1; }
        .name { width: 22; padding-right: 1; }
        Input { width: 1fr; background: $panel; }
        .note { height: auto; padding-left: 22; color: $foreground-muted; }
    }
    """

    def __init__(self, argument: str, text: str) -> None:
        super().__init__()
        self.argument, self._text = argument, text
        self._kept = suggested(text)
        self.input = Input(
            self._kept, placeholder=ANYTHING, compact=True, select_on_focus=False, max_length=PATTERN_CHARACTERS + 1
        )
        self._label, self._note = Static(classes="name", markup=False), Static(classes="note", markup=False)

    def compose(self) -> ComposeResult:
        """Whether it is bound, its name and the field; below, what is to be said."""
        with Horizontal():
            yield self._label
            yield self.input
        yield self._note

    def on_mount(self) -> None:
        """Say what there is to say."""
        self.judge()

    @property
    def pattern(self) -> str:
        """What its text must match; empty: nothing."""
        return self.input.value

    @property
    def problem(self) -> str:
        """Why this is no pattern for a rule that fits this call; empty: it is, or there is none."""
        if not self.pattern:
            return ""
        wrong = wrong_with(self.pattern)
        return wrong or ("" if fits({"text": self.pattern}, {"text": self._text}) else "does not match this very call")

    def judge(self) -> None:
        """Say what there is to say of the pattern as it is now."""
        box = "[x]" if self.pattern else "[ ]"
        self._label.update(Content.assemble((f"{box} ", "bold"), show_line(self.argument, 17)))
        note = self._judgement()
        self._note.update(note)
        self._note.display = bool(note)

    def toggle(self) -> None:
        """Let the argument be anything, or bind it again by the pattern that it had."""
        if self.pattern:
            self._kept, self.input.value = self.pattern, ""
        else:
            self.input.value = self._kept

    def on_click(self, event: events.Click) -> None:
        """A click on the box or the name."""
        if event.widget is self._label:
            self.toggle()

    def _judgement(self) -> Content:
        if not self.pattern:
            return Content("")
        if problem := self.problem:
            return Content.styled(f"✖ {problem}", "$text-error")
        open_ends = left_open(self.pattern)
        more = f" · ▲ anything may stand {open_ends}" if open_ends else ""
        return Content.assemble("✓ matches this call", (more, "$text-warning"))
