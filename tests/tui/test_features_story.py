"""What a stranger does with resources, prompts and traffic: keys alone, a small terminal, the demo server."""

from __future__ import annotations

from tests.tui.story import NARROW, Stage, on_stage


async def in_resources(stage: Stage, words: str) -> None:
    """To the resources, and to the first that these words find."""
    await stage.ready()
    await stage.press("e")
    await stage.shows("Resources · ", "{} A ship")
    await stage.press("slash")
    await stage.write(words)
    await stage.press("enter")
    await stage.shows(f"│{words}", " of 8")


async def test_a_link_in_a_result_is_followed_and_esc_goes_back_to_the_result() -> None:
    async with on_stage(size=NARROW) as stage:
        await stage.ready()
        await stage.open_tool("chart")
        await stage.shows("demo › fetch_chart")
        await stage.press("ctrl+r")
        await stage.asked()
        await stage.press("y")
        await stage.shows("done", "link · Chart")
        await stage.press("down")
        await stage.shows("▸ link · Chart", "enter opens it", "⏎ open link")
        await stage.press("enter")
        await stage.shows("Contents · demo › lighthouse://ch", "Gannet Bank")
        await stage.press("escape")
        await stage.shows("▸ link · Chart", "⏎ open link")
        await stage.press("escape")
        await stage.shows("demo › fetch_chart", "ctrl+r run")


async def test_a_link_in_a_resource_is_followed_and_esc_goes_back_over_each_step() -> None:
    async with on_stage(size=NARROW) as stage:
        await in_resources(stage, "handbook")
        await stage.press("enter")
        await stage.shows("Rules for every watch", "l links")
        await stage.press("pagedown", "l")
        await stage.shows("Read which resource?", "lighthouse://charts/puffin-stack", "enter read")
        await stage.press("enter")
        await stage.shows("Contents · demo › lighthouse://ch", "Gannet Bank")
        await stage.press("escape")
        await stage.shows("Contents · demo › lighthouse://hand", "More under")  # where it was scrolled to
        await stage.press("escape")
        await stage.shows("Resources · ", "1 of 8")
