"""The keys of ``[ui.keys]``: the table of what can have others, and the check of what the user wrote.

The check imports every screen, so that a clash is known before it could be met.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, key_to_character
from textual.screen import ModalScreen

import mcphost.tui
from mcphost.config.loading import problem_at
from mcphost.config.problems import nearest
from mcphost.errors import ConfigError
from mcphost.tui.kit.bindings import keys_of

ANY_LETTER: Final = "type"
"""The key of bindings that only describe typing."""

EVERYWHERE: Final = frozenset({"McphostApp", "MainScreen"})
"""Classes whose keys work in every pane."""

ANYWHERE: Final = frozenset({"kit", "forms", "results"})
"""Packages whose widgets are in several panes and dialogs."""

_SIGNS: Final = [Binding(sign, "", "") for sign in map(chr, range(33, 127)) if sign != ","]
_CHARACTERS: Final = frozenset(each.key for each in Binding.make_bindings(_SIGNS)) | {"comma", "space"}
"""Keys that type a character of ASCII, as Textual names them."""

_NAMED: Final = frozenset(each.value for each in Keys) | _CHARACTERS


class BoundKey(NamedTuple):
    """A binding and the class that has it."""

    node: type[DOMNode]
    binding: Binding

    @property
    def id(self) -> str:
        return self.binding.id or ""

    @property
    def about(self) -> str:
        return self.binding.tooltip or self.binding.description

    @property
    def is_fixed(self) -> bool:
        """True for the keys of dialogs, whose answers are named by their letters."""
        return issubclass(self.node, ModalScreen)

    @property
    def package(self) -> str:
        return (*self.node.__module__.split("."), "")[2]

    def meets(self, other: BoundKey) -> bool:
        """True if both may be in force at once."""
        ours, theirs = self.node, other.node
        if issubclass(ours, theirs) or issubclass(theirs, ours) or self.package == other.package:
            return True
        names = {ours.__name__, theirs.__name__}
        if names & EVERYWHERE:
            return not (self.is_fixed or other.is_fixed)
        return not ANYWHERE.isdisjoint((self.package, other.package))


def bound_keys() -> list[BoundKey]:
    """Every binding of mcphost with an id, in the order of ids."""
    for module in pkgutil.walk_packages(mcphost.tui.__path__, "mcphost.tui."):
        importlib.import_module(module.name)
    found = [
        BoundKey(node, each)
        for node in _nodes(DOMNode)
        for each in node.__dict__.get("BINDINGS", ())
        if isinstance(each, Binding) and each.id and not each.system and each.key != ANY_LETTER
    ]
    return sorted(found, key=lambda each: (each.id, each.node.__name__))


def _nodes(above: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for node in dict.fromkeys(above.__subclasses__()):
        if node.__module__.startswith("mcphost."):
            yield node
        yield from _nodes(node)


def checked(own: Mapping[str, str], table: Sequence[BoundKey]) -> tuple[dict[str, str], dict[str, str]]:
    """The keys to use by id, and a sentence for each id whose keys cannot be used."""
    keys = {name: ",".join(_normalized(text)) for name, text in own.items()}
    problems: dict[str, str] = {}
    for name in own:
        if problem := _problem(name, keys[name], table):
            problems[name] = problem
    usable = {name: text for name, text in keys.items() if name not in problems}
    for name in usable:
        if problem := _clash(name, usable, table):
            problems[name] = problem
    usable = {name: text for name, text in usable.items() if name not in problems}
    return usable | _beside(usable, table), problems


def problems_of(own: Mapping[str, str], paths: Iterable[Path | None]) -> list[ConfigError]:
    """The keys of the configuration at ``paths`` that cannot be used, each with its line. Blocks on the disk."""
    found = checked(own, bound_keys())[1] if own else {}
    where = ("ui", "keys")
    return [
        problem_at(paths, [(*where, name), (*where, *name.split(".", 1))], sentence) for name, sentence in found.items()
    ]


def _normalized(text: str) -> list[str]:
    """The keys as Textual names them: ``question_mark`` for ``?``."""
    named = [each.strip() for each in text.split(",") if each.strip()]
    return [each.key for each in Binding.make_bindings([Binding(",".join(named) or "none", "", "")])]


def _problem(name: str, keys: str, table: Sequence[BoundKey]) -> str:
    bound = [each for each in table if each.id == name]
    if not bound:
        near = nearest(name, list(dict.fromkeys(each.id for each in table if not each.is_fixed)))
        return f"no key has this id{f'; did you mean {near}?' if near else ''}; mcphost help keys lists them"
    if all(each.is_fixed for each in bound):
        return "the keys of dialogs stay as they are"
    for key in keys.split(","):
        if not _is_key(key):
            return f"{key!a} is not a key; write one like ctrl+e, alt+e, f9 or a letter, and commas between several"
        if any(each.binding.priority for each in bound) and _is_typed(key):
            return f"{key!a} is typed where this key works; take one with ctrl or alt, or a key from f1 to f12"
    return ""


def _is_key(key: str) -> bool:
    *modifiers, name = key.split("+")
    known = {"ctrl", "alt", "shift", "super", "meta", "hyper"}
    return key in _NAMED or (set(modifiers) <= known and (name in _NAMED or key_to_character(name) is not None))


def _is_typed(key: str) -> bool:
    return key in _CHARACTERS or key in ("enter", "tab", "backspace", "delete") or key_to_character(key) is not None


def _clash(name: str, own: Mapping[str, str], table: Sequence[BoundKey]) -> str:
    """A sentence about the first key of this id that does something else in the same place; empty without one."""
    for ours in (each for each in table if each.id == name):
        new = set(own[name].split(",")) - set(_normalized(ours.binding.key))
        for other in table:
            taken = own.get(other.id, ",".join(_normalized(other.binding.key))).split(",")
            if other.id != name and not new.isdisjoint(taken) and ours.meets(other) and not _are_twins(ours, other):
                key = next(each for each in taken if each in new)
                return f"{key} is the key of {other.id} there ({other.about}); give that one another key, too"
    return ""


def _are_twins(one: BoundKey, other: BoundKey) -> bool:
    """True if these share their keys: which of them works depends on what is shown."""
    return one.node is other.node and one.binding.key == other.binding.key


def _beside(own: Mapping[str, str], table: Sequence[BoundKey]) -> dict[str, str]:
    """The keys of bindings that share some with a changed one, which Textual would remove with it."""
    found: dict[str, str] = {}
    for ours in (each for each in table if each.id in own):
        for other in table:
            related = issubclass(ours.node, other.node) or issubclass(other.node, ours.node)
            shares = related and not set(keys_of(ours.binding)).isdisjoint(keys_of(other.binding))
            if shares and other.id not in own:
                found[other.id] = own[ours.id] if _are_twins(ours, other) else other.binding.key
    return found


def rows(table: Iterable[BoundKey], own: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The id, the keys and the meaning of each binding that can have other keys; keys of the user's have a star."""
    seen: set[str] = set()
    for each in table:
        if not each.is_fixed and each.id not in seen:
            seen.add(each.id)
            changed = own.get(each.id)
            yield each.id, f"{changed} *" if changed else each.binding.key, each.about
