"""Counts what still breaks a rule, by folder: ``python -m tests.open_places`` writes `tests/open_places.toml`.

The counts may fall and not rise; a folder without an entry breaks no rule.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.sentences import files, findings

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_suffix(".toml")
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
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and re.match(r"tests\..*\btest_\w+$", node.module or ""):
                yield path, f"{path}:{node.lineno}: {node.module}"


RULES: Mapping[str, Callable[[], Iterator[tuple[Path, str]]]] = {
    each.__name__: each for each in (translated_sentences, long_test_names, imports_between_tests)
}


def folders(rule: str) -> Mapping[str, list[str]]:
    """Return the places that break a rule, by folder."""
    found = defaultdict[str, list[str]](list)
    for path, text in RULES[rule]():
        found[path.parent.relative_to(ROOT).as_posix()].append(text)
    return found


def main() -> None:
    """Write the present counts."""
    lines = ["# Places that still break a rule, by folder; written by python -m tests.open_places."]
    for rule in RULES:
        lines += ["", f"[{rule}]", *(f'"{folder}" = {len(texts)}' for folder, texts in sorted(folders(rule).items()))]
    FILE.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
