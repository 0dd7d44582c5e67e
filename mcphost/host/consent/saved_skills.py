"""The approvals of skills in the approvals file: its tables ``[[skill]]``, and what several processes write there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from mcphost.host.consent.approvals import Lifetime
from mcphost.host.consent.skill_approvals import ApprovedSkill, by_skill
from mcphost.json_values import canonical, dicts_in
from mcphost.protocol.models.skills import SkillFile


def skills_from_tables(tables: object) -> list[ApprovedSkill]:
    """Read the tables; one that cannot be read is left out, so that its skill is asked about."""
    read = (_from_table(each) for each in dicts_in(tables))
    return [each for each in read if each is not None]


def skill_tables(approved: Iterable[ApprovedSkill]) -> list[dict[str, Any]]:
    return [_as_table(each) for each in approved]


def merged_skills(
    there: Sequence[ApprovedSkill], before: Sequence[ApprovedSkill], after: Sequence[ApprovedSkill]
) -> list[ApprovedSkill]:
    """The saved skills with only that changed which differs between ``before`` and ``after``."""
    kept, old, new = (by_skill(approved) for approved in (there, before, after))
    for key in old.keys() | new.keys():
        was, now, theirs = old.get(key), new.get(key), kept.get(key)
        if was == now:
            continue
        if now is None:
            kept.pop(key, None)
        elif theirs is None or theirs.fingerprint != now.fingerprint or _answered(was, now):
            kept[key] = now
    return list(kept.values())


def _answered(before: ApprovedSkill | None, now: ApprovedSkill) -> bool:
    """True if an answer for good was given or taken back here; a skill that was merely seen takes none back."""
    return now.lifetime is Lifetime.ALWAYS or (before is not None and before.lifetime is Lifetime.ALWAYS)


def _as_table(skill: ApprovedSkill) -> dict[str, Any]:
    return {
        "server": skill.server,
        "uri": skill.uri,
        "lifetime": skill.lifetime.value,
        "since": skill.since,
        "identity": skill.identity,
        "files": [{"uri": each.uri, "digest": each.digest, "size": each.size} for each in skill.files],
        "frontmatter": canonical(skill.frontmatter),
    }


def _from_table(table: Mapping[str, Any]) -> ApprovedSkill | None:
    match table:
        case {
            "server": str(server),
            "uri": str(uri),
            "lifetime": "once" | "always" as lifetime,
            "since": datetime() as since,
            "identity": str(identity),
            "files": list(listed),
            "frontmatter": str(text),
        }:
            files = tuple(file for each in listed if (file := _file(each)) is not None)
            try:
                frontmatter = json.loads(text)
            except (ValueError, RecursionError):
                return None
            if not isinstance(frontmatter, dict) or len(files) < len(listed):
                return None
            return ApprovedSkill(server, uri, identity, files, frontmatter, since, Lifetime(lifetime))
    return None


def _file(table: object) -> SkillFile | None:
    match table:
        case {"uri": str(uri), "digest": str(digest), "size": int(size)}:
            return SkillFile(uri, digest, size)
    return None
