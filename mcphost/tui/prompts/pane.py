"""The pane for prompts: the list, the form of the arguments, and the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.errors import ServerError
from mcphost.host.catalog import CatalogPrompt
from mcphost.host.host import Host
from mcphost.protocol.display import hidden_count, show, show_line, unindented
from mcphost.protocol.models.prompts import CompletionRef, Prompt, PromptRef
from mcphost.tui.catalog.argument_table import text_arguments
from mcphost.tui.catalog.form_pane import CatalogFormPane, EntryDescription
from mcphost.tui.catalog.list import CatalogList
from mcphost.tui.kit.ranking import SearchText
from mcphost.tui.kit.rows import Cell, columns
from mcphost.tui.results.failure import code_label
from mcphost.tui.results.reading_pane import PaneReading, ReadingView

if TYPE_CHECKING:
    from mcphost.tui.catalog.argument_form import TextArgument

HINT = (
    "The messages of a prompt appear here, in order and with their roles.\n\n"
    "A prompt is a ready-made text for a model. Choose one and press enter; a form asks for its arguments. "
    "Nothing is sent to a model from here."
)


class PromptList(CatalogList[CatalogPrompt]):
    TITLE = "Prompts"
    EMPTY = (
        "No prompts: no ready server offers any.\nA prompt is a ready-made text for a model. c opens the server's card."
    )
    HELP = (
        "The prompts on offer. A filter looks at names, titles, servers and descriptions, and puts the best match\n"
        "first. Opening a prompt asks for its arguments, if it takes any."
    )

    def row(self, entry: CatalogPrompt, width: int) -> Content:
        prompt = entry.prompt
        cells = self.title_cells(prompt.label, prompt.name, prompt.description or "", width)
        cells += self.server_cells(entry, width)
        count = len(prompt.arguments or ())
        word = f"{count} argument{'' if count == 1 else 's'}" if count else ""
        return columns(width, [*cells, Cell(word, "$foreground-muted", 11, 12, "right")])

    def defined(self, entry: CatalogPrompt) -> Prompt:
        return entry.prompt

    def search_text(self, entry: CatalogPrompt) -> SearchText:
        prompt = entry.prompt
        return SearchText(prompt.name, prompt.label, entry.server, more=prompt.description or "")


class PromptsPane(CatalogFormPane[CatalogPrompt]):
    HELP = "The servers' prompts: ready-made texts for a model. Nothing is sent to a model from here."
    KIND = "prompt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "get_again", "get again", id="prompts.again", tooltip="Get it again with these arguments"),
    ]

    def __init__(self, host: Host, *, single: bool = False) -> None:
        self.prompts = PromptList()
        super().__init__(host, self.prompts, ReadingView("Messages", HINT), "get prompt", single=single)

    def show_prompts(self, prompts: Sequence[CatalogPrompt], server: str | None) -> None:
        self.prompts.explain(self.host.servers, server)
        self.prompts.show_entries(prompts, server)

    async def choose(self, entry: CatalogPrompt) -> None:
        """Ask for the arguments; without any, get the prompt."""
        if entry.prompt.arguments:
            await self._open_form(entry)
        else:
            self.close_form()
            self.submit(entry, {})

    def submit(self, entry: CatalogPrompt, values: Mapping[str, str]) -> None:
        server, name = entry.server, entry.prompt.name
        self.start_fetch(PaneReading(server, name), partial(self._get, server, name, values))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._step == "reading" if action == "get_again" else super().check_action(action, parameters)

    async def action_get_again(self) -> None:
        """Submit the form again, or get a prompt without arguments again."""
        if self.entry is not None and self.form.form is not None:
            self.go("form")
            self.form.form.submit()
        elif self.view.reading is not None:
            server, name = self.view.reading.key
            self.start_fetch(PaneReading(server, name), partial(self._get, server, name, {}))

    async def _get(self, server: str, name: str, arguments: Mapping[str, str]) -> None:
        answer = self.host.resources.get_prompt(server, name, arguments)
        await self.show_answer(server, name, answer, PaneReading.with_prompt)

    def show_reading(self, reading: PaneReading) -> None:
        """Show the messages. If the server refused, return to the form and show why."""
        super().show_reading(reading)
        if isinstance(reading.error, ServerError) and self.entry is not None and self.entry.key == reading.key:
            self._complain(reading.server, reading.error)

    def _complain(self, server: str, error: ServerError) -> None:
        form = self.form.form
        if form is None:
            return
        words = f"{show_line(error.message, 200)} ({error.code} · {code_label(error.code)})"
        form.set_errors([("", f"{server} refused: {words}")])
        if self.step == "reading":
            self.go("form")
            form.focus_again()

    def completion_ref(self, entry: CatalogPrompt) -> CompletionRef:
        return PromptRef(entry.prompt.name)

    def description_of(self, entry: CatalogPrompt) -> EntryDescription:
        arguments = text_arguments(_arguments(entry.prompt))
        return EntryDescription(_title(entry), _about(entry.prompt), arguments)

    async def _open_form(self, entry: CatalogPrompt) -> None:
        prompt = entry.prompt
        await self.open_form(entry, _title(entry), _about(prompt), prompt.definition(), _arguments(prompt))


def _title(entry: CatalogPrompt) -> str:
    return f"{entry.server} › {show_line(entry.prompt.name, 60)}"


def _arguments(prompt: Prompt) -> list[TextArgument]:
    from mcphost.tui.catalog.argument_form import TextArgument

    return [
        TextArgument(each.name, each.title or "", each.description or "", each.required)
        for each in prompt.arguments or ()
    ]


def _about(prompt: Prompt) -> Content:
    lines = [Content.styled(show_line(prompt.label, 120), "bold")] if prompt.label != prompt.name else []
    hidden = hidden_count(f"{prompt.name}{prompt.description}")
    if hidden:
        lines.append(Content.styled(f"{hidden} invisible characters, marked ⟨U+…⟩", "bold $text-error"))
    if prompt.description:
        lines.append(Content.styled(show(unindented(prompt.description), limit=2_000), "$foreground-muted"))
    return Content("\n").join(lines)
