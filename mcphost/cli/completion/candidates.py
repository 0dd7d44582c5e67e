"""Finds the words that fit at the cursor of a command line by walking the parser, and prints them for a shell."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, Final

from mcphost.cli.completion.known_names import KnownNames, is_harmless
from mcphost.cli.parser import COMMANDS, Parser, command_parser
from mcphost.errors import McphostError
from mcphost.lazy_dataclass import dataclass
from mcphost.places import working_folder

Candidate = tuple[str, str]
"""A word, and what it is in a few words, which may be empty."""


@dataclass(slots=True)
class _Line:
    """A command line up to the cursor, as the parser understands it."""

    parser: Parser
    words: list[str] = field(default_factory=list)
    """The arguments of the command, without options."""
    pending: argparse.Action | None = None
    """The option whose value comes next."""
    options: bool = True
    """False after ``--``."""
    given: dict[str, str] = field(default_factory=dict)
    """The last value of each option that has one."""

    def take(self, word: str) -> None:
        if self.pending is not None and not (self.pending.nargs == "?" and word.startswith("-")):
            self.given[self.pending.dest], self.pending = word, None
        elif self.options and word == "--":
            self.options = False
        elif self.options and word.startswith("-") and word != "-":
            self._take_option(word)
        elif self.parser.commands:
            self.parser = self.parser.commands.get(word, self.parser)
        else:
            self.words.append(word)

    def _take_option(self, word: str) -> None:
        name, equals, value = word.partition("=")
        action = self.parser._option_string_actions.get(name)
        self.pending = None
        if action is not None and action.nargs != 0:
            if equals:
                self.given[action.dest] = value
            else:
                self.pending = action

    @property
    def positional(self) -> argparse.Action | None:
        place = len(self.words)
        for action in self.parser._get_positional_actions():
            if place == 0 or action.nargs == "*":
                return action
            place -= 1
        return None


def answer_shell(words: Sequence[str]) -> int:
    """Print the candidates, one a line, each with a tab and its description; nothing where names of files fit."""
    found: Iterable[Candidate] = ()
    with suppress(McphostError):  # without a home or a working folder nothing is known
        found = candidates(words, KnownNames(os.environ, working_folder()))
    print("".join(f"{word}\t{about}\n" if about else f"{word}\n" for word, about in found), end="")
    return 0


def candidates(words: Sequence[str], names: KnownNames) -> list[Candidate]:
    """Return what may replace the last of ``words``, which begin after the program's name.

    Empty where a shell should complete names of files.
    """
    *before, current = words or [""]
    line = _Line(command_parser())
    for word in before:
        line.take(word)
    return [each for each in _fitting(line, current, names) if each[0].startswith(current)]


def _fitting(line: _Line, current: str, names: KnownNames) -> Iterator[Candidate]:
    name, equals, _ = current.partition("=")
    option = line.parser._option_string_actions.get(name) if line.options and name.startswith("-") else None
    if line.pending is not None and not (line.pending.nargs == "?" and current.startswith("-")):
        yield from _values(line.pending, line, names)
    elif option is not None and equals:
        yield from ((f"{name}={word}", about) for word, about in _values(option, line, names))
    elif line.options and current.startswith("-"):
        yield from _options(line.parser)
    elif line.parser.commands:
        yield from ((name, COMMANDS[name].about.partition(".")[0]) for name in line.parser.commands)
    elif (action := line.positional) is not None:
        yield from _values(action, line, names)


def _options(parser: Parser) -> Iterator[Candidate]:
    for name, action in parser._option_string_actions.items():
        if name.startswith("--"):
            yield name, (action.help or "").partition(";")[0]


def _values(action: argparse.Action, line: _Line, names: KnownNames) -> Iterator[Candidate]:
    if action.choices is not None:
        yield from ((str(choice), "") for choice in action.choices)
        return
    find = _FIND.get((_command(line.parser), action.dest)) or _FIND.get(("", str(action.metavar)))
    find = {"profile": _profiles, "identity": _identities}.get(action.dest, find)
    if find is not None:
        yield from find(names, line)


def _command(parser: Parser) -> str:
    return parser.prog.rpartition(" ")[2]


def _servers(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    return ((name, "") for name in names.servers(line.given.get("config")))


def _profiles(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    return ((name, "") for name in names.profiles(line.given.get("config")))


def _identities(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    return ((name, "") for name in names.identities(line.given.get("config")))


def _of_server(kind: str) -> Callable[[KnownNames, _Line], Iterator[Candidate]]:
    return lambda names, line: ((name, "") for name in names.items(line.words[0], kind))


def _arguments(kind: str) -> Callable[[KnownNames, _Line], Iterator[Candidate]]:
    """``NAME=`` for each argument of the tool or prompt that is named."""
    return lambda names, line: ((f"{name}=", "") for name in names.arguments(line.words[0], kind, line.words[1]))


def _tools_of_all(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    for server in names.servers(line.given.get("config")):
        yield from ((f"{server}:{tool}", "") for tool in names.items(server, "tools"))


def _saved_calls(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    """``NAME=`` for each argument of the saved call that is named last, then the calls that are not named yet."""
    calls, named = names.saved_calls(line.given.get("config")), [word for word in line.words if "=" not in word]
    if named and named[-1] in calls:
        yield from ((f"{name}=", "") for name in names.arguments(*calls[named[-1]]))
    for name, (server, _, target) in calls.items():
        if name not in named:
            yield name, f"{server} {target}" if is_harmless(server) and is_harmless(target) else ""


def _skill_words(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    """The server, then its skills, then for ``read`` the files of the skill."""
    if len(line.words) == 1:
        yield from _servers(names, line)
    elif len(line.words) == 2:
        yield from ((name, "") for name in names.items(line.words[1], "skills"))
    elif len(line.words) == 3 and line.words[0] == "read":
        yield from ((path, "") for path in names.arguments(line.words[1], "skills", line.words[2]))


def _skills_of_all(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    for server in names.servers(line.given.get("config")):
        yield from ((f"{server}:{skill}", "") for skill in names.items(server, "skills"))


def _references(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    yield from ((f"prompt:{name}", "") for name in names.items(line.words[0], "prompts"))
    yield from ((f"template:{name}", "") for name in names.items(line.words[0], "templates"))


def _topics(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    from mcphost.manual import topics  # late: it reads every page

    yield from topics().items()
    yield "keys", "The keys of the screen, and their ids"


def _hosts(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    from mcphost.imports.hosts import HOSTS  # late: it loads every dialect

    return ((host.id, host.label) for host in HOSTS)


def _allowable(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    """The tools whose calls were declined, then those of configured servers, and their skills."""
    declined = names.tools_in("declined", "declined")
    yield from ((name, "declined") for name in declined)
    yield from ((name, "") for name, _ in _tools_of_all(names, line) if name not in declined)
    yield from ((name, "skill") for name, _ in _skills_of_all(names, line))
    yield from ((name, "allowed") for name in names.tools_in("approvals", "approval") if name not in declined)


def _wrapped(names: KnownNames, line: _Line) -> Iterator[Candidate]:
    return ((name, "") for name in names.wrapped(line.words[0]) if name not in line.words)


_FIND: Final[Mapping[tuple[str, str], Callable[[KnownNames, Any], Iterator[Candidate]]]] = {
    ("", "SERVER"): _servers,
    ("", "SERVER:TOOL"): _tools_of_all,
    ("", "SERVER:SKILL"): _skills_of_all,
    ("", "TOOL"): _of_server("tools"),
    ("", "AGENT"): _hosts,
    ("", "URI"): _of_server("resources"),
    ("call", "pairs"): _arguments("tools"),
    ("bench", "pairs"): _arguments("tools"),
    ("prompt", "pairs"): _arguments("prompts"),
    ("run", "words"): _saved_calls,
    ("prompt", "prompt"): _of_server("prompts"),
    ("skill", "names"): _skill_words,
    ("complete", "ref"): _references,
    ("compare", "words"): _servers,
    ("diff", "before"): _servers,
    ("diff", "after"): _servers,
    ("chat", "model"): lambda names, line: ((name, "") for name in names.models(line.given.get("config"))),
    ("chat", "resume"): lambda names, line: ((name, "") for name in ("last", *names.chats())),
    ("chat", "export"): lambda names, line: ((name, "") for name in ("last", *names.chats())),
    ("help", "topic"): _topics,
    ("import", "source"): _hosts,
    ("export", "host"): _hosts,
    ("export", "names"): _servers,
    ("serve", "print"): _hosts,
    ("remove", "server"): _servers,
    ("allow", "tool"): _allowable,
    ("wrap", "host"): _hosts,
    ("unwrap", "host"): _hosts,
    ("unwrap", "servers"): _wrapped,
}
"""Finders of the values of an argument, by command and name, or by its metavar in all commands."""
