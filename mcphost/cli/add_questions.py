"""The command line's way of adding found servers: shows each in full, asks, and stores it.

Nothing runs here. A server that is added unseen starts only on request.
"""

from __future__ import annotations

import asyncio
import os
import textwrap
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcphost.cli.approver import confirmed, typed_line
from mcphost.cli.importer import open_importer
from mcphost.cli.margin import LABEL, labelled
from mcphost.cli.output import ErrorReport, Exit, answer, json_text, remark, report, reports_on
from mcphost.cli.terminal import has_terminal, say, secret_problem, terminal_size
from mcphost.config.fields import server_name
from mcphost.config.servers_file import servers_toml
from mcphost.errors import ConfigError, UsageError
from mcphost.imports.found import FoundServer, Input
from mcphost.imports.importer import (
    ImportAnswer,
    ImportCandidate,
    ImportComparison,
    Importer,
    ImportStatus,
    PlannedEntry,
    SecretPlace,
)
from mcphost.imports.preview import place_of, shown
from mcphost.imports.secrets import FoundSecret, lines_of
from mcphost.protocol.display import show_name

MARKS: Final = {ImportStatus.NEW: "+", ImportStatus.CHANGED: "~", ImportStatus.SAME: "="}

NOBODY: Final = "there is no terminal to ask on; look at what it runs, then add --yes"

TRIES: Final = 3
"""Questions for a value that is missing or not among the choices, before the server is left out."""

EXACT: Final = ("would run", "address", "in", "given", "setting", "changed")
"""Facts in which every blank counts; others are broken between words."""

IN_ARGUMENTS: Final = "is an argument: every program on this machine can read it while the server runs"


async def add_found(found: Sequence[FoundServer], options: Namespace, *, places: Iterable[str] = ()) -> int:
    """Show what was found, ask about each server, add what the user wants, and return the exit code.

    ``options`` are those of `mcphost.cli.parser.ADDING`, and perhaps ``set``, values of inputs as ``ID=VALUE``.
    ``places`` are the files that were read in full: what was imported from them and is gone there is named. Raises
    ConfigError and UsageError.
    """
    importer = open_importer(options.config, os.environ, writes=not (options.print or options.dry_run))
    comparison = await asyncio.to_thread(importer.compare, found, places)
    if options.name is not None and comparison.candidates:  # without any, the reasons follow
        comparison = _renamed(comparison, options.name, prints=options.print)
    adding = _Adding(importer, options)
    for candidate in comparison.candidates:
        await adding.add(candidate)
    return adding.end(comparison)


def preview_lines(candidate: ImportCandidate, env: Mapping[str, str], width: int) -> Iterator[str]:
    """All that a person must know to agree to it, safe for a terminal and never shortened."""
    preview = candidate.preview(env)
    yield f"{MARKS[candidate.status]} {candidate.name}"
    facts = [("found in", preview.found_in)]
    facts += [("also in", place_of(origin)) for origin in candidate.others]
    facts += [("name there", preview.name_there)] if preview.name_there != preview.name else []
    facts += [("like", f"{candidate.like}, with other settings")] if candidate.like else []
    facts += [("about", preview.description)] if preview.description else []
    facts += [("would run", preview.command_line)] if preview.words else [("address", preview.url)]
    facts += [("in", preview.folder)] if preview.folder else []
    facts += [("WARNING", sign.text) for sign in preview.dangers]
    facts += [("downloads", download.sentence) for download in preview.downloads]
    facts += [("given", f"{value.name}: {value.text}") for value in preview.values]
    facts += [("setting", f"{name} = {value}") for name, value in preview.settings]
    facts += [("note", f"{key}: {reason}") for key, reason in preview.notes]
    for change in candidate.changes:
        words = f"{shown(change.key)}: {_value(change.before)} -> {_value(change.after)}"
        facts.append(("changed", words))
    if candidate.status is ImportStatus.CHANGED and not candidate.changes:
        facts.append(("changed", "the value of a secret"))
    for label, text in facts:
        yield from labelled(label, text, width) if label in EXACT else _sentence(label, text, width)


