"""Puts the token of a server on each request to it, with a proof if the token is bound to a key.

Specification: authorization, token usage; RFC 9449 sections 7 and 9.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx

from mcphost.auth import dpop
from mcphost.auth.session import HEADER, TokenSession
from mcphost.errors import HELD_SIGN_IN
from mcphost.net.origins import origin_of
from mcphost.protocol.challenge import read_challenge


class TokenPresenter(httpx.Auth):
    """The `httpx.Auth` of one server. A configured ``Authorization`` header takes precedence."""

    def __init__(self, session: TokenSession) -> None:
        self._session = session
        self._origin = origin_of(session.url)

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if HEADER in request.headers or origin_of(request.url) != self._origin:
            yield request
            return
        grant, problem = await self._session.grant_to_send(), ""
        may_renew = may_repeat = True
        while True:
            self._session.present(grant, request)
            response = yield request
            given = self._session.learn_nonce(grant, response)
            if response.status_code != 401:
                break
            header = ", ".join(response.headers.get_list("www-authenticate"))
            code = _proof_error(header) if grant is not None and grant.bound else ""
            if code == dpop.WRONG_PROOF:
                problem = self._session.proof_problem(response)
                break
            if code == dpop.NEEDS_NONCE:
                if not (given and may_repeat):
                    did = "did not take it" if given else "gave none that a header may carry"
                    problem = f"the server asked for its nonce in the proof, and {did}"
                    break
                may_repeat = False  # nothing was executed: any message may be repeated
            else:
                rejected = "" if grant is None else grant.access_token
                other = await self._session.replacement(rejected, header) if may_renew else None
                if other is None:
                    break
                grant, may_renew = other, False
            await _drop_body(response)
        if response.status_code in (401, 403):
            held = await self._session.held()
            response.extensions[HELD_SIGN_IN] = held._replace(
                problem=problem or held.problem, proof_refused=bool(problem)
            )


def _proof_error(header: str) -> str:
    """The error code of the DPoP challenge in this header; empty without one."""
    return (read_challenge(header).dpop or {}).get("error", "")


async def _drop_body(response: httpx.Response) -> None:
    # httpx would read the whole body, however long, before it sends again.
    if isinstance(response.stream, httpx.AsyncByteStream):
        await response.stream.aclose()
    response.stream = httpx.ByteStream(b"")
