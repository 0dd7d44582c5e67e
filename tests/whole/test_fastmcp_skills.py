"""Skills of FastMCP's server: listed, read, verified, changed on its disk and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcphost.errors import SkillRefused
from mcphost.host.consent.questions import Answer, Question
from tests.host.conftest import ScriptedApprover
from tests.whole.peers import fastmcp_runs, meeting, running

pytestmark = pytest.mark.timeout(400)  # a first run installs

MAIN = """\
---
name: tides
description: "Works out the depth of water: use it when a ship wants to berth."
reviewed: yes
---

# Tides

See [the table](references/table.csv).
"""


class Consenting(ScriptedApprover):
    async def ask(self, question: Question) -> Answer:
        return Answer(allow=True)


def write_skill(folder: Path) -> None:
    (folder / "tides" / "references").mkdir(parents=True)
    (folder / "tides" / "SKILL.md").write_text(MAIN)
    (folder / "tides" / "references" / "table.csv").write_text("day,high\n1,4.2\n")


@pytest.mark.requirement("SKILL-04", "SKILL-05", "SKILL-09", "SKILL-12")
async def test_a_skill_that_changes_on_the_servers_disk_is_refused(tmp_path: Path) -> None:
    write_skill(tmp_path)
    table = tmp_path / "tides" / "references" / "table.csv"
    with running(lambda transport, port: fastmcp_runs("fastmcp_skills.py", transport, port), "stdio") as entry:
        entry |= {"protocol": "modern", "env": {"SKILLS": str(tmp_path)}}
        async with meeting(entry, Consenting()) as host:
            skill = await host.skills.find("e", "tides")
            assert [skill.path_of(file.uri) for file in skill.files] == ["SKILL.md", "references/table.csv"]
            assert all([(await host.skills.read("e", skill.uri, file.uri)).vouched for file in skill.files])
            loaded = await host.skills.load("e", skill.uri)  # it lists `yes` as true, as YAML 1.1 reads it
            assert loaded.text == MAIN
            table.write_text(table.read_text().replace("4.2", "4.3"))
            with pytest.raises(SkillRefused) as refused:
                await loaded.window.read("references/table.csv", origin="model")
            assert refused.value.finding == "changed"
            again = await host.skills.read("e", skill.uri, "references/table.csv")
            assert again.text == "day,high\n1,4.3\n"
