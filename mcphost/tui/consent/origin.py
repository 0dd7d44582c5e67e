"""Who asks a question, where an answer would go, because of which call, and until when, in words."""

from __future__ import annotations

from mcphost.dataclass import dataclass
from mcphost.host.consent.questions import Question, wall_clock
from mcphost.host.host import Host
from mcphost.host.server_requests.url_elicitation import UrlElicitation
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.protocol.display import duration_text, show_line


@dataclass(frozen=True, slots=True)
class QuestionOrigin:
    """All of it safe to show."""

    server: str
    """The configured name."""
    because: str
    identity: str
    """The command line or URL that gets the answer."""
    limit: str = ""
    """Until when it can be answered."""


def reason_of(host: Host, question: Question) -> QuestionOrigin:
    """Why this question is asked, as far as is known now."""
    return _reason(host, question.server, because(host, question), limit_words(question))


def because(host: Host, question: Question, *, timed: bool = False) -> str:
    """Who asks, and for which call; ``timed`` says how long that has been running."""
    number = getattr(question, "call", None)
    if question.origin != question.server:
        return f"by {show_line(question.origin, 20)}"
    if number is None:
        return "by itself, for no call"
    return f"for {call_words(host.tool_calls.calls.get(number), number, getattr(question, 'tool', ''), timed=timed)}"


def limit_words(question: Question) -> str:
    """Until when a question can be answered, by the clock on the wall. No call of that server times out meanwhile."""
    until = getattr(question, "until", None)
    return "no time limit" if until is None else f"until {wall_clock(until)}"


def call_words(call: ToolCall | None, number: int, tool: str = "", *, timed: bool = False) -> str:
    """A call on a line: which, and where it stands if it does not simply run."""
    name = show_line(call.request.tool if call is not None else tool, 40)
    words = f"call {number}" + (f" · {name}" if name else "")
    if call is None or (call.state is CallState.RUNNING and not timed):
        return words
    return f"{words} · {call.shown_state.value}" + (
        f" {duration_text(call.elapsed)}" if timed and not call.state.ended else ""
    )


def page_reason(host: Host, page: UrlElicitation) -> QuestionOrigin:
    """Why a page was opened."""
    call = None if page.call is None else host.tool_calls.calls.get(page.call)
    words = "by itself, for no call" if page.call is None else f"for {call_words(call, page.call)}"
    limit = "" if page.until is None or page.state.ended else f"until {wall_clock(page.until)}"
    return _reason(host, page.server, words, limit)


def _reason(host: Host, server: str, because: str, limit: str) -> QuestionOrigin:
    connection = host.servers.get(server)
    where = "" if connection is None else show_line(connection.config.identity, 300)
    return QuestionOrigin(show_line(server, 60), because, where, limit)
