"""Every question of a server, in both eras and through every door, on a terminal and without one."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcphost.host.server_requests import pending
from tests.cli.conftest import ECHO, Mcphost, Said, mcphost_command
from tests.terminal import Terminal
from tests.transports.http.http_connection import Talk, Web

from questions import Questions  # isort: skip - http_connection makes the servers' folder importable

pytestmark = pytest.mark.slow

ERAS = ("handshake", "modern")
DOORS = (("call", "ask", "--yes"), ("read", "ask:///"), ("prompt", "ask"))
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "default": "Ada"}, "city": {"type": "string"}},
}
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}}
ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
SAMPLING = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9},
}
LOOKALIKE = "https://xn--pple-43d.com/"
ACCEPT, DECLINE = {"result": {"action": "accept"}}, {"result": {"action": "decline"}}


def page(era: str, url: str = "https://example.com/x") -> dict[str, Any]:
    """A page to visit; only servers with a handshake give it an id."""
    params = {"mode": "url", "message": "Look", "url": url}
    return {"method": "elicitation/create", "params": params | ({"elicitationId": "e"} if era == "handshake" else {})}


def configured(folder: Path, era: str, *ask: dict[str, Any], more: tuple[str, ...] = (), limits: str = "") -> str:
    """The configuration of `s`, a server of this era that asks this; pages are waited for a moment."""
    args = ["-S", "-E", str(ECHO.with_name("questions.py")), "--era", era, "--ask", json.dumps(ask), *more]
    entry = f"[servers.s]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
    path = folder.parent / "config.toml"
    path.write_text(entry + (limits or "tool_timeout_sec = 0.5\n"))
    return str(path)


def answers(text: str) -> Any:
    """Return the answers that the server got, in the order of its questions."""
    return json.loads(text[text.index("[{") :])


def form(**content: Any) -> dict[str, Any]:
    return {"result": {"action": "accept", "content": content}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and the browser that writes each page it opens to `opened`."""
    opener, here = tmp_path / "bin" / "xdg-open", tmp_path / "project"
    for folder in (opener.parent, here):
        folder.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$1" >> {shlex.quote(str(tmp_path / "opened"))}\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{opener.parent}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.delenv("SSH_TTY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.chdir(here)
    return here


@pytest.mark.requirement("ELIC-24", "MRTR-02")
@pytest.mark.parametrize("way", ["answers", "accept", "nobody", "terminal"])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
@pytest.mark.parametrize("era", ERAS)
def test_every_question_gets_the_same_answer_in_both_eras(
    mcphost: Mcphost, folder: Path, era: str, door: tuple[str, ...], way: str
) -> None:
    command, *rest = door
    words = ["--config", configured(folder, era, FORM, page(era), ROOTS, SAMPLING), command, "s", *rest]
    (folder / "answers.json").write_text(
        json.dumps(
            [
                {"kind": "form", "content": {"name": "Bob", "city": "Bergen", "secret": "of another form"}},
                {"kind": "sampling", "text": "By hand"},
            ]
        )
    )
    if way == "terminal":
        text = at_a_terminal(words, era, folder)
    else:
        flags = {
            "answers": ("--answers", "answers.json", "--accept", "url", "--accept", "roots"),
            "accept": ("--accept", "form", "--accept", "url", "--accept", "roots", "--answers", "text.json"),
            "nobody": (),
        }[way]
        (folder / "text.json").write_text('[{"kind": "sampling", "text": "By hand"}]')
        ended = mcphost(*words, *flags)
        text = ended.out
        check_reports(ended, era, way)
    if way == "nobody" and era == "modern":
        return  # a request that a modern server cannot answer without a model ends there
    got = answers(text)
    assert got[:2] == ([DECLINE, DECLINE] if way == "nobody" else [values(way), ACCEPT])
    roots = [] if way == "nobody" else [folder.as_uri()]
    assert [root["uri"] for root in got[2]["result"]["roots"]] == roots
    if way == "nobody":
        assert got[3]["error"]["code"] == -32601  # no model is configured
    else:
        assert got[3]["result"]["content"]["text"] == "By hand"
    opened = folder.parent / "opened"
    assert opened.exists() == (way == "terminal"), "only a person's yes opens a browser"


