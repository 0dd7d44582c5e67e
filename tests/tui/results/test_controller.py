"""Images, audio and files on screen: drawn among other blocks, enlarged, and opened after a question."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from mcphost.composition import demo_config
from mcphost.config import Config
from mcphost.errors import NotDone
from mcphost.protocol.models.prompts import GetPromptResult
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.main.help import HelpScreen
from mcphost.tui.results.desktop_open import Desktop, opener
from mcphost.tui.results.picture_view import PictureScreen, PictureView
from mcphost.tui.results.pictures import REMOVE
from mcphost.tui.results.reading_pane import PaneReading, ReadingView
from tests.tui.resources.resources import SIZES, Alone, go, shows
from tests.tui.results.samples import chunk, encoded, picture, png
from tests.tui.stage import NARROW, WIDE, Stage, on_stage

pytestmark = pytest.mark.slow
HALF = "▀▀"
SOUND = "sound_foghorn"


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A terminal with colours, without graphics, and without a desktop."""
    for name in ("NO_COLOR", "TMUX", "STY", "TERM_PROGRAM", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    return monkeypatch


async def see_dusk(stage: Stage) -> None:
    await go(stage, "dusk")
    await stage.press("enter")
    await stage.shows("image/png · 240×136 · 6.2 kB")


def rows_of_picture(stage: Stage) -> int:
    return sum(HALF in line for line in stage.text.split("\n"))


@SIZES
@pytest.mark.requirement("RES-03")
async def test_a_picture_is_drawn_under_its_line_and_enter_shows_it_large(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await see_dusk(stage)
        await stage.shows(HALF, "enter enlarges")
        assert rows_of_picture(stage) == size[1] // 3
        await stage.press("enter")
        await stage.at(PictureScreen)
        await stage.until(lambda _: rows_of_picture(stage) > size[1] * 0.8)
        await stage.press("escape")
        await stage.gone()
        await stage.press("i")
        await stage.shows("i turns them on")
        assert HALF not in stage.text
        await stage.press("i")
        await stage.shows(HALF)
        await stage.press("m")
        await stage.shows("00000000  89 50 4e 47")


@pytest.mark.requirement("TOOLS-04")
async def test_pictures_of_a_result_are_decoded_when_in_view() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        call = stage.call("paint_view", {"hour": 12})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.app.main.tools.show_call(call)
        await stage.shows("image image/png · 240×136", HALF)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("NO_COLOR", "1", "Not drawn: NO_COLOR is set."),
        ("COLORTERM", "", "Not drawn: This terminal has too few colours."),
    ],
)
async def test_a_terminal_without_the_colours_gets_the_line_alone(
    terminal: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    terminal.setenv("TERM", "xterm")
    terminal.setenv(variable, value)
    async with on_stage(size=NARROW) as stage:
        await see_dusk(stage)
        await stage.shows(words, "w saves it")
        await stage.press("i", "enter")
        assert not stage.app.query(PictureView)
        assert len(stage.app.screen_stack) == 1


async def test_pictures_can_be_off_from_the_start() -> None:
    config = demo_config()
    async with on_stage(Config(servers=config.servers, ui={"images": "off"}), size=NARROW) as stage:  # type: ignore[arg-type]
        await see_dusk(stage)
        await stage.shows("i turns them on")
        await stage.press("i")
        await stage.shows(HALF)


CONTENTS = [
    ({"type": "image", "data": encoded(picture("JPEG")), "mimeType": "image/png"}, ["those of image/jpeg", HALF]),
    ({"type": "image", "data": encoded(png(60_000, 60_000)), "mimeType": "image/png"}, ["Not drawn: it says it is 60"]),
    (
        {"type": "image", "data": encoded(png(4, 4, chunk(b"IDAT", b"?"))), "mimeType": "image/png"},
        ["Not drawn: it is damaged or cut short."],
    ),
    (
        {"type": "image", "data": encoded(b"<svg/>"), "mimeType": "image/svg+xml"},
        ["image image/svg+xml · 6 B", "Not drawn: only PNG"],
    ),
    (
        {"type": "resource", "resource": {"uri": "f:///a.gif", "blob": encoded(picture("GIF"))}},
        ["f:///a.gif", "image/gif · 40×20", HALF],
    ),
]


@pytest.mark.hostile("C14")
@pytest.mark.requirement("PROMPT-05")
@pytest.mark.parametrize(("content", "words"), CONTENTS, ids=range(len(CONTENTS)))
async def test_pictures_of_a_prompt_are_drawn_or_it_is_said_why_not(content: dict[str, Any], words: list[str]) -> None:
    view = ReadingView("Messages", "hint")
    async with Alone(lambda: view).run_test(size=(90, 30)) as pilot:
        result = GetPromptResult.read({"messages": [{"role": "user", "content": content}]})
        view.show_reading(PaneReading("s", "p").with_prompt(result, 0.1))
        await shows(pilot, *words)


def graphics(app: App[Any]) -> list[str]:
    """The graphics sequences that are sent to the terminal from now on."""
    sequences = list[str]()
    assert app._driver is not None

    def write(data: str) -> None:
        if "\x1b_G" in data:
            sequences.append(data)

    app._driver.write = write  # type: ignore[method-assign]
    return sequences


async def test_a_graphics_terminal_gets_a_sharp_picture_and_loses_it(
    terminal: pytest.MonkeyPatch,
) -> None:
    terminal.setenv("TERM", "xterm-kitty")
    async with on_stage(size=NARROW) as stage:
        await see_dusk(stage)
        sequences = graphics(stage.app)
        await stage.press("enter")
        await stage.until(lambda _: sequences and "a=T" in sequences[-1])
        await stage.press("question_mark")
        await stage.at(HelpScreen)
        assert sequences[-1] == REMOVE
        await stage.press("escape")
        await stage.until(lambda _: "a=T" in sequences[-1])
        await stage.press("escape")
        await stage.gone()
        await stage.until(lambda _: sequences[-1] == REMOVE)


@pytest.fixture
def desktop(tmp_path: Path, terminal: pytest.MonkeyPatch) -> Path:
    """A desktop whose opener records its file and the file's mode; returns where."""
    record, folder = tmp_path / "opened", tmp_path / "bin"
    folder.mkdir()
    program = folder / "xdg-open"
    program.write_text(f'#!/bin/sh\nstat -c "%a %s %n" "$@" "$(dirname "$1")" >> {shlex.quote(str(record))}\n')
    program.chmod(0o755)
    terminal.setenv("DISPLAY", ":0")
    terminal.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return record


def opened(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


async def question(stage: Stage) -> None:
    """Wait until the question is drawn and takes keys."""
    await stage.until(lambda app: isinstance(app.screen, AskScreen) and app.screen.shown_for() >= 0)


@pytest.mark.hostile("C14")
@SIZES
@pytest.mark.requirement("TOOLS-05")
async def test_a_sound_opens_as_a_private_copy_after_a_question(size: tuple[int, int], desktop: Path) -> None:
    async with on_stage(size=size) as stage:
        await stage.ready()
        call = stage.call(SOUND, {"blasts": 1})
        await stage.call_dialog()
        await stage.press("y")
        await stage.ended(call)
        await stage.app.main.tools.show_call(call)
        await stage.shows("audio audio/wav · 1.2 s", "o opens it in a desktop program")
        stage.app.main.tools.query_one(".-current").parent.focus()  # type: ignore[union-attr]
        await stage.press("down", "o")
        await question(stage)
        await stage.shows("audio/wav, by its content", "19 kB", "xdg-open FILE", "y open it · n cancel")
        await stage.press("n")
        await stage.gone()
        assert not opened(desktop)
        await stage.press("o")
        await question(stage)
        await stage.press("y")
        await stage.until(lambda _: len(opened(desktop)) == 2)
        file, folder = (line.split(" ", 2) for line in opened(desktop))
        assert (file[0], file[2].rpartition(".")[2], folder[0]) == ("600", "wav", "700")
        assert int(file[1]) == 19_244
        await stage.shows("Opened a copy")
    assert not os.path.exists(folder[2])  # noqa: ASYNC240


@pytest.mark.parametrize(
    ("environment", "words"),
    [({}, "there is no desktop here"), ({"SSH_CONNECTION": "a 1 b 22"}, "this is a session over ssh")],
)
async def test_without_a_desktop_opening_says_so_and_what_to_do_instead(
    terminal: pytest.MonkeyPatch, environment: dict[str, str], words: str
) -> None:
    for name, value in environment.items():
        terminal.setenv(name, value)
    async with on_stage(size=WIDE) as stage:
        await see_dusk(stage)
        await stage.press("o")
        await stage.until(lambda _: words in stage.flat and "w saves it as a file" in stage.flat)


@pytest.mark.parametrize(
    ("environment", "platform", "program"),
    [
        ({"DISPLAY": ":0"}, "linux", "/bin/xdg-open"),
        ({"WAYLAND_DISPLAY": "w", "SSH_TTY": "/dev/pts/1"}, "linux", "/bin/xdg-open"),
        ({}, "darwin", "/bin/open"),
        ({"SSH_TTY": "/dev/ttys1"}, "darwin", None),
        ({"SSH_TTY": "/dev/pts/1"}, "linux", None),
        ({}, "linux", None),
    ],
)
def test_the_opener_is_the_desktops_and_needs_a_screen(
    environment: dict[str, str], platform: str, program: str | None
) -> None:
    if program is None:
        with pytest.raises(NotDone, match="w saves it"):
            opener(environment, platform, lambda name: f"/bin/{name}")
    else:
        assert opener(environment, platform, lambda name: f"/bin/{name}") == program
        with pytest.raises(NotDone, match="is not installed"):
            opener(environment, platform, lambda name: None)


async def test_a_failing_opener_is_reported_and_copies_have_own_names(tmp_path: Path) -> None:
    program, desktop = tmp_path / "opener", Desktop()
    names_file = tmp_path / "names"
    program.write_text(f'#!/bin/sh\nls "$(dirname "$1")" > {shlex.quote(str(names_file))}\nexit 4\n')
    program.chmod(0o700)
    for _ in range(2):
        with pytest.raises(NotDone, match="ended with 4, so no program may be set for image/png"):
            await desktop.open(str(program), b"x", "image/png")
    names = names_file.read_text().split()
    assert len(set(names)) == 2
    with pytest.raises(NotDone, match="No such file"):
        await desktop.open(str(tmp_path / "none"), b"x", "image/png")
    desktop.close()
    desktop.close()
