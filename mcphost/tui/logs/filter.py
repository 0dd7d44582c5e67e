"""The filter language of the log: ``server:db level>=warning -source:stderr "connection lost"``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcphost.host.filter_terms import (
    COMPARE,
    FilterError,
    FilterLanguage,
    any_like,
    call_numbers,
    listed,
    one_of,
    split_terms,
)
from mcphost.host.logs import LogRecord, LogSource
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import enumerated
from mcphost.protocol.models.logging import LogLevel

__all__ = ["EXAMPLES", "OWN_NAME", "FilterError", "LogFilter", "parse_filter"]

Test = Callable[[LogRecord], bool]

OWN_NAME: Final = "mcphost"
"""The server's name for records that belong to no server."""

EXAMPLES: Final = 'words  server:NAME  level>=warning  source:stderr  call:12  logger:NAME  -not  "two words"'


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The tests of a filter; without any, every record passes."""

    text: str = ""
    tests: tuple[Test, ...] = ()
    names_level: bool = False
    """The filter tests levels itself, so the pane's least level does not apply."""
    words: tuple[str, ...] = ()
    """Texts that occur in every record that passes."""

    def passes(self, record: LogRecord) -> bool:
        return all(test(record) for test in self.tests)


def parse_filter(text: str) -> LogFilter:
    """Parse a filter. Terms are separated by blanks, and a record must match all of them.

    ``a,b`` after a field means either; ``*`` stands for any characters in a server or logger name. Raises FilterError.
    """
    text = text.strip()
    terms = list(split_terms(text))
    names_level = any(term.field == "level" for term in terms)
    return LogFilter(text, tuple(map(_LANGUAGE.test, terms)), names_level, _LANGUAGE.sought(terms))


def _words(text: str) -> Test:
    needle = text.casefold()
    return lambda record: needle in record.text.casefold()


def _server(sign: str, value: str) -> Test:
    like = any_like(listed("server", sign, value, compared="levels"))
    return lambda record: like(record.server or OWN_NAME)


def _logger(sign: str, value: str) -> Test:
    like = any_like([f"*{name}*" for name in listed("logger", sign, value, compared="levels")])
    return lambda record: like(record.logger)


def _source(sign: str, value: str) -> Test:
    names = one_of("source", listed("source", sign, value, compared="levels"), [source.value for source in LogSource])
    return lambda record: record.source.value in names


def _call(sign: str, value: str) -> Test:
    matches = call_numbers(sign, value, compared="levels")
    return lambda record: matches(record.call)


def _level(sign: str, value: str) -> Test:
    known = [level.wire for level in LogLevel]
    found = [value] if value in known else [name for name in known if name.startswith(value)]
    if not found:
        raise FilterError(f"There is no level {value}; there are {enumerated(known)}.")
    if len(found) > 1:
        raise FilterError(f"The level {value} could be {enumerated(found)}; write one more letter.")
    bound, compare = LogLevel[found[0].upper()], COMPARE[sign]
    return lambda record: compare(record.level, bound)


_LANGUAGE: Final[FilterLanguage[LogRecord]] = FilterLanguage(
    fields={"server": _server, "level": _level, "source": _source, "call": _call, "logger": _logger},
    examples={
        "server": "server:git",
        "level": "level>=warning",
        "source": "source:stderr",
        "call": "call:12",
        "logger": "logger:db",
    },
    words=_words,
)
