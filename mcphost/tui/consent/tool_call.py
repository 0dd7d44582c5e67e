"""The dialog for a tool call: what would be sent where, what is known of the tool, and the possible answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from mcphost.host.agents.session import AgentCall
from mcphost.host.consent.approvals import ANY, ApprovalStatus, Lifetime
from mcphost.host.consent.provenance import Provenance
from mcphost.host.consent.questions import Answer, ReadOnlyTools, ToolCallQuestion
from mcphost.host.consent.rule_trial import EarlierCalls
from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Tool
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.call_rows import Arguments, argument_facts, call_facts, is_cut, tool_facts
from mcphost.tui.consent.origin import agent_title, is_limited, is_overdue, wait_words
from mcphost.tui.forms.edit_arguments import EditArgumentsScreen
from mcphost.tui.kit.answers import LATER, SCROLL_FIRST, AnswerOption, AnswerOptions, ReadToEnd, ShortAnswers
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.modal_screen import AskScreen, QuestionDialog
from mcphost.tui.kit.rows import RowList

TALL: Final = 30
"""Rows of the screen from which something stays visible behind the dialog."""

SHORT: Final = 20
"""Rows below which all answers share one line."""

MOST_COLUMNS: Final = 140
"""Of the dialog."""

TINY: Final = 12
"""Rows up to which the dialog covers everything."""

LEAST: Final = 5
"""Rows for the arguments and their frame, whatever else there is to read."""

LATE: Final = "The agent was asked to call again later. If you allow it, it may make this call once within 10 minutes."

GIVEN_UP: Final = "The agent may have given up on this call without a word. It would run, and its result might be lost."


class ToolCallScreen(QuestionDialog):
    """Dismissed with the answer, or with None if the question was parked or withdrawn.

    ``past`` returns earlier calls of the tool, on which an argument rule is tried; ``read_only`` sorts out the server's
    read-only tools; ``agent_call`` is the call that a gate holds, as it is now.
    """

    HELP = (
        "A tool is about to run: above are the call and where it goes. Nothing has been sent yet. You can allow "
        "it once all of it was on screen. Patterns allow later calls that match them; you see which past calls "
        "they would have allowed. The tools that the server calls read-only are listed before all of them are allowed."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow('once')", "allow once", id="call.once", tooltip="Allow this call"),
        Binding("u", "allow('session')", "until exit", id="call.session", tooltip="Allow it until mcphost exits"),
        Binding("a", "allow('always')", "always", id="call.always", tooltip="Allow it from now on"),
        Binding("w", "rule", "by arguments", id="call.rule", tooltip="Allow calls whose arguments match patterns"),
        Binding(
            "r",
            "read_only",
            "read-only tools",
            id="call.read-only",
            tooltip="Allow all tools of the server that claim to be read-only",
        ),
        Binding("e", "edit", "edit", id="call.edit", tooltip="Change the arguments first"),
        Binding("n", "decline", "don't run", id="call.decline", tooltip="Decline this call"),
        Binding("t", "tell", "don't run, say why", id="call.tell", tooltip="Decline, and tell the model why"),
        Binding("v", "arguments", "arguments", id="call.arguments", tooltip="All arguments, as they would be sent"),
        Binding("d", "definition", "definition", id="call.definition", tooltip="The tool as its server defines it"),
        Binding("enter", "choose_default", "choose", id="call.easy", show=False),
        Binding("space,pagedown", "page(1)", "scroll", id="call.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="call.up", show=False),
    ]

    DEFAULT_CSS = """
    ToolCallScreen {
        .hint { color: $text-warning; height: auto; }
        .short { display: none; height: auto; border-top: solid $border-blurred; color: $foreground-muted; }
        & > .dialog { max-height: 100%; }
        &.-low > .dialog { margin: 1 0 0 0; }
        &.-short .short { display: block; }
        &.-short .hint { max-height: 1; }
        &.-short AnswerOptions { display: none; }
    }
    """

    def __init__(
        self,
        waiting: OpenQuestion,
        question: ToolCallQuestion,
        past: Callable[[], Awaitable[EarlierCalls]],
        read_only: Callable[[], Awaitable[ReadOnlyTools]],
        agent_call: Callable[[], AgentCall | None] = lambda: None,
    ) -> None:
        super().__init__(waiting, classes="-careful" if question.careful else None)
        self.question = question
        self.arguments: Mapping[str, Any] = question.arguments
        self._agent_call, self._overdue = agent_call, is_overdue(agent_call())
        self.what, self.block, self.answers = ReadToEnd(), self._block(), AnswerOptions()
        self._facts, self._more = FactsTable(self._facts_to_read()), FactsTable(self._other_facts())
        self.what.needed = self._facts
        self._hint, self._short = Static(classes="hint", markup=False), ShortAnswers(classes="short")
        self._past, self._read_only = past, read_only
        self._counting: Timer | None = None
        self._read_in_full = False
        self._fits = False

    @property
    def edited(self) -> bool:
        """True if the user changed the arguments."""
        return self.arguments != self.question.arguments

    def compose(self) -> ComposeResult:
        self.dock_below(self.by_model)
        self._fit_height()  # before the first layout: what is cut off then does not count as seen
        with self.framed(self._title(), self._asked_by()):
            with self.what:
                yield self._facts
                yield self._more
            yield self.block
            yield self._hint
            yield self._short
            yield self.answers

    @property
    def by_model(self) -> bool:
        return self.question.origin != "you"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a model can get a reason, a rule needs text arguments, and some tools have nothing to edit.

        The read-only tools are offered by one of them.
        """
        if action == "read_only":
            return self.question.changes_nothing
        if action == "edit":
            return bool(self.arguments) or self.question.tool.takes_arguments
        if action == "rule":
            return any(isinstance(value, str) for value in self.arguments.values())
        return self.by_model if action == "tell" else True

    def _title(self) -> Content:
        agent = self.question.agent
        tool, server = show_line(self.question.tool.label, 60), show_line(self.question.server, 60)
        if agent is not None:
            name = show_line(self.question.tool.name, 60)
            return agent_title(agent, name if self.question.own_tool else f"{server}:{name}", self._inner_width - 2)
        return Content.assemble("Run ", (tool, "bold"), " on ", (server, "bold"), "?")

    def _asked_by(self) -> Content:
        """The asking party; of an agent, its remaining wait."""
        if self.question.agent is None:
            return Content(f"asked by {show_line(self.question.origin, 30)}")
        call = self._agent_call()
        return Content("" if call is None else f"the agent {wait_words(call)}")

    def on_mount(self) -> None:
        self._offer()
        self._update_hint()
        self.answers.focus()
        self.agent_changed()

    def on_resize(self) -> None:
        self.frame.border_title = self._title()
        self._fit_height()
        self._update_hint()

    def agent_changed(self) -> None:
        """Show for how long the agent still waits, and count that down while there is a limit."""
        self.set_subtitle(self._asked_by())
        call = self._agent_call()
        counts = call is not None and is_limited(call)
        if counts and self._counting is None:
            self._counting = self.set_interval(1.0, self.agent_changed)
        elif not counts and self._counting is not None:
            self._counting.stop()
            self._counting = None
        if is_overdue(call) and not self._overdue:
            self._overdue = True
            self._fit_height()
            self._facts.show_facts(self._facts_to_read())
            self.what.rewind()
            self._update_hint()

    @on(RowList.Selected)
    async def answer_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        event.stop()
        await self.run_action(event.item.action)

    def action_allow(self, lifetime: str) -> None:
        """Allow, once everything was on screen that has to be read for it."""
        if self._locked(lifetime):
            self.refuse_locked()
        elif lifetime == "always" and self.question.why_not_always:
            self.app.bell()
        else:
            self._allow(Lifetime(lifetime))

    def action_rule(self) -> None:
        """Make a rule of the call, once everything was on screen."""
        from mcphost.tui.consent.argument_rule import ArgumentRule, ArgumentRuleScreen

        def take(rule: ArgumentRule | None) -> None:
            if rule is not None:
                self._allow(rule.lifetime, rule.when)

        if not self._all_seen:
            self.refuse_locked()
        else:
            self.app.push_screen(ArgumentRuleScreen(self.question, self.arguments, self._past), take)

    def action_read_only(self) -> None:
        """Show the server's read-only tools, once everything of this call was on screen."""
        from mcphost.tui.consent.read_only import ReadOnlyToolsScreen

        def take(tools: Sequence[Tool] | None) -> None:
            if tools:
                self._allow(Lifetime.ONCE, together=tools)

        if not self._all_seen:
            self.refuse_locked()
        elif self.question.why_not_together:
            self.app.bell()
        else:
            self.app.push_screen(ReadOnlyToolsScreen(self.question, self._read_only), take)

    async def action_choose_default(self) -> None:
        """Choose the default, if all answers share one line."""
        await self.run_action(next(option.action for option in self._options() if option.key == self._default_key))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_tell(self) -> None:
        from mcphost.tui.sampling.dialogs import RefusalScreen

        def refuse(words: str | None) -> None:
            if words is not None:
                self.dismiss(Answer(allow=False, reason=words))

        agent = self.question.agent
        self.app.push_screen(RefusalScreen(show_line(agent.label if agent else self.question.origin, 40)), refuse)

    def action_definition(self) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        title = f"{self.question.server} › definition"
        self.app.push_screen(ReaderScreen(title, json_text(self.question.tool.definition()), is_json=True))

    def action_arguments(self) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        def done(to_the_end: bool | None) -> None:
            self._read_in_full = self._read_in_full or bool(to_the_end)
            self._update_hint()

        title = f"{self.question.server} › arguments"
        self.app.push_screen(ReaderScreen(title, json_text(self.arguments), is_json=True), done)

    def action_edit(self) -> None:
        screen = EditArgumentsScreen(self.question.server, self.question.tool, self.arguments)
        self.app.push_screen(screen, self._use_arguments)

    def action_page(self, direction: int) -> None:
        """Scroll by a page: first the facts, then the arguments; backwards in reverse order."""
        parts = (self.what, self.block)[::direction]
        next((part for part in parts if part.more(direction)), parts[1]).page(direction)

    async def _use_arguments(self, arguments: Mapping[str, Any] | None) -> None:
        if arguments is None:
            return
        self.arguments, self._read_in_full = arguments, False
        before, self.block = self.block, self._block()
        self._fit_height()  # before the first layout: what is cut off then does not count as seen
        await before.remove()
        await self.frame.mount(self.block, before=self._hint)
        self._facts.show_facts(self._facts_to_read())
        self.what.rewind()
        self._offer()
        self._update_hint()
        self.refresh_bindings()

    def _block(self) -> Arguments:
        return Arguments(self.arguments, edited=self.edited, provenance=self._provenance)

    def _own_facts(self) -> Iterator[Fact]:
        if self._overdue:
            yield fact("late", LATE, "bold $text-warning")
        yield from call_facts(self.question)
        yield from argument_facts(self.arguments, self._provenance)

    @property
    def _provenance(self) -> Provenance:
        return self.question.provenance.after(self.arguments) if self.edited else self.question.provenance

    def _offer(self) -> None:
        """List the answers, the default selected."""
        self.answers.offer(self._options(), at=self._default_key)
        self._short.offer(self._options(), self._default_key)

    @property
    def _default_key(self) -> str:
        return "n" if self.question.careful else "y"

    def _fit_height(self) -> None:
        """Divide the rows so that the answers stay on screen.

        The first layout is the last one: heights are computed here, not read from a layout that is painted meanwhile.
        """
        height = self.app.size.height
        tall, docked = height >= TALL, self.has_class("-docked")
        self.set_class(not tall and not docked and height > TINY, "-low")
        self.set_class(not tall and (docked or height < SHORT), "-short")
        share = int(height * self.share) if tall or docked else height - (height > TINY)
        most = max(share, height - self.rows_above) if docked else share
        inner = self._inner_width
        options_height = (
            self._short.rows_of(self._options(), self._default_key, inner)
            if self.has_class("-short")
            else len(list(self._options()))
        )
        around = options_height + 3  # the line above the answers and the frame
        to_read, others, block = self._facts_to_read(), self._other_facts(), self.block.height_at(inner)
        needed = self._rows_of(to_read, inner) + block
        room = min(max(share, needed + around), most) - around
        self._fits = needed <= room
        if needed + self._rows_of(others, inner) > room:
            inner -= 1  # for the scrollbar
            needed = self._rows_of(to_read, inner) + block
            room = min(max(share, needed + around), most) - around
            self._fits = needed <= room
            room -= not self._fits  # for the hint
        room, facts = max(4, room), self._rows_of([*to_read, *others], inner)
        least = max(min(LEAST, room - 1), room - min(self._rows_of(self._own_facts(), inner), room // 2) - 1)
        arguments_height = max(room - facts, min(least, block))
        self.what.styles.max_height = max(1, room - arguments_height)
        self.block.styles.max_height = arguments_height

    @property
    def _inner_width(self) -> int:
        """The columns inside of the frame and its padding."""
        width = self.app.size.width
        return (width if self.has_class("-docked") else min(width, MOST_COLUMNS)) - 4

    def _rows_of(self, facts: Iterable[Fact], width: int) -> int:
        return FactsTable(facts).get_content_height(self.size, self.size, width)

    def _facts_to_read(self) -> list[Fact]:
        """Facts to be read before the call can be allowed."""
        return [*self._own_facts(), *(() if self.question.changes_nothing else tool_facts(self.question))]

    def _other_facts(self) -> list[Fact]:
        """The server's words on a call that changes nothing: they are long, and need not be read each time."""
        return [*tool_facts(self.question)] if self.question.changes_nothing else []

    @property
    def _all_seen(self) -> bool:
        return self.what.reached and self.block.reached and (self._read_in_full or not is_cut(self.arguments))

    @property
    def _more_to_read(self) -> bool:
        """True if something is cut off that was not yet seen. The first frame needs it before `_all_seen` is known."""
        return not self._all_seen and (not self._fits or self.what.cut_off or self.block.cut_off)

    @property
    def _written(self) -> bool:
        """True if the user just wrote this call for a known definition; which may then run once unread."""
        return self.question.composed and self.question.approval.kind is not ApprovalStatus.CHANGED

    def _locked(self, lifetime: str) -> bool:
        """True if more must be read before this answer."""
        return not (self._all_seen or (self._written and lifetime == "once"))

    @on(ReadToEnd.Measured)
    def _update_hint(self) -> None:
        hint = self._how_to_see_all() if self._more_to_read else ""
        self._hint.update(hint)
        self._hint.display = bool(hint)
        self.answers.offer(self._options())
        self._short.offer(self._options(), self._default_key)
        self.call_after_refresh(self.post_placed)

    def _allow(self, lifetime: Lifetime, when: Mapping[str, str] = ANY, together: Sequence[Tool] = ()) -> None:
        changed = self.arguments if self.edited else None
        answer = Answer(allow=True, lifetime=lifetime, arguments=changed, when=when, together=together)
        call = self._agent_call()
        if call is None or not call.doubted:
            self.dismiss(answer)
            return

        def confirmed(yes: bool | None) -> None:
            if yes:
                self.dismiss(answer)

        self.app.push_screen(
            AskScreen("Run it all the same?", [Fact("", Content(GIVEN_UP), wide=True)], "run it"), confirmed
        )

    def _how_to_see_all(self) -> str:
        if self._written:
            return "▼ scroll to the end (space) to enable all answers"
        if not (self.what.reached and self.block.reached):
            return SCROLL_FIRST
        return "▼ too long to show here: read it to the end (v) to enable y"

    def _options(self) -> Iterator[AnswerOption]:
        locked, not_always = self._more_to_read, self.question.why_not_always
        always = "always allow (until the tool's definition changes)"
        repeats = self.question.repeats
        once, short = (f"allow all runs, {repeats}", "all runs") if repeats else ("allow once", "once")
        if self._overdue:
            once = "allow once, within 10 minutes"
        yield AnswerOption("y", once, "allow('once')", short, locked and not self._written)
        yield AnswerOption("u", "allow until mcphost exits", "allow('session')", "until exit", locked)
        yield AnswerOption(
            "a",
            f"not offered: {not_always}" if not_always else always,
            "allow('always')",
            "not offered" if not_always else "always",
            locked or bool(not_always),
        )
        if self.check_action("read_only", ()):
            why_not = self.question.why_not_together
            yield AnswerOption(
                "r",
                f"not offered: {show_line(why_not, 100)}" if why_not else "allow all read-only tools of this server…",
                "read_only",
                "not offered" if why_not else "read-only tools",
                locked or bool(why_not),
            )
        if self.check_action("rule", ()):
            yield AnswerOption("w", "allow calls like this… (rule by arguments)", "rule", "by arguments", locked)
        if self.check_action("edit", ()):
            yield AnswerOption("e", "edit the arguments", "edit", "edit")
        yield AnswerOption("n", "don't run", "decline", "don't run")
        if self.by_model:
            yield AnswerOption("t", "don't run, and tell the model why", "tell", "say why")
        yield AnswerOption("p", LATER, "park", "later")
