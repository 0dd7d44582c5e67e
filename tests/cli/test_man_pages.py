"""The manual pages render, and hold every command, option and key."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mcphost.cli.man_pages import command_page, configuration_page
from mcphost.cli.parser import command_parser
from mcphost.config.schema import config_schema
from tests.cli.conftest import Mcphost

PAGES = {"mcphost.1": command_page(), "mcphost-config.5": configuration_page()}


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path: Path = tmp_path / request.param
    path.write_text(PAGES[request.param], "utf-8")
    return path


def test_a_page_has_nothing_that_its_language_knows_not(page: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    said = subprocess.run(["mandoc", "-Tlint", page], capture_output=True, text=True, timeout=60).stdout
    serious = [line for line in said.splitlines() if "STYLE:" not in line and "missing date" not in line]
    assert serious == []


def test_a_page_is_shown_by_man_without_a_word_lost(page: Path) -> None:
    if shutil.which("man") is None or not os.access("/usr/bin/man", os.X_OK):
        pytest.skip("man is not installed")
    done = subprocess.run(
        ["man", "--warnings", "-l", page],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "MANWIDTH": "400"},
    )
    if "No such file" in done.stderr or "minimized" in done.stdout:
        pytest.skip("man has no formatter here")
    shown = re.sub(r".\x08", "", done.stdout)
    assert "Value of" not in done.stderr
    words = {
        "mcphost.1": ["--version", "mcphost call SERVER TOOL [KEY=VALUE...]", "MCPHOST_KEYCHAIN"],
        "mcphost-config.5": ["${NAME:-default}", "[servers.NAME.tools.TOOL]", 'start = "eager" | "lazy" | "manual"'],
    }
    assert [each for each in words[page.name] if each not in shown] == []


def test_every_command_and_option_is_in_the_first_page() -> None:
    text = PAGES["mcphost.1"].replace("\\-", "-")
    for name, command in command_parser().commands.items():
        assert f"mcphost {name}" in text
        options = [
            each for action in command._actions if action.help != argparse.SUPPRESS for each in action.option_strings
        ]
        assert [each for each in options if f"\\fB{each}\\fR" not in text] == []


def test_every_key_is_in_the_second_page() -> None:
    text = PAGES["mcphost-config.5"]
    for table in config_schema()["$defs"].values():
        missing = [key for key in table["properties"] if f"\\fB{key}\\fR" not in text and f".{key}" not in text]
        assert missing == []


def test_a_command_prints_them(mcphost: Mcphost) -> None:
    assert mcphost("man").out == PAGES["mcphost.1"]
    assert mcphost("man", "config").out == PAGES["mcphost-config.5"]
