"""The dialog that makes a rule of a call: later calls whose arguments match run without asking.

The rule is tried on past calls, so that the user sees which of them it would have allowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.argument_rules import PATTERN_CHARACTERS, fits, left_open, problem, suggested, wrong_with
from mcphost.host.consent.questions import ToolCallQuestion
from mcphost.host.consent.rule_trial import EarlierCalls, RuleTrial, tried
from mcphost.host.tool_calls.call import CallState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.consent.call_rows import text_of
from mcphost.tui.kit.answers import AnswerOption, AnswerOptions
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.modal_screen import HELP_BINDING, Dialog
from mcphost.tui.kit.rows import Cell, RowList, columns
from mcphost.tui.textual_private.corrections import ScrolledColumn

ANYTHING = "any value"


class PatternRow(Vertical):
    """The pattern of an ``argument`` whose value is ``text``, drawn like a field of a form. Left empty, the argument
    may be anything.
    """

    DEFAULT_CSS = """
    PatternRow {
        height: auto;
        & > Horizontal { height: 1; }
        .edge { width: 1; color: $foreground-muted; }
        &:focus-within .edge { color: $text-accent; }
        Input { width: 1fr; padding: 0; background: $panel; }
        .note { height: auto; color: $foreground-muted; }
    }
    """

    def __init__(self, argument: str, text: str, label: int) -> None:
        """``label`` is the width of the label in cells."""
        super().__init__()
        self.argument, self._text, self._width = argument, text, label
        self._last_pattern = suggested(text)
        self.input = Input(
            self._last_pattern,
            placeholder=ANYTHING,
            compact=True,
            select_on_focus=False,
            max_length=PATTERN_CHARACTERS + 1,
        )
        self._label, self._note = Static(markup=False), Static(classes="note", markup=False)
        self._label.styles.width, self._note.styles.padding = label, (0, 0, 0, label + 1)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._label
            yield Static("▏", classes="edge", markup=False)
            yield self.input
        yield self._note

    def on_mount(self) -> None:
        self.show_check()

    @property
    def pattern(self) -> str:
        return self.input.value

    @property
    def problem(self) -> str:
        """The reason why the pattern is invalid or does not match this call; empty if it does, or has no text."""
        if not self.pattern:
            return ""
        wrong = wrong_with(self.pattern)
        return wrong or ("" if fits({"text": self.pattern}, {"text": self._text}) else "does not match this call")

    def on_descendant_focus(self) -> None:
        self.show_check()

    def on_descendant_blur(self) -> None:
        self.show_check()

    def show_check(self) -> None:
        """Show the label, and whether the pattern matches."""
        focused = self.input.has_focus
        mark = ("▸ ", "bold $text-accent") if focused else "  "
        name = Content.styled(show_line(self.argument, 80), "bold" if focused else "")
        self._label.update(Content.assemble(mark, name).truncate(self._width - 1, ellipsis=True))
        note = self._check_result()
        self._note.update(note)
        self._note.display = bool(note)

    def toggle(self) -> None:
        """Remove the pattern, or put it back."""
        if self.pattern:
            self._last_pattern, self.input.value = self.pattern, ""
        else:
            self.input.value = self._last_pattern

    def on_click(self, event: events.Click) -> None:
        if event.widget is self._label:
            self.toggle()

    def _check_result(self) -> Content:
        if not self.pattern:
            return Content("")
        if problem := self.problem:
            return Content.styled(f"▲ {problem}", "bold $text-error")
        open_ends = left_open(self.pattern)
        more = f" · ▲ anything may stand {open_ends}" if open_ends else ""
        return Content.assemble("✓ matches this call", (more, "$text-warning"))


LABEL = 32
"""Cells of the longest label."""

INTRODUCTION = "Later calls whose arguments match all of these patterns run without asking. No pattern: any value."
NO_PATTERN = "a rule needs at least one pattern"
NO_CALLS = "This tool was not called before.\nPast calls that the rule would have allowed are listed here."


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """Which calls are allowed from now on, and for how long."""

    when: Mapping[str, str]
    lifetime: Lifetime


class ArgumentRuleScreen(Dialog[ArgumentRule | None], inherit_bindings=False):
    """Dismissed with the rule, or with None.

    ``arguments`` are those that would be sent; ``past`` returns the calls on which the rule is tried.
    """

    HELP = (
        "A rule made of this call. Each text has a pattern, a regular expression that matches this call (^ is the "
        "start, $ the end): edit it, or allow any value. Below are past calls: would the rule have allowed them "
        "(✓) or not (✗)? The rule holds until the tool's definition changes; it is listed among what is allowed."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "u",
            "allow('session')",
            "until exit",
            id="rule.session",
            tooltip="Allow, and keep the rule until mcphost exits",
        ),
        Binding("a", "allow('always')", "always", id="rule.always", tooltip="Allow, and keep the rule"),
        Binding("ctrl+t", "bind", "any value", id="rule.toggle", tooltip="Allow any value of this argument, or not"),
        Binding("escape", "back", "back", id="rule.back", tooltip="To the answers, then back without allowing"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    ArgumentRuleScreen {
        .about { height: auto; color: $foreground-muted; }
        .patterns { height: auto; max-height: 40vh; scrollbar-size-vertical: 1; }
        .between { min-height: 4; }
        .sum { height: auto; border-top: solid $border-blurred; }
        .hint { height: auto; color: $text-warning; }
        &.-wide > .dialog { max-width: 100%; }
    }
    """

    def __init__(
        self,
        question: ToolCallQuestion,
        arguments: Mapping[str, Any],
        past: Callable[[], Awaitable[EarlierCalls]],
    ) -> None:
        super().__init__(classes="-careful" if question.careful else None)
        self._question, self._find = question, past
        self._past: EarlierCalls | None = None
        texts = {name: text for name, text in arguments.items() if isinstance(text, str)}
        label = min(max((cell_len(show_line(name, 80)) for name in texts), default=0) + 4, LABEL)
        self.patterns = [PatternRow(name, text, label) for name, text in texts.items()]
        self.trials = RowList[RuleTrial](_row, empty="", classes="between")
        self.answers = AnswerOptions()
        self._sum, self._hint = Static(classes="sum", markup=False), Static(classes="hint", markup=False)

    def compose(self) -> ComposeResult:
        self.set_class(self.app.screen_stack[-2].has_class("-docked"), "-wide")
        tool, server = show_line(self._question.tool.label, 50), show_line(self._question.server, 60)
        title = Content.assemble("Run ", (tool, "bold"), " on ", (server, "bold"), ", now and in calls like this?")
        with self.framed(title, Content("enter next · ctrl+t any value · esc back")):
            with Vertical(classes="above"):
                yield Static(INTRODUCTION, classes="about", markup=False)
                with ScrolledColumn(classes="patterns", can_focus=False):
                    yield from self.patterns
                yield self._sum
            yield self.trials
            with Vertical(classes="below"):
                yield self._hint
                yield self.answers

    def on_mount(self) -> None:
        self.answers.offer(self._options(), at="esc" if self._question.careful else "u")
        self.patterns[0].input.focus()
        self._try()
        self.run_worker(self._find_past())

    @property
    def when(self) -> dict[str, str]:
        return {row.argument: row.pattern for row in self.patterns if row.pattern}

    @property
    def missing(self) -> str:
        """Why no rule can be made of the patterns; empty: one can."""
        if not self.when:
            return NO_PATTERN
        wrong = next((row for row in self.patterns if row.problem), None)
        if wrong is not None:
            return f"the pattern for {show_line(wrong.argument, 60)} {wrong.problem}"
        return problem(self.when)

    @property
    def typing(self) -> bool:
        """True while a text field has the focus."""
        return isinstance(self.focused, Input)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "allow" or not self.typing

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.refresh_bindings()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._try()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        fields = [row.input for row in self.patterns]
        at = fields.index(event.input) + 1
        (fields[at] if at < len(fields) else self.answers).focus()

    @on(RowList.Selected)
    async def _selected(self, event: RowList.Selected[AnswerOption | RuleTrial]) -> None:
        event.stop()
        if isinstance(event.item, AnswerOption):
            await self.run_action(event.item.action)
        else:
            self._open_arguments(event.item)

    def action_allow(self, lifetime: str) -> None:
        if self.missing or (lifetime == "always" and self._question.why_not_always):
            self.app.bell()
        else:
            self.dismiss(ArgumentRule(self.when, Lifetime(lifetime)))

    def action_bind(self) -> None:
        """Bind the focused argument to its pattern, or let it be anything."""
        at = next((row for row in self.patterns if row.has_focus_within), None)
        if at is not None:
            at.toggle()

    def action_back(self) -> None:
        """Go from a field to the answers, and from there back to the question."""
        if self.typing:
            self.answers.focus()
        else:
            self.dismiss(None)

    async def _find_past(self) -> None:
        self._past = await self._find()
        self.trials.empty = NO_CALLS
        self._try()

    def _try(self) -> None:
        """Try the rule on the past calls."""
        for row in self.patterns:
            row.show_check()
        missing = self.missing
        self._hint.update(f"▲ {missing}")
        self._hint.display = bool(missing)
        trials = tried({} if missing else self.when, self._past or EarlierCalls())
        self.trials.set_items(trials, keep=lambda trial: (trial.call.id, trial.call.number))
        self._sum.update(_sum(trials, self._past))

    def _open_arguments(self, trial: RuleTrial) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        title = f"{self._question.server} › arguments of {trial.call.name}"
        self.app.push_screen(ReaderScreen(title, json_text(trial.call.arguments), is_json=True))

    def _options(self) -> Iterator[AnswerOption]:
        always = "always allow calls like this (until the tool's definition changes)"
        yield AnswerOption("u", "allow calls like this until mcphost exits", "allow('session')")
        yield AnswerOption(
            "a",
            f"not offered: {self._question.why_not_always}" if self._question.why_not_always else always,
            "allow('always')",
            locked=bool(self._question.why_not_always),
        )
        yield AnswerOption("esc", "back to the question", "back")


