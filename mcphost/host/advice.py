"""Errors that need more than their own sentence: what happened, and what to do about it, in words for every front.

Knows the errors of the wire and of what a server offers. Refuses to know where the words are shown; none of them is
anybody's but ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mcphost.errors import (
    AuthorizationRequired,
    HttpStatusError,
    McphostError,
    ResourceMissing,
    SessionExpired,
    TaskStopped,
)


@dataclass(frozen=True, slots=True)
class Advice:
    """``headline`` says what happened, ``next_step`` what to do."""

    headline: str
    next_step: str


def advice_on(error: McphostError, server: str) -> Advice | None:
    """What to say of ``error`` at this server, named as in the configuration; None where its own sentence will do."""
    return next((advise(error, f"[servers.{server}]") for kind, advise in _ADVICE if isinstance(error, kind)), None)


def next_step(error: McphostError, server: str) -> str:
    """What to do about ``error``; empty where nothing more is known than its sentence says."""
    advice = advice_on(error, server)
    return advice.next_step if advice else ""


_NO_MCP: Final = "There is no MCP server at this address, or none over this transport: check url and transport in {}."
_BY_STATUS: Final = {
    403: "Its server lets nobody in like this: check the token and the headers in {}.",
    404: _NO_MCP,
    405: _NO_MCP,
    408: "It was too slow for the server: try again.",
    410: _NO_MCP,
    413: "It was too large for the server: send less.",
    425: "It was too early for the server: try again.",
    429: "The server wants fewer requests: wait a little, then try again.",
}
_BY_HUNDRED: Final = {
    2: "Something answers at this address, but not as an MCP server does: check url and transport in {}.",
    3: "The server sends whoever asks elsewhere: put the address that is meant into {}.",
    4: "The server did not take what was sent: what it says may tell why, and the traffic shows the request.",
    5: "The server, or a gateway before it, is in trouble. Whether anything was done is not known: try again later.",
}


def _status(error: HttpStatusError, entry: str) -> Advice:
    by_hundred = _BY_HUNDRED.get(error.status // 100, _BY_HUNDRED[5])
    next_step = _BY_STATUS.get(error.status, by_hundred).format(entry)
    return Advice(f"HTTP {error.status} came instead of an answer", next_step)


def _sign_in(error: AuthorizationRequired, entry: str) -> Advice:
    if error.status == 401:
        next_step = (
            f"Nothing was done. Put a token, or a newer one, into {entry}: bearer_token_env_var or http_headers."
        )
        return Advice("The server wants a sign-in", next_step)
    next_step = f"Nothing was done. The token in {entry} must be one that allows this."
    return Advice("The server wants more than this sign-in allows", next_step)


def _always(headline: str, next_step: str) -> Callable[[McphostError, str], Advice]:
    return lambda error, entry: Advice(headline, next_step)


_ADVICE: Final[tuple[tuple[type[McphostError], Callable[[Any, str], Advice]], ...]] = (
    (
        ResourceMissing,
        _always("The server has no such resource", "It may be gone: the list of resources says what there is."),
    ),
    (
        TaskStopped,
        _always(
            "The server stopped the task",
            "There is no result, and part of the work may be done. Its log may say why; run it again to go on.",
        ),
    ),
    (HttpStatusError, _status),
    (
        SessionExpired,
        _always(
            "The server no longer knows this session",
            "Whether it did what was asked is not known. mcphost opens a new session by itself: then run it again.",
        ),
    ),
    (AuthorizationRequired, _sign_in),
)
