# mypy: ignore-errors
# FastMCP is installed beside the tests, not among them (tests/pypi.py), so its types are not known here.
"""A FastMCP server with the skills of a folder, which it reads again at each request.

SKILLS=FOLDER fastmcp run tests/servers/fastmcp_skills.py --no-banner [--transport http --port PORT]
"""

from __future__ import annotations

import os

from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension

mcp = FastMCP("fastmcp", version="1.0")
skills = SkillsDirectoryProvider(os.environ["SKILLS"], experimental_skills=True)
mcp.add_provider(skills)
mcp.add_extension(SkillsExtension(providers=[skills]))
