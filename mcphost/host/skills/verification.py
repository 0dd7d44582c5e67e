"""Checks the bytes of a skill's file against its entry: size, digest, and the frontmatter of a SKILL.md.

Nothing here waits; large files belong on a thread.

Specification: ext-skills skills (verification on read, frontmatter verification).
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from mcphost.errors import InvalidResult, SkillRefused
from mcphost.json_values import as_dict, dicts_in
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_name
from mcphost.protocol.models.content import ResourceContents, items_of
from mcphost.protocol.models.skills import Skill, SkillFile
from mcphost.protocol.skill_text import differences, split_frontmatter
from mcphost.protocol.skill_uris import same_skill_uri


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """A file of a skill whose bytes are those of its entry."""

    skill: Skill
    uri: str
    path: str
    """Its path within the skill's folder."""
    content: bytes
    text: str | None
    """The content, where it is text in UTF-8."""
    mime_type: str | None
    checked_at: datetime
    vouched: bool = True
    """False for a file of a dynamic skill, for which its server vouches in no way."""


READING_SECONDS: Final = 10.0
"""Seconds for reading a frontmatter."""

BASE64_STEP: Final = 1 << 20
"""Characters of base64 that are decoded at once; a multiple of four."""

FIELDS_NAMED: Final = 5
"""Fields of a frontmatter that a refusal names."""


def check_entry(skill: Skill) -> None:
    """Raise SkillRefused if the entry of a skill is not sound."""
    for each in skill.findings:
        if each.refuses:
            raise SkillRefused(each.code, f"The skill {show_name(skill.label, 80)} must not be used. {each.words}")


def own_content(uri: str, result: Mapping[str, Any]) -> ResourceContents:
    """The one content of a ``resources/read`` result that is about this URI. Raises SkillRefused."""
    try:
        items = dicts_in(items_of(result, "contents", "resource", "uri", "text", "blob"))
        found = [each for each in items if _names(each, uri)]
        if len(found) != 1:
            raise InvalidResult(f"it has {'no content' if not found else f'{len(found)} contents'} of this URI")
        content = ResourceContents.read(found[0])
        if content.text is None and content.blob is None:
            raise InvalidResult("it has neither text nor blob")
    except InvalidResult as error:
        words = f"The server's answer for {show_name(uri)} cannot be used: {error}."
        raise SkillRefused("wrong-content", words) from None
    return content


def checked_bytes(path: str, file: SkillFile, content: ResourceContents) -> bytes:
    """The bytes of a file that are of the size and digest of its entry. Raises SkillRefused."""
    size = _size_of(content)
    if size == file.size:
        data = _bytes_of(path, content)
        size = len(data)
    if size != file.size:
        words = f"has {size:,} bytes; its entry says {file.size:,}"
        raise SkillRefused("wrong-size", f"The file {show_name(path)} {words}. Its content is not used.")
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if digest != file.digest:
        words = f"has the digest {_short(digest)}; its entry says {_short(file.digest)}"
        raise SkillRefused("wrong-digest", f"The file {show_name(path)} {words}. Its content is not used.")
    return data


def unchecked_bytes(path: str, content: ResourceContents, most: int) -> bytes:
    """The bytes of a file of a dynamic skill. Raises SkillRefused where they are more than a skill may have."""
    if _size_of(content) > most or len(data := _bytes_of(path, content)) > most:
        raise SkillRefused("too-large", f"The file {show_name(path)} has more than {most:,} bytes; none is used.")
    return data


def checked_text(skill: Skill, data: bytes) -> str:
    """The text of a SKILL.md whose frontmatter is the entry's, field by field. Raises SkillRefused."""
    until = time.monotonic() + READING_SECONDS
    try:
        text = data.decode()
        yaml, _ = split_frontmatter(text)
        found = differences(frontmatter_of(skill), yaml, lambda: time.monotonic() > until)
    except UnicodeDecodeError:
        raise SkillRefused("malformed-frontmatter", "SKILL.md is not text in UTF-8.") from None
    except InvalidResult as error:
        raise SkillRefused("malformed-frontmatter", str(error)) from None
    if found:
        named = ", ".join(show_name(each.field, 60) for each in found[:FIELDS_NAMED])
        more = f" and {len(found) - FIELDS_NAMED} more" if len(found) > FIELDS_NAMED else ""
        verb = "differs" if len(found) == 1 else "differ"
        words = f"The frontmatter of SKILL.md is not the one of its entry: {named}{more} {verb}."
        raise SkillRefused("frontmatter-mismatch", f"{words} The skill is not loaded.", found)
    return text


def frontmatter_of(skill: Skill) -> Mapping[str, Any]:
    return as_dict(skill.frontmatter)


def _size_of(content: ResourceContents) -> int:
    """The bytes of a content, of base64 by its length alone."""
    if content.blob is not None:
        return len(content.blob) // 4 * 3 - content.blob[-2:].count("=")
    return len((content.text or "").encode("utf-8", "surrogatepass"))


def _bytes_of(path: str, content: ResourceContents) -> bytes:
    """The bytes, of base64 in steps: one step holds the interpreter's lock."""
    if content.blob is None:
        return content.content()
    steps = range(0, len(content.blob), BASE64_STEP)
    try:
        return b"".join(base64.b64decode(content.blob[at : at + BASE64_STEP], validate=True) for at in steps)
    except ValueError:
        words = f"The content of {show_name(path)} cannot be read: the blob is not base64."
        raise SkillRefused("wrong-content", words) from None


def _names(content: Mapping[str, Any], uri: str) -> bool:
    named = content.get("uri")
    return isinstance(named, str) and (named == uri or same_skill_uri(named, uri))


def _short(digest: str) -> str:
    return f"{digest.removeprefix('sha256:')[:12]}…"