def _sentence(label: str, text: str, width: int) -> Iterator[str]:
    first, *others = textwrap.wrap(text, width - LABEL - 4, break_on_hyphens=False) or [""]
    yield from labelled(label, first, width)
    for line in others:
        yield from labelled("", line, width)


class _Adding:
    """Adds candidates one by one, and says at once what became of each."""

    def __init__(self, importer: Importer, options: Namespace) -> None:
        self._importer, self._options = importer, options
        self._interactive = has_terminal() and not options.yes
        self._number = self._declined = 0
        """Numbers of servers that were added, and that the user declined."""
        self._failed = False
        self._without_keychain: str | None = None
        self._looked_for_keychain = False

    async def add(self, candidate: ImportCandidate) -> None:
        """Show one, ask about it and store it."""
        options, same = self._options, candidate.status is ImportStatus.SAME
        if same and not options.print:
            self._result(candidate, added=False, words=f"= {candidate.name}: unchanged")
            return
        say(*preview_lines(candidate, os.environ, terminal_size()[0]))
        try:
            if options.print or options.dry_run:
                await self._show(candidate)
            elif (decided := await self._answer(candidate)) is None:
                self._declined += 1
                self._result(candidate, added=False, words=f"  {candidate.name}: not added")
            else:
                self._added(candidate, await self._importer.store(candidate, decided))
        except ConfigError as error:
            self._failed = True
            for each in reports_on(error):
                report(each)
            self._result(candidate, added=False, words="")

    def end(self, comparison: ImportComparison) -> int:
        """Say what else is to be said after all of them, and return the exit code."""
        nothing_else = not comparison.candidates
        for server in comparison.refused:
            reason = shown(server.refusal)
            words = f"{server.name} cannot be added: {reason}"
            if nothing_else or self._was_named(server):
                self._failed = True
                report(ErrorReport.from_error(ConfigError(words)))
            else:
                remark(words)
            self._print({"server": server.name, "status": "refused", "added": False, "reason": reason})
        for gone in comparison.gone:
            words = (
                f"- {gone.name}: no longer in {place_of(gone.origins[0])}; to take it out: mcphost remove {gone.name}"
            )
            self._print({"server": gone.name, "status": "gone", "added": False}, words)
        if nothing_else and not comparison.refused:
            remark("there is no server to add")
        return Exit.USAGE if self._failed else Exit.DECLINED if self._declined and not self._number else Exit.DONE

    def _was_named(self, server: FoundServer) -> bool:
        """True if the command line names this server."""
        return bool({server.name, server.origin.name} & set(getattr(self._options, "names", None) or ()))

    def _print(self, result: Mapping[str, Any], words: str = "") -> None:
        """Answer at once: whoever stops in the middle must know what was added before."""
        if self._options.json:
            answer(json_text(result))
        elif words and (self._options.print or self._options.dry_run):  # where stdout is for TOML
            remark(words)
        elif words:
            answer(f"{words}\n")

    async def _show(self, candidate: ImportCandidate) -> None:
        """Plan an entry and write nothing."""
        place = await self._first_place(candidate)
        decided = ImportAnswer(self._given(), place, looked_at=not self._options.yes, open_inputs=True)
        planned = self._importer.plan(candidate, decided)
        for name in planned.items:
            remark(f"{name}: to store it: mcphost secret set {name}")
        self._tell(candidate, planned)
        if not self._options.json:
            answer(f"{servers_toml({planned.name: planned.table})}\n")
        self._result(candidate, added=False, entry=planned.table)

    async def _answer(self, candidate: ImportCandidate) -> ImportAnswer | None:
        """Ask the user for an answer; None if the server is not to be added. Raises ConfigError."""
        if not self._interactive and not self._options.yes:
            remark(f"{candidate.name}: {NOBODY}")
            return None
        given, inputs = self._given(), candidate.found.inputs
        what = f"Add {candidate.name}" if candidate.status is ImportStatus.NEW else f"Change {candidate.name} like this"
        if self._interactive and candidate.status is ImportStatus.NEW:
            off = candidate.found.disabled_there
            afterwards = (
                "it stays off, as it was there" if off else "nothing of it starts now, but whenever mcphost starts"
            )
            say(*_sentence("afterwards", afterwards, terminal_size()[0]))
        if self._interactive and not await confirmed(f"{what}? [y/N] "):
            return None
        places = await self._places(candidate)
        decided = ImportAnswer({}, places, looked_at=self._interactive)
        for wanted in inputs if self._interactive else ():
            if wanted.id not in given and decided.takes(wanted):
                given[wanted.id] = await _asked(wanted)
        return replace(decided, inputs=given)

    async def _places(self, candidate: ImportCandidate) -> dict[str, SecretPlace]:
        """Where each of its secrets goes."""
        first = await self._first_place(candidate)
        keys = [secret.key for secret in candidate.secrets]
        inputs = [f"input:{each.id}" for each in candidate.found.inputs if each.secret]
        places = dict.fromkeys([*keys, *inputs], first)
        if not (self._interactive and self._options.keep_secrets == "ask") or first is SecretPlace.ENVIRONMENT:
            return places
        for secret in {secret.key: secret for secret in candidate.secrets}.values():
            places[secret.key] = await _place(secret)
        return places

    async def _first_place(self, candidate: ImportCandidate) -> SecretPlace:
        """The keychain, or the environment where that is wanted or there is no keychain."""
        if self._options.keep_secrets == "env":
            return SecretPlace.ENVIRONMENT
        secret = candidate.secrets or any(each.secret for each in candidate.found.inputs)
        if not secret or self._options.print or self._options.dry_run:
            return SecretPlace.KEYCHAIN
        if not self._looked_for_keychain:
            self._looked_for_keychain = True
            self._without_keychain = await self._importer.keychain_problem()
        if self._without_keychain is None:
            return SecretPlace.KEYCHAIN
        if self._options.keep_secrets == "keyring":
            raise ConfigError(f"servers.{candidate.name}: its secrets were not stored: {self._without_keychain}")
        words = f"{self._without_keychain}; its secrets become references to environment variables"
        say(*_sentence("secrets", words, terminal_size()[0]))
        return SecretPlace.ENVIRONMENT

    def _given(self) -> dict[str, str]:
        given: dict[str, str] = {}
        for name, _, value in (text.partition("=") for text in getattr(self._options, "set", None) or ()):
            given[name] = f"{given[name]}\n{value}" if name in given else value  # several values are lines
        return given

    def _added(self, candidate: ImportCandidate, planned: PlannedEntry) -> None:
        self._number += 1
        done = "added" if candidate.status is ImportStatus.NEW else "changed"
        how = ', to be started by hand (start = "manual")' if planned.table.get("start") == "manual" else ""
        words = f"{MARKS[candidate.status]} {candidate.name}: {done} in {self._importer.path}{how}"
        self._result(candidate, added=True, entry=planned.table, words=words)
        for item in planned.items:
            remark(f"{item} is in the keychain now")
        self._tell(candidate, planned)

    def _tell(self, candidate: ImportCandidate, planned: PlannedEntry) -> None:
        """Name what the user must set, what others can see, and where the secrets still stand."""
        for variable in planned.variables:
            state = "is set" if os.environ.get(variable) else "is not set: set it before you start mcphost"
            remark(f"{candidate.name} reads the environment variable {variable}, which {state}")
        for key in planned.in_arguments:
            remark(f"{candidate.name}: {key} {IN_ARGUMENTS}")
        for sentence in () if self._options.print or self._options.dry_run else _where_they_stand(candidate, planned):
            remark(sentence)

    def _result(
        self, candidate: ImportCandidate, *, added: bool, words: str = "", entry: Mapping[str, Any] | None = None
    ) -> None:
        result = {
            "server": candidate.name,
            "status": candidate.status.value,
            "added": added,
            "foundIn": place_of(candidate.found.origin),
            "changes": [{"key": each.key, "before": each.before, "after": each.after} for each in candidate.changes],
            "entry": dict(entry) if entry is not None else candidate.shown,
        }
        self._print(result, words)


