"""The inbox: open questions, URL elicitations and model answers in progress, withdrawn questions, muted servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len
from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from mcphost.host.agents.facts import AgentFacts
from mcphost.host.consent.questions import SamplingQuestion
from mcphost.host.host import Host
from mcphost.host.server_requests.pending import WithdrawnQuestion
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import age_text, show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import agent_call, cause, limit_words, url_elicitation_origin, wait_words
from mcphost.tui.inbox.question_kinds import kind_of, words_of
from mcphost.tui.kit.framed import ListScreen
from mcphost.tui.kit.messages import AgentMuteToggled, MuteToggled, QuestionsDeclined, WithdrawnRemoved
from mcphost.tui.kit.modal_screen import HELP_BINDING
from mcphost.tui.kit.ranking import Search, SearchText
from mcphost.tui.kit.rows import Cell, RowList, columns


class RowKind(Enum):
    QUESTION = "question"
    FOLDED = "more questions of an agent"
    URL = "page"
    ANSWER = "answer of a model"
    WITHDRAWN = "withdrawn"
    MUTED = "muted"


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A line of the inbox. All but ``server``, the configured name, is safe to show; ``number`` is of its kind."""

    kind: RowKind
    server: str
    number: int
    mark: str
    words: str
    cause: str = ""
    age: str = ""
    limit: str = ""
    """The time until which it can be answered or continued."""
    by_server: bool = False
    """True if the server asked, not the user or a model."""
    agent: tuple[str, int | None] | None = None
    """The label and process of the agent that asked."""
    sessions: tuple[int, ...] = ()
    """The connected sessions of that agent."""
    folded: tuple[InboxRow, ...] = ()
    """The rows that this one stands for."""

    @property
    def questions(self) -> tuple[int, ...]:
        """The numbers of the questions that wait in this row."""
        return tuple(each.number for each in (self.folded or (self,)))

    @property
    def limited(self) -> bool:
        """True if it expires, or the agent that asked may go on."""
        return self.limit.startswith("until") or (bool(self.limit) and self.agent is not None)

    @property
    def key(self) -> tuple[RowKind, str, int]:
        return self.kind, self.server, self.number


def rows_of(host: Host, waiting: Iterable[OpenQuestion]) -> Iterator[InboxRow]:
    """All rows: questions first, oldest first."""
    for each in waiting:
        yield _question(host, each)
    for number, elicitation in host.elicitation.all.items():
        if not elicitation.state.ended:
            reason = url_elicitation_origin(host, elicitation)
            words = f"page at {show_line(elicitation.address.host, 80)}: {elicitation.state.value}"
            yield InboxRow(RowKind.URL, elicitation.server, number, "◐", words, reason.cause, limit=reason.limit)
    yield from _answers(host)
    for withdrawn in host.pending_requests.withdrawn:
        yield _withdrawn(host, withdrawn)
    for name in host.pending_requests.muted_servers:
        words = "muted: declines everything it asks until mcphost exits"
        yield InboxRow(RowKind.MUTED, name, 0, "◌", words)


def _question(host: Host, waiting: OpenQuestion) -> InboxRow:
    question, kind = waiting.question, kind_of(waiting.question)
    mark, words = "?" if kind is None else kind.mark, show_line(words_of(question), 300)
    by_server = question.origin == question.server
    why, age, limit = cause(host, question, timed=True), age_text(waiting.age), limit_words(question)
    if (call := agent_call(host, question)) is not None:
        limit = wait_words(call)
    about = question.server, waiting.number, mark, words, why, age, limit
    agent: AgentFacts | None = getattr(question, "agent", None)
    if agent is None:
        return InboxRow(RowKind.QUESTION, *about, by_server)
    named = agent.label, agent.pid
    sessions = (each.number for each in host.agents.sessions if (each.agent.label, each.agent.pid) == named)
    return InboxRow(RowKind.QUESTION, *about, by_server, (show_line(agent.label, 40), agent.pid), tuple(sessions))


def folded(rows: Iterable[InboxRow], unfolded: Collection[tuple[str, int | None]] = ()) -> list[InboxRow]:
    """The rows with at most `SHOWN_QUESTIONS` of each agent, and one row for its others."""
    shown, others = list[InboxRow](), dict[tuple[str, int | None], list[InboxRow]]()
    counts = Counter[tuple[str, int | None]]()
    place = 0
    for row in rows:
        if row.agent is not None and row.agent not in unfolded:
            counts[row.agent] += 1
            if counts[row.agent] > SHOWN_QUESTIONS:
                others.setdefault(row.agent, []).append(row)
                continue
        shown.append(row)
        place += row.kind is RowKind.QUESTION
    return [*shown[:place], *map(_folded, others.values()), *shown[place:]]


