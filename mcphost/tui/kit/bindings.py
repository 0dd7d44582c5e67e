"""The bindings that mcphost's own classes give to a widget, for the help and the command palette."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode


def classes_with_bindings(node: type[DOMNode]) -> Iterator[type]:
    """The classes of mcphost whose bindings the node has, its own class first."""
    for each in node.__mro__:
        if each.__module__.startswith("mcphost."):
            yield each
        if not each.__dict__.get("_inherit_bindings", True):
            break


def bindings_of(node: DOMNode) -> list[Binding]:
    """The bindings for people, with the user's keys: those that only pass a key on are left out."""
    own = [each for found in classes_with_bindings(type(node)) for each in found.__dict__.get("BINDINGS", ())]
    keys: Mapping[str, str] = getattr(node.app, "own_keys", {})
    return [
        replace(each, key=keys.get(each.id or "", each.key))
        for each in own
        if isinstance(each, Binding) and not each.system
    ]


def shown_key(node: DOMNode, id: str, keys: str) -> str:
    """The key to name in a hint: the user's own for the binding of this ``id``, else the first of its ``keys``."""
    own: Mapping[str, str] = getattr(node.app, "own_keys", {})
    first = own.get(id, keys).partition(",")[0].strip()
    return node.app.get_key_display(Binding(first, "", ""))


def hint_key(node: DOMNode, id: str, key: str) -> str:
    """The key to name in a sentence: the user's own for the binding of this ``id``, else ``key`` as it is written."""
    return shown_key(node, id, key) if id in getattr(node.app, "own_keys", {}) else key


def is_hidden(node: DOMNode, binding: Binding, others: list[Binding]) -> bool:
    """True if it is disabled now while another binding has its key, as with sign-in and sign-out."""
    rivals = [each for each in others if each is not binding and not set(keys_of(each)).isdisjoint(keys_of(binding))]
    return bool(rivals) and not is_active(node, binding)


def is_active(node: DOMNode, binding: Binding) -> bool:
    """True if the node can do it now; an action of another node always counts."""
    place, name, parameters = parse(binding.action)
    return bool(place) or node.check_action(name, parameters) is True


def keys_of(binding: Binding) -> list[str]:
    return [key.strip() for key in binding.key.split(",")]
