"""Says which packages a command line downloads and runs: from where, and whether their versions are pinned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mcphost.imports.commands import after_subcommand, program_name, programs_in, read_options
from mcphost.imports.found import legal_name
from mcphost.imports.launchers import (
    COMPOSE_GLOBAL_VALUES,
    DOCKER_EXEC_VALUES,
    DOCKER_FLAGS,
    DOCKER_GLOBAL_VALUES,
    DOCKER_VALUES,
    DOCKERS,
    NPX_VALUES,
    PIPX_VALUES,
    UVX_VALUES,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.redaction import safe_url

LONGEST: Final = 400
"""Characters of a package's name that are shown; the command beside it is shown in full."""


@dataclass(frozen=True, slots=True)
class Download:
    """A package that the command downloads, unless it is there already, and runs. All texts are safe to show."""

    package: str
    registry: str
    """``npm``, ``PyPI``, ``Docker Hub``, or a host."""
    version: str
    """As written: a version, a range, a tag, a digest; empty: none."""
    pinned: bool
    """True if each start runs the same code, as far as the registry keeps its word."""

    @property
    def sentence(self) -> str:
        """For a person, after the word "downloads"."""
        if self.pinned:
            return f"{self.package} from {self.registry}, and runs it: always version {self.version}"
        which = f"version {self.version} is not pinned" if self.version else "no version is pinned"
        return f"{self.package} from {self.registry}, and runs it; {which}: the code can change at any start"


_EXACT: Final = re.compile(r"[v=]*\d+\.\d+\.\d+(?:[-+.][\w.+-]*)?")
_PYTHON_EXACT: Final = re.compile(r"\d+(?:\.\d+)*(?:[a-z.+-]\w*)*")
_PYTHON: Final = re.compile(r"([\w.-]+(?:\[[\w.,\s-]*\])?)\s*(?:(===?|@)\s*([^\s,;]+)$|([<>~!=].*)$)?")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_ADDRESS: Final = re.compile(r"(?:git\+)?(?:https?|ssh|git)://", re.IGNORECASE)

_NODE_MANAGERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
_DOTNET_TOOLS: Final = (("dnx",), ("tool", "exec"), ("tool", "execute"))
_DNX_VALUES: Final = frozenset({"--source", "--add-source", "--configfile", "--verbosity", "-v", "--framework"})
_DENO_VALUES: Final = frozenset({"--config", "-c", "--import-map", "--lock", "--cert", "--location", "--seed"})


def downloads_of(words: Sequence[str], env: Mapping[str, str]) -> tuple[Download, ...]:
    """Return what the command downloads and runs; the entry's variables ``env`` may name other registries."""
    found = dict.fromkeys(each for program in programs_in(words) for each in _of_program(program, env))
    return tuple(found)


def server_name(words: Sequence[str]) -> str:
    """``server-git`` for ``npx -y @ada/server-git@1.0.0``, else the program's name."""
    packages = downloads_of(words, {})
    return legal_name((packages[0].package if packages else program_name(words[0])).rpartition("/")[2])


_VERBS: Final = (("run",), ("create",), ("exec",))


class ContainerStart(NamedTuple):
    """The options and the image of ``docker run``, ``create`` or ``exec``."""

    options: tuple[tuple[str, str], ...]
    """Names and values, also of options behind an unknown one that may take the word that looks like the image."""
    image: str
    """The image, or the container of ``exec``; empty without either."""
    downloads: bool
    """True if the image is downloaded."""


def container_start(words: Sequence[str]) -> ContainerStart | None:
    """Read the command of a container; None for another command."""
    name = program_name(words[0]) if words else ""
    if name.removesuffix("-compose") not in DOCKERS:
        return None
    before = read_options(words[1:] if name in DOCKERS else ("compose", *words[1:]), DOCKER_GLOBAL_VALUES)
    # An option that is not known may take the word behind it.
    rest = before.rest[1:] if before.unsure and before.rest[1:2] in _VERBS else before.rest
    composed = rest[:1] == ("compose",)
    if composed:
        rest = read_options(rest[1:], COMPOSE_GLOBAL_VALUES).rest
    elif rest[:1] in (("container",), ("service",), ("pod",)):
        rest = rest[1:]
    verb, rest = rest[:1], rest[1:]
    if verb not in _VERBS:
        return None
    values = DOCKER_EXEC_VALUES if verb == ("exec",) else DOCKER_VALUES
    options, image = list[tuple[str, str]](), ""
    while True:
        reading = read_options(rest, values, flags=DOCKER_FLAGS)
        options += [(name, value) for name, value, _ in reading.options]
        image = reading.rest[0] if reading.rest else image
        rest = reading.rest[1:]
        # An input may be left empty, and then does not end the options.
        if not reading.rest or not (reading.unsure or image.startswith("${input:")):
            downloads = not composed and verb != ("exec",) and ("--rootfs", "") not in options
            return ContainerStart(tuple(options), image, downloads)


