"""The contents of a resource or a skill, or the messages of a prompt, or the failure to read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from mcphost.errors import Declined, McphostError, ServerError, SkillRefused
from mcphost.host.failure_advice import advice_on
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line, size_text
from mcphost.protocol.models.content import EmbeddedResource, ResourceContents, UnreadableContent
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.prompts import GetPromptResult, PromptMessage
from mcphost.protocol.models.resources import ReadResourceResult
from mcphost.tui.kit.clock import freshness_text
from mcphost.tui.kit.export import file_name, save_as
from mcphost.tui.kit.facts_table import Fact, FactsTable
from mcphost.tui.kit.messages import PagerRequested, ResourceLinkFollowed
from mcphost.tui.kit.search import SearchArea
from mcphost.tui.results.blocks import BlockList, BlockView
from mcphost.tui.results.content import BLOCKS, Block, describe, json_size, quoted, with_room
from mcphost.tui.results.failure import code_text, refusal_of
from mcphost.tui.results.view import Notice

CHARACTERS: Final = 2_000_000
"""Characters of an answer; resources are longer than tool results."""
LINES: Final = 20_000


@dataclass(frozen=True, slots=True)
class PaneReading:
    """A request and its answer; ``blocks`` and ``error`` are None while it is in progress."""

    server: str
    name: str
    """The URI or the name of the prompt, as it came."""
    blocks: tuple[Block, ...] | None = None
    error: McphostError | None = None
    seconds: float = 0.0
    size: int = 0
    remark: str = ""
    """The server's description of the prompt."""
    unread: str = ""
    """Why nothing is shown although the answer holds something."""
    kept: Freshness | None = None
    """The freshness of a resource from the cache; None if it came from the server."""
    facts: tuple[Fact, ...] = ()
    """Facts of mcphost, above all else."""
    listed: bool = False
    """True if the blocks are from a list: nothing was read for them."""

    @property
    def key(self) -> tuple[str, str]:
        return self.server, self.name

    @property
    def is_read(self) -> bool:
        """True if there is an answer that shows what was asked for."""
        return self.blocks is not None and self.error is None and not self.listed

    def with_resource(self, result: ReadResourceResult, seconds: float) -> PaneReading:
        blocks = tuple(_contents(each, self.name, len(result.contents)) for each in result.contents)
        size, fresh = json_size([dict(result.raw)]), result.freshness
        kept = fresh if fresh is not None and fresh.cached else None
        return replace(self, blocks=blocks, error=None, seconds=seconds, size=size, kept=kept, unread=result.unread)

    def with_prompt(self, result: GetPromptResult, seconds: float) -> PaneReading:
        blocks = tuple(map(_message, result.messages))
        size, remark = json_size([dict(result.raw)]), result.description or ""
        return replace(self, blocks=blocks, error=None, seconds=seconds, size=size, remark=remark, unread=result.unread)

    def with_error(self, error: McphostError, seconds: float) -> PaneReading:
        return replace(self, error=error, seconds=seconds)


class ReadingView(Vertical):
    """``word`` is the title, ``hint`` is shown while there is no reading."""

    HELP = "The server's answer."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "copy", id="reading.copy", tooltip="Copy this block"),
        Binding("w", "save", "save", id="reading.save", tooltip="Save this block to a file"),
        Binding("P", "page", "pager", show=False, id="reading.page", tooltip="Read this block in your $PAGER"),
    ]
    DEFAULT_CSS = """
    ReadingView {
        border: round $border-blurred; border-title-color: $foreground-muted; height: 1fr;
        border-subtitle-color: $foreground-muted;
        &:focus-within { border: round $border; border-title-color: $text-accent; }
        & .empty { padding: 1 2; color: $foreground-muted; height: 1fr; }
    }
    """

    def __init__(self, word: str, hint: str) -> None:
        super().__init__()
        self.reading: PaneReading | None = None
        self.notes: tuple[str, ...] = ()
        self._word, self._hint = word, hint
        self._area = SearchArea()
        self._body: Widget | None = None

    def compose(self) -> ComposeResult:
        yield self._area

    def on_mount(self) -> None:
        self._rebuild()

    def show_reading(self, reading: PaneReading, *notes: str, offset: int = 0) -> None:
        """Show this, scrolled to line ``offset``; ``notes`` are ours, for the title.

        An update of the shown reading keeps the scroll position.
        """
        if self.reading is not None and self.reading.key == reading.key:
            offset = self.offset_shown
        self.reading, self.notes = reading, notes
        if self.is_mounted:
            self._rebuild(offset)

    @property
    def offset_shown(self) -> int:
        """The first line in view."""
        return self._body.scroll_offset.y if self._body is not None else 0

    def show_notes(self, *notes: str) -> None:
        """Change the notes in the title."""
        self.notes = notes
        self._update_title()

    def focus(self, scroll_visible: bool = True, from_app_focus: bool = False) -> ReadingView:
        if self._body is not None and self._body.is_attached:
            # at once: an answer from the cache comes before a focus that is pending, and takes the body's place
            self.screen.set_focus(self._body, scroll_visible)
        return self

    @property
    def current(self) -> Block | None:
        """The block that keys act on."""
        body = self._body
        return body.current.block if isinstance(body, BlockList) and body.current else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.current is not None if action in ("copy", "save", "page") else True

    def action_copy(self) -> None:
        if self.current is not None:
            self.app.copy_to_clipboard(self.current.copied)

    def action_page(self) -> None:
        if self.current is not None:
            self.post_message(PagerRequested(self.current.copied))

    def action_save(self) -> None:
        if self.current is not None and self.reading is not None:
            content, mime_type = self.current.content()
            name = file_name(self.reading.server, self.reading.name[-40:], datetime.now(), mime_type)
            save_as(self.app, name, content)

    def on_block_list_link_followed(self, event: BlockList.LinkFollowed) -> None:
        event.stop()
        if self.reading is not None:
            self.post_message(ResourceLinkFollowed(self.reading.server, event.uri, event.size))

    def on_resize(self) -> None:
        self._update_title()

    def _rebuild(self, offset: int = 0) -> None:
        if not self._area.is_attached:
            return  # the app exits
        before, body = self._body, self._new_body()
        self._area.forget_search()
        self._body = body
        self._area.mount(body, before=self._area.bar)
        self._update_title()
        if before is not None:
            # at once: another widget that Textual focuses may ask a server for suggestions
            if self.screen.focused is before:  # ``has_focus`` is set by an event that may be pending
                self.screen.set_focus(body)
            before.remove()
        if offset:
            self.call_after_refresh(body.scroll_to, y=offset, animate=False)
        self.refresh_bindings()

    def _new_body(self) -> Widget:
        if self.reading is None:
            return Static(self._hint, classes="empty", markup=False)
        return BlockList(*_widgets(self.reading))

    def _update_title(self) -> None:
        reading = self.reading
        if reading is None:
            self.border_title = self._word
            return
        names, state = Content(f"{reading.server} › {show_line(reading.name, 300)}"), list(_state(reading))
        room = self.size.width - 4 - len(" · ".join([self._word, "", *state]))
        shown = names.truncate(max(12, room), ellipsis=True).plain
        self.border_title = Content(" · ".join([self._word, shown, *state]))
        self.border_subtitle = Content(" · ".join(self.notes)) if self.notes else None


