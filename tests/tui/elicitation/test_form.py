"""Elicitation by form: what is shown, what each key sends, and what is never sent."""

from __future__ import annotations

import time
from typing import Any

import pytest
from textual.events import Key
from textual.message import Message

from mcphost.host.tool_calls.call import CallState
from mcphost.tui.elicitation.form import FormElicitationScreen
from mcphost.tui.elicitation.server_question import ServerQuestionScreen
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.inbox.screen import InboxScreen
from mcphost.tui.kit.modal_screen import AskScreen
from mcphost.tui.kit.reader import ReaderScreen
from tests.host.server_requests.pending import form
from tests.tui.elicitation.questions import EVERY, NAME, ask, at, got, question_stage
from tests.tui.stage import NARROW, WIDE, Stage

pytestmark = pytest.mark.slow
DEFAULTS = {
    "mail": "a@b.example", "site": "https://b.example", "day": "2026-11-20", "at": "2026-11-20T10:00:00Z",
    "age": 36, "part": 0.5, "news": False, "size": "l", "lens": "a", "days": ["tue"], "pets": ["c"],
}  # fmt: skip


def told(stage: Stage) -> list[str]:
    """The notifications."""
    return ["", *(note.message for note in stage.app._notifications)]


async def test_the_limits_of_a_field_are_readable_before_it_has_the_focus() -> None:
    async with question_stage(size=NARROW) as stage:
        ask(stage, form(EVERY))
        await at(stage, FormElicitationScreen)
        await stage.shows("a URI such as https://example.org/page", "a date such as 2026-07-28")
        await stage.shows("a date and time with a zone, such as 2026-07-28T09:30:00Z", "whole number, 18 to 99")


async def test_one_cursor_shows_where_letters_go() -> None:
    async with question_stage(size=WIDE) as stage:
        ask(stage, form(NAME))
        screen = await at(stage, FormElicitationScreen)
        await stage.shows("esc, then a letter", "  y   review")
        assert "▸ y " not in stage.text
        await stage.press("escape")
        await stage.until(lambda _: "▸ y " in stage.text)
        assert "esc, then a letter" not in stage.text
        assert screen.answers.has_focus


ANSWERS: list[tuple[list[str], Any]] = [
    (["A", "d", "a", "ctrl+r", "y"], {"action": "accept", "content": {"name": "Ada"}}),
    (["A", "d", "a", "enter", "enter"], {"action": "accept", "content": {"name": "Ada"}}),
    (["A", "escape", "y", "y"], {"action": "accept", "content": {"name": "A"}}),
    (["A", "ctrl+r", "e", "B", "ctrl+r", "y"], {"action": "accept", "content": {"name": "AB"}}),
    (["n", "x", "escape", "n"], {"action": "decline"}),
    (["escape", "x"], {"action": "cancel"}),
    (["A", "ctrl+r", "n"], {"action": "decline"}),
    (["A", "ctrl+r", "x"], {"action": "cancel"}),
]


@pytest.mark.requirement("ELIC-02", "ELIC-03", "ELIC-04")
@pytest.mark.parametrize(("keys", "answer"), ANSWERS, ids=[" ".join(keys) for keys, _ in ANSWERS])
async def test_each_key_answers_but_no_letter_while_the_user_types(keys: list[str], answer: Any) -> None:
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, form(NAME))
        await at(stage, FormElicitationScreen)
        await stage.shows(
            "“a” asks you to fill in a form", "asked by the server “a”, not by mcphost", "call ", "asks.py"
        )
        for key in keys:
            await stage.press(key)
            await stage.pilot.pause()
            if key in ("ctrl+r", "y", "enter") and "-review" not in stage.app.screen.classes:
                await stage.until(lambda app: "-review" in app.screen.classes or len(app.screen_stack) == 1)
        assert await got(stage, call) == answer


@pytest.mark.requirement("ELIC-05", "ELIC-14", "ELIC-15")
async def test_every_kind_of_field_is_shown_and_sent_with_its_type() -> None:
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, form(EVERY))
        await at(stage, FormElicitationScreen)
        await stage.shows("Your name *", "an email address", "whole number, 18 to 99", "Large", "First order", "Cat")
        await stage.write("Ada")
        await stage.press("ctrl+r")
        await stage.shows("Send this to “a”?", '"name": "Ada"', '"age": 36', '"pets": [')
        await stage.press("y")
        assert await got(stage, call) == {"action": "accept", "content": {"name": "Ada", **DEFAULTS}}


@pytest.mark.requirement("ELIC-06")
async def test_what_does_not_fit_is_said_at_its_field_and_not_sent() -> None:
    schema = {
        "type": "object",
        "properties": {"mail": {"type": "string", "format": "email"}, "age": {"type": "integer", "maximum": 9}},
        "required": ["mail"],
    }
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, form(schema))
        await at(stage, FormElicitationScreen)
        await stage.write("nobody")
        await stage.press("enter", "1", "0", "ctrl+r")
        await stage.shows("▲", "invalid fields")
        assert call.state is CallState.RUNNING
        await stage.press("escape", "n")
        assert await got(stage, call) == {"action": "decline"}


