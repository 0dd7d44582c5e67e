"""Endpoints that refuse, are busy, lie, or are not there."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from mcphost.errors import (
    ModelAnswerMalformed,
    ModelError,
    ModelKeyRefused,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
)
from mcphost.providers.base import AnswerFinished, RetryScheduled
from mcphost.providers.retry import RetryLimits, requested_wait
from tests.conftest import Until
from tests.providers.endpoints import (
    ASKED,
    HELLO,
    KEY,
    QUICK,
    TYPED,
    VENDORS,
    each_vendor,
    meeting,
    refuses,
    streams,
)
from tests.transports.http.http_connection import Talk, Web


@pytest.mark.hostile("M05")
@each_vendor
@pytest.mark.parametrize(
    ("status", "kind", "failure", "words"),
    [
        (401, "authentication_error", ModelKeyRefused, "the key was not accepted; look at api_key"),
        (403, "permission_error", ModelKeyRefused, "what its account allows"),
        (404, "not_found_error", ModelRefused, "no such model or address; look at model and base_url"),
        (413, "request_too_large", ModelRefused, "too large"),
        (400, "invalid_request_error", ModelRefused, "the request was refused; change it"),
        (302, "", ModelRefused, "sends elsewhere, where no key is sent"),
        (418, "", ModelRefused, "HTTP 418"),
    ],
)
async def test_a_refusal_has_advice_and_is_not_repeated(
    vendor: str, status: int, kind: str, failure: type[ModelError], words: str
) -> None:
    """401, redirect to another host; an error that echoes our key."""
    told = VENDORS[vendor].error(kind, f"bad\x1b[31m key {KEY}, {{really}}")
    with Web(lambda talk: talk.whole(200)) as elsewhere:
        async with meeting(vendor, refuses(status, told, location=elsewhere.url)) as met:
            with pytest.raises(failure) as caught:
                await met.ask()
    text = str(caught.value)
    assert text.startswith("model big: ")
    assert words in text
    assert "\x1b" not in text
    assert KEY not in text
    assert status == 302 or "key •••, {really}" in text
    assert (len(met.web.visits), elsewhere.visits) == (1, [])
    assert caught.value.lasting


@each_vendor
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>busy</html>", b"\xff\xfe", b"[1]", b'"no"', b'{"error": null}', b'{"detail": [1]}', b"x" * 10**6],
)
async def test_a_refusal_of_any_shape_is_one(vendor: str, body: bytes) -> None:
    async with meeting(vendor, refuses(400, body)) as met:
        with pytest.raises(ModelRefused) as caught:
            await met.ask()
    assert len(str(caught.value)) < 600
    assert "<html>" not in str(caught.value)


@pytest.mark.hostile("M05")
@pytest.mark.requirement("SAMP-11")
@each_vendor
@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
async def test_a_model_without_room_is_asked_again_after_the_wait_it_wants(vendor: str, status: int) -> None:
    """429, 500."""
    busy = refuses(status, VENDORS[vendor].error("odd", "later"), retry_after_ms=60)
    async with meeting(vendor, busy, busy, streams(*VENDORS[vendor].stream(HELLO))) as met:
        began = time.monotonic()
        first, second, *rest = await met.ask()
        assert time.monotonic() - began >= 0.12
    assert isinstance(first, RetryScheduled)
    assert isinstance(second, RetryScheduled)
    assert [(each.seconds, each.attempt, each.most) for each in (first, second)] == [(0.06, 1, 3), (0.06, 2, 3)]
    assert "later" in first.reason
    assert isinstance(rest[-1], AnswerFinished)
    assert len({visit.body for visit in met.web.visits}) == 1


@pytest.mark.parametrize("vendor", TYPED)
async def test_an_account_without_credit_is_reported_at_once(vendor: str) -> None:
    async with meeting(vendor, refuses(429, VENDORS[vendor].error("insufficient_quota", "pay"))) as met:
        with pytest.raises(ModelRefused, match="no credit left"):
            await met.ask()
    assert len(met.web.visits) == 1


@each_vendor
async def test_a_stream_that_begins_with_overload_is_asked_again(vendor: str) -> None:
    error = VENDORS[vendor].frame(VENDORS[vendor].error("overloaded_error", "busy"))
    async with meeting(vendor, streams(error), streams(*VENDORS[vendor].stream(HELLO))) as met:
        first, *rest = await met.ask()
    assert isinstance(first, RetryScheduled)
    assert isinstance(rest[-1], AnswerFinished)


@each_vendor
async def test_retries_are_bounded_in_number(vendor: str) -> None:
    async with meeting(vendor, refuses(529)) as met:
        with pytest.raises(ModelOverloaded, match=r"no room .HTTP 529.; try again later, or choose another model"):
            await met.ask()
    waits = [each.seconds for each in met.events if isinstance(each, RetryScheduled)]
    assert len(met.web.visits) == QUICK.retries + 1
    assert waits == sorted(waits)
    assert 0.01 <= waits[0] <= 0.0125 < 0.04 <= waits[-1] <= 0.05


@each_vendor
async def test_a_very_long_wait_is_reported_instead(vendor: str) -> None:
    async with meeting(vendor, refuses(429, None, retry_after=3600)) as met:
        with pytest.raises(
            ModelOverloaded, match=r"too many requests .HTTP 429.; try again in 1 h, or choose"
        ) as caught:
            await met.ask()
    assert (caught.value.seconds, met.events, len(met.web.visits)) == (3600, [], 1)
    assert "it says" not in str(caught.value)  # the body is null


@pytest.mark.hostile("M03")
@each_vendor
async def test_a_wait_can_be_left_at_once(vendor: str, until: Until) -> None:
    """Esc, while waiting."""
    async with meeting(vendor, refuses(429, None, retry_after=30)) as met:
        task = asyncio.create_task(met.ask())
        await until(lambda: met.events)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)


NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": format_datetime(SOON, usegmt=True)}, 7),
        ({"retry-after": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0),
        ({"retry-after": "9" * 400}, None),
        *(({"retry-after": text}, None) for text in ("-1", "soon", "nan", "inf", "1e3", "\u0667", "", "Fri, 99 Foo")),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "3", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9s"}, 3),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m7s"}, 67),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1m7s"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "soon"}, None),
        ({"anthropic-ratelimit-tokens-remaining": "0",
          "anthropic-ratelimit-tokens-reset": "2026-11-20T12:00:07Z"}, 7),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-20T12:00:02Z",
          "anthropic-ratelimit-input-tokens-remaining": "0",
          "anthropic-ratelimit-input-tokens-reset": "2026-11-20T12:00:07+00:00"}, 7),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "0001-01-01"}, 0),
    ],
)  # fmt: skip
def test_waits_are_read_from_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert requested_wait(headers, NOW) == seconds


def test_all_waits_together_are_bounded() -> None:
    limits = RetryLimits(retries=9, backoff=1, most_waiting=10)
    assert [limits.wait(attempt, None, 0, 0) for attempt in (1, 2, 3, 4, 5, 10)] == [1, 2, 4, 8, None, None]
    assert (limits.wait(1, None, 0, 1), limits.wait(1, 4, 6, 1), limits.wait(1, 4, 6.1, 1)) == (1.25, 4, None)


@each_vendor
async def test_an_endpoint_that_is_not_there_is_named(vendor: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        provider = VENDORS[vendor].provider("big", "m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ModelUnreachable, match=r"http://127\.0\.0\.1:\d+ cannot be reached .*; is it running"):
            [event async for event in provider.stream(ASKED)]
        await provider.aclose()


@each_vendor
@pytest.mark.parametrize(
    ("more", "failure", "words"),
    [
        ({"key": "schl\u00fcssel"}, ModelKeyRefused, "its key has characters that no key has"),
        ({"base_url": "http://models.example.com/v1", "key": KEY}, ModelRefused, "anybody on the way can read it"),
        ({"base_url": "http://localhost.example.com/v1", "key": KEY}, ModelRefused, "use https in base_url"),
        ({"base_url": "http://192.168.1.5:11434", "key": KEY}, ModelRefused, "or leave api_key out"),
    ],
)
async def test_a_key_goes_no_unsafe_way(
    vendor: str, more: dict[str, Any], failure: type[ModelError], words: str
) -> None:
    provider = VENDORS[vendor].provider("big", "m", **more)
    with pytest.raises(failure, match=words) as caught:
        [event async for event in provider.stream(ASKED)]
    assert KEY not in str(caught.value)
    await provider.aclose()


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
async def test_a_vendor_that_wants_a_key_is_not_asked_without(vendor: str) -> None:
    provider = VENDORS[vendor].provider("big", "m")
    with pytest.raises(ModelKeyRefused, match="wants an API key; set api_key"):
        [event async for event in provider.stream(ASKED)]
    await provider.aclose()


@each_vendor
async def test_a_missing_local_ollama_has_advice_to_start_it(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its usual port may be in use here; another one stands for it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        monkeypatch.setattr("mcphost.providers.endpoint.OLLAMA_PORT", port)
        provider = VENDORS[vendor].provider("big", "m", base_url=f"http://localhost:{port}")
        with pytest.raises(ModelUnreachable, match=r"cannot be reached .*; start Ollama with: ollama serve$"):
            [event async for event in provider.stream(ASKED)]
        await provider.aclose()


@pytest.mark.parametrize(
    ("status", "document", "failure", "words"),
    [
        (404, {"error": "model 'asked-for' not found"}, ModelRefused,
         r"it has no model asked-for; get it with: ollama pull asked-for, .* \(it says: model"),
        (404, b"404 page not found", ModelRefused, "no such model or address; look at model and base_url"),
        (400, {"error": "registry.ollama.ai/library/gemma:2b does not support tools"}, ModelRefused,
         r'leave "tools" out of takes in \[models.big\]'),
        (401, {"error": "unauthorized", "signin_url": "https://x/"}, ModelKeyRefused, "where it runs: ollama signin"),
    ],
)  # fmt: skip
async def test_a_refusal_of_ollama_has_advice(
    status: int, document: Any, failure: type[ModelError], words: str
) -> None:
    async with meeting("ollama", refuses(status, document)) as met:
        with pytest.raises(failure, match=words):
            await met.ask()


@each_vendor
async def test_a_remote_model_without_tls_may_be_asked_without_a_key(vendor: str) -> None:
    """The address is outside of the tests' network: that it is looked for is all that can be seen."""
    limits = replace(QUICK, connect=0.5)
    url = "http://models.example.com"
    provider = VENDORS[vendor].provider("big", "m", base_url=url, limits=limits)
    with pytest.raises(ModelUnreachable, match=r"http://models\.example\.com cannot be reached"):
        [event async for event in provider.stream(ASKED)]
    await provider.aclose()