def _folded(rows: Sequence[InboxRow]) -> InboxRow:
    first = rows[0]
    if len(rows) == 1 or first.agent is None:
        return first
    label, pid = first.agent
    words = f"{len(rows):,} more of {label}"
    return replace(
        first, kind=RowKind.FOLDED, server=label, number=pid or 0, mark="⋯", words=words, limit="", folded=tuple(rows)
    )


def _withdrawn(host: Host, withdrawn: WithdrawnQuestion) -> InboxRow:
    question, number = withdrawn.question, withdrawn.number
    words, why = f"{question.about} · {show_line(withdrawn.outcome, 200)}", cause(host, question)
    age = age_text(withdrawn.age)
    return InboxRow(RowKind.WITHDRAWN, question.server, number, "◌", words, why, age, by_server=True)


def _answers(host: Host) -> Iterator[InboxRow]:
    from mcphost.host.sampling.request import SamplingState  # late: the first frame does without it

    for number, sampling in host.sampling.all.items():
        if sampling.state is SamplingState.STREAMING:
            words = f"{show_line(sampling.model.entry, 40)} is answering · {len(sampling.text):,} characters so far"
            asked = SamplingQuestion(sampling.server, number, sampling.call, sampling.tool)
            yield InboxRow(RowKind.ANSWER, sampling.server, number, "◐", words, cause(host, asked, timed=True))


_WAITS: Final = (RowKind.QUESTION, RowKind.FOLDED)

EMPTY: Final = (
    "Nothing waits for you.\nQuestions of your calls open at once. "
    "What servers ask unprompted waits here, and what you put off with p."
)
EMPTY_ROWS: Final = 6
"""Rows of a list that says why it is empty."""
DETAIL_ROWS: Final = 4
"""Rows of the details and the line above them."""
SHOWN_QUESTIONS: Final = 5
"""Questions of one agent that have rows of their own: an agent that asks without end must not hide all others."""
NARROW: Final = 100
"""Columns below which the cause of a question is shown only below the list."""


