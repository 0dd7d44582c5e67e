"""A conversation on a real terminal: a scripted endpoint and two servers of other projects, each of which may
die in the middle.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.terminal import Terminal, mcphost
from tests.whole.app import GUARD, child_of, rest
from tests.whole.model_endpoints import FORMATS, aimock
from tests.whole.peers import everything, filesystem, free_port

pytestmark = pytest.mark.timeout(400)  # a first run installs

ECHO = {"type": "toolCall", "name": "every__echo", "arguments": '{"message": "fair winds"}'}
STORY = "one word after the other "


def fixtures(notes: Path) -> list[object]:
    """Return the model's answers; ``notes`` is a file that it wants to read."""
    read = {"type": "toolCall", "name": "files__read_text_file", "arguments": json.dumps({"path": str(notes)})}
    asks = {"match": {"userMessage": "look", "hasToolResult": False},
            "response": {"blocks": [{"type": "text", "text": "Let me look."}, read, ECHO]}}  # fmt: skip
    return [
        asks,
        {"match": {"userMessage": "look", "hasToolResult": True}, "response": {"content": "A calm sea."}},
        {"match": {"userMessage": "say it", "toolResultContains": "and says: too loud"},
         "response": {"content": "Then I will not."}},
        {"match": {"userMessage": "say it", "hasToolResult": False}, "response": {"blocks": [ECHO]}},
        {"match": {"userMessage": "once more", "toolResultContains": "went away"},
         "response": {"content": "It is gone."}},
        {"match": {"userMessage": "once more", "hasToolResult": False}, "response": {"blocks": [ECHO]}},
        {"match": {"userMessage": "slowly"}, "response": {"content": STORY * 400}, "latency": 30},
    ]  # fmt: skip


@contextmanager
def talking(vendor: str, url: str, folder: Path) -> Iterator[Terminal]:
    """The app in a conversation with the model at ``url``, about the files in ``folder``."""
    provider, path = FORMATS[vendor]
    entries = {"every": everything("stdio", 0), "files": filesystem(folder)}
    model = {"provider": provider, "model": "some-model", "base_url": url + path, "api_key": "sk-canary-0123456789"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in model.items()]
    for name, (command, *args) in entries.items():
        lines += [f"[servers.{name}]", f"command = {json.dumps(command)}", f"args = {json.dumps(args)}"]
        lines += ["capabilities = { roots = false }"]
    config = folder / "chat.toml"
    config.write_text("\n".join(["[models.big]", *lines, ""]))
    env = {"HOME": str(folder), "MCPHOST_STATE_DIR": str(folder / "state"), "MCPHOST_KEYCHAIN": "off"}
    with mcphost("--config", str(config), columns=160, rows=50, env=env) as terminal:
        terminal.wait_for("2 ready", seconds=40)
        terminal.press("f5")
        terminal.wait_for("Write a message below")
        yield terminal
        terminal.press("ctrl+q")
        assert terminal.wait_exit() == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a name that is short enough for a line of a dialog."""
    with TemporaryDirectory(prefix="talk-") as name:
        path = Path(name).resolve()
        (path / "notes.txt").write_text("The ferry leaves at nine.")
        yield path


def say(terminal: Terminal, text: str) -> None:
    terminal.press(text)
    terminal.wait_for(f" {text} ")
    terminal.press("enter")


def answer(terminal: Terminal, question: str, key: str) -> None:
    """Wait for the question with these words, and press a key until it is gone: at first none is heard."""
    terminal.wait_for(question, "don't run", "asked by some-model")
    for seconds in (2.0, 2.0, 20.0):
        rest(terminal, GUARD)
        terminal.press(key)
        with contextlib.suppress(*() if seconds == 20.0 else (AssertionError,)):
            terminal.wait_gone(question, seconds)
            return


@pytest.mark.requirement("HOST-02", "TOOLS-11", "TOOLS-13", "TOOLS-26")
def test_calls_are_allowed_edited_and_declined_and_a_stream_stops(folder: Path) -> None:
    with aimock(folder, fixtures(folder / "notes.txt"), chunk=5) as url, talking("anthropic", url, folder) as terminal:
        say(terminal, "look")
        answer(terminal, "on files?", "y")
        answer(terminal, "Run Echo Tool on every?", "e")
        terminal.wait_for("Arguments of every › echo", "fair winds")
        terminal.press("ctrl+u", "softly", "ctrl+r")
        answer(terminal, "(1) · edited by you", "y")
        terminal.wait_for(
            "● files › read_text_file · done", "every › echo · done · arguments edited by you", "A calm sea."
        )
        say(terminal, "say it")
        answer(terminal, "f2)", "t")
        terminal.wait_for("Decline · reason for some-model")
        terminal.press("too loud", "enter")
        terminal.wait_for("every › echo · declined", "Then I will not.")
        say(terminal, "slowly")
        terminal.wait_for(STORY.strip())
        terminal.press("escape")
        terminal.wait_for("You stopped the model; its text so far is kept", STORY.strip())


@pytest.mark.hostile("M05")
def test_nothing_on_screen_is_lost_if_the_model_or_a_server_dies(folder: Path) -> None:
    said, port = fixtures(folder / "notes.txt"), free_port()
    with ExitStack() as endpoint:
        url = endpoint.enter_context(aimock(folder, said, chunk=5, port=port))
        with talking("openai", url, folder) as terminal:
            say(terminal, "slowly")
            terminal.wait_for(STORY.strip())
            endpoint.close()  # which kills it
            terminal.wait_for("✖ model big", "broke off", "r asks again", STORY.strip())
            endpoint.enter_context(aimock(folder, said, chunk=5, port=port))
            say(terminal, "once more")
            terminal.wait_for("on every?", "don't run")
            os.kill(child_of(terminal.process.pid, "server-everything"), signal.SIGKILL)
            terminal.wait_for("It is gone.", "every › echo · error", "✖ model big", STORY.strip())
            terminal.wait_for("2 ready")
            say(terminal, "look")
            answer(terminal, "on files?", "y")
            answer(terminal, "on every?", "y")
            terminal.wait_for("A calm sea.")
