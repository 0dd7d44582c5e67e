"""The changes between two JSON Schemas of a tool's arguments or result, in words. Pure, and bounded.

For arguments, what is taken no longer is breaking; for a result, what comes although it did not before.
References inside the document are followed. What cannot be judged is for review.

| change | of arguments | of a result |
|---|---|---|
| a member is gone | breaking | breaking |
| a new member: required / optional | breaking / note | note |
| a member is required now / no longer | breaking / note | note / breaking |
| type or choices narrower / wider | breaking / note | note / breaking |
| bounds tighter / looser | breaking / note | note / review |
| further members refused / taken | breaking / note | note / note |
| descriptions, titles, defaults, examples | review | review |
| titles that are the name of the member, or one word for the whole | note | note |
| anything else, such as ``pattern``, ``not``, ``if`` | review | review |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mcphost.host.comparison.severity import BREAKING, NOTE, REVIEW, ChangeSeverity
from mcphost.json_values import as_dict, as_list, canonical, is_number
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.protocol.schema.traversal import Unresolvable, resolve

STEPS: Final = 20_000
"""Pairs of schemas that are compared: a definition of the largest size has fewer."""

LAYERS: Final = 16
"""References in a row that are followed."""

NAME: Final = 80
"""Characters of a member's name in a sentence."""

VALUE: Final = 60
"""Characters of a value in a sentence."""

_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_WORDS: Final = ("description", "title", "default", "examples")
_COUNTED: Final = {"Length": "character", "Items": "item", "Properties": "member", "Contains": "such item"}
"""The units of bounds, by the end of the keyword."""
_STRUCTURE: Final = ("properties", "required", "additionalProperties", "items", "enum", "const", *_LOWER, *_UPPER)
_TAKEN_APART: Final = frozenset({"$ref", "$defs", "definitions", "type", "anyOf", "oneOf", *_WORDS, *_STRUCTURE})
"""Keywords with a comparison of their own; of all others the values are compared."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A change at one place. ``words`` follow the name of the tool; they are safe to show and on one line."""

    severity: ChangeSeverity
    rule: str
    field: str
    words: str
    before: Any = None
    after: Any = None


class _Verdicts(NamedTuple):
    """The severities of one kind of change: what is narrower, and what is wider."""

    narrower: ChangeSeverity
    wider: ChangeSeverity


_FOR_ARGUMENTS: Final = {"type": _Verdicts(BREAKING, NOTE), "bound": _Verdicts(BREAKING, NOTE)}
_FOR_RESULT: Final = {"type": _Verdicts(NOTE, BREAKING), "bound": _Verdicts(NOTE, REVIEW)}


def schema_changes(before: Any, after: Any, *, result: bool = False) -> list[SchemaChange]:
    """The changes between two schemas of arguments, or of a ``result``."""
    changes = _Walk(before, after, result).changes()
    return list({(each.field, each.words): each for each in changes}.values())  # alternatives share their place


def arguments_of(schema: Any) -> dict[str, str]:
    """The arguments by name, such as ``integer`` or ``string or null, required``."""
    node = _node(schema, schema)
    required = node.required
    return {
        name: _types_text(_types(schema, _node(schema, each))) + (", required" if name in required else "")
        for name, each in node.properties.items()
    }


def argument_changes(
    before: Mapping[str, str], after: Mapping[str, str], member: str = "inputSchema"
) -> list[SchemaChange]:
    """The changes between two results of `arguments_of`; ``member`` is that of the definition."""
    changes: list[SchemaChange] = []
    for name in sorted({*before, *after}):
        where, field = f"argument {show_line(name, NAME)}", f"{member}.{name}"
        old, new = (each.get(name, "").partition(", ") for each in (before, after))
        if name not in after:
            changes.append(SchemaChange(BREAKING, "member-removed", field, f"{where} is gone", before[name]))
        elif name not in before:
            changes.append(_new_member(where, field, bool(new[2]), after[name], result=False))
        else:
            if old[2] != new[2]:
                changes.append(_need(where, field, bool(new[2]), result=False))
            types = tuple(None if each[0] == _ANY else frozenset(each[0].split(" or ")) for each in (old, new))
            if types[0] != types[1] and (change := _type_change(where, field, *types, result=False)):
                changes.append(change)
    return changes