def _of_program(words: tuple[str, ...], env: Mapping[str, str]) -> Iterator[Download]:
    readers: dict[str, Callable[[Sequence[str], Mapping[str, str]], Iterator[Download]]] = {
        "npx": _npx, "bunx": _npx, "pnpx": _npx, "uvx": _uvx, "dnx": _dnx, "deno": _deno, "go": _go, "nix": _nix,
    }  # fmt: skip
    name, rest = program_name(words[0]), words[1:]
    if name in DOCKERS:
        yield from _docker(words)
    elif name in readers:
        yield from readers[name](rest, env)
    elif (
        name in ("npm", "pnpm", "yarn", "bun")
        and (after := after_subcommand(words, ("exec",), ("dlx",), ("x",))) is not None
    ):
        yield from _npx(after, env)
    elif name == "uv" and (after := after_subcommand(words, ("tool", "run"))) is not None:
        yield from _uvx(after, env)
    elif name == "uv" and (after := after_subcommand(words, ("run",))) is not None:
        yield from _uv_run(after, env)
    elif name == "pipx" and (after := after_subcommand(words, ("run",))) is not None:
        yield from _pipx(after, env)
    elif (
        name == "dotnet"
        and (after := after_subcommand(words, ("dnx",), ("tool", "exec"), ("tool", "execute"))) is not None
    ):
        yield from _dnx(after, env)


def _split(
    words: Sequence[str], valued: frozenset[str], packages: frozenset[str] = frozenset()
) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """The packages that options name, the other options with their values, and the words from the first plain one."""
    named, options, index = list[str](), list[tuple[str, str]](), 0
    while index < len(words) and words[index].startswith("-"):
        word = words[index]
        index += 1
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if not equals and (name in valued or name in packages):
            value = words[index] if index < len(words) else ""
            index += 1
        if name in packages:
            named.append(value)
        else:
            options.append((name, value))
    return named, options, list(words[index:])


def _registry(
    usual: str, options: Sequence[tuple[str, str]], names: Sequence[str], env: Mapping[str, str], *variables: str
) -> str:
    """The registry that options or variables name instead of the usual one."""
    there = {name.lower(): value for name, value in env.items()}
    other = [value for name, value in options if name in names and value]
    other += [there[name] for name in variables if there.get(name)]
    return _shown(safe_url(other[0])) if other else usual


