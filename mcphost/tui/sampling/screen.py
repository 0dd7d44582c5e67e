"""The dialog for a sampling request, from the first question to what the server gets.

It stays open while the model answers, and closes when the request ends. An edited answer is kept with the question
while it waits in the inbox, and nowhere else.

Specification: client/sampling (human in the loop).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Static

from mcphost.host.consent.questions import Answer, SamplingQuestion
from mcphost.host.host import Host
from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply, SamplingState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import age_text
from mcphost.protocol.models.sampling import Block
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import origin_of
from mcphost.tui.kit.answers import AnswerOption, AnswerOptions, ShortAnswers, naming
from mcphost.tui.kit.export import file_name, save_as
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.messages import BudgetRequested, MuteToggled
from mcphost.tui.kit.modal_screen import QuestionDialog
from mcphost.tui.kit.rows import RowList
from mcphost.tui.sampling.board import PartList, SamplingBoard
from mcphost.tui.sampling.facts import RequestContext, answer_facts, has_budget, request_facts
from mcphost.tui.sampling.parts import preview, request_object, result_object
from mcphost.tui.sampling.steps import (
    SamplingClock,
    SamplingScreenState,
    SamplingStep,
    default_key,
    ended_words,
    is_active,
    options,
    other_keys,
    state_line,
    step_of,
)
from mcphost.tui.textual_private.corrections import ScrolledColumn

WIDE: Final = 110
"""Columns from which the facts are beside the request."""

TALL: Final = 40
"""Rows from which something stays visible behind the dialog."""

SHORT: Final = 20
"""Rows below which all answers share one line."""

FACTS: Final = 4
"""Rows that the facts have below a long request."""

PART_ACTIONS: Final = {"look": "toggle_look", "pictures": "toggle_pictures", "open": "open"}
"""Actions on the current block, as the list of blocks names them."""

KEPT: Final = "answer"
"""The key of the edited answer that is kept with the question."""


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    """An answer that was being edited when the dialog was closed."""

    blocks: tuple[Block, ...]
    typed: str | None
    """The text in the editor."""


class SamplingScreen(QuestionDialog):
    """Shows ``sampling``; call `refresh_sampling` when it changed. ``waiting`` is its open question."""

    HELP = (
        "A server asks for a language model's answer (sampling), on your account. First you see the prompt and can\n"
        "edit it; no model is asked before you agree. Then you read the answer, edit it, ask again or decline; the\n"
        "server gets nothing before you send it, and is not told why it gets nothing.\n"
        "With manual you write the answer. esc leaves: the question waits in the inbox, a running answer continues.\n"
        "space scrolls; tab goes to the blocks, where the arrows choose the one that e, x, f and w act on."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "agree", id="sampling.agree", tooltip="Ask the model; send the answer"),
        Binding("e", "edit", "edit", id="sampling.edit", tooltip="Edit the marked block, or write one"),
        Binding("ctrl+r,ctrl+enter", "take", "keep changes", id="sampling.take", tooltip="Keep what you typed"),
        Binding("x", "drop", "leave out", id="sampling.drop", tooltip="Stop the answer; leave out the marked block"),
        Binding("m", "model", "model", id="sampling.model", tooltip="Choose who answers: a model, or you"),
        Binding("l", "limits", "limits", id="sampling.limits", tooltip="Max tokens, temperature, stops, tools"),
        Binding("c", "context", "add context", id="sampling.context", tooltip="Add what this server sent before"),
        Binding("h", "history", "history", id="sampling.history", tooltip="Earlier blocks of the conversation"),
        Binding("r", "again", "ask again", id="sampling.again", tooltip="Ask the model once more"),
        Binding("q", "question", "prompt/answer", id="sampling.question", tooltip="Show the prompt, or the answer"),
        Binding("f", "full", "in full", id="sampling.full", tooltip="Read the marked block in full"),
        Binding("a", "look", "as it came", id="sampling.look", tooltip="The text as it came, or rendered"),
        Binding("i", "pictures", "pictures", id="sampling.pictures", tooltip="Draw pictures, or only name them"),
        Binding("o", "open", "open", id="sampling.open", tooltip="Open it with a program of the desktop; asks first"),
        Binding("w", "save", "save", id="sampling.save", tooltip="Save the marked block to a file", show=False),
        Binding("v", "json", "JSON", id="sampling.json", tooltip="What would be asked, or sent, as JSON"),
        Binding("n", "decline", "decline", id="sampling.decline", tooltip="Decline: nothing is sent"),
        Binding("t", "decline_with", "decline, say why", id="sampling.refuse", tooltip="Decline, and tell it why"),
        Binding("M", "mute", "mute", id="sampling.mute", tooltip="Decline everything it asks until mcphost exits"),
        Binding("b", "budget", "budget", id="sampling.budget", tooltip="Raise what the server may use; asks first"),
        Binding("p", "park", "later", id="sampling.park", tooltip="Decide later; f2 lists it"),
        Binding("enter", "choose_default", "choose", id="sampling.default", show=False),
        Binding("space,pagedown", "page(1)", "scroll", id="sampling.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="sampling.up", show=False),
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
        self._board, self._clock = SamplingBoard(sampling), SamplingClock(sampling)
        self._both, self._known = Horizontal(classes="both"), ScrolledColumn(classes="known")
        self._where, self._facts = Static(classes="where", markup=False), FactsTable(labels=13)
        self.answers, self._others = AnswerOptions(), ShortAnswers(classes="others")
        self._entered: object = None
        self._shown_state: SamplingScreenState | None = None
        self._shown_line = ""
        self._on_question = self._finished = False
        self._rows = 0
        """The rows to show all that was last read here."""
        self._refusal: str | None = None
        """The reason of a refusal that came while no question was open."""

    def compose(self) -> ComposeResult:
        server = self._origin.server
        title = naming("", server, f" asks for a language model's answer · {self._origin.limit}")
        with self.framed(title, naming("asked by the server ", server, ", not by mcphost")):
            yield self._where
            with self._both:
                yield self._board
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
        """Be as tall as the request or the answer and the facts, as far as there is room.

        While something is written or streamed, stay as tall as before.
        """
        board, facts = self._board.needed, self._facts.outer_size.height if self._known.display else 0
        around = self.rows_around(self._both)
        if self.has_class("-one-column"):
            left = max(FACTS, self.most_rows - around - board)
            self._known.styles.max_height = left
            needed = board + min(facts + 1, left)
        else:
            self._known.styles.max_height = None
            needed = max(board, facts)
        if not self._board.growing:
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
        """Show the current state, or close."""
        if self._finished or not self.is_attached:
            return
        if self.sampling.state.ended:
            self._end()
            return
        self._clock.update()
        entered = self.sampling.state, self.sampling.attempts, self.waiting and self.waiting.number
        if entered != self._entered:
            self._entered = entered
            await self._enter()
        await self._board.show_request()
        self._update_state()

    async def _enter(self) -> None:
        """Prepare for another question, or for none."""
        self.start_guard()
        self._on_question = False
        self._shown_state = None  # one review may follow another at once, and starts at its default answer
        if self._board.editing:
            self._board.leave_editor()
        if self.sampling.state is SamplingState.REVIEWING and self.waiting is not None:
            await self._review(self.waiting)
        self._known.scroll_home(animate=False)

    async def _review(self, waiting: OpenQuestion) -> None:
        """Show the answer, or what the user had made of it."""
        kept = waiting.drafts.get(KEPT)
        self._board.blocks = kept.blocks if isinstance(kept, EditedAnswer) else self.sampling.blocks
        await self._board.show_answer(self.sampling.error)
        if isinstance(kept, EditedAnswer) and kept.typed is not None:
            await self._board.write(kept.typed)
        elif self.sampling.model.by_hand and not isinstance(kept, EditedAnswer):
            await self._board.write()

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
    def screen_state(self) -> SamplingScreenState:
        step = step_of(self.sampling, self.waiting is not None)
        answer = self._board.editing and not self._board.on_request
        return SamplingScreenState(
            step,
            question=self._on_question,
            sendable=bool(self._board.blocks),
            editing=self._board.editing,
            writing=answer and self.sampling.model.by_hand,
            budget=has_budget(self._host.sampling.usage(self.sampling.server)),
            folded=self._board.folded,
            below=step is not SamplingStep.STREAMING and self._board.list.below,
            cut=step is not SamplingStep.STREAMING and self._board.list.cut,
            several=self.answers.has_focus and len(self._board.list.blocks) > 1,
            context=bool(self.sampling.context) and not self.sampling.context_added,
        )

    def _update_state(self) -> None:
        screen_state = self.screen_state
        if screen_state.step is SamplingStep.STREAMING:
            self._board.stream.show_sampling(self.sampling)
        line = state_line(
            self.sampling, screen_state, self._origin.cause, self._clock.seconds, self._clock.retry_seconds
        )
        if line.plain != self._shown_line:
            self._shown_line = line.plain
            self._where.update(line)
        answered = screen_state.step is SamplingStep.REVIEWING and not screen_state.question
        self._facts.show_facts((answer_facts if answered else request_facts)(self.sampling, self._request_context()))
        moved = self._shown_state is None or self._shown_state.place != screen_state.place
        self._offer(screen_state, moved=moved)
        if screen_state != self._shown_state:
            self._show_state(screen_state, moved=moved)
        self.call_after_refresh(self._fit)

    def _show_state(self, screen_state: SamplingScreenState, *, moved: bool) -> None:
        self._shown_state = screen_state
        self.refresh_bindings()
        if moved:
            self.set_class(screen_state.writing, "-writing")
            self._board.show_state(screen_state)
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
            streaming = self._shown_state.step is SamplingStep.STREAMING
            (self._board.view if streaming or short else self.answers).focus()

    def _request_context(self) -> RequestContext:
        age = "" if self.waiting is None else age_text(self.waiting.age)
        usage, models = self._host.sampling.usage(self.sampling.server), self._host.models.all
        path, alone = self._host.config.path, all(model.by_hand for model in models)
        return RequestContext(self._origin, age, usage, path, alone, self._clock.seconds)

    def _tick(self) -> None:
        if not self._finished and self.is_current:
            self._clock.update()
            self._update_state()

    @on(SamplingBoard.Rewritten)
    async def _rewritten(self, event: SamplingBoard.Rewritten) -> None:
        event.stop()
        if self.screen_state.step is SamplingStep.REVIEWING and not self._board.editing:
            await self._board.show_answer(self.sampling.error)
        self._shown_state = None
        self._update_state()

    @on(RowList.Selected)
    async def _answer_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        event.stop()
        if event.item.locked:
            self.app.bell()
        else:
            await self.run_action(event.item.action)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if self._shown_state is not None:
            self._update_state()

    @on(PartList.Moved)
    def _moved(self, event: PartList.Moved) -> None:
        event.stop()
        self._update_state()

    @on(SamplingBoard.Changed)
    def _changed(self, event: SamplingBoard.Changed) -> None:
        event.stop()
        self.sampling.edit(event.edit)

    def answer(self, answer: Answer | None) -> bool:
        answered = super().answer(answer)
        if answered:
            self.call_later(self.refresh_sampling)
        return answered

    # Answers.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("app.keys", "page") or not self.is_mounted:
            return True
        if action == "choose_default":
            return self.has_class("-short")
        if action in PART_ACTIONS:
            return self._board.can_do(PART_ACTIONS[action])
        return is_active(action, self.screen_state)

    def action_agree(self) -> None:
        """Ask the model, or send the answer."""
        asking = self.screen_state.step is SamplingStep.ASKING
        self.answer(Answer(allow=True, content=None if asking else self._reply()))

    def action_again(self) -> None:
        if not self.sampling.model.by_hand:
            self.answer(Answer(allow=True, content=SamplingEdit()))

    def action_model(self) -> None:
        """Choose another model; after an answer, also ask it."""
        from mcphost.tui.sampling.dialogs import ModelScreen

        asking = self.screen_state.step is SamplingStep.ASKING
        words = "choose" if asking else "ask it"
        screen = ModelScreen(self.sampling.models, self.sampling.model.entry, self._host.config.path, words)
        self.app.push_screen(screen, self._take_model)

    def _take_model(self, entry: str | None) -> None:
        if entry is None or self.waiting is None:
            return
        if self.screen_state.step is SamplingStep.ASKING:
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
            self.waiting.drafts[KEPT] = EditedAnswer(self._board.blocks, self._board.draft)
        self._finished = True
        self.answer(None)
        self.dismiss(None)

    def _reply(self) -> SamplingReply | None:
        """The edited answer; None if it is to be sent as it came."""
        blocks, by_hand = self._board.blocks, self.sampling.model.by_hand
        if blocks == self.sampling.blocks and not by_hand:
            return None
        return SamplingReply(blocks, self.sampling.model.name if by_hand else "")

    # Views and edits.

    async def action_back(self) -> None:
        """Leave the editor; return to the answer; else park the question."""
        if self.screen_state.writing:
            self._board.accept()
        elif self._board.editing:
            self._board.leave_editor()
        elif self._on_question:
            self.action_question()
        else:
            self.action_park()

    async def action_choose_default(self) -> None:
        """Choose the default, if all answers share one line."""
        key = default_key(self.sampling, self.screen_state)
        for option in self.answers.items:
            if option.key == key:
                await self.run_action(option.action)

    def action_page(self, direction: int) -> None:
        """Scroll what is to be read."""
        self._board.page(direction)

    def action_look(self) -> None:
        self._board.list.action_toggle_look()

    def action_pictures(self) -> None:
        self._board.list.action_toggle_pictures()

    def action_open(self) -> None:
        self._board.list.action_open()

    async def action_edit(self) -> None:
        self._warn(await self._board.edit())

    def action_take(self) -> None:
        self._board.accept()

    def action_drop(self) -> None:
        """Stop the answer and keep what has come, or remove the current part."""
        if self.screen_state.step is SamplingStep.STREAMING:
            self.sampling.stop()
        else:
            self._warn(self._board.leave_out())

    async def action_history(self) -> None:
        await self._board.turn()

    def action_question(self) -> None:
        """Switch between the request and the answer."""
        self._on_question = not self._on_question
        self._update_state()

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
        """Read the current part in full; an image as large as the screen."""
        self._board.read_in_full(self._origin.server)

    def action_save(self) -> None:
        view = self._board.list.current
        if view is not None:
            content, mime_type = view.block.content()
            save_as(self.app, file_name(self.sampling.server, "sampling", datetime.now(), mime_type), content)

    def action_json(self) -> None:
        """Show as JSON what would be asked or sent."""
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        screen_state = self.screen_state
        if screen_state.step is SamplingStep.REVIEWING and not screen_state.question:
            connection = self._host.servers.get(self.sampling.server)
            session = None if connection is None else connection.session
            version = None if session is None else session.revision.version
            value = result_object(preview(self.sampling, self._reply()), version)
            title = f"{self._origin.server} would get this"
        else:
            value, title = request_object(self.sampling), "The request as JSON"
        self.app.push_screen(ReaderScreen(title, json_text(value), is_json=True))

    def _warn(self, problem: str) -> None:
        if problem:
            self.notify(problem, severity="warning", markup=False)
