"""The grammar that every filter shares: ``server:db,git -source:stderr size>1k "two words"``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Final, Generic, TypeVar

from mcphost.errors import McphostError
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import enumerated

_TERM: Final = re.compile(r'(-?)(?:([a-z]+)(:|>=|<=|=|>|<))?("[^"]*"?|\S*)\s*', re.IGNORECASE)

COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ":": operator.ge,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "<=": operator.le,
    "<": operator.lt,
}
"""The operators that compare a value with that of a term, for fields that have an order."""

_T = TypeVar("_T")


class FilterError(McphostError):
    """The filter cannot be understood; ``str()`` says what to write instead."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term as typed; ``field`` is in lower case, empty for words alone."""

    negated: bool
    field: str
    sign: str
    value: str


def split_terms(text: str) -> Iterator[Term]:
    """The terms of a filter. They are separated by blanks; quotes hold a value together."""
    for match in _TERM.finditer(text):
        minus, field, sign, value = match.groups(default="")
        plain = value.removeprefix('"').removesuffix('"')
        if sign or plain:
            yield Term(bool(minus), field.lower(), sign, plain)


@dataclass(frozen=True, slots=True)
class FilterLanguage(Generic[_T]):
    """The fields by which one kind of thing can be filtered."""

    fields: Mapping[str, Callable[[str, str], Callable[[_T], bool]]]
    """By name, what makes a test of a sign and a value in lower case. Raises FilterError."""
    examples: Mapping[str, str]
    """By field, a term as an example."""
    words: Callable[[str], Callable[[_T], bool]]
    """Makes the test of a text to look for."""

    def test(self, term: Term) -> Callable[[_T], bool]:
        """The test for this term. Raises FilterError."""
        maker = self.fields.get(term.field)
        if maker is None:
            self._refuse_misspelling(term)
            test = self.words(term.field + term.sign + term.value)
        elif not term.value:
            raise FilterError(f"Write a value after {term.field}{term.sign}, for example {self.examples[term.field]}.")
        else:
            test = maker(term.sign, term.value.casefold())
        return (lambda thing: not test(thing)) if term.negated else test

    def sought(self, terms: Iterable[Term]) -> tuple[str, ...]:
        """The texts that must occur in what passes."""
        free = (term for term in terms if not term.negated and term.field not in self.fields)
        return tuple(term.field + term.sign + term.value for term in free)

    def _refuse_misspelling(self, term: Term) -> None:
        """``sever:db`` is a slip, ``TypeError:`` is a text to look for."""
        near = get_close_matches(term.field, self.fields, n=1, cutoff=0.8)
        if near:
            typed = f"{term.field}{term.sign}"
            instead = f'write {near[0]}{term.sign}, or "{typed}" to look for the text'
            raise FilterError(f"There is no field {term.field}; {instead}.")


def listed(field: str, sign: str, value: str, *, compared: str) -> list[str]:
    """The values of ``a,b``. Raises FilterError where the sign compares; ``compared`` says what can be."""
    if sign not in (":", "="):
        raise FilterError(f"Only {compared} can be compared; write {field}:{value}.")
    return [name for name in value.split(",") if name]


def any_like(patterns: list[str]) -> Callable[[str], bool]:
    """A test for texts that equal one of these. ``*`` matches any characters, and case does not count."""
    plain = [pattern.replace("[", "[[]") for pattern in patterns]
    return lambda text: any(fnmatchcase(text.casefold(), pattern) for pattern in plain)


def one_of(field: str, names: list[str], known: list[str]) -> list[str]:
    """The same names. Raises FilterError for one that there is not."""
    for name in names:
        if name not in known:
            raise FilterError(f"There is no {field} {name}; there are {enumerated(known)}.")
    return names


def call_numbers(sign: str, value: str, *, compared: str) -> Callable[[int | None], bool]:
    """The test of ``call:12``, ``call:3,4`` and ``call:*``. Raises FilterError."""
    numbers = listed("call", sign, value, compared=compared)
    if numbers == ["*"]:
        return lambda call: call is not None
    if not all(number.isdecimal() and len(number) < 20 for number in numbers):  # int() takes long texts slowly
        raise FilterError(f"A call is a number, as in call:12, or call:* for any call; {value} is neither.")
    calls = {int(number) for number in numbers}
    return lambda call: call in calls
