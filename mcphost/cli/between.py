"""The options of the commands that start a server for an agent, for the parser and for a start without it.

It imports nothing, so that the server starts first.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    Option = tuple[str, str | None, str]

RUN: Final = {"tap": "tap.run_tap", "gate": "gate.run_gate", "record": "tap.run_record"}
"""The functions of these commands, MODULE.FUNCTION."""

QUESTIONS: Final = ("agent", "here", "both")
"""The sides that may answer a server's questions."""

PORT: Final = 6427
"""The port at which ``mcphost serve --http`` is found if none is named: entries of hosts must stay true."""

_NAMED: Final[dict[str, Option]] = {
    "--name": ("name", "NAME", "the server's name; default: the package's, the program's or the address's"),
    "--as": ("agent", "AGENT", "the agent's name"),
    "--state": ("state", "FOLDER", "the state folder of the screen; default: the usual one"),
}

_INTO: Final[dict[str, Option]] = {
    "--into": ("into", "FILE", "append the messages to FILE, whole (JSON Lines, masked)"),
}
_LISTEN: Final[dict[str, Option]] = {
    "--listen": ("listen", "ADDRESS", "of a URL: listen at 127.0.0.1:PORT; default: any free port"),
}

REDACT: Final = "--redact"
"""Repeatable, which only the parser of all commands understands."""

REDACT_HELP: Final = "mask this in FILE: a JSON path such as $..email, or a regular expression"

BETWEEN: Final[dict[str, dict[str, Option]]] = {
    "tap": _NAMED | _INTO | _LISTEN,
    "record": _NAMED | _LISTEN,
    "gate": _NAMED
    | _INTO
    | {
        "--answer-within": ("answer_within", "SECONDS", "answer a call that is still undecided after this time"),
        "--questions": (
            "questions",
            None,
            "where the server's questions are answered: by the agent (the default), here in mcphost, or both",
        ),
    },
}
"""By command and option: its destination, the name of its value, and its help."""

SERVE: Final[dict[str, Option]] = {
    "--as": ("agent", "AGENT", "the agent's name, by which rules know it"),
    "--questions": (
        "questions",
        "SIDE",
        "where the questions of servers are answered: agent (the default; here, if it cannot) or here in mcphost",
    ),
    "--state": _NAMED["--state"],
    "--into": ("into", "FILE", "serve from this process, and append its messages to FILE (JSON Lines, masked)"),
    "--approve": ("approve", None, "offer the tool approve, by which an agent asks for permission"),
}
"""The same for ``mcphost serve``; options without a value are flags."""


def fast_options(command: str) -> dict[str, str]:
    """The destinations of the options with which a command starts without the parser."""
    return {"--config": "config"} | {option: destination for option, (destination, *_) in BETWEEN[command].items()}
