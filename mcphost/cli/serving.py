"""Serves agents from this process, where no screen runs."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import suppress

from mcphost.cli.agent_settings import agent_settings, allow_command
from mcphost.cli.output import Exit, Outcome, remark
from mcphost.cli.run import finish, in_host, run, traffic_file
from mcphost.cli.screen_socket import explain_to_person
from mcphost.composition import Selection, dependencies, select_entries, values_for
from mcphost.composition.endpoint import NothingServed, RefusedClient, ServedStream, serve_content
from mcphost.config import Config, Values, resolve_server, state_folder
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError
from mcphost.host.agents.declined import AbsentApprover, DeclinedCalls
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.kernel_facts import agent_of, caller_of
from mcphost.host.dependencies import Dependencies
from mcphost.host.endpoint.service import EndpointOptions
from mcphost.host.host import Host
from mcphost.places import DEPTH_VARIABLE
from mcphost.serving.session import ServedContent
from mcphost.serving.stream_pump import own_streams

NOT_RUNNING = (
    "mcphost is not running, so this server has no tools. Ask the user to start mcphost in a terminal, and then to "
    "restart this server."
)
"""The instructions of a server that offers nothing."""

NESTED = (
    "this mcphost was started by another mcphost that serves agents, so that it could serve itself in a circle; name "
    "the servers themselves in the configuration"
)
"""The refusal of a client."""


def serve_agent(options: Namespace) -> int:
    """Serve the agent on stdin and stdout until it ends. Raises ConfigError, UnknownName or UsageError."""
    if DEPTH_VARIABLE in os.environ:
        return finish(run(_serve_nothing(RefusedClient(NESTED))))
    chosen = served_selection(options)
    explain_to_person()
    if chosen.config.serve.without_screen == "refuse":
        return finish(run(_serve_nothing(NothingServed(NOT_RUNNING))))

    async def work(host: Host) -> Outcome:
        agent = agent_of(caller_of(os.getpid()), options.agent or "")
        served = ServedStream(host.endpoint, endpoint_options(options, agent))
        try:
            async with own_streams() as streams:
                return _ended(await served.run(*streams))
        finally:
            await served.aclose()

    return in_headless_host(started_by_the_agent(chosen.config), options, chosen, work)


def started_by_the_agent(config: Config) -> Config:
    """The configuration with servers that start once the agent has said what it answers."""
    servers = {
        name: server.model_copy(update={"start": "lazy"}) if server.start == "eager" else server
        for name, server in config.servers.items()
    }
    return config.model_copy(update={"servers": servers})


def endpoint_options(options: Namespace, agent: AgentFacts) -> EndpointOptions:
    """The options of a session that this process serves alone."""
    return EndpointOptions(
        agent, tuple(options.servers), options.profile, options.questions, options.approve, alone=True
    )


def served_selection(options: Namespace) -> Selection:
    """The servers to serve, by the configuration. Raises ConfigError, UnknownName or UsageError."""
    if options.state:  # sign-ins of several programs are kept apart by locks there
        os.environ["MCPHOST_STATE_DIR"] = options.state
    found, _ = agent_settings(options)
    for problem in found.problems:
        remark(problem)
    return select_entries(found.loaded, options.servers, some=not options.approve)


def in_headless_host(
    config: Config, options: Namespace, chosen: Selection, work: Callable[[Host], Awaitable[Outcome]]
) -> int:
    """Do the work in a host that can ask no one, and whose servers cannot serve agents by another mcphost."""
    os.environ[DEPTH_VARIABLE] = "1"  # the servers inherit it
    return in_host(config, _headless_dependencies(options, chosen), work)


def _headless_dependencies(options: Namespace, chosen: Selection) -> Dependencies:
    state, values = state_folder(os.environ), values_for(chosen.config, os.environ)
    if options.into is not None:
        _learn_secrets(chosen.config, values)
    approver = AbsentApprover(DeclinedCalls(StateStore(state, remark)), allow_command(options), remark)
    return dependencies(
        approver,
        values,
        state=state,
        report=remark,
        refused=chosen.broken,
        traffic_target=traffic_file(options.into, options.redact, "--into", "serve", "agent"),
        begin_sign_ins=False,
        prefetch=False,
    )


def _learn_secrets(config: Config, values: Values) -> None:
    """Mask the secrets of servers in what an agent says before they start, except for those in the keychain."""
    for name in config.servers:
        with suppress(ConfigError):
            resolve_server(config, values.without_keychain(), name)


async def _serve_nothing(content: ServedContent) -> Outcome:
    async with own_streams() as streams:
        return _ended(await serve_content(content, *streams))


def _ended(why: str) -> Outcome:
    return Outcome(code=Exit.NOT_CONNECTED, remarks=(why,)) if why else Outcome()
