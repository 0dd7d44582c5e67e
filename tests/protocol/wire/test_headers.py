"""The headers that repeat a modern request: the codec and the walk through schemas, beside the official SDK's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value as sdk_decode
from mcp.shared.inbound import encode_header_value as sdk_encode
from mcp.shared.inbound import find_invalid_x_mcp_header

from mcphost.errors import InvalidArguments
from mcphost.protocol.wire.headers import (
    InvalidAnnotation,
    decode_header_value,
    encode_header_value,
    parameter_headers_of,
    read_annotations,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LOOKS_ENCODED = st.builds(lambda text: f"=?base64?{text}?=", TEXT)


@pytest.mark.requirement("HDR-03", "HDR-08")
@given(TEXT | LOOKS_ENCODED)
def test_every_text_survives_a_header_and_can_inject_nothing(text: str) -> None:
    encoded = encode_header_value(text)
    assert all("\x20" <= letter <= "\x7e" for letter in encoded)
    assert encoded == encoded.strip()
    assert decode_header_value(encoded) == text
    assert sdk_decode(encoded) == text
    assert encoded == text or encoded == sdk_encode(text) or "\t" in text


@pytest.mark.requirement("HDR-03")
@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("plain", "plain"),
        ("two words", "two words"),
        ("", ""),
        (" edge", "=?base64?IGVkZ2U=?="),
        ("naïve", "=?base64?bmHDr3Zl?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("=?base64?YQ==", "=?base64?YQ=="),
    ],
)
def test_values_that_no_header_can_hold_are_base64(text: str, encoded: str) -> None:
    assert encode_header_value(text) == encoded


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def annotated(kind: Any = "string", name: Any = "Where", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name, **more}


@pytest.mark.requirement("HDR-04", "HDR-05")
def test_annotated_arguments_are_repeated_from_their_path() -> None:
    deep = schema(c=annotated(name="C"))
    headers = read_annotations(
        schema(a=annotated(name="A"), n=annotated("integer", "N"), b=annotated("boolean", "B"), deep=deep)
    )
    assert parameter_headers_of(headers, {"a": "x", "n": 42.0, "b": False, "deep": {"c": "é"}}) == {
        "Mcp-Param-A": "x",
        "Mcp-Param-N": "42",
        "Mcp-Param-B": "false",
        "Mcp-Param-C": "=?base64?w6k=?=",
    }
    assert parameter_headers_of(headers, {"a": None, "n": -(2**53) + 1, "deep": 7}) == {
        "Mcp-Param-N": str(-(2**53) + 1)
    }
    assert parameter_headers_of(headers, {}) == {}


@pytest.mark.requirement("HDR-05")
@pytest.mark.parametrize("arguments", [{"n": 2**53}, {"n": 1.5}, {"n": True}, {"a": 1}, {"b": "true"}, {"a": "\ud800"}])
def test_a_value_no_header_can_repeat_is_refused_unsent(arguments: dict[str, Any]) -> None:
    headers = read_annotations(schema(a=annotated(name="A"), n=annotated("integer", "N"), b=annotated("boolean", "B")))
    with pytest.raises(InvalidArguments, match="the header Mcp-Param-"):
        parameter_headers_of(headers, arguments)


INVALID: list[Any] = [
    schema(a=annotated(name="")),
    schema(a=annotated(name="not a token")),
    schema(a=annotated(name="a\r\nX")),
    schema(a=annotated(name=5)),
    schema(a=annotated("number")),
    schema(a=annotated(["string", "null"])),
    schema(a={"x-mcp-header": "Where"}),
    schema(a=annotated(name="Where"), b=annotated(name="where")),
    schema(a={"type": "array", "items": annotated()}),
    schema(a={"anyOf": [annotated()]}),
    {**schema(), "$defs": {"a": annotated()}},
    {**schema(), "x-mcp-header": "Where"},
]


@pytest.mark.requirement("HDR-06")
@pytest.mark.parametrize("wrong", INVALID, ids=str)
def test_annotations_that_break_the_rules_are_refused(wrong: Any) -> None:
    assert find_invalid_x_mcp_header(wrong) is not None
    with pytest.raises(InvalidAnnotation):
        read_annotations(wrong)


@pytest.mark.parametrize(
    "data",
    [{"default": annotated()}, {"const": annotated()}, {"examples": [annotated()]}, {"enum": [annotated()]}],
    ids=lambda data: next(iter(data)),
)
def test_data_in_a_schema_holds_no_annotation(data: dict[str, Any]) -> None:
    assert read_annotations(schema(a={"type": "object", **data})) == ()


def test_an_argument_called_like_a_keyword_may_have_an_annotation() -> None:
    assert [header.name for header in read_annotations(schema(default=annotated()))] == ["Mcp-Param-Where"]


LEAF = st.sampled_from([annotated(), annotated("number"), annotated("integer", "N"), {"type": "string"}, True])
NAMES = st.sampled_from(["a", "b", "default"])


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas that hold the inner ones, at places where arguments are found and at others."""
    named = st.dictionaries(NAMES, inner, max_size=2)
    keywords = {
        **dict.fromkeys(("properties", "$defs", "patternProperties"), named),
        **dict.fromkeys(("items", "not", "if", "default"), inner),
        **dict.fromkeys(("anyOf", "allOf"), st.lists(inner, max_size=2)),
    }
    return st.one_of([st.fixed_dictionaries({"type": st.just("object"), key: each}) for key, each in keywords.items()])


SCHEMAS = st.recursive(LEAF, around, max_leaves=6)


@pytest.mark.requirement("HDR-06")
@given(SCHEMAS)
def test_schemas_are_judged_as_the_official_sdk_judges_them(generated: Any) -> None:
    try:
        read_annotations(generated)
    except InvalidAnnotation:
        assert find_invalid_x_mcp_header(generated) is not None
    else:
        assert find_invalid_x_mcp_header(generated) is None


def test_a_schema_of_any_depth_is_walked() -> None:
    deep: Any = annotated()
    for _ in range(100_000):
        deep = {"not": deep}
    with pytest.raises(InvalidAnnotation):
        read_annotations(deep)
