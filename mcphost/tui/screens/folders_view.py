"""How the choice of folders stands on screen: a tree with check marks, what a server sees now, and when it last asked.

Knows what is marked, and for whom. Refuses to know keys: a subclass says what the user wants of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input

from mcphost.host.asked.folders import FolderCheck
from mcphost.host.asked.roots import OfferedRoot
from mcphost.host.host import Host
from mcphost.host.questions import RootsQuestion
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.folder_listing import offered, top_above
from mcphost.tui.reasons import QuestionOrigin
from mcphost.tui.screens.server_question import ServerQuestionScreen
from mcphost.tui.widgets.facts import Fact, FactsTable
from mcphost.tui.widgets.folder_tree import FolderTree, short
from mcphost.tui.widgets.seen_folders import seen_facts

WIDE: Final = 120
"""Columns from which what a server sees stands beside the tree."""

DRAFT: Final = "folders"
"""Under which name what was marked is kept with the question."""


class FoldersView(ServerQuestionScreen):
    """The folders that ``server`` (None: every server) may know of, as marked for ``target``."""

    DEFAULT_CSS = """
    FoldersView {
        & > .dialog { height: 92%; max-width: 160; }
        &.-short > .dialog { height: 100%; max-height: 100%; }
        .both { height: 1fr; border-top: solid $panel-lighten-2; }
        FolderTree { height: 1fr; }
        .seen { height: auto; max-height: 5; scrollbar-size-vertical: 1; border-top: solid $panel-lighten-2; }
        &.-wide .seen { width: 2fr; height: 1fr; max-height: 100%; border-top: none; padding-left: 1;
                        border-left: solid $panel-lighten-2; }
        &.-wide FolderTree { width: 3fr; }
        &.-narrow .both { layout: vertical; }
        Input { display: none; height: 1; background: $panel; }
        Input.-shown { display: block; }
    }
    """

    def __init__(
        self,
        host: Host,
        server: str | None,
        reason: QuestionOrigin,
        here: Path,
        suggested: Sequence[Path] = (),
        waiting: OpenQuestion | None = None,
    ) -> None:
        super().__init__(waiting, reason)
        self._host, self.server, self.target, self._here = host, server, server, here
        self._looks: dict[Path, FolderCheck] = {}
        self._staged: dict[str | None, set[Path]] = {}
        question = self.question
        self.picker = FolderTree(top_above(here), offered(here, suggested), ())
        self._seen, self._path = FactsTable(labels=12), Input(placeholder="path of a folder", compact=True)
        self._trouble = "" if question is None else question.problem

    @property
    def question(self) -> RootsQuestion | None:
        """What it asks, where a server asks."""
        asked = None if self.waiting is None else self.waiting.question
        return asked if isinstance(asked, RootsQuestion) else None

    def heading(self) -> str:
        """For whom it is."""
        if self.waiting is not None:
            return f"{self.reason.server} asks which folders it may know of"
        return f"Folders that {self._called} may know of"

    def asked_by(self) -> str:
        """Who asks; nobody where the user came by himself."""
        return "space marks · / go to a path · esc close" if self.waiting is None else super().asked_by()

    def about(self) -> Iterator[Fact]:
        """Who asks, and why."""
        if self.waiting is not None:
            yield from self.reasons()

    def body(self) -> ComposeResult:
        """The tree, and what is seen now."""
        with Horizontal(classes="both"):
            yield self.picker
            with VerticalScroll(classes="seen", can_focus=False):
                yield self._seen
        yield self._path

    def on_mount(self) -> None:
        """Start where one probably wants to."""
        kept = None if self.waiting is None else self.waiting.kept.get(DRAFT)
        self._staged.update(kept or {})
        self._aim(self.target)
        self.picker.reveal(self._here, go=not self.picker.folders.first)
        self.picker.focus()

    def on_resize(self, event: events.Resize) -> None:
        """What fits changed."""
        super().on_resize(event)
        self.set_class(event.size.height < 30, "-short")
        self.set_class(event.size.width >= WIDE, "-wide")
        self.set_class(event.size.width < WIDE, "-narrow")

    @property
    def typing(self) -> bool:
        """Only in the field for a path."""
        return isinstance(self.focused, Input)

    # What is marked.

    @property
    def marked(self) -> set[Path]:
        """Where the marked folders really are."""
        return self.picker.folders.marked

    @property
    def changes(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """What is to be shared that is not, and what is to be taken back."""
        now = {folder.path for folder in self._shared()}
        return tuple(sorted(self.marked - now)), tuple(sorted(now - self.marked))

    def _shared(self) -> tuple[OfferedRoot, ...]:
        return self._host.roots(self.target)

    def refresh_seen(self) -> None:
        """What is shared, or who asked for it, changed."""
        self._tell()

    # How it is done.

    @property
    def _called(self) -> str:
        return "all servers" if self.target is None else self.reason.server

    def _own(self, path: Path) -> bool:
        """Can it be taken back here?"""
        return all(folder.server == self.target for folder in self._shared() if folder.path == path)

    def _aim(self, target: str | None) -> None:
        self.target = target
        shared = {folder.path for folder in self._shared()}
        self.picker.folders.marked = self._staged.pop(target, shared)
        self.picker.refresh_rows()
        self._tell()

    def _close_path(self) -> None:
        self._path.value = ""
        self._path.remove_class("-shown")
        self.picker.focus()

    def _tell(self) -> None:
        self.query_one(".dialog").border_title = self.title_line()
        self._seen.show_facts(seen_facts(self._host, self.target))
        self.hint(f"✖ {self._trouble}" if self._trouble else self._warnings())
        self.offer()
        self.refresh_bindings()

    def _warnings(self) -> str:
        odd = (look for path in self.changes[0] if (look := self._looks.get(path)) and look.warning)
        return "\n".join(f"▲ {short(look.path)}: {look.warning}" for look in odd)
