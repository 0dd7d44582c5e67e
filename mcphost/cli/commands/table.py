"""The commands: for each, what it needs of the configuration, who answers for the person, and what is done.

Refuses to import what only another command needs.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from mcphost.cli.requirements import asked, loaded, recorded, selected, selected_one, to_sign_in, without_calls
from mcphost.errors import ConfigError

Words = argparse.Namespace


def run_check(options: Words) -> int:
    """Connect, and say what became of it."""
    from mcphost.cli.commands.servers import check

    chosen = selected(options)
    return without_calls(options, chosen, lambda host: check(host, chosen.names, chosen.broken, as_json=options.json))


def run_list(options: Words) -> int:
    """What servers offer."""
    from mcphost.cli.commands.offers import list_offers

    chosen = selected(options)
    what = options.kind, chosen.names, chosen.broken
    return without_calls(options, chosen, lambda host: list_offers(host, *what, as_json=options.json))


def run_call(options: Words) -> int:
    """Call a tool."""
    from mcphost.cli.approver import approver_for
    from mcphost.cli.commands.call import CallRequested, call, read_given
    from mcphost.composition import is_ad_hoc

    given = read_given(options.pairs, options.args)
    chosen, name = selected_one(options)
    approver = approver_for(name, options.tool, yes=options.yes, configured=not is_ad_hoc(options.server))
    wish = CallRequested(name, options.tool, given, options.timeout, options.json, options.output)
    return asked(options, chosen, approver, lambda host: call(host, wish, chosen.broken))


def run_chat(options: Words) -> int:
    """Say something to a model, or look at conversations that are kept."""
    from mcphost.cli.commands.chat import ChatApprover, ChatRequested, chat, export, read_pipe, saved, with_models
    from mcphost.cli.run import finish
    from mcphost.composition import select
    from mcphost.config import state_folder

    kept = state_folder(os.environ) / "chats"
    if options.saved or options.export is not None:
        return finish(saved(kept, as_json=options.json) if options.saved else export(kept, options.export))

    text, approver = " ".join(options.words), ChatApprover(options.allow, options.deny)
    found = loaded(options, options.servers)
    chosen = select(found, options.servers)
    config = with_models(chosen.config, found.problems, options.max_rounds)
    piped = read_pipe(wait=not text)
    if not text.strip() and not piped.strip():
        raise ConfigError("there is nothing to say; write: mcphost chat 'TEXT'")
    named = chosen.names if options.servers else ()
    wish = ChatRequested(text, piped, options.model, options.resume, named, options.json)
    return asked(options, replace(chosen, config=config), approver, lambda host: chat(host, wish, chosen.broken))


def run_read(options: Words) -> int:
    """Read a resource."""
    from mcphost.cli.commands.offers import read

    chosen, name = selected_one(options)
    how = {"output": options.output, "as_json": options.json}
    return asked(options, chosen, None, lambda host: read(host, name, options.uri, chosen.broken, **how))


def run_prompt(options: Words) -> int:
    """Get a prompt."""
    from mcphost.cli.commands.call import read_given
    from mcphost.cli.commands.offers import prompt

    given = read_given(options.pairs, None)
    arguments = {**given.values, **given.texts}
    chosen, name = selected_one(options)
    wish = name, options.prompt, arguments, chosen.broken
    return asked(options, chosen, None, lambda host: prompt(host, *wish, as_json=options.json))


def run_complete(options: Words) -> int:
    """What a server suggests."""
    from mcphost.cli.commands.call import read_given
    from mcphost.cli.commands.offers import complete, read_ref

    ref, others = read_ref(options.ref), read_given(options.pairs, None).texts
    chosen, name = selected_one(options)
    field = ref, options.argument, options.value, others
    return without_calls(options, chosen, lambda host: complete(host, name, *field, chosen.broken))


def run_tasks(options: Words) -> int:
    """The tasks a server keeps."""
    from mcphost.cli.commands import tasks

    if options.output is not None and options.result is None:
        raise ConfigError("--output goes with --result")
    chosen, name = selected_one(options)
    broken, how = chosen.broken, {"as_json": options.json}
    if options.cancel is not None:
        return recorded(options, chosen, None, lambda host: tasks.cancel(host, name, options.cancel, broken, **how))
    if options.result is not None:
        saves = {**how, "output": options.output}
        return asked(options, chosen, None, lambda host: tasks.collect(host, name, options.result, broken, **saves))
    return without_calls(options, chosen, lambda host: tasks.show(host, name, broken, **how))


def run_login(options: Words) -> int:
    """Sign in."""
    from mcphost.cli.commands.login import LoginApprover, LoginRequested, login
    from mcphost.host.desktop import no_browser, open_page

    chosen, name = to_sign_in(options)
    wanted = LoginRequested(name, tuple(options.scope), options.verbose, options.json)
    approver, open_url = LoginApprover(yes=options.yes), no_browser if options.no_browser else open_page
    return recorded(options, chosen, approver, lambda host: login(host, wanted, chosen.broken), open_url=open_url)


def run_logout(options: Words) -> int:
    """Sign out."""
    from mcphost.cli.commands.login import logout

    chosen, name = to_sign_in(options)
    entry = chosen.config.servers[name].model_copy(update={"start": "manual"})  # nobody needs to be connected for this
    config = chosen.config.model_copy(update={"servers": {name: entry}})
    return recorded(options, replace(chosen, config=config), None, lambda host: logout(host, name))


def run_config(options: Words) -> int:
    """The configuration itself."""
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


def run_screen(options: Words) -> int:
    """The screen, until it is left."""
    from mcphost.cli.commands.screen import open_screen

    return open_screen(options)
