"""The command line: what was asked for, the host around it, and how the process ends.

Knows arguments, signals and exit codes. Refuses to know what a command prints. Everything that takes time to import is
imported by the command that needs it.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mcphost import __version__
from mcphost.errors import ConfigError, McphostError
from mcphost.headless.words import (
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

if TYPE_CHECKING:
    from pathlib import Path

    from mcphost.config import Config, Loaded
    from mcphost.headless.output import Outcome
    from mcphost.host.host import Host
    from mcphost.host.questions import Approver
    from mcphost.host.start import Reread, StartInfo
    from mcphost.wiring import Selection

UNEXPECTED: Final = 70
"""Exit code for our own mistakes."""

BROKEN_PIPE: Final = 141
"""Exit code when nobody reads the answer, as a shell reports SIGPIPE."""

INTERRUPTED: Final = 130

Words = argparse.Namespace


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Without ``argv`` the process is ours: it starts and ends as fast as it can."""
    if argv is None:
        gc.disable()  # until everything is imported, see mcphost.headless.running
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # nobody else's code in our checks, nor a search
    try:
        options = _parse(sys.argv[1:] if argv is None else argv)
        run: Callable[[Words], int] = options.run
        return run(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        return BROKEN_PIPE
    except Exception as error:
        return _explain(error)


def _explain(error: BaseException) -> int:
    from mcphost.headless.output import Signalled, exit_for, remark, remarks_on

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McphostError):
        for sentence in remarks_on(error):
            remark(sentence)
        return exit_for(error)
    if isinstance(error, Signalled):
        return 128 + error.number
    # Where and what kind, but not its text and no locals: they may hold a secret.
    remark(f"something in mcphost went wrong: {type(error).__name__} at {_place(error)}; please report this")
    return UNEXPECTED


def _place(error: BaseException) -> str:
    """The innermost line of ours that the error passed."""
    own, place = os.path.dirname(__file__), "an unknown place"
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(own):
            place = f"mcphost{file.removeprefix(own)}:{step.tb_lineno}"
        step = step.tb_next
    return place


# What was asked for.


def _parse(argv: Sequence[str]) -> Words:
    parser = _parser()
    options, rest = parser.parse_known_args(argv)
    # argparse gives up on words that follow an option; to the commands that take several they belong.
    unknown = [word for word in rest if word.startswith("-")]
    several: str | None = getattr(options, "several", None)
    if unknown or (rest and several is None):
        parser.error(f"unrecognized: {' '.join(unknown or rest)}")
    if several is not None:
        setattr(options, several, [*getattr(options, several), *rest])
    return options


def _parser() -> Parser:
    parser = Parser(prog="mcphost", description="A terminal host for the Model Context Protocol.")
    parser.add_argument("--version", action="version", version=f"mcphost {__version__}")
    parser.add_argument("--config", metavar="FILE", help="use this configuration and no other")
    add_traffic(parser)
    parser.set_defaults(run=_screen, demo=False)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands (without one: the screen)")

    def command(name: str, about: str, run: Callable[[Words], int], **defaults: Any) -> Parser:
        made: Parser = commands.add_parser(name, help=about, description=about)
        made.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        made.set_defaults(run=run, **defaults)
        if run is not _config:  # which opens no server
            add_traffic(made, default=argparse.SUPPRESS)
        return made

    command("demo", "the screen, on the built-in demo server", _screen, demo=True)
    check = command("check", "connect to servers and say what became of it", _check, several="servers")
    add_servers(check)
    listing = command("list", "list what servers offer", _list, several="servers")
    listing.add_argument("kind", choices=["tools", "resources", "templates", "prompts"], help="what to list")
    add_servers(listing)
    add_call(command("call", "call a tool and print its result", _call, several="pairs"))
    add_chat(command("chat", "say something to a language model that uses the servers' tools", _chat, several="words"))
    add_read(command("read", "read a resource and print what it holds", _read))
    add_prompt(command("prompt", "get a prompt and print its messages", _prompt, several="pairs"))
    add_complete(command("complete", "print what a server suggests for an argument", _complete, several="pairs"))
    add_tasks(command("tasks", "list the tasks a server keeps, stop one, or print what one brought", _tasks))
    add_login(command("login", "sign in to a server, through a browser", _login))
    leaving = command("logout", "sign out of a server, and forget its tokens", _logout)
    leaving.add_argument("server", metavar="SERVER", help="a configured name or a URL")
    about = "where the configuration is, what is wrong with it, trusting a project's, and what to publish of mcphost"
    config = command("config", about, _config)
    add_config(config)
    return parser


