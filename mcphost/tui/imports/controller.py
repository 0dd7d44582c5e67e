"""Adds servers that other programs have configured, or that the user names, after asking about each."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.config import home_folder, working_folder
from mcphost.errors import ConfigError, McphostError
from mcphost.host.host import Host
from mcphost.protocol.display import show
from mcphost.tui.servers.configuration import ConfigurationController
from mcphost.tui.textual_private.corrections import KeyOrder

if TYPE_CHECKING:
    from mcphost.imports.importer import ImportAnswer, ImportCandidate, Importer
    from mcphost.imports.sources import ResolvedAdd
    from mcphost.tui.imports.added import AddedServer
    from mcphost.tui.imports.consent import AdditionDecision
    from mcphost.tui.recordings.screen import Mount

NAMED: Final = 3
"""Programs that are named; the servers of all others are counted together."""

OpenImporter = Callable[[], "Importer"]
"""Reads the user's configuration, to which servers are added. Blocks on the disk; raises McphostError."""

StartAdded = Callable[[Collection[str]], Awaitable[None]]
"""Applies the configuration with the servers of these names. Raises McphostError."""


class ImportsController:
    """``state`` is the folder for bundles. ``open_importer`` None: servers cannot be added to this run."""

    def __init__(
        self,
        app: App[Any],
        keys: KeyOrder,
        host: Host,
        configuration: ConfigurationController,
        state: Path,
        start_added: StartAdded,
        mount: Mount,
        open_importer: OpenImporter | None = None,
    ) -> None:
        self._host, self.configuration, self._state = host, configuration, state
        self.app, self._keys, self.start_added, self._open_importer = app, keys, start_added, open_importer
        self._mount = mount

    def commands(self) -> Iterator[SystemCommand]:
        yield SystemCommand(
            "Import servers", "Servers that other programs on this machine have configured", self.open_found_servers
        )
        yield SystemCommand("Add a server", "From a command line, an address, a link or a file", self.add)

    def on_main_screen_import_requested(self, _: object) -> None:
        self.open_found_servers()

    def on_main_screen_addition_requested(self, _: object) -> None:
        self.add()

    def open_found_servers(self) -> None:
        """List the servers of other programs."""
        self.run(self._open_found_servers)

    def add(self) -> None:
        """Ask for a command line, an address, a link or a file."""
        self.run(self._ask_for_server)

    async def count_elsewhere(self) -> str:
        """Say which other programs have servers: ``Claude Code has 4 servers, VS Code 2``."""
        return count_sentence(await asyncio.to_thread(_servers_elsewhere))

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do this, and hold back keys until it is done: they are meant for the screen that it opens."""
        opening: Worker[None] = self.app.run_worker(work(), group="imports", exclusive=True)
        self._keys.wait_for(opening)

    async def _importer(self) -> Importer | None:
        """Return the importer; None, with a notification, if no server can be added."""
        if self._open_importer is None:
            self.app.notify("Servers cannot be added to this run: it has no configuration of yours.")
            return None
        try:
            # In a thread, which also loads the modules that follow here: a tenth of a second.
            return await asyncio.to_thread(_opened, self._open_importer)
        except McphostError as error:
            self.app.notify(show(str(error), limit=600), severity="warning", timeout=15, markup=False)
            return None

    async def _open_found_servers(self) -> None:
        importer = await self._importer()
        if importer is None:
            return
        from mcphost.tui.imports.candidate_list import FoundServersScreen
        from mcphost.tui.imports.candidates import found_here

        screen = FoundServersScreen()
        await self.app.push_screen(screen, partial(self._chosen, importer))
        try:
            screen.show_rows(await asyncio.to_thread(found_here, importer))
        except McphostError as error:
            screen.show_problem(show(str(error), limit=600))

    def _chosen(self, importer: Importer, candidates: Sequence[ImportCandidate] | None) -> None:
        if candidates:
            Additions(self, importer, candidates).start()

    async def _ask_for_server(self) -> None:
        importer = await self._importer()
        if importer is not None:
            from mcphost.imports.bundles import BUNDLES
            from mcphost.imports.server_line import ServerLineReader
            from mcphost.tui.imports.line_screen import ServerLineScreen

            reader = ServerLineReader(self._state / BUNDLES, self._host.config.registry.urls)
            await self.app.push_screen(ServerLineScreen(reader, self._mount), partial(self._named, importer))

    def _named(self, importer: Importer, found: ResolvedAdd | None) -> None:
        if found is not None:
            self.run(partial(self._compare, importer, found))

    async def _compare(self, importer: Importer, found: ResolvedAdd) -> None:
        from mcphost.tui.imports.candidates import compared

        try:
            candidates = await asyncio.to_thread(compared, importer, found.servers)
        except McphostError as error:
            self.app.notify(show(str(error), limit=600), severity="warning", timeout=15, markup=False)
            candidates = ()
        Additions(self, importer, candidates, found.remarks, found.unpacked).start()


def _opened(open_importer: OpenImporter) -> Importer:
    """Open it, and load the modules of the screens that follow: few runs add a server."""
    import mcphost.imports.server_line
    import mcphost.tui.imports.candidates
    import mcphost.tui.imports.consent  # noqa: F401

    return open_importer()


def _servers_elsewhere() -> list[tuple[str, int]]:
    """Return the programs on this machine that have servers, and how many, most first. Blocks on the disk."""
    from mcphost.imports.survey import survey  # late: only a start without servers needs it

    counts = Counter[str]()
    for file in survey(os.environ, home_folder(), sys.platform, working_folder()):
        counts[file.host.label] += file.servers
    return [(label, count) for label, count in counts.most_common() if count]


def count_sentence(counts: Sequence[tuple[str, int]]) -> str:
    """``Claude Code has 4 servers, VS Code 2``; empty without any."""
    if not counts:
        return ""
    (label, count), *others = counts
    named = [f"{label} has {count} server{'s' if count != 1 else ''}"]
    named += [f"{other} {number}" for other, number in islice(others, NAMED - 1)]
    if rest := others[NAMED - 1 :]:
        named.append(f"{len(rest)} other{'s' if len(rest) > 1 else ''} {sum(number for _, number in rest)}")
    return ", ".join(named)


class Additions:
    """Shows servers one after the other, and adds those that the user agrees to."""

    def __init__(
        self,
        controller: ImportsController,
        importer: Importer,
        candidates: Sequence[ImportCandidate],
        remarks: Sequence[str] = (),
        unpacked: Sequence[Path] = (),
    ) -> None:
        """``remarks`` are shown with each server; ``unpacked`` are folders of bundles: those not added are removed."""
        self._remarks, self._unpacked = tuple(remarks), tuple(unpacked)
        self._controller, self._importer, self._candidates = controller, importer, list(candidates)
        self._number = 0
        self._keychain_problem: str | None = None
        self._added: list[AddedServer] = []

    def start(self) -> None:
        """Show the first server. Until the last, changes of the configuration file are not reported."""
        self._controller.configuration.hold(True)
        self._run(self._begin)

    def _run(self, step: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Do a step, which returns True if it was the last one."""

        async def done() -> None:
            ended = True
            try:
                ended = await step()
            finally:
                if ended:
                    self._controller.configuration.hold(False)

        self._controller.run(done)

    async def _begin(self) -> bool:
        if any(each.secrets or any(one.secret for one in each.found.inputs) for each in self._candidates):
            self._keychain_problem = await self._importer.keychain_problem()
        return await self._ask()

    async def _ask(self) -> bool:
        """Show the next server; after the last, report on those that were added."""
        from mcphost.imports.importer import ImportAnswer, SecretPlace

        if self._number < len(self._candidates):
            place = SecretPlace.ENVIRONMENT if self._keychain_problem else SecretPlace.KEYCHAIN
            await self._show(self._candidates[self._number], ImportAnswer(secrets=place))
            return False
        await self._finish()
        return True

    async def _show(self, candidate: ImportCandidate, answer: ImportAnswer, problem: str = "") -> None:
        from mcphost.tui.imports.consent import AdditionNotes, AddServerScreen, seen

        preview = await asyncio.to_thread(seen, candidate)
        place = (self._number + 1, len(self._candidates))
        notes = AdditionNotes(self._keychain_problem, problem, self._remarks)
        screen = AddServerScreen(candidate, answer, self._importer.plan, preview, place=place, notes=notes)
        await self._controller.app.push_screen(screen, self._decided)

    def _decided(self, decision: AdditionDecision | None) -> None:
        if decision is not None:
            self._run(partial(self._go_on, decision))

    async def _go_on(self, decision: AdditionDecision) -> bool:
        from mcphost.tui.imports.consent import Addition

        if decision.addition is Addition.STOP:
            await self._finish()
            return True
        if decision.addition is Addition.ADD:
            try:
                await self._add(decision)
            except ConfigError as error:
                await self._show(decision.candidate, decision.answer, str(error))
                return False
        self._number += 1
        return await self._ask()

    async def _add(self, decision: AdditionDecision) -> None:
        """Raises ConfigError."""
        from mcphost.tui.imports.added import AddedServer
        from mcphost.tui.imports.candidates import lines_with_secrets

        planned = await self._importer.store(decision.candidate, decision.answer)
        lines = await asyncio.to_thread(lines_with_secrets, decision.candidate)
        self._added.append(AddedServer(decision.candidate, planned, lines))

    async def _finish(self) -> None:
        """Start the servers that were added, and report on them."""
        from mcphost.tui.imports.added import AddedScreen
        from mcphost.tui.imports.candidates import discard_unused

        if self._unpacked:
            await asyncio.to_thread(discard_unused, self._unpacked, self._importer)
        if not self._added:
            self._controller.app.notify("Nothing was added.")
            return
        problem = ""
        try:
            await self._controller.start_added([each.planned.name for each in self._added])
        except McphostError as error:
            problem = str(error)
        await self._controller.app.push_screen(AddedScreen(self._added, str(self._importer.path), problem))
