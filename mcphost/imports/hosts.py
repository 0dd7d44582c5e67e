"""The table of known hosts: where their files are, and which dialect they are written in. A new host is a new row.

Places are templates: ``~`` is the home folder, ``$CONFIG`` the platform's configuration folder, ``$XDG`` the one of
Linux on every platform, ``${VARIABLE:-path}`` a folder that an environment variable may name. ``*`` stands for any
name, ``**`` for a few folders.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from mcphost.imports.dialects import table
from mcphost.imports.dialects.dialect import HostDialect
from mcphost.imports.documents import MAX_BYTES, MAX_HISTORY_BYTES
from mcphost.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a host may have a file."""

    path: str
    scope: str = ""
    """Sets the file apart from the others of its host; ``*`` is replaced by the name that the path's ``*`` matched."""
    platform: str = ""
    """The only platform that has it, as in `sys.platform`; empty: all."""
    limit: int = MAX_BYTES


@dataclass(frozen=True, slots=True)
class KnownHost:
    """A program that has servers configured."""

    id: str
    label: str
    user: tuple[FilePlace, ...] = field(repr=False)
    """Files of the user and of the system."""
    project: tuple[FilePlace, ...] = field(repr=False)
    """Files in a project's folder; paths are relative to it."""
    dialect: HostDialect = field(repr=False)


def _places(*paths: str) -> tuple[FilePlace, ...]:
    return tuple(map(FilePlace, paths))


_SHARED: Final = FilePlace(".mcp.json")
"""The project's file of Claude Code, which others read as well."""
_CODE: Final = ("Code", "Code - Insiders", "VSCodium")
_GLOBAL_STORAGE: Final = "$CONFIG/Code/User/globalStorage"

