"""``mcphost config``: shows, checks and trusts configuration files, and prints the client metadata to publish."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mcphost.auth.ports import obtains_alone
from mcphost.cli.output import Exit, Outcome, is_terminal, json_text, remark, reports_on
from mcphost.cli.run import finish
from mcphost.cli.settings import find, read_settings, trusted_folders
from mcphost.cli.terminal_modes import discard_input
from mcphost.composition import hosted_document
from mcphost.config import (
    Config,
    ConfigErrors,
    ConfigLocation,
    LoadedConfig,
    ProfileConfig,
    ServerConfig,
    load,
    load_found,
    references_within,
    users_path,
)
from mcphost.config.fields import reason_against_document
from mcphost.errors import ConfigError, UsageError
from mcphost.protocol.display import show_line
from mcphost.redaction import safe_command


def run_config(options: Namespace) -> int:
    """Show, check or trust the configuration."""
    if options.traffic is not None:
        raise UsageError("--traffic: this command connects to no server")
    if options.action == "client-metadata":
        return finish(client_metadata(options.url, options.port, hosted_document))
    if options.action == "schema":
        return finish(schema())
    found = find(options.config, os.environ)
    if options.action == "path":
        return finish(where(found, os.environ, explicit=options.config is not None))
    if options.action == "check":
        return finish(verify(found))
    return finish(trust(found, os.environ, yes=options.yes))


def where(found: ConfigLocation, env: Mapping[str, str], *, explicit: bool) -> Outcome:
    """``config path``: prints the file in use, or the one to create, and why that one; then ``servers.toml``."""
    added = [] if found.added is None else [f"and {found.added}, where mcphost writes the servers you add"]
    if found.path is None:
        reason = "there is no such file yet; create it, or mcphost.toml in a project's folder"
        return Outcome(f"{show_line(str(users_path(env)), 4096)}\n", remarks=(reason, *added))
    remarks = [_why(found, env, explicit), *added]
    try:
        remarks += filter(None, [read_settings(found, env).untrusted])
    except ConfigError as error:
        remarks += (each.message for each in reports_on(error))
    return Outcome(f"{show_line(str(found.path), 4096)}\n", remarks=tuple(remarks))


def verify(found: ConfigLocation) -> Outcome:
    """``config check``: prints every problem with its line, also those of an untrusted project's file."""
    if not found.found:
        return Outcome(remarks=("there is no configuration to check",))
    try:
        loaded = load_found(found)
        problems = (*loaded.problems, *_profile_problems(loaded), *_key_problems(found, loaded.config))
    except ConfigErrors as error:
        problems = error.problems
    except ConfigError as error:
        problems = (error,)
    text = "".join(f"{show_line(str(problem), 2000)}\n" for problem in problems)
    if problems:
        return Outcome(text, Exit.USAGE)
    return Outcome(text, Exit.DONE, (_sound(found), *_commands(loaded.config)))


def _commands(config: Config) -> Iterator[str]:
    """The commands that run to sign in, and start no server."""
    sources = [
        (f"{name} is signed in to by the JWT", server.oauth.assertion) for name, server in config.servers.items()
    ]
    sources += [(f"identity {name} has the ID token", identity.id_token) for name, identity in config.identity.items()]
    for words, source in sources:
        if source is not None and source.command:
            yield f"{words} that this command prints: {show_line(safe_command(source.words), 4096)}"


def _profile_problems(loaded: LoadedConfig) -> Sequence[ConfigError]:
    if not loaded.config.profiles:
        return ()
    from mcphost.config.profiles import unmatched  # late: most configurations have none

    return tuple(unmatched(loaded.config, loaded.disabled))


def _key_problems(found: ConfigLocation, config: Config) -> Sequence[ConfigError]:
    if not config.ui.keys:
        return ()
    from mcphost.tui.own_keys import problems_of  # late: imports every screen

    return problems_of(config.ui.keys, (found.user if found.needs_trust else found.path,))


def _sound(found: ConfigLocation) -> str:
    files = [found.path] if found.path is not None and not found.needs_trust else [found.user, found.path]
    return f"{' and '.join(str(file) for file in (*files, found.added) if file is not None)}: no problems"


def schema() -> Outcome:
    """``config schema``: prints the JSON Schema of the configuration."""
    from mcphost.config.schema import config_schema  # late: it takes longer than the other actions

    return Outcome(json_text(config_schema()))


def client_metadata(url: str | None, port: int, document: Callable[[str, str], Mapping[str, object]]) -> Outcome:
    """``config client-metadata``: prints the client metadata document to publish at ``url``."""
    if url is None:
        raise UsageError("client-metadata needs the https URL that the document will have")
    if reason := reason_against_document(url):
        raise ConfigError(f"{show_line(url)}: {reason}")
    back = f"http://127.0.0.1:{port}/callback" if port else "http://127.0.0.1/callback"
    exact = "" if port else "; where a server insists on one port: add --port, and set oauth.redirect_port"
    hint = f"publish this at {show_line(url, 500)} as application/json and set oauth.client_metadata_url{exact}"
    by_name = 'for oauth.redirect_host = "localhost", write localhost in place of 127.0.0.1'
    return Outcome(json_text(document(url, back)), remarks=(hint, by_name))


def trust(found: ConfigLocation, env: Mapping[str, str], *, yes: bool) -> Outcome:
    """``config trust``: shows what a project's file would run, and trusts its present content if the user agrees."""
    if found.path is None or not found.needs_trust:
        raise ConfigError("there is no mcphost.toml in this folder to trust")
    project = load(found.path, project=True)
    _show(found.path, project)
    if not yes and not _agreed():
        return Outcome(code=Exit.DECLINED, remarks=("not trusted",))
    trusted_folders(env).trust(found.path, project.digest)
    return Outcome(remarks=(f"{found.path} is trusted until it changes",))


def _show(path: Path, project: LoadedConfig) -> None:
    print(f"{show_line(str(path), 4096)} would run:", file=sys.stderr)
    for name, server in project.config.servers.items():
        for line in _runs(name, server):
            print(f"  {line}", file=sys.stderr)
    if not project.config.servers:
        print("  nothing", file=sys.stderr)
    for name, profile in project.config.profiles.items():
        for line in _sets(name, profile):
            print(f"  {line}", file=sys.stderr)
    for problem in project.problems:
        remark(str(problem))


def _sets(name: str, profile: ProfileConfig) -> Iterator[str]:
    for variable, text in profile.variables.items():
        yield f"in the profile {name}, ${{{variable}}} above is {show_line(text, 1 << 30)}"
    for where, reference in references_within(profile.variables):
        yield f"    reading your {show_line(reference.origin, 4096)} for {show_line(where, 4096)}"


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
    if obtains_alone(oauth):
        yield "    by itself, wherever that server says"


def _agreed() -> bool:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise ConfigError("there is no terminal to ask on; add --yes once you have looked at the file")
    discard_input(sys.stdin.fileno())
    sys.stderr.write("Trust this file as it is now? [y/N] ")
    sys.stderr.flush()
    with suppress(EOFError):
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    return False


def _why(found: ConfigLocation, env: Mapping[str, str], explicit: bool) -> str:
    if explicit:
        return "named by --config"
    if found.needs_trust:
        return f"the project's file in this folder{f', together with {found.user}' if found.user else ''}"
    return "named by MCPHOST_CONFIG" if env.get("MCPHOST_CONFIG") else "your own configuration"
