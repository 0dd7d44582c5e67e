"""Parses the command line: each command with its options and the name of the function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from mcphost import __version__
from mcphost.errors import UsageError

CONFIG_HELP: Final = "use this configuration and no other"
YES_HELP: Final = "allow without a question, even what deletes or sends; what policy denies stays denied"

SERVER_HELP: Final = "a configured name, a URL, or 'stdio:COMMAND LINE'"

KINDS: Final = "form (elicitation), url (elicitation), roots or sampling"

EXAMPLES: Final = {
    "": """\
  mcphost demo                                    look around, without a configuration
  mcphost check                                   do my servers start?
  mcphost list tools 'stdio:uvx mcp-server-git'   one server, without a configuration
  mcphost call git git_status repo_path=.         one call; you are asked first
""",
    "demo": """\
  mcphost demo
  mcphost demo --era modern                       the same server, by the protocol of 2026-07-28
  mcphost --config own.toml demo                  with the [ui] settings of own.toml
""",
    "check": """\
  mcphost check
  mcphost check git https://docs.example.com/mcp
  mcphost check --json | jq -r 'select(.state != "ready").server'
  mcphost check git --era both                    does it speak both eras?
""",
    "doctor": """\
  mcphost doctor
  mcphost doctor git                              one server, even one that does not start by itself
  mcphost doctor --no-start --json | jq 'select(.status != "ok")'
""",
    "report": """\
  mcphost report report.txt                       shown first, then written if you say so
  mcphost report - --no-start | less
""",
    "compare": """\
  mcphost compare time                            one server in both eras
  mcphost compare time get_current_time timezone=UTC --times 20 --yes
  mcphost compare 'stdio:uvx server@1' 'stdio:uvx server@2' --json
""",
    "list": """\
  mcphost list tools
  mcphost list resources git
  mcphost list tools --json | jq -r '.server as $s | .tools[] | "\\($s):\\(.name)"'
""",
    "call": """\
  mcphost call git git_status repo_path=.
  mcphost call git git_log repo_path=. max_count:=5 --yes
  mcphost call painter paint --args '{"hour": 7}' --yes --output picture.png
  generate | mcphost call git git_add --args - --yes --json
""",
    "chat": """\
  mcphost chat "What changed in this repository today?"
  git diff | mcphost chat --model claude "Review this"
  mcphost chat --resume last "And yesterday?" --allow "git:git_log"
  mcphost chat --saved
""",
    "read": """\
  mcphost read docs file:///guide.md
  mcphost read docs file:///logo.png --output logo.png
""",
    "prompt": """\
  mcphost prompt git review language=Rust
""",
    "complete": """\
  mcphost complete git prompt:review language py
  mcphost complete docs 'template:file:///{path}' path gui
""",
    "tasks": """\
  mcphost tasks builder
  mcphost tasks builder --result 7f3a --output report.pdf
  mcphost tasks builder --cancel 7f3a
""",
    "login": """\
  mcphost login docs
  mcphost login https://docs.example.com/mcp --no-browser
""",
    "logout": """\
  mcphost logout docs
""",
    "add": """\
  mcphost add git -- uvx mcp-server-git --repository .
  mcphost add https://docs.example.com/mcp --header 'X-Key=${DOCS_KEY}'
  mcphost add io.github.ada/weather               by its name in a registry; @1.2.0 for one version
  mcphost add ./weather.mcpb                      a bundle, or a server.json
  mcphost add 'cursor://anysphere.cursor-deeplink/mcp/install?name=...'
""",
    "search": """\
  mcphost search weather
  mcphost search github issues --json
  mcphost search weather --registry https://registry.example.com
""",
    "import": """\
  mcphost import                                  what do other hosts have?
  mcphost import claude-code                      add its servers, each after a question
  mcphost import vscode github --dry-run
  mcphost import --project                        only what the files of this folder have
  mcphost import .cursor/mcp.json --print >> ~/.config/mcphost/config.toml
  wl-paste | mcphost import -                     what a web page says to paste
