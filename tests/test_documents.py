"""The documents name only what exists: paths, links, commands, options, keys, settings, classes and functions."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from textual.binding import Binding
from textual.dom import DOMNode

import mcphost.tui
from mcphost import __version__
from mcphost.cli.output import KINDS
from mcphost.cli.parser import parse
from mcphost.config import Config, load
from mcphost.config.calls import parse_calls
from mcphost.manual import TOPICS
from mcphost.protocol.schema.validation import DIALECTS
from mcphost.providers.demo_script import PHRASES
from mcphost.transports.stdio.transport import INHERITED
from tests.sentences import findings, long_sentences

ROOT = Path(__file__).parents[1]
MANUAL = ROOT / "mcphost" / "manual"
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
PAGES = [MANUAL / f"{topic}.md" for topic in TOPICS]
FOR_USERS = [README, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", *PAGES]
FOR_DEVELOPERS = [CONTRIBUTING, ROOT / "ARCHITECTURE.md", ROOT / "tests" / "README.md"]
DOCUMENTS = [*FOR_USERS, *FOR_DEVELOPERS]
OF_OTHERS = {"--token", "--token=VALUE", "--repository"}
"""Options of servers in examples."""


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: Path) -> str:
    return path.read_text("utf-8")


def fences(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.+?)^```", text(path), re.MULTILINE | re.DOTALL)


def code(path: Path) -> list[str]:
    """Return the inline code of a document."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text(path), flags=re.MULTILINE | re.DOTALL))


