"""The dialog for a sampling request, from the first question to the answer that the server gets.

It stays open while the model answers, and closes when the request ends. An edited answer is kept with the question
while it waits in the inbox, and nowhere else.

Specification: client/sampling (human in the loop).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from mcphost.host.consent.questions import Answer, SamplingQuestion
from mcphost.host.host import Host
from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply, SamplingState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import age_text, show
from mcphost.protocol.models.sampling import Block, text_block
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import origin_of
from mcphost.tui.kit.answers import AnswerOption, AnswerOptions, ReadToEnd, ShortAnswers, naming
from mcphost.tui.kit.facts_table import FactsTable, fact
from mcphost.tui.kit.messages import BudgetRequested, MuteToggled
from mcphost.tui.kit.modal_screen import QuestionDialog
from mcphost.tui.kit.rows import RowList
from mcphost.tui.results.pictures import NO_PICTURES
from mcphost.tui.results.view import Notice
from mcphost.tui.sampling.dialog_state import (
    SamplingClock,
    SamplingScreenState,
    SamplingStep,
    default_key,
    ended_words,
    failure_of_model,
    is_active,
    options,
    other_keys,
    state_line,
    step_of,
)
from mcphost.tui.sampling.request_facts import RequestContext, answer_facts, has_budget, request_facts
from mcphost.tui.sampling.request_parts import (
    NOT_EDITED,
    PartsText,
    answer_of,
    answer_parts,
    edit_of_prompt,
    preview,
    prompt_parts,
    request_object,
    result_object,
)
from mcphost.tui.sampling.text_pane import TextPane
from mcphost.tui.textual_private.corrections import ScrolledColumn

WIDE: Final = 110
"""Columns from which the facts are beside the request."""

TALL: Final = 40
"""Rows from which something stays visible behind the dialog."""

SHORT: Final = 20
"""Rows below which all answers share one line."""

FACTS: Final = 4
"""Rows that the facts have below a long request."""

KEPT: Final = "answer"
"""The key of the edited answer that is kept with the question."""


@dataclass(frozen=True, slots=True)
class _Edit:
    text: PartsText
    of_request: bool


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    """An answer that was being edited when the dialog was closed."""

    blocks: tuple[Block, ...]
    typed: str | None
    """The text in the editor."""


class SamplingScreen(QuestionDialog):
    """Shows ``sampling``; call `refresh_sampling` when it changed. ``waiting`` is its open question."""

    HELP = (
        "A server asks for a language model's answer (sampling), on your account. First you see the prompt and "
        "can edit it; no model is asked before you agree. Then you read the answer, edit it, ask again or "
        "decline; the server gets nothing before you send it, and does not learn why it gets nothing. The prompt, "
        "or the answer, is edited as one text: to leave a part out, delete it with its heading. With manual you "
        "write the answer. If you leave, the question waits in the inbox, and a running answer continues."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "agree", id="sampling.agree", tooltip="Ask the model; send the answer"),
        Binding("e", "edit", "edit", id="sampling.edit", tooltip="Edit the prompt, or the answer"),
        Binding("ctrl+r,ctrl+enter", "take", "keep changes", id="sampling.take", tooltip="Keep what you typed"),
        Binding("x", "stop", "stop", id="sampling.drop", tooltip="Stop the answer, and keep what has come"),
        Binding("m", "model", "model", id="sampling.model", tooltip="Choose who answers: a model, or you"),
        Binding("l", "limits", "limits", id="sampling.limits", tooltip="Max tokens, temperature, stops, tools"),
        Binding("c", "context", "add context", id="sampling.context", tooltip="Add what this server sent before"),
        Binding("r", "again", "ask again", id="sampling.again", tooltip="Ask the model once more"),
        Binding("q", "question", "prompt/answer", id="sampling.question", tooltip="Show the prompt, or the answer"),
        Binding("f", "full", "in full", id="sampling.full", tooltip="Read the whole text on its own screen"),
        Binding("i", "pictures", "pictures", id="sampling.pictures", tooltip="Draw pictures, or only name them"),
        Binding("v", "json", "JSON", id="sampling.json", tooltip="What would be asked, or sent, as JSON"),
        Binding("n", "decline", "decline", id="sampling.decline", tooltip="Decline: nothing is sent"),
        Binding("t", "decline_with", "decline, say why", id="sampling.refuse", tooltip="Decline, and tell it why"),
        Binding("M", "mute", "mute", id="sampling.mute", tooltip="Decline everything it asks until mcphost exits"),
        Binding("b", "budget", "budget", id="sampling.budget", tooltip="Raise what the server may use; asks first"),
        Binding("p", "park", "later", id="sampling.park", tooltip="Decide later; f2 lists it"),
        Binding("enter", "choose_default", "choose", id="sampling.default", show=False),
        Binding("space,pagedown", "page(1)", "scroll", id="sampling.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="sampling.up", show=False),
        Binding("G,ctrl+end", "scroll_to_end", "end", id="sampling.end", show=False, tooltip="Scroll to the end"),
        Binding("escape", "back", "back", id="sampling.back", tooltip="Out of the editor, or decide later"),
    ]

    DEFAULT_CSS = """
    SamplingScreen {
        & > .dialog { max-width: 100%; height: 60%; max-height: 100%; }
        .where { height: auto; max-height: 2; }
        .both { height: 1fr; }
        .known { height: 100%; width: 56; padding-left: 1; border-left: solid $border-blurred; }
        .known { scrollbar-size-vertical: 1; }
        .known > FactsTable { padding-right: 1; }
        .known:focus { border-left: solid $border; }
        .others { height: auto; max-height: 3; color: $foreground-muted; }
        &.-folded AnswerOptions { display: none; }
        &.-folded .others { border-top: solid $border-blurred; }
        &.-very-wide .known { width: 72; }
        &.-one-column .both { layout: vertical; }
        &.-one-column .known {
            width: 1fr; height: auto; padding: 0; border-left: none; border-top: solid $border-blurred;
        }
        &.-one-column .known:focus { border-left: none; border-top: solid $border; }
        &.-one-column.-writing .known { display: none; }
    }
    """

    class Resumed(Message):
        """The screen is in front, so that it can take over questions about its request."""

    def __init__(self, host: Host, sampling: Sampling, waiting: OpenQuestion | None = None) -> None:
        super().__init__(waiting)
        self.sampling = sampling
        self._host = host
        self._origin = origin_of(host, SamplingQuestion(sampling.server, sampling.number, sampling.call, sampling.tool))
        self.pane, self._clock = TextPane(), SamplingClock(sampling)
        self._both, self._known = Horizontal(classes="both"), ScrolledColumn(classes="known")
        self._where, self._facts = Static(classes="where", markup=False), FactsTable(labels=13)
        self.answers, self._others = AnswerOptions(), ShortAnswers(classes="others")
        self.blocks: tuple[Block, ...] = ()
        """The answer as it would be sent."""
        self._edit: _Edit | None = None
        self._on_question = False
        """True if the prompt is in view while there is an answer; another question begins with False."""
        self._read = set[bool]()
        """Holds True once the end of the prompt was in view, and False once that of the answer was."""
        self._turn: object = None
        """The state, attempt and question for which the dialog was prepared."""
        self._shown_state: SamplingScreenState | None = None
        """The state in view; None: the next one is shown as a new one, with its default answer selected."""
        self._shown_line = ""
        self._finished = False
        """True once the dialog is closed: nothing is shown any more."""
        self._rows = 0
        """The rows to show all that was last read here."""
        self._refusal: str | None = None
        """The reason of a refusal that came while no question was open; the next question is answered with it."""

    def compose(self) -> ComposeResult:
        server = self._origin.server
        title = naming("", server, f" asks for a language model's answer · {self._origin.limit}")
        with self.framed(title, naming("asked by the server ", server, ", not by mcphost")):
            yield self._where
            with self._both:
                yield self.pane
                with self._known:
                    yield self._facts
            yield self.answers
            yield self._others

    async def on_mount(self) -> None:
        self.set_interval(1.0, self._tick)
        await self.refresh_sampling()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < WIDE, "-one-column")
        self.set_class(event.size.width >= WIDE + 50, "-very-wide")
        self.set_class(event.size.height >= TALL, "-tall")
        self.set_class(event.size.height < SHORT, "-short")
        self._fold()
        self.call_after_refresh(self._fit)

    @property
    def most_rows(self) -> int:
        height = self.app.size.height
        return int(height * 0.8) if self.has_class("-tall") else height - 1

    def _fit(self) -> None:
        """Be as tall as the request or the answer and the facts, as far as there is room: two parts share the rows.

        While something is written or streamed, stay as tall as before.
        """
        board, facts = self.pane.needed, self._facts.outer_size.height if self._known.display else 0
        around = self.rows_around(self._both)
        if self.has_class("-one-column"):
            left = max(FACTS, self.most_rows - around - board)
            self._known.styles.max_height = left
            needed = board + min(facts + 1, left)
        else:
            self._known.styles.max_height = None
            needed = max(board, facts)
        if not self.pane.growing:
            self._rows = around + needed
        self.fit(self._both, max(needed, self._rows - around))

    def on_screen_resume(self) -> None:
        self.post_message(self.Resumed())

    # Questions and changes from the host.

    def adopt_question(self, waiting: OpenQuestion) -> bool:
        """Take over a question about this request."""
        question = waiting.question
        if not isinstance(question, SamplingQuestion) or question.sampling != self.sampling.number:
            return False
        self.waiting = waiting
        if self._refusal is not None:
            self.answer(Answer(allow=False, reason=self._refusal))
        self.call_later(self.refresh_sampling)
        return True

    def withdrawn(self) -> None:
        """Stay open: the request says how it ends."""
        self.waiting = None
        self.call_later(self.refresh_sampling)

    async def refresh_sampling(self) -> None:
        """Show the current state, or close. Runs in the screen's own task, so never twice at once."""
        if self._finished or not self.is_attached:
            return
        if self.sampling.state.ended:
            self._end()
            return
        self._clock.update()
        turn = self.sampling.state, self.sampling.attempts, self.waiting and self.waiting.number
        if turn != self._turn:
            self._turn = turn
            self._begin_turn()
        if self.step is SamplingStep.STREAMING and not self._on_question:
            thinks = not self.sampling.text and bool(self.sampling.thought)
            title = "The model's thoughts (not sent):" if thinks else ""
            await self.pane.show_stream(self.sampling.thought if thinks else self.sampling.text, title)
        else:
            key = ("answer", self.blocks, self.sampling.error) if self._on_answer else ("prompt", self.sampling.request)
            if key != self.pane.shown:  # a text of megabytes is not made again for each word that the model says
                await self.pane.show_text(key, self._text, self._problem() if self._on_answer else ())
        self._update_state()

    @property
    def _text(self) -> PartsText:
        """The text of the prompt, or of the answer."""
        return PartsText(answer_parts(self.blocks) if self._on_answer else prompt_parts(self.sampling))

    def _begin_turn(self) -> None:
        """Prepare for another question, or for none."""
        self.start_guard()
        self._on_question, self._edit = False, None
        self._shown_state = None
        if self.sampling.state is SamplingState.REVIEWING and self.waiting is not None:
            self._read.discard(False)
            kept = self.waiting.drafts.get(KEPT)
            self.blocks = kept.blocks if isinstance(kept, EditedAnswer) else self.sampling.blocks
            typed = kept.typed if isinstance(kept, EditedAnswer) else None
            if typed is not None or (self.sampling.model.by_hand and kept is None):
                self._edit_answer(typed)
        self._known.scroll_home(animate=False)

    def _problem(self) -> list[Widget]:
        """The error of the answer, if there was one."""
        if self.sampling.error is None:
            return []
        failure = failure_of_model(self.sampling.error)
        quotes = FactsTable(fact(quote.label, show(quote.text, limit=2_000)) for quote in failure.quotes)
        return [Notice(failure.mark, failure.headline, failure.advice, failure.level), quotes]

    def _end(self) -> None:
        """Close, with everything opened from here, and say how the request ended."""
        self._finished = True
        self.waiting = None
        while self.app.screen is not self and len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        words, severity = ended_words(self.sampling)
        self.app.notify(words, severity=severity, markup=False)
        self.dismiss(None)

    # State.

    @property
    def step(self) -> SamplingStep:
        return step_of(self.sampling, self.waiting is not None)

    @property
    def _writing(self) -> bool:
        """True while the user writes the answer, not only edits one."""
        return self._edit is not None and not self._edit.of_request and self.sampling.model.by_hand

    @property
    def _on_answer(self) -> bool:
        """True if the answer is in view; who writes one sees the prompt."""
        return self.step is SamplingStep.REVIEWING and not self._on_question and not self._writing

    @property
    def screen_state(self) -> SamplingScreenState:
        step, by_hand = self.step, self.sampling.model.by_hand
        return SamplingScreenState(
            step,
            question=self._on_question,
            sendable=bool(self.blocks),
            editing=self._edit is not None,
            writing=self._writing,
            unread=not by_hand and (step is SamplingStep.ASKING) not in self._read,
            below=self.pane.read.more(1),
            context=bool(self.sampling.context) and not self.sampling.context_added,
            budget=has_budget(self._host.sampling.usage(self.sampling.server)),
        )

    def _update_state(self) -> None:
        if self.pane.read.reached and not self.pane.growing:
            self._read.add(not self._on_answer)
        screen_state = self.screen_state
        cause = self._origin.cause
        line = state_line(self.sampling, screen_state, cause, self._clock.seconds, self._clock.retry_seconds)
        if line.plain != self._shown_line:  # an update lays out the whole screen
            self._shown_line = line.plain
            self._where.update(line)
        self._facts.show_facts(
            (answer_facts if self._on_answer else request_facts)(self.sampling, self._request_context())
        )
        moved = self._shown_state is None or self._shown_state.place != screen_state.place
        self._offer(screen_state, moved=moved)
        if screen_state != self._shown_state:
            self._show_state(screen_state, moved=moved)
        self.call_after_refresh(self._fit)

    def _show_state(self, screen_state: SamplingScreenState, *, moved: bool) -> None:
        self._shown_state = screen_state
        self.refresh_bindings()
        if moved:
            for widget in (self, self.pane):
                widget.set_class(screen_state.writing, "-writing")
            self.pane.set_class(screen_state.editing, "-editing")
            self._fold()

    def _offer(self, screen_state: SamplingScreenState, *, moved: bool) -> None:
        """List the answers, the default selected when another step begins."""
        listed, default = list(options(self.sampling, screen_state)), default_key(self.sampling, screen_state)
        if screen_state.step is SamplingStep.BETWEEN:  # the same rows, so that nothing jumps
            listed = [replace(option, locked=True) for option in self.answers.items]
            moved = False
        if moved or listed != list(self.answers.items):
            self.answers.offer(listed, at=default if moved else None)
        in_line = listed if self.has_class("-short") and not screen_state.editing else []
        self._others.offer([*in_line, *other_keys(screen_state)], default)

    def _fold(self) -> None:
        """List the answers below what is to be read, unless there is no room, or something is edited."""
        if self._shown_state is None:
            return
        editing, short = self._shown_state.editing, self.has_class("-short")
        self.set_class(editing or short, "-folded")
        if not editing and self.answers.screen is self.app.screen:
            self.set_focus(None) if short else self.answers.focus()

    def _request_context(self) -> RequestContext:
        age = "" if self.waiting is None else age_text(self.waiting.age)
        usage, models = self._host.sampling.usage(self.sampling.server), self._host.models.all
        path, alone = self._host.config.path, all(model.by_hand for model in models)
        rewritten = self.blocks != self.sampling.blocks and not self.sampling.model.by_hand
        return RequestContext(self._origin, age, usage, path, alone, self._clock.seconds, rewritten)

    def _tick(self) -> None:
        if not self._finished and self.is_current:
            self._clock.update()
            self._update_state()

    @on(RowList.Selected)
    async def _answer_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        event.stop()
        await self._choose(event.item)

    async def _choose(self, option: AnswerOption) -> None:
        if not option.locked or self.check_action(option.action, ()):
            await self.run_action(option.action)
        else:
            self.app.bell()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self._shown_state is not None:
            self._update_state()

    @on(ReadToEnd.Measured)
    def _measured(self, event: ReadToEnd.Measured) -> None:
        event.stop()
        if self._shown_state is not None:
            self._update_state()

    def answer(self, answer: Answer | None) -> bool:
        answered = super().answer(answer)
        if answered:
            self.call_later(self.refresh_sampling)
        return answered

    # Answers.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("app.keys", "page", "scroll_to_end") or not self.is_mounted:
            return True
        if action == "choose_default":
            return self.has_class("-short")
        return is_active(action, self.screen_state)

    def action_agree(self) -> None:
        """Ask the model, or send the answer."""
        if self.screen_state.unread:
            self.refuse_locked()
            return
        asking = self.step is SamplingStep.ASKING
        self.answer(Answer(allow=True, content=None if asking else self._reply()))

    def action_again(self) -> None:
        if not self.sampling.model.by_hand:
            self.answer(Answer(allow=True, content=SamplingEdit()))

    def action_model(self) -> None:
        """Choose another model; after an answer, also ask it."""
        from mcphost.tui.sampling.dialogs import ModelScreen

        asking = self.step is SamplingStep.ASKING
        words = "choose" if asking else "ask it"
        screen = ModelScreen(self.sampling.models, self.sampling.model.entry, self._host.config.path, words)
        self.app.push_screen(screen, self._take_model)

    def _take_model(self, entry: str | None) -> None:
        if entry is None or self.waiting is None:
            return
        if self.step is SamplingStep.ASKING:
            self.sampling.edit(SamplingEdit(model=entry))
        else:
            self.answer(Answer(allow=True, content=SamplingEdit(model=entry)))

    def action_decline(self) -> None:
        self._refuse("")

    def action_decline_with(self) -> None:
        """Refuse with a reason for the server."""
        from mcphost.tui.sampling.dialogs import RefusalScreen

        self.app.push_screen(RefusalScreen(self._origin.server), self._refuse)

    def _refuse(self, words: str | None) -> None:
        if words is None:
            return
        if self.sampling.state is SamplingState.STREAMING:
            self.sampling.refuse(words)
        elif self.waiting is None:
            self._refusal = words
        else:
            self.answer(Answer(allow=False, reason=words))

    def action_mute(self) -> None:
        """Decline this and everything else the server asks."""
        self.post_message(MuteToggled(self.sampling.server, True))

    def action_park(self) -> None:
        """Close; the question stays in the inbox with what was edited."""
        if self.waiting is not None and self.sampling.state is SamplingState.REVIEWING:
            self.waiting.drafts[KEPT] = EditedAnswer(self.blocks, self._typed)
        self._finished = True
        self.answer(None)
        self.dismiss(None)

    def _reply(self) -> SamplingReply | None:
        """The edited answer; None if it is to be sent as it came."""
        answered_by_user = self.sampling.model.by_hand
        if self.blocks == self.sampling.blocks and not answered_by_user:
            return None
        return SamplingReply(self.blocks, self.sampling.model.name if answered_by_user else "")

    @property
    def _typed(self) -> str | None:
        """The text of an unfinished answer."""
        return None if self._edit is None or self._edit.of_request else self.pane.area.text

    # Views and edits.

    def action_back(self) -> None:
        """Leave the editor; return to the answer; else park the question."""
        if self._writing:
            self.action_take()
        elif self._edit is not None:
            self._leave_editor()
        elif self._on_question:
            self.action_question()
        else:
            self.action_park()

    async def action_choose_default(self) -> None:
        """Choose the default, if all answers share one line."""
        key = default_key(self.sampling, self.screen_state)
        for option in self.answers.items:
            if option.key == key:
                await self._choose(option)

    def action_page(self, direction: int) -> None:
        """Scroll what is to be read."""
        self.pane.read.page(direction)

    def action_scroll_to_end(self) -> None:
        self.pane.read.scroll_end(animate=False)

    def action_pictures(self) -> None:
        """Draw or only name pictures, in the whole app."""
        self.app.toggle_class(NO_PICTURES)

    def action_edit(self) -> None:
        """Edit the prompt, or the answer, as one text."""
        if self._on_answer:
            self._edit_answer()
        else:
            self._begin_edit(self._text, "The prompt", of_request=True)

    def _edit_answer(self, typed: str | None = None) -> None:
        """Edit the answer, starting from what there is of one, or from ``typed``."""
        title = "Your answer" if self.sampling.model.by_hand else "The answer"
        self._begin_edit(PartsText(answer_parts(self.blocks or (text_block(""),))), title, typed)

    def _begin_edit(self, text: PartsText, title: str, typed: str | None = None, *, of_request: bool = False) -> None:
        draft = text.draft()
        if draft is None:
            self.notify(NOT_EDITED, severity="warning", markup=False)
            return
        self._edit = _Edit(text, of_request)
        self.pane.edit(title, draft if typed is None else typed, "" if of_request else "What the model would say…")
        self.call_later(self.refresh_sampling)

    def action_take(self) -> None:
        """Accept the edited text, or say why it is not valid."""
        edit = self._edit
        if edit is None:
            return
        try:
            kept = edit.text.read_back(self.pane.area.text)
            change = edit_of_prompt(self.sampling, kept) if edit.of_request else None
        except ValueError as problem:
            self.pane.show_problem(str(problem))
            return
        self._leave_editor()
        if change is not None:
            self.sampling.edit(change)
        else:
            self.blocks = answer_of(kept)

    def _leave_editor(self) -> None:
        self._edit = None
        self.pane.show_problem("")
        self._shown_state = None  # the answer may be another default now
        self.call_later(self.refresh_sampling)

    def action_stop(self) -> None:
        """Stop the answer and keep what has come."""
        self.sampling.stop()

    def action_question(self) -> None:
        """Switch between the request and the answer."""
        self._on_question = not self._on_question
        self.call_later(self.refresh_sampling)

    def action_context(self) -> None:
        """Add what the server said before to the system prompt."""
        self.sampling.add_context()

    def action_budget(self) -> None:
        """Ask the user, then raise the server's sampling budget."""
        self.post_message(BudgetRequested(self.sampling.server))

    def action_limits(self) -> None:
        from mcphost.tui.sampling.dialogs import LimitsScreen

        def take(edit: SamplingEdit | None) -> None:
            if edit is not None:
                self.sampling.edit(edit)

        self.app.push_screen(LimitsScreen(self.sampling), take)

    def action_full(self) -> None:
        """Read the prompt, or the answer, on a whole screen."""
        from mcphost.tui.kit.reader import ReaderScreen

        text = self._text
        title = f"{self._origin.server} › {'the answer' if self._on_answer else 'the prompt'}"
        self.app.push_screen(ReaderScreen(title, text.plain, spans=text.spans))

    def action_json(self) -> None:
        """Show the request, or the answer, as JSON."""
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        if self._on_answer:
            connection = self._host.servers.get(self.sampling.server)
            session = None if connection is None else connection.session
            version = None if session is None else session.revision.version
            value = result_object(preview(self.sampling, self._reply()), version)
            title = f"{self._origin.server} would get this"
        else:
            value, title = request_object(self.sampling), "The request as JSON"
        self.app.push_screen(ReaderScreen(title, json_text(value), is_json=True))
