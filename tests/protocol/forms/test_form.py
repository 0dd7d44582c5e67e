from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.forms.form import (
    ABSENT,
    FieldError,
    FieldKind,
    FieldPath,
    Form,
    FormField,
    collect,
    fill,
    outside_elicitation,
    parse,
    read_form,
    render,
)
from mcphost.protocol.forms.secrets import asks_for_secret

COLOURS = {"enum": ["red", "green"]}
PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "home": {"type": "object", "required": ["street"], "properties": {"street": {"type": "string"}, "nr": {}}},
    },
}


def form(**properties: Any) -> Form:
    return read_form({"type": "object", "properties": properties})


def field(schema: Any, name: str = "it", *, required: bool = False) -> FormField:
    return read_form({"properties": {name: schema}, "required": [name] * required}).fields[0]


@pytest.mark.requirement("TOOLS-03", "ELIC-05", "ELIC-15")
@pytest.mark.parametrize(
    ("schema", "kind", "constraints"),
    [
        ({"type": "string"}, FieldKind.STRING, "text"),
        (
            {"type": "string", "format": "email", "maxLength": 40},
            FieldKind.STRING,
            "an email address, at most 40 characters",
        ),
        ({"type": "string", "minLength": 2, "maxLength": 2}, FieldKind.STRING, "text, exactly 2 characters"),
        ({"type": "string", "pattern": "^\u202ea"}, FieldKind.STRING, "text, pattern ^⟨U+202E⟩a"),
        ({"type": "string", "maxLength": 5000}, FieldKind.TEXT, "text, at most 5000 characters"),
        ({"type": "string", "contentMediaType": "text/html"}, FieldKind.TEXT, "text"),
        ({"type": "integer", "minimum": 1, "maximum": 100}, FieldKind.INTEGER, "whole number, 1 to 100"),
        ({"type": "integer", "format": "int32", "multipleOf": 5}, FieldKind.INTEGER, "whole number, a multiple of 5"),
        ({"type": "number", "exclusiveMinimum": 0}, FieldKind.NUMBER, "number, more than 0"),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, FieldKind.NUMBER, "number, more than 0"),
        ({"type": "boolean"}, FieldKind.BOOLEAN, ""),
        (COLOURS, FieldKind.CHOICE, ""),
        ({"const": 3}, FieldKind.CHOICE, ""),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, FieldKind.CHOICE, ""),
        ({"type": "array", "items": COLOURS, "minItems": 1}, FieldKind.CHOICES, "at least 1 item"),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, FieldKind.CHOICES, ""),
        ({"type": "array", "items": {"type": "integer"}}, FieldKind.LIST, "list, one a line: whole number"),
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            FieldKind.ROWS,
            "list of list of text",
        ),
        (
            {"type": "array", "items": {"properties": {"a": {}}}, "minItems": 2},
            FieldKind.ROWS,
            "list of {a}, at least 2 items",
        ),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, FieldKind.MAP, "{any key: whole number}"),
        ({"type": "array", "prefixItems": [{}], "items": {"type": "string"}}, FieldKind.JSON, "JSON: list of text"),
        ({"type": "array"}, FieldKind.JSON, "JSON: list"),
        ({"type": "object", "properties": {"x": {}}}, FieldKind.GROUP, ""),
        ({"type": "object"}, FieldKind.JSON, "JSON: object"),
        ({"type": ["string", "number"]}, FieldKind.BRANCH, ""),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, FieldKind.BRANCH, ""),
        ({"allOf": [{"type": "string"}, {"minLength": 3}]}, FieldKind.JSON, "JSON"),
        ({}, FieldKind.JSON, "JSON"),
        (True, FieldKind.JSON, "JSON"),
        ({"type": {"odd": 1}, "title": 5, "minimum": "x", "enum": 3, "items": 4}, FieldKind.JSON, "JSON"),
    ],
)
def test_each_type_of_the_schema_gets_its_kind_of_field(schema: Any, kind: FieldKind, constraints: str) -> None:
    read = field(schema)
    assert (read.kind, read.constraints) == (kind, constraints)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["integer", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        {"oneOf": [{"type": "null"}, {"$ref": "#/properties/base"}]},
    ],
)
def test_a_nullable_type_is_the_type_and_optional(schema: Any) -> None:
    base = {"type": "integer"}
    read = read_form({"properties": {"base": base, "it": schema}, "required": ["it"]}).fields[1]
    assert (read.kind, read.required, read.default, read.nullable) == (FieldKind.INTEGER, False, ABSENT, True)
    assert parse(read, "") is None
    assert parse(read, "null") is None
    assert parse(read, "5") == 5


