"""Rules of writing for the package and the tests, each with the places that break it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.sentences import files, findings

ROOT = Path(__file__).parents[1]
LONGEST_NAME = 65


def translated_sentences() -> Iterator[tuple[Path, str]]:
    """Yield what `tests.sentences` finds, with its place."""
    for path in files([ROOT / "mcphost", ROOT / "tests"]):
        for each in findings(path):
            yield path, str(each)


def long_test_names() -> Iterator[tuple[Path, str]]:
    """Yield the names of tests that are longer than `LONGEST_NAME`."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE):
            if len(name) > LONGEST_NAME:
                yield path, name


def imports_between_tests() -> Iterator[tuple[Path, str]]:
    """Yield the imports from one test module into another."""
    for path in (ROOT / "tests").rglob("*.py"):
        source = path.read_bytes()
        for node in ast.walk(ast.parse(source)) if re.search(rb"\btests\.[\w.]*test_\w", source) else ():
            if isinstance(node, ast.ImportFrom) and re.match(r"tests\..*\btest_\w+$", node.module or ""):
                yield path, f"{path}:{node.lineno}: {node.module}"


RULES: Mapping[str, Callable[[], Iterator[tuple[Path, str]]]] = {
    each.__name__: each for each in (translated_sentences, long_test_names, imports_between_tests)
}
