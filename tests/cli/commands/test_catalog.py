"""Offers of servers besides tools, without a screen: what each command prints, and its exit code."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from mcphost.cli.commands.catalog import prompt_text
from mcphost.protocol.models.prompts import GetPromptResult
from tests.cli.conftest import ECHO, Mcphost, echo, entry, hostile, start

README = "memo:///readme.md"


def offers(*options: object) -> str:
    """The SERVER argument for a server with something of everything."""
    words = [sys.executable, "-S", "-E", str(ECHO.with_name("offers.py")), *map(str, options)]
    return f"stdio:{shlex.join(words)}"


TWICE = "mcphost: stdio: left out the resource memo:///readme.md: the server lists this URI twice; the first is used"

ANSWERS = [  # words before SERVER, words after it, exit code, stdout, words of stderr
    (["read"], [README], 0, "# Read me", ""),
    (["read"], ["memo:///pixel.png"], 0, "[resource memo:///pixel.png image/png 16 B]; --output FILE saves it\n", ""),
    (["read"], ["memo:///nope"], 1, "", "no such resource (-32002)\nmcphost: It may be gone: the list of resources"),
    (["prompt"], ["hello"], 0, "user:\nhello []\n\nassistant:\n[resource link memo:///readme.md readme]\n", ""),
    (["prompt"], ["review"], 2, "", "language: is required"),
    (["prompt"], ["revew"], 2, "", "stdio has no prompt 'revew'; it has: review, hello"),
    (["prompt"], ["review", "language"], 2, "", "language: is neither key=value nor key:=json"),
    (["complete"], ["prompt:review", "language", "r"], 0, "rust\n", ""),
    (["complete"], ["prompt:review", "framework", "", "language=rust"], 0, "axum\nactix\n", ""),
    (["complete"], ["template:memo:///{folder}/{name}", "folder", "zzz"], 0, "", ""),
    (["complete"], ["prompt:", "x", ""], 2, "", "prompt:: is neither prompt:NAME nor template:URI"),
    (["list", "resources"], [], 0, "SERVER  URI                        TITLE    TYPE             SIZE\n", TWICE),
    (
        ["list", "templates"],
        [],
        0,
        "stdio   search:///{?q,limit}     search\n",
        "has a brace without its counterpart",
    ),
    (["list", "prompts"], [], 0, "stdio   review  Review code  language*, framework\n", ""),
]


@pytest.mark.requirement("RES-01", "RES-11", "PROMPT-01", "PROMPT-03", "PROMPT-07", "COMP-01", "COMP-03")
@pytest.mark.parametrize(("before", "after", "code", "out", "err"), ANSWERS, ids=lambda value: str(value)[:30])
def test_an_answer_is_on_stdout_and_the_exit_code_says_how_it_went(
    mcphost: Mcphost, before: list[str], after: list[str], code: int, out: str, err: str
) -> None:
    said = mcphost(*before, offers(), *after)
    assert (said.code, said.err.count("\n")) == (code, err.count("\n") + 1 if err else 0), said
    assert err in said.err
    assert out in said.out if before[0] == "list" else out == said.out


@pytest.mark.parametrize(
    ("words", "code", "err"),
    [
        (["read", hostile("crash-on-call"), "x:/"], 2, "does not offer resources"),
        (["complete", offers("--no-completions"), "prompt:review", "language", ""], 2, "does not offer completions"),
        (["list", "prompts", echo()], 0, "stdio: offers no prompts"),
        (["list", "resources", "stdio:no-such-program-here"], 3, "no-such-program-here was not found in PATH"),
        (["read", "stdio:no-such-program-here", "x:/"], 3, "no-such-program-here was not found in PATH"),
        (["list", "resources", offers("--without", "resources/list")], 3, "listing the resources failed"),
        (["prompt", offers("--without", "prompts/list"), "hello"], 3, "stdio: listing the prompts failed"),
    ],
)
def test_what_is_not_offered_or_not_there_is_a_sentence(
    mcphost: Mcphost, words: list[str], code: int, err: str
) -> None:
    said = mcphost(*words)
    assert (said.code, said.out, said.err.count("\n")) == (code, "", 1), said
    assert err in said.err


@pytest.mark.parametrize(
    ("unknown", "code", "why"), [("silent", 5, "timed out after 0.5 s"), ("-32603", 3, "unknown method")]
)
def test_a_failed_list_differs_from_an_empty_one(
    mcphost: Mcphost, tmp_path: Path, unknown: str, code: int, why: str
) -> None:
    failing = ["--without", "resources/list", "--unknown", unknown]
    quick = 'tool_timeout_sec = 0.5\nprotocol = "legacy"'  # it may not answer the other era's probe
    bad = entry("bad", *failing, more=quick).replace("echo.py", "offers.py")
    config = tmp_path / "own.toml"
    config.write_text(bad + entry("good").replace("echo.py", "offers.py"))
    said = mcphost("--config", str(config), "list", "resources", "--json")
    assert said.code == code, said
    assert [json.loads(line)["server"] for line in said.out.splitlines()] == ["good"]
    assert "bad: listing the resources failed: " in said.err
    assert why in said.err


@pytest.mark.requirement("PROMPT-02", "RES-03")
def test_json_is_the_protocols_own_object(mcphost: Mcphost) -> None:
    said = json.loads(mcphost("read", offers(), README, "--json").out)
    assert said == {"contents": [{"uri": README, "text": "# Read me"}]}
    got = json.loads(mcphost("prompt", offers(), "review", "language=5", "framework:=true", "--json").out)
    assert got["messages"][0]["content"]["text"] == "review [('framework', 'true'), ('language', '5')]"
    listed = json.loads(mcphost("list", "templates", offers(), "--json").out)
    assert listed["server"] == "stdio"
    assert listed["resourceTemplates"][1] == {"uriTemplate": "search:///{?q,limit}", "name": "search"}


@pytest.mark.requirement("RES-16")
def test_output_goes_into_the_file_that_was_named_and_no_other(mcphost: Mcphost, tmp_path: Path) -> None:
    file = tmp_path / "own.png"
    said = mcphost("read", offers(), "memo:///pixel.png", "--output", str(file))
    assert (said.code, said.out, said.err) == (0, "", f"mcphost: 16 B in {file}\n")
    assert file.read_bytes().startswith(b"\x89PNG")
    assert mcphost("read", offers(), README, "--output", str(tmp_path / "no" / "folder")).code == 2


def test_reads_are_audited_and_completions_are_not(mcphost: Mcphost, isolated: Path) -> None:
    mcphost("complete", offers(), "prompt:review", "language", "r")
    assert not list(isolated.rglob("audit.jsonl"))
    mcphost("read", offers(), README)
    (audit,) = isolated.rglob("audit.jsonl")
    assert json.loads(audit.read_text().splitlines()[0])["uri"] == README


def test_a_prompts_argument_that_it_does_not_list_is_sent_and_said(mcphost: Mcphost) -> None:
    said = mcphost("prompt", offers(), "review", "language=rust", "framwork=axum")
    assert (said.code, "rust" in said.out) == (0, True)
    assert said.err == "mcphost: review lists no argument 'framwork'; it has: language, framework\n"


def test_messages_of_any_kind_have_their_line() -> None:
    """Also T01: what a pipe gets is as it came, what names things is made safe."""
    contents = [{"type": "text", "text": "\x1b[2J"}, {"type": "image", "data": "AAAA", "mimeType": "image/\x1bpng"}, 7]
    messages = [{"role": "us\x1ber", "content": each} for each in contents]
    text = prompt_text(GetPromptResult.read({"messages": messages}))
    assert text.startswith("us␛er:\n\x1b[2J\n\nus␛er:\n[image image/␛png 3 B]\n\nus␛er:\n[")


def test_a_process_reads_a_resource_and_ends() -> None:
    process = start(["read", offers(), README])
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, b"# Read me", b"")


@pytest.mark.requirement("RES-09")
def test_a_resource_that_is_said_to_be_large_is_read_with_a_warning(mcphost: Mcphost) -> None:
    said = mcphost("read", offers("--huge"), "memo:///huge")
    assert (said.code, said.out) == (0, "so small")
    assert said.err == "mcphost: stdio: says that this resource has 500 MB; a message may have 24 MB\n"
