from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.schema.cost import is_plain, within
from mcphost.protocol.schema.validation import (
    DIALECTS,
    MAX_SUBSCHEMAS,
    RefersOutside,
    SchemaProblem,
    SchemaRefused,
    check_schema,
    is_cheap,
    problems,
    refers_outside,
)

ITEMS = {"items": {"properties": {"name": {"type": "string"}}}}


def inside(levels: int, schema: Any, keyword: str = "not") -> Any:
    for _ in range(levels):
        schema = {keyword: schema}
    return schema


def ladder(levels: int, width: int) -> dict[str, Any]:
    """A schema of a few hundred characters that is checked in ``width ** levels`` steps."""
    steps = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * width} for n in range(levels)}
    return {"$defs": {**steps, f"l{levels}": {"type": "string"}}, "$ref": "#/$defs/l0"}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {"const": "http://x"}}},
        {"enum": [{"$ref": "http://evil.example/x"}], "default": {"$ref": "file:///etc/passwd"}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$anchor": "here"}}},
        {"$schema": "http://json-schema.org/draft-04/schema", "minimum": 1, "exclusiveMinimum": True},
        *({"$schema": f"https://json-schema.org/{name}schema#"} for name in ("", "draft-06/", "draft-07/")),
        *({"$schema": f"https://json-schema.org/draft/{name}/schema"} for name in ("2019-09", "2020-12")),
        {"x-own": {"$ref": 5}, "x-mcp-header": "Region"},
        {"$id": "https://example.com/tool.json", "$ref": "#/$defs/a", "$defs": {"a": {"type": ["null", "object"]}}},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://x",
            "$ref": "#/definitions/a",
            "definitions": {"a": {}},
        },
        {"anyOf": [{"type": "null"}, {"properties": {"child": {"$ref": "#"}}}], "items": {"$ref": "#/anyOf/1"}},
    ],
)
def test_a_sound_schema_is_accepted(schema: Any) -> None:
    check_schema(schema)
    problems(schema, None)


