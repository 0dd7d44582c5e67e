"""The entries with which other hosts get servers from ``mcphost serve``, and the tokens of their addresses."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from mcphost.cli.addresses import own_port
from mcphost.cli.agent_settings import agent_settings
from mcphost.cli.commands.wrapping import wrap_command
from mcphost.cli.output import Outcome, is_terminal, remark
from mcphost.cli.parser import did_you_mean
from mcphost.cli.run import finish, run
from mcphost.cli.screen_socket import environment_of
from mcphost.composition import secret_items, select_entries
from mcphost.composition.bearers import Bearers, BearerTokens
from mcphost.config import LoadedConfig, ServerConfig, state_folder
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, UnknownName, UsageError
from mcphost.imports.export import export_servers
from mcphost.imports.hosts import BY_ID, NO_HOST, KnownHost
from mcphost.protocol.display import show, show_line

TOKEN: Final = "MCPHOST_SERVE_TOKEN"
"""The variable from which hosts read their token."""

NO_KEYCHAIN: Final = (
    "the tokens of agents are kept in the keychain, and MCPHOST_KEYCHAIN=off forbids to use it; agents can start "
    "mcphost serve as a program instead"
)

SLOW_START: Final = {
    "codex": (
        "Codex begins without servers that start for more than a second; mcp_optional_startup_grace_ms = 0 at the top "
        "of its file makes it wait",
    )
}
"""Advice by host, about servers that it starts."""


def print_entries(options: Namespace) -> int:
    """Print the entries of ``mcphost serve --print HOST``."""
    found, _ = agent_settings(options)
    host, names = known_host(options.print), served_names(found.loaded, options.servers, options.profile)
    if options.http is None:
        return finish(program_entries(host, names, options))
    return finish(run(_address_entries(host, names, options)))


def program_entries(host: KnownHost, names: Sequence[str], options: Namespace) -> Outcome:
    """Entries with which a host starts this mcphost for each name, which is a server or the profile."""
    command = wrap_command("gate", options.config, sys.argv[0], environment_of(options))
    program, *first = command.program
    agent = options.agent or _name_of(host)
    entries: dict[str, ServerConfig] = {}
    for name in names:
        what = ["--profile", name] if name == options.profile else [name]
        folders = ["--config", command.config, "--state", command.state]
        words = [*first, "serve", *what, *folders, *(["--as", agent] if agent else []), *_more(options)]
        entries[name] = ServerConfig.model_construct(command=program, args=tuple(words))
    exported = _exported(host, entries, None)
    return Outcome(exported.text, remarks=(*exported.remarks, *SLOW_START.get(host.id, ())))


def known_host(name: str) -> KnownHost:
    """Raises UnknownName."""
    host = NO_HOST if name == "-" else BY_ID.get(name)
    if host is None:
        near = did_you_mean(name, BY_ID)
        raise UnknownName(f"{show_line(name)!a} is not a known host{near}; hosts are {', '.join(BY_ID)}")
    return host


def served_names(loaded: LoadedConfig, servers: Sequence[str], profile: str | None) -> Sequence[str]:
    """The names of the entries to write: the profile for all of its servers, else one a server.

    Raises UnknownName, UsageError or ConfigError.
    """
    chosen = select_entries(loaded, servers)
    return [profile] if profile is not None and not servers else chosen.names


def revoke(options: Namespace) -> int:
    """Delete the token of an agent. Raises UnknownName if it has none."""
    env = environment_of(options)
    return finish(run(_revoke(options.revoke, tokens_of(env), StateStore(state_folder(env), remark))))


def tokens_of(env: Mapping[str, str]) -> BearerTokens:
    """The tokens of agents. Raises ConfigError if no keychain can be used."""
    items = secret_items(env)
    if items is None:
        raise ConfigError(NO_KEYCHAIN)
    return BearerTokens(StateStore(state_folder(env), remark), items)


async def _revoke(agent: str, tokens: BearerTokens, store: StateStore) -> Outcome:
    if not await tokens.revoke(agent):
        known = ", ".join(sorted(Bearers(store).agents()))
        there = f"agents with one: {known}" if known else "no agent has one"
        raise UnknownName(f"{show_line(agent)!a} has no token; {there}")
    return Outcome(remarks=(f"the token of {show_line(agent)} is deleted; the address refuses it from now on",))


async def _address_entries(host: KnownHost, names: Sequence[str], options: Namespace) -> Outcome:
    if not (agent := options.agent or _name_of(host)):
        raise UsageError("name the agent that gets the token: --as AGENT")
    token = await tokens_of(environment_of(options)).token(agent)
    base = f"http://127.0.0.1:{own_port(options.http)}/mcp"
    headers = {"Authorization": f"Bearer ${{{TOKEN}}}"}
    entries = {
        name: ServerConfig.model_construct(
            url=f"{base}/{'@' if name == options.profile else ''}{name}", http_headers=headers
        )
        for name in names
    }
    return _exported(host, entries, token)


def _exported(host: KnownHost, entries: Mapping[str, ServerConfig], token: str | None) -> Outcome:
    exported = export_servers(host, entries, Path("/"), lambda reference, field: token or reference.text)
    remarks = [str(note) for note in exported.notes]
    if token is not None and token in exported.text:
        remarks.append(f"▲ the token is in these lines, since {host.label} reads no variable there; keep them secret")
    elif token is not None and TOKEN in exported.text:
        remarks.append(f"set the environment variable {TOKEN} where {host.label} starts, to {token}")
    text = show(exported.text) if is_terminal(sys.stdout) else exported.text
    return Outcome(text, remarks=tuple(remarks))


def _name_of(host: KnownHost) -> str:
    return "" if host is NO_HOST else host.id


def _more(options: Namespace) -> Sequence[str]:
    questions = getattr(options, "questions", "agent")
    return [
        *(["--questions", questions] if questions != "agent" else []),
        *(["--approve"] if getattr(options, "approve", False) else []),
    ]