@each_vendor
async def test_a_local_model_is_asked_without_the_proxy(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO))) as met:
        assert isinstance((await met.ask())[-1], AnswerFinished)


@each_vendor
@pytest.mark.parametrize(
    ("name", "value"), [("HTTPS_PROXY", "odd://127.0.0.1:9"), ("SSL_CERT_FILE", "/nowhere/at/all"), ("", "")]
)
async def test_unusable_settings_are_reported(
    vendor: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name:
        monkeypatch.setenv(name, value)
    url = "https://models.example.com" if name else "https://x--.\u2603.\u0000"
    provider = VENDORS[vendor].provider("big", "m", base_url=url, key=KEY)
    with pytest.raises(ModelUnreachable, match=r"cannot be asked .*; look at base_url"):
        [event async for event in provider.stream(ASKED)]
    await provider.aclose()


@pytest.mark.hostile("M05")
@each_vendor
async def test_an_answer_without_end_is_left(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is that of a real answer's bytes; here it is made small."""
    monkeypatch.setattr("mcphost.providers.http.MOST_ANSWER", 2000)
    async with meeting(vendor, streams(*VENDORS[vendor].stream((("text", *["x" * 50] * 40),)))) as met:
        with pytest.raises(ModelAnswerMalformed, match="it was left there"):
            await met.ask()


@each_vendor
async def test_half_a_character_from_a_server_reaches_the_model_as_it_is(vendor: str) -> None:
    async with meeting(vendor, streams(*VENDORS[vendor].stream(HELLO))) as met:
        await met.ask(replace(ASKED, system="\ud83d"))
    assert "\ud83d" in json.dumps(met.bodies, ensure_ascii=False)


@pytest.mark.hostile("M05")
@each_vendor
async def test_a_refusal_that_does_not_end_is_one_by_its_status(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stall. The time for what a refusal says is made short."""
    monkeypatch.setattr("mcphost.providers.http.REFUSAL_SECONDS", 0.1)

    def stalls(talk: Talk) -> None:
        talk.head(401, content_length=100)
        talk.raw(b"{")
        talk.linger()

    async with meeting(vendor, stalls) as met:
        with pytest.raises(ModelKeyRefused):
            await met.ask()
