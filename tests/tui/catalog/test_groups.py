"""Headings, shortcuts and folds of a list of tools."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import App, ComposeResult

from mcphost.host.catalog import CatalogTool
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
        self.chosen = 0

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
        drawn = [app.list.rows.render_line(number).text.rstrip() for number in range(4)]
        assert drawn == ["  ▾ kettle                           2", "▸   brew", "    pour", drawn[3]]
        await pilot.press("up")
        assert app.list.item is None
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
