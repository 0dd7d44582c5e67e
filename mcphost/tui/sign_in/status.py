"""The state of a sign-in for a server's card, and its outcome for its screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from mcphost.errors import ConfigError, Declined, McphostError, SignInFailed
from mcphost.host.connections.connection import Connection, ServerState
from mcphost.host.failure_advice import repeats_sign_in
from mcphost.host.host import Host
from mcphost.host.sign_in.service import SignIn, SignInState
from mcphost.lazy_dataclass import dataclass
from mcphost.protocol.display import duration_text, show, show_line
from mcphost.protocol.host_names import host_in
from mcphost.tui.kit.facts_table import Fact, fact
from mcphost.tui.sign_in.steps import failing

if TYPE_CHECKING:
    from mcphost.auth.ports import SignInExchange, SignInPlan, SignInStatus


@dataclass(frozen=True, slots=True)
class SignInSummary:
    """``status`` is None until it was fetched; ``attempt`` is the latest sign-in of this run."""

    status: SignInStatus | None = None
    attempt: SignIn | None = None

    @property
    def running(self) -> SignIn | None:
        """The attempt that has not ended."""
        return self.attempt if self.attempt is not None and not self.attempt.state.ended else None

    @property
    def signed_in(self) -> bool:
        """True if the user is known to be signed in."""
        return self.status is not None and self.status.signed_in


class SignInStatusCache:
    """Keeps the fetched sign-in status of each server of ``host``."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.statuses: dict[str, SignInStatus] = {}

    def summary_of(self, server: str) -> SignInSummary:
        attempts = [each for each in self._host.sign_ins.all.values() if each.server == server]
        return SignInSummary(self.statuses.get(server), attempts[-1] if attempts else None)


NOT_SIGNED_IN: Final = SignInSummary()


def key_of(connection: Connection, summary: SignInSummary) -> str:
    """The action of the sign-in key for this server: ``sign_in``, ``sign_out``, or ""."""
    if not connection.config.signs_in:
        return ""
    needed = connection.state is ServerState.NEEDS_SIGN_IN or summary.running is not None
    return "sign_in" if needed or not summary.signed_in else "sign_out"


def sign_in_facts(connection: Connection, summary: SignInSummary) -> Iterator[Fact]:
    """Facts for the server's card."""
    if not connection.config.signs_in:
        return
    if summary.running is not None:
        yield fact("sign-in", f"◐ {summary.running.state.value}: S shows it", "$text-warning")
    elif connection.state is ServerState.NEEDS_SIGN_IN:
        yield from _last_try(summary.attempt)
        yield fact("next step", _next_step(connection), "bold $text-warning")
    if summary.status is not None and summary.signed_in:
        words = "yes, but the server still refuses" if connection.state is ServerState.NEEDS_SIGN_IN else "yes"
        yield fact("signed in", words)
        yield from status_facts(summary.status, time.time())
        if key_of(connection, summary) == "sign_out":
            yield fact("", "S signs out · F forgets everything about this server", "$foreground-muted")


def _next_step(connection: Connection) -> str:
    if connection.refusal is not None and repeats_sign_in(connection.refusal):
        return "ask whoever runs the server, or press S to sign in with another account"
    return "press S to sign in"


def _last_try(attempt: SignIn | None) -> Iterator[Fact]:
    if attempt is None:
        return
    if attempt.state is SignInState.FAILED and attempt.error is not None:
        yield fact("last try", show(str(attempt.error), limit=600), "$text-error")
    elif attempt.state is not SignInState.DONE:
        yield fact("last try", attempt.state.value)


MEMORY: Final = "in memory"
"""The first words of `ItemStore.place` for tokens that do not outlast this run."""


