"""A stage with the resources of a server, and a widget of them alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from mcphost.config import Config
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.resources.pane import ResourcesPane
from tests.tui.stage import NARROW, WIDE, Stage, server, servers

SIZES = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["narrow", "wide"])


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02").decode()


def offers(*arguments: object, **more: Any) -> Config:
    return servers(offers=server("offers.py", *arguments, **more))


def seen(record: Path, method: str) -> list[dict[str, Any]]:
    """The params of the requests of this method that a server with ``--record`` has received."""
    messages = [json.loads(line) for line in record.read_text().splitlines() if line.startswith("{")]
    return [each["params"] for each in messages if each.get("method") == method]


def pane(stage: Stage) -> ResourcesPane:
    assert stage.app.main.resources is not None
    return stage.app.main.resources


async def go(stage: Stage, words: str = "") -> None:
    """Go to the resources, and to the first that these words find."""
    await stage.ready()
    await stage.press("e")
    await stage.until(lambda _: stage.app.main.resources and pane(stage).list.rows.has_focus and pane(stage).list.item)
    if words:
        await stage.press("slash")
        await stage.write(words)
        await stage.press("down")


class Alone(App[None]):
    def __init__(self, make: Callable[[], Widget]) -> None:
        super().__init__()
        self.make, self.requested = make, list[tuple[str, Mapping[str, str]]]()

    def compose(self) -> ComposeResult:
        yield self.make()

    def on_schema_form_suggestions_requested(self, event: SchemaForm.SuggestionsRequested) -> None:
        self.requested.append((event.value, event.others))


def text_of(app: App[None]) -> str:
    return "\n".join("".join(part.text for part in strip) for strip in app.screen._compositor.render_strips())


async def shows(pilot: Pilot[None], *words: str) -> None:
    for _ in range(200):
        await pilot.pause()
        if all(word in text_of(pilot.app) for word in words):
            return
    raise AssertionError(f"{words} not in\n{text_of(pilot.app)}")
