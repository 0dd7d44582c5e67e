"""The user's approvals of skills, each bound to every file of the skill as its server listed it.

Specification: ext-skills skills (security considerations: content-bound approval).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple

from mcphost.host.consent.approvals import ANY, Approval, Lifetime
from mcphost.host.consent.definition_diff import Difference, differences
from mcphost.json_values import as_dict, canonical
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.models.skills import Skill, SkillFile, normal_uri

KEPT_CHARACTERS: Final = 256 << 10
"""Characters of a skill's files and frontmatter that an approval for good keeps."""

Manifest = Mapping[str, SkillFile]
"""The files of a skill by URI in its normal form."""


class FileChange(NamedTuple):
    """A file that was added, removed or rotated since the approval; None where it is absent."""

    path: str
    before: SkillFile | None
    after: SkillFile | None

    @property
    def words(self) -> str:
        """Such as ``added, 120 bytes``; not safe to show with the path."""
        if self.before is None or self.after is None:
            held, how = (self.after, "added") if self.before is None else (self.before, "removed")
            return f"{how}, {0 if held is None else held.size:,} bytes"
        old, new = (each.digest.removeprefix("sha256:")[:12] for each in (self.before, self.after))
        return f"rotated, {old}… → {new}…, {self.before.size:,} → {self.after.size:,} bytes"


@dataclass(frozen=True, slots=True)
class SkillDifferences:
    """All that differs from the approved skill."""

    files: Sequence[FileChange] = ()
    frontmatter: Sequence[Difference] = ()
    command: Sequence[Difference] = ()
    """The server's command or address, where that is another."""
    text: tuple[str, str] | None = None
    """SKILL.md as it was approved and as it is, where both were read in this run."""

    def __bool__(self) -> bool:
        return bool(self.files or self.frontmatter or self.command)

    @property
    def words(self) -> str:
        """A clause that counts them, such as ``1 file rotated, its frontmatter changed``."""
        kinds = {"added": 0, "removed": 0, "rotated": 0}
        for each in self.files:
            kinds[each.words.partition(",")[0]] += 1
        counts = [f"{count} {'file' if count == 1 else 'files'} {kind}" for kind, count in kinds.items() if count]
        others = ["its frontmatter changed"] * bool(self.frontmatter) + ["its server's command changed"] * bool(
            self.command
        )
        return ", ".join([*counts, *others])


class SkillState(Enum):
    """State of a listed skill by the user's approvals; the value is the word on screen."""

    NEW = "new"
    APPROVED = "approved"
    CHANGED = "changed"
    DYNAMIC = "dynamic"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class SkillApproval:
    """Compares a skill with what the user allowed earlier."""

    state: SkillState
    since: datetime | None = None
    lifetime: Lifetime = Lifetime.ONCE
    differences: SkillDifferences = field(default_factory=SkillDifferences)
    lapsed: bool = False
    """True if an approval for good is too old to hold."""

    @property
    def remembered(self) -> str:
        """The answer by which it is loaded without asking, in words; empty when it is not."""
        if self.state is not SkillState.APPROVED or self.since is None:
            return ""
        return f"allowed by you, {self.lifetime.words}, on {self.since:%d %b %Y %H:%M}"


@dataclass(frozen=True)
class ApprovedSkill:
    """A skill as it was when the user allowed it: what to compare with, and how long the answer holds."""

    server: str
    uri: str
    """In its normal form."""
    identity: str
    """Identity of the program, as shown."""
    files: tuple[SkillFile, ...]
    """Each URI in its normal form, sorted by it."""
    frontmatter: Mapping[str, Any]
    since: datetime
    lifetime: Lifetime = Lifetime.ONCE

    @classmethod
    def of(
        cls, server: str, identity: str, skill: Skill, since: datetime, lifetime: Lifetime = Lifetime.ONCE
    ) -> ApprovedSkill:
        files = sorted((replace(each, uri=normal_uri(each.uri)) for each in skill.files), key=lambda each: each.uri)
        return cls(server, skill.key, identity, tuple(files), as_dict(skill.frontmatter), since, lifetime)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.identity, self.uri, {each.uri: each.digest for each in self.files})

    @property
    def key(self) -> tuple[str, str]:
        return self.server, self.uri

    @property
    def grant(self) -> Approval | None:
        """The approval as it is listed; None where each loading is asked about."""
        if self.lifetime is Lifetime.ONCE:
            return None
        return Approval(self.server, "", ANY, self.since, self.lifetime, skill=self.uri, files=len(self.files))

    @property
    def saved_part(self) -> ApprovedSkill:
        """An approval for this run is saved as a skill that was seen."""
        return self if self.lifetime is Lifetime.ALWAYS else replace(self, lifetime=Lifetime.ONCE)


def fingerprint(identity: str, uri: str, manifest: Mapping[str, str]) -> str:
    """Equal exactly when command, skill and each file's URI and digest are."""
    return hashlib.sha256(canonical([identity, uri, sorted(manifest.items())]).encode()).hexdigest()


def why_not_always(skill: Skill) -> str:
    """Why a skill cannot be allowed for good, as a clause; empty where it can."""
    if skill.dynamic:
        return "its server vouches for no file, so that a change would not be noticed"
    if len(canonical(skill.definition())) > KEPT_CHARACTERS:
        return "its entry is too long to be kept"
    return ""


