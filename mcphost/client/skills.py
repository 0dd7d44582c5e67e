"""Skills of one server: lists them, gets one, and reads a folder; which may be used is not decided here.

Specification: ext-skills skills (capability negotiation, listing skills, getting a skill, directory reads).
"""

from __future__ import annotations

from typing import NamedTuple

from mcphost.client.cache import GET_SKILL
from mcphost.client.paging import ListedItems
from mcphost.client.requester import Requester
from mcphost.errors import InvalidResult
from mcphost.json_values import as_dict
from mcphost.protocol.lifecycle.revisions import missing_capability
from mcphost.protocol.models.freshness import Freshness
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.skill_uris import same_skill_uri

LIST_SKILLS = "skills/list"
READ_DIRECTORY = "resources/directory/read"


class FetchedSkill(NamedTuple):
    """A skill, and how fresh its entry is."""

    skill: Skill
    freshness: Freshness


class Skills:
    """The skills of one server. Every method raises as `mcphost.client.requester.Requester.request` does."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    @property
    def offered(self) -> bool:
        """True if the server declares the extension. Raises ServerNotReady."""
        return self._serves(LIST_SKILLS)

    @property
    def directory_read(self) -> bool:
        """True if the server lists the folders of skills. Raises ServerNotReady."""
        return self._serves(READ_DIRECTORY)

    async def list(self, *, again: bool = False) -> ListedItems[Skill]:
        """List the skills; the list may be empty or partial, and proves nothing about others."""
        return await self._requester.read_list(LIST_SKILLS, "skills", Skill.read, again=again)

    async def get(self, uri: str, *, again: bool = True) -> FetchedSkill:
        """Get the entry of the skill whose SKILL.md has this URI, listed or not; ``again``: not from the cache.

        Raises ServerError with -32602 for an unknown skill, and InvalidResult where the answer is about another.
        """
        found = await self._requester.fetch(GET_SKILL, {"uri": uri}, again=again)
        given = found.result.get("skill")
        if not isinstance(given, dict):
            raise InvalidResult(f"the answer to {GET_SKILL} has no skill")
        skill = Skill.read(given)
        if skill.uri != uri and not same_skill_uri(skill.uri, uri):
            raise InvalidResult(f"the answer to {GET_SKILL} is about another skill, {skill.uri[:120]!r}")
        self._requester.remark(*(f"{GET_SKILL}: {remark}" for remark in skill.remarks))
        return FetchedSkill(skill, found.freshness)

    def _serves(self, method: str) -> bool:
        session = self._requester.open_session
        return missing_capability(method, as_dict(session.server.capabilities), session.revision) is None
