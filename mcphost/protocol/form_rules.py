"""The limits of a field, and the line of text that tells them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcphost.protocol.display import show_line
from mcphost.protocol.schema_messages import FORMAT_NAMES, count_text


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