class InboxScreen(ListScreen[InboxRow, InboxRow | None]):
    """Lists the rows that ``read`` returns; dismissed with the row to open."""

    HELP = (
        "Every question that waits for you, oldest first. Of an agent that asks much, the first few have rows of their "
        "own, and one row stands for the others. ◐ is under way: a page that you opened, an answer that you left. "
        "◌ is over: a question that ended before you answered, and how it ended. Calls do not time out "
        "while a question waits; where a page must be visited in time, the time is beside it."
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "decline", "decline", id="inbox.decline", tooltip="Decline this one"),
        Binding("x", "cancel", "cancel", id="inbox.cancel", tooltip="Close without an answer; remove what is over"),
        Binding(
            "N", "decline_all", "decline all", id="inbox.all", tooltip="Decline all that this server or agent asked"
        ),
        Binding("M", "mute", "mute", id="inbox.mute", tooltip="Decline all that it asks until exit, or listen"),
        Binding("escape,f2", "back", "back", id="inbox.back", tooltip="Close the inbox"),
        HELP_BINDING,
    ]

    DEFAULT_CSS = """
    InboxScreen {
        & > .frame { width: 96%; max-width: 140; max-height: 70%; }
        .details { height: 4; }
    }
    """

    def __init__(self, read: Callable[[], Iterable[InboxRow]]) -> None:
        super().__init__("Inbox", "", EMPTY)
        self._read = read
        self._unfolded: set[tuple[str, int | None]] = set()
        self._widths = widths_of([])

    def row(self, item: InboxRow, width: int) -> Content:
        return inbox_row(item, width, self._widths, self.list.search)

    def search_text(self, item: InboxRow) -> SearchText:
        return SearchText(item.server, item.words, more=item.cause)

    def on_mount(self) -> None:
        self.set_interval(1.0, self.refresh_rows)

    def refresh_rows(self) -> None:
        """Update the rows and their times."""
        rows = folded(self._read(), self._unfolded)
        self._widths = widths_of(rows)
        self.list.show_items(rows, keep=lambda row: row.key)
        waiting = sum(len(row.questions) for row in rows if row.kind in _WAITS)
        self.frame.border_title = f"Inbox · {waiting} waiting for you" if waiting else "Inbox · nothing waits"
        self.fit_height((len(rows) + 1 if rows else EMPTY_ROWS) + DETAIL_ROWS)
        self.show_details()

    @on(RowList.Selected)
    def open_question(self, event: RowList.Selected[InboxRow]) -> None:
        if event.item.kind is RowKind.MUTED:
            self.action_mute()
        elif event.item.kind is RowKind.WITHDRAWN:
            self.app.bell()
        elif event.item.kind is RowKind.FOLDED and event.item.agent is not None:
            self._unfolded.add(event.item.agent)
            self.refresh_rows()
        else:
            self.dismiss(event.item)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only questions can be declined, and only servers muted."""
        row = self.rows.item if self.is_mounted else None
        if action == "cancel" and row is not None and row.kind is RowKind.WITHDRAWN:
            return True
        if action in ("decline", "cancel", "decline_all"):
            return row is not None and row.kind in _WAITS
        mutes = row is not None and (row.by_server or row.kind is RowKind.MUTED or bool(row.sessions))
        return action != "mute" or mutes

    def action_decline(self) -> None:
        if self.rows.item is not None:
            self.post_message(QuestionsDeclined(self.rows.item.questions))

    def action_cancel(self) -> None:
        """Close the question without an answer; remove one that is over."""
        if self.rows.item is not None and self.rows.item.kind is RowKind.WITHDRAWN:
            self.post_message(WithdrawnRemoved(self.rows.item.number))
        elif self.rows.item is not None:
            self.post_message(QuestionsDeclined(self.rows.item.questions, cancelled=True))

    def action_decline_all(self) -> None:
        chosen = self.rows.item
        if chosen is not None:
            rows = [row for row in self.list.all if row.kind in _WAITS]
            by = "server" if chosen.agent is None else "agent"
            same = (row for row in rows if getattr(row, by) == getattr(chosen, by))
            self.post_message(QuestionsDeclined(tuple(number for row in same for number in row.questions)))

    def action_mute(self) -> None:
        """Decline everything the server or the agent asks, or ask the user again."""
        if self.rows.item is not None and self.rows.item.sessions:
            self.post_message(AgentMuteToggled(self.rows.item.sessions, True))
        elif self.rows.item is not None:
            self.post_message(MuteToggled(self.rows.item.server, self.rows.item.kind is not RowKind.MUTED))

    def show_details(self) -> None:
        row = self.rows.item
        self.details.display = row is not None
        if row is not None:
            origin = " · ".join(filter(None, [f"asked {row.cause}" if row.cause else "", row.age, row.limit]))
            self.details.update(
                Content.assemble(f"{show_line(row.server, 60)}: {row.words}", f"\n{origin}" if origin else "")
            )
        self.frame.border_subtitle = _keys(row)
        self.refresh_bindings()


def _keys(row: InboxRow | None) -> str:
    if row is None:
        return "esc back"
    if row.kind is RowKind.MUTED:
        return "M listen again · esc back"
    if row.kind in (RowKind.URL, RowKind.ANSWER):
        return "enter open · esc back"
    if row.kind is RowKind.FOLDED:
        return "enter list them · n decline these · N decline all · M mute · esc back"
    if row.kind is RowKind.WITHDRAWN:
        return "x remove · M mute · esc back"
    mute = " · M mute" if row.by_server or row.sessions else ""
    return f"enter open · n decline · x cancel · N decline all{mute} · esc back"


class ColumnWidths(NamedTuple):
    """The widest texts of the columns."""

    server: int
    words: int
    cause: int
    limit: int
    age: int


def widths_of(rows: Sequence[InboxRow]) -> ColumnWidths:
    """The widths that the columns of these rows need."""
    texts = ((show_line(row.server, 40), row.words, row.cause, row.limit, row.age) for row in rows)
    return ColumnWidths(*(max(map(cell_len, column)) for column in zip(*texts, strict=True))) if rows else NO_WIDTHS


NO_WIDTHS: Final = ColumnWidths(0, 0, 0, 0, 0)


def inbox_row(row: InboxRow, width: int, widest: ColumnWidths, search: Search) -> Content:
    """A row; ``widest`` are the widths of its columns in all rows."""
    wide = width >= NARROW
    why = Cell(search.mark(row.cause), "$foreground-muted", 0, min(60, widest.cause + 3) if wide else 0)
    limit = Cell(row.limit, "$foreground-muted", 0, min(20, widest.limit + 3) if wide else 0)
    age = row.limit if row.limited and not wide else row.age
    over = row.kind is RowKind.WITHDRAWN
    mark, name, words = ("$foreground-muted",) * 3 if over else ("$text-warning", "bold", "")
    return columns(
        width,
        [
            Cell(row.mark, mark, 1, 1),
            Cell(search.mark(show_line(row.server, 40)), name, 6, min(widest.server, 16 if wide else 10)),
            Cell(search.mark(row.words), words, max(12, min(widest.words, width * 2 // 5))),
            why,
            limit,
            Cell(age, "$foreground-muted", 8, max(8, min(14, widest.age) if wide else 17), "right"),
        ],
    )
