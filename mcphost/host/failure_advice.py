"""Errors that need more than their own sentence: what happened, and what to do about it, in words for every front."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

from mcphost.config import ComparedServer, GivenServer, ServerConfig
from mcphost.errors import (
    AuthorizationRequired,
    CapabilityWithheld,
    ClientCapabilityMissing,
    HeldSignIn,
    HttpStatusError,
    McphostError,
    ResourceMissing,
    ServerError,
    SessionExpired,
    TaskExpired,
    TaskStopped,
)
from mcphost.json_values import as_dict
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.challenge import read_challenge
from mcphost.protocol.extensions import SKILLS_EXTENSION, TASKS_EXTENSION
from mcphost.protocol.lifecycle.revisions import MODERN_REVISIONS
from mcphost.protocol.wire.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Advice:
    """``headline`` says what happened, ``next_step`` what to do."""

    headline: str
    next_step: str


def advice_on(error: McphostError, server: str, config: ServerConfig | None = None) -> Advice | None:
    """Advice on ``error`` at this server; None where its own sentence will do.

    ``server`` is named as in the configuration; ``config`` says what can be done there (None: that is not known).
    """
    if isinstance(config, ComparedServer) and config.entry:
        server = config.entry
    place = _Place(f"[servers.{server}]", server, config)
    return next((advise(error, place) for kind, advise in _ADVICE if isinstance(error, kind)), None)


def next_step(error: McphostError, server: str, config: ServerConfig | None = None) -> str:
    """The user's next step after ``error``; empty where its sentence says it all."""
    advice = advice_on(error, server, config)
    era = _era_advice(error, server, config)
    return " ".join(filter(None, (advice.next_step if advice else "", era)))


def _era_advice(error: McphostError, server: str, config: ServerConfig | None) -> str:
    """The setting of ``protocol`` that may help; empty if none does."""
    if error.after_probe:
        setting = _protocol("legacy", server, config)
        return f"It was {error.after_probe}, before this; {setting} leaves that out."
    if not isinstance(error, ServerError):
        return ""
    if error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION and config is not None and config.protocol == "legacy":
        listed = as_dict(error.data).get("supported")
        spoken = [each.version for each in MODERN_REVISIONS if isinstance(listed, list) and each.version in listed]
        return f"It speaks {', '.join(spoken)}: use {_protocol('auto', server, config)}." if spoken else ""
    return older_version_advice(error.message, server, config)


def older_version_advice(text: str, server: str, config: ServerConfig | None) -> str:
    """Advice for a server that says that a modern version lacks something; empty if ``text`` names no version."""
    if config is None or config.protocol != "auto" or not any(each.version in text for each in MODERN_REVISIONS):
        return ""
    return f"If it is the protocol version that lacks this, {_protocol('legacy', server, config)} uses an older one."


def _protocol(era: str, server: str, config: ServerConfig | None) -> str:
    entry = "an entry for it" if isinstance(config, GivenServer) else f"[servers.{server}]"
    return f'protocol = "{era}" in {entry}'


def sign_in_command(refusal: AuthorizationRequired | None, server: str, config: ServerConfig) -> str:
    """The command for the sign-in that a refusal calls for; empty where that would change nothing."""
    from mcphost.auth.ports import obtains_alone  # late: most runs sign in nowhere

    if refusal is None:
        return _login(server, config)
    if obtains_alone(config.oauth) or repeats_sign_in(refusal):
        return ""
    asked = refusal.held.asked if refusal.held else ()
    return _login(server, config, [scope for scope in _scopes(refusal) if scope not in asked])


def _login(server: str, config: ServerConfig, scopes: Sequence[str] = ()) -> str:
    """A server that no file names goes by its address."""
    more = "".join(f" --scope{'=' if each.startswith('-') else ' '}{shlex.quote(each)}" for each in scopes)
    return f"mcphost login {_called(server, config)}{more}"