class SkillApprovals:
    """All approvals of skills, by server and URI."""

    def __init__(self, approved: Iterable[ApprovedSkill] = ()) -> None:
        self._approved = by_skill(approved)

    def status_of(self, server: str, identity: str, skill: Skill, oldest: datetime | None = None) -> SkillApproval:
        """Compare a skill with what the user allowed; an approval for good that is older than ``oldest`` lapsed."""
        if skill.refusal:
            return SkillApproval(SkillState.REFUSED)
        if skill.dynamic:
            return SkillApproval(SkillState.DYNAMIC)
        known = self._approved.get((server, skill.key))
        if known is None:
            return SkillApproval(SkillState.NEW)
        if known.fingerprint != fingerprint(identity, skill.key, skill.manifest):
            changes = skill_differences(known, ApprovedSkill.of(server, identity, skill, known.since))
            return SkillApproval(SkillState.CHANGED, known.since, known.lifetime, changes)
        if known.lifetime.lapsed(known.since, oldest):
            return SkillApproval(SkillState.NEW, known.since, lapsed=True)
        state = SkillState.NEW if known.lifetime is Lifetime.ONCE else SkillState.APPROVED
        return SkillApproval(state, known.since, known.lifetime)

    def allow(self, server: str, identity: str, skill: Skill, lifetime: Lifetime, now: datetime) -> bool:
        """Remember that the user allowed this skill as it is. True when that is something new.

        A dynamic skill is never remembered; a longer-lived approval of the same files outlives that of one loading.
        """
        if skill.dynamic or skill.refusal:
            return False
        fresh = ApprovedSkill.of(server, identity, skill, now, lifetime)
        if lifetime is Lifetime.ALWAYS and why_not_always(skill):
            fresh = replace(fresh, lifetime=Lifetime.SESSION)
        known = self._approved.get(fresh.key)
        if known is not None and known.fingerprint == fresh.fingerprint and _as_long(known.lifetime, fresh.lifetime):
            return False
        self._approved[fresh.key] = fresh
        return True

    def noticed(self, server: str, identity: str, skill: Skill) -> bool:
        """Revoke the approval of a skill whose server now lists other files. True when one was revoked.

        The skill stays known as it was, to show what changed. Another command or address revokes nothing: each has
        its own answer.
        """
        known = self._approved.get((server, skill.key))
        if known is None or known.lifetime is Lifetime.ONCE or known.identity != identity:
            return False
        sound = not (skill.refusal or skill.dynamic)
        if sound and known.fingerprint == fingerprint(identity, skill.key, skill.manifest):
            return False
        self._approved[known.key] = replace(known, lifetime=Lifetime.ONCE)
        return True

    def revoke(self, server: str, uri: str) -> None:
        """Take back an approval, and forget the approved skill."""
        self._approved.pop((server, normal_uri(uri)), None)

    def forget(self, server: str) -> int:
        """Forget every skill of this server; how many there were."""
        keys = [key for key in self._approved if key[0] == server]
        for key in keys:
            del self._approved[key]
        return len(keys)

    def of_server(self, server: str) -> list[ApprovedSkill]:
        return [each for each in self._approved.values() if each.server == server]

    def grants(self, oldest: datetime | None = None) -> Iterator[Approval]:
        """The skills that are loaded without asking, without approvals for good that are older than ``oldest``."""
        for each in self._approved.values():
            if (grant := each.grant) is not None and not grant.lifetime.lapsed(grant.since, oldest):
                yield grant

    def saved_part(self) -> Iterator[ApprovedSkill]:
        return (each.saved_part for each in self._approved.values())

    def replace_saved_part(self, saved: Iterable[ApprovedSkill]) -> None:
        """Replace the saved approvals. Those for this run are kept, while their skill is the same."""
        before, self._approved = self._approved, by_skill(saved)
        for key, each in before.items():
            if each.lifetime is not Lifetime.SESSION:
                continue
            there = self._approved.get(key)
            if there is None or (there.fingerprint == each.fingerprint and there.lifetime is Lifetime.ONCE):
                self._approved[key] = each


def by_skill(approved: Iterable[ApprovedSkill]) -> dict[tuple[str, str], ApprovedSkill]:
    return {each.key: each for each in approved}


def skill_differences(before: ApprovedSkill, after: ApprovedSkill) -> SkillDifferences:
    """The changes between two entries of a skill: of its files, its frontmatter and its server's program."""
    old, new = ({file.uri: file for file in each.files} for each in (before, after))
    folder = before.uri.rpartition("/")[0]
    uris = [*new, *(uri for uri in old if uri not in new)]
    changes = (FileChange(uri.removeprefix(f"{folder}/"), old.get(uri), new.get(uri)) for uri in uris)
    return SkillDifferences(
        [each for each in changes if each.before != each.after],
        differences(before.frontmatter, after.frontmatter),
        [] if before.identity == after.identity else [Difference("command", before.identity, after.identity)],
    )


def _as_long(known: Lifetime, asked: Lifetime) -> bool:
    order = list(Lifetime)
    return order.index(known) > order.index(asked) or known is asked is not Lifetime.ALWAYS
