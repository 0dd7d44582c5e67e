"""The cells of a screen as text that is stored and compared.

A snapshot holds the lines of text, and below them each rectangle of cells that are styled alike: `3-5 | 0-11 | #e0e0e0
on #121212 bold` says that in rows 3 to 5 columns 0 to 11 have that color on that background. What differs from run to
run has a fixed text of the same width in its place.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from rich.segment import Segment
from rich.style import Style
from textual.widgets import Input, TextArea
from textual.widgets._toast import ToastRack

from mcphost.tui.app import McphostApp
from tests.tui.stage import Stage

FOLDER = Path(__file__).with_name("snapshots")
SIZES = (80, 24), (140, 40)
QUIET, PATIENCE = 1.5, 15.0
"""Seconds without a change, and seconds in all, after which a screen that differs from its snapshot does differ."""

ATTRIBUTES = ("bold", "dim", "italic", "underline", "underline2", "strike", "reverse", "blink", "overline", "conceal")

Run = tuple[int, int, str]
"""The first and the last column of cells that are styled alike, and how."""

VARYING = [
    (re.compile(r"(?<=127\.0\.0\.1:)(?!40123)\d{5}"), "40000"),
    (re.compile(r"(?<=/tmp/mcphost-)\w{8}"), "00000000"),
]
"""Texts that differ in each run, and their replacements of the same width."""


def snapshot(app: McphostApp) -> str:
    """The snapshot of the screen as text."""
    width, height = app.size
    strips = [list(strip.crop(0, width)) for strip in app.screen._compositor.render_strips()[:height]]
    texts = (settled("".join(each.text for each in line)) for line in strips)
    return "\n".join([*(f"{row:>2}|{text}|" for row, text in enumerate(texts)), "", *areas(strips), ""])


def areas(strips: list[list[Segment]]) -> Iterator[str]:
    """Each rectangle of cells in one style, from top left: its rows, its columns and the style."""
    begun: dict[Run, int] = {}
    ended: list[tuple[int, int, Run]] = []
    for row in range(len(strips) + 1):
        runs = dict.fromkeys(style_runs(strips[row]) if row < len(strips) else ())
        ended += [(begun.pop(run), row - 1, run) for run in begun.keys() - runs.keys()]
        for run in runs:
            begun.setdefault(run, row)
    for top, bottom, (left, right, words) in sorted(ended, key=lambda area: (area[0], area[2])):
        yield f"{span(top, bottom)} | {span(left, right)} | {words}"


def span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def settled(text: str) -> str:
    for pattern, stand_in in VARYING:
        text = pattern.sub(stand_in, text)
    return text


def style_runs(line: list[Segment]) -> Iterator[Run]:
    """The columns of each run of cells in one style, and the style."""
    column = 0
    for words, group in groupby(line, lambda segment: style_words(segment.style or Style.null())):
        width = sum(segment.cell_length for segment in group)
        if width:
            yield column, column + width - 1, words
        column += width


@cache
def style_words(style: Style) -> str:
    ink, ground = (
        "-" if color is None else color.name if color.triplet is None else color.triplet.hex
        for color in (style.color, style.bgcolor)
    )
    attributes = [name for name in ATTRIBUTES if getattr(style, name)]
    return " ".join([f"{ink} on {ground}", *attributes, *([f"link={settled(style.link)}"] if style.link else [])])


class Snapshots:
    """The snapshots of one story, in a folder of its name: compared, or written with ``update``."""

    def __init__(self, story: str, update: bool) -> None:
        self.folder, self.update = FOLDER / story, update
        self.taken: set[str] = set()
        self.problems: list[str] = []

    async def take(self, stage: Stage, name: str, *more: tuple[int, int]) -> None:
        """Compare the screen at each size, and at ``more``; differences are kept for `check`."""
        for width, height in (*SIZES, *more):
            await stage.pilot.resize_terminal(width, height)
            await self._take(stage, self.folder / f"{name}-{width}x{height}.txt")
        if more:
            await stage.pilot.resize_terminal(*SIZES[-1])

    async def _take(self, stage: Stage, path: Path) -> None:
        assert path.name not in self.taken, f"{path.name} is taken twice"
        self.taken.add(path.name)
        stored = read(path)
        shown = await self._at_rest(stage, "" if self.update else stored)
        if self.update:
            store(path, shown)
        elif not stored:
            self.problems.append(f"{path.name} is not stored; --update-snapshots stores it")
        elif shown != stored:
            self.problems.append(difference(stored, shown, path.name))

    async def _at_rest(self, stage: Stage, wanted: str) -> str:
        """The screen once it is as stored, or has not changed for a while."""
        shown, begun = "", time.monotonic()
        since = begun
        while time.monotonic() < min(since + QUIET, begun + PATIENCE):
            still(stage.app)
            await stage.pilot.pause()
            if (now := snapshot(stage.app)) == wanted:
                return now
            if now != shown:
                shown, since = now, time.monotonic()
            await stage.pilot.pause(0.1)
        return shown

    def check(self) -> None:
        """Fail with all differences; with ``update``, remove snapshots that are no longer taken."""
        left = {path.name for path in self.folder.glob("*.txt")} - self.taken
        if self.update:
            for name in left:
                (self.folder / name).unlink()
        problems = self.problems + [f"{name} is stored, and no screen is compared with it" for name in sorted(left)]
        assert not problems, "\n\n".join(problems)


def read(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def store(path: Path, shown: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(shown, "utf-8")


def difference(stored: str, shown: str, name: str) -> str:
    """The lines that differ."""
    lines = stored.splitlines(), shown.splitlines()
    return "\n".join(difflib.unified_diff(*lines, f"{name} stored", f"{name} shown", lineterm="", n=0))


def still(app: McphostApp) -> None:
    """Stop blinking cursors, and notifications that come and go with time."""
    for screen in app.screen_stack:
        for rack in screen.children:
            if isinstance(rack, ToastRack) and rack.display:
                rack.display = False
    for field in app.screen.query("Input, TextArea"):
        if isinstance(field, Input | TextArea) and field.cursor_blink:
            field.cursor_blink = False
