"""Validates untrusted schemas, and values by them, if that is cheap.

`check_schema` enforces the limits; `is_cheap` says whether `problems` may run on the event loop: what it refuses
belongs into `mcphost.host.tool_calls.validation`, where it can be killed. The library is imported on first use.
Nothing is fetched: see `refers_outside`.

Implements basic/index#json-schema of the 2026-07-28 revision: 2020-12 unless ``$schema`` names another dialect, no
reference leaves the schema, composition is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urldefrag, urljoin

from mcphost.errors import PeerError
from mcphost.json_values import as_text
from mcphost.protocol.display import show_line, size_text
from mcphost.protocol.schema.cost import compiles_cheaply, is_plain, within
from mcphost.protocol.schema.messages import message_of, path_of
from mcphost.protocol.schema.traversal import (
    BACKTRACKING,
    REFERENCES,
    Unresolvable,
    depth,
    leads_back,
    nodes,
    pattern_weight,
    patterns,
    plain_schema,
    reachable,
    resolve,
    walk,
)

if TYPE_CHECKING:
    from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationError, Validator

MAX_BYTES = 64_000
"""Bytes of a schema as JSON; the largest real ones are near 20 kB."""

MAX_DEPTH = 64
"""Nesting depth of a schema."""

MAX_SUBSCHEMAS = 2000
"""Subschemas of a schema; more make compiling slow."""

MAX_PARTS = 10_000
"""Parts that are searched for external references; more than fit into a definition of allowed size."""

MAX_ADDRESSES = 500
"""Names and references by address in one schema; comparing two takes 10 µs."""

MAX_PROBLEMS = 20
"""Problems that are reported of one value."""

CHEAP_UNITS = 10_000
"""The most microseconds of validation on the event loop; the estimate takes about as many."""

BACKTRACK_STEPS = 100_000
"""For patterns that need backtracking (look-around, back references): about 5 ms a match."""

DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"

DIALECTS = {
    "json-schema.org/draft-04/schema": "http://json-schema.org/draft-04/schema#",
    "json-schema.org/draft-06/schema": "http://json-schema.org/draft-06/schema#",
    "json-schema.org/draft-07/schema": "http://json-schema.org/draft-07/schema#",
    "json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema": DEFAULT_DIALECT,
}
"""The supported dialects: the URI without scheme and ``#``, and the exact name."""

_NEWEST = "json-schema.org/schema"

_KNOWN = "mcphost knows draft 4, 6, 7, 2019-09 and 2020-12"

KNOWN_SCHEMAS = 64

_known_schemas: dict[int, tuple[Any, Any, str, bool, bool]] = {}
"""By ``id()``: the schema, kept so that the id is not reused; the same without null keywords; its canonical text; does
it compile cheaply and is it plain."""

_sorting = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))

_HALF = "half a character (a lone surrogate)"


class SchemaRefused(PeerError):
    """A schema or a value that mcphost does not validate; ``str()`` says why."""


class SchemaProblem(NamedTuple):
    """One problem of a value: ``path`` like ``items[2].name``, empty for the whole value. Safe to show."""

    path: str
    message: str


class RefersOutside(SchemaRefused):
    """The schema refers to another document, which is not fetched."""


def refers_outside(schema: Any) -> str:
    """The first external reference of a schema, in words; empty without one.

    A ``$ref`` to the ``$id`` of the schema itself, or of a schema inside it, is not external.
    """
    parts = [part for part in islice(reachable(schema), MAX_PARTS + 1) if isinstance(part, dict)]
    if len(parts) > MAX_PARTS:
        return f"more than {MAX_PARTS} subschemas, too many to be searched for references to others"
    name = _own_name(schema)
    base = as_text(parts[0].get(name)) if parts else ""
    names = {base, *(own for part in parts if (own := as_text(part.get(name))))}
    addresses = {value for part in parts for value in _addresses(part).values()}
    if addresses and len(addresses) + len(names) > MAX_ADDRESSES:
        return f"more than {MAX_ADDRESSES} addresses, too many to compare with those of other schemas"
    inside = {_absolute(base, own) for own in names} if addresses else set()
    outside = {address for address in addresses if _absolute(base, address) not in inside}
    return next((found for part in parts if (found := _outside(part, outside))), "")


