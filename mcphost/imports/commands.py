"""Reads a command line as people write it for a server: which programs it starts, wrappers and shells included."""

from __future__ import annotations

import base64
import binascii
import re
import shlex
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

from mcphost.imports.launchers import (
    ALIASES,
    DOCKERS,
    INTERPRETERS,
    PACKAGE_FLAGS,
    POWERSHELLS,
    SHELLS,
    SUBCOMMANDS,
    WRAPPERS,
    Wrapper,
)

MAX_SCRIPT: Final = 20_000
"""Characters of a shell's script that are read; an entry that people write has a few hundred."""

MAX_WORDS: Final = 1000
"""Words of one command that are read; an entry that people write has some twenty."""

MAX_PROGRAMS: Final = 64
"""Programs of one command line that are looked at."""

MAX_SUBSTITUTIONS: Final = 64
"""Substitutions of one script that are examined."""

LONGEST_START: Final = 12
"""Words of a shell's start that are read: its name, its options and the text."""

LONGEST_SUBSTITUTION: Final = 400
"""Characters of a substitution that are read; only the program at its start matters."""


class ScriptSyntax(Enum):
    SHELL = "sh"
    CMD = "cmd"
    POWERSHELL = "powershell"


class Script(NamedTuple):
    """A text that a shell is to run."""

    text: str
    option: str
    """The option that introduces it, such as ``-lc``; empty without one."""
    syntax: ScriptSyntax = ScriptSyntax.SHELL
    elsewhere: bool = False
    """True if a shell on another machine runs it."""


class ScriptCommand(NamedTuple):
    words: tuple[str, ...]
    piped: bool
    """True if it reads the output of the command before it."""


class OptionReading(NamedTuple):
    """The options at the start of a command, and the words after them."""

    options: tuple[tuple[str, str, str], ...]
    """The name, the value and the word with the name of each; a flag has no value."""
    rest: tuple[str, ...]
    unsure: bool
    """True if an option may or may not take the word after it."""

    def values(self, names: Collection[str]) -> Iterator[tuple[str, str]]:
        """The values of these options, each after the option as it was written."""
        found = ((word, value) for name, value, word in self.options if name in names)
        return ((word.partition("=")[0] if word.startswith("--") else word, value) for word, value in found)


_CMD_OPTION: Final = re.compile(r"(?:/[a-bd-jl-qs-z](?::\w+)?)*(/[ckr])(.*)", re.IGNORECASE | re.DOTALL)
_POWERSHELL_VALUED: Final = (
    "executionpolicy", "ep", "windowstyle", "version", "inputformat", "if", "outputformat", "of", "configurationname",
    "configurationfile", "workingdirectory", "wd", "settingsfile", "custompipename", "psconsolefile",
)  # fmt: skip
_DASHES: Final = "-/\u2013\u2014\u2015"
"""Characters that PowerShell accepts as the mark of an option."""

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_SEPARATOR: Final = re.compile(r"[;&|()<>{}\n]+")
_ENDING: Final = re.compile(r"\.(?:exe|cmd|bat|ps1|com)$")
_VERSION: Final = re.compile(r"(?<=[a-z])-?\d[\d.]*$")
_RESERVED: Final = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "coproc", "call", "@", "&"}
)
_SUBSTITUTION: Final = re.compile(r"(?:[<>$]\(|`)")
_COMMAND_OPTIONS: Final = re.compile(r"(?:proxy|local|knownhosts)command[\s=]+(.*)", re.IGNORECASE | re.DOTALL)

_PUNCTUATION: Final = ";&|()<>\n"


def program_name(word: str) -> str:
    """``npx`` for ``npx``, ``/usr/bin/npx`` and ``C:\\node\\npx.CMD``."""
    return _ENDING.sub("", re.split(r"[/\\]", word)[-1].lower())


def family_of(word: str) -> str:
    """The name under which a program's options are known: ``python`` for ``/usr/bin/python3.12`` and ``pypy3``."""
    name = program_name(word)
    if name in WRAPPERS:
        return name
    plain = _VERSION.sub("", name)
    return ALIASES.get(name) or ALIASES.get(plain) or plain


