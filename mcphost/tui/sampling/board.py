"""The parts of a sampling request and its answer, to be read and edited in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from mcphost.errors import McphostError
from mcphost.host.sampling.request import Sampling, SamplingEdit
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line, size_text
from mcphost.protocol.models.content import TextContent
from mcphost.protocol.models.sampling import Block, text_block
from mcphost.tui.forms.text_boxes import JsonArea, SafeArea, conceal, escape, reveal
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.results.blocks import BlockList, BlockView
from mcphost.tui.results.content import quoted, with_room
from mcphost.tui.results.view import Notice
from mcphost.tui.sampling.parts import (
    EDITABLE,
    Part,
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
from mcphost.tui.sampling.steps import SamplingScreenState, SamplingStep, failure_of_model


class PartView(BlockView):
    """A part in its frame."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.shown)
        self.part = part

    @property
    def cut(self) -> bool:
        """Is only the beginning shown?"""
        return bool(self._rest)

    def _footnote(self) -> str:
        if self._rest:
            return f"… {self._rest} — f shows all"
        return ""


class PartList(BlockList, inherit_bindings=False):
    """Parts, with notices of ours between them. Letters are the screen's keys."""

    HELP = "The arrows scroll and go from block to block."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "up", id="part.up", show=False, tooltip="Scroll, or to the block above"),
        Binding("down,j", "scroll_down", "down", id="part.down", show=False, tooltip="Scroll, or to the block below"),
        Binding("pageup", "page_up", "page up", id="part.page-up", show=False, tooltip="One page up"),
        Binding("pagedown,space", "page_down", "page down", id="part.page-down", show=False, tooltip="One page down"),
        Binding("home", "scroll_home", "start", id="part.home", show=False, tooltip="To the start"),
        Binding("end", "scroll_end", "end", id="part.end", show=False, tooltip="To the end"),
    ]

    def __init__(
        self, parts: Sequence[Part] = (), before: str = "", after: str = "", head: Sequence[Widget] = ()
    ) -> None:
        shown = with_room(part.shown for part in parts)
        views = [PartView(Part(part.place, each)) for part, each in zip(parts, shown, strict=True)]
        first = sum(part.place.message is None for part in parts)  # a system prompt comes before the folded parts
        super().__init__(*head, *views[:first], *_folds(before), *views[first:], *_folds(after))
        self._blocks = list[BlockView](views)
        self._noticed = False, 0

    class Moved(Message):
        """Whether there is more below has changed, or how high the parts are."""

    @property
    def below(self) -> bool:
        """Is there more below the view?"""
        return self.scroll_offset.y < self.max_scroll_y

    @property
    def needed(self) -> int:
        """The rows of all parts, whether in view or not."""
        return self.children[-1].virtual_region.bottom if self.children else 1

    def on_mount(self) -> None:
        for name in ("scroll_y", "virtual_size"):
            self.watch(self, name, self._notice, init=False)

    def on_resize(self) -> None:
        self._notice()

    def _notice(self) -> None:
        noticed = self.below, self.needed
        if noticed != self._noticed:
            self._noticed = noticed
            self.post_message(self.Moved())

    @property
    def place(self) -> Place | None:
        """The place of the current part."""
        return self.current.part.place if isinstance(self.current, PartView) else None

    @property
    def cut(self) -> bool:
        """Is only the beginning of some part shown?"""
        return any(view.cut for view in self.blocks if isinstance(view, PartView))

    def go_to_place(self, place: Place | None) -> None:
        """Select the part from this place, if it still exists."""
        for number, view in enumerate(self.blocks):
            if isinstance(view, PartView) and view.part.place == place:
                self._go_to(number)
                return

    def action_page_down(self) -> None:
        """Scroll a page down; a visible part becomes the current one."""
        self._page(1)

    def action_page_up(self) -> None:
        self._page(-1)

    def _page(self, direction: int) -> None:
        step = max(1, self.size.height - 1)
        self.scroll_relative(y=direction * step, animate=False)
        top = min(max(0, self.scroll_offset.y + direction * step), self.max_scroll_y)
        for number, view in enumerate(self.blocks):
            if view.virtual_region.bottom > top:
                self._at = number
                self._mark()
                return


