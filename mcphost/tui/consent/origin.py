"""The origin of a question in words: who asks, for which call, where the answer goes, and the time limit."""

from __future__ import annotations

from mcphost.host.consent.questions import Question, wall_clock
from mcphost.host.host import Host
from mcphost.host.server_requests.url_elicitation import UrlElicitation
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line


@dataclass(frozen=True, slots=True)
class QuestionOrigin:
    """All of it is safe to show."""

    server: str
    """The configured name."""
    cause: str
    identity: str
    """The command line or URL that gets the answer."""
    limit: str = ""
    """The time until which it can be answered."""


def origin_of(host: Host, question: Question) -> QuestionOrigin:
    return _origin(host, question.server, cause(host, question), limit_words(question))


def cause(host: Host, question: Question, *, timed: bool = False) -> str:
    """The party that asks, and its call; ``timed`` adds how long that call has been running."""
    number = getattr(question, "call", None)
    if question.origin != question.server:
        return f"by {show_line(question.origin, 20)}"
    if number is None:
        return "unprompted (not part of a call)"
    return f"for {call_words(host.tool_calls.calls.get(number), number, getattr(question, 'tool', ''), timed=timed)}"


def limit_words(question: Question) -> str:
    """The local time until which a question can be answered. No call of that server times out before."""
    until = getattr(question, "until", None)
    return "no time limit" if until is None else f"until {wall_clock(until)}"


def call_words(call: ToolCall | None, number: int, tool: str = "", *, timed: bool = False) -> str:
    """A call in one line, with its state unless it simply runs."""
    name = show_line(call.request.tool if call is not None else tool, 40)
    words = f"call {number}" + (f" · {name}" if name else "")
    if call is None or (call.state is CallState.RUNNING and not timed):
        return words
    return f"{words} · {call.shown_state.value}" + (
        f" {duration_text(call.elapsed)}" if timed and not call.state.ended else ""
    )


def url_elicitation_origin(host: Host, elicitation: UrlElicitation) -> QuestionOrigin:
    call = None if elicitation.call is None else host.tool_calls.calls.get(elicitation.call)
    words = (
        "unprompted (not part of a call)" if elicitation.call is None else f"for {call_words(call, elicitation.call)}"
    )
    limit = "" if elicitation.until is None or elicitation.state.ended else f"until {wall_clock(elicitation.until)}"
    return _origin(host, elicitation.server, words, limit)


def _origin(host: Host, server: str, cause: str, limit: str) -> QuestionOrigin:
    connection = host.servers.get(server)
    where = "" if connection is None else show_line(connection.config.identity, 300)
    return QuestionOrigin(show_line(server, 60), cause, where, limit)
