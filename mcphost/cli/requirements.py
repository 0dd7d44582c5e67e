"""What commands have in common: the configuration and the servers that are meant, and a host to do the work in.

Knows what is asked, recorded and remembered meanwhile. Refuses to know what the work is.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from mcphost.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from mcphost.cli.output import Outcome
    from mcphost.composition import Selection
    from mcphost.config import LoadedConfig
    from mcphost.host.consent.questions import Approver
    from mcphost.host.host import Host

Words = argparse.Namespace

UNEXPECTED: Final = 70
"""Exit code for our own mistakes."""


def loaded(options: Words, servers: Sequence[str]) -> LoadedConfig:
    """The configuration for these SERVERs: those that say what to run need nothing of a project's file."""
    from mcphost.cli.commands.config import find, read_settings, users_settings
    from mcphost.composition import is_ad_hoc

    found = find(options.config, os.environ)
    if servers and all(map(is_ad_hoc, servers)):
        return users_settings(found).loaded
    settings = read_settings(found, os.environ)
    if settings.untrusted is not None:
        raise ConfigError(settings.untrusted)
    return settings.loaded


def selected(options: Words) -> Selection:
    """What is to run for the SERVERs. Raises ConfigError."""
    from mcphost.composition import select

    chosen = select(loaded(options, options.servers), options.servers)
    if not chosen.names and not chosen.broken:
        raise ConfigError("no server is configured; name one as 'stdio:COMMAND LINE', or see: mcphost config path")
    return chosen


def selected_one(options: Words) -> tuple[Selection, str]:
    """What is to run for the one SERVER, and its name. Raises ConfigError."""
    from mcphost.composition import select

    chosen = select(loaded(options, [options.server]), [options.server])
    for error in chosen.broken.values():
        raise error
    (name,) = chosen.names
    return chosen, name


def asked(options: Words, chosen: Selection, calls: Approver | None, work: Callable[[Host], Awaitable[Outcome]]) -> int:
    """As `recorded`; servers may ask something meanwhile. ``calls`` approves of calls."""
    from mcphost.cli.answers import UrlWatch, approver_with, read_roots, read_rules
    from mcphost.cli.sampling_output import ModelWatch
    from mcphost.host.consent.questions import DeclineAll
    from mcphost.host.desktop import open_page

    rules = read_rules(options.answers, options.accept, options.decline)
    approver = approver_with(rules, calls or DeclineAll("nothing is called here"))

    def watched(host: Host) -> Awaitable[Outcome]:
        approver.attach(host)
        UrlWatch(host, getattr(options, "timeout", None))
        ModelWatch(host)
        return work(host)

    more = {"answers": approver.answers, "roots": read_roots(options.root), "open_url": open_page}
    return recorded(options, chosen, approver, watched, **more)


def recorded(
    options: Words,
    chosen: Selection,
    approver: Approver | None,
    work: Callable[[Host], Awaitable[Outcome]],
    **more: Any,
) -> int:
    """What is done is written down; without an approver nothing needs one."""
    from mcphost.cli.output import remark
    from mcphost.cli.run import in_host
    from mcphost.composition import fittings, values_for
    from mcphost.config import state_folder
    from mcphost.host.consent.questions import DeclineAll

    values, state = values_for(chosen.config, os.environ), state_folder(os.environ)
    asks, traffic = approver or DeclineAll("nothing is called here"), traffic_path(options)
    kept: dict[str, Any] = {"state": state, "report": remark, "refused": chosen.broken, "traffic_path": traffic}
    parts = fittings(asks, values, **kept, begin_sign_ins=False, **more)
    return in_host(chosen.config, parts, work)


def without_calls(options: Words, chosen: Selection, work: Callable[[Host], Awaitable[Outcome]]) -> int:
    """Nothing will be asked, recorded or remembered, so that it works where nothing may be written."""
    from mcphost.cli.run import in_host
    from mcphost.composition import fittings, values_for
    from mcphost.host.consent.questions import DeclineAll

    values, nobody = values_for(chosen.config, os.environ), DeclineAll("nothing is called here")
    parts = fittings(nobody, values, refused=chosen.broken, traffic_path=traffic_path(options), begin_sign_ins=False)
    return in_host(chosen.config, parts, work)


def traffic_path(options: Words) -> Path | None:
    """The file for this run's traffic, if there is to be one. Raises ConfigError where it cannot be used."""
    if options.traffic is None:
        return None
    from pathlib import Path

    from mcphost.host.traffic.file import claim

    path = Path(options.traffic)
    claim(path)
    return path


def to_sign_in(options: Words) -> tuple[Selection, str]:
    """As `selected_one`, where there is something to sign in to. Raises ConfigError."""
    chosen, name = selected_one(options)
    server = chosen.config.servers[name]
    if server.signs_in:
        return chosen, name
    if server.url is None:
        raise ConfigError(f"{name} is a program; only servers at an address are signed in to")
    if not server.oauth.enabled:
        raise ConfigError(f"servers.{name}.oauth.enabled is false; set it to true to sign in")
    raise ConfigError(f"servers.{name} sends an Authorization header of its own; take it out to sign in instead")
