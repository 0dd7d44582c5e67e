"""The command palette: finds tools, resources, prompts, skills, servers, calls, conversations, settings and actions.

The actions of every tab are among them, each with its place; choosing one goes there first. A controller adds entries
of its own with a line in ``McphostApp.palette_sources``.

Textual's CommandPalette asks `EntryProvider` for hits; `Palette` keeps what is slow to prepare from one opening to the
next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.command import Command, CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widgets import Input, OptionList
from textual.worker import Worker

from mcphost.host.catalog import CatalogPrompt, CatalogResource, CatalogSkill, CatalogTemplate, CatalogTool
from mcphost.host.connections.connection import Connection
from mcphost.host.host import Host
from mcphost.host.layout import DRAWERS
from mcphost.host.tool_calls.call import ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line
from mcphost.tui.catalog.controller import CatalogController
from mcphost.tui.chat.controller import ChatController
from mcphost.tui.kit.bindings import bindings_of, is_active, keys_of
from mcphost.tui.kit.inputs import LineInput
from mcphost.tui.kit.ranking import Search, SearchIndex, SearchText
from mcphost.tui.kit.rows import Cell, columns, even_if_reversed
from mcphost.tui.main.screen import TAB_NAMES, MainScreen
from mcphost.tui.tools.controller import ToolsController

if TYPE_CHECKING:
    from mcphost.host.chat.transcript_store import SavedChat

MOST: Final = 50
"""Hits that are shown."""

SLICE: Final = 25
"""Entries that are prepared at once, in about half a millisecond. A key takes some twenty rounds of the event loop
until it is painted, and waits for one such slice in each."""

DESCRIPTION: Final = 2_000
"""Characters of a description that are searched."""

RECENT: Final = 5
"""Calls that are listed before anything is typed."""

WIDEST: Final = 110
"""Columns of the palette on a wide screen."""

BESIDE: Final = 6
"""Columns of the palette besides its text: border, padding, scrollbar."""

MOVES: Final = "rows."
"""Prefix of the ids of bindings that only move the cursor."""


PREVIEW: Final = 0.3
"""Seconds that the cursor rests on a theme before it is shown: Textual then styles every widget again."""

PASSED_OVER: Final = frozenset({"escape", "left", "right"})
"""Keys that only mean something where one is."""

ORDER: Final = (
    "tool", "saved", "skill", "resource", "template", "prompt", "server", "conversation", "here", "action", "setting",
    "call",
)  # fmt: skip
"""The kinds of entries: what one may look for, before what one did with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be found. All texts are safe to show."""

    kind: str
    title: str
    act: Callable[[], object]
    about: str = ""
    key: str = ""

    @property
    def order(self) -> int:
        """The place of its kind among entries that match equally well."""
        return ORDER.index(self.kind.partition(" ")[0])

    def row(self, search: Search, width: int) -> Content:
        """One line with the matches marked."""
        words = [search.mark(self.title), Content("  "), search.mark(self.about).stylize_before("$foreground-muted")]
        return columns(
            width,
            [
                Cell(Content("").join(words), "", 12),
                Cell(self.kind, "$foreground-muted", 12, 22, "right"),
                Cell(self.key, "bold $text-accent", 5, 6, "right"),
            ],
        )


Found = tuple[Entry, SearchText]
Sources = Iterable[tuple[str, Iterable[SystemCommand]]]
"""The kinds of entries that controllers add, each with its commands; a kind's first word is in `ORDER`."""
Offered = CatalogTool | CatalogResource | CatalogTemplate | CatalogPrompt | CatalogSkill
Catalog = tuple[Offered, ...]


class Themes(Protocol):
    """The part of the app that changes its theme."""

    @property
    def chosen_theme(self) -> str:
        """The theme in use as it was chosen, or ``auto``."""

    @property
    def theme_is_configured(self) -> bool:
        """True if the configuration names a theme, which is then used at the next start."""

    def choose_theme(self, name: str) -> None:
        """Use a theme, and keep it for the next run."""

    def preview_theme(self, name: str) -> None:
        """Show a theme for now; "" shows the chosen one again."""


