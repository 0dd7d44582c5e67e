"""A line of text to type into, as cheap a keystroke as can be."""

from __future__ import annotations

from textual.geometry import Size
from textual.reactive import Reactive
from textual.widgets import Input


class LineInput(Input):
    """An Input whose letters change nothing around it: Textual's own lays out the whole screen for each of them."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