def _npx(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    named, options, rest = _split(words, NPX_VALUES, frozenset({"-p", "--package"}))
    registry = _registry("npm", options, ("--registry",), env, "npm_config_registry")
    for spec in named or rest[:1]:
        if found := _npm(spec, registry):
            yield found


def _npm(spec: str, registry: str) -> Download | None:
    if spec.startswith((".", "/", "~", "file:")) or not spec:
        return None
    if _ADDRESS.match(spec) or re.match(r"(?:github|gitlab|bitbucket|gist):|[\w.-]+/[\w.-]+", spec):
        return _from_address(spec)
    start = spec.find("@", 1)
    name, version = (spec[:start], spec[start + 1 :]) if start > 0 else (spec, "")
    if version.startswith("npm:"):
        return _npm(version.removeprefix("npm:"), registry)
    return Download(_shown(name), registry, _shown(version), _EXACT.fullmatch(version) is not None)


def _from_address(spec: str) -> Download:
    address, _, ref = spec.partition("#")
    before, at, commit = address.rpartition("@")
    if not ref and at and "/" in before.partition("://")[2]:
        address, ref = before, commit
    host = re.sub(r"^(?:git\+)?\w+://", "", safe_url(address)).partition("/")[0] if "://" in address else "GitHub"
    return Download(_shown(safe_url(address)), _shown(host), _shown(ref), _COMMIT.fullmatch(ref) is not None)


def _uvx(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    more, options, rest = _split(words, UVX_VALUES | {"--from"}, frozenset({"--with", "-w"}))
    named = [value for name, value in options if name == "--from"]
    yield from _pypi_all([*(named or rest[:1]), *more], options, env)


def _uv_run(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    named, options, rest = _split(words, UVX_VALUES, frozenset({"--with", "-w"}))
    scripts = [word for word in rest[:1] if _ADDRESS.match(word)]
    yield from _pypi_all([*named, *scripts], options, env)


def _pipx(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    named, options, rest = _split(words, PIPX_VALUES, frozenset({"--spec"}))
    yield from _pypi_all(named or rest[:1], options, env)


def _pypi_all(specs: Sequence[str], options: Sequence[tuple[str, str]], env: Mapping[str, str]) -> Iterator[Download]:
    names = ("--default-index", "--index-url", "-i", "--index", "--extra-index-url", "-f", "--find-links")
    variables = ("uv_default_index", "uv_index_url", "pip_index_url", "uv_index", "uv_extra_index_url")
    registry = _registry("PyPI", options, names, env, *variables)
    for spec in specs:
        if found := _pypi(spec, registry):
            yield found


def _pypi(spec: str, registry: str) -> Download | None:
    name, at, address = (part.strip() for part in spec.partition("@"))
    if _ADDRESS.match(spec) or (at and _ADDRESS.match(address)):
        return _from_address(spec if _ADDRESS.match(spec) else address)
    if not spec or spec.startswith((".", "/", "~")) or spec.endswith((".py", ".whl")):
        return None
    match = _PYTHON.fullmatch(spec)
    if match is None:
        return Download(_shown(spec), registry, "", False)
    name, sign, exact, range_ = match.groups()
    pinned = bool(sign) and _PYTHON_EXACT.fullmatch(exact) is not None
    return Download(_shown(name), registry, _shown(exact or range_ or ""), pinned)


def _dnx(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    versions, options, rest = _split(words, _DNX_VALUES, frozenset({"--version"}))
    if rest:
        name, _, version = rest[0].partition("@")
        version = version or (versions[0] if versions else "")
        registry = _registry("NuGet", options, ("--source", "--add-source"), env)
        yield Download(_shown(name), registry, _shown(version), _EXACT.fullmatch(version) is not None)


def _deno(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    after = after_subcommand(("deno", *words), ("run",), ("x",), ("serve",))
    _, _, rest = _split(after if after is not None else words, _DENO_VALUES)
    spec = rest[0] if rest else ""
    if spec.startswith(("npm:", "jsr:")):
        found = _npm(spec[4:].lstrip("/"), "npm" if spec.startswith("npm:") else "JSR")
        if found is not None:
            yield found
    elif _ADDRESS.match(spec):
        yield Download(_shown(safe_url(spec)), _shown(spec.split("/")[2].rpartition("@")[2]), "", False)


def _go(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    rest = after_subcommand(("go", *words), ("run",)) or ()
    spec = next((word for word in rest if not word.startswith("-")), "")
    name, _, version = spec.partition("@")
    if version and "." in name.partition("/")[0] and not name.startswith("."):
        registry = _registry("the Go module proxy", (), (), env, "goproxy")
        yield Download(_shown(name), registry, _shown(version), _EXACT.fullmatch(version) is not None)


def _nix(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Download]:
    rest = after_subcommand(("nix", *words), ("run",)) or ()
    spec = next((word for word in rest if not word.startswith("-")), "")
    if ":" in spec:
        pinned = _COMMIT.search(spec) is not None
        yield Download(_shown(safe_url(spec.partition("#")[0])), "a Nix flake", "", pinned)
    elif spec.startswith("nixpkgs#"):
        yield Download(_shown(spec.partition("#")[2]), "nixpkgs", "", False)


def _docker(words: Sequence[str]) -> Iterator[Download]:
    found = container_start(words)
    if found is None or not found.image or not found.downloads:
        return
    name, _, digest = found.image.partition("@")
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, ""
    host = path.partition("/")[0] if "/" in path else ""
    registry = host if "." in host or ":" in host or host == "localhost" else "Docker Hub"
    pinned = _DIGEST.fullmatch(digest) is not None
    yield Download(_shown(path), _shown(registry), _shown(digest if pinned else tag), pinned)


def _shown(text: str) -> str:
    return show_line(text, LONGEST)