def programs_in(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The command's words, then those of each command that its wrappers and shells start."""
    waiting, count = deque([tuple(words[:MAX_WORDS])]), 0
    while waiting and count < MAX_PROGRAMS:
        found = waiting.popleft()
        if found:
            count += 1
            yield found
            waiting.extend(inner[:MAX_WORDS] for inner in islice(_inner(found), MAX_PROGRAMS))


def scripts_in(words: Sequence[str]) -> Iterator[Script]:
    """The texts that this program gives to a shell, or runs as one."""
    if not words:
        return
    name = family_of(words[0])
    if name in SHELLS:
        yield from _shell_script(name, words[1:])
    elif name == "cmd":
        yield from _cmd_script(words[1:])
    elif name in POWERSHELLS:
        yield from _powershell_script(name, words[1:])
    elif (found := _wrapper_of(words)) is not None:
        wrapper, reading = found
        yield from (Script(text, word, elsewhere=wrapper.elsewhere) for word, text in reading.values(wrapper.scripts))
        if wrapper.joins and reading.rest:
            yield Script(" ".join(reading.rest), "", elsewhere=wrapper.elsewhere)
        if name == "ssh":
            matches = ((word, _COMMAND_OPTIONS.match(value)) for word, value in reading.values({"-o"}))
            yield from (Script(match[1], word) for word, match in matches if match)


def commands_of(script: Script) -> Iterator[ScriptCommand]:
    """The commands of a script, as far as they can be recognized without being the shell."""
    text = re.sub(r"\$\{?IFS\}?", " ", script.text[:MAX_SCRIPT])
    if script.syntax is ScriptSyntax.CMD:
        text = text.replace("^", "")
    blocks = "{}" if script.syntax is ScriptSyntax.POWERSHELL else ""
    reader = shlex.shlex(text, posix=True, punctuation_chars=_PUNCTUATION + blocks)
    reader.whitespace_split, reader.commenters, reader.whitespace = True, "", " \t\r"
    if script.syntax is not ScriptSyntax.SHELL:
        reader.escape, reader.quotes = ("`", "'\"") if script.syntax is ScriptSyntax.POWERSHELL else ("", '"')
    command, piped = list[str](), False
    try:
        for word in reader:
            if _SEPARATOR.fullmatch(word):
                yield _command(command, piped=piped)
                command.clear()
                piped = "|" in word and "||" not in word
            else:
                command.append(word)
        yield _command(command, piped=piped)
    except ValueError:  # a quotation that never ends: the shell runs what comes before its line
        for part in re.split(r"((?:[;&()<>\n]|\|\|)+|\|)", text):
            if not _SEPARATOR.fullmatch(part):
                yield _command(part.replace('"', "").replace("'", "").split(), piped=piped)
            piped = part == "|"


def substitutions_in(script: Script) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The marks of the substitutions in a shell's script, ``$(`` and the like, each with its first command."""
    text = script.text[:MAX_SCRIPT]
    for match in islice(_SUBSTITUTION.finditer(text), MAX_SUBSTITUTIONS):
        inner = Script(re.split(r"`", text[match.end() : match.end() + LONGEST_SUBSTITUTION], maxsplit=1)[0], "")
        if first := next((each.words for each in commands_of(inner) if each.words), None):
            yield match[0], first


def read_options(
    words: Sequence[str],
    valued: Collection[str],
    *,
    flags: Collection[str] = (),
    attached: str = "",
    operands: int = 0,
    ends: Collection[str] = (),
    exact: bool = True,
) -> OptionReading:
    """Read options up to the first plain word after ``operands`` of them.

    Short options may be bundled, and values attached, with ``=`` too. Unless ``exact``, the beginning of a long option
    counts as the option.
    """
    options, index, unsure = list[tuple[str, str, str]](), 0, False
    takes = {*valued, *ends}
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or word == "-":
            known = family_of(word)
            if operands and not (known in SHELLS or known in INTERPRETERS):
                operands -= 1
                index += 1
                continue
            break
        index += 1
        if word == "--":
            if not operands:
                break
            continue
        for name, value in _split(word, takes, attached):
            given, option = value, name if exact else _whole(name, takes)
            if option in takes and value is None:
                given = words[index] if index < len(words) else ""
                index += 1
            elif option not in takes and name not in flags:
                unsure = True
            options.append((option, given or "", word))
            if option in ends:
                return OptionReading(tuple(options), tuple(words[index:]), unsure)
    return OptionReading(tuple(options), tuple(words[index:]), unsure)


def after_subcommand(words: Sequence[str], *commands: tuple[str, ...]) -> Sequence[str] | None:
    """Return the words after one of these subcommands; only options and their values may come before it."""
    for start in range(1, len(words)):
        for command in commands:
            if tuple(words[start : start + len(command)]) == command:
                return words[start + len(command) :]
        if not words[start].startswith("-") and not words[start - 1].startswith("-"):
            return None
    return None


def _split(word: str, takes: Collection[str], attached: str) -> Iterator[tuple[str, str | None]]:
    """The options in one word; the value is None where the word does not hold one."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        yield name, value if equals else None
        return
    for index, letter in enumerate(word[1:], 1):
        name, rest = f"-{letter}", word[index + 1 :]
        if name in takes or letter in attached:
            yield name, rest.removeprefix("=") if rest or letter in attached else None
            return
        if rest.startswith("="):  # -i=true
            yield name, rest[1:]
            return
        yield name, None


def _whole(name: str, known: Collection[str]) -> str:
    """The option that GNU programs read ``name`` as; they accept the beginning of a long option."""
    if name in known or not name.startswith("--") or len(name) < 4:
        return name
    return next((option for option in sorted(known) if option.startswith(name)), name)


def _wrapper_of(words: Sequence[str]) -> tuple[Wrapper, OptionReading] | None:
    """The wrapper that starts this command, with its options; None for other commands."""
    name, rest = family_of(words[0]), tuple(words[1:])
    wrapper = WRAPPERS.get(name)
    for phrase in SUBCOMMANDS.get(name, ()):
        after = after_subcommand(words, phrase)
        if after is not None:
            full = " ".join((name, *phrase))
            wrapper, rest = WRAPPERS[ALIASES.get(full, full)], tuple(after)
            break
    if wrapper is None:
        return None
    if name == "env":
        return wrapper, _env_options(rest, wrapper)
    takes = wrapper.valued | wrapper.scripts
    flags = PACKAGE_FLAGS if wrapper.package else ()
    return wrapper, read_options(rest, takes, flags=flags, operands=wrapper.operands, exact=wrapper.exact)


def _env_options(words: tuple[str, ...], wrapper: Wrapper) -> OptionReading:
    """The options of ``env``; the words in the value of its ``-S`` come before the rest."""
    reading = read_options(words, wrapper.valued, exact=False)
    for _, text in reading.values({"-S", "--split-string"}):
        try:
            parts = shlex.split(text[:MAX_SCRIPT].replace("\\_", " "))
        except ValueError:
            parts = text[:MAX_SCRIPT].split()
        again = read_options(parts, wrapper.valued, exact=False)
        reading = reading._replace(rest=(*again.rest, *reading.rest))
    return reading


def variables_in(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The variables that ``env`` sets for what it starts."""
    if family_of(words[0]) == "env" and (found := _wrapper_of(words)) is not None:
        for word in found[1].rest:
            if not _ASSIGNMENT.match(word):
                return
            name, _, value = word.partition("=")
            yield name.rstrip("+"), value


def _inner(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    name = family_of(words[0])
    for script in scripts_in(words):
        for command in commands_of(script):
            yield command.words
        for _, inner in substitutions_in(script):
            yield inner
    if name in ("find", "fd", "fdfind"):
        starts = {"-exec", "-execdir", "-ok", "-okdir"} if name == "find" else {"-x", "-X", "--exec", "--exec-batch"}
        yield from (words[index + 1 :] for index, word in enumerate(words) if word in starts)
    elif (found := _wrapper_of(words)) is not None:
        if not found[0].joins:
            yield from _started(*found)
    elif name not in SHELLS | POWERSHELLS | DOCKERS | INTERPRETERS.keys() | {"cmd"}:
        yield from _handed_on(words)


def _started(wrapper: Wrapper, reading: OptionReading) -> Iterator[tuple[str, ...]]:
    """The command that a wrapper starts; all candidates if an option is unknown."""
    rest = tuple(reading.rest)
    while rest and _ASSIGNMENT.match(rest[0]):
        rest = rest[1:]
    if wrapper.package:
        # A package may share its name with an unrelated program; interpreters and shells run code under any name.
        for index, word in [each for each in enumerate(rest) if not each[1].startswith("-")][: 1 + reading.unsure]:
            spec = word.partition("@")[0]
            if family_of(spec) in INTERPRETERS or family_of(spec) in SHELLS | POWERSHELLS:
                yield spec, *rest[index + 1 :]
        yield from _handed_on(rest)
        return
    yield rest
    if reading.unsure or (rest and re.fullmatch(r"(?:/[A-Za-z]{1,5})?", rest[0])):  # an option of Windows
        yield from (rest[index:] for index, word in enumerate(rest[:MAX_PROGRAMS]) if index and _is_known(word))


def _handed_on(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Commands that an unknown program may start: one after ``--``, and a shell that is given a text."""
    if "--" in words[1:-1] and _is_known((rest := words[words.index("--", 1) + 1 :])[0]):
        yield rest
    for index, word in enumerate(words[1:], 1):
        if word != "shell" and (program_name(word) == "cmd" or family_of(word) in SHELLS | POWERSHELLS):
            start = words[index : index + LONGEST_START]
            if any(" " in script.text for script in scripts_in(start)):
                yield start


def _is_known(word: str) -> bool:
    name = family_of(word)
    tables = (SHELLS, POWERSHELLS, INTERPRETERS, WRAPPERS, SUBCOMMANDS, DOCKERS)
    return name == "cmd" or any(name in table for table in tables)


def _shell_script(name: str, words: Sequence[str]) -> Iterator[Script]:
    if name in ("fish", "nu", "elvish", "xonsh"):  # their option takes the text as its value
        scripts = {"-c", "--command", "-C", "--init-command", "-e", "--execute", "--commands"}
        reading = read_options(words, scripts | {"-d", "-o", "-D", "--config", "--env-config", "--features", "--debug"})
        yield from (Script(text, word) for word, text in reading.values(scripts))
        return
    # The shell's options may come between its -c and the text: bash -c -x 'text'.
    waiting, named = deque(words), ""
    while waiting and waiting[0][:1] in ("-", "+"):
        word = waiting.popleft()
        if word in ("-", "--"):
            break
        if word.startswith("--"):
            values = int(word in ("--rcfile", "--init-file", "--emulate"))
        else:
            values = sum(letter in "oO" for letter in word)
            named = named or (word if "c" in word and word[0] == "-" else "")
        for _ in range(min(values, len(waiting))):
            waiting.popleft()
    if named:
        yield Script(waiting[0] if waiting else "", named)


def _cmd_script(words: Sequence[str]) -> Iterator[Script]:
    for index, word in enumerate(words):
        if match := _CMD_OPTION.fullmatch(word):
            rest = list(filter(None, (match[2], *words[index + 1 :])))
            if len(rest) > 1:  # a blank in one of several words is quoted
                rest = [f'"{each}"' if " " in each else each for each in rest]
            yield Script(" ".join(rest), word[: match.end(1)], ScriptSyntax.CMD)
            return


def _powershell_script(name: str, words: Sequence[str]) -> Iterator[Script]:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word[:1] not in _DASHES or len(word) < 2:
            if name == "powershell":  # PowerShell 7 takes it for a file
                yield Script(" ".join(words[index - 1 :]), "", ScriptSyntax.POWERSHELL)
            return
        option, colon, value = word.lstrip(_DASHES).lower().partition(":")
        if option == "cwa" or (option and "commandwithargs".startswith(option)):
            yield Script(" ".join(filter(None, (value, *words[index:]))), word, ScriptSyntax.POWERSHELL)
            return
        if is_encoded_option(word):
            encoded = value or next(iter(words[index:]), "")
            yield Script(_decoded(encoded), word, ScriptSyntax.POWERSHELL)
            return
        if option and "file".startswith(option):
            return
        if not colon and any(known.startswith(option) for known in _POWERSHELL_VALUED):
            index += 1


def is_encoded_option(word: str) -> bool:
    """True for PowerShell's option before an encoded script, in each of its spellings."""
    if len(word) < 2 or word[0] not in _DASHES:
        return False
    option = word.lstrip(_DASHES).lower().partition(":")[0]
    return option == "ec" or (bool(option) and "encodedcommand".startswith(option))


def _decoded(encoded: str) -> str:
    try:
        return base64.b64decode(encoded[: 4 * MAX_SCRIPT]).decode("utf-16-le", "replace")
    except (binascii.Error, ValueError):
        return ""


def _command(words: Sequence[str], *, piped: bool) -> ScriptCommand:
    """A command without the shell's reserved words before its name; one that sets variables becomes an ``env``."""
    index = 0
    while index < len(words) and words[index] in _RESERVED:
        index += 1
    rest = tuple(words[index:])
    if rest:
        first = rest[0].lstrip("@`").lstrip("$").strip("`{}")
        expanded = first.split(",") if rest[0].startswith("{") else [first]  # {curl,-s,x}
        rest = (*expanded, *rest[1:])
    return ScriptCommand(("env", *rest) if rest and _ASSIGNMENT.match(rest[0]) else rest, piped)