# The commands.


def _check(options: Words) -> int:
    from mcphost.headless.servers import check

    chosen = _chosen(options)
    return _without_calls(options, chosen, lambda host: check(host, chosen.names, chosen.broken, as_json=options.json))


def _list(options: Words) -> int:
    from mcphost.headless.servers import list_tools

    chosen = _chosen(options)
    what = chosen.names, chosen.broken
    if options.kind == "tools":
        return _without_calls(options, chosen, lambda host: list_tools(host, *what, as_json=options.json))
    from mcphost.headless.offers import list_offers

    return _without_calls(options, chosen, lambda host: list_offers(host, options.kind, *what, as_json=options.json))


def _call(options: Words) -> int:
    from mcphost.headless.arguments import read_given
    from mcphost.headless.calling import Wish, call
    from mcphost.headless.consent import approver_for
    from mcphost.wiring import is_ad_hoc

    given = read_given(options.pairs, options.args)
    chosen, name = _one(options)
    approver = approver_for(name, options.tool, yes=options.yes, configured=not is_ad_hoc(options.server))
    wish = Wish(name, options.tool, given, options.timeout, options.json)
    return _asked(options, chosen, approver, lambda host: call(host, wish, chosen.broken))


def _chat(options: Words) -> int:
    from mcphost.config import state_folder
    from mcphost.headless.chatting import ChatApprover, ChatWish, chat, export, read_pipe, saved, with_models
    from mcphost.headless.running import finish
    from mcphost.wiring import select

    kept = state_folder(os.environ) / "chats"
    if options.saved or options.export is not None:
        return finish(saved(kept, as_json=options.json) if options.saved else export(kept, options.export))

    text, approver = " ".join(options.words), ChatApprover(options.allow, options.deny)
    chosen = select(_loaded(options, options.servers), options.servers)
    config = with_models(chosen.config, options.max_rounds)
    piped = read_pipe(wait=not text)
    if not text.strip() and not piped.strip():
        raise ConfigError("there is nothing to say; write: mcphost chat 'TEXT'")
    named = chosen.names if options.servers else ()
    wish = ChatWish(text, piped, options.model, options.resume, named, options.json)
    return _asked(options, replace(chosen, config=config), approver, lambda host: chat(host, wish, chosen.broken))


def _read(options: Words) -> int:
    from mcphost.headless.offers import read

    chosen, name = _one(options)
    how = {"output": options.output, "as_json": options.json}
    return _asked(options, chosen, None, lambda host: read(host, name, options.uri, chosen.broken, **how))


def _prompt(options: Words) -> int:
    from mcphost.headless.arguments import read_given
    from mcphost.headless.offers import prompt

    given = read_given(options.pairs, None)
    arguments = {**given.values, **given.texts}
    chosen, name = _one(options)
    wish = name, options.prompt, arguments, chosen.broken
    return _asked(options, chosen, None, lambda host: prompt(host, *wish, as_json=options.json))


def _complete(options: Words) -> int:
    from mcphost.headless.arguments import read_given
    from mcphost.headless.offers import complete, read_ref

    ref, others = read_ref(options.ref), read_given(options.pairs, None).texts
    chosen, name = _one(options)
    field = ref, options.argument, options.value, others
    return _without_calls(options, chosen, lambda host: complete(host, name, *field, chosen.broken))


def _tasks(options: Words) -> int:
    from mcphost.headless import tasks

    chosen, name = _one(options)
    broken, how = chosen.broken, {"as_json": options.json}
    if options.cancel is not None:
        return _recorded(options, chosen, None, lambda host: tasks.cancel(host, name, options.cancel, broken, **how))
    if options.result is not None:
        return _asked(options, chosen, None, lambda host: tasks.collect(host, name, options.result, broken, **how))
    return _without_calls(options, chosen, lambda host: tasks.show(host, name, broken, **how))


