"""Our dataclasses are those of the standard library, made faster."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from mcphost.lazy_dataclass import dataclass

T = TypeVar("T")
OPTIONS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"eq": False, "frozen": True},
]


class Point:
    shared: ClassVar[int] = 3
    x: int
    y: int = 2
    names: list[str] = field(default_factory=lambda: ["a"])
    note: str = field(default="", repr=False, compare=False)
    last: int = field(default=0, kw_only=True)
    made: list[int] = field(default_factory=list, init=False)
    fixed: int = field(default=7, init=False)


class Empty:
    pass


class Own:
    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __repr__(self) -> str:
        return "mine"


class Follows:
    x: int
    seen: ClassVar[list[int]] = []

    def __post_init__(self) -> None:
        self.seen.append(self.x)


def both(model: type[Any], options: dict[str, bool]) -> tuple[type[Any], type[Any]]:
    """A class as we make it, and as the standard library does."""
    body = {name: value for name, value in vars(model).items() if name not in ("__dict__", "__weakref__")}
    ours, theirs = (type(model.__name__, (), dict(body)) for _ in range(2))
    return dataclass(**options)(ours), dataclasses.dataclass(**options)(theirs)


def outcome(function: Callable[[], object]) -> object:
    """Return the function's result, or the kind of error it raises."""
    try:
        return function()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("model", "calls"),
    [
        (Point, [((1,), {}), ((1, 3), {"last": 4}), ((1, 2, ["b"], "n"), {}), ((), {}), ((1,), {"made": []})]),
        (Empty, [((), {}), ((1,), {})]),
        (Own, [((1,), {}), ((), {"x": 1}), ((), {"y": 1})]),
        (Follows, [((1,), {}), ((2,), {})]),
    ],
    ids=["fields", "empty", "own", "post-init"],
)
def test_lazy_dataclasses_behave_like_the_standard_ones(
    model: type[Any], calls: list[tuple[tuple[Any, ...], dict[str, Any]]], options: dict[str, bool]
) -> None:
    def about(cls: type[Any]) -> list[object]:
        facts: list[object] = [[each.name for each in dataclasses.fields(cls)], hasattr(cls, "__slots__")]
        made: list[Any] = [outcome(lambda call=call: cls(*call[0], **call[1])) for call in calls]  # type: ignore[misc]
        values = [each for each in made if isinstance(each, cls)]
        facts += [each if isinstance(each, type) else dataclasses.asdict(each) for each in made]
        if options.get("eq", True) or model is Own:
            facts += [one == other for one in values for other in [*values, *map(copy.copy, values), None]]
        for value in values:
            facts += [repr(value).split(" at 0x")[0], dataclasses.asdict(copy.deepcopy(value))]
            facts.append(outcome(lambda value=value: isinstance(hash(value), int)))  # type: ignore[misc]
            if model is not Empty:
                facts.append(outcome(lambda value=value: setattr(value, "x", 5)))  # type: ignore[misc]
                facts.append(outcome(lambda value=value: delattr(value, "x")))  # type: ignore[misc]
        facts.append(cls.__match_args__)
        return facts

    ours, theirs = both(model, options)
    assert about(ours) == about(theirs)


@dataclass(frozen=True, slots=True)
class Base(Generic[T]):
    first: T


@dataclass(frozen=True, slots=True)
class Derived(Base[int]):
    second: str = "s"


def test_a_derived_class_has_the_fields_of_both_and_equals_no_other() -> None:
    derived = Derived(1, "b")
    assert (derived.first, derived.second) == (1, "b")
    assert derived == Derived(1, "b")
    assert derived != Base(1)
    assert dataclasses.replace(derived, first=2) == Derived(2, "b")
    assert hash(derived) == hash(Derived(1, "b"))
    assert pickle.loads(pickle.dumps(derived)) == derived
    assert isinstance(derived, Base)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'first'"):
        derived.first = 2  # type: ignore[misc]


def test_two_instances_made_of_one_class_share_one_compiled_init() -> None:
    @dataclass(slots=True)
    class Fresh:
        x: int

    before = Fresh.__init__
    assert Fresh(1).x == 1
    compiled = Fresh.__init__
    assert Fresh(2).x == 2
    assert before is not compiled is Fresh.__init__


def test_a_class_without_docstring_reads_no_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard library would make a docstring of the signature, which takes longer than all else."""
    looked: list[object] = []
    monkeypatch.setattr(inspect, "signature", lambda *args, **more: looked.append(args))
    bare: type[Any] = dataclass(slots=True)(type("Bare", (), {"__annotations__": {"x": int}}))
    assert (bare.__doc__, looked) == ("Bare", [])
