"""The boxes for typed entries: a line, several lines, JSON."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import MARKS_PER_BASE, show, show_line
from mcphost.protocol.forms.form import ABSENT, FieldError, FieldKind, FormField, parse, render
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.messages import EDITOR_BINDING, EditorRequested
from mcphost.tui.textual_private.corrections import ScrollbarsOnLayout

_MARK = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩")


def conceal(text: str, *, lines: bool = False) -> str:
    """Return ``text`` with a mark for each character that is not safe to show; ``lines`` keeps line ends and tabs."""
    kept = "\n\t" if lines else ""
    if show(text) == text and not _MARK.search(text) and (lines or not re.search(r"[\n\t]", text)):
        return text
    literal = {match.start() for match in _MARK.finditer(text)}
    return "".join(
        f"⟨U+{ord(char):04X}⟩" if (unsafe or index in literal) and char not in kept else char
        for index, (char, unsafe) in enumerate(_marked_characters(text, kept))
    )


def reveal(text: str) -> str:
    """Undo `conceal`."""
    return _MARK.sub(lambda mark: _character(mark[0], int(mark[1], 16)), text)


def escape(text: str) -> str:
    r"""Return JSON ``text`` with ``\u202e`` for each character not safe to show; still the same JSON."""
    if show(text) == text:
        return text
    return "".join(_escaped(char) if unsafe else char for char, unsafe in _marked_characters(text, "\n\t"))


def dump(value: Any) -> str:
    """Return ``value`` as indented JSON that is safe to show and to edit."""
    try:
        return escape(json.dumps(value, indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):  # a number with too many digits, or too deep
        return "{}"


def _marked_characters(text: str, kept: str) -> Iterator[tuple[str, bool]]:
    """Yield each character and whether it must be marked; of combining marks, from the fifth on one base."""
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me") else 0
        yield char, char not in kept and (run > MARKS_PER_BASE or char in "\n\t" or show(char) != char)


def _character(mark: str, code: int) -> str:
    return chr(code) if code <= 0x10FFFF else mark


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


TEXT_LINES: Final = (3, 8)
"""The least and greatest height of a box for several lines."""

_NUMBERS: Final = (FieldKind.INTEGER, FieldKind.NUMBER)
_TEXTS: Final = (FieldKind.STRING, FieldKind.TEXT)


@dataclass
class StepAway(Message):
    """The user goes to the next field (``step`` 1) or the previous one (-1); ``entered``: by enter."""

    box: Widget
    step: int
    entered: bool = False


class NeedsLines(Message):
    """A text of several lines was pasted into a box that has only one."""

    def __init__(self, box: LineBox, text: str) -> None:
        super().__init__()
        self.box = box
        self.text = text


def hint(field: FormField, focused: bool = False) -> str:
    """The placeholder: what an empty field means; with more detail if the field is focused (``focused``)."""
    if field.has_blank_default:
        return f"default: {_default_words(field.default)}"
    if field.null_when_empty:
        return "empty: null"
    may_be_empty = field.kind in _TEXTS and not field.rules.shortest
    quotes = ' ("" for empty)' if focused and may_be_empty else ""  # narrow fields would cut more words
    return ("required" if field.required else "optional") + quotes


def _default_words(value: Any) -> str:
    return "empty" if value == "" else "empty list" if value == [] else show_line(json.dumps(value), 40)


def stepped_number(field: FormField, text: str, step: int) -> str | None:
    """Return the number in ``text`` plus ``step``, within the field's range; None at its end."""
    rules = field.rules
    size = abs(rules.multiple_of) or 1 if isinstance(rules.multiple_of, int) else 1
    try:
        number = _typed_number(text)
        target = 0 if number is None else number + step * size
        for bound, end in ((rules.minimum, max), (rules.maximum, min)):
            if bound is not None and math.isfinite(bound):
                target = end(target, bound)
        stepped = str(render(field, target))
        parse(field, stepped)
    except (FieldError, ValueError, OverflowError):
        return None
    return stepped if stepped != text else None


