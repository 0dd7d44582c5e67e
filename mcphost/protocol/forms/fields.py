"""Derives form fields from a JSON Schema. Pure, and bounded for any schema.

Texts of a `FormField` (names, titles, descriptions, labels of choices) are untrusted: `mcphost.protocol.display` makes
them safe to show.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Any, Final

from mcphost.json_values import as_dict, as_list, as_text, is_number
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.forms.secrets import looks_secret
from mcphost.protocol.forms.shape import shape_of, skeleton
from mcphost.protocol.schema.messages import FORMAT_NAMES, count_text
from mcphost.protocol.schema.traversal import Unresolvable, depth, follow, nodes, plain_schema


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
    return value if is_number(value) and (isinstance(value, int) or math.isfinite(value)) else None


MAX_GROUPS = 3
"""Objects inside objects that become groups; deeper ones are edited as JSON."""

MAX_LEVELS = 7
"""Objects and lists inside each other that a form shows; deeper ones are edited as JSON."""

MAX_BRANCHES = 20
"""Forms of a value to choose from; where there are more, it is edited as JSON."""

KEY = -1
"""In a path behind the number of a map's row: its key. The other numbers below zero are branches."""

FieldPath = tuple[str | int, ...]
"""Place of a field in its form: names, numbers of rows, and marks below zero, which the arguments do not have."""

LONG_TEXT = 200
"""Characters allowed above which a text field has several lines."""

Choices = tuple[tuple[Any, str], ...]
"""Pairs of a value and its label."""


class FieldKind(Enum):
    STRING = "string"
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    LIST = "list"
    GROUP = "group"
    ROWS = "rows"
    MAP = "map"
    BRANCH = "branch"
    JSON = "json"


GROWING = frozenset({FieldKind.ROWS, FieldKind.MAP, FieldKind.BRANCH})
"""Kinds whose fields depend on what was entered: lists, objects with any key, and one of several forms."""

SCALARS = frozenset(
    {FieldKind.STRING, FieldKind.TEXT, FieldKind.INTEGER, FieldKind.NUMBER, FieldKind.BOOLEAN, FieldKind.CHOICE}
)
"""Kinds of the items of a list that is edited line by line."""

_KINDS = {
    "string": FieldKind.STRING,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}
_LONG_NAMES = frozenset(
    {"body", "code", "comment", "content", "contents", "diff", "html", "markdown", "message", "patch", "prompt"}
    | {"script", "snippet", "sql", "source", "template", "text"}
)


def kind_of(schema: dict[str, Any], path: FieldPath) -> tuple[FieldKind, Choices]:
    """The kind, and the choices of a `FieldKind.CHOICE` or `FieldKind.CHOICES`; a list may be no plain one."""
    if choices := choices_of(schema):
        return FieldKind.CHOICE, choices
    roomy = len(_levels(path)) <= MAX_LEVELS
    if branches_of(schema):
        return (FieldKind.BRANCH if roomy else FieldKind.JSON), ()
    if any(keyword in schema and not _adds_nothing(schema, keyword) for keyword in _COMBINING) or "not" in schema:
        return FieldKind.JSON, ()
    declared = schema.get("type")
    if declared == "string":
        return (FieldKind.TEXT if _is_long(schema, path) else FieldKind.STRING), ()
    if declared == "array":
        return _array_kind(schema)
    if declared in ("object", None) and _has_properties(schema):
        return (FieldKind.GROUP if roomy and _groups(path) <= MAX_GROUPS else FieldKind.JSON), ()
    if declared == "object" and roomy and isinstance(schema.get("additionalProperties"), dict):
        return (FieldKind.MAP if schema["additionalProperties"] else FieldKind.JSON), ()
    return (_KINDS.get(declared, FieldKind.JSON) if isinstance(declared, str) else FieldKind.JSON), ()


_COMBINING = ("anyOf", "oneOf", "allOf", "if")


def _levels(path: FieldPath) -> list[str | int]:
    return [part for part in path if not isinstance(part, int) or part >= 0]


