"""Scopes to choose from: what will be asked for, and what was granted before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.protocol.display import show_line
from mcphost.tui.widgets.columns import Cell, columns
from mcphost.tui.widgets.rows import RowList


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope as it came; ``granted``: by an earlier sign-in."""

    name: str
    granted: bool
    asked: bool = True


class ScopeList(RowList[Scope]):
    """Check boxes; ``chosen`` is what is left."""

    HELP = "What will be asked for. space takes one away or puts it back; enter goes on to the answers."

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "ask_or_not", "ask for it or not", id="scopes.toggle", tooltip="Take it away, or put it back"),
    ]

    class Toggled(Message):
        """What will be asked for changed."""

    def __init__(self, scopes: Iterable[str], granted: Iterable[str], *, id: str | None = None) -> None:
        super().__init__(_row, id=id)
        held = set(granted)
        self.set_items([Scope(each, each in held) for each in scopes], keep=lambda scope: scope.name)

    @property
    def chosen(self) -> tuple[str, ...]:
        """What will be asked for."""
        return tuple(scope.name for scope in self.items if scope.asked)

    def action_ask_or_not(self) -> None:
        """Ask for the one under the cursor, or do not."""
        at = self.highlighted
        if at is None:
            return
        items = list(self.items)
        items[at] = replace(items[at], asked=not items[at].asked)
        self.set_items(items)
        self.post_message(self.Toggled())

    def on_click(self, event: events.Click) -> None:
        """A click on the box is the same."""
        row = round(self.scroll_y) + event.y
        if event.x < 6 and row < len(self.items):
            self.highlighted = row
            self.action_ask_or_not()


def _row(scope: Scope, width: int) -> Content:
    box = "[x]" if scope.asked else "[ ]"
    remark = "granted before" if scope.granted else ""
    style = "" if scope.asked else "$foreground-muted"
    return columns(
        width,
        [
            Cell(box, "bold", 3, 3),
            Cell(show_line(scope.name, 200), style, 12),
            Cell(remark, "$foreground-muted", 14, 14),
        ],
    )
