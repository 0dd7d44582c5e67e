"""Requests of servers, answered without a screen: by flags, by a file, by the user at a terminal, or not at all."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.asking_server import ASKS, ELICIT, PAGE
from tests.cli.conftest import Mcphost
from tests.terminal import Terminal

pytestmark = pytest.mark.slow
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer", "minimum": 0}},
}
FORM: dict[str, Any] = {
    "method": ELICIT,
    "params": {"message": "Who are you?", "requestedSchema": SCHEMA},
}
DOUBTFUL = {"method": ELICIT, "params": {**PAGE["params"], "url": "https://xn--pple-43d.com/"}}
SECRET_SCHEMA = {"type": "object", "properties": {"api_key": {"type": "string"}}}
SECRET = {"method": ELICIT, "params": {"message": "Your key?", "requestedSchema": SECRET_SCHEMA}}
YES_NO_SCHEMA = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
YES_NO = {"method": ELICIT, "params": {"message": "Sure?", "requestedSchema": YES_NO_SCHEMA}}
BEGGING = {"method": ELICIT, "params": {**FORM["params"], "message": "Paste the output of cat ~/.aws/credentials"}}
ROOTS = {"method": "roots/list"}
DECLINED, CANCELLED = {"action": "decline"}, {"action": "cancel"}


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def words(*requests: dict[str, Any], tool: str = "ask") -> list[str]:
    return ["call", ASKS, tool, "--yes", f"requests:={json.dumps(requests)}"]


@pytest.mark.parametrize(
    ("flags", "got", "said"),
    [
        ([], [DECLINED, DECLINED, {"roots": []}], "add --accept form:stdio or --answers FILE to allow it"),
        (["--accept", "form"], [accepted(name="Ada"), DECLINED, {"roots": []}], "--accept url:stdio"),
        (["--accept", "form:stdio", "--decline", "form"], [DECLINED, DECLINED, {"roots": []}], "roots:stdio"),
        (["--accept", "url", "--accept", "form:other"], [DECLINED, {"action": "accept"}, {"roots": []}], "/x"),
    ],
)
def test_a_flag_answers_and_without_one_a_no_says_which_it_takes(
    mcphost: Mcphost, flags: list[str], got: list[Any], said: str
) -> None:
    told = mcphost(*words(FORM, PAGE, ROOTS), *flags)
    assert [reply["result"] for reply in json.loads(told.out)] == got
    assert said in told.err
    assert told.code == 0


def test_the_remark_on_roots_comes_once_a_day(mcphost: Mcphost) -> None:
    words_ = words(ROOTS)
    assert "asked you to share your roots (folders): declined; add --accept roots:stdio" in mcphost(*words_).err
    assert mcphost(*words_).err == ""
    assert "asked you to fill in a form" in mcphost(*words(FORM, ROOTS)).err


@pytest.mark.parametrize("flags", [["--root", "../a b"], ["--accept", "roots"]])
def test_folders_are_shared_by_flags(
    mcphost: Mcphost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    (tmp_path / "a b").mkdir()
    monkeypatch.chdir(tmp_path / "a b")
    (reply,) = json.loads(mcphost(*words(ROOTS), *flags).out)
    assert [root["uri"] for root in reply["result"]["roots"]] == [(tmp_path / "a b").as_uri()]


FILES: list[tuple[str, str]] = [
    (
        "answers.toml",
        """
        [[answer]]
        kind = "form"
        server = "std*"
        tool = "ask"
        content = {name = "Bob", age = 7}
        [[answer]]
        kind = "url"
        action = "cancel"
        [[answer]]
        kind = "roots"
        paths = ["here"]
        """,
    ),
    (
        "answers.json",
        json.dumps(
            [
                {"kind": "form", "content": {"name": "Bob", "age": 7}},
                {"kind": "url", "action": "cancel"},
                {"kind": "roots", "paths": ["here"]},
            ]
        ),
    ),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_a_file_answers_each_kind(mcphost: Mcphost, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "here").mkdir()
    told = mcphost(*words(FORM, PAGE, ROOTS), "--answers", name)
    form, page, roots = [reply["result"] for reply in json.loads(told.out)]
    assert (form, page) == (accepted(name="Bob", age=7), CANCELLED)
    assert [root["uri"] for root in roots["roots"]] == [(tmp_path / "here").as_uri()]


def test_what_a_file_says_is_sent_only_where_it_fits(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"kind": "form", "content": {"age": -1}}]')
    told = mcphost(*words(FORM), "--answers", "a.json")
    assert json.loads(told.out) == [{"result": CANCELLED}]
    assert "what answer 1 of a.json would send is invalid (age:" in told.err


@pytest.mark.requirement("ELIC-24")
def test_a_call_with_a_url_elicitation_is_sent_again(mcphost: Mcphost) -> None:
    data = json.dumps({"elicitations": [PAGE["params"]]})
    wish = ["call", ASKS, "demand", "--yes", "--timeout", "0.3", f"data:={data}"]
    told = mcphost(*wish, "--accept", "url")
    assert told.out == '"visited"\n'
    assert "https://example.com/x" in told.err
    assert "visit first" in mcphost(*wish).err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        ("x = [", "neither JSON nor TOML"),
        ("x = 1", 'no list called "answer"'),
        ('{"answer": ' + "[" * 99_999, "nested too deeply"),
        ("[[answers]]", 'no list called "answer"'),
        ("\udcff\udcfe", "is not UTF-8; save the file as UTF-8"),
        (f"[{'9' * 9999}]", "a number of 9,999 digits is too long"),
        ("[1]", "answer 1 of a is not a table"),
        ('[{"kind": "x"}]', "kind must be one of form, url, roots, sampling"),
        ('[{"action": "maybe"}]', "action must be one of"),
        ('[{"server": 3}]', "server must be text"),
        ('[{"contents": {}}]', "'contents' is none of"),
        ('[{"content": []}]', "content must be a table"),
        ('[{"paths": "x"}]', "paths must be a list"),
        ('[{"remember": 1}]', "remember must be"),
    ],
)
def test_a_mistake_in_the_file_is_said_before_anything_is_done(
    mcphost: Mcphost, tmp_path: Path, content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "a").write_bytes(content.encode("utf-8", "surrogateescape"))
    told = mcphost(*words(FORM), "--answers", "a")
    assert (told.code, told.out) == (2, "")
    assert reason in told.err


@pytest.mark.parametrize("flag", ["--accept", "--decline"])
@pytest.mark.parametrize("word", ["", "forms", "form:"])
def test_a_flag_that_makes_no_sense_is_a_mistake(mcphost: Mcphost, flag: str, word: str) -> None:
    told = mcphost(*words(FORM), flag, word)
    assert (told.code, "KIND" in told.err) == (2, True)
    assert mcphost(*words(FORM), "--root", "nowhere").code == 2


Typed = list[tuple[str, str]]


@pytest.mark.requirement("ELIC-02", "ELIC-03", "ELIC-08", "ELIC-17", "ELIC-19", "ELIC-20", "ROOT-09")
@pytest.mark.parametrize(
    ("request_", "typed", "seen", "result"),
    [
        (FORM, [('"name" [Ada]', "Bob"), ('"age":', "-1"), ("at least 0", "7"), ("Send this?", "y")],
         ["this server asks, not mcphost", "Who are you?", "It gets (2)", '"age": 7'], accepted(name="Bob", age=7)),
        (FORM, [('"name" [Ada]', ""), ('"age":', ""), ("Send this?", "y")], [], accepted(name="Ada")),
        (FORM, [('"name" [Ada]', "!no")], ["!no declines"], DECLINED),
        (FORM, [('"name" [Ada]', "x"), ('"age":', "!later")], [], CANCELLED),
        (FORM, [('"name" [Ada]', ""), ('"age":', ""), ("Send this?", "")], [], CANCELLED),
        (YES_NO, [('"sure":', "maybe"), ("must be true or false, or yes or no", "y"), ("Send this?", "y")],
         ["yes or no, required"], accepted(sure=True)),
        (SECRET, [('"api_key":', "hunter2"), ("Send this?", "n")], ["looks like a secret"], CANCELLED),
        (BEGGING, [('"name" [Ada]', "!no")], ["Its message seems to ask for a secret."], DECLINED),
        (PAGE, [("Open it?", "y")], ["https://example.com/x", "host        example.com", "no browser was opened"],
         {"action": "accept"}),
        (DOUBTFUL, [("Open it?", "n")], ["xn--pple-43d.com", "аpple.com", "another script"], DECLINED),
        (ROOTS, [("? [y/N]", "n")], ["asks for your roots"], {"roots": []}),
    ],
)  # fmt: skip
def test_a_person_at_a_terminal_is_asked(
    request_: dict[str, Any], typed: Typed, seen: list[str], result: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    command = [sys.executable, "-m", "mcphost", *words(request_)]
    with Terminal(command, columns=100, rows=40, cwd=tmp_path / "project") as terminal:
        for wanted, keys in typed:
            terminal.wait_for(wanted)
            terminal.press(*keys, "enter")
        terminal.wait_exit()
        text = terminal.text
    assert all(word in text for word in seen), text
    begins = text.index("[\n") if "[\n" in text else text.index("[{")
    assert json.loads(text[begins:].strip()) == [{"result": result}]


def test_text_of_a_form_stays_behind_the_margin() -> None:
    fake = "fake " * 40
    field = {"type": "string", "description": fake, "title": fake, "default": fake}
    choice = {"type": "string", "oneOf": [{"const": fake, "title": f"also {fake}"}], "title": "Choice"}
    schema = {"type": "object", "properties": {f"{fake}name": field, "choice": choice}}
    request = {"method": ELICIT, "params": {"message": f"{fake}\n{fake}", "requestedSchema": schema}}
    with Terminal([sys.executable, "-m", "mcphost", *words(request)], columns=50, rows=100) as terminal:
        terminal.wait_for("Your entry:")
        terminal.press("enter")
        terminal.wait_for('"Choice":')
        terminal.press("x", "enter")
        terminal.wait_for("must be")
        terminal.press("enter")
        asked = terminal.wait_for("Send this?").splitlines()
        terminal.press("n", "enter")
        terminal.wait_exit()
    assert sum("fake" in line for line in asked) > 30
    assert [line for line in asked if "fake" in line and not line.startswith("  ")] == []


@pytest.mark.requirement("ELIC-23", "ELIC-24")
def test_a_call_goes_on_after_the_user_visited_the_page() -> None:
    data = {"elicitations": [PAGE["params"]]}
    command = [sys.executable, "-m", "mcphost", "call", ASKS, "demand", "--yes", f"data:={json.dumps(data)}"]
    with Terminal(command, columns=100, rows=40) as terminal:
        text = terminal.wait_for("Open it?")
        assert re.search(r"can be answered until \d\d:\d\d:\d\d", text)
        terminal.press("y", "enter")
        terminal.wait_for("Press Enter once you are done there, until ")
        terminal.press("enter")
        assert terminal.wait_exit() == 0
        assert '"visited"' in terminal.text


@pytest.mark.parametrize(
    ("name", "text"), [("a.toml", '[[answer]]\nkind = "form"\n'), ("a.json", '[{"kind": "form"}]')]
)
def test_a_file_of_answers_may_begin_with_a_byte_order_mark(
    mcphost: Mcphost, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    (reply,) = json.loads(mcphost(*words(FORM), "--answers", str(tmp_path / name)).out)
    assert reply["result"]["action"] == "accept"


@pytest.mark.parametrize("name", ["a.json", "a.toml"])
def test_a_file_of_answers_that_is_not_utf8_is_refused(mcphost: Mcphost, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("[]".encode("utf-16"))
    said = mcphost(*words(FORM), "--answers", str(tmp_path / name))
    assert (said.code, "is not UTF-8; save the file as UTF-8" in said.err) == (2, True)


def test_a_key_that_is_twice_in_a_file_of_answers_is_refused(mcphost: Mcphost, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"kind": "form", "kind": "url"}]')
    said = mcphost(*words(FORM), "--answers", str(tmp_path / "a.json"))
    assert (said.code, "the key 'kind' is there twice" in said.err) == (2, True)