@pytest.mark.hostile("L05", "L06")
@pytest.mark.requirement("SCHEMA-02", "SCHEMA-03", "SCHEMA-04", "SCHEMA-05", "TOOLS-28")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "not a JSON object"),
        ([], "not a JSON object"),
        ({"$ref": "http://evil.example/x"}, "external $ref 'http://evil.example/x'"),
        ({"properties": {"a": {"items": {"$ref": "file:///etc/passwd"}}}}, "external $ref"),
        ({"anyOf": [{"$dynamicRef": "other.json#x"}]}, "external $dynamicRef"),
        ({"items": {"$id": "https://evil.example/"}}, "$id 'https://evil.example/' is an address"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "not": {"id": "http://x"}}, "id 'http://x' is an addr"),
        (
            {"$id": "https://evil.example/a", "$ref": "https://evil.example/a"},
            "$ref 'https://evil.example/a' is an add",
        ),
        ({"$ref": "#"}, "a $ref leads back to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "leads back"),
        ({"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]}}}, "leads back"),
        ({"allOf": [{"dependentSchemas": {"x": {"not": {"$ref": "#/allOf/0"}}}}]}, "leads back"),
        ({"$ref": "\x1b[2Jx"}, "external $ref '␛[2Jx'"),
        (
            {"$schema": "https://evil.example/mine"},
            "external $schema 'https://evil.example/mine': an unknown schema dialec",
        ),
        ({"properties": {"a": {"$schema": 3}}}, "unknown schema dialect '3'"),
        ({"$ref": "#/$defs/none"}, "'#/$defs/none' points to nothing"),
        ({"properties": {"a": {"minLength": "x"}}}, "malformed: properties.a.minLength must be a whole number"),
        ({"type": "strin"}, "malformed: type"),
        ({"anyOf": [True] * MAX_SUBSCHEMAS}, "more than 2000 subschemas"),
        pytest.param({"description": "x" * 70_000}, "limit is 64 kB", id="long"),
        pytest.param({"enum": list(range(200_000))}, "larger than 64 kB", id="many choices"),
        ({"const": "\ud800"}, "lone surrogate"),
        pytest.param(inside(5000, {}), "nested deeper than 64", id="deep"),
        pytest.param(inside(5000, 1, "default"), "nested deeper than 64", id="deep data"),
    ],
)
def test_an_unacceptable_schema_is_refused_with_the_reason(schema: Any, reason: str) -> None:
    """No reference is followed out of the schema; size, depth, subschemas and circular references are bounded."""
    with pytest.raises(SchemaRefused) as refused:
        check_schema(schema)
    assert reason in str(refused.value)
    with pytest.raises(SchemaRefused):
        problems(schema, {})


@pytest.mark.hostile("L06")
@pytest.mark.parametrize("dialect", ["d" * 4_000_000, ["d" * 1_000_000]], ids=["text", "list"])
def test_a_long_name_of_a_dialect_is_looked_at_once(dialect: Any) -> None:
    """And not for each schema inside, before any limit has been asked."""
    started = time.thread_time()
    assert bool(refers_outside({"$schema": dialect, "$defs": {str(n): {} for n in range(3000)}})) is (
        type(dialect) is str
    )
    assert time.thread_time() - started < 1


@pytest.mark.parametrize("pattern", ["(", "(?=(", "a{1000000}"])
def test_a_pattern_that_cannot_be_compiled_refuses_the_schema(pattern: str) -> None:
    with pytest.raises(SchemaRefused, match="malformed"):
        problems({"pattern": pattern}, "a")


BUNDLED = {"$id": "https://a.example/s/", "$defs": {"b": {"$id": "b"}, "c": {}}}


@pytest.mark.hostile("L05")
@pytest.mark.requirement("SCHEMA-03", "SCHEMA-04")
@pytest.mark.parametrize(
    ("schema", "outside"),
    [
        ({"$ref": "#/x-hidden", "x-hidden": {"$ref": "http://127.0.0.1:9/x"}}, "external $ref 'http://127.0.0.1:9/x'"),
        ({"$ref": "#/x-1", "x-1": {"items": {"$ref": "#/x-2"}}, "x-2": {"$ref": "file:///etc"}}, "external $ref 'file:///etc'"),
        ({"$ref": "//[half"}, "external $ref '//[half'"),
        ({"properties": {"a": {"$schema": "http://a.example/mine"}}}, "external $schema 'http://a.example/mine'"),
        (BUNDLED | {"$ref": "https://a.example/s/b"}, ""),
        (BUNDLED | {"items": {"$ref": "b#/x"}, "not": {"$ref": "https://a.example/s/#/$defs/c"}}, ""),
        (BUNDLED | {"items": {"$ref": "c"}}, "external $ref 'c'"),
        ({"items": {"$ref": ""}, "$schema": "http://json-schema.org/draft-07/schema#"}, ""),
        ({"$schema": 3}, ""),
        ("$ref", ""),
    ],
)  # fmt: skip
def test_external_references_are_recognized(schema: Any, outside: str) -> None:
    """Also where no schema should be; a name that the schema gives itself leads nowhere else."""
    assert refers_outside(schema)[: len(outside) or None] == outside
    with pytest.raises(SchemaRefused) as refused:
        check_schema(schema)
    assert isinstance(refused.value, RefersOutside) is bool(outside)


@pytest.mark.requirement("TOOLS-22", "ELIC-06")
@pytest.mark.parametrize(
    ("schema", "instance", "path", "message"),
    [
        ({"required": ["a"]}, {}, "a", "is required"),
        (ITEMS, [{}, {}, {"name": 3}], "[2].name", "must be text"),
        ({"properties": {"items": ITEMS}}, {"items": [{"name": 3}]}, "items[0].name", "must be text"),
        ({"properties": {"odd name": False}}, {"odd name": 1}, '["odd name"]', "is not allowed"),
        ({"type": ["integer", "null"]}, "x", "", "must be null or a whole number"),
        ({"enum": ["a", "b", 3]}, "x", "", 'must be "a", "b" or 3'),
        ({"enum": list(range(99))}, "x", "", "must be 0, 1, 2, 3, 4, 5, 6, 7, … (99 choices)"),
        ({"const": "q"}, 1, "", 'must be "q"'),
        ({"minimum": 3}, 1, "", "must be at least 3"),
        ({"maximum": 3}, 4, "", "must be at most 3"),
        ({"exclusiveMinimum": 3}, 3, "", "must be more than 3"),
        ({"exclusiveMaximum": 3}, 3, "", "must be less than 3"),
        ({"multipleOf": 5}, 3, "", "must be a multiple of 5"),
        ({"minLength": 1}, "", "", "must have at least 1 character"),
        ({"maxLength": 2}, "abc", "", "must have at most 2 characters"),
        ({"pattern": "^\u202ex$"}, "abc", "", "must match the pattern ^⟨U+202E⟩x$"),
        ({"format": "email"}, "no", "", "must be an email address"),
        ({"format": "date"}, "2026-02-30", "", "must be a date such as 2026-07-28"),
        ({"format": "ipv6"}, "no", "", "must be an IPv6 address"),
        (
            {"format": "date-time"},
            "2026-11-20T10:00:00",
            "",
            "lacks a zone: add one, e.g. 2026-11-20T10:00:00Z or 2026-11-20T10:00:00+01:00",
        ),
        ({"format": "json-pointer"}, "no", "", "must be a valid json-pointer"),
        ({"minItems": 2}, [], "", "must have at least 2 items"),
        ({"maxItems": 0}, [1], "", "must have at most 0 items"),
        ({"uniqueItems": True}, [1, 1], "", "must not hold the same item twice"),
        ({"minProperties": 1}, {}, "", "must have at least 1 key"),
        ({"maxProperties": 0}, {"a": 1}, "", "must have at most 0 keys"),
        ({"additionalProperties": False}, {"a": 1}, "", "has a key, but may have none"),
        ({"additionalProperties": False, "properties": {"b": True}}, {"a": 1}, "", 'unknown key "a"'),
        ({"unevaluatedProperties": False}, {"a": 1, "b": 2}, "", 'unknown keys "a", "b"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "", "must be text or null"),
        ({"anyOf": [{"minimum": 3}, {"type": "null"}]}, 1, "", "fits none of the 2 allowed forms"),
        ({"oneOf": [{"minimum": 3}, {"type": "null"}]}, 1, "", "fits none of the 2 allowed forms"),
        ({"oneOf": [{"minimum": 1}, {"maximum": 1}]}, 1, "", "fits more than one of the allowed forms"),
        ({"not": {"type": "integer"}}, 1, "", "is of a form that is excluded"),
        ({"contains": {"const": 1}}, [2], "", "lacks an item that must be in it"),
        ({"propertyNames": {"maxLength": 1}}, {"abc": 1}, "", '"abc" is longer than 1 character'),
    ],
)
def test_a_problem_says_where_and_what(schema: Any, instance: Any, path: str, message: str) -> None:
    assert problems(schema, instance) == [SchemaProblem(path, message)]


@pytest.mark.requirement("SCHEMA-01", "SCHEMA-02")
def test_the_dialect_decides_and_2020_12_is_the_default() -> None:
    tuples = {"prefixItems": [{"type": "integer"}]}
    assert problems(tuples, ["x"])
    assert not problems({**tuples, "$schema": "http://json-schema.org/draft-07/schema#"}, ["x"])


@pytest.mark.requirement("SCHEMA-02")
def test_the_refusal_of_an_unknown_dialect_names_every_known_one() -> None:
    names = {re.findall(r"draft[-/](?:0(?=\d))?([\d-]+)", dialect)[0] for dialect in DIALECTS.values()}
    assert names == {"4", "6", "7", "2019-09", "2020-12"}
    with pytest.raises(SchemaRefused) as refused:
        check_schema({"$schema": "x:unknown"})
    assert all(f" {name}" in str(refused.value) for name in names)


def test_problems_are_limited_and_safe_to_show() -> None:
    found = problems({"items": {"enum": ["\x1b[2J"]}}, list(range(500)), limit=7)
    assert len(found) == 7
    assert "\x1b" not in found[0].message


@pytest.mark.hostile("L06")
def test_patterns_that_explode_in_other_engines_are_checked_at_once() -> None:
    """Linear where the pattern allows it, a step budget where it needs look-around or back references."""
    started = time.thread_time()
    assert problems({"pattern": "^(a+)+$"}, "a" * 100_000 + "!")
    assert not problems({"pattern": "^(?=.*[0-9])[a-z0-9]+$"}, "abc1")
    with pytest.raises(SchemaRefused, match="too long to match"):
        problems({"pattern": r"^(?=a)(?:(a)\1?|a)+$"}, "a" * 100 + "!")
    assert time.thread_time() - started < 5


@pytest.mark.hostile("J07")
@pytest.mark.parametrize("instance", ["\ud800", pytest.param(inside(5000, 1), id="deep")])
def test_a_value_that_cannot_be_checked_is_said_so(instance: Any) -> None:
    """A lone surrogate in a value is an error, not a crash."""
    with pytest.raises(SchemaRefused, match="value"):
        problems({"maxLength": 3, "type": "string"}, instance)


TREE = {"type": "object", "properties": {"children": {"items": {"$ref": "#"}}, "label": {"type": "string"}}}
PAIR = {"anyOf": [{"type": "string"}, {"type": "null"}]}


@pytest.mark.hostile("L06")
@pytest.mark.parametrize(
    ("schema", "instance", "cheap"),
    [
        (TREE, {"children": [{"label": "x", "children": []}] * 50}, True),
        ({"items": {"properties": {"a": PAIR, "b": {"type": "number"}}}}, [{"a": "x", "b": 1}] * 200, True),
        ({"pattern": "^[a-z]{1,60}$"}, "x" * 60, True),
        ({"pattern": "^(a+)+$"}, "a" * 1000, True),
        (ladder(2, 3), "x", True),
        (ladder(6, 10), 1, False),
        ({"$ref": "#"}, 1, False),
        ({"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}, 1, False),
        ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, 1, False),
        ({"unevaluatedProperties": False}, {}, False),
        ({"$ref": "#anchor"}, 1, False),
        ({"pattern": "^(?=x)"}, "x", False),
        ({"properties": {"unused": {"pattern": r"\p{L}{1,100}" * 9}}}, {}, False),
        pytest.param({"pattern": r"(\w{100}){10}"}, "x" * 10_000, False, id="large pattern"),
        ({"format": "regex"}, "x", False),
        pytest.param({}, "x" * 10**8, False, id="a long text"),
        pytest.param({"items": PAIR}, ["x"] * 100_000, False, id="many items"),
        ({"patternProperties": {"^a": ITEMS, "a$": ITEMS}}, {f"a{n}a": [{}] for n in range(3000)}, False),
        pytest.param(inside(5000, {}), 1, False, id="deep"),
    ],
)
def test_the_estimate_tells_short_checks_from_long_ones(schema: Any, instance: Any, cheap: bool) -> None:
    """Six levels of anyOf x10, recursion, nesting 5000."""
    started = time.thread_time()
    assert is_cheap(schema, instance) is cheap
    assert time.thread_time() - started < 2


PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "tags": {"items": {"enum": ["a", "b"]}}}}


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"properties": {"$ref": {"type": "string", "default": {"$ref": "#"}}}}, True),
        ({"items": {"additionalProperties": False}}, True),
        ({"properties": {"name": {"$ref": "#"}}}, False),
        ({"items": [{"type": "string"}]}, False),
        ({"items": {"uniqueItems": True}}, False),
        (PERSON, False),
        (PAIR, False),
    ],
)
def test_a_plain_schema_visits_each_part_of_a_value_once(schema: Any, plain: bool) -> None:
    assert is_plain(schema) is plain


