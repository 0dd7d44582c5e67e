"""Output and exit codes where a server's answers deviate from the specification."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ECHO, Mcphost

pytestmark = pytest.mark.slow


def plain(answers: dict[str, Any]) -> str:
    """The SERVER argument for a server with these answers."""
    return f"stdio:{shlex.join([sys.executable, '-S', '-E', str(ECHO.with_name('plain.py')), json.dumps(answers)])}"


def greeted(**members: Any) -> dict[str, Any]:
    """The answer to initialize."""
    info = {"name": "x", "version": "1"}
    return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info, **members}}


DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": True, "logging": None},
    "instructions": ["a"],
    "_meta": {"io.modelcontextprotocol/serverInfo": "x 1"},
}


@pytest.mark.parametrize(
    "answers",
    [
        {"server/discover": {"result": DISCOVERED}, "*": {"error": None}},
        {"*": {"error": None}},
        {"*": {"error": None, "method": None, "params": None}},
        {"initialize": greeted(serverInfo=None, instructions=None)},
        {"initialize": greeted(serverInfo="x 1", instructions=["a", "b"])},
        {"initialize": greeted(serverInfo={"version": 1.0, "name": "x", "title": 3})},
        {"initialize": greeted(capabilities={"tools": True, "logging": None})},
        {"initialize": greeted(capabilities={"tools": []})},
        {"tools/list": {"result": {"tools": [{"name": "t", "inputSchema": None, "title": None}]}}},
        {
            "tools/list": {
                "result": {"tools": [{"name": "t", "inputSchema": {}, "annotations": [], "outputSchema": []}]}
            }
        },
        {"tools/list": {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object", "required": None}}]}}},
        {"tools/call": {"result": {"content": ["fine"]}}},
        {"tools/call": {"result": {"content": "fine", "isError": None, "_meta": None}}},
    ],
)
def test_deviations_that_say_what_they_mean_change_nothing(mcphost: Mcphost, answers: dict[str, Any]) -> None:
    said = mcphost("call", plain(answers), "t", "--yes")
    assert (said.code, said.out, said.err) == (0, "fine\n", "")


@pytest.mark.parametrize(
    ("result", "code", "out", "err"),
    [
        ({"output": "fine"}, 3, "", "has neither content nor structuredContent, but output; --json shows it"),
        ({"toolResult": {"content": []}, "_meta": {}}, 3, "", "structuredContent, but toolResult; --json shows it"),
        ({"content": None, "data": [1]}, 3, "", "structuredContent, but data; --json shows it"),
        ({}, 0, "", ""),
        ({"content": [], "isError": False, "_meta": {"a": 1}}, 0, "", ""),
        ({"content": ["no"], "isError": "true"}, 1, "no\n", 'isError is "true", neither true nor false'),
        ({"content": ["yes"], "isError": "false"}, 0, "yes\n", "mcphost reads it as no failure"),
    ],
)
def test_a_result_that_shows_nothing_or_says_it_oddly_is_remarked_on(
    mcphost: Mcphost, result: dict[str, Any], code: int, out: str, err: str
) -> None:
    said = mcphost("call", plain({"tools/call": {"result": result}}), "t", "--yes")
    assert (said.code, said.out) == (code, out)
    assert err in said.err
    assert bool(said.err) is bool(err)


@pytest.mark.parametrize(
    ("command", "method", "result", "err"),
    [
        ("read x:y", "resources/read", {"data": "fine"}, "the result has no contents, but data; --json shows it"),
        ("prompt p", "prompts/get", {"text": "fine"}, "the result has no messages, but text; --json shows it"),
        (
            "complete prompt:p a x",
            "completion/complete",
            {"completion": {"values": [1, 2, 3]}},
            "left out 3 suggestions that are not texts",
        ),
        (
            "complete prompt:p a x",
            "completion/complete",
            {"values": ["fine"]},
            "the result has no suggestions, but values",
        ),
    ],
)
def test_an_answer_of_which_nothing_is_printed_is_no_success(
    mcphost: Mcphost, command: str, method: str, result: dict[str, Any], err: str
) -> None:
    name, *rest = command.split()
    said = mcphost(name, plain({method: {"result": result}}), *rest)
    assert (said.code, said.out) == (3, "")
    assert err in said.err


QUOTA = "monthly quota used up"


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": "E_QUOTA", "message": QUOTA}},
        {"error": QUOTA},
        {"error": {"code": -32000, "data": QUOTA}},
        {"result": QUOTA},
        {"result": [QUOTA]},
    ],
)
def test_a_refusal_of_an_odd_shape_keeps_its_words(mcphost: Mcphost, answer: dict[str, Any]) -> None:
    said = mcphost("call", plain({"tools/call": answer}), "t", "--yes")
    assert (said.code, said.out) == (3, "")
    assert "the server's answer is invalid" in said.err
    assert QUOTA in said.err


README = {"uri": "repo://r/README.md", "mimeType": "text/plain", "text": "line one\nline two\n"}
CONTENT = [{"type": "text", "text": "found the file"}, {"type": "resource", "resource": README}]
SHOWN = "[resource repo://r/README.md text/plain 18 B]\nline one\nline two\n"


def test_the_text_of_an_embedded_resource_is_printed_and_saved(mcphost: Mcphost, tmp_path: Path) -> None:
    server = plain({"tools/call": {"result": {"content": CONTENT}}})
    said = mcphost("call", server, "t", "--yes")
    assert (said.code, said.out, said.err) == (0, f"found the file\n{SHOWN}", "")
    saved = mcphost("call", server, "t", "--yes", "--output", str(tmp_path / "x.out"))
    assert (saved.code, saved.out) == (0, said.out)
    assert (tmp_path / "x.out").read_text() == README["text"]


def test_a_prompt_prints_the_text_of_an_embedded_resource(mcphost: Mcphost) -> None:
    messages = [{"role": "user", "content": CONTENT[1]}, {"role": "assistant", "content": "hello"}]
    said = mcphost("prompt", plain({"prompts/get": {"result": {"messages": messages}}}), "p")
    assert (said.code, said.out, said.err) == (0, f"user:\n{SHOWN}\nassistant:\nhello\n", "")


def test_a_blob_with_line_ends_is_named_and_saved(mcphost: Mcphost, tmp_path: Path) -> None:
    contents = {"uri": "x://a", "blob": "AAEC\r\nAwQF\n"}
    content = [{"type": "resource", "resource": contents}, {"type": "text", "text": "and"}]
    server = plain({"tools/call": {"result": {"content": content}}})
    said = mcphost("call", server, "t", "--yes", "--output", str(tmp_path / "a"))
    assert (said.code, said.out) == (0, "[resource x://a 6 B]\nand\n")
    assert (tmp_path / "a").read_bytes() == bytes(range(6))


def test_a_blob_that_is_not_base64_leaves_the_rest_of_the_result(mcphost: Mcphost, tmp_path: Path) -> None:
    content = [{"type": "resource", "resource": {"uri": "x://a", "blob": "?!"}}, {"type": "text", "text": "and"}]
    server = plain({"tools/call": {"result": {"content": content}}})
    said = mcphost("call", server, "t", "--yes", "--output", str(tmp_path / "a"))
    assert (said.code, "the blob is not base64" in said.out, said.out.endswith("and\n")) == (0, True, True)
    assert "the result holds no file" in said.err


def test_contents_of_odd_shapes_are_read(mcphost: Mcphost) -> None:
    server = plain({"resources/read": {"result": {"contents": {"text": {"a": None}}}}})
    said = mcphost("read", server, "x:y")
    assert (said.code, said.out) == (0, '{"a": null}')


LISTED = {"name": "t", "inputSchema": {}, "description": ["no", "text"], "icons": None, "annotations": {"title": None}}


def test_a_definition_is_listed_as_it_came(mcphost: Mcphost) -> None:
    server = plain({"tools/list": {"result": {"tools": [LISTED, {"name": "u", "inputSchema": "x"}]}}})
    listed = mcphost("list", "tools", "--json", server)
    assert json.loads(listed.out)["tools"] == [LISTED]
    assert "inputSchema: is not an object" in listed.err
    for words in ("Input should", "instance of", "valid dictionary"):
        assert words not in listed.err


def test_an_illegal_task_status_is_named(mcphost: Mcphost) -> None:
    task = {"taskId": "1", "status": "working", "ttl": None, "createdAt": "x", "lastUpdatedAt": "x", "pollInterval": 0}
    tool = {"name": "t", "inputSchema": {}, "execution": {"taskSupport": "required"}}
    states = ["COMPLETED", "done", "done", "completed"]
    server = plain(
        {
            "initialize": greeted(capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": []}}}}),
            "tools/list": {"result": {"tools": [tool]}},
            "tools/call": {"result": {"task": task}},
            "tasks/get": [{"result": {**task, "status": status}} for status in states],
            "tasks/result": {"result": {"content": ["fine"]}},
        }
    )
    said = mcphost("call", server, "t", "--yes")
    assert (said.code, said.out) == (0, "fine\n")
    known = "which is not a status (working, input_required, completed, failed, cancelled); mcphost goes on asking"
    assert said.err.splitlines() == [
        "mcphost: stdio answers t later: waiting for its task (working)",
        f'mcphost: stdio: the server says that the task is "COMPLETED", {known}',
        f'mcphost: stdio: the server says that the task is "done", {known}',
    ]


def test_null_params_of_a_notification_are_accepted(mcphost: Mcphost, tmp_path: Path) -> None:
    traffic = tmp_path / "traffic.jsonl"
    ping = {"id": "p1", "method": "ping", "params": None}
    server = plain({"say": [ping], "initialize": greeted(), "tools/list": {"result": {"tools": [LISTED]}}})
    said = mcphost("call", server, "t", "--yes", "--traffic", str(traffic))
    assert said.code == 0
    assert '\\"id\\":\\"p1\\",\\"result\\":{}' in traffic.read_text() or '"id":"p1","result":{}' in traffic.read_text()
