"""The package and the tests keep the rules of writing."""

from __future__ import annotations

import pytest

from tests.writing_rules import RULES

pytestmark = pytest.mark.slow  # it reads the whole tree


@pytest.mark.parametrize("rule", RULES)
def test_no_place_breaks_a_rule(rule: str) -> None:
    assert [f"{path}: {words}" for path, words in RULES[rule]()] == []