def _login(options: Words) -> int:
    from mcphost.headless.login import LoginApprover, Wanted, login
    from mcphost.host.opener import no_browser, open_page

    chosen, name = _one_to_sign_in(options)
    wanted = Wanted(name, tuple(options.scope), options.verbose, options.json)
    approver, open_url = LoginApprover(yes=options.yes), no_browser if options.no_browser else open_page
    return _recorded(options, chosen, approver, lambda host: login(host, wanted, chosen.broken), open_url=open_url)


def _logout(options: Words) -> int:
    from mcphost.headless.login import logout

    chosen, name = _one_to_sign_in(options)
    entry = chosen.config.servers[name].model_copy(update={"start": "manual"})  # nobody needs to be connected for this
    config = chosen.config.model_copy(update={"servers": {name: entry}})
    return _recorded(options, replace(chosen, config=config), None, lambda host: logout(host, name))


def _one_to_sign_in(options: Words) -> tuple[Selection, str]:
    """As `_one`, where there is something to sign in to. Raises ConfigError."""
    chosen, name = _one(options)
    server = chosen.config.servers[name]
    if server.signs_in:
        return chosen, name
    if server.url is None:
        raise ConfigError(f"{name} is a program; only servers at an address are signed in to")
    if not server.oauth.enabled:
        raise ConfigError(f"servers.{name}.oauth.enabled is false; set it to true to sign in")
    raise ConfigError(f"servers.{name} sends an Authorization header of its own; take it out to sign in instead")


def _config(options: Words) -> int:
    from mcphost.headless import settings
    from mcphost.headless.running import finish

    if options.traffic is not None:
        raise ConfigError("--traffic: this command opens no server")
    if options.action == "client-metadata":
        from mcphost.wiring import hosted_document

        return finish(settings.client_metadata(options.url, options.port, hosted_document))
    found = settings.find(options.config, os.environ)
    if options.action == "path":
        return finish(settings.where(found, os.environ, explicit=options.config is not None))
    if options.action == "check":
        return finish(settings.verify(found))
    return finish(settings.trust(found, os.environ, yes=options.yes))


def _loaded(options: Words, servers: Sequence[str]) -> Loaded:
    """The configuration for these SERVERs: those that say what to run need nothing of a project's file."""
    from mcphost.headless.settings import find, read_settings, users_settings
    from mcphost.wiring import is_ad_hoc

    found = find(options.config, os.environ)
    if servers and all(map(is_ad_hoc, servers)):
        return users_settings(found).loaded
    settings = read_settings(found, os.environ)
    if settings.untrusted is not None:
        raise ConfigError(settings.untrusted)
    return settings.loaded


def _chosen(options: Words) -> Selection:
    from mcphost.wiring import select

    chosen = select(_loaded(options, options.servers), options.servers)
    if not chosen.names and not chosen.broken:
        raise ConfigError("no server is configured; name one as 'stdio:COMMAND LINE', or see: mcphost config path")
    return chosen


def _one(options: Words) -> tuple[Selection, str]:
    """What is to run for the one SERVER, and its name. Raises ConfigError."""
    from mcphost.wiring import select

    chosen = select(_loaded(options, [options.server]), [options.server])
    for error in chosen.broken.values():
        raise error
    (name,) = chosen.names
    return chosen, name


def _asked(
    options: Words, chosen: Selection, calls: Approver | None, work: Callable[[Host], Awaitable[Outcome]]
) -> int:
    """As `_recorded`; servers may ask something meanwhile. ``calls`` approves of calls."""
    from mcphost.headless.answers import PageWatch, approver_with, read_roots, read_rules
    from mcphost.headless.lending import ModelWatch
    from mcphost.host.opener import open_page
    from mcphost.host.questions import DeclineAll

    rules = read_rules(options.answers, options.accept, options.decline)
    approver = approver_with(rules, calls or DeclineAll("nothing is called here"))

    def watched(host: Host) -> Awaitable[Outcome]:
        approver.attach(host)
        PageWatch(host, getattr(options, "timeout", None))
        ModelWatch(host)
        return work(host)

    more = {"answers": approver.answers, "roots": read_roots(options.root), "open_url": open_page}
    return _recorded(options, chosen, approver, watched, **more)


