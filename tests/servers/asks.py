"""A server that asks: its tools send what they are told to send, and answer with what came back.

    asks.py [--revision 2025-11-25] [--log FILE]

`ask` sends ``requests`` (method and params) and answers once each has its reply, `take_back` takes back what is open
and then ends the calls that wait, `demand` refuses until its pages were visited, `complete` says that one is done, and
`heard` reports the declarations and notifications of the client. Replies and notifications are added to FILE as they
come, so that they can be read when the server is gone.
"""

from __future__ import annotations

import json
import sys

from script_options import TYPE_CHECKING, Options, OptionsParser

if TYPE_CHECKING:
    from typing import Any

Json = dict[str, "Any"]
TOOLS = ("ask", "take_back", "demand", "complete", "heard")


class Asker:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.capabilities: Json = {}
        self.notices: list[str] = []
        self.refusals = 0
        self.last = 0
        self.open: dict[str, int | str] = {}
        """Our requests without a reply, and the calls they are for."""
        self.replies: dict[int | str, dict[str, Json]] = {}
        """By call, the replies to what was asked for it."""
        self.pings: dict[str, int | str] = {}

    def send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.replied(message)
            elif "id" in message:
                self.requested(message)
            else:
                self.note(message["method"])
                self.notices.append(message["method"])

    def note(self, what: Any) -> None:
        if self.options.log:
            with open(self.options.log, "a") as file:
                file.write(json.dumps(what) + "\n")

    def requested(self, message: Json) -> None:
        call, params = message["id"], message.get("params", {})
        if message["method"] == "initialize":
            self.capabilities = params["capabilities"]
            offered = {"capabilities": {"tools": {}}, "serverInfo": {"name": "asks", "version": "1"}}
            self.send(id=call, result={"protocolVersion": self.options.revision, **offered})
        elif message["method"] == "tools/list":
            listed = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            self.send(id=call, result={"tools": listed})
        elif message["method"] == "tools/call":
            getattr(self, params["name"])(call, params.get("arguments", {}))
        else:
            self.send(id=call, result={})

    def tell(self, call: int | str, what: Any) -> None:
        self.send(id=call, result={"content": [{"type": "text", "text": json.dumps(what)}]})

    def ask(self, call: int | str, given: Json) -> None:
        self.replies[call] = {}
        for request in given["requests"]:
            self.last += 1
            self.open[f"q{self.last}"] = call
            self.send(id=f"q{self.last}", **request)

    def replied(self, message: Json) -> None:
        self.note(message)
        number = message["id"]
        if number in self.pings:
            asked, told = self.pings.pop(number), self.replies
            self.replies = {}
            for call, replies in told.items():
                self.tell(call, list(replies.values()))
            self.tell(asked, "taken back")
            return
        call = self.open.pop(number)
        reply: Json = {key: message[key] for key in ("result", "error") if key in message}
        self.replies[call][number] = reply
        if call not in self.open.values():
            replies = self.replies.pop(call)
            self.tell(call, [replies[name] for name in sorted(replies, key=lambda name: int(name[1:]))])

    def take_back(self, call: int | str, given: Json) -> None:
        for number in self.open:
            self.send(method="notifications/cancelled", params={"requestId": number, "reason": "never mind"})
        self.pings["p"] = call
        self.send(id="p", method="ping")  # what is sent to what was taken back comes before the answer to this

    def demand(self, call: int | str, given: Json) -> None:
        self.refusals += 1
        if self.refusals > given.get("times", 1):
            self.tell(call, "visited")
            return
        self.send(id=call, error={"code": -32042, "message": "visit first", "data": given.get("data")})

    def complete(self, call: int | str, given: Json) -> None:
        for number in given["ids"]:
            self.send(method="notifications/elicitation/complete", params={"elicitationId": number})
        self.tell(call, "told")

    def heard(self, call: int | str, given: Json) -> None:
        self.tell(call, {"capabilities": self.capabilities, "notices": self.notices})


if __name__ == "__main__":
    parser = OptionsParser(__doc__)
    parser.add_argument("--revision", default="2025-11-25")
    parser.add_argument("--log")
    Asker(parser.parse_args()).serve()
