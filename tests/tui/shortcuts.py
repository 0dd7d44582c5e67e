"""Makes Textual's styles, lines and dispatch of messages cheaper in tests, with the same results.

Each test starts an app with the same widgets and the same rules: what Textual finds out for one app, or for each
widget, is found out once.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any

import pytest
from textual import _callback
from textual.cache import FIFOCache
from textual.css import match, stylesheet
from textual.css.model import RuleSet, Selector
from textual.css.styles import RulesMap, Styles
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation
from textual.dom import DOMNode
from textual.message import Message
from textual.message_pump import MessagePump
from textual.strip import Strip

_parse = Stylesheet._parse_rules


def _parse_once(
    sheet: Stylesheet,
    css: str,
    read_from: CSSLocation,
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> list[RuleSet]:
    """Rules are the same in every app of the process with the same colours."""
    shown: Any = sheet
    shared: tuple[Any, dict[tuple[Any, ...], list[RuleSet]]] = getattr(shown, "_shared_rules", (None, {}))
    variables, rules = shared
    if variables is not sheet._variables:
        rules = _rules_for(frozenset(sheet._variables.items()))
        shown._shared_rules = sheet._variables, rules
    key = (css, read_from, is_default_rules, tie_breaker, scope)
    if key not in rules:
        rules[key] = _parse(sheet, *key)
    return rules[key]


@cache
def _rules_for(_: frozenset[tuple[str, str]]) -> dict[tuple[Any, ...], list[RuleSet]]:
    return {}


def _rules_map(sheet: Stylesheet) -> dict[str, list[RuleSet]]:
    if sheet._rules_map is None:
        sheet._rules_map = _map_of(tuple(sheet.rules))
    return sheet._rules_map


@lru_cache(maxsize=64)
def _map_of(rules: tuple[RuleSet, ...]) -> dict[str, list[RuleSet]]:
    by_name: defaultdict[str, list[RuleSet]] = defaultdict(list)
    for rule in rules:
        for name in rule.selector_names:
            by_name[name].append(rule)
    return dict(by_name)


def _extract_once(
    styles: Styles, specificity: tuple[int, int, int], is_default_rules: bool = False, tie_breaker: int = 0
) -> list[tuple[str, Any, Any]]:
    """The styles of a rule do not change once it is parsed."""
    extracted: dict[Any, list[tuple[str, Any, Any]]] = styles.__dict__.setdefault("_extracted", {})
    key = (specificity, is_default_rules, tie_breaker)
    if key not in extracted:
        extracted[key] = _extract(styles, *key)
    return extracted[key]


_extract = Styles.extract_rules


def _selects(selectors: list[Selector], path: list[DOMNode]) -> bool:
    """Return what Textual does, but check first the one selector that is about the node itself: most do not match."""
    return selectors[-1].check(path[-1]) and _check_selectors(selectors, path)


_check_selectors = match._check_selectors


def _replace_rules(node: DOMNode, rules: RulesMap, animate: bool = False) -> None:
    """Set a node's rules as Textual does, but not those that it has already: most are."""
    base = node.styles.base
    if animate:
        if "transitions" in rules:
            _replace_all_rules(node, rules, animate)
            return
        if rules == base._rules:
            return
    had: Any = base._rules
    for name in had.keys() | rules.keys():
        value: Any = rules.get(name)
        if value is None or value is not had.get(name):
            setattr(base, name, value)
    node.notify_style_update()


_replace_all_rules = Stylesheet.replace_rules

Methods = list[tuple[type, Callable[..., Any]]]
_methods: dict[tuple[type, type, str], Methods | None] = {}


def _dispatch_methods(pump: MessagePump, name: str, message: Message) -> Iterable[tuple[type, Any]]:
    """Yield the handlers as Textual does, which finds them again for each message."""
    key = (type(pump), type(message), name)
    try:
        found = _methods[key]
    except KeyError:
        found = _methods[key] = _find_methods(*key)
    if found is None:
        yield from _get_dispatch_methods(pump, name, message)
        return
    for kind, method in found:
        if message._no_default_action:
            break
        yield kind, method.__get__(pump, kind)


def _replace_attribute(patch: pytest.MonkeyPatch, target: Any, *more: Any, **keywords: Any) -> None:
    """Find handlers again after a test has replaced an attribute of a class, which may be one."""
    _set_attribute(patch, target, *more, **keywords)
    if isinstance(target, type | str):
        _methods.clear()


_set_attribute = pytest.MonkeyPatch.setattr


def _restore(patch: pytest.MonkeyPatch) -> None:
    replaced = any(isinstance(target, type) for target, *_ in patch._setattr)
    _undo(patch)
    if replaced:
        _methods.clear()


_undo = pytest.MonkeyPatch.undo


def _find_methods(pump: type, message: type, name: str) -> Methods | None:
    """Return the handlers of each class; None if a class has decorated ones, which may depend on the message."""
    if any(vars(kind).get("_decorated_handlers", {}).keys() & set(message.__mro__) for kind in pump.__mro__):
        return None
    named = ((kind, vars(kind).get(f"_{name}") or vars(kind).get(name)) for kind in pump.__mro__)
    return [(kind, method) for kind, method in named if method and not getattr(method, "_textual_on", None)]


_get_dispatch_methods = MessagePump._get_dispatch_methods


def _count_parameters(function: Callable[..., Any]) -> int:
    """Count as Textual does, but plain functions without a signature of each."""
    if not isinstance(function, FunctionType) or vars(function):
        return _count_signature(function)
    code = function.__code__
    rest = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + rest


_count_signature = _callback._count_parameters


def _begin_strip(strip: Any, segments: Iterable[Any], cell_length: int | None = None) -> None:
    """Set what a strip holds; its seven caches are made when they are used, which most are not."""
    strip._segments = list(segments)
    strip._cell_length = cell_length
    strip._render_cache = strip._link_ids = strip._cell_count = None


def _strip_cache(strip: Strip, name: str) -> FIFOCache[Any, Any]:
    """Make a cache that is still missing."""
    if name not in _CACHE_SIZES:
        raise AttributeError(name)
    made: FIFOCache[Any, Any] = FIFOCache(_CACHE_SIZES[name])
    setattr(strip, name, made)
    return made


def _cache_sizes() -> Iterator[tuple[str, int]]:
    strip = Strip([])
    for name in Strip.__slots__:
        if isinstance(value := getattr(strip, name), FIFOCache):
            yield name, value._maxsize


_CACHE_SIZES = dict(_cache_sizes())


def _patch() -> None:
    sheet: Any = Stylesheet
    sheet._parse_rules, sheet.rules_map = _parse_once, property(_rules_map)
    sheet.replace_rules = staticmethod(_replace_rules)
    sheets: Any = stylesheet
    sheets._check_selectors = _selects
    rule: Any = RuleSet
    rule.__hash__ = object.__hash__  # the same, but not in Python: a tenth of what a test of the app takes
    styles: Any = Styles
    styles.extract_rules = _extract_once
    pump: Any = MessagePump
    pump._get_dispatch_methods = _dispatch_methods
    callbacks: Any = _callback
    callbacks._count_parameters = _count_parameters
    patch: Any = pytest.MonkeyPatch
    patch.setattr, patch.undo = _replace_attribute, _restore
    strip: Any = Strip
    strip.__init__, strip.__getattr__ = _begin_strip, _strip_cache
    gc.set_threshold(2_000_000, 20, 100)  # a screen is tens of thousands of objects; looking at them is a tenth, too


_patch()