def commands(path: Path) -> Iterator[str]:
    """Yield each command line of mcphost that a document shows."""
    lines = [line for block in fences(path, "sh") for line in block.splitlines()]
    for line in (*lines, *code(path)):
        if found := re.search(r"(?:^|\$\(|bin/)mcphost ([^#)&]+)", line):
            yield found[1].strip()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_path_exists(path: Path) -> None:
    named = [re.sub(r"^python3? ", "", each) for each in code(path)]
    paths = [each for each in named if re.fullmatch(r"(?:mcphost|tests|\.ci|\.github|screenshots)/[\w./-]*", each)]
    assert [each for each in paths if not (ROOT / each).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text(path)):
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def anchors(path: Path) -> list[str]:
    headings = re.findall(r"^#+ (.+)$", text(path), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@cache
def known_commands() -> tuple[str, ...]:
    done = subprocess.run(
        [sys.executable, "-m", "mcphost", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    return tuple(re.findall(r"^    ([a-z]+) ", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("path", FOR_USERS, ids=name)
def test_every_command_is_one_of_mcphost(path: Path) -> None:
    named = {line.split()[0] for line in commands(path)}
    assert {each for each in named if not each.startswith("-")} - {*known_commands()} == set()


def test_every_command_of_mcphost_is_in_the_manual() -> None:
    assert {*known_commands()} - {line.split()[0] for line in commands(MANUAL / "command-line.md")} - {"help"} == set()


@cache
def options(command: str) -> frozenset[str]:
    with pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr(sys.stdout, "write", said.append)
        with pytest.raises(SystemExit):
            parse([command, "--help"])
    return frozenset(re.findall(r"--[a-z][a-z-]*", "".join(said)))


@pytest.mark.parametrize("path", FOR_USERS, ids=name)
def test_every_option_of_a_command_is_one_of_it(path: Path) -> None:
    wrong = []
    for line in commands(path):
        command, *given = line.partition(" -- ")[0].split()
        wrong += [line for each in given if each.startswith("--") and each.partition("=")[0] not in options(command)]
    assert wrong == []


@pytest.mark.parametrize("path", FOR_USERS, ids=name)
def test_every_option_that_is_named_alone_exists(path: Path) -> None:
    known = frozenset().union(*map(options, known_commands())) | OF_OTHERS
    alone = [each.split()[0] for each in code(path) if each.startswith("--")]
    assert [each for each in alone if each not in known] == []


@cache
def bound_keys() -> frozenset[str]:
    """Return every key that a screen, a pane or a widget binds."""
    for module in pkgutil.walk_packages(mcphost.tui.__path__, "mcphost.tui."):
        importlib.import_module(module.name)
    bindings: list[Any] = [each for node in nodes(DOMNode) for each in vars(node).get("BINDINGS", ())]
    keys = ",".join(each.key if isinstance(each, Binding) else each[0] for each in bindings).split(",")
    written = {"slash": "/", "question_mark": "?", "less_than_sign": "<", "greater_than_sign": ">"}
    return frozenset(written.get(key, key) for key in keys)


def nodes(base: type[Any]) -> Iterator[type[Any]]:
    yield base
    for each in base.__subclasses__():
        yield from nodes(each)


@pytest.mark.parametrize("path", FOR_USERS, ids=name)
def test_every_key_is_bound(path: Path) -> None:
    tables = re.findall(r"^\| key \| (?:action|answer) \|\n((?:\|.*\n)+)", text(path), re.MULTILINE)
    rows = [key for table in tables for row in table.splitlines() for key in re.findall(r"`(.+?)`", row.split("|")[1])]
    inline = [each for each in code(path) if re.fullmatch(r"(?:ctrl|alt|shift)\+\w+|f\d+|escape|enter|[a-zA-Z]", each)]
    assert [each for each in (*rows, *inline) if each not in bound_keys()] == []


def settings(model: type[BaseModel], seen: tuple[type, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield each key of the configuration with the name of its table."""
    for key, field in model.model_fields.items():
        yield (seen[-1].__name__ if seen else "", key)
        for inner in re.findall(r"mcphost\.config[\w.]*\.(\w+)", str(field.annotation)):
            found = next((each for each in nodes(BaseModel) if each.__name__ == inner), None)
            if found is not None and found not in seen:
                yield from settings(found, (*seen, found))


@pytest.mark.parametrize("path", FOR_USERS, ids=name)
def test_every_setting_exists(path: Path) -> None:
    keys = {key for _, key in settings(Config)}
    tables = re.findall(r"^\| setting \| .+\n((?:\|.*\n)+)", text(path), re.MULTILINE)
    rows = [key for table in tables for row in table.splitlines() for key in re.findall(r"`(.+?)`", row.split("|")[1])]
    dotted = [
        each
        for each in code(path)
        if re.fullmatch(rf"(?:{'|'.join(Config.model_fields)})\.(?!toml)\w+(?: = .+)?", each)
    ]
    named = [re.split(r"[. ]", each)[1] for each in dotted]
    named += [part for each in rows for part in re.sub(r"[\[\]]|NAME|TOOL", "", each).split(".") if part]
    assert [each for each in named if each not in keys] == []


TOML = [(path, block) for path in FOR_USERS for block in fences(path, "toml") if "[[answer]]" not in block]


@pytest.mark.parametrize(("path", "block"), TOML, ids=[f"{name(path)}-{n}" for n, (path, _) in enumerate(TOML)])
def test_every_configuration_that_is_shown_is_valid(tmp_path: Path, path: Path, block: str) -> None:
    (tmp_path / "config.toml").write_text(block)
    assert not (parse_calls(block) if "[[call]]" in block else load(tmp_path / "config.toml")).problems


@pytest.mark.parametrize("path", FOR_DEVELOPERS, ids=name)
def test_every_name_is_in_the_file_beside_it(path: Path) -> None:
    pairs = re.findall(r"`(\w[\w.]*)`(?:,? in| of) `(mcphost/[\w/]+\.py)`", text(path))
    wrong = [f"{found} in {file}" for found, file in pairs if not defines(file, found)]
    assert wrong == []


def defines(file: str, dotted: str) -> bool:
    """Return True if a module defines a name, or a class and its member."""
    source = text(ROOT / file)
    return all(re.search(rf"(?:def|class) {each}\b|^{each}\b|self\.{each}\b|^    {each}:", source, re.MULTILINE)
               for each in dotted.split("."))  # fmt: skip


@pytest.mark.parametrize("path", FOR_DEVELOPERS, ids=name)
def test_every_class_that_is_named_exists(path: Path) -> None:
    package = "\n".join(each.read_text("utf-8") for each in (ROOT / "mcphost").rglob("*.py"))
    classes = {*re.findall(r"^(?:class |def |)(\w+)", package, re.MULTILINE)}
    named = {each.partition(".")[0] for each in code(path) if re.fullmatch(r"_?[A-Z][a-z]+[A-Z]\w*(?:\.\w+)?", each)}
    assert named - classes == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_no_sentence_is_long(path: Path) -> None:
    assert [f"line {line}: {words}" for line, words in long_sentences(text(path))] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_the_english_is_plain(path: Path) -> None:
    assert [str(each) for each in findings(path)] == []


@pytest.mark.parametrize(("path", "lines", "size"), [(README, 200, 8_000), (CONTRIBUTING, 100, 5_000)])
def test_the_first_pages_stay_short(path: Path, lines: int, size: int) -> None:
    assert len(text(path).splitlines()) <= lines
    assert len(text(path).encode()) <= size


@pytest.mark.requirement("SEC-03")
def test_the_page_on_security_names_what_is_stored_and_passed_on() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "mcphost").rglob("*.py"))
    security = text(MANUAL / "security.md")
    for each in ("approvals", "trusted", "transports", "roots", "audit.jsonl", "chats", "locks"):
        assert f'"{each}' in source
        assert f"`{each}" in security
    assert all(f"`{each}`" in text(MANUAL / "configuration.md") for each in (*INHERITED, "LC_*"))


@pytest.mark.requirement("SEC-03")
@pytest.mark.parametrize("words", ["What you are asked", "What you can limit", "What leaves your machine"])
def test_the_page_on_security_covers_consent_access_and_privacy(words: str) -> None:
    assert f"\n## {words}\n" in text(MANUAL / "security.md")


@pytest.mark.requirement("SCHEMA-02")
def test_the_page_on_security_names_every_dialect() -> None:
    words = text(MANUAL / "security.md").partition("## Text and schemas")[2]
    assert [each for each in DIALECTS if each.split("/")[-2].removeprefix("draft-0") not in words] == []


def test_the_readme_states_version_and_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Version {__version__}; " in text(README)
    assert f"Licence: {project['license']}." in text(README)


def test_the_manual_lists_every_kind_of_error() -> None:
    rows = re.search(r"^\| kind \| meaning \|\n((?:\|.*\n)+)", text(MANUAL / "command-line.md"), re.MULTILINE)
    assert rows is not None
    assert {*re.findall(r"^\| `(\w+)`", rows[1], re.MULTILINE)} == {
        *(kind for _, kind in KINDS), "not_connected", "internal", "stopped",
    }  # fmt: skip


def test_the_tour_names_what_the_demo_has() -> None:
    named = set(re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", text(MANUAL / "tour.md")))
    fields = {"Ships", "Relieved", "Tide"}
    server = f"stdio:{shlex.join([sys.executable, '-m', 'mcphost.demo'])}"
    command = [sys.executable, "-m", "mcphost", "list", "tools", server, "--json"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    titles = set(re.findall(r'"title": "([^"]+)"', listed))
    assert named - fields <= titles | {phrase.example for phrase in PHRASES}


def test_the_program_in_the_manual_runs() -> None:
    (program,) = fences(MANUAL / "library.md", "python")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"ships"' in done.stdout
