from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from mcphost.transports.base import TransportLimits
from mcphost.transports.stdio.transport import StdioTransport
from tests.conftest import PythonServer, Until
from tests.transports.processes import FAST, Line, members

Start = Callable[..., Awaitable[Line]]


@pytest.fixture
async def start(python_server: PythonServer, until: Until) -> AsyncIterator[Start]:
    """`await start("hostile.py", "nan", ...)`: a running server; when the test ends nothing of its group is left."""
    lines: list[Line] = []

    async def run(script: str, *args: object, limits: TransportLimits = FAST, environ: Any = None, **more: Any) -> Line:
        line = Line(StdioTransport(python_server(script, *args, **more), limits, environ or dict(os.environ)))
        await line.transport.open(line.inbox)
        lines.append(line)
        return line

    yield run
    await asyncio.gather(*(line.transport.aclose() for line in lines))
    await until(lambda: not any(members(line.pid) for line in lines))
