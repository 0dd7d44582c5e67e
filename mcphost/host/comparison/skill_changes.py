"""The changes of a skill between two surfaces: its files by their digests, and its frontmatter. Pure; no file is read.

Specification: ext-skills skills (Listing Skills, Resources).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcphost.host.comparison.schema_changes import SchemaChange
from mcphost.host.comparison.severity import BREAKING, NOTE, REVIEW
from mcphost.host.comparison.surface import FRONTMATTER, SurfaceItem, SurfaceItems
from mcphost.json_values import as_dict
from mcphost.protocol.display import show_line

NAME: Final = 80
"""Characters of a path or a field in a sentence."""

ALIKE: Final = 0.8
"""The share of equal files from which a new skill looks like one that is gone."""


def skill_changes(before: SurfaceItem, after: SurfaceItem) -> list[SchemaChange]:
    """The changes of a skill whose digest is another."""
    return [*_file_changes(before.files, after.files), *_field_changes(before, after)]


def moved_skills(gone: SurfaceItems, new: SurfaceItems) -> dict[str, str]:
    """The skills that are gone, by the URIs of new ones with the same files or the same frontmatter."""
    found: dict[str, str] = {}
    for uri, item in new.items():
        best = max(((_likeness(item, old), old.name) for old in gone.values()), default=(0.0, ""))
        if best[0] >= ALIKE:
            found[uri] = best[1]
    return found


def _likeness(one: SurfaceItem, other: SurfaceItem) -> float:
    """From 0 to 1; a renamed skill has another SKILL.md, since its name is in there."""
    fields = [
        {
            name: each
            for name, each in item.members.items()
            if name.startswith(FRONTMATTER) and name != f"{FRONTMATTER}name"
        }
        for item in (one, other)
    ]
    if fields[0] == fields[1] and fields[0]:
        return 1.0
    files = [{*(item.files or {}).items()} for item in (one, other)]
    return len(files[0] & files[1]) / max(1, *map(len, files))


def _file_changes(before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> Iterator[SchemaChange]:
    if before is None or after is None:
        if before is not None:
            words = "it no longer gives the digests of its files, by which they are verified"
            yield SchemaChange(BREAKING, "digests", "resources", words, [*before], None)
        elif after is not None:
            yield SchemaChange(NOTE, "digests", "resources", "it now gives the digests of its files", None, [*after])
        return
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            how = "is new" if old is None else "is gone" if new is None else "changed"
            words = f"its file {show_line(path, NAME)} {how}"
            yield SchemaChange(REVIEW, "file", f"resources.{path}", words, old, new)


def _field_changes(before: SurfaceItem, after: SurfaceItem) -> Iterator[SchemaChange]:
    for member in dict.fromkeys((*before.members, *after.members)):
        if not member.startswith(FRONTMATTER) or before.members.get(member) == after.members.get(member):
            continue
        field = member.removeprefix(FRONTMATTER)
        how = "is new" if member not in before.members else "is gone" if member not in after.members else "changed"
        words = f"the {show_line(field, NAME)} in its frontmatter {how}"
        yield SchemaChange(REVIEW, "words", member, words, _value(before, field), _value(after, field))


def _value(item: SurfaceItem, field: str) -> Any:
    return None if item.definition is None else as_dict(item.definition.get("frontmatter")).get(field)