def _groups(path: FieldPath) -> int:
    """The number of names at the end of the path: objects inside objects, all of which are read at once."""
    rows = [place for place, part in enumerate(path) if isinstance(part, int)]
    return len(path) - (rows[-1] + 1 if rows else 0)


def _array_kind(schema: dict[str, Any]) -> tuple[FieldKind, Choices]:
    items = schema.get("items")
    if not isinstance(items, dict) or "prefixItems" in schema:
        return FieldKind.JSON, ()
    if choices := choices_of({"anyOf": items["anyOf"]} if isinstance(items.get("anyOf"), list) else items):
        return FieldKind.CHOICES, choices
    return FieldKind.LIST, ()


def branches_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms that a value may have, each with the keywords beside the choice; empty if there is no choice."""
    if isinstance(types := schema.get("type"), tuple | list) and 1 < len(types) <= MAX_BRANCHES:
        return [{**schema, "type": each} for each in types if isinstance(each, str)]
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        others = any(each in schema for each in (*_COMBINING, "not") if each != keyword)
        if not isinstance(branches, list) or others or _adds_nothing(schema, keyword):
            continue
        if 1 < len(branches) <= MAX_BRANCHES and all(isinstance(each, dict) for each in branches):
            beside = {key: value for key, value in schema.items() if key not in (keyword, "title", "description")}
            return [_merged(beside, branch) for branch in branches]
    return []


def _merged(beside: dict[str, Any], branch: dict[str, Any]) -> dict[str, Any]:
    beside.pop("default", None)
    merged = {**beside, **branch}
    if "properties" in beside and "$ref" not in branch:
        merged["properties"] = {**as_dict(beside["properties"]), **as_dict(branch.get("properties"))}
        merged["required"] = [*as_list(beside.get("required")), *as_list(branch.get("required"))]
    return merged


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


def _is_long(schema: dict[str, Any], path: FieldPath) -> bool:
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    longest = number(schema.get("maxLength"))
    if "format" in schema or (longest is not None and longest <= LONG_TEXT):
        return False
    words = re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name)
    # A query is a line, in which enter goes on, unless it is SQL. A box of one line grows when lines are pasted.
    is_long = words[-1].lower() in _LONG_NAMES or words[0].lower() == "sql"
    return longest is not None or "contentMediaType" in schema or is_long


def _has_properties(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties")
    return isinstance(properties, dict) and bool(properties)


MAX_PARTS, MAX_LEVELS = 20_000, 100
"""Parts and levels of a schema from which null keywords are removed: none that can be validated has more."""

MAX_FIELDS = 200
"""Fields of a form; the raw editor is the better tool for more."""


class Source:
    """The schema from which the parts of a growing field are read, one by one as they are needed."""

    def __init__(self, root: Any, schema: dict[str, Any]) -> None:
        self.root, self.schema = root, schema
        self.branches = branches_of(schema)
        self._parts: dict[tuple[FieldPath, int], FormField] = {}

    def part(self, field: FormField, index: int) -> FormField:
        """The field of a row, of a row's value, or of a branch."""
        if (field.path, index) not in self._parts:
            self._parts[field.path, index] = self._read(field, index)
        return self._parts[field.path, index]

    def _read(self, field: FormField, index: int) -> FormField:
        path: FieldPath = (*field.path, KEY - 1 - index if field.kind is FieldKind.BRANCH else index)
        if field.kind is FieldKind.BRANCH:
            schema: Any = _with_constants(_safely_followed(self.root, self.branches[index]))
            schema = {**schema, "title": field.choices[index][1]}
        else:
            schema = self.schema.get("items" if field.kind is FieldKind.ROWS else "additionalProperties")
        try:
            part = _Reader(self.root).field(path, schema, True)
        except (Unresolvable, _TooMany):
            part = FormField(path, FieldKind.JSON, required=True, constraints="JSON", source=Source(self.root, {}))
        if field.kind is FieldKind.ROWS:
            return replace(part, title=f"{field.label} {index + 1}")
        return replace(part, title=part.title or "value")

    def key(self, field: FormField, index: int) -> FormField:
        """The field for the key of a map's row."""
        names = self.schema.get("propertyNames")
        schema = {**as_dict(names), "type": "string", "title": "key"}
        try:
            key = _Reader(self.root).field((*field.path, index, KEY), schema, True)
            return replace(key, kind=FieldKind.STRING, constraints="")
        except (Unresolvable, _TooMany):
            return FormField((*field.path, index, KEY), FieldKind.STRING, "key", required=True)

    def skeleton(self) -> Any:
        """A value to fill in."""
        return skeleton(self.root, self.schema)