@dataclass(frozen=True, slots=True)
class ThemeChoice:
    """Chooses a theme when it is called."""

    name: str
    themes: Themes

    def __call__(self) -> None:
        self.themes.choose_theme(self.name)


class Place(NamedTuple):
    """A part of the main screen, how to go there, and its widgets with actions."""

    name: str
    go: Callable[[], object]
    nodes: tuple[DOMNode, ...]
    is_asleep: bool = False
    """True if its widgets do not know yet what can be done there, since they read nothing while they are hidden."""


class Palette:
    """The entries of ``app``, and the index of what servers offer."""

    def __init__(
        self,
        app: App[Any],
        host: Host,
        main: MainScreen,
        tools: ToolsController,
        catalog: CatalogController,
        chat: ChatController,
        themes: Themes,
    ) -> None:
        self._app, self._host, self._main, self._themes = app, host, main, themes
        self._tools, self._catalog, self._chat = tools, catalog, chat
        self._offered: Catalog | None = None
        self._indexing: Worker[SearchIndex[Entry]] | None = None

    @property
    def row_width(self) -> int:
        """The columns of a hit."""
        return min(self._app.size.width, WIDEST) - BESIDE

    def prepare(self) -> None:
        """Begin to index what the servers offer, unless it is what it was at the last opening."""
        catalog = self._host.catalog
        offered: Catalog = (
            *catalog.tools(),
            *catalog.resources(),
            *catalog.templates(),
            *catalog.prompts(),
            *catalog.skills(),
        )
        if offered != self._offered or self._indexing is None or self._indexing.is_cancelled:
            self._offered = offered
            self._indexing = self._app.run_worker(partial(self._index, offered), group="palette", exclusive=True)

    async def offers(self) -> SearchIndex[Entry]:
        """The index of what the servers offer."""
        return SearchIndex() if self._indexing is None else await self._indexing.wait()

    async def _index(self, offered: Catalog) -> SearchIndex[Entry]:
        """Index in slices between which the screen goes on."""
        index = SearchIndex[Entry]()
        for number, each in enumerate(offered):
            index.add(*self._offer(each))
            if number % SLICE == 0:
                await asyncio.sleep(0)
        for _ in index.prepare():
            await asyncio.sleep(0)
        return index

    def _offer(self, offered: Offered) -> Found:
        if isinstance(offered, CatalogTool):
            tool = offered.tool
            act = partial(self._tools.open_tool, offered)
            return offer_entry("tool", offered.server, tool.name, tool.label, tool.description, act)
        if isinstance(offered, CatalogPrompt):
            prompt = offered.prompt
            act = partial(self._catalog.choose_prompt, offered)
            return offer_entry("prompt", offered.server, prompt.name, prompt.label, prompt.description, act)
        if isinstance(offered, CatalogSkill):
            skill, act = offered.skill, partial(self._catalog.choose_skill, offered)
            return offer_entry("skill", offered.server, skill.uri, skill.label, skill.description, act)
        if isinstance(offered, CatalogResource):
            resource = offered.resource
            open_it = partial(self._catalog.open, offered.server, resource.uri, resource.size)
            return offer_entry("resource", offered.server, resource.uri, resource.label, resource.description, open_it)
        template = offered.template
        act = partial(self._catalog.choose_template, offered)
        return offer_entry("template", offered.server, template.uri_template, template.label, template.description, act)

    def entries(self, screen: Screen[object], sources: Sources) -> Iterator[Found]:
        """All else: what works on ``screen`` first, then servers, calls, other actions and settings.

        Above a dialog there are only its own actions and those that work everywhere.
        """
        here = list(_bindings_here(screen, (self._app, self._main)))
        yield from (self._action("here", node, binding) for node, binding in here)
        if screen is not self._main:
            yield from (self._action("action", self._app, each) for each in _own_bindings(self._app) if each.priority)
            return
        yield from map(self._server, self._host.servers.values())
        calls = list(self._host.tool_calls.calls.values())[::-1]
        yield from map(self._call, calls[:RECENT])
        for node in (self._main, self._app):
            yield from (self._action("action", node, binding) for binding in _own_bindings(node))
        for kind, commands in sources:
            for command in commands:
                yield _entry(kind, show_line(command.title, 120), command.callback, show_line(command.help, 200))
        yield from self._settings()
        yield from self._open_chats()
        yield from map(self._call, calls[RECENT:])
        yield from self._elsewhere({(node, binding.action) for node, binding in here})

    async def saved_chats(self) -> SearchIndex[Entry]:
        """The conversations of earlier runs."""
        index, opened = SearchIndex[Entry](), {chat.id for chat in self._host.chats.all.values()}
        for each in await self._host.chats.saved():
            if each.id not in opened:
                index.add(*self._saved_chat(each))
        return index

    def _action(self, kind: str, node: DOMNode, binding: Binding) -> Found:
        act = partial(self._app.call_later, self._app.run_action, binding.action, node)
        about = "" if binding.tooltip.lower() == binding.description else binding.tooltip
        return _entry(kind, binding.description, act, about, self._key(binding))

    def _elsewhere(self, here: set[tuple[DOMNode, str]]) -> Iterator[Found]:
        """The actions of every other place, named with it."""
        for place in self._places():
            for node in place.nodes:
                for binding in bindings_of(node):
                    works = place.is_asleep or is_active(node, binding)
                    if not works or (node, binding.action) in here or _only_moves(binding):
                        continue
                    act, about, key = partial(self._act_at, place, node, binding), binding.tooltip, self._key(binding)
                    entry = Entry("action", f"{place.name} › {binding.description}", act, about, key)
                    yield entry, SearchText(binding.description, place.name, more=about)

    def _places(self) -> Iterator[Place]:
        main, go = self._main, self._main.action_go
        yield Place("Servers", partial(go, "servers"), (main.servers,))
        if main.agents is not None:
            yield Place("Agents", partial(go, "agents"), (main.agents,))
        yield Place("Tools", partial(go, "tools"), (main.tools.list,))
        if (result := main.tools.result) is not None and result.call is not None:
            opened = partial(main.call_later, self._tools.open_call, result.call.number)
            yield Place("Result", opened, (result,))
        for tab, pane in (("resources", main.resources), ("prompts", main.prompts), ("skills", main.skills)):
            if pane is not None:
                yield Place(TAB_NAMES[tab][0], partial(go, tab), (pane.list, pane))
        if main.chat is not None:
            yield Place("Chat", partial(go, "chat"), (main.chat,))
        yield Place("Calls", partial(go, "calls"), (main.calls,))
        yield Place("Server", partial(go, "card"), (main.card,))
        if main.traffic is not None:
            nodes = (main.traffic, main.traffic.list)
            yield Place("Traffic", partial(main.call_later, main.go_to_traffic), nodes, main.traffic.message is None)
        yield Place("Logs", partial(main.call_later, main.go_to_logs), (main.logs,))

    def _act_at(self, place: Place, node: DOMNode, binding: Binding) -> None:
        place.go()
        self._main.call_later(self._act, place.name, node, binding)  # after what going there has queued

    async def _act(self, place: str, node: DOMNode, binding: Binding) -> None:
        if is_active(node, binding):
            await self._app.run_action(binding.action, node)
        else:
            self._app.notify(f"{place} › {binding.description}: it does not work on what is selected there.")

    def _key(self, binding: Binding) -> str:
        return self._app.get_key_display(Binding(keys_of(binding)[0], "", ""))

    def _server(self, server: Connection) -> Found:
        return _entry("server", server.name, partial(self._show_server, server.name), f"It is {server.state.value}")

    def _show_server(self, name: str) -> None:
        self._main.servers.choose(name)
        self._main.action_go("card")

    def _call(self, call: ToolCall) -> Found:
        request, number = call.request, call.number
        about = f"{call.shown_state.value} · {duration_text(call.elapsed)}"
        entry = Entry(
            f"call {number} · {request.server}",
            show_line(request.tool, 120),
            partial(self._tools.open_call, number),
            about,
        )
        return entry, SearchText(request.tool, f"call {number}", request.server, more=about)

    def _settings(self) -> Iterator[Found]:
        themes, known = self._themes, sorted(self._app.available_themes, key=lambda name: ("mcphost" not in name, name))
        kept = "until mcphost exits: the configuration names another" if themes.theme_is_configured else "kept"
        for name in ("auto", *known):
            about = "as dark or light as the terminal · " if name == "auto" else ""
            about += "the current one" if name == themes.chosen_theme else kept
            yield _entry("setting", f"Theme: {name}", ThemeChoice(name, themes), about)
        for drawer in DRAWERS:
            yield _entry("setting", f"Log panel: {drawer}", partial(self._main.set_log_panel, drawer))
        for name in self._host.config.models:
            called = show_line(name, 60)
            yield _entry("setting", f"Model: {called}", partial(self._chat.use_model, name), "Answers in the chat")

    def _open_chats(self) -> Iterator[Found]:
        for chat in reversed(self._host.chats.all.values()):
            if chat.turns:
                title = show_line(chat.title, 120) or chat.id
                yield _entry("conversation", title, partial(self._chat.resume, chat.id), "open")

    def _saved_chat(self, saved: SavedChat) -> Found:
        title = show_line(saved.title, 120) or saved.id
        return _entry("conversation", title, partial(self._chat.resume, saved.id), f"{saved.changed:%-d %b %Y}")