HOSTS: Final = (
    KnownHost(
        "claude-code",
        "Claude Code",
        (
            FilePlace("${CLAUDE_CONFIG_DIR:-~}/.claude.json", limit=MAX_HISTORY_BYTES),
            FilePlace("/etc/claude-code/managed-mcp.json", "managed", "linux"),
            FilePlace("/Library/Application Support/ClaudeCode/managed-mcp.json", "managed", "darwin"),
            FilePlace("${ProgramW6432}/ClaudeCode/managed-mcp.json", "managed", "win32"),
            FilePlace("${CLAUDE_CONFIG_DIR:-~/.claude}/plugins/cache/**/.mcp.json", "plugin *"),
            FilePlace("${CLAUDE_CONFIG_DIR:-~/.claude}/plugins/repos/**/.mcp.json", "plugin *"),
            FilePlace("${CLAUDE_CONFIG_DIR:-~/.claude}/plugins/synced/**/.mcp.json", "plugin *"),
        ),
        (_SHARED,),
        table.CLAUDE,
    ),
    KnownHost(
        "claude-desktop",
        "Claude Desktop",
        (
            FilePlace("~/.config/Claude/claude_desktop_config.json", platform="linux"),
            FilePlace("$CONFIG/Claude/claude_desktop_config.json"),
        ),
        (),
        table.CLAUDE_DESKTOP,
    ),
    KnownHost(
        "vscode",
        "VS Code",
        (
            *(FilePlace(f"$CONFIG/{name}/User/mcp.json", name if name != "Code" else "") for name in _CODE),
            *(FilePlace(f"$CONFIG/{name}/User/profiles/*/mcp.json", "profile *") for name in _CODE),
            *(FilePlace(f"$CONFIG/{name}/User/settings.json", "settings") for name in _CODE),
            FilePlace("~/.vscode/mcp.json"),
            FilePlace("${VSCODE_PORTABLE}/user-data/User/mcp.json", "portable"),
        ),
        (
            FilePlace(".vscode/mcp.json"),
            FilePlace(".vscode/settings.json"),
            _SHARED,
            FilePlace(".devcontainer/devcontainer.json"),
            FilePlace("*.code-workspace"),
        ),
        table.VSCODE,
    ),
    KnownHost(
        "cursor",
        "Cursor",
        _places("~/.cursor/mcp.json"),
        (FilePlace(".cursor/mcp.json"), _SHARED),
        table.CURSOR,
    ),
    KnownHost(
        "windsurf",
        "Windsurf",
        _places("~/.codeium/windsurf/mcp_config.json", "~/.codeium/windsurf-next/mcp_config.json"),
        (_SHARED,),
        table.WINDSURF,
    ),
    KnownHost(
        "codex",
        "Codex",
        (
            FilePlace("${CODEX_HOME:-~/.codex}/config.toml"),
            FilePlace("${CODEX_HOME:-~/.codex}/*.config.toml", "profile *"),
            FilePlace("/etc/codex/config.toml", "system", "linux"),
            FilePlace("/etc/codex/config.toml", "system", "darwin"),
            FilePlace("${ProgramData}/OpenAI/Codex/config.toml", "system", "win32"),
        ),
        _places(".codex/config.toml"),
        table.CODEX,
    ),
    KnownHost(
        "codex-plugins",
        "Codex plugins",
        (FilePlace("${CODEX_HOME:-~/.codex}/plugins/**/.mcp.json", "plugin *"),),
        (),
        table.CLAUDE,
    ),
    KnownHost(
        "gemini", "Gemini CLI", _places("~/.gemini/settings.json"), _places(".gemini/settings.json"), table.GEMINI
    ),
    KnownHost(
        "antigravity",
        "Antigravity",
        _places("~/.gemini/config/mcp_config.json", "~/.gemini/antigravity/mcp_config.json"),
        (),
        table.WINDSURF,
    ),
    KnownHost(
        "copilot-cli",
        "Copilot CLI",
        _places("${COPILOT_HOME:-~/.copilot}/mcp-config.json"),
        (_SHARED, FilePlace(".github/mcp.json")),
        table.COPILOT,
    ),
    KnownHost(
        "copilot-intellij",
        "Copilot for JetBrains",
        _places("~/.config/github-copilot/intellij/mcp.json"),
        (),
        table.VSCODE,
    ),
    KnownHost(
        "zed",
        "Zed",
        (
            FilePlace("~/.config/zed/settings.json"),
            FilePlace("$CONFIG/Zed/settings.json"),
        ),
        _places(".zed/settings.json"),
        table.ZED,
    ),
    KnownHost(
        "continue",
        "Continue",
        _places("~/.continue/config.yaml"),
        _places(".continue/mcpServers/*.yaml", ".continue/mcpServers/*.yml", ".continue/mcpServers/*.json"),
        table.CONTINUE,
    ),
    KnownHost(
        "goose",
        "Goose",
        (
            FilePlace("~/.config/goose/config.yaml"),
            FilePlace("$CONFIG/Block/goose/config/config.yaml", platform="win32"),
        ),
        _places(".goose/config.yaml"),
        table.GOOSE,
    ),
    KnownHost(
        "opencode",
        "opencode",
        (
            *_places(
                *(f"$XDG/opencode/opencode.{suffix}" for suffix in ("json", "jsonc")),
                *(f"~/.opencode/opencode.{suffix}" for suffix in ("json", "jsonc")),
                *(f"${{OPENCODE_CONFIG_DIR}}/opencode.{suffix}" for suffix in ("json", "jsonc")),
                "${OPENCODE_CONFIG}",
            ),
            FilePlace("/etc/opencode/opencode.json", "managed", "linux"),
            FilePlace("/Library/Application Support/opencode/opencode.json", "managed", "darwin"),
            FilePlace("${ProgramData}/opencode/opencode.json", "managed", "win32"),
        ),
        _places("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        table.OPENCODE,
    ),
    KnownHost(
        "lm-studio", "LM Studio", _places("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"), (), table.CURSOR
    ),
    KnownHost(
        "cline",
        "Cline",
        (
            FilePlace(f"{_GLOBAL_STORAGE}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
            FilePlace("${CLINE_MCP_SETTINGS_PATH}", "command line"),
            FilePlace("${CLINE_DIR:-~/.cline}/data/settings/cline_mcp_settings.json", "command line"),
            FilePlace("~/Documents/Cline/MCP/cline_mcp_settings.json"),
        ),
        (),
        table.CLINE,
    ),
    KnownHost(
        "roo",
        "Roo Code",
        _places(
            f"{_GLOBAL_STORAGE}/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            f"{_GLOBAL_STORAGE}/rooveterinaryinc.roo-cline/settings/cline_mcp_settings.json",
        ),
        _places(".roo/mcp.json"),
        table.ROO,
    ),
    KnownHost(
        "kilo",
        "Kilo Code",
        _places("~/.config/kilo/kilo.json", "~/.config/kilo/kilo.jsonc"),
        _places(".kilo/kilo.json", ".kilo/kilo.jsonc"),
        table.OPENCODE,
    ),
    KnownHost(
        "kiro",
        "Kiro",
        (FilePlace("~/.kiro/settings/mcp.json"), FilePlace("~/.kiro/agents/*.json", "agent *")),
        _places(".kiro/settings/mcp.json"),
        table.KIRO,
    ),
    KnownHost(
        "amazon-q",
        "Amazon Q",
        (FilePlace("~/.aws/amazonq/mcp.json"), FilePlace("~/.aws/amazonq/agents/*.json", "agent *")),
        _places(".amazonq/mcp.json"),
        table.KIRO,
    ),
    KnownHost("junie", "Junie", _places("~/.junie/mcp/mcp.json"), _places(".junie/mcp/mcp.json"), table.PLAIN),
    KnownHost("kimi", "Kimi", _places("${KIMI_CODE_HOME:-~/.kimi-code}/mcp.json"), (), table.KIMI),
    KnownHost("grok", "Grok Build", _places("~/.grok/config.toml"), _places(".grok/config.toml"), table.GROK),
    KnownHost("fx", "fx", _places("~/.fx/mcp.json"), (), table.FX),
    KnownHost("mastra", "Mastra Code", _places("~/.mastracode/mcp.json"), (), table.PLAIN),
    KnownHost("pi", "Pi", _places("~/.pi/agent/mcp.json"), (), table.PI),
    KnownHost(
        "mcporter", "mcporter", _places("~/.mcporter/mcporter.json", "~/.mcporter/mcporter.jsonc"), (), table.MCPORTER
    ),
    KnownHost("inspector", "MCP Inspector", _places("~/.mcp-inspector/mcp.json"), (), table.PLAIN),
    KnownHost(
        "mcphost-go",
        "mcphost (Go), Kit",
        _places("~/.mcphost.yml", "~/.mcphost.yaml", "~/.mcphost.json", "~/.mcp.yml"),
        (),
        table.MCPHOST_GO,
    ),
    KnownHost("witsy", "Witsy", _places("$CONFIG/Witsy/settings.json"), (), table.PLAIN),
)  # fmt: skip

NO_HOST: Final = KnownHost("any", "it", (), (), table.PLAIN)
"""Stands for a host that is not known: ``mcpServers`` as most write it."""

BY_ID: Final = {host.id: host for host in HOSTS}