def values(way: str) -> dict[str, Any]:
    return form(name="Ada") if way == "accept" else form(name="Bob", city="Bergen")


def check_reports(ended: Said, era: str, way: str) -> None:
    """Each answer by rule is on stderr, with all that a person would be shown."""
    if way == "nobody":
        assert ended.err.count("asked you to") >= 2
        assert ended.code == (4 if era == "modern" else 0)
        return
    assert ended.code == 0
    assert '"name": "Ada"' in ended.err if way == "accept" else '"name": "Bob", "city": "Bergen"' in ended.err
    assert "asks you to visit this page (--accept url): https://example.com/x" in ended.err
    assert "says: Look" in ended.err
    assert "gets these roots" in ended.err
    assert ("this goes on after 0.5 s\n" in ended.err) == (era == "modern")


def at_a_terminal(words: list[str], era: str, folder: Path) -> str:
    typed = [('"name" [Ada]', "Bob"), ('"city":', "Bergen"), ("Send this?", "y"), ("Open it?", "y")]
    typed += [("Press Enter once you are done there", "")] if era == "modern" else []
    typed += [("Tell it of", "y"), ("Write the answer?", "y"), ("Your answer as the model", "By hand")]
    command = ["sh", "-c", f"{shlex.join(mcphost_command(*words))} > out"]
    with Terminal(command, columns=100, rows=60, cwd=folder) as terminal:
        for wanted, keys in typed:
            terminal.wait_for(wanted)
            terminal.press(*keys, "enter")
        assert terminal.wait_exit() == 0
    return (folder / "out").read_text()


class HttpWire:
    """The wire of the scripted server over HTTP: one answer for each request."""

    talk: Talk

    def __call__(self, talk: Talk) -> None:
        self.talk, message = talk, talk.visit.message
        if "id" not in message:
            talk.whole(202)
        elif message["method"] == "subscriptions/listen":
            self.refuse(message["id"], -32601, "unknown")
        else:
            self.server.requested(message)

    def serve(self, *ask: dict[str, Any]) -> HttpWire:
        options = SimpleNamespace(era="modern", ask=json.dumps(ask), again=False, changes=False)
        self.server = Questions(options, self)
        return self

    def reply(self, number: Any, result: Any) -> None:
        self.talk.json({"jsonrpc": "2.0", "id": number, "result": result})

    def refuse(self, number: Any, code: int, words: str) -> None:
        self.talk.json({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}, 404)


@pytest.mark.requirement("ELIC-24", "MRTR-02")
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
def test_a_modern_server_over_http_gets_the_same_answers(mcphost: Mcphost, folder: Path, door: tuple[str, ...]) -> None:
    command, *rest = door
    with Web(HttpWire().serve(FORM, page("modern"), ROOTS)) as web:
        config = folder.parent / "config.toml"
        config.write_text(f'[servers.s]\nurl = "{web.url}"\ntool_timeout_sec = 0.5\n')
        accept = [word for kind in ("form", "url", "roots") for word in ("--accept", kind)]
        ended = mcphost("--config", str(config), command, "s", *rest, *accept)
    got = answers(ended.out)
    assert got[:2] == [form(name="Ada"), ACCEPT]
    assert [root["uri"] for root in got[2]["result"]["roots"]] == [folder.as_uri()]
    assert "this goes on after 0.5 s\n" in ended.err


@pytest.mark.requirement("ELIC-20")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (LOOKALIKE, ["the host reads \u0430pple.com", "letters of another script"]),
        ("http://127.0.0.1:1/", ["a program on this machine"]),
        (f"https://example.com/{'a' * 400}", ["The address is very long: 420 characters"]),
    ],
)
@pytest.mark.parametrize("era", ERAS)
def test_a_flag_that_agrees_to_a_page_prints_its_warnings(
    mcphost: Mcphost, folder: Path, era: str, url: str, words: list[str]
) -> None:
    config = configured(folder, era, page(era, url))
    ended = mcphost("--config", config, "call", "s", "ask", "--yes", "--accept", "url")
    assert answers(ended.out) == [ACCEPT]
    for each in words:
        assert "\u25b2 beware: " in ended.err
        assert each in ended.err


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
def test_asking_again_after_a_rule_declined_ends_the_request(
    mcphost: Mcphost, folder: Path, door: tuple[str, ...]
) -> None:
    command, *rest = door
    config = configured(folder, "modern", FORM, more=("--again",))
    ended = mcphost("--config", config, command, "s", *rest)
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.count("asked you to fill in a form: declined") == 1
    assert "it asks again what was declined before" in ended.err


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
def test_a_person_may_be_asked_again_after_a_no(folder: Path, door: tuple[str, ...]) -> None:
    command, *rest = door
    words = ["--config", configured(folder, "modern", FORM, more=("--again",)), command, "s", *rest]
    with Terminal(mcphost_command(*words), columns=100, rows=60, cwd=folder) as terminal:
        terminal.wait_for('"name" [Ada]')
        terminal.press(*"!no", "enter")
        terminal.wait_for('"name" [Ada]')
        for keys, wanted in (("", '"city":'), ("", "Send this?"), ("y", '"accept')):
            terminal.press(*keys, "enter")
            terminal.wait_for(wanted)
        assert terminal.wait_exit() == 0