def _new_member(where: str, field: str, required: bool, value: Any, *, result: bool) -> SchemaChange:
    if result:
        return SchemaChange(NOTE, "member-added", field, f"{where} is new", None, value)
    if required:
        return SchemaChange(BREAKING, "member-added-required", field, f"{where} is new, and required", None, value)
    return SchemaChange(NOTE, "member-added", field, f"{where} is new, and optional", None, value)


def _need(where: str, field: str, required: bool, *, result: bool) -> SchemaChange:
    if result:
        words, severity = ("now always comes", NOTE) if required else ("no longer always comes", BREAKING)
    else:
        words, severity = ("is now required", BREAKING) if required else ("is no longer required", NOTE)
    rule = "member-required" if required else "member-optional"
    return SchemaChange(severity, rule, field, f"{where} {words}", not required, required)


_Types = frozenset[str] | None
"""Names of JSON types; None: any."""

_ANY: Final = "anything"


def _types_text(types: _Types) -> str:
    return _ANY if types is None else show_line(" or ".join(sorted(types, key=lambda each: (each == "null", each))))


def _accepts(types: _Types, each: str) -> bool:
    return types is None or each in types or (each == "integer" and "number" in types)


def _lost(before: _Types, after: _Types) -> bool:
    """True if some type of ``before`` is not among those of ``after``."""
    if before is None:
        return after is not None
    return any(not _accepts(after, each) for each in before)


def _type_change(where: str, field: str, before: _Types, after: _Types, *, result: bool) -> SchemaChange | None:
    lost, gained = _lost(before, after), _lost(after, before)
    if not (lost or gained):
        return None
    severities = (_FOR_RESULT if result else _FOR_ARGUMENTS)["type"]
    severity = BREAKING if lost and gained else severities.narrower if lost else severities.wider
    old, new = _types_text(before), _types_text(after)
    words = f"{where} was {old}, and is {new} now" if result else f"{where} took {old}, and takes {new} now"
    return SchemaChange(severity, "type", f"{field}.type", words, old, new)


