"""Translates variables between the syntaxes of other hosts and the references of mcphost's configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cached_property
from pathlib import PurePath
from typing import Final

from mcphost.config.references import VARIABLE, MalformedReferenceError, Reference, parse
from mcphost.imports.inputs import input_id, literal
from mcphost.lazy_dataclass import dataclass

_REST: Final = r"(?:[^}$]|\$(?!\{))*"  # stops at the next variable: what is never closed is not read again and again
_VARIABLE: Final = re.compile(VARIABLE)

SHELL: Final = rf"\$\{{(?P<shell>{VARIABLE})(?P<shell_default>:-{_REST})?\}}"
"""``${NAME}``, ``${NAME:-default}``"""
BARE: Final = rf"\$(?P<bare>{VARIABLE})"
"""``$NAME``"""
PERCENT: Final = rf"%(?P<percent>{VARIABLE})%"
"""``%NAME%``"""
ENV: Final = rf"\$\{{(?:env|localEnv):(?://)?(?P<env>[^}}:$]*)(?P<env_default>:-?{_REST})?\}}"
"""``${env:NAME}``, ``${env://NAME:-default}``, and ``${localEnv:NAME:default}`` of dev containers"""
POWERSHELL: Final = rf"\$env:(?P<powershell>{VARIABLE})"
"""``$env:NAME``"""
BRACES: Final = r"\{env:(?P<braces>[^{}]*)\}"
"""``{env:NAME}``"""
FILE: Final = r"\{file:(?P<file>[^{}]*)\}"
"""``{file:PATH}``"""
INPUT: Final = r"\$\{input:(?P<input>[^}$]*)\}"
"""``${input:ID}``"""
SECRET: Final = r"\$\{\{\s*(?:secrets|inputs)\.(?P<secret>[\w.-]+)\s*\}\}"
"""``${{ secrets.NAME }}``"""
EDITOR: Final = (
    r"\$\{(?P<editor>workspaceFolder(?:Basename)?|workspaceRoot|userHome|pathSeparator|/|cwd"
    r"|(?:localWorkspaceFolder|containerWorkspaceFolder)(?:Basename)?)(?::[^}$]*)?\}"
)
"""``${workspaceFolder}`` and the like"""
OPAQUE: Final = (
    r"\$\{(?P<opaque>(?:command|config|file\w*|relativeFile\w*|selectedText|lineNumber|execPath)(?::[^}$]*)?)\}"
)
"""Values that only the editor knows."""
CLAUDE: Final = r"\$\{(?P<claude>CLAUDE_PLUGIN_ROOT|CLAUDE_PROJECT_DIR)\}"
"""Folders that Claude Code knows"""


class UntranslatableError(ValueError):
    """A variable that has no counterpart; ``str()`` is a clause that says which and why."""


@dataclass(frozen=True)
class Syntax:
    """The forms of variables that a host reads, as patterns, and the form in which one is written.

    ``write`` gets a name and a default (None without one) and returns the host's form, or None where it has
    none for that.
    """

    forms: tuple[str, ...] = ()
    write: Callable[[str, str | None], str | None] = lambda _name, _default: None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(self.forms) or r"(?!)")


@dataclass(frozen=True, slots=True)
class VariableContext:
    """The values of a file's variables. ``workspace``, the project's folder, is None if the file has none."""

    workspace: PurePath | None = None
    folder: PurePath | None = None
    """The folder of the file itself."""
    home: str = "~"
    separator: str = "/"
    own: frozenset[str] = frozenset()
    """Variables that the entry itself gives its program: in arguments they are for the program to replace."""
    used_inputs: set[str] = field(default_factory=set)
    """Filled with the ids of the inputs that were met."""


def translate(text: str, syntax: Syntax, context: VariableContext) -> str:
    """Return ``text`` with the host's variables as references of mcphost, and every other ``${`` escaped.

    Raises UntranslatableError.
    """
    result = ""
    for piece, is_reference in _pieces(text, syntax, context):
        if is_reference and result.endswith("$"):
            raise UntranslatableError("has a $ right before a variable, which mcphost cannot express")
        result += piece
    return result


