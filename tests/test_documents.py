"""What the documents say is what the program does, where that can be told by looking at both."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mcphost import __version__
from mcphost.cli.output import KINDS
from mcphost.cli.parser import parse
from mcphost.config import Config, load
from mcphost.protocol.schema.validation import DIALECTS
from mcphost.providers.demo_script import PHRASES
from mcphost.transports.stdio.transport import INHERITED

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TESTS = (ROOT / "tests" / "README.md").read_text("utf-8")
SECURITY = README.partition("\n## Security and privacy\n")[2].partition("\n## ")[0]
ENVIRONMENT = README.partition("\n**Environment.**")[2].partition("\n\n")[0]


@pytest.mark.requirement("SEC-03")
def test_the_section_on_security_tells_of_consent_access_and_privacy() -> None:
    assert re.findall(r"^### (.+)$", SECURITY, re.MULTILINE)[:4] == [
        "What you are asked",
        "What you can limit and take back",
        "What leaves your machine",
        "What is kept, and where",
    ]


@pytest.mark.requirement("SEC-03")
def test_what_is_kept_and_passed_on_is_named() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "mcphost").rglob("*.py"))
    for name in ("approvals", "trusted", "transports", "roots", "audit.jsonl", "chats", "locks"):
        assert f'"{name}' in source
        assert name in SECURITY
    assert {"policy", "limits"} <= Config.model_fields.keys()
    assert all(f"`{name}`" in ENVIRONMENT for name in (*INHERITED, "LC_*"))


@pytest.mark.requirement("SCHEMA-02")
def test_every_dialect_of_a_schema_is_documented() -> None:
    for dialect in DIALECTS:
        word = dialect.split("/")[-2].removeprefix("draft-0")
        assert word in SECURITY.partition("### Text and schemas")[2], dialect


def test_licence_version_and_the_way_to_report_a_hole_are_stated() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["authors"]
    assert f"Version {__version__}; " in README
    assert f"Licence: {project['license']}." in README
    assert "private\nvulnerability reporting" in SECURITY


def test_every_file_that_is_linked_is_there() -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / link).is_file(), link


@pytest.mark.parametrize("text", [CONTRIBUTING, TESTS])
def test_every_path_that_developers_are_told_of_exists(text: str) -> None:
    named = re.findall(r"`(?:python )?((?:mcphost|tests)/[\w/.]*)[ `]", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_command_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    commands = re.findall(r"^    ([a-z]+) ", capsys.readouterr().out, re.MULTILINE)
    assert len(commands) > 8
    assert [command for command in commands if f"mcphost {command}" not in README] == []


SHOWN = [
    text for text in re.findall(r"^```toml\n(.+?)^```", README, re.MULTILINE | re.DOTALL) if "[[answer]]" not in text
]


@pytest.mark.parametrize("text", SHOWN)
def test_every_configuration_that_is_shown_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    loaded = load(tmp_path / "config.toml")
    assert not loaded.problems
    assert loaded.config.servers or loaded.config.models


def test_every_kind_of_error_is_documented() -> None:
    kinds = {kind for _, kind in KINDS} | {"not_connected", "internal", "stopped"}
    listed = re.search(r"^`kind` is (.+?)\. Some", README, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == kinds


def test_the_tour_names_what_the_demo_has() -> None:
    tour = README.partition("\n## Five minutes with the demo\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", tour))
    server = f"stdio:{shlex.join([sys.executable, '-m', 'mcphost.demo'])}"
    command = [sys.executable, "-m", "mcphost", "list", "tools", server, "--json"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    titles = set(re.findall(r'"title": "([^"]+)"', listed))
    assert len(named) > 10
    assert named <= titles | {phrase.example for phrase in PHRASES}


def test_the_library_is_used_as_documented() -> None:
    (code,) = re.findall(r"^```python\n(.+?)^```", README, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"ships"' in done.stdout
