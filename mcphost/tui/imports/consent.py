"""The consent screen of one server from elsewhere: all that adding it means, and the answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from mcphost.errors import ConfigError
from mcphost.imports.found import Input
from mcphost.imports.importer import ImportAnswer, ImportCandidate, ImportStatus, PlannedEntry, SecretPlace
from mcphost.imports.preview import Preview, ShownValue, ValueOrigin, place_of, preview_of, shown
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.answers import SCROLL_FIRST, AnswerOption, AnswerOptions, ReadToEnd, ShortAnswers, naming
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.modal_screen import HELP_BINDING, Dialog
from mcphost.tui.kit.rows import RowList

if TYPE_CHECKING:
    from mcphost.tui.imports.form import Edits

SHORT: Final = 20
"""Rows below which all answers share one line."""

READ_FIRST: Final = "▼ too long to show here: read it to the end (v) to enable y"
"""As `SCROLL_FIRST`, for what no screen shows at once."""

MASK: Final = "•••"
"""In place of a secret that was given."""


_STYLES: Final[Mapping[ValueOrigin, str]] = {
    ValueOrigin.SECRET: "$text-warning",
    ValueOrigin.UNSET: "$text-warning",
    ValueOrigin.ASKED: "$text-accent",
}

LONGEST: Final = 2_000
"""Characters of a value that the screen itself shows; no real value has more."""

MOST: Final = 100
"""Rows that the screen itself shows."""


class Addition(Enum):
    ADD = "add"
    SKIP = "skip"
    STOP = "stop"
    """Neither this one nor those after it."""


@dataclass(frozen=True)
class AdditionDecision:
    """The user's decision, with the server as they edited it."""

    addition: Addition
    candidate: ImportCandidate
    answer: ImportAnswer


@dataclass(frozen=True, slots=True)
class AdditionNotes:
    """Messages that the screen shows with a server."""

    keychain_problem: str | None = None
    """The reason why no secret can go to the keychain."""
    problem: str = ""
    """The reason why the last attempt to add this server failed."""
    remarks: Sequence[str] = ()
    """Further notes, safe to show."""


Plan = Callable[[ImportCandidate, ImportAnswer], PlannedEntry]
"""Returns the entry that would be written. Raises ConfigError."""