""",
    "export": """\
  mcphost export claude-code git > .mcp.json
  mcphost export codex >> ~/.codex/config.toml
  mcphost export -                                as most hosts write servers
""",
    "remove": """\
  mcphost remove github
""",
    "secret": """\
  mcphost secret set github.TOKEN                 you are asked for it, and nothing is shown
  pass show github | mcphost secret set github.TOKEN
  mcphost secret list
  mcphost secret forget github.TOKEN
""",
    "completion": """\
  mcphost completion bash                         ~/.bashrc: eval "$(mcphost completion bash)"
  mcphost completion zsh                          ~/.zshrc: eval "$(mcphost completion zsh)"
  mcphost completion fish                         goes to ~/.config/fish/completions/mcphost.fish
""",
    "man": """\
  mcphost man | man -l -
  mcphost man config | man -l -
""",
    "config": """\
  mcphost config path
  mcphost config check --config new.toml
  mcphost config trust
  mcphost config schema
  mcphost config client-metadata https://example.com/mcphost.json --port 8085
""",
}

STREAMS: Final = """\
The answer goes to stdout, everything else to stderr. With --json each error on
stderr is an object: {"error": {"kind": ..., "message": ..., "exit_code": N}}

Exit codes: 0 done, 1 the tool or the server reports a failure, 2 usage or
configuration, 3 not connected, 4 declined, 5 timed out.
"""

ABOUT: Final = {
    "demo": "Open the screen with the built-in demo server.",
    "check": "Connect to servers and report the state of each.",
    "doctor": "Look for what keeps mcphost from working, and say what mends it.",
    "report": "Gather what a bug report needs, show it, and write it to a file.\nNothing is sent anywhere.",
    "compare": "Compare one server in both eras, or two servers.\n"
    "It shows what they offer, what they answer to the same call, and how fast.",
    "list": "List what servers offer.",
    "call": "Call a tool and print its result.\nYou are asked first, unless --yes or a rule allows the call.",
    "chat": "Send a message to a language model, which may use the servers' tools.\nYou are asked before each call.",
    "read": "Read a resource and print its contents.",
    "prompt": "Get a prompt and print its messages.",
    "complete": "Print a server's suggestions for an argument.",
    "tasks": "List a server's tasks, cancel one, or print its result.",
    "login": "Sign in to a server with your browser (OAuth).",
    "logout": "Sign out of a server and delete its tokens.",
    "add": "Add one server: a command, an address, a link, a file or a name in a registry.\n"
    "It is shown in full, and you are asked. Nothing of it runs before that.",
    "search": "Search the registries of MCP servers, by name.",
    "import": "Add servers that other hosts have, or a file, or a paste.\n"
    "Without HOST it only lists what is there. It runs nothing, and changes no file\nof others.",
    "export": "Print servers as another host's configuration.\nNo file is changed: put the block where it belongs.",
    "remove": "Remove a server that mcphost add or import wrote.\n"
    "Its entry in servers.toml is deleted. If you are signed in to it, you are\nsigned out first.",
    "secret": "Keep secrets in the system's keychain, for ${keyring:NAME} in the configuration.",
    "completion": "Print the script with which a shell completes commands, servers and tools.",
    "man": "Print a manual page: mcphost(1), or mcphost-config(5).",
    "config": "Show, check or trust the configuration.",
}

MORE: Final = {
    "list": """\
With --json, one object a line for each server: {"server": NAME, "tools": [...]}
The list is named as in the protocol (tools, resources, resourceTemplates,
prompts), and its items are the protocol's own objects.
""",
    "check": """\
With --json, one object a line for each server: server, state (ready, failed or
needs sign-in), reason, protocolVersion, serverInfo, capabilities, tools (how
many), seconds and signIn.

With --era each server is opened twice: as revisions up to 2025-11-25 demand it
(legacy, with initialize) and as 2026-07-28 does (modern, with server/discover).
With --json, the objects are: server, speaks (a list), and under legacy and
modern each: speaks, protocolVersion and answer (how that was found out).

