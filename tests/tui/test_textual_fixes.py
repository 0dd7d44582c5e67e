"""Timers on a busy machine."""

from __future__ import annotations

import pytest
from textual.widget import Widget

from mcphost.tui.textual_fixes import unskipped
from tests.tui.stage import echo, on_stage

pytestmark = pytest.mark.slow
SOON = 1e-9
"""Seconds that are over before a timer is first looked at."""


async def test_a_timer_fires_though_its_time_is_over_before_it_is_looked_at() -> None:
    async with on_stage(echo()) as stage:
        fired: list[str] = []
        widget = stage.app.main.query_one("TopBar", Widget)
        unskipped(widget.set_timer(SOON, lambda: fired.append("of a widget")))
        stage.app.set_timer(SOON, lambda: fired.append("of the app"))
        await stage.until(lambda _: len(fired) == 2)
