"""Opens the user's editor and pager on the terminal, one at a time. Servers go on; their questions wait."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from textual.app import App, SuspendNotSupported

from mcphost.errors import NotDone
from mcphost.host.terminal_programs import EditedFile, editor_command, pager_command, run_on_terminal
from mcphost.protocol.display import show
from mcphost.tui.inbox.queue import QuestionQueue
from mcphost.tui.kit.messages import EditorRequested, PagerRequested

Run = Callable[[Sequence[str], IO[bytes] | None], Awaitable[int]]


class ProgramsController:
    """``run`` runs a program until it ends, and returns its exit code."""

    def __init__(self, app: App[Any], questions: QuestionQueue, run: Run = run_on_terminal) -> None:
        self._app, self._questions, self._run = app, questions, run
        self._busy = False

    def on_editor_requested(self, event: EditorRequested) -> None:
        event.stop()
        self._begin(partial(self._edit, event))

    def on_pager_requested(self, event: PagerRequested) -> None:
        event.stop()
        self._begin(partial(self._page, event.text))

    def _begin(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start the work if no other program has the terminal; show a failure as a notification."""
        if not self._busy:
            self._busy = True
            self._app.run_worker(self._do(work), group="program")

    async def _do(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except NotDone as problem:
            self._app.notify(show(str(problem)), severity="warning", markup=False, timeout=10)
        finally:
            self._busy = False

    async def _edit(self, event: EditorRequested) -> None:
        command = editor_command()
        try:
            file = await asyncio.to_thread(EditedFile, event.text, event.suffix)
        except OSError as error:
            raise NotDone(f"Not edited: no file could be made for it: {error.strerror}.") from None
        try:
            code = await self._on_terminal([*command, str(file.path)])
            text = await asyncio.to_thread(file.read, event.most_characters)
            if code:
                written = "" if text is None else f" What you wrote was not taken over; {file.keep()}."
                raise NotDone(f"Nothing was changed: {_ending(command, code)}.{written}")
            self._take(event, file, text)
        finally:
            await asyncio.to_thread(file.remove)

    def _take(self, event: EditorRequested, file: EditedFile, text: str | None) -> None:
        if text is None:
            self._app.notify("Nothing was changed in the editor.")
        elif event.box.is_attached:
            event.box.take_edited(text)
        else:
            raise NotDone(f"The box for what you wrote was closed meanwhile; {file.keep()}")

    async def _page(self, text: str) -> None:
        command = pager_command()
        with tempfile.TemporaryFile() as given:
            await asyncio.to_thread(_store, show(text), given)
            code = await self._on_terminal(command, given)
        if code:
            raise NotDone(f"{_ending(command, code)}.")

    async def _on_terminal(self, command: Sequence[str], given: IO[bytes] | None = None) -> int:
        """Run a program while the screen is away. Raises NotDone."""
        problem: OSError | None = None
        code = 0
        self._questions.hold(True)
        try:
            with self._app.suspend():
                try:  # an exception that left this block would leave the screen away
                    code = await self._run(command, given)
                except OSError as error:
                    problem = error
        except SuspendNotSupported:
            raise NotDone("This screen cannot lend its terminal to another program.") from None
        finally:
            self._questions.hold(False)
        if problem is not None:
            raise NotDone(f"{command[0]} cannot be started: {problem.strerror}.")
        return code


def _store(text: str, file: IO[bytes]) -> None:
    file.write(text.encode("utf-8", "replace"))
    file.seek(0)


def _ending(command: Sequence[str], code: int) -> str:
    return f"{Path(command[0]).name} ended with {f'exit code {code}' if code > 0 else f'signal {-code}'}"