def test_local_references_are_followed_and_their_neighbours_win() -> None:
    root = {
        "$defs": {"colour": {**COLOURS, "title": "Colour"}, "pair": {"type": "object", "properties": {"x": {}}}},
        "properties": {
            "one": {"$ref": "#/$defs/colour", "title": "Mine"},
            "many": {"type": "array", "items": {"$ref": "#/$defs/colour"}},
            "pair": {"allOf": [{"$ref": "#/$defs/pair"}]},
        },
    }
    one, many, pair = read_form(root).fields
    assert (one.label, one.choices) == ("Mine", (("red", "red"), ("green", "green")))
    assert many.kind is FieldKind.CHOICES
    assert [each.path for each in pair.fields] == [("pair", "x")]


def test_choices_have_titles_and_values_of_any_type() -> None:
    assert field({"enum": ["a", 1, None], "enumNames": ["A", "One", "None"]}).choices[1] == (1, "One")
    assert field({"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]}).choices == ((1, "One"), (2, "2"))


@pytest.mark.parametrize("name", ["body", "sqlQuery", "file_content", "Code"])
def test_fields_that_hold_long_texts_have_several_lines(name: str) -> None:
    assert field({"type": "string"}, name).kind is FieldKind.TEXT
    assert field({"type": "string", "maxLength": 40}, name).kind is FieldKind.STRING


@pytest.mark.parametrize("name", ["query", "searchQuery", "title", "context_id"])
def test_short_texts_are_typed_in_one_line(name: str) -> None:
    assert field({"type": "string", "default": ""}, name).kind is FieldKind.STRING


@pytest.mark.requirement("TOOLS-03", "ELIC-10", "TOOLS-28")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "not an object"),
        (True, "not an object"),
        ({"type": "array"}, "something else than an object"),
        ({"properties": []}, "properties are not an object"),
        ({"anyOf": [{"properties": {"a": {}}}, True]}, "several forms (anyOf)"),
        ({"properties": {"a": {}}, "allOf": [{"$ref": "#/$defs/x"}]}, "several forms (allOf)"),
        ({"oneOf": 3}, "several forms (oneOf)"),
        ({"$ref": "#"}, "points to nothing"),
        ({"properties": {"a": {"$ref": "http://evil.example/"}}}, "points to nothing"),
        ({"properties": {str(n): {} for n in range(201)}}, "more than 200 fields"),
    ],
)
def test_schemas_beyond_a_form_are_left_to_the_raw_editor(schema: Any, reason: str) -> None:
    read = read_form(schema)
    assert reason in (read.raw_only or "")
    assert not read.fields


@pytest.mark.parametrize(
    "more",
    [
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
    ],
)
def test_combinations_that_add_no_property_still_give_a_form(more: Any) -> None:
    assert len(read_form({"properties": {"a": {}, "b": {}}, **more}).fields) == 2


@pytest.mark.hostile("F07", "L06")
def test_hostile_schemas_are_read_in_no_time() -> None:
    """Recursion, explosion through $ref, lists in lists, thousands of properties."""
    wide = {"$defs": {"n": {"properties": {f"p{n}": {"$ref": "#/$defs/n"} for n in range(190)}}}, "$ref": "#/$defs/n"}
    lists: Any = {"type": "string"}
    for _ in range(5000):
        lists = {"type": "array", "items": lists}
    started = time.thread_time()
    assert read_form(wide).raw_only
    assert read_form({"properties": {"me": {"$ref": "#"}}}).raw_only is None
    assert field(lists).kind is FieldKind.ROWS
    assert read_form({"properties": {str(n): {} for n in range(20_000)}}).raw_only
    assert time.thread_time() - started < 2


