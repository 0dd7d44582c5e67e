"""What is asked of a model and what it answers, in the same place: to be read, folded, and edited where it stands.

Knows which of them is in view and what is edited. Refuses to change the request itself: it posts the change.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from mcphost.errors import McphostError
from mcphost.host.asked.sampling_handle import Sampling, SamplingEdit
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.sampling import Block, text_block
from mcphost.protocol.types import TextContent
from mcphost.tui.widgets.blocks import BlockView
from mcphost.tui.widgets.call_tabs import Notice
from mcphost.tui.widgets.content import quoted
from mcphost.tui.widgets.sampling_editor import PartEditor
from mcphost.tui.widgets.sampling_list import PartList
from mcphost.tui.widgets.sampling_parts import (
    EDITABLE,
    PartDraft,
    PartPage,
    Place,
    answer_parts,
    block_at,
    draft_of,
    last_page,
    parts,
    places,
    rewritten,
    with_block,
    without_block,
)
from mcphost.tui.widgets.sampling_states import SamplingScreenState, SamplingStep, failure_of_model
from mcphost.tui.widgets.sampling_stream import StreamView

NOT_EDITED = "A picture, a sound or what cannot be read is not edited here: x leaves it out."
NOTHING_LEFT = "Something must be asked: this is all there is. d declines."


@dataclass(frozen=True, slots=True)
class _Edited:
    """What is being edited: a block of the request or of the answer; None: an answer that is new."""

    request: bool
    place: Place | None
    block: Block


class SamplingBoard(Vertical):
    """Shows ``sampling``; `blocks` is the answer as it would be sent."""

    DEFAULT_CSS = """
    SamplingBoard {
        height: 1fr;
        & > .prompt, & > .answer { height: 1fr; }
        & > StreamView, & > PartEditor, & > .answer { display: none; }
        &.-streaming > .prompt, &.-answer > .prompt { display: none; }
        &.-streaming > StreamView, &.-answer > .answer { display: block; }
        &.-editing > .prompt, &.-editing > .answer { display: none; }
        &.-editing > PartEditor { display: block; }
        &.-writing > .prompt { display: block; }
        &.-writing > PartEditor { min-height: 6; }
    }
    """

    @dataclass
    class Changed(Message):
        """Ask this instead."""

        edit: SamplingEdit

    class Rewritten(Message):
        """The answer was changed, or one stopped editing."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__()
        self.sampling = sampling
        self.blocks: tuple[Block, ...] = ()
        self.stream, self.editor = StreamView(), PartEditor()
        self._prompt, self._answer = Vertical(classes="prompt"), Vertical(classes="answer")
        self._asked, self._answered = PartList(), PartList()
        self._page = last_page(len(places(sampling)))
        self._shown: object = None
        self._edited: _Edited | None = None
        self._on_request = True

    def compose(self) -> ComposeResult:
        """One above the other; which are in view is a matter of classes."""
        yield self._prompt
        yield self.stream
        yield self._answer
        yield self.editor

    # What is in view.

    @property
    def editing(self) -> bool:
        """Do letters belong to a box?"""
        return self._edited is not None

    @property
    def on_request(self) -> bool:
        """Is what is edited, or else in view, what is asked?"""
        return self._edited.request if self._edited is not None else self._on_request

    @property
    def folded(self) -> bool:
        """Is not all of the conversation in view?"""
        return self._page.end - self._page.start < self._page.count

    @property
    def list(self) -> PartList:
        """The blocks in view."""
        return self._asked if self._on_request else self._answered

    def look(self, standing: SamplingScreenState) -> None:
        """Show what belongs to this, and go there."""
        answer = standing.step is SamplingStep.REVIEWING and not standing.question
        self.set_class(standing.step is SamplingStep.STREAMING and not standing.question, "-streaming")
        self.set_class(answer, "-answer")
        self.set_class(standing.editing, "-editing")
        self.set_class(standing.writing, "-writing")
        self._on_request = not answer
        if not standing.editing:
            (self.stream if self.has_class("-streaming") else self.list).focus()

    async def show_request(self) -> None:
        """What is asked, if that is another now."""
        key = self.sampling.request, self._page
        if self._shown == key:
            return
        if self._page.count != (count := len(places(self.sampling))):
            self._page = last_page(count)
        self._shown = self.sampling.request, self._page
        at, page = self._asked.place, self._page
        fresh = PartList(list(parts(self.sampling, page)), before=_earlier(page), after=_later(page))
        await self._replace(self._prompt, fresh)
        self._asked = fresh
        fresh.go_to_place(at)

    async def show_answer(self, error: McphostError | None) -> None:
        """What was answered, and what went wrong with it."""
        head: list[Widget] = []
        if error is not None:
            failure = failure_of_model(error)
            head = [Notice(failure.mark, failure.headline, failure.advice, failure.level)]
            head += [BlockView(quoted(quote.label, quote.text)) for quote in failure.quotes]
        nothing = "" if self.blocks or error else "The answer is empty: e lets you write one."
        at, fresh = self._answered.place, PartList(list(answer_parts(self.blocks)), before=nothing, head=head)
        await self._replace(self._answer, fresh)
        self._answered = fresh
        fresh.go_to_place(at)

    async def turn(self) -> None:
        """The page of the conversation before this one."""
        self._page = self._page.turned()
        await self.show_request()
        self._asked.focus()

    async def _replace(self, parent: Vertical, fresh: PartList) -> None:
        focused = parent.has_focus_within
        await parent.remove_children()
        await parent.mount(fresh)
        if focused:
            fresh.focus()

    def read_in_full(self, server: str) -> None:
        """The current block alone; ``server`` is safe to show."""
        from mcphost.tui.screens.picture import PictureScreen
        from mcphost.tui.screens.reader import ReaderScreen

        view = self.list.current
        if view is None or self.has_class("-streaming"):
            return
        if view.pixels is not None:
            self.app.push_screen(PictureScreen(view.block))
        elif view.block.text is not None:
            self.app.push_screen(ReaderScreen(f"{server} › {view.block.title}", view.block.text))

    # Edits.

    async def edit(self) -> str:
        """Edit the current block, or write an answer where there is none; why not, else."""
        place = self.list.place
        if place is None and self._on_request:
            return NOT_EDITED
        block = self._block(place) if place is not None else text_block("")
        draft = draft_of(block)
        if block is None or draft is None:
            return NOT_EDITED
        if len(draft.text) > EDITABLE:
            return f"{size_text(len(draft.text))} are too long to be edited here: x leaves it out."
        await self._begin(_Edited(self._on_request, place, block), draft, self._title(place))
        return ""

    async def write(self, typed: str | None = None) -> None:
        """Write the answer, or go on with what there is of one; ``typed``: with this."""
        at = next((at for at, block in enumerate(self.blocks) if isinstance(block, TextContent)), None)
        block = text_block("") if at is None else self.blocks[at]
        place = None if at is None else Place(0, at)
        draft = (draft_of(block) if typed is None else PartDraft(typed)) or PartDraft("")
        await self._begin(_Edited(False, place, block), draft, "Your answer", "What the model would say …")

    def leave_out(self) -> str:
        """Take the current block away; why not, else."""
        place = self.list.place
        if place is None:
            return ""
        if not self._on_request:
            self._set_block(place, None)
            return ""
        edit = without_block(self.sampling, place)
        if edit is None:
            return NOTHING_LEFT
        self.post_message(self.Changed(edit))
        return ""

    def take(self) -> None:
        """Take over what was edited, or say why it will not do."""
        edited = self._edited
        if edited is None:
            return
        text = self.editor.text
        try:
            block = rewritten(edited.block, text)
        except ValueError as problem:
            self.editor.say(f"✖ {show_line(str(problem), 200)}")
            return
        empty = isinstance(block, TextContent) and not block.text
        if edited.request and edited.place is not None:
            edit = (
                without_block(self.sampling, edited.place) if empty else with_block(self.sampling, edited.place, block)
            )
            if edit is None:
                self.editor.say(NOTHING_LEFT)
                return
            self.leave_editor()
            self.post_message(self.Changed(edit))
        else:
            self.leave_editor()
            self._set_block(edited.place, None if empty else block)

    def leave_editor(self) -> None:
        """Leave all as it was."""
        self._edited = None
        self.post_message(self.Rewritten())

    @property
    def draft(self) -> str | None:
        """What is being written and was not taken over yet: of an answer, for later."""
        edited = self._edited
        return (
            self.editor.text
            if edited is not None and not edited.request and isinstance(edited.block, TextContent)
            else None
        )

    async def _begin(self, edited: _Edited, draft: PartDraft, title: str, hint: str = "") -> None:
        self._edited = edited
        self.add_class("-editing")
        self.post_message(self.Rewritten())
        await self.editor.edit(title, draft, hint)

    def _set_block(self, place: Place | None, block: Block | None) -> None:
        blocks, new = list(self.blocks), [] if block is None else [block]
        start = len(blocks) if place is None else place.block
        blocks[start : start + (place is not None)] = new
        self.blocks = tuple(blocks)
        self.post_message(self.Rewritten())

    def _block(self, place: Place) -> Block | None:
        return block_at(self.sampling, place) if self._on_request else self.blocks[place.block]

    def _title(self, place: Place | None) -> str:
        current = self.list.current
        return "Your answer" if place is None or current is None else current.block.title


def _earlier(page: PartPage) -> str:
    if page.start:
        return f"… {page.start} earlier blocks of the conversation: h shows them. All of them are sent to the model."
    return ""


def _later(page: PartPage) -> str:
    return f"… {page.later} later ones: h goes on towards the first, then to the last." if page.later else ""
