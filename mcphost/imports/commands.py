"""Reads a command line as people write it for a server: which programs it starts, wrappers and shells included."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "csh", "tcsh"})
POWERSHELLS: Final = frozenset({"powershell", "pwsh"})

MAX_SCRIPT: Final = 20_000
"""Characters of a shell's script that are read; an entry that people write has a few hundred."""

MAX_PROGRAMS: Final = 32
"""Programs of one command line that are looked at."""

_WRAPPERS: Final[Mapping[str, frozenset[str]]] = {
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-T", "-D", "-R", "-U"}),
    "doas": frozenset({"-u", "-C"}),
    "pkexec": frozenset({"--user"}),
    "env": frozenset({"-u", "-C", "--unset", "--chdir"}),
    "timeout": frozenset({"-s", "-k", "--signal", "--kill-after"}),
    "nice": frozenset({"-n"}),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "xargs": frozenset({"-n", "-I", "-P", "-L"}),
    "winpty": frozenset(),
    "exec": frozenset({"-a"}),
    "command": frozenset(),
}
"""Programs that start the one that follows, and their options that take a value."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_DURATION: Final = re.compile(r"\d[\d.]*[smhd]?")
_SEPARATOR: Final = re.compile(r"[;&|()<>\n]+")
_ENDING: Final = re.compile(r"\.(?:exe|cmd|bat|ps1)$")


def program_name(word: str) -> str:
    """``npx`` for ``npx``, ``/usr/bin/npx`` and ``C:\\node\\npx.CMD``."""
    return _ENDING.sub("", re.split(r"[/\\]", word)[-1].lower())


def programs_in(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The command's words, then those of each command that its wrappers and shells start."""
    waiting, count = deque([tuple(words)]), 0
    while waiting and count < MAX_PROGRAMS:
        found = waiting.popleft()
        if found:
            count += 1
            yield found
            waiting.extend(_inner(found))


def script_in(words: Sequence[str]) -> str | None:
    """The text that this shell (`SHELLS`, ``cmd`` or PowerShell) is to run; None where it is not given one."""
    name = program_name(words[0]) if words else ""
    for index, word in enumerate(words[1:], 1):
        if name in SHELLS and re.fullmatch(r"-[a-z]*c", word):
            return words[index + 1] if index + 1 < len(words) else ""
        if name == "cmd" and word.lower() in ("/c", "/k", "/r"):
            return " ".join(words[index + 1 :])
        if name in POWERSHELLS and word.lower() in ("-c", "-command", "/c", "/command"):
            return " ".join(words[index + 1 :])
    return None


def _inner(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    name = program_name(words[0])
    if (script := script_in(words)) is not None:
        yield from _commands_of(script) if name != "cmd" else (words[-len(script.split(" ")) :],)
    elif name in _WRAPPERS:
        yield _after_options(words[1:], _WRAPPERS[name])


def _after_options(words: tuple[str, ...], valued: frozenset[str]) -> tuple[str, ...]:
    index = 0
    while index < len(words):
        word = words[index]
        if word in valued:
            index += 2
        elif word.startswith("-") or _ASSIGNMENT.match(word) or _DURATION.fullmatch(word):
            index += 1
        else:
            break
    return words[index:]


def _commands_of(script: str) -> Iterator[tuple[str, ...]]:
    """The commands of a shell's script, as well as they can be told without being the shell."""
    reader = shlex.shlex(script[:MAX_SCRIPT], posix=True, punctuation_chars=";&|()<>\n")
    reader.whitespace_split, reader.commenters, reader.whitespace = True, "", " \t\r"
    command = list[str]()
    try:
        for word in reader:
            if _SEPARATOR.fullmatch(word):
                yield tuple(command)
                command.clear()
            else:
                command.append(word)
    except ValueError:  # a quotation that never ends
        yield tuple(script[:MAX_SCRIPT].split())
        return
    yield tuple(command)
