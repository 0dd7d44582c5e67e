"""The docstrings of the configuration's keys, from which its JSON Schema and its manual page are made."""

from __future__ import annotations

import ast
import inspect
import sys

from pydantic import BaseModel


def documented_keys(model: type[BaseModel]) -> dict[str, str]:
    """What each key of a table is for, by its name; reads the source, so that starting mcphost need not."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind.__module__.startswith(__package__):
            found |= _documented(_class(kind))
    return {name: text for name, text in found.items() if name in model.model_fields}


def _class(kind: type) -> ast.ClassDef:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)


def _documented(table: ast.ClassDef) -> dict[str, str]:
    """A string right after a field is its docstring."""
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in zip(table.body, table.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
