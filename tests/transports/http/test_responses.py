"""Reasons in a 401 or 403, which repeat no credentials."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from mcphost.errors import HELD_SIGN_IN, HeldSignIn, HttpStatusError
from mcphost.transports.http import responses

TOKEN = "canary-of-a-token"
WHY = "audience is api://other, expected this server"


class Silent(httpx.AsyncByteStream):
    """A body that never comes."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


def refusal(
    status: int, challenge: str = "Bearer", body: bytes | httpx.AsyncByteStream = b"", kind: str = "application/json"
) -> httpx.Response:
    """A response to a request that carried `TOKEN`."""
    stream = httpx.ByteStream(body) if isinstance(body, bytes) else body
    request = httpx.Request("POST", "http://127.0.0.1/mcp", headers={"Authorization": f"Bearer {TOKEN}"})
    headers = {"www-authenticate": challenge, "content-type": kind}
    return httpx.Response(status, headers=headers, stream=stream, request=request)


@pytest.mark.hostile("C10", "T01")
@pytest.mark.parametrize(
    ("response", "says"),
    [
        (refusal(401), "the server wants a sign-in (HTTP 401)"),
        (refusal(401, f'Bearer error="invalid_token", error_description="{WHY}"'), f"(HTTP 401): {WHY}"),
        (refusal(401, f"Bearer error=invalid_token, error_description={WHY}"), f"(HTTP 401): {WHY}"),
        (refusal(401, 'Bearer error="invalid_token"'), "(HTTP 401): invalid_token"),
        (refusal(401, 'Bearer error="insufficient_scope"'), "(HTTP 401): insufficient_scope"),
        (refusal(401, body=b'{"error": "expired", "message": "sign in again"}'), "(HTTP 401): expired: sign in again"),
        (refusal(401, body=b"no such tenant", kind="text/plain"), "(HTTP 401): no such tenant"),
        (refusal(401, body=b"<html>no", kind="text/html; charset=utf-8"), "the server wants a sign-in (HTTP 401)"),
        (refusal(401, 'Bearer error_description="a\x1b[2Jb"'), "(HTTP 401): a␛[2Jb"),
        (refusal(401, f'Bearer error_description="{TOKEN} is bad"'), "(HTTP 401): ••• is bad"),
        (refusal(401, 'Bearer error_description="access_token=a1b2c3d4 ends"'), "401): access_token=••• ends"),
        (
            refusal(403, f'Bearer error="insufficient_scope", error_description="{WHY}"'),
            f"more than this sign-in allows (HTTP 403): {WHY}",
        ),
        (refusal(403, 'Bearer error="insufficient_scope"'), "more than this sign-in allows (HTTP 403)"),
    ],
)  # fmt: skip
async def test_the_reason_of_a_refusal_is_kept(response: httpx.Response, says: str) -> None:
    error = await responses.challenge_in(response)
    assert error is not None
    assert str(error).endswith(says)
    assert str(error.again()) == str(error)


async def test_reasons_are_bounded_in_length_and_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = await responses.challenge_in(refusal(401, f'Bearer error_description="{"no " * 4_000}"'))
    assert len(str(long)) < 500
    monkeypatch.setattr(responses, "WORDS_SECONDS", 0.05)
    silent = await responses.challenge_in(refusal(401, body=Silent(), kind="text/plain"))
    assert str(silent) == "the server wants a sign-in (HTTP 401)"


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (HeldSignIn(), "the server wants a sign-in (HTTP 401): no"),
        (HeldSignIn(True), "the server refuses this sign-in (HTTP 401): no"),
        (HeldSignIn(True, problem="it failed"), "the server wants a sign-in (HTTP 401); it failed; it says: no"),
    ],
)
async def test_a_refusal_knows_the_sign_in_of_its_request(held: HeldSignIn, says: str) -> None:
    response = refusal(401, 'Bearer error_description="no"')
    response.extensions[HELD_SIGN_IN] = held
    error = await responses.challenge_in(response)
    assert error is not None
    assert (error.held, str(error)) == (held, says)


async def test_another_403_says_why_as_well() -> None:
    response = refusal(403, f'Bearer error="access_denied", error_description="{WHY} for {TOKEN}"')
    assert await responses.challenge_in(response) is None
    error = await responses.unexpected(response)
    assert isinstance(error, HttpStatusError)
    assert WHY in str(error)
    assert TOKEN not in str(error)


@pytest.mark.parametrize("body", [b"\x1f\x8b\x08\x00\x00\x00abc", bytes(range(256)), '{"error": 1}'.encode("utf-16")])
def test_bytes_that_are_not_text_are_not_quoted(body: bytes) -> None:
    assert responses.words_in(body) == "(bytes that are not text)"


@pytest.mark.parametrize(
    "body", [b"", b"quota \xfcberzogen", "\u00fcber\r\n\tdie Quote".encode(), b"\x1b[31mred\x1b[0m"]
)
def test_text_with_a_few_odd_bytes_is_quoted(body: bytes) -> None:
    assert responses.words_in(body) == body.decode("utf-8", "replace")
