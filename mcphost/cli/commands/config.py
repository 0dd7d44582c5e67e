"""``mcphost config``, and reading the configuration for the other commands.

A project's file is used only after the user trusted it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mcphost.cli.output import Exit, Outcome, is_terminal, json_text, remark, remarks_on
from mcphost.cli.terminal import discard_typed_ahead
from mcphost.config import (
    Config,
    ConfigErrors,
    ConfigLocation,
    LoadedConfig,
    ServerConfig,
    TrustedFolders,
    find_config,
    load,
    load_found,
    references_within,
    state_folder,
)
from mcphost.dataclass import dataclass
from mcphost.errors import ConfigError
from mcphost.protocol.display import show_line

TRUST_COMMAND = "mcphost config trust"


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """A configuration with its place. ``untrusted`` says why a project's file was left out; None where it was not."""

    found: ConfigLocation
    loaded: LoadedConfig
    untrusted: str | None = None

    @property
    def path(self) -> Path | None:
        """The path of the file in use."""
        return self.found.path

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about parts of the configuration that are not used."""
        return (*filter(None, [self.untrusted]), *map(str, self.loaded.problems))


def find(explicit: str | None, env: Mapping[str, str]) -> ConfigLocation:
    """Find the configuration file."""
    return find_config(None if explicit is None else Path(explicit), Path.cwd(), env)


def read_settings(found: ConfigLocation, env: Mapping[str, str]) -> FoundSettings:
    """Read the configuration; a project's file only if it is trusted. Raises ConfigError."""
    if not found.needs_trust or found.path is None:
        return users_settings(found)
    loaded = load_found(found)
    decision = _trusted(env).decision(found.path, loaded.digest)
    if decision == "trusted":
        return FoundSettings(found, loaded)
    return replace(users_settings(found), untrusted=_untrusted(found.path, decision))


def settings_for_screen(found: ConfigLocation, env: Mapping[str, str]) -> FoundSettings:
    """As `read_settings`, but leave out a project's file that cannot be read: anybody may have put it there."""
    try:
        return read_settings(found, env)
    except ConfigError as error:
        if not found.needs_trust:
            raise
        return replace(users_settings(found), untrusted=str(error))


def users_settings(found: ConfigLocation) -> FoundSettings:
    """Read only the user's own file. Raises ConfigError."""
    own = ConfigLocation(found.user) if found.needs_trust else found
    return FoundSettings(own, LoadedConfig(Config.model_construct()) if own.path is None else load_found(own))


def where(found: ConfigLocation, env: Mapping[str, str], *, explicit: bool) -> Outcome:
    """``config path``: prints the file in use, and why that one."""
    if found.path is None:
        reason = f"no configuration; create {default_path(env)}, or mcphost.toml in a project's folder"
        return Outcome(code=Exit.DONE, remarks=(reason,))
    remarks = [_why(found, env, explicit)]
    try:
        remarks += filter(None, [read_settings(found, env).untrusted])
    except ConfigError as error:
        remarks += remarks_on(error)
    return Outcome(f"{show_line(str(found.path), 4096)}\n", remarks=tuple(remarks))


def default_path(env: Mapping[str, str]) -> Path:
    """The path of the user's own file, whether it exists or not."""
    if named := env.get("MCPHOST_CONFIG"):
        return Path(os.path.expanduser(named))
    from platformdirs import user_config_path  # late: most commands do not need it

    return user_config_path("mcphost", appauthor=False) / "config.toml"


def verify(found: ConfigLocation) -> Outcome:
    """``config check``: prints every problem with its line, also those of an untrusted project's file."""
    if found.path is None:
        return Outcome(remarks=("there is no configuration to check",))
    try:
        problems = load_found(found).problems
    except ConfigErrors as error:
        problems = error.problems
    except ConfigError as error:
        problems = (error,)
    text = "".join(f"{show_line(str(problem), 2000)}\n" for problem in problems)
    return Outcome(text, Exit.USAGE if problems else Exit.DONE, () if problems else (f"{found.path}: no problems",))


