"""The base of the panes for resources, prompts and skills: a list and what was read, side by side or one at a time."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import ClassVar, Generic, Literal, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.host import Host
from mcphost.tui.catalog.list import PREVIEW, CatalogEntry, CatalogList
from mcphost.tui.kit.messages import RoomChanged
from mcphost.tui.kit.rows import RowList
from mcphost.tui.results.reading_pane import PaneReading, ReadingView

Step = Literal["list", "form", "reading"]

Answer = TypeVar("Answer")
Entry = TypeVar("Entry", bound=CatalogEntry)


class CatalogPane(Container, Generic[Entry]):
    """On a small screen one part at a time: enter goes on, esc goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "back", "back", id="offers.back", tooltip="Back from the answer to the form, then to the list"
        ),
    ]

    DEFAULT_CSS = """
    CatalogPane {
        layout: horizontal;
        & > CatalogList { width: 40%; height: 100%; }
        & > .bench { width: 1fr; height: 100%; }
        &.-single > CatalogList { width: 100%; display: none; }
        &.-single.-list > CatalogList { display: block; }
        &.-single.-list > .bench { display: none; }
    }
    """

    def __init__(self, host: Host, entries: CatalogList[Entry], view: ReadingView, *, single: bool) -> None:
        super().__init__(classes="-list -single" if single else "-list")
        self.host = host
        self.list, self.view = entries, view
        self._step: Step = "list"
        self._ways_back: list[Callable[[], None]] = []
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self.list
        with Vertical(classes="bench"):
            yield from self.bench()

    # For subclasses.

    def bench(self) -> Iterable[Widget]:
        """The parts beside the list, from top to bottom."""
        return (self.view,)

    @abstractmethod
    async def choose(self, entry: Entry) -> None:
        """The user chose this entry; ends when what it opened takes keys."""

    def describe(self, entry: Entry) -> None:
        """Show what an entry is beside the list, without a request."""

    def notes(self) -> tuple[str, ...]:
        """Notes on the shown content."""
        return ()

    # From part to part.

    @property
    def step(self) -> Step:
        """The part that has the user's attention."""
        return self._step

    def set_single(self, single: bool) -> None:
        """Show one part at a time, or all."""
        self.set_class(single, "-single")

    def focus_list(self) -> None:
        self._ways_back.clear()
        self.go("list")
        self.list.rows.focus()

    def start_fetch(self, reading: PaneReading, fetch: Callable[[], Coroutine[None, None, None]]) -> None:
        """Show that ``reading`` is being fetched, and start ``fetch`` in place of an earlier one."""
        self.view.show_reading(reading)
        self.go("reading")
        self.call_after_refresh(self._focus_reading)
        self.call_after_refresh(self._fetch, fetch)  # after the focus, which the answer takes over

    def _fetch(self, fetch: Callable[[], Coroutine[None, None, None]]) -> None:
        _: Worker[None] = self.run_worker(fetch, group="fetch", exclusive=True)

    def show_reading(self, reading: PaneReading) -> None:
        """Show what was fetched, unless something else was opened meanwhile."""
        if self.view.reading is not None and self.view.reading.key == reading.key:
            self.show_with_notes(reading)

    def show_with_notes(self, reading: PaneReading, *, offset: int = 0) -> None:
        """Show this, and then our notes on it."""
        self.view.show_reading(reading, offset=offset)
        self.view.show_notes(*self.notes())

    async def show_answer(
        self,
        server: str,
        name: str,
        answer: Awaitable[Answer],
        add: Callable[[PaneReading, Answer, float], PaneReading],
    ) -> None:
        """Await a server's answer; ``add`` returns the reading with it."""
        began, reading = time.monotonic(), PaneReading(server, name)
        try:
            received = await answer
        except McphostError as error:
            self.show_reading(reading.with_error(error, time.monotonic() - began))
        else:
            self.show_reading(add(reading, received, time.monotonic() - began))

    def remember_way_back(self, back: Callable[[], None] | None) -> None:
        """Remember the way back from a link: ``back``, or None for what is shown here now."""
        self._ways_back.append(back or self._way_to_this())

    @property
    def reading_in_view(self) -> tuple[str, str] | None:
        """The key of the visible reading."""
        visible = all(part.display for part in self.view.ancestors_with_self if isinstance(part, Widget))
        return self.view.reading.key if self.view.reading is not None and visible else None

    def _way_to_this(self) -> Callable[[], None]:
        reading, offset = self.view.reading, self.view.offset_shown

        def back() -> None:
            if reading is not None:
                self.show_with_notes(reading, offset=offset)
                self.view.focus()

        return back

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "back" or self._step != "list"

    def action_back(self) -> None:
        """Go back one step, over links the way the user came."""
        if self._step == "reading" and self._ways_back:
            self._ways_back.pop()()
        else:
            self.focus_list()

    def go(self, step: Step) -> None:
        if step != self._step:
            self.remove_class(f"-{self._step}")
            self._step = step
            self.add_class(f"-{step}")
            self.post_message(RoomChanged())

    @on(CatalogList.Chosen)
    async def _chosen(self, event: CatalogList.Chosen) -> None:
        event.stop()
        if self.list.item is not None:
            self._ways_back.clear()
            await self.choose(self.list.item)

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[Entry]) -> None:
        """Describe the entry once the cursor rests."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(PREVIEW, self._describe)

    def _describe(self) -> None:
        entry = self.list.item
        if self._step == "list" and not self.has_class("-single") and entry is not None:
            self.describe(entry)

    def _focus_reading(self) -> None:
        if self._step == "reading":
            self.view.focus()
