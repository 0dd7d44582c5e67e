"""The configuration: which file counts, its problems, and whether a project's file is trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcphost.cli.doctor.environment import SET_HOME
from mcphost.cli.doctor.findings import Finding, ok, problem, warning
from mcphost.cli.doctor.programs import edit_command
from mcphost.cli.settings import TRUST_COMMAND, find, settings_for_screen
from mcphost.config import Config, ConfigErrors, ConfigLocation, LoadedConfig, users_path
from mcphost.errors import ConfigError
from mcphost.lazy_dataclass import dataclass
from mcphost.places import home_folder


@dataclass(frozen=True, slots=True)
class ReadConfiguration:
    """What could be read, and the findings about it. ``loaded`` is None where nothing of the file can be used."""

    loaded: LoadedConfig | None
    findings: tuple[Finding, ...]
    edit: str = ""
    """The command that opens the file in the user's editor."""


def read_configuration(explicit: str | None, env: Mapping[str, str]) -> ReadConfiguration:
    """Read the configuration as every command does; never raises."""
    try:
        found = find(explicit, env)
    except ConfigError as error:
        text = f"the configuration cannot be looked for: {error.message}"
        return ReadConfiguration(None, (problem("configuration", text, "cd" if home_folder() else SET_HOME),))
    if not found.found:
        text = f"there is none yet; it would be {users_path(env)}"
        return ReadConfiguration(LoadedConfig(Config()), (warning("configuration", text, "mcphost import"),))
    edit = edit_command((found.user if found.needs_trust else found.path) or found.added, None, env)
    try:
        settings = settings_for_screen(found, env)
    except ConfigError as error:
        return ReadConfiguration(None, tuple(_problems(error, env)), edit)
    findings = [each for one in settings.loaded.problems for each in _problems(one, env)]
    if settings.untrusted is not None:
        text = settings.untrusted.partition(f"; to see what it would run and decide: {TRUST_COMMAND}")[0]
        findings.append(warning("project", text, TRUST_COMMAND))
    elif found.needs_trust:
        findings.append(ok("project", f"{found.path} is trusted"))
    if not settings.loaded.problems:
        findings.insert(0, ok("configuration", _contents(settings.found, settings.loaded)))
    return ReadConfiguration(settings.loaded, tuple(findings), edit)


def _problems(error: ConfigError, env: Mapping[str, str]) -> Iterator[Finding]:
    for each in error.problems if isinstance(error, ConfigErrors) else (error,):
        yield problem("configuration", str(each), edit_command(each.path, each.line, env))


def _contents(found: ConfigLocation, loaded: LoadedConfig) -> str:
    config = loaded.config
    files = " and ".join(str(path) for path in (found.path, found.user, found.added) if path is not None)
    return f"{files or 'none'}: {len(config.servers)} servers, {len(config.models)} models, no problems"
