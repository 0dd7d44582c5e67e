"""From `key=value` to what a schema wants."""

from __future__ import annotations

import io
import json
import shlex
import sys
from typing import Any

import pytest

from mcphost.cli.commands.call import read_arguments, typed_arguments
from mcphost.errors import InvalidArguments
from tests.cli.conftest import Mcphost, echo

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"count": {"type": "integer"}},
    "properties": {
        "text": {"type": "string"},
        "count": {"$ref": "#/$defs/count"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "maybe": {"type": ["integer", "null"]},
        "level": {"enum": ["low", "high"]},
        "size": {"enum": [1, 2]},
        "names": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}},
        "any": {},
        "odd": True,
    },
    "oneOf": [{"required": ["text"]}, {"properties": {"new": {"type": "string"}}}],
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ('text="quoted"', '"quoted"'),
        ("text=a=b:=c", "a=b:=c"),
        ("count=5", 5),
        ("ratio=.5", 0.5),
        ("flag=yes", True),
        ("maybe=null", None),
        ("level=high", "high"),
        ("size=2", 2),
        ("names=a", ["a"]),
        ('names=["a","b"]', ["a", "b"]),
        ('place={"x": 1}', {"x": 1}),
        ("any=[1]", [1]),
        ("odd=text", "text"),
        ("unknown=5", "5"),
        ("unknown:=5", 5),
        ("a:b=c", "c"),
        ("text:=null", None),
    ],
)
def test_a_text_becomes_what_its_property_wants(pair: str, value: object) -> None:
    (found,) = typed_arguments(read_arguments([pair], None), SCHEMA).values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["count=five"], "count: must be a whole number; count:=JSON takes any value"),
        (["count=x", "flag=maybe"], "flag: must be true or false"),
        (["count="], "count: has no value"),
        (["level=middle"], "level: must be"),
        (["any={"], "any: is invalid JSON"),
        (["=x"], "neither key=value"),
        ([":=x"], "neither key=value"),
        (["a:=NaN"], "is not JSON"),
        (["a:=" + "[" * 100_000], "is nested too deeply"),
    ],
)
def test_what_does_not_fit_is_said_by_name(pairs: list[str], words: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        typed_arguments(read_arguments(pairs, None), SCHEMA)
    assert words in str(raised.value)


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": {"$ref": "#/nowhere"}}}])
def test_a_senseless_schema_leaves_texts_as_they_are(schema: dict[str, Any]) -> None:
    assert typed_arguments(read_arguments(["a=1"], '{"b": 2}'), schema) == {"a": "1", "b": 2}


@pytest.mark.parametrize(
    ("piped", "found"),
    [
        (b'{"text": "n\xc3\xa4h", "count": 1}\n', {"text": "n\u00e4h", "count": 2}),
        (b"", "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b'"\xff"', "stdin is not UTF-8"),
        (b'\xef\xbb\xbf{"text": "a", "count": 1}', {"text": "a", "count": 2}),
        (b'{"text": "a", "text": "b"}', "the key 'text' is there twice"),
        (b'{"text": {"a": 1, "a": 1}}', "the key 'a' is there twice"),
        (b'{"text": "\\ud83d!"}', "an escape such as .ud83d is half of a character"),
        (b'{"text": "a", "count": 1e999}', "1e999 is too large for a number"),
        (b'{"text": "a", "count": ' + b"9" * 5000 + b"}", "a number of 5,000 digits is too long"),
        (b'{"text": "a",}', "line 1, column 1"),
    ],
)
def test_all_arguments_may_come_through_stdin(monkeypatch: pytest.MonkeyPatch, piped: bytes, found: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    if isinstance(found, str):
        with pytest.raises(InvalidArguments, match=found):
            read_arguments([], "-")
    else:
        assert typed_arguments(read_arguments(["count=2"], "-"), SCHEMA) == found


def test_the_help_of_a_tool_names_its_arguments_and_calls_nothing(mcphost: Mcphost) -> None:
    demo = f"stdio:{shlex.join([sys.executable, '-P', '-m', 'mcphost.demo'])}"
    said = mcphost("call", demo, "feed_gulls", "--help")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].startswith("usage: mcphost call 'stdio:")
    assert any(line.split()[:2] == ["fish", "whole"] for line in lines)
    assert json.loads(mcphost("call", demo, "feed_gulls", "-h", "--json").out)["name"] == "feed_gulls"
    assert mcphost("call", echo(), "add", "--help").out.splitlines()[-1] == "*: needed"


@pytest.mark.parametrize(
    "words", [["call", "--help"], ["call", "git", "-h"], ["call", "--config", "x", "git", "--help"]]
)
def test_without_a_tool_it_is_the_help_of_the_command(
    capsys: pytest.CaptureFixture[str], mcphost: Mcphost, words: list[str]
) -> None:
    with pytest.raises(SystemExit):
        mcphost(*words)
    assert "usage: mcphost call [-h]" in capsys.readouterr().out


def test_a_repeated_call_prints_a_line_for_each_run(mcphost: Mcphost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.host.tool_calls.repeated_calls.LEAST_SECONDS", 0)
    said = mcphost("call", echo(), "echo", "text=a\nb", "--yes", "--repeat", "0.001", "--times", "2")
    lines = [line.split() for line in said.out.splitlines()]
    assert (said.code, [(line[0], *line[-3:]) for line in lines]) == (
        0,
        [("1", "done", "a", "b"), ("2", "done", "a", "b")],
    )


def test_a_repeated_call_prints_an_object_for_each_run(mcphost: Mcphost) -> None:
    said = mcphost("call", echo(), "fail", "--yes", "--repeat", "1", "--times", "1", "--json")
    run = json.loads(said.out)
    assert (said.code, run["run"], run["state"], run["result"]["isError"]) == (1, 1, "failed", True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--times", "2"], "--times needs --repeat"),
        (["--repeat", "0.5"], "--repeat: the time between two runs is 1 to 86,400 seconds"),
        (["--repeat", "1", "--output", "file"], "--output cannot be used with --repeat"),
    ],
)
def test_options_that_do_not_fit_a_repetition_are_refused(mcphost: Mcphost, options: list[str], words: str) -> None:
    said = mcphost("call", "stdio:false", "echo", *options)
    assert (said.code, words in said.err, said.out) == (2, True, "")
