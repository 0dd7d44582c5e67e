"""The acting window of a skill: as long as the skill is in a model's context, its files are read by the held entry.

Specification: ext-skills skills (the acting window).
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from mcphost.errors import InvalidResult, SkillRefused
from mcphost.protocol.display import show_name
from mcphost.protocol.skill_uris import SKILL_FILE, looks_like, read_skill_uri, resolve

if TYPE_CHECKING:
    from mcphost.host.skills.verification import VerifiedFile
    from mcphost.protocol.models.skills import Skill


class ReadsFile(Protocol):
    """`mcphost.host.skills.service.SkillService.read_file`."""

    async def __call__(self, server: str, skill: Skill, path: str = "", *, origin: str) -> VerifiedFile: ...


class ProblemOf(Protocol):
    """Returns why a held entry no longer holds; ``approved`` if that rests on a remembered approval."""

    def __call__(self, server: str, identity: str, skill: Skill, *, approved: bool) -> str: ...


class WindowBasis(Enum):
    """The consent that a window rests on."""

    ANSWER = auto()
    """The user's answer for this one time, which cannot be taken back."""
    APPROVAL = auto()
    """A remembered approval; the window ends with it."""
    EARLIER = auto()
    """An answer in an earlier run."""


class SkillWindow:
    """Reads the files of one entry, and of nothing else; whoever holds the model's context holds the window."""

    def __init__(
        self,
        read: ReadsFile,
        problem_of: ProblemOf,
        server: str,
        identity: str,
        skill: Skill,
        since: datetime,
        basis: WindowBasis,
    ) -> None:
        self._read, self._problem_of = read, problem_of
        self.server, self.identity, self.skill, self.since = server, identity, skill, since
        self.basis = basis
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why the entry no longer holds, as a sentence; empty while it does. Once it does not, it never does again."""
        if not self._problem:
            approved = self.basis is WindowBasis.APPROVAL
            self._problem = self._problem_of(self.server, self.identity, self.skill, approved=approved)
        return self._problem

    async def read(self, path: str, *, origin: str) -> VerifiedFile:
        """Read and verify a file of the entry, by its path in the skill's folder or its URI.

        Raises SkillRefused for a file that is not in the entry, that differs, or after the skill changed.
        """
        if self.problem:
            raise SkillRefused("changed", self.problem)
        if self.skill.dynamic and self._is_nested(path):
            words = f"{show_name(path)} is another skill, which needs its own approval; nothing was read."
            raise SkillRefused("unlisted-file", words)
        try:
            return await self._read(self.server, self.skill, path, origin=origin)
        except SkillRefused as refused:
            if refused.finding == "changed":
                self._problem = str(refused)
            raise

    def _is_nested(self, path: str) -> bool:
        """True if this is the SKILL.md of a skill within this one."""
        try:
            root = read_skill_uri(self.skill.uri)
            found = resolve(root, path)
        except InvalidResult:  # the reading says so
            return False
        return looks_like(found.segments[-1]) == looks_like(SKILL_FILE) and found != root
