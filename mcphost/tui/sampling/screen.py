"""A server's request for a language model's answer, from the question whether one may be asked to what the server gets.

Acts on the request. It stays while the model answers, and closes by itself at the end. What was changed of
an answer is kept with the question while it waits in the inbox, and nowhere else.

Specification: client/sampling (human in the loop).
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mcphost.dataclass import dataclass
from mcphost.host.consent.questions import Answer, SamplingQuestion
from mcphost.host.host import Host
from mcphost.host.sampling.request import Sampling, SamplingEdit, SamplingReply, SamplingState
from mcphost.protocol.display import age_text
from mcphost.protocol.models.sampling import Block
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import reason_of
from mcphost.tui.error_boundary import ErrorBoundary
from mcphost.tui.kit.export import save_as
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.key_bar import KeyBar
from mcphost.tui.kit.messages import BudgetRequested, MuteToggled
from mcphost.tui.kit.modal import QuestionDialog
from mcphost.tui.results.saving import file_name
from mcphost.tui.sampling.facts import Known, answer_facts, has_budget, request_facts
from mcphost.tui.sampling.parts import asked_object, preview, sent_object
from mcphost.tui.sampling.request import PartList, SamplingBoard
from mcphost.tui.sampling.steps import (
    SamplingClock,
    SamplingScreenState,
    SamplingStep,
    acts,
    ended_words,
    keys,
    step_of,
    where,
)

WIDE: Final = 110
"""Columns from which what there is to know stands beside what is asked."""

TALL: Final = 40
"""Rows from which what is behind stays readable."""

KEPT: Final = "answer"
"""Under which name an answer that was changed is kept with the question."""


@dataclass(frozen=True, slots=True)
class EditedAnswer:
    """An answer as it was left."""

    blocks: tuple[Block, ...]
    typed: str | None
    """What was being written."""


class SamplingView(QuestionDialog):
    """Shows ``sampling``; `refresh_sampling` when it went on. ``waiting`` is its question, where one is open."""

    DEFAULT_CSS = """
    SamplingView {
        & > .dialog { max-width: 100%; height: 1fr; max-height: 100%; margin: 1 0 0 0; }
        .where { height: auto; max-height: 2; }
        .both { height: 1fr; }
        .known { height: 100%; width: 56; padding-left: 1; border-left: solid $border-blurred; }
        .known { scrollbar-size-vertical: 1; }
        .known > FactsTable { padding-right: 1; }
        .known:focus { border-left: solid $border; }
        KeyBar { max-height: 3; border-top: solid $border-blurred; }
        &.-very-wide .known { width: 72; }
        &.-one-column .both { layout: vertical; }
        &.-one-column .known {
            width: 1fr; height: auto; max-height: 6; padding: 0; border-left: none; border-top: solid $border-blurred;
        }
        &.-one-column .known:focus { border-left: none; border-top: solid $border; }
        &.-one-column.-writing .known { display: none; }
        &.-one-column.-short-known .known { max-height: 4; }
        &.-tall > .dialog { height: 80%; }
    }
    """

    class Resumed(Message):
        """The screen is in front now: questions about its request can be asked here."""

    def __init__(self, host: Host, sampling: Sampling, waiting: OpenQuestion | None = None) -> None:
        super().__init__(waiting)
        self.sampling = sampling
        self._host = host
        self._reason = reason_of(host, SamplingQuestion(sampling.server, sampling.number, sampling.call, sampling.tool))
        self._board, self._clock = SamplingBoard(sampling), SamplingClock(sampling)
        self._where, self._facts = Static(classes="where", markup=False), FactsTable(labels=13)
        self._keys = KeyBar()
        self._entered: object = None
        self._looking: SamplingScreenState | None = None
        self._told = ""
        self._on_question = self._left = False
        self._refusal: str | None = None
        """One said no, with these words, when nothing was asked for a moment."""

    def compose(self) -> ComposeResult:
        """How it stands; what is asked or answered; what there is to know; the keys."""
        with Vertical(classes="dialog") as frame:
            asked = f"{self._reason.server} asks for a language model's answer"
            frame.border_title = Content(f"{asked} · {self._reason.limit}")
            frame.border_subtitle = Content(f"asked by the server {self._reason.server}, not by mcphost")
            yield self._where
            with Horizontal(classes="both"):
                yield self._board
                yield VerticalScroll(self._facts, classes="known")
            yield self._keys

    async def on_mount(self) -> None:
        """Show it as it is."""
        self.set_interval(1.0, self._tick)
        await self.refresh_sampling()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < WIDE, "-one-column")
        self.set_class(event.size.width >= WIDE + 50, "-very-wide")
        self.set_class(event.size.height >= TALL, "-tall")

    def on_screen_resume(self) -> None:
        """What came to be asked about it meanwhile is asked now."""
        self.post_message(self.Resumed())

    # What the host says.

    def takes(self, waiting: OpenQuestion) -> bool:
        """What is asked about this very request is asked here."""
        question = waiting.question
        if not isinstance(question, SamplingQuestion) or question.sampling != self.sampling.number:
            return False
        self.waiting = waiting
        if self._refusal is not None:
            self.answer(Answer(allow=False, reason=self._refusal))
        self.call_later(self.refresh_sampling)
        return True

    def withdrawn(self) -> None:
        """It ends, and the handle says how."""
        self.waiting = None
        self.call_later(self.refresh_sampling)

    async def refresh_sampling(self) -> None:
        """It went on: show how it stands, or close."""
        if self._left or not self.is_attached:
            return
        if self.sampling.state.ended:
            self._end()
            return
        self._clock.look()
        entered = self.sampling.state, self.sampling.attempts, self.waiting and self.waiting.number
        if entered != self._entered:
            self._entered = entered
            await self._enter()
        await self._board.show_request()
        self._tell()

    async def _enter(self) -> None:
        """Another thing is asked of the user, or nothing more."""
        self.start_guard()
        self._on_question = False
        if self._board.editing:
            self._board.leave_editor()
        if self.sampling.state is SamplingState.REVIEWING and self.waiting is not None:
            await self._review(self.waiting)
        self.query_one(".known", VerticalScroll).scroll_home(animate=False)

    async def _review(self, waiting: OpenQuestion) -> None:
        """An answer is there, or to be written; or it is as one left it."""
        kept = waiting.kept.get(KEPT)
        self._board.blocks = kept.blocks if isinstance(kept, EditedAnswer) else self.sampling.blocks
        await self._board.show_answer(self.sampling.error)
        if isinstance(kept, EditedAnswer) and kept.typed is not None:
            await self._board.write(kept.typed)
        elif self.sampling.model.by_hand and not isinstance(kept, EditedAnswer):
            await self._board.write()

    def _end(self) -> None:
        """Close, with what was opened from here, and say how it ended."""
        self._left = True
        self.waiting = None
        while self.app.screen is not self and len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        words, severity = ended_words(self.sampling)
        self.app.notify(words, severity=severity, markup=False)
        self.dismiss(None)

    # How it stands.

    @property
    def standing(self) -> SamplingScreenState:
        """What the screen is for now."""
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
            context=bool(self.sampling.context) and not self.sampling.context_added,
        )

    def _tell(self) -> None:
        standing = self.standing
        if standing.step is SamplingStep.STREAMING:
            self._board.stream.tell(self.sampling)
        line = where(self.sampling, standing, self._reason.because, self._clock.seconds, self._clock.retry_seconds)
        if line.plain != self._told:
            self._told = line.plain
            self._where.update(line)
        answered = standing.step is SamplingStep.REVIEWING and not standing.question
        self._facts.show_facts((answer_facts if answered else request_facts)(self.sampling, self._known()))
        self._keys.show_keys(keys(self.sampling, standing))
        if standing != self._looking:
            self._look(standing, moved=self._looking is None or self._looking.place != standing.place)

    def _look(self, standing: SamplingScreenState, *, moved: bool) -> None:
        self._looking = standing
        self.refresh_bindings()
        if moved:
            self.set_class(standing.writing, "-writing")
            self.set_class(standing.step is SamplingStep.STREAMING or not standing.on_request, "-short-known")
            self._board.look(standing)

    def _known(self) -> Known:
        age = "" if self.waiting is None else age_text(self.waiting.age)
        spent, models = self._host.sampling.usage(self.sampling.server), self._host.models.all
        path, alone = self._host.config.path, all(model.by_hand for model in models)
        return Known(self._reason, age, spent, path, alone, self._clock.seconds)

    def _tick(self) -> None:
        """Times on screen go on."""
        if not self._left and self.is_current:
            self._clock.look()
            self._tell()

    @on(SamplingBoard.Rewritten)
    async def _rewritten(self, event: SamplingBoard.Rewritten) -> None:
        event.stop()
        if self.standing.step is SamplingStep.REVIEWING and not self._board.editing:
            await self._board.show_answer(self.sampling.error)
        self._looking = None
        self._tell()

    @on(PartList.Moved)
    def _moved(self, event: PartList.Moved) -> None:
        event.stop()
        self._tell()

    @on(SamplingBoard.Changed)
    def _changed(self, event: SamplingBoard.Changed) -> None:
        event.stop()
        self.sampling.edit(event.edit)

    def answer(self, answer: Answer | None) -> bool:
        answered = super().answer(answer)
        if answered:
            self.call_later(self.refresh_sampling)
        return answered


class WordsScreen(ErrorBoundary, ModalScreen[str | None]):
    """Dismissed with what shall be said to ``server`` (safe to show), or with None: then it is not refused."""

    HELP = "Say why, if you like: whoever asked gets these words with your no. enter refuses, esc goes back."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="words.back", tooltip="Go back without refusing"),
    ]

    DEFAULT_CSS = """
    WordsScreen {
        align: center bottom;
        background: $background 40%;
        & > Vertical {
            width: 100%; max-width: 120; height: auto; border: round $warning; background: $surface; padding: 0 1;
        }
        Input { background: $panel; }
    }
    """

    def __init__(self, server: str) -> None:
        super().__init__()
        self._server = server

    def compose(self) -> ComposeResult:
        """A field in a frame."""
        with Vertical() as frame:
            frame.border_title = Content(f"Refuse · what shall {self._server} be told?")
            frame.border_subtitle = "enter refuse · esc back"
            yield Input(placeholder="nothing but no", compact=True, max_length=1000)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip())

    def action_back(self) -> None:
        """Close; it is not refused."""
        self.dismiss(None)


class SamplingScreen(SamplingView):
    """See `SamplingView`: the keys, and what each does."""

    HELP = (
        "A server wants a language model to be asked, on your account. First you see what it would be asked, and can\n"
        "change all of it; no model is asked before you agree. Then the answer comes, and is yours to read, change,\n"
        "ask for again or refuse; the server gets nothing before you send it, and never learns why there is none.\n"
        "With manual you are the model. esc leaves: what was asked of you waits in the inbox, an answer goes on coming."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "agree", "agree", id="sampling.agree", tooltip="Ask the model; send the answer"),
        Binding("e", "edit", "edit", id="sampling.edit", tooltip="Change the block that is marked, or write one"),
        Binding("ctrl+r,ctrl+enter", "take", "take over", id="sampling.take", tooltip="Take over what was typed"),
        Binding("x", "drop", "leave out", id="sampling.drop", tooltip="Stop the answer; leave out what is marked"),
        Binding("m", "model", "model", id="sampling.model", tooltip="Choose who answers: a model, or you"),
        Binding("l", "limits", "limits", id="sampling.limits", tooltip="Max tokens, temperature, stops, tools"),
        Binding("c", "context", "add context", id="sampling.context", tooltip="Add what this server said before"),
        Binding("h", "history", "history", id="sampling.history", tooltip="Earlier blocks of the conversation"),
        Binding("r", "again", "ask again", id="sampling.again", tooltip="Ask the model once more"),
        Binding("t", "question", "question", id="sampling.question", tooltip="What was asked, or the answer"),
        Binding("f", "full", "in full", id="sampling.full", tooltip="Read the block that is marked in full"),
        Binding("w", "save", "save", id="sampling.save", tooltip="Save the block that is marked in a file", show=False),
        Binding("v", "json", "JSON", id="sampling.json", tooltip="What would be asked, or sent, as JSON"),
        Binding("d", "decline_with", "refuse", id="sampling.refuse", tooltip="Refuse, with words if you like"),
        Binding("n", "decline", "refuse at once", id="sampling.decline", tooltip="Refuse without words", show=False),
        Binding("M", "mute", "mute", id="sampling.mute", tooltip="Decline all it asks until mcphost exits"),
        Binding("b", "budget", "budget", id="sampling.budget", tooltip="Let the server use more; asks how much"),
        Binding("p", "park", "later", id="sampling.park", tooltip="Leave it in the inbox; f2 lists it"),
        Binding("escape", "back", "back", id="sampling.back", tooltip="Out of the box, or leave it in the inbox"),
    ]

    # What the user answers.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Each step has its keys; letters act where none are typed."""
        if action == "app.keys" or not self.is_mounted:
            return True
        return acts(action, self.standing)

    def action_agree(self) -> None:
        """Ask the model, or send the answer."""
        asking = self.standing.step is SamplingStep.ASKING
        self.answer(Answer(allow=True, content=None if asking else self._reply()))

    def action_again(self) -> None:
        """Ask the model once more."""
        if not self.sampling.model.by_hand:
            self.answer(Answer(allow=True, content=SamplingEdit()))

    def action_model(self) -> None:
        """Choose who answers; after an answer that asks again."""
        from mcphost.tui.sampling.model import ModelScreen

        asking = self.standing.step is SamplingStep.ASKING
        words = "choose" if asking else "ask it"
        screen = ModelScreen(self.sampling.models, self.sampling.model.entry, self._host.config.path, words)
        self.app.push_screen(screen, self._take_model)

    def _take_model(self, entry: str | None) -> None:
        if entry is None or self.waiting is None:
            return
        if self.standing.step is SamplingStep.ASKING:
            self.sampling.edit(SamplingEdit(model=entry))
        else:
            self.answer(Answer(allow=True, content=SamplingEdit(model=entry)))

    def action_decline(self) -> None:
        self._refuse("")

    def action_decline_with(self) -> None:
        """Refuse, with words for the server."""
        self.app.push_screen(WordsScreen(self._reason.server), self._refuse)

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
        """No, and so to all that comes from there."""
        self.post_message(MuteToggled(self.sampling.server, True))

    def action_park(self) -> None:
        """Leave; what is asked waits in the inbox, with what was changed."""
        if self.waiting is not None and self.sampling.state is SamplingState.REVIEWING:
            self.waiting.kept[KEPT] = EditedAnswer(self._board.blocks, self._board.draft)
        self._left = True
        self.answer(None)
        self.dismiss(None)

    def _reply(self) -> SamplingReply | None:
        """What shall be sent instead of what came; None: that as it is."""
        blocks, by_hand = self._board.blocks, self.sampling.model.by_hand
        if blocks == self.sampling.blocks and not by_hand:
            return None
        return SamplingReply(blocks, self.sampling.model.name if by_hand else "")

    # What the user looks at and changes.

    async def action_back(self) -> None:
        """Out of the box; back to the answer; then out, and it waits in the inbox."""
        if self.standing.writing:
            self._board.take()
        elif self._board.editing:
            self._board.leave_editor()
        elif self._on_question:
            self.action_question()
        else:
            self.action_park()

    async def action_edit(self) -> None:
        """Edit the block that is marked."""
        self._say(await self._board.edit())

    def action_take(self) -> None:
        """Take over what was edited."""
        self._board.take()

    def action_drop(self) -> None:
        """Stop the answer, which keeps what came; else leave out the block that is marked."""
        if self.standing.step is SamplingStep.STREAMING:
            self.sampling.stop()
        else:
            self._say(self._board.leave_out())

    async def action_history(self) -> None:
        """An earlier page of the conversation."""
        await self._board.turn()

    def action_question(self) -> None:
        """What was asked, or the answer again."""
        self._on_question = not self._on_question
        self._tell()

    def action_context(self) -> None:
        """Add what the server said before to the system prompt."""
        self.sampling.add_context()

    def action_budget(self) -> None:
        """Ask, then raise the server's sampling budget."""
        self.post_message(BudgetRequested(self.sampling.server))

    def action_limits(self) -> None:
        """Change how far the model may go."""
        from mcphost.tui.sampling.limits import LimitsScreen

        def take(edit: SamplingEdit | None) -> None:
            if edit is not None:
                self.sampling.edit(edit)

        self.app.push_screen(LimitsScreen(self.sampling), take)

    def action_full(self) -> None:
        """Read the block that is marked in full; a picture as large as there is room."""
        self._board.read_in_full(self._reason.server)

    def action_save(self) -> None:
        """Save the block that is marked."""
        view = self._board.list.current
        if view is not None:
            content, mime_type = view.block.content()
            save_as(self.app, file_name(self.sampling.server, "sampling", datetime.now(), mime_type), content)

    def action_json(self) -> None:
        """What would be asked, or sent, exactly."""
        from mcphost.tui.kit.json_text import json_text
        from mcphost.tui.kit.reader import ReaderScreen

        standing = self.standing
        if standing.step is SamplingStep.REVIEWING and not standing.question:
            connection = self._host.servers.get(self.sampling.server)
            session = None if connection is None else connection.session
            version = None if session is None else session.revision.version
            told = sent_object(preview(self.sampling, self._reply()), version)
            title = f"What {self._reason.server} would get"
        else:
            told, title = asked_object(self.sampling), "What the model is asked, in the protocol's words"
        self.app.push_screen(ReaderScreen(title, json_text(told), is_json=True))

    def _say(self, problem: str) -> None:
        if problem:
            self.notify(problem, severity="warning", markup=False)
