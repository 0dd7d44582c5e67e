"""Converts what was entered into a field to a JSON value, and back.

Checks type, choice, range, length and common formats on each keystroke; the validation library checks everything else,
later.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from mcphost.errors import McphostError
from mcphost.protocol.forms.fields import ABSENT, GROWING, FieldKind, FormField
from mcphost.protocol.schema.messages import choices_text, count_text, format_text

_INTEGER = re.compile(r"([+-]?[0-9]+)(?:\.0+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(r"[0-9-]{10}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})")
_YES_NO = {
    **dict.fromkeys(("true", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "no", "n", "off", "0"), False),
}


class FieldError(McphostError):
    """The entry does not fit the field; ``str()`` is a sentence to show under it."""


def parse(field: FormField, raw: Any) -> Any:
    """Return the value of ``raw`` (typed text, or a widget's value), or `ABSENT`. Raises `FieldError`.

    An empty entry is `ABSENT`, or null if the schema requires the key. ``""`` is the empty text; ``null`` is null if
    that is allowed.
    """
    if _is_null(field, raw):
        return None
    value = _PARSERS[field.kind](field, raw)
    if value is ABSENT:
        return _nothing(field)
    for check in (_check_range, check_size, _check_format):
        check(field, value)
    return value


def render(field: FormField, value: Any) -> Any:
    """Return what to put into the field for ``value``: text, a bool, a choice (or `ABSENT`), or a list of choices.

    A value of the wrong type is rendered too, so that the user sees it; unchanged, it is parsed as if typed.
    """
    if value is ABSENT:
        return _EMPTY.get(field.kind, "")
    if value is None and field.kind is not FieldKind.CHOICE:
        return "null"
    if field.kind in (FieldKind.STRING, FieldKind.TEXT):
        return _guard(field, value) if isinstance(value, str) else _json(value)
    if field.kind is FieldKind.LIST and isinstance(value, list):
        return _render_list(field, value)
    if field.kind in (FieldKind.CHOICE, FieldKind.CHOICES) or isinstance(value, bool):
        return value
    if field.kind is FieldKind.JSON or field.kind in GROWING:
        return json.dumps(value, indent=2, ensure_ascii=False)
    return value if isinstance(value, str) else _json(value)


def is_empty(field: FormField, raw: Any) -> bool:
    if field.kind is FieldKind.CHOICE:
        return raw is ABSENT or (raw == "" and not any(value == "" for value, _ in field.choices))
    return raw is ABSENT or raw == "" or raw == []


def _is_null(field: FormField, raw: Any) -> bool:
    typed = isinstance(raw, str) and raw.strip() == "null" and (raw == "null" or field.kind not in _TEXTS)
    return field.nullable and (raw is None or typed) and not any(value == "null" for value, _ in field.choices)


def _nothing(field: FormField) -> Any:
    if field.has_blank_default and (field.required or field.null_when_empty) and _may_be_default(field):
        return field.default
    if field.null_when_empty:
        return None
    if field.required:
        hint = ' (type "" for an empty string)' if field.kind in _TEXTS else ""
        raise FieldError(f"is required{hint}")
    return ABSENT


def _may_be_default(field: FormField) -> bool:
    """True if the default is of the field's own type, which servers do not always check."""
    kinds = {str: _TEXTS, list: (FieldKind.LIST,), dict: (), type(None): ()}[type(field.default)]
    return field.kind is FieldKind.JSON or field.kind in kinds


def _parse_text(field: FormField, raw: Any) -> Any:
    if raw is ABSENT or raw == "":
        return ABSENT
    if not isinstance(raw, str):
        raise FieldError("must be text")
    return raw[1:-1] if _is_guarded(field, raw) else raw


def _guard(field: FormField, value: str) -> str:
    """Quote a text that would be parsed as empty, as null or as a quoted text."""
    special = value == "" or (field.nullable and value == "null")
    return f'"{value}"' if special or _is_guarded(field, value) else value


def _is_guarded(field: FormField, text: str) -> bool:
    inner = text.strip('"')
    in_quotes = len(text) > 1 and text[0] == text[-1] == '"'
    return in_quotes and (inner == "" or (field.nullable and inner == "null"))


def _parse_integer(field: FormField, raw: Any) -> Any:
    text = _number_text(raw)
    if text == "":
        return ABSENT
    if not (match := _INTEGER.fullmatch(text)):
        raise FieldError("must be a whole number")
    try:
        return int(match[1])
    except ValueError:  # more digits than Python converts
        raise FieldError("has too many digits") from None


def _parse_number(field: FormField, raw: Any) -> Any:
    text = _number_text(raw)
    if text == "":
        return ABSENT
    if not _NUMBER.fullmatch(text):
        raise FieldError("must be a number")
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return _parse_integer(field, text)
    number = float(text)
    if math.isinf(number):
        raise FieldError("is too large")
    return number


def _number_text(raw: Any) -> str:
    if raw is ABSENT:
        return ""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise FieldError("must be a number")
    return raw.strip() if isinstance(raw, str) else _json(raw)


def _parse_boolean(field: FormField, raw: Any) -> Any:
    if isinstance(raw, bool) or raw is ABSENT:
        return raw
    text = raw.strip().lower() if isinstance(raw, str) else None
    if text == "":
        return ABSENT
    if text not in _YES_NO:
        raise FieldError("must be true or false, or yes or no")
    return _YES_NO[text]


def _parse_choice(field: FormField, raw: Any) -> Any:
    if raw is ABSENT:
        return ABSENT
    for value, _ in field.choices:
        if same(value, raw):
            return value
    if raw == "":
        return ABSENT
    for value, label in field.choices:
        if raw == label or (isinstance(raw, str) and raw.strip() == _json(value)):
            return value
    raise FieldError(f"must be {choices_text([value for value, _ in field.choices])}")


def _parse_choices(field: FormField, raw: Any) -> Any:
    if isinstance(raw, str):
        array = _json_array(raw)
        raw = _lines(raw) if array is None else array
    if raw is ABSENT or raw == []:
        return [] if field.required and raw is not ABSENT else ABSENT
    if not isinstance(raw, list):
        raise FieldError("must be a list")
    # Thousands may be chosen of thousands: most equal a choice, found without looking at the others.
    plain = {(type(value), value) for value, _ in field.choices if type(value) in (str, int)}
    return [
        each if type(each) in (str, int) and (type(each), each) in plain else _parse_choice(field, each) for each in raw
    ]


def _parse_list(field: FormField, raw: Any) -> Any:
    assert field.item is not None
    if raw is ABSENT or (isinstance(raw, str) and not raw.strip()):
        return ABSENT
    if isinstance(raw, str) and (array := _json_array(raw)) is None:
        texts = _lines(raw)
    else:
        values = array if isinstance(raw, str) else raw
        if not isinstance(values, list):
            raise FieldError("must be a list")
        texts = [_as_raw(field.item, value) for value in values]
    return [_parse_item(field.item, number, text) for number, text in enumerate(texts, start=1)]


def _parse_item(item: FormField, number: int, raw: Any) -> Any:
    try:
        return parse(item, raw)
    except FieldError as error:
        raise FieldError(f"item {number} {error}") from None


def _as_raw(item: FormField, value: Any) -> Any:
    """Protect a text from being read as typed: it is a value already."""
    return _guard(item, value) if isinstance(value, str) and item.kind in _TEXTS else value


def _lines(text: str) -> list[Any]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _json_array(text: str) -> list[Any] | None:
    """A JSON array says what lines cannot: no items, items of several lines or with blanks around them."""
    if not text.strip().startswith("["):
        return None
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _render_list(field: FormField, value: list[Any]) -> str:
    assert field.item is not None
    rendered = [render(field.item, each) for each in value]
    lines = "\n".join(each if isinstance(each, str) else _json(each) for each in rendered)
    try:
        comes_back = same(_parse_list(field, lines), value)
    except FieldError:
        comes_back = False
    return lines if comes_back else _json(value)


def _parse_json(field: FormField, raw: Any) -> Any:
    if not isinstance(raw, str):
        return raw
    if not raw.strip():
        return ABSENT
    try:
        return json.loads(raw, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        words = error.msg.removesuffix(" at")  # some of its messages end like this, and a place follows
        raise FieldError(f"is invalid JSON: {words} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise FieldError("is invalid JSON: too deep, or a number is too long or not finite") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _check_range(field: FormField, value: Any) -> None:
    rules = field.rules
    if field.kind not in (FieldKind.INTEGER, FieldKind.NUMBER):
        return
    if rules.minimum is not None and value < rules.minimum:
        raise FieldError(f"must be at least {rules.minimum}")
    if rules.maximum is not None and value > rules.maximum:
        raise FieldError(f"must be at most {rules.maximum}")
    if rules.above is not None and value <= rules.above:
        raise FieldError(f"must be more than {rules.above}")
    if rules.below is not None and value >= rules.below:
        raise FieldError(f"must be less than {rules.below}")
    if rules.multiple_of and not _is_multiple(value, rules.multiple_of):
        raise FieldError(f"must be a multiple of {rules.multiple_of}")


def _is_multiple(value: float, factor: float) -> bool:
    try:
        return factor % 1 != 0 or value % factor == 0
    except OverflowError:  # a fraction, and a number no float can hold: the validation library's to judge
        return True


def check_size(field: FormField, value: Any) -> None:
    """Raise `FieldError` for a text or a list that is too short or too long, or repeats an item."""
    rules, unit = field.rules, "item" if isinstance(value, list) else "character"
    if field.kind not in _SIZED:
        return
    if rules.shortest is not None and len(value) < rules.shortest:
        raise FieldError(f"must have at least {count_text(rules.shortest, unit)}")
    if rules.longest is not None and len(value) > rules.longest:
        raise FieldError(f"must have at most {count_text(rules.longest, unit)}")
    if rules.unique and len(set(map(_json, value))) < len(value):
        raise FieldError("must not hold the same item twice")


def _check_format(field: FormField, value: Any) -> None:
    name = field.rules.format or ""
    if name in _FORMATS and isinstance(value, str) and not _FORMATS[name](value):
        raise FieldError(format_text(name, value))


def _is_email(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    return bool(local and domain) and not re.search(r"\s|\.\.|^\.|\.$", domain) and not re.search(r"\s|@", local)


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _reads(date.fromisoformat, text)


def _is_date_time(text: str) -> bool:
    return _DATE_TIME.fullmatch(text) is not None and _reads(datetime.fromisoformat, text.upper())


def _reads(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:
        return "a number with too many digits"


_EMPTY: dict[FieldKind, Any] = {FieldKind.CHOICES: [], FieldKind.CHOICE: ABSENT, **dict.fromkeys(GROWING, ABSENT)}
_TEXTS = (FieldKind.STRING, FieldKind.TEXT)
_SIZED = (*_TEXTS, FieldKind.LIST, FieldKind.CHOICES, FieldKind.ROWS)
_FORMATS: dict[str, Callable[[str], bool]] = {
    "email": _is_email,
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "date": _is_date,
    "date-time": _is_date_time,
}
_PARSERS: dict[FieldKind, Callable[[FormField, Any], Any]] = {
    FieldKind.STRING: _parse_text,
    FieldKind.TEXT: _parse_text,
    FieldKind.INTEGER: _parse_integer,
    FieldKind.NUMBER: _parse_number,
    FieldKind.BOOLEAN: _parse_boolean,
    FieldKind.CHOICE: _parse_choice,
    FieldKind.CHOICES: _parse_choices,
    FieldKind.LIST: _parse_list,
    FieldKind.GROUP: _parse_json,
    FieldKind.ROWS: _parse_json,
    FieldKind.MAP: _parse_json,
    FieldKind.BRANCH: _parse_json,
    FieldKind.JSON: _parse_json,
}
