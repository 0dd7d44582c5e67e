"""Headings, shortcuts and folds of a list of tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual import on
from textual.app import App, ComposeResult

from mcphost.host.catalog import CatalogTool
from mcphost.host.connections.connection import ServerState
from mcphost.protocol.models.tools import Tool
from mcphost.tui.catalog.list import CatalogList, Heading, Shortcut
from mcphost.tui.tools.pane import ToolList


def offered(server: str, *names: str) -> list[CatalogTool]:
    return [CatalogTool(server, Tool.read({"name": name, "inputSchema": {"type": "object"}})) for name in names]


KETTLE, SHIP = offered("kettle", "brew", "pour"), offered("ship", "hail", "moor")


class Harbour(App[None]):
    """A list of tools, and what it posts."""

    def __init__(self, entries: Sequence[CatalogTool] = (*KETTLE, *SHIP), server: str | None = None) -> None:
        super().__init__()
        self.list, self.entries, self.server = ToolList(), entries, server
        self.folded = list[frozenset[str]]()
        self.chosen, self.servers = 0, list[str]()

    def compose(self) -> ComposeResult:
        yield self.list

    def on_mount(self) -> None:
        self.list.show_entries(self.entries, self.server)
        self.list.rows.focus()

    @on(CatalogList.Folded)
    def _folded(self, event: CatalogList.Folded) -> None:
        self.folded.append(event.folded)

    @on(CatalogList.Chosen)
    def _chosen(self) -> None:
        self.chosen += 1

    @on(CatalogList.ServerChosen)
    def _server_chosen(self, event: CatalogList.ServerChosen) -> None:
        self.servers.append(event.server)

    @property
    def rows(self) -> list[str]:
        """The names in the rows, in order; headings with their mark."""
        return [_word(each) for each in self.list.rows.items]


def _word(row: CatalogTool | Heading | Shortcut[CatalogTool]) -> str:
    if isinstance(row, Heading):
        return f"{'▸' if row.folded else '▾'} {row.group} {row.count}"
    return row.entry.tool.name if isinstance(row, Shortcut) else row.tool.name


async def test_each_server_has_a_heading_and_the_cursor_begins_below_it() -> None:
    app = Harbour()
    async with app.run_test(size=(40, 12)) as pilot:
        assert app.rows == ["▾ kettle 2", "brew", "pour", "▾ ship 2", "hail", "moor"]
        assert app.list.item == KETTLE[0]
        drawn = [app.list.rows.render_line(number).text.rstrip() for number in range(3)]
        assert drawn == ["  ▾ kettle                           2", "▸   brew", "    pour"]
        await pilot.press("up")
        assert not app.list.check_action("definition", ())


async def test_headings_fold_by_keys_and_say_so_once() -> None:
    app = Harbour()
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("down", "left")
        assert app.rows == ["▸ kettle 2", "▾ ship 2", "hail", "moor"]
        await pilot.press("left", "down", "space")
        assert app.rows == ["▸ kettle 2", "▸ ship 2"]
        await pilot.press("right", "up", "enter")
        assert app.rows == ["▾ kettle 2", "brew", "pour", "▾ ship 2", "hail", "moor"]
        everything = frozenset({"kettle", "ship"})
        assert app.folded == [everything - {"ship"}, everything, everything - {"ship"}, frozenset()]
        assert app.chosen == 0


async def test_a_filter_finds_what_is_folded_and_names_its_server() -> None:
    app = Harbour()
    async with app.run_test(size=(40, 12)) as pilot:
        app.list.fold_groups(frozenset({"kettle", "ship"}))
        await pilot.press("slash", "o", "r")
        assert app.rows == ["moor"]
        assert app.list.rows.render_line(0).text.split() == ["▸", "moor", "ship"]
        await pilot.press("enter")
        assert app.chosen == 1


async def test_the_tools_of_one_server_have_no_heading() -> None:
    app = Harbour(KETTLE, "kettle")
    async with app.run_test():
        assert app.rows == ["brew", "pour"]


async def test_pinned_tools_come_first_and_those_used_last_follow() -> None:
    many = offered("ship", *(f"rope-{number}" for number in range(30)))
    app = Harbour([*KETTLE, *many])
    async with app.run_test(size=(40, 60)) as pilot:
        app.list.show_favorites(recent=[many[2].key, KETTLE[1].key, ("gone", "tool"), *(each.key for each in many)])
        assert app.rows[:7] == ["▾ *recent 5", "rope-2", "pour", "rope-0", "rope-1", "rope-3", "▾ kettle 2"]
        await pilot.press("down", "P")
        assert app.rows[:4] == ["▾ *pinned 1", "pour", "▾ *recent 5", "rope-2"]
        assert app.list.rows.render_line(0).text.split() == ["▾", "Pinned", "1"]
        assert app.list.rows.render_line(1).text.split() == ["pour", "kettle", "★"]
        await pilot.press("home", "down", "P")
        assert app.rows[0] == "▾ *recent 5"


async def test_few_tools_need_no_list_of_those_used_last() -> None:
    app = Harbour()
    async with app.run_test(size=(40, 12)):
        app.list.show_favorites(recent=[SHIP[0].key])
        assert app.rows[0] == "▾ kettle 2"


class InState:
    def __init__(self, state: ServerState) -> None:
        self.state = state


async def test_a_server_that_failed_has_a_heading_that_opens_its_card() -> None:
    states = {"kettle": ServerState.RECONNECTING, "ship": ServerState.READY, "pier": ServerState.FAILED}
    states["off"] = ServerState.DISABLED
    servers: dict[str, Any] = {name: InState(state) for name, state in states.items()}
    app = Harbour()
    async with app.run_test(size=(40, 12)) as pilot:
        app.list.explain(servers, None)
        assert app.rows == ["▾ kettle 2", "brew", "pour", "▾ ship 2", "hail", "moor", "▾ pier 0"]
        drawn = [app.list.rows.render_line(number).text.split() for number in (0, 6)]
        assert drawn == [["▾", "kettle", "↻", "reconnecting", "2"], ["pier", "✖", "failed"]]
        await pilot.press("end", "enter")
        assert (app.servers, app.folded) == (["pier"], [])
