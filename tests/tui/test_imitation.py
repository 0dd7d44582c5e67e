"""No name that a server or a model chose looks like a row of mcphost's own, wherever a person decides by it."""

from __future__ import annotations

import re

import pytest

from tests.labels import own_labels
from tests.tui.story import NARROW, Stage, echo, on_stage

FAKES = {label: f"fake {number}" for number, label in enumerate(own_labels())}
KNOWN = ["server says", "history", "sent to", "rule"]
"""What mcphost says of every call."""


def framed(screen: str) -> tuple[list[str], list[str]]:
    """The lines of the dialog beside the inner frame, and those in it."""
    lines = [line[2:-2].rstrip() for line in screen.splitlines() if re.match(r"│ .* │$", line)]
    inner = [line[2:-2].rstrip() for line in lines if re.match(r"│ .* │$", line)]
    return [line for line in lines if not line.startswith(("│", "╭", "╰"))], inner


async def read_all(stage: Stage) -> list[str]:
    """The screen, page by page to the end."""
    pages = [stage.text]
    while "press space until the end" in pages[-1]:
        await stage.press("space")
        pages.append(stage.text)
    return pages


@pytest.mark.requirement("TOOLS-14")
@pytest.mark.parametrize("size", [NARROW, (120, 36)])
async def test_no_argument_of_a_call_is_shown_as_a_fact_of_ours(size: tuple[int, int]) -> None:
    async with on_stage(echo(), size=size) as stage:
        await stage.ready()
        call = stage.call("echo", {"text": "hi", **FAKES})
        await stage.asked()
        await stage.shows(f"╭─ Arguments ({len(FAKES) + 1}) ")
        pages = await read_all(stage)
        names = list[str]()
        for page in pages:
            beside, inner = framed(page)
            assert not [line for line in beside if "fake" in line]
            assert [
                label for label in KNOWN if [line.startswith(f"{label}  ") for line in beside].count(True) != 1
            ] == []
            assert not [line for line in inner if line and not line.startswith(('"', " "))]
            names += (line.split("  ")[0] for line in inner if line.startswith('"'))
        assert set(names) == {f'"{label}"' for label in ("text", *FAKES)}
        await stage.press("n")
        await stage.ended(call)
