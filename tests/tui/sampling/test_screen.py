"""The dialog for a sampling request: what is shown, what each key does, and what the server gets."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from mcphost.errors import ModelAnswerCut, ModelKeyRefused, ModelUnreachable
from mcphost.host.sampling.request import SamplingState
from mcphost.host.tool_calls.call import CallState
from mcphost.providers.base import AnswerFinished, RetryScheduled, TextDelta, TokenUsage, ToolUseReady
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.facts_table import FactsTable
from mcphost.tui.kit.reader import ReaderScreen
from mcphost.tui.results.picture_view import PictureView
from mcphost.tui.sampling.dialogs import LimitsScreen, ModelScreen, RefusalScreen
from mcphost.tui.sampling.screen import SamplingScreen
from tests.host.sampling.sampling_host import Attempt, create, for_ever
from tests.tui.elicitation.questions import got
from tests.tui.results.samples import picture
from tests.tui.sampling.samplings import ASKED, LOCAL, TIDES, SamplingStage, sampling_config, sampling_stage
from tests.tui.stage import NARROW, WIDE

pytestmark = pytest.mark.slow
UNREACHABLE: Attempt = (ModelUnreachable("claude", "nobody answers at [red]api.example\x1b[2J"),)
CUT: Attempt = (TextDelta("Half an"), ModelAnswerCut("claude", "broke off"))
BAH: Attempt = (TextDelta("Bah"), TokenUsage(9, 1), AnswerFinished("endTurn", "m"))
STUCK: Attempt = (TextDelta("So far"), for_ever)
USE: Attempt = (TextDelta("I look"), ToolUseReady("u1", "tides", {"day": 5}, True), AnswerFinished("toolUse", "m"))
REJECTED = {"error": {"code": -1, "message": "User rejected sampling request"}}


def said(text: str, model: str = "claude-real-1", reason: str | None = "endTurn") -> dict[str, Any]:
    stop = {} if reason is None else {"stopReason": reason}
    return {"role": "assistant", "content": {"type": "text", "text": text}, "model": model, **stop}


def refused(words: str = "") -> dict[str, Any]:
    return (
        {"error": {**REJECTED["error"], "message": f"{REJECTED['error']['message']}: {words}"}} if words else REJECTED
    )


# The keys (a screen that is waited for among them), what the model does at each attempt, what the server gets.
WALKS: list[tuple[list[Any], list[Attempt], Any]] = [
    (["y", "y"], [], said("Hello")),
    (["enter", "y"], [], said("Hello")),
    (["down", "down", "down", "enter"], [], refused()),
    (["n"], [], refused()),
    (["t", RefusalScreen, "enter"], [], refused()),
    (["t", RefusalScreen, "t", "o", "o", "enter"], [], refused("too")),
    (["t", RefusalScreen, "escape", SamplingScreen, "y", "n"], [], refused()),
    (["y", "t", RefusalScreen, "b", "a", "d", "enter"], [], refused("bad")),
    (["y", "e", "!", "ctrl+r", "y"], [], said("Hello!")),
    (["y", "e", "!", "escape", "y"], [], said("Hello")),
    (["y", "r", "y"], [BAH], said("Hello")),
    (["y", "m", ModelScreen, "down", "enter", SamplingScreen, "y"], [BAH], said("Hello")),
    (["m", ModelScreen, "down", "enter", SamplingScreen, "y", "y"], [BAH], said("Hello")),
    (["y", "r", "y"], [UNREACHABLE], said("Hello")),
    (["y", "y", "n"], [UNREACHABLE], refused()),
    (["y", "e", "o", "h", "ctrl+r", "y"], [UNREACHABLE], said("oh", "human")),
    (["y", "y"], [CUT], said("Half an", "claude-sonnet-4-5", None)),
    (
        ["y", "m", ModelScreen, "end", "enter", SamplingScreen, "o", "h", "ctrl+r", "y"],
        [BAH],
        said("Bahoh", "human"),
    ),
    (["y", "e", "f7", "delete", "ctrl+r", "y", "n"], [BAH], refused()),
]


def _walk_id(value: Any) -> str | None:
    """The keys of a walk as its id."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        return " ".join(key for key in value if isinstance(key, str))
    return ""


async def walk(stage: SamplingStage, keys: list[Any]) -> None:
    for key in keys:
        if isinstance(key, str):
            await stage.press(key)
        else:
            await (stage.listens() if key is SamplingScreen else stage.at(key))
        await settled(stage)