def client_metadata(url: str | None, port: int, document: Callable[[str, str], Mapping[str, object]]) -> Outcome:
    """``config client-metadata``: prints the client metadata document to publish at ``url``."""
    from mcphost.config.fields import reason_against_document

    if url is None:
        raise ConfigError("client-metadata needs the https URL that the document will have")
    if reason := reason_against_document(url):
        raise ConfigError(f"{show_line(url)}: {reason}")
    back = f"http://127.0.0.1:{port}/callback" if port else "http://127.0.0.1/callback"
    exact = "" if port else "; where a server insists on one port: add --port, and set oauth.redirect_port"
    hint = f"publish this at {show_line(url, 500)} as application/json and set oauth.client_metadata_url{exact}"
    return Outcome(json_text(document(url, back)), remarks=(hint,))


def trust(found: ConfigLocation, env: Mapping[str, str], *, yes: bool) -> Outcome:
    """``config trust``: shows what a project's file would run, and trusts its present content after a yes."""
    if found.path is None or not found.needs_trust:
        raise ConfigError("there is no mcphost.toml in this folder to trust")
    project = load(found.path, project=True)
    _show(found.path, project)
    if not yes and not _agreed():
        return Outcome(code=Exit.DECLINED, remarks=("not trusted",))
    _trusted(env).trust(found.path, project.digest)
    return Outcome(remarks=(f"{found.path} is trusted until it changes",))


def _show(path: Path, project: LoadedConfig) -> None:
    print(f"{show_line(str(path), 4096)} would run:", file=sys.stderr)
    for name, server in project.config.servers.items():
        for line in _runs(name, server):
            print(f"  {line}", file=sys.stderr)
    if not project.config.servers:
        print("  nothing", file=sys.stderr)
    for problem in project.problems:
        remark(str(problem))


def _runs(name: str, server: ServerConfig) -> Iterator[str]:
    command = server.url or shlex.join([server.command or "", *server.args])
    yield f"{name}: {show_line(command, 1 << 30)}"
    for variable, text in server.env.items():
        yield f"    with {show_line(f'{variable}={text}', 1 << 30)}"
    given = (*server.env_vars, *server.env_http_headers.values(), *filter(None, [server.bearer_token_env_var]))
    if given:
        yield f"    given your {', '.join(map(show_line, given))}"
    for header, text in server.http_headers.items():
        yield f"    with the header {show_line(f'{header}: {text}', 1 << 30)}"
    yield from _signs_in(server)
    for where, reference in references_within(server.model_dump()):
        yield f"    reading your {show_line(reference.origin, 4096)} for {show_line(where, 4096)}"
    if server.cwd is not None:
        yield f"    in {show_line(server.cwd, 4096)}"


def _signs_in(server: ServerConfig) -> Iterator[str]:
    """The credentials a sign-in would use, and whether it would happen without a person."""
    oauth = server.oauth
    for key in ("client_secret", "private_key"):
        if value := getattr(oauth, key):
            yield f"    signing in with {key} {show_line(value, 4096)}"
    if oauth.grant == "client_credentials":
        yield "    by itself, wherever that server says"


def _agreed() -> bool:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise ConfigError("there is no terminal to ask on; add --yes once you have looked at the file")
    discard_typed_ahead(sys.stdin.fileno())
    sys.stderr.write("Trust this file as it is now? [y/N] ")
    sys.stderr.flush()
    with suppress(EOFError):
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    return False


def _trusted(env: Mapping[str, str]) -> TrustedFolders:
    return TrustedFolders(state_folder(env) / "trusted.toml", remark)


def _untrusted(path: Path, decision: Literal["changed", "unknown"]) -> str:
    why = (
        "changed since you trusted it"
        if decision == "changed"
        else "names programs to run, and you have not trusted it"
    )
    return f"{path} {why}; to see what it would run and decide: {TRUST_COMMAND}"


def _why(found: ConfigLocation, env: Mapping[str, str], explicit: bool) -> str:
    if explicit:
        return "named by --config"
    if found.needs_trust:
        return f"the project's file in this folder{f', together with {found.user}' if found.user else ''}"
    return "named by MCPHOST_CONFIG" if env.get("MCPHOST_CONFIG") else "your own configuration"