def kept_words(kept: Freshness, now: float, clock: datetime) -> str:
    """Such as ``cached 10:41:20, fresh until 10:42:20``, which fits beside a list; see `freshness_text`."""
    return f"cached {freshness_text(kept, now, clock)}"


def _state(reading: PaneReading) -> Iterator[str]:
    if reading.error is not None:
        yield _failed(reading.error)
    elif reading.blocks is None:
        yield "◐ reading"
        return
    if reading.listed:
        yield "○ not read"
        return
    yield duration_text(reading.seconds)
    if reading.blocks is not None and reading.error is None:
        yield size_text(reading.size)


def _failed(error: McphostError) -> str:
    if isinstance(error, Declined):
        return "◌ not read"
    return "✖ refused" if isinstance(error, SkillRefused) else "✖ failed"


def _widgets(reading: PaneReading) -> Iterator[Widget]:
    if reading.facts:
        yield FactsTable(reading.facts)
    if reading.error is not None:
        yield from _failure(reading.error, reading.server)
    elif reading.blocks is None:
        yield Static(f"◐ waiting for {reading.server} …  esc goes back; the answer will appear here", markup=False)
    if reading.remark:
        yield BlockView(quoted(f"{reading.server} says", reading.remark))
    blocks = reading.blocks or ()
    yield from map(BlockView, with_room(blocks[:BLOCKS], CHARACTERS, LINES))
    if len(blocks) > BLOCKS:
        yield Static(f"… {len(blocks) - BLOCKS} more are not shown", markup=False)
    if reading.blocks == ():
        if reading.unread:
            yield Notice("▲", show_line(f"Nothing to show: {reading.unread}", 300), "f4 shows the traffic.", "warning")
            return
        yield Static("No content. The server sent an empty answer.", markup=False)


def _failure(error: McphostError, server: str) -> Iterator[Widget]:
    if isinstance(error, Declined):
        yield Notice("◌", show_line(str(error), 500), "Press enter in the list to try again.", "calm")
    elif isinstance(error, SkillRefused):
        yield Notice("✖", show_line(str(error), 800), "Nothing of it is shown. r gets the entry again.", "error")
    elif (advice := advice_on(error, server)) is not None:
        yield Notice("✖", advice.headline, advice.next_step, "error")
        if not isinstance(error, ServerError):
            yield BlockView(quoted("why", str(error)))
    elif isinstance(error, ServerError):
        yield Notice("✖", refusal_of(error), f"{code_text(error)}.", "error")
    else:
        yield Notice("✖", show_line(str(error), 500), "f3 shows the logs.", "error")
    if isinstance(error, ServerError):
        yield BlockView(quoted(f"{server} says", error.message or "(nothing)"))


def _contents(contents: ResourceContents | UnreadableContent, uri: str, count: int) -> Block:
    if isinstance(contents, UnreadableContent):
        return describe(contents)
    block = describe(EmbeddedResource(type="resource", resource=contents))
    own = [show_line(contents.uri, 80)] if contents.uri and (count > 1 or contents.uri != uri) else []
    parts = [part for part in block.title.split(" · ")[2 if contents.uri else 1 :] if part]
    return replace(block, title=" · ".join([*own, *parts]))


def _message(message: PromptMessage) -> Block:
    block = describe(message.content)
    return replace(block, title=f"{show_line(message.role, 20)} · {block.title}")