async def settled(stage: SamplingStage) -> None:
    """Wait until there is a question, or until all has ended."""
    handle = stage.sampling

    def done(_: object) -> bool:
        screen = stage.app.screen
        asks = isinstance(screen, SamplingScreen) and screen.waiting is not None and screen.shown_for() >= 0
        return handle.state.ended or asks or not isinstance(screen, SamplingScreen)

    await stage.until(done)
    await stage.pilot.pause()


@pytest.mark.requirement("SAMP-02", "SAMP-03", "SAMP-04")
@pytest.mark.parametrize(("keys", "attempts", "expected"), WALKS, ids=lambda value: _walk_id(value))
async def test_the_server_gets_what_was_agreed_to(keys: list[Any], attempts: list[Attempt], expected: Any) -> None:
    async with sampling_stage({"claude": attempts}) as stage:
        call, _ = await stage.request_sampling(create())
        await walk(stage, keys)
        await stage.gone()
        assert await got(stage, call) == expected
        ended = "Sent to a" if "role" in expected else "Declined"
        await stage.until(lambda _: any(note.startswith(ended) for note in stage.notes))


async def test_arrows_and_enter_choose_an_answer_that_is_not_dimmed() -> None:
    async with sampling_stage({"claude": [UNREACHABLE]}) as stage:
        call, screen = await stage.request_sampling(create())
        await stage.shows("▸ y   ask claude", "  n   decline", "  p   decide later")
        await stage.press("enter")
        await stage.shows("  y   nothing to send yet", "▸ r   try again")
        await stage.until(lambda _: screen.answers.has_focus)
        await stage.press("home", "enter")
        assert stage.sampling.state is SamplingState.REVIEWING
        await stage.press("down", "down", "enter")
        await stage.shows("▸ y   send it to “a”", "  r   ask again", "Hello")
        await stage.press("q")
        await stage.shows("  y   q goes back to the answer, to send it", "▸ e   edit the prompt")
        await stage.press("home", "enter", "q")
        await stage.shows("▸ y   send it to “a”")
        await stage.until(lambda _: screen.answers.has_focus)
        await stage.press("enter")
        assert await got(stage, call) == said("Hello")


async def test_the_answers_share_a_line_on_a_low_screen() -> None:
    async with sampling_stage(size=(80, 18)) as stage:
        call, _ = await stage.request_sampling(create())
        await stage.shows("▸y ask claude · e edit · m model · n decline · t say why · p later", "Say hello")
        await stage.press("enter")
        await settled(stage)
        await stage.shows("▸y send it · e edit the answer")
        await stage.press("enter")
        assert await got(stage, call) == said("Hello")


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_the_dialog_is_as_high_as_its_content_needs(size: tuple[int, int]) -> None:
    async with sampling_stage(size=size) as stage:
        call, screen = await stage.request_sampling(create())
        await stage.press("y")
        await stage.shows("Send this answer to “a”?", "goes to")
        known = screen.query_one(".known")
        await stage.until(lambda _: known.size.height == screen.query_one(".known FactsTable").outer_size.height)
        assert not known.show_vertical_scrollbar, "all facts are in view"
        await stage.until(lambda _: screen.query_one(".dialog").outer_size.height <= 23)
        await stage.press("y")
        assert await got(stage, call) == said("Hello")


SHOWN = [
    "“a” asks for a language model's answer · no time limit",
    "asked by the server “a”, not by mcphost",
    "Send this prompt to claude? asked for call 1 · ask",
    "━━ system prompt",
    "Be a harbour master",
    "━━ 1 · user",
    "- two",
    "claude · claude-sonnet-4-5",
    "the server's hint “sonnet” is part of its name",
    "up to 4,096 more for the answer; at most 0.06",
    "0 requests, 0 of 50,000 tokens (this run)",
    "the server wants context (of all servers, which none gets): none is added",
    "the server wants up to 9000 tokens; sampling.max_tokens allows 4096",
    "tides",
    "the model must use one; a runs them",
    "4,096 (the server asked for 9,000)",
    "0.25",
    '"END"',
    '"user_id": "u-7"',
    "cost 0.4 · speed 0.6 · intelligence 0.9",
    "3 in, 15 out per M tokens",
    'a model like "sonnet" · cheap 0.2 · intelligent 0.9',
    "asks.py",
    "y ask claude",
]
PRICED = {"provider": "anthropic", "model": "claude-sonnet-4-5", "api_key": "k", "cost": 0.4, "speed": 0.6}
PRICED |= {"intelligence": 0.9, "input_price": 3.0, "output_price": 15.0}


