"""Asks for the name of a call that is saved, and shows what is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.config.calls import SavedCall, validated_call
from mcphost.errors import ConfigError
from mcphost.host.saved_calls import StorableArguments
from mcphost.protocol.display import show, show_line
from mcphost.tui.kit.facts_table import Fact, FactsTable, fact
from mcphost.tui.kit.framed import LineScreen
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.messages import SaveCallRequested
from mcphost.tui.kit.modal_screen import HELP_BINDING

NAMED: Final = 6
"""Arguments that are shown or named; more would push the line for the name off a small screen."""

LINE: Final = 60
"""Characters of an argument in such a list."""

ARGUMENT: Final = 300
"""Characters of an argument elsewhere."""


class CallNameScreen(LineScreen[SavedCall | None]):
    """Dismissed with the call as it is to be saved; ``name`` is proposed."""

    HELP = (
        "The call gets this name in calls.toml, for the list of saved calls and for mcphost run.\n"
        "Secrets are left out. A call of the same name is replaced only after a question."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", id="call-name.back", tooltip="Save nothing"),
        HELP_BINDING,
    ]

    def __init__(self, requested: SaveCallRequested, stored: StorableArguments, path: Path, name: str) -> None:
        super().__init__("Save this call", "enter save · esc back", LineInput(name, placeholder="a name"))
        self._requested, self._stored = requested, stored
        self._facts = FactsTable(list(saving_facts(requested, stored, path)))

    def compose(self) -> ComposeResult:
        with self.framed(self._title, self._keys):
            yield self._facts
            yield self._line
            yield self._problem

    async def submit(self, text: str) -> None:
        requested = self._requested
        entry = {
            "name": text.strip(),
            "server": requested.server,
            requested.kind: requested.target,
            "arguments": self._stored.arguments,
        }
        try:
            self.dismiss(validated_call(entry))
        except ConfigError as error:
            self.show_problem(f"✖ {show(str(error), limit=400)}")


def saving_facts(requested: SaveCallRequested, stored: StorableArguments, path: Path) -> Iterator[Fact]:
    """Yield what is written, what is not, and where."""
    yield fact(requested.kind, f"{requested.server} › {show_line(requested.target, 200)}")
    yield Fact("arguments", argument_lines(stored.arguments) or Content.styled("none", "$foreground-muted"))
    if stored.left_out:
        verb = "looks secret and is" if len(stored.left_out) == 1 else "look secret and are"
        words = f"{_named(stored.left_out)} {verb} not written. Add a reference to the file, such as ${{keyring:NAME}}."
        yield fact("left out", words, "$text-warning")
    if requested.unfit:
        yield fact("incomplete", f"{_named(requested.unfit)}: missing or invalid, so not written", "$text-warning")
    yield fact("file", show_line(str(path), 400))


def argument_lines(arguments: Mapping[str, Any]) -> Content:
    """The first arguments, one a line."""
    lines = [
        Content.assemble((f"{show_line(name, 40)}  ", "$foreground-muted"), value_text(value, LINE))
        for name, value in islice(arguments.items(), NAMED)
    ]
    more = len(arguments) - len(lines)
    return Content("\n").join([*lines, *([Content(f"and {more} more")] if more else [])])


def _named(places: Sequence[str]) -> str:
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return ", ".join(show_line(each, 40) for each in places[:NAMED]) + more


def value_text(value: Any, limit: int = ARGUMENT) -> str:
    """An argument on one line, safe to show."""
    return show_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), limit)


def difference_facts(before: SavedCall, after: SavedCall) -> Iterator[Fact]:
    """Each argument that differs, and what is called if that differs."""
    old, new = (f"{each.kind} {each.server} › {show_line(each.target, 120)}" for each in (before, after))
    if old != new:
        yield from _change("calls", old, new)
    for name in {**before.arguments, **after.arguments}:
        old, new = _shown(before.arguments, name), _shown(after.arguments, name)
        if old != new:
            yield from _change(show_line(name, 40), old, new)


def _shown(arguments: Mapping[str, Any], name: str) -> str:
    return value_text(arguments[name]) if name in arguments else "nothing"


def _change(label: str, old: str, new: str) -> Iterator[Fact]:
    yield Fact(label, Content.assemble((old, "$text-error"), " → ", (new, "$text-success")))