@pytest.mark.hostile("L04")
def test_thousands_chosen_of_thousands_are_read_in_no_time() -> None:
    many = [f"choice {number}" for number in range(20_000)]
    form = read_form({"properties": {"a": {"type": "array", "items": {"enum": many}}}})
    started = time.thread_time()
    assert collect(form, {("a",): many}) == ({"a": many}, {})
    assert time.thread_time() - started < 3


@pytest.mark.hostile("F05")
@pytest.mark.requirement("ELIC-08")
@pytest.mark.parametrize(
    ("name", "title", "secret"),
    [
        *(
            (name, "", True)
            for name in ("password", "apiKey", "API_KEY", "pin", "mfa_code", "accessToken", "cardNumber")
        ),
        *(
            (name, "", True)
            for name in ("p4ssw0rd", "passw\u043erd", "pass\u200bword", "ｐａｓｓｗｏｒｄ", "s e c r e t")
        ),
        ("x", "Your Secret Access Key", True),
        ("x", "One-time code", True),
        ("x", "6-digit code from your authenticator", True),
        ("x", "The code sent to your phone", True),
        ("x", "Postal code", False),
        *((name, "", False) for name in ("name", "max_tokens", "pageToken", "author", "keyboard", "pinned", "city")),
    ],
)
def test_fields_that_ask_for_secrets_are_noticed(name: str, title: str, secret: bool) -> None:
    """In disguises too."""
    assert field({"type": "string", "title": title}, name).secret_looking is secret


@pytest.mark.requirement("ELIC-08")
@pytest.mark.parametrize(
    ("message", "asks"),
    [
        ("Please paste the output of cat ~/.aws/credentials below", True),
        ("To go on I need what is in ~/.ssh/id_rsa", True),
        ("Enter the p4ssword of this machine", True),
        ("x " * 3000 + "your API key", True),
        ("Which city do you live in?", False),
        ("Sign the guest book: your name, and a word to the keeper", False),
    ],
)
def test_a_message_that_asks_for_secrets_is_noticed(message: str, asks: bool) -> None:
    assert asks_for_secret(message) is asks


@pytest.mark.hostile("F05")
def test_a_description_that_asks_for_secrets_is_noticed() -> None:
    """Output of cat ~/.aws/credentials."""
    assert field({"type": "string", "description": "paste ~/.aws/credentials here"}).secret_looking
    assert not field({"type": "integer", "description": "how many tokens to use"}).secret_looking


STRING, INTEGER, NUMBER = ({"type": name} for name in ("string", "integer", "number"))
LIST = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "raw", "value"),
    [
        (STRING, " as is ", " as is "),
        (STRING, "", ABSENT),
        (STRING, '""', ""),
        (STRING, '"quoted"', '"quoted"'),
        (STRING, "null", "null"),
        (INTEGER, " -12 ", -12),
        (INTEGER, "3.0", 3),
        (INTEGER, 7, 7),
        (NUMBER, "1e3", 1000.0),
        (NUMBER, ".5", 0.5),
        (NUMBER, "9007199254740993", 9007199254740993),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, False, False),
        ({"type": "boolean"}, "", ABSENT),
        ({"enum": ["a", 1, True, ""]}, "a", "a"),
        ({"enum": ["a", 1, True, ""]}, "1", 1),
        ({"enum": ["a", 1, True, ""]}, True, True),
        ({"enum": ["a", 1, True, ""]}, "", ""),
        ({"enum": [1, 2], "enumNames": ["One", "Two"]}, "Two", 2),
        (LIST, "a\n\n b \n", ["a", "b"]),
        (LIST, '["a\\nb", ""]', ["a\nb", ""]),
        (LIST, "[]", []),
        (LIST, "[not json", ["[not json"]),
        (LIST, ["a", ""], ["a", ""]),
        ({"type": "array", "items": INTEGER}, "1\n2", [1, 2]),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["b", "a"], ["b", "a"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "b\na", ["b", "a"]),
        ({}, '{"a": [1, null]}', {"a": [1, None]}),
        ({}, "  ", ABSENT),
    ],
)
def test_typed_text_becomes_a_value_of_the_right_type(schema: Any, raw: Any, value: Any) -> None:
    parsed = parse(field(schema), raw)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.requirement("TOOLS-03", "ELIC-06")
