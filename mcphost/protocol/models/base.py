"""The base of models that are read from JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, WrapValidator
from pydantic.alias_generators import to_camel

from mcphost.errors import InvalidResult

Value = TypeVar("Value")


class Wire(BaseModel):
    """The base of models of received JSON: camelCase there, snake_case here; unknown members are kept."""

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
        """Parse ``value``. Raises InvalidResult with the first problem."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise InvalidResult(first_problem(error)) from None

    def definition(self) -> dict[str, Any]:
        """The definition as received, for fingerprints, differences and the raw view."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    @property
    def canonical(self) -> str:
        """The definition as text: equal exactly if the definitions are."""
        return canonical(self.definition())


def canonical(value: Any) -> str:
    """A JSON value as text, independent of the order of members."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def first_problem(error: ValidationError) -> str:
    """The first problem of a validation, in a few words."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _or_none(value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


Hint = Annotated[Value | None, WrapValidator(_or_none)]
"""An optional member that is None if it is invalid, so that its owner stays usable."""
