"""The top bar: the servers' states, questions that wait, and running calls.

Textual's Header shows a title and a clock; this line gives each part the room that is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.host.tool_calls.repeated_calls import RepeatedCall
from mcphost.protocol.display import duration_text, show_line
from mcphost.tui.kit.marks import SERVER_MARKS

ORDER = (
    ServerState.READY,
    ServerState.STARTING,
    ServerState.RECONNECTING,
    ServerState.NEEDS_SIGN_IN,
    ServerState.FAILED,
    ServerState.STOPPED,
)


LEAST_LEFT = 8
"""Cells that are left of the servers' states where questions and calls need the room."""


class TopBar(Widget):
    DEFAULT_CSS = """
    TopBar { height: 1; dock: top; background: $panel; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = Content("")
        self._middle = Content("")
        self._right = Content("")
        self._asked = Content("")
        self._warnings = 0
        self._configuration_changed = False
        self._run: Sequence[str] = ()

    def show_warnings(self, count: int) -> None:
        """Show how many warnings of servers are in the closed log drawer."""
        if count != self._warnings:
            self._warnings = count
            self.refresh()

    def show_configuration_changed(self, changed: bool) -> None:
        """Show whether the configuration on the disk is another than the one in use."""
        if changed != self._configuration_changed:
            self._configuration_changed = changed
            self.refresh()

    def show_state(
        self,
        servers: Sequence[Connection],
        questions: tuple[int, int],
        oldest: str,
        running: Sequence[ToolCall],
        repeated: Sequence[RepeatedCall],
        signing_in: Sequence[str],
        run: Sequence[str],
    ) -> None:
        """Show how many ``questions`` wait unseen and how many ended so, the ``oldest`` in a few words of foreign text,
        running calls and those that are ``repeated``.

        ``signing_in`` names the servers with a sign-in in progress; ``run`` says about the run what is shown while
        nothing else is, the most important first.
        """
        shown = self._shown
        self._left = Content("  ").join([Content.styled("mcphost", "bold $text-accent"), *_counts(servers)])
        waiting, given_up = questions
        self._middle = _waiting(waiting) or _given_up(given_up)
        self._asked = _waiting(waiting, show_line(oldest, 60)) or _given_up(given_up)
        self._right = (_running(running) if running else _signing_in(signing_in)) or _repeated(repeated)
        self._run = [show_line(words, 40) for words in run if words]
        if self._shown != shown:  # a flood of logs calls this with nothing new thirty times a second
            self.refresh()

    @property
    def _shown(self) -> tuple[str, ...]:
        """All texts; each has always the same style."""
        return (*(each.plain for each in (self._left, self._middle, self._asked, self._right)), *self._run)

    def render(self) -> Content:
        width = self.size.width - 2
        left = self._left + _changed(self._configuration_changed) + _warned(self._warnings)
        right = self._right
        taken = LEAST_LEFT + self._asked.cell_length + right.cell_length
        middle = self._asked if taken + 2 <= width else self._middle
        if not right:
            right = _fitting(self._run, width - left.cell_length - middle.cell_length - 4)
        room = width - middle.cell_length - right.cell_length - 2
        left = left.truncate(max(room, LEAST_LEFT), ellipsis=True)  # the least important of the three
        gap = max(width - left.cell_length - middle.cell_length - right.cell_length, 2)
        return Content.assemble(left, " " * (gap // 2), middle, " " * (gap - gap // 2), right)


def _fitting(words: Sequence[str], width: int) -> Content:
    """As many as there is room for, the first ones first."""
    lines = (" · ".join(words[:count]) for count in range(len(words), 0, -1))
    return Content.styled(next((line for line in lines if cell_len(line) <= width), ""), "$foreground-muted")


def _changed(changed: bool) -> Content:
    return Content.styled("  ▲ configuration changed · ctrl+l" if changed else "", "$text-warning")


def _warned(count: int) -> Content:
    return Content.styled(f"  ▲ {count:,} warning{'' if count == 1 else 's'} · f3" if count else "", "$text-warning")


def _counts(servers: Sequence[Connection]) -> Iterator[Content]:
    counts = Counter(server.state for server in servers)
    for state in ORDER:
        if counts[state]:
            mark, style = SERVER_MARKS[state]
            yield Content.assemble((mark, style), f" {counts[state]} {state.value}")


def _waiting(count: int, oldest: str = "") -> Content:
    if not count:
        return Content("")
    words = f"{count} waiting for you"
    if oldest:
        words = oldest if count == 1 else f"{oldest} · {words}"
    return Content.styled(f" {words} · f2 ", "bold $text-warning reverse")


def _given_up(count: int) -> Content:
    """The number of questions that ended before the user saw them."""
    return Content.styled(f" {count} gave up waiting · f2 " if count else "", "$foreground-muted")


_WORDS = {
    CallState.CANCELLING: "cancelling",
    CallState.SIGNING_IN: "waiting for a sign-in:",
    CallState.VISITING: "waits for a page:",
}


def _signing_in(servers: Sequence[str]) -> Content:
    return Content.styled(f"▲ signing in to {show_line(servers[0], 24)}" if servers else "", "$text-warning")


def _repeated(repeated: Sequence[RepeatedCall]) -> Content:
    if not repeated:
        return Content("")
    more = f" +{len(repeated) - 1}" if len(repeated) > 1 else ""
    last = repeated[-1]
    return Content.styled(f"↻ {show_line(last.request.tool, 24)}{more} · {last.often}", "$text-success")


def _running(running: Sequence[ToolCall]) -> Content:
    sent = [call for call in running if call.state is not CallState.ASKING]
    if not sent:
        return Content("")
    call = sent[-1]
    more = f" +{len(sent) - 1}" if len(sent) > 1 else ""
    name = show_line(call.request.tool, 24)
    word = "waiting for you:" if call.asks else _WORDS.get(call.state, "running")
    return Content.styled(f"◐ {word} {name}{more} · {duration_text(call.elapsed)}", "$text-warning")