Exit codes with --era: 0 every server speaks the era asked for (without a
value: at least one), 1 one does not, 2 usage or configuration, 3 one speaks
neither, or could not be reached.
""",
    "doctor": """\
It looks at the terminal, the locale, the keychain, the configuration, programs,
proxies and the state folder, and starts the servers that start by themselves up
to their opening. It changes nothing and asks no address but those of servers.

With --json, one object a line: topic, status (ok, warning or problem), text and
fix (a command, or null).

Exit codes: 0 no problem, 1 at least one.
""",
    "report": """\
It holds versions, the diagnosis of mcphost doctor, the keys of the
configuration with their texts masked, the last log lines, the last entries of
the audit log without arguments, and the last crash.
""",
    "compare": """\
The first WORD is a server if it is a URL, 'stdio:COMMAND LINE' or a configured
name, and --era is not given. Calls need your consent, as with call. What varies
from call to call on one side (--times 2 or more) does not count as different.

With --json, one object: same, sides, capabilities, instructions, tools,
resources, resourceTemplates, prompts and answers.

Exit codes: 0 the same, 1 they differ, 2 usage or configuration, 3 a side could
not be opened, 4 declined. Times, bytes and messages do not count.
""",
    "chat": """\
With --json, one object a line for each event, by its type: text, tool_use,
tool_result, and end with the state, the model and the tokens used.

Exit codes: 0 done, 1 a limit of [chat] was reached, 3 the model failed,
4 a call was declined.
""",
    "secret": """\
  set       store a secret, which is asked for or read from stdin
  list      name the secrets that mcphost stored or the configuration refers to
  forget    delete secrets from the keychain

With list --json, one object a line: name, stored (true, false, or null where
the keychain cannot say) and usedBy.
""",
    "import": """\
HOST is one of amazon-q, antigravity, claude-code, claude-desktop, cline,
codex, codex-plugins, continue, copilot-cli, copilot-intellij, cursor, fx,
gemini, goose, grok, inspector, junie, kilo, kimi, kiro, lm-studio, mastra,
mcphost-go, mcporter, opencode, pi, roo, vscode, windsurf, witsy, zed.

Each server is shown in full before it is added to servers.toml. Approvals,
trust and sandboxes of other programs are not taken over.

With --json and no HOST, one object a line for each server: host, file, scope,
server, nameThere, status (new, changed, same, or null for what cannot be
added), disabledThere, refusal, entry (secrets masked), inputs and leftOut.
""",
    "config": """\
  path              say which file is read
  check             report every problem in it, with its line
  trust             trust the mcphost.toml in this folder, until it changes
  schema            print the JSON Schema of the configuration, for editors
  client-metadata   print the document under which mcphost signs in, to publish
