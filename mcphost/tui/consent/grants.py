"""The list of what runs without asking, from which approvals are revoked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.host.consent.approvals import Approval
from mcphost.tui.kit.framed import ListScreen
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

EMPTY = "Nothing is allowed without asking.\nWhat you allow “until mcphost exits” or “always” is listed here."


class GrantsScreen(ListScreen[Approval, None]):
    """Lists what ``grants`` returns; ``revoke`` takes one of them back."""

    HELP = (
        "What you allowed without asking: a tool with any arguments, or with arguments that match a pattern, all "
        "tools of a server that claim to be read-only, or a skill with exactly the files that it had. The "
        "configuration's [policy] is not listed."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,g", "back", "back", id="grants.back", tooltip="Close"),
        Binding("x,delete", "revoke", "revoke", id="grants.revoke", tooltip="Ask again from now on"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    GrantsScreen {
        & > .frame { width: 94%; max-width: 140; height: 60%; }
    }
    """

    def __init__(self, grants: Callable[[], Sequence[Approval]], revoke: Callable[[Approval], None]) -> None:
        super().__init__("Allowed without asking", "", EMPTY)
        self._grants, self._revoke = grants, revoke

    def row(self, item: Approval, width: int) -> Content:
        return _row(item, width, self.list.search)

    def search_text(self, item: Approval) -> SearchText:
        return SearchText(item.label, item.server, more=item.words)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.rows.item is not None if action == "revoke" else True

    def action_revoke(self) -> None:
        grant = self.rows.item
        if grant is not None:
            self._revoke(grant)
            self.refresh_rows()

    def show_details(self) -> None:
        grant = self.rows.item
        self.details.display = grant is not None
        self.details.update("" if grant is None else _words(grant))
        self.frame.border_subtitle = "esc back" if grant is None else "x revoke · / filter · esc back"
        self.refresh_bindings()

    @on(RowList.Selected)
    def _open(self, event: RowList.Selected[Approval]) -> None:
        from mcphost.tui.kit.reader import ReaderScreen

        event.stop()
        self.app.push_screen(ReaderScreen("Allowed without asking", _words(event.item)))

    def refresh_rows(self) -> None:
        def key(grant: Approval) -> object:
            return grant.server, grant.tool, grant.skill, grant.gate, *grant.when.items()

        self.list.show_items(self._grants(), keep=key)
        self.show_details()


def _words(grant: Approval) -> str:
    return f"{grant.server} › {grant.label}: {grant.words}, {grant.lifetime.words}"


def _row(grant: Approval, width: int, search: Search) -> Content:
    return columns(
        width,
        [
            Cell(search.mark(grant.server), "bold", 6, 16),
            Cell(search.mark(grant.label), "", 10, 24),
            Cell(search.mark(grant.words.removeprefix("where ")), "" if grant.when else "$foreground-muted", 20),
            Cell(grant.lifetime.words, "", 19, 19),
            Cell(f"{grant.since:%-d %b %Y %H:%M}", "$foreground-muted", 0, 18, "right"),
        ],
    )
