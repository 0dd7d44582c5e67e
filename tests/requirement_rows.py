"""Which rows of the protocol's requirement list the tests meet.

A test names its rows: `@pytest.mark.requirement("LIFE-05")`. A name without a row stops the collection.
`pytest --requirements [AREA ...]` prints the rows that no collected test names, and runs nothing. Rows whose source is
`beyond` reach past what the project set out to do: they are asked for outside of authorization.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("requirements.tsv")
TESTS = Path(__file__).parent

WITHOUT_A_TEST: Mapping[str, str] = {}
"""Rows that are asked for and that no test names, each with the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement, without its sentence."""

    id: str
    area: str
    level: str
    revisions: str
    source: str

    @property
    def asked_for(self) -> bool:
        """True if a test must name it."""
        return self.source != "beyond" or "authorization" not in self.area


def read_rows(table: Path = TABLE) -> dict[str, Row]:
    """The rows by id, in the table's order."""
    lines = table.read_text("utf-8").splitlines()[1:]
    return {row.id: row for row in (Row(*line.split("\t")) for line in lines)}


def named_by(item: pytest.Item) -> list[str]:
    """The ids that a test names, on itself, its parameters, its class and its module."""
    return [name for mark in item.iter_markers("requirement") for name in mark.args]


def named_in_source() -> set[str]:
    """The ids that the tests name, read from their text: faster than collecting them."""
    trees = (ast.parse(path.read_bytes()) for path in TESTS.rglob("test_*.py"))
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    marks = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "requirement")
    return {ast.literal_eval(argument) for mark in marks for argument in mark.args}


def unmet(rows: Mapping[str, Row], named: Iterable[str], areas: Iterable[str]) -> dict[str, list[Row]]:
    """The rows that no test names, by area: those of ``areas`` (any part of an area's name), or all."""
    met, wanted = set(named), [area.lower() for area in areas]
    left: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows.values():
        asked = not wanted or any(part in row.area.lower() for part in wanted)
        if asked and row.asked_for and row.id not in met:
            left[row.area].append(row)
    return dict(left)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--requirements",
        nargs="*",
        metavar="AREA",
        help="print the requirement rows that no collected test names, of all areas or of these, and run nothing",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rows = read_rows()
    wrong = [f"{item.nodeid}: {name!r}" for item in items for name in named_by(item) if name not in rows]
    if wrong:
        raise pytest.UsageError(f"no such row in {TABLE.name}:\n" + "\n".join(wrong))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    areas = session.config.getoption("--requirements")
    if areas is None:
        return None
    left = unmet(read_rows(), [name for item in session.items for name in named_by(item)], areas)
    reporter = session.config.get_terminal_writer()
    for area, rows in left.items():
        reporter.line(f"\n{area}: {len(rows)}", bold=True)
        for row in rows:
            reporter.line(f"  {row.id:16} {row.level:7} {row.revisions}")
    return True
