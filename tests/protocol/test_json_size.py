from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from mcphost.protocol.json_size import MANY, PART, is_longer, json_size


def test_every_part_and_every_character_counts() -> None:
    assert json_size({"ab": ["cde", 1, None, {}]}) == 7 * PART + len("ab") + len("cde")


def a_list() -> object:
    return ["x" * 140] * (40 * MANY)


def an_object() -> object:
    return {f"{n:040}": "x" * 40 for n in range(40 * MANY)}


@pytest.mark.parametrize("make", [a_list, an_object])
def test_a_million_parts_are_weighed_about_right_and_at_once(make: Callable[[], object]) -> None:
    many = make()
    began = time.thread_time()
    found = json_size(many)
    assert time.thread_time() - began < 0.25
    assert found == pytest.approx(40 * MANY * 200, rel=0.01)


def test_nothing_hides_among_many_parts() -> None:
    many = [0] * (10 * MANY) + ["x" * 100 for _ in range(10 * MANY)]
    assert json_size(many) == pytest.approx(10 * MANY * (PART + PART + 100), rel=0.01)


@pytest.mark.parametrize("value", [{"a": ["b", 1, None]}, {"a": "\n"}, {"": {}}, "x", [[], []]])
def test_a_value_is_longer_than_its_text_less_one(value: object) -> None:
    written = len(json.dumps(value, ensure_ascii=False))
    assert (is_longer(value, written - 1), is_longer(value, written)) == (True, False)


@pytest.mark.hostile("L04")
def test_a_giant_is_not_written_out() -> None:
    unwritable = object()
    assert is_longer({"enum": [unwritable] * 70_000}, 64 << 10)
    assert is_longer(["x" * 70_000, unwritable], 64 << 10)