class AddServerScreen(Dialog[AdditionDecision], inherit_bindings=False):
    """Dismissed with the user's decision. ``preview`` is the value of `seen`."""

    HELP = (
        "One server, before it is added: nothing of it has run, and nothing was sent. It is added and started "
        "only once all of it was on screen."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "add", "add", id="add-server.add", tooltip="Add this server and start it"),
        Binding("n", "skip", "skip", id="add-server.skip", tooltip="Do not add this server"),
        Binding("e", "edit", "edit", id="add-server.edit", tooltip="Change its name and values"),
        Binding("s", "secrets", "secrets", id="add-server.secrets", tooltip="Where its secrets go"),
        Binding("escape", "stop", "stop", id="add-server.stop", tooltip="Add neither this one nor the rest"),
        Binding("v", "read", "all of it", id="add-server.read", tooltip="Read what is too long for this screen"),
        Binding("enter", "choose_default", "choose", id="add-server.easy", show=False, system=True),
        Binding("space,pagedown", "page(1)", "scroll", id="add-server.down", show=False),
        Binding("pageup", "page(-1)", "scroll back", id="add-server.up", show=False, system=True),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    AddServerScreen {
        .hint { height: auto; color: $text-warning; }
        .short { display: none; height: auto; border-top: solid $border-blurred; color: $foreground-muted; }
        & > .dialog { max-height: 100%; }
        &.-short .short { display: block; }
        &.-short AnswerOptions { display: none; }
    }
    """

    def __init__(
        self,
        candidate: ImportCandidate,
        answer: ImportAnswer,
        plan: Plan,
        preview: Preview,
        *,
        place: tuple[int, int],
        notes: AdditionNotes,
    ) -> None:
        """``place`` is the number of this server, and the number of all."""
        super().__init__()
        self._candidate, self._answer, self._plan, self._place = candidate, answer, plan, place
        self._notes = notes
        self._preview = preview
        self._planned, self._refusal = self._try_plan()
        self.what, self.answers = ReadToEnd(classes="between"), AnswerOptions()
        self._all_facts = list(self._made_facts())
        self._read_in_full = False
        self._facts = FactsTable(self._rows())
        self._hint, self._short = Static(classes="hint", markup=False), ShortAnswers(classes="short")

    def compose(self) -> ComposeResult:
        self._choose_answers()  # before the first layout: a fact that is cut off then does not count as seen
        number, count = self._place
        subtitle = Content(f"{number} of {count} · nothing of it has run" if count > 1 else "")
        with self.framed(self._title(), subtitle):
            with self.what:
                yield self._facts
            with Vertical(classes="below"):
                yield self._hint
                yield self._short
                yield self.answers

    def on_mount(self) -> None:
        self._hint.display = False
        self.set_class(bool(self._preview.dangers), "-careful")
        self._offer(at=self._default_key)
        self.answers.focus()
        self.call_after_refresh(self._update_hint)

    def on_resize(self) -> None:
        self._choose_answers()
        self.call_after_refresh(self._update_hint)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "read":
            return self._left_out > 0
        return self._has_secrets if action == "secrets" else True

    # The facts.

    def _title(self) -> Content:
        again = self._candidate.status is ImportStatus.CHANGED
        words = "Take over what changed of the server " if again else "Add the server "
        return naming(words, show_line(self._candidate.name, 64), "?")

    def _rows(self) -> list[Fact]:
        """The facts that are shown here; the reader has the rest."""
        kept, self._left_out = cut(self._all_facts)
        if self._left_out:
            words = f"{self._left_out:,} characters are too many to show here: v shows all"
            kept.insert(0, fact("▲ long", words, "bold $text-warning"))
        return kept

    def _made_facts(self) -> Iterator[Fact]:
        if self._notes.problem:
            yield fact("✖ not added", show(self._notes.problem, limit=600), "bold $text-error")
        yield from (fact("▲ note", remark, "$text-warning") for remark in self._notes.remarks)
        yield from consent_facts(self._preview, self._candidate, self._answer, self._planned)
        if self._has_secrets and self._notes.keychain_problem:
            yield fact("▲ keychain", show(self._notes.keychain_problem, limit=400), "$text-warning")
        for each in self._candidate.found.inputs:
            yield Fact("you give", self._given(each))
        if self._refusal and not self._unanswered:
            yield fact("✖ invalid", show(self._refusal, limit=600), "bold $text-error")

    def _given(self, asked: Input) -> Content:
        about = show_line(asked.description or asked.id, 400)
        if not self._answer.takes(asked):
            return Content.assemble(f"{about}: ", ("is left out: you set it as a variable", "$text-warning"))
        value = self._answer.inputs.get(asked.id) or asked.default
        if not value:
            need = ("not yet: e asks for it", "$text-warning") if asked.required else ("left out", "$foreground-muted")
            return Content.assemble(f"{about}: ", need)
        return Content.assemble(f"{about}: ", (MASK if asked.secret else show_line(value, 400), "$text-success"))

    def _show_all(self) -> None:
        """Show the server as it is now, and have it read again."""
        self._preview = seen(self._candidate)
        self._planned, self._refusal = self._try_plan()
        self.frame.border_title = self._title()
        self._all_facts, self._read_in_full = list(self._made_facts()), False
        self._facts.show_facts(self._rows())
        self.refresh_bindings()
        self.what.rewind()
        self._offer()
        self.call_after_refresh(self._update_hint)

    def _choose_answers(self) -> None:
        """On a low screen all answers share a line."""
        self.set_class(self.app.size.height < SHORT, "-short")

    def _offer(self, at: str | None = None) -> None:
        options = list(self._options())
        self.answers.offer(options, at)
        self._short.offer(options, self._default_key)

    def _options(self) -> Iterator[AnswerOption]:
        if self._unanswered:
            yield AnswerOption("y", "give what it needs, then add it", "add", "give, add")
        else:
            yield AnswerOption("y", self._what_y_does(), "add", "add", not self._can_add)
        yield AnswerOption("n", "leave it out", "skip", "leave out")
        yield AnswerOption("e", "edit its name and values", "edit", "edit")
        if self._has_secrets:
            yield AnswerOption("s", f"secrets: {_PLACES[self._secrets_go]}", "secrets", "secrets")
        if self._place[0] < self._place[1]:
            yield AnswerOption("esc", "stop: leave out this one and the rest", "stop", "stop")

    def _what_y_does(self) -> str:
        if self._candidate.found.disabled_there:
            return "add it, off as it was there"
        waits = self._planned is not None and unset_in(self._candidate, self._planned)
        return "add it; it cannot start yet" if waits else "add it and start it"

    @property
    def _default_key(self) -> str:
        return "n" if self._preview.dangers else "y"

    @property
    def _can_add(self) -> bool:
        return self._all_seen and self._planned is not None

    @property
    def _all_seen(self) -> bool:
        return self.what.reached and (self._read_in_full or not self._left_out)

    @on(ReadToEnd.Measured)
    def _update_hint(self) -> None:
        more = self.what.cut_off or (self.what.reached and not self._all_seen)
        self._hint.update(SCROLL_FIRST if self.what.cut_off else READ_FIRST)
        self._hint.display = more and not self._unanswered
        self._offer()

    # Decisions.

    @property
    def _unanswered(self) -> bool:
        """True if a value is missing that only the user can give."""
        given, inputs = self._answer.inputs, self._candidate.found.inputs
        needed = (each for each in inputs if each.required and self._answer.takes(each))
        return any(not (given.get(each.id) or each.default) for each in needed)

    @property
    def _has_secrets(self) -> bool:
        return self._preview.has_secrets or any(each.secret for each in self._candidate.found.inputs)

    @property
    def _secrets_go(self) -> SecretPlace:
        place = self._answer.secrets
        return place if isinstance(place, SecretPlace) else SecretPlace.KEYCHAIN

    def _try_plan(self) -> tuple[PlannedEntry | None, str]:
        try:
            return self._plan(self._candidate, self._answer), ""
        except ConfigError as error:
            return None, str(error)

    @on(RowList.Selected)
    async def _option_chosen(self, event: RowList.Selected[AnswerOption]) -> None:
        event.stop()
        await self.run_action(event.item.action)

    async def action_choose_default(self) -> None:
        """Choose the default, if all answers share one line."""
        await self.run_action(next(option.action for option in self._options() if option.key == self._default_key))

    def action_add(self) -> None:
        """Add it, once all of it was on screen; ask first for what is missing."""
        if self._unanswered:
            self.action_edit()
        elif self._can_add:
            self._decide(Addition.ADD)
        else:
            self.refuse_locked()

    def action_skip(self) -> None:
        self._decide(Addition.SKIP)

    def action_stop(self) -> None:
        self._decide(Addition.STOP)

    def _decide(self, addition: Addition) -> None:
        self.dismiss(AdditionDecision(addition, self._candidate, self._answer))

    def action_secrets(self) -> None:
        """Go on to the next place where secrets may go."""
        places = [place for place in _PLACES if place is not SecretPlace.KEYCHAIN or not self._notes.keychain_problem]
        after = places[(places.index(self._secrets_go) + 1) % len(places)]
        self._answer = replace(self._answer, secrets=after)
        self._show_all()

    def action_edit(self) -> None:
        from mcphost.tui.imports.form import EditServerScreen

        self.app.push_screen(EditServerScreen(self._candidate, self._answer), self._use_edits)

    def _use_edits(self, edits: Edits | None) -> None:
        if edits is not None:
            self._candidate = self._candidate.renamed(edits.name).edited(edits.texts)
            self._answer = replace(self._answer, inputs={**self._answer.inputs, **edits.inputs})
            self._notes = replace(self._notes, problem="")
            self._show_all()

    def action_read(self) -> None:
        """Show all of it, however long it is."""
        from mcphost.tui.kit.reader import ReaderScreen

        def done(to_the_end: bool | None) -> None:
            self._read_in_full = self._read_in_full or bool(to_the_end)
            self._update_hint()

        self.app.push_screen(ReaderScreen(self._title().plain, FactsTable(self._all_facts).text), done)

    def action_page(self, direction: int) -> None:
        self.what.page(direction)


_PLACES: Final = {
    SecretPlace.KEYCHAIN: "into your keychain",
    SecretPlace.ENVIRONMENT: "left out; you set variables before mcphost starts",
    SecretPlace.ENTRY: "copied in plain text (where they are none)",
}


def seen(candidate: ImportCandidate) -> Preview:
    """Return the preview of a server. A huge entry takes a quarter of a second."""
    return candidate.preview(os.environ)


def consent_facts(
    preview: Preview, candidate: ImportCandidate, answer: ImportAnswer, planned: PlannedEntry | None
) -> Iterator[Fact]:
    """List all that is known of a server before it is added; ``planned`` is the entry to write, if it can be."""
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
    """Cut the facts to what a scrolling screen can show; return the number of characters left out, too."""
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
    """Return the values without which the server cannot start: ``variable TOKEN, not set``."""
    entry = replace(candidate.found, table=planned.table, inputs=())
    return tuple(value.text for value in preview_of(entry, os.environ).unset)