async def test_what_was_typed_is_there_again_when_a_question_is_opened_anew() -> None:
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, form(NAME))
        await at(stage, FormElicitationScreen)
        await stage.write("Ada")
        await stage.press("escape", "escape")
        await stage.gone()
        await stage.shows("a asks you to fill in a form · f2")
        await stage.press("f2")
        await stage.at(InboxScreen)
        await stage.shows("Who are you?", f"asked for call {call.number} · ask · ")
        await stage.press("enter")
        dialog = await at(stage, FormElicitationScreen)
        assert dialog.query_one(SchemaForm).values() == {"name": "Ada"}
        await stage.press("escape", "p")
        await stage.gone()
        assert call.state is CallState.RUNNING
        call.cancel()
        await stage.until(lambda app: not app.approver.open)


@pytest.mark.hostile("F05")
@pytest.mark.requirement("ELIC-08")
async def test_a_secret_is_warned_of_hidden_and_asked_about_once_more() -> None:
    schema = {"type": "object", "properties": {"api_key": {"type": "string"}}, "required": ["api_key"]}
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, form(schema))
        await at(stage, FormElicitationScreen)
        await stage.shows('"api_key" looks like a secret: servers may not ask for one in a form')
        await stage.write("hush")
        await stage.press("ctrl+r")
        await stage.shows('"api_key": "••••', "v shows what is hidden", "▸ e   edit the form")
        assert "hush" not in stage.text
        await stage.press("v")
        await stage.shows('"api_key": "hush"')
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.shows(
            "Send what looks like a secret?", 'looks secret  "api_key"', "You cannot take back what you send."
        )
        await stage.press("n")
        await at(stage, FormElicitationScreen)
        assert call.state is CallState.RUNNING
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.press("y")
        assert await got(stage, call) == {"action": "accept", "content": {"api_key": "hush"}}


@pytest.mark.requirement("ELIC-08")
async def test_a_message_that_asks_for_a_secret_is_asked_about_again() -> None:
    async with question_stage(size=WIDE) as stage:
        call = ask(stage, form(NAME, "Paste the output of cat ~/.aws/credentials"))
        await at(stage, FormElicitationScreen)
        await stage.shows("▲ the message seems to ask for a secret: servers may not ask for one in a form")
        await stage.write("x")
        await stage.press("ctrl+r")
        await stage.shows("▸ e   edit the form")
        await stage.press("y")
        await stage.at(AskScreen)
        await stage.press("y")
        answer = await got(stage, call)
        assert (answer["action"], answer["content"]["name"]) == ("accept", "x")


HOSTILE = "\x1b[2J[bold]x[/] \u202e click https://evil.example now " + "word " * 1980


@pytest.mark.hostile("T01", "T08")
@pytest.mark.requirement("ELIC-20")
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_a_long_hostile_message_hides_neither_form_nor_answers(
    size: tuple[int, int],
) -> None:
    async with question_stage(size=size) as stage:
        call = ask(stage, form(NAME, HOSTILE))
        await at(stage, FormElicitationScreen)
        await stage.shows(
            "␛[2J[bold]x[/] ⟨U+202E⟩",
            "name *",
            "ctrl+r review",
            "decline",
            "cancel",
            "mute" if size == NARROW else "M ",
        )
        strips = stage.app.screen._compositor.render_strips()
        linked = [part.text for strip in strips for part in strip if part.style and part.style.link]
        assert linked == []
        await stage.press("escape", "m")
        await stage.at(ReaderScreen)
        await stage.press("end")
        await stage.shows("word")
        await stage.press("escape")
        await at(stage, FormElicitationScreen)
        await stage.press("n")
        await stage.ended(call)


@pytest.mark.hostile("P08")
async def test_a_long_review_must_be_read_before_it_is_sent() -> None:
    fields = {f"field_{number}": {"type": "string", "default": "x"} for number in range(40)}
    async with question_stage(size=NARROW) as stage:
        call = ask(stage, form({"type": "object", "properties": fields}))
        await at(stage, FormElicitationScreen)
        await stage.press("ctrl+r")
        await stage.shows("scroll to the end (space) to enable y")
        await stage.press("y")
        assert call.state is CallState.RUNNING
        await stage.press(*["space"] * 6)
        await stage.until(lambda _: "scroll to the end" not in stage.text)
        await stage.press("y")
        assert len((await got(stage, call))["content"]) == 40


async def test_a_hundred_thousand_choices_do_not_freeze_the_screen() -> None:
    from mcphost.host.consent.questions import FormQuestion

    schema = {"type": "object", "properties": {"one": {"type": "string", "enum": [f"v{n}" for n in range(100_000)]}}}
    async with question_stage(size=NARROW) as stage:
        task = stage.app.run_worker(stage.app.approver.ask(FormQuestion("a", "", schema, call=1)))
        start = time.monotonic()
        await at(stage, FormElicitationScreen)
        await stage.press("space")
        await stage.write("v99999")
        await stage.press("enter")
        assert time.monotonic() - start < 15
        await stage.press("escape", "y")
        await stage.shows('"one": "v99999"', seconds=15)
        await stage.press("y")
        assert (await task.wait()).content == {"one": "v99999"}


