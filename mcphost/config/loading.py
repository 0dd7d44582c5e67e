"""Finds and reads the configuration file and ``servers.toml`` beside it, and keeps their valid part.

A mistake in one server or model disables that entry only. Whether a project folder is trusted is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from mcphost.config.fields import ConfigTable, server_name
from mcphost.config.files import read_regular, text_of
from mcphost.config.identities import IdentityConfig
from mcphost.config.limits import Limits
from mcphost.config.models import UI, ChatConfig, Config, ModelConfig, ProfileConfig, RegistryConfig, ServeConfig
from mcphost.config.policy import Policy
from mcphost.config.problems import TableValidator, each, nearest, shown_key, together
from mcphost.config.servers import ServerConfig, users_oauth_keys
from mcphost.errors import ConfigError, UnresolvedReference
from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass
from mcphost.places import PROJECT_FILE, SERVERS_FILE, users_path

MAX_FILE_BYTES = 2 * 1024 * 1024
"""Bytes of a configuration file; more than any person writes."""

MAX_ENTRIES = 500
"""Servers, or models, of one file."""

_SECTIONS = (
    "servers", "mcp_servers", "models", "identity", "policy", "limits", "ui", "chat", "registry", "serve", "profiles",
)  # fmt: skip
_PROJECT_SECTIONS = ("servers", "mcp_servers", "profiles")
_USERS_KEYS = ("trust_hints", "sampling", "limits", "roots")
_AT_LINE = r" \(at (?:line (\d+), column \d+|end of document)\)$"
# tomllib needs quadratic time for keys of very many parts. A lookbehind and possessive repeats keep this linear.
_ENDLESS_KEY = r"""(?<![\w"'.-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){64}"""

_T = TypeVar("_T", bound=ConfigTable)


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    """The place of the configuration. ``path`` None: no file of the user or a project, but perhaps ``added``.

    ``needs_trust``: ``path`` is a project's file, which may name programs to run: use nothing of it before the user
    trusts it. ``user`` is then the user's own file, or None. ``added`` is the ``servers.toml`` beside the user's own
    file, if there is one and no file was named explicitly. ``profile`` is the one to use. ``ignores_lock``: for the
    command that writes ``policy.lock``, which need not exist before.
    """

    path: Path | None
    needs_trust: bool = False
    user: Path | None = None
    added: Path | None = None
    profile: str | None = None
    ignores_lock: bool = False

    @property
    def found(self) -> bool:
        return self.path is not None or self.added is not None


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The valid part of a file, all problems in order, and the servers that are disabled by one.

    ``digest`` is the SHA-256 (hex) of the bytes that were read, to which trust is bound.
    """

    config: Config
    problems: tuple[ConfigError, ...] = ()
    disabled: Mapping[str, ConfigError] = field(default_factory=dict)
    digest: str = ""


def find_config(explicit: Path | None, cwd: Path, env: Mapping[str, str], profile: str | None = None) -> ConfigLocation:
    """Choose the file to read: ``explicit``, else ``mcphost.toml`` in ``cwd``, else the user's own.

    The user's own is that of `users_path`, with ``servers.toml`` beside it. Named files are returned even if they do
    not exist, so that reading them reports it.
    """
    if explicit is not None:
        return ConfigLocation(explicit, profile=profile)
    project, user = cwd / PROJECT_FILE, users_path(env)
    added = user.with_name(SERVERS_FILE)
    own = user if env.get("MCPHOST_CONFIG") or os.path.lexists(user) else None
    added_there = added if os.path.lexists(added) else None
    # A dangling link counts too: it should be reported, not ignored.
    if os.path.lexists(project):
        return ConfigLocation(project, needs_trust=True, user=own, added=added_there, profile=profile)
    return ConfigLocation(own, added=added_there, profile=profile)


def load(path: Path, *, project: bool = False) -> LoadedConfig:
    """Read one file; see ``parse``. Also raises ConfigError if it cannot be read."""
    text, digest = _text_of(path)
    return replace(parse(text, path, project=project), digest=digest)


def load_found(found: ConfigLocation) -> LoadedConfig:
    """Read what ``find_config`` found, adding a project's servers to the user's own configuration.

    Reading is harmless; with ``needs_trust``, show the result to the user first. ``digest`` is then that of the project
    file. Raises ConfigError, also for an unknown profile.
    """
    loaded = _load_whole(found)
    if found.profile is None:
        return loaded
    from mcphost.config.profiles import in_profile  # late: most runs have none

    if found.profile not in loaded.config.profiles:
        for problem in loaded.problems:  # it is there, and invalid
            if problem.message.startswith((f"profiles.{found.profile}:", f"profiles.{found.profile}.")):
                raise problem
    config, problems = in_profile(loaded.config, found.profile)
    profile = config.profiles[found.profile]
    disabled = {name: error for name, error in loaded.disabled.items() if profile.has(name)}
    broken = {name: error for (section, name), error in problems.items() if section == "servers"}
    return replace(
        loaded, config=config, problems=(*loaded.problems, *problems.values()), disabled={**disabled, **broken}
    )


def _load_whole(found: ConfigLocation) -> LoadedConfig:
    """Read what was found, with every server."""
    if not found.needs_trust or found.path is None:
        return _load_users(found.path, found)
    project = load(found.path, project=True)
    own = found.user is not None or found.added is not None
    return _joined(_load_users(found.user, found), project) if own else project


def parse(text: str, path: Path | None = None, *, project: bool = False) -> LoadedConfig:
    """Parse TOML to a configuration. An invalid server or model is left out and reported, with its line.

    With ``project`` only servers count, and nothing in them may loosen the user's decisions; the rest is left out and
    reported. Raises ConfigError (ConfigErrors for several) for invalid TOML, unknown sections and mistakes in
    ``[policy]``, ``[limits]``, ``[ui]``, ``[chat]``, ``[registry]`` and ``[serve]``.
    """
    return _Reader(text, path, project).read()


def _text_of(path: Path) -> tuple[str, str]:
    """The text of a file, and the SHA-256 (hex) of its bytes. Raises ConfigError."""
    try:
        content = read_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        raise ConfigError("there is no such file; create it, or name another", path=path) from None
    try:
        return text_of(content), hashlib.sha256(content).hexdigest()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("is not UTF-8 here; save the file as UTF-8", path=path, line=line) from None


def _load_users(path: Path | None, found: ConfigLocation) -> LoadedConfig:
    """Read the user's own file with ``servers.toml``; a mistake there costs no more than its servers."""
    added = found.added
    if path is None and added is None:
        return LoadedConfig(Config())
    text, digest = ("", "") if path is None else _text_of(path)
    beneath = None if added is None else _AddedServers(added)
    loaded = _Reader(text, path, False, beneath).read()
    policy = loaded.config.policy
    if policy.lock is not None and path is not None:
        from mcphost.config.surface_lock import policy_lock  # late: few policies have a lock

        lock = path.absolute().parent / os.path.expanduser(policy.lock)
        policy = policy.with_lock(lock, None if found.ignores_lock else policy_lock(lock))
    config = loaded.config.model_copy(update={"path": path or added, "added": added, "policy": policy})
    problems = (*loaded.problems, *(beneath.problems if beneath else ()))
    return replace(loaded, config=config, problems=problems, digest=digest)


def _joined(user: LoadedConfig, project: LoadedConfig) -> LoadedConfig:
    """Add a project's servers to the user's; the user's take precedence."""
    taken = [f"servers.{name}" for name in sorted(user.config.servers.keys() & project.config.servers.keys())]
    taken += [f"profiles.{name}" for name in sorted(user.config.profiles.keys() & project.config.profiles.keys())]
    problems = [
        ConfigError(f"{name}: your own configuration has this name already", path=project.config.path) for name in taken
    ]
    servers = project.config.servers | user.config.servers
    theirs = frozenset(project.config.servers.keys() - user.config.servers.keys())
    profiles = {name: profile.of_project(theirs) for name, profile in project.config.profiles.items()}
    joined = {"servers": servers, "profiles": profiles | user.config.profiles, "path": project.config.path}
    return LoadedConfig(
        user.config.model_copy(update=joined),
        (*user.problems, *project.problems, *problems),
        {**project.disabled, **user.disabled},
        project.digest,
    )


class _AddedServers:
    """The entries of ``servers.toml``, not yet validated; what is wrong with the file as a whole is a problem."""

    def __init__(self, path: Path) -> None:
        self.validator = TableValidator("", path)
        self.tables: dict[str, Any] = {}
        self.problems: list[ConfigError] = []
        try:
            text, _ = _text_of(path)
            self.validator = TableValidator(text, path)
            self._take(parse_toml(text, path, ours=True))
        except ConfigError as error:
            self.problems.append(error)

    def _take(self, data: Mapping[str, Any]) -> None:
        for key in data:
            if key != "servers":
                self.problems.append(self.validator.problem((key,), "is ignored here; it belongs in config.toml"))
        servers = data.get("servers", {})
        if not isinstance(servers, dict) or len(servers) > MAX_ENTRIES:
            sentence = f"must be a table, [servers.NAME], of at most {MAX_ENTRIES} entries"
            raise self.validator.problem(("servers",), sentence)
        self.tables = servers


def parse_toml(text: str, path: Path | None = None, *, ours: bool = False) -> dict[str, Any]:
    """Parse TOML. Raises ConfigError with the line; ``ours`` is a configuration of mcphost, not of another program."""
    if endless := re.search(_ENDLESS_KEY, text):
        line = text.count("\n", 0, endless.start()) + 1
        raise ConfigError("a key of more than 64 parts; nothing here needs one", path=path, line=line)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("is nested too deeply to be read", path=path) from None
    except ValueError as error:  # TOMLDecodeError is one; a number of 5000 digits raises the plain one
        raise _broken(str(error), text, path, ours) from None


_JSON_START = r"\s*(?:\{|\[\s*\{|//|/\*)"
"""A comment begins so in the JSON of several editors."""
_PYTHON_OR_JSON = r"[\w.\"'-]+\s*=\s*(?:(True|False)|(null|None|nil))\b"
_UNQUOTED = r"[\w.\"'-]+\s*=\s*[A-Za-z~/$.\\]"
_YAML_KEY = r"\s*(?:- )?[\w\"'.-]+\s*:(?:\s|$)|---\s*$"


def _broken(message: str, text: str, path: Path | None, ours: bool) -> ConfigError:
    place = re.search(_AT_LINE, message)
    if place is None:
        return ConfigError("holds a number too long to read", path=path)
    line = int(place[1]) if place[1] else text.rstrip().count("\n") + 1
    if ours and (other := _other_format(text, line)):
        sentence = f"this is {other}, and mcphost's configuration is TOML; to take servers from it: mcphost import FILE"
        return ConfigError(sentence, path=path, line=line)
    reason = message[: place.start()]
    if "Cannot" in reason:  # overwrite a value, declare twice, redefine, mutate
        reason += "; the same key or table is there already, remove one of them"
    elif re.search("hex value|Unescaped|unicode", reason) and "\\" in _line_of(text, line):
        reason += "; in \"...\" a \\ begins an escape, so write such a path in '...'"
    elif "Invalid value" in reason:
        reason += _about_value(_line_of(text, line).strip())
    return ConfigError(f"this is not valid TOML: {reason}", path=path, line=line)


def _about_value(line: str) -> str:
    """Suggest, as the end of a sentence, how to write a value that is not valid TOML; nothing of it is quoted."""
    if word := re.match(_PYTHON_OR_JSON, line):
        return f"; write {word[1].lower()}" if word[1] else "; TOML has no null, so leave the key out"
    return '; put the text in quotes: "..."' if re.match(_UNQUOTED, line) else ""


def _line_of(text: str, line: int) -> str:
    return next(islice(text.splitlines(), line - 1, None), "")


def _other_format(text: str, line: int) -> str:
    """The format of a text that is not TOML; empty if it is unknown."""
    if re.match(_JSON_START, text):
        return "JSON"
    return "YAML" if re.match(_YAML_KEY, _line_of(text, line)) else ""


def _overlaid(beneath: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """``beneath`` with the keys of ``table`` in place of its own; tables in both are joined in the same way."""
    made = {**beneath, **table}
    for key in beneath.keys() & table.keys():
        if isinstance(beneath[key], dict) and isinstance(table[key], dict):
            made[key] = _overlaid(beneath[key], table[key])
    return made


class _Reader:
    """Reads one text: sections first, then each entry separately. ``beneath`` are more servers."""

    def __init__(self, text: str, path: Path | None, project: bool, beneath: _AddedServers | None = None) -> None:
        self._text, self._path, self._project = text, path, project
        self._validator = TableValidator(text, path)
        self._beneath: Mapping[str, Any] = {} if beneath is None else beneath.tables
        self._beneath_validator = None if beneath is None else beneath.validator
        self._fatal: list[ConfigError] = []
        self._problems: list[ConfigError] = []
        self._disabled: dict[str, ConfigError] = {}
        self._data: dict[str, Any] = {}

    def read(self) -> LoadedConfig:
        self._data = parse_toml(self._text, self._path, ours=True)
        self._check_sections()
        config = Config(
            policy=self._section("policy", Policy),
            limits=self._section("limits", Limits),
            ui=self._section("ui", UI),
            chat=self._section("chat", ChatConfig),
            registry=self._section("registry", RegistryConfig),
            serve=self._section("serve", ServeConfig),
            path=self._path,
        )
        models = dict(self._entries("models", ModelConfig))
        servers = dict(self._servers())
        profiles = dict(self._entries("profiles", ProfileConfig))
        identities = dict(self._entries("identity", IdentityConfig))
        if self._fatal:
            raise together([*self._fatal, *self._problems])
        tables = {"servers": servers, "models": models, "identity": identities, "profiles": profiles}
        config = config.model_copy(update=tables)
        return LoadedConfig(config, each(self._problems), self._disabled)

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

    def _entries(self, section: str, model: type[_T]) -> Iterator[tuple[str, _T]]:
        for name, table in self._data.get(section, {}).items():
            try:
                yield name, self._entry((section, name), table, model, self._validator)
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
        yield from self._added(plain.keys() | alias.keys())

    def _added(self, own: Set[str]) -> Iterator[tuple[str, ServerConfig]]:
        """The servers of ``servers.toml`` of which the user's file says nothing."""
        for name, table in self._beneath.items():
            if name in own or self._beneath_validator is None:
                continue
            try:
                yield name, self._valid_server(("servers", name), table, self._beneath_validator)
            except ConfigError as error:
                self._leave_out(name, error)

    def _leave_out(self, name: str, error: ConfigError) -> None:
        self._problems.append(error)
        self._disabled[name] = error

    def _server(self, section: str, name: str, table: object) -> ServerConfig:
        where = (section, name)
        validator, below = self._validator, self._beneath.get(name)
        if self._project and isinstance(table, dict):
            table = self._restrained(where, table)
        # What runs and what it is given belong together: with a command or an address, the user's entry stands alone.
        if isinstance(below, dict) and isinstance(table, dict) and not {"command", "url"} & table.keys():
            table = _overlaid(below, table)
            validator = TableValidator(self._text, self._path, self._beneath_validator)
        return self._valid_server(where, table, validator)

    def _valid_server(self, where: tuple[str, str], table: object, validator: TableValidator) -> ServerConfig:
        server = self._entry(where, table, ServerConfig, validator)
        model = server.sampling.model
        if model is not None and model not in self._data.get("models", {}):
            raise validator.problem((*where, "sampling", "model"), f"there is no [models.{model}]; add it")
        identity, known = server.oauth.identity, self._data.get("identity", {})
        if identity is not None and identity not in known:
            near = nearest(identity, list(known))
            advice = f"did you mean {shown_key(near)}?" if near else "add it"
            raise validator.problem((*where, "oauth", "identity"), f"there is no [identity.{identity}]; {advice}")
        return server

    def _entry(self, where: tuple[str, str], table: object, model: type[_T], validator: TableValidator) -> _T:
        try:
            server_name(where[1])
        except ValueError as error:
            raise validator.problem(where, str(error)) from None
        return validator.validated(model, table, where)

    def _restrained(self, where: tuple[str, str], table: dict[str, Any]) -> dict[str, Any]:
        """Return the entry without what only the user may grant: trust, sampling, limits, roots and approvals."""
        kept = {key: value for key, value in table.items() if key not in _USERS_KEYS}
        granted: list[tuple[str, ...]] = [(key,) for key in table if key in _USERS_KEYS]
        if isinstance(tools := table.get("tools"), dict):
            granted += [("tools", name, key) for name, tool in tools.items() for key in _granting(tool)]
            kept["tools"] = {name: _without(tool, *_granting(tool)) for name, tool in tools.items()}
        if isinstance(oauth := table.get("oauth"), dict):
            loosened = users_oauth_keys(oauth)
            granted += [("oauth", key) for key in loosened]
            kept["oauth"] = _without(oauth, *loosened)
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


_STEPS = r"(?s)(\w+)(?:\[(\d+)\])?(?:\.(.+))?"
_ELEMENT = r"(\w+)\[(\d+)\]"


def placed(error: UnresolvedReference, config: Config, server: str) -> UnresolvedReference:
    """Add the place of the field in the file of ``config`` to an error. Blocks on the disk."""
    places = [(path, *found) for path in (config.path, config.added) if path and (found := _line(path, server, error))]
    # The entry may stand in both files: what counts is where this key of it does.
    for path, line, _ in sorted(places, key=lambda place: not place[2])[:1]:
        error.path, error.line = path, line
        error.args = (f"{path}:{line}: {error}",)
    return error


def problem_at(paths: Iterable[Path | None], spots: Sequence[KeyPath], sentence: str) -> ConfigError:
    """An error about the first of these ``spots`` that one of the files has, with its line. Blocks on the disk."""
    for path in filter(None, paths):
        try:
            text = text_of(read_regular(path, MAX_FILE_BYTES))
            validator = TableValidator(text, path)
            spot = next((each for each in spots if validator.holds(each)), None)
        except (OSError, ValueError, ConfigError):
            continue
        if spot is not None:
            return validator.problem(spot, sentence)
    return TableValidator("", None).problem(spots[0], sentence)


def _line(path: Path, server: str, error: UnresolvedReference) -> tuple[int, bool] | None:
    """The line of the field of an error, and whether it is exactly that; None where the server is not in the file."""
    from mcphost.config.key_lines import KeyLines  # late: only needed for a file with mistakes

    try:
        lines = KeyLines(text_of(read_regular(path, MAX_FILE_BYTES)))
    except (OSError, ValueError, ConfigError):
        return None
    steps = _steps(error.field.removeprefix(f"servers.{server}."))
    for section in ("servers", "mcp_servers"):
        if lines.holds((section, server)):
            spot = (section, server, *steps)
            line = lines.line_of(spot)
            return None if line is None else (line, lines.holds(spot))
    return None


def _steps(field: str) -> KeyPath:
    """Keys and positions. A key inside a table, such as a variable's name, may hold dots."""
    match = re.fullmatch(_STEPS, field)
    if match is None:
        return ()
    position = () if match[2] is None else (int(match[2]),)
    return (match[1], *position, *_within(match[3]))


def _within(rest: str | None) -> KeyPath:
    element = re.fullmatch(_ELEMENT, rest or "")
    return tuple(filter(None, [rest])) if element is None else (element[1], int(element[2]))
