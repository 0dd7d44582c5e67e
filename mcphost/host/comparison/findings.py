"""The changes between two surfaces, each in a sentence that can be understood without reading JSON. Pure.

| change | severity |
|---|---|
| a tool, prompt, resource, template or skill is gone | breaking |
| a new tool | review: it is new power |
| a new skill, and new, gone or other files or frontmatter of one | review: it is text for models |
| a skill no longer gives the digests of its files / gives them now | breaking / note |
| a new prompt, resource or template | note: a person chooses it |
| arguments and results | see `mcphost.host.comparison.schema_changes` |
| a claim of safety is gone (read-only, not destructive, idempotent, closed-world) | breaking |
| a claim of safety is new | review: a rule may trust it; being read-only implies those on effects |
| calls are possible only as tasks, or no longer as tasks | breaking |
| a result is no longer described / is described | breaking / note |
| an argument of a prompt is gone or required / no longer / new and optional | breaking / note / note |
| titles, descriptions, instructions, ``_meta``, types and annotations of resources | review |
| the name that the server gives itself, or its command or address | review |
| a capability is gone / has another value / is new | breaking / review / note |
| announcements of changes (``listChanged``), icons, sizes, the version, the revision | note |
| lists in another order inside a definition | note |
| anything else | review |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, Final

from mcphost.host.catalog import CatalogKind
from mcphost.host.comparison.schema_changes import SchemaChange, argument_changes, schema_changes
from mcphost.host.comparison.severity import BREAKING, NOTE, REVIEW, ChangeSeverity
from mcphost.host.comparison.skill_changes import moved_skills, skill_changes
from mcphost.host.comparison.surface import ERA_BOUND, FRONTMATTER, HINTS, Surface, SurfaceItem, SurfaceItems
from mcphost.json_values import as_dict, canonical, dicts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import Mask, masked_value

ALIKE: Final = 0.8
"""The share of a definition from which a new tool looks like one that is gone."""

COMPARED: Final = 40
"""New tools, and as many that are gone, among which likenesses are searched; more are another server."""

SERVER: Final = "server"
"""The title of findings about the server itself."""

SEVERAL: Final = 4
"""Items that are gone, or new, which share a line."""

NAMED: Final = 12
"""Items that such a line names."""

TEXT: Final = 300
"""Characters of a changed text below its finding."""

LIKENESS: Final = 4_000
"""Characters of a definition by which likeness is judged."""

NAME: Final = 80
"""Characters of a name in a sentence."""

RULES: Final[Mapping[str, str]] = {
    "item-removed": "A tool, prompt, resource, template or skill is gone.",
    "item-added": "A tool, prompt, resource, template or skill is new.",
    "member-removed": "An argument, or a member of a result, is gone.",
    "member-added": "An optional argument, or a member of a result, is new.",
    "member-added-required": "A required argument is new.",
    "member-required": "An argument, or a member of a result, is now required.",
    "member-optional": "An argument, or a member of a result, is no longer required.",
    "type": "The type of an argument or of a result changed.",
    "choices": "The values that an argument takes, or that a result has, changed.",
    "alternatives": "One of several forms of an argument or of a result is gone or new.",
    "bound": "A limit of an argument or of a result changed.",
    "openness": "Members that a schema does not name are refused or taken.",
    "result-described": "A tool describes its result, or no longer does.",
    "hint": "What a tool claims about its safety changed.",
    "task": "The use of a tool as a task changed.",
    "words": "A text that people and models read changed.",
    "default": "The default of an argument changed.",
    "file": "A file of a skill is new or gone, or has other bytes.",
    "digests": "A skill gives the digests of its files, or no longer does.",
    "capability": "What the server declares to be able to do changed.",
    "identity": "The command or address of a server changed.",
    "server-name": "The name that a server gives itself changed.",
    "server-version": "The version of a server changed.",
    "revision": "The protocol revision changed.",
    "appearance": "An icon or a size changed.",
    "order": "Lists in a definition have another order.",
    "not-judged": "A change that mcphost cannot judge.",
}
"""The findings of each rule."""


@dataclass(frozen=True, slots=True)
class SurfaceFinding:
    """A change. ``words`` are safe to show and on one line; ``before`` and ``after`` are as received."""

    severity: ChangeSeverity
    rule: str
    """One of `RULES`."""
    kind: CatalogKind | None
    """None for the server itself."""
    item: str
    """The item's name; empty for the server itself."""
    field: str
    words: str
    before: Any = None
    after: Any = None

    def as_object(self) -> dict[str, Any]:
        return {
            "severity": self.severity.value,
            "rule": self.rule,
            "kind": self.kind and self.kind.value,
            "item": self.item or None,
            "field": self.field,
            "words": self.words,
            "before": self.before,
            "after": self.after,
        }