""",
}


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, raises UsageError, and ends its help with examples."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **more)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def add_demo(parser: Parser) -> None:
    """The words of ``demo``."""
    parser.add_argument(
        "--era",
        choices=("legacy", "modern"),
        default="legacy",
        help="the protocol: with the initialize handshake (legacy, the default) or without (modern, 2026-07-28)",
    )


def add_servers(parser: Parser) -> None:
    """Any number of servers."""
    about = f"{SERVER_HELP}; without any: all that are configured"
    parser.add_argument("servers", nargs="*", default=[], metavar="SERVER", help=about)
    add_json(parser, "print one JSON object a line for each server")


def add_check(parser: Parser) -> None:
    """The words of ``check``."""
    add_servers(parser)
    about = "say which eras the servers speak; with legacy, modern or both, fail unless they do"
    parser.add_argument("--era", nargs="?", const="any", metavar="ERA", help=about)


def add_doctor(parser: Parser) -> None:
    """The words of ``doctor``."""
    about = f"{SERVER_HELP}; without one: all that start by themselves"
    parser.add_argument("server", nargs="?", metavar="SERVER", help=about)
    parser.add_argument("--no-start", action="store_true", help="start no server")
    add_json(parser, "print one JSON object a line for each finding")


def add_report(parser: Parser) -> None:
    """The words of ``report``."""
    parser.add_argument("file", metavar="FILE", help="where to write it; - only prints it")
    about = f"{SERVER_HELP}; without one: all that start by themselves"
    parser.add_argument("server", nargs="?", metavar="SERVER", help=about)
    parser.add_argument("--no-start", action="store_true", help="start no server")
    parser.add_argument("--yes", action="store_true", help="write it without a question")


ERA_CHOICES: Final = ("legacy", "modern", "both")


def add_compare(parser: Parser) -> None:
    """The words of ``compare``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    about = "another server (else SERVER is opened in both eras), then a TOOL to call on both and its KEY=VALUE"
    parser.add_argument("words", nargs="*", default=[], metavar="WORD", help=about)
    about = "the two eras, and their order; default: legacy,modern"
    parser.add_argument("--era", type=_eras, metavar="ERA,ERA", help=about)
    parser.add_argument("--args", metavar="JSON", help="all arguments as one object, or - to read it from stdin")
    parser.add_argument("--times", type=_count, default=1, metavar="N", help="call N times (default: 1)")
    parser.add_argument("--yes", action="store_true", help=YES_HELP)
    about = "give up after S seconds without an answer or progress"
    parser.add_argument("--timeout", type=_seconds, metavar="S", help=about)
    add_json(parser, "print the comparison as one object")
    add_answers(parser)


def add_list(parser: Parser) -> None:
    """The words of ``list``."""
    kinds = ["tools", "resources", "templates", "prompts"]
    parser.add_argument(
        "kind", choices=kinds, metavar="KIND", help="what to list: tools, resources, templates or prompts"
    )
    add_servers(parser)


def add_json(parser: Parser, about: str) -> None:
    """``--json``; ``about`` says what it prints."""
    parser.add_argument("--json", action="store_true", help=f"{about}; errors are JSON, too")


def add_traffic(parser: Parser, **more: Any) -> None:
    """``--traffic FILE``."""
    about = "append all messages to FILE (JSON Lines, masked)"
    parser.add_argument("--traffic", metavar="FILE", help=about, **more)


def add_answers(parser: Parser) -> None:
    """How to answer what servers ask meanwhile."""
    group = parser.add_argument_group("answers to servers' requests", f"KIND is {KINDS}.")
    group.add_argument("--answers", metavar="FILE", help="answer as FILE says (TOML or JSON)")
    for action in ("accept", "decline"):
        about = f"{action} requests of this kind"
        group.add_argument(f"--{action}", action="append", default=[], metavar="KIND[:SERVER]", help=about)
    about = "share this folder with the server, in this run"
    group.add_argument("--root", action="append", default=[], metavar="PATH", help=about)


def add_output(parser: Parser, about: str) -> None:
    parser.add_argument("--output", metavar="FILE", help=f"{about} (several: FILE, FILE-2, ...)")


