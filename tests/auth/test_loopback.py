"""The way back from the browser: one redirect is taken, and whatever else knocks is turned away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from mcphost.auth import loopback
from mcphost.auth.flow.callback import NO_STATE, OTHER_STATE
from mcphost.auth.flow.steps import ListenForCallback, PendingAuthorization
from mcphost.auth.loopback import Loopback

STATE = "s" * 32
GOOD = f"/callback/x?state={STATE}&code=c0de"


@dataclass
class Waiting:
    """A listener that waits for its redirect."""

    loopback: Loopback
    port: int
    answer: asyncio.Task[Any]
    problems: list[str]

    async def say(self, request: bytes) -> bytes:
        """The answer to these bytes; empty if it hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await asyncio.wait_for(reader.read(), 20)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def get(self, target: str, *, method: str = "GET", host: str = "", more: str = "") -> bytes:
        host = host or f"127.0.0.1:{self.port}"
        return await self.say(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())


@asynccontextmanager
async def waiting(name: str = "127.0.0.1") -> AsyncIterator[Waiting]:
    problems: list[str] = []
    listener = Loopback(problems.append)
    uri = await listener.open(ListenForCallback("/callback/x", 0, insist=False, host=name))
    assert uri.startswith(f"http://{name}:")
    pending = PendingAuthorization("https://as.example.com", STATE, "verifier", uri, sends_issuer=False)
    answer = asyncio.ensure_future(listener.callback(pending))
    await asyncio.sleep(0)
    try:
        yield Waiting(listener, int(uri.split(":")[2].split("/")[0]), answer, problems)
    finally:
        answer.cancel()
        await listener.aclose()


WRONG: dict[str, dict[str, str]] = {
    "no state": {"target": "/callback/x?code=c"},
    "an empty state": {"target": "/callback/x?code=c&state="},
    "two states": {"target": f"{GOOD}&state={STATE}"},
    "many parameters": {"target": GOOD + "&a=b" * 40},
    "another path": {"target": GOOD.replace("/x", "/y")},
    "a path below": {"target": GOOD.replace("/x", "/x/")},
    "an absolute target": {"target": f"http://127.0.0.1{GOOD}"},
    "POST": {"target": GOOD, "method": "POST"},
    "HEAD": {"target": GOOD, "method": "HEAD"},
    "OPTIONS": {"target": GOOD, "method": "OPTIONS", "more": "Origin: https://evil.example\r\n"},
    "a foreign host": {"target": GOOD, "host": "evil.example"},
    "a rebound host": {"target": GOOD, "host": "127.0.0.1.evil.example"},
    "no port": {"target": GOOD, "host": "127.0.0.1"},
    "two hosts": {"target": GOOD, "more": "Host: 127.0.0.1\r\n"},
    "an icon": {"target": "/favicon.ico"},
    "the root": {"target": "/"},
}


@pytest.mark.hostile("O11", "C13")
@pytest.mark.requirement("AUTH25-11", "AUTH-21")
async def test_only_the_right_callback_ends_the_wait() -> None:
    """A plain 400 for each, without a script, without what came, for no other origin to read."""
    async with waiting() as here:
        answers = [await here.get(**request) for request in WRONG.values()]
        answers += await asyncio.gather(*(here.get(f"/callback/x?state={n}{STATE}&code=evil") for n in range(100)))
        assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 400 Bad Request"}
        assert not here.answer.done()
        assert sorted(here.problems) == [OTHER_STATE, NO_STATE]  # each once
        good = await here.get(GOOD)
        assert good.startswith(b"HTTP/1.1 200 OK")
        for answer in (*answers, good):
            assert b"Cache-Control: no-store" in answer
            assert b"Content-Type: text/plain" in answer
            assert b"Access-Control" not in answer
            assert not [word for word in (b"c0de", b"evil", STATE.encode(), b"<") if word in answer]
        assert (await here.answer)["code"] == ("c0de",)


