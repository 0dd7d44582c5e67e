"""The dialog for a tool call: what would be sent where, what is known of the tool, and the ways to answer.

It shows and asks; the answer is the approver's to deliver.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mcphost.host.consent.approvals import ANY, Lifetime
from mcphost.host.consent.provenance import Provenance
from mcphost.host.consent.questions import Answer, ToolCallQuestion
from mcphost.host.tool_calls.history import CallHistory
from mcphost.protocol.display import show_line
from mcphost.protocol.models.tools import Tool
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.answers import AnswerOption, AnswerOptions
from mcphost.tui.consent.call_rows import Arguments, argument_facts, call_facts, is_cut, tool_facts
from mcphost.tui.forms import SchemaForm
from mcphost.tui.kit.facts_table import Fact, FactsTable
from mcphost.tui.kit.json_text import json_text
from mcphost.tui.kit.modal import QuestionDialog, ReadToEnd
from mcphost.tui.kit.rows import RowList

TALL: Final = 30
"""Rows of the screen from which what stands behind the dialog stays readable."""

SHORT: Final = 20
"""Rows below which the ways to answer have one line together."""

MOST_COLUMNS: Final = 140
"""Of the dialog."""

TINY: Final = 12
"""Rows up to which the dialog covers everything."""

LEAST: Final = 5
"""Rows for the arguments and their frame, however much else there is to read."""


class ToolCallScreen(QuestionDialog):
    """Asks whether a tool may run. Dismissed with the answer, or with None when it was parked or withdrawn.

    ``past`` finds the calls of the tool that were wanted before: a rule by argument is tried on them.
    """

    HELP = (
        "A tool is about to run. Above: what would be sent, and where. Nothing has been sent yet.\n"
        "Allowing is only possible once all of it was on screen: scroll with space or page down.\n"
        "v shows the arguments as they would be sent, d the tool as its server defines it. w makes a rule of this\n"
        "call: later ones whose arguments match your patterns run without asking; you see which would have before."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow('once')", "run once", id="call.once", tooltip="Run it this once"),
        Binding("u", "allow('session')", "until exit", id="call.session", tooltip="Allow it until mcphost exits"),
        Binding("a", "allow('always')", "always", id="call.always", tooltip="Allow it from now on"),
        Binding("w", "rule", "by arguments", id="call.rule", tooltip="Allow those whose arguments match patterns"),
        Binding("e", "edit", "edit", id="call.edit", tooltip="Change the arguments first"),
        Binding("n", "decline", "do not run", id="call.decline", tooltip="Refuse"),
        Binding("t", "tell", "no, and say why", id="call.tell", tooltip="Refuse, and tell the model why"),
        Binding("v", "arguments", "arguments", id="call.arguments", tooltip="All arguments, as they would be sent"),
        Binding("d", "definition", "definition", id="call.definition", tooltip="The tool as its server defines it"),
        Binding("enter", "easy", "choose", id="call.easy", show=False),
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
        self, waiting: OpenQuestion, question: ToolCallQuestion, past: Callable[[], Awaitable[CallHistory]]
    ) -> None:
        super().__init__(waiting, classes="-careful" if question.careful else None)
        self.question = question
        self.arguments: Mapping[str, Any] = question.arguments
        self.what, self.block, self.answers = ReadToEnd(), self._block(), AnswerOptions()
        self._facts = FactsTable([*self._ours(), *tool_facts(question)])
        self._hint, self._short = Static(classes="hint", markup=False), Static(classes="short", markup=False)
        self._past = past
        self._read_in_full = False

    @property
    def edited(self) -> bool:
        """Are these not the arguments that were asked about?"""
        return self.arguments != self.question.arguments

    def compose(self) -> ComposeResult:
        """What is asked about, how to see all of it, and the ways to answer."""
        self.dock_below(self.by_model)
        self._leave_room()  # before anything is laid out: what is cut off was not seen
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content.assemble(
                "Run ", (show_line(self.question.tool.label, 60), "bold"), f" on {self.question.server}?"
            )
            dialog.border_subtitle = Content(f"asked by {show_line(self.question.origin, 30)}")
            with self.what:
                yield self._facts
            yield self.block
            yield self._hint
            yield self._short
            yield self.answers

    @property
    def by_model(self) -> bool:
        """Does a model want it?"""
        return self.question.origin != "you"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a model can be told why, and only texts can be matched."""
        if action == "rule":
            return any(isinstance(value, str) for value in self.arguments.values())
        return self.by_model if action == "tell" else True

    def on_mount(self) -> None:
        """Put the cursor on the answer that does no harm where care is due."""
        self._hint.display = False
        self._offer()
        self.answers.focus()
        self.call_after_refresh(self._settle)

    def on_resize(self) -> None:
        self._leave_room()
        self.call_after_refresh(self._settle)

    @on(RowList.Selected)
    async def answer_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        """Enter on an answer does what its key does."""
        event.stop()
        await self.run_action(event.item.action)

    def action_allow(self, lifetime: str) -> None:
        """Allow, once everything could be read."""
        if not self._all_seen or not self._offered(lifetime):
            self.app.bell()
        else:
            self._allow(Lifetime(lifetime))

    def action_rule(self) -> None:
        """Allow it and those like it, once everything could be read."""
        from mcphost.tui.consent.argument_rule import ArgumentRule, ArgumentRuleScreen

        def take(rule: ArgumentRule | None) -> None:
            if rule is not None:
                self._allow(rule.lifetime, rule.when)

        if not self._all_seen:
            self.app.bell()
        else:
            always = self._offered("always")
            self.app.push_screen(ArgumentRuleScreen(self.question, self.arguments, self._past, always=always), take)

    async def action_easy(self) -> None:
        """What the cursor stands on, where there is one line for all ways to answer."""
        await self.run_action(next(way.action for way in self._ways() if way.key == self._easy))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_tell(self) -> None:
        from mcphost.tui.sampling.screen import WordsScreen

        def refuse(words: str | None) -> None:
            if words is not None:
                self.dismiss(Answer(allow=False, reason=words))

        self.app.push_screen(WordsScreen(show_line(self.question.origin, 40)), refuse)

    def action_definition(self) -> None:
        """Show the tool as its server defines it."""
        from mcphost.tui.kit.reader import ReaderScreen

        title = f"{self.question.server} › definition"
        self.app.push_screen(ReaderScreen(title, json_text(self.question.tool.definition()), is_json=True))

    def action_arguments(self) -> None:
        """Show all the arguments as they would be sent."""
        from mcphost.tui.kit.reader import ReaderScreen

        def done(to_the_end: bool | None) -> None:
            self._read_in_full = self._read_in_full or bool(to_the_end)
            self._tell_hint()

        title = f"{self.question.server} › arguments"
        self.app.push_screen(ReaderScreen(title, json_text(self.arguments), is_json=True), done)

    def action_edit(self) -> None:
        """Change the arguments in the tool's form."""
        screen = EditArgumentsScreen(self.question.server, self.question.tool, self.arguments)
        self.app.push_screen(screen, self._take_arguments)

    def action_page(self, direction: int) -> None:
        """Scroll by a page: first what is known of the call, then its arguments; back the other way round."""
        parts = (self.what, self.block)[::direction]
        next((part for part in parts if part.more(direction)), parts[1]).page(direction)

    async def _take_arguments(self, arguments: Mapping[str, Any] | None) -> None:
        if arguments is None:
            return
        self.arguments, self._read_in_full = arguments, False
        before, self.block = self.block, self._block()
        self._leave_room()  # before anything is laid out: what is cut off was not seen
        await before.remove()
        await self.query_one(".dialog").mount(self.block, before=self._hint)
        self._facts.show_facts([*self._ours(), *tool_facts(self.question)])
        self.what.rewind()
        self._offer()
        self.refresh_bindings()
        self.call_after_refresh(self._settle)

    def _block(self) -> Arguments:
        return Arguments(self.arguments, edited=self.edited, provenance=self._provenance)

    def _ours(self) -> Iterator[Fact]:
        yield from call_facts(self.question)
        yield from argument_facts(self.arguments, self._provenance)

    @property
    def _provenance(self) -> Provenance:
        return self.question.provenance.after(self.arguments) if self.edited else self.question.provenance

    def _offer(self) -> None:
        """The ways to answer, the cursor on the one that enter chooses."""
        self.answers.offer(self._ways(), at=self._easy)
        self._short.update(self._in_one_line())

    @property
    def _easy(self) -> str:
        return "n" if self.question.careful else "y"

    def _in_one_line(self) -> Content:
        return Content(" · ").join(map(self._in_short, self._ways()))

    def _in_short(self, way: AnswerOption) -> Content:
        mark = "▸" if way.key == self._easy else ""
        return Content.assemble((mark + way.key, "bold $text-accent"), f" {way.short}")

    def _leave_room(self, block: int | None = None) -> None:
        """Share the rows, so that nothing pushes the answers off the screen; ``block``: the arguments need so many."""
        width, height = self.app.size
        tall, docked = height >= TALL, self.has_class("-docked")
        self.set_class(not tall and not docked and height > TINY, "-low")
        self.set_class(not tall and (docked or height < SHORT), "-short")
        share = int(height * self.share) if tall or docked else height - (height > TINY)
        inner = min(width, MOST_COLUMNS) - 4  # the frame and its padding
        ways = len(self._in_one_line().wrap(inner)) if self.has_class("-short") else len(list(self._ways()))
        room = share - ways - 3  # the line above the answers and the frame
        facts = self._rows_of([*self._ours(), *tool_facts(self.question)], inner)
        if block is None or facts + block > room:
            room -= 1  # for the hint
        room = max(4, room)
        least = max(min(LEAST, room - 1), room - min(self._rows_of(self._ours(), inner), room // 2) - 1)
        given = max(room - facts, least if block is None else min(least, block))
        self.what.styles.max_height = max(1, room - given)
        self.block.styles.max_height = given

    def _rows_of(self, facts: Iterable[Fact], width: int) -> int:
        return FactsTable(facts).get_content_height(self.size, self.size, width - 1)  # there may be a scrollbar

    def _settle(self) -> None:
        """Now that it is known how many rows the arguments take, give what they leave to what is known of the call."""
        if self.block.virtual_size.height:
            self._leave_room(self.block.virtual_size.height + 2)
        self.call_after_refresh(self._tell_hint)

    @property
    def _all_seen(self) -> bool:
        return self.what.reached and self.block.reached and (self._read_in_full or not is_cut(self.arguments))

    @on(ReadToEnd.Reached)
    def _tell_hint(self) -> None:
        hint = "" if self._all_seen else self._how_to_see_all()
        self._hint.update(hint)
        self._hint.display = bool(hint)
        self.tell_place()

    def _allow(self, lifetime: Lifetime, when: Mapping[str, str] = ANY) -> None:
        changed = self.arguments if self.edited else None
        self.dismiss(Answer(allow=True, lifetime=lifetime, arguments=changed, when=when))

    def _how_to_see_all(self) -> str:
        if not (self.what.reached and self.block.reached):
            return "▼ more below: press space until the end, then it can be allowed"
        return "▼ too long to show here: press v and read to the end, then it can be allowed"

    def _offered(self, lifetime: str) -> bool:
        return lifetime == "once" or "destructive" not in self.question.tool.claims or lifetime == "session"

    def _ways(self) -> Iterator[AnswerOption]:
        always = "run it, and always from now on (approvals.toml; lapses if it changes)"
        if not self._offered("always"):
            always = "not offered: the tool claims to be destructive"
        yield AnswerOption("y", "run it once", "allow('once')", "once")
        yield AnswerOption("u", "run it, and until mcphost exits without asking", "allow('session')", "until exit")
        yield AnswerOption("a", always, "allow('always')", "always" if self._offered("always") else "not offered")
        if self.check_action("rule", ()):
            yield AnswerOption("w", "run it, and later ones like it: choose by arguments", "rule", "by arguments")
        yield AnswerOption("e", "edit the arguments first", "edit", "edit")
        yield AnswerOption("n", "do not run it", "decline", "no")
        if self.by_model:
            yield AnswerOption("t", "do not run it, and tell the model why", "tell", "no, and why")
        yield AnswerOption("p", "leave it in the inbox (f2)", "park", "later")


class EditArgumentsScreen(ModalScreen[Mapping[str, Any] | None]):
    """Dismissed with the new arguments, or None when they stay as they were."""

    HELP = "Change the arguments before anything is sent. ctrl+r takes them over, esc leaves them as they were."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "leave as they were", id="edit.back", tooltip="Close without a change"),
    ]

    DEFAULT_CSS = """
    EditArgumentsScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical { width: 100%; max-width: 140; height: 85%; border: round $border; background: $surface; }
    }
    """

    def __init__(self, server: str, tool: Tool, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self._server, self._tool, self._arguments = server, tool, arguments

    def compose(self) -> ComposeResult:
        """The form in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Arguments of {self._server} › {show_line(self._tool.name, 60)}")
            frame.border_subtitle = "ctrl+r take over · esc leave as they were"
            yield SchemaForm(submit_label="take over")

    async def on_mount(self) -> None:
        form = self.query_one(SchemaForm)
        await form.load(self._tool.input_schema, self._arguments)
        form.focus_first()

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        self.dismiss(event.arguments)

    def action_back(self) -> None:
        """Close without a change."""
        self.dismiss(None)