@pytest.mark.parametrize(
    ("schema", "raw", "message"),
    [
        (STRING, 5, "must be text"),
        (INTEGER, "1.5", "must be a whole number"),
        (INTEGER, "1_0", "must be a whole number"),
        (INTEGER, True, "must be a number"),
        pytest.param(INTEGER, "9" * 5000, "has too many digits", id="many digits"),
        (NUMBER, "nan", "must be a number"),
        (NUMBER, "1e999", "is too large"),
        ({"type": "boolean"}, "maybe", "must be true or false"),
        (COLOURS, "blue", 'must be "red" or "green"'),
        ({"type": "array", "items": COLOURS}, ["red", "blue"], 'must be "red" or "green"'),
        ({"type": "array", "items": COLOURS, "maxItems": 1}, ["red", "red"], "must have at most 1 item"),
        ({**LIST, "uniqueItems": True}, "a\na", "must not hold the same item twice"),
        ({"type": "array", "items": INTEGER}, "1\nx", "item 2 must be a whole number"),
        (LIST, "[1]", "item 1 must be text"),
        ({**INTEGER, "minimum": 3}, "2", "must be at least 3"),
        ({**INTEGER, "maximum": 3}, "4", "must be at most 3"),
        ({**NUMBER, "exclusiveMinimum": 3}, "3", "must be more than 3"),
        ({**NUMBER, "exclusiveMaximum": 3}, "3", "must be less than 3"),
        ({**INTEGER, "multipleOf": 5}, "3", "must be a multiple of 5"),
        ({**STRING, "minLength": 3}, "ab", "must have at least 3 characters"),
        ({**STRING, "maxLength": 1}, "ab", "must have at most 1 character"),
        *(
            ({**STRING, "format": "email"}, raw, "must be an email address")
            for raw in ("a", "a@", "a@b..c", "a b@c.de")
        ),
        ({**STRING, "format": "uri"}, "example.org", "must be a URI such as https://example.org/page"),
        *(
            ({**STRING, "format": "date"}, raw, "must be a date such as 2026-07-28")
            for raw in ("2026-02-30", "20260728")
        ),
        *(
            ({**STRING, "format": "date-time"}, raw, f"lacks a zone: add one, e.g. {whole}Z or {whole}+01:00")
            for raw, whole in (
                ("2026-11-20T10:00:00", "2026-11-20T10:00:00"),
                (" 2026-11-20 10:00", "2026-11-20T10:00:00"),
                ("2026-11-20t10:00:00.5", "2026-11-20T10:00:00.5"),
            )
        ),
        ({**STRING, "format": "date-time"}, "tomorrow", "must be a date and time with a zone, such as 2026-07-28T09:"),
        ({}, "{", "is invalid JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ({}, '"a', "is invalid JSON: Unterminated string starting at line 1, column 1"),
        ({}, "NaN", "is invalid JSON"),
        pytest.param({}, "[" * 100_000, "is invalid JSON", id="deep JSON"),
    ],
)
def test_problems_read_like_those_under_a_field(schema: Any, raw: Any, message: str) -> None:
    with pytest.raises(FieldError) as error:
        parse(field(schema), raw)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "factor", "typed"),
    [(NUMBER, 10**400, "1.5"), (INTEGER, 2.0, "3" * 400), (NUMBER, 0.1, "0.3")],
    ids=["huge", "long", "tenths"],
)
def test_multiples_beyond_floats_are_left_to_the_schema(kind: Any, factor: Any, typed: str) -> None:
    assert parse(field({**kind, "multipleOf": factor}), typed) == json.loads(typed)


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ("email", "a.b+c@example.org"),
        ("uri", "urn:x:y"),
        ("date", "2028-02-29"),
        ("date-time", "2026-07-28T09:30:00.5z"),
    ],
)
def test_well_formed_texts_are_accepted(format_: str, text: str) -> None:
    assert parse(field({"type": "string", "format": format_}), text) == text


