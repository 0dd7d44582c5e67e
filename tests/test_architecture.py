"""The table of allowed imports, checked against the source, with late imports included."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from re._constants import BRANCH, MAX_REPEAT, MIN_REPEAT, POSSESSIVE_REPEAT, SUBPATTERN  # type: ignore[import-not-found]
from re._parser import SubPattern, parse  # type: ignore[import-not-found]
from typing import Any

import pytest

from mcphost.protocol.wire.error_codes import ErrorCode
from tests.sentences import comments, docstrings

PACKAGE = Path(__file__).parents[1] / "mcphost"
SEEN = [
    "mcphost.protocol.models",
    "mcphost.protocol.forms.form",
    "mcphost.protocol.forms.listed_arguments",
    "mcphost.protocol.display",
    "mcphost.protocol.host_names",
]

# What each part may import from mcphost: packages with all that is in them, or single modules; and EVERYWHERE.
MAY_IMPORT: dict[str, list[str]] = {
    "__init__": [],
    "__main__": ["mcphost.cli"],
    "errors": [],
    "lazy_dataclass": [],
    "json_values": [],
    "redaction": [],
    "places": ["mcphost.errors"],
    "posix": [],
    "shim": [],
    "time_slices": [],
    "cancellation": [],
    # protocol.limits: defaults that the transports share.
    # protocol.urls: which hosts are loopback.
    "config": ["mcphost.errors", "mcphost.posix", "mcphost.places", "mcphost.redaction", "mcphost.protocol.limits",
               "mcphost.protocol.urls"],
    "protocol": ["mcphost.errors"],
    # protocol.urls: which hosts are loopback. protocol.display: why nothing came is shown.
    "net": ["mcphost.protocol.urls", "mcphost.protocol.display"],
    # places: the variable of processes below one that serves agents.
    "transports": ["mcphost.errors", "mcphost.posix", "mcphost.places", "mcphost.redaction", "mcphost.time_slices",
                   "mcphost.net", "mcphost.protocol"],
    # protocol.display: what an authorization server says is shown, in errors and in the plan a person agrees to.
    # protocol.urls: which hosts are loopback.
    "auth": ["mcphost.errors", "mcphost.posix", "mcphost.redaction", "mcphost.net", "mcphost.protocol.challenge",
             "mcphost.protocol.display", "mcphost.protocol.urls"],
    # protocol.display: what a file, a registry or a link says is shown. protocol.urls: which hosts are loopback.
    # protocol.host_names: which hosts may only look like others.
    "imports": ["mcphost.errors", "mcphost.posix", "mcphost.redaction", "mcphost.cancellation", "mcphost.config",
                "mcphost.net", "mcphost.protocol.display", "mcphost.protocol.host_names", "mcphost.protocol.urls"],
    "manual": ["mcphost.config.schema"],
    "providers": ["mcphost.errors", "mcphost.redaction", "mcphost.net", "mcphost.protocol"],
    "client": ["mcphost.errors", "mcphost.cancellation", "mcphost.time_slices", "mcphost.protocol",
               "mcphost.transports.base"],
    # It gets what it needs of the host, such as decisions, through ports, and is handed transports.
    "serving": ["mcphost.errors", "mcphost.posix", "mcphost.time_slices", "mcphost.config", "mcphost.protocol",
                "mcphost.transports.base"],
    # transports.base, auth.ports: ports that a host is handed, values and protocols only.
    "host": ["mcphost.errors", "mcphost.posix", "mcphost.redaction", "mcphost.time_slices", "mcphost.cancellation",
             "mcphost.config", "mcphost.protocol", "mcphost.client", "mcphost.providers.base",
             "mcphost.providers.choice", "mcphost.transports.base", "mcphost.auth.ports", "mcphost.serving"],
    # protocol.skill_text, protocol.skill_uris: the body of a SKILL.md, and names of skills that look the same.
    "tui": ["mcphost.errors", "mcphost.posix", "mcphost.config", "mcphost.host", "mcphost.auth.ports",
            "mcphost.imports", "mcphost.manual", "mcphost.protocol.skill_text", "mcphost.protocol.skill_uris", *SEEN],
    "demo": ["mcphost.protocol", "mcphost.serving"],
    "composition": ["mcphost.errors", "mcphost.config", "mcphost.protocol", "mcphost.transports", "mcphost.auth",
                    "mcphost.providers", "mcphost.host", "mcphost.serving"],
    # redaction: a report shows the names in a configuration, and no value. protocol.json_paths: of options.
    # protocol.skill_uris: the approval of a skill is taken back by its name.
    "cli": ["mcphost.errors", "mcphost.posix", "mcphost.places", "mcphost.redaction", "mcphost.config", "mcphost.host",
            "mcphost.shim", "mcphost.serving", "mcphost.protocol.json_paths", "mcphost.protocol.extensions",
            "mcphost.protocol.skill_uris", "mcphost.auth.ports", "mcphost.composition", "mcphost.imports",
            "mcphost.manual", "mcphost.tui", *SEEN],
}  # fmt: skip

EVERYWHERE = ("mcphost.lazy_dataclass", "mcphost.json_values")
ALONE = ("__init__", "__main__", "errors", "json_values", "manual", "redaction", "places", "posix", "shim")
"""Parts that do without EVERYWHERE."""

# Which parts may use a library, so that another one could take its place in a day.
OWNERS: dict[str, set[str]] = {
    "PIL": {"tui"},
    "aiohttp": {"transports.http.engine", "serving.http_listener", "serving.http_relay"},
    "joserfc": {"auth"},
    "httpx": {"net", "transports", "auth", "providers", "composition"},
    "httpx_sse": {"providers"},
    "jsonschema_rs": {"protocol", "host.tool_calls.validation_worker"},
    "keyring": {"auth"},
    "markdown_it": {"tui"},
    "platformdirs": {"places"},
    "pydantic": {"config", "protocol", "serving", "auth", "composition"},
    "pydantic_core": {"config", "host", "protocol", "serving"},
    "pyjson5": {"imports"},
    "rich": {"tui", "cli"},
    "textual": {"tui"},
    "tomli_w": {"config", "imports"},
    "tomlkit": {"config"},
    "uritemplate": {"protocol"},
    "yaml": {"imports", "protocol"},
    "yarl": {"transports.http.engine"},
}

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "common"}


@dataclass(frozen=True)
class Import:
    """One imported module; ``for_types`` under TYPE_CHECKING, ``deferred`` inside a function."""

    module: str
    line: int
    for_types: bool
    deferred: bool


@cache
def sources() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


@dataclass(frozen=True)
class Outline:
    """The needed part of a module's syntax tree: all trees together would take more than 100 MB."""

    imports: tuple[Import, ...]
    """Wherever in its text."""
    public_classes: tuple[str, ...]


