"""Parses the command line: each command with its options, its help and the name of the function that runs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from mcphost import __version__
from mcphost.cli.between import BETWEEN, PORT, QUESTIONS, REDACT, REDACT_HELP, RUN, SERVE
from mcphost.errors import UsageError

CONFIG_HELP: Final = "use this configuration and no other"
YES_HELP: Final = "allow without a question, even what deletes or sends; what policy denies stays denied"

SERVER_HELP: Final = "a configured name, a URL, or 'stdio:COMMAND LINE'"

KINDS: Final = "form (elicitation), url (elicitation), roots or sampling"

ERA_CHOICES: Final = ("legacy", "modern", "both")

EXAMPLES: Final = """\
  mcphost demo                                    look around, without a configuration
  mcphost check                                   do my servers start?
  mcphost list tools 'stdio:uvx mcp-server-git'   one server, without a configuration
  mcphost call git git_status repo_path=.         one call; you are asked first
"""
"""Of mcphost as a whole."""

STREAMS: Final = """\
The answer goes to stdout, everything else to stderr. With --json each error on
stderr is an object: {"error": {"kind": ..., "message": ..., "exit_code": N}}

Exit codes: 0 done, 1 the tool or the server reports a failure, 2 usage or
configuration, 3 not connected, 4 declined, 5 timed out.
"""

Options = argparse.Namespace


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Lists the commands in `GROUPS`."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        parts, commands = [], {each.dest: each for each in action._get_subactions()}
        for title, names in GROUPS.items():
            if shown := [commands[name] for name in names if name in commands]:
                parts.append(f"{' ' * self._current_indent}{title}\n")
                self._indent()
                parts.extend(map(super()._format_action, shown))
                self._dedent()
        return "".join(parts)


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations, raises UsageError, and ends its help with examples."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Formatter, **more)
        self.commands: Mapping[str, Parser] = {}

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


Argument = Callable[[Parser], object]
"""Adds an argument, an option or a group of them to a parser."""


class Subcommand(NamedTuple):
    run: str
    """MODULE.FUNCTION in `mcphost.cli.commands`."""
    about: str
    arguments: Sequence[Argument]
    examples: str
    more: str = ""
    """Details for the help, after the options."""
    several: str | None = None
    """The argument that takes any number of words."""
    connects: bool = True
    """True if it exchanges messages, which could be recorded."""
    demo: bool = False


def _argument(name: str, metavar: str | None, about: str, **more: Any) -> Argument:
    return lambda parser: parser.add_argument(name, metavar=metavar, help=about, **more)


def _flag(name: str, about: str, *letters: str) -> Argument:
    return lambda parser: parser.add_argument(*letters, name, action="store_true", help=about)


def _several(name: str, metavar: str, about: str) -> Argument:
    """Any number of words."""
    return _argument(name, metavar, about, nargs="*", default=[])


def _repeated(name: str, metavar: str, about: str, **more: Any) -> Argument:
    """An option that may be given several times."""
    return _argument(name, metavar, about, action="append", default=[], **more)


def _json(about: str) -> Argument:
    return _flag("--json", f"{about}; errors are JSON, too")


def _output(about: str) -> Argument:
    return _argument("--output", "FILE", f"{about} (several: FILE, FILE-2, ...)")


def _traffic(**more: Any) -> Argument:
    return _argument("--traffic", "FILE", "append all messages to FILE (JSON Lines, masked)", **more)


def _redact(**more: Any) -> Argument:
    return _argument(REDACT, "WHAT", REDACT_HELP, action="append", **more)


def _profile(**more: Any) -> Argument:
    return _argument("--profile", "NAME", "use [profiles.NAME] of the configuration", **more)


def _reports(parser: Parser) -> None:
    """Add the options of `mcphost.cli.report_formats.write_reports`."""
    group = parser.add_argument_group("reports for CI", "On a runner of GitHub, findings are also annotations.")
    group.add_argument("--junit", metavar="FILE", help="write the results to FILE as JUnit XML, too")
    group.add_argument("--sarif", metavar="FILE", help="write the findings to FILE as SARIF 2.1.0, too")


def _answers(parser: Parser) -> None:
    """Add the options that answer what servers ask meanwhile."""
    group = parser.add_argument_group("answers to servers' requests", f"KIND is {KINDS}.")
    group.add_argument("--answers", metavar="FILE", help="answer as FILE says (TOML or JSON)")
    for action in ("accept", "decline"):
        about = f"{action} requests of this kind"
        group.add_argument(f"--{action}", action="append", default=[], metavar="KIND[:SERVER]", help=about)
    about = "share this folder with the server, in this run"
    group.add_argument("--root", action="append", default=[], metavar="PATH", help=about)


def _wrap_mode(parser: Parser) -> None:
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--gate", action="store_true", help="every call waits for your consent (the default)")
    mode.add_argument("--tap", action="store_true", help="messages are copied, and nothing waits")


def _list_or_remove(parser: Parser) -> None:
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--list", action="store_true", help="list what is allowed beyond one run")
    one.add_argument("--remove", action="store_true", help="take it back: mcphost asks again")


def _one_task(parser: Parser) -> None:
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--cancel", metavar="ID", help="cancel this task")
    one.add_argument("--result", metavar="ID", help="wait for this task and print its result")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 65_535):
        raise argparse.ArgumentTypeError("is not a port")
    return int(text)


def _eras(text: str) -> tuple[str, ...]:
    eras = tuple(text.split(","))
    if sorted(eras) != ["legacy", "modern"]:
        raise argparse.ArgumentTypeError("is neither legacy,modern nor modern,legacy")
    return eras


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 1000):
        raise argparse.ArgumentTypeError("is not a number from 1 to 1000")
    return int(text)


def _amount(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:7]) <= 100_000):
        raise argparse.ArgumentTypeError("is not a number from 1 to 100000")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError("is not a number of seconds above 0 and up to a day")
    return seconds


LIVE: Final = "live:"
"""Before the server that answers what a recording does not hold."""


def _on_miss(text: str) -> str:
    if text not in ("nearest", "error") and not (text.startswith(LIVE) and text != LIVE):
        raise argparse.ArgumentTypeError("is neither nearest, error nor live:SERVER")
    return text


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = -1.0
    if not 0 <= speed <= 1_000_000:
        raise argparse.ArgumentTypeError("is not a number of 0 or more")
    return speed


_SERVER: Final = _argument("server", "SERVER", SERVER_HELP)
_SIGN_IN_SERVER: Final = (
    _argument("server", "SERVER", "a configured name or a URL", nargs="?"),
    _argument("--identity", "NAME", "the identity of this name in the configuration, instead of a server"),
)
_STARTED_SERVER: Final = _argument(
    "server", "SERVER", f"{SERVER_HELP}; without one: all that start by themselves", nargs="?"
)
_NO_START: Final = _flag("--no-start", "start no server")
_YES: Final = _flag("--yes", YES_HELP)
_TIMEOUT: Final = _argument("--timeout", "S", "give up after S seconds without an answer or progress", type=_seconds)
_SERVERS: Final = (
    _several("servers", "SERVER", f"{SERVER_HELP}; without any: all that are configured"),
    _json("print one JSON object a line for each server"),
)
_REGISTRY: Final = _repeated("--registry", "URL", "ask this registry; default: those of [registry] urls")
ADDING: Final = (
    _argument("--as", "NAME", "the name of the entry, for one server", dest="name"),
    _flag("--yes", "add without a question; what you have not seen starts only on request"),
    _flag("--dry-run", "show what would be added, and change nothing"),
    _flag("--print", "print the entries as TOML instead of adding them"),
    _argument(
        "--keep-secrets",
        None,
        "where secrets go: keyring (the keychain), env (variables that you set); default: ask",
        choices=["ask", "keyring", "env"],
        default="ask",
    ),
    _json("print one JSON object a line for each server"),
)
"""Shared by ``import`` and ``add``: how found servers are added."""


def _between(command: str) -> list[Argument]:
    """The arguments of a command that starts a server for an agent."""
    choices = {"--questions": {"choices": QUESTIONS}}
    return [
        *(
            _argument(option, metavar, about, dest=destination, **choices.get(option, {}))
            for option, (destination, metavar, about) in BETWEEN[command].items()
        ),
        _redact(default=[]),
        _several("words", "-- COMMAND", "the server's program and its arguments, behind --"),
    ]


def _serve_options() -> list[Argument]:
    return [
        _flag(option, about)
        if metavar is None
        else _argument(option, metavar, about, dest=destination, **_SERVE_CHOICES.get(option, {}))
        for option, (destination, metavar, about) in SERVE.items()
    ] + [_redact(default=[])]


_SERVE_CHOICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "--questions": {"choices": ("agent", "here"), "default": "agent"}
}

COMMANDS: Final = {
    "demo": Subcommand(
        "screen.run_screen",
        "Open the screen with the built-in demo server.",
        [
            _argument(
                "--era",
                None,
                "the protocol: with the initialize handshake (legacy, the default) or without (modern, 2026-07-28)",
                choices=("legacy", "modern"),
                default="legacy",
            )
        ],
        """\
  mcphost demo
  mcphost demo --era modern                       the same server, by the protocol of 2026-07-28
  mcphost --config own.toml demo                  with the [ui] settings of own.toml
