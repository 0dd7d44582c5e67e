"""Gets the JWTs by which a platform names this workload: from a file, a variable, a command or GitHub Actions.

Each is read when it is needed, masked from then on, and kept nowhere.

Specification: ext-auth, workload identity federation.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from asyncio.subprocess import DEVNULL, PIPE
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx

from mcphost.auth.addresses import checked_url
from mcphost.auth.ports import AssertionSource
from mcphost.errors import McphostError, SignInFailed
from mcphost.json_values import as_dict
from mcphost.net.guarded import GuardedClient, GuardedRequest, NotReached, ResolveHost, resolve
from mcphost.posix import KILL, NotRegularError, open_regular, signal_group
from mcphost.protocol.display import show_line, size_text
from mcphost.redaction import mask_doubtful

SECONDS: Final = 10.0
"""For a source to answer: a command may have to ask a service."""

END_SECONDS: Final = 1.0
"""For a command that was killed to end, and for the output of one that ended."""

MOST_BYTES: Final = 65_536
"""Of a source; a JWT has a few thousand."""

STDERR_BYTES: Final = 2048
"""Of the end of a command's stderr that are kept."""

AUDIENCE: Final = "{audience}"
URL_VARIABLE: Final = "ACTIONS_ID_TOKEN_REQUEST_URL"
TOKEN_VARIABLE: Final = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"

MOST_REFUSED: Final = 16
"""Refused JWTs that are remembered; a source yields one at a time."""

_JWT: Final = r"[\w-]+\.[\w-]+\.[\w-]*"
_NO_JOB: Final = (
    f"GitHub Actions gives this run no identity: {URL_VARIABLE} is not set; run it in a job with the permission "
    "id-token: write"
)

LocateProgram = Callable[[str], tuple[str, Mapping[str, str]]]
"""Returns the full path of a program, and the environment it gets. Raises McphostError."""


