"""The frontmatter of a SKILL.md: found, read under YAML 1.2 or 1.1, and compared."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.errors import InvalidResult
from mcphost.protocol.skill_text import differences, equal, split_frontmatter


@pytest.mark.parametrize(
    "text", ["---\na: 1\n---\nbody", "\ufeff---\r\na: 1\r\n---\r\nbody", "--- \na: 1\n---\t\nbody"]
)
def test_the_frontmatter_is_between_two_lines(text: str) -> None:
    assert split_frontmatter(text) == ("a: 1", "body")


def test_the_body_is_kept_as_it_is() -> None:
    assert split_frontmatter("---\na: 1\n---\r\n\r\nx\r\n---\ny")[1] == "\r\nx\r\n---\ny"


@pytest.mark.hostile("SK12")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# No frontmatter", "does not begin with a line ---"),
        ("\n---\na: 1\n---\n", "does not begin with a line ---"),
        ("---\na: 1\n", "no line --- at its end"),
        (f"---\na: {'x' * 70_000}\n---\n", "more than 65,536 bytes"),
    ],
)
def test_a_frontmatter_without_bounds_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidResult, match=reason):
        split_frontmatter(text)


STEPS = zip("abcde", "bcdef", strict=True)
BOMB = "\n".join(["a: &a [x, x, x, x, x, x, x, x]", *(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]" for a, b in STEPS)])


@pytest.mark.hostile("SK12")
@pytest.mark.parametrize(
    ("yaml", "reason"),
    [
        (BOMB, "more than 20,000 values"),
        ("a: &a x\nb: [" + "*a, " * 100 + "]", "more than 64 aliases"),
        ("a: &a [*a]", "holds itself"),
        ("a: " + "[" * 100 + "]" * 100, "nested deeper than 64"),
        ("a: 1\nb:\n  c: 1\n  c: 2", "'c' twice"),
        ("1: x\n'1': y", "'1' twice"),
        ("a: !!python/object/apply:os.system [id]", "the tag"),
        ("a: !mine 1", "the tag"),
        ("a: !!str 1", "the tag"),
        ("a: !<tag:yaml.org,2002:int> 1", "the tag"),
        ("? [a, b]\n: c", "whose name is not a text"),
        ('a: "x\0y"', "NUL"),
        ("a:\n\t- b", "not valid YAML in line 3"),
        ("a: *b", "not valid YAML"),
        ("a: 1\n...\nb: 2", "not valid YAML"),
        ("- a", "not a mapping"),
        ("", "not a mapping"),
        ("text", "not a mapping"),
    ],
)
def test_yaml_that_bites_is_refused(yaml: str, reason: str) -> None:
    with pytest.raises(InvalidResult, match=reason):
        differences({}, yaml)


def test_a_reading_ends_when_its_time_is_over() -> None:
    with pytest.raises(InvalidResult, match="too long to read"):
        differences({}, "a: 1", lambda: True)


VERSIONS: dict[str, tuple[Any, Any]] = {
    "yes": ("yes", True),
    "off": ("off", False),
    "2026-01-01": ("2026-01-01", "2026-01-01"),
    "2026-01-01 10:00:00": ("2026-01-01 10:00:00", "2026-01-01T10:00:00"),
    "012": (12, 10),
    "0o12": (10, "0o12"),
    "1:30": ("1:30", 90),
    "1_000": ("1_000", 1000),
    "0b11": ("0b11", 3),
    "1e3": (1000, "1e3"),
    ".5": (0.5, 0.5),
    "0x1F": (31, 31),
    "~": (None, None),
    "Null": (None, None),
    "True": (True, True),
    "'yes'": ("yes", "yes"),
    "1.0": (1, 1.0),
    "<<": ("<<", "<<"),
}
"""Scalars, with their values under YAML 1.2 and 1.1."""


@pytest.mark.requirement("SKILL-05")
@pytest.mark.parametrize("scalar", VERSIONS)
def test_a_scalar_may_have_either_reading(scalar: str) -> None:
    newer, older = VERSIONS[scalar]
    assert differences({"a": newer}, f"a: {scalar}") == differences({"a": older}, f"a: {scalar}") == ()


@pytest.mark.requirement("SKILL-05")
def test_a_key_may_have_either_reading() -> None:
    assert differences({"on": 1}, "on: 1") == differences({"true": 1}, "on: 1") == ()


@pytest.mark.requirement("SKILL-05")
def test_readings_are_not_mixed() -> None:
    (found,) = differences({"a": True, "b": 12}, "a: yes\nb: 012")
    assert found == ("a", "true", '"yes"')


def test_a_month_that_does_not_exist_is_a_text_in_the_newer_reading() -> None:
    assert differences({"a": "2026-13-01"}, "a: 2026-13-01") == ()
    assert differences({"a": True}, "a: 2026-13-01")


def test_a_merge_key_is_a_plain_key() -> None:
    assert differences({"<<": {"a": 1}, "b": 2}, "<<: {a: 1}\nb: 2") == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ([1], [1, 2], False),
        ({"a": [True]}, {"a": [1]}, False),
        ("1", 1, False),
        (10**20, 1e20, True),
        (10**20 + 1, 1e20, False),
    ],
)
def test_numbers_are_compared_by_value(one: object, other: object, same: bool) -> None:
    assert equal(one, other) is same


@pytest.mark.requirement("SKILL-05")
@pytest.mark.hostile("SK03")
@pytest.mark.parametrize(
    ("listed", "field"),
    [
        ({"name": "a"}, "hooks"),
        ({"name": "a", "hooks": {"start": "id"}, "license": "MIT"}, "license"),
        ({"name": "b", "hooks": {"start": "id"}}, "name"),
        ({"name": "a", "hooks": {"start": "ID"}}, "hooks"),
    ],
)
def test_each_field_that_differs_is_named(listed: dict[str, Any], field: str) -> None:
    assert [each.field for each in differences(listed, "name: a\nhooks: {start: id}")] == [field]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcxyz", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text("abcxyz-", min_size=1), VALUES, max_size=4))
def test_json_is_read_as_itself(fields: dict[str, Any]) -> None:
    yaml = "\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items()) or "{}"
    assert differences(fields, yaml) == ()


@pytest.mark.hostile("SK12")
@pytest.mark.parametrize("value", ["0x" + "f" * 6000, "0o" + "7" * 6000])
def test_a_number_longer_than_any_in_json_is_refused(value: str) -> None:
    with pytest.raises(InvalidResult, match="which cannot be read"):
        differences({"x": 1}, f"x: {value}")


def test_a_longer_number_of_the_older_reading_counts_as_a_difference() -> None:
    assert [each.field for each in differences({"x": 1}, f"x: 1{':59' * 4000}")] == ["x"]


@pytest.mark.hostile("SK12")
def test_levels_that_aliases_add_up_are_refused() -> None:
    levels = [f"k0: &a0 {'[' * 60}1{']' * 60}"]
    levels += [f"k{each}: &a{each} {'[' * 60}*a{each - 1}{']' * 60}" for each in range(1, 30)]
    with pytest.raises(InvalidResult, match="nested deeper than 64 levels"):
        differences({}, "\n".join(levels))


@pytest.mark.hostile("SK12")
@pytest.mark.parametrize("escape", ["\\U00110000", "\\UFFFFFFFF"])
def test_an_escape_beyond_unicode_is_refused(escape: str) -> None:
    with pytest.raises(InvalidResult, match="stands for no character"):
        differences({}, f'x: "{escape}"')