""",
        demo=True,
    ),
    "check": Subcommand(
        "servers.run_check",
        "Connect to servers and report the state of each.",
        [
            *_SERVERS,
            _argument(
                "--era",
                "ERA",
                "say which eras the servers speak; with legacy, modern or both, fail unless they do",
                nargs="?",
                const="any",
            ),
            _flag("--strict", "judge the servers by what the specification demands of them; calls no tool"),
            _repeated("--call", "TOOL", "with --strict, call this tool, too; 'TOOL {JSON}' gives arguments"),
            _flag("--rules", "with --strict, list every rule with its outcome"),
            _YES,
            _reports,
        ],
        """\
  mcphost check
  mcphost check git https://docs.example.com/mcp
  mcphost check --json | jq -r 'select(.state != "ready").server'
  mcphost check git --era both                    does it speak both eras?
  mcphost check --strict git                      does it keep to the specification?
  mcphost check --strict http://127.0.0.1:3000/mcp --call 'add {"a": 1, "b": 2}'
""",
        more="""\
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

With --strict each server is started a few times, in each era that it speaks or
that --era names, and gets harmless requests, some of them wrong on purpose.
With --json, one object a line for each server and era: server, era, speaks,
reason, protocolVersion, transport, failed, warning, passed, skipped (numbers)
and findings, each with rule, outcome, level, section, revisions, requirement,
seen and reason.

Exit codes with --strict: 0 no MUST is broken, 1 one is, or an era asked for is
not spoken, 2 usage or configuration, 3 not connected, 4 a call was declined.
""",
        several="servers",
    ),
    "doctor": Subcommand(
        "doctor.run_doctor",
        "Find what keeps mcphost from working, and how to fix it.",
        [_STARTED_SERVER, _NO_START, _json("print one JSON object a line for each finding")],
        """\
  mcphost doctor
  mcphost doctor git                              one server, even one that does not start by itself
  mcphost doctor --no-start --json | jq 'select(.status != "ok")'
""",
        more="""\
It looks at the terminal, the locale, the keychain, the configuration, programs,
proxies and the state folder, and starts the servers that start by themselves up
to their opening. It changes nothing and asks no address but those of servers.

With --json, one object a line: topic, status (ok, warning or problem), text and
fix (a command, or null).

Exit codes: 0 no problem, 1 at least one.
""",
    ),
    "report": Subcommand(
        "report.run_report",
        "Gather what a bug report needs, and write it to a file.\nIt is shown first, and nothing is sent anywhere.",
        [
            _argument("file", "FILE", "where to write it; - only prints it"),
            _STARTED_SERVER,
            _NO_START,
            _flag("--yes", "write it without a question"),
        ],
        """\
  mcphost report report.txt                       shown first, then written if you say so
  mcphost report - --no-start | less
""",
        more="""\
It holds versions, the diagnosis of mcphost doctor, the keys of the
configuration with their texts masked, the last log lines, the last entries of
the audit log without arguments, and the last crash.
""",
    ),
    "compare": Subcommand(
        "compare.run_compare",
        "Compare one server in both eras, or two servers.\n"
        "It shows what they offer, what they answer to the same call, and how fast.",
        [
            _SERVER,
            _several(
                "words",
                "WORD",
                "another server (else SERVER is opened in both eras), then a TOOL to call on both and its KEY=VALUE",
            ),
            _argument("--era", "ERA,ERA", "the two eras, and their order; default: legacy,modern", type=_eras),
            _argument("--args", "JSON", "all arguments as one object, or - to read it from stdin"),
            _argument("--times", "N", "call N times (default: 1)", type=_count, default=1),
            _YES,
            _TIMEOUT,
            _json("print the comparison as one object"),
            _answers,
        ],
        """\
  mcphost compare time                            one server in both eras
  mcphost compare time get_current_time timezone=UTC --times 20 --yes
  mcphost compare 'stdio:uvx server@1' 'stdio:uvx server@2' --json
""",
        more="""\
The first WORD is a server if it is a URL, 'stdio:COMMAND LINE' or a configured
name, and --era is not given. Calls need your consent, as with call. What varies
from call to call on one side (--times 2 or more) does not count as different.

Each change of what they offer is breaking, for review, or a note.

With --json, one object: same, sides, findings, capabilities, instructions,
tools, resources, resourceTemplates, prompts and answers.

