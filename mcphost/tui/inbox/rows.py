"""The rows of the inbox: open questions, pages and models' answers that are waited for, and muted servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from mcphost.dataclass import dataclass
from mcphost.host.consent.questions import SamplingQuestion
from mcphost.host.host import Host
from mcphost.protocol.display import age_text, show_line
from mcphost.tui.bridge import OpenQuestion
from mcphost.tui.consent.origin import because, limit_words, page_reason
from mcphost.tui.inbox.question_kinds import kind_of, words_of


class RowKind(Enum):
    """What a row stands for."""

    QUESTION = "question"
    PAGE = "page"
    ANSWER = "answer of a model"
    MUTED = "muted"


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One line of the inbox, safe to show but for ``server``, the configured name. ``number`` is the kind's own."""

    kind: RowKind
    server: str
    number: int
    mark: str
    words: str
    because: str = ""
    age: str = ""
    limit: str = ""
    """Until when it can be answered, or gone on with."""
    by_server: bool = False
    """Does the server ask, and not the user or a model?"""

    @property
    def limited(self) -> bool:
        """Is there a moment after which it is moot?"""
        return self.limit.startswith("until")

    @property
    def key(self) -> tuple[RowKind, str, int]:
        """By which it is found again."""
        return self.kind, self.server, self.number


def rows_of(host: Host, waiting: Iterable[OpenQuestion]) -> Iterator[InboxRow]:
    """All there is, questions first, the oldest first."""
    for each in waiting:
        yield _question(host, each)
    for number, page in host.elicitation.all.items():
        if not page.state.ended:
            reason = page_reason(host, page)
            words = f"page at {show_line(page.address.host, 80)}: {page.state.value}"
            yield InboxRow(RowKind.PAGE, page.server, number, "◐", words, reason.because, limit=reason.limit)
    yield from _answers(host)
    for name in host.servers:
        if host.pending_requests.muted(name):
            words = "all it asks is declined until mcphost exits"
            yield InboxRow(RowKind.MUTED, name, 0, "◌", words)


def _question(host: Host, waiting: OpenQuestion) -> InboxRow:
    question, kind = waiting.question, kind_of(waiting.question)
    mark, words = "?" if kind is None else kind.mark, show_line(words_of(question), 300)
    by_server = question.origin == question.server
    why, age, limit = because(host, question, timed=True), age_text(waiting.age), limit_words(question)
    return InboxRow(RowKind.QUESTION, question.server, waiting.number, mark, words, why, age, limit, by_server)


def _answers(host: Host) -> Iterator[InboxRow]:
    from mcphost.host.sampling.request import SamplingState  # late: it would delay the first picture

    for number, sampling in host.sampling.all.items():
        if sampling.state is SamplingState.STREAMING:
            words = f"{show_line(sampling.model.entry, 40)} is answering · {len(sampling.text):,} characters so far"
            asked = SamplingQuestion(sampling.server, number, sampling.call, sampling.tool)
            yield InboxRow(RowKind.ANSWER, sampling.server, number, "◐", words, because(host, asked, timed=True))