@given(st.recursive(st.just("x" * 90), lambda inner: st.lists(inner, max_size=9), max_leaves=200), st.integers(1, 300))
def test_the_quick_estimate_allows_no_more_than_the_walk(value: Any, budget: int) -> None:
    schema: dict[str, Any] = {"items": {"items": {"items": {"type": "string"}}}}
    if within(budget, schema, value, plain=True):
        assert within(budget, schema, value)


KEYWORDS = st.sampled_from(["anyOf", "allOf", "oneOf", "prefixItems"])
HOSTILE = st.recursive(
    st.sampled_from([{"$ref": "#"}, {"$ref": "#/anyOf/0"}, {"type": "string"}, {"pattern": "^(a|aa)+$"}, True]),
    lambda inner: st.dictionaries(KEYWORDS, st.lists(inner, min_size=1, max_size=4), min_size=1, max_size=3),
    max_leaves=30,
)


@given(HOSTILE, st.sampled_from(["aaaaaaa!", 1, [["a"], 1, "b"]]))
def test_cheap_validation_is_fast(schema: Any, instance: Any) -> None:
    if is_cheap(schema, instance):
        started = time.thread_time()
        with suppress(SchemaRefused):
            problems(schema, instance)
        assert time.thread_time() - started < 2


def test_importing_the_module_leaves_the_validation_library_alone() -> None:
    code = "import sys, mcphost.protocol.schema.validation; sys.exit('jsonschema_rs' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.hostile("L06")
@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {str(n): {"$ref": f"#/$defs/{(n + 1) % 50_000}"} for n in range(50_000)}},
        {"$id": "http://a.example/", "$defs": {str(n): {"$id": f"s{n}", "$ref": f"s{n}"} for n in range(50_000)}},
        {"$id": "http://a.example/", "$defs": {str(n): {"$id": f"s{n}", "$ref": f"s{n}"} for n in range(400)}},
    ],
    ids=["local", "addresses", "some addresses"],
)
def test_very_many_references_are_refused_and_not_followed_for_long(schema: Any) -> None:
    started = time.thread_time()
    assert "too many" in refers_outside(schema)
    assert time.thread_time() - started < 0.25
