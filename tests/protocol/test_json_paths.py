"""JSON paths: what they name, and what is not one."""

from __future__ import annotations

import pytest

from mcphost.protocol.json_paths import JsonPath

VALUE = {
    "rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    "name": {"name": None},
    "two words": 0,
    "0": "a member, not a position",
}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("$", [()]),
        ("$.rows[0].id", [("rows", 0, "id")]),
        ("$.rows[*].id", [("rows", 0, "id"), ("rows", 1, "id")]),
        ("$..name", [("rows", 0, "name"), ("rows", 1, "name"), ("name",), ("name", "name")]),
        ("$.name.*", [("name", "name")]),
        ("$['two words']", [("two words",)]),
        ('$["name"]', [("name",)]),
        ("$..rows[1]", [("rows", 1)]),
        ("$[0]", []),
        ("$.0", [("0",)]),
        ("$.absent.id", []),
    ],
)
def test_a_path_names_places(text: str, places: list[tuple[str | int, ...]]) -> None:
    path = JsonPath.parse(text)
    assert list(path.places(VALUE)) == places
    assert all(path.matches(place) for place in places)
    assert not path.matches(("rows", 7, "other"))


@pytest.mark.parametrize("text", ["", "rows", "$rows", "$.", "$..", "$.rows[-1]", "$.rows[", "$.a b", "$['a'"])
def test_what_is_not_a_path_gets_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON path"):
        JsonPath.parse(text)
