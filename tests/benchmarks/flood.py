"""A server with TOOLS tools (20) that sends RATE messages a second for as long as FILE exists: log messages, or
notifications of METHOD, of which only the traffic keeps a trace.

python flood.py FILE RATE [TOOLS [METHOD]]
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

TICK = 0.01
LOG = "notifications/message"
lock = threading.Lock()


def tools(count: int) -> list[dict[str, Any]]:
    return [
        {"name": f"tool-{n:04}", "description": f"Generated tool {n}.", "inputSchema": {"type": "object"}}
        for n in range(1, count + 1)
    ]


def answers(count: int) -> dict[str, dict[str, Any]]:
    return {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "flood", "version": "1"},
        },
        "tools/list": {"tools": tools(count)},
    }


def write(text: str) -> None:
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def message(number: int, method: str) -> str:
    params = {
        "level": "info",
        "logger": "flood",
        "data": f"message {number} of a server that does not know when to stop",
    }
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n"


def flood(gate: Path, rate: int, method: str) -> None:
    number, due = 0, time.monotonic()
    while True:
        due = max(due + TICK, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        if gate.exists():
            each = max(1, int(rate * TICK))
            write("".join(message(n, method) for n in range(number, number + each)))
            number += each


def main() -> None:
    gate, rate, count, method = [*sys.argv[1:], *("20", LOG)[len(sys.argv) - 3 :]]
    threading.Thread(target=flood, args=(Path(gate), int(rate), method), daemon=True).start()
    known = answers(int(count))
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": known.get(request["method"], {})}
            write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
