"""Adds calls to the history in PATH without end, and prints the number of each that is kept: ``killed.py PATH``."""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path

from mcphost.host.history.past_call import PastCallQuery
from tests.host.history.histories import run


async def add(path: Path) -> None:
    async with run(path) as here:
        for number in count():
            here.add({"a": number}, {"content": [{"type": "text", "text": "x" * 20_000}]})
            await here.history.find(PastCallQuery(most=1))  # a reading comes after what was added before it
            print(number, flush=True)


asyncio.run(add(Path(sys.argv[1])))
