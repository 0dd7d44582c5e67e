"""The keys that work now, in one line.

Textual's Footer makes a widget for every key each time the focus moves; this draws a single line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from textual import events
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.keys import key_to_character
from textual.screen import Screen
from textual.widget import Widget

from mcphost.lazy_dataclass import dataclass

ALWAYS = ("command_palette", "quit", "keys")
"""The actions whose keys are at the end of the line, whatever has the focus."""

ROOM_FOR_ALL = 100
"""Columns below which the first of them is left out, so that more keys of the focused widget fit."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key and its effect; ``name`` is Textual's name for it, ``shown`` what is printed on the keyboard."""

    name: str
    shown: str
    does: str
    action: str

    @property
    def width(self) -> int:
        """Its width in cells, including blanks."""
        return cell_len(self.shown) + cell_len(self.does) + 3


class KeyLine(Widget):
    """The active bindings of the focused widget, nearest first; a click presses the key."""

    DEFAULT_CSS = """
    KeyLine { dock: bottom; height: 1; background: $footer-background; color: $footer-foreground; }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def render(self) -> Content:
        return Content("").join([_drawn_line(key) for key in self._fitting()])

    async def on_click(self, event: events.Click) -> None:
        left = 0
        for key in self._fitting():
            left += key.width
            if event.x < left:
                self.app.simulate_key(key.name)
                return

    def _changed(self, _: Screen[object]) -> None:
        self.refresh()

    def _fitting(self) -> Iterator[Key]:
        keys = list(self._keys())
        last = ALWAYS if self.size.width >= ROOM_FOR_ALL else ALWAYS[1:]
        always = [key for key in keys if key.action in last]
        room = self.size.width - sum(key.width for key in always)
        for key in keys:
            room -= 0 if key in always else key.width
            if room < 0:
                break
            if key not in always:
                yield key
        yield from always

    def _keys(self) -> Iterator[Key]:
        seen: set[str] = set()
        active, focused = self.screen.active_bindings, self.screen.focused
        for key, (node, binding, enabled, _) in active.items():
            typed = focused is not None and focused.check_consume_key(key, key_to_character(key))
            if binding.show and enabled and binding.action not in seen and not typed:
                seen.add(binding.action)
                named = _first(node, binding, active)
                yield Key(named.key, self.app.get_key_display(named), named.description, named.action)


def _first(node: DOMNode, binding: Binding, active: Mapping[str, ActiveBinding]) -> Binding:
    """The first of several keys with the same action: in a text area, ``active`` has f7 before ctrl+j."""
    bound = (each for kind in type(node).__mro__ for each in Binding.make_bindings(vars(kind).get("BINDINGS", ())))
    same = (active[each.key] for each in bound if each.action == binding.action and each.key in active)
    return next((each.binding for each in same if each.node is node and each.binding.action == binding.action), binding)


def _drawn_line(key: Key) -> Content:
    return Content.assemble((f" {key.shown}", "bold $footer-key-foreground"), f" {key.does} ")
