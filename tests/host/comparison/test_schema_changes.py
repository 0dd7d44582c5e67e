"""The changes between two schemas, one keyword at a time."""

from __future__ import annotations

from typing import Any

import pytest

from mcphost.host.comparison.schema_changes import argument_changes, arguments_of, schema_changes

REF = {"$ref": "#/$defs/a"}
OPTIONAL = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def of(member: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": member}, **more}


# Before, after, the severity for arguments, the severity for a result, and the words about arguments.
CASES: dict[str, tuple[Any, Any, str, str, str]] = {
    "removed": (of({}), {"type": "object"}, "breaking", "breaking", "argument a is gone"),
    "added": ({"type": "object"}, of({}), "note", "note", "argument a is new, and optional"),
    "added and required": (
        {"type": "object"}, of({}, required=["a"]), "breaking", "note", "argument a is new, and required",
    ),
    "required": (of({}), of({}, required=["a"]), "breaking", "note", "argument a is now required"),
    "optional": (of({}, required=["a"]), of({}), "note", "breaking", "argument a is no longer required"),
    "optional with a default": (
        of({}, required=["a"]), of({"default": 1}), "note", "breaking", "argument a is no longer required",
    ),
    "narrower type": (
        of({"type": ["string", "null"]}), of({"type": "string"}), "breaking", "note",
        "argument a took string or null, and takes string now",
    ),
    "number to integer": (
        of({"type": "number"}), of({"type": "integer"}), "breaking", "note",
        "argument a took number, and takes integer now",
    ),
    "other type": (
        of({"type": "string"}), of({"type": "array"}), "breaking", "breaking",
        "argument a took string, and takes array now",
    ),
    "no type any more": (
        of({"type": "string"}), of({}), "note", "breaking", "argument a took string, and takes anything now",
    ),
    "no null any more": (
        of(OPTIONAL), of({"type": "integer"}), "breaking", "note",
        "argument a took integer or null, and takes integer now",
    ),
    "fewer choices": (
        of({"enum": ["x", "y"]}), of({"enum": ["x"]}), "breaking", "note", 'argument a no longer takes "y"',
    ),
    "more choices": (of({"enum": ["x"]}), of({"enum": ["x", 2]}), "note", "breaking", "argument a now also takes 2"),
    "another constant": (
        of({"const": "x"}), of({"const": "y"}), "breaking", "breaking",
        'argument a no longer takes "x", and now also takes "y"',
    ),
    "choices instead of any": (
        of({"type": "string"}), of({"type": "string", "enum": ["x"]}), "breaking", "note",
        'argument a now takes only "x"',
    ),
    "lower maximum": (
        of({"maximum": 9}), of({"maximum": 5}), "breaking", "note",
        "argument a took at most 9, and takes at most 5 now",
    ),
    "no minimum any more": (
        of({"minLength": 1}), of({}), "note", "review",
        "argument a took at least 1 character, and takes any number of characters now",
    ),
    "closed": (
        of({}), of({}, additionalProperties=False), "breaking", "note",
        "members that the schema does not name are now refused",
    ),
    "opened": (
        of({}, additionalProperties=False), of({}), "note", "note",
        "members that the schema does not name are now taken",
    ),
    "description": (
        of({"description": "x"}), of({"description": "y"}), "review", "review",
        "the description of argument a changed",
    ),
    "the name as title": (of({}), of({"title": "A"}), "note", "note", "the title of argument a is new"),
    "one word as title": (
        {"title": "Log"}, {"title": "logArguments"}, "note", "note", "the title of the arguments changed",
    ),
    "default": (
        of({"default": 1}), of({"default": 2}), "review", "review", "the default of argument a was 1, and is 2 now",
    ),
    "pattern": (
        of({"pattern": "^a"}), of({"pattern": "^b"}), "review", "review",
        'pattern of argument a was "^a", and is "^b" now',
    ),
    "behind a reference": (
        of(REF, **{"$defs": {"a": of({"type": "string"})}}), of(REF, **{"$defs": {"a": of({"type": "null"})}}),
        "breaking", "breaking", "argument a.a took string, and takes null now",
    ),
    "in a list": (
        of({"items": {"type": "string"}}), of({"items": {"type": "null"}}), "breaking", "breaking",
        "argument a[] took string, and takes null now",
    ),
    "an alternative less": (
        of({"anyOf": [{"type": "object", "required": ["x"]}, {"type": "object", "required": ["y"]}]}),
        of({"anyOf": [{"type": "object", "required": ["x"]}]}),
        "breaking", "note", 'argument a no longer takes {"type": "object", "required": ["y"]}',
    ),
    "a reference that leads nowhere": (
        of({"$ref": "https://a"}), of({"$ref": "https://b"}), "review", "review",
        '$ref of argument a was "https://a", and is "https://b" now',
    ),
    "refused at all": (of(True), of(False), "review", "review", "not of argument a was not given, and is {} now"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_change_of_a_schema_is_one_finding_with_its_severity(name: str) -> None:
    before, after, severity, _, words = CASES[name]
    assert [(each.severity.value, each.words) for each in schema_changes(before, after)] == [(severity, words)]


@pytest.mark.parametrize("name", CASES)
def test_a_change_of_a_result_is_judged_the_other_way_round(name: str) -> None:
    before, after, _, severity, _ = CASES[name]
    assert [each.severity.value for each in schema_changes(before, after, result=True)] == [severity]


def test_a_schema_used_twice_is_reported_once() -> None:
    before, after = (
        {"properties": {"a": REF, "b": {**REF, "description": "x"}}, "$defs": {"a": of({"maxLength": number})}}
        for number in (2, 1)
    )
    assert [each.field for each in schema_changes(before, after)] == ["inputSchema.a.a.maxLength"]


def test_a_schema_in_a_circle_is_compared_to_its_end() -> None:
    before, after = (of(REF, **{"$defs": {"a": of(REF, minProperties=number)}}) for number in (1, 2))
    assert [each.field for each in schema_changes(before, after)] == ["inputSchema.a.minProperties"]


def test_a_schema_of_many_branches_ends_in_bounded_time() -> None:
    def doubling(last: str) -> dict[str, Any]:
        steps = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(60)}
        return of({"$ref": "#/$defs/d0"}, **{"$defs": {**steps, "d60": {"type": last}}})

    found = schema_changes(doubling("string"), doubling("null"))
    assert {each.severity.value for each in found} == {"breaking"}
    assert len(found) <= 60


def test_names_of_arguments_are_safe_in_sentences() -> None:
    (change,) = schema_changes({"properties": {"a\n\x1b[2J\u202e": {}}}, {})
    assert change.words.isprintable()


def test_types_are_safe_in_sentences() -> None:
    (change,) = schema_changes(of({"type": "x\n::error::y\x1b[2J\u202e"}), of({"type": "string"}))
    assert change.words.isprintable()


def test_the_same_change_of_two_alternatives_is_said_once() -> None:
    def either(**members: Any) -> dict[str, Any]:
        return of({"anyOf": [{"type": kind, "properties": members} for kind in ("object", "array")]})

    before, after = either(), either(b={})
    assert [each.words for each in schema_changes(before, after)] == ["argument a.b is new, and optional"]


def test_arguments_are_compared_by_name_type_and_need() -> None:
    before = arguments_of(of({"type": "integer"}, required=["a"]))
    assert before == {"a": "integer, required"}
    after = {"a": "string", "b": "anything"}
    assert [each.words for each in argument_changes(before, after)] == [
        "argument a is no longer required",
        "argument a took integer, and takes string now",
        "argument b is new, and optional",
    ]
