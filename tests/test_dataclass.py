from __future__ import annotations

import dataclasses
from dataclasses import field, replace
from typing import Any, cast

import pytest

from mcphost.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Quick:
    """A value."""

    name: str
    secret: str = field(default="", repr=False)
    note: str = field(default="", compare=False)
    parts: tuple[str, ...] = ()
    found: dict[str, int] = field(default_factory=dict, hash=False, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """A value."""

    name: str
    secret: str = field(default="", repr=False)
    note: str = field(default="", compare=False)
    parts: tuple[str, ...] = ()
    found: dict[str, int] = field(default_factory=dict, hash=False, compare=False)


ARGUMENTS: list[dict[str, Any]] = [
    {"name": "a"}, {"name": "b"}, {"name": "a", "secret": "s"}, {"name": "a", "note": "n"},
    {"name": "a", "parts": ("p",)},
]  # fmt: skip


@pytest.mark.parametrize("first", ARGUMENTS)
@pytest.mark.parametrize("second", ARGUMENTS)
def test_values_are_equal_and_hashed_as_those_of_the_standard_library(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    assert (Quick(**first) == Quick(**second)) is (Standard(**first) == Standard(**second))
    assert len({Quick(**first), Quick(**second)}) == len({Standard(**first), Standard(**second)})


@pytest.mark.parametrize("given", ARGUMENTS)
def test_values_are_shown_as_those_of_the_standard_library(given: dict[str, Any]) -> None:
    assert repr(Quick(**given)) == repr(Standard(**given)).replace("Standard", "Quick")


def test_a_value_is_a_dataclass_in_every_other_way() -> None:
    value = replace(Quick("a"), parts=("p",))
    assert dataclasses.astuple(value) == ("a", "", "", ("p",), {})
    assert not hasattr(value, "__dict__")
    assert Quick.__match_args__ == Standard.__match_args__
    match value:
        case Quick("a", parts=("p",)):
            return
    raise AssertionError("it matched nothing")


def test_a_class_of_its_own_is_equal_to_no_other() -> None:
    @dataclass(frozen=True, slots=True)
    class Other(Quick):
        pass

    assert Other("a") == Other("a") != Quick("a")
    assert Quick("a") != cast("object", Standard("a"))


def test_what_may_change_is_not_hashed_and_what_is_not_compared_is_itself() -> None:
    @dataclass
    class Changing:
        n: int

    @dataclass(eq=False, slots=True)
    class Itself:
        n: int

    assert Changing(1) == Changing(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Changing(1))
    assert Itself(1) != Itself(1)
    assert len({Itself(1), Itself(1)}) == 2


def test_methods_that_a_class_writes_itself_stay() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        n: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(1))) == ("own", True, 7)