@pytest.mark.parametrize("end", ["taken back", "call cancelled", "connection lost"])
async def test_a_withdrawn_question_closes_its_dialog_with_a_note(end: str) -> None:
    async with question_stage("a") as stage:
        call = ask(stage, form(NAME))
        await at(stage, FormElicitationScreen)
        if end == "taken back":
            stage.call("take_back")
        elif end == "call cancelled":
            call.cancel()
        else:
            stage.host.servers["a"].stop()
        await stage.gone()
        await stage.until(lambda app: "was withdrawn: nothing of the form was sent" in told(stage)[-1])
        assert not stage.app.approver.open


@pytest.mark.hostile("P09")
@pytest.mark.requirement("ELIC-07")
async def test_m_mutes_a_server_and_unmutes_it() -> None:
    async with question_stage("a", "b", size=WIDE) as stage:
        first = ask(stage, form(NAME), form(NAME), server="a")
        await at(stage, FormElicitationScreen)
        other = ask(stage, form(NAME), server="b")
        await stage.until(lambda app: len(app.approver.open) == 3)
        await stage.press("escape", "M")
        assert await got(stage, first) == [{"action": "decline"}] * 2
        await at(stage, FormElicitationScreen)
        await stage.shows("“b” asks you to fill in a form")
        await stage.press("escape", "p")
        assert await got(stage, ask(stage, form(NAME), server="a")) == {"action": "decline"}
        await stage.press("f2")
        await stage.shows("muted: declines everything it asks")
        await stage.press("end", "M")
        await stage.until(lambda app: not app.host.pending_requests.muted("a"))
        await stage.press("escape")
        again = ask(stage, form(NAME), server="a")
        await at(stage, FormElicitationScreen)
        await stage.press("escape", "x")
        assert await got(stage, again) == {"action": "cancel"}
        await stage.press("s", "down", "enter", "M")
        await stage.shows("muted: all are declined until mcphost exits")
        await stage.press("M")
        await stage.shows("none pending. M mutes the server")
        assert other.state is CallState.RUNNING


async def test_a_question_waits_while_the_user_types() -> None:
    async with question_stage(size=WIDE) as stage:
        stage.app.questions.idle_seconds = 30.0
        await stage.press("t", "slash")
        call = ask(stage, form(NAME))
        stage.app.questions.typed()
        await stage.shows("a asks you to fill in a form · f2")
        await stage.pilot.pause(0.1)
        assert len(stage.app.screen_stack) == 1
        stage.app.questions.idle_seconds = 0.0
        stage.app.questions.ask_next()
        await at(stage, ServerQuestionScreen)
        await stage.press("escape", "n")
        await stage.ended(call)


@pytest.mark.hostile("P09")
async def test_a_question_for_another_call_waits_after_the_last_key() -> None:
    """With the users' times."""
    async with question_stage(guard=None) as stage:
        await stage.press("t", "slash")
        before = time.monotonic()
        await stage.press("a")
        stage.host.tool_calls.call("a", "ask", {"requests": [form(NAME)]}, origin="a script")
        await at(stage, ServerQuestionScreen)
        assert time.monotonic() - before >= 1.0


async def test_a_question_for_the_call_just_begun_opens_at_once() -> None:
    async with question_stage() as stage:
        stage.app.questions.idle_seconds = 60.0
        await stage.press("t", "slash")
        call = ask(stage, form(NAME))
        await at(stage, ServerQuestionScreen)
        await stage.press("escape", "n")
        await stage.ended(call)


async def test_a_word_that_was_begun_elsewhere_is_dropped_whole() -> None:
    async with question_stage(guard=0.2) as stage:
        call = ask(stage, form(NAME))
        dialog = await at(stage, FormElicitationScreen)
        drawn = Message().time - dialog.shown_for()
        for after, name, letter in ((0.1, "z", "z"), (0.25, "z", "z"), (0.4, "z", "z"), (0.55, "space", " ")):
            key = Key(name, letter)
            key.time = drawn + after
            stage.app.post_message(key)
        await stage.until(lambda _: dialog.shown_for() < Message().time - drawn - 0.35)
        await stage.until(lambda _: dialog.shown_for() > 0.2)
        await stage.press("o")
        assert dialog.query_one(SchemaForm).values() == {"name": "o"}
        await stage.press("escape", "n")
        await stage.ended(call)


async def test_a_review_uses_the_whole_height_before_it_scrolls() -> None:
    async with question_stage(size=(120, 36)) as stage:
        call = ask(stage, form(EVERY))
        await at(stage, FormElicitationScreen)
        await stage.write("Ada")
        await stage.press("escape", "y")
        await stage.shows("Send this to “a”?", '"pets": [', "send this to “a”")
        await stage.until(lambda _: "scroll to the end" not in stage.text)
        await stage.press("y")
        assert (await got(stage, call))["action"] == "accept"