@pytest.mark.hostile("F04", "P12")
@pytest.mark.requirement("SAMP-02", "SAMP-08", "SAMP-16")
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_all_that_would_be_asked_is_shown(size: tuple[int, int]) -> None:
    config = sampling_config({"claude": PRICED, "local": LOCAL}, {"budget_tokens": 50_000})
    async with sampling_stage(config=config, size=size) as stage:
        _, screen = await stage.request_sampling(ASKED)
        seen = stage.flat
        await stage.press("space")
        seen += stage.flat + " ".join(screen.query_one(".known FactsTable", FactsTable).text.split())
        await stage.press("tab", "end")
        await stage.shows("rule", "'ask'")
        for words in SHOWN:
            assert words in seen, f"{words}\n{stage.text}"
        assert not stage.port.requests, "no model was asked yet"


@pytest.mark.requirement("SAMP-02", "SAMP-08")
async def test_the_model_gets_the_edited_prompt() -> None:
    request = create(systemPrompt="Be kind", temperature=0.3, stopSequences=["END"], includeContext="thisServer")
    request["params"]["messages"].insert(0, {"role": "user", "content": {"type": "text", "text": "Leave me out"}})
    async with sampling_stage() as stage:
        await stage.ended(stage.call("heard"))  # what it says now is its context
        _, screen = await stage.request_sampling(request)
        await stage.press("e")
        await stage.shows("━━ system prompt", "━━ 1 · user", "Leave me out", "━━ 2 · user")
        screen.pane.area.text = "━━ system prompt\nBe kind!\n━━ 2 · user\nSay hello"
        await stage.press("ctrl+r")
        await stage.until(lambda _: len(stage.sampling.request.messages) == 1)
        await stage.shows("system prompt · changed", "Be kind!", "━━ 1 · user", "prompt edited by you")
        assert "Leave me out" not in stage.text
        await stage.press("l")
        await stage.at(LimitsScreen)
        await stage.press("end", "backspace", "enter", "end", "backspace", "backspace", "backspace", "ctrl+r")
        await stage.until(lambda _: stage.sampling.request.max_tokens == 10)
        await stage.press("c")
        await stage.until(lambda _: stage.sampling.context_added)
        assert not screen.check_action("context", ())
        await stage.press("v")
        await stage.at(ReaderScreen)
        await stage.shows("The request as JSON", '"maxTokens": 10', '"model": "claude-sonnet-4-5"')
        await stage.press("escape", "y")
        await settled(stage)
        ((_, question_stage),) = stage.port.requests
        assert (question_stage.max_tokens, question_stage.temperature, question_stage.stop) == (10, None, ("END",))
        assert question_stage.system.startswith("Be kind!\n\nWhat follows was said by the server 'a'")
        assert [message.text for message in question_stage.messages] == ["Say hello"]
        await stage.press("q")
        await stage.shows("Be kind!", "r ask again")
        await stage.press("e", "?", "ctrl+r")
        await stage.until(lambda _: stage.sampling.request.messages[0].text == "Say hello?")
        await stage.press("r")
        await settled(stage)
        assert stage.port.requests[1][1].messages[0].text == "Say hello?"


async def test_deleting_the_whole_prompt_is_refused_and_undone() -> None:
    async with sampling_stage() as stage:
        _, screen = await stage.request_sampling(create(systemPrompt="Be kind"))
        await stage.press("e", "f7", "delete", "ctrl+r")
        await stage.shows("✖ A prompt needs at least one message. n declines.")
        await stage.press("ctrl+z")
        await stage.shows("━━ system prompt", "Be kind", "━━ 1 · user", "Say hello")
        await stage.press("!", "ctrl+r")
        await stage.until(lambda _: not screen.screen_state.editing)
        assert stage.sampling.request.messages[0].text == "Say hello!"
        assert stage.sampling.request.system == "Be kind"


async def test_a_changed_temperature_marks_the_prompt_as_edited() -> None:
    async with sampling_stage() as stage:
        await stage.request_sampling(create(temperature=0.3))
        assert "edited by you" not in stage.text
        await stage.press("l")
        await stage.at(LimitsScreen)
        await stage.press("enter", "1", "ctrl+r")
        await stage.until(lambda _: stage.sampling.request.temperature == 1)
        await stage.shows("prompt edited by you")