class _Node:
    """A schema with the schemas that its ``$ref`` and a lone ``allOf`` add, the nearest first."""

    __slots__ = ("layers", "open_reference")

    def __init__(self, layers: Sequence[dict[str, Any]], open_reference: str) -> None:
        self.layers = tuple(layers)
        self.open_reference = open_reference
        """A reference that leads nowhere in the document; empty without one."""

    @property
    def key(self) -> tuple[int, ...]:
        return tuple(map(id, self.layers))

    def get(self, keyword: str) -> Any:
        return next((layer[keyword] for layer in self.layers if keyword in layer), None)

    def has(self, keyword: str) -> bool:
        return any(keyword in layer for layer in self.layers)

    def owner(self, keyword: str) -> int:
        return next((id(layer) for layer in self.layers if keyword in layer), 0)

    @property
    def keywords(self) -> Iterator[str]:
        return iter(dict.fromkeys(keyword for layer in self.layers for keyword in layer))

    @property
    def properties(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for layer in self.layers:
            found = {**as_dict(layer.get("properties")), **found}
        return found

    @property
    def required(self) -> frozenset[str]:
        return frozenset(
            name for layer in self.layers for name in as_list(layer.get("required")) if isinstance(name, str)
        )

    @property
    def alternatives(self) -> list[Any] | None:
        return next((each for each in map(self.get, ("anyOf", "oneOf")) if isinstance(each, list) and each), None)

    @property
    def choices(self) -> dict[str, Any] | None:
        """The values that are taken, by their canonical text; None: any."""
        if self.has("const"):
            return {canonical(self.get("const")): self.get("const")}
        given = self.get("enum")
        return {canonical(each): each for each in given} if isinstance(given, list) else None


_NOTHING: Final[dict[str, Any]] = {"not": {}}
"""The schema ``false`` as an object."""


def _node(root: Any, schema: Any) -> _Node:
    layers: list[dict[str, Any]] = []
    waiting, open_reference = [schema], ""
    while waiting and len(layers) < LAYERS:
        current = waiting.pop(0)
        if current is False:
            layers.append(_NOTHING)
        if not isinstance(current, dict) or any(current is layer for layer in layers):
            continue
        layers.append(current)
        if isinstance(reference := current.get("$ref"), str):
            try:
                waiting.append(resolve(root, reference))
            except Unresolvable:
                open_reference = reference
        if len(all_of := as_list(current.get("allOf"))) == 1:
            waiting.extend(all_of)
    return _Node(layers, open_reference)


def _types(root: Any, node: _Node, hops: int = 4) -> _Types:
    said = node.get("type")
    if isinstance(said, str):
        return frozenset({said})
    if isinstance(said, list) and said:
        return frozenset(each for each in said if isinstance(each, str))
    if (choices := node.choices) is not None:
        return frozenset(map(_type_of, choices.values()))
    if (alternatives := node.alternatives) is None or not hops:
        return None
    found: frozenset[str] = frozenset()
    for each in alternatives:
        inner = _types(root, _node(root, each), hops - 1)
        if inner is None:
            return None
        found |= inner
    return found


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = ((str, "string"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
    return next((word for kind, word in kinds if isinstance(value, kind)), "null")


class _Task(NamedTuple):
    before: _Node
    after: _Node
    steps: tuple[str, ...]
    """Names of members from the top; ``[]`` for the items of a list, ``{}`` for members of any other name."""
    words: bool = True
    """False if descriptions and the like are those of a schema around it, and compared there."""
    optional_now: bool = False
    """True if a member is no longer required: a default then explains that."""


class _Walk:
    """Compares two documents, from the top down."""

    def __init__(self, before: Any, after: Any, result: bool) -> None:
        self._roots = before, after
        self._result = result
        self._severities = _FOR_RESULT if result else _FOR_ARGUMENTS
        self._tasks: list[_Task] = []
        self._met: set[tuple[tuple[int, ...], tuple[int, ...], bool]] = set()
        self._said: set[tuple[int, int, str]] = set()

    def changes(self) -> Iterator[SchemaChange]:
        first = self._pair(self._roots[0], self._roots[1], ())
        self._tasks.append(first)
        steps = 0
        while self._tasks:
            if (steps := steps + 1) > STEPS:
                words = f"its {'result' if self._result else 'input'} schema is too large to compare in full"
                yield SchemaChange(REVIEW, "not-judged", self._field(()), words)
                return
            task = self._tasks.pop()
            key = task.before.key, task.after.key, task.words
            if key not in self._met:
                self._met.add(key)
                inner = len(self._tasks)
                yield from self._compared(task)
                self._tasks[inner:] = reversed(self._tasks[inner:])  # in the order of the document

    # Places.

    def _field(self, steps: tuple[str, ...]) -> str:
        return ".".join(("outputSchema" if self._result else "inputSchema", *steps))

    def _where(self, steps: tuple[str, ...]) -> str:
        if not steps:
            return "the result" if self._result else "the arguments"
        text = ""
        for step in steps:
            text += step if step in ("[]", "{}") else f"{'.' if text else ''}{show_line(step, NAME)}"
        return f"{'result member' if self._result else 'argument'} {text}"

    # One pair.

    def _pair(self, before: Any, after: Any, steps: tuple[str, ...]) -> _Task:
        return _Task(_node(self._roots[0], before), _node(self._roots[1], after), steps)

    def _compared(self, task: _Task) -> Iterator[SchemaChange]:
        before, after, steps = task.before, task.after, task.steps
        where, field = self._where(steps), self._field(steps)
        if before.open_reference or after.open_reference:
            old, new = before.open_reference, after.open_reference
            if old != new:
                yield self._unjudged(where, field, "$ref", old or None, new or None)
        if task.words:
            yield from self._compared_words(task)
        types = _types(self._roots[0], before), _types(self._roots[1], after)
        if not (before.choices and after.choices and not (before.has("type") or after.has("type"))):
            change = _type_change(where, field, *types, result=self._result)
            if change is not None and self._first(before, after, "type"):
                yield change
        if before.alternatives is not None or after.alternatives is not None:
            yield from self._compared_alternatives(task, types)
            if before.alternatives is None or after.alternatives is None:
                return  # what one of them has besides is in an alternative of the other
        yield from self._compared_choices(task)
        yield from self._compared_members(task)
        yield from self._compared_bounds(task)
        yield from self._compared_openness(task)
        self._into_items(task)
        yield from self._compared_others(task)

    def _first(self, before: _Node, after: _Node, keyword: str, name: str = "") -> bool:
        """True unless this change of a schema that is used at several places is reported already."""
        key = before.owner(keyword), after.owner(keyword), f"{keyword} {name}"
        if key in self._said:
            return False
        self._said.add(key)
        return True

    def _differing(self, task: _Task, keywords: Iterable[str]) -> Iterator[tuple[str, Any, Any]]:
        before, after = task.before, task.after
        there = {*before.keywords}, {*after.keywords}
        for keyword in keywords:
            if keyword not in there[0] and keyword not in there[1]:
                continue
            old, new = before.get(keyword), after.get(keyword)
            if (keyword in there[0]) == (keyword in there[1]) and _equal(old, new):
                continue
            if self._first(before, after, keyword):
                yield keyword, old, new

    def _compared_words(self, task: _Task) -> Iterator[SchemaChange]:
        where, field = self._where(task.steps), self._field(task.steps)
        for keyword, old, new in self._differing(task, _WORDS):
            if keyword != "default":
                severity = NOTE if keyword == "title" and _generated(task.steps, old, new) else REVIEW
                words = f"the {keyword} of {where} {_how(old, new)}"
                yield SchemaChange(severity, "words", f"{field}.{keyword}", words, old, new)
            elif task.before.has(keyword) or not task.optional_now:
                old_words = _short(old) if task.before.has(keyword) else "not given"
                new_words = _short(new) if task.after.has(keyword) else "not given"
                words = f"the default of {where} was {old_words}, and is {new_words} now"
                yield SchemaChange(REVIEW, "default", f"{field}.{keyword}", words, old, new)

    def _compared_alternatives(self, task: _Task, types: tuple[_Types, _Types]) -> Iterator[SchemaChange]:
        before, after, steps = task.before, task.after, task.steps
        lists = [
            [node] if (given := node.alternatives) is None else [_node(root, each) for each in given]
            for root, node in zip(self._roots, (before, after), strict=True)
        ]
        own_words = before.alternatives is not None and after.alternatives is not None
        left, right = self._paired(lists[0], lists[1], steps, own_words)
        where, field = self._where(steps), f"{self._field(steps)}.anyOf"
        severities = self._severities["type"]
        takes = "is" if self._result else "takes"
        for node in left:
            if not _without_any(_types(self._roots[0], node), types[1]):
                words = f"{where} no longer {takes} {_short(node.layers and node.layers[0])}"
                yield SchemaChange(severities.narrower, "alternatives", field, words, node.layers[0], None)
        for node in right:
            if not _without_any(_types(self._roots[1], node), types[0]):
                words = f"{where} now also {takes} {_short(node.layers and node.layers[0])}"
                yield SchemaChange(severities.wider, "alternatives", field, words, None, node.layers[0])

    def _paired(
        self, left: list[_Node], right: list[_Node], steps: tuple[str, ...], own_words: bool
    ) -> tuple[list[_Node], list[_Node]]:
        """Set about comparing the alternatives that belong together; return the others of both sides."""
        pairs: list[tuple[_Node, _Node]] = []
        for likeness in (lambda node, root: canonical([*node.layers]), lambda node, root: _types(root, node)):
            for node in list(left):
                own = likeness(node, self._roots[0])
                found = next((each for each in right if likeness(each, self._roots[1]) == own), None)
                if found is not None:
                    left.remove(node)
                    right.remove(found)
                    pairs.append((node, found))
        if len(left) == len(right):
            pairs += zip(left, right, strict=True)
            left, right = [], []
        self._tasks += [_Task(node, found, steps, own_words) for node, found in pairs]
        return left, right

    def _compared_choices(self, task: _Task) -> Iterator[SchemaChange]:
        before, after = task.before, task.after
        old, new = before.choices, after.choices
        keyword = "const" if before.has("const") or after.has("const") else "enum"
        if old == new or (None not in (old, new) and old.keys() == new.keys()):  # type: ignore[union-attr]
            return
        if not self._first(before, after, keyword):
            return
        where, field = self._where(task.steps), f"{self._field(task.steps)}.{keyword}"
        takes = "is" if self._result else "takes"
        severities = self._severities["type"]
        shown = None if old is None else [*old.values()], None if new is None else [*new.values()]
        if old is None:
            words, severity = f"{where} now {takes} only {_listed(new or {})}", severities.narrower
        elif new is None:
            words, severity = f"{where} now {takes} more than {_listed(old)}", severities.wider
        else:
            gone = {key: each for key, each in old.items() if key not in new}
            come = {key: each for key, each in new.items() if key not in old}
            parts = [f"no longer {takes} {_listed(gone)}"] if gone else []
            parts += [f"now also {takes} {_listed(come)}"] if come else []
            words = f"{where} {', and '.join(parts)}"
            severity = BREAKING if gone and come else severities.narrower if gone else severities.wider
        yield SchemaChange(severity, "choices", field, words, *shown)

    def _compared_members(self, task: _Task) -> Iterator[SchemaChange]:
        before, after = task.before, task.after
        old, new = before.properties, after.properties
        for name in dict.fromkeys((*old, *new)):
            steps = (*task.steps, name)
            where, field = self._where(steps), self._field(steps)
            needed = name in before.required, name in after.required
            if name not in new:
                if self._first(before, after, "properties", name):
                    yield SchemaChange(BREAKING, "member-removed", field, f"{where} is gone", old[name])
            elif name not in old:
                if self._first(before, after, "properties", name):
                    yield _new_member(where, field, needed[1], new[name], result=self._result)
            else:
                if needed[0] != needed[1] and self._first(before, after, "required", name):
                    yield _need(where, field, needed[1], result=self._result)
                inner = self._pair(old[name], new[name], steps)
                self._tasks.append(inner._replace(optional_now=needed == (True, False)))
        known = {*old, *new}
        for name in sorted((before.required ^ after.required) - known):
            if self._first(before, after, "required", name):
                steps = (*task.steps, name)
                needed_now = name in after.required
                yield _need(self._where(steps), self._field(steps), needed_now, result=self._result)

    def _compared_bounds(self, task: _Task) -> Iterator[SchemaChange]:
        where, field, severities = self._where(task.steps), self._field(task.steps), self._severities["bound"]
        for keyword, old, new in self._differing(task, (*_LOWER, *_UPPER)):
            if not all(each is None or is_number(each) for each in (old, new)):
                yield self._unjudged(where, field, keyword, old, new)
                continue
            narrower = old is None or (new is not None and (new > old if keyword in _LOWER else new < old))
            severity = severities.narrower if narrower else severities.wider
            was, now = ("was", "is") if self._result else ("took", "takes")
            words = f"{where} {was} {_bound_text(keyword, old)}, and {now} {_bound_text(keyword, new)} now"
            yield SchemaChange(severity, "bound", f"{field}.{keyword}", words, old, new)

    def _compared_openness(self, task: _Task) -> Iterator[SchemaChange]:
        before, after = task.before, task.after
        old, new = before.get("additionalProperties"), after.get("additionalProperties")
        if isinstance(old, dict) and isinstance(new, dict):
            self._tasks.append(self._pair(old, new, (*task.steps, "{}")))
            return
        taken = [False if each is False else True if each in (None, True) else "some" for each in (old, new)]
        if taken[0] == taken[1] or not self._first(before, after, "additionalProperties"):
            return
        where, field = self._where(task.steps), f"{self._field(task.steps)}.additionalProperties"
        narrower = taken[1] is False or taken[0] is True
        severity = BREAKING if narrower and not self._result else NOTE
        of = "" if not task.steps else f" of {where}"
        if taken[1] is False:
            words = f"members{of} that the schema does not name are now refused"
        elif narrower:
            words = f"members{of} that the schema does not name must now fit {_short(new)}"
        else:
            words = f"members{of} that the schema does not name are now taken"
        yield SchemaChange(severity, "openness", field, words, old, new)

    def _into_items(self, task: _Task) -> None:
        old, new = task.before.get("items"), task.after.get("items")
        if isinstance(old, list) or isinstance(new, list):
            return  # compared as a value
        if isinstance(old, dict | bool) or isinstance(new, dict | bool):
            old, new = (True if each is None else each for each in (old, new))
            self._tasks.append(self._pair(old, new, (*task.steps, "[]")))

    def _compared_others(self, task: _Task) -> Iterator[SchemaChange]:
        known = _TAKEN_APART - {"items"}
        keywords = [each for each in dict.fromkeys((*task.before.keywords, *task.after.keywords)) if each not in known]
        where, field = self._where(task.steps), self._field(task.steps)
        for keyword, old, new in self._differing(task, keywords):
            lists = [len(each) if isinstance(each, list) else 1 for each in (old, new)]
            if keyword == "allOf" and lists == [1, 1]:
                continue  # part of the node
            if keyword == "items" and not (isinstance(old, list) or isinstance(new, list)):
                continue
            yield self._unjudged(where, field, keyword, old, new)

    @staticmethod
    def _unjudged(where: str, field: str, keyword: str, old: Any, new: Any) -> SchemaChange:
        name = show_line(keyword, NAME)
        words = f"{name} of {where} was {_short_or_absent(old)}, and is {_short_or_absent(new)} now"
        return SchemaChange(REVIEW, "not-judged", f"{field}.{keyword}", words, old, new)


def _equal(one: Any, other: Any) -> bool:
    """True for equal JSON values; 1 and true are not."""
    return one == other if isinstance(one, str) else canonical(one) == canonical(other)


def _generated(steps: tuple[str, ...], *titles: Any) -> bool:
    """True for titles that libraries make: of a member its name, of a whole schema one word."""
    given = [each for each in titles if each is not None]
    if not all(isinstance(each, str) and len(each) <= NAME for each in given):
        return False
    if not steps:
        return all(re.fullmatch(r"\w+", each) for each in given)
    return all(_letters(each) == _letters(steps[-1]) for each in given)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()


def _bound_text(keyword: str, value: Any) -> str:
    """A bound in words, such as ``at least 1 item``."""
    unit = next((word for end, word in _COUNTED.items() if keyword.endswith(end)), "")
    if value is None:
        return f"any number of {unit}s" if unit else "any value"
    if keyword.startswith("exclusive"):
        return f"{'more' if keyword in _LOWER else 'less'} than {_short(value)}"
    return f"at {'least' if keyword in _LOWER else 'most'} {_short(value)}" + (
        f" {unit}{'s' * (value != 1)}" if unit else ""
    )


def _how(old: Any, new: Any) -> str:
    return "is new" if old is None else "is gone" if new is None else "changed"


def _short(value: Any) -> str:
    return show_line(json.dumps(value, ensure_ascii=False), VALUE)


def _short_or_absent(value: Any) -> str:
    return "not given" if value is None else _short(value)


def _without_any(types: _Types, others: _Types) -> bool:
    """True if the other side takes none of these types: its types say so already."""
    return types is not None and others is not None and not any(_accepts(others, each) for each in types)


def _listed(choices: Mapping[str, Any]) -> str:
    shown = [_short(each) for each in list(choices.values())[:6]]
    more = len(choices) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