def add_call(parser: Parser) -> None:
    """The words of ``call``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("tool", metavar="TOOL", help="the tool's name, as list tools prints it")
    about = "an argument; KEY:=JSON for any JSON value"
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help=about)
    about = "all arguments as one object, or - to read it from stdin; KEY=VALUE replaces a member"
    parser.add_argument("--args", metavar="JSON", help=about)
    parser.add_argument("--yes", action="store_true", help=YES_HELP)
    about = "give up after S seconds without an answer or progress"
    parser.add_argument("--timeout", type=_seconds, metavar="S", help=about)
    add_output(parser, "save pictures, sounds and other files to FILE")
    add_json(parser, "print the protocol's result object")
    add_answers(parser)


def add_chat(parser: Parser) -> None:
    """The words of ``chat``."""
    about = "the message; /server:prompt key=value, @server:uri and @file attach something, and so does a pipe"
    parser.add_argument("words", nargs="*", default=[], metavar="TEXT", help=about)
    parser.add_argument("--model", default="", metavar="NAME", help="an entry of [models]; default: chat.model")
    about = f"{SERVER_HELP}; default: all"
    parser.add_argument("--server", dest="servers", action="append", default=[], metavar="SERVER", help=about)
    for flag, meaning in (("allow", "allow calls of this tool without asking"), ("deny", "decline them")):
        parser.add_argument(
            f"--{flag}", action="append", default=[], metavar="SERVER:TOOL", help=f"{meaning}; * and ? match"
        )
    parser.add_argument("--max-rounds", type=_count, metavar="N", help="let the model answer at most N times")
    about = "continue this conversation: the start of its id, or last"
    parser.add_argument("--resume", default="", metavar="ID", help=about)
    parser.add_argument("--saved", action="store_true", help="list the saved conversations and exit")
    parser.add_argument("--export", metavar="ID", help="print a saved conversation as Markdown and exit")
    add_json(parser, "print events, one JSON object a line")
    add_answers(parser)


def add_read(parser: Parser) -> None:
    """The words of ``read``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("uri", metavar="URI", help="the resource's URI, listed or not; sent as typed")
    add_output(parser, "save the contents to FILE")
    add_json(parser, "print the protocol's result object")
    add_answers(parser)


def add_prompt(parser: Parser) -> None:
    """The words of ``prompt``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("prompt", metavar="NAME", help="the prompt's name, as list prompts prints it")
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help="an argument")
    add_json(parser, "print the protocol's result object")
    add_answers(parser)


def add_complete(parser: Parser) -> None:
    """The words of ``complete``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    parser.add_argument("ref", metavar="REF", help="prompt:NAME or template:URI")
    parser.add_argument("argument", metavar="ARGUMENT", help="the name of the argument")
    parser.add_argument("value", metavar="VALUE", help="its value so far")
    about = "another argument, already filled in"
    parser.add_argument("pairs", nargs="*", default=[], metavar="KEY=VALUE", help=about)


def add_tasks(parser: Parser) -> None:
    """The words of ``tasks``."""
    parser.add_argument("server", metavar="SERVER", help=SERVER_HELP)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--cancel", metavar="ID", help="cancel this task")
    one.add_argument("--result", metavar="ID", help="wait for this task and print its result")
    add_output(parser, "with --result: save pictures, sounds and other files to FILE")
    add_json(parser, "print the protocol's objects")
    add_answers(parser)


def add_login(parser: Parser) -> None:
    """The words of ``login``."""
    parser.add_argument("server", metavar="SERVER", help="a configured name or a URL")
    parser.add_argument("--no-browser", action="store_true", help="print the link, and open no browser")
    about = "ask for this scope, too"
    parser.add_argument("--scope", action="append", default=[], metavar="S", help=about)
    parser.add_argument("--yes", action="store_true", help="agree to the sign-in as planned, without a question")
    parser.add_argument("-v", "--verbose", action="store_true", help="report each step")
    add_json(parser, "print who is signed in, as an object")


def add_logout(parser: Parser) -> None:
    """The words of ``logout``."""
    parser.add_argument("server", metavar="SERVER", help="a configured name or a URL")


def add_adding(parser: Parser) -> None:
    """How found servers are added: what ``import`` and ``add`` share."""
    parser.add_argument("--as", dest="name", metavar="NAME", help="the name of the entry, for one server")
    about = "add without a question; what was not looked at starts only when told to"
    parser.add_argument("--yes", action="store_true", help=about)
    parser.add_argument("--dry-run", action="store_true", help="show what would be added, and change nothing")
    parser.add_argument("--print", action="store_true", help="print the entries as TOML instead of adding them")
    about = "where secrets go: keyring (the keychain), env (variables that you set); default: ask"
    parser.add_argument("--keep-secrets", choices=["ask", "keyring", "env"], default="ask", help=about)
    add_json(parser, "print one JSON object a line for each server")