@pytest.mark.requirement("SAMP-02", "SAMP-03")
async def test_y_is_locked_until_the_end_was_in_view() -> None:
    long: Attempt = (TextDelta("line\n" * 60 + "the end"), AnswerFinished("endTurn", "m"))
    async with sampling_stage({"claude": [long]}) as stage:
        call, _ = await stage.request_sampling(create("word\n" * 60 + "last words"))
        await stage.shows("y   ▼ scroll to the end (space) to enable y")
        await stage.press("y", "enter")
        assert not stage.port.requests
        await stage.press("G")
        await stage.shows("last words", "▸ y   ask claude")
        await stage.press("y")
        await settled(stage)
        await stage.shows("y   ▼ scroll to the end (space) to enable y")
        await stage.press("y", "enter")
        await stage.press("G")
        await stage.shows("the end", "▸ y   send it to “a”")
        await stage.press("y")
        assert (await got(stage, call))["content"]["text"].endswith("the end")


@pytest.mark.requirement("SAMP-03")
async def test_stopping_an_answer_keeps_what_has_come() -> None:
    async with sampling_stage({"claude": [STUCK]}) as stage:
        call, _ = await stage.request_sampling(create())
        await stage.press("y")
        await stage.shows("claude is answering", "So far", "x stop, keep this much")
        await stage.press("q")
        await stage.shows("Say hello", "q the answer")
        await stage.press("q", "x")
        await stage.shows("You stopped the answer. Send this much to “a”?", "stopped by you")
        await stage.press("y")
        assert (await got(stage, call))["content"]["text"] == "So far"


async def test_a_request_can_be_declined_while_the_model_is_busy() -> None:
    busy: Attempt = (RetryScheduled(7.0, 2, 3, "it answered 529"), for_ever)
    async with sampling_stage({"claude": [busy]}) as stage:
        call, _ = await stage.request_sampling(create())
        await stage.press("y")
        await stage.shows("claude is busy: trying again in ", " s, 2 of 3 · it answered 529")
        await stage.press("t")
        await stage.at(RefusalScreen)
        await stage.write("enough")
        await stage.press("enter")
        assert await got(stage, call) == refused("enough")


async def test_a_refusal_typed_while_the_answer_ends_is_not_lost() -> None:
    begun: Attempt = (TextDelta("Hal"), lambda: stage.gate.wait(), AnswerFinished("endTurn", "m"))
    async with sampling_stage({"claude": [begun]}) as stage:
        call, _ = await stage.request_sampling(create())
        await stage.press("y")
        await stage.shows("Hal")
        await stage.press("t")
        await stage.at(RefusalScreen)
        stage.gate.set()
        await stage.until(lambda _: stage.sampling.state is SamplingState.REVIEWING)
        await stage.write("no")
        await stage.press("enter")
        assert await got(stage, call) == refused("no")


@pytest.mark.requirement("SAMP-02", "SAMP-03", "SAMP-13")
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "200x60"])
async def test_without_a_model_the_user_writes_the_answer(size: tuple[int, int]) -> None:
    async with sampling_stage(config=sampling_config({}), size=size) as stage:
        call, screen = await stage.request_sampling(create("Who are you?"))
        await stage.shows("You are the model: write an answer to this prompt?", "y write the answer", "m shows how")
        await stage.press("m")
        await stage.at(ModelScreen)
        await stage.shows("[models.claude]", 'provider = "anthropic"', "manual · you write the answer")
        await stage.press("escape", "y")
        await stage.shows("You are the model: write the answer", "Who are you?", "Your answer", "ctrl+r review")
        await stage.write("yes n")
        await stage.press("enter")
        await stage.write("d")
        assert stage.sampling.state is SamplingState.REVIEWING, "letters and enter are text"
        await stage.press("escape")
        await stage.shows("Send this answer to “a”?", "human (you)")
        await stage.press("e", "ctrl+r")
        await stage.until(lambda _: not screen.screen_state.editing)
        await stage.press("y")
        assert await got(stage, call) == said("yes n\nd", "human")


