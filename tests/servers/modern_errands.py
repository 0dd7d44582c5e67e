"""A server without a handshake whose calls become tasks, which outlive its process.

    python tests/servers/modern_errands.py --keep FILE [--record FILE] [--without-extension] [--ttl MS] [--named ID]

The tasks are those in FILE, so that another process goes on with them. Tools: `research` works until `finish` is
called, `travel` asks for a city, `fail` fails with an error, `survey` runs as a task alone, `echo` answers at once;
`panel` has a user interface, and `refresh` is for that interface alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echo_server import define
from wire import Message, Wire, decode, options_parser, text

EXTENSION = "io.modelcontextprotocol/tasks"
META = "io.modelcontextprotocol/clientCapabilities"
FORM = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Which city?", "requestedSchema": FORM},
}
PANEL = {"ui": {"resourceUri": "ui://errands/panel"}}
REFRESH = {"ui": {"resourceUri": "ui://errands/panel", "visibility": ["app"]}}
TOOLS = [
    define("research", "Works until it is told to finish.", {}),
    define("finish", "Ends every task that works.", {}),
    define("travel", "Asks for a city.", {}),
    define("fail", "Fails with an error.", {}),
    define("survey", "Runs as a task or not at all.", {}),
    define("echo", "Answers at once.", {}),
    {**define("panel", "Has a user interface.", {}), "_meta": PANEL},
    {**define("refresh", "Serves that interface.", {}), "_meta": REFRESH},
]


class ModernErrands:
    """The server, and the file its tasks are in."""

    def __init__(self, options: Any, wire: Wire) -> None:
        self.options, self.wire, self.file = options, wire, Path(options.keep)
        self.tasks: dict[str, Message] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def serve(self) -> None:
        for request in map(decode, map(bytes.decode, self.wire.lines())):
            if "id" in request:
                params = request.get("params", {})
                self.wire.send({"jsonrpc": "2.0", "id": request["id"], **self.answer(request["method"], params)})

    def answer(self, method: str, params: Message) -> Message:
        match method:
            case "server/discover":
                offered: Message = {"tools": {}} | (
                    {} if self.options.without_extension else {"extensions": {EXTENSION: {}}}
                )
                return done({"supportedVersions": ["2026-07-28"], "capabilities": offered})
            case "tools/list":
                return done({"tools": TOOLS})
            case "tools/call":
                return self.call(params["name"], EXTENSION in params["_meta"][META].get("extensions", {}))
            case "tasks/get" | "tasks/update" | "tasks/cancel":
                return self.on_task(method, params)
        return failed(-32601, f"no method {method}")

    def call(self, name: str, as_task: bool) -> Message:
        if name == "finish":
            self.change("working", status="completed", result=text("found"))
            return done(text("finished"))
        if name not in ("research", "travel", "fail", "survey"):
            return done(text(name))
        if not as_task and name == "survey":
            return failed(-32021, "no task, no survey", {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})
        if not as_task:
            return done(text(f"{name}, without a task"))
        task_id = self.options.named or f"task-{len(self.tasks) + 1}"
        task = {"taskId": task_id, "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z"}
        state = {
            "travel": {"status": "input_required", "inputRequests": {"city": QUESTION}},
            "fail": {"status": "failed", "error": {"code": -32603, "message": "no luck"}},
        }.get(name, {"status": "working", "statusMessage": "reading"})
        self.tasks[task_id] = {**task, "ttlMs": self.options.ttl, "pollIntervalMs": 20, **state}
        self.save()
        begun = {**task, "ttlMs": self.options.ttl, "pollIntervalMs": 20, "status": "working"}
        return {"result": {"resultType": "task", **begun}}

    def on_task(self, method: str, params: Message) -> Message:
        task = self.tasks.get(params["taskId"])
        if EXTENSION not in params["_meta"][META].get("extensions", {}):
            return failed(-32021, "the extension is not declared")
        if task is None:
            return failed(-32602, f"no such task {params['taskId']}")
        if method == "tasks/get":
            return done(task)
        if method == "tasks/update":
            city = params["inputResponses"]["city"].get("content", {}).get("city", "nowhere")
            task.update(status="completed", result=text(f"to {city}"))
            del task["inputRequests"]
        elif task["status"] in ("working", "input_required"):
            task["status"] = "cancelled"
        self.save()
        return done({})

    def change(self, before: str, **after: Any) -> None:
        for task in self.working(before):
            task.update(after)
        self.save()

    def working(self, status: str) -> Iterator[Message]:
        return (task for task in self.tasks.values() if task["status"] == status)

    def save(self) -> None:
        self.file.write_text(json.dumps(self.tasks))


def done(result: Message) -> Message:
    return {"result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}}


def failed(code: int, message: str, data: Message | None = None) -> Message:
    return {"error": {"code": code, "message": message} | ({} if data is None else {"data": data})}


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--keep", metavar="FILE", required=True, help="where the tasks are")
    parser.add_argument("--without-extension", action="store_true", help="do not declare the extension")
    parser.add_argument("--ttl", type=int, default=300_000, metavar="MS", help="for how long tasks are kept")
    parser.add_argument("--named", metavar="ID", help="the id of each task")
    options = parser.parse_args()
    wire = Wire(options)
    ModernErrands(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