def _entry(kind: str, title: str, act: Callable[[], object], about: str = "", key: str = "") -> Found:
    words = title.replace("“", "").replace("”", "")  # people do not type them
    more = f"{about} settings" if kind == "setting" else about
    return Entry(kind, title, act, about, key), SearchText(words, more=more)


def offer_entry(
    kind: str, server: str, name: str, label: str, description: str | None, act: Callable[[], object]
) -> Found:
    """An entry for what a server offers, all of whose texts are foreign."""
    about = (description or "")[:DESCRIPTION]
    title, called = show_line(label, 120), "" if label == name else show_line(name, 200)
    shown = "  ".join(filter(None, (called, show_line(about.strip().split("\n", 1)[0], 200))))
    return Entry(f"{kind} · {server}", title, act, shown), SearchText(name, label, server, more=about)


def _own_bindings(node: DOMNode) -> Iterator[Binding]:
    """The actions of a node that can be done now."""
    for binding in type(node).__dict__.get("BINDINGS", ()):
        name, _, _ = binding.action.partition("(")
        if binding.description and node.check_action(name, ()) and binding.action != "command_palette":
            yield binding


def _only_moves(binding: Binding) -> bool:
    return (binding.id or "").startswith(MOVES) or not PASSED_OVER.isdisjoint(keys_of(binding))