@pytest.mark.hostile("M05")
async def test_a_failure_is_shown_with_advice_and_not_sent() -> None:
    lasting: Attempt = (ModelKeyRefused("claude", "set api_key"),)
    async with sampling_stage({"claude": [UNREACHABLE, lasting, CUT]}) as stage:
        call, screen = await stage.request_sampling(create())
        await stage.press("y")
        await stage.shows(
            "✖ The model could not be reached", "r tries again. m asks another model", "e write the answer"
        )
        await stage.shows("nobody answers at [red]api.example␛[2J", "claude gave no answer")
        assert not screen.check_action("agree", ())
        await stage.listens()
        await stage.press("r")
        await stage.shows("The model's API key is missing or was not accepted", "correct the cause first")
        await stage.listens()
        await stage.press("r")
        await stage.shows("The answer broke off", "The answer of claude broke off. Send this much", "Half an")
        await stage.press("n")
        assert await got(stage, call) == refused()


@pytest.mark.requirement("SAMP-16", "SAMP-18")
async def test_tool_uses_are_shown_edited_and_sent() -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "High water?"}},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "u0", "name": "tides", "input": {"day": 4}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "toolUseId": "u0", "content": [{"type": "text", "text": "14:32"}]}],
        },
    ]
    async with sampling_stage({"claude": [USE]}) as stage:
        call, screen = await stage.request_sampling(create(messages=messages, tools=[TIDES]))
        seen = stage.text
        await stage.press("space", "space")
        use, result = '2 · assistant · → wants the tool "tides" · id "u0"', '← result for id "u0"'
        for words in (use, '"day": 4', result, "14:32"):
            assert words in seen + stage.text
        await stage.press("y")
        await stage.shows("I look", '→ wants the tool "tides" · id "u1"', '"day": 5', "with tool calls")
        await stage.press("e", "x", "ctrl+r")
        await stage.shows("✖ this is not JSON")
        await stage.press("backspace", "up", "end", "7", "ctrl+r")
        await stage.until(lambda _: not screen.screen_state.editing)
        await stage.press("v")
        await stage.at(ReaderScreen)
        shown = json.loads("\n".join(stage.app.screen.query_one("TextView").lines))  # type: ignore[attr-defined]
        await stage.press("escape", "y")
        sent = await got(stage, call)
        assert sent == shown
        assert sent["content"][1] == {"type": "tool_use", "id": "u1", "name": "tides", "input": {"day": 57}}
        assert sent["stopReason"] == "toolUse"


