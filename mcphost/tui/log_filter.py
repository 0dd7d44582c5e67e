"""The little language in which the log is searched: ``server:db level>=warning -source:stderr "connection lost"``.

Knows its words and when a line passes. Refuses to know how it is typed or shown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Final

from mcphost.errors import McphostError
from mcphost.host.logs import LogRecord, Source
from mcphost.protocol.types import LogLevel

Test = Callable[[LogRecord], bool]

OWN_NAME: Final = "mcphost"
"""The server of lines that belong to no server."""

EXAMPLES: Final = 'words  server:NAME  level>=warning  source:stderr  call:12  logger:NAME  -not  "two words"'

_TERM = re.compile(r'(-?)(?:([a-z]+)(:|>=|<=|=|>|<))?("[^"]*"?|\S*)\s*', re.IGNORECASE)
_COMPARE: Final[dict[str, Callable[[LogLevel, LogLevel], bool]]] = {
    ":": operator.ge,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "<=": operator.le,
    "<": operator.lt,
}


class FilterError(McphostError):
    """The filter cannot be understood; ``str()`` says what to write instead."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """What a line must be to be shown; with no tests, every line passes."""

    text: str = ""
    tests: tuple[Test, ...] = ()
    names_level: bool = False
    """The filter speaks of levels itself, so that no other bound should be set."""

    def passes(self, record: LogRecord) -> bool:
        """Is every term true of this line?"""
        return all(test(record) for test in self.tests)


def parse_filter(text: str) -> LogFilter:
    """Read a filter as typed. Terms are separated by blanks, and all of them must be true of a line.

    ``a,b`` after a field means one of them; ``*`` stands for any characters in a server or logger name.
    Raises FilterError.
    """
    text = text.strip()
    terms = [term for match in _TERM.finditer(text) if (term := match.groups(default=""))[1] or term[3].strip('"')]
    names_level = any(field.lower() == "level" for _, field, _, _ in terms)
    return LogFilter(text, tuple(_test(*term) for term in terms), names_level)


def _test(minus: str, field: str, sign: str, value: str) -> Test:
    plain = value.removeprefix('"').removesuffix('"')
    maker = _FIELDS.get(field.lower())
    if maker is None:
        _refuse_misspelling(field, sign)
        test = _words(field + sign + plain)
    elif not plain:
        raise FilterError(f"Write a value after {field}{sign}, for example {_EXAMPLE[field.lower()]}.")
    else:
        test = maker(sign, plain.casefold())
    return (lambda record: not test(record)) if minus else test


def _refuse_misspelling(field: str, sign: str) -> None:
    """``sever:db`` is a slip, ``TypeError:`` is a text to look for."""
    near = get_close_matches(field.lower(), _FIELDS, n=1, cutoff=0.8)
    if near:
        raise FilterError(f'There is no field {field}; write {near[0]}{sign}, or "{field}{sign}" to look for the text.')


def _words(text: str) -> Test:
    wanted = text.casefold()
    return lambda record: wanted in record.text.casefold()


def _server(sign: str, value: str) -> Test:
    names = _plain_list("server", sign, value)
    return lambda record: any(fnmatchcase((record.server or OWN_NAME).casefold(), name) for name in names)


def _logger(sign: str, value: str) -> Test:
    names = [f"*{name}*" for name in _plain_list("logger", sign, value)]
    return lambda record: any(fnmatchcase(record.logger.casefold(), name) for name in names)


def _source(sign: str, value: str) -> Test:
    known = [source.value for source in Source]
    names = _plain_list("source", sign, value)
    for name in names:
        if name not in known:
            raise FilterError(f"There is no source {name}; there are {_enumerate(known)}.")
    return lambda record: record.source.value in names


def _call(sign: str, value: str) -> Test:
    numbers = _plain_list("call", sign, value)
    if numbers == ["*"]:
        return lambda record: record.call is not None
    if not all(number.isdecimal() and len(number) < 20 for number in numbers):
        raise FilterError(f"A call is a number, as in call:12, or call:* for any call; {value} is neither.")
    calls = {int(number) for number in numbers}
    return lambda record: record.call in calls


def _level(sign: str, value: str) -> Test:
    known = [level.wire for level in LogLevel]
    found = [value] if value in known else [name for name in known if name.startswith(value)]
    if not found:
        raise FilterError(f"There is no level {value}; there are {_enumerate(known)}.")
    if len(found) > 1:
        raise FilterError(f"The level {value} could be {_enumerate(found)}; write one more letter.")
    bound, compare = LogLevel[found[0].upper()], _COMPARE[sign]
    return lambda record: compare(record.level, bound)


def _plain_list(field: str, sign: str, value: str) -> list[str]:
    if sign not in (":", "="):
        raise FilterError(f"Only levels can be compared; write {field}:{value}.")
    return [name.replace("[", "[[]") for name in value.split(",") if name]


def _enumerate(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


_FIELDS: Final = {"server": _server, "level": _level, "source": _source, "call": _call, "logger": _logger}
_EXAMPLE: Final = {
    "server": "server:git",
    "level": "level>=warning",
    "source": "source:stderr",
    "call": "call:12",
    "logger": "logger:db",
}