@pytest.mark.requirement("ELIC-14")
def test_defaults_of_every_type_fill_the_form_and_come_back_untouched() -> None:
    defaults = {"s": "x", "i": 3, "n": 1.5, "b": True, "c": "red", "m": ["green"], "l": ["a"], "j": {"k": [1]}}
    schemas: dict[str, Any] = {
        "s": STRING,
        "i": INTEGER,
        "n": NUMBER,
        "b": {"type": "boolean"},
        "c": COLOURS,
        "m": {"type": "array", "items": COLOURS},
        "l": LIST,
        "j": {"type": "object"},
    }
    group = {"type": "object", "properties": {"in": {**STRING, "default": "y"}}}
    read = form(
        **{name: {**schema, "default": defaults[name]} for name, schema in schemas.items()}, g=group, none=STRING
    )
    assert collect(read, fill(read)) == ({**defaults, "g": {"in": "y"}}, {})


ROW = {"type": "object", "properties": {"x": {**STRING, "default": ""}}}
OPTIONAL_TEXT = {"anyOf": [STRING, {"type": "null"}]}
BLANK_DEFAULTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({**STRING, "default": ""}, {"it": ""}),
    ({**STRING, "default": " \n"}, {"it": " \n"}),
    ({**STRING, "maxLength": 900, "default": ""}, {"it": ""}),
    ({**OPTIONAL_TEXT, "default": ""}, {"it": ""}),
    ({**OPTIONAL_TEXT, "default": None}, {"it": None}),
    ({**STRING, "default": None}, {}),
    ({**INTEGER, "default": None}, {}),
    ({**INTEGER, "default": ""}, {}),
    ({"type": "boolean", "default": None}, {}),
    ({**COLOURS, "default": None}, {}),
    ({**COLOURS, "default": ""}, {}),
    ({**LIST, "default": []}, {"it": []}),
    ({**LIST, "default": None}, {}),
    ({"type": "array", "items": ROW, "default": None}, {"it": [{"x": ""}]}),
    ({"type": "object", "additionalProperties": STRING, "default": None}, {}),
    ({"anyOf": [STRING, INTEGER], "default": None}, {}),
    ({"anyOf": [STRING, INTEGER], "default": ""}, {"it": ""}),
    ({"default": ""}, {"it": ""}),
    ({"default": {}}, {"it": {}}),
    (ROW, {"it": {}}),
    ({"type": "object", "properties": {"x": STRING}, "default": {"x": ""}}, {"it": {}}),
    ({"type": "object", "properties": {"y": ROW}, "default": {"y": {"x": ""}}}, {"it": {}}),
]


@pytest.mark.parametrize(("schema", "required"), BLANK_DEFAULTS)
def test_an_invisible_default_is_neither_shown_nor_sent(schema: dict[str, Any], required: dict[str, Any]) -> None:
    optional = form(it=schema)
    entries = fill(optional)
    assert set(map(str, entries.values())) <= {"", str(ABSENT)}
    assert collect(optional, entries) == ({}, {})
    needed = read_form({"type": "object", "properties": {"it": schema}, "required": ["it"]})
    values, errors = collect(needed, fill(needed))
    assert (values, bool(errors)) == (required, not required)


@pytest.mark.parametrize("value", ["", None, "  "])
def test_a_choice_that_is_the_blank_default_is_chosen(value: Any) -> None:
    read = form(it={"enum": ["a", value], "default": value})
    assert collect(read, fill(read)) == ({"it": value}, {})


