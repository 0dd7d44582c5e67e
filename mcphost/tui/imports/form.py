"""The form of a server from elsewhere: its name, what only the user can give, and the texts that were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from mcphost.imports.found import Input
from mcphost.imports.importer import ImportAnswer, ImportCandidate
from mcphost.json_values import KeyPath
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import show_line
from mcphost.tui.forms.schema_form import SchemaForm
from mcphost.tui.kit.framed import FramedScreen

NAME: Final = "name"
"""The field of the server's name."""

LONGEST: Final = 400
"""Characters of a description."""


@dataclass(frozen=True, slots=True)
class Edits:
    """The values that the user wrote into the form of a server."""

    name: str
    inputs: Mapping[str, str] = field(repr=False)
    texts: Mapping[KeyPath, str] = field(repr=False)


class EditServerScreen(FramedScreen[Edits | None]):
    """Dismissed with what was written, or with None if all stays as it was."""

    HELP = (
        "Change what is added; the file where it was found stays as it is. A text may refer to variables: "
        "${NAME}. Secrets that were found are not shown: what is left empty stays."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "drop changes", id="edit-server.back", tooltip="Close without changes"),
    ]

    DEFAULT_CSS = """
    EditServerScreen {
        align: center bottom;
        & > .frame { width: 100%; max-width: 140; height: 85%; }
    }
    """

    def __init__(self, candidate: ImportCandidate, answer: ImportAnswer) -> None:
        super().__init__()
        self._candidate, self._answer = candidate, answer
        self._inputs: dict[str, str] = {}
        """The id of the input behind each of these fields."""
        self._places: dict[str, KeyPath] = {}
        """The path in the entry of each field's text."""
        self._schema = self._made_schema()

    def compose(self) -> ComposeResult:
        title = f"The server {show_line(self._candidate.name, 64)}"
        with self.framed(title, "esc drop changes"):
            yield SchemaForm(submit_label="keep changes")

    async def on_mount(self) -> None:
        form = self.query_one(SchemaForm)
        await form.load(self._schema)
        form.focus_first()

    @on(SchemaForm.Submitted)
    def _submitted(self, event: SchemaForm.Submitted) -> None:
        event.stop()
        written = {key: _text(value) for key, value in event.arguments.items()}
        fields = self._schema["properties"].items()
        defaults = {key: _text(field["default"]) if "default" in field else None for key, field in fields}
        changed = {key: text for key, text in written.items() if text != defaults[key]}
        inputs = {self._inputs[key]: text for key, text in written.items() if key in self._inputs}
        texts = {self._places[key]: text for key, text in changed.items() if key in self._places}
        self.dismiss(Edits(written.get(NAME, self._candidate.name), inputs, texts))

    def _made_schema(self) -> dict[str, Any]:
        properties: dict[str, dict[str, Any]] = {}
        required = [NAME]
        for each in filter(self._answer.takes, self._candidate.found.inputs):
            key = _free(each.id, properties)
            self._inputs[key] = each.id
            properties[key] = self._input_field(each)
            if each.required and "default" not in properties[key] and not self._answer.inputs.get(each.id):
                required.append(key)
        properties[NAME] = {
            "type": "string",
            "description": "What mcphost calls it",
            "default": self._candidate.name,
            "pattern": "^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}$",
        }
        secret = {each.place for each in self._candidate.secrets}
        for place, title, text in _texts(self._candidate.table):
            if "${input:" not in text:
                key = _free(title, properties)
                self._places[key] = place
                properties[key] = _text_field(text, hidden=place in secret)
        return {"type": "object", "properties": properties, "required": required}

    def _input_field(self, asked: Input) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "string", "description": asked.description[:LONGEST]}
        given = self._answer.inputs.get(asked.id)
        if asked.secret:
            made["format"] = "password"
            if given:
                made["description"] = f"{made['description']} (given; left empty, it stays)"
        elif asked.choices:
            made["enum"] = list(asked.choices)
        if not asked.secret and (value := given or asked.default):
            made["default"] = value
        return _list_field(made) if asked.several and not asked.secret else made


def _list_field(text: dict[str, Any]) -> dict[str, Any]:
    """The field of an input with several values: a list of them instead of a text with lines."""
    default = {"default": text["default"].splitlines()} if "default" in text else {}
    return {"type": "array", "items": {"type": "string"}, "description": text["description"], **default}


def _text_field(text: str, *, hidden: bool) -> dict[str, Any]:
    if hidden:
        return {"type": "string", "format": "password", "description": "The one found; left empty, it stays"}
    return {"type": "string", **({"default": text} if text else {})}


def _texts(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, str]]:
    """The texts of an entry that may be edited, with what people call them."""
    for key, title in (("command", "program"), ("url", "address"), ("cwd", "folder")):
        if isinstance(text := table.get(key), str):
            yield (key,), title, text
    args = table.get("args")
    for index, text in enumerate(args if isinstance(args, list | tuple) else ()):
        if isinstance(text, str):
            yield ("args", index), f"argument {index + 1}", text
    for key in ("env", "http_headers"):
        inner = table.get(key)
        for name, text in inner.items() if isinstance(inner, Mapping) else ():
            if isinstance(text, str):
                yield (key, name), name, text


def _free(name: str, taken: Mapping[str, object]) -> str:
    numbered = (f"{name} ({number})" for number in range(2, len(taken) + 4))
    return name if name not in taken and name != NAME else next(each for each in numbered if each not in taken)


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return value if isinstance(value, str) else str(value)
