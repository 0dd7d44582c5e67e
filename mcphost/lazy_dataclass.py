"""The standard library's `dataclass`, except that ``__init__`` is compiled when the first instance is made.

The standard library compiles five methods of each class when its module is imported. For the 200 classes behind
``mcphost call``, most of which never get an instance, that took a quarter of the processor time. Here the other four
are closures or shared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

_UNSET: Final = object()

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # type checkers know its effect by where it comes from
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True):
        """Make a dataclass; `dataclasses.fields`, `replace` and `asdict` take it for one of theirs."""

        def made(cls):
            # Without a docstring the standard library makes one of the signature, which takes a millisecond.
            cls.__doc__ = cls.__doc__ or cls.__name__
            own = {name for name, value in vars(cls).items() if value is not None}
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            for name, method in _methods(cls, frozen=frozen, slots=slots, eq=eq):
                if name not in own:
                    setattr(cls, name, method)
            return cls

        return made if cls is None else made(cls)


def _methods(cls: type[Any], *, frozen: bool, slots: bool, eq: bool) -> Iterator[tuple[str, object]]:
    yield "__init__", _late_init(cls, frozen=frozen, slots=slots)
    yield "__repr__", _repr
    if eq:
        equal, hashed = _comparing(cls)
        yield "__eq__", equal
        yield "__hash__", hashed if frozen else None
    if frozen:
        yield "__setattr__", _refuse_set
        yield "__delattr__", _refuse_delete
    if frozen and slots:  # copies and pickles are filled in past __setattr__
        yield "__getstate__", _state
        yield "__setstate__", _restore


def _late_init(cls: type[Any], *, frozen: bool, slots: bool) -> Callable[..., None]:
    """An ``__init__`` that compiles the real one, puts it in its own place, and calls it."""

    def first_init(self: object, /, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _compiled_init(cls, frozen=frozen, slots=slots)
        cls.__init__(self, *args, **kwargs)

    return first_init


def _compiled_init(cls: type[Any], *, frozen: bool, slots: bool) -> Callable[..., None]:
    """Compile ``__init__`` alone. The standard library cannot, and would take five times as long."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    parameters, named_only, body = ["_self"], list[str](), list[str]()
    for field in dataclasses.fields(cls):
        name, default, value = field.name, "", field.name if field.init else ""
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"], default = field.default_factory, "=_unset"
            value = f"_make_{name}() if {name} is _unset else {name}" if field.init else f"_make_{name}()"
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"], default = field.default, f"=_default_{name}"
            value = value or f"_default_{name}"
        if field.init:
            (named_only if field.kw_only else parameters).append(f"{name}{default}")
        if value and frozen and slots:  # a slot's own setter is a quarter faster than object.__setattr__
            names[f"_set_{name}"] = getattr(cls, name).__set__
            body.append(f"_set_{name}(_self, {value})")
        elif value:
            body.append(f"_set(_self, {name!r}, {value})" if frozen else f"_self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("_self.__post_init__()")
    signature = ", ".join([*parameters, "*", *named_only] if named_only else parameters)
    exec(f"def __init__({signature}):\n " + "\n ".join(body or ["pass"]), names)
    return cast(Callable[..., None], names["__init__"])


def _comparing(cls: type[Any]) -> tuple[Callable[[Any, object], bool], Callable[[Any], int]]:
    """``__eq__`` and ``__hash__`` by the fields that count."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    values: Callable[[Any], object] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return equal, hashed


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
