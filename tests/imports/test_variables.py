"""Variables of other hosts become references, and what is none stays plain text."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from mcphost.config.references import parse
from mcphost.imports import variables
from mcphost.imports.survey import read_any
from mcphost.imports.variables import Syntax, UntranslatableError, VariableContext, translate

HERE = VariableContext(PurePosixPath("/home/ada/app"), PurePosixPath("/home/ada/app/.vscode"))


@pytest.mark.parametrize(
    ("syntax", "text", "expected"),
    [
        (variables.VARIABLES_OF_CLAUDE, "a ${B} ${C:-d e} $F ${env:G} ${1}", "a ${B} ${C:-d e} $F $${env:G} $${1}"),
        (variables.VARIABLES_OF_CLAUDE, "${CLAUDE_PROJECT_DIR}/x", "/home/ada/app/x"),
        (variables.VARIABLES_OF_CLAUDE, "${CLAUDE_PLUGIN_ROOT}/x", "/home/ada/app/.vscode/x"),
        (variables.VARIABLES_OF_GEMINI, "$A-$B_C ${D} ${E:-f} 100$ $1", "${A}-${B_C} ${D} ${E:-f} 100$ $1"),
        (variables.VARIABLES_OF_CURSOR, "${env:A} ${A} ${userHome}${/}b", "${A} $${A} ${HOME}/b"),
        (variables.VARIABLES_OF_VSCODE, "${input:my token} ${workspaceFolder}", "${input:my-token} /home/ada/app"),
        (variables.VARIABLES_OF_VSCODE, "${workspaceFolderBasename} ${workspaceFolder:x}", "app /home/ada/app"),
        (variables.VARIABLES_OF_VSCODE, "${localEnv:A:b} ${localEnv:C}", "${A:-b} ${C}"),
        (variables.VARIABLES_OF_OPENCODE, "{env:A} {file:key} {file:~/k} {x} ${A}",
         "${A} ${file:/home/ada/app/.vscode/key} ${file:~/k} {x} $${A}"),
        (variables.VARIABLES_OF_CONTINUE, "${{ secrets.A }}${{secrets.B}} ${C}", "${input:A}${input:B} $${C}"),
        (variables.VARIABLES_OF_MCPORTER, "$env:A ${B} ${C:-}", "${A} ${B} ${C:-}"),
        (variables.VARIABLES_OF_MCPHOST_GO, "${env://A:-b} ${env://C}", "${A:-b} ${C}"),
        (variables.NO_VARIABLES, "${A} $B %C% {env:D} $${E}", "$${A} $B %C% {env:D} $$${E}"),
    ],
)  # fmt: skip
def test_a_hosts_variables_become_references(syntax: Syntax, text: str, expected: str) -> None:
    assert translate(text, syntax, HERE) == expected
    if "${input:" not in expected:
        parse(expected)


@pytest.mark.parametrize(
    ("syntax", "text", "reason"),
    [
        (variables.VARIABLES_OF_VSCODE, "${command:x.y}", "only the editor knows"),
        (variables.VARIABLES_OF_VSCODE, "${config:a}", "only the editor knows"),
        (variables.VARIABLES_OF_CURSOR, "${env:A-B}", "not the name of a variable"),
        (variables.VARIABLES_OF_OPENCODE, "{env:}", "not the name of a variable"),
        (variables.VARIABLES_OF_CURSOR, "$${env:A}", "right before a variable"),
        (variables.VARIABLES_OF_OPENCODE, "{file:}", "cannot express"),
    ],
)
def test_what_has_no_counterpart_is_refused_in_words(syntax: Syntax, text: str, reason: str) -> None:
    with pytest.raises(UntranslatableError, match=reason):
        translate(text, syntax, VariableContext(HERE.workspace))


def test_a_users_file_has_no_workspace() -> None:
    with pytest.raises(UntranslatableError, match="belongs to no project"):
        translate("${workspaceFolder}", variables.VARIABLES_OF_VSCODE, VariableContext())


def test_a_variable_that_the_program_replaces_itself_stays_for_it() -> None:
    text = b"""{"mcpServers": {"a": {"command": "npx", "args": ["-y", "mcp-remote", "H:${OWN}", "${SAME}", "${OTHER}"],
               "env": {"OWN": "x", "SAME": "${SAME}"}}}}"""
    (found,) = read_any(text)
    assert found.table["args"] == ["-y", "mcp-remote", "H:$${OWN}", "${SAME}", "${OTHER}"]


@pytest.mark.parametrize(
    "text", ["${A:-" * 50_000, "${env:" * 50_000, "{env:" * 50_000, "${{ secrets." * 20_000, "$" * 300_000]
)
@pytest.mark.parametrize(
    "syntax",
    [variables.ANY, variables.VARIABLES_OF_OPENCODE, variables.VARIABLES_OF_GEMINI],
    ids=["any", "opencode", "gemini"],
)
def test_a_long_text_of_openings_takes_no_time(text: str, syntax: variables.Syntax) -> None:
    translate(text, syntax, HERE)
