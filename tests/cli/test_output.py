"""Streams, columns and blocks of a result."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from mcphost.cli.commands.call import result_text
from mcphost.cli.output import StatusLine, answer, foreign, json_text, remark, table, with_coloured_states
from mcphost.protocol.models.tools import CallToolResult

NASTY = "a\x1b[2J\u202eb\x7f\x9b"


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")


def test_columns_align_also_under_wide_and_combining_characters() -> None:
    lines = table([("NAME", "X"), ("日本", "1"), ("e\u0301", "2"), ("abc", "3")]).splitlines()
    assert lines == ["NAME  X", "日本  1", "e\u0301     2", "abc   3"]


@pytest.mark.usefixtures("on_a_terminal")
def test_a_table_is_no_wider_than_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert table([("NAME", "TEXT"), ("日本", "word " * 9)]) == "NAME  TEXT\n日本  word word wo…\n"


ROWS = [("STATE", "SERVER"), ("● ready", "a  ● b"), ("✖ failed", "c"), ("-", "d")]


@pytest.mark.usefixtures("on_a_terminal")
def test_a_terminal_shows_heads_states_and_keys_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert table(ROWS).splitlines() == [
        "\x1b[1mSTATE     SERVER\x1b[0m",
        "\x1b[32m● ready\x1b[0m   a  ● b",
        "\x1b[31m✖ failed\x1b[0m  c",
        "-         d",
    ]
    assert with_coloured_states("✓ ok  a\n  ✗ b\n") == "\x1b[32m✓ ok\x1b[0m  a\n  ✗ b\n"
    assert json_text({"a": ['"b": c'], "d \\": 1}) == (
        '{\n  \x1b[36m"a"\x1b[0m: [\n    "\\"b\\": c"\n  ],\n  \x1b[36m"d \\\\"\x1b[0m: 1\n}\n'
    )


@pytest.mark.usefixtures("on_a_terminal")
@pytest.mark.parametrize("env", [{"NO_COLOR": "1", "TERM": "xterm"}, {"NO_COLOR": "", "TERM": "dumb"}])
def test_a_terminal_without_colours_gets_none(monkeypatch: pytest.MonkeyPatch, env: dict[str, str]) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert "\x1b" not in table(ROWS) + json_text({"a": 1})


def test_a_pipe_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b" not in table(ROWS) + json_text({"a": 1})


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "CLICOLOR_FORCE"])
def test_forced_colours_reach_a_pipe_but_never_json(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(variable, "1")
    assert "\x1b[32m● ready" in table(ROWS)
    assert "\x1b" not in json_text({"a": 1})


def test_colours_that_are_forced_and_switched_off_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in table(ROWS)


def test_columns_without_a_value_are_left_out_where_that_is_wanted() -> None:
    rows = [("A", "B", "C", "D"), ("-", "-", "-", "x"), ("-", "-", "", "y")]
    assert table(rows, narrow=True) == "A  B  D\n-  -  x\n-  -  y\n"
    assert table(rows).splitlines()[0] == "A  B  C  D"


@pytest.mark.hostile("T01", "T08")
def test_cells_of_a_table_are_always_safe_to_show() -> None:
    """A table is for people, wherever it goes."""
    assert table([(NASTY, "x\ny")]) == "a␛[2J⟨U+202E⟩b␡⟨U+009B⟩  x⏎y\n"


def test_foreign_text_goes_as_it_came_into_a_pipe() -> None:
    assert foreign(NASTY) == NASTY
    assert json.loads(json_text(NASTY)) == NASTY
    assert json_text({"a": "ä"}) == '{"a": "ä"}\n'
    assert json_text("\ud800") == '"\\ud800"\n'


@pytest.mark.hostile("T01")
@pytest.mark.usefixtures("on_a_terminal")
def test_foreign_text_is_marked_on_a_terminal_and_json_stays_json() -> None:
    assert foreign(NASTY) == "│ a␛[2J⟨U+202E⟩b␡⟨U+\n│ 009B⟩\n"
    text = json_text([NASTY, "ä"])
    assert text.isascii()
    assert text.isprintable() or "\x1b" not in text
    assert json.loads(text) == [NASTY, "ä"]
    assert json_text(["ä"]) == '[\n  "ä"\n]\n'


def test_a_remark_is_one_safe_line(capsys: pytest.CaptureFixture[str]) -> None:
    remark(f"two\nlines {NASTY}")
    assert capsys.readouterr().err == "mcphost: two⏎lines a␛[2J⟨U+202E⟩b␡⟨U+009B⟩\n"


def test_a_remark_that_wraps_on_a_terminal_keeps_its_margin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quoted text never begins where mcphost's own words begin."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    remark("it said: " + "x" * 12 + " mcphost: all is well")
    assert capsys.readouterr().err == "mcphost: it said: xxxxxxxxxxxx\n         mcphost: all is well\n"


def test_a_status_line_leaves_room_for_what_else_is_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress of a call while its server asks something must not write over the question."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("mcphost.cli.output.STATUS_PAUSE", 0)
    status = StatusLine()
    status.show("half")
    remark("by the way")
    with StatusLine.held():
        status.show("more")
    status.show("done")
    status.clear()
    assert capsys.readouterr().err == "\rhalf\x1b[K\r\x1b[Kmcphost: by the way\n\rdone\x1b[K\r\x1b[K"


@pytest.mark.parametrize("width", [80, 40, 20])
def test_wide_columns_are_cut_so_that_no_line_wraps(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [
        ("SERVER", "TOOL", "TITLE", "TEXT"),
        ("demo", "a_tool", "日本" * 30, "d" * 300),
        ("demo", "x", "y", "short"),
    ]
    lines = table(rows).splitlines()
    cells = [sum(1 + (letter in "日本") for letter in line) for line in lines]
    assert max(cells) < width
    assert lines[1].split()[:2] == (["demo", "a_tool"] if width > 20 else ["demo", "a_t…"])
    assert lines[1].count("…") >= 2
    assert "short" in lines[2] or width == 20


def test_what_no_encoding_can_hold_is_written_all_the_same(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    answer("a\ud800b\n")
    assert capsysbinary.readouterr().out == b"a?b\n"


PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\n"}]}, "a\nb\n"),
        ({"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}, "[image image/png 8 B]\n"),
        ({"content": [{"type": "audio", "data": "", "mimeType": "x\x1b"}]}, "[audio x␛ 0 B]\n"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "f:///a", "text": "four\nand"}}]},
            "[resource f:///a 8 B]\nfour\nand\n",
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "f:///a", "blob": PNG}}]}, "[resource f:///a 8 B]\n"),
        ({"content": [{"type": "resource", "resource": {"text": "four"}}]}, "[resource 4 B]\nfour\n"),
        (
            {"content": [{"type": "resource_link", "uri": "f:///a", "name": "A", "mimeType": "text/x"}]},
            "[resource link f:///a text/x A]\n",
        ),
        ({"content": [{"type": "hologram"}]}, "[hologram: a type of content that mcphost does not know]\n"),
        (
            {"content": [{"type": "thinking", "text": "hm\x1b"}]},
            "[thinking: a type of content that mcphost does not know: hm␛]\n",
        ),
        ({"content": [{"type": "image", "data": "?!"}]}, '[image: the image data is not base64: {"data": "?!"}]\n'),
        ({"content": [3]}, "[?: not a content block: 3]\n"),
        ({"content": ["fine", {"text": "also"}, {"type": "text", "text": 5}]}, "fine\nalso\n5\n"),
        ({"content": "fine"}, "fine\n"),
        ({"content": {"type": "text", "text": "fine"}}, "fine\n"),
        ({"content": None, "structuredContent": {"a": None}}, '{"a": null}\n'),
        ({"content": [], "structuredContent": None}, "null\n"),
        ({"content": [], "structuredContent": {"a": 1}}, '{"a": 1}\n'),
        ({"content": [{"type": "text", "text": "said"}], "structuredContent": {"a": 1}}, "said\n"),
        ({"content": []}, ""),
    ],
)
def test_blocks_are_their_text_or_their_name(result: dict[str, Any], text: str) -> None:
    assert result_text(CallToolResult.read(result)) == text