class AssertionReader:
    """Reads the sources of one run. ``variable`` returns an environment variable; ``learn`` is called with secrets."""

    def __init__(
        self,
        variable: Callable[[str], str | None],
        locate: LocateProgram,
        learn: Callable[[str], None],
        resolve: ResolveHost = resolve,
    ) -> None:
        self._variable, self._locate, self._learn, self._resolve = variable, locate, learn, resolve
        self.audit: Callable[[Mapping[str, Any]], Awaitable[None]] = _keep_no_record
        """Writes a record before a command runs. Raises Declined if the record is required and cannot be kept."""

    async def read(self, source: AssertionSource, audience: str, server: str) -> str:
        """The JWT that ``source`` has now. Raises SignInFailed, whose text holds nothing of it."""
        try:
            async with asyncio.timeout(SECONDS):
                found = await self._content(source, audience, server)
        except TimeoutError:
            raise _failed(source, f"gave no JWT within {SECONDS:g} s") from None
        jwt = found.decode("utf-8", "replace").strip()
        if not jwt:
            raise _failed(source, "gives nothing")
        if not re.fullmatch(_JWT, jwt, re.ASCII):
            raise _failed(source, f"gives {len(jwt)} characters that are not a signed JWT and nothing else")
        self._learn(jwt)
        return jwt

    async def _content(self, source: AssertionSource, audience: str, server: str) -> bytes:
        if source.file:
            return await asyncio.to_thread(_file, source)
        if source.command:
            return await self._printed(source, audience, server)
        if source.github:
            return await self._of_job(source, audience)
        value = self._variable(source.env)
        if value is None:
            raise _failed(source, "is not set")
        return value.encode("utf-8", "replace")

    async def _printed(self, source: AssertionSource, audience: str, server: str) -> bytes:
        program, *args = (word.replace(AUDIENCE, audience) for word in source.command)
        try:
            path, environment = self._locate(program)
            await self.audit({"event": "assertion", "server": server, "command": [path, *args]})
        except McphostError as error:
            raise SignInFailed(str(error)) from None
        try:
            transport, output = await asyncio.get_running_loop().subprocess_exec(
                _Output,
                path,
                *args,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env=environment,
                cwd=os.sep,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "an argument holds a NUL character"
            raise _failed(source, f"could not be started: {why}") from None
        await _finished(transport, output)
        if len(output.printed) > MOST_BYTES:
            raise _failed(source, f"prints more than {size_text(MOST_BYTES)}")
        if code := transport.get_returncode():
            lines = output.errors.decode("utf-8", "replace").strip().splitlines()
            said = f": {show_line(mask_doubtful(lines[-1]), 300)}" if lines else ""
            raise _failed(source, f"ended with code {code}{said}")
        return bytes(output.printed)

    async def _of_job(self, source: AssertionSource, audience: str) -> bytes:
        url, token = self._variable(URL_VARIABLE), self._variable(TOKEN_VARIABLE)
        if not url or not token:
            raise SignInFailed(_NO_JOB)
        self._learn(token)
        if not url.startswith("https://"):
            raise SignInFailed(f"{URL_VARIABLE} is not an https address; nothing was asked there")
        asked = httpx.URL(checked_url(URL_VARIABLE, url, url)).copy_merge_params({"audience": audience})
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            client = GuardedClient(url, self._resolve)
            answer = await client.send(GuardedRequest(str(asked), SECONDS, MOST_BYTES, headers))
        except NotReached as error:
            raise _failed(source, f"cannot be asked: {error}") from None
        if answer.status != 200:
            raise _failed(source, f"gives no JWT (HTTP {answer.status})")
        with suppress(ValueError, RecursionError):
            value = as_dict(json.loads(answer.content)).get("value")
            if isinstance(value, str):
                return value.encode("utf-8", "replace")
        raise _failed(source, "answered without a JWT")


class _Output(asyncio.SubprocessProtocol):
    """The output of a command; of its stderr the end."""

    def __init__(self) -> None:
        self.printed, self.errors = bytearray(), bytearray()
        self.enough = asyncio.Event()
        """Set once the command has ended, or printed too much."""
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        """Set once no process holds the pipes any more, either."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self.errors = (self.errors + data)[-STDERR_BYTES:]
        elif len(self.printed) <= MOST_BYTES:
            self.printed += data
            if len(self.printed) > MOST_BYTES:
                self.enough.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.enough.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


async def _finished(transport: asyncio.SubprocessTransport, output: _Output) -> None:
    """Wait for the end of a command, and end what it leaves behind."""
    try:
        await output.enough.wait()
        if output.exited.is_set():
            with suppress(TimeoutError):  # a program that it left behind may hold the pipes
                await asyncio.wait_for(output.closed.wait(), END_SECONDS)
    finally:
        if not output.closed.is_set():
            signal_group(transport.get_pid(), KILL)
        transport.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(output.exited.wait(), END_SECONDS)


class Assertions:
    """The JWTs for the sign-ins to one server, and which of them were refused: only their digests are kept."""

    def __init__(self, source: AssertionSource, reader: AssertionReader, server: str) -> None:
        self._source, self._reader, self._server = source, reader, server
        self._refused: deque[bytes] = deque(maxlen=MOST_REFUSED)

    @property
    def place(self) -> str:
        """The source in words, not safe to show."""
        return self._source.words

    async def get(self, audience: str) -> str:
        """The JWT of the source. Raises SignInFailed, also for one that was refused before."""
        jwt = await self._reader.read(self._source, audience, self._server)
        if _digest(jwt) in self._refused:
            words = show_line(self._source.words, 300)
            raise SignInFailed(
                f"the JWT of {words} was refused before, and is not sent again until it changes or you sign in"
            )
        return jwt

    def refuse(self, jwt: str) -> None:
        """The authorization server refused this JWT."""
        self._refused.append(_digest(jwt))

    def forget_refusals(self) -> None:
        """A person wants another attempt with the same JWT."""
        self._refused.clear()


def _failed(source: AssertionSource, why: str) -> SignInFailed:
    return SignInFailed(f"{show_line(source.words, 300)} {why}")


def _file(source: AssertionSource) -> bytes:
    try:
        with open(open_regular(Path(source.file)), "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise _failed(source, "is not there") from None
    except NotRegularError:
        raise _failed(source, "is not a regular file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its path holds a NUL character"
        raise _failed(source, f"cannot be read: {why}") from None
    if len(content) > MOST_BYTES:
        raise _failed(source, f"is larger than {size_text(MOST_BYTES)}")
    return content


def _digest(jwt: str) -> bytes:
    return hashlib.sha256(jwt.encode()).digest()


async def _keep_no_record(record: Mapping[str, Any]) -> None:
    """For runs without an audit log."""