Exit codes: 0 the same, 1 they differ, 2 usage or configuration, 3 a side could
not be opened, 4 declined. Times, bytes and messages do not count.
""",
        several="words",
    ),
    "traffic": Subcommand(
        "traffic.run_traffic",
        "Write a file of traffic as OpenTelemetry traces: a span for each request.",
        [
            _argument("action", "ACTION", "export", choices=["export"]),
            _argument("file", "FILE", "a recording, a file of --traffic, a cassette or a record of mcporter"),
            _argument("--otlp", "OUT", "write OTLP/JSON to this file; - prints it", required=True),
        ],
        """\
  mcphost traffic export git.mcp.jsonl --otlp git.otlp.json
  mcphost traffic export git.mcp.jsonl --otlp - | curl --json @- http://localhost:4318/v1/traces
""",
        more="""\
The spans follow OpenTelemetry's conventions for MCP. Questions of a server are
spans below the request in which they were asked. A request with a traceparent
in its _meta joins that trace. Arguments and results are left out.

Exit codes: 0 done, 2 usage, or a file that cannot be read or written.
""",
        connects=False,
    ),
    "bench": Subcommand(
        "bench.run_bench",
        "Measure how fast a server starts and answers.\n"
        "With a second side, both are measured in turn, and only what exceeds the noise\n"
        "counts as a difference.",
        [
            _SERVER,
            _argument(
                "tool", "TOOL", "a tool to call; without it: ping (or server/discover) and tools/list", nargs="?"
            ),
            _several("pairs", "KEY=VALUE", "an argument; KEY:=JSON for any JSON value"),
            _argument("--against", "SERVER", "another server, to compare with"),
            _argument(
                "--era",
                None,
                "open it in this era; both: compare its two eras",
                choices=ERA_CHOICES,
            ),
            _argument("-n", "N", "requests of each kind (default: 100)", dest="calls", type=_amount, default=100),
            _argument("--concurrency", "C", "requests at the same time (default: 1)", type=_count, default=1),
            _repeated("--budget", "FIGURE=PERCENT", "how much a figure may differ from the other side's: p95=+15%%"),
            _argument("--baseline", "FILE", "compare with an earlier run, as --json printed it"),
            _argument("--args", "JSON", "all arguments as one object, or - to read it from stdin"),
            _YES,
            _TIMEOUT,
            _json("print the figures as one object"),
            _answers,
        ],
        """\
  mcphost bench git git_status repo_path=. --yes
  mcphost bench 'stdio:./new' --against 'stdio:./old' -n 500 --concurrency 8
  mcphost bench time --era both
  mcphost bench git --json > before.json
  mcphost bench git --baseline before.json --budget p95=+15%,throughput=-10%
""",
        more="""\
Each side is started six times; the first start and the first requests after
each one do not count. A tool needs your consent, once for all its calls.
The figures of a budget are startup, memory, p50, p95, p99, throughput and
errors (in points). What exceeds a budget by no more than noise is "uncertain".
With --json, one object: sides, differences and budget.

Exit codes: 0 measured, 1 a budget is exceeded or all requests of a kind failed,
2 usage or configuration, 3 a side is not open or was lost, 4 declined. Ctrl+c
prints the figures until then.
""",
        several="pairs",
    ),
    "test": Subcommand(
        "verification.run_test",
        "Test servers against a recording, or against what saved calls expect.\n"
        "The tools to call are named first. You are asked, unless --yes or a rule\nallows the calls.",
        [
            _several(
                "files",
                "FILE",
                "a recording, a calls.toml, or a folder with such files; default: the saved calls of the configuration",
            ),
            _argument("--against", "SERVER", f"test this server, whatever the files name: {SERVER_HELP}"),
            _argument("-k", "PATTERN", "only cases with this in their name; * and ? match", default=""),
            _repeated("--ignore", "PATH", "a JSON path of answers that may differ, such as '$.content[*].text.id'"),
            _argument(
                "--normalize",
                "NAME,...",
                "hide only these kinds of differences from a recording, or none; help lists them; default: all",
            ),
            _flag("--update", "replace the expected answers that differ, once you saw how"),
            _flag("--verbose", "show the differences that were hidden", "-v"),
            _YES,
            _TIMEOUT,
            _json("print one JSON object a line for each case"),
            _reports,
            _answers,
        ],
        """\
  mcphost test                                    the saved calls that expect something
  mcphost test tests/ --yes --junit report.xml    all recordings and calls.toml in a folder
  mcphost test git.mcp.jsonl --against 'stdio:python server.py'
  mcphost test git.mcp.jsonl -k git_log --ignore '$..hash' --update
""",
        more="""\
The requests of a recording are made again, in its order, and the server's
questions are answered as recorded. Errors are compared by their code.

With --json, the objects have: file, case, server, outcome (passed, failed,
error or skipped), seconds, words, differences and hidden.

Exit codes: 0 all passed, 1 an answer differs, 2 usage, configuration or nothing
to test, 3 not connected, 4 a call was declined, 5 timed out.
""",
        several="files",
    ),
    "lock": Subcommand(
        "lock.run_lock",
        "Keep what servers offer in a file, and say what changed since.\n"
        "Under version control, a change of a server becomes a change to review.",
        [
            *_SERVERS,
            _argument("--file", "FILE", "the lock; default: that of [policy] lock, else mcphost.lock"),
            _flag("--check", "write nothing; say what differs from the lock"),
            _flag("--full", "keep whole definitions too, in FILE.json, so that differences can be read"),
            _flag("--resources", "keep the list of resources, too"),
            _reports,
        ],
        """\
  mcphost lock                                    write mcphost.lock
  mcphost lock --check                            in CI: did a server change?
  mcphost lock git --full
""",
        more="""\
Each change is breaking, for review, or a note. Servers that are not named keep
their entries. The lock allows nothing; [policy] lock makes mcphost obey it.

With --json, one object a line for each server: server, same and findings.

Exit codes: 0 written, or nothing but notes; 1 with --check, something is
breaking or for review; 2 usage, configuration, or the lock lacks a server; 3 a
server could not be opened (the others are done).
""",
        several="servers",
    ),
    "diff": Subcommand(
        "diff.run_diff",
        "Say what changed from one server, lock or recording to another.\n"
        "Each change is breaking, for review, or a note.",
        [
            _argument("before", "BEFORE", f"{SERVER_HELP}, SERVER@legacy, SERVER@modern, or a lock or recording"),
            _argument("after", "AFTER", "the same; FILE#NAME is one of several servers of a file"),
            _json("print the changes as one object"),
            _reports,
        ],
        """\
  mcphost diff mcphost.lock git                   one server of the lock, and as it is
  mcphost diff 'stdio:uvx server@1' 'stdio:uvx server@2'
  mcphost diff git@legacy git@modern
  mcphost diff yesterday.mcp.jsonl git
""",
        more="""\
No tool is called; to compare answers as well: mcphost compare.

With --json, one object: same, before, after and servers with their findings.

