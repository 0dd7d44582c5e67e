"""`mcphost chat`: what it writes where, what a hostile model can do to a terminal, and who is asked."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from mcphost.cli.commands.chat_output import StreamText
from mcphost.protocol.display import show
from tests.cli.chat_model import ECHO, OK, model
from tests.cli.conftest import Mcphost, start
from tests.providers.endpoints import (  # type: ignore[attr-defined]
    HELLO,
    VENDORS,
    Steps,
    Web,
    chunk,
    event,
    openai_stream,
    stays,
    streams,
)
from tests.terminal import Terminal

pytestmark = pytest.mark.slow
EVIL: Steps = (("text", "\x1b", "]0;pwned\x07 \u202e", "[red]x[/red]\r", "\nend\u200b"), ("stop", "end"))


def test_the_answer_goes_to_stdout_and_a_pipe_comes_along(tmp_path: Path) -> None:
    with model(tmp_path, HELLO) as (words, web):
        process = start([*words, "sum", "this", "up"], stdin=subprocess.PIPE)
        out, err = process.communicate(b"from a pipe", timeout=20)
        (asked,) = [visit.message for visit in web.visits]
    assert (process.returncode, out.decode(), err) == (0, "Hello \u00e9\U0001f600\n", b"")
    parts = [part["text"] for part in asked["messages"][-1]["content"]]
    assert parts == ["Attached from the user: stdin", "from a pipe", "sum this up"]


CUT = [
    ("length", "the answer is cut off: the model reached chat.max_tokens, or the end of its context window"),
    ("filter", "the answer is cut off by a content filter"),
    ("odd", "the answer may be cut off: the model ended it for the reason 'odd␛'"),
]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
@pytest.mark.parametrize(("stop", "cut"), CUT, ids=[stop for stop, _ in CUT])
def test_an_answer_that_the_model_cut_is_said_to_be(
    mcphost: Mcphost, tmp_path: Path, provider: str, stop: str, cut: str
) -> None:
    made = VENDORS[provider]
    if (provider, stop) == ("ollama", "filter"):
        cut = "the answer may be cut off: the model ended it for the reason 'content_filter'"
    with Web(streams(*made.stream((("text", "half"), ("stop", stop))))) as web:
        config = tmp_path / "chat.toml"
        about = f'provider = "{provider}"\nmodel = "big"\nbase_url = "http://127.0.0.1:{web.port}"'
        config.write_text(f"[models.big]\n{about}\n")
        said = mcphost("--config", str(config), "chat", "go on")
        as_json = mcphost("--config", str(config), "chat", "--json", "go on")
        exported = mcphost("chat", "--export", "last")
    assert (said.code, said.out, said.err) == (0, "half\n", f"mcphost: {cut}\n")
    end = json.loads(as_json.out.splitlines()[-1])
    assert (end["type"], end["state"], end["cut"], json.loads(as_json.err)) == ("end", "done", cut, {"remark": cut})
    assert f"half\n\n*({cut})*" in exported.out


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        ([], "the model sent an empty answer"),
        ([chunk(content="")], "the model sent an empty answer"),
        ([chunk(content=" \n")], "the model sent an empty answer"),
        ([chunk(reasoning_content="hm")], "the model sent its reasoning, and no answer"),
        ([chunk(content=[{"type": "text", "text": "so"}])], ""),
    ],
)
def test_an_answer_without_a_word_is_said_to_be(
    mcphost: Mcphost, tmp_path: Path, documents: list[Any], words: str
) -> None:
    with Web(streams(*map(event, documents), *openai_stream((("stop", "end"),)))) as web:
        config = tmp_path / "chat.toml"
        config.write_text(
            f'[models.big]\nprovider = "openai"\nmodel = "big"\nbase_url = "http://127.0.0.1:{web.port}"\n'
        )
        said = mcphost("--config", str(config), "chat", "go on")
        as_json = mcphost("--config", str(config), "chat", "--json", "go on")
    assert (said.code, said.err) == (0, f"mcphost: {words}\n" if words else "")
    assert said.out.strip() == ("" if words else "so")
    assert as_json.err == (f"{json.dumps({'remark': words})}\n" if words else "")


def test_a_tool_call_without_a_name_is_named_so(tmp_path: Path) -> None:
    with model(tmp_path, (("use", "u1", "", "{}"), ("stop", "tools")), OK) as (words, _):
        process = start([*words, "--allow", "*:*", "go"])
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"so be it\n")
    assert b"mcphost: a tool call without a name not run" in err


def test_what_was_said_is_kept_listed_and_exported(tmp_path: Path) -> None:
    with model(tmp_path, HELLO) as (words, _):
        for said in (
            [*words, "first thing"],
            ["chat", "--saved"],
            ["chat", "--export", "last"],
            ["chat", "--export", "9"],
        ):
            process = start(said)
            out, err = process.communicate(timeout=20)
            told = out.decode()
            if "--saved" in said:
                assert "first thing" in told
            elif said[-1] == "last":
                assert told.startswith("# first thing\n\n## You\n\nfirst thing\n\n## gpt-real-1\n\nHello")
            assert process.returncode == (2 if said[-1] == "9" else 0), err


def test_a_server_whose_tools_cannot_be_listed_is_missing_in_a_chat(tmp_path: Path) -> None:
    with model(tmp_path, HELLO, script='hostile.py", "many-tools') as (words, _):
        beside = start([*words, "hi"])
        _, err = beside.communicate(timeout=20)
        named = start([*words, "hi", "--server", "echo"])
        _, refused = named.communicate(timeout=20)
    why = b"echo: listing the tools failed: the server's answer is invalid: 200003 objects and arrays"
    assert (beside.returncode, err.startswith(b"mcphost: without " + why)) == (0, True), err
    assert (named.returncode, refused.startswith(b"mcphost: " + why)) == (3, True), refused


@pytest.mark.parametrize(
    ("text", "said"),
    [("see @nowhere.txt", "@nowhere.txt is neither a file nor a resource"), ("/ecko:hail x", "is called 'ecko'")],
)
def test_a_mention_of_nothing_is_reported(tmp_path: Path, text: str, said: str) -> None:
    with model(tmp_path, OK) as (words, _):
        process = start([*words, text])
        _, err = process.communicate(timeout=20)
    assert (process.returncode, said in err.decode()) == (0, True), err


def test_why_there_is_no_model_to_talk_to_is_a_line_each(mcphost: Mcphost, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[models.x]\nprovider = "parrot"\n')
    told = mcphost("--config", str(config), "chat", "hello")
    mistake, missing = told.err.splitlines()
    assert (told.code, "⏎" in told.err) == (2, False)
    assert mistake.startswith(f"mcphost: {config}:2: models.x.provider: must be one of")
    assert missing.startswith("mcphost: no language model is configured; add ")


def test_a_skill_without_a_model_can_be_read(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "c.toml").touch()
    told = mcphost("--config", str(tmp_path / "c.toml"), "chat", "--skill", "a:tides")
    assert "without one, read it: mcphost skill read a tides" in told.err


def test_an_answer_that_is_interrupted_ends_its_line(tmp_path: Path) -> None:
    with model(tmp_path, (("text", "one word"),), says=stays) as (words, _):
        command = f"{shlex.join([sys.executable, '-m', 'mcphost', *words, 'go'])}; echo END"
        with Terminal(["sh", "-c", f"trap : INT; {command}"]) as terminal:
            terminal.wait_for("one word")
            terminal.press("\x03")
            terminal.wait_until(lambda text: "\nEND" in text, "a line of its own")


def test_the_text_alone_may_come_through_the_pipe(tmp_path: Path) -> None:
    with model(tmp_path, HELLO) as (words, _):
        process = start(words, stdin=subprocess.PIPE)
        out, _ = process.communicate(b"hello?", timeout=20)
    assert (process.returncode, out.decode()) == (0, "Hello \u00e9\U0001f600\n")


@pytest.mark.parametrize(
    ("typed", "sent", "code"),
    [
        ("y\r", "loud", 0),
        ("\r", "The user declined this call", 4),
        ("too loud, whisper\r", "says: too loud, whisper", 4),
    ],
)
def test_a_person_at_the_terminal_is_asked_and_may_say_why_not(
    tmp_path: Path, typed: str, sent: str, code: int
) -> None:
    with model(tmp_path, ECHO, OK) as (words, web):
        with Terminal([sys.executable, "-m", "mcphost", *words, "say it"]) as terminal:
            screen = terminal.wait_for("or why not]")
            assert all(part in screen for part in ("asked by    big", '"text": "loud"', 'Let big run "echo" on echo?'))
            terminal.press(typed)
            terminal.wait_for("so be it")
            assert terminal.wait_exit() == code
        told = web.visits[-1].message["messages"][-1]
    assert (told["role"], sent in told["content"]) == ("tool", True)


def asked_anew(terminal: Terminal, words: str) -> None:
    """Wait for these words and the question below them."""
    terminal.wait_until(lambda text: "or why not]" in text.partition(words)[2], f"{words}, and the question")


def test_a_person_at_the_terminal_may_change_the_arguments_first(tmp_path: Path) -> None:
    with model(tmp_path, ECHO, OK) as (words, web):
        with Terminal([sys.executable, "-m", "mcphost", *words, "say it"], columns=150) as terminal:
            terminal.wait_for('"text": "loud"', "name=value changes it")
            terminal.press("text:=lou\r")
            asked_anew(terminal, "is not JSON")
            terminal.press("text=quiet\r")
            asked_anew(terminal, '"text": "quiet"')
            terminal.press("y\r")
            terminal.wait_for("so be it")
            assert terminal.wait_exit() == 0
        told = web.visits[-1].message["messages"][-1]["content"]
    assert 'The user changed the arguments to {"text": "quiet"}' in told
    assert "quiet" in told.partition(")")[2]


@pytest.mark.hostile("P11")
@pytest.mark.parametrize(("typed", "code", "asked"), [("n", 4, 0), ("y", 0, 1)])
def test_a_prompts_text_is_shown_before_it_is_sent(tmp_path: Path, typed: str, code: int, asked: int) -> None:
    with model(tmp_path, OK, script="offers.py") as (words, web):
        command = [sys.executable, "-m", "mcphost", *words, "/echo:review language=c\nplease"]
        with Terminal(command, columns=150) as terminal:
            screen = terminal.wait_for("Send this to big? [y/N]")
            assert "/echo:review language=c · message 1 of 2, as said by you" in screen
            assert "│ review [('language', 'c')]" in screen
            terminal.press(typed, "enter")
            assert terminal.wait_exit() == code
        assert len(web.visits) == asked


@pytest.mark.hostile("M01")
def test_a_hostile_model_cannot_reach_the_terminal(tmp_path: Path) -> None:
    """Escapes that come in pieces; markup."""
    with model(tmp_path, EVIL) as (words, _), Terminal([sys.executable, "-m", "mcphost", *words, "hi"]) as terminal:
        terminal.wait_for("␛]0;pwned␇ ⟨U+202E⟩[red]x[/red]", "end⟨U+200B⟩")
        assert terminal.wait_exit() == 0
        assert b"\x1b]0;" not in terminal.raw


@pytest.mark.hostile("M01")
@given(some.lists(some.text("ab\n\r\u200d\u0301\u0302\x1b\U0001f600\u202e", max_size=8), max_size=12))
@example([each * "\u0301" for each in (1, 2, 2, 2, 2, 1)])
def test_what_is_only_dangerous_once_it_is_together_is_seen_together(pieces: list[str]) -> None:
    stream = StreamText()
    written = "".join(map(stream.feed, pieces))
    assert show(written, joiners=True) == written
    assert not set(written) & set("\x1b\u202e\r")


@pytest.mark.parametrize("cuts", [(3,), (1, 2, 3), (5, 9)])
def test_plain_words_are_written_as_they_come(cuts: tuple[int, ...]) -> None:
    text = "caf\u00e9 \U0001f468\u200d\U0001f469\r\nnext"
    places = (0, *cuts, len(text))
    stream = StreamText()
    written = "".join(stream.feed(text[a:b]) for a, b in pairwise(places))
    assert written == show(text, joiners=True)
