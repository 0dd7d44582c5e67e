"""Parses the command line: each command with its options and the name of the function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from mcphost import __version__
from mcphost.errors import UsageError

SERVER_HELP: Final = "a configured name, a URL, or 'stdio:COMMAND LINE'"


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, and raises UsageError."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, **more)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def add_servers(parser: Parser) -> None:
    """Any number of servers."""
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


Words = argparse.Namespace


def parse(argv: Sequence[str]) -> Words:
    """Parse a command line. ``run`` in the result is MODULE.FUNCTION of the command in `mcphost.cli.commands`.

    Raises UsageError; SystemExit after ``--help``.
    """
    options, rest = _parser().parse_known_args(argv)
    # argparse gives up on words that follow an option; to the commands that take several they belong.
    unknown = [word for word in rest if word.startswith("-")]
    several: str | None = getattr(options, "several", None)
    if unknown or (rest and several is None):
        options.command.error(f"unrecognized: {' '.join(unknown or rest)}")
    if several is not None:
        setattr(options, several, [*getattr(options, several), *rest])
    return options


def _parser() -> Parser:
    parser = Parser(prog="mcphost", description="A terminal host for the Model Context Protocol.")
    parser.add_argument("--version", action="version", version=f"mcphost {__version__}")
    parser.add_argument("--config", metavar="FILE", help="use this configuration and no other")
    add_traffic(parser)
    parser.set_defaults(run="screen.run_screen", demo=False, command=parser)
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands (without one: the screen)")

    def command(name: str, about: str, run: str, **defaults: Any) -> Parser:
        made: Parser = subparsers.add_parser(name, help=about, description=about)
        made.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        made.set_defaults(run=run, command=made, **defaults)
        if run != "config.run_config":  # which opens no server
            add_traffic(made, default=argparse.SUPPRESS)
        return made

    command("demo", "the screen, on the built-in demo server", "screen.run_screen", demo=True)
    check = command("check", "connect to servers and say what became of it", "servers.run_check", several="servers")
    add_servers(check)
    listing = command("list", "list what servers offer", "catalog.run_list", several="servers")
    listing.add_argument("kind", choices=["tools", "resources", "templates", "prompts"], help="what to list")
    add_servers(listing)
    add_call(command("call", "call a tool and print its result", "call.run_call", several="pairs"))
    about = "say something to a language model that uses the servers' tools"
    add_chat(command("chat", about, "chat.run_chat", several="words"))
    add_read(command("read", "read a resource and print what it holds", "catalog.run_read"))
    add_prompt(command("prompt", "get a prompt and print its messages", "catalog.run_prompt", several="pairs"))
    about = "print what a server suggests for an argument"
    add_complete(command("complete", about, "catalog.run_complete", several="pairs"))
    about = "list the tasks a server keeps, stop one, or print what one brought"
    add_tasks(command("tasks", about, "tasks.run_tasks"))
    add_login(command("login", "sign in to a server, through a browser", "login.run_login"))
    leaving = command("logout", "sign out of a server, and forget its tokens", "login.run_logout")
    leaving.add_argument("server", metavar="SERVER", help="a configured name or a URL")
    about = "where the configuration is, what is wrong with it, trusting a project's, and what to publish of mcphost"
    add_config(command("config", about, "config.run_config"))
    return parser