Exit codes: 0 nothing but notes, 1 something is breaking or for review, 2 usage
or configuration, 3 a server could not be opened.
""",
    ),
    "list": Subcommand(
        "catalog.run_list",
        "List what servers offer.",
        [
            _argument(
                "kind",
                "KIND",
                "what to list: tools, resources, templates, prompts or skills",
                choices=["tools", "resources", "templates", "prompts", "skills"],
            ),
            *_SERVERS,
        ],
        """\
  mcphost list tools
  mcphost list resources git
  mcphost list tools --json | jq -r '.server as $s | .tools[] | "\\($s):\\(.name)"'
""",
        more="""\
With --json, one object a line for each server: {"server": NAME, "tools": [...]}
The list is named as in the protocol (tools, resources, resourceTemplates,
prompts, skills), and its items are the protocol's own objects.
""",
        several="servers",
    ),
    "call": Subcommand(
        "call.run_call",
        "Call a tool and print its result.\nYou are asked first, unless --yes or a rule allows the call.",
        [
            _SERVER,
            _argument("tool", "TOOL", "the tool's name, as list tools prints it"),
            _several("pairs", "KEY=VALUE", "an argument; KEY:=JSON for any JSON value"),
            _argument(
                "--args", "JSON", "all arguments as one object, or - to read it from stdin; KEY=VALUE replaces a member"
            ),
            _YES,
            _TIMEOUT,
            _argument("--repeat", "S", "run it again S seconds after each end, until ctrl+c", type=_seconds),
            _argument("--times", "N", "with --repeat: run it N times", type=_count),
            _output("save pictures, sounds and other files to FILE"),
            _json("print the protocol's result object"),
            _answers,
        ],
        """\
  mcphost call git git_status repo_path=.
  mcphost call git git_log repo_path=. max_count:=5 --yes
  mcphost call painter paint --args '{"hour": 7}' --yes --output picture.png
  generate | mcphost call git git_add --args - --yes --json
  mcphost call queue length --repeat 5
""",
        several="pairs",
    ),
    "run": Subcommand(
        "saved_calls.run_saved",
        "Run calls that were saved under a name.\nYou are asked first, unless --yes or a rule allows the call.",
        [
            _several("words", "NAME", "a saved call; KEY=VALUE or KEY:=JSON behind it replaces an argument"),
            _flag("--list", "list the saved calls, and run nothing"),
            _YES,
            _TIMEOUT,
            _output("save pictures, sounds and other files to FILE"),
            _json("print the protocol's result object, or with --list one object a line"),
            _answers,
        ],
        """\
  mcphost run --list
  mcphost run storm
  mcphost run storm strength:=3 --yes
  mcphost run migrate seed --yes                  one after the other, until one fails
""",
        more="""\
Saved calls are in calls.toml, beside the project's mcphost.toml if it is used,
else beside your configuration. ctrl+s on screen saves a call.

With --list --json, the objects are as in the file, with shown arguments.
""",
        several="words",
    ),
    "chat": Subcommand(
        "chat.run_chat",
        "Ask a language model, which may use the servers' tools.\nYou are asked before each call.",
        [
            _several(
                "words",
                "TEXT",
                "the message; /server:prompt key=value, /skill server:name, @server:uri and @file attach something, "
                "and so does a pipe",
            ),
            _argument("--model", "NAME", "an entry of [models]; default: chat.model", default=""),
            _repeated("--server", "SERVER", f"{SERVER_HELP}; default: all", dest="servers"),
            _repeated("--skill", "SERVER:SKILL", "let it act on this skill, by name or URI", dest="skills"),
            _repeated("--allow", "SERVER:TOOL", "allow calls of this tool without asking; * and ? match"),
            _repeated("--deny", "SERVER:TOOL", "decline them; * and ? match"),
            _argument("--max-rounds", "N", "let the model answer at most N times", type=_count),
            _argument("--resume", "ID", "continue this conversation: the start of its id, or last", default=""),
            _flag("--saved", "list the saved conversations and exit"),
            _argument("--export", "ID", "print a saved conversation as Markdown and exit"),
            _json("print events, one JSON object a line"),
            _answers,
        ],
        """\
  mcphost chat "What changed in this repository today?"
  git diff | mcphost chat --model claude "Review this"
  mcphost chat --resume last "And yesterday?" --allow "git:git_log"
  mcphost chat --skill docs:pdf-forms "Fill in this form: @form.txt"
  mcphost chat --saved
""",
        more="""\
With --json, one object a line for each event, by its type: text, tool_use,
tool_result, and end with the state, the model and the tokens used.

--skill needs a terminal to ask on, or a skill that you approved for good.
While the model acts on a skill, you are asked about its calls even where a
rule or an earlier answer allows them.

Exit codes: 0 done, 1 a limit of [chat] was reached, 3 the model failed,
4 a call or a skill was declined.
""",
        several="words",
    ),
    "read": Subcommand(
        "catalog.run_read",
        "Read a resource and print its contents.",
        [
            _SERVER,
            _argument("uri", "URI", "the resource's URI, listed or not; sent as typed"),
            _output("save the contents to FILE"),
            _json("print the protocol's result object"),
            _answers,
        ],
        """\
  mcphost read docs file:///guide.md
  mcphost read docs file:///logo.png --output logo.png
""",
    ),
    "prompt": Subcommand(
        "catalog.run_prompt",
        "Get a prompt and print its messages.",
        [
            _SERVER,
            _argument("prompt", "NAME", "the prompt's name, as list prompts prints it"),
            _several("pairs", "KEY=VALUE", "an argument"),
            _json("print the protocol's result object"),
            _answers,
        ],
        "  mcphost prompt git review language=Rust\n",
        several="pairs",
    ),
    "skill": Subcommand(
        "skills.run_skill",
        "Read and verify the files of skills.\nA file whose size or digest is not as its server lists it is refused.",
        [
            _argument("action", "ACTION", "see below", choices=["read", "verify"]),
            _several("names", "NAME", "read: SERVER SKILL [FILE]; verify: [SERVER [SKILL]]"),
            _flag("--require-digests", "verify: a dynamic skill, whose files have no digests, fails"),
            _argument("--output", "FILE", "read: save the file to FILE"),
            _json("print one JSON object: the file, or one a line for each skill that is verified"),
            _reports,
            _answers,
        ],
        """\
  mcphost skill read docs pdf-forms               its SKILL.md
  mcphost skill read docs pdf-forms references/fields.md
  mcphost skill read docs skill://pdf-forms/SKILL.md assets/logo.png --output logo.png
  mcphost skill verify                            all skills of all servers
  mcphost skill verify docs --require-digests --junit skills.xml
""",
        more="""\
  read      print one file, which is verified first
  verify    read and check every file, and what the server lists of each skill

SKILL is a name, as list skills prints it, or the URI of a SKILL.md, listed or
not. FILE is a path in the skill's folder. Nothing is given to a model.

A dynamic skill has no digests: only the frontmatter of its SKILL.md is compared
with what the server lists. It passes, unless --require-digests is given.

With --json, verify's objects have: server, uri, name, state (verified, differs,
nonconformant, dynamic or not read), findings and files.

