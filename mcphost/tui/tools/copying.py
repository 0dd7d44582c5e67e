"""The choice of the form in which a call is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.host.tool_calls.copies import CallCopy, CopyKind
from mcphost.protocol.display import show_line
from mcphost.tui.kit.framed import PickScreen
from mcphost.tui.kit.rows import Cell, columns

LETTERS: Final = {CopyKind.COMMAND: "c", CopyKind.JSON_RPC: "j", CopyKind.CURL: "u", CopyKind.RULE: "r"}


class CopyAsScreen(PickScreen[CallCopy, CallCopy]):
    """Dismissed with the chosen copy, or with None. A copy without a text cannot be chosen."""

    HELP = (
        "The call as a text: a command for your shell, the request as this session sends it, a command for curl, or\n"
        "a rule for your configuration. Variables such as $TOKEN stand for secrets: set them before you run it."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(letter, f"pick('{letter}')", kind.value, id=f"copy-as.{letter}", tooltip=f"Copy it as {kind.value}")
        for kind, letter in LETTERS.items()
    ]

    def __init__(self, name: str, copies: Sequence[CallCopy]) -> None:
        """``name`` is that of the tool, safe to show."""
        super().__init__(f"Copy the call of {name} as", "copy", copies)

    def row(self, item: CallCopy, width: int) -> Content:
        about = f"not here: {item.problem}" if item.problem else " ".join(item.text.replace("\\\n", " ").split())
        muted = "$foreground-muted" if item.problem else ""
        return columns(
            width,
            [
                Cell(LETTERS[item.kind], muted or "bold $text-accent", 1, 1),
                Cell(item.kind.value, muted or "bold", 12, 12),
                Cell(show_line(about, 400), "$foreground-muted", 10),
            ],
        )

    def value(self, item: CallCopy) -> CallCopy:
        return item

    def action_pick(self, letter: str) -> None:
        chosen = next(item for item in self._items if LETTERS[item.kind] == letter)
        if chosen.problem:
            self.app.bell()
        else:
            self.dismiss(chosen)
