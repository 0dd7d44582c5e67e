"""A stage with a server that has skills, and skills that no server listed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcphost.config import Config
from mcphost.host.catalog import CatalogSkill
from mcphost.host.skills.service import LoadedSkill
from mcphost.protocol.models.skills import Skill
from mcphost.tui.consent.skill import SkillScreen
from mcphost.tui.skills.pane import SkillsPane
from tests.tui.stage import Stage, server, servers

TIDES, TABLE = "skill://tides/SKILL.md", "skill://tides/references/table.csv"

TAMPERED = "day,high,low\n1,4.2,0.8\n2,4.4,0.7\n"
"""The table of the skill with one other digit."""


def skills(*arguments: object, **more: Any) -> Config:
    return servers(harbour=server("skills.py", *arguments, **more))


def reads(record: Path) -> list[str]:
    """The URIs that a server with ``--record`` was asked to read."""
    messages = [json.loads(line) for line in record.read_text().splitlines() if line.startswith("{")]
    return [each["params"]["uri"] for each in messages if each.get("method") == "resources/read"]


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def skill(path: str = "tides", files: Mapping[str, bytes] | str | None = None, **frontmatter: object) -> Skill:
    """A sound skill with these files beside its SKILL.md, or with something else in place of its list of files."""
    name, root = path.rpartition("/")[2], f"skill://{path}"
    listed: object = files
    if not isinstance(files, str):
        contents = {"SKILL.md": b"# It\n", **(files or {})}
        listed = [
            {"uri": f"{root}/{each}", "digest": digest(content), "size": len(content)}
            for each, content in contents.items()
        ]
    fields = {"name": name, "description": f"Use it for {name}.", **frontmatter}
    return Skill.read({"uri": f"{root}/SKILL.md", "frontmatter": fields, "resources": listed})


def entries(*listed: Skill, server: str = "harbour") -> list[CatalogSkill]:
    return [CatalogSkill(server, each) for each in listed]


def pane(stage: Stage) -> SkillsPane:
    assert stage.app.main.skills is not None
    return stage.app.main.skills


async def go(stage: Stage) -> None:
    """Go to the skills, once a server has listed some."""
    await stage.until(lambda app: app.main.has_skills)
    await stage.press("I")
    await stage.until(lambda app: app.main.skills and app.main.skills.list.rows.has_focus and pane(stage).list.item)


async def edit(stage: Stage, *, published: bool) -> None:
    """Let the server serve the tampered table, and list it if that is published."""
    call = stage.call("edit", {"uri": TABLE, "text": TAMPERED, "published": published, "announce": published})
    await stage.call_dialog()
    await stage.press("space", "y")
    await stage.ended(call)


def load(stage: Stage) -> asyncio.Task[LoadedSkill]:
    """Load the skill as the chat does."""
    return asyncio.create_task(stage.host.skills.load("harbour", TIDES, origin="you"))


async def asked(stage: Stage) -> SkillScreen:
    await stage.until(lambda app: isinstance(app.screen, SkillScreen) and app.screen.shown_for() >= 0)
    assert isinstance(stage.app.screen, SkillScreen)
    return stage.app.screen