Exit codes: 0 verified, 1 something differs or must not be used, 2 usage or
configuration, 3 a server could not be opened, 5 it did not answer in time.
""",
        several="names",
    ),
    "complete": Subcommand(
        "catalog.run_complete",
        "Print a server's suggestions for an argument.",
        [
            _SERVER,
            _argument("ref", "REF", "prompt:NAME or template:URI"),
            _argument("argument", "ARGUMENT", "the name of the argument"),
            _argument("value", "VALUE", "its value so far"),
            _several("pairs", "KEY=VALUE", "another argument, already filled in"),
        ],
        """\
  mcphost complete git prompt:review language py
  mcphost complete docs 'template:file:///{path}' path gui
""",
        several="pairs",
    ),
    "tasks": Subcommand(
        "tasks.run_tasks",
        "List a server's tasks, cancel one, or print its result.",
        [
            _SERVER,
            _one_task,
            _output("with --result: save pictures, sounds and other files to FILE"),
            _json("print the protocol's objects"),
            _answers,
        ],
        """\
  mcphost tasks builder
  mcphost tasks builder --result 7f3a --output report.pdf
  mcphost tasks builder --cancel 7f3a
""",
    ),
    "history": Subcommand(
        "history.run_history",
        "List the last calls of this and other runs, the newest first.",
        [
            _argument("server", "SERVER", "only calls to this server, by its name; without it: all", nargs="?"),
            _argument("--limit", "N", "at most N calls (default: 50)", type=_count, default=50),
            _json("print one JSON object a line for each call"),
        ],
        """\
  mcphost history
  mcphost history git --limit 5
  mcphost history --json | jq -r 'select(.state == "failed").tool'
""",
        more="""\
With --json, one object a line for each call: id, run, call, time, server,
sentTo, tool, askedBy, arguments, state (done, failed, error, declined,
cancelled or timed_out), sent, seconds, error, result, resultBytes and
resultSha256. Secrets are masked. Results above 64 kB are null, and so are
such arguments.
""",
        connects=False,
    ),
    "login": Subcommand(
        "login.run_login",
        "Sign in to a server with your browser (OAuth).",
        [
            *_SIGN_IN_SERVER,
            _flag("--no-browser", "print the link, and open no browser"),
            _repeated("--scope", "S", "ask for this scope, too"),
            _flag("--yes", "agree to the sign-in as planned, without a question"),
            _flag("--verbose", "report each step", "-v"),
            _json("print who is signed in, as an object"),
        ],
        """\
  mcphost login docs
  mcphost login https://docs.example.com/mcp --no-browser
  mcphost login --identity corp                   at your company's identity provider, for all its servers
""",
    ),
    "logout": Subcommand(
        "login.run_logout",
        "Sign out of a server and delete its tokens.",
        list(_SIGN_IN_SERVER),
        """\
  mcphost logout docs
  mcphost logout --identity corp                  also deletes the tokens of its servers
""",
    ),
    "add": Subcommand(
        "adding.run_add",
        "Add one server: a command, URL, link, file or registry name.\n"
        "It is shown in full, and you are asked. Nothing of it runs before that.",
        [
            _argument(
                "word",
                "WHAT",
                "a URL, a link from a web page, a server.json or bundle, a registry's NAME[@VERSION], or "
                "NAME -- COMMAND ...",
            ),
            _repeated("--env", "NAME=VALUE", "a variable of its program; may hold ${REFERENCES}"),
            _repeated("--header", "NAME=VALUE", "a header for its address; so may this"),
            _repeated("--set", "INPUT=VALUE", "a value that it asks for"),
            _argument("--transport", None, "the wire; default: found out", choices=["stdio", "http", "sse"]),
            _argument(
                "--package",
                "KIND",
                "which offer to take where there are several: remote, npm, pypi, oci, nuget or mcpb; default: the best",
            ),
            _REGISTRY,
            *ADDING,
            lambda parser: parser.set_defaults(program=None),
        ],
        """\
  mcphost add git -- uvx mcp-server-git --repository .
  mcphost add https://docs.example.com/mcp --header 'X-Key=${DOCS_KEY}'
  mcphost add io.github.ada/weather               by its name in a registry; @1.2.0 for one version
  mcphost add ./weather.mcpb                      a bundle, or a server.json
  mcphost add 'cursor://anysphere.cursor-deeplink/mcp/install?name=...'
""",
        connects=False,
    ),
    "search": Subcommand(
        "adding.run_search",
        "Search the registries of MCP servers, by name.",
        [
            _several("words", "WORD", "a part of the server's name"),
            _REGISTRY,
            _json("print one JSON object a line for each server"),
        ],
        """\
  mcphost search weather
  mcphost search github issues --json
  mcphost search weather --registry https://registry.example.com
""",
        several="words",
        connects=False,
    ),
    "import": Subcommand(
        "importing.run_import",
        "Add servers that other hosts have, or a file, or a paste.\n"
        "Without HOST it only lists what is there. It runs nothing, and changes no file\nof others.",
        [
            _argument(
                "source",
                "HOST",
                "a host, as the list names it, or a FILE of any of them, or - for stdin; without it: list what "
                "is there",
                nargs="?",
            ),
            _several("names", "NAME", "only these servers"),
            _flag(
                "--project",
                "only the files of this folder, such as .mcp.json; of the HOST, or of all hosts to list what is there",
            ),
            *ADDING,
        ],
        """\
  mcphost import                                  what do other hosts have?
  mcphost import claude-code                      add its servers, each after a question
  mcphost import vscode github --dry-run
  mcphost import --project                        only what the files of this folder have
  mcphost import .cursor/mcp.json --print >> ~/.config/mcphost/config.toml
  wl-paste | mcphost import -                     what a web page says to paste
