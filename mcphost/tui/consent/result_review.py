"""The dialog that reviews a tool's result before the model gets it, changed or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import TextArea

from mcphost.host.consent.questions import Answer, ResultQuestion
from mcphost.protocol.display import show, show_line, size_text
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.kit.answers import LATER, AnswerOption, AnswerOptions
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact, link_facts
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.modal_screen import QuestionDialog
from mcphost.tui.kit.rows import RowList
from mcphost.tui.kit.text_view import TextView

LINKS = 8
"""Links that are listed one by one."""


class ResultScreen(QuestionDialog):
    """Dismissed with the answer, or with None if the question was parked or withdrawn."""

    WITHDRAWN = "the model did not get the result"
    HELP = (
        "The model has not seen the result of this tool yet. A result may hold text that is meant to mislead a model."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow", "send", id="result.allow", tooltip="Send it to the model as it is"),
        Binding("e", "edit", "edit", id="result.edit", tooltip="Edit what the model gets"),
        Binding("n", "decline", "keep back", id="result.decline", tooltip="Keep it back; the model learns only that"),
        Binding("t", "tell", "keep back, say why", id="result.tell", tooltip="Keep it back, and tell the model why"),
        Binding("space,pagedown", "page(1)", "scroll", id="result.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="result.up", show=False),
    ]
    DEFAULT_CSS = """
    ResultScreen {
        .dialog { height: 80%; }
        &.-docked .dialog { height: 60%; }
        TextView { height: 1fr; border-top: solid $border-blurred; padding: 0; }
    }
    """

    def __init__(self, waiting: OpenQuestion, question: ResultQuestion) -> None:
        super().__init__(waiting, classes="-careful" if question.hidden else None)
        self.question, self.answers = question, AnswerOptions()

    def compose(self) -> ComposeResult:
        question = self.question
        tool, model = show_line(question.tool, 60), show_line(question.origin, 30)
        title = Content.assemble("Send the result of ", (tool, "bold"), f" to {model}?")
        with self.framed(title, Content(f"asked by {model}")):
            yield FactsTable(list(_facts(question)))
            yield TextView(show(question.text, joiners=True).split("\n"))
            yield self.answers

    def on_mount(self) -> None:
        self.dock_below(True)
        self.answers.offer(self._options(), at="n" if self.question.hidden else "y")
        self.answers.focus()
        self.call_after_refresh(self.post_placed)

    @on(RowList.Selected)
    async def _answer_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        event.stop()
        await self.run_action(event.item.action)

    def action_page(self, direction: int) -> None:
        view = self.query_one(TextView)
        view.scroll_relative(y=direction * max(1, view.size.height - 1), animate=False)

    def action_allow(self) -> None:
        self.dismiss(Answer(allow=True))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_tell(self) -> None:
        """Keep the result back, and tell the model why."""
        from mcphost.tui.sampling.dialogs import RefusalScreen

        def keep(words: str | None) -> None:
            if words is not None:
                self.dismiss(Answer(allow=False, reason=words))

        self.app.push_screen(RefusalScreen(show_line(self.question.origin, 40)), keep)

    def action_edit(self) -> None:

        def pass_on(text: str | None) -> None:
            if text is not None:
                self.dismiss(Answer(allow=True, content=text))

        self.app.push_screen(EditResultScreen(show(self.question.text, joiners=True)), pass_on)

    def _options(self) -> Iterator[AnswerOption]:
        model = show_line(self.question.origin, 40)
        yield AnswerOption("y", f"send it to {model}", "allow")
        yield AnswerOption("e", "edit it, then send it", "edit")
        yield AnswerOption("n", "keep it back", "decline")
        yield AnswerOption("t", "keep it back, and tell the model why", "tell")
        yield AnswerOption("p", LATER, "park")


class EditResultScreen(FramedScreen[str | None]):
    """Edits a text that is safe to show; dismissed with the edited text, or None."""

    HELP = "The model gets this text."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "take", "send", id="edit-result.take", tooltip="Send this to the model"),
        Binding("escape", "back", "back", id="edit-result.back", tooltip="Close without changes"),
    ]
    DEFAULT_CSS = """
    EditResultScreen {
        align: center bottom;
        & > .frame { width: 100%; max-width: 140; height: 85%; }
        TextArea { height: 1fr; border: none; }
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with self.framed("What the model gets", "ctrl+r send · esc back"):
            yield TextArea(self._text, compact=True)

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()

    def action_take(self) -> None:
        self.dismiss(self.query_one(TextArea).text)


def _facts(question: ResultQuestion) -> Iterator[Fact]:
    call = "" if question.call is None else f", call {question.call}"
    yield fact("from", f"{question.server} › {show_line(question.tool, 80)}{call}")
    size = size_text(len(question.text.encode("utf-8", "replace")))
    pictures = f", {question.pictures} pictures" if question.pictures else ""
    yield fact("size", f"{size}, about {question.tokens:,} tokens{pictures}")
    if question.hidden:
        yield fact("beware", f"{question.hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error")
    yield from link_facts(question.links, LINKS, 200)