def compare_surfaces(before: Surface, after: Surface) -> list[SurfaceFinding]:
    """The changes from one surface to another, by item.

    Between the eras, what only one of them has does not count. Commands are compared only of one configured server.
    """
    across = before.modern != after.modern
    found = [*_server_findings(before, after, across)]
    for kind in CatalogKind:
        if kind in before.kinds and kind in after.kinds:
            found += _kind_findings(kind, before.kinds[kind], after.kinds[kind], across)
    return found


def calls_for_attention(findings: Iterable[SurfaceFinding]) -> bool:
    """True if one of them is more than a note."""
    return any(each.severity is not NOTE for each in findings)


# The server.


def _server_findings(before: Surface, after: Surface, across: bool) -> Iterator[SurfaceFinding]:
    def found(severity: ChangeSeverity, rule: str, field: str, words: str, *values: Any) -> SurfaceFinding:
        return SurfaceFinding(severity, rule, None, "", field, words, *values)

    known = before.entry and before.entry == after.entry and before.identity and after.identity
    if known and before.identity != after.identity:
        words = "the server's command or address changed"
        yield found(REVIEW, "identity", "identity", words, before.identity, after.identity)
    if before.name != after.name:
        names = [show_line(each.name, NAME) or "nothing" for each in (before, after)]
        words = f"the server called itself {names[0]}, and calls itself {names[1]} now"
        yield found(REVIEW, "server-name", "name", words, before.name, after.name)
    if before.version != after.version:
        versions = [show_line(each.version, NAME) or "none" for each in (before, after)]
        words = f"the server's version was {versions[0]}, and is {versions[1]} now"
        yield found(NOTE, "server-version", "version", words, before.version, after.version)
    if before.revision != after.revision and not across:
        revisions = [show_line(each.revision, NAME) or "unknown" for each in (before, after)]
        words = f"the protocol revision was {revisions[0]}, and is {revisions[1]} now"
        yield found(NOTE, "revision", "revision", words, before.revision, after.revision)
    yield from _capability_findings(before, after, across, found)
    if before.instructions_digest != after.instructions_digest:
        verb = _verb(before.instructions_digest, after.instructions_digest)
        words = f"the server's instructions to models {verb}"
        yield found(REVIEW, "words", "instructions", words, before.instructions, after.instructions)


def _verb(before: object, after: object) -> str:
    return "are new" if not before else "are gone" if not after else "changed"


def _capability_findings(
    before: Surface, after: Surface, across: bool, found: Callable[..., SurfaceFinding]
) -> Iterator[SurfaceFinding]:
    old, new = ({**each.capabilities} for each in (before, after))
    if across:
        old, new = map(_of_both_eras, (old, new))
    said: list[str] = []
    for path in sorted({*old, *new}):
        if old.get(path) == new.get(path) or any(path.startswith(f"{above}.") for above in said):
            continue
        said.append(path)
        name, announces = show_line(path, NAME), path.rpartition(".")[2] == "listChanged"
        if path not in new:
            severity = NOTE if announces else BREAKING
            yield found(severity, "capability", path, f"the server no longer declares {name}", old[path] or "true")
        elif path not in old:
            yield found(NOTE, "capability", path, f"the server now declares {name}", None, new[path] or "true")
        else:
            values = [show_line(each[path] or "true", NAME) for each in (old, new)]
            words = f"the server's capability {name} was {values[0]}, and is {values[1]} now"
            yield found(REVIEW, "capability", path, words, old[path] or "true", new[path] or "true")


