"""``calls.toml``: saved calls, beside a project's ``mcphost.toml`` or the user's configuration.

People edit this file and keep it in version control, so comments and order last when mcphost changes it. Everything
here blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import datetime
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from mcphost.config.fields import ConfigTable, Name, Pattern, Seconds, misplaced
from mcphost.config.files import read_regular, text_of
from mcphost.config.loading import parse_toml
from mcphost.config.models import Config
from mcphost.config.problems import TableValidator, each, shown_key
from mcphost.config.references import (
    MalformedReferenceError,
    Reference,
    references,
    references_within,
    substituted,
)
from mcphost.config.servers import ServerConfig
from mcphost.config.state import file_version, folder_locked, replace_file
from mcphost.config.values import Values
from mcphost.errors import ConfigError
from mcphost.json_values import map_texts
from mcphost.lazy_dataclass import dataclass
from mcphost.places import CALLS_FILE

MAX_CALLS_BYTES: Final = 1024 * 1024
"""Bytes of the file; more than any person writes, and few enough to be edited within seconds."""

MAX_CALLS: Final = 500
"""Calls of one file; more than a list on screen is good for."""

MAX_NAME: Final = 64
"""Characters of a call's name, which is typed on the command line."""

MAX_TARGET: Final = 4096
"""Characters of the name of a tool or a prompt, or of a URI."""

MAX_DEPTH: Final = 32
"""Levels of lists and tables in an argument; no tool needs more, and what walks them calls itself for each."""

HEADER: Final = """\
# Calls that mcphost saved; to run one: mcphost run NAME
# Secrets are written as references, such as ${keyring:NAME}; a literal ${ is written $${

"""

TARGETS: Final = ("tool", "prompt", "resource")


def call_name(name: str) -> str:
    """Return ``name`` if it may name a saved call. Raises ValueError."""
    if not 0 < len(name) <= MAX_NAME:
        raise ValueError(f"a name has 1 to {MAX_NAME} characters")
    if not name.isprintable():
        raise ValueError("a name holds no control or invisible characters")
    if "=" in name or name.startswith("-") or name != name.strip():
        raise ValueError("a name holds no '=', begins with no '-', and has no blank around it")
    return name