@pytest.mark.hostile("O11", "T01")
async def test_an_error_without_the_state_is_only_reported() -> None:
    async with waiting() as here:
        lost = "/callback/x?error=invalid_scope&error_description=scope%20read%20is%1b%20unknown"
        for target in (lost, lost, f"{lost}&iss=https://evil.example.com", f"{lost}&code=c0de-1&state={STATE}x"):
            assert (await here.get(target)).startswith(b"HTTP/1.1 400")
        for number in range(20):
            await here.get(f"/callback/x?error=e{number}")
        says = "; it says, unverified: invalid_scope: scope read is␛ unknown"
        assert here.problems[:3] == [f"{NO_STATE}{says}", NO_STATE, f"{OTHER_STATE}{says}"]
        assert len(here.problems) == loopback.MOST_REPORTS
        assert not here.answer.done()


@pytest.mark.parametrize("family", ["127.0.0.1", "::1"])
async def test_the_browser_may_come_back_to_localhost_at_either_address(family: str) -> None:
    async with waiting("localhost") as here:
        try:
            reader, writer = await asyncio.open_connection(family, here.port)
        except OSError:
            pytest.skip(f"no {family} on this machine")
        writer.write(f"GET {GOOD} HTTP/1.1\r\nHost: localhost:{here.port}\r\n\r\n".encode())
        assert b" 200 OK" in await asyncio.wait_for(reader.read(), 20)
        writer.close()
        assert (await here.answer)["code"] == ("c0de",)
        await here.loopback.aclose()
        with pytest.raises(OSError, match="onnect"):
            await asyncio.open_connection(family, here.port)


@pytest.mark.hostile("O11")
async def test_of_two_right_callbacks_the_first_is_taken() -> None:
    """Used once."""
    async with waiting() as here:
        first, second = await asyncio.gather(here.get(GOOD), here.get(GOOD.replace("c0de", "2nd")))
        assert {answer.split(b" ")[1] for answer in (first, second)} == {b"200", b"400"}
        assert (await here.answer)["code"] == (("c0de",) if b" 200 " in first else ("2nd",))


@pytest.mark.hostile("C13")
async def test_nothing_is_taken_before_the_browser_is_sent_out() -> None:
    listener = Loopback(lambda _: None)
    uri = await listener.open(ListenForCallback("/callback/x", 0, insist=False))
    early = Waiting(listener, int(uri.split(":")[2].split("/")[0]), asyncio.ensure_future(asyncio.sleep(0)), [])
    assert b" 400 " in await early.get(GOOD)
    await listener.aclose()
    with pytest.raises(OSError, match="onnect"):
        await early.get(GOOD)


@pytest.mark.hostile("O11")
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET " + b"x" * 1_000_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\r\n\r\n",
        b"\xff\xfe GET",
        b"",
    ],
    ids=["a long line", "many headers", "TLS", "no head", "half a head", "nothing"],
)
async def test_bytes_that_are_no_request_of_a_browser_do_not_end_the_wait(
    request_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head of 1 MB, TLS, nothing at all."""
    async with waiting() as here:
        with monkeypatch.context() as soon:
            soon.setattr(loopback, "REQUEST_SECONDS", 0.2)
            answer = await here.say(request_bytes)
        assert not answer.startswith(b"HTTP/1.1 200")
        assert b" 200 OK" in await here.get(GOOD)
        assert (await here.answer)["code"] == ("c0de",)


@pytest.mark.hostile("O11")
async def test_a_slow_visitor_delays_neither_the_browser_nor_the_end() -> None:
    """A request of one byte, and then nothing."""
    async with waiting() as here:
        slow = [await asyncio.open_connection("127.0.0.1", here.port) for _ in range(20)]
        for _, writer in slow:
            writer.write(b"G")
        assert b" 200 OK" in await here.get(GOOD)
        async with asyncio.timeout(20):
            await here.loopback.aclose()
            assert {await reader.read() for reader, _ in slow} == {b""}
        for _, writer in slow:
            writer.close()


@pytest.mark.hostile("C13")
async def test_it_listens_on_this_machine_alone() -> None:
    async with waiting() as here:
        with pytest.raises(OSError, match="onnect"):
            await asyncio.open_connection("127.0.0.2", here.port)
