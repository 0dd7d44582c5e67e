"""A server that answers exactly what the command line says, however odd that is.

    python tests/servers/plain.py '{"tools/call": {"result": {"output": "fine"}}, …}'

For each method: the members of its answer besides `jsonrpc` and `id`, or a list of such answers, of which the last is
repeated. `initialize`, `tools/list` and `tools/call` have
good answers otherwise. What `*` names is in every answer; `say` is a list of messages that follow the handshake.
"""

from __future__ import annotations

import json
import sys
from typing import Any

GOOD: dict[str, Any] = {
    "initialize": {
        "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
            "serverInfo": {"name": "plain", "version": "1"},
        }
    },
    "tools/list": {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}},
    "tools/call": {"result": {"content": [{"type": "text", "text": "fine"}]}},
    "prompts/list": {"result": {"prompts": [{"name": "p"}]}},
    "resources/list": {"result": {"resources": []}},
}


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    answers = {**GOOD, **json.loads(sys.argv[1])}
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/initialized":
            for said in answers.get("say", []):
                send(said)
        if "id" in message and "method" in message:
            unknown = {"error": {"code": -32601, "message": "Method not found"}}
            answer = answers.get(message["method"], unknown)
            if isinstance(answer, list):
                answer = answer.pop(0) if len(answer) > 1 else answer[0]
            send({"id": message["id"], **(answers.get("*", {}) if "result" in answer else {}), **answer})


if __name__ == "__main__":
    main()