def end_facts(sign_in: SignIn, now: Callable[[], float] = time.time) -> Iterator[Fact]:
    if sign_in.state is SignInState.DONE and sign_in.status is not None:
        yield fact("● signed in", f"to {show_line(sign_in.server, 60)}", "bold $text-success")
        yield from status_facts(sign_in.status, now())
    elif sign_in.state is SignInState.FAILED:
        yield from _failed(sign_in)
    elif sign_in.state is SignInState.DECLINED:
        yield fact("◌ declined", _declined(sign_in.error))
        yield fact("so", "no client was registered, no page was opened, nothing was kept")
    else:
        yield fact("◌ cancelled", "nothing of it was kept")


def status_facts(status: SignInStatus, now: float) -> Iterator[Fact]:
    """The facts of a sign-in: issuer, scopes, expiry, place of the tokens. ``now``: seconds since 1970."""
    issuer, resource = host_in(status.issuer), show(status.resource, limit=500)
    yield fact("issuer", f"{issuer.both}, for {resource}" if resource else issuer.both)
    if status.identity:
        yield fact("identity", f"{show_line(status.identity, 60)} · D lists its servers")
    yield fact("granted", _listed(status.scopes) or "the authorization server names no scopes")
    yield from _differences(status)
    yield fact("expires", _lasting(status, now), "$text-warning" if _over(status, now) else "")
    if status.problem:
        yield fact("▲ not renewed", show(status.problem, limit=600), "$text-warning")
    if status.binding:
        yield fact("the token is", status.binding, "$text-warning" if status.binding.startswith("not ") else "")
    yield _kept(status)


def _differences(status: SignInStatus) -> Iterator[Fact]:
    granted, requested = set(status.scopes), set(status.asked)
    if missing := [each for each in status.asked if each not in granted]:
        yield fact("not granted", f"{_listed(missing)}: asked for, and not given", "$text-warning")
    if requested and (more := [each for each in status.scopes if each not in requested]):
        yield fact("more", f"{_listed(more)}: given, though not asked for", "$text-warning")


def _listed(scopes: tuple[str, ...] | list[str]) -> str:
    shown = "  ".join(show_line(each, 80) for each in scopes[:30])
    return shown if len(scopes) <= 30 else f"{shown}  and {len(scopes) - 30} more"


def _over(status: SignInStatus, now: float) -> bool:
    over = status.expires_at is not None and status.expires_at <= now
    return over and (not status.renewable or bool(status.problem))


def _lasting(status: SignInStatus, now: float) -> str:
    renewable = status.renewable and not status.problem
    after = "then renewed automatically" if renewable else "then you sign in again"
    if status.expires_at is None:
        return f"unknown; {after.removeprefix('then ')} when it expires"
    if status.expires_at <= now:
        return "expired; renewed with the next request" if renewable else "expired: sign in again"
    return f"in {duration_text(status.expires_at - now)}, {after}"


def _kept(status: SignInStatus) -> Fact:
    place = show(status.kept_in, limit=400)
    if place.startswith(MEMORY):
        return fact("▲ kept", f"only {place}", "$text-warning")
    return fact("kept", place)


def _declined(error: McphostError | None) -> str:
    if isinstance(error, Declined) and error.by != "user":
        return f"by {error.by}{f': {show_line(error.rule, 200)}' if error.rule else ''}"
    return "by you"


def _failed(sign_in: SignIn) -> Iterator[Fact]:
    error = sign_in.error
    yield fact("✖ failed", show(str(error or "the reason is not known"), limit=1500), "bold $text-error")
    number = failing(sign_in)
    yield fact("where", f"step {number}: enter shows it" if number else _no_step(sign_in.reached))
    blame, advice = _fault(sign_in)
    yield fact("whose fault", blame)
    yield fact("do next", advice)
    yield fact("so", "nothing of it was kept; r tries again")


def _no_step(reached: SignInState) -> str:
    if reached is SignInState.VISITING:
        return "in the browser, or on the way back from it"
    return f"while {reached.value}" if reached is not SignInState.AGREEING else "before anything was asked of you"