@pytest.mark.requirement("SAMP-10")
async def test_pictures_are_drawn_and_sounds_are_named() -> None:
    content = [
        {"type": "image", "data": base64.b64encode(picture()).decode(), "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    ]
    messages = [
        *({"role": "user", "content": {"type": "text", "text": f"number {n}"}} for n in range(60)),
        {"role": "user", "content": content},
    ]
    async with sampling_stage(size=WIDE) as stage:
        _, screen = await stage.request_sampling(create(messages=messages))
        await stage.shows("number 0")
        await stage.press("G")
        await stage.shows("━━ 61 · user · 1 of 2 · image image/png · 40×20", "audio audio/wav")
        await stage.until(lambda app: app.screen.query_one(PictureView)._drawing is not None)
        await stage.press("i")
        await stage.shows("Pictures are off: i turns them on.")
        await stage.press("i", "f")
        await stage.at(ReaderScreen)
        await stage.shows("a › the prompt", "━━ 1 · user", "number 0")
        await stage.press("escape", "e")
        screen.pane.area.move_cursor((1, 8))
        await stage.press("!", "ctrl+r")
        await stage.until(lambda _: stage.sampling.edited)
        await stage.press("y")
        await settled(stage)
        assert stage.port.requests[0][1].messages[0].text == "number 0!"
        assert len(stage.port.requests[0][1].messages) == 61


@pytest.mark.parametrize("step", ["asking", "choosing", "streaming", "reviewing", "editing"])
async def test_a_withdrawn_request_closes_the_dialog_with_a_note(step: str) -> None:
    keys = {"asking": "", "choosing": "m", "streaming": "y", "reviewing": "y", "editing": "e"}[step]
    async with sampling_stage({"claude": [STUCK] if step == "streaming" else []}) as stage:
        call, _ = await stage.request_sampling(create())
        if keys:
            await stage.press(keys)
        if step in ("streaming", "reviewing"):
            await stage.until(lambda _: stage.sampling.state.name == step.upper())
        taking = stage.call("take_back")
        await stage.gone()
        assert any("a withdrew its sampling request" in note for note in stage.notes)
        assert not stage.app.approver.open
        await stage.ended(taking)
        await stage.ended(call)


async def test_a_parked_request_keeps_its_edits() -> None:
    async with sampling_stage() as stage:
        call, _ = await stage.request_sampling(create())
        await stage.press("escape")
        await stage.gone()
        await stage.shows("a asks for a model's answer · f2")
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("ask a model")
        await stage.press("enter")
        await stage.listens()
        await stage.press("y")
        await settled(stage)
        await stage.press("e", "!", "ctrl+r")
        await stage.shows("Hello!")
        await stage.press("p")
        await stage.gone()
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("send a model's answer")
        await stage.press("enter")
        await stage.listens()
        await stage.shows("Hello!")
        await stage.press("y")
        assert await got(stage, call) == said("Hello!")


async def test_an_answer_goes_on_while_its_dialog_is_closed() -> None:
    begun: Attempt = (TextDelta("Hal"), lambda: stage.gate.wait(), TextDelta("lo"), AnswerFinished("endTurn", "m"))
    async with sampling_stage({"claude": [begun]}) as stage:
        call, _ = await stage.request_sampling(create())
        await stage.press("y")
        await stage.shows("Hal", "esc leave (it continues)")
        await stage.press("escape")
        await stage.gone()
        await stage.press("f2")
        await stage.shows("claude is answering · 3 characters so far", "asked for call 1 · ask · running", "enter open")
        await stage.press("n", "x", "M", "enter")
        await stage.at(SamplingScreen)
        await stage.shows("Hal")
        await stage.press("escape")
        await stage.gone()
        stage.gate.set()
        await stage.listens()
        await stage.press("y")
        assert (await got(stage, call))["content"]["text"] == "Hallo"


@pytest.mark.hostile("P09")
async def test_early_keys_ask_no_model_and_send_nothing() -> None:
    async with sampling_stage(guard=60.0) as stage:
        stage.app.questions.idle_seconds = 0.0
        await stage.request_sampling(create())
        await stage.press("y", "enter", "n", "escape", "p", "x", "M")
        assert stage.sampling.state is SamplingState.ASKING
        assert not stage.port.requests


@pytest.mark.hostile("F03")
async def test_a_budget_is_raised_and_the_card_shows_it() -> None:
    config = sampling_config(sampling={"budget_tokens": 12})
    async with sampling_stage(config=config) as stage:
        call, _ = await stage.request_sampling(create("Hi"))
        await stage.press("y")
        await settled(stage)
        await stage.press("y")
        await stage.ended(call)
        second = stage.call("ask", {"requests": [create()]})
        assert "budget for this server is used up" in json.dumps(await got(stage, second))
        await stage.press("s", "down", "enter")
        await stage.press("end")
        await stage.until(lambda _: "you approve each request and each answer" in stage.flat)
        await stage.shows("1 request, 12 of 12 tokens (this run)", "▲ paused")
        await stage.press("b")
        await stage.shows("Raise the budget of a?", "12 tokens, until mcphost exits")
        await stage.press("y")
        await stage.until(lambda _: stage.host.sampling.usage("a").most_tokens == 24)
        third, _ = await stage.request_sampling(create())
        await stage.press("M")
        assert await got(stage, third) == refused()
        assert stage.host.pending_requests.muted("a")


HOSTILE = "[bold]x[/] \x1b[2J\u202egnp " + "\n" * 60 + "the end"


@pytest.mark.hostile("F04", "M01", "P08", "T01")
async def test_foreign_text_is_marked_and_hidden_text_is_announced() -> None:
    bad: Attempt = (TextDelta("\x1b"), TextDelta("[2J[red]y[/]"), AnswerFinished("\x1b[0m", "\x1b]0;z"))
    request = create(HOSTILE, systemPrompt="\x1b[31m[link]", stopSequences=["\x1b[K"], modelPreferences={
        "hints": [{"name": "\x1b[7msonnet"}]
    })  # fmt: skip
    async with sampling_stage({"claude": [bad]}, size=(120, 30)) as stage:
        call, _ = await stage.request_sampling(request)
        for words in (
            "␛[31m[link]",
            "[bold]x[/] ␛[2J⟨U+202E⟩gnp",
            r'"\u001b[K"',
            r'"\u001b[7msonnet"',
            "space ▼ more below",
        ):
            assert words in stage.text
        await stage.press(*["space"] * 5)
        await stage.shows("the end", "y   ask claude")
        assert "more below" not in stage.text
        await stage.press("y")
        await stage.shows("␛[2J[red]y[/]", "␛]0;z", "␛[0m")
        assert "\x1b" not in stage.text
        await stage.press("y")
        assert (await got(stage, call))["content"]["text"] == "\x1b[2J[red]y[/]"
        assert call.state is CallState.DONE
