"""Reads ``server.json``, a registry's description of a server: its addresses and packages, as offers to choose from.

Schemas up to 2025-12-11, and the draft after it: older ones write ``registry_type`` for ``registryType``. What is
described is never run or fetched here.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from mcphost.config.fields import reason_against_url
from mcphost.errors import ConfigError
from mcphost.imports.found import FoundServer, ImportNote, Input, Origin, digest_of, legal_name
from mcphost.imports.inputs import Placeholder, input_id, join, placeholder
from mcphost.imports.launchers import DOCKER_FLAGS
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line

MOST_ITEMS: Final = 200
"""Packages, arguments or variables of one server; real ones have a tenth of that."""

MOST_TEXT: Final = 4096
"""Characters of one text; longer than any that a person would look at."""

_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "environmentVariables": ("environment_variables",),
    "fileSha256": ("file_sha256",),
    "identifier": ("name",),
    "isRepeated": ("is_repeated",),
    "isRequired": ("is_required",),
    "isSecret": ("is_secret",),
    "packageArguments": ("package_arguments",),
    "postInstallInstructions": ("post_install_instructions",),
    "registryBaseUrl": ("registry_base_url",),
    "registryType": ("registry_type", "registry_name"),
    "runtimeArguments": ("runtime_arguments",),
    "runtimeHint": ("runtime_hint",),
    "transportType": ("type", "transport_type"),
    "valueHint": ("value_hint",),
}
"""The spelling of a key in older schemas."""

_VARIABLE: Final = re.compile(r"\{([^{}]{1,64})\}")
_EXACT: Final = re.compile(r"v?[0-9A-Za-z][0-9A-Za-z.+!_-]{0,127}", re.ASCII)
_RANGE: Final = re.compile(r"(?:^|\.)[xX*](?:\.|$)")
_NPM_NAME: Final = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~_][a-z0-9._~-]*", re.IGNORECASE | re.ASCII)
_PYPI_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?(?:\[[a-z0-9._,-]+\])?", re.IGNORECASE | re.ASCII)
_NUGET_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)
_IMAGE: Final = re.compile(r"[a-z0-9][a-z0-9._:/-]*(?:@sha256:[a-f0-9]{64})?", re.IGNORECASE | re.ASCII)
_SHA256: Final = re.compile(r"[a-f0-9]{64}")

_GENERIC: Final = frozenset({"mcp", "mcp-server", "server", "api"})
_REMOTES: Final = {"streamable-http": "http", "streamable": "http", "http": "http", "sse": "sse"}
_RUNTIMES: Final = {"npx": "Node.js", "uvx": "uv", "docker": "Docker", "podman": "Podman", "dnx": "the .NET 10 SDK"}
_NPM_HOST: Final = re.compile(r"registry\.npmjs\.org")
_PYPI_HOST: Final = re.compile(r"pypi\.org")
_NUGET_BASE: Final = "https://api.nuget.org"

HasProgram = Callable[[str], object]
"""True if a program of this name exists."""


@dataclass(frozen=True, slots=True)
class BundleLink:
    """Where a bundle is downloaded from, and the SHA-256 (hex) that it must have."""

    url: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """One way to run or reach a server.

    ``kind`` is ``remote`` or the package's registry type, such as ``npm``. With a ``bundle`` the server's table is
    empty until the bundle was downloaded.
    """

    kind: str
    label: str
    server: FoundServer
    bundle: BundleLink | None = None


def read_server_json(
    document: object, origin: Origin, has_program: HasProgram = shutil.which
) -> tuple[ServerOffer, ...]:
    """Return what the document offers, best first, and what is refused, last. Raises ConfigError if it is none.

    A Streamable HTTP address is best, since nothing is downloaded or run on this machine for it. Then come packages
    whose runner is installed, in the publisher's order, SSE addresses, and packages whose runner is missing. ``origin``
    lacks the name and the digest.
    """
    table = _Members(document, "the document")
    name = table.text("name")
    if not name or not (table.has("packages") or table.has("remotes") or table.text("description")):
        raise ConfigError("is not a server.json: it has no name, or neither a description nor packages nor remotes")
    reader = _Reader(table, replace(origin, name=name), has_program)
    return tuple(sorted(reader.offers(), key=lambda offer: _rank(offer, has_program)))


def short_name(name: str) -> str:
    """A name for ``[servers.NAME]``: ``weather`` for ``io.github.ada/weather``, ``example`` for ``com.example/mcp``."""
    namespace, _, last = name.rpartition("/")
    if last.lower() in _GENERIC and namespace:
        last = namespace.rpartition(".")[2]
    return legal_name(last)


def is_plain_https(url: str) -> bool:
    """True if this is an https URL without references, user name and fragment."""
    return url.startswith("https://") and "${" not in url and reason_against_url(url) is None


def _rank(offer: ServerOffer, has_program: HasProgram) -> int:
    table = offer.server.table
    if offer.server.refusal:
        return 4
    if offer.kind == "remote":
        return 0 if table["transport"] == "http" else 2
    return 1 if offer.bundle or has_program(table["command"]) else 3


class _Members:
    """The members of a foreign JSON object, whatever they are called and hold. Raises ConfigError for a wrong type."""

    def __init__(self, value: object, what: str) -> None:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{what} is not an object")
        self.value, self._what = value, what

    def has(self, key: str) -> bool:
        return self._get(key) is not None

    def text(self, key: str) -> str:
        """Return the text of a member; empty if it is missing."""
        value = self._get(key)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > MOST_TEXT or "\0" in value:
            raise ConfigError(f"{key} of {self._what} is not a text, or too long")
        return value

    def scalar(self, key: str) -> str | None:
        """A text, or a number or boolean as the text that the schema wants for it; None if it is missing."""
        value = self._get(key)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, int | float) else self.text(key) if value is not None else None

    def flag(self, key: str) -> bool:
        return self._get(key) is True

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._list(key)
        if not all(isinstance(value, str) and len(value) <= MOST_TEXT for value in values):
            raise ConfigError(f"{key} of {self._what} is not a list of texts")
        return tuple(values)

    def tables(self, key: str) -> tuple[_Members, ...]:
        return tuple(_Members(value, f"an item of {key}") for value in self._list(key))

    def named(self, key: str) -> dict[str, _Members]:
        """A table of tables."""
        value = self._get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping) or len(value) > MOST_ITEMS:
            raise ConfigError(f"{key} of {self._what} is not an object, or too large")
        return {str(name): _Members(each, f"{key}.{show_line(str(name), 40)}") for name, each in value.items()}

    def _list(self, key: str) -> list[Any]:
        value = self._get(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            raise ConfigError(f"{key} of {self._what} is not a list, or too long")
        return value

    def _get(self, key: str) -> object:
        return next((self.value[each] for each in (key, *_SPELLINGS.get(key, ())) if each in self.value), None)


class _Inputs:
    """Collects the inputs of one offer; two of the same name and different meaning get different ids."""

    def __init__(self) -> None:
        self._by_id: dict[str, Input] = {}

    @property
    def all(self) -> tuple[Input, ...]:
        return tuple(self._by_id.values())

    def ask(self, name: str, entry: _Members, *, required: bool, flag: str = "", several: bool = False) -> Placeholder:
        """Ask for the value that ``entry`` describes."""
        choices = entry.texts("choices") or (("true", "false") if entry.text("format") == "boolean" else ())
        asked = Input(
            id=input_id(name),
            description=_description(entry),
            secret=entry.flag("isSecret"),
            required=required or entry.flag("isRequired"),
            default=entry.scalar("default"),
            choices=choices,
            several=several,
            flag=flag,
        )
        ids = (asked.id, *(f"{asked.id[:60]}-{number}" for number in range(2, MOST_ITEMS)))
        for id in ids:
            if self._by_id.setdefault(id, replace(asked, id=id)) == replace(asked, id=id):
                return placeholder(id)
        raise ConfigError("asks for too many values of one name")

    def value(
        self, name: str, entry: _Members, *, flag: str = "", several: bool = False
    ) -> Iterator[str | Placeholder]:
        """The pieces of a value: the fixed one with its variables, else one that is asked for."""
        fixed = entry.scalar("value")
        if fixed is None:
            yield self.ask(name, entry, required=False, flag=flag, several=several)
        else:
            yield from self.template(fixed, entry.named("variables"), required=entry.flag("isRequired"), flag=flag)

    def template(
        self, text: str, variables: Mapping[str, _Members], *, required: bool, flag: str = ""
    ) -> Iterator[str | Placeholder]:
        """The pieces of a text in which ``{name}`` stands for a variable; of an unknown name it stays."""
        position = 0
        for match in _VARIABLE.finditer(text):
            if (variable := variables.get(match[1])) is None:
                continue
            yield text[position : match.start()]
            position = match.end()
            fixed = variable.scalar("value")
            yield self.ask(match[1], variable, required=required, flag=flag) if fixed is None else fixed
        yield text[position:]


def _description(entry: _Members) -> str:
    kind = {"number": "a number", "filepath": "a path on this machine"}.get(entry.text("format"), "")
    example = entry.text("placeholder")
    more = ", ".join(filter(None, (kind, example and f"such as {example}")))
    return " ".join(filter(None, (entry.text("description"), more and f"({more})")))


@dataclass(frozen=True, slots=True)
class _Built:
    """An offer under way."""

    label: str
    table: Mapping[str, Any]
    notes: tuple[ImportNote, ...] = ()
    bundle: BundleLink | None = None


class _Reader:
    """Reads the offers of one document."""

    def __init__(self, document: _Members, origin: Origin, has_program: HasProgram) -> None:
        self._document, self._origin, self._has_program = document, origin, has_program

    def offers(self) -> Iterator[ServerOffer]:
        for entry in self._document.tables("remotes"):
            yield self._offer("remote", entry, self._remote)
        for entry in self._document.tables("packages"):
            kind = entry.text("registryType").lower()
            kind = {"docker": "oci", "mcpb": "mcpb", "dxt": "mcpb"}.get(kind, kind)
            read = {"npm": self._npm, "pypi": self._pypi, "oci": self._oci, "nuget": self._nuget, "mcpb": self._mcpb}
            yield self._offer(kind, entry, read.get(kind, self._unknown))

    def _offer(self, kind: str, entry: _Members, read: Callable[[_Members, _Inputs], _Built]) -> ServerOffer:
        inputs = _Inputs()
        try:
            if kind != "remote":
                _refuse_listener(entry)
            built, refusal = read(entry, inputs), ""
        except ConfigError as error:
            place = entry.value.get("url") or entry.value.get("identifier") or entry.value.get("name") or ""
            built, refusal = _Built(str(place)[:200], {}), error.message
        server = FoundServer(
            name=short_name(self._origin.name),
            origin=replace(self._origin, scope=kind, digest=digest_of([self._origin.name, kind, entry.value])),
            table=built.table,
            inputs=() if refusal else inputs.all,
            notes=(*built.notes, *self._notes(entry)),
            refusal=refusal,
            description=self._document.text("description"),
        )
        return ServerOffer(kind, built.label, server, built.bundle)

    def _notes(self, entry: _Members) -> Iterator[ImportNote]:
        for step in entry.tables("postInstallInstructions"):
            said = show_line(step.text("description"), 200)
            yield ImportNote("postInstallInstructions", f"not run; the publisher says: {said}")
        status = self._document.text("status").lower()
        if status and status != "active":
            yield ImportNote("status", f"its publisher calls it {show_line(status, 40)}")

    def _remote(self, entry: _Members, inputs: _Inputs) -> _Built:
        transport = _REMOTES.get(entry.text("transportType").lower())
        if transport is None:
            raise ConfigError(f"mcphost speaks no {show_line(entry.text('transportType'), 40)} to an address")
        url = entry.text("url")
        address = join(inputs.template(url, entry.named("variables"), required=True))
        if unknown := [name for name in _VARIABLE.findall(url) if name not in entry.named("variables")]:
            raise ConfigError(f"its address holds {{{show_line(unknown[0], 40)}}}, which nothing describes")
        known = _VARIABLE.sub("1", url)  # valid in a host, a port and a path
        if reason := reason_against_url(f"https://{known}" if url.startswith("{") else known):
            raise ConfigError(f"its address {reason}")
        table = {"url": address, "transport": transport, **self._headers(entry, inputs)}
        return _Built(url, table)

    def _headers(self, entry: _Members, inputs: _Inputs) -> dict[str, Any]:
        headers = _named_values(entry, "headers", inputs)
        return {"http_headers": headers} if headers else {}

    def _npm(self, package: _Members, inputs: _Inputs) -> _Built:
        name = _checked(package.text("identifier"), _NPM_NAME, "an npm package")
        version, notes = _version(package)
        runtime = _without(_arguments(package, "runtimeArguments", inputs), ("-y", "--yes"))
        word = name if {"-p", "--package"} & set(runtime) or not version else f"{name}@{version}"
        base = package.text("registryBaseUrl")
        env = _named_values(package, "environmentVariables", inputs)
        if base and not _NPM_HOST.fullmatch(_host(base)):
            env["npm_config_registry"] = _checked_base(base)
            notes = (*notes, ImportNote("registryBaseUrl", "the package comes from a registry that is not npm's own"))
        args = ["-y", *runtime, word, *_arguments(package, "packageArguments", inputs)]
        return self._run(f"{name}@{version or 'latest'}", "npx", args, env, (*notes, *_hint(package, ("npx",))))

    def _pypi(self, package: _Members, inputs: _Inputs) -> _Built:
        name = _checked(package.text("identifier"), _PYPI_NAME, "a Python package")
        version, notes = _version(package)
        runtime = _arguments(package, "runtimeArguments", inputs)
        word = name if "--from" in runtime or not version else f"{name}=={version}"
        base = package.text("registryBaseUrl")
        if base and not _PYPI_HOST.fullmatch(_host(base)):
            runtime = ["--index-url", _checked_base(base), *runtime]
            notes = (*notes, ImportNote("registryBaseUrl", "the package comes from an index that is not PyPI"))
        given = _arguments(package, "packageArguments", inputs)
        notes = (*notes, *_hint(package, ("uvx",)))
        env = _named_values(package, "environmentVariables", inputs)
        if not self._has_program("uvx") and self._has_program("pipx") and not runtime:
            return self._run(f"{name} {version}", "pipx", ["run", word, *given], env, notes)
        return self._run(f"{name} {version}".strip(), "uvx", [*runtime, word, *given], env, notes)

    def _oci(self, package: _Members, inputs: _Inputs) -> _Built:
        image = _checked(_image(package), _IMAGE, "an image")
        runner = "podman" if package.text("runtimeHint") == "podman" else "docker"
        env = _named_values(package, "environmentVariables", inputs)
        # The values are in the environment of docker, and never on its command line, which every user can read.
        passed = [word for name in env for word in ("-e", name)]
        given = _arguments(package, "runtimeArguments", inputs, DOCKER_FLAGS)
        runtime = _without(given, ("run", "--rm", "-i", "--interactive"))
        given = _arguments(package, "packageArguments", inputs)
        floating = ":" not in image.rpartition("/")[2] and "@" not in image
        notes = (_FLOATING,) if floating or image.endswith(":latest") else ()
        args = ["run", "--rm", "-i", *passed, *runtime, image, *given]
        return self._run(image, runner, args, env, (*notes, *_hint(package, ("docker", "podman"))))

    def _nuget(self, package: _Members, inputs: _Inputs) -> _Built:
        name = _checked(package.text("identifier"), _NUGET_NAME, "a NuGet package")
        version, notes = _version(package)
        base = package.text("registryBaseUrl")
        source = ["--source", _checked_base(base)] if base and _host(base) != _host(_NUGET_BASE) else []
        word = f"{name}@{version}" if version else name
        given = _arguments(package, "packageArguments", inputs)
        runtime = _without(_arguments(package, "runtimeArguments", inputs), ("--yes", "-y"))
        args = [*runtime, word, "--yes", *source, *(["--", *given] if given else [])]
        env = _named_values(package, "environmentVariables", inputs)
        return self._run(word, "dnx", args, env, (*notes, *_hint(package, ("dnx",))))

    def _mcpb(self, package: _Members, inputs: _Inputs) -> _Built:
        url, digest = package.text("identifier"), package.text("fileSha256").lower()
        if not is_plain_https(url):
            raise ConfigError("the bundle's address is not https")
        if not _SHA256.fullmatch(digest):
            raise ConfigError(
                "no SHA-256 of the bundle is named, so that a download could not be checked; download it yourself, "
                "and add the file"
            )
        keys = ("runtimeArguments", "packageArguments", "environmentVariables")
        unused = tuple(key for key in keys if package.has(key))
        notes = tuple(ImportNote(key, "a bundle's own manifest says what it takes") for key in unused)
        return _Built(url, {}, notes, BundleLink(url, digest))

    def _unknown(self, package: _Members, inputs: _Inputs) -> _Built:
        kind = show_line(package.text("registryType"), 40) or "an unknown kind"
        raise ConfigError(
            f"packages of {kind} have no runner that mcphost knows; install it, then: mcphost add NAME -- COMMAND"
        )

    def _run(
        self, label: str, command: str, args: list[str], env: Mapping[str, str], notes: Iterable[ImportNote]
    ) -> _Built:
        if not self._has_program(command):
            missing = f"{command} is not installed here; it comes with {_RUNTIMES.get(command, command)}"
            notes = (*notes, ImportNote("command", missing))
        return _Built(label, {"command": command, "args": args, **({"env": dict(env)} if env else {})}, tuple(notes))


_FLOATING: Final = ImportNote("version", "names no exact version: whatever is newest at the time is run")


def _refuse_listener(package: _Members) -> None:
    if not package.has("transport"):  # the oldest schemas know only stdio
        return
    transport = _Members(package.value["transport"], "transport").text("transportType")
    if transport != "stdio":
        raise ConfigError(
            f"its program listens at an address ({show_line(transport, 40)}) and has to be started by you; "
            "start it, then: mcphost add URL"
        )


def _hint(package: _Members, known: tuple[str, ...]) -> tuple[ImportNote, ...]:
    hint = package.text("runtimeHint")
    if not hint or hint in known:
        return ()
    return (ImportNote("runtimeHint", f"not used: {show_line(hint, 40)} does not run packages of this kind here"),)


def _checked(name: str, pattern: re.Pattern[str], what: str) -> str:
    # A name that is an option, a path or an address would run something else than the package that is shown.
    if len(name) > 300 or not pattern.fullmatch(name):
        raise ConfigError(f"{show_line(name, 80) or 'nothing'} is not the name of {what}")
    return name


def _checked_base(url: str) -> str:
    if not is_plain_https(url):
        raise ConfigError("the packages' registry is not at a plain https address")
    return url


def _version(package: _Members) -> tuple[str, tuple[ImportNote, ...]]:
    version = package.text("version")
    if version in ("", "latest") or _RANGE.search(version):
        return version.removesuffix("latest"), (_FLOATING,)
    if not _EXACT.fullmatch(version):
        raise ConfigError(f"{show_line(version, 40)} is not an exact version")
    return version, ()


def _image(package: _Members) -> str:
    """The reference of an image, with the version as its tag, and the host of its registry."""
    image, version, base = package.text("identifier"), package.text("version"), package.text("registryBaseUrl")
    last = image.rpartition("/")[2]
    if version and ":" not in last and "@" not in image:
        image = f"{image}:{version}"
    host = _host(base)
    first = image.partition("/")[0]
    if host and host != "docker.io" and "." not in first and ":" not in first.partition("/")[0]:
        image = f"{host}/{image}"
    return image


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return url


def _named_values(entry: _Members, key: str, inputs: _Inputs) -> dict[str, str]:
    """Variables, or headers, with their values."""
    values: dict[str, str] = {}
    for each in entry.tables(key):
        name = each.text("name")
        if not name or name in values:
            raise ConfigError(f"{key} has an entry without a name, or a name twice")
        values[name] = join(inputs.value(name, each))
    return values


def _arguments(package: _Members, key: str, inputs: _Inputs, flags: Collection[str] = ()) -> list[str]:
    """The words of a list of arguments; ``flags`` are the runner's options that take no value."""
    return [word for place, entry in enumerate(package.tables(key), 1) for word in _words(place, entry, inputs, flags)]