def _addresses(schema: dict[str, Any]) -> dict[str, str]:
    """The references of a schema other than local pointers, by keyword."""
    found = ((keyword, schema.get(keyword)) for keyword in REFERENCES)
    return {keyword: value for keyword, value in found if isinstance(value, str) and not value.startswith("#")}


def _outside(schema: dict[str, Any], outside: Collection[str]) -> str:
    for keyword, value in _addresses(schema).items():
        if value in outside:
            return f"external {keyword} {show_line(value, 80)!r}: mcphost never fetches schemas"
    dialect = schema.get("$schema", "")
    if isinstance(dialect, str) and dialect and _known(dialect) is None:
        named = show_line(dialect, 80)
        return f"external $schema {named!r}: an unknown schema dialect, and mcphost never fetches one; {_KNOWN}"
    return ""


def _own_name(root: Any) -> str:
    """The keyword by which the schemas in ``root`` name themselves."""
    return "id" if isinstance(root, dict) and "draft-04" in as_text(root.get("$schema")) else "$id"


def _absolute(base: str, address: str) -> str:
    try:
        return urldefrag(urljoin(base, address)).url
    except ValueError:
        return f"nowhere: {address}"


def check_schema(schema: Any) -> None:
    """Raise `SchemaRefused` for a schema over the limits, malformed, of an unknown dialect, or pointing outside."""
    _admit(_canonical(schema))


def problems(schema: Any, instance: Any, *, limit: int = MAX_PROBLEMS) -> list[SchemaProblem]:
    """Return what is wrong with ``instance``, at most ``limit`` problems; raises `SchemaRefused`.

    This may take unlimited time and memory: call `is_cheap` first.
    """
    return _problems(_canonical(schema), instance, limit)


def _problems(canonical: str, instance: Any, limit: int = MAX_PROBLEMS) -> list[SchemaProblem]:
    try:
        validator = _compile(canonical)
        if validator.is_valid(instance):
            return []
        return [_problem(error) for error in islice(validator.iter_errors(instance), limit)]
    except UnicodeEncodeError:
        raise SchemaRefused(f"the value holds {_HALF}") from None
    except ValueError as error:  # nested deeper than the library supports
        raise SchemaRefused(f"the value cannot be checked: {show_line(str(error))}") from error


def is_cheap(schema: Any, instance: Any) -> bool:
    """True if `problems` is certain to take far less than 50 ms; false for a schema over the limits."""
    try:
        _canonical(schema)
    except SchemaRefused:
        return False
    schema = plain_schema(schema)
    return compiles_cheaply(schema) and within(CHEAP_UNITS, schema, instance)


def problems_if_cheap(schema: Any, instance: Any) -> list[SchemaProblem] | None:
    """The `problems` if `is_cheap`, else None. Raises `SchemaRefused` in both cases.

    Only for schemas that are never modified: checks of a schema are cached, since they cost more than a small value.
    """
    known = _known_schemas.get(id(schema))
    if known is None:
        if len(_known_schemas) >= KNOWN_SCHEMAS:
            _known_schemas.clear()
        canonical, used = _canonical(schema), plain_schema(schema)
        known = schema, used, canonical, compiles_cheaply(used), is_plain(used)
        _known_schemas[id(schema)] = known
    _, used, canonical, cheap, plain = known
    _admit(canonical)
    return _problems(canonical, instance) if cheap and within(CHEAP_UNITS, used, instance, plain=plain) else None


