"""The editor and the pager, with a function in place of the program."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from mcphost.protocol.forms.form import FieldKind, FormField
from mcphost.tui.chat.input import MessageArea
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.forms.text_boxes import LineBox
from mcphost.tui.kit.messages import EditorRequested, PagerRequested
from mcphost.tui.programs import ProgramsController

TEXT = {"type": "object", "properties": {"words": {"type": "string"}, "pin": {"type": "string", "format": "password"}}}


class Questions:
    held: list[bool]

    def __init__(self) -> None:
        self.held = []

    def hold(self, held: bool) -> None:
        self.held.append(held)


class Stage(App[None]):
    """A form and a message, and what the program found and wrote."""

    def __init__(self, write: Callable[[str], str | bytes], code: int = 0) -> None:
        super().__init__()
        self._write, self._code = write, code
        self.questions = Questions()
        self.programs = ProgramsController(self, self.questions, self._run)  # type: ignore[arg-type]
        self.found = ""
        self.path = Path()
        self.notified: list[str] = []

    def compose(self) -> ComposeResult:
        yield SchemaForm()
        yield MessageArea()

    def suspend(self) -> Any:
        return nullcontext()

    def notify(self, message: str, **_: Any) -> None:
        self.notified.append(message)

    def on_editor_requested(self, event: EditorRequested) -> None:
        self.programs.on_editor_requested(event)

    def on_pager_requested(self, event: PagerRequested) -> None:
        self.programs.on_pager_requested(event)

    async def _run(self, command: Sequence[str], given: IO[bytes] | None) -> int:
        assert self.questions.held == [True]
        if given is not None:
            self.found = given.read().decode()
            return self._code
        self.path = Path(command[-1])
        self.found = self.path.read_text()
        written = self._write(self.found)
        self.path.write_bytes(written.encode() if isinstance(written, str) else written)
        return self._code

    async def edit(self, pilot: Pilot[None]) -> None:
        await pilot.press("alt+e")
        await self.workers.wait_for_complete()
        await pilot.pause()


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "EDITOR", "true")
    monkeypatch.setitem(os.environ, "PAGER", "true")
    monkeypatch.delitem(os.environ, "VISUAL", raising=False)


@asynccontextmanager
async def stage(write: Callable[[str], str | bytes] = str, code: int = 0) -> AsyncIterator[tuple[Stage, Pilot[None]]]:
    app = Stage(write, code)
    async with app.run_test() as pilot:
        await app.query_one(SchemaForm).load(TEXT, {"words": "one\u202e"})
        app.query_one(SchemaForm).focus_first()
        await pilot.pause()
        yield app, pilot


async def test_a_line_becomes_several_in_the_editor() -> None:
    async with stage(lambda text: text + "\ntwo\x1b") as (app, pilot):
        await app.edit(pilot)
        assert app.found == "one⟨U+202E⟩"
        assert app.query_one(SchemaForm).values() == {"words": "one\u202e\ntwo\x1b"}
        assert "\x1b" not in app.export_screenshot()
        assert not app.path.parent.exists()
        assert app.questions.held == [True, False]


async def test_raw_json_is_written_in_the_editor() -> None:
    async with stage(lambda _: '{"words": "new"}') as (app, pilot):
        await pilot.press("ctrl+j")
        await app.edit(pilot)
        assert app.path.suffix == ".json"
        assert app.query_one(SchemaForm).values() == {"words": "new"}


async def test_a_message_shows_the_controls_of_its_file() -> None:
    async with stage(lambda _: "hello\x9b") as (app, pilot):
        app.query_one(MessageArea).focus()
        await app.edit(pilot)
        assert app.query_one(MessageArea).text == "hello⟨U+009B⟩"


async def test_a_failed_editor_changes_nothing_and_leaves_no_file() -> None:
    async with stage(lambda text: text, code=-11) as (app, pilot):
        await app.edit(pilot)
        assert app.notified == ["Nothing was changed: true ended with signal 11."]
        assert app.query_one(SchemaForm).values() == {"words": "one\u202e"}
        assert not app.path.parent.exists()


async def test_what_a_failed_editor_saved_is_kept() -> None:
    async with stage(lambda _: "long work", code=1) as (app, pilot):
        await app.edit(pilot)
        assert app.notified[0].endswith(f" What you wrote was not taken over; it is in {app.path}.")
        assert app.query_one(SchemaForm).values() == {"words": "one\u202e"}
        assert app.path.read_text() == "long work"
        app.path.unlink()
        app.path.parent.rmdir()


async def test_what_was_written_for_a_closed_box_is_kept() -> None:
    async with stage(lambda _: "long work") as (app, _):
        box = LineBox(FormField(("gone",), FieldKind.STRING), "")
        app.programs.on_editor_requested(EditorRequested(box, "", ".md"))
        await app.workers.wait_for_complete()
        assert app.notified == [f"The box for what you wrote was closed meanwhile; it is in {app.path}"]
        assert app.path.read_text() == "long work"
        app.path.unlink()
        app.path.parent.rmdir()


async def test_a_secret_goes_to_no_editor() -> None:
    async with stage() as (app, pilot):
        await pilot.press("tab")
        await app.edit(pilot)
        assert app.path == Path()


async def test_a_missing_editor_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "EDITOR", "no-such-editor")
    async with stage() as (app, pilot):
        await app.edit(pilot)
        assert app.notified == ["$EDITOR is no-such-editor, which is not installed here; set it to your editor"]


async def test_a_pager_gets_foreign_text_with_marks() -> None:
    async with stage() as (app, _):
        app.programs.on_pager_requested(PagerRequested("red \x1b[31m alert"))
        await app.workers.wait_for_complete()
        assert app.found == "red ␛[31m alert"
