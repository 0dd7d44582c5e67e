"""The base of models read from JSON, and the rule for reading their members.

An optional member counts as absent if it is null; one that is only shown (`Hint`) also if its type is wrong.
Everything else must follow the specification.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from functools import cache, cached_property
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, WrapValidator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticUseDefault

from mcphost.errors import InvalidResult
from mcphost.json_values import canonical

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

    NULLABLE: ClassVar[frozenset[str]] = frozenset()
    """Members for which the specification gives null a meaning."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Parse ``value``. Raises InvalidResult with the first problem."""
        remarks: list[str] = []
        try:
            model = cls.model_validate(value, context=remarks)
        except ValidationError as error:
            raise InvalidResult(first_problem(error)) from None
        model.__dict__["received"] = value
        if remarks:
            model.__dict__["remarks"] = tuple(remarks)
        return model

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any, info: ValidationInfo) -> Any:
        if type(value) is not dict or None not in value.values():
            return value
        nulls = [name for name, member in value.items() if member is None and name in _optional_members(cls)]
        for name in nulls:
            if name not in cls.NULLABLE:
                add_remark(info, name, None)
        return {name: member for name, member in value.items() if name not in nulls} if nulls else value

    @cached_property
    def received(self) -> dict[str, Any]:
        """The object as received; for one made here, as it is sent."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Violations of the specification that did not prevent reading; names in them are the server's."""
        return ()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copy = super().model_copy(update=update, deep=deep)
        if update:
            for kept in ("received", "digest"):  # a copy may hide what came
                copy.__dict__.pop(kept, None)
        return copy

    def definition(self) -> dict[str, Any]:
        """The definition as received, for fingerprints, differences and the raw view."""
        return dict(self.received)

    @property
    def canonical(self) -> str:
        """The definition as text: equal exactly if the definitions are."""
        return canonical(self.received)

    @cached_property
    def digest(self) -> str:
        """See `digest_of`."""
        return digest_of(self.received)


VOLATILE_META: Final = frozenset({"progressToken", "traceparent", "tracestate", "baggage"})
"""Keys of ``_meta`` that belong to a single message, and not to what it defines."""


def without_volatile(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition without `VOLATILE_META`."""
    meta = definition.get("_meta")
    if not isinstance(meta, dict) or VOLATILE_META.isdisjoint(meta):
        return definition
    kept = {name: value for name, value in meta.items() if name not in VOLATILE_META}
    others = {name: value for name, value in definition.items() if name != "_meta"}
    return {**others, "_meta": kept} if kept else others


def digest_of(definition: Mapping[str, Any]) -> str:
    """``sha256:`` and the hash of a definition, whatever the order of its members."""
    return f"sha256:{hashlib.sha256(canonical(without_volatile(definition)).encode()).hexdigest()}"


def first_problem(error: ValidationError) -> str:
    """The first problem of a validation, in a few words."""
    first = error.errors(include_url=False)[0]
    place, value = ".".join(map(str, first["loc"])), first["input"]
    if first["type"] == "value_error":
        words = str(first["ctx"]["error"])
    elif first["type"] == "missing":
        words = "is missing"
    elif value is None:
        words = "is null"
    else:
        words = _WORDS.get(first["type"], "is not valid")
    return f"{place}: {words}" if place else words


def kind_of(value: object) -> str:
    """The JSON type of a value, in words."""
    if isinstance(value, bool):
        return "true or false"
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "null")


def unread_words(result: Mapping[str, Any], known: Collection[str], lacks: str) -> str:
    """A clause about a result that holds something, but in none of the members that mcphost knows; else empty."""
    unknown = (name for name, value in result.items() if value is not None and name not in (*known, *ENVELOPE))
    named = ", ".join(islice(unknown, _NAMED))
    return f"the result {lacks}, but {named}" if named else ""


def add_remark(info: ValidationInfo, member: str, value: object) -> None:
    """Note, for the log, that a member counts as absent although it is there."""
    if info.context is not None:
        info.context.append(f"{member} is {kind_of(value)}, and counts as absent")


_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (dict, "an object"),
    (list, "a list"),
    (str, "a text"),
    ((int, float), "a number"),
)

ENVELOPE: Final = frozenset({"_meta", "resultType", "ttlMs", "cacheScope"})
"""Members of a result that say how it is sent, which differs by revision."""

_NAMED: Final = 5
"""Limit of unknown members that are named."""

_WORDS: Final = {
    "string_type": "is not a text",
    "string_too_short": "is empty",
    "string_too_long": "is too long",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "model_attributes_type": "is not an object",
    "list_type": "is not a list",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing_size": "is too large",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "finite_number": "is not a finite number",
}
"""Words for problems, by pydantic's names."""


@cache
def _optional_members(model: type[Wire]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items() if not field.is_required())


def _or_default(value: Any, read: Callable[[Any], Any], info: ValidationInfo) -> Any:
    try:
        return read(value)
    except ValidationError:
        add_remark(info, to_camel(info.field_name or ""), value)
        raise PydanticUseDefault from None


Shown = Annotated[Value, WrapValidator(_or_default)]
"""A member that is only shown, and has its default if it is invalid, so that its owner stays usable."""

Hint = Annotated[Value | None, WrapValidator(_or_default)]
"""A `Shown` member that is None if it is absent or invalid."""