def _canonical(schema: Any) -> str:
    """Return the schema as JSON with sorted keys, once it is known to be small and shallow enough to write.

    Null keywords are absent.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaRefused("the schema is not a JSON object")
    if nodes(schema, MAX_BYTES) > MAX_BYTES:
        raise SchemaRefused(f"the schema is larger than {size_text(MAX_BYTES)}")
    if depth(schema, MAX_DEPTH) > MAX_DEPTH:
        raise SchemaRefused(f"the schema is nested deeper than {MAX_DEPTH} levels")
    try:
        text = _sorting.encode(plain_schema(schema))
        size = len(text.encode())
    except ValueError as error:
        reason = _HALF if isinstance(error, UnicodeEncodeError) else show_line(str(error))
        raise SchemaRefused(f"the schema holds {reason}") from None
    if size > MAX_BYTES:
        raise SchemaRefused(f"the schema has {size_text(size)}; the limit is {size_text(MAX_BYTES)}")
    return text


@lru_cache(maxsize=64)  # the schemas of tools in use; each has at most MAX_BYTES
def _admit(canonical: str) -> None:
    schema = json.loads(canonical)
    if outside := refers_outside(schema):
        raise RefersOutside(outside)
    for count, part in enumerate(walk(schema), start=1):
        if count > MAX_SUBSCHEMAS:
            raise SchemaRefused(f"the schema has more than {MAX_SUBSCHEMAS} subschemas")
        if isinstance(part, dict):
            _check_references(schema, part)
            _dialect(part)
    if leads_back(schema):
        raise SchemaRefused("the schema is malformed: a $ref leads back to itself")
    _check_form(schema)


def _check_references(root: Any, schema: dict[str, Any]) -> None:
    # What a whole schema is called is harmless; a name inside of it would be where other references start.
    for keyword in (*REFERENCES, "$id", "id") if schema is not root else REFERENCES:
        value = schema.get(keyword)
        if not isinstance(value, str) or (keyword == "id" and "draft-04" not in _dialect(root)):
            continue
        if not value.startswith("#"):
            raise SchemaRefused(
                f"{keyword} {show_line(value, 80)!r} is an address; mcphost knows places in a schema only"
            )
        if keyword == "$ref" and value.startswith("#/"):
            _check_pointer(root, value)


def _check_pointer(root: Any, reference: str) -> None:
    try:
        resolve(root, reference)
    except Unresolvable:
        raise SchemaRefused(f"the schema is malformed: $ref {show_line(reference, 80)!r} points to nothing") from None


def _dialect(schema: Any) -> str:
    named = schema.get("$schema", DEFAULT_DIALECT) if isinstance(schema, dict) else DEFAULT_DIALECT
    known = _known(str(named))
    if known is None:
        raise SchemaRefused(f"unknown schema dialect {show_line(str(named), 80)!r}; {_KNOWN}")
    return known


def _known(dialect: str) -> str | None:
    name = dialect.removeprefix("https://").removeprefix("http://").rstrip("#")
    return DEFAULT_DIALECT if name == _NEWEST else DIALECTS.get(name)


def _named(schema: Any) -> Any:
    """The schema with its dialect's exact name, and without an address of its own, where references would start."""
    if not isinstance(schema, dict):
        return schema
    dialect = _dialect(schema)
    own = ("$id", "id") if "draft-04" in dialect else ("$id",)
    return {key: value for key, value in schema.items() if key not in own} | {"$schema": dialect}


def _check_form(schema: Any) -> None:
    from jsonschema_rs import ValidationError, meta

    try:
        meta.validate(_named(schema))
    except ValidationError as error:
        problem = _problem(error)
        raise SchemaRefused(f"the schema is malformed: {problem.path} {problem.message}") from None
    except ValueError as error:
        raise SchemaRefused(f"the schema is malformed: {show_line(str(error))}") from error


def load_validator() -> None:
    """Import the library that checks values now, in whatever thread this is, and not at the first check."""
    import jsonschema_rs  # noqa: F401


@lru_cache(maxsize=32)  # compiled ones take many times the memory of their text
def _compile(canonical: str) -> Validator:
    from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationError

    _admit(canonical)
    schema = _named(json.loads(canonical))
    try:
        return _build(schema, RegexOptions())
    except ValidationError as error:
        if not _backtracks(schema):
            raise _unusable(error) from None
    try:
        return _build(schema, FancyRegexOptions(backtrack_limit=BACKTRACK_STEPS))
    except ValidationError as error:
        raise _unusable(error) from None


def _build(schema: Any, engine: RegexOptions | FancyRegexOptions) -> Validator:
    from jsonschema_rs import validator_for

    return validator_for(schema, retriever=_refuse, pattern_options=engine, validate_formats=True)


def _backtracks(schema: Any) -> bool:
    found = (pattern for part in walk(schema) for pattern in patterns(part))
    return any(pattern_weight(pattern) >= BACKTRACKING for pattern in found)


def _unusable(error: ValidationError) -> SchemaRefused:
    return SchemaRefused(f"the schema is malformed: {show_line(error.message)}")


def _refuse(uri: str) -> Any:
    raise ValueError("mcphost never fetches schemas")


def _problem(error: ValidationError) -> SchemaProblem:
    if type(error.kind).__name__ in ("BacktrackLimitExceeded", "RegexEngineFailure"):
        raise SchemaRefused("a pattern of the schema takes too long to match")
    return SchemaProblem(path_of(error), show_line(message_of(error), 400))
