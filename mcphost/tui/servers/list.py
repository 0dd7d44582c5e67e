"""The list of servers with their states; keys start, stop and restart them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.tool_calls.tasks import keeps_tasks
from mcphost.lazy_dataclass import dataclass
from mcphost.tui.kit.filtered_rows import FilteredRows
from mcphost.tui.kit.marks import SERVER_MARKS
from mcphost.tui.kit.messages import LogLevelRequested, RelistRequested, SignInRequested
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns

FOLDED = 8
"""Columns below which a row is the mark of its state."""


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server, or None for all of them."""

    connection: Connection | None
    tools: int
    seconds: float = 0.0
    """Until the next retry."""
    signing_in: bool = False


class ServersPane(FilteredRows[ServerRow]):
    HELP = (
        "The configured servers. ● ready  ◐ starting  ↻ retrying  ▲ needs sign-in  ✖ failed  ◌ off.\n"
        "Opening one shows its card."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("S", "sign_in", "sign in", id="servers.sign-in", tooltip="Sign in to it, or show the sign-in"),
        Binding("space", "on_off", "on/off", id="servers.toggle", tooltip="Connect or disconnect this server"),
        Binding("r", "restart", "restart", id="servers.restart", tooltip="Restart it, or retry now"),
        Binding("v", "level", "log level", id="servers.level", tooltip="Set the log level that it sends"),
        Binding("i", "screen.import_servers", "import", id="servers.import", tooltip="Servers of other programs here"),
        Binding("a", "screen.add_server", "add", id="servers.add", tooltip="Add a server"),
        Binding("T", "screen.tasks", "tasks", id="servers.tasks", tooltip="List its tasks"),
        Binding("L", "relist", "list again", id="servers.relist", tooltip="List again what it offers"),
    ]

    DEFAULT_CSS = """
    ServersPane {
        border: round $border-blurred; border-title-color: $foreground-muted;
        &:focus-within { border: round $border; }
    }
    """

    @dataclass
    class Highlighted(Message):
        """The cursor moved to this server, or its card is wanted; None: to all of them."""

        server: str | None

    @dataclass
    class Selected(Message):
        """The user pressed enter on this server; None: on all of them."""

        server: str | None

    def __init__(self) -> None:
        super().__init__(
            lambda row, width: _row(row, width, self.search),
            _search_text,
            empty="No servers configured.",
            examples="name",
        )
        self._described: str | None = None

    def compose(self) -> ComposeResult:
        self.border_title = "Servers"
        yield from super().compose()

    def show_servers(self, servers: Sequence[Connection], now: float, signing_in: Collection[str] = ()) -> None:
        """``now`` is a monotonic time; ``signing_in`` names the servers with a sign-in in progress."""
        rows = [ServerRow(None, sum(len(server.tools) for server in servers))]
        for each in servers:
            left = max(0.0, each.retry_at - now) if each.retry_at else 0.0
            rows.append(ServerRow(each, len(each.tools), left, each.name in signing_in))
        could = self._keys()
        self.show_items(rows, keep=_name)
        if self._keys() != could:
            self.refresh_bindings()

    def _keys(self) -> tuple[bool | None, ...]:
        return tuple(self.check_action(action, ()) for action in ("sign_in", "relist"))

    @property
    def chosen(self) -> str | None:
        """The selected server; None for all."""
        row = self.rows.item
        return _name(row) if row is not None else None

    @property
    def keeping_tasks(self) -> bool:
        return any(row.connection is not None and keeps_tasks(row.connection) for row in self.all)

    def choose(self, server: str) -> None:
        """Select this server, if the filter does not hide it."""
        names = [_name(row) for row in self.rows.items]
        if server in names:
            self.rows.highlighted = names.index(server)

    @property
    def described(self) -> str | None:
        """The server whose card is shown: the selected one, else that of `describe_one`."""
        return self.chosen or self._described

    def describe(self, server: str) -> None:
        """Describe this server, while all are selected."""
        self._described = server
        # A message that another widget sends by this one would stop at that widget.
        self.post_message(self.Highlighted(server).set_sender(self))

    def describe_one(self) -> None:
        """Where all are selected, describe the one that failed, or the only one; all stay selected."""
        servers = [row.connection for row in self.all if row.connection is not None]
        failed = [each for each in servers if each.state is ServerState.FAILED]
        if self.chosen is None and (failed or len(servers) == 1):
            self.describe((failed or servers)[0].name)

    @on(RowList.Highlighted)
    def _highlighted(self, event: RowList.Highlighted[ServerRow]) -> None:
        event.stop()
        if event.item is not None:
            self._described = None
            self.post_message(self.Highlighted(_name(event.item)))
        self.refresh_bindings()

    @on(RowList.Selected)
    def _selected(self, event: RowList.Selected[ServerRow]) -> None:
        event.stop()
        self.post_message(self.Selected(_name(event.item)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A server that needs a sign-in, or is ready, has keys that others do not use."""
        row = self.rows.item
        if action == "relist":
            return row is not None and row.connection is not None and row.connection.ready
        if action == "sign_in":
            return row is not None and _wants_sign_in(row)
        return super().check_action(action, parameters)

    def action_sign_in(self) -> None:
        """Sign in, or show the sign-in that runs."""
        if self.chosen is not None:
            self.post_message(SignInRequested(self.chosen))

    def action_on_off(self) -> None:
        """Start a server that is stopped or failed, else stop it."""
        server = self._connection
        if server is not None:
            off = server.state in (ServerState.STOPPED, ServerState.DISABLED, ServerState.FAILED)
            server.start() if off else server.stop()

    def action_restart(self) -> None:
        """Reconnect, or retry now."""
        if self._connection is not None:
            self._connection.restart()

    def action_relist(self) -> None:
        """List again what the server offers, nothing from the cache."""
        if self._connection is not None:
            self.post_message(RelistRequested(self._connection.name))

    def action_level(self) -> None:
        if self.chosen is not None:
            self.post_message(LogLevelRequested(self.chosen))

    @property
    def _connection(self) -> Connection | None:
        """The selected server; None for all."""
        row = self.rows.item
        return None if row is None else row.connection


def _wants_sign_in(row: ServerRow) -> bool:
    needs = row.connection is not None and row.connection.state is ServerState.NEEDS_SIGN_IN
    return row.signing_in or needs


def _name(row: ServerRow) -> str | None:
    return row.connection.name if row.connection else None


def _search_text(row: ServerRow) -> SearchText:
    return SearchText(row.connection.name, row.connection.state.value) if row.connection else SearchText("all servers")


def _row(row: ServerRow, width: int, search: Search) -> Content:
    if width < FOLDED:
        mark, style = SERVER_MARKS[row.connection.state] if row.connection else ("∑", "$foreground-muted")
        return Content.styled(mark, style)
    if row.connection is None:
        count = str(row.tools)
        total = Cell(count, "$foreground-muted", len(count), len(count), "right")
        return columns(width, [Cell("∑", "$foreground-muted", 1, 1), Cell("all servers", "", 6), total])
    mark, style = SERVER_MARKS[row.connection.state]
    remark = _remark(row)
    if row.signing_in or row.connection.state is ServerState.NEEDS_SIGN_IN:
        remark = next(each for each in (_SIGNING_IN if row.signing_in else _NEEDED) if len(each) < width - 8)
    last = Cell(remark, "$foreground-muted", len(remark), len(remark), "right")
    return columns(width, [Cell(mark, style, 1, 1), Cell(search.mark(row.connection.name), "", 6), last])


_NEEDED, _SIGNING_IN = ("S sign in", "sign in", ""), ("signing in", "signing", "")
"""Remarks on a server, by the room there is."""


def _remark(row: ServerRow) -> str:
    assert row.connection is not None
    words = {
        ServerState.READY: str(row.tools),
        ServerState.RECONNECTING: f"in {row.seconds:.0f} s",
        ServerState.STARTING: "starting",
        ServerState.DISABLED: "disabled",
    }
    return words.get(row.connection.state, row.connection.state.value)


def has_countdown(servers: Sequence[Connection]) -> bool:
    """True if a countdown to a retry is shown."""
    return any(server.retry_at is not None for server in servers)
