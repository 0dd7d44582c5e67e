"""The dialects, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final

from mcphost.errors import ConfigError
from mcphost.imports.dialects.dialect import (
    COMMON_KEYS,
    MILLISECONDS,
    SECONDS,
    EntryGroup,
    EntryShape,
    HostDialect,
    Timeouts,
    Wire,
)
from mcphost.imports.variables import (
    ANY,
    ENV,
    NO_VARIABLES,
    SHELL_LIKE,
    VARIABLES_OF_CLAUDE,
    VARIABLES_OF_CONTINUE,
    VARIABLES_OF_CURSOR,
    VARIABLES_OF_GEMINI,
    VARIABLES_OF_MCPHOST_GO,
    VARIABLES_OF_MCPORTER,
    VARIABLES_OF_OPENCODE,
    VARIABLES_OF_VSCODE,
    Syntax,
)

Groups = Callable[[Mapping[str, Any]], Iterator[EntryGroup]]

MAX_ENTRIES: Final = 500
"""Servers in a group; more than anyone configures."""


def group_at(document: Mapping[str, Any], *path: str, **more: Any) -> Iterator[EntryGroup]:
    """Yield the servers at a place of the document, if any. Raises ConfigError if they are not a table or a list."""
    value: object = document
    for key in path:
        if not isinstance(value, Mapping) or value.get(key) is None:
            return
        value = value[key]
    if not isinstance(value, Mapping | list):
        raise ConfigError(f"{'.'.join(path)} is not a table")
    if len(value) > MAX_ENTRIES:
        raise ConfigError(f"{'.'.join(path)} has more than {MAX_ENTRIES} servers")
    if value:
        yield EntryGroup(value, **more)


def looks_like_entry(value: object) -> bool:
    """True if this can be the entry of a server."""
    return isinstance(value, Mapping) and any(key in value for key in ("command", "cmd", "url", "serverUrl", "httpUrl"))


def _mcp_servers(document: Mapping[str, Any]) -> Iterator[EntryGroup]:
    """``mcpServers``; some hosts also take its content alone."""
    if "mcpServers" in document:
        yield from group_at(document, "mcpServers")
    elif document and all(map(looks_like_entry, document.values())):
        yield from group_at({"servers": document}, "servers")


def _claude_code(document: Mapping[str, Any]) -> Iterator[EntryGroup]:
    """Also the servers of single projects, which ``~/.claude.json`` holds; nothing else of that file is looked at."""
    yield from _mcp_servers(document)
    projects = document.get("projects")
    for folder, project in projects.items() if isinstance(projects, Mapping) else ():
        if isinstance(project, Mapping) and PurePath(folder).is_absolute():
            yield from group_at(project, "mcpServers", scope=f"project {folder}", workspace=Path(folder))


def _vscode(document: Mapping[str, Any]) -> Iterator[EntryGroup]:
    """``mcp.json``; the same in settings, in a workspace, and in a dev container's file."""
    places = (), ("mcp",), ("settings", "mcp"), ("customizations", "vscode", "mcp")
    for place in places:
        holder: Any = document
        for key in place:
            holder = holder.get(key) if isinstance(holder, Mapping) else None
        if isinstance(holder, Mapping):
            yield from group_at(holder, "servers", inputs=holder.get("inputs"))
    yield from group_at(document, "mcpServers")


def _opencode(document: Mapping[str, Any]) -> Iterator[EntryGroup]:
    """``mcp.NAME`` in version 1, ``mcp.servers.NAME`` in version 2."""
    mcp = document.get("mcp")
    if isinstance(mcp, Mapping) and isinstance(mcp.get("servers"), Mapping) and not looks_like_entry(mcp["servers"]):
        yield from group_at(mcp, "servers")
    else:
        yield from group_at(document, "mcp")


def _at(*path: str) -> Groups:
    return lambda document: group_at(document, *path)


_HTTP_TYPES: Final[Mapping[Wire, str]] = {"stdio": "stdio", "http": "http", "sse": "sse"}
_MS_PER_CALL: Final[Timeouts] = {"timeout": ("tool_timeout_sec", MILLISECONDS)}
_SECONDS_PER_CALL: Final[Timeouts] = {"timeout": ("tool_timeout_sec", SECONDS)}
_ENV_ONLY: Final = Syntax((ENV,), VARIABLES_OF_CURSOR.write)

