"""A result before a model gets it: what it is, what hides in it, and whether it goes on, changed or not.

It shows and asks; the answer is the approver's to deliver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import TextArea

from mcphost.host.consent.questions import Answer, ResultQuestion
from mcphost.protocol.display import show, show_line, size_text
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact, link_facts
from mcphost.tui.kit.modal import QuestionDialog
from mcphost.tui.kit.text_view import TextView

LINKS = 8
"""Addresses that are named one by one."""


class ResultScreen(QuestionDialog):
    """Asks whether the model may get a result. Dismissed with the answer, or None when it was parked or withdrawn."""

    NOTHING = "the model got nothing of it"
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
        """What it is, then all of it."""
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
        self.call_after_refresh(self.tell_place)

    def action_allow(self) -> None:
        self.dismiss(Answer(allow=True))

    def action_decline(self) -> None:
        self.dismiss(Answer(allow=False))

    def action_tell(self) -> None:
        """Not at all, and why."""
        from mcphost.tui.sampling.screen import WordsScreen

        def keep(words: str | None) -> None:
            if words is not None:
                self.dismiss(Answer(allow=False, reason=words))

        self.app.push_screen(WordsScreen(show_line(self.question.origin, 40)), keep)

    def action_edit(self) -> None:

        def pass_on(text: str | None) -> None:
            if text is not None:
                self.dismiss(Answer(allow=True, content=text))

        self.app.push_screen(EditResultScreen(show(self.question.text, joiners=True)), pass_on)


class EditResultScreen(ErrorBoundary, ModalScreen[str | None]):
    """A text to shorten or change, safe to show; dismissed with what it became, or None."""

    HELP = "What stands here is what the model gets. ctrl+r passes it on, esc goes back without a change."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "take", "pass it on", id="edit-result.take", tooltip="The model gets this"),
        Binding("escape", "back", "back", id="edit-result.back", tooltip="Leave it as it was"),
    ]
    DEFAULT_CSS = """
    EditResultScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical { width: 100%; max-width: 140; height: 85%; border: round $border; background: $surface; }
        TextArea { height: 1fr; border: none; }
    }
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The text in a frame."""
        with Vertical() as frame:
            frame.border_title = "What the model gets"
            frame.border_subtitle = "ctrl+r pass it on · esc back"
            yield TextArea(self._text, compact=True)

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()

    def action_take(self) -> None:
        """The text as it is now."""
        self.dismiss(self.query_one(TextArea).text)

    def action_back(self) -> None:
        """Close without a change."""
        self.dismiss(None)


def _facts(question: ResultQuestion) -> Iterator[Fact]:
    call = "" if question.call is None else f", call {question.call}"
    yield fact("from", f"{question.server} › {show_line(question.tool, 80)}{call}")
    size = size_text(len(question.text.encode("utf-8", "replace")))
    pictures = f", {question.pictures} pictures" if question.pictures else ""
    yield fact("size", f"{size}, about {question.tokens:,} tokens{pictures}")
    if question.hidden:
        yield fact("beware", f"{question.hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error")
    yield from link_facts(question.links, LINKS, 200)
