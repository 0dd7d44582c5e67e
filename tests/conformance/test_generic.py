"""The driver of scenarios follows skills, which the suite's own scenarios cannot show of a sound one."""

from __future__ import annotations

import pytest

from tests.conformance.generic import Visitor
from tests.skill_servers import TABLE, TIDES, at_url, spoiled


@pytest.fixture(autouse=True)
def without_keychain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPHOST_KEYCHAIN", "off")  # which the driver sets


async def read_of_tides(mode: str) -> list[str]:
    """The files of a skill that the driver read."""
    server = spoiled(mode)
    server.methods["resources/list"] = lambda params: {"resources": []}
    with at_url(server) as url:
        await Visitor(url, {}).follow()
    return [uri for uri in server.reads if uri.startswith("skill://tides/")]


@pytest.mark.requirement("SKILL-04", "SKILL-09")
async def test_each_file_of_a_sound_skill_is_read() -> None:
    assert await read_of_tides("empty-cursor") == [TIDES, TABLE, "skill://tides/assets/chart.png"]


@pytest.mark.requirement("SKILL-04", "SKILL-05")
async def test_no_other_file_of_a_skill_that_differs_is_read() -> None:
    assert await read_of_tides("other-bytes") == [TIDES]
