"""The dialog for roots: folders with check boxes, those shared now, and when the server last asked.

The user opens it, or a server's question does. Marking a folder shares nothing; a key does, after a question about
anything unusual.

Specification: client/roots.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, RootsQuestion
from mcphost.host.host import Host
from mcphost.host.server_requests.folders import FolderCheck, check_folder
from mcphost.host.server_requests.roots import OfferedRoot
from mcphost.protocol.display import show
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import QuestionOrigin, origin_of
from mcphost.tui.elicitation.server_question import LETTERS, ServerQuestionScreen
from mcphost.tui.kit.answers import LATER, AnswerOption, naming
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.messages import QuestionsDeclined, RootsShared
from mcphost.tui.roots.facts import root_facts, short
from mcphost.tui.roots.rows import FolderRow, FolderRows, FolderScreen, known_folders
from mcphost.tui.textual_private.corrections import ScrolledColumn

DRAFT: Final = "folders"
"""The key of the marks that are kept with the question."""


class RootsScreen(ServerQuestionScreen):
    """Chooses the folders that ``server`` (None: every server) may know of; ``target`` is for whom they are marked."""

    HELP = (
        "The roots of a server: the folders it may use. Nothing is shared before you agree. A root tells the "
        "server where a folder is. It does not confine the server to it."
    )
    WITHDRAWN = "no folder was shared"
    LETTERS = LETTERS | {"share", "share_all", "decline_all", "target", "choose", "go_to", "more"}
    BEFORE = "space marks · o another · "

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "share('session')", "share", id="folders.share", tooltip="Share the marked folders until exit"),
        Binding("a", "share('always')", "remember", id="folders.always", tooltip="Share them in later runs too"),
        Binding(
            "Y",
            "share_all",
            "share with all",
            id="folders.share-all",
            tooltip="Share the marked folders with all servers",
        ),
        Binding(
            "N", "decline_all", "decline all", id="folders.decline-all", tooltip="Share none with all servers that ask"
        ),
        Binding("t", "target", "one or all", id="folders.target", tooltip="For this server, or for all servers"),
        Binding("m", "more", "more answers", id="folders.more", tooltip="List more answers, or fewer"),
        Binding("o", "choose", "another", id="folders.open", tooltip="Choose another folder in a tree"),
        Binding("slash", "go_to", "type a path", id="folders.path", tooltip="Type the path of a folder"),
    ]

    DEFAULT_CSS = """
    RootsScreen {
        & > .dialog { max-width: 160; }
        &.-short > .dialog { max-height: 100%; }
        FolderRows { height: auto; min-height: 3; border-top: solid $border-blurred; }
        .seen { height: auto; max-height: 5; scrollbar-size-vertical: 1; border-top: solid $border-blurred; }
        Input { display: none; height: 1; background: $panel; }
        Input.-shown { display: block; }
    }
    """

    _more = False
    """True while all answers are listed."""
    _others: tuple[OpenQuestion, ...] = ()
    """Other servers' questions for roots."""
    _sharing = _was_asked = False
    """True while folders are being shared; and if a question was open when that began."""

    def __init__(
        self,
        host: Host,
        server: str | None,
        origin: QuestionOrigin,
        here: Path,
        suggested: Sequence[Path] = (),
        waiting: OpenQuestion | None = None,
    ) -> None:
        super().__init__(waiting, origin)
        self._host, self.server, self.target = host, server, server
        self._checks: dict[Path, FolderCheck] = {}
        self._staged: dict[str | None, set[Path]] = {}
        question = self.question
        self._known = known_folders(host, here, suggested)
        """The folders in the list, each with a remark."""
        self.marked: set[Path] = set()
        self._suggested = tuple(suggested)
        self.picker, self._seen = FolderRows(), ScrolledColumn(classes="seen", can_focus=False)
        self._shared_facts, self._path = FactsTable(labels=15), Input(placeholder="path of a folder", compact=True)
        self._problem = "" if question is None else question.problem

    @property
    def question(self) -> RootsQuestion | None:
        """The server's question, if one is open."""
        question = None if self.waiting is None else self.waiting.question
        return question if isinstance(question, RootsQuestion) else None

    def heading(self) -> Content:
        if self.waiting is not None:
            return naming("", self.origin.server, " asks for its roots (folders it may use)")
        return naming("Roots of ", self._target_name, " (folders it may use)", quoted=self.target is not None)

    def asked_by(self) -> Content:
        return (
            Content("space marks · o another folder · / a path · esc close")
            if self.waiting is None
            else super().asked_by()
        )

    def about(self) -> Iterator[Fact]:
        if self.waiting is not None:
            yield from self.origin_facts()

    def compose(self) -> ComposeResult:
        with self.framed(self.title_line(), self.asked_by()):
            self.what.add_class("above")
            with self.what:
                yield FactsTable(self.about())
            yield self.picker
            with Vertical(classes="below"):
                with self._seen:
                    yield self._shared_facts
                yield self._path
                yield self._hint
                yield self._short
                yield self.answers

    def on_mount(self) -> None:
        """Show the marks that were kept, or mark the folder that is likely meant."""
        kept = None if self.waiting is None else self.waiting.drafts.get(DRAFT)
        self._staged.update(kept if kept is not None else self._suggestion())
        self._set_target(self.target)
        self.picker.focus()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.set_class(event.size.height < 30, "-short")

    @property
    def typing(self) -> bool:
        return isinstance(self.focused, Input)

    # Marks.

    @property
    def changes(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The folders to share, and those to take back."""
        now = {folder.path for folder in self._shared()}
        return tuple(sorted(self.marked - now)), tuple(sorted(now - self.marked))

    def _shared(self) -> tuple[OfferedRoot, ...]:
        return self._host.roots.offered(self.target)

    def _suggestion(self) -> dict[str | None, set[Path]]:
        """Mark the folder that is likely meant, if nothing is shared yet."""
        if self.question is None or not self._suggested or self._shared():
            return {}
        return {self.target: {self._suggested[0]}}

    def refresh_seen(self) -> None:
        self._show_state()

    # Changes.

    @property
    def _target_name(self) -> str:
        return "all servers" if self.target is None else self.origin.server

    def _is_own(self, path: Path) -> bool:
        """True if it can be taken back for this target."""
        return all(folder.server == self.target for folder in self._shared() if folder.path == path)

    def _set_target(self, target: str | None) -> None:
        self.target = target
        shared = {folder.path for folder in self._shared()}
        self.marked = self._staged.pop(target, shared)
        self._show_state()

    def _show_rows(self) -> None:
        paths = dict.fromkeys((*self._known, *sorted(self.marked)))
        self.picker.show_rows([FolderRow(path, self._known.get(path, ""), path in self.marked) for path in paths])

    def _close_path(self) -> None:
        self._path.value = ""
        self._path.remove_class("-shown")
        self.picker.focus()

    def _show_state(self) -> None:
        self.frame.border_title = self.title_line()
        self._show_rows()
        self._shared_facts.show_facts(root_facts(self._host, self.target))
        self.hint(f"✖ {self._problem}" if self._problem else self._warnings())
        self.offer()
        self.refresh_bindings()

    def _warnings(self) -> str:
        return "\n".join(f"▲ {short(path)}: {warning}" for path, warning in self._unusual().items())

    def _unusual(self) -> dict[Path, str]:
        """The folders to share of which the user is warned."""
        checks = (self._checks[path] for path in self.changes[0] if path in self._checks)
        return {check.path: check.warning for check in checks if check.warning}

    # Questions.

    def adopt_question(self, waiting: OpenQuestion) -> bool:
        """Take over a question of the server for which the user is choosing."""
        question = waiting.question
        if self.waiting is not None or not isinstance(question, RootsQuestion) or question.server != self.server:
            return False
        self.waiting, self.origin = waiting, origin_of(self._host, question)
        self.call_later(self._show_state)
        return True

    def show_others(self, others: Sequence[OpenQuestion]) -> None:
        """Keep the other questions for roots: one key may answer them too."""
        self._others = tuple(each for each in others if isinstance(each.question, RootsQuestion))
        if self.is_mounted:
            self._show_state()

    def withdrawn(self) -> None:
        """Close, unless folders are being shared: that answers the question, and closes the screen."""
        if self._sharing:
            self.waiting = None
        else:
            super().withdrawn()

    async def _mark(self, path: Path) -> None:
        """Check a folder, then mark it, or say why it cannot be shared; a link is shared as its target."""
        check = await asyncio.to_thread(check_folder, path)
        self._problem = f"{short(check.given)} cannot be shared: it {check.problem}" if check.problem else ""
        if not check.problem:
            self._checks[check.path] = check
            self._known.setdefault(check.path, "chosen by you")
            self.marked.add(check.path)
            self._close_path()
        self._show_state()
        if not check.problem:
            self.picker.highlighted = next(at for at, row in enumerate(self.picker.items) if row.path == check.path)

    def _finish_sharing(self, problem: str) -> None:
        """The folders were shared and taken back, or ``problem`` says why not."""
        self._problem = problem
        if not problem:
            self._staged.clear()
            if self.target is None:
                numbers = tuple(each.number for each in self._others)
                self.app.post_message(RootsShared(numbers))
            if self._was_asked or self.waiting is not None:
                # After that message: with this screen out of the way, one of the questions would open.
                self.app.call_later(self.dismiss, Answer(allow=True, content=()))
                return
        self._sharing = False
        self._set_target(self.target)

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("decline", "cancel", "mute", "park", "more"):
            return self.waiting is not None and not self.typing
        if action in ("share_all", "decline_all"):
            return self.waiting is not None and bool(self._others) and not self.typing
        if action == "target":
            return self.server is not None and not self.typing
        return not self.typing if action in self.LETTERS else True

    @on(FolderRows.Toggled)
    def _toggle(self, event: FolderRows.Toggled) -> None:
        event.stop()
        path = event.path
        if path not in self.marked:
            self._mark_later(path)
            return
        self._problem = "" if self._is_own(path) else f"{short(path)} is shared with all servers: t goes there"
        if self._is_own(path):
            self.marked.discard(path)
        self._show_state()

    def _mark_later(self, path: Path | None) -> None:
        """Mark a folder once it was checked, which reads the disk; None: the user chose none."""
        if path is not None:
            _: Worker[None] = self.run_worker(partial(self._mark, path), group="disk")

    def action_choose(self) -> None:
        """Choose another folder in a tree below home."""
        self.app.push_screen(FolderScreen(), self._mark_later)

    def action_target(self) -> None:
        """Choose for all servers, or for this one again."""
        self._staged[self.target] = set(self.marked)
        self._set_target(None if self.target is not None else self.server)

    def action_more(self) -> None:
        """List all answers, or the three that matter most."""
        self._more = not self._more
        self.offer()

    def action_go_to(self) -> None:
        self._path.add_class("-shown")
        self._path.focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        self._mark_later(Path(event.value.strip() or "~").expanduser())

    def action_share(self, lifetime: str) -> None:
        """Share the marked folders, after a question about any that are unusual."""
        add, remove = self.changes
        if not add and not remove:
            self._nothing_marked()
        elif unusual := self._unusual():
            self._ask(unusual, Lifetime(lifetime))
        else:
            self._share(Lifetime(lifetime))

    def action_share_all(self) -> None:
        """Share the marked folders with all servers."""
        marked = set(self.marked)
        if not self.changes[0]:
            self._nothing_marked()
            return
        if self.target is not None:
            self.action_target()
            self.marked.update(marked)
        self.action_share(Lifetime.SESSION.value)

    def action_decline_all(self) -> None:
        """Decline for every server that asks for roots."""
        numbers = tuple(each.number for each in self._others)
        self.app.post_message(QuestionsDeclined(numbers))  # first, so that none of them opens
        self.action_decline()

    def action_back(self) -> None:
        """Leave the field, or the screen; the marks stay with the question."""
        if self.typing:
            self._close_path()
        else:
            self.action_park()

    def action_park(self) -> None:
        if self.waiting is not None:
            self._staged[self.target] = set(self.marked)
            self.waiting.drafts[DRAFT] = dict(self._staged)
        self.dismiss(None)

    def options(self) -> Iterator[AnswerOption]:
        """Three answers and more on demand; without a question, what can be changed."""
        what = self._what()
        shared = naming(f"{what} with ", self._target_name, ", until mcphost exits", quoted=self.target is not None)
        yield AnswerOption("y", shared, "share('session')", "share")
        if self.waiting is None:
            yield from self._lasting(what)
            yield AnswerOption("esc", "close", "park", "close")
            return
        yield AnswerOption("n", "share none (remembered; f on its server card changes it)", "decline", "share none")
        yield AnswerOption("p", LATER, "park", "later")
        if not self._more:
            yield AnswerOption("m", "more…", "more", "more")
            return
        yield AnswerOption("m", "fewer", "more", "fewer")
        yield from self._lasting(what)
        if self._others:
            count = len({each.question.server for each in self._others} | {self.server})
            yield AnswerOption("Y", f"{what} with all servers, until mcphost exits ({count} ask)", "share_all", "all")
            yield AnswerOption("N", f"share none with the {count} servers that ask", "decline_all", "none for all")
        yield from (option for option in self.refusals() if option.key in "xM")

    def _what(self) -> str:
        add, remove = self.changes
        parts = [f"share the {'marked folder' if len(add) == 1 else f'{len(add)} marked folders'}"] * bool(add)
        parts += [f"stop sharing {len(remove)}"] * bool(remove)
        return " and ".join(parts) or "share the marked folders"

    def _lasting(self, what: str) -> Iterator[AnswerOption]:
        remembered = naming(f"{what} with ", self._target_name, ", and remember", quoted=self.target is not None)
        yield AnswerOption("a", remembered, "share('always')", "remember")
        if self.server is not None:
            other = "all servers" if self.target is not None else self.origin.server
            yield AnswerOption(
                "t", naming("choose for ", other, " instead", quoted=self.target is None), "target", f"for {other}"
            )

    # Sharing.

    def _ask(self, unusual: Mapping[Path, str], lifetime: Lifetime) -> None:
        from mcphost.tui.kit.modal_screen import AskScreen

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._share(lifetime)

        facts = [fact("▲ beware", f"{short(path)}: {warning}", "bold $text-error") for path, warning in unusual.items()]
        self.app.push_screen(AskScreen(f"Share this with {self._target_name}?", facts, "share it"), answered)

    def _share(self, lifetime: Lifetime) -> None:
        add, remove = self.changes
        if self.waiting is not None and self.target is not None and not remove:
            self.dismiss(Answer(allow=True, lifetime=lifetime, content=add))
        else:
            self._sharing, self._was_asked = True, self.waiting is not None
            remember = lifetime is Lifetime.ALWAYS
            # the app's worker, so that it outlives this screen
            self.app.run_worker(self._apply(add, remove, remember), group="share")

    async def _apply(self, add: tuple[Path, ...], remove: tuple[Path, ...], remember: bool) -> None:
        target, called, problem = self.target, self._target_name, ""
        try:
            for path in remove:
                await self._host.roots.unshare(target, path)
            for path in add:
                await self._host.roots.share(target, path, remember=remember)
        except McphostError as error:
            problem = show(str(error), limit=400)
        else:
            done = [f"{len(add)} shared with {called}"] * bool(add)
            done += [f"{len(remove)} no longer shared"] * bool(remove)
            self.app.notify(f"{', '.join(done)}.", markup=False)
        if self.is_attached:
            self._finish_sharing(problem)

    def _nothing_marked(self) -> None:
        self._problem = "no folder is marked: space marks the one under the cursor"
        self._show_state()
