"""Why a call has no result, in words: what happened, what the other side said, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from mcphost.errors import (
    AuthorizationRequired,
    CapabilityWithheld,
    ClientCapabilityMissing,
    ConnectionLost,
    Declined,
    HttpStatusError,
    InputNotGiven,
    InvalidArguments,
    InvalidResult,
    McphostError,
    MessageTooLarge,
    PastFailure,
    PeerError,
    RequestRefused,
    RequestTimeout,
    ResourceMissing,
    ServerError,
    ServerNotReady,
    SessionExpired,
    TaskExpired,
    TaskStopped,
    UnknownName,
)
from mcphost.host.failure_advice import advice_on
from mcphost.host.tool_calls.call import CallState, ToolCall
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show_line
from mcphost.protocol.models.content import TextContent


@dataclass(frozen=True, slots=True)
class Quote:
    """Foreign text as it came; ``label`` says whose it is. Make it safe before showing it."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """``level`` is ``error``, ``warning`` or ``calm``; all texts but the quotes are mcphost's own."""

    mark: str
    headline: str
    advice: str
    level: str = "error"
    quotes: tuple[Quote, ...] = ()


def failure_of(call: ToolCall) -> Failure | None:
    """Describe the failure of a call; None while it runs and if it succeeded."""
    if call.state is CallState.FAILED:
        return _reported(call)
    if call.state is CallState.CANCELLED:
        return _cancelled(call)
    return None if call.error is None else _explain(call.error, show_line(call.request.server, 40))


REPORTED: Final = 200
"""Characters of a server's own words in a headline; all of them are below it."""

_SEARCHED: Final = 4_000
"""Characters in which the first line is searched."""


def first_line(*texts: str) -> str:
    """The first line that says something, safe to show; empty if none does."""
    lines = (line.strip() for text in texts for line in text[:_SEARCHED].splitlines())
    return next((show_line(line, REPORTED) for line in lines if line), "")


def _reported(call: ToolCall) -> Failure:
    """The tool's own words, named as such: a headline is mcphost's otherwise."""
    content = call.outcome.content if call.outcome is not None else ()
    said = first_line(*(block.text for block in content if isinstance(block, TextContent)))
    return Failure("✖", f"The tool reports: {said}" if said else "The tool reports an error, and no reason", "")


def is_said_whole(call: ToolCall) -> bool:
    """True if the headline of a failure says all that the tool reports."""
    if call.state is not CallState.FAILED or call.outcome is None or len(call.outcome.content) != 1:
        return False
    only = call.outcome.content[0]
    return isinstance(only, TextContent) and len(only.text) <= REPORTED and "\n" not in only.text.strip()


def _explain(error: McphostError, server: str) -> Failure:
    return next(explain(error, server) for kind, explain in _EXPLANATIONS if isinstance(error, kind))


def _cancelled(call: ToolCall) -> Failure:
    if call.sent_at is None:
        return Failure("◌", "Cancelled before it was sent", "Nothing was sent to the server.", "calm")
    if call.request.task is not None and not call.stopping:
        return Failure("◌", "No longer waiting", "The task continues on the server: T lists it.", "calm")
    after = duration_text(call.elapsed)
    return Failure(
        "◌",
        f"Cancelled after {after}",
        "The server was notified, but may have done part of the work already.",
        "calm",
    )


_DISAGREE: Final = "Server and mcphost disagree about the protocol: see the traffic (f4)."
_CODES: Final = {
    -32700: ("parse error", _DISAGREE),
    -32600: ("invalid request", _DISAGREE),
    -32601: ("method not found", "The server does not support this request; it may offer no tools at all."),
    -32602: ("invalid params", "The server rejects the tool or its arguments: compare tab 4 with the tool's schema."),
    -32603: ("internal error", "The server failed internally: its log may say why."),
    -32002: (
        "resource not found",
        "The arguments name something that does not exist: correct them and run it again.",
    ),
    -32042: ("a page must be visited first", "The server's message contains the page's address."),
}
"""The names of the protocol's error codes, and what to do; other codes are a server's own."""
_OWN_CODE: Final = (
    "server-defined error",
    "The code is the server's own: see its message, documentation or log.",
)


def code_label(code: int) -> str:
    """The name of an error code."""
    return _CODES.get(code, _OWN_CODE)[0]


def code_text(error: ServerError) -> str:
    """``Error -32602 · invalid params``."""
    return f"Error {error.code} · {code_label(error.code)}"


def refusal_of(error: ServerError) -> str:
    """A headline from the server's own words."""
    said = first_line(error.message)
    return f"The server refuses: {said}" if said else "The server refuses, and gives no reason"


def _server_error(error: ServerError, server: str) -> Failure:
    _, advice = _CODES.get(error.code, _OWN_CODE)
    quotes = tuple(_error_quotes(error, server))
    return Failure("✖", refusal_of(error), f"{code_text(error)}. {advice}", quotes=quotes)


def _error_quotes(error: ServerError, server: str) -> Iterator[Quote]:
    yield Quote(f"{server} says", error.message or "(nothing)")
    if error.data is not None:
        text = error.data if isinstance(error.data, str) else json.dumps(error.data, ensure_ascii=False)
        yield Quote(f"data from {server}", text)
    if isinstance(error, RequestRefused):
        yield Quote("mcphost sent", error.sent)


