"""Choosing one of the resources that a text links to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from mcphost.protocol.display import show_line
from mcphost.tui.faults import Sturdy
from mcphost.tui.links import Link
from mcphost.tui.screens.dialog import KEYS


class LinksScreen(Sturdy, ModalScreen[str | None]):
    """Lists ``links``; dismissed with the URI of the chosen one."""

    HELP = (
        "The resources that this text links to, of the server it came from. enter reads one, esc goes back.\n"
        "Web addresses are not among them: nothing here opens a browser."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back", id="links.back", tooltip="Close without reading"),
        KEYS,
    ]
    DEFAULT_CSS = """
    LinksScreen {
        align: center middle;
        background: $background 40%;
        & > Vertical {
            width: 92%; max-width: 110; height: auto; max-height: 80%; border: round $accent; background: $surface;
        }
        OptionList { height: auto; background: $surface; &, &:focus { border: none; } }
    }
    """

    def __init__(self, links: Sequence[Link]) -> None:
        super().__init__()
        self._links = links

    def compose(self) -> ComposeResult:
        """A list in a frame."""
        with Vertical() as frame:
            frame.border_title = "Read which resource?"
            frame.border_subtitle = "enter read · esc back"
            yield OptionList(*map(_option, self._links))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._links[event.option_index].uri)

    def action_back(self) -> None:
        """Close without a choice."""
        self.dismiss(None)


def _option(link: Link) -> Option:
    words = f"{show_line(link.words, 60)}  " if link.words and link.words != link.uri else ""
    return Option(Content.assemble((words, "bold"), (show_line(link.uri, 300), "$foreground-muted" if words else "")))