@cache
def outline(module: str) -> Outline:
    tree = ast.parse(sources()[module].read_bytes())
    classes = (node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return Outline(tuple(_imports(tree, False, False)), tuple(name for name in classes if not name.startswith("_")))


def imports(module: str) -> tuple[Import, ...]:
    return outline(module).imports


def trees(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules in whose text one of these words is, with their syntax trees."""
    for module, path in sources().items():
        source = path.read_text("utf-8")
        if any(word in source for word in words):
            yield module, ast.parse(source)


def _imports(node: ast.AST, for_types: bool, deferred: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, for_types, deferred) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = "." * child.level + (child.module or "")
            for alias in child.names:
                full = f"{base}.{alias.name}"
                yield Import(full if full in sources() else base, child.lineno, for_types, deferred)
        elif not isinstance(child, ast.expr):
            checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(child, for_types or checking, deferred or inner)


def part(module: str) -> str:
    """The row of the table a module belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


MODULES = sorted(sources())


def modules_of(row: str) -> list[str]:
    return [module for module in MODULES if part(module) == row]


def test_every_module_belongs_to_a_part_of_the_design() -> None:
    assert {part(module) for module in MODULES} == MAY_IMPORT.keys()


@pytest.mark.parametrize("row", MAY_IMPORT)
def test_a_module_imports_only_what_its_row_of_the_table_allows(row: str) -> None:
    allowed = [*MAY_IMPORT[row], f"mcphost.{row}", *(EVERYWHERE if row not in ALONE else ())]
    wrong = []
    for module in modules_of(row):
        for each in imports(module):
            ours = within(each.module, "mcphost") and each.module != "mcphost"  # the root holds the version only
            if each.module.startswith(".") or (ours and not any(within(each.module, name) for name in allowed)):
                wrong.append(f"{module}:{each.line} imports {each.module}")
    assert wrong == []


@pytest.mark.parametrize("row", MAY_IMPORT)
def test_a_library_is_imported_by_its_owner_alone(row: str) -> None:
    wrong = []
    for module in modules_of(row):
        for each in imports(module):
            top = each.module.partition(".")[0]
            if top == "mcphost" or top in sys.stdlib_module_names:
                continue
            if not any(within(module, f"mcphost.{owner}") for owner in OWNERS.get(top, ())):
                wrong.append(f"{module}:{each.line} imports {top}")
    assert wrong == []


def test_no_permission_of_the_tables_is_unused() -> None:
    used = {row: [each.module for module in modules_of(row) for each in imports(module)] for row in MAY_IMPORT}
    rows = [(row, name) for row, names in MAY_IMPORT.items() for name in names]
    assert [(row, name) for row, name in rows if not any(within(each, name) for each in used[row])] == []
    owned = [(library, f"mcphost.{owner}") for library, owners in OWNERS.items() for owner in owners]
    users = [(each.module.partition(".")[0], module) for module in MODULES for each in imports(module)]
    assert [pair for pair in owned if not any(pair[0] == name and within(by, pair[1]) for name, by in users)] == []


def test_what_waits_is_not_on_the_ground_floor() -> None:
    waiting = {"asyncio", "threading", "socket", "subprocess", "time", "select", "multiprocessing"}
    for module in MODULES:
        if part(module) == "protocol":
            assert not waiting & {each.module.partition(".")[0] for each in imports(module)}, module


def test_no_part_of_the_host_imports_the_host_itself() -> None:
    users = [module for module in MODULES if any(each.module == "mcphost.host.host" for each in imports(module))]
    assert not [module for module in users if part(module) == "host"]


def classes(module: str) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(ast.parse(sources()[module].read_bytes())) if isinstance(node, ast.ClassDef))


def test_the_host_is_composed_and_inherits_from_nothing() -> None:
    (host,) = (each for each in classes("mcphost.host.host") if each.name == "Host")
    assert host.bases == []


def test_the_command_line_imports_the_screen_only_inside_a_function() -> None:
    used = [each for module in MODULES if part(module) == "cli" for each in imports(module)]
    assert all(each.deferred or each.for_types for each in used if within(each.module, "mcphost.tui"))


def test_the_app_inherits_from_textual_alone() -> None:
    app = import_module("mcphost.tui.app").McphostApp
    corrections = "mcphost.tui.textual_private"  # Textual's own classes without their defects
    own = [base for base in app.__mro__[1:] if within(base.__module__, "mcphost")]
    assert [base.__name__ for base in own if not within(base.__module__, corrections)] == []


def test_no_class_leaves_a_method_to_another_by_a_stub() -> None:
    assert [module for module, tree in trees("NotImplementedError") if _raises_not_implemented(tree)] == []


def _raises_not_implemented(tree: ast.Module) -> bool:
    raised = (each.exc for each in ast.walk(tree) if isinstance(each, ast.Raise))
    return any(each is not None and "NotImplementedError" in ast.unparse(each) for each in raised)


def test_there_is_no_import_circle() -> None:
    # Imports for types and late ones count: a reader meets them like all others.
    graph = {module: {each.module for each in imports(module)} & {*MODULES} for module in MODULES}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_public_class_names_are_unique() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for name in outline(module).public_classes:
            homes.setdefault(name, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_no_module_has_an_empty_name() -> None:
    assert not [module for module in MODULES if FORBIDDEN_NAMES & set(module.split("."))]


NAMED = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?`(?!`)|``(mcphost(?!\.toml)(?:\.\w+)+)``")


def texts(module: str) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, with their lines."""
    source = sources()[module].read_text("utf-8")
    yield from ((each.lineno, str(each.value)) for each in docstrings(ast.parse(source)))
    yield from ((each.line, each.words) for each in comments(source))


@cache
def defined(module: str) -> dict[str, set[str]]:
    """The names of a module, each with those of its members where it is a class."""
    found: dict[str, set[str]] = {}
    for node in ast.parse(sources()[module].read_bytes()).body:
        for name in _names(node):
            found[name] = set(_members(node)) if isinstance(node, ast.ClassDef) else set()
    return found


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Assign():
            yield from (each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        case ast.If() | ast.Try():
            yield from (name for child in ast.iter_child_nodes(node) for name in _names(child))


def _members(of: ast.ClassDef) -> Iterator[str]:
    yield from (name for node in of.body for name in _names(node))
    for node in ast.walk(of):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def exists(name: str, module: str) -> bool:
    """Return True if ``name`` in a text of ``module`` exists in the package or in a library that it uses."""
    home = next((each for each in _prefixes(name) if each in sources()), module)
    head, *rest = name.removeprefix(home).removeprefix(".").split(".")
    if not head:
        return True
    if head in sys.stdlib_module_names or head in OWNERS:
        return not rest or hasattr(import_module(head), rest[0])
    places = [home] if name.startswith("mcphost.") else MODULES
    if not any(head in defined(each) for each in places):
        own = {member for members in defined(module).values() for member in members}
        return not rest and (head in own or any(head in each.split(".") for each in MODULES))
    return not rest or any(rest[0] in defined(each).get(head, ()) for each in MODULES)


def _prefixes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


@pytest.mark.slow
def test_names_in_docstrings_and_comments_exist() -> None:
    named = [
        (module, line, match) for module in MODULES for line, text in texts(module) for match in NAMED.finditer(text)
    ]
    assert len(named) > 200
    wrong = [f"{module}:{line}: {each[0]}" for module, line, each in named if not exists(each[1] or each[2], module)]
    assert wrong == []


def _pattern(value: object) -> re.Pattern[str] | None:
    """A compiled pattern, or the text of one that is compiled when it is needed; None for anything else."""
    if isinstance(value, str) and "(?" in value:
        with suppress(re.error):
            return re.compile(value)
    return value if isinstance(value, re.Pattern) else None


@pytest.mark.parametrize("row", MAY_IMPORT)
def test_no_pattern_repeats_a_group_possessively(row: str) -> None:
    # Python 3.11.0 to 3.11.4 go on from where the last, failed repetition stopped; (?>(?:…)*) is right everywhere.
    wrong = []
    for module in modules_of(row):
        for value in vars(import_module(module)).values():
            patterns = filter(None, map(_pattern, value if isinstance(value, tuple) else [value]))
            wrong += [
                (module, each.pattern) for each in patterns if any(_possessive_groups(parse(each.pattern, each.flags)))
            ]
    assert wrong == []


def _possessive_groups(parsed: Any) -> Iterator[bool]:
    for operation, argument in parsed:
        if operation is POSSESSIVE_REPEAT:
            yield any(inner in (BRANCH, SUBPATTERN, MAX_REPEAT, MIN_REPEAT) for inner, _ in argument[2])
        for inside in _inside(argument):
            yield from _possessive_groups(inside)


def _inside(argument: Any) -> Iterator[Any]:
    if isinstance(argument, SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for each in argument:
            yield from _inside(each)


def test_the_libraries_that_are_imported_are_those_that_are_declared() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    declared = {line.partition(">")[0].replace("-", "_") for line in project["dependencies"]}
    used = {each.module.partition(".")[0] for module in MODULES for each in imports(module)}
    other_names = {"PIL": "pillow", "yaml": "pyyaml", "markdown_it": "markdown_it_py"}
    imported = {other_names.get(name, name) for name in used}
    comes_along = "pydantic_core"  # with pydantic
    assert {other_names.get(name, name) for name in used & OWNERS.keys()} <= {*declared, comes_along}
    assert declared <= imported


SCREEN = {"textual", "rich", "PIL"}
NETWORK = {"httpx", "keyring", "joserfc", "aiohttp"}
SELDOM_ASKED = {
    "mcphost.host.sampling.service",
    "mcphost.host.models",
    "mcphost.protocol.models.sampling",
    "mcphost.protocol.models.elicitation",
}
"""Modules that answer requests of servers."""
CALLS_DO_WITHOUT = SCREEN | NETWORK | SELDOM_ASKED | {
    "mcphost.auth.ports", "mcphost.auth.authorizer", "mcphost.providers.base", "mcphost.host.chat.chat",
    "mcphost.protocol.models.prompts", "mcphost.protocol.models.resources", "uritemplate", "mcphost.cli.commands.login",
    "mcphost.cli.server_questions", "mcphost.host.traffic.file", "mcphost.imports", "yaml", "pyjson5",
}  # fmt: skip
"""Modules that a tool call does not need."""
NOT_YET_SEEN = {
    f"mcphost.tui.{name}"
    for name in ("sign_in.screen", "elicitation.form", "elicitation.url", "roots.screen", "sampling.screen",
                 "consent.tool_call", "results.picture_view", "chat.dialogs", "chat.tools", "chat.pane", "chat.input",
                 "results.view", "traffic.pane", "sampling.text_pane")
} | {
    "mcphost.auth.ports", "mcphost.providers.base", "mcphost.host.chat.chat", "mcphost.imports", "yaml", "pyjson5",
    *SELDOM_ASKED,
}  # fmt: skip
"""Screens and panes that the first picture does not show."""
ONE_CALL = "from mcphost.cli import main; assert main(['call', {server!r}, 'echo', 'text=hello', '--yes']) == 0"
ECHO = f"stdio:{shlex.join([sys.executable, '-S', '-E', str(Path(__file__).parent / 'servers' / 'echo.py')])}"


def test_what_is_unwanted_somewhere_exists() -> None:
    named = {name for name in CALLS_DO_WITHOUT | NOT_YET_SEEN if within(name, "mcphost")}
    assert named <= sources().keys()


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import mcphost.host.host", SCREEN | NETWORK),
        ("import mcphost.composition", SCREEN | NETWORK),
        ("import mcphost.cli.commands.call, mcphost.composition", {"mcphost.host.host"}),  # programs start before
        ("import mcphost.providers.base, mcphost.providers.choice", SCREEN | NETWORK),
        (
            "from mcphost.composition.models import ConfiguredModels; from mcphost.config import ModelConfig; "
            "ConfiguredModels(None).able(ModelConfig(provider='demo'))",
            NETWORK,
        ),
        ("import mcphost.tui.app, mcphost.tui.results.view, mcphost.tui.results.picture_view", {"PIL"}),
        ("from mcphost.cli import main; main(['list', 'tools', 'stdio:false'])", SCREEN | NETWORK),
        (ONE_CALL.format(server=ECHO), CALLS_DO_WITHOUT),
        ("import mcphost.cli, mcphost.cli.commands.tap", {"argparse", "asyncio", "json", "re", "mcphost.errors"}),
        ("import mcphost.tui.app, mcphost.composition", NOT_YET_SEEN | NETWORK | {"PIL"}),
        ("from mcphost.cli import main; main(['config', 'path'])", SCREEN | NETWORK),
        ("from mcphost.cli import main; main(['__complete', 'check', ''])", SCREEN | NETWORK | {"asyncio", "pydantic"}),
        ("from mcphost.cli.parser import parse; parse(['check', 'a'])", SCREEN | NETWORK | {"asyncio", "pydantic"}),
    ],
)
def test_a_clean_interpreter_loads_nothing_it_does_not_need(code: str, unwanted: set[str]) -> None:
    program = f"import sys; {code}; print(sorted({unwanted!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_call_searches_for_no_plugins_of_pydantic() -> None:
    command = (sys.executable, "-X", "importtime", "-m", "mcphost", "call", ECHO, "echo", "text=hello", "--yes")
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pydantic" in loaded
    assert "importlib.metadata" not in loaded


@pytest.mark.requirement("MOD-20")
def test_connections_and_clients_know_no_conversation() -> None:
    """A process serves all conversations alike: what one call leaves behind, the next has in its arguments."""
    below = [name for name in MODULES if name.startswith(("mcphost.client", "mcphost.host.connections"))]
    assert below
    assert [each for each in below if any(".chat" in found.module for found in imports(each))] == []


RESERVED = range(-32099, -32019)
"""Error codes that the specification keeps for itself."""


@pytest.mark.requirement("ERR-10")
def test_no_error_of_ours_has_a_code_that_the_specification_reserves() -> None:
    codes: set[int] = set()
    for _, tree in trees("ErrorObject", "InputRefused"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("ErrorObject", "InputRefused")):
                named = re.findall(r"ErrorCode\.(\w+)", ast.unparse(node))
                codes |= {ErrorCode[name].value for name in named}
                codes |= {int(literal) for literal in re.findall(r"-\d{5}", ast.unparse(node))}
    assert codes
    forbidden = {*RESERVED, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.URL_ELICITATION_REQUIRED}
    assert codes & forbidden == set()


@pytest.mark.parametrize("row", [row for row in MAY_IMPORT if row not in (*ALONE, "lazy_dataclass")])
def test_dataclasses_are_those_that_are_compiled_late(row: str) -> None:
    theirs = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    assert [module for module in modules_of(row) if theirs.search(sources()[module].read_text("utf-8"))] == []
