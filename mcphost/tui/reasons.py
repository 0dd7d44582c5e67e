"""Who asks a question, where an answer would go, and because of which call, in words.

Knows what the host knows of calls. Refuses to guess: a question without a call came by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcphost.host.asked.pages import Page
from mcphost.host.calls import Call, CallState
from mcphost.host.host import Host
from mcphost.host.questions import Question
from mcphost.host.recipient import sent_to
from mcphost.protocol.display import duration_text, show_line


@dataclass(frozen=True, slots=True)
class Reason:
    """All of it safe to show."""

    server: str
    """The configured name."""
    because: str
    sent_to: str
    """The command line or URL that gets the answer."""


def reason_of(host: Host, question: Question) -> Reason:
    """Why this question is asked, as far as is known now."""
    connection = host.servers.get(question.server)
    where = "" if connection is None else show_line(sent_to(connection.config), 300)
    return Reason(show_line(question.server, 60), because(host, question), where)


def because(host: Host, question: Question, *, timed: bool = False) -> str:
    """Who asks, and for which call; ``timed`` says how long that has been running."""
    number = getattr(question, "call", None)
    if question.origin != question.server:
        return f"by {show_line(question.origin, 20)}"
    if number is None:
        return "by itself, for no call"
    return f"for {call_words(host.calls.get(number), number, getattr(question, 'tool', ''), timed=timed)}"


def call_words(call: Call | None, number: int, tool: str = "", *, timed: bool = False) -> str:
    """A call on a line: which, and where it stands if it does not simply run."""
    name = show_line(call.request.tool if call is not None else tool, 40)
    words = f"call {number}" + (f" · {name}" if name else "")
    if call is None or (call.state is CallState.RUNNING and not timed):
        return words
    return f"{words} · {call.state.value}" + (
        f" {duration_text(call.elapsed)}" if timed and not call.state.ended else ""
    )


def page_reason(host: Host, page: Page) -> Reason:
    """Why a page was opened."""
    connection = host.servers.get(page.server)
    where = "" if connection is None else show_line(sent_to(connection.config), 300)
    call = None if page.call is None else host.calls.get(page.call)
    words = "by itself, for no call" if page.call is None else f"for {call_words(call, page.call)}"
    return Reason(show_line(page.server, 60), words, where)