CLAUDE: Final = HostDialect(
    "claude-code",
    _claude_code,
    ("mcpServers",),
    VARIABLES_OF_CLAUDE,
    _MS_PER_CALL,
    EntryShape(
        {key: value for key, value in COMMON_KEYS.items() if key != "cwd"},
        _HTTP_TYPES,  # a URL without a type is taken for a program, and skipped
        oauth={
            "client_id": "oauth.clientId", "redirect_port": "oauth.callbackPort", "scopes": "oauth.scopes",
        },
        scopes_as_text=True,
    ),
)  # fmt: skip
CLAUDE_DESKTOP: Final = HostDialect(
    "claude-desktop",
    _mcp_servers,
    ("mcpServers",),
    NO_VARIABLES,
    shape=EntryShape({key: key for key in ("command", "args", "env")}),
)
CURSOR: Final = HostDialect(
    "cursor",
    _mcp_servers,
    ("mcpServers",),
    VARIABLES_OF_CURSOR,
    shape=EntryShape(
        types=_HTTP_TYPES,
        oauth={"client_id": "auth.CLIENT_ID", "client_secret": "auth.CLIENT_SECRET", "scopes": "auth.scopes"},
    ),
)
VSCODE: Final = HostDialect(
    "vscode",
    _vscode,
    ("servers",),
    VARIABLES_OF_VSCODE,
    shape=EntryShape(types=_HTTP_TYPES, oauth={"client_id": "oauth.clientId"}),
    inputs=True,
)
WINDSURF: Final = HostDialect(
    "windsurf",
    _mcp_servers,
    ("mcpServers",),
    _ENV_ONLY,
    shape=EntryShape(
        {**COMMON_KEYS, "url": "serverUrl", "disabled_tools": "disabledTools"}, _HTTP_TYPES, enabled="disabled"
    ),
)
GEMINI: Final = HostDialect(
    "gemini",
    _mcp_servers,
    ("mcpServers",),
    VARIABLES_OF_GEMINI,
    _MS_PER_CALL,
    EntryShape(
        {**COMMON_KEYS, "url": "httpUrl", "enabled_tools": "includeTools", "disabled_tools": "excludeTools"},
        {"http": "http", "sse": "sse"},
        sse_url="url",
        oauth={
            "enabled": "oauth.enabled", "client_id": "oauth.clientId", "client_secret": "oauth.clientSecret",
            "scopes": "oauth.scopes",
        },
    ),
)  # fmt: skip
COPILOT: Final = HostDialect(
    "copilot-cli",
    _mcp_servers,
    ("mcpServers",),
    SHELL_LIKE,
    _MS_PER_CALL,
    EntryShape(
        {**COMMON_KEYS, "enabled_tools": "tools"},
        {"stdio": "local", "http": "http", "sse": "sse"},
        defaults={"tools": ["*"]},
        oauth={"client_id": "oauthClientId", "scopes": "oauthScopes"},
    ),
)
CLINE: Final = HostDialect(
    "cline",
    _mcp_servers,
    ("mcpServers",),
    _ENV_ONLY,
    _SECONDS_PER_CALL,
    EntryShape(types={"stdio": "stdio", "http": "streamableHttp", "sse": "sse"}, enabled="disabled"),
)
ROO: Final = HostDialect(
    "roo",
    _mcp_servers,
    ("mcpServers",),
    VARIABLES_OF_CURSOR,
    _SECONDS_PER_CALL,
    EntryShape(
        {**COMMON_KEYS, "disabled_tools": "disabledTools"},
        {"stdio": "stdio", "http": "streamable-http", "sse": "sse"},
        enabled="disabled",
    ),
)
KIRO: Final = HostDialect(
    "kiro",
    _at("mcpServers"),
    ("mcpServers",),
    SHELL_LIKE,
    _MS_PER_CALL,
    EntryShape({**COMMON_KEYS, "disabled_tools": "disabledTools"}, _HTTP_TYPES, enabled="disabled"),
)
CODEX: Final = HostDialect(
    "codex",
    _at("mcp_servers"),
    ("mcp_servers",),
    NO_VARIABLES,
    {
        "startup_timeout_ms": ("startup_timeout_sec", MILLISECONDS),
        "startup_timeout_sec": ("startup_timeout_sec", SECONDS),
        "tool_timeout_sec": ("tool_timeout_sec", SECONDS),
    },
    EntryShape(
        {
            **{key: key for key in ("command", "args", "env", "env_vars", "cwd", "url", "http_headers",
                                    "env_http_headers", "bearer_token_env_var", "enabled_tools", "disabled_tools")},
        },
        lacks=("sse",),
        oauth={"client_id": "oauth.client_id", "scopes": "scopes"},
        enabled="enabled",
    ),
    kind="toml",
)  # fmt: skip
GROK: Final = replace(
    CODEX,
    id="grok",
    shape=replace(CODEX.shape, keys={**CODEX.shape.keys, "http_headers": "headers"}),
)
ZED: Final = HostDialect(
    "zed",
    _at("context_servers"),
    ("context_servers",),
    NO_VARIABLES,
    shape=EntryShape(
        {key: value for key, value in COMMON_KEYS.items() if key != "cwd"},
        {"http": "http", "sse": "sse"},
        fixed={"source": "custom"},
        enabled="enabled",
    ),
)
CONTINUE: Final = HostDialect(
    "continue",
    _at("mcpServers"),
    ("mcpServers",),
    VARIABLES_OF_CONTINUE,
    shape=EntryShape(
        {**COMMON_KEYS, "http_headers": "requestOptions.headers"},
        {"stdio": "stdio", "http": "streamable-http", "sse": "sse"},
    ),
    kind="yaml",
    as_list=True,
)
GOOSE: Final = HostDialect(
    "goose",
    _at("extensions"),
    ("extensions",),
    SHELL_LIKE,
    _SECONDS_PER_CALL,
    EntryShape(
        {
            "command": "cmd", "args": "args", "env": "envs", "env_vars": "env_keys", "url": "uri",
            "http_headers": "headers", "enabled_tools": "available_tools",
        },
        {"stdio": "stdio", "http": "streamable_http", "sse": "sse"},
        defaults={"enabled": True, "timeout": 300},
        enabled="enabled",
        named=True,
    ),
    kind="yaml",
    program_syntax=NO_VARIABLES,
)  # fmt: skip
OPENCODE: Final = HostDialect(
    "opencode",
    _opencode,
    ("mcp",),
    VARIABLES_OF_OPENCODE,
    _MS_PER_CALL,
    EntryShape(
        {"command": "command", "env": "environment", "url": "url", "http_headers": "headers"},
        {"stdio": "local", "http": "remote", "sse": "remote"},
        defaults={"enabled": True},
        command_list=True,
        oauth={"client_id": "oauth.clientId", "client_secret": "oauth.clientSecret", "scopes": "oauth.scope"},
        scopes_as_text=True,
        enabled="enabled",
    ),
)
FX: Final = replace(
    OPENCODE,
    id="fx",
    syntax=NO_VARIABLES,
    timeouts={},
    shape=replace(
        OPENCODE.shape,
        keys={**OPENCODE.shape.keys, "bearer_token_env_var": "bearer_token_env"},
        types={"stdio": "local", "http": "http", "sse": "sse"},
        oauth={},
    ),
)
MCPORTER: Final = HostDialect(
    "mcporter",
    _mcp_servers,
    ("mcpServers",),
    VARIABLES_OF_MCPORTER,
    shape=EntryShape(
        {**COMMON_KEYS, "url": "baseUrl", "bearer_token_env_var": "bearerTokenEnv"}, {"http": "http", "sse": "sse"}
    ),
)
KIMI: Final = replace(
    CLAUDE,
    id="kimi",
    groups=_mcp_servers,
    timeouts={
        "toolTimeoutMs": ("tool_timeout_sec", MILLISECONDS),
        "startupTimeoutMs": ("startup_timeout_sec", MILLISECONDS),
    },
    shape=EntryShape(types=_HTTP_TYPES, type_key="transport"),
)
PI: Final = replace(
    KIMI,
    id="pi",
    timeouts={"requestTimeoutMs": ("tool_timeout_sec", MILLISECONDS)},
    shape=EntryShape(types=_HTTP_TYPES),
)
MCPHOST_GO: Final = HostDialect(
    "mcphost-go",
    _mcp_servers,
    ("mcpServers",),
    VARIABLES_OF_MCPHOST_GO,
    shape=EntryShape(
        {
            "command": "command", "env": "environment", "url": "url", "http_headers": "headers",
            "enabled_tools": "allowedTools", "disabled_tools": "excludedTools",
        },
        {"stdio": "local", "http": "remote", "sse": "remote"},
        command_list=True,
        header_lines=True,
    ),
    kind="yaml",
)  # fmt: skip
PLAIN: Final = HostDialect(
    "mcp-servers",
    _claude_code,
    ("mcpServers",),
    ANY,
    {"timeout": ("tool_timeout_sec", None)},
    EntryShape(types=_HTTP_TYPES, oauth={"client_id": "oauth.clientId", "scopes": "oauth.scopes"}),
)
"""``mcpServers`` of a host that is not known."""

_BY_CONTENT: Final = (CODEX, ZED, GOOSE, VSCODE, OPENCODE, PLAIN)


def dialect_of(document: Mapping[str, Any]) -> HostDialect | None:
    """Recognize the dialect of a document by its keys."""
    if isinstance(document.get("mcpServers"), list):
        return CONTINUE
    if "mcpServers" in document:
        return PLAIN
    mcp = document.get("mcp")
    if isinstance(mcp, Mapping) and not _is_opencode(mcp):
        return VSCODE
    return next((each for each in _BY_CONTENT if any(each.groups(document))), None)


def _is_opencode(mcp: Mapping[str, Any]) -> bool:
    """``mcp.servers`` is opencode's, too, where its entries are local or remote; VS Code's are stdio, http or sse."""
    servers = mcp.get("servers")
    if not isinstance(servers, Mapping) or looks_like_entry(servers):
        return True
    entries = [each for each in servers.values() if isinstance(each, Mapping)]
    return any(each.get("type") in ("local", "remote") or isinstance(each.get("command"), list) for each in entries)