def _of_both_eras(capabilities: Mapping[str, str]) -> dict[str, str]:
    kept = {
        path: value for path, value in capabilities.items() if not any(f".{name}." in f".{path}." for name in ERA_BOUND)
    }
    if not any(path.startswith("extensions.") for path in kept):
        kept.pop("extensions", None)
    return kept


# Items.


def _kind_findings(
    kind: CatalogKind, before: SurfaceItems, after: SurfaceItems, across: bool
) -> Iterator[SurfaceFinding]:
    gone = {name: item for name, item in before.items() if name not in after}
    new = {name: item for name, item in after.items() if name not in before}
    likenesses = _likenesses_of(kind, gone, new)
    word = kind.value.removesuffix("s")
    for name, item in sorted({**before, **after}.items()):
        shown = show_line(name, NAME)
        if name in gone:
            yield SurfaceFinding(
                BREAKING, "item-removed", kind, name, "", f"{shown}: the {word} is gone", item.definition
            )
        elif name in new:
            like = f"; it looks like {show_line(likenesses[name], NAME)}, which is gone" if name in likenesses else ""
            severity = REVIEW if kind in (CatalogKind.TOOLS, CatalogKind.SKILLS) else NOTE
            words = f"{shown}: a new {word}{like}"
            yield SurfaceFinding(severity, "item-added", kind, name, "", words, None, after[name].definition)
        elif before[name].digest != after[name].digest:
            for each in _item_changes(kind, before[name], after[name], across):
                words = each.words if each.words.startswith(f"{shown} ") else f"{shown}: {each.words}"
                yield SurfaceFinding(each.severity, each.rule, kind, name, each.field, words, each.before, each.after)


def _likenesses_of(kind: CatalogKind, gone: SurfaceItems, new: SurfaceItems) -> dict[str, str]:
    """The items that are gone, by the names of new ones that look like them."""
    if len(gone) > COMPARED or len(new) > COMPARED:
        return {}
    if kind is CatalogKind.SKILLS:
        return moved_skills(gone, new)
    return _likenesses(gone, new) if kind is CatalogKind.TOOLS else {}


def _likenesses(gone: SurfaceItems, new: SurfaceItems) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, item in new.items():
        best = max(((_likeness(item, old), old.name) for old in gone.values()), default=(0.0, ""))
        if best[0] >= ALIKE:
            found[name] = best[1]
    return found


def _likeness(one: SurfaceItem, other: SurfaceItem) -> float:
    """From 0 to 1, by description and arguments."""
    if "description" not in one.members or "description" not in other.members:
        return 0.0  # empty schemas are alike, too
    if one.definition is None or other.definition is None:
        same = [one.members.get(each) == other.members.get(each) for each in ("description", "inputSchema")]
        return 1.0 if all(same) else 0.0
    first, second = (
        canonical([each.get("description"), each.get("inputSchema")])[:LIKENESS]
        for each in (one.definition, other.definition)
    )
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
        return 0.0
    return float(matcher.ratio())


def _item_changes(kind: CatalogKind, before: SurfaceItem, after: SurfaceItem, across: bool) -> list[SchemaChange]:
    """The changes of an item whose digest is another."""
    names = dict.fromkeys((*before.members, *after.members))
    differing = [name for name in names if before.members.get(name) != after.members.get(name)]
    if across and "execution" in differing:
        differing.remove("execution")
        if not differing:
            return []
    if kind is CatalogKind.SKILLS:
        changes = skill_changes(before, after)
        differing = [name for name in differing if name != "resources" and not name.startswith(FRONTMATTER)]
    else:
        changes = []
    changes += [change for name in differing for change in _member_changes(kind, name, before, after)]
    if changes:
        return changes
    if _full(before, after) and _orderless(before.definition) == _orderless(after.definition):
        words = "lists in its definition have another order"
        return [SchemaChange(NOTE, "order", ", ".join(differing), words)]
    words = "its definition is written differently, in a place that mcphost cannot judge"
    return [SchemaChange(REVIEW, "not-judged", ", ".join(differing), words, before.definition, after.definition)]