def _folds(words: str) -> list[Static]:
    return [Static(Content.styled(words, "$foreground-muted"), markup=False)] if words else []


class PartEditor(Vertical):
    """Empty until `edit` is called; `text` is its content."""

    DEFAULT_CSS = """
    PartEditor {
        height: 1fr;
        & > TextArea, & > TextArea:focus { height: 1fr; border: round $border; padding: 0 1; background: $surface; }
        & > .problem { height: auto; max-height: 3; color: $text-error; padding: 0 1; display: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._area: SafeArea = SafeArea()
        self._problem = Static(classes="problem", markup=False)
        self._before = ""

    def compose(self) -> ComposeResult:
        yield self._problem

    async def edit(self, title: str, draft: PartDraft, hint: str = "") -> None:
        """Edit this draft; ``title`` and the placeholder ``hint`` are safe to show."""
        self.show_problem("")
        await self.query(SafeArea).remove()
        kind = JsonArea if draft.is_json else SafeArea
        self._before = escape(draft.text) if draft.is_json else conceal(draft.text, lines=True)
        self._area = kind(self._before, compact=False, highlight_cursor_line=False, placeholder=hint)
        self._area.cursor_blink = False
        self._area.border_title = Content(title)
        await self.mount(self._area, before=self._problem)
        self._area.move_cursor(self._area.document.end)
        self._area.focus()

    @property
    def text(self) -> str:
        """The text with its marks undone."""
        return self._area.text if isinstance(self._area, JsonArea) else reveal(self._area.text)

    @property
    def changed(self) -> bool:
        """Does the text differ from the draft?"""
        return self._area.text != self._before

    def show_problem(self, problem: str) -> None:
        """Show why the text is invalid; ``""`` hides it."""
        self._problem.update(Content(problem))
        self._problem.display = bool(problem)


GROWING: Final = 14
"""Rows for what is written or streamed, whose end is not known."""

NOT_EDITED = "Only text can be edited here: x leaves this block out."
NOTHING_LEFT = "This is the only block of the prompt and cannot be left out. n declines."


@dataclass(frozen=True, slots=True)
class _Edited:
    """What is being edited: a block of the request or of the answer; without a place, a new answer."""

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
        &.-writing > .prompt { display: block; height: auto; max-height: 50%; }
        &.-writing > .prompt > PartList { height: auto; }
        &.-writing > PartEditor { min-height: 6; }
    }
    """

    @dataclass
    class Changed(Message):
        """The user edited the request."""

        edit: SamplingEdit

    class Rewritten(Message):
        """The user edited the answer, or left the editor."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__()
        self.sampling = sampling
        self.blocks: tuple[Block, ...] = ()
        self.stream, self.editor = StreamView(), PartEditor()
        self._prompt, self._answer = Vertical(classes="prompt"), Vertical(classes="answer")
        self._request_parts, self._answer_parts = PartList(), PartList()
        self._page = last_page(len(places(sampling)))
        self._shown: object = None
        self._edited: _Edited | None = None
        self._on_request = True

    def compose(self) -> ComposeResult:
        yield self._prompt
        yield self.stream
        yield self._answer
        yield self.editor

    # What is in view.

    @property
    def editing(self) -> bool:
        """Does the editor have the focus?"""
        return self._edited is not None

    @property
    def on_request(self) -> bool:
        """Is the request being edited or in view?"""
        return self._edited.request if self._edited is not None else self._on_request

    @property
    def folded(self) -> bool:
        """Is a part of the conversation not in view?"""
        return self._page.end - self._page.start < self._page.count

    @property
    def list(self) -> PartList:
        """The parts in view."""
        return self._request_parts if self._on_request else self._answer_parts

    @property
    def view(self) -> Widget:
        """What is in view to be read."""
        return self.stream if self.has_class("-streaming") else self.list

    @property
    def needed(self) -> int:
        """The rows to show all that is in view."""
        return GROWING if self.growing else self.list.needed

    @property
    def growing(self) -> bool:
        """Is something written or streamed, so that nobody knows how many rows it will need?"""
        return self.editing or self.view is self.stream

    def can_do(self, action: str) -> bool:
        """Can this action of `PartList` act on the current part?"""
        return not self.editing and self.view is self.list and bool(self.list.check_action(action, ()))

    def page(self, direction: int) -> None:
        """Scroll what is in view by a page."""
        if self.view is self.list:
            (self.list.action_page_down if direction > 0 else self.list.action_page_up)()
        else:
            self.stream.scroll_relative(y=direction * max(1, self.stream.size.height - 1), animate=False)

    def show_state(self, state: SamplingScreenState) -> None:
        """Show what belongs to this state."""
        answer = state.step is SamplingStep.REVIEWING and not state.question
        self.set_class(state.step is SamplingStep.STREAMING and not state.question, "-streaming")
        self.set_class(answer, "-answer")
        self.set_class(state.editing, "-editing")
        self.set_class(state.writing, "-writing")
        self._on_request = not answer

    async def show_request(self) -> None:
        """Show the request, if it changed."""
        key = self.sampling.request, self._page
        if self._shown == key:
            return
        if self._page.count != (count := len(places(self.sampling))):
            self._page = last_page(count)
        self._shown = self.sampling.request, self._page
        at, page = self._request_parts.place, self._page
        fresh = PartList(list(parts(self.sampling, page)), before=_earlier(page), after=_later(page))
        await self._replace(self._prompt, fresh)
        self._request_parts = fresh
        fresh.go_to_place(at)

    async def show_answer(self, error: McphostError | None) -> None:
        """Show the answer, and what went wrong with it."""
        head: list[Widget] = []
        if error is not None:
            failure = failure_of_model(error)
            head = [Notice(failure.mark, failure.headline, failure.advice, failure.level)]
            head += [BlockView(quoted(quote.label, quote.text)) for quote in failure.quotes]
        nothing = "" if self.blocks or error else "The answer is empty: e writes one."
        at, fresh = self._answer_parts.place, PartList(list(answer_parts(self.blocks)), before=nothing, head=head)
        await self._replace(self._answer, fresh)
        self._answer_parts = fresh
        fresh.go_to_place(at)

    async def turn(self) -> None:
        """Show the previous page of the conversation."""
        self._page = self._page.turned()
        await self.show_request()
        self._request_parts.focus()

    async def _replace(self, parent: Vertical, fresh: PartList) -> None:
        focused = parent.has_focus_within
        await parent.remove_children()
        await parent.mount(fresh)
        if focused:
            fresh.focus()

    def read_in_full(self, server: str) -> None:
        """Open the current part alone; ``server`` is safe to show."""
        from mcphost.tui.kit.reader import ReaderScreen
        from mcphost.tui.results.picture_view import PictureScreen

        view = self.list.current
        if view is None or self.has_class("-streaming"):
            return
        if view.pixels is not None:
            self.app.push_screen(PictureScreen(view.block))
        elif view.block.text is not None:
            self.app.push_screen(ReaderScreen(f"{server} › {view.block.title}", view.block.text))

    # Edits.

    async def edit(self) -> str:
        """Edit the current part, or write an answer if there is none; return why not, else ""."""
        place = self.list.place
        if place is None and self._on_request:
            return NOT_EDITED
        block = self._block(place) if place is not None else text_block("")
        draft = draft_of(block)
        if block is None or draft is None:
            return NOT_EDITED
        if len(draft.text) > EDITABLE:
            return f"{size_text(len(draft.text))} is too long to be edited here: x leaves it out."
        await self._begin(_Edited(self._on_request, place, block), draft, self._title(place))
        return ""

    async def write(self, typed: str | None = None) -> None:
        """Write the answer, starting from what there is of one, or from ``typed``."""
        at = next((at for at, block in enumerate(self.blocks) if isinstance(block, TextContent)), None)
        block = text_block("") if at is None else self.blocks[at]
        place = None if at is None else Place(0, at)
        draft = (draft_of(block) if typed is None else PartDraft(typed)) or PartDraft("")
        await self._begin(_Edited(False, place, block), draft, "Your answer", "What the model would say…")

    def leave_out(self) -> str:
        """Remove the current part; return why not, else ""."""
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

    def accept(self) -> None:
        """Accept what was edited, or say why it is invalid."""
        edited = self._edited
        if edited is None:
            return
        text = self.editor.text
        try:
            block = rewritten(edited.block, text)
        except ValueError as problem:
            self.editor.show_problem(f"✖ {show_line(str(problem), 200)}")
            return
        empty = isinstance(block, TextContent) and not block.text
        if edited.request and edited.place is not None:
            edit = (
                without_block(self.sampling, edited.place) if empty else with_block(self.sampling, edited.place, block)
            )
            if edit is None:
                self.editor.show_problem(NOTHING_LEFT)
                return
            self.leave_editor()
            self.post_message(self.Changed(edit))
        else:
            self.leave_editor()
            self._set_block(edited.place, None if empty else block)

    def leave_editor(self) -> None:
        """Close the editor without a change."""
        self._edited = None
        self.post_message(self.Rewritten())

    @property
    def draft(self) -> str | None:
        """The text of an unfinished answer."""
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
        return f"… {page.start} earlier blocks: h shows them. The model gets all of them."
    return ""


def _later(page: PartPage) -> str:
    return f"… {page.later} later blocks: h goes on to the first, then to the last." if page.later else ""


WINDOW: Final = 20_000
"""Characters that are shown while the answer grows; up to twice as many, so that each update costs the same."""


class StreamView(TextView):
    """Shows the end of an answer while it streams, until the user scrolls back."""

    DEFAULT_CSS = """
    StreamView { height: 1fr; border: round $border-blurred; border-title-color: $foreground-muted; }
    StreamView:focus { border: round $border; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._start = 0
        self._shown = ""
        self._follows = True

    def show_sampling(self, sampling: Sampling) -> None:
        """Show the answer so far; before it starts, the model's thoughts."""
        thinks = not sampling.text and bool(sampling.thought)
        self.border_title = "The model's thoughts (not sent)" if thinks else "The answer so far"
        self.show_text(sampling.thought if thinks else sampling.text)

    @property
    def following(self) -> bool:
        return self._follows

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stop following when the user scrolls back; follow again at the end."""
        super().watch_scroll_y(old_value, new_value)
        if new_value < min(old_value, self.max_scroll_y):
            self._follows = False
        elif new_value >= self.max_scroll_y:
            self._follows = True

    def show_text(self, text: str) -> None:
        """Show this text; unless it continues the shown one, it replaces it."""
        if text == self._shown:
            return
        if len(text) < self._start or not text.startswith(self._shown[: self._start]):
            self._start = 0
        self._shown = text
        if len(text) - self._start > 2 * WINDOW:
            self._start = _line_start(text, len(text) - WINDOW)
        lines = show(text[self._start :], joiners=True).split("\n")
        if self._start:
            lines.insert(0, f"⟨the first {size_text(self._start)} are shown when it is done⟩")
        self.load(lines, home=False)
        if self._follows:
            self.scroll_end(animate=False)


def _line_start(text: str, at: int) -> int:
    """The start of a line at or soon after ``at``."""
    found = text.find("\n", at, at + WINDOW // 2)
    return at if found < 0 else found + 1