def _target(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; name a tool, a prompt or a resource")
    if len(text) > MAX_TARGET:
        raise ValueError(f"has more than {MAX_TARGET:,} characters")
    return text


def _arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    for name, value in arguments.items():
        if problem := _problem_of(name) or _problem_of(value):
            raise misplaced(name, f"{shown_key(name)} {problem}")
    return arguments


def _problem_of(value: object) -> str:
    """Why a value cannot be an argument in the file, as the rest of a sentence; empty if it can."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if problem := next(filter(None, map(_problem_of_one, level)), ""):
            return problem
        level = [part for each in level for part in _parts(each)]
        if not level:
            return ""
    return f"is nested more than {MAX_DEPTH} levels deep"


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from (*value, *value.values())
    elif isinstance(value, list):
        yield from value


def _problem_of_one(value: object) -> str:
    match value:
        case None:
            return "holds null, which TOML does not have; leave it out"
        case str():
            try:
                value.encode()
                references(value)
            except UnicodeError:
                return "holds half a character, which no file can hold"
            except MalformedReferenceError as error:
                return f"cannot be read: {error}"
        case float() if not isfinite(value):
            return "must be a finite number"
        case datetime.date() | datetime.time():
            return "is a date or time, which JSON does not have; put it in quotes"
    return ""


CallName = Annotated[str, AfterValidator(call_name)]
Target = Annotated[str, AfterValidator(_target)]
CallArguments = Annotated[dict[str, Any], AfterValidator(_arguments)]


class ExpectedResult(ConfigTable):
    """``expect``: the result that a test of the call demands. What is absent is not compared."""

    is_error: bool | None = None
    """True if the tool must report a failure."""
    text_matches: Pattern | None = None
    """A regular expression that the text must match somewhere."""
    structured: dict[str, Any] | None = None
    """Members that the structured content must have."""


class SavedCall(ConfigTable):
    """``[[call]]``: a call of a tool, a prompt or a resource."""

    name: CallName
    """Unique in the file."""
    server: Name
    """The name of the server's entry in the configuration."""
    tool: Target | None = None
    prompt: Target | None = None
    resource: Target | None = None
    """The URI, or with ``arguments`` a template of it."""
    arguments: CallArguments = Field(default_factory=dict)
    """As in the file: ``${…}`` is a reference, and ``$${`` a literal ``${``."""
    expect: ExpectedResult | None = None
    """For tests; running the call ignores it."""
    max_seconds: Seconds | None = None
    """For tests, too."""

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        given = [kind for kind in TARGETS if getattr(self, kind) is not None]
        if not given:
            raise ValueError("names nothing to call; add tool, prompt or resource")
        if len(given) > 1:
            raise misplaced(given[1], f"has both {given[0]} and {given[1]}; keep one")
        return self

    @model_validator(mode="after")
    def _texts_only(self) -> Self:
        if self.tool is not None:
            return self
        for name, value in self.arguments.items():
            if not isinstance(value, str):
                raise misplaced("arguments", f"{shown_key(name)} must be a string, as all arguments of a {self.kind}")
            if references(value):
                sentence = (
                    f"{shown_key(name)} holds a reference, which only arguments of a tool may; write $${{ for ${{"
                )
                raise misplaced("arguments", sentence)
        return self

    @property
    def kind(self) -> str:
        """``tool``, ``prompt`` or ``resource``."""
        return next(kind for kind in TARGETS if getattr(self, kind) is not None)

    @property
    def target(self) -> str:
        """The name of the tool or prompt, or the URI."""
        return str(getattr(self, self.kind))

    @property
    def entry(self) -> dict[str, Any]:
        """The call as the file has it."""
        values = self.model_dump(exclude_none=True)
        return values if self.arguments else {key: value for key, value in values.items() if key != "arguments"}

    @property
    def shown(self) -> dict[str, Any]:
        """The arguments to show and to fill in: texts with references as in the file, others as they are sent."""
        return {name: map_texts(value, _unescaped) for name, value in self.arguments.items()}

    @property
    def referring(self) -> frozenset[tuple[str, str]]:
        """The texts with references, each with the name of its argument."""
        found = ((name, text) for name, value in self.arguments.items() for text in _texts(value))
        return frozenset((name, text) for name, text in found if references(text))


def saved_arguments(arguments: Mapping[str, Any], referring: frozenset[tuple[str, str]]) -> dict[str, Any]:
    """Arguments as the file has them: ``${`` is escaped, except in the texts of ``referring``."""

    def written(name: str) -> Callable[[str], str]:
        return lambda text: text if (name, text) in referring else text.replace("${", "$${")

    return {name: map_texts(value, written(name)) for name, value in arguments.items()}


def _unescaped(text: str) -> str:
    return text if references(text) else text.replace("$${", "${")


def _texts(value: object) -> Iterator[str]:
    """The strings in a value, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each_value in value.values():
            yield from _texts(each_value)
    elif isinstance(value, list):
        for each_value in value:
            yield from _texts(each_value)


def validated_call(entry: Mapping[str, Any]) -> SavedCall:
    """The call of an entry as the file would give it. Raises ConfigError, which names the key."""
    return TableValidator("", None).validated(SavedCall, dict(entry), ())


@dataclass(frozen=True, slots=True)
class LoadedCalls:
    """The valid calls of a file in its order, and what is wrong with others; ``broken`` has those problems by name.

    ``twice`` has them for names of several calls, of which the first is valid.
    """

    calls: tuple[SavedCall, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    broken: Mapping[str, ConfigError] = field(default_factory=dict)
    twice: Mapping[str, ConfigError] = field(default_factory=dict)

    def find(self, name: str) -> SavedCall | None:
        return next((call for call in self.calls if call.name == name), None)


def parse_calls(text: str, path: Path | None = None) -> LoadedCalls:
    """Read the text of the file. An invalid call is left out and reported. Raises ConfigError for invalid TOML."""
    data, validator = parse_toml(text, path), TableValidator(text, path)
    problems = [validator.unknown_key(key, ["call"], ()) for key in data if key != "call"]
    entries = data.get("call", [])
    if not isinstance(entries, list):
        raise validator.problem(("call",), "must be a list of tables, [[call]]")
    if len(entries) > MAX_CALLS:
        raise validator.problem(("call",), f"has more than {MAX_CALLS} calls; nothing of the file was read")
    calls: dict[str, SavedCall] = {}
    places: dict[str, int] = {}
    broken: dict[str, ConfigError] = {}
    twice: dict[str, ConfigError] = {}
    for number, entry in enumerate(entries):
        where = ("call", number)
        try:
            call = validator.validated(SavedCall, entry, where)
            if call.name in calls:
                first = validator.problem(("call", places[call.name], "name"), "").line
                again = validator.problem((*where, "name"), f"the call in line {first} has this name, too; rename one")
                twice.setdefault(call.name, again)
                raise again
        except ConfigError as error:
            problems.append(error)
            name = entry.get("name") if isinstance(entry, dict) else None
            if isinstance(name, str):
                broken.setdefault(name, error)
        else:
            calls[call.name], places[call.name] = call, number
    only_broken = {name: error for name, error in broken.items() if name not in calls}
    return LoadedCalls(tuple(calls.values()), each(problems), only_broken, twice)


class CallsFile:
    """The saved calls at ``path``. ``own``: it is the user's own file, in which any reference may stand."""

    def __init__(self, path: Path, values: Values, *, own: bool) -> None:
        self.path, self.own = path, own
        self._values = values.beside(path)

    @classmethod
    def beside(cls, config: Path | None, users: Path, values: Values) -> Self:
        """The file beside the configuration in use (None if missing); ``users`` is the user's own, there or not."""
        path = (config or users).with_name(CALLS_FILE)
        return cls(path, values, own=path.absolute() == users.with_name(CALLS_FILE).absolute())

    def at(self, path: Path, *, own: bool) -> CallsFile:
        """Another file, whose references get their values as those of this one."""
        return CallsFile(path, self._values, own=own)

    def version(self) -> object:
        """Changes with the file. Fast enough for the event loop."""
        return file_version(self.path)

    def read(self) -> LoadedCalls:
        """Read the file; a missing one has no calls. Raises ConfigError."""
        text = _text_at(self.path)
        return LoadedCalls() if text is None else parse_calls(text, self.path)

    def save(self, call: SavedCall, *, replace: bool = False) -> None:
        """Add a call, or ``replace`` the one of its name. Creates the file if necessary.

        The file is written atomically, under a lock against all other writers. Raises ConfigError, also where there is
        a call of this name that is not to be replaced; the old content is then untouched.
        """
        from mcphost.config.calls_document import names_in, with_call  # late: only writing needs tomlkit

        def change(text: str) -> str:
            if not replace and call.name in names_in(text):
                raise ConfigError(f'another call is named "{call.name}"', path=self.path)
            return with_call(text or HEADER, call.entry)

        self._edit(change)

    def save_expectation(self, name: str, expect: ExpectedResult) -> None:
        """Replace what the test of a call expects; nothing else of the file changes. Raises ConfigError as `save`."""
        from mcphost.config.calls_document import with_expectation  # late: only writing needs tomlkit

        self._edit(lambda text: with_expectation(text, name, expect.model_dump(exclude_none=True)))

    def remove(self, name: str) -> bool:
        """Take a call out of the file; False where it is not in it. Raises ConfigError as `save` does."""
        from mcphost.config.calls_document import names_in, without_call  # late: only writing needs tomlkit

        found = False

        def change(text: str) -> str:
            nonlocal found
            found = name in names_in(text)
            return without_call(text, name) if found else text

        if self.version() is not None:
            self._edit(change)
        return found

    def resolve(self, config: Config, call: SavedCall, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``arguments``, as `SavedCall.shown` or edited since, with the references of ``call`` replaced.

        Only texts that the call has with a reference are replaced. In a project's file these must be references of the
        server's own entry. Waits for the keychain. Raises ConfigError.
        """
        known = None if self.own else _references_of(config.servers.get(call.server))
        referring, profile = call.referring, config.profiles.get(config.profile or "")
        variables = {} if profile is None else profile.variables_for(call.server)

        def value_of(name: str) -> Callable[[str], str]:
            def changed(text: str) -> str:
                if (name, text) not in referring:
                    return text
                for reference in references(text):
                    if known is not None and not _is_known(reference, variables, known):
                        raise self._refused(call, name, reference, known)
                return self._values.resolve(substituted(text, variables), f"{call.name}.arguments.{name}")

            return changed

        return {name: map_texts(value, value_of(name)) for name, value in arguments.items()}

    def _refused(
        self, call: SavedCall, name: str, reference: Reference, known: Mapping[tuple[str, str], str]
    ) -> ConfigError:
        has = f"has {', '.join(sorted(known.values())[:5])}" if known else "has none"
        return ConfigError(
            f"{shown_key(call.name)}: {shown_key(name)} holds {reference.text}, which is not used: in a project's file "
            f"a call may hold only references of its server's entry, and servers.{call.server} {has}",
            path=self.path,
        )

    def _edit(self, change: Callable[[str], str]) -> None:
        """Replace the text of the file by what ``change`` makes of it, unless that is equal."""
        if not self.own and self.path.is_symlink():  # a project could have any file of the user changed
            raise ConfigError("is a link, which mcphost does not follow in a project; edit it by hand", path=self.path)
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = self.path.resolve()  # a symbolic link stays one
        except OSError as error:
            raise ConfigError(f"cannot be written: {error.strerror}", path=self.path) from None
        with folder_locked(target):
            before = _text_at(target)
            parse_toml(before or "", self.path)
            after = change(before or "")
            if after == before:
                return
            # A file in version control keeps its rights.
            mode = 0o600 if before is None else stat.S_IMODE(target.stat().st_mode)
            replace_file(target, after.encode(), mode=mode)


def _text_at(path: Path) -> str | None:
    try:
        return text_of(read_regular(path, MAX_CALLS_BYTES))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8; save the file as UTF-8", path=path) from None


def _is_known(reference: Reference, variables: Mapping[str, str], known: Mapping[tuple[str, str], str]) -> bool:
    """True if the server's entry holds the reference, or all that the profile puts in its place."""
    replaced = variables.get(reference.name) if reference.kind == "env" else None
    # A profile's value is in the server's entry already, so a plain one cannot be found there by its name.
    needed = [reference] if replaced is None else list(references(replaced))
    return bool(needed) and all((each.kind, each.name) in known for each in needed)


def _references_of(server: ServerConfig | None) -> dict[tuple[str, str], str]:
    """The references and variables of a server's entry, by kind and name."""
    if server is None:
        return {}
    found: dict[tuple[str, str], str] = {
        (each.kind, each.name): each.text for _, each in references_within(server.model_dump())
    }
    variables = (*server.env_vars, *server.env_http_headers.values(), server.bearer_token_env_var)
    return {**{("env", name): f"${{{name}}}" for name in variables if name}, **found}
