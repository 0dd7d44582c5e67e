"""Finds and reads the configuration file, and keeps its valid part.

A mistake in one server or model disables that entry only. Whether a project folder is trusted is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from mcphost.config.fields import ConfigTable, server_name
from mcphost.config.files import read_regular
from mcphost.config.limits import Limits
from mcphost.config.models import UI, ChatConfig, Config, ModelConfig
from mcphost.config.policy import Policy
from mcphost.config.problems import TableValidator, each, together
from mcphost.config.servers import ServerConfig
from mcphost.errors import ConfigError, UnresolvedReference

PROJECT_FILE = "mcphost.toml"

MAX_FILE_BYTES = 2 * 1024 * 1024
"""Bytes of a configuration file; more than any person writes."""

MAX_ENTRIES = 500
"""Servers, or models, of one file."""

_SECTIONS = ("servers", "mcp_servers", "models", "policy", "limits", "ui", "chat")
_PROJECT_SECTIONS = ("servers", "mcp_servers")
_USERS_KEYS = ("trust_hints", "sampling", "limits", "roots")
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# tomllib needs quadratic time for keys of very many parts. A lookbehind and possessive repeats keep this linear.
_ENDLESS_KEY = re.compile(r"""(?<![\w"'.-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){64}""")

_T = TypeVar("_T", bound=ConfigTable)


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    """Where the configuration is. ``path`` None: there is none.

    ``needs_trust``: ``path`` is a project's file, which may name programs to run: use nothing of it before the user
    trusts it. ``user`` is then the user's own file, or None.
    """

    path: Path | None
    needs_trust: bool = False
    user: Path | None = None


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The valid part of a file, all problems in order, and the servers that are disabled by one.

    ``digest`` is the SHA-256 (hex) of the bytes that were read, to which trust is bound.
    """

    config: Config
    problems: tuple[ConfigError, ...] = ()
    disabled: Mapping[str, ConfigError] = field(default_factory=dict)
    digest: str = ""


def find_config(explicit: Path | None, cwd: Path, env: Mapping[str, str]) -> ConfigLocation:
    """Choose the file to read: ``explicit``, else ``mcphost.toml`` in ``cwd``, else the user's own.

    The user's own is ``$MCPHOST_CONFIG``, else ``config.toml`` in the platform's configuration folder. Named
    files are returned even if they do not exist, so that reading them reports it.
    """
    if explicit is not None:
        return ConfigLocation(explicit)
    project, user = cwd / PROJECT_FILE, _users_file(env)
    # A dangling link counts too: it should be reported, not ignored.
    if project.exists() or project.is_symlink():
        return ConfigLocation(project, needs_trust=True, user=user)
    return ConfigLocation(user)


def load(path: Path, *, project: bool = False) -> LoadedConfig:
    """Read one file; see ``parse``. Also raises ConfigError if it cannot be read."""
    try:
        content = read_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        raise ConfigError("there is no such file; create it, or name another", path=path) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 here; save the file as UTF-8", path=path, line=line) from None
    return replace(parse(text, path, project=project), digest=hashlib.sha256(content).hexdigest())


def load_found(found: ConfigLocation) -> LoadedConfig:
    """Read what ``find_config`` found, adding a project's servers to the user's own configuration.

    Reading is harmless; with ``needs_trust``, show the result to the user first. ``digest`` is then that of the project
    file. Raises ConfigError.
    """
    if found.path is None:
        return LoadedConfig(Config())
    if not found.needs_trust:
        return load(found.path)
    project = load(found.path, project=True)
    return project if found.user is None else _joined(load(found.user), project)


def parse(text: str, path: Path | None = None, *, project: bool = False) -> LoadedConfig:
    """Parse TOML to a configuration. An invalid server or model is left out and reported, with its line.

    With ``project`` only servers count, and nothing in them may loosen the user's decisions; the rest is left out and
    reported. Raises ConfigError (ConfigErrors for several) for invalid TOML, unknown sections and mistakes in
    ``[policy]``, ``[limits]``, ``[ui]`` and ``[chat]``.
    """
    return _Reader(text, path, project).read()


def _users_file(env: Mapping[str, str]) -> Path | None:
    if named := env.get("MCPHOST_CONFIG"):
        return Path(os.path.expanduser(named))
    from platformdirs import user_config_path  # late: slower than the rest of this module

    path = user_config_path("mcphost", appauthor=False) / "config.toml"
    return path if path.exists() or path.is_symlink() else None


def _joined(user: LoadedConfig, project: LoadedConfig) -> LoadedConfig:
    """Add a project's servers to the user's; the user's take precedence."""
    taken = user.config.servers.keys() & project.config.servers.keys()
    problems = [
        ConfigError(f"servers.{name}: your own configuration has this name already", path=project.config.path)
        for name in sorted(taken)
    ]
    servers = project.config.servers | user.config.servers
    return LoadedConfig(
        user.config.model_copy(update={"servers": servers, "path": project.config.path}),
        (*user.problems, *project.problems, *problems),
        {**project.disabled, **user.disabled},
        project.digest,
    )


class _Reader:
    """Reads one text: sections first, then each entry separately."""

    def __init__(self, text: str, path: Path | None, project: bool) -> None:
        self._text, self._path, self._project = text, path, project
        self._validator = TableValidator(text, path)
        self._fatal: list[ConfigError] = []
        self._problems: list[ConfigError] = []
        self._disabled: dict[str, ConfigError] = {}
        self._data: dict[str, Any] = {}

    def read(self) -> LoadedConfig:
        self._data = self._toml()
        self._check_sections()
        policy, limits, ui, chat = (
            self._section("policy", Policy),
            self._section("limits", Limits),
            self._section("ui", UI),
            self._section("chat", ChatConfig),
        )
        models = dict(self._models())
        servers = dict(self._servers())
        if self._fatal:
            raise together([*self._fatal, *self._problems])
        config = Config(servers=servers, models=models, policy=policy, limits=limits, ui=ui, chat=chat, path=self._path)
        return LoadedConfig(config, each(self._problems), self._disabled)

    def _toml(self) -> dict[str, Any]:
        if endless := _ENDLESS_KEY.search(self._text):
            line = self._text.count("\n", 0, endless.start()) + 1
            raise ConfigError("a key of more than 64 parts; nothing here needs one", path=self._path, line=line)
        try:
            return tomllib.loads(self._text)
        except RecursionError:
            raise ConfigError("is nested too deeply to be read", path=self._path) from None
        except ValueError as error:  # TOMLDecodeError is one; a number of 5000 digits raises the plain one
            raise self._broken(str(error)) from None

    def _broken(self, message: str) -> ConfigError:
        place = _AT_LINE.search(message)
        if place is None:
            return ConfigError("holds a number too long to read", path=self._path)
        line = int(place[1]) if place[1] else self._text.rstrip().count("\n") + 1
        reason = message[: place.start()]
        if "Cannot" in reason:  # overwrite a value, declare twice, redefine, mutate
            reason += "; the same key or table is there already, remove one of them"
        return ConfigError(f"this is not valid TOML: {reason}", path=self._path, line=line)

    def _check_sections(self) -> None:
        for key in self._data:
            if key not in _SECTIONS:
                self._fatal.append(self._validator.unknown_key(key, _SECTIONS, ()))
            elif not isinstance(self._data[key], dict):
                self._fatal.append(self._validator.problem((key,), f"must be a table, [{key}]"))
                self._data[key] = {}
            elif len(self._data[key]) > MAX_ENTRIES:
                sentence = f"has more than {MAX_ENTRIES} entries; split the file"
                self._fatal.append(self._validator.problem((key,), sentence))
                self._data[key] = {}
            elif self._project and key not in _PROJECT_SECTIONS:
                sentence = "is ignored in a project's file; it belongs in your own configuration"
                self._problems.append(self._validator.problem((key,), sentence))
                self._data[key] = {}

    def _section(self, name: str, model: type[_T]) -> _T:
        try:
            return self._validator.validated(model, self._data.get(name, {}), (name,))
        except ConfigError as error:
            self._fatal.append(error)
            return model.model_construct()

    def _models(self) -> Iterator[tuple[str, ModelConfig]]:
        for name, table in self._data.get("models", {}).items():
            try:
                yield name, self._entry(("models", name), table, ModelConfig)
            except ConfigError as error:
                self._problems.append(error)

    def _servers(self) -> Iterator[tuple[str, ServerConfig]]:
        plain, alias = self._data.get("servers", {}), self._data.get("mcp_servers", {})
        for section, name in [("servers", name) for name in plain] + [("mcp_servers", name) for name in alias]:
            if name in plain and name in alias:
                if section == "mcp_servers":
                    self._leave_out(name, self._validator.problem((section, name), "is in [servers] as well; keep one"))
                continue
            try:
                yield name, self._server(section, name, self._data[section][name])
            except ConfigError as error:
                self._leave_out(name, error)

    def _leave_out(self, name: str, error: ConfigError) -> None:
        self._problems.append(error)
        self._disabled[name] = error

    def _server(self, section: str, name: str, table: object) -> ServerConfig:
        where = (section, name)
        if self._project and isinstance(table, dict):
            table = self._restrained(where, table)
        server = self._entry(where, table, ServerConfig)
        model = server.sampling.model
        if model is not None and model not in self._data.get("models", {}):
            raise self._validator.problem((*where, "sampling", "model"), f"there is no [models.{model}]; add it")
        return server

    def _entry(self, where: tuple[str, str], table: object, model: type[_T]) -> _T:
        try:
            server_name(where[1])
        except ValueError as error:
            raise self._validator.problem(where, str(error)) from None
        return self._validator.validated(model, table, where)

    def _restrained(self, where: tuple[str, str], table: dict[str, Any]) -> dict[str, Any]:
        """Return the entry without what only the user may grant: trust, sampling, limits, roots and approvals."""
        kept = {key: value for key, value in table.items() if key not in _USERS_KEYS}
        granted: list[tuple[str, ...]] = [(key,) for key in table if key in _USERS_KEYS]
        if isinstance(tools := table.get("tools"), dict):
            granted += [("tools", name, key) for name, tool in tools.items() for key in _granting(tool)]
            kept["tools"] = {name: _without(tool, *_granting(tool)) for name, tool in tools.items()}
        if isinstance(oauth := table.get("oauth"), dict) and oauth.get("without_pkce_metadata"):
            granted.append(("oauth", "without_pkce_metadata"))
            kept["oauth"] = _without(oauth, "without_pkce_metadata")
        for keys in granted:
            sentence = "is ignored in a project's file; only your own configuration may grant it"
            self._problems.append(self._validator.problem((*where, *keys), sentence))
        return kept


def _granting(tool: object) -> tuple[str, ...]:
    """The keys that let calls run without approval."""
    if not isinstance(tool, dict):
        return ()
    granting = ("approval",) if tool.get("approval") == "allow" else ()
    return (*granting, "allow_when") if "allow_when" in tool else granting


def _without(table: Any, *keys: str) -> Any:
    return {name: value for name, value in table.items() if name not in keys} if keys else table


_STEPS = re.compile(r"(\w+)(?:\[(\d+)\])?(?:\.(.+))?", re.DOTALL)
_ELEMENT = re.compile(r"(\w+)\[(\d+)\]")


def placed(error: UnresolvedReference, config: Config, server: str) -> UnresolvedReference:
    """Add the place of the field in the file of ``config`` to an error. Blocks on the disk."""
    line = None if config.path is None else _line(config.path, server, error.field)
    if config.path is not None and line is not None:
        error.path, error.line = config.path, line
        error.args = (f"{config.path}:{line}: {error}",)
    return error


def _line(path: Path, server: str, field: str) -> int | None:
    from mcphost.config.key_lines import KeyLines  # late: only needed for a file with mistakes

    try:
        lines = KeyLines(read_regular(path, MAX_FILE_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, ConfigError):
        return None
    steps = _steps(field.removeprefix(f"servers.{server}."))
    sections = (section for section in ("servers", "mcp_servers") if lines.holds((section, server)))
    return next((lines.line_of((section, server, *steps)) for section in sections), None)


def _steps(field: str) -> tuple[str | int, ...]:
    """Keys and positions. A key inside a table, such as a variable's name, may hold dots."""
    match = _STEPS.fullmatch(field)
    if match is None:
        return ()
    position = () if match[2] is None else (int(match[2]),)
    return (match[1], *position, *_within(match[3]))


def _within(rest: str | None) -> tuple[str | int, ...]:
    element = _ELEMENT.fullmatch(rest or "")
    return tuple(filter(None, [rest])) if element is None else (element[1], int(element[2]))
