"""Saves calls under a name, lists them, opens their forms, and runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.worker import Worker

from mcphost.config import with_tilde
from mcphost.errors import ConfigError
from mcphost.host.host import Host
from mcphost.protocol.display import show_line
from mcphost.tui.catalog.controller import CatalogController
from mcphost.tui.kit.bindings import hint_key
from mcphost.tui.kit.messages import SaveCallRequested
from mcphost.tui.main.screen import MainScreen
from mcphost.tui.textual_private.corrections import KeyOrder

if TYPE_CHECKING:  # what most runs do without
    from mcphost.config.calls import LoadedCalls, SavedCall
    from mcphost.tui.saved_calls.screen import SavedCallChoice


class SavedCallsController:
    """Acts for ``app`` on ``host``."""

    def __init__(self, app: App[Any], keys: KeyOrder, host: Host, main: MainScreen, catalog: CatalogController) -> None:
        self._app, self._keys, self._host, self._main, self._catalog = app, keys, host, main, catalog
        self._last = ""
        """The name of the call that was saved, opened or run last."""
        self._opened: dict[tuple[str, str], str] = {}
        """The names of the calls that were opened last, by server and target."""

    # Saving.

    def on_save_call_requested(self, event: SaveCallRequested) -> None:
        opening: Worker[None] = self._app.run_worker(self._ask_name(event), group="saved-calls", exclusive=True)
        self._keys.wait_for(opening)

    async def _ask_name(self, event: SaveCallRequested) -> None:
        from mcphost.tui.saved_calls.name import CallNameScreen

        service = self._host.saved_calls
        loaded, path = await service.load(), service.path
        if path is None:
            raise ConfigError("this run keeps no saved calls")
        stored = service.storable(event.arguments, self._schema_of(event), event.references)
        name = self._opened.get((event.server, event.target)) or proposed_name(event.target, loaded)
        self._app.push_screen(CallNameScreen(event, stored, with_tilde(path), name), partial(self._named, loaded))

    def _schema_of(self, event: SaveCallRequested) -> Any:
        """The schema of the arguments, as far as a server offers it now."""
        tools = self._host.catalog.tools(event.server) if event.kind == "tool" else ()
        found = (each.tool.input_schema for each in tools if each.tool.name == event.target)
        return next(found, event.schema or {})

    def _named(self, loaded: LoadedCalls, call: SavedCall | None) -> None:
        if call is not None:
            _: Worker[None] = self._app.run_worker(self._save(call, loaded), group="saved-calls", exclusive=True)

    async def _save(self, call: SavedCall, loaded: LoadedCalls) -> None:
        """Write the call down; one that differs and has its name is replaced after a question."""
        from mcphost.tui.kit.modal_screen import AskScreen
        from mcphost.tui.saved_calls.name import difference_facts

        before, replace = loaded.find(call.name), call.name in loaded.broken
        if before is not None:
            replace, differences = True, list(difference_facts(before, call))
            question = AskScreen(f"Replace the saved call “{call.name}”?", differences, "replace")
            if differences and not await self._app.push_screen_wait(question):
                self._app.notify("Nothing was saved.")
                return
        await self._host.saved_calls.save(call, replace=replace)
        self._remember(call)
        key = hint_key(self._main, "go.saved", "A")
        self._app.notify(f"Saved “{call.name}”. {key} lists saved calls.", markup=False)

    # The list, and the palette.

    def on_main_screen_complete(self, _: MainScreen.Complete) -> None:
        self._load()

    def commands(self) -> Iterator[SystemCommand]:
        """Commands that open the known calls, for the palette; a file that changed is read for the next time."""
        self._load()
        for call in self._host.saved_calls.known.calls:
            yield SystemCommand(call.name, f"{call.server} › {call.target}", partial(self.open, call))

    def _load(self) -> None:
        _: Worker[None] = self._app.run_worker(self._read(), group="read-saved-calls", exclusive=True)

    async def _read(self) -> None:
        with suppress(ConfigError):  # opening the list reports it
            await self._host.saved_calls.load()

    def on_main_screen_saved_calls_requested(self, _: MainScreen.SavedCallsRequested) -> None:
        if len(self._app.screen_stack) == 1:
            opening: Worker[None] = self._app.run_worker(self._list(), group="saved-calls", exclusive=True)
            self._keys.wait_for(opening)

    async def _list(self) -> None:
        from mcphost.tui.saved_calls.screen import SavedCallsScreen

        loaded = await self._host.saved_calls.load()
        self._app.push_screen(SavedCallsScreen(loaded, self._remove, at=self._last), self._chosen)

    def _chosen(self, choice: SavedCallChoice | None) -> None:
        if choice is not None:
            self._app.call_later(self.open if choice.action == "open" else self.run, choice.call)

    async def _remove(self, call: SavedCall) -> LoadedCalls | None:
        """Delete the call after a question; return the calls that are left, or None."""
        from mcphost.tui.kit.facts_table import fact
        from mcphost.tui.kit.modal_screen import AskScreen

        facts = [fact(call.kind, f"{call.server} › {show_line(call.target, 200)}")]
        question = AskScreen(f"Delete the saved call “{call.name}”?", facts, "delete")
        if not await self._app.push_screen_wait(question):
            return None
        await self._host.saved_calls.remove(call.name)
        return await self._host.saved_calls.load()

    # What is done with a call.

    async def open(self, call: SavedCall) -> None:
        """Open the form, filled in; what has no form is read."""
        catalog, opened = self._host.catalog, False
        if call.tool is not None:
            for tool in catalog.tools(call.server):
                if tool.tool.name == call.tool:
                    opened = True
                    self._main.action_go("tools")
                    await self._main.tools.open_tool(tool, call.shown, self._host.saved_calls.references(call))
        elif call.prompt is not None:
            for prompt in catalog.prompts(call.server):
                if prompt.prompt.name == call.prompt:
                    opened = True
                    await self._catalog.choose_prompt(prompt, call.shown)
        else:
            for template in catalog.templates(call.server):
                if call.arguments and template.template.uri_template == call.resource:
                    opened = True
                    await self._catalog.choose_template(template, call.shown)
            if not opened:
                await self.run(call)
                return
        self._opened_or_not(call, opened)

    async def run(self, call: SavedCall) -> None:
        """Run the call; a tool's is asked about as any other."""
        from mcphost.host.saved_calls import resource_uri

        if call.server not in self._host.servers:
            self._opened_or_not(call, False)
        elif call.tool is not None:
            references = self._host.saved_calls.references(call)
            self._main.action_go("tools")
            running = self._host.tool_calls.call(call.server, call.tool, call.shown, references=references)
            await self._main.tools.show_call(running)
        elif call.prompt is not None:
            await self.open(call)
            (await self._main.prompts_pane()).submit_form()
        else:
            self._catalog.open(call.server, resource_uri(call, call.shown))
        self._remember(call)

    def _opened_or_not(self, call: SavedCall, opened: bool) -> None:
        if opened:
            self._remember(call)
            return
        words = f"“{call.server}” offers no {call.kind} “{show_line(call.target, 120)}” now."
        if call.server not in self._host.servers:
            words = f"No server is called “{call.server}” in this configuration."
        self._app.notify(words, severity="warning", markup=False)

    def _remember(self, call: SavedCall) -> None:
        self._last = self._opened[call.server, call.target] = call.name


def proposed_name(target: str, loaded: LoadedCalls) -> str:
    """A free name like that of a tool or a prompt, or like the end of a URI."""
    from mcphost.config.calls import MAX_NAME

    end = target.rstrip("/").rpartition("/")[2] if "://" in target else target
    plain = "".join(letter if letter.isprintable() and letter not in "= {}" else "-" for letter in end)
    base = plain.strip("-")[: MAX_NAME - 4] or "call"
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    return next(name for name in names if loaded.find(name) is None and name not in loaded.broken)
