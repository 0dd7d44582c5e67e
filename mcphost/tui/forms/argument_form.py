"""A form of text fields: the arguments of a prompt, or the variables of a template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import DescendantFocus
from textual.message import Message
from textual.widgets import Static

from mcphost.protocol.display import show, show_line
from mcphost.protocol.models.prompts import Completion
from mcphost.tui.kit.inputs import CompletedInput


@dataclass(frozen=True, slots=True)
class TextField:
    """``label`` and ``about`` are as the server wrote them."""

    name: str
    label: str
    about: str = ""
    required: bool = False


class ArgumentForm(VerticalScroll, can_focus=False):
    """Enter goes to the next field, and from the last one posts `Submitted`, which ctrl+r does at once."""

    HELP = (
        "The arguments; * marks what is required. Suggestions come below the field: ↓ ↑ choose one, enter takes it.\n"
        "enter goes to the next field and submits on the last, ctrl+r submits from anywhere; esc goes back."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,ctrl+enter", "submit", "get it", id="arguments.submit", tooltip="Submit the form"),
    ]
    DEFAULT_CSS = """
    ArgumentForm {
        height: 1fr; padding: 0 1; scrollbar-size-vertical: 1;
        & > .label { height: auto; margin: 1 0 0 0; }
        & > CompletedInput { margin: 0 0 0 2; }
        & > .problem { height: auto; padding: 0 2; color: $text-error; display: none; }
        & > .problem.-shown { display: block; }
    }
    """

    class Changed(Message):
        """Something was typed."""

    @dataclass
    class Submitted(Message):
        """The user submitted these values; empty fields are left out."""

        values: Mapping[str, str]

    @dataclass
    class SuggestionsRequested(Message):
        """The field ``name`` has another ``value``; ``context`` holds the values of the other fields."""

        name: str
        value: str
        context: Mapping[str, str]

    def __init__(self, fields: Sequence[TextField], values: Mapping[str, str]) -> None:
        self._fields = fields
        self._inputs = [CompletedInput(each.name, values.get(each.name, ""), _placeholder(each)) for each in fields]
        self._labels = [Static(_label(each), classes="label", markup=False) for each in fields]
        self._problem = Static("", classes="problem", markup=False)
        self._left: CompletedInput | None = None
        super().__init__()

    def compose(self) -> ComposeResult:
        for label, field in zip(self._labels, self._inputs, strict=True):
            yield label
            yield field
        yield self._problem

    @property
    def values(self) -> dict[str, str]:
        """The values of fields that are not empty."""
        return {each.field_name: each.value for each in self._inputs if each.value}

    def focus_first(self) -> None:
        """Focus the first required field that is empty, else the first field."""
        missing = next(self._missing(), None)
        for field in [missing] if missing else self._inputs[:1]:
            field.focus()

    def focus_again(self) -> None:
        """Focus the field from which the form was submitted."""
        if self._left is not None:
            self._left.focus()
        else:
            self.focus_first()

    def suggest(self, name: str, value: str, found: Completion) -> None:
        """Show the suggestions for ``value`` of the field ``name``."""
        for field in self._inputs:
            if field.field_name == name:
                field.suggest(value, found)

    def complain(self, words: str) -> None:
        """Show what is wrong until a field changes; ``words`` are safe to show."""
        self._problem.update(f"▲ {words}")
        self._problem.add_class("-shown")

    def action_submit(self) -> None:
        """Submit, unless a required field is empty."""
        missing = list(self._missing())
        if missing:
            self.complain(f"required: {', '.join(show_line(each.field_name, 60) for each in missing)}")
            missing[0].focus()
        else:
            self._problem.remove_class("-shown")
            self._left = next((each for each in self._inputs if each.has_focus_within), None)
            self.post_message(self.Submitted(self.values))

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Mark the focused field, not by colour alone."""
        for text_field, label, field in zip(self._fields, self._labels, self._inputs, strict=True):
            label.update(_label(text_field, field.input is event.widget))

    @on(CompletedInput.Changed)
    def _changed(self, event: CompletedInput.Changed) -> None:
        event.stop()
        self._problem.remove_class("-shown")
        self.post_message(self.Changed())

    @on(CompletedInput.Submitted)
    def _entered(self, event: CompletedInput.Submitted) -> None:
        event.stop()
        at = self._inputs.index(event.field) + 1
        if at < len(self._inputs):
            self._inputs[at].focus()
        else:
            self.action_submit()

    @on(CompletedInput.SuggestionsRequested)
    def _suggestions_requested(self, event: CompletedInput.SuggestionsRequested) -> None:
        event.stop()
        others = {name: value for name, value in self.values.items() if name != event.field.field_name}
        self.post_message(self.SuggestionsRequested(event.field.field_name, event.value, others))

    def _missing(self) -> Iterator[CompletedInput]:
        for text_field, field in zip(self._fields, self._inputs, strict=True):
            if text_field.required and not field.value:
                yield field


def _label(field: TextField, current: bool = False) -> Content:
    title = show_line(field.label, 80)
    name = "" if field.label == field.name else f" {show_line(field.name, 80)}"
    about = f"\n{indent(show(field.about, limit=1_000), '  ')}" if field.about else ""
    mark = " *" if field.required else ""
    start = ("▸ ", "bold $text-accent") if current else "  "
    return Content.assemble(start, (title, "bold"), (mark, "$text-warning"), (name + about, "$foreground-muted"))


def _placeholder(field: TextField) -> str:
    return "required" if field.required else "optional"