def _pieces(text: str, syntax: Syntax, context: VariableContext) -> Iterator[tuple[str, bool]]:
    position = 0
    for match in syntax.pattern.finditer(text):
        yield literal(text[position : match.start()]), False
        piece = _translated(match, context)
        yield piece, piece.startswith("${")
        position = match.end()
    yield literal(text[position:]), False


def _translated(match: re.Match[str], context: VariableContext) -> str:
    found = {key: value for key, value in match.groupdict().items() if value is not None}
    kind = next(iter(key for key in found if not key.endswith("_default")))
    body = found[kind]
    if kind in ("editor", "claude"):
        return _folder(body, match[0], context)
    if kind == "file":
        path = body if body.startswith(("/", "~")) or context.folder is None else str(context.folder / body)
        return _reference(f"file:{path}", match[0])
    if kind in ("input", "secret"):
        identifier = input_id(body)
        context.used_inputs.add(identifier)
        return f"${{input:{identifier}}}"
    if kind == "opaque":
        raise UntranslatableError(f"uses ${{{body[:64]}}}, which only the editor knows")
    if body in context.own and kind == "shell":
        return literal(match[0])
    if not _VARIABLE.fullmatch(body):
        raise UntranslatableError(f"uses {match[0][:64]}, which is not the name of a variable")
    default = found.get(f"{kind}_default", "")
    return _reference(f"{body}:-{default.lstrip(':').removeprefix('-')}" if default else body, match[0])


def _reference(body: str, written: str) -> str:
    text = f"${{{body}}}"
    try:
        parse(text)
    except MalformedReferenceError:
        raise UntranslatableError(f"uses {written[:64]}, which mcphost cannot express") from None
    return text


def _folder(name: str, written: str, context: VariableContext) -> str:
    if name == "userHome":
        return "${HOME}"
    if name in ("pathSeparator", "/"):
        return context.separator
    folder = context.folder if name == "CLAUDE_PLUGIN_ROOT" else context.workspace
    if folder is None:
        raise UntranslatableError(f"uses {written}, and this file belongs to no project")
    return literal(folder.name if name.endswith("Basename") else str(folder))


def pieces_of(text: str) -> tuple[str | Reference, ...]:
    """Split a text of the configuration; one that is not valid counts as a literal."""
    try:
        return parse(text)
    except MalformedReferenceError:
        return (text,)


def taken_for_variables(text: str, syntax: Syntax) -> bool:
    """True if the host would take part of this literal text for a variable."""
    return syntax.pattern.search(text) is not None


def _spell_shell(name: str, default: str | None) -> str | None:
    return f"${{{name}}}" if default is None else f"${{{name}:-{default}}}"


def _without_default(form: str) -> Callable[[str, str | None], str | None]:
    return lambda name, default: form.replace("NAME", name) if default is None else None


NO_VARIABLES: Final = Syntax()
VARIABLES_OF_CLAUDE: Final = Syntax((CLAUDE, SHELL), _spell_shell)
SHELL_LIKE: Final = Syntax((SHELL,), _spell_shell)
VARIABLES_OF_GEMINI: Final = Syntax((SHELL, BARE), _spell_shell)
VARIABLES_OF_CURSOR: Final = Syntax((ENV, EDITOR, OPAQUE), _without_default("${env:NAME}"))
VARIABLES_OF_VSCODE: Final = Syntax((INPUT, ENV, EDITOR, OPAQUE), _without_default("${env:NAME}"))
VARIABLES_OF_OPENCODE: Final = Syntax((BRACES, FILE), _without_default("{env:NAME}"))
VARIABLES_OF_CONTINUE: Final = Syntax((SECRET,), _without_default("${{ secrets.NAME }}"))
VARIABLES_OF_MCPORTER: Final = Syntax((POWERSHELL, SHELL), _spell_shell)
VARIABLES_OF_MCPHOST_GO: Final = Syntax(
    (ENV,), lambda name, default: f"${{env://{name}}}" if default is None else f"${{env://{name}:-{default}}}"
)
ANY: Final = Syntax((SECRET, INPUT, ENV, EDITOR, OPAQUE, CLAUDE, POWERSHELL, SHELL), _spell_shell)
"""For a paste, whose host is unknown."""
