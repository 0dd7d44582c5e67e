"""Marks that tie tests to tables: rows of the protocol's requirements, and hostile cases.

A test names its rows: `@pytest.mark.requirement("LIFE-05")`, `@pytest.mark.server_requirement("SLIFE-04")`,
`@pytest.mark.hostile("P09")`. A name that is not in the table stops the collection. `pytest --requirements [AREA ...]`
and `pytest --server-requirements [PAGE ...]` print the rows without a test, and run nothing. Rows whose source is
`beyond` exceed the project's goals: tests for them are required outside of authorization only.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

TESTS = Path(__file__).parent
REQUIREMENTS = TESTS / "requirements.tsv"
SERVER_REQUIREMENTS = TESTS.parent / "mcphost/host/server_rules/requirements.tsv"
HOSTILE_CASES = TESTS / "hostile_cases.tsv"

WITHOUT_A_TEST: Mapping[str, str] = {
    "F08": "rounds are bounded and tested (MRTR-07), but no dialog says which round it belongs to",
    "L08": "such tools are left out and tested (HDR-06), but no warning names a header that repeats a secret",
}
"""Rows and cases that no test names, each with the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement for the client, without its sentence."""

    id: str
    area: str
    level: str
    revisions: str
    source: str

    @property
    def asked_for(self) -> bool:
        """True if a test must name it."""
        return self.source != "beyond" or "authorization" not in self.area


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One requirement for a server, with what a client observes of it."""

    id: str
    section: str
    level: str
    revisions: str
    capability: str
    transport: str
    kind: str
    seen: str

    @property
    def area(self) -> str:
        """The page of the specification."""
        return self.section.partition(": ")[0]

    @property
    def asked_for(self) -> bool:
        """True if a test can meet it."""
        return self.kind != "hidden"


Requirement: TypeAlias = Row | ServerRow


def cells(table: Path) -> Iterator[list[str]]:
    """Yield the rows of a table without its header."""
    yield from (line.split("\t") for line in table.read_text("utf-8").splitlines()[1:])


def read_rows() -> dict[str, Row]:
    """Return the client's requirements by id, in the table's order."""
    return {row.id: row for row in (Row(*each) for each in cells(REQUIREMENTS))}


def read_server_rows() -> dict[str, ServerRow]:
    """Return a server's requirements by id, in the table's order."""
    return {row.id: row for row in (ServerRow(*each) for each in cells(SERVER_REQUIREMENTS))}


def read_cases() -> dict[str, str]:
    """Return the hostile cases by id, each as a sentence."""
    return {case: sentence for case, _, sentence in cells(HOSTILE_CASES)}


def named_by(item: pytest.Item, mark: str) -> list[str]:
    """Return the ids that a test names, on itself, its parameters, its class and its module."""
    return [name for each in item.iter_markers(mark) for name in each.args]


def named_in_source(mark: str) -> set[str]:
    """Return the ids that the tests name, read from their text: faster than collecting them."""
    sources = (path.read_bytes() for path in TESTS.rglob("test_*.py"))
    trees = (ast.parse(source) for source in sources if mark.encode() in source)
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    marks = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == mark)
    return {ast.literal_eval(argument) for each in marks for argument in each.args}


def unmet(rows: Mapping[str, Requirement], named: Iterable[str], areas: Iterable[str]) -> dict[str, list[Requirement]]:
    """Return the rows that no test names, by area: those of ``areas`` (any part of an area's name), or all."""
    met, wanted = set(named), [area.lower() for area in areas]
    left: defaultdict[str, list[Requirement]] = defaultdict(list)
    for row in rows.values():
        asked = not wanted or any(part in row.area.lower() for part in wanted)
        if asked and row.asked_for and row.id not in met:
            left[row.area].append(row)
    return dict(left)


def pytest_addoption(parser: pytest.Parser) -> None:
    for option, area in (("--requirements", "AREA"), ("--server-requirements", "PAGE")):
        parser.addoption(
            option,
            nargs="*",
            metavar=area,
            help=f"print the rows that no collected test names, of each {area.lower()} or of these, and run nothing",
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for mark, table, known in (
        ("requirement", REQUIREMENTS, {*read_rows()}),
        ("server_requirement", SERVER_REQUIREMENTS, {*read_server_rows()}),
        ("hostile", HOSTILE_CASES, {*read_cases()}),
    ):
        wrong = [f"{item.nodeid}: {name!r}" for item in items for name in named_by(item, mark) if name not in known]
        if wrong:
            raise pytest.UsageError(f"no such row in {table.name}:\n" + "\n".join(wrong))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    tables: Mapping[str, Mapping[str, Requirement]] = {
        "requirement": read_rows(),
        "server_requirement": read_server_rows(),
    }
    asked = {mark: session.config.getoption(f"{mark}s") for mark in tables}
    if all(areas is None for areas in asked.values()):
        return None
    reporter = session.config.get_terminal_writer()
    for mark, areas in asked.items():
        named = [name for item in session.items for name in named_by(item, mark)]
        left = {} if areas is None else unmet(tables[mark], named, areas)
        for area, rows in left.items():
            reporter.line(f"\n{area}: {len(rows)}", bold=True)
            for row in rows:
                reporter.line(f"  {row.id:16} {row.level:10} {row.revisions}")
    return True