def _where_they_stand(candidate: ImportCandidate, planned: PlannedEntry) -> Iterator[str]:
    """Yield a remark for each file that still holds one of the secrets."""
    kept = [secret for secret in candidate.secrets if secret.key in planned.secret_keys]
    for origin in (candidate.found.origin, *candidate.others):
        path = Path(origin.place)
        if not path.is_absolute() or not path.is_file():
            continue
        for secret in kept:
            for line in lines_of(path, secret.value)[:3]:
                where = f"{shown(origin.place)}, line {line}"
                yield f"{shown(secret.key)} is still in {where}; mcphost changes nothing there"


async def _asked(wanted: Input) -> str:
    about = f" ({shown(wanted.description)})" if wanted.description else ""
    choices = f", one of {', '.join(map(shown, wanted.choices))}" if wanted.choices else ""
    default = f" [{shown(wanted.default)}]" if wanted.default and not wanted.secret else ""
    prompt, answer = f"{shown(wanted.id)}{about}{choices}{default}: ", ""
    for _ in range(TRIES):
        answer = await typed_line(prompt, hidden=wanted.secret)
        if not (problem := _problem_with(answer, wanted)):
            break
        say(f"  {problem}")
    else:
        if answer:
            raise UsageError(f"{shown(wanted.id)}: {problem}; nothing was added")
    answers = [answer]
    while wanted.several and answers[-1]:
        more = await typed_line(f"{shown(wanted.id)}, one more (enter: no more): ", hidden=wanted.secret)
        if more and (problem := _problem_with(more, wanted)):
            say(f"  {problem}")
        else:
            answers.append(more)
    return "\n".join(filter(None, answers))


