"""The labels of mcphost's own rows, read from the code: what an argument, a field or a tool may try to be called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import mcphost

ROWS = frozenset({"fact", "Fact", "labelled"})
"""The functions that make a row; their first argument is its label."""


@cache
def own_labels() -> tuple[str, ...]:
    """Every label that a screen, a dialog or a question on a terminal writes before one of mcphost's own facts."""
    found = {
        label
        for folder in ("tui", "cli")
        for path in Path(mcphost.__file__).with_name(folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ROWS and node.args
        for label in _texts(node.args[0])
    }
    return tuple(sorted(found))


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts that a label may be, other than none."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
