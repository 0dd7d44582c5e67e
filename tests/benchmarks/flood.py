"""A server with a few tools that sends RATE log messages a second for as long as FILE exists.

python flood.py FILE RATE
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

TICK = 0.01
TOOLS = [
    {"name": f"tool-{n:04}", "description": f"Generated tool {n}.", "inputSchema": {"type": "object"}}
    for n in range(1, 21)
]
ANSWERS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "flood", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
}
lock = threading.Lock()


def write(text: str) -> None:
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def message(number: int) -> str:
    params = {
        "level": "info",
        "logger": "flood",
        "data": f"message {number} of a server that does not know when to stop",
    }
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}) + "\n"


def flood(gate: Path, rate: int) -> None:
    number, due = 0, time.monotonic()
    while True:
        due = max(due + TICK, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        if gate.exists():
            each = max(1, int(rate * TICK))
            write("".join(map(message, range(number, number + each))))
            number += each


def main() -> None:
    gate, rate = Path(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=flood, args=(gate, rate), daemon=True).start()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS.get(request["method"], {})}
            write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
