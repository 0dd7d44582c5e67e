"""A server whose tool answers with a message of SIZE bytes of one kind: numbers, floats, members, strings, rows.

python large.py SIZE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

TOOL = {"name": "answer", "inputSchema": {"type": "object", "properties": {"kind": {"type": "string"}}}}
EMPTY = '""'


def _row(number: int) -> dict[str, object]:
    return {"name": f"ship {number * 7919 % 99991:05}", "miles": number / 2, "n": -number}


KINDS: dict[str, Callable[[int], str]] = {
    "numbers": lambda size: f'"list":[{",".join(["1"] * (size // 2))}]',
    "floats": lambda size: f'"list":[{",".join(["1.5"] * (size // 4))}]',
    "members": lambda size: ",".join(f'"{n:x}":0' for n in range(size // 11)),
    "rows": lambda size: f'"rows":{json.dumps([_row(n) for n in range(size // 50)])}',
    "strings": lambda size: f'"list":[{",".join([EMPTY] * (size // 3))}]',
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "large", "version": "1"},
}
ANSWERS = {"initialize": INITIALIZED, "tools/list": {"tools": [TOOL]}}


def main() -> None:
    size = int(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] == "tools/call":
            kind = request["params"]["arguments"]["kind"]
            result = f'{{"content":[],"structuredContent":{{{KINDS[kind](size)}}}}}'
        else:
            result = json.dumps(ANSWERS.get(request["method"], {}))
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{result}}}\n')
        sys.stdout.flush()


if __name__ == "__main__":
    main()