""",
        more="""\
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
        several="names",
        connects=False,
    ),
    "export": Subcommand(
        "importing.run_export",
        "Print servers as another host's configuration.\nNo file is changed: put the block where it belongs.",
        [
            _profile(default=argparse.SUPPRESS),
            _argument("host", "HOST", "a host, as mcphost import names it, or - for the mcpServers that most read"),
            _several("names", "NAME", "only these servers; default: all"),
            _argument(
                "--via", None, "serve: HOST gets them from mcphost, which keeps their secrets", choices=["serve"]
            ),
            _flag(
                "--inline-secrets",
                "write secrets into the block; without it they become variables that the host reads",
            ),
        ],
        """\
  mcphost export claude-code git > .mcp.json
  mcphost export codex >> ~/.codex/config.toml
  mcphost export cursor --via serve               Cursor asks mcphost for them
  mcphost export -                                as most hosts write servers
""",
        several="names",
        connects=False,
    ),
    "remove": Subcommand(
        "removal.run_remove",
        "Remove a server that mcphost add or import wrote.\n"
        "Its entry in servers.toml is deleted. If you are signed in to it, you are\nsigned out first.",
        [
            _argument("server", "NAME", "the name of its entry"),
            _flag("--yes", "delete its secrets from the keychain, too"),
        ],
        "  mcphost remove github\n",
        connects=False,
    ),
    "secret": Subcommand(
        "secret.run_secret",
        "Keep secrets in the system's keychain, for ${keyring:NAME}.",
        [
            _argument("action", "ACTION", "see below", choices=["set", "list", "forget"]),
            _several("names", "NAME", "the name in ${keyring:NAME}, such as github.TOKEN"),
            _json("list: print one JSON object a line for each secret"),
        ],
        """\
  mcphost secret set github.TOKEN                 you are asked for it, and nothing is shown
  pass show github | mcphost secret set github.TOKEN
  mcphost secret list
  mcphost secret forget github.TOKEN
""",
        more="""\
  set       store a secret, which is asked for or read from stdin
  list      name the secrets that mcphost stored or the configuration refers to
  forget    delete secrets from the keychain

With list --json, one object a line: name, stored (true, false, or null where
the keychain cannot say) and usedBy.
""",
        several="names",
        connects=False,
    ),
    "tap": Subcommand(
        RUN["tap"],
        "Run a server's program for an agent, and record what passes.\nThe bytes pass unchanged, and never wait for "
        "mcphost.",
        _between("tap"),
        """\
  mcphost tap -- uvx mcp-server-git
  mcphost tap --name git --as claude-code -- uvx mcp-server-git
  mcphost tap --into traffic.jsonl -- node server.js
  mcphost tap https://docs.example.com/mcp        a URL of this machine takes its place
""",
        more="""\
Put it before the command of a server in an agent's configuration. The messages
go to the running screen; without one, to a file that the screen lists later.

A URL takes the place of -- COMMAND. mcphost prints an address of this machine
to put in its place in the agent's configuration, and relays until ctrl+c.

Exit codes: the program's own, 128 and the number of the signal that ended it,
126 or 127 if it cannot be started, 2 usage.
""",
        several="words",
        connects=False,
    ),
    "record": Subcommand(
        RUN["record"],
        "Record what passes between any client and a server, in a file.\nThe bytes pass unchanged, and never wait for "
        "mcphost.",
        [
            _argument("into", "FILE", "the recording, to which this run is appended; without a suffix: FILE.mcp.jsonl"),
            *_between("record"),
        ],
        """\
  mcphost record git -- uvx mcp-server-git
  mcphost record git --redact '$..email' -- uvx mcp-server-git
  mcphost record docs https://docs.example.com/mcp    a URL of this machine takes its place
""",
        more="""\
Put it before the command of a server, wherever a client starts one. All
messages are kept whole, with arguments and results: read the file before you
share it. Secrets that mcphost recognizes are masked, and what --redact names.

Exit codes: the program's own, 128 and the number of the signal that ended it,
126 or 127 if it cannot be started, 2 usage, or a file that cannot be written.
""",
        several="words",
        connects=False,
    ),
    "gate": Subcommand(
        RUN["gate"],
        "Run a server's program for an agent, and hold tool calls until they are decided.\n"
        "Everything else passes at once.",
        [
            *_between("gate"),
            _repeated(
                "--header-env",
                "HEADER=VARIABLE",
                "send this header to the address, with the value of an environment variable",
            ),
            _argument("--bearer-env", "VARIABLE", "send the token in this environment variable to the address"),
        ],
        """\
  mcphost gate -- uvx mcp-server-git
  mcphost gate --name git --as claude-code -- uvx mcp-server-git
  mcphost gate --answer-within 50 -- node server.js
  mcphost gate --bearer-env DOCS_TOKEN https://docs.example.com/mcp
""",
        more="""\
Put it before the command of a server in an agent's configuration. The running
screen decides; without one, the rules and what you allowed. A call that would
be asked then is declined, with the mcphost allow command that allows it.

A URL takes the place of -- COMMAND. The agent still speaks to a program, and
mcphost to the server, with the headers that you name. It does not sign in.

Exit codes: the program's own, 128 and the number of the signal that ended it,
126 or 127 if it cannot be started, 2 usage, 3 an address ended the session.
""",
        several="words",
        connects=False,
    ),
    "serve": Subcommand(
        "serve.run_serve",
        "Serve an agent: it gets your servers from mcphost, with your consent.\n"
        "The running screen serves it; without one, this process does, by the rules and\nwhat you allowed.",
        [
            _profile(default=argparse.SUPPRESS),
            _several("servers", "SERVER", "only these servers of the configuration; default: all"),
            *_serve_options(),
            _argument(
                "--http",
                "ADDRESS",
                f"serve at an address of this machine, not on stdin and stdout; default: 127.0.0.1:{PORT}",
                nargs="?",
                const=f"127.0.0.1:{PORT}",
            ),
            _argument("--print", "HOST", "print the entries with which HOST starts this, one for each server"),
            _argument("--revoke", "AGENT", "delete the token with which this agent comes to the address"),
        ],
        """\
  mcphost serve git                               as the command of a server of an agent
  mcphost serve --profile work --as codex
  mcphost serve --print claude-code git           the entry for Claude Code
  mcphost serve --http                            for agents with a token, until ctrl+c
  mcphost serve --print cursor --http             their entries, with a token for Cursor
""",
        more="""\
An agent starts it as the program of a server, and speaks MCP with it on stdin
and stdout. One SERVER keeps the names of its tools; several get short prefixes.

The address is http://127.0.0.1:PORT/mcp, with /SERVER or /@PROFILE for less.
Each agent needs a token, which --print makes and the keychain keeps.

Exit codes: 0 the agent ended it, or ctrl+c an address, 2 usage or
configuration, 3 the screen refused the agent, or ended while it served it.
""",
        several="servers",
        connects=False,
    ),
    "allow": Subcommand(
        "allow.run_allow",
        "Allow a tool before an agent calls it, or a skill before it is loaded.\n"
        "It then runs without a screen, too. Its definition and what runs it are shown,\n"
        "and you are asked.",
        [
            _argument(
                "tool", "NAME:TOOL", "the server's name and the tool's, or the name or URI of a skill", nargs="?"
            ),
            _argument("--agent", "AGENT", "only calls of this agent, by the name that its gate was given"),
            _repeated("--when", "ARGUMENT=PATTERN", "only calls in which this argument matches; for several: all"),
            _list_or_remove,
            _json("with --list: print one JSON object a line for each approval"),
        ],
        """\
  mcphost allow git:git_log                       as the last declined call had it
  mcphost allow git:git_show --agent claude-code --when 'revision=^HEAD'
  mcphost allow docs:skill://pdf/SKILL.md         a skill, as long as its files are the same
  mcphost allow --list
  mcphost allow --remove git:git_log
""",
        more="""\
A call that was declined for lack of a screen left its definition behind.
Without such a call, NAME is a server of the configuration: it is started and
lists its tools, and mcphost's own calls are allowed. An approval lapses when
the definition or what runs the server changes, as those of the dialog do.

With --list --json, the objects have: server, tool, when, gate (folder and
agent, or null for mcphost's own calls), since and runs; or server, skill,
files, since and runs.

Exit codes: 0 done, 2 usage, configuration or no terminal, 3 the server could
not be reached, 4 you declined.
""",
    ),
    "agents": Subcommand(
        "agents.run_agents",
        "List the agents that are connected to the running screen.",
        [_json("print one JSON object a line for each agent and server")],
        """\
  mcphost agents
  mcphost agents --json | jq 'select(.waiting > 0)'
""",
        more="""\
An agent connects when it starts a server behind mcphost tap or gate, or
mcphost serve.

With --json, the objects have: session, role (serve, gate or tap), server,
servers (of serve: each with what runs for the agent), profile, agent, given
(by --as), claimed, pid, program, folder, identity, since (Unix time), calls,
waiting, messages, dropped and declining.

Exit codes: 0 done, 2 usage, 3 no screen runs.
""",
        connects=False,
    ),
    "wrap": Subcommand(
        "wrapping.run_wrap",
        "Put mcphost before the servers of another host.\n"
        "Its own files are edited: comments and everything else in them stay.\n"
        "What changes is shown first, and you are asked. The file is copied before.",
        [
            _argument("host", "HOST", "a host, as mcphost import names it", nargs="?"),
            _several("servers", "NAME", "only these servers; default: all"),
            _wrap_mode,
            _argument("--file", "FILE", "only this file, which is written as HOST writes its own"),
            _flag("--list", "list what is wrapped, and change nothing"),
            _flag("--yes", "write without a question"),
            _json("with --list: print one JSON object a line for each server"),
        ],
        """\
  mcphost wrap claude-code git                    its calls wait for your consent
  mcphost wrap codex --tap                        all servers of Codex: watched, and nothing else
  mcphost wrap cursor --file .cursor/mcp.json --yes
  mcphost wrap --list
""",
        more="""\
The entry then starts this mcphost with its configuration and state folder, and
behind -- what it started before. An address becomes a gate if the entry has
headers; they move to its environment, and never to the command line. An address
without headers is left alone, since the host may sign in to it.

With --list --json, the objects have: host, server, by (gate or tap), state
(wrapped, changed since, entry gone or file gone), file, backup and since.

Exit codes: 0 done, 1 a server or file that you named cannot be wrapped, 2 usage
or configuration, 4 you declined.
""",
        several="servers",
        connects=False,
    ),
    "unwrap": Subcommand(
        "wrapping.run_unwrap",
        "Restore the entries that mcphost wrap changed, byte by byte.",
        [
            _argument("host", "HOST", "the host that was wrapped", nargs="?"),
            _several("servers", "NAME", "only these servers; default: all"),
        ],
        """\
  mcphost unwrap claude-code git
  mcphost unwrap codex
""",
        more="""\
An entry that changed since is left alone, and named. Everything else in the
file may have changed. The copy of the file is deleted once it is the same.

Exit codes: 0 done, 1 an entry changed since, 2 usage or configuration.
""",
        several="servers",
        connects=False,
    ),
    "replay": Subcommand(
        "replay.run_replay",
        "Be the server of a recording: answer as it did, to any client.\n"
        "Nothing of the recording is run. What it does not hold is answered with the\nnearest that it holds.",
        [
            _argument("file", "FILE", "a recording, such as git.mcp.jsonl"),
            _argument("--server", "NAME", "the server to replay; default: the one with the most requests"),
            _argument(
                "--http",
                "ADDRESS",
                "serve at 127.0.0.1:PORT, not on stdin and stdout; default: any free port",
                nargs="?",
                const="127.0.0.1:0",
            ),
            _argument(
                "--speed", "N", "0: wait for nothing (the default); 1: as recorded; 2: twice as fast", type=_speed
            ),
            _argument(
                "--match",
                None,
                "what has to be the same: all params of a request (exact, the default), its arguments, or only the "
                "order of requests",
                choices=("exact", "arguments", "order"),
                default="exact",
            ),
            _repeated("--ignore", "PATH", "do not compare this part of the params, such as '$.arguments.date'"),
            _argument(
                "--on-miss",
                "WHAT",
                "what is not recorded: nearest (the default) names the nearest that is, error is an error, and "
                "live:SERVER asks a server of the configuration",
                type=_on_miss,
                default="nearest",
            ),
            _flag("--loop", "begin again after the last answer, instead of repeating it"),
            _flag("--strict", "exit with 1 if a request or an answer was not in the recording"),
        ],
        """\
  mcphost replay git.mcp.jsonl                    as the command of a server of an agent
  mcphost replay git.mcp.jsonl --http --speed 1
  mcphost replay docs.mcp.jsonl --server docs --match arguments
  mcphost replay docs.mcp.jsonl --ignore '$..timestamp' --strict
""",
        more="""\
It speaks to clients of every revision, whichever was recorded. Questions of the
server are asked again, and the answers compared with the recorded ones: where
they differ, the recording does not say how the server went on.

With --match order an answer that differs is counted, and the next one follows.
At the end it says on stderr how much was served and what was missing.

Exit codes: 0 the client ended it, or ctrl+c an address, 1 with --strict, 2
usage, or FILE cannot be read.
""",
        connects=False,
    ),
    "completion": Subcommand(
        "completion.run_completion",
        "Print the script with which a shell completes commands.\nIt completes servers, tools and arguments, too.",
        [_argument("shell", "SHELL", "bash, zsh or fish", choices=["bash", "zsh", "fish"])],
        """\
  mcphost completion bash                         ~/.bashrc: eval "$(mcphost completion bash)"
  mcphost completion zsh                          ~/.zshrc: eval "$(mcphost completion zsh)"
  mcphost completion fish                         goes to ~/.config/fish/completions/mcphost.fish
""",
        connects=False,
    ),
    "help": Subcommand(
        "help.run_help",
        "Show a page of the manual; without TOPIC, list the topics.",
        [_argument("topic", "TOPIC", "a topic, as the list names it, or a command", nargs="?")],
        """\
  mcphost help
  mcphost help tour
  mcphost help configuration | less
""",
        connects=False,
    ),
    "man": Subcommand(
        "man.run_man",
        "Print a manual page: mcphost(1), or mcphost-config(5).",
        [
            _argument(
                "page",
                "PAGE",
                "config: the page about the configuration; without it: the one about commands",
                nargs="?",
                choices=["config"],
            )
        ],
        """\
  mcphost man | man -l -
  mcphost man config | man -l -
""",
        connects=False,
    ),
    "config": Subcommand(
        "config.run_config",
        "Show, check or trust the configuration.",
        [
            _argument("action", "ACTION", "see below", choices=["path", "check", "trust", "schema", "client-metadata"]),
            _argument("url", "URL", "client-metadata: the https address to publish it at", nargs="?"),
            _argument(
                "--port",
                None,
                "client-metadata: the oauth.redirect_port of the servers it is for",
                type=_port,
                default=0,
            ),
            _flag("--yes", "trust: without a question"),
        ],
        """\
  mcphost config path
  mcphost config check --config new.toml
  mcphost config trust
  mcphost config schema
  mcphost config client-metadata https://example.com/mcphost.json --port 8085
""",
        more="""\
  path              say which file is read
  check             report every problem in it, with its line
  trust             trust the mcphost.toml in this folder, until it changes
  schema            print the JSON Schema of the configuration, for editors
  client-metadata   print the document under which mcphost signs in, to publish
""",
        connects=False,
    ),
}

