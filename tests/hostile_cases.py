"""The hostile cases that tests meet: `@pytest.mark.hostile("P09")` names a row of ``hostile_cases.tsv``.

A name without a row stops the collection.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("hostile_cases.tsv")

WITHOUT_A_TEST = {
    "F08": "rounds are bounded and tested (MRTR-07), but no dialog says which round it belongs to",
    "L08": "such tools are left out and tested (HDR-06), but nobody is warned of a header that repeats a secret",
}
"""Cases that no test names, each with the reason."""


def read_cases(table: Path = TABLE) -> dict[str, str]:
    """The cases by id, each as a sentence."""
    rows = (line.split("\t") for line in table.read_text("utf-8").splitlines()[1:])
    return {case: sentence for case, _, sentence in rows}


def named_in_source() -> set[str]:
    """The ids that tests name, read from their text."""
    trees = (ast.parse(path.read_bytes()) for path in TABLE.parent.rglob("test_*.py"))
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    marks = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "hostile")
    return {ast.literal_eval(argument) for mark in marks for argument in mark.args}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases = read_cases()
    named = ((item, name) for item in items for mark in item.iter_markers("hostile") for name in mark.args)
    wrong = [f"{item.nodeid}: {name!r}" for item, name in named if name not in cases]
    if wrong:
        raise pytest.UsageError(f"no such row in {TABLE.name}:\n" + "\n".join(wrong))