def _sum(trials: list[RuleTrial], past: EarlierCalls | None) -> Content:
    if past is None:
        return Content("looking for past calls…")
    allowed = [trial for trial in trials if trial.allowed]
    declined = sum(trial.call.state is CallState.DECLINED for trial in allowed)
    words = f"would have allowed {len(allowed)} of {len(trials)} past calls" if trials else "no past calls"
    warning = f" · ▲ {declined} declined" if declined else ""
    return Content.assemble((words, "bold"), (warning, "$text-warning"), (f" · {past.reaches}", "$foreground-muted"))


def _row(trial: RuleTrial, width: int) -> Content:
    text = "  ".join(
        f"{show_line(name, 40)}={show_line(text_of(value), 200)}" for name, value in _first_arguments(trial)
    )
    return columns(
        width,
        [
            Cell("✓" if trial.allowed else "✗", "bold $text-success" if trial.allowed else "bold $text-error", 1, 1),
            Cell(trial.call.name, "$foreground-muted", 8, 13),
            Cell(text, "", 10),
            Cell("declined" if trial.call.state is CallState.DECLINED else "", "$text-warning", 8, 8),
        ],
    )


def _first_arguments(trial: RuleTrial) -> list[tuple[str, Any]]:
    """As many arguments as may fit on a line."""
    return list(trial.call.arguments.items())[:10]
