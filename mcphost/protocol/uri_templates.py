"""URI templates (RFC 6570): their variables, and expansion.

The library that expands them accepts invalid templates, so the grammar is checked here.

Specification: server/resources (templates); RFC 6570.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from uritemplate import URITemplate
from uritemplate.variable import VariableValueDict

from mcphost.errors import InvalidResult

TEMPLATE_CHARACTERS: Final = 4096
"""Characters of a template."""

TEMPLATE_VARIABLES: Final = 64
"""Variables of a template; each becomes a form field."""

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_OPERATORS: Final = "+#./;?&"
_NOT_ASSIGNED: Final = "=,!@|"
_OPTIONAL: Final = "?&#"
_CHARACTER: Final = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})"
_VARIABLE: Final = re.compile(
    rf"(?P<name>{_CHARACTER}(?:\.?{_CHARACTER})*)(?:(?P<explode>\*)|:(?P<prefix>[1-9][0-9]{{0,3}}))?"
)
_NOT_LITERAL: Final = re.compile(r"[\x00-\x20\x7f\"<>\\^`]|%(?![0-9A-Fa-f]{2})")

Values = Mapping[str, str | Sequence[str]]


class Variable(NamedTuple):
    name: str
    optional: bool = False
    """True in a query and a fragment, where it may be left out."""
    many: bool = False
    """True if it may be a list (``*``)."""
    longest: int | None = None
    """The length to which its value is truncated (``:n``)."""


class UriTemplate(NamedTuple):
    text: str
    variables: tuple[Variable, ...]
    """In the order of their first appearance, each once."""

    @classmethod
    def read(cls, text: str) -> UriTemplate:
        """Parse a template. Raises InvalidResult with what is wrong."""
        if len(text) > TEMPLATE_CHARACTERS:
            raise InvalidResult(f"the URI template has {len(text)} characters, more than {TEMPLATE_CHARACTERS}")
        _check_literals(_EXPRESSION.sub("", text))
        found: dict[str, Variable] = {}
        for expression in _EXPRESSION.findall(text):
            for variable in _variables(expression):
                found.setdefault(variable.name, variable)
        if len(found) > TEMPLATE_VARIABLES:
            raise InvalidResult(f"the URI template has {len(found)} variables, more than {TEMPLATE_VARIABLES}")
        return cls(text, tuple(found.values()))

    def missing(self, values: Values) -> tuple[str, ...]:
        """The required variables without a value."""
        return tuple(each.name for each in self.variables if not each.optional and not values.get(each.name))

    def expand(self, values: Values) -> str:
        """The URI. Variables without a value are left out as the RFC says; values of other names are ignored."""
        given: VariableValueDict = {}
        for each in self.variables:
            if each.name in values:
                value = values[each.name]
                given[each.name] = value if isinstance(value, str) else list(value)
        return URITemplate(self.text).expand(given)

    def expand_texts(self, texts: Mapping[str, str]) -> str:
        """As `expand`; the values of a list are separated by commas."""
        many = {each.name for each in self.variables if each.many}
        return self.expand({name: text.split(",") if name in many else text for name, text in texts.items()})


def _check_literals(literal: str) -> None:
    if "{" in literal or "}" in literal:
        raise InvalidResult("the URI template has a brace without its counterpart")
    wrong = _NOT_LITERAL.search(literal)
    if wrong is not None:
        raise InvalidResult(f"the URI template holds {wrong[0]!r}, which no URI may hold")


def _variables(expression: str) -> list[Variable]:
    operator = expression[:1]
    if operator and operator in _NOT_ASSIGNED:
        raise InvalidResult(f"the URI template uses {operator!r} in {{{expression}}}, which means nothing yet")
    names = expression[1:] if operator and operator in _OPERATORS else expression
    return [_variable(name, expression, operator) for name in names.split(",")]


def _variable(text: str, expression: str, operator: str) -> Variable:
    match = _VARIABLE.fullmatch(text)
    if match is None:
        raise InvalidResult(f"the URI template has no valid variable name in {{{expression}}}")
    prefix = match["prefix"]
    return Variable(
        match["name"],
        optional=operator != "" and operator in _OPTIONAL,
        many=match["explode"] is not None,
        longest=None if prefix is None else int(prefix),
    )
