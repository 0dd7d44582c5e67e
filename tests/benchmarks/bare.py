"""The alternative: the least one can write with asyncio and json to speak to a server over stdio. It checks nothing.

python bare.py COMMAND …      the handshake and one `echo` call, its text printed
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any

LINE_LIMIT = 64 << 20


class BareLoop:
    """One server, its pending answers by id, and a count of everything else it sent."""

    def __init__(self) -> None:
        self.notified = 0
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._process: Process
        self._reader: asyncio.Task[None]

    async def open(self, *command: str) -> None:
        self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, limit=LINE_LIMIT)
        self._reader = asyncio.create_task(self._read())
        client = {"name": "bare", "version": "0"}
        await self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        return await self.request("tools/call", {"name": name, "arguments": arguments})

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        self._last_id += 1
        answer = self._waiting[self._last_id] = asyncio.get_running_loop().create_future()
        await self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return (await answer)["result"]

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reader

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            if "id" in message:
                self._waiting.pop(message["id"]).set_result(message)
            else:
                self.notified += 1


async def main(command: list[str]) -> None:
    loop = BareLoop()
    await loop.open(*command)
    result = await loop.call_tool("echo", {"text": "hello"})
    print(result["content"][0]["text"])
    await loop.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