def _called(server: str, config: ServerConfig) -> str:
    return shlex.quote(config.url if isinstance(config, GivenServer) and config.url else server)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where it happened."""

    entry: str
    server: str
    config: ServerConfig | None


RECENT_SECONDS: Final = 600.0
"""Age of a sign-in, in seconds, below which signing in once more changes nothing."""

MOST_SCOPES: Final = 20
"""Scopes that a command in an advice names."""

_SCOPE: Final = r"[!#-\[\]-~]{1,100}"
_NO_MCP: Final = "There is no MCP server at this address, or none over this transport: check url and transport in {}."
_BY_STATUS: Final = {
    403: "Its server refuses this sign-in: check the token and the headers in {}.",
    404: _NO_MCP,
    405: _NO_MCP,
    408: "It was too slow for the server: try again.",
    410: _NO_MCP,
    413: "It was too large for the server: send less.",
    425: "It was too early for the server: try again.",
    429: "The server wants fewer requests: wait a little, then try again.",
}
_FORBIDDEN: Final = "The server refuses this to everyone or to you: check http_headers, or ask whoever runs it."
"""For a 403 that names no missing scope, if the configuration holds no token to check."""

_BY_HUNDRED: Final = {
    2: "Something answers at this address, but not as an MCP server does: check url and transport in {}.",
    3: "The server sends whoever asks elsewhere: put the address that is meant into {}.",
    4: "The server did not take what was sent: what it says may tell why, and the traffic shows the request.",
    5: "The server, or a gateway before it, is in trouble. Whether anything was done is not known: try again later.",
}


def _status(error: HttpStatusError, place: _Place) -> Advice:
    by_hundred = _BY_HUNDRED.get(error.status // 100, _BY_HUNDRED[5])
    next_step = _BY_STATUS.get(error.status, by_hundred).format(place.entry)
    if error.status == 403 and place.config is not None and place.config.signs_in:
        next_step = _FORBIDDEN
    return Advice(f"HTTP {error.status} came instead of an answer", next_step)


def _sign_in(error: AuthorizationRequired, place: _Place) -> Advice:
    headline = "The server wants a sign-in" if error.status == 401 else "The server wants more than this sign-in allows"
    config = place.config
    signs_in = config is not None and config.signs_in
    next_step = _next_sign_in(error, place.server, config) if config and signs_in else _next_token(error, place)
    return Advice(headline, f"Nothing was done. {next_step}")


def _next_sign_in(error: AuthorizationRequired, server: str, config: ServerConfig) -> str:
    """The sign-in that may help; where the same one was just made, what else may."""
    from mcphost.auth.ports import obtains_alone

    held, named = error.held or HeldSignIn(), _scopes(error)
    if held.proof_refused:
        table = "the oauth of an entry for it" if isinstance(config, GivenServer) else f"[servers.{server}.oauth]"
        keys = f'dpop = "off" in {table}'
        return f"Correct the clock of this machine if it is off. Otherwise ask whoever runs the server, or set {keys}."
    if command := sign_in_command(error, server, config):
        more = " for more" if error.status != 401 or (held.signed_in and " --scope" in command) else ""
        return f"Sign in{more or (' again' if held.signed_in or held.problem else '')} with: {command}"
    if obtains_alone(config.oauth):
        workload = config.oauth.grant == "workload"
        keys = "issuer, assertion and scopes" if workload else "client_id, its secret or key, and scopes"
        return f"mcphost signs in there by itself: check {keys} in [servers.{server}.oauth]."
    asked = f"You signed in for {' '.join(named)}" if named else "You are signed in"
    other = f"mcphost logout {_called(server, config)}, then {_login(server, config)}"
    return f"{asked}, and the server still refuses: ask whoever runs it, or use another account: {other}"


def repeats_sign_in(error: AuthorizationRequired) -> bool:
    """True if the sign-in that this refusal calls for would only repeat the one that was just made."""
    held = error.held
    if held is not None and held.proof_refused:
        return True
    if held is None or not held.signed_in or not set(_scopes(error)).issubset(held.asked):
        return False
    return error.status != 401 or (held.age is not None and held.age <= RECENT_SECONDS)


def _next_token(error: AuthorizationRequired, place: _Place) -> str:
    """Advice on the token for a server to which mcphost does not sign in."""
    config = place.config
    if error.status != 401:
        return f"The token in {place.entry} must be one that allows this."
    if config is None or (config.bearer_token_env_var is None and config.oauth.enabled and not _own_header(config)):
        return f"Put a token, or a newer one, into {place.entry}: bearer_token_env_var or http_headers."
    if config.bearer_token_env_var is not None:
        return f"The server does not take the token in {config.bearer_token_env_var}: put a newer one there."
    if header := _own_header(config):
        return f"The server does not take the Authorization header of {place.entry}: change it in {header}."
    return f"Set oauth.enabled = true in {place.entry} to sign in, or put a token there: bearer_token_env_var."


def _own_header(config: ServerConfig) -> str:
    """The key that sets an Authorization header; empty if none does."""
    tables = {"http_headers": config.http_headers, "env_http_headers": config.env_http_headers}
    return next((key for key, table in tables.items() if "authorization" in map(str.lower, table)), "")


def _scopes(error: AuthorizationRequired) -> list[str]:
    """The scopes that the refusal asks for, if well formed: they become part of a command."""
    named = read_challenge(error.www_authenticate).scopes
    return [scope for scope in named if re.fullmatch(_SCOPE, scope)][:MOST_SCOPES]


_DECLARED_BY: Final = {
    "roots": "roots = true",
    "sampling": "sampling = true",
    "elicitation": 'elicitation = ["form", "url"]',
    TASKS_EXTENSION: f'extensions = ["{TASKS_EXTENSION}"]',
    SKILLS_EXTENSION: f'extensions = ["{TASKS_EXTENSION}", "{SKILLS_EXTENSION}"]',
}
"""The line of ``[servers.NAME.capabilities]`` by which each capability is declared."""


_TAKES: Final = {
    "sampling": "a model in [models], or on the command line an answer with text in the file of --answers",
    "elicitation": "a user who can answer, or --answers",
    "roots": "a folder to share, and a user who can answer",
}
"""Requirements of capabilities besides a line of the configuration."""


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


def _session_expired(error: SessionExpired, place: _Place) -> Advice:
    done = "Nothing was done." if error.refused else "Whether anything was done is not known."
    return Advice("The server no longer knows this session", f"{done} Run it again: that uses a new session.")


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
    (SessionExpired, _session_expired),
    (AuthorizationRequired, _sign_in),
)
