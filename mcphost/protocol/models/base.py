"""The base of what arrives as JSON, and how forgiving its reading is.

Knows reading. Refuses to know what the protocol's nouns are called.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, WrapValidator
from pydantic.alias_generators import to_camel

from mcphost.errors import InvalidResult

Value = TypeVar("Value")


class Wire(BaseModel):
    """The base of what arrives as JSON: camelCase there, snake_case here, unknown members kept."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
        allow_inf_nan=False,  # a text may stand for a number, and "nan" for one that no comparison stops
    )

    @classmethod
    def read(cls, value: object) -> Self:
        """The model of ``value``; raises InvalidResult with the first thing that is wrong."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise InvalidResult(first_problem(error)) from None

    def definition(self) -> dict[str, Any]:
        """The definition as it came, for fingerprints, differences and the raw view."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    @property
    def canonical(self) -> str:
        """The definition as text: equal exactly when the definitions are."""
        return canonical(self.definition())


def canonical(value: Any) -> str:
    """A JSON value as text; the order of members does not count."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def first_problem(error: ValidationError) -> str:
    """The first thing a model found wrong, in a few words."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _or_none(value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


Hint = Annotated[Value | None, WrapValidator(_or_none)]
"""A member that only labels its owner: where it makes no sense it is None, and the owner stays usable."""
