"""Inputs of found servers: answers take their places, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.config.references import references
from mcphost.errors import ConfigError
from mcphost.imports.found import Input, legal_name
from mcphost.imports.inputs import Placeholder, fill_in, input_id, inputs_in, join, literal, placeholder, split

Found = tuple[dict[str, Any], tuple[Input, ...]]


def found(table: dict[str, Any], *inputs: Input) -> Found:
    return table, inputs


TOKEN = Input("token", secret=True)
PORT = Input("port", required=False, flag="--port")


def test_answers_and_defaults_stand_where_the_inputs_stood() -> None:
    server = found(
        {"command": "run", "args": ["--as", "${input:user}"], "env": {"T": "Bearer ${input:token}", "H": "${HOME}"}},
        TOKEN,
        Input("user", default="ada"),
    )
    assert fill_in(*server, {"token": "${keyring:x.T}"}) == {
        "command": "run",
        "args": ["--as", "ada"],
        "env": {"T": "Bearer ${keyring:x.T}", "H": "${HOME}"},
    }


def test_an_optional_value_that_is_not_given_leaves_with_its_flag() -> None:
    table = {
        "command": "run",
        "args": ["-v", "--port", "${input:port}", "last"],
        "env": {"P": "${input:port}"},
        "http_headers": {"A": "b", "P": "x${input:port}"},
    }
    assert fill_in(*found(table, PORT), {}) == {"command": "run", "args": ["-v", "last"], "http_headers": {"A": "b"}}
    assert fill_in(*found(table, PORT), {"port": "80"})["args"] == ["-v", "--port", "80", "last"]


def test_several_values_repeat_the_word_and_its_flag() -> None:
    server = found(
        {"command": "run", "args": ["--dir", "${input:dir}", "${input:file}"], "env": {"D": "${input:dir}"}},
        Input("dir", several=True, flag="--dir"),
        Input("file", several=True, default="a\nb"),
    )
    filled = fill_in(*server, {"dir": "/x\n/y z"})
    assert filled["args"] == ["--dir", "/x", "--dir", "/y z", "a", "b"]
    assert filled["env"] == {"D": "/x,/y z"}


def test_a_value_that_is_needed_or_not_among_the_choices_is_named() -> None:
    server = found({"url": "https://${input:tenant}.example"}, Input("tenant", choices=("one", "two")))
    with pytest.raises(ConfigError, match="tenant needs a value"):
        fill_in(*server, {})
    with pytest.raises(ConfigError, match="tenant must be one of: one, two"):
        fill_in(*server, {"tenant": "three"})
    assert fill_in(*server, {"tenant": "two"}) == {"url": "https://two.example"}
    assert fill_in(*server, {"tenant": "${TENANT}"}) == {"url": "https://${TENANT}.example"}
    optional = found({"url": "https://${input:tenant}.example"}, Input("tenant", required=False))
    with pytest.raises(ConfigError, match="tenant needs a value"):
        fill_in(*optional, {})


def test_no_default_becomes_a_reference() -> None:
    server = found({"command": "x", "args": ["a${input:a}{HOME}"]}, Input("a", default="${keyring:other} $"))
    (word,) = fill_in(*server, {})["args"]
    assert references(word) == ()
    assert "".join(map(str, split(word))) == "a${keyring:other} ${HOME}"


@given(st.lists(st.one_of(st.text("ab${}:\\\n"), st.from_regex(r"[\w.-]{1,9}", fullmatch=True).map(placeholder))))
def test_splitting_gives_back_what_was_joined(pieces: list[str | Placeholder]) -> None:
    try:
        text = join(pieces)
    except ConfigError:
        return
    assert merged(split(text)) == merged(filter(None, pieces))


def merged(pieces: Iterable[str | Placeholder]) -> list[str | Placeholder]:
    """Pieces in which adjacent plain texts are joined."""
    whole: list[str | Placeholder] = []
    for piece in pieces:
        last = whole[-1] if whole else None
        if isinstance(piece, str) and isinstance(last, str):
            whole[-1] = last + piece
        else:
            whole.append(piece)
    return whole


@given(st.text())
def test_escaped_text_holds_no_reference(text: str) -> None:
    assert references(literal(text)) == ()
    assert list(inputs_in([{"a": literal(text)}])) == []


@given(st.text())
def test_any_name_becomes_a_legal_one(name: str) -> None:
    assert input_id(name)
    assert legal_name(name)
    assert list(inputs_in(f"${{input:{input_id(name)}}}")) == [input_id(name)]


@pytest.mark.parametrize(
    ("name", "legal"),
    [("My Server", "My-Server"), ("Übersicht", "Ubersicht"), ("日本", "server"), ("--x..", "x"), ("a" * 99, "a" * 64)],
)
def test_a_legal_name_is_made_of_the_name_there(name: str, legal: str) -> None:
    assert legal_name(name) == legal
