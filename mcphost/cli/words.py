"""The words each command takes.

Knows arguments and their help. Refuses to import what a command needs, since --help needs none of it.
"""

from __future__ import annotations

import argparse
from typing import Any, Final, NoReturn

SERVER_HELP: Final = "a configured name, a URL, or 'stdio:COMMAND LINE'"


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, and complains in one line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, **more)

    def error(self, message: str) -> NoReturn:
        """End with what is wrong."""
        self.exit(2, f"mcphost: {message}; see {self.prog} --help\n")


def add_servers(parser: Parser) -> None:
    """Any number of SERVERs."""
    parser.add_argument(
        "servers", nargs="*", default=[], metavar="SERVER", help=f"{SERVER_HELP}; none: all that are configured"
    )
    add_json(parser, "one JSON object a line for each server")


def add_json(parser: Parser, about: str) -> None:
    """``--json``; ``about`` says what it prints."""
    parser.add_argument("--json", action="store_true", help=about)


def add_traffic(parser: Parser, **more: Any) -> None:
    """``--traffic FILE``."""
    parser.add_argument(
        "--traffic",
        metavar="FILE",
        help="add every message of this run to FILE, one JSON object a line, without secrets",
        **more,
    )


def add_answers(parser: Parser) -> None:
    """How to answer what servers ask meanwhile."""
    parser.add_argument("--answers", metavar="FILE", help="answer what servers ask as FILE (TOML or JSON) says")
    for action, meaning in (("accept", "yes to"), ("decline", "no to")):
        about = f"say {meaning} what servers ask: form, url, roots or sampling"
        parser.add_argument(f"--{action}", action="append", default=[], metavar="KIND[:SERVER]", help=about)
    parser.add_argument(
        "--root", action="append", default=[], metavar="PATH", help="let the server know of this folder, in this run"
    )


def add_output(parser: Parser, about: str) -> None:
    """Where to write."""
    parser.add_argument("--output", metavar="FILE", help=f"{about}; several: FILE, FILE-2, …")


def add_call(parser: Parser) -> None:
    """The words of ``call``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument(
        "pairs", nargs="*", default=[], metavar="KEY=VALUE", help="an argument; KEY:=JSON for any JSON value"
    )
    parser.add_argument(
        "--args", metavar="JSON", help="all arguments as an object, - from stdin; single ones replace its members"
    )
    parser.add_argument("--yes", action="store_true", help="allow the call; what policy denies stays denied")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="seconds without an answer or progress")
    add_output(parser, "write what is no text into FILE")
    add_answers(parser)
    add_json(parser, "the protocol's own result object")


def add_chat(parser: Parser) -> None:
    """The words of ``chat``."""
    about = "what to say; /server:prompt key=value and @server:uri or @file bring something along, a pipe too"
    parser.add_argument("words", nargs="*", default=[], metavar="TEXT", help=about)
    parser.add_argument("--model", default="", metavar="NAME", help="an entry of [models]; absent: chat.model")
    parser.add_argument(
        "--server", dest="servers", action="append", default=[], metavar="SERVER", help=f"{SERVER_HELP}; absent: all"
    )
    for flag, meaning in (("allow", "let the model call"), ("deny", "refuse")):
        about = f"{meaning} these tools without asking"
        parser.add_argument(f"--{flag}", action="append", default=[], metavar="SERVER:TOOL", help=about)
    parser.add_argument("--max-rounds", type=_count, metavar="N", help="how often the model may answer")
    about = "go on with this conversation; the beginning of its id is enough, and last is the last"
    parser.add_argument("--resume", default="", metavar="ID", help=about)
    parser.add_argument("--saved", action="store_true", help="list the conversations that are kept, and say nothing")
    parser.add_argument("--export", metavar="ID", help="print a conversation that is kept as Markdown, and say nothing")
    add_answers(parser)
    add_json(parser, "what happens, one JSON object a line")


def add_read(parser: Parser) -> None:
    """The words of ``read``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("uri", metavar="URI", help="listed or not; it goes out as it is typed")
    add_output(parser, "write what it holds into FILE")
    add_answers(parser)
    add_json(parser, "the protocol's own result object")


def add_prompt(parser: Parser) -> None:
    """The words of ``prompt``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("prompt", metavar="NAME")
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help="an argument")
    add_answers(parser)
    add_json(parser, "the protocol's own result object")


def add_complete(parser: Parser) -> None:
    """The words of ``complete``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("ref", metavar="REF", help="prompt:NAME or template:URI")
    parser.add_argument("argument", metavar="ARGUMENT")
    parser.add_argument("value", metavar="VALUE", help="what is typed so far")
    parser.add_argument(
        "pairs", nargs="*", default=[], metavar="KEY=VALUE", help="an argument that is filled in already"
    )


def add_tasks(parser: Parser) -> None:
    """The words of ``tasks``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--cancel", metavar="ID", help="stop this task")
    one.add_argument("--result", metavar="ID", help="print what this task brought, waiting for its end")
    add_output(parser, "with --result: write what is no text into FILE")
    add_answers(parser)
    add_json(parser, "the protocol's own objects")


def add_login(parser: Parser) -> None:
    """The words of ``login``."""
    parser.add_argument("server", metavar="SERVER", help="a configured name or a URL")
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    parser.add_argument(
        "--scope", action="append", default=[], metavar="S", help="ask for this scope besides those you have"
    )
    parser.add_argument("--yes", action="store_true", help="agree to whatever the server names, without a question")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell each step")
    add_json(parser, "who is signed in, as an object")


def add_config(parser: Parser) -> None:
    """The words of ``config``."""
    parser.add_argument("action", choices=["path", "check", "trust", "client-metadata"])
    parser.add_argument("url", nargs="?", metavar="URL", help="client-metadata: the https address to publish it at")
    parser.add_argument(
        "--port", type=_port, default=0, help="client-metadata: the oauth.redirect_port of the servers it is for"
    )
    parser.add_argument("--yes", action="store_true", help="trust without a question")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 65_535):
        raise argparse.ArgumentTypeError("is no port")
    return int(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError("is no number from 1 to 1000")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError("is no number of seconds above 0 and up to a day")
    return seconds