def add_add(parser: Parser) -> None:
    """The words of ``add``."""
    about = (
        "a URL, a link from a web page, a server.json or bundle, a registry's NAME[@VERSION], or NAME -- COMMAND ..."
    )
    parser.add_argument("word", metavar="WHAT", help=about)
    several: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument(
        "--env", metavar="NAME=VALUE", help="a variable of its program; may hold ${REFERENCES}", **several
    )
    parser.add_argument("--header", metavar="NAME=VALUE", help="a header for its address; so may this", **several)
    parser.add_argument("--set", metavar="INPUT=VALUE", help="a value that it asks for", **several)
    parser.add_argument("--transport", choices=["stdio", "http", "sse"], help="the wire; default: found out")
    about = "which offer to take where there are several: remote, npm, pypi, oci, nuget or mcpb; default: the best"
    parser.add_argument("--package", metavar="KIND", help=about)
    add_registry(parser)
    add_adding(parser)
    parser.set_defaults(program=None)


def add_search(parser: Parser) -> None:
    """The words of ``search``."""
    parser.add_argument("words", nargs="*", default=[], metavar="WORD", help="a part of the server's name")
    add_registry(parser)
    add_json(parser, "print one JSON object a line for each server")


def add_registry(parser: Parser) -> None:
    about = "ask this registry; default: those of [registry] urls"
    parser.add_argument("--registry", action="append", default=[], metavar="URL", help=about)


def add_import(parser: Parser) -> None:
    """The words of ``import``."""
    about = "a host, as the list names it, or a FILE of any of them, or - for stdin; without it: list what is there"
    parser.add_argument("source", nargs="?", metavar="HOST", help=about)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help="only these servers")
    about = "only the files of this folder, such as .mcp.json; of the HOST, or of all hosts to list what is there"
    parser.add_argument("--project", action="store_true", help=about)
    add_adding(parser)


def add_export(parser: Parser) -> None:
    """The words of ``export``."""
    about = "a host, as mcphost import names it, or - for the mcpServers that most read"
    parser.add_argument("host", metavar="HOST", help=about)
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help="only these servers; default: all")
    about = "write secrets into the block; without it they become variables that the host reads"
    parser.add_argument("--inline-secrets", action="store_true", help=about)


def add_remove(parser: Parser) -> None:
    """The words of ``remove``."""
    parser.add_argument("server", metavar="NAME", help="the name of its entry")
    parser.add_argument("--yes", action="store_true", help="delete its secrets from the keychain, too")


def add_secret(parser: Parser) -> None:
    """The words of ``secret``."""
    parser.add_argument("action", choices=["set", "list", "forget"], metavar="ACTION", help="see below")
    about = "the name in ${keyring:NAME}, such as github.TOKEN"
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=about)
    add_json(parser, "list: print one JSON object a line for each secret")


def add_completion(parser: Parser) -> None:
    """The words of ``completion``."""
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish")


def add_man(parser: Parser) -> None:
    """The words of ``man``."""
    about = "config: the page about the configuration; without it: the one about commands"
    parser.add_argument("page", nargs="?", choices=["config"], metavar="PAGE", help=about)


def add_config(parser: Parser) -> None:
    """The words of ``config``."""
    parser.add_argument(
        "action", choices=["path", "check", "trust", "schema", "client-metadata"], metavar="ACTION", help="see below"
    )
    parser.add_argument("url", nargs="?", metavar="URL", help="client-metadata: the https address to publish it at")
    about = "client-metadata: the oauth.redirect_port of the servers it is for"
    parser.add_argument("--port", type=_port, default=0, help=about)
    parser.add_argument("--yes", action="store_true", help="trust: without a question")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 65_535):
        raise argparse.ArgumentTypeError("is no port")
    return int(text)


def _eras(text: str) -> tuple[str, ...]:
    eras = tuple(text.split(","))
    if sorted(eras) != ["legacy", "modern"]:
        raise argparse.ArgumentTypeError("is neither legacy,modern nor modern,legacy")
    return eras


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