def _bindings_here(screen: Screen[object], without: tuple[DOMNode, ...]) -> Iterator[tuple[DOMNode, Binding]]:
    """The actions of the focused widget and what holds it."""
    seen: set[str] = set()
    for node, binding, enabled, _ in screen.active_bindings.values():
        ours = binding.id and binding.description and not binding.system and node not in without
        moves = (binding.id or "").startswith(MOVES) and not binding.show
        if enabled and ours and not moves and binding.action not in seen:
            seen.add(binding.action)
            yield node, binding


class HitList(CommandList):
    """The hits. Textual leaves out ``reverse``, all that marks the chosen one in 16 colours."""

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        style = super().get_visual_style(*component_classes, partial=partial)
        reverse = any(self.get_component_styles(name).text_style.reverse for name in component_classes)
        return style + Style(reverse=True) if reverse else style

    def render_line(self, y: int) -> Strip:
        return even_if_reversed(super().render_line(y))


class QueryInput(CommandInput, LineInput):
    """Lays out only itself when a letter is typed."""


class PaletteScreen(CommandPalette):
    """Textual's palette in mcphost's colours."""

    DEFAULT_CSS = f"""
    PaletteScreen {{
        align-horizontal: center;
        & > #--container {{ width: 100%; max-width: {WIDEST}; margin: 1 0 0 0; background: transparent; }}
        & #--input, & #--input.--list-visible {{
            background: $surface; border: round $border; border-title-color: $text-accent; padding: 0 1;
        }}
        & SearchIcon {{ display: none; }}
        & CommandInput, & CommandInput:focus {{ padding: 0; background: $surface; border: none; height: 1; }}
        & CommandList, & CommandList:focus {{
            background: $surface; border: round $border-blurred; max-height: 18; scrollbar-size-vertical: 1;
        }}
        & CommandList > .option-list--option {{ padding: 0 1; text-style: none; }}
        & CommandList > .option-list--option-highlighted {{
            background: $block-cursor-background; color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }}
    }}
    """

    def __init__(self, *, everything: bool) -> None:
        """``everything``: else only what can be done in the dialog below is found."""
        found = "a tool, resource, prompt, skill, server, call, conversation, setting or action"
        super().__init__(placeholder=f"Find {found}" if everything else "Find an action of this dialog")
        self._everything = everything
        self._drawn_for: int | None = None
        """The width that the hits were drawn for."""
        self._previewing: Themes | None = None
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        for widget in super().compose():
            if isinstance(widget, CommandInput):
                yield QueryInput(placeholder=widget.placeholder, select_on_focus=False)
            else:
                yield HitList() if isinstance(widget, CommandList) else widget

    def on_mount(self) -> None:
        title = "Find" if self._everything else "In this dialog · the rest is found once it is closed"
        self.query_one("#--input").border_title = title
        # Textual gives the colours of a new theme to all screens but its own.
        self.app.theme_changed_signal.subscribe(self, lambda _: self.app.stylesheet.update(self))

    def on_resize(self) -> None:
        """Search again for another width, since Textual draws each hit but once."""
        width = self.app.size.width
        if self._drawn_for not in (None, width):
            line = self.query_one(Input)
            self.post_message(Input.Changed(line, line.value))
        self._drawn_for = width

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the theme under the cursor once the cursor rests; elsewhere the chosen one."""
        act = event.option.hit.command if isinstance(event.option, Command) else None
        if self._rest is not None:
            self._rest.stop()
        if isinstance(act, ThemeChoice):
            self._rest = self.set_timer(PREVIEW, partial(self._preview, act))
        elif self._previewing is not None:
            self._previewing.preview_theme("")
            self._previewing = None

    def _preview(self, choice: ThemeChoice) -> None:
        self._previewing = choice.themes
        choice.themes.preview_theme(choice.name)


class PaletteApp(Protocol):
    """The parts of the app from which the palette takes its entries."""

    @property
    def host(self) -> Host: ...

    @property
    def main(self) -> MainScreen: ...

    @property
    def palette(self) -> Palette: ...

    def palette_sources(self) -> Sources: ...


class EntryProvider(Provider):
    """Finds entries for Textual's palette."""

    async def startup(self) -> None:
        app, parts = self.app, cast("PaletteApp", self.app)
        self._palette = parts.palette
        self._palette.prepare()
        _refreshing: Worker[None] = app.run_worker(parts.host.servers.refresh_lists(), group="refresh-lists")
        self._entries = SearchIndex[Entry]()
        self._first: list[Entry] = []
        for entry, text in self._palette.entries(self.screen, parts.palette_sources()):
            self._first.append(entry)
            self._entries.add(entry, text)
        self._on_main = self.screen is parts.main
        self._saved = SearchIndex[Entry]()
        if self._on_main:
            _: Worker[None] = app.run_worker(self._load_saved, group="palette-chats", exclusive=True)

    async def _load_saved(self) -> None:
        self._saved = await self._palette.saved_chats()

    async def discover(self) -> Hits:
        nothing, width = Search(), self._palette.row_width
        for entry in self._first[:MOST]:
            yield DiscoveryHit(entry.row(nothing, width), entry.act, entry.title)

    async def search(self, query: str) -> Hits:
        search, width = Search(query), self._palette.row_width
        found = [self._entries.best(search, MOST), self._saved.best(search, MOST)]
        if self._on_main:
            found.append((await self._palette.offers()).best(search, MOST))
        letters = search.by_letters
        best_first = sorted(chain(*found), key=lambda hit: (hit[0], hit[1].order))
        for number, (_, entry, only_letters) in enumerate(best_first[:MOST]):
            row = entry.row(letters if only_letters else search, width)
            yield Hit(1 - number / (2 * MOST), row, entry.act, entry.title)
