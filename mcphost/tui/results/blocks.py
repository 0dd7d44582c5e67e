"""Content blocks as widgets: one frame each, in a scrolling column."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from mcphost.protocol.display import show
from mcphost.tui.kit.code_text import CodeView, colour, language_of
from mcphost.tui.kit.facts_table import FactsTable, fact
from mcphost.tui.kit.hex_view import HexView
from mcphost.tui.kit.json_text import json_spans
from mcphost.tui.kit.markdown import AT_ONCE, MarkdownView, render_markdown
from mcphost.tui.kit.messages import OpenRequested
from mcphost.tui.kit.text_view import TextView
from mcphost.tui.results.content import Block, BlockPresentation, Shown, best_presentation, cut, pretty
from mcphost.tui.results.links import LinksScreen, links_in
from mcphost.tui.results.picture_view import PictureView, unavailable_reason
from mcphost.tui.results.pictures import NO_PICTURES
from mcphost.tui.textual_private.corrections import ScrolledColumn

WIDEST_FIELD: Final = 24
"""Cells of the names in a table of fields."""


class BlockView(Vertical):
    """A block in its frame. ``presentation`` is its current presentation."""

    DEFAULT_CSS = """
    BlockView {
        height: auto; border: round $border-blurred; border-title-color: $foreground-muted; padding: 0 1;
        border-title-color: $foreground-muted; border-subtitle-color: $foreground-muted;
        &.-current { border: round $border; border-title-color: $foreground; }
        & > .facts { width: 1fr; height: auto; }
    }
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block
        self.presentation, self._value = best_presentation(block)
        self._best = self.presentation
        self._rest = ""
        self._undrawn = ""
        self._moves = False

    def compose(self) -> ComposeResult:
        yield from self._body()

    def on_mount(self) -> None:
        self.show_current(False)
        self._render_if_long()

    def show_current(self, current: bool) -> None:
        """Mark it as the block that keys act on, not by colour alone."""
        self.set_class(current, "-current")
        presentation = f" · {self.presentation.value}" if self.presentation is not BlockPresentation.PLAIN else ""
        presentation += " · truncated" if self._rest else ""
        self.border_title = Content(f"{'▸ ' if current else ''}{self.block.title or self.block.kind}{presentation}")
        self.border_subtitle = Content(self._footnote()) if self._footnote() else None

    def toggle(self) -> None:
        """Switch between the text as sent and its best presentation; Markdown, if that is the text as sent."""
        other = BlockPresentation.MARKDOWN if self.block.data is None else BlockPresentation.HEX
        best = other if self._best is BlockPresentation.PLAIN else self._best
        self.present_as(best if self.presentation is BlockPresentation.PLAIN else BlockPresentation.PLAIN)

    def present_as(self, presentation: BlockPresentation) -> None:
        if not _has_presentations(self.block) or presentation is self.presentation:
            return
        self.presentation = presentation
        self._replace(*self._body())
        self._render_if_long()

    def _body(self) -> Iterator[Widget]:
        if self.presentation is BlockPresentation.HEX:
            yield HexView(self.block.content()[0])
            return
        if self.block.text is None or self.block.kind == "facts":
            yield from self._described()
            return
        if self.presentation is BlockPresentation.MARKDOWN and len(self.block.text) <= AT_ONCE:
            lines = render_markdown(show(self.block.text, joiners=True))
            if lines is not None:
                yield MarkdownView(lines)
                return
            self.presentation = BlockPresentation.PLAIN
        shown = self._shown(self.block.text)
        self._rest = shown.rest
        yield TextView(shown.lines, spans=json_spans if self.presentation is BlockPresentation.JSON else None, fit=True)

    @property
    def pixels(self) -> tuple[int, int] | None:
        """The size of an image that this terminal can show."""
        if self._undrawn or self.block.pixels is None:
            return None
        return None if unavailable_reason(self.app) else self.block.pixels

    def _described(self) -> Iterator[Widget]:
        """Draw an image if possible, else list its facts."""
        block, pixels = self.block, self.pixels
        if block.kind == "fields":
            yield FactsTable((fact(name, value) for name, value in block.facts), labels=_label_width(block))
            return
        if pixels is None or block.data is None:
            problem = self._undrawn or (unavailable_reason(self.app) if block.pixels else "")
            yield Static(_facts(block, f"Not drawn: {problem}" if problem else ""), classes="facts", markup=False)
            return
        if block.mismatch:
            yield Static(Content.assemble(("but  ", "dim"), block.mismatch), classes="facts", markup=False)
        yield PictureView(block.data, pixels)
        yield Static("Pictures are off: i turns them on.", classes="instead", markup=False)

    def on_picture_view_ended(self, event: PictureView.Ended) -> None:
        event.stop()
        self._undrawn = f"{event.problem}." if event.problem else ""
        self._moves = event.drawing is not None and event.drawing.moves
        if event.problem:
            self._replace(*self._body())
        self.show_current(self.has_class("-current"))
        self.refresh_bindings()

    def _render_if_long(self) -> None:
        if self.presentation is BlockPresentation.CODE:
            self.run_worker(self._colour_later(self.block.text or ""), exclusive=True)
        elif self.presentation is BlockPresentation.MARKDOWN and len(self.block.text or "") > AT_ONCE:
            self.run_worker(self._render_later(self.block.text or ""), exclusive=True)

    async def _colour_later(self, text: str) -> None:
        """Replace plain code by coloured code."""
        language = language_of(self.block.mime_type, self.block.uri) or ""
        code = await asyncio.to_thread(lambda: colour(show(text, joiners=True), language))
        if code is not None and self.presentation is BlockPresentation.CODE and self.is_attached:
            self._rest = ""
            self._replace(CodeView(code))

    async def _render_later(self, text: str) -> None:
        """Replace the text as sent by rendered Markdown."""
        lines = await asyncio.to_thread(lambda: render_markdown(show(text, joiners=True)))
        if self.presentation is not BlockPresentation.MARKDOWN or not self.is_attached:
            return
        if lines is None:
            self.presentation = BlockPresentation.PLAIN
            self.show_current(self.has_class("-current"))
        else:
            self._rest = ""
            self._replace(MarkdownView(lines))

    def _replace(self, *widgets: Widget) -> None:
        self.remove_children()
        self.mount_all(widgets)
        self.show_current(self.has_class("-current"))

    def _shown(self, text: str) -> Shown:
        return (
            pretty(self._value)
            if self.presentation is BlockPresentation.JSON
            else cut(text, self.block.room, self.block.lines)
        )

    def _footnote(self) -> str:
        if self.block.link is not None:
            return "enter opens it"
        if self._rest:
            return f"… {self._rest}: w saves all of it"
        if self.block.data is not None:
            larger = ("first frame only · enter enlarges · " if self._moves else "enter enlarges · ") * bool(
                self.pixels
            )
            return f"{larger}m bytes" if self.presentation is BlockPresentation.PLAIN else "m back"
        if self._best is BlockPresentation.PLAIN or self.block.kind == "arguments":
            return ""
        return "m source" if self.presentation is not BlockPresentation.PLAIN else f"source · m {self._best.value}"