def _typed_number(text: str) -> int | float | None:
    if not text.strip():
        return None
    return int(text) if re.fullmatch(r"\s*[+-]?[0-9]+\s*", text) else float(text)


class LineBox(LineInput):
    """A line of text, or a number that up and down change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "field before", id="form.up", show=False, tooltip="Field before, or one more"),
        Binding("down", "step(1)", "next field", id="form.down", show=False, tooltip="Next field, or one less"),
        Binding("ctrl+t", "reveal", "show it", id="form.reveal", tooltip="Show or hide what is typed here"),
        EDITOR_BINDING,
    ]

    DEFAULT_CSS = """
    LineBox, LineBox.-textual-compact { padding: 0; background: $surface; &:focus { background: $boost; } }
    """

    def __init__(self, field: FormField, entry: Any) -> None:
        self.field = field
        self.initial: str | None = "" if entry is ABSENT else conceal(str(entry))
        super().__init__(self.initial, hint(field), password=field.secret_looking, compact=True)
        self.cursor_blink = False

    @property
    def entry(self) -> Any:
        return reveal(self.value)

    @entry.setter
    def entry(self, entry: Any) -> None:
        self.value = self.initial = "" if entry is ABSENT else conceal(str(entry))

    def height_for(self, width: int) -> int:
        return 1

    def replace_next(self) -> None:
        """Let what is typed next replace the value, once the box has the focus again."""
        self.initial = self.value

    def on_focus(self) -> None:
        """Select what the form filled in, so that typing replaces it; what the user typed is not."""
        self.select_on_focus = self.value == self.initial
        self.placeholder = hint(self.field, focused=True)

    def on_blur(self) -> None:
        self.placeholder = hint(self.field)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "open_editor":  # a secret would be in a file
            return self.field.kind in _TEXTS and not self.field.secret_looking
        return action != "reveal" or self.field.secret_looking

    def action_open_editor(self) -> None:
        self.post_message(EditorRequested(self, _for_editor(self.value), ".md"))

    def take_edited(self, text: str) -> None:
        if "\n" in text:
            self.post_message(NeedsLines(self, reveal(text)))
        else:
            self.value = conceal(reveal(text))
            self.cursor_position = len(self.value)

    def action_reveal(self) -> None:
        self.password = not self.password

    def action_step(self, direction: int) -> None:
        """Change a number by one, or go to another field."""
        if self.field.kind not in _NUMBERS:
            self.post_message(StepAway(self, direction))
        elif (number := stepped_number(self.field, self.value, -direction)) is not None:
            self.value = number
            self.cursor_position = len(number)

    async def action_submit(self) -> None:
        self.post_message(StepAway(self, 1, entered=True))

    def action_paste(self) -> None:
        self._insert_pasted(self.app.clipboard)

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self._insert_pasted(event.text)

    def _insert_pasted(self, pasted: str) -> None:
        pasted = pasted.replace("\r\n", "\n").replace("\r", "\n")
        if self.field.kind not in _TEXTS or self.password or "\n" not in pasted.strip("\n"):
            self.replace(conceal(pasted.strip("\n")), *self.selection)
            return
        start, end = sorted(self.selection)
        self.post_message(NeedsLines(self, reveal(self.value[:start]) + pasted + reveal(self.value[end:])))


def _for_editor(text: str) -> str:
    """The text of a box, whose line ends may be marks, with the marks of all that an editor should not get."""
    return conceal(reveal(text), lines=True)


class SafeArea(TextArea, ScrollbarsOnLayout):
    """A text area that marks invisible characters in pasted text, and can be written in an editor."""

    BINDINGS: ClassVar[list[BindingType]] = [EDITOR_BINDING]
    SUFFIX: ClassVar[str] = ".md"
    """The suffix of the file in an editor."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "open_editor" or not self.read_only

    def action_open_editor(self) -> None:
        self.post_message(EditorRequested(self, self.text, self.SUFFIX))

    def take_edited(self, text: str) -> None:
        self.replace(self._marked(text), (0, 0), self.document.end, maintain_selection_offset=False)

    def action_paste(self) -> None:
        self._insert_pasted(self.app.clipboard)

    async def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        self._insert_pasted(event.text)

    def _insert_pasted(self, pasted: str) -> None:
        text = self._safe(pasted.replace("\r\n", "\n").replace("\r", "\n"))
        self.replace(text, *self.selection, maintain_selection_offset=False)

    def _safe(self, text: str) -> str:
        return conceal(text, lines=True)

    def _marked(self, text: str) -> str:
        """A text that may have marks of `_safe` already, with them."""
        return _for_editor(text)


