"""How a server's request for a language model's answer stands on screen, at each step from the question to the end.

Shows the host's handle. Refuses to know keys: a subclass says what the user wants of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mcphost.host.asked.sampling_handle import Sampling, SamplingState
from mcphost.host.host import Host
from mcphost.host.questions import Answer, SamplingQuestion
from mcphost.protocol.display import age_text
from mcphost.protocol.sampling import Block
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.reasons import reason_of
from mcphost.tui.screens.dialog import QuestionDialog
from mcphost.tui.widgets.facts import FactsTable
from mcphost.tui.widgets.key_bar import KeyBar
from mcphost.tui.widgets.sampling_board import SamplingBoard
from mcphost.tui.widgets.sampling_clock import SamplingClock
from mcphost.tui.widgets.sampling_facts import Known, answer_facts, request_facts
from mcphost.tui.widgets.sampling_list import PartList
from mcphost.tui.widgets.sampling_states import SamplingScreenState, SamplingStep, ended_words, keys, step_of, where
from mcphost.tui.widgets.sampling_wishes import SamplingEditWanted, SamplingInFront
from mcphost.tui.widgets.spending import has_budget

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
        .known { height: 100%; width: 56; padding-left: 1; border-left: solid $panel-lighten-2; }
        .known { scrollbar-size-vertical: 1; }
        .known > Facts { padding-right: 1; }
        .known:focus { border-left: solid $accent; }
        KeyBar { max-height: 3; border-top: solid $panel-lighten-2; }
        &.-very-wide .known { width: 72; }
        &.-one-column .both { layout: vertical; }
        &.-one-column .known {
            width: 1fr; height: auto; max-height: 6; padding: 0; border-left: none; border-top: solid $panel-lighten-2;
        }
        &.-one-column .known:focus { border-left: none; border-top: solid $accent; }
        &.-one-column.-writing .known { display: none; }
        &.-one-column.-short-known .known { max-height: 4; }
        &.-tall > .dialog { height: 80%; }
    }
    """

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
        """What fits changed."""
        self.set_class(event.size.width < WIDE, "-one-column")
        self.set_class(event.size.width >= WIDE + 50, "-very-wide")
        self.set_class(event.size.height >= TALL, "-tall")

    def on_screen_resume(self) -> None:
        """What came to be asked about it meanwhile is asked now."""
        self.post_message(SamplingInFront())

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
            budget=has_budget(self._host.spent(self.sampling.server)),
            folded=self._board.folded,
            below=step is not SamplingStep.STREAMING and self._board.list.below,
            cut=step is not SamplingStep.STREAMING and self._board.list.cut,
            context=bool(self.sampling.context) and not self.sampling.context_added,
        )

    def _tell(self) -> None:
        standing = self.standing
        if standing.step is SamplingStep.STREAMING:
            self._board.stream.tell(self.sampling)
        line = where(self.sampling, standing, self._reason.because, self._clock.seconds, self._clock.patience)
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
        spent, models = self._host.spent(self.sampling.server), self._host.models
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
        self.post_message(SamplingEditWanted(self.sampling, event.edit))

    def answer(self, answer: Answer | None) -> bool:
        """See `QuestionDialog.answer`."""
        answered = super().answer(answer)
        if answered:
            self.call_later(self.refresh_sampling)
        return answered
