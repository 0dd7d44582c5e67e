"""Every theme can be read: the contrast of its tokens, computed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from textual.command import CommandList
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import Widget

import mcphost.tui
from mcphost.composition import dependencies, values_for
from mcphost.config import Config
from mcphost.config.models import UI
from mcphost.host.host import Host
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS
from mcphost.tui.app import McphostApp
from mcphost.tui.bridge import ScreenApprover
from mcphost.tui.forms.text_boxes import LineBox
from mcphost.tui.kit.facts_table import fact
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.palette import PaletteScreen
from mcphost.tui.start_info import StartInfo
from mcphost.tui.theme import (
    DARK,
    EDGE_CONTRAST,
    EDGES,
    GROUNDS,
    LIGHT,
    PAIRS,
    SIXTEEN,
    TEXT_CONTRAST,
    TEXTS,
    THEMES,
    contrast,
    with_contrast,
)
from tests.tui.stage import demo, on_stage

ALL = {theme.name: theme for theme in (*THEMES, *BUILTIN_THEMES.values())}
TRUECOLOR = [name for name, theme in ALL.items() if not theme.ansi]


def variables(theme: Theme) -> dict[str, str]:
    return with_contrast(theme, {**theme.to_color_system().generate(), **theme.variables})


def seen(tokens: dict[str, str], token: str) -> Color:
    color = Color.parse(tokens[token])
    return Color.parse(tokens["background"]).blend(color.with_alpha(1.0), color.a)


@pytest.mark.parametrize("name", TRUECOLOR)
def test_every_text_stands_out_from_every_ground(name: str) -> None:
    tokens = variables(ALL[name])
    grounds = [seen(tokens, ground) for ground in GROUNDS]
    ratios = {text: contrast(seen(tokens, text), grounds) for text in TEXTS}
    ratios |= {text: contrast(seen(tokens, text), [seen(tokens, ground)]) for text, ground in PAIRS}
    assert {text: ratio for text, ratio in ratios.items() if ratio < TEXT_CONTRAST} == {}


@pytest.mark.parametrize("name", TRUECOLOR)
def test_every_border_and_scrollbar_stands_out_from_every_ground(name: str) -> None:
    tokens = variables(ALL[name])
    grounds = [seen(tokens, ground) for ground in GROUNDS[:3]]
    ratios = {edge: contrast(seen(tokens, edge), grounds) for edge in EDGES}
    assert {edge: ratio for edge, ratio in ratios.items() if ratio < EDGE_CONTRAST} == {}


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_mcphost_s_own_themes_need_no_correction(theme: Theme) -> None:
    tokens = {**theme.to_color_system().generate(), **theme.variables}
    assert with_contrast(theme, tokens) == tokens


def test_contrast_is_that_of_the_standard() -> None:
    assert round(contrast(Color.parse("#777777"), [Color.parse("#ffffff")]), 2) == 4.48
    assert contrast(Color.parse("#000000"), [Color.parse("#ffffff")]) == 21.0


def test_red_means_danger_only_where_there_are_sixteen_colours() -> None:
    tokens = variables(SIXTEEN)
    red = {token for token, value in tokens.items() if "ansi_red" in value or "ansi_bright_red" in value}
    assert {token for token in red if "error" not in token} == set()
    assert tokens["accent"] == tokens["border"] == tokens["footer-key-foreground"] == "ansi_yellow"


def test_every_colour_of_text_and_borders_has_its_contrast() -> None:
    known = {*TEXTS, *EDGES, *GROUNDS, *(text for text, _ in PAIRS), *(ground for _, ground in PAIRS), "warning"}
    unknown = {f"{name} in {path.name}" for path, name in inks() if name not in known}
    assert unknown == set()


def inks() -> Iterator[tuple[Path, str]]:
    """The tokens that the rules of our widgets give to text and borders."""
    for path in Path(mcphost.tui.__file__).parent.rglob("*.py"):
        for rule in re.finditer(
            r"(?<![-\w])(?:color|border(?:-\w+)?|border-title-color): (?:\w+ )?\$([\w-]+)", path.read_text("utf-8")
        ):
            yield path, rule[1]


def app_with(folder: Path, ui: UI, **more: Any) -> McphostApp:
    """The app with this ``[ui]`` and these facts from the command line, not running."""
    config, approver = Config(ui=ui), ScreenApprover()
    host = Host(config, dependencies(approver, values_for(config, {}), state=folder, answers=SCREEN_KINDS))
    return McphostApp(host, approver, StartInfo(None, False, (), folder, "", **more))


@pytest.mark.parametrize(
    ("configured", "kept", "theme"),
    [("auto", "nord", "nord"), ("dracula", "nord", "dracula"), ("auto", "no such theme", "mcphost-dark")],
    ids=["chosen on screen", "configured", "unknown now"],
)
def test_a_kept_theme_holds_where_the_configuration_names_none(
    configured: str, kept: str, theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    ui = UI.model_validate({"theme": configured})
    assert app_with(tmp_path, ui, theme=kept).theme == theme


@pytest.mark.parametrize(
    ("environment", "light", "theme"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False, DARK),
        ({"TERM": "xterm-256color"}, True, LIGHT),
        ({"TERM": "linux"}, False, SIXTEEN),
        ({"TERM": "linux", "NO_COLOR": "1"}, False, DARK),
    ],
    ids=["truecolor", "256 colours on white", "16 colours", "no colour"],
)
def test_the_theme_is_chosen_by_what_the_terminal_can_show(
    environment: dict[str, str], light: bool, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLORTERM", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert app_with(tmp_path, UI(), light_terminal=light).theme == theme.name


@pytest.mark.slow
async def test_the_theme_of_the_configuration_is_taken() -> None:
    async with on_stage(Config(ui=UI(theme="mcphost-light"))) as stage:
        assert stage.app.theme == "mcphost-light"
        assert not stage.app.current_theme.dark
        assert stage.app.screen.background_colors[1].hex.lower() == LIGHT.background


def in_sixteen_colours(config: Config) -> Config:
    return config.model_copy(update={"ui": UI(theme="mcphost-16")})


@pytest.mark.slow
async def test_sixteen_colours_reverse_the_row_under_the_cursor() -> None:
    async with on_stage(in_sixteen_colours(demo())) as stage:
        await stage.ready()
        rows = stage.app.main.query_one("ToolList RowList")
        assert [reversed_cells(rows, line) for line in (0, 1)] == [True, False]
        await stage.press("s")
        await stage.until(lambda _: not reversed_cells(rows, 0))


@pytest.mark.slow
async def test_the_chosen_row_of_the_palette_is_reversed_in_sixteen_colours() -> None:
    async with on_stage(in_sixteen_colours(Config())) as stage:
        await stage.press("ctrl+p")
        await stage.at(PaletteScreen)
        found = stage.app.screen.query_one(CommandList)
        await stage.until(lambda _: found.option_count > 1 and found.highlighted == 0)
        assert [reversed_cells(found, line) for line in (0, 1)] == [True, False]
        assert colours(found, 0) == set() != colours(found, 1)


@pytest.mark.slow
async def test_a_reversed_row_has_no_colours_of_its_own() -> None:
    async with on_stage(in_sixteen_colours(demo())) as stage:
        await stage.ready()
        rows = stage.app.main.query_one("ServersPane RowList")
        assert colours(rows, 1)
        await stage.press("s", "down")
        await stage.until(lambda _: reversed_cells(rows, 1))
        assert colours(rows, 1) == set()


@pytest.mark.slow
async def test_sixteen_colours_show_the_cursor_of_a_field_and_dim_its_hint() -> None:
    async with on_stage(in_sixteen_colours(demo())) as stage:
        await stage.ready()
        await stage.open_tool("keep_logbook")
        await stage.write("abc")
        await stage.press("left")
        box = stage.app.focused
        assert isinstance(box, LineBox)
        await stage.until(lambda _: [str(each.style) for each in box.render_line(0)][1] == "reverse default on default")
        below = stage.app.screen._compositor.render_strips()[box.region.y + 1].crop(box.region.x, box.region.right)
        hint = {str(segment.style) for segment in below if segment.text.strip()}
        assert hint == {"dim default on default"}, below


@pytest.mark.slow
async def test_sixteen_colours_dim_the_screen_behind_a_dialog() -> None:
    async with on_stage(in_sixteen_colours(demo())) as stage:
        await stage.ready()
        stage.app.push_screen(AskScreen("Do it?", [fact("what", "this")], "do it"))
        await stage.until(lambda _: "Do it?" in stage.text)
        frame = stage.app.screen.query_one(".dialog").region
        for row, strip in enumerate(stage.app.screen._compositor.render_strips()):
            styles = [segment.style for segment in strip if segment.text.strip() and segment.style]
            if row < frame.y:
                assert all(style.dim and not style.reverse for style in styles), strip.text
            else:
                assert not all(style.dim for style in styles), strip.text


@pytest.mark.slow
@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
async def test_empty_boxes_of_one_and_many_lines_look_alike(theme: str) -> None:
    async with on_stage(demo()) as stage:
        await stage.ready()
        stage.app.theme = theme
        await stage.open_tool("keep_logbook")
        await stage.press("tab")
        area, line = stage.app.main.query_one("LinesBox"), stage.app.main.query_one(LineBox)
        await stage.press("tab")
        assert placeholder(area) == placeholder(line)


def placeholder(box: Widget) -> tuple[object, bool]:
    """The colour of an empty box's first letters, and whether they are dim."""
    style = next(segment.style for segment in box.render_line(0) if segment.text.startswith("req"))
    assert style is not None
    return style.color, bool(style.dim)


def reversed_cells(rows: Widget, line: int) -> bool:
    """True if all cells of this line are reversed."""
    return all(segment.style is not None and segment.style.reverse for segment in rows.render_line(line))


def colours(rows: Widget, line: int) -> set[str]:
    """The colours of this line's text, without the terminal's own."""
    found = (segment.style.color for segment in rows.render_line(line) if segment.style and segment.text.strip())
    return {colour.name for colour in found if colour and not colour.is_default}
