"""Sends a token request, with the proof of a key where the sign-in is bound to one.

Specification: RFC 9449 sections 5 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcphost.auth.dpop import HEADER, NEEDS_NONCE, NONCE_HEADER, WRONG_PROOF, Prover, clock_advice
from mcphost.auth.flow.steps import Flow, HttpAnswer, HttpExchange, Unreachable
from mcphost.auth.flow.token_endpoint import ClientAuthentication, TokenResponse, error_code, read_tokens
from mcphost.errors import SignInFailed
from mcphost.net.origins import host_of

Reader = Callable[[HttpAnswer | Unreachable, HttpExchange], TokenResponse]


def token_request(
    authentication: ClientAuthentication,
    title: str,
    endpoint: str,
    form: Mapping[str, str],
    now: Callable[[], float],
    prover: Prover | None = None,
    *,
    read: Reader = read_tokens,
) -> Flow[TokenResponse]:
    """Ask ``endpoint`` for tokens. Repeats the request once if the server wants its nonce in the proof.

    Raises SignInFailed, also for a token that is not bound although the configuration requires it.
    """
    fetch = _request(authentication, title, endpoint, form, now, prover)
    answer: HttpAnswer | Unreachable = yield fetch
    if _gives_nonce(answer, endpoint, prover) and error_code(answer) == NEEDS_NONCE:
        fetch = _request(authentication, title, endpoint, form, now, prover)
        answer = yield fetch
        _gives_nonce(answer, endpoint, prover)
    try:
        tokens = read(answer, fetch)
    except SignInFailed as error:
        date = None if isinstance(answer, Unreachable) else answer.headers.get("date")
        if error.code == WRONG_PROOF and (advice := clock_advice(date, now())):
            raise SignInFailed(f"{error}; {advice}", code=error.code) from None
        raise
    if tokens.token_type == "DPoP" and prover is None:
        raise SignInFailed(f"{host_of(endpoint)} binds its token to a key, and mcphost offered it none")
    if tokens.token_type == "Bearer" and prover is not None and prover.required:
        raise SignInFailed(
            f"{host_of(endpoint)} gave a token that is bound to no key, where one must be: not used; "
            'if that was changed on purpose, oauth.dpop = "off" allows it'
        )
    return tokens


def _request(
    authentication: ClientAuthentication,
    title: str,
    endpoint: str,
    form: Mapping[str, str],
    now: Callable[[], float],
    prover: Prover | None,
) -> HttpExchange:
    proof = {} if prover is None else {HEADER: prover.proof("POST", endpoint, now())}
    return authentication.request(title, endpoint, form, now(), proof)


def _gives_nonce(answer: HttpAnswer | Unreachable, endpoint: str, prover: Prover | None) -> bool:
    """Remember the nonce in a response; return whether there is one to use."""
    if prover is None or isinstance(answer, Unreachable):
        return False
    return prover.learn(endpoint, answer.headers.get(NONCE_HEADER.lower()))