class LinesBox(SafeArea):
    """Several lines of text; tab leaves the box, and so do up and down at its ends."""

    DEFAULT_CSS = """
    LinesBox, LinesBox.-textual-compact {
        height: auto;
        padding: 0;
        background: $surface;
        &:focus { background: $boost; }
    }
    """

    def __init__(self, field: FormField, entry: Any) -> None:
        self.field = field
        self.initial: str | None = self._shown(entry)
        super().__init__(self.initial, compact=True, highlight_cursor_line=False, placeholder=hint(field))
        self.cursor_blink = False

    @property
    def entry(self) -> Any:
        return reveal(self.text)

    @entry.setter
    def entry(self, entry: Any) -> None:
        self.text = self.initial = self._shown(entry)

    def height_for(self, width: int) -> int:
        """As high as its text, within `TEXT_LINES`."""
        least, most = TEXT_LINES
        width = max(width - 1, 1)
        if self.size.width and self.wrap_width == width:
            return min(max(self.wrapped_document.height, least), most)
        lines = self.text.split("\n", most)[:most]
        needed = sum(max(1, math.ceil(cell_len(line[: most * width]) / width)) for line in lines)
        return min(max(needed, least), most)

    def on_focus(self, event: events.Focus) -> None:
        """Select what the form filled in, as `LineBox` does; the cursor is at its beginning, which is seen then."""
        self.placeholder = hint(self.field, focused=True)
        if self.text == self.initial and not event.from_app_focus:
            self.selection = Selection(self.document.end, (0, 0))

    def on_blur(self) -> None:
        self.placeholder = hint(self.field)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.height_for(width)

    def action_cursor_up(self, select: bool = False) -> None:
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            self.post_message(StepAway(self, -1))
            return
        super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        if not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self.post_message(StepAway(self, 1))
            return
        super().action_cursor_down(select)

    def _shown(self, entry: Any) -> str:
        return "" if entry is ABSENT else self._safe(str(entry))


class JsonArea(SafeArea):
    """Colours JSON line by line, which works because a JSON string never spans lines."""

    SUFFIX = ".json"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"json--key", "json--text", "json--number", "json--word"}

    DEFAULT_CSS = """
    JsonArea {
        & > .json--key { color: $text-accent; }
        & > .json--text { color: $text-success; }
        & > .json--number { color: $text-warning; }
        & > .json--word { color: $text-primary; text-style: bold; }
    }
    """

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        if len(line.plain) < 2000:
            for found in _TOKEN.finditer(line.plain):
                line.stylize(self.get_component_rich_style(f"json--{found.lastgroup}", partial=True), *found.span())
        return line

    def _safe(self, text: str) -> str:
        return escape(text)

    def _marked(self, text: str) -> str:
        return escape(text)


_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?P<text>"(?:[^"\\]|\\.)*"?)'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<word>\b(?:true|false|null)\b)"
)


class JsonBox(JsonArea, LinesBox):
    """A small box for any JSON value."""

    DEFAULT_CSS = LinesBox.DEFAULT_CSS.replace("LinesBox", "JsonBox")  # Textual inherits only the CSS of the first base

    @property
    def entry(self) -> Any:
        return self.text

    @entry.setter
    def entry(self, entry: Any) -> None:
        self.text = self.initial = self._shown(entry)
