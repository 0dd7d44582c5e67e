"""Derives form fields from a JSON Schema. Pure, and bounded for any schema.

Texts of a `FormField` (names, titles, descriptions, labels of choices) are untrusted: `mcphost.protocol.display` makes
them safe to show.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from mcphost.protocol.display import show_line
from mcphost.protocol.forms.secrets import looks_secret
from mcphost.protocol.schema.messages import FORMAT_NAMES, count_text
from mcphost.protocol.schema.traversal import Unresolvable, follow


@dataclass(frozen=True, slots=True)
class FieldLimits:
    """The limits of a field that are checked as one types; lengths in characters, or items of a list."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    multiple_of: float | None = None
    shortest: int | None = None
    longest: int | None = None
    format: str | None = None
    unique: bool = False


def rules_of(schema: Mapping[str, Any], *, is_list: bool) -> FieldLimits:
    """Read the limits; what is not a number sets none."""
    low, high = number(schema.get("minimum")), number(schema.get("maximum"))
    above, below = number(schema.get("exclusiveMinimum")), number(schema.get("exclusiveMaximum"))
    size = ("minItems", "maxItems") if is_list else ("minLength", "maxLength")
    shortest, longest = (number(schema.get(keyword)) for keyword in size)
    if schema.get("exclusiveMinimum") is True:  # draft 4 says it beside minimum
        low, above = None, low
    if schema.get("exclusiveMaximum") is True:
        high, below = None, high
    return FieldLimits(
        minimum=low,
        maximum=high,
        above=above,
        below=below,
        multiple_of=number(schema.get("multipleOf")),
        shortest=None if shortest is None else int(shortest),
        longest=None if longest is None else int(longest),
        format=schema["format"] if isinstance(schema.get("format"), str) else None,
        unique=schema.get("uniqueItems") is True,
    )


def constraints_of(rules: FieldLimits, what: str, unit: str, pattern: Any = None) -> str:
    """Say the limits in one line, such as ``whole number, 1 to 100``; safe to show.

    ``what`` is what one types, ``unit`` what a length counts. A format says more than "text".
    """
    parts = [FORMAT_NAMES.get(rules.format, rules.format) if rules.format and what == "text" else what]
    parts += [_range(rules), _length(rules, unit)]
    if rules.multiple_of is not None:
        parts.append(f"a multiple of {rules.multiple_of}")
    if isinstance(pattern, str):
        parts.append(f"pattern {pattern}")
    return show_line(", ".join(filter(None, parts)))


def _range(rules: FieldLimits) -> str:
    if rules.minimum is not None and rules.maximum is not None:
        return f"{rules.minimum} to {rules.maximum}"
    ends = {"at least": rules.minimum, "at most": rules.maximum, "more than": rules.above, "less than": rules.below}
    return ", ".join(f"{word} {end}" for word, end in ends.items() if end is not None)


def _length(rules: FieldLimits, unit: str) -> str:
    if rules.shortest and rules.longest is not None:
        if rules.shortest == rules.longest:
            return f"exactly {count_text(rules.longest, unit)}"
        return f"{rules.shortest} to {count_text(rules.longest, unit)}"
    if rules.longest is not None:
        return f"at most {count_text(rules.longest, unit)}"
    return f"at least {count_text(rules.shortest, unit)}" if rules.shortest else ""


