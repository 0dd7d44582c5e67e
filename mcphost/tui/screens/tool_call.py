"""The dialog for a tool call: what would be sent where, what is known of the tool, and the ways to answer.

It shows and asks; the answer is the approver's to deliver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from mcphost.host.approvals import Difference, Kind, Lifetime, Standing
from mcphost.host.questions import Answer, ToolCallQuestion
from mcphost.protocol.display import hidden_in, show, show_line
from mcphost.protocol.types import Tool
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.screens.call_rows import SHOWN_CHARACTERS, argument_rows, row, text_of
from mcphost.tui.screens.dialog import Asking
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.json_text import json_text
from mcphost.tui.widgets.rows import RowList


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to answer: its key, what it does in words, and the action."""

    key: str
    words: str
    action: str


class ToolCallScreen(Asking):
    """Asks whether a tool may run. Dismissed with the answer, or with None when it was parked or withdrawn."""

    HELP = (
        "A tool is about to run. Above: what would be sent, and where. Nothing has been sent yet.\n"
        "Allowing is only possible once all of it was on screen: scroll with space or page down.\n"
        "v shows the arguments as they would be sent, d the tool as its server defines it."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow('once')", "run once", id="call.once", tooltip="Run it this once"),
        Binding("u", "allow('session')", "until exit", id="call.session", tooltip="Allow it until mcphost exits"),
        Binding("a", "allow('always')", "always", id="call.always", tooltip="Allow it from now on"),
        Binding("e", "edit", "edit", id="call.edit", tooltip="Change the arguments first"),
        Binding("n", "decline", "do not run", id="call.decline", tooltip="Refuse"),
        Binding("t", "tell", "no, and say why", id="call.tell", tooltip="Refuse, and tell the model why"),
        Binding("v", "arguments", "arguments", id="call.arguments", tooltip="All arguments, as they would be sent"),
        Binding("d", "definition", "definition", id="call.definition", tooltip="The tool as its server defines it"),
        Binding("space,pagedown", "page(1)", "scroll", id="call.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="call.up", show=False),
    ]

    DEFAULT_CSS = """
    ToolCallScreen {
        #what { height: auto; }
        #hint { color: $text-warning; height: auto; }
        #answers { border-top: solid $panel-lighten-2; }
    }
    """

    def __init__(self, waiting: OpenQuestion, question: ToolCallQuestion) -> None:
        super().__init__(waiting, classes="-careful" if question.careful else None)
        self.question = question
        self.arguments: Mapping[str, Any] = question.arguments
        self._seen_to_the_end = self._read_in_full = False

    @property
    def edited(self) -> bool:
        """Are these not the arguments that were asked about?"""
        return self.arguments != self.question.arguments

    def compose(self) -> ComposeResult:
        """The frame; `_describe` fills it."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content.assemble(
                "Run ", (show_line(self.question.tool.label, 60), "bold"), f" on {self.question.server}?"
            )
            dialog.border_subtitle = Content(f"asked by {show_line(self.question.origin, 30)}")
            yield VerticalScroll(id="what", can_focus=False)
            yield Static("", id="hint", markup=False)
            yield RowList(_answer_row, id="answers")

    @property
    def by_model(self) -> bool:
        """Does a model want it?"""
        return self.question.origin != "you"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a model can be told why."""
        return self.by_model if action == "tell" else True

    async def on_mount(self) -> None:
        """Describe the call and put the cursor on the answer that does no harm where care is due."""
        self.dock_below(self.by_model)
        await self._describe()
        answers = self.query_one(RowList)
        choices = list(self._choices())
        answers.styles.height = len(choices) + 1  # and the line above them
        self._leave_room()
        answers.set_items(choices, keep=lambda choice: choice.key)
        answers.highlighted = next(i for i, c in enumerate(choices) if c.key == ("n" if self.question.careful else "y"))
        answers.focus()
        what = self.query_one("#what")
        self.watch(what, "scroll_y", self._check_end, init=False)
        self.watch(what, "virtual_size", self._check_end, init=False)
        self.call_after_refresh(self._check_end)

    def on_resize(self) -> None:
        """What fits changed."""
        self._leave_room()
        self.call_after_refresh(self._check_end)

    @on(RowList.Selected)
    async def answer_chosen(self, event: RowList.Selected[Choice]) -> None:
        """Enter on an answer does what its key does."""
        event.stop()
        await self.run_action(event.item.action)

    def action_allow(self, lifetime: str) -> None:
        """Allow, once everything could be read."""
        if not self._all_seen or not self._offered(lifetime):
            self.app.bell()
            return
        changed = self.arguments if self.edited else None
        self.dismiss(Answer(allow=True, lifetime=Lifetime(lifetime), arguments=changed))

    def action_decline(self) -> None:
        """Refuse."""
        self.dismiss(Answer(allow=False))

    def action_tell(self) -> None:
        """Refuse with words."""
        from mcphost.tui.screens.sampling_words import WordsScreen

        def refuse(words: str | None) -> None:
            if words is not None:
                self.dismiss(Answer(allow=False, reason=words))

        self.app.push_screen(WordsScreen(show_line(self.question.origin, 40)), refuse)

    def action_definition(self) -> None:
        """Show the tool as its server defines it."""
        from mcphost.tui.screens.reader import ReaderScreen

        title = f"{self.question.server} › definition"
        self.app.push_screen(ReaderScreen(title, json_text(self.question.tool.definition()), is_json=True))

    def action_arguments(self) -> None:
        """Show all the arguments as they would be sent."""
        from mcphost.tui.screens.reader import ReaderScreen

        def done(to_the_end: bool | None) -> None:
            self._read_in_full = self._read_in_full or bool(to_the_end)
            self._check_end()

        title = f"{self.question.server} › arguments"
        self.app.push_screen(ReaderScreen(title, json_text(self.arguments), is_json=True), done)

    def action_edit(self) -> None:
        """Change the arguments in the tool's form."""
        from mcphost.tui.screens.edit_arguments import EditArgumentsScreen

        screen = EditArgumentsScreen(self.question.server, self.question.tool, self.arguments)
        self.app.push_screen(screen, self._take_arguments)

    def action_page(self, direction: int) -> None:
        """Scroll what is asked about by a page."""
        what = self.query_one("#what", VerticalScroll)
        what.scroll_relative(y=direction * max(1, what.size.height - 1), animate=False)

    async def _take_arguments(self, arguments: Mapping[str, Any] | None) -> None:
        if arguments is not None:
            self.arguments = arguments
            await self._describe()
            self.query_one("#what").scroll_home(animate=False)
            self._seen_to_the_end = self._read_in_full = False
            self.call_after_refresh(self._check_end)

    async def _describe(self) -> None:
        question = self.question
        rows = (
            *_tool_rows(question),
            *_standing_rows(question.standing),
            *argument_rows(self.arguments, edited=self.edited),
            row("sent to", show(question.sent_to, limit=2000)),
            row("rule", show_line(question.rule, 200)),
            *([row("note", show(question.note), "$text-warning")] if question.note else []),
        )
        what = self.query_one("#what")
        await what.remove_children()
        await what.mount_all(rows)

    def _leave_room(self) -> None:
        """Nothing that is asked about can push the answers off the screen."""
        answers = self.query_one(RowList).styles.height
        taken = (answers.value if answers else 0) + 3  # the frame and the hint
        self.query_one("#what").styles.max_height = max(2, int(self.size.height * self.share - taken))

    @property
    def _all_seen(self) -> bool:
        return self._seen_to_the_end and (self._read_in_full or not self._cut)

    @property
    def _cut(self) -> bool:
        return any(len(text_of(value)) > SHOWN_CHARACTERS for value in self.arguments.values())

    def _check_end(self) -> None:
        what = self.query_one("#what", VerticalScroll)
        last = what.children[-1].virtual_region if what.children else None
        if last and last.height and last.bottom <= what.scroll_offset.y + what.size.height:
            self._seen_to_the_end = True
        hint = "" if self._all_seen else self._how_to_see_all()
        self.query_one("#hint", Static).update(hint)
        self.query_one("#hint").display = bool(hint)
        self.tell_place()

    def _how_to_see_all(self) -> str:
        if not self._seen_to_the_end:
            return "▼ more below: press space until the end, then it can be allowed"
        return "▼ too long to show here: press v and read to the end, then it can be allowed"

    def _offered(self, lifetime: str) -> bool:
        return lifetime == "once" or "destructive" not in self.question.tool.claims or lifetime == "session"

    def _choices(self) -> Iterator[Choice]:
        always = "run it, and always from now on (approvals.toml; lapses if it changes)"
        if not self._offered("always"):
            always = "not offered: the tool claims to be destructive"
        yield Choice("y", "run it once", "allow('once')")
        yield Choice("u", "run it, and until mcphost exits without asking", "allow('session')")
        yield Choice("a", always, "allow('always')")
        yield Choice("e", "edit the arguments first", "edit")
        yield Choice("n", "do not run it", "decline")
        if self.by_model:
            yield Choice("t", "do not run it, and tell the model why", "tell")
        yield Choice("p", "leave it in the inbox (f2)", "park")


def _answer_row(choice: Choice, width: int) -> Content:
    return columns(width, [Cell(choice.key, "bold $text-accent", 2, 2), Cell(choice.words)])


def _tool_rows(question: ToolCallQuestion) -> Iterator[Widget]:
    tool = question.tool
    if tool.label != tool.name:
        yield row("tool", show_line(tool.name))
    yield row("claims", claims_text(tool))
    if tool.description:
        whole = question.standing.kind is not Kind.UNCHANGED
        text = show(tool.description, limit=4000) if whole else show_line(tool.description, 120)
        yield row("says", Content.styled(text, "italic $foreground-muted"))
    if hidden := hidden_in(tool.definition()):
        yield row("beware", f"its definition holds {hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error")


def claims_text(tool: Tool) -> Content:
    """What the server claims of a tool, as a claim."""
    if not tool.claims:
        return Content.styled("nothing (so it may write, delete and reach the network)", "$foreground-muted")
    words = [Content.styled(claim, _claim_style(claim)) for claim in tool.claims]
    return Content.assemble(Content(", ").join(words), (" (claimed by the server)", "$foreground-muted"))


def _claim_style(claim: str) -> str:
    return {"destructive": "bold $text-error", "read-only": "$text-success"}.get(claim, "")


def _standing_rows(standing: Standing) -> Iterator[Widget]:
    if standing.kind is Kind.NEW or standing.since is None:
        yield row("before", "never allowed until now")
    elif standing.kind is Kind.UNCHANGED:
        yield row("before", f"definition unchanged since you allowed it on {standing.since:%-d %b %Y}")
    else:
        yield row("before", f"CHANGED since you allowed it on {standing.since:%-d %b %Y}:", "bold $text-error")
        yield from (row("", _difference(each)) for each in standing.differences)


def _difference(difference: Difference) -> Content:
    lines = [Content.styled(show_line(difference.field, 80), "bold")]
    if difference.before is not None:
        lines.append(Content.styled(f"- {show(difference.before, limit=1500)}", "$text-error"))
    if difference.after is not None:
        lines.append(Content.styled(f"+ {show(difference.after, limit=1500)}", "$text-success"))
    return Content("\n").join(lines)
