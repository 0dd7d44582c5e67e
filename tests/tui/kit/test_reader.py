"""Addresses from servers are text: mcphost fetches nothing of them, whatever the user looks at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcphost.tui.kit.reader import ReaderScreen
from tests.tui.resources.resources import go, offers, seen
from tests.tui.stage import on_stage

pytestmark = pytest.mark.slow


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[object]]]:
    """A local port, and who connected to it."""
    visitors: list[object] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(writer.get_extra_info("peername"))
        writer.close()

    async with await asyncio.start_server(note, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], visitors


@pytest.mark.hostile("C15")
@pytest.mark.requirement("RES-08", "ICON-01", "ICON-02")
async def test_web_addresses_are_read_through_their_server_only(tmp_path: Path) -> None:
    """A host may fetch an https resource itself; mcphost requests it from its server like any other. Icons are never
    fetched, whatever their scheme and wherever they are declared.
    """
    record = tmp_path / "record"
    async with listening() as (port, visitors):
        url = f"https://127.0.0.1:{port}/icon.png"
        async with on_stage(offers("--record", record, "--outside", url), size=(100, 60)) as stage:
            await go(stage, "outside")
            await stage.press("enter")
            await stage.shows("as the server has it")
            assert seen(record, "resources/read") == [{"uri": url}]
            await go(stage)
            for key, title in (("e", "Resources ·"), ("p", "Prompts ·"), ("t", "Tools ·")):
                await stage.press(key)
                await stage.shows(title)
                await stage.press("down", "d")
                await stage.at(ReaderScreen)
                await stage.shows('"icons"', f'"{url}"', '"javascript:alert(1)"')
                await stage.press("escape")
                await stage.gone()
            await stage.press("s", "down", "enter")
            await stage.shows("server name")
            stage.call("echo", {"text": "x"})
            await stage.call_dialog()
            await stage.press("n")
            await stage.gone()
        assert visitors == []
