"""``mcphost run``: calls that were saved under a name."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from mcphost.cli.approver import approver_for
from mcphost.cli.commands.call import CallRequested, CommandLineArguments, call, read_arguments
from mcphost.cli.commands.catalog import prompt, read
from mcphost.cli.failures import BrokenServers
from mcphost.cli.output import Exit, Outcome, exit_for, json_text, reports_on, table
from mcphost.cli.parser import did_you_mean
from mcphost.cli.preparation import load_config, run_with_answers
from mcphost.cli.run import finish
from mcphost.cli.save_files import claim
from mcphost.composition import calls_file, select, values_for
from mcphost.config.calls import CallsFile, LoadedCalls, SavedCall
from mcphost.errors import McphostError, UnknownName, UsageError
from mcphost.host.consent.questions import Approver
from mcphost.host.saved_calls import resource_uri
from mcphost.lazy_dataclass import dataclass
from mcphost.places import with_tilde
from mcphost.protocol.display import show_line

if TYPE_CHECKING:
    from mcphost.host.host import Host

NAMED: Final = 12
"""Names that a message lists."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A saved call, and the arguments that the command line replaces."""

    saved: SavedCall
    given: CommandLineArguments = field(default_factory=CommandLineArguments)

    @property
    def arguments(self) -> CommandLineArguments:
        return CommandLineArguments({**self.saved.shown, **self.given.values}, self.given.texts)

    @property
    def texts(self) -> dict[str, str]:
        """The arguments of a prompt or a template, which are all texts."""
        given = {
            name: value if isinstance(value, str) else json.dumps(value) for name, value in self.given.values.items()
        }
        return {**self.saved.shown, **given, **self.given.texts}


def run_saved(options: Namespace) -> int:
    loaded = load_config(options, ())
    file = calls_file(loaded.config, values_for(loaded.config, os.environ))
    saved = file.read()
    if options.list:
        if options.words:
            raise UsageError("--list takes no NAME; leave one of them out")
        return finish(_listed(file, saved, as_json=options.json))
    planned = plan(options.words, file, saved)
    if options.output is not None and len(planned) > 1:
        raise UsageError("--output takes the result of one call; name only one")
    claim(options.output)
    chosen = select(loaded, [each.saved.server for each in planned])
    for error in chosen.broken.values():
        raise error
    approver = _approver(planned, yes=options.yes)
    return run_with_answers(options, chosen, approver, lambda host: _run_all(host, planned, chosen.broken, options))


def plan(words: Sequence[str], file: CallsFile, saved: LoadedCalls) -> list[PlannedCall]:
    """The calls that the words name, each with the ``key=value`` behind its name.

    Raises UsageError, UnknownName, InvalidArguments, and ConfigError for a call that cannot be used.
    """
    if not words:
        raise UsageError("name a saved call; mcphost run --list lists them")
    named: list[tuple[SavedCall, list[str]]] = []
    for word in words:
        if "=" not in word:
            named.append((_find(word, file, saved), []))
        elif not named:
            raise UsageError(f"{show_line(word, 64)} belongs behind the NAME of a call")
        else:
            named[-1][1].append(word)
    return [PlannedCall(each, read_arguments(pairs, None)) for each, pairs in named]


def _find(name: str, file: CallsFile, saved: LoadedCalls) -> SavedCall:
    if name in saved.twice:
        raise saved.twice[name]
    if (found := saved.find(name)) is not None:
        return found
    if name in saved.broken:
        raise saved.broken[name]
    names = [each.name for each in saved.calls]
    there = f"; saved are {', '.join(names[:NAMED])}" if names else ""
    raise UnknownName(f"no call is saved as {name!r} in {with_tilde(file.path)}{did_you_mean(name, names) or there}")


def _listed(file: CallsFile, saved: LoadedCalls, *, as_json: bool) -> Outcome:
    remarks = tuple(map(str, saved.problems))
    if as_json:
        return Outcome(
            "".join(json_text({**each.entry, "arguments": each.shown}) for each in saved.calls), remarks=remarks
        )
    if not saved.calls:
        none = f"no call is saved in {with_tilde(file.path)}; ctrl+s on screen saves one"
        return Outcome(remarks=remarks or (none,))
    rows = [(each.name, each.server, each.kind, each.target, _arguments(each.shown)) for each in saved.calls]
    return Outcome(table([("NAME", "SERVER", "KIND", "CALLS", "ARGUMENTS"), *rows], narrow=True), remarks=remarks)


def _arguments(arguments: Mapping[str, Any]) -> str:
    return (
        " ".join(
            f"{name}={value}" if isinstance(value, str) else f"{name}:={json.dumps(value, ensure_ascii=False)}"
            for name, value in arguments.items()
        )
        or "-"
    )


def _approver(planned: Sequence[PlannedCall], *, yes: bool) -> Approver | None:
    tools = list(
        dict.fromkeys((each.saved.server, each.saved.target) for each in planned if each.saved.tool is not None)
    )
    if not tools:
        return None
    server, tool = tools[0] if len(tools) == 1 else ("NAME", "TOOL")
    return approver_for(server, tool, yes=yes, configured=True)


async def _run_all(host: Host, planned: Sequence[PlannedCall], broken: BrokenServers, options: Namespace) -> Outcome:
    """Run one call after the other, until one fails."""
    if len(planned) == 1:
        return await _run(host, planned[0], broken, options)
    done: list[Outcome] = []
    for number, each in enumerate(planned):
        try:
            done.append(await _run(host, each, broken, options))
        except McphostError as error:
            done.append(Outcome(code=exit_for(error), errors=reports_on(error)))
        if done[-1].code != Exit.DONE:
            left = ", ".join(other.saved.name for other in planned[number + 1 :])
            remarks = (f"{each.saved.name} failed; not run: {left}",) if left else ()
            done.append(Outcome(code=done[-1].code, remarks=remarks))
            break
    return Outcome(
        "".join(each.text for each in done),
        done[-1].code,
        tuple(words for each in done for words in each.remarks),
        tuple(error for each in done for error in each.errors),
    )


async def _run(host: Host, planned: PlannedCall, broken: BrokenServers, options: Namespace) -> Outcome:
    saved = planned.saved
    if saved.tool is not None:
        references = host.saved_calls.references(saved)
        request = CallRequested(
            saved.server, saved.tool, planned.arguments, options.timeout, options.json, options.output, references
        )
        return await call(host, request, broken)
    if saved.prompt is not None:
        return await prompt(host, saved.server, saved.prompt, planned.texts, broken, as_json=options.json)
    uri = resource_uri(saved, planned.texts)
    return await read(host, saved.server, uri, broken, output=options.output, as_json=options.json)
