"""What was asked for: the command, its words, and the function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from mcphost import __version__
from mcphost.cli import commands
from mcphost.cli.words import (
    Parser,
    add_call,
    add_chat,
    add_complete,
    add_config,
    add_login,
    add_prompt,
    add_read,
    add_servers,
    add_tasks,
    add_traffic,
)

Words = argparse.Namespace


def parse(argv: Sequence[str]) -> Words:
    """The words of a command line; ``run`` among them is what to do. Raises SystemExit with what is wrong."""
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
    parser.set_defaults(run=commands.run_screen, demo=False, command=parser)
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands (without one: the screen)")

    def command(name: str, about: str, run: Callable[[Words], int], **defaults: Any) -> Parser:
        made: Parser = subparsers.add_parser(name, help=about, description=about)
        made.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        made.set_defaults(run=run, command=made, **defaults)
        if run is not commands.run_config:  # which opens no server
            add_traffic(made, default=argparse.SUPPRESS)
        return made

    command("demo", "the screen, on the built-in demo server", commands.run_screen, demo=True)
    check = command("check", "connect to servers and say what became of it", commands.run_check, several="servers")
    add_servers(check)
    listing = command("list", "list what servers offer", commands.run_list, several="servers")
    listing.add_argument("kind", choices=["tools", "resources", "templates", "prompts"], help="what to list")
    add_servers(listing)
    add_call(command("call", "call a tool and print its result", commands.run_call, several="pairs"))
    about = "say something to a language model that uses the servers' tools"
    add_chat(command("chat", about, commands.run_chat, several="words"))
    add_read(command("read", "read a resource and print what it holds", commands.run_read))
    add_prompt(command("prompt", "get a prompt and print its messages", commands.run_prompt, several="pairs"))
    about = "print what a server suggests for an argument"
    add_complete(command("complete", about, commands.run_complete, several="pairs"))
    about = "list the tasks a server keeps, stop one, or print what one brought"
    add_tasks(command("tasks", about, commands.run_tasks))
    add_login(command("login", "sign in to a server, through a browser", commands.run_login))
    leaving = command("logout", "sign out of a server, and forget its tokens", commands.run_logout)
    leaving.add_argument("server", metavar="SERVER", help="a configured name or a URL")
    about = "where the configuration is, what is wrong with it, trusting a project's, and what to publish of mcphost"
    add_config(command("config", about, commands.run_config))
    return parser
