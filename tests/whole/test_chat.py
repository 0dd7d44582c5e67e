"""A conversation from one end to the other: an endpoint and a server of other projects, in the vendors' formats."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcphost.composition import dependencies
from mcphost.config import Config, Values
from mcphost.host.chat.turns import TurnState
from mcphost.host.consent.questions import Answer
from tests.cli.conftest import start
from tests.host.conftest import NO, YES, RecordingHost, ScriptedApprover
from tests.whole import model_endpoints
from tests.whole.model_endpoints import FORMATS, findings, script
from tests.whole.peers import running

pytestmark = pytest.mark.timeout(400)  # a first run installs

formats = pytest.mark.parametrize("vendor", FORMATS)

PAINT = {"type": "toolCall", "name": "demo__paint_view", "arguments": '{"hour": 12}'}
ECHO = {"type": "toolCall", "name": "every__echo", "arguments": '{"message": "fair winds"}'}
WRONG = {"type": "toolCall", "name": "every__get-sum", "arguments": '{"a": "two", "b": 3}'}
SUM = {"type": "toolCall", "name": "every__get-sum", "arguments": '{"a": 2, "b": 3}'}
FIXTURES = [
    {"match": {"userMessage": "look around", "hasToolResult": False},
     "response": {"blocks": [{"type": "text", "text": "Let me look."}, PAINT, ECHO]}},
    {"match": {"userMessage": "look around", "hasToolResult": True}, "response": {"content": "A calm sea. \u2693"}},
    {"match": {"userMessage": "add two", "toolResultContains": "The sum of 2 and 3 is 5"},
     "response": {"content": "It is 5."}},
    {"match": {"userMessage": "add two", "toolResultContains": "Nothing was sent"}, "response": {"blocks": [SUM]}},
    {"match": {"userMessage": "add two", "hasToolResult": False}, "response": {"blocks": [WRONG]}},
    {"match": {"userMessage": "say it", "toolResultContains": "changed the arguments"},
     "response": {"content": "You changed it."}},
    {"match": {"userMessage": "say it", "toolResultContains": "and says: too loud"},
     "response": {"content": "Then I will not."}},
    {"match": {"userMessage": "say it", "hasToolResult": False}, "response": {"blocks": [ECHO]}},
    {"match": {"userMessage": "say it", "toolResultContains": "policy declined"},
     "response": {"content": "As you wish."}},
    {"match": {"userMessage": "Pictures from the tools"}, "response": {"content": "A calm sea. \u2693"}},
    {"match": {"userMessage": "slowly"}, "response": {"content": "one word after the other " * 400}, "latency": 30},
]  # fmt: skip


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model_endpoints.aimock(tmp_path_factory.mktemp("aimock"), FIXTURES, chunk=5) as url:
        yield url


@pytest.fixture(scope="module")
def every() -> Iterator[dict[str, Any]]:
    """The entry of a server of another project."""
    from tests.whole.peers import everything

    with running(everything, "stdio") as entry:
        yield entry


def config(vendor: str, url: str, every: Any, **sections: Any) -> dict[str, Any]:
    provider, path = FORMATS[vendor]
    model = {"provider": provider, "model": "some-model", "base_url": url + path, "api_key": "sk-canary-0123456789"}
    demo = {"command": sys.executable, "args": ["-P", "-m", "mcphost.demo"]}
    return {"servers": {"demo": demo, "every": every}, "models": {"big": model}, **sections}


def talking(vendor: str, url: str, every: Any, *answers: Answer) -> RecordingHost:
    """A host over the real thing, with a person who answers by the script."""
    settings = Config.model_validate(config(vendor, url, every), strict=False)
    made = dependencies(ScriptedApprover(), Values({}))
    parts = {"models": made.models, "mask": made.mask, "close": made.close}
    return RecordingHost(settings, ScriptedApprover(*answers), open_transport=made.open_transport, **parts)


@pytest.mark.hostile("M02")
@formats
@pytest.mark.requirement("HOST-02", "TOOLS-26", "TOOLS-11")
async def test_a_model_uses_two_servers_and_corrects_its_mistake(
    vendor: str, aimock: str, every: dict[str, Any]
) -> None:
    async with talking(vendor, aimock, every, YES, YES, YES) as host:
        await host.servers.ready()
        chat = host.chats.begin()
        first = chat.send("look around")
        await chat.ended()
        second = chat.send("add two")
        await chat.ended()
        spent = chat.usage
    assert (first.state, first.rounds[0].text, first.text) == (TurnState.DONE, "Let me look.", "A calm sea. \u2693")
    assert [(use.server, use.tool, use.outcome) for use in first.uses] == [
        ("demo", "paint_view", "done"), ("every", "echo", "done"),
    ]  # fmt: skip
    assert [use.outcome for use in second.uses] == ["error", "done"]
    assert second.text == "It is 5."
    assert spent.tokens > 0


@formats
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(True, arguments={"message": "softly"}), "You changed it."),
        (Answer(False, reason="too loud"), "Then I will not."),
    ],
)
async def test_a_call_can_be_edited_and_declined_with_words(
    vendor: str, answer: Answer, said: str, aimock: str, every: dict[str, Any]
) -> None:
    async with talking(vendor, aimock, every, answer) as host:
        await host.servers.ready()
        chat = host.chats.begin()
        turn = chat.send("say it")
        await chat.ended()
    assert (turn.state, turn.text) == (TurnState.DONE, said)


@pytest.mark.hostile("M03")
@formats
async def test_a_real_stream_is_stopped_and_the_conversation_goes_on(
    vendor: str, aimock: str, every: dict[str, Any], until: Any
) -> None:
    async with talking(vendor, aimock, every) as host:
        await host.servers.ready()
        chat = host.chats.begin()
        turn = chat.send("slowly")
        await until(lambda: turn.text)
        chat.stop()
        await chat.ended()
        assert (turn.state, 0 < len(turn.text) < 9000) == (TurnState.STOPPED, True)
        again = chat.send("look around")
        await chat.ended()
    assert again.text == "A calm sea. \u2693"


# Without a screen.


def toml(path: Path, content: dict[str, Any]) -> Path:
    from mcphost.config.state import write_toml

    write_toml(path, content)
    return path


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_streams_the_answer_and_reports_calls(
    as_json: bool, aimock: str, every: dict[str, Any], tmp_path: Path
) -> None:
    path = toml(tmp_path / "config.toml", config("openai", aimock, every))
    words = ["--config", str(path), "chat", "look around", "--allow", "demo:*", "--allow", "every:echo"]
    process = start([*words, "--json"] if as_json else words, stdin=subprocess.DEVNULL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    if not as_json:
        assert out.decode() == "Let me look.\nA calm sea. \u2693\n"
        assert "every:echo done" in err.decode()
        return
    events = [json.loads(line) for line in out.decode().splitlines()]
    assert {each["type"] for each in events} == {"text", "tool_use", "tool_result", "end"}
    assert events[-1]["state"] == "done"
    again = start(["--config", str(path), "chat", "add two", "--resume", events[-1]["chat"], "--max-rounds", "1"],
                  stdin=subprocess.DEVNULL)  # fmt: skip
    out, err = again.communicate(timeout=60)
    assert (again.returncode, "chat.max_rounds" in err.decode()) == (1, True)


@pytest.mark.parametrize(
    ("words", "model", "code", "remark"),
    [
        (["say it"], {}, 4, "add --allow every:echo to allow it"),
        (["say it", "--deny", "every:*", "--allow", "*:*"], {}, 4, "every:echo declined"),
        (["look around"], {"base_url": "http://127.0.0.1:9/v1"}, 3, "is it running, and is base_url right?"),
        (["look around", "--model", "small"], {}, 2, "no entry of [models]"),
        (["look around", "--max-rounds", "0"], {}, 2, "is not a number from 1 to 1000"),
        (["look around", "--allow", "echo"], {}, 2, "write server:tool"),
        (["look around", "--resume", "2000"], {}, 2, "no conversation begins with '2000'"),
        ([], {}, 2, "there is nothing to say"),
    ],
)
def test_the_exit_code_says_what_failed(
    words: list[str], model: dict[str, Any], code: int, remark: str, aimock: str, every: dict[str, Any], tmp_path: Path
) -> None:
    settings = config("openai", aimock, every)
    settings["models"]["big"] |= model
    path = toml(tmp_path / "config.toml", settings)
    process = start(["--config", str(path), "chat", *words], stdin=subprocess.DEVNULL)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, remark in err.decode()) == (code, True), err


def test_without_a_model_the_command_says_what_to_write(tmp_path: Path) -> None:
    path = toml(tmp_path / "config.toml", {"servers": {}})
    process = start(["--config", str(path), "chat", "hello"], stdin=subprocess.DEVNULL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert all(part in err.decode() for part in ("[models.claude]", "provider = ", "api_key = "))


# The referee.


@pytest.fixture(scope="module")
def llmock() -> Iterator[str]:
    with model_endpoints.llmock() as url:
        yield url


@pytest.mark.hostile("M05")
@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
async def test_the_referee_finds_no_fault_with_a_conversation(vendor: str, llmock: str, every: dict[str, Any]) -> None:
    """No room, then a broken stream, and on."""
    behaviors = [{"type": "fail", "status": 429, "retry_after": 0.1},
                 {"type": "stream_fault", "kind": "truncate", "after_chunks": 3}]  # fmt: skip
    await script(llmock, *behaviors)
    url = llmock + ("/anthropic" if vendor == "anthropic" else "")
    async with talking(vendor, url, every, *[NO] * 50) as host:
        await host.servers.ready()
        chat = host.chats.begin()
        turn = chat.send("tell me something")
        await chat.ended()
        states = [turn.state]
        chat.go_on()
        await chat.ended()
        states.append(turn.state)
    judged = await findings(llmock)
    assert (judged["findings"], states) == ([], [TurnState.FAILED, TurnState.DONE])
