"""The dialog for an elicitation by form: who asks and why, the fields, and a review of what would be sent.

What was typed is kept with the question while it waits in the inbox, and nowhere else.

Specification: client/elicitation, form mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from mcphost.host.consent.questions import Answer, FormQuestion
from mcphost.host.tool_calls.validation import validate
from mcphost.protocol.display import show_line, show_name
from mcphost.protocol.forms.form import Form, read_form
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import QuestionOrigin
from mcphost.tui.elicitation.server_question import LETTERS, ServerQuestionScreen
from mcphost.tui.forms.schema_form import FormState, SchemaForm
from mcphost.tui.kit.answers import SCROLL_FIRST, AnswerOption, naming
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.kit.json_text import json_lines, json_spans
from mcphost.tui.kit.modal_screen import FRAME
from mcphost.tui.kit.text_view import TextView

DRAFT: Final = "form"
"""The key of the draft that is kept with the question."""

SLACK: Final = 7
"""Rows below the fields, for the keys and for a field that shows more while it is focused."""

HIDDEN: Final = "••••••••"


class FormElicitationScreen(ServerQuestionScreen):
    """Shows a form, then its content for review. Accepting sends that content."""

    HELP = (
        "A server asks you to fill in a form. Nothing is sent before you have seen all of it as JSON. What you "
        "typed is kept if you decide later. Servers may not ask for passwords and keys this way: such fields are "
        "marked, and you are asked once more."
    )
    WITHDRAWN = "nothing of the form was sent"
    LETTERS = LETTERS | {"agree", "edit", "reveal", "message"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "review, send", id="form-question.send", tooltip="See what would be sent, then send it"),
        Binding("e", "edit", "edit", id="form-question.edit", tooltip="To the fields"),
        Binding("v", "reveal", "show hidden", id="form-question.reveal", tooltip="Show or hide what looks secret"),
        Binding("m", "message", "message", id="form-question.message", tooltip="Read all that the server says"),
    ]

    DEFAULT_CSS = """
    FormElicitationScreen {
        & > .dialog { height: auto; }
        &.-short > .dialog { height: 100%; max-height: 100%; }
        SchemaForm, TextView { height: 1fr; border: round $border-blurred; border-title-color: $foreground; }
        SchemaForm:focus-within, TextView:focus { border: round $border; }
        TextView { display: none; }
        &.-review SchemaForm { display: none; }
        &.-review TextView { display: block; }
    }
    """

    def __init__(self, waiting: OpenQuestion, question: FormQuestion, origin: QuestionOrigin) -> None:
        super().__init__(waiting, origin)
        self.question, self.message = question, question.message
        self._form, self._review = SchemaForm(submit_label="review"), TextView(spans=json_spans)
        self._warning = Static(classes="warning", markup=False)
        self._fields = Form()
        self._message_asks_secret = question.wants_secret
        self._content: dict[str, Any] | None = None
        """The content under review; None: the form is shown."""
        self._note = ""
        self._revealed = False

    def heading(self) -> Content:
        return naming("", self.origin.server, " asks you to fill in a form")

    def about(self) -> Iterator[Fact]:
        yield from self.origin_facts()
        if self.question.problem:
            words = f"your last answer was not accepted: {show_line(self.question.problem, 400)}"
            yield fact("again", words, "bold $text-error")
        yield from self.message_facts()

    def body(self) -> ComposeResult:
        yield self._warning
        yield self._form
        yield self._review

    async def on_mount(self) -> None:
        """Fill the form with the draft, else with its defaults."""
        self.offer(at="y")
        self.hint("")
        self._fields = read_form(self.question.schema)
        self._form.border_title = f"Fields ({len(list(self._fields.leaves())):,})"
        await self._form.load(self.question.schema)
        draft = self.waiting.drafts.get(DRAFT) if self.waiting is not None else None
        if isinstance(draft, FormState):
            await self._form.restore(draft)
        self._show_warnings()
        self._form.focus_first()
        self.call_after_refresh(self._fit)
        self.watch(self._review, "scroll_y", self._update_hint, init=False)
        self.watch(self._review, "virtual_size", self._fit, init=False)
        self.watch(self._review, "virtual_size", self._update_hint, init=False)
        self.watch(self._review, "show_vertical_scrollbar", self._update_hint, init=False)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.set_class(event.size.height < 30, "-short")
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Be as tall as the fields or the review, as far as there is room."""
        if self.has_class("-short"):
            self._form.styles.height = self._review.styles.height = "1fr"
            return
        shown = self._review if self._content is not None else self._form
        room = max(8, self.most_rows - self.rows_around(shown))
        fields = self._form.query_one("#fields").children
        needed = room if self._form.raw_shown else (fields[-1].virtual_region.bottom if fields else 1) + SLACK
        self._form.styles.height = min(needed, room)
        self._review.styles.height = min(self._review.virtual_size.height + FRAME, room)
        self.call_after_refresh(self._update_hint)

    def options(self) -> Iterator[AnswerOption]:
        """The answers at this stage."""
        if self._content is None:
            yield AnswerOption("y", "review what would be sent (ctrl+r in the form), then send it", "agree", "review")
            yield AnswerOption("e", "edit the form", "edit", "edit")
        else:
            locked = not self._all_seen
            yield AnswerOption("y", naming("send this to ", self.origin.server), "agree", "send", locked)
            yield AnswerOption("e", "edit the form", "edit", "edit")
        yield from self.refusals()

    # From the form to the review, and back.

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        _: Worker[None] = self.run_worker(partial(self._check, event.arguments), group="check-form", exclusive=True)

    async def _check(self, content: dict[str, Any]) -> None:
        """Validate against the whole schema; mark the errors, or show what would be sent."""
        result = await validate(self.question.schema, content)
        if self.has_class("-review") or self._form.values() != content:
            return  # it was edited meanwhile
        if result.problems:
            self._form.set_errors([(problem.path, problem.message) for problem in result.problems])
            self.action_edit()
            return
        self._content, self._note, self._revealed = content, result.note or "", False
        self.add_class("-review")
        self._draw_review()
        self._show_warnings()
        self._shown()  # a second y before the review could be read does not send it
        self.call_after_refresh(self._fit)
        self.offer(at="e" if self._secrets() or self._message_asks_secret else "y")
        self.answers.focus()

    def action_agree(self) -> None:
        """Validate the form and show what would be sent; from there, send it."""
        if self._content is None:
            self._form.submit()
        else:
            self._send(self._content)

    def action_edit(self) -> None:
        self._content = None
        self.remove_class("-review")
        self.hint("")
        self.offer(at="y")
        self._show_warnings()
        self._form.focus_first()

    def _send(self, content: dict[str, Any]) -> None:
        """Send what was reviewed; ask again if it looks like a secret."""
        if not self._all_seen:
            self.refuse_locked()
        elif (secrets := self._secrets()) or (content and self._message_asks_secret):
            self._ask_again(content, secrets)
        else:
            self.dismiss(Answer(allow=True, content=content))

    def action_park(self) -> None:
        """Close the dialog; the question stays in the inbox with what was typed."""
        if self.waiting is not None:
            self.waiting.drafts[DRAFT] = self._form.state()
        self.dismiss(None)

    def action_back(self) -> None:
        """Go from the review to the form, from a field to the answers, and from there out."""
        if self._content is not None:
            self.action_edit()
        else:
            super().action_back()

    def action_reveal(self) -> None:
        """Show or hide what looks secret."""
        self._revealed = not self._revealed
        self._draw_review()

    def action_page(self, direction: int) -> None:
        view = self._review if self._content is not None else None
        if view is None:
            super().action_page(direction)
        else:
            view.scroll_relative(y=direction * max(1, view.size.height - 1), animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "reveal":
            return self._content is not None and not self.typing and bool(self._secrets())
        return super().check_action(action, parameters)

    # Warnings and the review.

    @property
    def _all_seen(self) -> bool:
        # The hint takes a row, which shows the last line when the hint goes.
        return self._review.size.height > 0 and self._review.scroll_offset.y >= self._review.max_scroll_y - 1

    def _update_hint(self) -> None:
        if self._content is not None:
            cut_off = self._review.size.height > 0 and not self._all_seen  # without a height it is not laid out yet
            self.hint(SCROLL_FIRST if cut_off else "")
            self.offer()

    def _secrets(self) -> list[str]:
        """The names of fields that look secret; in a review, of those that are filled in."""
        names = [field.name for field in self._fields.leaves() if field.secret_looking]
        return names if self._content is None else [name for name in names if name in self._content]

    def _show_warnings(self) -> None:
        names = ", ".join(show_name(name, 40) for name in self._secrets()[:5])
        lines = []
        if names:
            lines.append(f"▲ {names} looks like a secret: servers may not ask for one in a form")
        elif self._message_asks_secret:
            lines.append("▲ the message seems to ask for a secret: servers may not ask for one in a form")
        if self._note and self._content is not None:
            lines.append(f"▲ {show_line(self._note, 300)}")
        self._warning.update(Content("\n".join(lines)))
        self._warning.display = bool(lines)

    def _draw_review(self) -> None:
        content = dict(self._content or {})
        if not self._revealed:
            content.update(dict.fromkeys(self._secrets(), HIDDEN))
        lines, _ = json_lines(content)
        self._review.load(lines)
        keys = " · v shows what is hidden" if self._secrets() else ""
        self._review.border_title = naming("Send this to ", self.origin.server, f"? ({len(content):,}){keys}")
        self.call_after_refresh(self._update_hint)

    def _ask_again(self, content: dict[str, Any], secrets: list[str]) -> None:
        from mcphost.tui.kit.modal_screen import AskScreen

        def answered(agreed: bool | None) -> None:
            if agreed and self._content == content:
                self.dismiss(Answer(allow=True, content=content))

        doubt = "what the message asks for"
        facts = [
            fact("to", self.origin.server),
            fact("looks secret", ", ".join(show_name(name, 40) for name in secrets) or doubt, "bold $text-error"),
            fact("", "Servers may not ask for passwords, keys or codes in a form. You cannot take back what you send."),
        ]
        self.app.push_screen(AskScreen("Send what looks like a secret?", facts, "send it"), answered)
