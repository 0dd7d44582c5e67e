"""Which folders a server may know of: a tree with check marks, what it sees now, and when it last asked.

Opened by the user, or by the question of a server. Marks change nothing: a key does, after what is odd was asked about.

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
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.questions import Answer, RootsQuestion
from mcphost.host.host import Host
from mcphost.host.server_requests.roots import FolderCheck, OfferedRoot
from mcphost.host.server_requests.roots import look as look_at
from mcphost.protocol.display import show, show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.answers import AnswerOption
from mcphost.tui.consent.origin import QuestionOrigin, reason_of
from mcphost.tui.elicitation.server_question import LETTERS, ServerQuestionScreen
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.messages import QuestionsDeclined
from mcphost.tui.roots.seen import seen_facts
from mcphost.tui.roots.tree import FolderEntry, FolderTree, offered, short, top_above

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
        .both { height: 1fr; border-top: solid $border-blurred; }
        FolderTree { height: 1fr; }
        .seen { height: auto; max-height: 5; scrollbar-size-vertical: 1; border-top: solid $border-blurred; }
        &.-wide .seen { width: 2fr; height: 1fr; max-height: 100%; border-top: none; padding-left: 1;
                        border-left: solid $border-blurred; }
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
        return self._host.roots.offered(self.target)

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


class FoldersScreen(FoldersView):
    """See `FoldersView`: the keys, and what each does."""

    HELP = (
        "Which folders a server may know of. Nothing is shared by default; space marks, but only y or a shares.\n"
        "A server is told where the folders are; what it does there is up to it. m goes to all servers and back.\n"
        "Where several servers ask, Y and N answer all of them at once."
    )
    NOTHING = "no folder was shared"
    LETTERS = LETTERS | {"share", "share_all", "decline_all", "target", "go_to"}
    BEFORE = "space marks · "

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "share('session')", "share", id="folders.share", tooltip="Share what is marked in this run"),
        Binding("a", "share('always')", "and remember", id="folders.always", tooltip="Share it in later runs as well"),
        Binding("Y", "share_all", "share with all", id="folders.share-all", tooltip="Share it with all servers"),
        Binding("N", "decline_all", "decline all", id="folders.decline-all", tooltip="No, to all servers that ask"),
        Binding("m", "target", "one or all", id="folders.target", tooltip="For this server, or for all servers"),
        Binding("slash", "go_to", "go to path", id="folders.path", tooltip="Type a path to go to"),
    ]

    _others: tuple[OpenQuestion, ...] = ()
    """The questions of other servers for folders."""
    _sharing = _asked = False
    """Is something being shared, and was a question open when it began?"""

    # What the host says.

    def takes(self, waiting: OpenQuestion) -> bool:
        """A question of the server one is choosing for is asked here."""
        asked = waiting.question
        if self.waiting is not None or not isinstance(asked, RootsQuestion) or asked.server != self.server:
            return False
        self.waiting, self.reason = waiting, reason_of(self._host, asked)
        self.call_later(self._tell)
        return True

    def show_others(self, others: Sequence[OpenQuestion]) -> None:
        """One key may answer the others for folders as well."""
        self._others = tuple(each for each in others if isinstance(each.question, RootsQuestion))
        if self.is_mounted:
            self._tell()

    def withdrawn(self) -> None:
        """Close; but what is shared here answers it, and says itself when it is done."""
        if self._sharing:
            self.waiting = None
        else:
            super().withdrawn()

    async def _mark(self, entry: FolderEntry) -> None:
        """Look at a folder; mark it, or say why not."""
        look = await asyncio.to_thread(look_at, entry.path)
        self._trouble = f"{short(entry.path)} cannot be shared: it {look.problem}" if look.problem else ""
        if not look.problem:
            self._looks[look.path] = look
            self.marked.add(look.path)
            self.picker.refresh_rows()
        self._tell()

    async def _go(self, path: Path) -> None:
        """Go to a folder that was typed, or say why not."""
        look = await asyncio.to_thread(look_at, path)
        self._trouble = f"{show_line(str(look.given), 200)} {look.problem}" if look.problem else ""
        if not look.problem:
            self._close_path()
            self.picker.reveal(look.path)
        self._tell()

    def _shared_now(self, problem: str) -> None:
        """The roots were shared and taken back, or ``problem`` says why not."""
        self._trouble, asked, self._sharing = problem, self._asked, False
        if not problem:
            self._staged.clear()
            if asked or self.waiting is not None:
                self.dismiss(Answer(allow=True, content=()))
                return
        self._aim(self.target)

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is not asked is not answered."""
        if action in ("decline", "cancel", "mute", "park"):
            return self.waiting is not None and not self.typing
        if action in ("share_all", "decline_all"):
            return self.waiting is not None and bool(self._others) and not self.typing
        if action == "target":
            return self.server is not None and not self.typing
        return not self.typing if action in self.LETTERS else True

    @on(FolderTree.Toggled)
    def _toggle(self, event: FolderTree.Toggled) -> None:
        event.stop()
        real = event.entry.real
        if real not in self.marked:
            _: Worker[None] = self.run_worker(partial(self._mark, event.entry), group="disk")
            return
        self._trouble = "" if self._own(real) else f"{short(real)} is shared with all servers: m goes there"
        if self._own(real):
            self.marked.discard(real)
            self.picker.refresh_rows()
        self._tell()

    def action_target(self) -> None:
        """Choose for all servers, or for the one again."""
        self._staged[self.target] = set(self.marked)
        self._aim(None if self.target is not None else self.server)

    def action_go_to(self) -> None:
        self._path.add_class("-shown")
        self._path.focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        _: Worker[None] = self.run_worker(
            partial(self._go, Path(event.value.strip() or "~").expanduser()), group="disk"
        )

    def action_share(self, lifetime: str) -> None:
        """Share what is marked; what is odd is asked about first."""
        add, remove = self.changes
        if not add and not remove:
            self._nothing_marked()
        elif odd := {path: look.warning for path in add if (look := self._looks.get(path)) and look.warning}:
            self._ask(odd, Lifetime(lifetime))
        else:
            self._share(Lifetime(lifetime))

    def action_share_all(self) -> None:
        """Share what is marked with all servers, those that ask among them."""
        marked = set(self.marked)
        if not self.changes[0]:
            self._nothing_marked()
            return
        if self.target is not None:
            self.action_target()
            self.marked.update(marked)
            self.picker.refresh_rows()
        self.action_share(Lifetime.SESSION.value)

    def action_decline_all(self) -> None:
        """No, to each server that asks for folders."""
        numbers = tuple(each.number for each in self._others)
        self.app.post_message(QuestionsDeclined(numbers))  # before one is asked
        self.notify("None of the servers that asked is told of a folder.", markup=False)
        self.action_decline()

    def action_back(self) -> None:
        """Out of the field; out of the screen, and what is marked stays with the question."""
        if self.typing:
            self._close_path()
        else:
            self.action_park()

    def action_park(self) -> None:
        """Leave; nothing is shared."""
        if self.waiting is not None:
            self._staged[self.target] = set(self.marked)
            self.waiting.kept[DRAFT] = dict(self._staged)
        self.dismiss(None)

    def ways(self) -> Iterator[AnswerOption]:
        """What can be done."""
        add, remove = self.changes
        what = " and ".join([f"share {len(add)}"] * bool(add) + [f"take {len(remove)} back"] * bool(remove)) or "share"
        marked = f"{what} with {self._called}" if add or remove else f"share what space marks with {self._called}"
        yield AnswerOption("y", f"{marked}, until mcphost exits", "share('session')", what)
        yield AnswerOption("a", f"{marked}, and remember it", "share('always')", "remember")
        if self.server is not None:
            other = "all servers" if self.target is not None else self.reason.server
            short_of = "all" if self.target is not None else "one"
            yield AnswerOption("m", f"choose for {other} instead", "target", f"for {short_of}")
        if self.waiting is None:
            yield AnswerOption("esc", "close", "park", "close")
            return
        if self._others:
            count = len({each.question.server for each in self._others} | {self.server})
            yield AnswerOption(
                "Y", f"{what} with all servers, until mcphost exits; {count} ask", "share_all", "with all"
            )
            yield AnswerOption(
                "N", f"decline for all {count} servers that ask for folders", "decline_all", "decline all"
            )
        yield from self.refusals()

    # How it is done.

    def _ask(self, odd: Mapping[Path, str], lifetime: Lifetime) -> None:
        from mcphost.tui.kit.modal import AskScreen

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._share(lifetime)

        facts = [fact("▲ beware", f"{short(path)}: {warning}", "bold $text-error") for path, warning in odd.items()]
        self.app.push_screen(AskScreen(f"Share this with {self._called}?", facts, "share it"), answered)

    def _share(self, lifetime: Lifetime) -> None:
        add, remove = self.changes
        if self.waiting is not None and self.target is not None and not remove:
            self.dismiss(Answer(allow=True, lifetime=lifetime, content=add))
        else:
            self._sharing, self._asked = True, self.waiting is not None
            remember = lifetime is Lifetime.ALWAYS
            self.app.run_worker(self._apply(add, remove, remember), group="share")  # also when this screen is closed

    async def _apply(self, add: tuple[Path, ...], remove: tuple[Path, ...], remember: bool) -> None:
        target, called, problem = self.target, self._called, ""
        try:
            for path in remove:
                await self._host.roots.unshare(target, path)
            for path in add:
                await self._host.roots.share(target, path, remember=remember)
        except McphostError as error:
            problem = show(str(error), limit=400)
        else:
            done = [f"{len(add)} shared with {called}"] * bool(add)
            done += [f"{len(remove)} taken back"] * bool(remove)
            self.app.notify(f"{', '.join(done)}.", markup=False)
        if self.is_attached:
            self._shared_now(problem)

    def _nothing_marked(self) -> None:
        self._trouble = "nothing is marked that is not shared: space marks the folder under the cursor"
        self._tell()