def _safely_followed(root: Any, schema: Any) -> dict[str, Any]:
    try:
        return as_dict(follow(root, schema))
    except Unresolvable:
        return {}


def _with_constants(schema: dict[str, Any]) -> dict[str, Any]:
    """A branch whose required constants, which tell it from the others, are filled in."""
    if schema.get("type") == "null":
        return {"const": None, "default": None}
    required = {name for name in as_list(schema.get("required")) if isinstance(name, str)}
    properties = {
        name: {**part, "default": part["const"]}
        if name in required and isinstance(part, dict) and "const" in part
        else part
        for name, part in as_dict(schema.get("properties")).items()
    }
    return {**schema, "properties": properties} if properties else schema


_EMPTY_MEANS_DEFAULT = (FieldKind.LIST, FieldKind.BRANCH, FieldKind.JSON)
"""Of fields whose default is an empty list or object; rows show theirs as "no rows"."""


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

    path: FieldPath
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
    source: Source | None = field(default=None, compare=False, repr=False)
    """The schema of what grows, and of JSON."""

    @property
    def name(self) -> str:
        """The key in the arguments, or the number of a row, from 1."""
        last = next(iter(reversed(_levels(self.path))), "")
        return last if isinstance(last, str) else str(last + 1)

    @property
    def depth(self) -> int:
        """Objects, lists and choices around the field."""
        choices = sum(isinstance(part, int) and part < KEY for part in self.path)
        return max(len(_levels(self.path)) - 1 + choices, 0)

    @property
    def has_blank_default(self) -> bool:
        """True if the default cannot be seen in a field (null, an empty list, no text or only blanks in it).

        The field is left empty then, and empty means the default.
        """
        if self.default is ABSENT or any(value == self.default for value, _ in self.choices):
            return False
        if isinstance(self.default, str):
            return not self.default.strip()
        return self.default is None or (self.default in ([], {}) and self.kind in _EMPTY_MEANS_DEFAULT)

    @property
    def label(self) -> str:
        """The title, or else the name."""
        return self.title or self.name or "form"


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a schema. ``raw_only`` is why it has no fields and only raw JSON can be edited."""

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
    if nodes(schema, MAX_PARTS) <= MAX_PARTS and depth(schema, MAX_LEVELS) <= MAX_LEVELS:
        schema = plain_schema(schema)
    try:
        root = follow(schema, schema)
        if reason := _no_form(root):
            return Form(raw_only=reason)
        reader = _Reader(schema)
        return Form((reader.field((), root, True),) if branches_of(root) else reader.fields_of(root, ()))
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
    if branches_of(root):
        return None
    for keyword in _COMBINING:
        if keyword in root and not _adds_nothing(root, keyword):
            return f"the schema combines several forms ({keyword})"
    return None


def _adds_nothing(root: dict[str, Any], keyword: str) -> bool:
    """True if the branches of a combination only speak of properties that the form has anyway."""
    if not root.get("properties"):
        return False
    branches = [root.get(each) for each in ("if", "then", "else")] if keyword == "if" else root[keyword]
    if not isinstance(branches, list):
        return False
    known = as_dict(root.get("properties")).keys()
    return all(
        branch is None
        or (isinstance(branch, dict) and "$ref" not in branch and as_dict(branch.get("properties")).keys() <= known)
        for branch in branches
    )


class _Reader:
    """Reads the properties of one schema, counting fields as it goes."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._count = 0

    def fields_of(self, schema: dict[str, Any], path: FieldPath) -> tuple[FormField, ...]:
        required = schema.get("required")
        names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        return tuple(
            self.field((*path, name), part, name in names) for name, part in as_dict(schema.get("properties")).items()
        )

    def field(self, path: FieldPath, schema: Any, required: bool) -> FormField:
        self._count += 1
        if self._count > MAX_FIELDS:
            raise _TooMany
        schema, nullable = self._plain(schema)
        kind, choices = kind_of(schema, path)
        item = self._item(schema, path) if kind is FieldKind.LIST else None
        if kind is FieldKind.LIST and item is None:
            kind = self._rows_kind(schema, path)
        source = Source(self._root, schema) if kind in GROWING or kind is FieldKind.JSON else None
        if source is not None and kind is FieldKind.BRANCH:
            choices = self._branch_names(source)
        title, description = as_text(schema.get("title")), as_text(schema.get("description"))
        rules = rules_of(schema, is_list=kind in (FieldKind.LIST, FieldKind.CHOICES, FieldKind.ROWS))
        shape = shape_of(self._root, schema) if kind in _SHAPED else ""
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
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
            constraints=constraints_of(rules, _what(kind, item, shape), _unit(kind), schema.get("pattern")),
            secret_looking=looks_secret(name, title, description) or rules.format == "password",
            nullable=nullable,
            null_when_empty=nullable and required,
            fields=_with_defaults(self.fields_of(schema, path), default) if kind is FieldKind.GROUP else (),
            item=item,
            source=source,
        )

    def _rows_kind(self, schema: dict[str, Any], path: FieldPath) -> FieldKind:
        """``ROWS`` if the items of a list can be drawn, else ``JSON``."""
        plain, _ = self._plain(schema.get("items"))
        kind, _ = kind_of(plain, (*path, 0))
        return FieldKind.JSON if kind is FieldKind.JSON or len(_levels(path)) > MAX_LEVELS else FieldKind.ROWS

    def _branch_names(self, source: Source) -> Choices:
        return tuple((index, self._branch_name(branch)) for index, branch in enumerate(source.branches))

    def _branch_name(self, branch: dict[str, Any]) -> str:
        branch = _safely_followed(self._root, branch)
        properties = as_dict(branch.get("properties"))
        constants = [f"{name}: {part['const']}" for name, part in properties.items() if _is_constant(part)]
        return as_text(branch.get("title")) or ", ".join(constants[:2]) or shape_of(self._root, branch) or "any JSON"

    def _item(self, schema: dict[str, Any], path: FieldPath) -> FormField | None:
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


def _with_defaults(fields: tuple[FormField, ...], values: Any) -> tuple[FormField, ...]:
    """The fields of a group whose own default is the object ``values``."""
    if not isinstance(values, Mapping):
        return fields
    return tuple(
        replace(each, default=values[each.name], fields=_with_defaults(each.fields, values[each.name]))
        if each.name in values
        else each
        for each in fields
    )


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


_SHAPED = (FieldKind.JSON, FieldKind.ROWS, FieldKind.MAP)

_WHAT = {
    FieldKind.STRING: "text",
    FieldKind.TEXT: "text",
    FieldKind.INTEGER: "whole number",
    FieldKind.NUMBER: "number",
}


def _what(kind: FieldKind, item: FormField | None, shape: str) -> str:
    if kind is FieldKind.JSON:
        return f"JSON: {shape}" if shape else "JSON"
    if kind in _SHAPED:
        return shape
    if item is not None:
        return f"list, one a line: {item.constraints}" if item.constraints else "list, one a line"
    return _WHAT.get(kind, "")


def _unit(kind: FieldKind) -> str:
    return "item" if kind in (FieldKind.LIST, FieldKind.CHOICES, FieldKind.ROWS) else "character"


def _is_constant(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("const"), str | int)
