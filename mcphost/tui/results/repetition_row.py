"""The durations of a repeated call's runs and the changes between its answers, above the last result."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Sparkline, Static

from mcphost.host.tool_calls.repeated_calls import RepeatedCall
from mcphost.protocol.display import duration_text, show_line


class RepetitionRow(Vertical):
    DEFAULT_CSS = """
    RepetitionRow {
        height: auto; padding: 0 1;
        Horizontal { height: 1; }
        Static { height: auto; width: 1fr; }
        .changes { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        .end { max-height: 2; color: $text-warning; display: none; }
        Sparkline { margin-left: 2; }
        Sparkline > .sparkline--max-color, Sparkline > .sparkline--min-color { color: $text-accent; }
    }
    """

    def __init__(self, repeated: RepeatedCall) -> None:
        super().__init__()
        self._repeated = repeated
        self._state = Static(markup=False)
        self._changes, self._end = Static(markup=False, classes="changes"), Static(markup=False, classes="end")
        self._spark = Sparkline()

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._state
            yield self._spark
        yield self._changes
        yield self._end

    def on_mount(self) -> None:
        self.show_runs(self._repeated)

    def on_resize(self) -> None:
        self._fit()

    def show_runs(self, repeated: RepeatedCall) -> None:
        """Show the runs so far."""
        self._repeated = repeated
        self._state.update(state_text(repeated))
        self._changes.update(changes_text(repeated))
        self._end.update(f"ended: {show_line(repeated.end, 300)}")
        self._end.display = bool(repeated.end)
        self._fit()

    def _fit(self) -> None:
        """Give each run a cell, the last ones where there is not room for all."""
        room = self.size.width - 2 - cell_len(state_text(self._repeated).plain) - 2
        shown = [*self._repeated.latencies][-max(room, 1) :]
        self._spark.display = len(shown) > 1
        self._spark.styles.width = len(shown)
        self._spark.data = shown


def state_text(repeated: RepeatedCall) -> Content:
    """``↻ every 5 s · 20 runs · last 12 ms · median 11 ms``."""
    mark = ("■", "$foreground-muted") if repeated.end else ("↻", "$text-success")
    words = [
        repeated.often,
        f"{repeated.runs:,} run{'' if repeated.runs == 1 else 's'}" if repeated.runs else "no run yet",
    ]
    if repeated.latencies:
        words += [f"last {duration_text(repeated.latencies[-1])}", f"median {duration_text(repeated.median)}"]
    return Content.assemble(mark, f" {' · '.join(words)}")


def changes_text(repeated: RepeatedCall) -> Content:
    """``3 of 20 answers differ from the one before: runs 20, 9, 4``, the newest first."""
    if repeated.answers < 2:
        return Content.styled("changes between answers are counted here", "$foreground-muted")
    if not repeated.changes:
        return Content.styled(f"all {repeated.answers:,} answers are the same", "$foreground-muted")
    verb = "differs" if repeated.changes == 1 else "differ"
    runs = ", ".join(f"{run:,}" for run in reversed(repeated.changed_runs))
    counted = f"≠ {repeated.changes:,} of {repeated.answers:,} answers {verb} from the one before"
    return Content.assemble((counted, "$text-warning"), f": run{'' if repeated.changes == 1 else 's'} {runs}")
