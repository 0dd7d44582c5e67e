"""A loopback relay that adds a bearer token, since the published suite sends none.

    python -m tests.conformance.relay URL   with the token in the environment as TOKEN

It prints its own address, at another port. ``Host`` and ``Origin`` are passed on unchanged, except that its own address
becomes that of URL: a server refuses all other names.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

CHUNK: Final = 1 << 16
HOP_BY_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


class Relay:
    def __init__(self, target: str, token: str) -> None:
        self._authority, self._token = urlsplit(target).netloc, token
        self._port = 0

    async def open(self) -> int:
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = runner.addresses[0][1]
        self._client = aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None))
        return self._port

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP]
        headers = [(name, self._renamed(value) if name in ("Host", "Origin") else value) for name, value in headers]
        headers.append(("Authorization", f"Bearer {self._token}"))
        origin = f"http://{self._authority}"
        async with self._client.request(
            request.method, f"{origin}{request.rel_url}", headers=headers, data=await request.read() or None,
            allow_redirects=False,
        ) as answer:  # fmt: skip
            response = web.StreamResponse(status=answer.status, reason=answer.reason)
            response.headers.extend((k, v) for k, v in answer.headers.items() if k.lower() not in HOP_BY_HOP)
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response

    def _renamed(self, value: str) -> str:
        """The value with the relay's own address replaced by the target's."""
        for host in ("127.0.0.1", "localhost"):
            value = value.replace(f"{host}:{self._port}", self._authority.replace("127.0.0.1", host))
        return value


async def main() -> None:
    relay = Relay(sys.argv[1], os.environ["TOKEN"])
    print(f"http://127.0.0.1:{await relay.open()}{urlsplit(sys.argv[1]).path}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
