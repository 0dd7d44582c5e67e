"""The dialog that reviews a tool's result before the model gets it, changed or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import TextArea

from mcphost.host.consent.questions import Answer, ResultQuestion
from mcphost.protocol.display import show, show_line, size_text
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact, link_facts
from mcphost.tui.kit.framed import FramedScreen
from mcphost.tui.kit.modal import QuestionDialog
from mcphost.tui.kit.text_view import TextView

LINKS = 8
"""Links that are listed one by one."""


class ResultScreen(QuestionDialog):
    """Dismissed with the answer, or with None if the question was parked or withdrawn."""

    WITHDRAWN = "the model got nothing of it"
    HELP = (
        "A tool has answered, and the model has not seen it yet. y passes it on as it is, e lets you shorten or mend\n"
        "it first, n keeps it back, t keeps it back and says why. It may hold words that are meant to mislead a model."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow", "pass it on", id="result.allow", tooltip="The model gets it as it is"),
        Binding("e", "edit", "change it", id="result.edit", tooltip="Shorten or change what the model gets"),
        Binding("n", "decline", "keep it back", id="result.decline", tooltip="The model is told that you kept it"),
        Binding("t", "tell", "and say why", id="result.tell", tooltip="Keep it back, and tell the model why"),
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
        self.question = question

    def compose(self) -> ComposeResult:
        question = self.question
        with Vertical(classes="dialog") as dialog:
            tool, model = show_line(question.tool, 60), show_line(question.origin, 30)
            dialog.border_title = Content.assemble(f"May {model} read what ", (tool, "bold"), " answered?")
            dialog.border_subtitle = "y pass on · e change · n keep back · t and say why · esc later"
            yield FactsTable(list(_facts(question)))
            yield TextView(show(question.text, joiners=True).split("\n"))

    def on_mount(self) -> None:
        self.dock_below(True)
        self.query_one(TextView).focus()
        self.call_after_refresh(self.post_placed)

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


class EditResultScreen(FramedScreen[str | None]):
    """Edits a text that is safe to show; dismissed with the edited text, or None."""

    HELP = "What stands here is what the model gets. ctrl+r passes it on, esc goes back without a change."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "take", "pass it on", id="edit-result.take", tooltip="The model gets this"),
        Binding("escape", "back", "back", id="edit-result.back", tooltip="Leave it as it was"),
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
        with self.framed("What the model gets", "ctrl+r pass it on · esc back"):
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
