"""The manual in the terminal: topics, pages, and the pager."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from mcphost import manual
from mcphost.cli.commands.help import KEYS
from mcphost.manual import TOPICS, page, topics
from tests.cli.conftest import Mcphost, mcphost_command
from tests.terminal import Terminal


def test_every_page_of_the_manual_has_a_topic() -> None:
    assert {path.stem for path in Path(manual.__file__).parent.glob("*.md")} == set(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_names_other_pages_by_their_commands(topic: str) -> None:
    text = page(topic)
    assert text.startswith("# ")
    assert ".md)" not in text
    assert set(re.findall(r"`mcphost help ([a-z-]+)`", text)) <= {*TOPICS, KEYS}


def test_without_a_topic_it_lists_them(mcphost: Mcphost) -> None:
    said = mcphost("help")
    assert said.code == 0
    for topic, about in topics().items():
        assert f"  {topic} " in said.out
        assert about in said.out
    assert "mcphost COMMAND --help" in said.out


def test_a_page_is_wrapped_plain_text_in_a_pipe(mcphost: Mcphost) -> None:
    said = mcphost("help", "configuration")
    assert (said.code, said.err) == (0, "")
    assert "\x1b" not in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert "[servers.NAME.tools.TOOL]" in said.out
    assert 'start = "eager" | "lazy" | "manual" (default "eager")' in said.out


def test_a_command_has_its_own_help(mcphost: Mcphost) -> None:
    assert "usage: mcphost doctor" in mcphost("help", "doctor").out


def test_a_mistyped_topic_is_answered_with_the_nearest(mcphost: Mcphost) -> None:
    said = mcphost("help", "confguration")
    assert (said.code, said.out) == (2, "")
    assert "'confguration' is not a topic; did you mean configuration?" in said.err


def test_the_keys_of_the_screen_are_listed_with_their_ids(mcphost: Mcphost) -> None:
    said = mcphost("help", "keys")
    assert (said.code, said.err) == (0, "")
    assert re.search(r"^form\.submit +ctrl\+r,ctrl\+enter +Submit the form$", said.out, re.MULTILINE)
    assert "[ui.keys]" in said.out


@pytest.mark.slow
def test_a_long_page_opens_in_the_pager(tmp_path: Path) -> None:
    pager = tmp_path / "pager.py"
    pager.write_text("import sys; print('paged', len(sys.stdin.read().splitlines()) > 100, end='\\r\\n')\n")
    command = mcphost_command("help", "configuration")
    with Terminal(command, env={"PAGER": shlex.join([sys.executable, str(pager)])}) as terminal:
        assert terminal.wait_exit() == 0
        assert b"paged True" in terminal.raw


@pytest.mark.slow
def test_a_page_is_printed_where_there_is_no_pager(tmp_path: Path) -> None:
    with Terminal(mcphost_command("help", "configuration"), env={"PAGER": str(tmp_path / "missing")}) as terminal:
        assert terminal.wait_exit() == 0
        assert b"[ui]" in terminal.raw
