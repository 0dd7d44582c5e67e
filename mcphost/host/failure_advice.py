"""Errors that need more than their own sentence: what happened, and what to do about it, in words for every front."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

from mcphost.config import GivenServer, ServerConfig
from mcphost.errors import (
    AuthorizationRequired,
    CapabilityWithheld,
    ClientCapabilityMissing,
    HttpStatusError,
    McphostError,
    ResourceMissing,
    SessionExpired,
    TaskExpired,
    TaskStopped,
)
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.lifecycle.revisions import TASKS_EXTENSION


@dataclass(frozen=True, slots=True)
class Advice:
    """``headline`` says what happened, ``next_step`` what to do."""

    headline: str
    next_step: str


def advice_on(error: McphostError, server: str, config: ServerConfig | None = None) -> Advice | None:
    """What to say of ``error`` at this server; None where its own sentence will do.

    ``server`` is named as in the configuration; ``config`` says what can be done there (None: that is not known).
    """
    place = _Place(f"[servers.{server}]", server, config)
    return next((advise(error, place) for kind, advise in _ADVICE if isinstance(error, kind)), None)


def next_step(error: McphostError, server: str, config: ServerConfig | None = None) -> str:
    """What to do about ``error``; empty where nothing more is known than its sentence says."""
    advice = advice_on(error, server, config)
    return advice.next_step if advice else ""


def login_command(server: str, config: ServerConfig | None, more: str = "") -> str:
    """The command that signs in to this server; one that no file names goes by its address."""
    called = config.url if isinstance(config, GivenServer) and config.url else server
    return f"mcphost login {shlex.quote(called)}{more}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where it happened."""

    entry: str
    server: str
    config: ServerConfig | None


_SCOPE: Final = r'\bscope="([^"]{1,2000})"'
_HARMLESS: Final = r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,99}"
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


def _status(error: HttpStatusError, place: _Place) -> Advice:
    by_hundred = _BY_HUNDRED.get(error.status // 100, _BY_HUNDRED[5])
    next_step = _BY_STATUS.get(error.status, by_hundred).format(place.entry)
    return Advice(f"HTTP {error.status} came instead of an answer", next_step)


def _sign_in(error: AuthorizationRequired, place: _Place) -> Advice:
    signs_in = place.config is not None and place.config.signs_in
    if error.status == 401:
        with_token = f"Put a token, or a newer one, into {place.entry}: bearer_token_env_var or http_headers."
        sign_in = f"Sign in with: {login_command(place.server, place.config)}"
        return Advice("The server wants a sign-in", f"Nothing was done. {sign_in if signs_in else with_token}")
    more = "".join(f" --scope {scope}" for scope in _scopes(error))
    sign_in = f"Sign in for more with: {login_command(place.server, place.config, more)}"
    with_token = f"The token in {place.entry} must be one that allows this."
    headline = "The server wants more than this sign-in allows"
    return Advice(headline, f"Nothing was done. {sign_in if signs_in else with_token}")


def _scopes(error: AuthorizationRequired) -> list[str]:
    """What the refusal says is needed, as far as it is made of harmless letters: it becomes part of our sentence."""
    named = re.search(_SCOPE, error.www_authenticate)
    return [scope for scope in (named[1].split() if named else []) if re.fullmatch(_HARMLESS, scope)][:20]


_DECLARED_BY: Final = {
    "roots": "roots = true",
    "sampling": "sampling = true",
    "elicitation": 'elicitation = ["form", "url"]',
    TASKS_EXTENSION: f'extensions = ["{TASKS_EXTENSION}"]',
}
"""The line of ``[servers.NAME.capabilities]`` by which each capability is declared."""


_TAKES: Final = {
    "sampling": "a model in [models], or on the command line an answer with text in the file of --answers",
    "elicitation": "somebody who can answer",
    "roots": "somebody who can answer",
}
"""What else than a line of the configuration a capability takes."""


def _client_capability_missing(error: ClientCapabilityMissing, place: _Place) -> Advice:
    headline = "The server needs a capability that mcphost did not declare"
    known = [name for name in _DECLARED_BY if name in error.required]
    off = [name for name in known if not _is_on(name, place.config)]
    if off:
        return Advice(headline, f"Nothing was done. {_how_to_declare(off, place)}")
    if known:
        why = "".join(f"; {name} takes {_TAKES[name]}" for name in known if name in _TAKES)
        return Advice(headline, f"Nothing was done. This run cannot provide it{why}.")
    return Advice(headline, "Nothing was done. mcphost has no such capability, so that this cannot be used from here.")


def _withheld(error: CapabilityWithheld, place: _Place) -> Advice:
    return Advice(
        "This capability is off for the server", f"Nothing was sent. {_how_to_declare([error.capability], place)}"
    )


def _is_on(capability: str, config: ServerConfig | None) -> bool:
    if config is None:
        return False
    given = config.capabilities
    return {
        "roots": given.roots, "sampling": given.sampling, "elicitation": bool(given.elicitation),
    }.get(capability, capability in given.extensions)  # fmt: skip


def _how_to_declare(capabilities: Sequence[str], place: _Place) -> str:
    lines = " and ".join(_DECLARED_BY[name] for name in capabilities if name in _DECLARED_BY)
    return f"To declare it, put {lines} into [servers.{place.server}.capabilities]."


def _always(headline: str, next_step: str) -> Callable[[McphostError, _Place], Advice]:
    return lambda error, place: Advice(headline, next_step)


_ADVICE: Final[tuple[tuple[type[McphostError], Callable[[Any, _Place], Advice]], ...]] = (
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
    (
        TaskExpired,
        _always(
            "The task did not end in time",
            "The server keeps its result no longer, and part of the work may be done. Run it again to go on.",
        ),
    ),
    (ClientCapabilityMissing, _client_capability_missing),
    (CapabilityWithheld, _withheld),
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
