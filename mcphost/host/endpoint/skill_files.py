"""The files of one server's skills, each with why an agent does not get it.

Specification: ext-skills skills (skill URIs).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mcphost.errors import InvalidResult
from mcphost.protocol.models.skills import Skill, normal_uri
from mcphost.protocol.skill_uris import SKILL_FILE, SkillUri, read_skill_uri


class JudgedSkillFiles:
    """Judges URIs by the skills they belong to: one that lists the file, else the innermost folder.

    Each skill comes with why it is withheld, as a clause; empty where it is not, None where it must not be known.
    """

    def __init__(self, judged: Iterable[tuple[Skill, str | None]] = ()) -> None:
        self._files: dict[str, str | None] = {}
        self._folders: dict[str, str | None] = {}
        self._schemes: dict[str, str | None] = {}
        """Of withheld skills."""
        for skill, why in judged:
            for uri in (skill.key, *(normal_uri(file.uri) for file in skill.files)):
                self._files[uri] = "" if self._files.get(uri) == "" else why
            if skill.address is not None:
                self._folders[skill.address.folder_text] = why
            if why != "":
                self._schemes[skill.uri.partition(":")[0].lower()] = why

    def why(self, uri: str) -> str | None:
        """Why this URI must not be read, as `Exposure` has it; empty if it may be."""
        if not self._schemes:
            return ""
        try:
            address = read_skill_uri(re.split(r"[?#]", uri, maxsplit=1)[0])
        except InvalidResult:  # as its server reads it, it may lead into any folder
            return self._schemes.get(uri.partition(":")[0].lower(), "")
        if address.text in self._files:
            return self._files[address.text]
        for count in range(len(address.segments), 0, -1):
            folder = SkillUri(address.scheme, address.authority, (*address.segments[: count - 1], "")).folder_text
            if folder in self._folders:
                return self._folders[folder]
        return ""

    def why_folder(self, uri: str) -> str | None:
        """The same for a folder, or anything in one."""
        return self.why(f"{uri.rstrip('/')}/{SKILL_FILE}")