GROUPS: Final = {
    "look around": ("demo", "check", "list", "compare"),
    "build servers": ("record", "replay", "test", "diff", "lock", "bench", "traffic"),
    "use servers": ("call", "run", "read", "prompt", "skill", "complete", "chat", "tasks", "history"),
    "control agents": ("serve", "agents", "tap", "gate", "allow", "wrap", "unwrap"),
    "add and remove servers": ("add", "search", "import", "export", "remove"),
    "sign in, keep secrets": ("login", "logout", "secret"),
    "configure, get help": ("config", "doctor", "report", "help", "man", "completion"),
}
"""The commands as the help lists them."""

_MEANT: Final = {
    "ls": "list tools", "tools": "list tools", "servers": "check", "status": "check", "exec": "call",
    "version": "--version", "resources": "list resources", "prompts": "list prompts", "get": "read",
    "skills": "list skills", "cat": "read", "install": "add", "rm": "remove", "delete": "remove",
    "uninstall": "remove", "signin": "login", "auth": "login", "signout": "logout", "ask": "chat",
    "start": "mcphost without a command",
    "init": "import", "secrets": "secret list", "verify": "test",
}  # fmt: skip
"""Commands of other programs, and what they are called here."""

_VALUED: Final = ("--config", "--profile", "--traffic", REDACT)
"""Options before the command that take a value."""

