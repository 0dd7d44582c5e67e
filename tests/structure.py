"""Prints figures of how the package is laid out: ``python -m tests.structure [PACKAGE]``. They judge nothing."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tests.sentences import findings

PACKAGE = Path(__file__).parents[1] / "mcphost"
SHORT = 3
"""Words of a docstring that says hardly more than the name."""
MANY = 8
"""Arguments of a constructor that should be grouped."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module with its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree; to walk through it takes longer than to parse it."""
        return tuple(ast.walk(self.tree))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))


@cache
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
    """Return True for a function that only raises NotImplementedError."""
    if not isinstance(node, Function) or not isinstance(node.body[-1], ast.Raise):
        return False
    return "NotImplementedError" in ast.unparse(node.body[-1])


def derived(modules: list[Module], roots: Iterable[str]) -> set[str]:
    """Return the names of the classes that derive from one of `roots`, directly or not."""
    classes = [node for each in modules for node in each.classes]
    bases = [(node.name, {_last_name(base) for base in node.bases}) for node in classes]
    found, before = set(roots), 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, parents in bases if parents & found}
    return found - set(roots)


def _last_name(base: ast.expr) -> str:
    return ast.unparse(base).partition("[")[0].rpartition(".")[2]


def circles(package: Path, modules: list[Module]) -> list[set[str]]:
    """Return the groups of modules that import each other; type-only and late imports count."""
    names = {".".join((package.name, *each.path.relative_to(package).with_suffix("").parts)): each for each in modules}
    names = {name.removesuffix(".__init__"): each for name, each in names.items()}
    reached = {name: set(_imported(each.tree)) & names.keys() for name, each in names.items()}
    before = -1
    while before < (now := sum(map(len, reached.values()))):
        before = now
        reached = {name: found.union(*(reached[each] for each in found)) for name, found in reached.items()}
    groups = {
        frozenset(each for each in reached[name] if name in reached[each]) for name in names if name in reached[name]
    }
    return [set(each) for each in groups]


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def framework_privates(modules: list[Module]) -> Iterator[tuple[Path, str]]:
    """Yield the private members of Textual that a module uses, replaces or overrides, with its path."""
    spec = find_spec("textual")
    assert spec is not None
    assert spec.origin is not None
    framework = read(Path(spec.origin).parent)
    only_theirs = {name for each in framework for name in _privates(each.nodes)}
    only_theirs -= {name for each in modules for name in _privates(each.nodes)}
    bases = {node.name: set(map(_last_name, node.bases)) for each in (*framework, *modules) for node in each.classes}
    methods = {node.name: _methods(node) for each in framework for node in each.classes}
    for each in modules:
        for node in each.nodes if "textual" in each.text else ():
            if isinstance(node, ast.Attribute) and node.attr in only_theirs:
                yield each.path, node.attr
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textual"):
                yield from ((each.path, name.name) for name in node.names if _is_private(name.name))
            elif isinstance(node, ast.ClassDef):
                inherited = set().union(*(methods.get(name, set()) for name in _ancestors(node.name, bases)))
                yield from ((each.path, name) for name in _methods(node) & inherited if _is_private(name))


def _ancestors(name: str, bases: dict[str, set[str]]) -> set[str]:
    found, new = set[str](), bases.get(name, set())
    while new:
        found |= new
        new = set().union(*(bases.get(each, set()) for each in new)) - found
    return found


def _methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, Function)}


def _privates(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the private names that a module defines, attributes included."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case (
                ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store())
                | ast.Name(id=name, ctx=ast.Store())
            ):
                pass
            case _:
                continue
        if _is_private(name):
            yield name


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def arguments(node: ast.AST) -> int:
    """Return the number of arguments of a constructor; 0 for anything else."""
    if not isinstance(node, Function) or node.name != "__init__":
        return 0
    given = node.args
    return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) - 1


def figures(package: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each figure and its value."""
    modules = read(package)
    all_lines = [line for each in modules for line in each.text.splitlines()]
    comments = sum(line.lstrip().startswith("#") or "  # " in line for line in all_lines)
    named = Counter(node.name for each in modules for node in each.tree.body if isinstance(node, ast.ClassDef))
    texts = [text for each in modules for text in docstrings(each.tree)]
    known = derived(modules, {"Message"})
    groups = circles(package, modules)
    privates = list(framework_privates(modules))
    folders = Counter(each.path.parent for each in modules if each.path.name != "__init__.py")
    yield "modules", f"{len(modules):,}"
    yield "lines", f"{len(all_lines):,}"
    yield "folders with modules", f"{len(folders):,}"
    yield "modules in the fullest folder", f"{max(folders.values()):,}"
    twice = [name for name, count in named.items() if count > 1 and not name.startswith("_")]
    yield "public class names used twice", f"{len(twice):,}"
    yield "import circles, type-only and late imports counted", f"{len(groups):,}"
    yield "modules in them", f"{sum(map(len, groups)):,}"
    yield "private members of Textual", f"{len({name for _, name in privates}):,}"
    yield "modules that use them", f"{len({path for path, _ in privates}):,}"
    yield (
        f"constructors of {MANY} and more arguments",
        f"{sum(arguments(n) >= MANY for m in modules for n in m.nodes):,}",
    )
    yield "classes of messages", f"{len(known):,}"
    yield "of these named …Wanted", f"{sum(name.endswith('Wanted') for name in known):,}"
    yield "functions that raise NotImplementedError", f"{sum(is_stub(node) for m in modules for node in m.nodes):,}"
    yield "imports inside functions", f"{sum(len(list(late_imports(each.tree))) for each in modules):,}"
    yield "docstrings", f"{len(texts):,}"
    yield f"docstrings of at most {SHORT} words", f"{sum(len(text.split()) <= SHORT for text in texts):,}"
    yield "sentences that read as translated", f"{sum(len(list(findings(each.path))) for each in modules):,}"
    yield "lines for each line with a comment", f"{len(all_lines) / max(comments, 1):.0f}"


def print_table(package: Path) -> None:
    table = Table("figure", box=box.SIMPLE)
    table.add_column(package.name, justify="right")
    for name, value in figures(package):
        table.add_row(name, value)
    Console().print(table)


if __name__ == "__main__":
    print_table(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
