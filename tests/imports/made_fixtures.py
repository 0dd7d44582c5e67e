"""Makes the fixtures of hosts whose programs can be had: ``python -m tests.imports.made_fixtures CASE…``.

Each program of npm runs in a home folder of its own, is told to add the same few servers, and what it wrote is kept in
``tests/imports/fixtures/CASE``. For the hosts that have no such program add-mcp writes their files.
``python -m tests.imports.made_fixtures --expected CASE…`` writes what mcphost makes of a fixture: read it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tomli_w

from mcphost.imports.found import FoundServer
from mcphost.imports.survey import read_host
from tests.npm import installed

FIXTURES: Final = Path(__file__).parent / "fixtures"
PROGRAMS: Final = {
    "add-mcp": "add-mcp@2.4.0",
    "claude": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "copilot": "@github/copilot@1.0.102",
    "gemini": "@google/gemini-cli@0.61.0",
    "opencode": "opencode-ai@1.18.33",
}
"""The package of each command; apart from each other, since some are hundreds of megabytes large."""
SMALL: Final = ("claude", "gemini")
"""Those that run in all tests."""
PROJECT: Final = "/home/ada/app"
"""Replaces in a fixture the folder in which the program ran."""

FILES: Final = ("npx", "-y", "@modelcontextprotocol/server-filesystem@2026.7.4", "/srv/files")
DOCS: Final = "https://docs.example.com/mcp"
OLD: Final = "https://old.example.com/sse"


@dataclass(frozen=True)
class Program:
    """The commands that make a program write its files."""

    commands: tuple[tuple[str, ...], ...]
    only: Mapping[str, tuple[str, ...]]
    """Files to keep, with the members of a JSON object that are kept of each; none: all."""


def _added(agent: str, variable: str, *, remote: bool = True) -> tuple[tuple[str, ...], ...]:
    """Commands of add-mcp; ``variable`` is how the host spells one called NAME."""
    write = ("-g", "-y", "-a", agent)
    token = variable.replace("NAME", "FILES_TOKEN")
    bearer = f"Authorization: Bearer {variable.replace('NAME', 'DOCS_TOKEN')}"
    local = (
        "add-mcp",
        FILES[2],
        *write,
        "-n",
        "files",
        "--args",
        FILES[3],
        "--env",
        f"TOKEN={token}",
        "--env",
        "MODE=ro",
    )
    if not remote:
        return (local,)
    web = ("add-mcp", DOCS, *write, "-n", "docs", "-t", "http", "-h", bearer, "--timeout", "120000", "--scopes", "read")
    return local, web, ("add-mcp", OLD, *write, "-n", "old", "-t", "sse")


def _by_add_mcp(agent: str, path: str, variable: str = "plain", *, remote: bool = True) -> Program:
    return Program(_added(agent, variable, remote=remote), {path: ()})


_CODE = ".config/Code/User"
CASES: Final[Mapping[str, Program]] = {
    "claude-code": Program(
        (
            ("claude", "mcp", "add-json", "-s", "user", "files",
             json.dumps({"type": "stdio", "command": FILES[0], "args": FILES[1:], "env": {"TOKEN": "${FILES_TOKEN}"}})),
            ("claude", "mcp", "add-json", "-s", "user", "docs",
             json.dumps({"type": "http", "url": "${DOCS_HOST:-https://docs.example.com}/mcp", "timeout": 120_000,
                         "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}, "headersHelper": "/opt/make-headers",
                         "oauth": {"clientId": "abc", "callbackPort": 8080}})),
            ("claude", "mcp", "add", "-s", "local", "-t", "sse", "old", OLD),
            ("claude", "mcp", "add", "-s", "project", "tool", "-e", "KEY=value", "--", "./tools/serve", "--verbose"),
        ),
        {".claude.json": ("firstStartVersion", "mcpServers", "projects"), "project/.mcp.json": ()},
    ),
    "codex": Program(
        (
            ("codex", "mcp", "add", "files", "--env", "MODE=ro", "--", *FILES),
            ("codex", "mcp", "add", "docs", "--url", DOCS, "--bearer-token-env-var", "DOCS_TOKEN"),
        ),
        {".codex/config.toml": ()},
    ),
    "gemini": Program(
        (
            ("gemini", "mcp", "add", "files", "npx", "-s", "user", "-e", "TOKEN=$FILES_TOKEN", "-e", "MODE=ro",
             "--timeout", "120000", "--include-tools", "read", "--include-tools", "list", "--trust", "--", *FILES[1:]),
            ("gemini", "mcp", "add", "docs", DOCS, "-s", "user", "-t", "http", "-H",
             "Authorization: Bearer ${DOCS_TOKEN}"),
            ("gemini", "mcp", "add", "old", OLD, "-s", "project", "-t", "sse"),
        ),
        {".gemini/settings.json": (), "project/.gemini/settings.json": ()},
    ),
    "copilot-cli": Program(
        (
            ("copilot", "mcp", "add", "files", "--env", "TOKEN=${FILES_TOKEN}", "--tools", "read,list", "--timeout",
             "120000", "--", *FILES),
            ("copilot", "mcp", "add", "--transport", "http", "docs", DOCS, "--header",
             "Authorization: Bearer ${DOCS_TOKEN}"),
            ("copilot", "mcp", "add", "--transport", "sse", "old", OLD),
        ),
        {".copilot/mcp-config.json": ()},
    ),
    "opencode": Program(
        (
            ("opencode", "mcp", "add", "files", "--env", "TOKEN={env:FILES_TOKEN}", "--", *FILES),
            ("opencode", "mcp", "add", "docs", "--url", DOCS, "--header", "Authorization=Bearer {env:DOCS_TOKEN}"),
        ),
        {".config/opencode/opencode.jsonc": (), ".config/opencode/opencode.json": ()},
    ),
    "antigravity": _by_add_mcp("antigravity", ".gemini/config/mcp_config.json", "${env:NAME}"),
    "claude-desktop": _by_add_mcp("claude-desktop", ".config/Claude/claude_desktop_config.json", remote=False),
    "cline": _by_add_mcp(
        "cline", f"{_CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "${env:NAME}"
    ),
    "cline@command-line": _by_add_mcp("cline-cli", ".cline/data/settings/cline_mcp_settings.json", "${env:NAME}"),
    "cursor": _by_add_mcp("cursor", ".cursor/mcp.json", "${env:NAME}"),
    "fx": Program(_added("fx", "plain")[::2], {".fx/mcp.json": ()}),
    "goose": _by_add_mcp("goose", ".config/goose/config.yaml", "${NAME}"),
    "grok": _by_add_mcp("grok-build", ".grok/config.toml"),
    "kilo": _by_add_mcp("kilo-code", ".config/kilo/kilo.json", "{env:NAME}"),
    "kimi": _by_add_mcp("kimi-code", ".kimi-code/mcp.json", "${NAME}"),
    "kiro": _by_add_mcp("kiro-cli", ".kiro/settings/mcp.json", "${NAME}"),
    "mastra": _by_add_mcp("mastracode", ".mastracode/mcp.json", "${NAME}"),
    "mcporter": _by_add_mcp("mcporter", ".mcporter/mcporter.json", "${NAME}"),
    "pi": _by_add_mcp("pi", ".pi/agent/mcp.json", "${NAME}"),
    "vscode": _by_add_mcp("vscode", f"{_CODE}/mcp.json", "${env:NAME}"),
    "windsurf": _by_add_mcp("windsurf", ".codeium/windsurf/mcp_config.json", "${env:NAME}"),
    "zed": _by_add_mcp("zed", ".config/zed/settings.json"),
}  # fmt: skip


def host_modules(program: str) -> Path:
    """The ``node_modules`` of a program of `PROGRAMS`."""
    return installed(f"host-{program}", [PROGRAMS[program]])


def program_environment(program: str, home: Path) -> dict[str, str]:
    """The environment in which a program of `PROGRAMS` runs, with ``home`` as its home folder."""
    modules = host_modules(program)
    node = Path(shutil.which("node") or "/usr/bin/node").parent
    path = os.pathsep.join(map(str, (modules / ".bin", node, "/usr/bin", "/bin")))
    quiet = {"CI": "1", "TERM": "dumb", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **quiet}


def make(case: str) -> None:
    """Run the programs of a case and keep what they wrote."""
    program = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        project = home / "project"
        project.mkdir()
        for command in program.commands:
            done = subprocess.run(
                command,
                cwd=project,
                env=program_environment(command[0], home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            if done.returncode:
                sys.exit(f"{case}: {' '.join(command)}: {done.stdout}{done.stderr}")
        for made in ("home", "project"):
            shutil.rmtree(FIXTURES / case / made, ignore_errors=True)
        for name, members in program.only.items():
            if (path := home / name).exists():
                target = FIXTURES / case / (name if name.startswith("project/") else f"home/{name}")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_cleaned(path.read_text(), str(project), members), "utf-8")


def _cleaned(text: str, project: str, members: tuple[str, ...]) -> str:
    text = text.replace(project, PROJECT)
    if members:
        text = json.dumps({key: value for key, value in json.loads(text).items() if key in members}, indent=2) + "\n"
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).rstrip("\n") + "\n"


def host_of_case(case: str) -> str:
    """``cline`` of ``cline@command-line``."""
    return case.partition("@")[0]


def read_case(case: str, project: Path | None = None) -> list[FoundServer]:
    """The servers that mcphost finds in a fixture."""
    folder = FIXTURES / case
    project = folder / "project" if (folder / "project").is_dir() else None
    return read_host(host_of_case(case), {}, folder / "home", "linux", project)


def as_toml(found: list[FoundServer], case: str) -> str:
    """Return the found servers as the text of ``expected.toml``."""
    servers = [
        {
            "name": server.name,
            "scope": server.origin.scope,
            "refusal": server.refusal,
            "disabled": server.disabled_there,
            "inputs": [each.id for each in server.inputs],
            "notes": [f"{note.key}: {note.reason}" for note in server.notes],
            "table": dict(server.table),
        }
        for server in found
    ]
    kept = [{key: value for key, value in server.items() if value} for server in servers]
    return tomli_w.dumps({"server": kept}, multiline_strings=False).replace(str(FIXTURES / case), "")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["--expected"]:
        for each in words[1:] or sorted(path.name for path in FIXTURES.iterdir()):
            (FIXTURES / each / "expected.toml").write_text(as_toml(read_case(each), each), "utf-8")
    else:
        for each in words or CASES:
            make(each)
            print(each)
