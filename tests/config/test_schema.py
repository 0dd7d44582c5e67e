"""The JSON Schema of the configuration agrees with what reads it, and describes every key."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcphost.config import Config, parse
from mcphost.config.schema import config_schema, documented_keys
from mcphost.errors import ConfigError
from tests.config.mistakes import FATAL, MISTAKES

SCHEMA = config_schema()
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA, validate_formats=True)
EXAMPLE = Path(__file__).parents[2] / "config.example.toml"

BEYOND_A_SCHEMA = {
    "above tool_timeout_max_sec": "two values are compared",
    "there is no [models.gpt]": "one table names another",
    "there is no [identity.crop]": "one table names another",
    "the header a is set twice": "keys of two tables are compared, in capital or small letters",
    "is in [servers] as well; keep one": "keys of two tables are compared",
    "needs command": "servers.toml may have it",
    "remove one of them": "it is no TOML",
    "not valid TOML": "it is no TOML",
    "configuration is TOML": "it is no TOML",
    "import FILE": "it is no TOML",
    "Invalid value; ": "it is no TOML",
    "begins an escape": "it is no TOML",
    "a number too long": "it is no TOML for Python",
    "nested too deeply": "it is no TOML for Python",
    "a key of more than 64 parts": "it is refused before it is read",
}
"""Mistakes that a JSON Schema cannot see, by words of their message, and why."""


def plain(value: Any) -> Any:
    """TOML as JSON: what JSON has no type for becomes a text."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, datetime.date | datetime.time) or value in (float("inf"),) else value


def is_valid(text: str) -> bool:
    return VALIDATOR.is_valid(plain(tomllib.loads(text)))


def test_the_example_is_valid() -> None:
    assert [error.message for error in VALIDATOR.iter_errors(plain(tomllib.loads(EXAMPLE.read_text())))] == []
    assert is_valid('[servers.a]\nurl = "http://[::1]:8080/mcp"\n')


def test_it_is_a_schema_of_the_dialect_that_it_names() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


SEEN = [case for case in (*MISTAKES, *FATAL) if not any(words in case[2] for words in BEYOND_A_SCHEMA)]


@pytest.mark.parametrize("text", [case[0] for case in SEEN], ids=[case[2] for case in SEEN])
def test_every_documented_mistake_is_refused(text: str) -> None:
    assert not is_valid(text)


def test_rules_beyond_the_schema_are_among_the_mistakes() -> None:
    said = [case[2] for case in (*MISTAKES, *FATAL)]
    assert [words for words in BEYOND_A_SCHEMA if not any(words in each for each in said)] == []


def _tables(model: type[BaseModel], found: dict[str, type[BaseModel]]) -> None:
    found[model.__name__] = model
    for field in model.model_fields.values():
        for each in _models_in(field.annotation):
            if each.__name__ not in found:
                _tables(each, found)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    own = [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []
    return own + [each for part in getattr(annotation, "__args__", ()) for each in _models_in(part)]


def test_every_key_of_every_table_has_a_description() -> None:
    tables: dict[str, type[BaseModel]] = {}
    _tables(Config, tables)
    assert len(tables) > 8
    for name, model in tables.items():
        missing = model.model_fields.keys() - documented_keys(model).keys()
        assert missing == set(), f"{name} does not say what these are for"
        shown = SCHEMA if model is Config else SCHEMA["$defs"][name]
        assert [key for key, each in shown["properties"].items() if not each.get("description")] == []
        assert shown["additionalProperties"] is False


# What mcphost takes, an editor must not mark as wrong.

PIECES = st.sampled_from(
    ["$", "{", "}", "${A}", "${A:-b}", "$${", "${keyring:a b}", "${file:~/x}", "é", " ", "x", ":", "/"]
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_text_is_refused_only_where_mcphost_refuses_it(text: str) -> None:
    written = json.dumps(text, ensure_ascii=False)
    for entry in (f'command = "x"\nargs = [{written}]', f'url = "https://h/"\nhttp_headers = {{ A = {written} }}'):
        taken = not parse(f"[servers.a]\n{entry}").problems
        assert is_valid(f"[servers.a]\n{entry}") or not taken


URLS = st.lists(st.sampled_from(["https://", "h", "${H}", ":", "80", "/", "?a=b", "@", "#", " ", "é"]), max_size=7)


@given(URLS.map("".join))
def test_an_address_is_refused_only_where_mcphost_refuses_it(url: str) -> None:
    text = f"[servers.a]\nurl = {json.dumps(url, ensure_ascii=False)}\n"
    try:
        taken = not parse(text).problems
    except ConfigError:
        taken = False
    assert is_valid(text) or not taken
