"""What the user wants of the questions of servers, done by the host: check a form, go on with a page, share folders.

Knows the host and the screens. Refuses to answer: the screens do, and `mcphost.tui.inbox.queue` hands that on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.errors import McphostError
from mcphost.host.events import ElicitationChanged, Event, RootsChanged
from mcphost.host.host import Host
from mcphost.host.server_requests.roots import look, suggestions
from mcphost.host.server_requests.url_elicitation import UrlElicitation, UrlElicitationState
from mcphost.host.tool_calls.validation import validate
from mcphost.protocol.display import show, show_line
from mcphost.tui.consent.origin import QuestionOrigin, page_reason
from mcphost.tui.inbox.queue import PageChosen, QuestionQueue
from mcphost.tui.kit.messages import MuteToggled, RootsRequested
from mcphost.tui.roots.tree import list_folders

if TYPE_CHECKING:
    from mcphost.tui.elicitation.form import FormQuestionScreen
    from mcphost.tui.elicitation.url import PageQuestionScreen
    from mcphost.tui.roots.screen import FoldersScreen
    from mcphost.tui.roots.tree import FolderTree

    _App = App[Any]
else:
    _App = object


class InquiryWishes(_App):
    """The app's ear for these wishes."""

    host: Host
    questions: QuestionQueue

    def inquiries_changed(self, events: Iterable[Event]) -> None:
        """Show what became of pages and folders, on their screen or else in a note."""
        for event in events:
            if isinstance(event, ElicitationChanged) and (page := self.host.elicitation.all.get(event.elicitation)):
                self._page_changed(page)
            elif isinstance(event, RootsChanged):
                self._folders_changed()

    def on_mute_toggled(self, event: MuteToggled) -> None:
        """Decline everything of a server, or listen to it again."""
        self.mute(event.server, event.muted)

    def mute(self, server: str, muted: bool) -> None:
        """Decline everything of a server, or listen to it again."""
        called = show_line(server, 60)
        if muted:
            self.host.pending_requests.mute(server)
            words = f"All that {called} asks is declined until mcphost exits. M on its card or in the inbox undoes it."
        else:
            self.host.pending_requests.unmute(server)
            words = f"What {called} asks comes to you again."
        self.notify(words, markup=False)
        self.questions.changed()

    # Forms.

    def on_form_question_screen_check_wanted(self, event: FormQuestionScreen.CheckWanted) -> None:
        """Check what was typed by the whole schema."""
        _: Worker[None] = self.run_worker(partial(self._check, event), group="check-form", exclusive=True)

    async def _check(self, event: FormQuestionScreen.CheckWanted) -> None:
        verdict = await validate(event.schema, event.content)
        if event.screen.is_attached:
            event.screen.checked(event.content, verdict)

    # Pages.

    def on_page_question_screen_reopen_wanted(self, event: PageQuestionScreen.ReopenWanted) -> None:
        """Open it once more."""
        self.run_worker(event.page.open(), group="open-page", exclusive=True)

    def on_page_question_screen_go_on_wanted(self, event: PageQuestionScreen.GoOnWanted) -> None:
        """The user is done there."""
        event.page.go_on()

    def on_page_question_screen_give_up_wanted(self, event: PageQuestionScreen.GiveUpWanted) -> None:
        """It is waited for no longer."""
        event.page.give_up()

    def on_page_chosen(self, event: PageChosen) -> None:
        """Show how a page stands."""
        from mcphost.tui.elicitation.url import PageQuestionScreen, question_of

        page = self.host.elicitation.all.get(event.number)
        if page is not None and len(self.screen_stack) == 1:
            self.push_screen(PageQuestionScreen(None, question_of(page), page_reason(self.host, page), page))

    def _page_changed(self, page: UrlElicitation) -> None:
        from mcphost.tui.elicitation.url import PageQuestionScreen

        seen = [each for each in self.screen_stack if isinstance(each, PageQuestionScreen) and each.takes_page(page)]
        for screen in seen:
            screen.show_page(page)
        if not seen and page.state in (UrlElicitationState.COMPLETED, UrlElicitationState.LEFT):
            which = f"{show_line(page.server, 60)}, the page at {show_line(page.address.host, 100)}"
            self.notify(f"{which}: {page.state.value}.", markup=False)

    # Folders.

    def on_app_focus(self) -> None:
        """The user comes back to this terminal, and may have moved folders in another one."""
        self.run_worker(self.host.roots.check(), group="check-roots")

    def on_roots_requested(self, event: RootsRequested) -> None:
        """Choose the folders of a server."""
        self.show_folders(event.server)

    def show_folders(self, server: str | None) -> None:
        """Choose which folders this server (None: every server) may know of."""
        _: Worker[None] = self.run_worker(partial(self._show_folders, server), group="roots", exclusive=True)

    async def _show_folders(self, server: str | None) -> None:
        from mcphost.tui.roots.screen import FoldersScreen

        here = Path.cwd()
        suggested = await asyncio.to_thread(suggestions, here)
        await self.host.roots.check()
        if len(self.screen_stack) == 1:
            reason = QuestionOrigin("all servers" if server is None else show_line(server, 60), "", "")
            await self.push_screen(FoldersScreen(self.host, server, reason, here, suggested))

    def on_folder_tree_read_wanted(self, event: FolderTree.ReadWanted) -> None:
        """Read a folder; it may take the disk a while."""
        self.run_worker(self._read(event.tree, event.entry.path, event.entry.real), group="disk")

    async def _read(self, tree: FolderTree, path: Path, real: Path) -> None:
        listing = await asyncio.to_thread(list_folders, path, real)
        if tree.is_attached:
            tree.show_listing(path, listing)

    def on_folders_screen_look_wanted(self, event: FoldersScreen.LookWanted) -> None:
        """Look at a folder before it is marked."""
        self.run_worker(self._look(event), group="disk")

    async def _look(self, event: FoldersScreen.LookWanted) -> None:
        seen = await asyncio.to_thread(look, event.entry.path)
        if event.screen.is_attached:
            event.screen.looked(event.entry, seen)

    def on_folders_screen_go_wanted(self, event: FoldersScreen.GoWanted) -> None:
        """Look whether there is such a folder."""
        self.run_worker(self._go(event), group="disk")

    async def _go(self, event: FoldersScreen.GoWanted) -> None:
        seen = await asyncio.to_thread(look, event.path)
        if event.screen.is_attached:
            event.screen.arrived(seen)

    def on_folders_screen_share_wanted(self, event: FoldersScreen.ShareWanted) -> None:
        """Share, and take back."""
        self.run_worker(self._share(event), group="share")

    async def _share(self, event: FoldersScreen.ShareWanted) -> None:
        problem = ""
        try:
            for path in event.remove:
                await self.host.roots.unshare(event.target, path)
            for path in event.add:
                await self.host.roots.share(event.target, path, remember=event.remember)
        except McphostError as error:
            problem = show(str(error), limit=400)
        else:
            called = "all servers" if event.target is None else show_line(event.target, 60)
            done = [f"{len(event.add)} shared with {called}"] * bool(event.add)
            done += [f"{len(event.remove)} taken back"] * bool(event.remove)
            self.notify(f"{', '.join(done)}.", markup=False)
        if event.screen.is_attached:
            event.screen.shared(problem)

    def on_folders_screen_decline_wanted(self, event: FoldersScreen.DeclineWanted) -> None:
        """Tell other servers that ask of no folder either."""
        self.questions.decline(event.numbers)
        self.notify("None of the servers that asked is told of a folder.", markup=False)

    def _folders_changed(self) -> None:
        from mcphost.tui.roots.screen import FoldersScreen

        for screen in self.screen_stack:
            if isinstance(screen, FoldersScreen) and screen.is_attached:
                screen.refresh_seen()

    # For the palette.

    def inquiry_commands(self) -> Iterator[SystemCommand]:
        """Every action."""
        told = "Choose them in a tree, for one server or for all"
        yield SystemCommand("Folders for all servers", told, lambda: self.show_folders(None))
        for name in self.host.servers:
            called = show_line(name, 60)
            yield SystemCommand(f"Folders for {called}", told, lambda name=name: self.show_folders(name))
            if self.host.pending_requests.muted(name):
                yield SystemCommand(
                    f"Listen to {called} again", "It asks you again", lambda name=name: self.mute(name, False)
                )
            else:
                words = "Until mcphost exits"
                yield SystemCommand(f"Decline everything {called} asks", words, lambda name=name: self.mute(name, True))