class BlockList(ScrolledColumn):
    """Blocks below each other, with notices of mcphost between them. The arrows scroll, and go on to the next block."""

    DEFAULT_CSS = """
    BlockList { height: 1fr; scrollbar-size-vertical: 1; }
    BlockList > Static, BlockList > FactsTable { width: 1fr; height: auto; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter", "follow", "open link", id="block.follow", tooltip="Read the resource that this link points to"
        ),
        Binding(
            "enter", "enlarge", "enlarge", id="block.enlarge", tooltip="Show the picture as large as the screen allows"
        ),
        Binding("o", "open", "open", id="block.open", tooltip="Open it in a desktop program, after asking"),
        Binding(
            "i",
            "toggle_pictures",
            "pictures",
            id="block.pictures",
            show=False,
            tooltip="Turn pictures on or off",
        ),
        Binding("l", "links", "links", id="block.links", tooltip="Read a resource that this text links to"),
        Binding(
            "m", "toggle_look", "source", id="block.look", tooltip="Switch between the source and the rendered view"
        ),
    ]

    class LinkFollowed(Message):
        """The user followed the link of a block; ``size`` in bytes, if the server said so."""

        def __init__(self, uri: str, size: int | None) -> None:
            self.uri, self.size = uri, size
            super().__init__()

    def __init__(self, *widgets: Widget) -> None:
        super().__init__(*widgets)
        views = (widget for widget in widgets if isinstance(widget, BlockView))
        self._blocks = [view for view in views if view.block.kind != "fields"]
        self._at = 0

    @property
    def current(self) -> BlockView | None:
        """The block that keys act on."""
        return self._blocks[self._at] if self._blocks else None

    @property
    def blocks(self) -> tuple[BlockView, ...]:
        return tuple(self._blocks)

    def on_mount(self) -> None:
        self._mark()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        block = self.current
        match action:
            case "follow":
                return block is not None and block.block.link is not None
            case "links":
                return block is not None and bool(links_in(block.block.text or "", block.block.uri))
            case "enlarge":
                return block is not None and block.pixels is not None
            case "toggle_pictures":
                return any(each.pixels for each in self._blocks)
            case "open":
                return block is not None and bool(block.block.opens_as)
            case "toggle_look":
                return block is not None and _has_presentations(block.block)
        return True

    def action_scroll_down(self) -> None:
        """Scroll to the end of the current block, then go to the next."""
        block = self.current
        if block is None or block.virtual_region.bottom > self.scroll_offset.y + self.size.height:
            self.scroll_relative(y=1, animate=False)
        else:
            self._go_to(self._at + 1)

    def action_scroll_up(self) -> None:
        """Scroll to the start of the current block, then go to the previous."""
        block = self.current
        if block is None or self._at == 0 or block.virtual_region.y < self.scroll_offset.y:
            self.scroll_relative(y=-1, animate=False)
        else:
            self._go_to(self._at - 1)

    def action_toggle_look(self) -> None:
        if self.current is not None:
            self.current.toggle()

    def action_follow(self) -> None:
        if self.current is not None and self.current.block.link is not None:
            self.post_message(self.LinkFollowed(self.current.block.link, self.current.block.link_size))

    def action_links(self) -> None:
        if self.current is not None:
            block = self.current.block
            self.app.push_screen(LinksScreen(links_in(block.text or "", block.uri)), self._follow)

    def _follow(self, uri: str | None) -> None:
        if uri is not None:
            self.post_message(self.LinkFollowed(uri, None))

    def action_enlarge(self) -> None:
        from mcphost.tui.results.picture_view import PictureScreen

        if self.current is not None:
            self.app.push_screen(PictureScreen(self.current.block))

    def action_open(self) -> None:
        if self.current is not None:
            self.post_message(OpenRequested(self.current.block))

    def action_toggle_pictures(self) -> None:
        """Draw or only name images, in the whole app."""
        self.app.toggle_class(NO_PICTURES)

    def _go_to(self, number: int) -> None:
        if number < len(self._blocks):
            self._at = number
            self._mark()
            self.scroll_to_widget(self._blocks[number], animate=False)
            self.refresh_bindings()

    def _mark(self) -> None:
        for number, block in enumerate(self._blocks):
            block.show_current(number == self._at and len(self._blocks) > 1)


def _has_presentations(block: Block) -> bool:
    return block.text is not None or block.data is not None


def _label_width(block: Block) -> int:
    return min(WIDEST_FIELD, max((cell_len(name) for name, _ in block.facts), default=0)) + 2


def _facts(block: Block, problem: str = "") -> Content:
    doubts = (("but", block.mismatch), ("", problem))
    facts = (*((name, value) for name, value in doubts if value), *block.facts)
    width = max((len(name) for name, _ in facts), default=0)
    lines = (Content.assemble((name.ljust(width + 2 if width else 0), "dim"), value) for name, value in facts)
    return Content("\n").join(list(lines))
