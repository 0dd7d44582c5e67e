"""The origin of a question in words: who asks, for which call, where the answer goes, and the time limit."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path

from textual.content import Content

from mcphost.config import with_tilde
from mcphost.host.agents.facts import AgentFacts
from mcphost.host.agents.session import AgentCall, AgentCallState
from mcphost.host.consent.questions import Question, wall_clock
from mcphost.host.host import Host
from mcphost.host.server_requests.url_elicitation import UrlElicitation
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line, show_name
from mcphost.tui.kit.facts_table import Fact, fact


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


def agent_title(agent: AgentFacts, tool: str, width: int) -> Content:
    """Such as ``claude-code (pid 4711 in ~/work) wants to run git:git_push``, in at most ``width`` cells if possible.

    A name that the agent claims is in quotes, and called so.
    """
    claims = "" if agent.given or not agent.claimed else "so it says"
    # In the quotes of JSON nothing that it claims can be taken for the words around it.
    plain = not claims and re.fullmatch(r"[\w.-]{1,40}", agent.label)
    name = agent.label if plain else show_name(agent.label, 40)
    pid = f"pid {agent.pid}" if agent.pid else ""
    folder = f"in {short_folder(agent.folder)}" if agent.folder else ""
    process = " ".join(filter(None, (pid, folder)))
    for about in (", ".join(filter(None, (claims, process))), ", ".join(filter(None, (claims, pid))), claims):
        between = f" ({about}) wants to run " if about else " wants to run "
        title = Content.assemble((name, "bold"), between, (tool, "bold"))
        if title.cell_length <= width:
            break
    return title


def agent_facts(agent: AgentFacts) -> Iterator[Fact]:
    """The agent's names, and its process, in two lines."""
    claimed = " ".join(filter(None, (show_line(agent.claimed, 60), show_line(agent.version, 30))))
    claim = f"it says that it is {claimed}" if claimed else "it has not said what it is"
    named = f"{show_line(agent.given, 60)}, by its entry (--as); {claim}" if agent.given else claim
    yield fact("agent", named)
    process = (show_line(agent.program, 300), f"pid {agent.pid}" if agent.pid else "", short_folder(agent.folder))
    yield fact("runs as", " · ".join(filter(None, process)) or "not known")


def short_folder(folder: str) -> str:
    """The folder with ``~`` for home; empty if it is not known."""
    return show_line(str(with_tilde(Path(folder))), 200) if folder else ""


def agent_call(host: Host, question: Question) -> AgentCall | None:
    """The call of an agent that this question is about; None for any other question."""
    number = getattr(question, "call", None)
    return None if number is None or getattr(question, "agent", None) is None else host.agents.call(number)


def is_limited(call: AgentCall) -> bool:
    """True if the agent waits for a time that still runs."""
    return call.until is not None and call.state is AgentCallState.WAITING and not call.doubted


def is_overdue(call: AgentCall | None) -> bool:
    """True if the agent was answered "not decided yet", while the question stays open."""
    return call is not None and call.state is AgentCallState.OVERDUE


def wait_words(call: AgentCall) -> str:
    """For how long the agent will still wait, as in ``waits 42 s more``."""
    if call.doubted:
        return "may have given up"
    if is_overdue(call):
        return "was asked to call again"
    if call.until is None:
        return "waits without a limit"
    left = max(0, ceil(call.until - time.monotonic()))
    return f"waits {left} s more" if left < 120 else f"waits {left // 60} min more"


def cause(host: Host, question: Question, *, timed: bool = False) -> str:
    """The party that asks, and its call; ``timed`` adds how long that call has been running."""
    number = getattr(question, "call", None)
    agent: AgentFacts | None = getattr(question, "agent", None)
    if agent is not None:
        return f"by {show_line(agent.label, 20)}" + (f" (pid {agent.pid})" if agent.pid else "")
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