def _timeout(error: RequestTimeout, server: str) -> Failure:
    why = "in total" if error.hard else "without an answer or progress"
    setting = "tool_timeout_max_sec" if error.hard else "tool_timeout_sec"
    return Failure(
        "▲",
        f"Timed out: {error.seconds:g} s {why}",
        f"The server was notified. Raise {setting} if the tool needs longer.",
        "warning",
        (Quote("instead", error.instead),) if error.instead else (),
    )


def _declined(error: Declined, server: str) -> Failure:
    rule = f" · {show_line(error.rule, 80)}" if error.rule else ""
    if error.by == "user":
        return Failure("◌", f"Not run: you declined{rule}", "Nothing was sent. Press ctrl+r to be asked again.", "calm")
    if error.by == "mcphost":
        advice = "Nothing was sent. Check the tool as it is now, then run it again."
        return Failure("◌", "Not run: it differs from what was allowed", advice, "warning", (Quote("why", str(error)),))
    return Failure(
        "◌",
        f"Not run: declined by policy{rule}",
        "Nothing was sent. To allow it, change the rule in [policy] or the tool's approval.",
        "warning",
        (Quote("why", str(error)),),
    )


def _input_not_given(error: InputNotGiven, server: str) -> Failure:
    return Failure(
        "◌",
        f"Not finished: {server} did not get what it asked for ({show_line(error.method, 60)})",
        "Nothing more was sent to it. Press ctrl+r to be asked again.",
        "calm",
        (Quote("why", error.reason),),
    )


def _arguments(error: InvalidArguments, server: str) -> Failure:
    lines = (f"{path or 'arguments'}: {problem}" for path, problem in error.problems)
    many = len(error.problems)
    return Failure(
        "✖",
        f"Not sent: the arguments do not match the tool's schema · {many} problem{'' if many == 1 else 's'}",
        "Correct them in the form and run it again.",
        "warning",
        (Quote("problems", "\n".join(lines)),),
    )


def _lost(error: ConnectionLost, server: str) -> Failure:
    code = "" if error.exit_code is None else f" · {_exit(error.exit_code)}"
    quotes = [Quote("what happened", str(error))]
    if error.stderr_tail:
        quotes.append(Quote(f"last stderr lines of {server}", "\n".join(error.stderr_tail)))
    advice = "It is unknown whether the tool finished. Run it again once the server is ready."
    return Failure("✖", f"Connection lost{code}", advice, quotes=tuple(quotes))


def _exit(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"exit code {code}"


def _plain(headline: str, advice: str) -> Callable[[McphostError, str], Failure]:
    def explain(error: McphostError, server: str) -> Failure:
        return Failure("✖", headline, advice, quotes=(Quote("why", str(error)),))

    return explain


def _past(error: McphostError, server: str) -> Failure:
    quotes = (Quote("why", str(error)),)
    return Failure("▲", "This call of an earlier run has no result here", "Run it again for one.", "warning", quotes)


def _advised(error: McphostError, server: str) -> Failure:
    """The advice that is the same on the command line."""
    advice = advice_on(error, server)
    assert advice is not None
    mark, level = ("▲", "warning") if isinstance(error, AuthorizationRequired) else ("✖", "error")
    return Failure(mark, advice.headline, advice.next_step, level, tuple(_quotes(error, server)))


def _quotes(error: McphostError, server: str) -> Iterator[Quote]:
    if isinstance(error, ResourceMissing):
        yield Quote("which", error.uri)
    if isinstance(error, ServerError):
        yield from _error_quotes(error, server)
    elif isinstance(error, AuthorizationRequired):
        if error.reason or (error.held and error.held.problem):
            yield Quote("why", str(error))
        yield Quote(f"{server} asks for", error.www_authenticate or "(nothing)")
    else:
        yield Quote("why", str(error))


_ADVISED: Final = (
    ResourceMissing, ClientCapabilityMissing, CapabilityWithheld, TaskStopped, TaskExpired, HttpStatusError,
    SessionExpired, AuthorizationRequired,
)  # fmt: skip
"""Errors on which the command line gives the same advice."""
_Kinds = type[McphostError] | tuple[type[McphostError], ...]
_EXPLANATIONS: Final[tuple[tuple[_Kinds, Callable[..., Failure]], ...]] = (
    (_ADVISED, _advised),
    (ServerError, _server_error),
    (RequestTimeout, _timeout),
    (Declined, _declined),
    (InputNotGiven, _input_not_given),
    (InvalidArguments, _arguments),
    (ConnectionLost, _lost),
    (MessageTooLarge, _plain("The answer is too large", "Request less, or raise this server's limit in [limits].")),
    (InvalidResult, _plain("The answer is malformed", "The server violates the protocol: see the traffic (f4).")),
    (PeerError, _plain("The server violated the protocol", "The traffic (f4) shows what it sent.")),
    (
        ServerNotReady,
        _plain("Not sent: the server is not ready", "Start it, or open its card to see why it is not."),
    ),
    (
        UnknownName,
        _plain("Not sent: there is no such server or tool", "The server may have changed its tools: see the list."),
    ),
    (PastFailure, _past),
    (McphostError, _plain("No result", "The server's log may say more.")),
)
