"""The help of the command line: short, and with examples that work."""

from __future__ import annotations

import re
import shlex

import pytest

from mcphost.cli.parser import COMMANDS, EXAMPLES, GROUPS, Parser, command_parser, parse
from mcphost.errors import UsageError

HELPS = {"": EXAMPLES, **{name: command.examples for name, command in COMMANDS.items()}}


def help_of(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        parse([*filter(None, [command]), "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", HELPS)
def test_each_help_fits_a_narrow_terminal_and_ends_with_examples(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = help_of(command, capsys, monkeypatch)
    before, _, examples = text.partition("\nexamples:\n")
    assert max(map(len, before.splitlines())) <= 80
    assert len(text.splitlines()) < (70 if command else 88)
    assert examples == HELPS[command]


def test_each_command_is_in_one_group_of_the_help() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("command", HELPS)
def test_each_example_is_a_command_line(command: str) -> None:
    for line in HELPS[command].splitlines():
        (words,) = (part.strip() for part in line.split(" | ") if part.strip().startswith("mcphost "))
        options = parse(shlex.split(re.split(r"\s{2,}", words)[0])[1:])
        assert options.command.prog.startswith(f"mcphost {command}".strip())


def test_what_json_prints_and_the_exit_codes_are_in_the_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert '{"error": {"kind": ...' in help_of("", capsys, monkeypatch)
    assert "5 timed out" in help_of("", capsys, monkeypatch)
    assert '{"server": NAME, "tools": [...]}' in help_of("list", capsys, monkeypatch)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_parsed_alone_has_the_help_that_it_has_among_all(command: str) -> None:
    assert _help(command_parser(command), command) == _help(command_parser(), command)


def _help(parser: Parser, command: str) -> str:
    return parser.commands[command].format_help()


def test_a_profile_is_taken_before_and_behind_the_command() -> None:
    assert parse(["--profile", "dev", "check"]).profile == "dev"
    assert parse(["check", "--profile", "dev"]).profile == "dev"
    assert parse(["--profile", "dev"]).profile == "dev"


def test_a_command_without_servers_refuses_a_profile() -> None:
    with pytest.raises(UsageError, match="--profile: this command starts no server"):
        parse(["--profile", "dev", "config", "path"])
