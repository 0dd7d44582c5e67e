"""The terminal's title and its ring while the user is in another window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from textual.events import AppBlur, AppFocus

from mcphost.host.tool_calls.call import CallRequest, CallState, ToolCall
from mcphost.tui.attention import RING_SECONDS, Attention, ring_of
from tests.tui.stage import echo, on_stage


@dataclass
class Window:
    """A terminal that keeps what it was given, and the time."""

    kind: str = "bell"
    title: str = ""
    rings: list[str] = field(default_factory=list)
    now: float = 100.0

    def set_terminal_title(self, title: str) -> None:
        self.title = title

    def write_to_terminal(self, sequences: str) -> None:
        self.rings.append(sequences)


def attention(window: Window, *, away: bool = True) -> Attention:
    made = Attention(window, lambda: window.kind, clock=lambda: window.now)
    if away:
        made.blurred()
    return made


def ended(state: CallState = CallState.DONE, seconds: float = 11.0) -> ToolCall:
    call = ToolCall(1, CallRequest("<server>", "<tool>", {}), lambda: 0.0)
    call.sent_at, call.ended_at, call.state = 0.0, seconds, state
    return call


def test_a_question_sets_the_title_and_rings_once() -> None:
    window = Window()
    calls = attention(window)
    for _ in range(3):  # as at each redraw
        calls.questions_changed([1])
    assert (window.title, window.rings) == ("? 1 · mcphost", ["\a"])


def test_nothing_happens_while_the_terminal_has_the_focus() -> None:
    window = Window()
    calls = attention(window, away=False)
    calls.questions_changed([1])
    calls.call_ended(ended())
    assert (window.title, window.rings) == ("", [])


def test_a_question_seen_before_is_in_the_title_but_does_not_ring() -> None:
    window = Window()
    calls = attention(window, away=False)
    calls.questions_changed([1])
    calls.blurred()
    calls.questions_changed([1])
    assert (window.title, window.rings) == ("? 1 · mcphost", [])


def test_a_flood_of_questions_rings_once_in_a_while() -> None:
    window = Window()
    calls = attention(window)
    for number in range(1, 101):
        calls.questions_changed(range(1, number + 1))
        window.now += RING_SECONDS / 20
    assert (window.title, len(window.rings)) == ("? 100 · mcphost", 5)


def test_the_title_comes_back_with_the_focus_and_with_the_last_answer() -> None:
    window = Window()
    calls = attention(window)
    calls.questions_changed([1, 2])
    calls.questions_changed([])
    assert window.title == ""
    calls.call_ended(ended())
    calls.focused()
    assert window.title == ""
    calls.blurred()
    assert window.title == ""


@pytest.mark.parametrize(
    ("calls", "title"),
    [
        ([ended()], "✔ mcphost"),
        ([ended(), ended()], "✔ 2 · mcphost"),
        ([ended(), ended(CallState.FAILED)], "✖ 2 · mcphost"),
        ([ended(seconds=9.0)], ""),
        ([ended(CallState.CANCELLED)], ""),
    ],
)
def test_only_a_long_call_that_ended_by_itself_calls_the_user(calls: list[ToolCall], title: str) -> None:
    window = Window()
    watcher = attention(window)
    for call in calls:
        watcher.call_ended(call)
    assert (window.title, bool(window.rings)) == (title, bool(title))


def test_a_question_outweighs_an_ended_call_in_the_title() -> None:
    window = Window()
    calls = attention(window)
    calls.call_ended(ended())
    calls.questions_changed([4])
    assert window.title == "? 1 · mcphost"


def test_none_means_neither_title_nor_ring() -> None:
    window = Window("none")
    calls = attention(window)
    calls.questions_changed([1])
    assert (window.title, window.rings) == ("", [])
    window.kind = "bell"
    calls.update()
    assert window.title == "? 1 · mcphost"


@pytest.mark.parametrize(
    ("kind", "in_tmux", "sequence"),
    [
        ("bell", False, "\a"),
        ("bell", True, "\a"),
        ("osc9", False, "\x1b]9;mcphost: words\x1b\\"),
        ("osc777", False, "\x1b]777;notify;mcphost;words\x1b\\"),
        ("osc9", True, "\x1bPtmux;\x1b\x1b]9;mcphost: words\x1b\x1b\\\x1b\\"),
        ("none", False, ""),
    ],
)
def test_each_kind_of_ring_has_its_sequence(kind: str, in_tmux: bool, sequence: str) -> None:
    assert ring_of(kind, "words", in_tmux) == sequence


@pytest.mark.slow
@pytest.mark.hostile("P09")
async def test_a_question_of_the_host_rings_without_a_word_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with on_stage(echo()) as stage:
        await stage.ready()
        titles: list[str] = []
        written: list[Any] = []
        monkeypatch.setattr(stage.app, "set_terminal_title", titles.append)
        monkeypatch.setattr(stage.app, "write_to_terminal", written.append)
        stage.app.post_message(AppBlur())
        call = stage.call("echo", {"text": "\x1b]0;owned\a"})
        await stage.call_dialog()
        assert (titles[-1], written) == ("? 1 · mcphost", ["\a"])
        stage.app.post_message(AppFocus())
        await stage.until(lambda _: titles[-1] == "")
        await stage.press("n")
        await stage.ended(call)
        assert written == ["\a"]
