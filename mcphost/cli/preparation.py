"""Prepares a command: reads the configuration, selects the servers, and runs the work in a host."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcphost.cli.answers import approver_with, read_roots, read_rules
from mcphost.cli.output import Outcome, remark
from mcphost.cli.run import in_host, traffic_target
from mcphost.cli.server_request_reports import FormReporter, SamplingReporter, UrlElicitationReporter
from mcphost.cli.settings import find, read_settings, users_settings
from mcphost.composition import Selection, dependencies, is_ad_hoc, select, values_for
from mcphost.config import LoadedConfig, Values, state_folder
from mcphost.config.state import StateStore
from mcphost.errors import ConfigError, UsageError
from mcphost.host.consent.questions import Approver, DeclineAll
from mcphost.host.desktop import open_page
from mcphost.host.server_requests.request_kinds import SCREEN_KINDS

if TYPE_CHECKING:
    from mcphost.host.host import Host


def load_config(options: Namespace, servers: Sequence[str], *, ignores_lock: bool = False) -> LoadedConfig:
    """The configuration for these SERVERs. URLs and ``stdio:`` commands need nothing of a project's file.

    ``ignores_lock``: see `ConfigLocation`. Raises ConfigError where the project's file is needed and not trusted.
    """
    found = replace(find(options.config, os.environ, options.profile), ignores_lock=ignores_lock)
    if servers and all(map(is_ad_hoc, servers)):
        return users_settings(found).loaded
    settings = read_settings(found, os.environ)
    if settings.untrusted is not None:
        raise ConfigError(settings.untrusted)
    return settings.loaded


def select_servers(options: Namespace, *, ignores_lock: bool = False) -> Selection:
    """The servers that the command line names, or all that are configured. Raises ConfigError."""
    loaded = load_config(options, options.servers, ignores_lock=ignores_lock)
    chosen = select(loaded, options.servers)
    if not chosen.names and not chosen.broken:
        for problem in loaded.problems:  # such as a file of servers that cannot be read
            raise problem
        if loaded.config.profile is not None:
            raise ConfigError(f"profile {loaded.config.profile} has no servers; see profiles.{loaded.config.profile}")
        raise ConfigError(
            "no server is configured; to see those of other hosts: mcphost import; or name one as 'stdio:COMMAND LINE'"
        )
    return chosen


def select_server(options: Namespace) -> tuple[Selection, str]:
    """The one server that the command line names, and its name. Raises ConfigError."""
    chosen = select(load_config(options, [options.server]), [options.server])
    for error in chosen.broken.values():
        raise error
    (name,) = chosen.names
    return chosen, name


def run_with_answers(
    options: Namespace,
    chosen: Selection,
    calls: Approver | None,
    work: Callable[[Host], Awaitable[Outcome]],
    *,
    prefetch: bool = False,
    answers: frozenset[str] = frozenset(),
) -> int:
    """As `run_audited`, answering what servers ask meanwhile. ``calls`` approves tool calls.

    ``answers`` are kinds of server requests that ``work`` answers itself.
    """
    rules = read_rules(options.answers, options.accept, options.decline)
    store = StateStore(state_folder(os.environ), remark)
    approver = approver_with(rules, calls or DeclineAll("nothing is called here"), store)

    def with_reports(host: Host) -> Awaitable[Outcome]:
        approver.attach(host)
        UrlElicitationReporter(host, approver.asking, getattr(options, "timeout", None))
        FormReporter(host)
        SamplingReporter(host)
        return work(host)

    roots = read_roots(options.root)
    more: dict[str, Any] = {
        "answers": approver.answers | answers,
        "roots": roots,
        "open_url": open_page,
        "prefetch": prefetch,
    }
    return run_audited(options, chosen, approver, with_reports, **more)


def run_audited(
    options: Namespace,
    chosen: Selection,
    approver: Approver | None,
    work: Callable[[Host], Awaitable[Outcome]],
    *,
    values: Values | None = None,
    **more: Any,
) -> int:
    """Run ``work`` with an audit log and the state folder. ``approver`` is None where nothing needs approval.

    ``values`` are those of work that resolves references itself, so that the host masks its secrets, too.
    """
    values, state = values or values_for(chosen.config, os.environ), state_folder(os.environ)
    asks, traffic = approver or DeclineAll("nothing is called here"), traffic_target(options)
    kept: dict[str, Any] = {"state": state, "report": remark, "refused": chosen.broken, "traffic_target": traffic}
    parts = dependencies(asks, values, **kept, begin_sign_ins=False, **{"prefetch": False, **more})
    return in_host(chosen.config, parts, work)


def run_without_calls(
    options: Namespace,
    chosen: Selection,
    work: Callable[[Host], Awaitable[Outcome]],
    *,
    values: Values | None = None,
) -> int:
    """As `run_audited`, without audit log and state folder, so that it works where nothing can be written."""
    parts = dependencies(
        DeclineAll("nothing is called here"),
        values or values_for(chosen.config, os.environ),
        refused=chosen.broken,
        traffic_target=traffic_target(options),
        begin_sign_ins=False,
        prefetch=False,
        answers=SCREEN_KINDS,  # some servers offer a tool only to hosts that can answer what it asks
    )
    return in_host(chosen.config, parts, work)


def select_identities(options: Namespace) -> Selection:
    """The user's own configuration without its servers, since only it has identities."""
    loaded = users_settings(find(options.config, os.environ, options.profile)).loaded
    return Selection(loaded.config.model_copy(update={"servers": {}}), ())


def select_for_sign_in(options: Namespace) -> tuple[Selection, str]:
    """As `select_server`. Raises ConfigError where the server takes no sign-in."""
    if options.server is None or options.identity is not None:
        raise UsageError("name a SERVER, or --identity NAME")
    chosen, name = select_server(options)
    server = chosen.config.servers[name]
    if server.signs_in:
        return chosen, name
    if server.url is None:
        raise ConfigError(f"{name} is a program; you can sign in only to servers at an address")
    if not server.oauth.enabled:
        raise ConfigError(f"servers.{name}.oauth.enabled is false; set it to true to sign in")
    raise ConfigError(f"servers.{name} sends an Authorization header of its own; remove it to sign in instead")
