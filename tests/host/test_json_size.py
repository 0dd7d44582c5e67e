from __future__ import annotations

import time

import pytest

from mcphost.host.json_size import MANY, PART, json_size


def test_every_part_and_every_character_counts() -> None:
    assert json_size({"ab": ["cde", 1, None, {}]}) == 7 * PART + len("ab") + len("cde")


@pytest.mark.parametrize("many", [["x" * 140] * (40 * MANY), {f"{n:040}": "x" * 40 for n in range(40 * MANY)}])
def test_a_million_parts_are_weighed_about_right_and_at_once(many: object) -> None:
    began = time.thread_time()
    found = json_size(many)
    assert time.thread_time() - began < 0.25
    assert found == pytest.approx(40 * MANY * 200, rel=0.01)


def test_nothing_hides_among_many_parts() -> None:
    many = [0] * (10 * MANY) + ["x" * 100 for _ in range(10 * MANY)]
    assert json_size(many) == pytest.approx(10 * MANY * (PART + PART + 100), rel=0.01)