def _recorded(
    options: Words,
    chosen: Selection,
    approver: Approver | None,
    work: Callable[[Host], Awaitable[Outcome]],
    **more: Any,
) -> int:
    """What is done is written down; without an approver nothing needs one."""
    from mcphost.config import state_folder
    from mcphost.headless.output import remark
    from mcphost.headless.running import in_host
    from mcphost.host.questions import DeclineAll
    from mcphost.wiring import fittings, values_for

    values, state = values_for(chosen.config, os.environ), state_folder(os.environ)
    asked, traffic = approver or DeclineAll("nothing is called here"), _traffic(options)
    kept: dict[str, Any] = {"state": state, "report": remark, "refused": chosen.broken, "traffic_path": traffic}
    parts = fittings(asked, values, **kept, begin_sign_ins=False, **more)
    return in_host(chosen.config, parts, work)


def _without_calls(options: Words, chosen: Selection, work: Callable[[Host], Awaitable[Outcome]]) -> int:
    """Nothing will be asked, recorded or remembered, so that it works where nothing may be written."""
    from mcphost.headless.running import in_host
    from mcphost.host.questions import DeclineAll
    from mcphost.wiring import fittings, values_for

    values, nobody = values_for(chosen.config, os.environ), DeclineAll("nothing is called here")
    parts = fittings(nobody, values, refused=chosen.broken, traffic_path=_traffic(options), begin_sign_ins=False)
    return in_host(chosen.config, parts, work)


def _traffic(options: Words) -> Path | None:
    """The file for this run's traffic, if there is to be one. Raises ConfigError where it cannot be used."""
    if options.traffic is None:
        return None
    from pathlib import Path

    from mcphost.host.traffic.file import claim

    path = Path(options.traffic)
    claim(path)
    return path


# The screen.

HOW_TO: Final = """\
Add a server to {file}:

    [servers.git]
    command = "uvx"
    args = ["mcp-server-git"]

or to mcphost.toml in a project's folder, and start mcphost again. For a look at one server without a file:
mcphost check 'stdio:uvx mcp-server-git'"""


def _screen(options: Words) -> int:
    from mcphost.headless.output import is_terminal
    from mcphost.headless.running import run

    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise ConfigError("the screen needs a terminal; for commands without one see: mcphost --help")
    config, start = _start(options)
    return run(_show(config, start, _rereader(options, start), _traffic(options)))


def _start(options: Words) -> tuple[Config, StartInfo]:
    """What the screen begins with: never a project's file that nobody trusted, and the demo where there is nothing."""
    from mcphost.config import state_folder
    from mcphost.headless.settings import default_path, find, settings_for_screen
    from mcphost.host.start import StartInfo
    from mcphost.wiring import demo_config

    state, how_to = state_folder(os.environ), HOW_TO.format(file=default_path(os.environ))
    if options.demo:
        return demo_config(), StartInfo(None, True, (), state, how_to)
    settings = settings_for_screen(find(options.config, os.environ), os.environ)
    config = settings.loaded.config if settings.path else demo_config()
    return config, StartInfo(settings.path, settings.path is None, settings.problems, state, how_to)


def _rereader(options: Words, start: StartInfo) -> Callable[[], Reread] | None:
    """How to read the configuration again; None where no file is in use."""
    if start.config_path is None:
        return None

    def reread() -> Reread:
        from mcphost.headless.settings import find, settings_for_screen
        from mcphost.host.start import Reread

        settings = settings_for_screen(find(options.config, os.environ), os.environ)
        return Reread(settings.loaded.config, settings.problems)

    return reread


async def _show(config: Config, start: StartInfo, reread: Callable[[], Reread] | None, traffic: Path | None) -> int:
    from mcphost.host.asked.answering import SCREEN
    from mcphost.host.host import Host
    from mcphost.host.opener import open_page
    from mcphost.tui.app import McphostApp
    from mcphost.tui.bridge import ScreenApprover
    from mcphost.wiring import fittings, values_for

    approver, damages = ScreenApprover(), list[str]()
    values, state = values_for(config, os.environ), start.state_folder
    kept: dict[str, Any] = {"state": state, "report": damages.append, "traffic_path": traffic}
    parts = fittings(approver, values, **kept, open_url=open_page, answers=SCREEN)
    async with Host(config, parts) as host:
        start = replace(start, problems=(*start.problems, *damages))
        app = McphostApp(host, approver, start, reread)
        await app.run_async(mouse=config.ui.mouse)
    return UNEXPECTED if app.return_code else 0
