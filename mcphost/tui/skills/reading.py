"""A skill as it is read: what its entry says, and a file of it once it is verified."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mcphost.errors import SkillRefused
from mcphost.host.catalog import CatalogSkill
from mcphost.host.consent.skill_approvals import FileChange, SkillState
from mcphost.host.skills.service import SkillStatus
from mcphost.host.skills.verification import VerifiedFile
from mcphost.json_values import as_dict
from mcphost.protocol.display import hidden_in, show, show_line, show_name, size_text
from mcphost.protocol.models.content import EmbeddedResource, ResourceContents
from mcphost.protocol.models.skills import Skill
from mcphost.protocol.skill_text import FrontmatterDifference, split_frontmatter
from mcphost.tui.consent.call_rows import when_text
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.results.content import Block, describe
from mcphost.tui.results.reading_pane import PaneReading
from mcphost.tui.skills.list import STATE_MARKS

FIELDS: Final = 200
"""Fields of a frontmatter that are listed."""

VALUE: Final = 2_000
"""Characters of a value."""


def described(entry: CatalogSkill, facts: tuple[Fact, ...]) -> PaneReading:
    """The entry as it is listed: nothing is read for it."""
    blocks = (frontmatter_block(entry.skill),)
    return PaneReading(entry.server, entry.skill.uri, blocks, facts=facts, listed=True)


def with_file(server: str, file: VerifiedFile) -> PaneReading:
    """The content of a verified file, that of SKILL.md behind its frontmatter. Slow for a large one."""
    is_main = file.text is not None and file.uri == file.skill.uri
    frontmatter = (frontmatter_block(file.skill),) if is_main else ()
    blocks = (*frontmatter, _content_block(file, is_main=is_main))
    return PaneReading(server, file.uri, blocks, size=len(file.content), facts=tuple(_file_facts(file)))


def state_facts(skill: Skill, status: SkillStatus) -> Iterator[Fact]:
    """The state of the skill with its reason, and what to beware of."""
    mark, style = STATE_MARKS[status.kind]
    yield fact("state", f"{mark} {show_line(_state_words(status), 500)}", style)
    yield fact("uri", show_line(skill.uri, 500))
    for finding in skill.findings:
        if not finding.refuses or status.kind is not SkillState.REFUSED:
            yield fact("beware", show_line(finding.words, 300), "$text-warning")
    if hidden := hidden_in(skill.frontmatter):
        yield fact("beware", _invisible(hidden, "its frontmatter"), "bold $text-error")


def _state_words(status: SkillStatus) -> str:
    approval = status.approval
    if status.kind is SkillState.APPROVED and approval.since is not None:
        return f"{status.words}, {approval.lifetime.words}, {when_text(approval.since)}"
    if status.kind is SkillState.CHANGED and approval.since is not None:
        return f"{status.words}, since you approved it {when_text(approval.since)}"
    return status.words


def frontmatter_block(skill: Skill) -> Block:
    """The fields of the entry's frontmatter, each name as a JSON string."""
    fields = [*_fields(as_dict(skill.frontmatter))]
    more = [("", f"… {len(fields) - FIELDS:,} more fields: d shows the entry")] if len(fields) > FIELDS else []
    return Block("fields", "frontmatter", None, (*fields[:FIELDS], *more))


def _fields(frontmatter: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in frontmatter.items():
        path = f"{before}{show_line(name, 40)}"
        if isinstance(value, dict) and value and not before:
            yield from _fields(value, f"{path}.")
        else:
            yield path, show(value, limit=VALUE) if isinstance(value, str) else show_name(value, VALUE)


def _content_block(file: VerifiedFile, *, is_main: bool) -> Block:
    if file.text is None:
        blob = base64.b64encode(file.content).decode()
        contents = ResourceContents(uri=file.uri, mime_type=file.mime_type, blob=blob)
    else:
        text = split_frontmatter(file.text)[1] if is_main else file.text
        kind = file.mime_type or ("text/markdown" if is_main else None)
        contents = ResourceContents(uri=file.uri, mime_type=kind, text=text)
    block = describe(EmbeddedResource(type="resource", resource=contents))
    title = filter(None, (show_line(file.path, 80), show_line(file.mime_type or "", 60), size_text(len(file.content))))
    return replace(block, title=" · ".join(title))


def _file_facts(file: VerifiedFile) -> Iterator[Fact]:
    path, size = show_line(file.path, 120), size_text(len(file.content))
    if file.vouched:
        parts = "size, digest and frontmatter" if file.uri == file.skill.uri else "size and digest"
        words = f"{path}, {size}: {parts} are as listed"
        yield fact("verified", f"{file.checked_at:%H:%M} · {words}", "$text-success")
    else:
        yield fact("not verified", f"{path}, {size}: its server vouches for no file", "$text-warning")
    if file.text is not None and (hidden := hidden_in(file.text)):
        yield fact("beware", _invisible(hidden, path), "bold $text-error")


def refusal_blocks(error: SkillRefused) -> tuple[Block, ...] | None:
    """The fields or files that differ, each as the entry has it and as the server has it; None without any."""
    rows = tuple(row for each in error.differences for row in _difference(each))
    return (Block("fields", "what differs", None, rows),) if rows else None


def _difference(difference: FileChange | FrontmatterDifference) -> Iterator[tuple[str, str]]:
    if isinstance(difference, FileChange):
        yield show_line(difference.path, 120), show_line(difference.words, 200)
    else:
        name, absent = show_line(difference.field, 40), "(absent)"
        yield name, f"entry:    {absent if difference.listed is None else show_line(difference.listed, 300)}"
        yield "", f"SKILL.md: {absent if difference.served is None else show_line(difference.served, 300)}"


def _invisible(count: int, where: str) -> str:
    characters = "1 invisible character" if count == 1 else f"{count} invisible characters"
    return f"{where} holds {characters}, marked ⟨U+…⟩"
