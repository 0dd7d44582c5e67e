"""Explains what is wrong in a table of the configuration: where, and what to write instead.

Sentences never repeat a value of the file, which may be a misplaced secret. Keys are repeated, quoted and in ASCII.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mcphost.errors import ConfigError
from mcphost.json_values import KeyPath

if TYPE_CHECKING:
    from mcphost.config.key_lines import KeyLines

MAX_PROBLEMS = 20
"""Problems that are reported of one table."""

_BARE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN = 64

_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list [ … ]",
    "dict_type": "a table { … }",
    "model_type": "a table { … }",
    "model_attributes_type": "a table { … }",
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}
_FOREIGN_KEYS = {
    "alwaysallow": '[servers.NAME.tools.TOOL] approval = "allow"',
    "autoapprove": '[servers.NAME.tools.TOOL] approval = "allow"',
    "bearer_token": "bearer_token_env_var, the name of an environment variable",
    "cmd": "command",
    "disabled": "enabled = false",
    "environment": "env",
    "envs": "env",
    "excludetools": "disabled_tools",
    "headers": "http_headers",
    "httpurl": "url",
    "includetools": "enabled_tools",
    "mcpservers": "[servers.NAME]",
    "scopes": "oauth = { scopes = [ … ] }",
    "timeout": "tool_timeout_sec (seconds)",
    "trust": "trust_hints",
    "type": "transport",
    "uri": "url",
}


class ConfigErrors(ConfigError):
    """Several problems: ``problems`` holds each, the message has one per line. Located at the first."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        self.problems = each(problems)
        super().__init__("\n".join(map(str, self.problems)))
        self.path, self.line = self.problems[0].path, self.problems[0].line


_M = TypeVar("_M", bound=BaseModel)


class TableValidator:
    """Validates the tables of one text, and explains problems with their lines.

    ``beneath`` is that of another text, which has the keys that this one lacks.
    """

    def __init__(self, text: str, path: Path | None, beneath: TableValidator | None = None) -> None:
        self._text, self._path, self._beneath = text, path, beneath
        self._lines: KeyLines | None = None

    def problem(self, where: KeyPath, sentence: str, *, key: str | None = None) -> ConfigError:
        """Return an error about ``where``, located at the line of its ``key`` if one is given."""
        spot = where if key is None else (*where, key)
        place = f"{shown_path(where)}: " if where else ""
        path, line = self._located(spot)
        return ConfigError(place + sentence, path=path, line=line)

    def holds(self, where: KeyPath) -> bool:
        """True if the text has exactly this."""
        return self._key_lines.holds(where)

    def validated(self, model: type[_M], value: object, where: KeyPath) -> _M:
        """Validate ``value``, located at ``where``, as a ``model``. Raises ConfigError or ConfigErrors."""
        try:
            return model.model_validate(value)
        except ValidationError as failure:
            details = failure.errors(include_url=False, include_context=True)
        problems = [self._explained(one, model, where) for one in details[:MAX_PROBLEMS]]
        if len(details) > MAX_PROBLEMS:
            problems.append(self.problem(where, f"and {len(details) - MAX_PROBLEMS} more"))
        raise together(problems) from None

    def unknown_key(self, key: str, known: Iterable[str], where: KeyPath) -> ConfigError:
        """Return the error about an unknown ``key`` in the table ``where``."""
        return self.problem((*where, key), _unknown(key, known))

    def _located(self, spot: KeyPath) -> tuple[Path | None, int | None]:
        lines = self._key_lines
        if self._beneath is not None and not lines.holds(spot):
            below = ("servers", *spot[1:])  # never under the alias mcp_servers
            path, line = self._beneath._located(below)
            if self._beneath._lines is not None and self._beneath._lines.holds(below):
                return path, line
        return self._path, lines.line_of(spot)

    @property
    def _key_lines(self) -> KeyLines:
        if self._lines is None:
            from mcphost.config.key_lines import KeyLines  # late: only needed for a file with mistakes

            self._lines = KeyLines(self._text)
        return self._lines

    def _explained(self, error: ErrorDetails, model: type[BaseModel], where: KeyPath) -> ConfigError:
        location = tuple(part for part in error["loc"] if part != "[key]")
        if error["type"] == "misplaced":
            context = error["ctx"]
            return self.problem((*where, *location), context["sentence"], key=context["key"])
        return self.problem((*where, *location), _sentence(error, model, location))


def together(problems: Sequence[ConfigError]) -> ConfigError:
    """Return one error for all ``problems``, of which there is at least one."""
    return problems[0] if len(problems) == 1 else ConfigErrors(problems)


def each(problems: Iterable[ConfigError]) -> tuple[ConfigError, ...]:
    """Return the single problems, in the order of their lines."""
    single = [one for some in problems for one in (some.problems if isinstance(some, ConfigErrors) else (some,))]
    return tuple(sorted(single, key=lambda problem: problem.line or 0))


def shown_path(path: KeyPath) -> str:
    """Write a path as in a file, in ASCII: ``servers.db.args[2]``."""
    return "".join(
        f"[{part}]" if isinstance(part, int) else ("." if position else "") + shown_key(part)
        for position, part in enumerate(path)
    )


def shown_key(key: str) -> str:
    """Write a key as in TOML, in ASCII and shortened."""
    if _BARE.fullmatch(key):
        return key
    cut = key if len(key) <= _SHOWN else key[:_SHOWN] + "…"
    return json.dumps(cut).replace("\x7f", "\\u007f")


def _sentence(error: ErrorDetails, model: type[BaseModel], location: KeyPath) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(str(location[-1]), _keys_at(model, location[:-1]))
    if kind == "missing":
        return "is missing; add it"
    if kind == "literal_error":
        return _choice(error["input"], str(context["expected"]))
    if kind in _BOUNDS:
        word, bound = _BOUNDS[kind]
        return f"must be {word} {context[bound]:.12g}"
    if kind == "value_error":
        return str(context["error"])
    if kind in _EXPECTED:
        return f"must be {_EXPECTED[kind]}, not {_toml_type(error['input'])}"
    return "must be a finite number" if kind == "finite_number" else error["msg"]


def _choice(value: object, expected: str) -> str:
    allowed = re.findall(r"'([^']*)'", expected)
    near = nearest(value, allowed) if isinstance(value, str) else None
    choices = "must be one of " + ", ".join(f'"{word}"' for word in allowed)
    return f'is not known; did you mean "{near}"? It {choices}' if near else choices


def _unknown(key: str, known: Iterable[str]) -> str:
    names = sorted(known)
    sentence = f"unknown key {shown_key(key)}"
    if foreign := _FOREIGN_KEYS.get(key.lower()):
        return f"{sentence}; here it is {foreign}"
    if near := nearest(key, names):
        return f'{sentence}; did you mean "{near}"?'
    return f"{sentence}; known are {', '.join(names)}"


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known name that is most like a misspelt one, if any is like it."""
    from difflib import get_close_matches  # late, as KeyLines

    return next(iter(get_close_matches(word[:_SHOWN], known, 1)), None)


def _keys_at(model: type[BaseModel], location: KeyPath) -> Iterable[str]:
    """Return the keys of the table at ``location``, skipping names of servers, tools and so on."""
    for part in location:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        if field is not None:
            model = next(_tables_in(field.annotation), model)
    return model.model_fields


def _tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)


def _toml_type(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a table"
        case datetime.date() | datetime.time():
            return "a date or time"
    return "this"