def _orderless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _orderless(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted(canonical(_orderless(each)) for each in value)
    return value


_MemberChanges = Callable[[str, SurfaceItem, SurfaceItem], Iterable[SchemaChange]]


def _member_changes(kind: CatalogKind, name: str, before: SurfaceItem, after: SurfaceItem) -> Iterable[SchemaChange]:
    own: Mapping[str, _MemberChanges] = {}
    if kind is CatalogKind.TOOLS:
        own = _OF_TOOLS
    elif kind is CatalogKind.PROMPTS:
        own = {"arguments": _prompt_arguments}
    return (own.get(name) or _COMMON.get(name) or _other)(name, before, after)


def _values(name: str, before: SurfaceItem, after: SurfaceItem) -> tuple[Any, Any]:
    old, new = (None if each.definition is None else each.definition.get(name) for each in (before, after))
    return old, new


def _full(before: SurfaceItem, after: SurfaceItem) -> bool:
    return before.definition is not None and after.definition is not None


def _how(name: str, before: SurfaceItem, after: SurfaceItem) -> str:
    return "is new" if name not in before.members else "is gone" if name not in after.members else "changed"


def _text(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterator[SchemaChange]:
    yield SchemaChange(REVIEW, "words", name, f"its {name} {_how(name, before, after)}", *_values(name, before, after))


def _look(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterator[SchemaChange]:
    words = f"its {name} changed" if name == "size" else "its icons changed"
    yield SchemaChange(NOTE, "appearance", name, words, *_values(name, before, after))


def _other(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterator[SchemaChange]:
    how = _how(name, before, after)
    words = f"its {show_line(name, NAME)} {how}"
    yield SchemaChange(REVIEW, "not-judged", name, words, *_values(name, before, after))


def _input(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterable[SchemaChange]:
    if _full(before, after):
        return schema_changes(*_values(name, before, after))
    if changes := argument_changes(before.arguments, after.arguments):
        return changes
    words = "its input schema changed, but not the names, types and need of its arguments"
    return [SchemaChange(REVIEW, "not-judged", name, words)]


def _output(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterable[SchemaChange]:
    old, new = _values(name, before, after)
    if name not in before.members:
        return [SchemaChange(NOTE, "result-described", name, "it now describes its result", old, new)]
    if name not in after.members:
        return [SchemaChange(BREAKING, "result-described", name, "it no longer describes its result", old, new)]
    if _full(before, after):
        return schema_changes(old, new, result=True)
    return [SchemaChange(REVIEW, "not-judged", name, "the schema of its result changed")]


_CLAIMS: Final = {
    "readOnlyHint": (False, True, "is read-only"),
    "destructiveHint": (True, False, "destroys nothing"),
    "idempotentHint": (False, True, "can be repeated without further effect"),
    "openWorldHint": (True, False, "keeps to a closed world"),
}
"""Each hint with the value that no claim means, the safer one, and that in words."""

_OF_EFFECTS: Final = ("destructiveHint", "idempotentHint")
"""Hints that mean nothing for a tool that is read-only."""


def _annotations(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterator[SchemaChange]:
    differing = [hint for hint in HINTS if before.hints.get(hint) != after.hints.get(hint)]
    yield from filter(None, (_hint_change(hint, before, after) for hint in differing))
    if not _full(before, after):
        if not differing:
            yield SchemaChange(REVIEW, "words", name, "its annotations changed, but not what it claims")
        return
    old_rest, new_rest = (as_dict(each) for each in _values(name, before, after))
    for member in dict.fromkeys((*old_rest, *new_rest)):
        if member in before.hints or member in after.hints or old_rest.get(member) == new_rest.get(member):
            continue
        words = f"its annotation {show_line(member, NAME)} changed"
        yield SchemaChange(REVIEW, "words", f"annotations.{member}", words, old_rest.get(member), new_rest.get(member))


def _hint_change(hint: str, before: SurfaceItem, after: SurfaceItem) -> SchemaChange | None:
    old, new, shown = before.hints.get(hint), after.hints.get(hint), show_line(after.name, NAME)
    default, safer, safe_words = _CLAIMS[hint]
    meant = [default if each is None else each for each in (old, new)]
    if hint in _OF_EFFECTS:
        read_only = [each.hints.get("readOnlyHint") is True for each in (before, after)]
        if read_only[0] != read_only[1] and (meant[1] == safer) == read_only[1]:
            return None  # that it is read-only, or no longer, says so
        meant = [safer if reads else each for each, reads in zip(meant, read_only, strict=True)]
    if meant[0] == meant[1]:
        how = "left to its default" if new is None else "written"
        severity, words = NOTE, f"{hint} is now {how}, and means the same"
    elif meant[1] == safer:
        severity, words = REVIEW, f"{shown} now says that it {safe_words}"
    else:
        severity, words = BREAKING, f"{shown} no longer says that it {safe_words}"
    return SchemaChange(severity, "hint", f"annotations.{hint}", words, old, new)


def _execution(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterable[SchemaChange]:
    if not _full(before, after):
        return _other(name, before, after)
    old, new = (as_dict(each) for each in _values(name, before, after))
    support = [each.get("taskSupport", "forbidden") for each in (old, new)]
    if support[0] == support[1]:
        rests = [{key: value for key, value in each.items() if key != "taskSupport"} for each in (old, new)]
        if rests[0] == rests[1]:
            words = "its execution is written differently, and means the same"
            return [SchemaChange(NOTE, "task", "execution.taskSupport", words, *support)]
        return _other(name, before, after)
    if support[1] == "required":
        severity, words = BREAKING, "it can be called only as a task now"
    elif support[1] == "forbidden":
        severity, words = BREAKING, "it can no longer be called as a task"
    else:
        severity, words = NOTE, "it can be called with or without a task now"
    return [SchemaChange(severity, "task", "execution.taskSupport", words, *support)]


def _meta(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterable[SchemaChange]:
    if not _full(before, after):
        return _other(name, before, after)
    old, new = (as_dict(each) for each in _values(name, before, after))
    keys = dict.fromkeys((*old, *new))
    differing = [
        key for key in keys if (key in old) != (key in new) or canonical(old.get(key)) != canonical(new.get(key))
    ]
    return [_meta_change(key, old.get(key), new.get(key)) for key in differing]


def _meta_change(key: str, old: Any, new: Any) -> SchemaChange:
    return SchemaChange(REVIEW, "not-judged", f"_meta.{key}", f"its _meta {show_line(key, NAME)} changed", old, new)


def _prompt_arguments(name: str, before: SurfaceItem, after: SurfaceItem) -> Iterator[SchemaChange]:
    changes = argument_changes(before.arguments, after.arguments, name)
    yield from changes
    if not _full(before, after):
        if not changes:
            yield SchemaChange(REVIEW, "words", name, "the texts of its arguments changed")
        return
    old_texts, new_texts = (_described(each) for each in _values(name, before, after))
    for argument in (each for each in old_texts if each in new_texts):
        one, other = old_texts[argument], new_texts[argument]
        for member in dict.fromkeys((*one, *other)):
            if member not in ("name", "required") and one.get(member) != other.get(member):
                words = f"the {show_line(member, NAME)} of argument {show_line(argument, NAME)} changed"
                field = f"arguments.{argument}.{member}"
                yield SchemaChange(REVIEW, "words", field, words, one.get(member), other.get(member))


def _described(arguments: Any) -> dict[str, Mapping[str, Any]]:
    return {each["name"]: each for each in dicts_in(arguments) if isinstance(each.get("name"), str)}


_COMMON: Final[Mapping[str, _MemberChanges]] = {
    "title": _text,
    "description": _text,
    "name": _text,
    "icons": _look,
    "size": _look,
    "_meta": _meta,
}
_OF_TOOLS: Final[Mapping[str, _MemberChanges]] = {
    "inputSchema": _input,
    "outputSchema": _output,
    "annotations": _annotations,
    "execution": _execution,
}


# As text.


def grouped(findings: Iterable[SurfaceFinding]) -> Iterator[tuple[str, Sequence[SurfaceFinding]]]:
    """The findings of each item with its title, those of the server first, then by their worst; worst first in each."""
    groups: dict[tuple[str, str], list[SurfaceFinding]] = {}
    for each in findings:
        groups.setdefault((each.kind.value if each.kind else "", each.item), []).append(each)

    def place(group: tuple[tuple[str, str], list[SurfaceFinding]]) -> tuple[bool, int]:
        (kind, _), members = group
        return kind != "", min(each.severity.rank for each in members)

    for (kind, item), members in sorted(groups.items(), key=place):
        title = f"{kind.removesuffix('s')} {show_line(item, NAME)}" if kind else SERVER
        yield title, sorted(members, key=lambda each: each.severity.rank)


def counted(findings: Iterable[SurfaceFinding]) -> str:
    """The number of each severity in words, such as ``1 breaking, 2 for review``; empty without a finding."""
    found = [each.severity for each in findings]
    words = {BREAKING: "breaking", REVIEW: "for review", NOTE: "to note"}
    return ", ".join(f"{found.count(each)} {words[each]}" for each in ChangeSeverity if each in found)


def findings_text(findings: Iterable[SurfaceFinding]) -> str:
    """The findings, safe to show, grouped by item; many items that are gone, or new, share a line."""
    found, many = list(findings), dict[tuple[CatalogKind, str], list[SurfaceFinding]]()
    for each in found:
        if each.kind and each.rule in ("item-removed", "item-added") and "; it looks like " not in each.words:
            many.setdefault((each.kind, each.rule), []).append(each)
    together = {key: members for key, members in many.items() if len(members) >= SEVERAL}
    apart = {id(each) for members in together.values() for each in members}
    groups = [(title, [*_member_lines(members)]) for title, members in grouped(x for x in found if id(x) not in apart)]
    at = 1 if groups and groups[0][0] == SERVER else 0
    groups[at:at] = [(kind.value, [_together_line(members)]) for (kind, _), members in together.items()]
    return "".join(f"{line}\n" for title, lines in groups for line in (title, *lines))


def _member_lines(members: Iterable[SurfaceFinding]) -> Iterator[str]:
    for each in members:
        words = each.words.removeprefix(f"{show_line(each.item, NAME)}: ")  # the title has the name
        yield f"  {each.severity.value:8}  {words}"
        if each.rule == "words" and each.severity is not NOTE:
            values = (("before", each.before), ("now", each.after))
            yield from (f"{'':12}{name:8}{show_line(text, TEXT)}" for name, text in values if isinstance(text, str))


def _together_line(members: Sequence[SurfaceFinding]) -> str:
    names = [show_line(each.item, NAME) for each in members]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    how = "gone" if members[0].rule == "item-removed" else "new"
    return f"  {members[0].severity.value:8}  {len(names)} are {how}: {', '.join(names[:NAMED])}{more}"


def masked(finding: SurfaceFinding, mask: Mask) -> SurfaceFinding:
    """The finding without secrets that a server wrote into its definitions."""
    return replace(
        finding,
        item=mask(finding.item),
        field=mask(finding.field),
        words=mask(finding.words),
        before=masked_value(finding.before, mask),
        after=masked_value(finding.after, mask),
    )
