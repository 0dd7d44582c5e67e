"""No folder breaks a rule of writing more often than it did before."""

from __future__ import annotations

import tomllib

import pytest

from tests.open_places import FILE, RULES, folders

pytestmark = pytest.mark.slow  # it reads the whole tree


@pytest.mark.parametrize("rule", RULES)
def test_no_folder_breaks_a_rule_more_often(rule: str) -> None:
    allowed = tomllib.loads(FILE.read_text("utf-8"))[rule]
    more = {folder: texts for folder, texts in folders(rule).items() if len(texts) > allowed.get(folder, 0)}
    assert more == {}