def _words(place: int, entry: _Members, inputs: _Inputs, flags: Collection[str]) -> Iterator[str]:
    """The words of one argument: of a named one the name and the value, in one word where the name ends with ``=``."""
    name = entry.text("name")
    several = entry.flag("isRepeated") and entry.scalar("value") is None
    if entry.text("type") == "positional" or not name:
        yield join(inputs.value(entry.text("valueHint") or f"argument-{place}", entry, several=several))
    elif entry.scalar("value") == "" or _is_flag(name, entry, flags):
        yield join([name])
    elif name.endswith("="):
        yield join([name, *inputs.value(name.strip("-="), entry, several=several)])
    else:
        yield join([name])
        yield join(inputs.value(name.lstrip("-"), entry, flag=name, several=several))


def _is_flag(name: str, entry: _Members, flags: Collection[str]) -> bool:
    """True if a named argument has no value, and none is asked for."""
    if entry.scalar("value") is not None or entry.scalar("default") is not None or name.endswith("="):
        return False
    if "=" in name or name in flags or all(f"-{letter}" in flags for letter in name[1:]):
        return True
    return not any(entry.has(key) for key in _OF_A_VALUE)


_OF_A_VALUE: Final = (
    "choices", "description", "format", "isRepeated", "isRequired", "isSecret", "placeholder", "valueHint", "variables",
)  # fmt: skip
"""Members that describe the value of an argument."""


def _without(words: Iterable[str], known: tuple[str, ...]) -> list[str]:
    """The words without those that mcphost adds itself."""
    return [word for word in words if word not in known]