def _problem_with(answer: str, wanted: Input) -> str:
    if not answer:
        return "it needs a value" if wanted.required and not wanted.default else ""
    if wanted.secret and (problem := secret_problem(answer)):
        return f"{problem}; give it again"
    return "it must be one of these" if wanted.choices and answer not in wanted.choices else ""


async def _place(secret: FoundSecret) -> SecretPlace:
    # All of it is one prompt: a key that follows the first line must not count as typed ahead.
    prompt = (
        f"  {shown(secret.key)} looks like a secret, by {shown(secret.reason)}.\n"
        "  Keep it in the keychain, as an environment variable, or as it is? [K/e/a] "
    )
    answers = {
        "": SecretPlace.KEYCHAIN,
        "k": SecretPlace.KEYCHAIN,
        "e": SecretPlace.ENVIRONMENT,
        "a": SecretPlace.ENTRY,
    }
    while (place := answers.get((await typed_line(prompt)).lower())) is None:
        continue
    return place


def _renamed(comparison: ImportComparison, name: str, *, prints: bool) -> ImportComparison:
    """The one candidate under this name; ``prints``: it is only shown, and may be there under another."""
    if len(comparison.candidates) != 1:
        raise UsageError(f"--as: {len(comparison.candidates)} servers were found, and one name is for one of them")
    try:
        server_name(name)
    except ValueError as error:
        raise UsageError(f"--as {show_name(name)}: {error}") from None
    (candidate,) = comparison.candidates
    if candidate.status is ImportStatus.SAME and candidate.name != name and not prints:
        there = show_name(candidate.name)
        raise UsageError(
            f"--as {show_name(name)}: this server is there already as {there}; "
            f"to rename it, remove it first (mcphost remove {there}) and add it again"
        )
    return replace(comparison, candidates=(candidate.renamed(name),))


def _value(text: str | None) -> str:
    return "nothing" if text is None else show_name(text)