class _Command(NamedTuple):
    run: str
    """MODULE.FUNCTION in `mcphost.cli.commands`."""
    add_words: Callable[[Parser], None]
    """Adds its arguments and options."""
    several: str | None = None
    """The argument that takes any number of words."""
    connects: bool = True
    """Does it exchange messages, which could be recorded?"""
    demo: bool = False


_COMMANDS: Final = {
    "demo": _Command("screen.run_screen", add_demo, demo=True),
    "check": _Command("servers.run_check", add_check, "servers"),
    "doctor": _Command("doctor.run_doctor", add_doctor),
    "report": _Command("report.run_report", add_report),
    "compare": _Command("compare.run_compare", add_compare, "words"),
    "list": _Command("catalog.run_list", add_list, "servers"),
    "call": _Command("call.run_call", add_call, "pairs"),
    "chat": _Command("chat.run_chat", add_chat, "words"),
    "read": _Command("catalog.run_read", add_read),
    "prompt": _Command("catalog.run_prompt", add_prompt, "pairs"),
    "complete": _Command("catalog.run_complete", add_complete, "pairs"),
    "tasks": _Command("tasks.run_tasks", add_tasks),
    "login": _Command("login.run_login", add_login),
    "logout": _Command("login.run_logout", add_logout),
    "add": _Command("adding.run_add", add_add, connects=False),
    "search": _Command("adding.run_search", add_search, "words", connects=False),
    "import": _Command("importing.run_import", add_import, "names", connects=False),
    "export": _Command("importing.run_export", add_export, "names", connects=False),
    "remove": _Command("removal.run_remove", add_remove, connects=False),
    "secret": _Command("secret.run_secret", add_secret, "names", connects=False),
    "completion": _Command("completion.run_completion", add_completion, connects=False),
    "man": _Command("man.run_man", add_man, connects=False),
    "config": _Command("config.run_config", add_config, connects=False),
}


_MEANT: Final = {
    "ls": "list tools", "tools": "list tools", "servers": "check", "status": "check", "run": "call", "exec": "call",
    "version": "--version", "help": "--help", "resources": "list resources", "prompts": "list prompts", "get": "read",
    "cat": "read", "install": "add", "rm": "remove", "delete": "remove", "uninstall": "remove", "signin": "login",
    "auth": "login", "signout": "logout", "ask": "chat", "start": "mcphost without a command", "diff": "compare",
    "init": "import", "secrets": "secret list",
}  # fmt: skip
"""Commands of other programs, and what they are called here."""

_PATHS: Final = frozenset({
    "config", "traffic", "output", "answers", "file", "source", "root", "program", "host",
})  # fmt: skip
"""Words that may be file names, which can hold any bytes."""


def parse(argv: Sequence[str]) -> Words:
    """Parse a command line. ``run`` in the result is MODULE.FUNCTION of the command in `mcphost.cli.commands`.

    Raises UsageError; SystemExit after ``--help``.
    """
    own, program = _without_program(argv)
    if (described := _described_call(own)) is not None:
        return described
    first = own[0] if own and own[0] in _COMMANDS else None
    parser = command_parser(first)
    if (word := _first_plain(own)) is not None and word not in _COMMANDS:
        parser.error(f"'{_shown(word)}' is not a command{_near(word, _COMMANDS, _MEANT)}")
    options, rest = parser.parse_known_args(own)
    if program is not None:
        options.program = program
    # argparse gives up on words that follow an option; to the commands that take several they belong.
    unknown = [word for word in rest if word.startswith("-")]
    several: str | None = getattr(options, "several", None)
    if unknown or (rest and several is None):
        known, name = options.command._option_string_actions, unknown[0].partition("=")[0] if unknown else ""
        if name in known:
            options.command.error(f"{_shown(unknown[0])} belongs behind {word}, the command")
        near = _near(name, [each for each in known if each.startswith("--")])
        options.command.error(f"unrecognized: {' '.join(map(_shown, unknown or rest))}{near}")
    if several is not None:
        setattr(options, several, [*getattr(options, several), *rest])
    for name, value in vars(options).items():
        if name not in _PATHS and isinstance(value, str):
            setattr(options, name, _text(value, options.command))
        elif name not in _PATHS and isinstance(value, list):
            setattr(options, name, [_text(each, options.command) for each in value])
    return options