def number(value: Any) -> Any:
    """Return ``value`` if it is a finite number, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and (isinstance(value, int) or math.isfinite(value)) else None


MAX_GROUPS = 3
"""Objects inside objects that become groups; deeper ones are edited as JSON."""

LONG_TEXT = 200
"""Characters allowed above which a text field has several lines."""

Choices = tuple[tuple[Any, str], ...]
"""Pairs of a value and its label."""


class FieldKind(Enum):
    """What a field is edited with."""

    STRING = "string"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    LIST = "list"
    GROUP = "group"
    JSON = "json"


SCALARS = frozenset(
    {FieldKind.STRING, FieldKind.TEXT, FieldKind.INTEGER, FieldKind.NUMBER, FieldKind.BOOLEAN, FieldKind.CHOICE}
)
"""What a list that is edited line by line may hold."""

_KINDS = {
    "string": FieldKind.STRING,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}
_LONG_NAMES = frozenset(
    {"body", "code", "comment", "content", "contents", "diff", "html", "markdown", "message", "patch", "prompt"}
    | {"query", "script", "snippet", "sql", "source", "template", "text"}
)


def kind_of(schema: dict[str, Any], path: tuple[str, ...]) -> tuple[FieldKind, Choices]:
    """The kind, and the choices of a `FieldKind.CHOICE` or `FieldKind.CHOICES`; a list may be no plain one."""
    if choices := choices_of(schema):
        return FieldKind.CHOICE, choices
    if any(keyword in schema for keyword in ("anyOf", "oneOf", "allOf", "not", "if")):
        return FieldKind.JSON, ()
    declared = schema.get("type")
    if declared == "string":
        return (FieldKind.TEXT if _is_long(schema, path[-1]) else FieldKind.STRING), ()
    if declared == "array":
        return _array_kind(schema)
    if declared in ("object", None) and _has_properties(schema) and len(path) <= MAX_GROUPS:
        return FieldKind.GROUP, ()
    return (_KINDS.get(declared, FieldKind.JSON) if isinstance(declared, str) else FieldKind.JSON), ()


def _array_kind(schema: dict[str, Any]) -> tuple[FieldKind, Choices]:
    items = schema.get("items")
    if not isinstance(items, dict) or "prefixItems" in schema:
        return FieldKind.JSON, ()
    if choices := choices_of({"anyOf": items["anyOf"]} if isinstance(items.get("anyOf"), list) else items):
        return FieldKind.CHOICES, choices
    return FieldKind.LIST, ()


def choices_of(schema: dict[str, Any]) -> Choices:
    """Read ``enum`` (with ``enumNames``), ``const``, and lists of ``const`` with ``title``; empty when it is none."""
    if isinstance(values := schema.get("enum"), list):
        names = schema.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(values) else [None] * len(values)
        return tuple((value, _label(value, title)) for value, title in zip(values, titles, strict=True))
    if "const" in schema:
        return ((schema["const"], _label(schema["const"], None)),)
    for keyword in ("oneOf", "anyOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches and all(isinstance(b, dict) and "const" in b for b in branches):
            return tuple((branch["const"], _label(branch["const"], branch.get("title"))) for branch in branches)
    return ()


def _label(value: Any, title: Any) -> str:
    if isinstance(title, str) and title:
        return title
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_long(schema: dict[str, Any], name: str) -> bool:
    longest = number(schema.get("maxLength"))
    if "format" in schema or (longest is not None and longest <= LONG_TEXT):
        return False
    last_word = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name)[-1].lower()
    return longest is not None or "contentMediaType" in schema or last_word in _LONG_NAMES


def _has_properties(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties")
    return isinstance(properties, dict) and bool(properties)


MAX_FIELDS = 200
"""More is no form a person fills in; the raw editor is the better tool then."""


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""No value at all, which in JSON is different from null, an empty text and an empty list."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing to fill in. ``path`` is where its value goes; ``fields`` are a group's, ``item`` is one of a list's.

    ``nullable`` fields are never required: with ``null_when_empty`` (the schema does require the key) nothing typed
    means null, else it means that the key is left out.
    """

    path: tuple[str, ...]
    kind: FieldKind
    title: str = ""
    description: str = ""
    required: bool = False
    default: Any = ABSENT
    choices: Choices = ()
    rules: FieldLimits = field(default_factory=FieldLimits)
    constraints: str = ""
    secret_looking: bool = False
    nullable: bool = False
    null_when_empty: bool = False
    fields: tuple[FormField, ...] = ()
    item: FormField | None = None

    @property
    def name(self) -> str:
        """The last part of the path: the key in the arguments."""
        return self.path[-1]

    @property
    def label(self) -> str:
        """The title, or else the name."""
        return self.title or self.name


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a schema. With ``raw_only``, a reason, there are none and only raw JSON can be edited."""

    fields: tuple[FormField, ...] = ()
    raw_only: str | None = None

    def leaves(self) -> Iterator[FormField]:
        """Yield the fields that hold values, those inside groups too, in order."""
        yield from leaves(self.fields)


class _TooMany(Exception):
    """The form would have more than `MAX_FIELDS` fields."""


def leaves(fields: tuple[FormField, ...]) -> Iterator[FormField]:
    """Yield all fields inside ``fields`` that are not groups."""
    for each in fields:
        if each.kind is FieldKind.GROUP:
            yield from leaves(each.fields)
        else:
            yield each


def read_form(schema: Any) -> Form:
    """Return the form for an object schema (a tool's inputSchema, an elicitation's requestedSchema); never raises."""
    try:
        root = follow(schema, schema)
        if reason := _no_form(root):
            return Form(raw_only=reason)
        return Form(_Reader(schema).fields_of(root, ()))
    except Unresolvable:
        return Form(raw_only="a $ref in the schema points to nothing")
    except _TooMany:
        return Form(raw_only=f"there are more than {MAX_FIELDS} fields")


def _no_form(root: Any) -> str | None:
    if not isinstance(root, dict):
        return "the schema is not an object"
    if root.get("type", "object") not in ("object", ["object"]):
        return "the schema asks for something else than an object"
    if not isinstance(root.get("properties", {}), dict):
        return "the schema's properties are not an object"
    for keyword in ("anyOf", "oneOf", "allOf", "if"):
        if keyword in root and not _adds_nothing(root, keyword):
            return f"the schema combines several forms ({keyword})"
    return None


def _adds_nothing(root: dict[str, Any], keyword: str) -> bool:
    """Whether the branches of a combination only speak of properties that the form has anyway."""
    branches = [root.get(each) for each in ("if", "then", "else")] if keyword == "if" else root[keyword]
    if not isinstance(branches, list):
        return False
    known = root.get("properties", {}).keys()
    return all(
        branch is None
        or (isinstance(branch, dict) and "$ref" not in branch and _dict(branch.get("properties")).keys() <= known)
        for branch in branches
    )


class _Reader:
    """Reads the properties of one schema, counting fields as it goes."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._count = 0

    def fields_of(self, schema: dict[str, Any], path: tuple[str, ...]) -> tuple[FormField, ...]:
        required = schema.get("required")
        names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        return tuple(
            self.field((*path, name), part, name in names) for name, part in _dict(schema.get("properties")).items()
        )

    def field(self, path: tuple[str, ...], schema: Any, required: bool) -> FormField:
        self._count += 1
        if self._count > MAX_FIELDS:
            raise _TooMany
        schema, nullable = self._plain(schema)
        kind, choices = kind_of(schema, path)
        item = self._item(schema, path) if kind is FieldKind.LIST else None
        if kind is FieldKind.LIST and item is None:
            kind = FieldKind.JSON
        title, description = _text(schema.get("title")), _text(schema.get("description"))
        rules = rules_of(schema, is_list=kind in (FieldKind.LIST, FieldKind.CHOICES))
        default = schema.get("default", ABSENT)
        return FormField(
            path=path,
            kind=kind,
            title=title,
            description=description,
            required=required and not nullable,
            default=ABSENT if nullable and default is None else default,
            choices=choices,
            rules=rules,
            constraints=constraints_of(rules, _what(kind, item), _unit(kind), schema.get("pattern")),
            secret_looking=looks_secret(path[-1], title, description) or rules.format == "password",
            nullable=nullable,
            null_when_empty=nullable and required,
            fields=self.fields_of(schema, path) if kind is FieldKind.GROUP else (),
            item=item,
        )

    def _item(self, schema: dict[str, Any], path: tuple[str, ...]) -> FormField | None:
        """Read what a list holds; None when that does not fit on a line."""
        plain, _ = self._plain(schema.get("items"))
        kind, _ = kind_of(plain, path)
        return self.field(path, schema["items"], True) if kind in SCALARS else None

    def _plain(self, schema: Any) -> tuple[dict[str, Any], bool]:
        """Follow references and take null out of the types; what cannot be read is any JSON."""
        nullable = False
        for _ in range(4):  # e.g. anyOf [$ref to a nullable type, null]
            schema = follow(self._root, schema)
            if not isinstance(schema, dict):
                return {}, nullable
            inner, null = _without_null(schema)
            nullable = nullable or null
            if inner is None:
                break
            schema = inner
        if isinstance(items := schema.get("items"), dict):  # so that a list of a named enum shows its choices
            schema = {**schema, "items": follow(self._root, items)}
        return schema, nullable


def _without_null(schema: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """Return the schema with one way of saying "or null" removed, or None when there is nothing to remove."""
    types = schema.get("type")
    if isinstance(types, list) and ("null" in types or len(types) == 1):
        others = [each for each in types if each != "null"]
        return {**schema, "type": others[0] if len(others) == 1 else tuple(others)}, "null" in types
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        if not isinstance(branches, list):
            continue
        others = [branch for branch in branches if branch != {"type": "null"}]
        if len(others) == 1 and isinstance(others[0], dict):
            beside = {key: value for key, value in schema.items() if key != keyword}
            return {**others[0], **beside}, len(branches) > 1 and keyword != "allOf"
    return None, False


_WHAT = {
    FieldKind.STRING: "text",
    FieldKind.TEXT: "text",
    FieldKind.INTEGER: "whole number",
    FieldKind.NUMBER: "number",
    FieldKind.JSON: "JSON",
}


def _what(kind: FieldKind, item: FormField | None) -> str:
    if item is not None:
        return f"list, one a line: {item.constraints}" if item.constraints else "list, one a line"
    return _WHAT.get(kind, "")


def _unit(kind: FieldKind) -> str:
    return "item" if kind in (FieldKind.LIST, FieldKind.CHOICES) else "character"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