_TAKE_PROGRAM: Final = ("add", "tap", "gate", "record")
"""Commands behind whose ``--`` a program's words follow."""

_PATHS: Final = frozenset({
    "config", "traffic", "output", "answers", "file", "source", "root", "program", "host", "into", "state",
    "junit", "sarif", "baseline", "otlp", "files", "before", "after",
})  # fmt: skip
"""Options that may be names of files, which can hold any bytes."""


def parse(argv: Sequence[str]) -> Options:
    """Parse a command line. ``run`` in the result is MODULE.FUNCTION of the command in `mcphost.cli.commands`.

    Raises UsageError; SystemExit after ``--help``.
    """
    own, program = _without_program(argv)
    if (described := _described_call(own)) is not None:
        return described
    first = own[0] if own and own[0] in COMMANDS else None
    parser = command_parser(first)
    if (word := _first_plain(own)) is not None and word not in COMMANDS:
        parser.error(f"'{_shown(word)}' is not a command{did_you_mean(word, COMMANDS, _MEANT)}")
    options, rest = parser.parse_known_args(own)
    if program is not None:
        options.program = program
    several: str | None = getattr(options, "several", None)
    _refuse_unknown(options, rest, word)
    if several is not None:
        setattr(options, several, [*getattr(options, several), *rest])
    for name, value in vars(options).items():
        if name not in _PATHS and isinstance(value, str):
            setattr(options, name, _text(value, options.command))
        elif name not in _PATHS and isinstance(value, list):
            setattr(options, name, [_text(each, options.command) for each in value])
    return options


def _refuse_unknown(options: Options, rest: Sequence[str], word: str | None) -> None:
    """Raise UsageError for what the command ``word`` does not take; ``rest`` is what argparse left over."""
    # argparse gives up on words that follow an option; to the commands that take several they belong.
    unknown = [each for each in rest if each.startswith("-")]
    known = options.command._option_string_actions
    if unknown or (rest and getattr(options, "several", None) is None):
        name = unknown[0].partition("=")[0] if unknown else ""
        if name in known:
            options.command.error(f"{_shown(unknown[0])} belongs behind {word}, the command")
        near = did_you_mean(name, [each for each in known if each.startswith("--")])
        options.command.error(f"unrecognized: {' '.join(map(_shown, unknown or rest))}{near}")
    if options.profile is not None and "--profile" not in known:
        options.command.error("--profile: this command starts no server of a profile")


def _described_call(words: Sequence[str]) -> Options | None:
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
        if word in _VALUED:
            next(waiting, None)
        elif word in ("-h", "--help", "--version"):
            return None
        elif word == "--" or not word.startswith("-"):
            return word
    return None


def did_you_mean(word: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """Return the end of a sentence that suggests the words probably meant; empty without any."""
    from difflib import get_close_matches  # late: only who mistypes pays for it

    word = word.lower()
    near = [meant[word]] if meant and word in meant else get_close_matches(word, list(known), 2, 0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _without_program(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    """Split ``add NAME -- COMMAND`` at its ``--``: mcphost reads no word of a server's command."""
    if "--" not in argv:
        return argv, None
    own = argv[: argv.index("--")]
    valued = {index + 1 for index, word in enumerate(own) if word in _VALUED}
    words = [word for index, word in enumerate(own) if index not in valued and not word.startswith("-")]
    return (own, argv[len(own) + 1 :]) if words and words[0] in _TAKE_PROGRAM else (argv, None)


def command_parser(only: str | None = None) -> Parser:
    """The parser, with one of its own for each command; with ``only``, for that command alone, which is faster."""
    about = "A terminal host for the Model Context Protocol.\nWithout a command it opens the screen."
    usage = "mcphost [options] [COMMAND ...]"
    parser = Parser(prog="mcphost", usage=usage, description=about, epilog=f"{STREAMS}\nexamples:\n{EXAMPLES}")
    parser.add_argument("--version", action="version", version=f"mcphost {__version__}")
    parser.add_argument("--config", metavar="FILE", help=CONFIG_HELP)
    _profile()(parser)
    _traffic()(parser)
    _redact(default=[])(parser)
    parser.set_defaults(run="screen.run_screen", demo=False, command=parser)
    subparsers = parser.add_subparsers(prog="mcphost", metavar="COMMAND", title="commands (each has --help)")
    for name, command in COMMANDS.items() if only is None else [(only, COMMANDS[only])]:
        short, details = command.about.partition(".")[0], f"{command.more}\n" if command.more else ""
        epilog = f"{details}examples:\n{command.examples}"
        made: Parser = subparsers.add_parser(name, help=short, description=command.about, epilog=epilog)
        made.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=CONFIG_HELP)
        made.set_defaults(run=command.run, command=made, several=command.several, demo=command.demo)
        if command.connects and not command.demo:
            _profile(default=argparse.SUPPRESS)(made)
        if command.connects:
            _traffic(default=argparse.SUPPRESS)(made)
            _redact(default=argparse.SUPPRESS)(made)
        for add in command.arguments:
            add(made)
    parser.commands = subparsers.choices
    return parser