def _fault(sign_in: SignIn) -> tuple[str, str]:
    """The party at fault, and what to do."""
    error, number = sign_in.error, failing(sign_in)
    if isinstance(error, ConfigError):
        return "your configuration's", "Correct what it names, and save the file."
    code = error.code if isinstance(error, SignInFailed) else ""
    plan = sign_in.plan
    if plan is not None and plan.identity and number and code not in _OF_PLAIN_SIGN_IN:
        return _of_identity(plan, sign_in.steps[number - 1])
    if code and any(each.local for each in sign_in.steps):
        return _WORKLOAD
    if code in _BY_CODE:
        return _BY_CODE[code]
    if sign_in.reached is SignInState.VISITING:
        return (
            "no one's, or the page's in the browser",
            "Try again, and stay on the page until it says that it is done.",
        )
    return _of_exchange(sign_in, sign_in.steps[number - 1]) if number else (_UNKNOWN, "Look at the steps.")


def _of_identity(plan: SignInPlan, exchange: SignInExchange) -> tuple[str, str]:
    """The party at fault in a sign-in by an identity."""
    host = host_in(exchange.url)
    if exchange.problem:
        return f"no one's, or that of {host.wire}", "Check the network and the address, and try again."
    if host.wire == host_in(plan.identity_issuer).wire:
        return f"the identity provider's, at {host.wire}", "Ask whoever runs it whether you may use this server."
    return f"the authorization server's, at {host.wire}", "Ask whoever runs the server to trust your identity provider."


_OF_PLAIN_SIGN_IN: Final = ("invalid_client", "temporarily_unavailable", "server_error")
"""Codes that mean the same in a sign-in by an identity."""


def _of_exchange(sign_in: SignIn, exchange: SignInExchange) -> tuple[str, str]:
    if exchange.local:
        return "that of this workload's platform, or your configuration's", "Correct the source or its audience."
    host, plan = host_in(exchange.url), sign_in.plan
    signs_in = plan is not None or _asks_issuer(exchange)
    party = "the authorization server's" if signs_in else "the MCP server's"
    whose = f"{party}, at {host.wire}"
    if exchange.problem:
        return f"no one's, or that of {host.wire}", "Check the network and the address, and try again."
    status = exchange.status or 0
    if status >= 500 or status == 429:
        return whose, "It is in trouble: try again later."
    if 200 <= status < 300:
        return whose, "Its answer is invalid: the step shows it. Tell the people who run it."
    return whose, "It refused what was asked: the step shows why. Tell whoever runs it, or check [servers.…oauth]."


def _asks_issuer(exchange: SignInExchange) -> bool:
    return "oauth-protected-resource" not in exchange.url


_UNKNOWN: Final = "not clear from what is known"
_CLIENT: Final = (
    "your configuration's, or the registration's",
    "Check client_id and client_secret of this server; what was registered may be gone there: sign out, try again.",
)
_WORKLOAD: Final = (
    "the authorization server's, or that of this workload's platform",
    "The first line says what they must agree on: tell whoever runs them, or correct [servers.…oauth].",
)
_BY_CODE: Final[Mapping[str, tuple[str, str]]] = {
    "access_denied": (
        "yours, or of your account's rights",
        "The request was declined on the page, or the account may not do this.",
    ),
    "invalid_client": _CLIENT,
    "unauthorized_client": _CLIENT,
    "invalid_scope": ("of what was asked for", "Try again with fewer scopes, or set scopes for this server."),
    "invalid_grant": ("no one's: the code was used up or too old", "Try again."),
    "invalid_dpop_proof": (
        "this machine's clock's, or the authorization server's",
        'Correct the clock if it is off, or set dpop = "off" for this server.',
    ),
    "use_dpop_nonce": (
        "the authorization server's",
        'It does not take its own nonce: set dpop = "off" for this server.',
    ),
    "temporarily_unavailable": ("the authorization server's", "It is in trouble: try again later."),
    "server_error": ("the authorization server's", "It is in trouble: try again later, or tell whoever runs it."),
    "refused": ("the authorization server's", "It does not register clients: ask whoever runs it for a client id."),
}
"""OAuth's error codes in words, RFC 6749 4.1.2.1 and 5.2; ``refused`` comes from registration."""