@pytest.mark.requirement("MRTR-13")
@pytest.mark.parametrize(
    ("ask", "flag", "words"),
    [
        ([FORM] * 3, "form", "s asked 1 questions in a minute; the next one waits"),
        ([page("modern")] * 3, "url", "this goes on after 0.6 s"),
    ],
    ids=["the pace of questions", "a page without a person"],
)
def test_a_wait_without_a_person_counts_and_is_named(
    mcphost: Mcphost, folder: Path, monkeypatch: pytest.MonkeyPatch, ask: list[Any], flag: str, words: str
) -> None:
    monkeypatch.setattr(pending, "PER_MINUTE", 1)
    config = configured(folder, "modern", *ask, limits="tool_timeout_sec = 0.6\ntool_timeout_max_sec = 1\n")
    ended = mcphost("--config", config, "call", "s", "ask", "--yes", "--accept", flag)
    assert (ended.code, ended.out) == (5, "")
    assert words in ended.err


def waits_for_visits(count: int, screen: str) -> bool:
    return screen.count("Press Enter once you are done there") == count


@pytest.mark.requirement("ELIC-23", "ELIC-24")
def test_two_pages_of_one_call_are_visited_in_turn(folder: Path) -> None:
    wanted = [page("handshake", f"https://example.com/{each}")["params"] | {"elicitationId": each} for each in "ab"]
    asks = f"stdio:{shlex.join([sys.executable, '-S', '-E', str(ECHO.with_name('asks.py'))])}"
    words = ["call", asks, "demand", "--yes", f"data:={json.dumps({'elicitations': wanted})}"]
    with Terminal(mcphost_command(*words), columns=100, rows=60, cwd=folder) as terminal:
        for each in "ab":
            terminal.wait_for(f"https://example.com/{each}", "Open it?")
            terminal.press("y", "enter")
            terminal.wait_until(partial(waits_for_visits, "ab".index(each) + 1), f"the wait for {each}")
            terminal.press("enter")
        assert terminal.wait_exit() == 0
        assert '"visited"' in terminal.text


@pytest.mark.hostile("F05")
@pytest.mark.parametrize("flags", [("--accept", "form"), ("--answers", "answers.json")])
def test_a_changed_tool_gets_no_answer_by_rule(mcphost: Mcphost, folder: Path, flags: tuple[str, str]) -> None:
    (folder / "answers.json").write_text('[{"kind": "form", "content": {"name": "Bob"}}]')
    record = folder / "record"
    more = ("--changes", "--record", str(record))
    ended = mcphost("--config", configured(folder, "modern", FORM, more=more), "call", "s", "ask", "--yes", *flags)
    assert (ended.code, ended.out) == (4, "")
    assert "changed in the meantime" in ended.err
    assert "inputResponses" not in record.read_text()


def test_a_form_that_no_rule_can_fill_in_says_how_to_give_its_values(mcphost: Mcphost, folder: Path) -> None:
    schema = {**SCHEMA, "required": ["city"]}
    required = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}}
    config = configured(folder, "modern", required)
    ended = mcphost("--config", config, "call", "s", "ask", "--yes", "--accept", "form")
    assert answers(ended.out) == [{"result": {"action": "cancel"}}]
    assert "city: is required" in ended.err
    assert "--answers FILE gives values" in ended.err
    assert "gets this form" not in ended.err
