"""Prints figures of how the package is laid out: ``python -m tests.structure [PACKAGE]``. They judge nothing."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

PACKAGE = Path(__file__).parents[1] / "mcphost"
SHORT = 3
"""Words of a docstring that says hardly more than the name."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module with its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree)

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))


def read(package: Path) -> list[Module]:
    """All modules of a package."""
    texts = {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    return [Module(path, text, ast.parse(text)) for path, text in texts.items()]


def late_imports(tree: ast.Module) -> Iterator[ast.AST]:
    """Imports inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield from (each for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom))


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and (text := ast.get_docstring(node)):
            yield text


def is_stub(node: ast.AST) -> bool:
    """Does a function only raise NotImplementedError?"""
    if not isinstance(node, Function) or not isinstance(node.body[-1], ast.Raise):
        return False
    return "NotImplementedError" in ast.unparse(node.body[-1])


def messages(modules: list[Module]) -> list[str]:
    """The classes that derive from Textual's Message, by any way."""
    bases = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases} for m in modules for node in m.classes
    }
    found, before = {"Message"}, 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, parents in bases.items() if parents & found}
    return sorted(found - {"Message"})


def figures(package: Path) -> Iterator[tuple[str, str]]:
    """What each figure is called, and the figure."""
    modules = read(package)
    all_lines = [line for each in modules for line in each.text.splitlines()]
    comments = sum(line.lstrip().startswith("#") or "  # " in line for line in all_lines)
    named = Counter(node.name for each in modules for node in each.tree.body if isinstance(node, ast.ClassDef))
    texts = [text for each in modules for text in docstrings(each.tree)]
    known = messages(modules)
    folders = Counter(each.path.parent for each in modules if each.path.name != "__init__.py")
    yield "modules", f"{len(modules):,}"
    yield "lines", f"{len(all_lines):,}"
    yield "folders with modules", f"{len(folders):,}"
    yield "modules in the fullest folder", f"{max(folders.values()):,}"
    twice = [name for name, count in named.items() if count > 1 and not name.startswith("_")]
    yield "public class names used twice", f"{len(twice):,}"
    yield "classes of messages", f"{len(known):,}"
    yield "of these named …Wanted", f"{sum(name.endswith('Wanted') for name in known):,}"
    yield "functions that raise NotImplementedError", f"{sum(is_stub(node) for m in modules for node in m.nodes):,}"
    yield "imports inside functions", f"{sum(len(list(late_imports(each.tree))) for each in modules):,}"
    yield "docstrings", f"{len(texts):,}"
    yield f"docstrings of at most {SHORT} words", f"{sum(len(text.split()) <= SHORT for text in texts):,}"
    yield "lines for each line with a comment", f"{len(all_lines) / max(comments, 1):.0f}"


def print_table(package: Path) -> None:
    table = Table("figure", box=box.SIMPLE)
    table.add_column(package.name, justify="right")
    for name, value in figures(package):
        table.add_row(name, value)
    Console().print(table)


if __name__ == "__main__":
    print_table(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