def test_the_rows_of_a_default_keep_what_is_blank_in_them() -> None:
    read = form(it={"type": "array", "items": ROW, "default": [{"x": ""}, {"x": "y"}]})
    assert collect(read, fill(read)) == ({"it": [{"x": ""}, {"x": "y"}]}, {})


def test_arguments_with_an_empty_text_keep_it() -> None:
    read = form(a={**STRING, "default": ""}, b=STRING)
    base = {"a": "", "b": ""}
    assert collect(read, fill(read, base), base=base) == (base, {})


def test_groups_are_put_together_and_errors_stand_at_their_paths() -> None:
    read = read_form(PERSON)
    entries: dict[FieldPath, Any] = {("name",): "", ("tags",): "a\nb", ("home", "nr"): "5"}
    assert collect(read, entries) == (
        {"tags": ["a", "b"], "home": {"nr": 5}},
        {
            ("name",): 'is required (type "" for an empty string)',
            ("home", "street"): 'is required (type "" for an empty string)',
        },
    )


def test_an_optional_group_in_which_nothing_is_filled_is_left_out() -> None:
    assert collect(read_form(PERSON), {("name",): "x"}) == ({"name": "x"}, {})


def test_arguments_that_the_form_does_not_know_survive_editing() -> None:
    base = {"name": "x", "extra": 1, "tags": [], "home": {"street": "s", "nr": None, "zip": 9}}
    read = read_form(PERSON)
    assert collect(read, fill(read, base), base=base) == (base, {})
    assert collect(read, {("name",): "y"}, base=base) == ({**base, "name": "y"}, {})
    assert collect(read, {("home", "nr"): ""}, base=base)[0]["home"] == {"street": "s", "zip": 9}
    assert base["home"] == {"street": "s", "nr": None, "zip": 9}


def test_clearing_a_group_leaves_it_out() -> None:
    base = {"name": "x", "home": {"street": "s"}}
    assert collect(read_form(PERSON), {("home", "street"): ""}, base=base) == ({"name": "x"}, {})


@pytest.mark.parametrize("wrong", [{"name": "x", "tags": [3]}, {"tags": ["a", None], "name": "x"}])
def test_arguments_of_the_wrong_type_are_shown_and_complained_about(wrong: dict[str, Any]) -> None:
    read = read_form(PERSON)
    _, errors = collect(read, fill(read, wrong), base=wrong)
    assert ("tags",) in errors


@pytest.mark.hostile("F07")
@pytest.mark.requirement("ELIC-10")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": STRING, "b": {**COLOURS, "type": "string"}}}, None),
        ({"type": "object", "properties": {"a": {"type": "array", "items": COLOURS}}}, None),
        (None, "not an object schema"),
        ({"type": "object"}, "no properties"),
        ({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}, "the field 'a'"),
        ({"type": "object", "properties": {"\x1b": {"$ref": "#/x"}}}, "the field '␛'"),
        ({"type": "object", "properties": {str(n): STRING for n in range(5000)}}, "more than 200"),
        ({"type": "object", "properties": {"a": STRING}, "anyOf": [{"properties": {"b": STRING}}]}, "several forms"),
    ],
)
def test_an_elicitation_is_flat_or_refused(schema: Any, reason: str | None) -> None:
    """Nested, 5000 fields, $ref, none."""
    said = outside_elicitation(schema)
    assert said is None if reason is None else reason in (said or "")


