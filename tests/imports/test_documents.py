"""Documents of other programs are read within limits, whatever they hold."""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.errors import ConfigError
from mcphost.imports.documents import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_HISTORY_BYTES,
    MAX_ITEMS,
    Kind,
    kind_of,
    read_document,
    write_document,
)

KINDS: tuple[Kind, ...] = ("json", "toml", "yaml")

BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])


def refusal(content: bytes, kind: Kind) -> str:
    with pytest.raises(ConfigError) as caught:
        read_document(content, kind)
    return caught.value.message


def test_json_may_hold_comments_and_trailing_commas() -> None:
    text = b"""\xef\xbb\xbf// a comment
    {"a": [1, 2,], /* another */ "url": "https://x.example//y", 'b': null,}"""
    assert read_document(text, "json") == {"a": [1, 2], "url": "https://x.example//y", "b": None}


def test_yaml_is_version_1_2() -> None:
    text = (
        b"a: on\nb: 1:30\nc: 010\nd: 0x1F\ne: 1e3\nf: .inf\ng: ~\nh: '5'\ni: 2026-01-02\n1: {2: x}\nj:\ntrue: y\nk: -3"
    )
    assert read_document(text, "yaml") == {
        "a": "on", "b": "1:30", "c": "010", "d": 31, "e": 1000.0, "f": math.inf, "g": None, "h": "5", "i": "2026-01-02",
        "1": {"2": "x"}, "j": None, "true": "y", "k": -3,
    }  # fmt: skip


def test_yaml_may_use_aliases() -> None:
    assert read_document(b"a: &x {b: [1]}\nc: *x\n---\nnever: read", "yaml") == {"a": {"b": [1]}, "c": {"b": [1]}}


def test_an_alias_bomb_is_refused_before_it_goes_off() -> None:
    began = time.monotonic()
    assert "more than 100,000 values" in refusal(BOMB.encode(), "yaml")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("text", ["a: &x [*x]", "a: *nobody", "a: &x {<<: [*x, *x]}"])
def test_an_alias_of_what_is_not_complete_is_refused(text: str) -> None:
    assert "alias" in refusal(text.encode(), "yaml")


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.system [x]", "a: !!binary aGk=", "!mine {a: b}", "a: !!set {b}", "- !!str 5"]
)
def test_a_yaml_tag_is_refused(text: str) -> None:
    if "!!str" in text:
        assert read_document(text.encode(), "yaml") == ["5"]
    else:
        assert "tag" in refusal(text.encode(), "yaml")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 5_000, 200_000])
