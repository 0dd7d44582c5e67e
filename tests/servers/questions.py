"""A server of either era whose tool, resource and prompt ask the given questions, and answer with what came back.

    questions.py --era handshake|modern --ask JSON [--again] [--changes]

JSON is a list of requests (method and params), asked one after the other; the tool is `ask`, the resource `ask:///`,
the prompt `ask`. In the handshake era each is a request of the server, in the modern one an `input_required`.
`--again` asks each until it is accepted, `--changes` announces and lists another definition of the tool before it asks.
Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from script_options import Options
from wire import REVISIONS, Message, Wire, decode, options_parser

Asking = Generator[Message, Message, list[Message]]


class Questions:
    def __init__(self, options: Options, wire: Any) -> None:
        self.wire, self.modern = wire, options.era == "modern"
        self.ask, self.again, self.changes = json.loads(options.ask), options.again, options.changes
        self.description = "Asks."
        self.subscription: Any = None
        self.calls: dict[str, Asking] = {}
        """Open questions, by the state that is sent to and fro, or by the id of the request."""
        self.waiting: dict[str, Message] = {}
        """The requests that are answered once our questions are."""

    def serve(self) -> None:
        for message in map(decode, map(bytes.decode, self.wire.lines())):
            if "method" not in message:
                self.go_on(message["id"], message)
            elif "id" in message:
                self.requested(message)

    def requested(self, request: Message) -> None:
        offered: Message = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
        who = {"name": "questions", "version": "1"}
        match request["method"]:
            case "initialize":
                version = request["params"]["protocolVersion"]
                agreed = {
                    "protocolVersion": version if version in REVISIONS else REVISIONS[-1],
                    "capabilities": offered,
                    "serverInfo": who,
                }
                self.answer(request, agreed)
            case "server/discover" if self.modern:
                self.answer(request, {"supportedVersions": ["2026-07-28"], "capabilities": offered})
            case "subscriptions/listen" if self.modern:
                self.subscription = request["id"]
                granted = {"notifications": request["params"]["notifications"]}
                self.notify("notifications/subscriptions/acknowledged", granted)
            case "tools/list":
                tool = {"name": "ask", "description": self.description, "inputSchema": {"type": "object"}}
                self.answer(request, {"tools": [tool]})
            case "resources/list":
                self.answer(request, {"resources": [{"uri": "ask:///", "name": "ask"}]})
            case "prompts/list":
                self.answer(request, {"prompts": [{"name": "ask"}]})
            case "tools/call" | "resources/read" | "prompts/get":
                self.begin(request)
            case _:
                self.wire.refuse(request["id"], -32601, "unknown")

    def notify(self, method: str, params: Message) -> None:
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": self.subscription}} if self.modern else {}
        self.wire.notify(method, {**params, **meta})

    def answer(self, request: Message, result: Message) -> None:
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if self.modern else {}
        self.wire.reply(request["id"], {**more, **result})

    def questions(self) -> Asking:
        """Yields each question, and is sent its answer."""
        answers: list[Message] = []
        for question in self.ask:
            answer = yield question
            while self.again and answer.get("result", {}).get("action", "accept") != "accept":
                answer = yield question
            answers.append(answer)
        return answers

    def begin(self, request: Message) -> None:
        given = request["params"].get("inputResponses")
        if given is not None:
            self.waiting[request["params"]["requestState"]] = request
            self.go_on(request["params"]["requestState"], {"result": given["answer"]})
            return
        if self.changes:
            self.description = "Asks something else."
            self.notify("notifications/tools/list_changed", {})
        asking = self.questions()
        self.put(request, asking, next(asking))

    def go_on(self, name: str, reply: Message) -> None:
        asking, request = self.calls.pop(name), self.waiting.pop(name)
        try:
            question = asking.send({key: reply[key] for key in ("result", "error") if key in reply})
        except StopIteration as done:
            self.finish(request, json.dumps(done.value))
        else:
            self.put(request, asking, question)

    def put(self, request: Message, asking: Asking, question: Message) -> None:
        name = f"q{request['id']}-{len(self.calls)}-{id(asking)}"
        self.calls[name], self.waiting[name] = asking, request
        if self.modern:
            needed = {"resultType": "input_required", "inputRequests": {"answer": question}, "requestState": name}
            self.wire.reply(request["id"], needed)
        else:
            self.wire.send({"jsonrpc": "2.0", "id": name, **question})

    def finish(self, request: Message, words: str) -> None:
        said = {"type": "text", "text": words}
        results: dict[str, Message] = {
            "tools/call": {"content": [said]},
            "resources/read": {"contents": [{"uri": "ask:///", "text": words}]},
            "prompts/get": {"messages": [{"role": "user", "content": said}]},
        }
        self.answer(request, results[request["method"]])


def main() -> None:
    parser = options_parser(__doc__)
    parser.add_argument("--era", choices=("handshake", "modern"), required=True)
    parser.add_argument("--ask", metavar="JSON", required=True, help="what to ask")
    parser.add_argument("--again", action="store_true", help="ask until it is accepted")
    parser.add_argument("--changes", action="store_true", help="change the tool before asking")
    options = parser.parse_args()
    wire = Wire(options)
    Questions(options, wire).serve()
    wire.end()


if __name__ == "__main__":
    main()
