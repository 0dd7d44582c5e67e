"""One function for each command: reads its options, prepares a host, and runs the command's module in it.

Each function imports what it needs itself, so that no command pays for another's imports.
"""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import replace

from mcphost.cli.requirements import (
    load_config,
    run_audited,
    run_with_answers,
    run_without_calls,
    select_for_sign_in,
    select_server,
    select_servers,
)
from mcphost.errors import ConfigError


def run_check(options: Namespace) -> int:
    """Connect to servers and report each result."""
    from mcphost.cli.commands.servers import check

    chosen = select_servers(options)
    return run_without_calls(
        options, chosen, lambda host: check(host, chosen.names, chosen.broken, as_json=options.json)
    )


def run_list(options: Namespace) -> int:
    """List what servers offer."""
    from mcphost.cli.commands.catalog import list_catalog

    chosen = select_servers(options)
    what = options.kind, chosen.names, chosen.broken
    return run_without_calls(options, chosen, lambda host: list_catalog(host, *what, as_json=options.json))


def run_call(options: Namespace) -> int:
    """Call a tool."""
    from mcphost.cli.approver import approver_for
    from mcphost.cli.commands.call import CallRequested, call, read_arguments
    from mcphost.composition import is_ad_hoc

    given = read_arguments(options.pairs, options.args)
    chosen, name = select_server(options)
    approver = approver_for(name, options.tool, yes=options.yes, configured=not is_ad_hoc(options.server))
    requested = CallRequested(name, options.tool, given, options.timeout, options.json, options.output)
    return run_with_answers(options, chosen, approver, lambda host: call(host, requested, chosen.broken))


def run_chat(options: Namespace) -> int:
    """Send a message to a model, or list or export saved chats."""
    from mcphost.cli.commands.chat import ChatApprover, ChatRequested, chat, export, list_saved, read_pipe, with_models
    from mcphost.cli.run import finish
    from mcphost.composition import select
    from mcphost.config import state_folder

    kept = state_folder(os.environ) / "chats"
    if options.saved or options.export is not None:
        return finish(list_saved(kept, as_json=options.json) if options.saved else export(kept, options.export))

    text, approver = " ".join(options.words), ChatApprover(options.allow, options.deny)
    found = load_config(options, options.servers)
    chosen = select(found, options.servers)
    config = with_models(chosen.config, found.problems, options.max_rounds)
    piped = read_pipe(wait=not text)
    if not text.strip() and not piped.strip():
        raise ConfigError("there is nothing to say; write: mcphost chat 'TEXT'")
    named = chosen.names if options.servers else ()
    requested = ChatRequested(text, piped, options.model, options.resume, named, options.json)
    return run_with_answers(
        options, replace(chosen, config=config), approver, lambda host: chat(host, requested, chosen.broken)
    )


def run_read(options: Namespace) -> int:
    """Read a resource."""
    from mcphost.cli.commands.catalog import read

    chosen, name = select_server(options)
    how = {"output": options.output, "as_json": options.json}
    return run_with_answers(options, chosen, None, lambda host: read(host, name, options.uri, chosen.broken, **how))


def run_prompt(options: Namespace) -> int:
    """Get a prompt."""
    from mcphost.cli.commands.call import read_arguments
    from mcphost.cli.commands.catalog import prompt

    given = read_arguments(options.pairs, None)
    arguments = {**given.values, **given.texts}
    chosen, name = select_server(options)
    requested = name, options.prompt, arguments, chosen.broken
    return run_with_answers(options, chosen, None, lambda host: prompt(host, *requested, as_json=options.json))


def run_complete(options: Namespace) -> int:
    """Complete an argument."""
    from mcphost.cli.commands.call import read_arguments
    from mcphost.cli.commands.catalog import complete, read_ref

    ref, others = read_ref(options.ref), read_arguments(options.pairs, None).texts
    chosen, name = select_server(options)
    field = ref, options.argument, options.value, others
    return run_without_calls(options, chosen, lambda host: complete(host, name, *field, chosen.broken))


def run_tasks(options: Namespace) -> int:
    """List, cancel or collect a server's tasks."""
    from mcphost.cli.commands import tasks

    if options.output is not None and options.result is None:
        raise ConfigError("--output goes with --result")
    chosen, name = select_server(options)
    broken, how = chosen.broken, {"as_json": options.json}
    if options.cancel is not None:
        return run_audited(options, chosen, None, lambda host: tasks.cancel(host, name, options.cancel, broken, **how))
    if options.result is not None:
        saves = {**how, "output": options.output}
        return run_with_answers(
            options, chosen, None, lambda host: tasks.collect(host, name, options.result, broken, **saves)
        )
    return run_without_calls(options, chosen, lambda host: tasks.show(host, name, broken, **how))


def run_login(options: Namespace) -> int:
    """Sign in."""
    from mcphost.cli.commands.login import LoginApprover, LoginRequested, login
    from mcphost.host.desktop import no_browser, open_page

    chosen, name = select_for_sign_in(options)
    requested = LoginRequested(name, tuple(options.scope), options.verbose, options.json)
    approver, open_url = LoginApprover(yes=options.yes), no_browser if options.no_browser else open_page
    return run_audited(options, chosen, approver, lambda host: login(host, requested, chosen.broken), open_url=open_url)


def run_logout(options: Namespace) -> int:
    """Sign out."""
    from mcphost.cli.commands.login import logout

    chosen, name = select_for_sign_in(options)
    entry = chosen.config.servers[name].model_copy(update={"start": "manual"})  # nobody needs to be connected for this
    config = chosen.config.model_copy(update={"servers": {name: entry}})
    return run_audited(options, replace(chosen, config=config), None, lambda host: logout(host, name))


def run_config(options: Namespace) -> int:
    """Show, check or trust the configuration."""
    from mcphost.cli.commands import config as settings
    from mcphost.cli.run import finish

    if options.traffic is not None:
        raise ConfigError("--traffic: this command opens no server")
    if options.action == "client-metadata":
        from mcphost.composition import hosted_document

        return finish(settings.client_metadata(options.url, options.port, hosted_document))
    found = settings.find(options.config, os.environ)
    if options.action == "path":
        return finish(settings.where(found, os.environ, explicit=options.config is not None))
    if options.action == "check":
        return finish(settings.verify(found))
    return finish(settings.trust(found, os.environ, yes=options.yes))


def run_screen(options: Namespace) -> int:
    """Run the Textual app."""
    from mcphost.cli.commands.screen import open_screen

    return open_screen(options)