def test_deep_nesting_is_refused(kind: Kind, levels: int) -> None:
    text = "[" * levels + "]" * levels
    assert "nested" in refusal((f"a = {text}" if kind == "toml" else text).encode(), kind)
    if kind == "json":
        assert "nested" in refusal(f"/* JSON5 */ {text}".encode(), kind)
        assert "nested" in refusal(('{"a":' * levels + "1" + "}" * levels).encode(), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_nesting_up_to_the_limit_is_read(kind: Kind) -> None:
    text = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    assert read_document((f"a = {text}" if kind == "toml" else f"{{a: {text}}}").encode(), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"\xc3\x28", b'{"a":\x00\x01', b"\x00", b"'", b'{"a": "\\x', b"[a\n"]
)
def test_what_is_no_document_is_refused(kind: Kind, content: bytes) -> None:
    assert refusal(content, kind).startswith("is not ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_of_thousands_of_digits_is_refused_or_a_text(kind: Kind) -> None:
    digits = "9" * 5000
    text = {"json": f'{{"a": {digits}}}', "toml": f"a = {digits}", "yaml": f"a: {digits}"}[kind].encode()
    if kind == "yaml":
        assert read_document(text, kind) in ({"a": digits}, {"a": math.inf})
    else:
        assert refusal(text, kind) in ("is not valid JSON", "holds a number too long to read")


def test_half_of_a_surrogate_pair_becomes_a_mark() -> None:
    document: Any = read_document(b'{"\\ud800": ["\\udfff", "\\ud83d\\ude00"]}', "json")
    assert document == {"\ufffd": ["\ufffd", "\U0001f600"]}
    assert refusal(b"{'a': '\\ud800'}", "json") == "is not valid JSON"


@pytest.mark.parametrize(
    ("content", "kind", "line"),
    [(b"{\n// c\n'a': ?}", "json", 3), (b"a: 1\nb: [1\nc: ]2", "yaml", 3), (b"a = 1\n[b]\nc = ?", "toml", 3)],
)
def test_a_mistake_is_named_by_its_line_and_not_quoted(content: bytes, kind: Kind, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(content, kind)
    assert (caught.value.message, caught.value.line) == (f"is not valid {kind.upper()}", line)


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    assert read_document(b'{"a": 1, "a": 2}', "json") == {"a": 2}
    assert read_document(b'{"a": 1, "a": 2,}', "json") == {"a": 2}
    assert read_document(b"a: 1\na: 2", "yaml") == {"a": 2}
    assert "TOML" in refusal(b"a = 1\na = 2", "toml")


def test_a_large_file_is_refused_unless_it_is_plain_json() -> None:
    assert "larger" in refusal(b" " * (MAX_BYTES + 1), "toml")
    assert "larger" in refusal(b" " * (MAX_BYTES + 1), "yaml")
    assert "larger" in refusal(b" " * (MAX_HISTORY_BYTES + 1), "json")
    history = json.dumps({"history": ["x" * 1000] * 3000, "mcpServers": {}}).encode()
    assert read_document(history, "json") == json.loads(history)
    assert "JSON" in refusal(b"// comment\n" + history, "json")


PADDING = '"padding": "' + "x" * MAX_BYTES + '"'


@pytest.mark.parametrize(
    "text", ["{%s}", '{%s , "a":{} }', '[{"a": [1, {%s}]}]', '{"p": {"/a": {%s, "b": {"c": []}}, "/b": {}}}']
)
def test_a_large_file_is_read_in_steps_as_if_at_once(text: str) -> None:
    content = text % PADDING
    assert read_document(f" {content}\n".encode(), "json") == json.loads(content)


@pytest.mark.parametrize(
    "text", ["{%s,}", "{%s} x", "{%s", "{,%s}", "{%s 1}", "{1: 2, %s}", '{"a" 1, %s}', '{"a": NaN, %s}', "%s"]
)
def test_a_large_file_that_is_no_json_is_refused(text: str) -> None:
    assert refusal((text % PADDING).encode(), "json") == "is not valid JSON"


def test_megabytes_of_commas_are_refused_unread() -> None:
    assert f"{MAX_ITEMS:,}" in refusal(b"[" + b"0," * (MAX_HISTORY_BYTES // 2 - 2) + b"0]", "json")


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (b"", "settings.json", "json"), (b"", "a.jsonc", "json"), (b"{}", "config.toml", "toml"),
        (b"", "c.yml", "yaml"), (b'{"a": 1}', "", "json"), (b" // x\n{}", "stdin", "json"),
        (b"[mcp_servers.x]\n", "", "toml"),
        (b'# note\n\n[mcp_servers."a b"]', "", "toml"), (b"a = 1", "", "toml"), (b"extensions:\n  a: {}", "", "yaml"),
        (b"# c\nmcpServers:\n", "", "yaml"), (b'[{"name": "x"}]', "", "json"),
    ],
)  # fmt: skip
def test_the_format_is_told_by_the_name_else_by_the_beginning(content: bytes, name: str, kind: Kind) -> None:
    assert kind_of(content, name) == kind


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(10**9), 10**9)
    | TEXTS
    | st.sampled_from(["on", "010", "1:30", "null", "~", "1e3", "a: b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS.filter(bool), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", KINDS)
@given(document=st.dictionaries(TEXTS.filter(bool), VALUES, max_size=4))
def test_what_is_written_is_read_back(kind: Kind, document: dict[str, Any]) -> None:
    assert read_document(write_document(document, kind).encode(), kind) == document


@pytest.mark.parametrize("kind", KINDS)
@given(content=st.binary(max_size=200) | st.text(alphabet="{}[]&*a:-\n\"',|>!#0 ", max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(kind: Kind, content: bytes) -> None:
    with suppress(ConfigError):
        read_document(content, kind)