def _described_call(words: Sequence[str]) -> Words | None:
    """``call SERVER TOOL --help`` is about the tool; None for every other command line."""
    without = [word for word in words if word not in ("-h", "--help")]
    if not words or words[0] != "call" or len(without) == len(words) or len(without) < 3:
        return None
    try:
        options = parse(without)
    except UsageError:  # the help of the command says what is missing
        return None
    options.run = "call.run_help"
    return options


def _text(word: str, command: Parser) -> str:
    """A word as text, which is UTF-8 whatever the locale says. Raises UsageError."""
    try:
        return word.encode("utf-8", "surrogateescape").decode()
    except UnicodeError:
        command.error(f"'{_shown(word)}' holds bytes that are not UTF-8, and only text can be sent")


def _shown(word: str) -> str:
    """A word of the command line for a message, in which bytes that are not UTF-8 are escaped."""
    return word[:200].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _first_plain(words: Sequence[str]) -> str | None:
    """The word in the place of the command; None where an option asks for help or the version before it."""
    waiting = iter(words)
    for word in waiting:
        if word in ("--config", "--traffic"):
            next(waiting, None)
        elif word in ("-h", "--help", "--version"):
            return None
        elif word == "--" or not word.startswith("-"):
            return word
    return None


def _near(word: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """The end of a sentence that suggests the words probably meant; empty without any."""
    from difflib import get_close_matches  # late: only who mistypes pays for it

    word = word.lower()
    near = [meant[word]] if meant and word in meant else get_close_matches(word, list(known), 2, 0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _without_program(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """Split ``add NAME -- COMMAND`` at its ``--``: the words of a server's command are none of ours."""
    if "--" not in argv or "add" not in argv[: argv.index("--")]:
        return argv, None
    own = argv[: argv.index("--")]
    valued = {index + 1 for index, word in enumerate(own) if word in ("--config", "--traffic")}
    words = [word for index, word in enumerate(own) if index not in valued and not word.startswith("-")]
    return (own, argv[len(own) + 1 :]) if words[:1] == ["add"] else (argv, None)


def command_parser(only: str | None = None) -> Parser:
    """The parser, with one of its own for each command; with ``only``, for that command alone, which is faster."""
    about = "A terminal host for the Model Context Protocol.\nWithout a command it opens the screen."
    parser = Parser(prog="mcphost", description=about, epilog=_epilog(""))
    parser.add_argument("--version", action="version", version=f"mcphost {__version__}")
    parser.add_argument("--config", metavar="FILE", help=CONFIG_HELP)
    add_traffic(parser)
    parser.set_defaults(run="screen.run_screen", demo=False, command=parser)
    subparsers = parser.add_subparsers(metavar="COMMAND", title="commands (each has --help)")
    for name, command in _COMMANDS.items() if only is None else [(only, _COMMANDS[only])]:
        short = ABOUT[name].partition(".")[0]
        made: Parser = subparsers.add_parser(name, help=short, description=ABOUT[name], epilog=_epilog(name))
        made.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=CONFIG_HELP)
        made.set_defaults(run=command.run, command=made, several=command.several, demo=command.demo)
        if command.connects:
            add_traffic(made, default=argparse.SUPPRESS)
        command.add_words(made)
    return parser


def _epilog(command: str) -> str:
    """What follows the options in the help of a command: details, then examples."""
    details = f"{MORE[command]}\n" if command in MORE else "" if command else f"{STREAMS}\n"
    return f"{details}examples:\n{EXAMPLES[command]}"
