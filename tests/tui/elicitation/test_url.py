"""Elicitation by URL: what is shown of the address, what opens it, and the states of the visit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcphost.host.consent.questions import wall_clock
from mcphost.host.server_requests.url_elicitation import UrlElicitationState
from mcphost.host.tool_calls.call import CallState
from mcphost.tui.consent.origin import limit_words
from mcphost.tui.elicitation.url import UrlElicitationScreen
from mcphost.tui.inbox.screen import InboxScreen
from tests.host.server_requests.pending import page, required
from tests.tui.elicitation.questions import Browser, ask, at, got, question_stage
from tests.tui.stage import NARROW, WIDE

pytestmark = pytest.mark.slow
PAGE = "https://example.com/x"
ACCEPTED = {"action": "accept"}

ANSWERS: list[tuple[list[str], Any, list[str]]] = [
    (["enter"], {"action": "decline"}, []),
    (["n"], {"action": "decline"}, []),
    (["x"], {"action": "cancel"}, []),
    (["y"], ACCEPTED, [PAGE]),
    (["up", "enter"], ACCEPTED, [PAGE]),
    (["c", "M"], {"action": "decline"}, []),
]


@pytest.mark.hostile("F06")
@pytest.mark.requirement("ELIC-16", "ELIC-17", "ELIC-18", "ELIC-21", "ELIC-04")
async def test_a_page_opens_by_a_key_alone_and_refusing_is_the_easy_answer() -> None:
    for keys, answer, opened in ANSWERS:
        browser = Browser()
        async with question_stage(browser=browser, size=NARROW) as stage:
            call = ask(stage, page())
            await at(stage, UrlElicitationScreen)
            await stage.shows(
                "“a” asks you to visit a page · no time limit", PAGE, "open example.com in the browser", "▸ n"
            )
            assert browser.opened == []
            await stage.press(*keys)
            assert await got(stage, call) == answer, keys
            assert browser.opened == opened


ADDRESSES: list[tuple[str, list[str]]] = [
    ("https://xn--80ak6aa92e.com/a", ["xn--80ak6aa92e.com which reads аррӏе.com", "letters of another script"]),
    ("https://аррӏе.com/a", ["xn--80ak6aa92e.com which reads аррӏе.com", "https://аррӏе.com/a"]),
    ("https://192.0.2.7:8443/", ["The host is a number, not a name.", "unusual port 8443"]),
    ("http://127.0.0.1:9/x", ["This page is served by a program on this machine."]),
    ("https://example.com/[bold]x[/]", ["https://example.com/[bold]x[/]"]),
]


@pytest.mark.hostile("F06")
@pytest.mark.requirement("ELIC-19")
async def test_both_spellings_of_a_host_are_shown_and_what_is_odd_is_said() -> None:
    async with question_stage(size=NARROW) as stage:
        for url, words in ADDRESSES:
            call = ask(stage, page(url))
            dialog = await at(stage, UrlElicitationScreen)
            for word in words:
                assert word in stage.flat, url
            host = dialog.question.address
            assert host is not None
            strips = stage.app.screen._compositor.render_strips()
            parts = [part for strip in strips for part in strip if part.style]
            assert any(part.style.bold and host.host in part.text for part in parts if part.style)
            assert not any(part.style.link for part in parts if part.style)
            await stage.press("n")
            await stage.ended(call)


@pytest.mark.hostile("F06")
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_a_long_address_must_be_read_before_it_opens(size: tuple[int, int]) -> None:
    browser = Browser()
    async with question_stage(browser=browser, size=size) as stage:
        call = ask(stage, page("https://example.com/" + "a" * 8000 + "end", message="word " * 2000))
        await at(stage, UrlElicitationScreen)
        await stage.shows(
            "The address is very long: 8,023 characters.", "scroll to the end (space) to enable y", "decline"
        )
        await stage.press("y")
        assert browser.opened == []
        for _ in range(60):
            await stage.press("space")
        await stage.until(lambda _: "scroll to the end" not in stage.text)
        await stage.press("y")
        assert await got(stage, call) == ACCEPTED
        assert len(browser.opened) == 1


ENDS: list[tuple[list[str], UrlElicitationState]] = [
    ([], UrlElicitationState.COMPLETED),
    (["g"], UrlElicitationState.CONTINUED),
    (["x"], UrlElicitationState.GIVEN_UP),
]


@pytest.mark.requirement("ELIC-22", "ELIC-23")
async def test_an_opened_page_waits_until_someone_says_it_is_done() -> None:
    browser = Browser()
    async with question_stage(browser=browser, size=NARROW) as stage:
        for number, (keys, state) in enumerate(ENDS):
            call = ask(stage, page(elicitation=f"e{number}"))
            await at(stage, UrlElicitationScreen)
            await stage.press("y")
            assert await got(stage, call) == ACCEPTED
            await stage.shows(
                "the server has not said that it is done",
                "open it again",
                "done: let “a” continue",
                "stop waiting for it",
            )
            await stage.press("o", "c")
            twice = 2 * number + 2
            await stage.until(lambda _: len(browser.opened) == twice)  # noqa: B023
            assert stage.app.clipboard == PAGE
            stage.call("complete", {"ids": ["nobody's", f"e{number}"] if not keys else ["nobody's"]})
            await stage.press(*keys)
            await stage.shows(state.value, "close")
            assert list(stage.host.elicitation.all.values())[-1].state is state
            await stage.press("escape")
            await stage.gone()


async def test_a_page_left_open_is_in_the_inbox_until_it_is_done() -> None:
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, page())
        await at(stage, UrlElicitationScreen)
        await stage.press("y")
        await got(stage, call)
        await stage.shows("the server has not said")
        await stage.press("escape", "f2")
        await stage.at(InboxScreen)
        await stage.shows("page at example.com: opened")
        await stage.press("enter")
        await at(stage, UrlElicitationScreen)
        await stage.shows("done: let “a” continue")
        await stage.press("escape")
        await stage.gone()
        stage.call("complete", {"ids": ["e1"]})
        await stage.until(lambda app: any("the page at example.com: done" in n.message for n in app._notifications))


async def test_a_page_that_no_browser_could_be_had_for_says_so() -> None:
    async with question_stage(browser=Browser("there is no desktop here"), size=NARROW) as stage:
        call = ask(stage, page())
        await at(stage, UrlElicitationScreen)
        await stage.press("y")
        await got(stage, call)
        await stage.shows("▲ not opened: there is no desktop here. c copies the address.")


@pytest.mark.requirement("ELIC-24")
async def test_a_call_that_needs_a_visit_goes_on_after_it() -> None:
    async with question_stage(size=WIDE) as stage:
        call = stage.call("demand", {"data": {"elicitations": [required()]}})
        await at(stage, UrlElicitationScreen)
        assert call.state is CallState.VISITING
        (waiting,) = stage.app.approver.open.values()
        limit = limit_words(waiting.question)
        assert limit.startswith("until ")
        await stage.shows(f"“a” asks you to visit a page · {limit}")
        await stage.press("p", "f2")
        await stage.shows(f"just now · {limit}")
        await stage.press("enter")
        await at(stage, UrlElicitationScreen)
        await stage.shows(f"for call {call.number} · demand · waiting for you to visit a page", "Come and see")
        await stage.shows(f" · at {wall_clock(waiting.asked_at)}")
        await stage.press("y")
        await stage.shows("done: let “a” continue")
        await stage.press("escape", "f2")
        await stage.shows(limit, "enter open")  # once it was opened, too
        await stage.press("enter")
        await stage.shows(f"“a” asks you to visit a page · {limit}")
        await stage.press("g")
        await stage.shows("“a” asks you to visit a page ──")
        await stage.press("escape")
        await stage.ended(call)
        assert call.outcome is not None
        assert json.loads(call.outcome.raw["content"][0]["text"]) == "visited"


async def test_a_page_withdrawn_before_it_opens_closes_with_a_note() -> None:
    browser = Browser()
    async with question_stage(browser=browser) as stage:
        ask(stage, page())
        await at(stage, UrlElicitationScreen)
        stage.call("take_back")
        await stage.gone()
        await stage.until(lambda app: any("no page was opened" in note.message for note in app._notifications))
        assert browser.opened == []
