"""What the consent screen, and the screen after it, say of servers from elsewhere, as rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from textual.content import Content

from mcphost.imports.importer import ImportAnswer, ImportCandidate, ImportStatus, PlannedEntry, SecretPlace
from mcphost.imports.preview import Preview, ShownValue, ValueOrigin, place_of, preview_of, shown
from mcphost.lazy_dataclass import dataclass
from mcphost.tui.kit.facts_table import Fact, fact

_STYLES: Final[Mapping[ValueOrigin, str]] = {
    ValueOrigin.SECRET: "$text-warning",
    ValueOrigin.UNSET: "$text-warning",
    ValueOrigin.ASKED: "$text-accent",
}

LONGEST: Final = 2_000
"""Characters of a value that the consent screen shows itself, and no real one has more."""

MOST: Final = 100
"""Rows of it, each with its value."""


@dataclass(frozen=True, slots=True)
class AddedServer:
    """A server that was added."""

    candidate: ImportCandidate
    planned: PlannedEntry
    lines: tuple[int, ...] = ()
    """The lines of the file there that still hold its secrets."""


def consent_facts(
    preview: Preview, candidate: ImportCandidate, answer: ImportAnswer, planned: PlannedEntry | None
) -> Iterator[Fact]:
    """All that is known of a server before it is added; ``planned``: what would be written, if it can be."""
    yield fact("found in", preview.found_in)
    yield from (fact("", f"also in {place_of(each)}", "$foreground-muted") for each in candidate.others)
    if preview.description:
        yield fact("it says", preview.description, "$foreground-muted")
    if preview.words:
        yield fact("would run", preview.command_line, "bold")
    if preview.url:
        yield fact("would call", preview.url, "bold")
    if preview.folder:
        yield fact("in", preview.folder)
    yield from _labelled("▲ danger", [Content.styled(sign.text, "$text-error") for sign in preview.dangers])
    yield from _labelled("downloads", [_download(each.sentence, each.pinned) for each in preview.downloads])
    yield from _labelled("gets", list(_values(preview, answer)))
    yield from _labelled("settings", [Content(f"{name} = {value}") for name, value in preview.settings])
    if candidate.status is ImportStatus.CHANGED:
        yield from _labelled("changed there", list(_changes(candidate)))
    left_out = [Content.assemble(name, (f": {why}", "$foreground-muted")) for name, why in preview.notes]
    yield from _labelled("differences", left_out)
    if candidate.like:
        yield fact("▲ here as", f"{candidate.like}: it runs the same, with other settings", "$text-warning")
    if planned is not None:
        yield from _afterwards(candidate, planned)


def cut(facts: Sequence[Fact]) -> tuple[list[Fact], int]:
    """As much of the facts as fits on a screen to be scrolled, and how many characters are left out."""
    kept, left = list[Fact](), 0
    for number, each in enumerate(facts):
        length = len(each.value)
        if number >= MOST:
            left += length
        elif length > LONGEST:
            left += length - LONGEST
            kept.append(replace(each, value=Content.assemble(each.value[:LONGEST], (" …", "$text-warning"))))
        else:
            kept.append(each)
    return kept, left


def _labelled(label: str, lines: Sequence[Content]) -> Iterator[Fact]:
    for name, line in zip_longest([label][: len(lines)], lines, fillvalue=""):
        assert isinstance(line, Content)
        yield Fact(str(name), line)


def _download(sentence: str, pinned: bool) -> Content:
    return Content(sentence) if pinned else Content.styled(sentence, "$text-warning")


def _values(preview: Preview, answer: ImportAnswer) -> Iterator[Content]:
    width = min(30, max((len(each.name) for each in preview.values), default=0))
    for each in preview.values:
        yield Content.assemble(
            (each.name.ljust(width), "$foreground-muted"), "  ", (_value(each, answer), _STYLES.get(each.source, ""))
        )


def _value(value: ShownValue, answer: ImportAnswer) -> str:
    if value.source is not ValueOrigin.SECRET:
        return value.text
    goes = {
        SecretPlace.KEYCHAIN: "goes into your keychain",
        SecretPlace.ENVIRONMENT: "is left out: you set it as a variable",
        SecretPlace.ENTRY: "is copied in plain text",
    }
    place = answer.secrets if isinstance(answer.secrets, SecretPlace) else SecretPlace.KEYCHAIN
    return f"{value.text} → {goes[place]}"


def _changes(candidate: ImportCandidate) -> Iterator[Content]:
    for change in candidate.changes:
        before, after = ("nothing" if each is None else shown(each) for each in (change.before, change.after))
        yield Content.assemble((shown(change.key), "bold"), f": {before} ", ("→", "$text-warning"), f" {after}")
    if not candidate.changes:
        yield Content("the value of a secret")


def _afterwards(candidate: ImportCandidate, planned: PlannedEntry) -> Iterator[Fact]:
    if planned.in_arguments:
        words = "an argument holds a secret: everybody on this machine can see it while the server runs"
        yield fact("▲ visible", words, "$text-warning")
    if candidate.found.disabled_there:
        yield fact("afterwards", "it stays off, as it was there: space in the server list turns it on")
    elif unset := unset_in(candidate, planned):
        words = f"it cannot start yet: {'; '.join(unset)}"
        yield fact("afterwards", words, "$text-warning")
    else:
        yield fact("afterwards", "it starts at once, and whenever mcphost starts")


def unset_in(candidate: ImportCandidate, planned: PlannedEntry) -> tuple[str, ...]:
    """What is missing without which the server cannot start: ``variable TOKEN, not set``."""
    entry = replace(candidate.found, table=planned.table, inputs=())
    return tuple(value.text for value in preview_of(entry, os.environ).unset)


def added_facts(added: Iterable[AddedServer], file: str, *, started: bool) -> Iterator[Fact]:
    """What became of the servers that were added, and where they are written."""
    for each in added:
        name, waits = each.planned.name, unset_in(each.candidate, each.planned)
        if each.candidate.found.disabled_there:
            yield fact(name, "added, and off as it was there")
        elif waits:
            yield fact(
                name,
                f"added; it cannot start yet: {'; '.join(waits)}. Set it, and start mcphost again",
                "$text-warning",
            )
        else:
            yield fact(name, "added; it starts now" if started else "added", "$text-success")
        if each.planned.items:
            yield fact("", f"in your keychain: {', '.join(each.planned.items)}")
        if each.lines:
            place, lines = place_of(each.candidate.found.origin), ", ".join(map(str, each.lines))
            yield fact("", f"still in plain text where it was: {place}, line {lines}", "$text-warning")
    yield fact("", "")
    yield fact("written to", f"{file}  (mcphost remove NAME takes a server out again)")