texts = st.one_of(
    st.text(), st.text('"nul\n []a', max_size=6), st.sampled_from(["null", '"null"', '""', "[]", '["a"]'])
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ROWS: Any = {"type": "array", "items": {"required": ["name"], "properties": {"name": STRING, "tags": LIST}}}
SHAPES: Any = {
    "oneOf": [
        {"properties": {"kind": {"const": "circle"}, "radius": NUMBER}, "required": ["kind"]},
        {
            "properties": {
                "kind": {"const": "box"},
                "sides": {"type": "array", "items": {"type": "array", "items": NUMBER}},
            },
            "required": ["kind"],
        },
    ]
}
TREE: Any = {"type": "object", "properties": {"it": INTEGER}}
TREE["properties"]["all"] = {"type": "array", "items": TREE}
SUPPORTED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (STRING, texts),
    ({"type": ["string", "null"]}, texts | st.none()),
    (INTEGER, st.integers()),
    ({"type": ["integer", "null"]}, st.integers() | st.none()),
    (NUMBER, numbers),
    ({"type": "boolean"}, st.booleans()),
    ({"enum": ["", "1", 1, True, None, "null"]}, st.sampled_from(["", "1", 1, True, None, "null"])),
    ({"type": "array", "items": COLOURS}, st.lists(st.sampled_from(["red", "green"]), min_size=1)),
    ({"type": "array", "items": STRING}, st.lists(texts)),
    ({"type": "array", "items": NUMBER}, st.lists(numbers)),
    ({"type": "array", "items": {"type": ["string", "null"]}}, st.lists(texts | st.none())),
    ({"type": "array", "items": {"type": "boolean"}}, st.lists(st.booleans())),
    ({}, json_values),
    (ROWS, st.lists(st.fixed_dictionaries({"name": texts}, optional={"tags": st.lists(texts), "extra": json_values}))),
    ({"type": "array", "items": {"type": "array", "items": NUMBER}}, st.lists(st.lists(numbers), max_size=4)),
    ({"type": "object", "additionalProperties": INTEGER}, st.dictionaries(st.text(max_size=200), st.integers())),
    ({"type": "object", "additionalProperties": ROWS}, st.dictionaries(st.text(max_size=9), st.just([{"name": "x"}]))),
    ({"type": ["string", "integer", "null"]}, texts | st.integers() | st.none()),
    (SHAPES, st.builds(dict, kind=st.just("circle"), radius=numbers)),
    (SHAPES, st.builds(dict, kind=st.just("box"), sides=st.lists(st.lists(numbers, min_size=1), max_size=3))),
    ({"type": "array", "items": SHAPES}, st.lists(st.builds(dict, kind=st.just("circle"), radius=numbers))),
    (
        TREE,
        st.recursive(
            st.just({"it": 1}),
            lambda inner: st.builds(lambda all_: {"it": 2, "all": all_}, st.lists(inner, max_size=3)),
            max_leaves=9,
        ),
    ),
]


@st.composite
def forms_with_arguments(draw: st.DrawFn, levels: int = 2) -> tuple[dict[str, Any], dict[str, Any]]:
    schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    arguments = {}
    for name in draw(st.lists(st.text(min_size=1), unique=True, min_size=1, max_size=4)):
        if levels and draw(st.booleans()):
            part, value = draw(forms_with_arguments(levels=levels - 1))
        else:
            part, values = draw(st.sampled_from(SUPPORTED))
            value = draw(values)
        given_ = draw(st.booleans()) and value != {}
        schema["properties"][name] = part
        schema["required"] += [name] * (given_ and draw(st.booleans()))
        if given_:
            arguments[name] = value
    return schema, arguments


@given(forms_with_arguments())
def test_arguments_come_back_from_the_form_as_they_were(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, arguments = case
    read = read_form(schema)
    assert collect(read, fill(read, arguments)) == (arguments, {})
    assert collect(read, fill(read, arguments), base=arguments) == (arguments, {})


@given(st.sampled_from(SUPPORTED), json_values)
def test_nothing_that_is_rendered_or_typed_raises_anything_else(supported: Any, value: Any) -> None:
    read = field(supported[0])
    for raw in (value, render(read, value)):
        with suppress(FieldError):
            parse(read, raw)


@given(
    json_values,
    st.dictionaries(st.sampled_from(["type", "items", "enum", "anyOf", "properties", "const"]), json_values),
)
def test_no_schema_raises(name: Any, schema: Any) -> None:
    assert isinstance(read_form({"type": "object", "properties": {str(name): schema}}), Form)
    assert isinstance(read_form(schema), Form)
